/* Property: whatever an answer holds, on every rung, no message is one that Slack's documented limits refuse. */
#include <stdint.h>
#include "../unit/slack_limits.h"
#include "slack/slack_blocks.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size < 1 || size > 1 << 14)
        return 0;
    AUTO(slack_layout_clear) struct slack_layout l;
    autofree char *markdown = xstrndup((const char *)data + 1, size - 1);
    slack_layout_make(&l, markdown, data[0] & 8 ? markdown : NULL, (enum slack_rung)(data[0] % 5));
    if (data[0] & 16)
        slack_layout_feedback(&l);
    if (l.n < 1 || l.n > SLACK_MESSAGES_MAX)
        __builtin_trap();
    for (size_t i = 0; i < l.n; i++) {
        const char *fault = message_fault(l.at[i].blocks, l.at[i].text);
        if (fault)
            (void)fprintf(stderr, "%s\n", fault);
        if (fault && !strstr(fault, "live"))
            __builtin_trap();
    }
    return 0;
}
