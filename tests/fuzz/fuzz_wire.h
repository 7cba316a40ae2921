/* What the fuzzers of the dialects share.
 *
 * Properties: any body is an answer or an error with words; the same answer wherever reads are cut; what is kept for a replay is
 * valid JSON and builds a request; text is valid UTF-8 without controls; every call has an id and a name that is text. */
#ifndef FUZZ_WIRE_H
#define FUZZ_WIRE_H
#include <stdint.h>
#include "fence.h"
#include "provider.h"
#include "wire.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static inline void must(bool holds)
{
    if (!holds)
        __builtin_trap();
}

static inline int read_pieces(const struct wire *w, const char *data, size_t n, size_t step, struct model_answer *a,
                              struct err *e)
{
    static const struct wire_request ask = { .model = "m", .provider = "p", .cache_key = "k" };
    AUTO(wire_reader_clear) struct wire_reader r;
    wire_reader_init(&r, w, NULL, NULL);
    for (size_t at = 0; at < n; at += step)
        if (wire_reader_feed(&r, data + at, n - at < step ? n - at : step, e) < 0)
            return -1;
    return wire_reader_finish(&r, &ask, a, e);
}

static inline void check_replay(const struct wire *w, struct model_answer *a)
{
    struct err e = { 0 };
    autojson struct json *said = NULL;
    const struct wire_request ask = { .model = "m", .provider = "p", .msgs = &a->msg, .msg_n = 1 };
    AUTO(str_clear) struct str text = STR_INIT(WIRE_REQUEST_MAX);
    autojson struct json *body = w->request(&ask), *again = NULL;
    json_print(&text, body);
    must(json_parse(&again, str_peek(&text), text.len, WIRE_REQUEST_MAX, &e) == 0);
    if (a->msg.raw)
        must(json_parse(&said, a->msg.raw, strlen(a->msg.raw), WIRE_REQUEST_MAX, &e) == 0 && json_get(said, "said"));
}

static inline void check_answer(const struct wire *w, struct model_answer *a)
{
    must(a->msg.text && utf8_valid(a->msg.text, strlen(a->msg.text)));
    for (size_t i = 0; i < a->msg.call_n; i++) {
        must(*a->msg.calls[i].id && a->msg.calls[i].name && a->msg.calls[i].args);
        for (size_t k = 0; k < i; k++)
            must(strcmp(a->msg.calls[i].id, a->msg.calls[k].id) != 0);
    }
    check_replay(w, a);
    fence_answer(a, false, NULL, "id");
    must(a->msg.call_n == 0 || a->msg.calls[0].args);
}

static inline void check_same(const struct model_answer *a, const struct model_answer *b)
{
    must(strcmp(a->msg.text, b->msg.text) == 0 && a->msg.call_n == b->msg.call_n && a->stop == b->stop);
    for (size_t i = 0; i < a->msg.call_n; i++)
        must(strcmp(a->msg.calls[i].args, b->msg.calls[i].args) == 0);
}

static inline int fuzz_wire(const struct wire *w, const uint8_t *data, size_t size)
{
    struct model_answer a = { 0 }, b = { 0 };
    struct err e = { 0 }, e2 = { 0 };
    if (size < 2 || size > 1 << 16)
        return 0;
    const char *body = (const char *)data + 1;
    const int rc = read_pieces(w, body, size - 1, size, &a, &e);
    const int rc2 = read_pieces(w, body, size - 1, 1 + data[0] % 16, &b, &e2);
    must(rc == rc2);
    if (rc < 0) {
        must(*e.msg && e.kind == e2.kind);
        return 0;
    }
    check_same(&a, &b);
    check_answer(w, &a);
    wire_answer_clear(&a);
    wire_answer_clear(&b);
    return 0;
}
#endif
