/* Every body in tests/data/wire of one dialect, in pieces of every size. See the README there. */
#ifndef TEST_WIRE_VECTORS_H
#define TEST_WIRE_VECTORS_H
#include <dirent.h>
#include <stdio.h>
#include "wire.h"

enum { VECTOR_MAX = 1 << 20 };
#define VECTORS "tests/data/wire"

struct vector {
    char name[256];
    struct str body;
    struct json *want;
};

static inline void vector_clear(struct vector *v)
{
    str_clear(&v->body);
    json_free(v->want);
}

/* What text() was given. */
static inline bool vector_text(void *ud, const char *text, size_t n)
{
    str_add(ud, text, n);
    return true;
}

static inline void vector_load(struct vector *v, const char *file)
{
    struct err e = { 0 };
    AUTO(str_clear) struct str text = STR_INIT(VECTOR_MAX);
    autofree char *sse = xasprintf("%s/%s", VECTORS, file);
    autofree char *json = xasprintf("%s/%.*s.json", VECTORS, (int)(strlen(file) - 4), file);
    *v = (struct vector){ .body = STR_INIT(VECTOR_MAX) };
    (void)snprintf(v->name, sizeof(v->name), "%s", file);
    assert_int_equal(str_read_file(&v->body, sse, &e), 0);
    assert_int_equal(str_read_file(&text, json, &e), 0);
    assert_int_equal(json_parse(&v->want, str_peek(&text), text.len, VECTOR_MAX, &e), 0);
}

static inline char *vector_print(const struct json *v)
{
    AUTO(str_clear) struct str text = STR_INIT(VECTOR_MAX);
    json_print(&text, v);
    return str_take(&text);
}

static inline void vector_check_args(const char *got, const struct json *want)
{
    struct err e = { 0 };
    struct json *parsed = NULL;
    const int rc = json_parse(&parsed, got, strlen(got), VECTOR_MAX, &e);
    if (json_type(want) == JSON_NULL) {
        assert_int_equal(rc, -1);
    } else if (json_type(want) == JSON_STRING) {
        assert_string_equal(got, json_text(want));
    } else {
        autofree char *one = vector_print(want), *two = vector_print(parsed);
        assert_string_equal(one, two);
    }
    json_free(parsed);
}

static inline void vector_check_calls(const struct model_msg *m, const struct json *tools)
{
    size_t i = 0;
    assert_int_equal(m->call_n, json_len(tools));
    for (const struct json *t = json_first(tools); t; t = json_next(t), i++) {
        const char *id = json_str_or(t, "id", NULL);
        if (id)
            assert_string_equal(m->calls[i].id, id);
        assert_true(*m->calls[i].id);
        for (size_t k = 0; k < i; k++)
            assert_string_not_equal(m->calls[k].id, m->calls[i].id);
        assert_string_equal(m->calls[i].name, json_str_or(t, "name", ""));
        vector_check_args(m->calls[i].args, json_get(t, "args"));
    }
}

static inline void vector_check_echo(const struct model_msg *m, const struct json *want)
{
    for (const struct json *x = json_first(json_get(want, "echo")); x; x = json_next(x)) {
        autofree char *value = vector_print(x);
        autofree char *member = xasprintf("\"%s\":%s", json_key(x), value);
        assert_non_null(m->raw);
        assert_non_null(strstr(m->raw, member));
    }
    const struct json *types = json_get(want, "echo_blocks");
    types = types ? types : json_get(want, "echo_items");
    if (!types)
        return;
    struct err e = { 0 };
    autojson struct json *raw = NULL;
    assert_non_null(m->raw);
    assert_int_equal(json_parse(&raw, m->raw, strlen(m->raw), VECTOR_MAX, &e), 0);
    const struct json *said = json_first(json_get(raw, "said"));
    for (const struct json *t = json_first(types); t; t = json_next(t), said = json_next(said)) {
        const char *type = json_str_or(said, "type", "");
        assert_int_equal(strncmp(json_text(t), type, strlen(type)), 0);
        if (strstr(json_text(t), "signature"))
            assert_true(*json_str_or(said, "signature", ""));
        if (strstr(json_text(t), "encrypted_content"))
            assert_true(*json_str_or(said, "encrypted_content", ""));
    }
    assert_null(said);
}

static inline void vector_check_usage(const struct model_usage *u, const struct json *want)
{
    if (!want)
        return;
    assert_int_equal(u->in, json_int_or(want, "in", 0));
    assert_int_equal(u->out, json_int_or(want, "out", 0));
    assert_int_equal(u->cached, json_int_or(want, "cached", 0));
}

static inline void vector_check_reasoning(const struct wire_reader *r, const struct json *want)
{
    const char *words = json_str_or(want, "reasoning", NULL);
    bool found = !words;
    for (size_t i = 0; i < r->block_n; i++)
        found = found || (r->blocks[i].kind == WIRE_THINKING && strcmp(str_peek(&r->blocks[i].text), words) == 0);
    assert_true(found);
}

static inline enum model_stop vector_stop(const char *word)
{
    if (strcmp(word, "length") == 0)
        return MODEL_STOP_LENGTH;
    return strcmp(word, "refusal") == 0 || strcmp(word, "filter") == 0 ? MODEL_STOP_REFUSED : MODEL_STOP_END;
}

static inline void vector_check_answer(const struct vector *v, const struct wire_reader *r,
                                       const struct model_answer *a)
{
    const char *text = json_str_or(v->want, "text", ""), *refusal = json_str_or(v->want, "refusal", NULL);
    assert_string_equal(a->msg.text, refusal ? refusal : text);
    assert_int_equal(a->stop, vector_stop(json_str_or(v->want, "stop", "")));
    vector_check_calls(&a->msg, json_get(v->want, "tools"));
    vector_check_usage(&a->usage, json_get(v->want, "usage"));
    vector_check_reasoning(r, v->want);
    vector_check_echo(&a->msg, v->want);
}

static inline void vector_check_failure(const struct vector *v, const struct wire_reader *r, const struct err *e)
{
    const bool cut = strcmp(json_str_or(v->want, "stop", ""), "cut") == 0;
    autofree char *text = wire_visible(r);
    assert_string_equal(text, json_str_or(v->want, "text", ""));
    assert_int_equal(r->failed, !cut);
    if (cut)
        assert_int_equal(e->kind, ERR_NET);
    else
        assert_non_null(strstr(e->msg, json_str_or(v->want, "error", "")));
}

static inline void vector_feed(const struct vector *v, const struct wire *w, size_t step)
{
    static const struct wire_request ask = { .model = "m", .provider = "p", .cache_key = "k" };
    struct err e = { 0 };
    struct model_answer a = { 0 };
    AUTO(str_clear) struct str shown = STR_INIT(VECTOR_MAX);
    AUTO(wire_reader_clear) struct wire_reader r;
    wire_reader_init(&r, w, vector_text, &shown);
    for (size_t at = 0; at < v->body.len; at += step) {
        const size_t n = v->body.len - at < step ? v->body.len - at : step;
        assert_int_equal(wire_reader_feed(&r, str_peek(&v->body) + at, n, &e), 0);
    }
    const char *stop = json_str_or(v->want, "stop", "");
    const int rc = wire_reader_finish(&r, &ask, &a, &e);
    if (strcmp(stop, "cut") == 0 || strcmp(stop, "error") == 0) {
        assert_int_equal(rc, -1);
        vector_check_failure(v, &r, &e);
        return;
    }
    assert_int_equal(rc, 0);
    vector_check_answer(v, &r, &a);
    if (r.form == WIRE_STREAM && r.refusal.len == 0 && !strstr(v->name, "no_open") && !strstr(v->name, "u2028"))
        assert_string_equal(str_peek(&shown), json_str_or(v->want, "text", ""));
    wire_answer_clear(&a);
}

static inline bool vector_is_of(const char *file, const struct wire *w)
{
    const size_t n = strlen(file);
    if (n < 5 || strcmp(file + n - 4, ".sse") != 0)
        return false;
    if (strncmp(file, "an_", 3) == 0)
        return w == &wire_anthropic;
    if (strncmp(file, "ol_", 3) == 0)
        return w == &wire_ollama;
    return strncmp(file, "rs_", 3) == 0 ? w == &wire_responses : w == &wire_chat;
}

/* All vectors of that dialect; returns how many there are. */
static inline size_t vectors_run(const struct wire *w)
{
    size_t n = 0;
    DIR *d = opendir(VECTORS);
    assert_non_null(d);
    for (const struct dirent *x = readdir(d); x; x = readdir(d)) {
        if (!vector_is_of(x->d_name, w))
            continue;
        AUTO(vector_clear) struct vector v;
        vector_load(&v, x->d_name);
        print_message("# %s, %zu bytes\n", v.name, v.body.len);
        for (size_t step = 1; step <= v.body.len; step++)
            vector_feed(&v, w, step);
        n++;
    }
    (void)closedir(d);
    return n;
}
#endif
