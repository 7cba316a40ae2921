/* With tools for SQL and others. Properties: a stream is cut at the same byte wherever its pieces end; what is behind a cut never becomes part of the program; a program
 * that is read comes out of the conversation as it went in. The first byte is the size of pieces. */
#include <stdint.h>
#include "fence.h"
#include "json.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static struct json *schema(void)
{
    static const char text[] =
        "[{\"name\":\"run_python\"},{\"name\":\"q\",\"parameters\":{\"properties\":{\"sql\":{}}}}]";
    static struct json *made;
    struct err e = { 0 };
    if (!made && json_parse(&made, text, sizeof(text) - 1, sizeof(text), &e) < 0)
        __builtin_trap();
    return made;
}

static void must(bool holds)
{
    if (!holds)
        __builtin_trap();
}

/* Bytes up to the end of the piece in which the first program was whole; n: none was. */
static size_t watch(const char *text, size_t n, size_t step, bool *whole)
{
    AUTO(fence_watch_clear) struct fence_watch w = FENCE_WATCH_INIT;
    w.lines = fence_lines_for(schema());
    *whole = false;
    for (size_t at = 0; at < n; at += step) {
        const size_t len = n - at < step ? n - at : step;
        *whole = fence_watch_add(&w, text + at, len);
        if (*whole)
            return at + len;
    }
    return n;
}

static void answer_clear(struct model_answer *a)
{
    for (size_t i = 0; i < a->msg.call_n; i++) {
        free(a->msg.calls[i].id);
        free(a->msg.calls[i].name);
        free(a->msg.calls[i].args);
    }
    free(a->msg.calls);
    free(a->msg.text);
}

static struct model_answer read_answer(const char *text, size_t n, bool streamed, enum model_stop stop)
{
    struct model_answer a = { .msg = { .role = MODEL_ASSISTANT, .text = xstrndup(text, n) }, .stop = stop };
    fence_answer(&a, streamed, schema(), "id");
    must(a.msg.text && a.msg.call_n <= 1 && strlen(a.msg.text) <= n);
    return a;
}

static void check_talk(const struct model_answer *a)
{
    struct fence_talk t;
    const struct model_ask ask = { .msgs = &a->msg, .msg_n = 1 };
    fence_talk_make(&t, &ask);
    must(t.n == 1 && t.msgs[0].call_n == 0 && strlen(t.msgs[0].text) >= strlen(a->msg.text));
    fence_talk_clear(&t);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size < 2 || size > 1 << 14)
        return 0;
    AUTO(str_clear) struct str text = STR_INIT(1 << 18);
    bool byte = false, piece = false;
    utf8_scrub(&text, (const char *)data + 1, size - 1);
    const char *all = str_peek(&text);
    const size_t step = 1 + data[0] % 32, at = watch(all, text.len, 1, &byte),
                 rough = watch(all, text.len, step, &piece);
    must(byte == piece && rough >= at && rough < at + step);
    struct model_answer cut = read_answer(all, at, true, MODEL_STOP_END);
    struct model_answer streamed = read_answer(all, rough, true, MODEL_STOP_END);
    struct model_answer whole = read_answer(all, text.len, false, data[0] & 1 ? MODEL_STOP_LENGTH : MODEL_STOP_END);
    must(cut.msg.call_n == streamed.msg.call_n);
    must(!cut.msg.call_n || strcmp(cut.msg.calls[0].args, streamed.msg.calls[0].args) == 0);
    check_talk(&cut);
    check_talk(&whole);
    answer_clear(&cut);
    answer_clear(&streamed);
    answer_clear(&whole);
    return 0;
}
