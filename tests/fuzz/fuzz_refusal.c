/* Bodies of refusals: any of them is an error with words, and what is learned from it is something else to ask with. The first byte is
 * the status and the dialect. */
#include "fuzz_wire.h"

static const int statuses[] = { 0, 200, 302, 400, 401, 402, 403, 404, 408, 413, 422, 429, 500, 501, 503, 529 };
static const struct wire *const wires[] = { &wire_chat, &wire_responses, &wire_anthropic, &wire_ollama };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct wire_error error;
    struct err e = { 0 };
    unsigned quirks = 0;
    int64_t max_output = 1000;
    const char *what = NULL;
    if (size < 1 || size > 1 << 16)
        return 0;
    wire_error_read(&error, statuses[data[0] & 15], (const char *)data + 1, size - 1);
    must(wire_error_set(&e, &error) == -1 && *e.msg && e.kind != ERR_NONE);
    must(utf8_valid(error.message, strlen(error.message)));
    must(wire_error_wait_ms(&error) >= 0 && wire_error_window(&error) >= 0 && wire_error_sent(&error) >= 0);
    const struct provider_sent sent = { wires[data[0] >> 4 & 3], 0, true, true, true, true, true, max_output, true };
    if (provider_learn(&error, &sent, &quirks, &max_output, &what))
        must(what && (quirks || max_output < 1000) && max_output > 0);
    (void)provider_plainest(&error, &quirks);
    return 0;
}
