/* A checkpoint's label and a box's report of one: whatever they hold, what is taken of them is sound, and prints the same again. */
#include <assert.h>
#include <string.h>

#include "json.h"
#include "label.h"
#include "native_checkpoint.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

enum { TEXT_MAX = 64 << 20, CLAIM_MAX = 4 << 20 };

static void label(const uint8_t *data, size_t n)
{
    struct label l, again;
    struct err e = { 0 };
    unsigned char block[LABEL_BYTES];
    if (label_read(&l, data, n, &e) < 0) {
        assert(e.kind == ERR_DATA && !l.image);
        return;
    }
    assert(strlen(l.session) == 16 && l.cell >= 0 && l.bytes >= 0 && l.kept >= 0);
    if (label_write(block, &l, &e) == 0) {
        if (label_read(&again, block, sizeof block, &e) < 0)
            abort();
        assert(strcmp(l.image, again.image) == 0 && l.bytes == again.bytes && l.cell == again.cell);
        label_clear(&again);
    }
    label_clear(&l);
}

/* The JSON of a label, so that the fuzzer need not find the rest. */
static void wrapped(const uint8_t *data, size_t n)
{
    unsigned char block[LABEL_BYTES] = "SBKSTATE\1";
    if (n == 0 || n > LABEL_BYTES - 16)
        return;
    block[12] = (unsigned char)n;
    block[13] = (unsigned char)(n >> 8);
    memcpy(block + 16, data, n);
    label(block, sizeof block);
}

static void report(const char *data, size_t n)
{
    autojson struct json *claim = NULL, *out = NULL, *again = NULL;
    AUTO(str_clear) struct str text = STR_INIT(TEXT_MAX);
    struct err e = { 0 };
    if (json_parse(&claim, data, n, CLAIM_MAX, &e) < 0 || report_from_claim(&out, claim, &e) < 0)
        return;
    json_print(&text, out);
    assert(str_check(&text, &e) == 0 && utf8_valid(str_peek(&text), text.len));
    assert(json_parse(&again, str_peek(&text), text.len, TEXT_MAX, &e) == 0);
    assert(json_int_or(again, "kept", -1) >= 0 && json_int_or(again, "bytes", -1) >= 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    label(data, n);
    wrapped(data, n);
    report((const char *)data, n);
    return 0;
}
