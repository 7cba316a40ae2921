/* Histories: what is kept, what is mended, what survives the store. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>
#include "json.h"
#include "transcript.h"

/* One message a word: s system, u user, a assistant, r:ID result, c:ID assistant that calls (c:1+2 both). "u!" is blank. */
static void add_words(struct transcript *t, const char *words)
{
    autofree char *copy = xstrdup(words);
    char *save = NULL;
    for (char *w = strtok_r(copy, " ", &save); w; w = strtok_r(NULL, " ", &save)) {
        const char *text = strchr(w, '!') ? " \n" : w;
        switch (*w) {
        case 's': transcript_add(t, MODEL_SYSTEM, text); break;
        case 'u': transcript_add(t, MODEL_USER, text); break;
        case 'a': transcript_add(t, MODEL_ASSISTANT, text); break;
        case 'r': transcript_add_result(t, w + 2, "out", false); break;
        default: {
            char *ids = NULL;
            struct model_msg *m = transcript_add(t, MODEL_ASSISTANT, "");
            for (char *id = strtok_r(w + 2, "+", &ids); id; id = strtok_r(NULL, "+", &ids))
                transcript_add_call(m, id, "run_python", "{\"code\":\"1\"}");
        }
        }
    }
}

static char *to_words(const struct transcript *t)
{
    AUTO(str_clear) struct str out = STR_INIT(4096);
    for (size_t i = 0; i < t->n; i++) {
        const struct model_msg *m = &t->at[i];
        str_puts(&out, i ? " " : "");
        if (m->role == MODEL_TOOL)
            str_printf(&out, "r:%s%s", m->call_id, m->failed ? "?" : "");
        else if (m->call_n == 0)
            str_puts(&out, m->text);
        for (size_t k = 0; k < m->call_n; k++)
            str_printf(&out, "%s%s", k ? "+" : "c:", m->calls[k].id);
    }
    return str_take(&out);
}

static void a_history_is_mended_for_any_provider(void **state)
{
    static const struct {
        const char *in, *out;
    } cases[] = {
        { "s u c:1 r:1 a", "s u c:1 r:1 a" },
        { "u c:1", "u c:1 r:1?" },             /* a call without its result gets one */
        { "u c:1+2 r:2", "u c:1+2 r:1? r:2" }, /* in the order of the calls */
        { "u r:9 a", "u a" },                  /* a result without its call goes */
        { "u c:1 r:1 r:7 a", "u c:1 r:1 a" },
        { "u c:1 a r:1", "u c:1 r:1? a" }, /* too late: the call was closed */
        { "u! a! u", "u" },                /* blank text goes */
        { "u1 u2 a", "u1\n\nu2 a" },       /* one person's turn */
        { "u1 a! u2", "u1\n\nu2" },
        { "", "" },
        { "s", "s" },
    };
    (void)state;
    for (size_t i = 0; i < countof(cases); i++) {
        struct transcript t = { 0 };
        add_words(&t, cases[i].in);
        transcript_sanitize(&t, "interrupted");
        autofree char *words = to_words(&t);
        assert_string_equal(words, cases[i].out);
        transcript_sanitize(&t, "interrupted"); /* and stays so */
        autofree char *again = to_words(&t);
        assert_string_equal(again, cases[i].out);
        transcript_clear(&t);
    }
}

static void a_missing_result_is_worded_and_failed(void **state)
{
    (void)state;
    struct transcript t = { 0 };
    add_words(&t, "u c:1");
    transcript_sanitize(&t, "cancelled by ann");
    assert_string_equal(t.at[2].text, "cancelled by ann");
    assert_true(t.at[2].failed);
    transcript_clear(&t);
}

static void a_transcript_survives_the_store(void **state)
{
    (void)state;
    struct transcript t = { 0 }, back = { 0 };
    struct err e = { 0 };
    add_words(&t, "u c:1+2 r:1 r:2 a");
    t.at[3].failed = true;
    t.at[1].raw = xstrdup("{\"content\":[]}");
    t.at[1].provider = "house";
    autojson struct json *j = transcript_to_json(&t);
    assert_int_equal(transcript_from_json(&back, j, "house", &e), 0);
    autofree char *one = to_words(&t), *two = to_words(&back);
    assert_string_equal(one, two);
    assert_string_equal(back.at[1].raw, "{\"content\":[]}");
    assert_string_equal(back.at[1].calls[0].args, "{\"code\":\"1\"}");
    assert_true(back.at[3].failed);
    transcript_clear(&back);
    assert_int_equal(transcript_from_json(&back, j, "another", &e), 0);
    assert_null(back.at[1].raw); /* what one provider wants echoed another refuses */
    transcript_clear(&back);
    transcript_clear(&t);
}

static void what_is_no_transcript_is_refused(void **state)
{
    static const char *const bad[] = {
        "{}",
        "[1]",
        "[{\"role\":\"boss\",\"text\":\"x\"}]",
        "[{\"role\":\"tool\",\"text\":\"x\"}]",
        "[{\"role\":\"assistant\",\"calls\":[{\"id\":\"1\"}]}]",
    };
    (void)state;
    for (size_t i = 0; i < countof(bad); i++) {
        autojson struct json *j = NULL;
        struct transcript t = { 0 };
        struct err e = { 0 };
        assert_int_equal(json_parse(&j, bad[i], strlen(bad[i]), 4096, &e), 0);
        assert_int_equal(transcript_from_json(&t, j, NULL, &e), -1);
        assert_int_equal(e.kind, ERR_DATA);
        transcript_clear(&t);
    }
}

static void messages_move_without_a_copy(void **state)
{
    (void)state;
    struct transcript a = { 0 }, b = { 0 };
    add_words(&a, "u c:1 r:1");
    const char *text = a.at[0].text;
    transcript_take(&b, &a);
    assert_int_equal(a.n, 0);
    assert_int_equal(b.n, 3);
    assert_ptr_equal(b.at[0].text, text);
    transcript_copy(&a, &b, 1, 99);
    assert_int_equal(a.n, 2);
    assert_ptr_not_equal(a.at[0].calls[0].id, b.at[1].calls[0].id);
    transcript_clear(&a);
    transcript_clear(&b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_history_is_mended_for_any_provider), cmocka_unit_test(a_missing_result_is_worded_and_failed),
        cmocka_unit_test(a_transcript_survives_the_store),      cmocka_unit_test(what_is_no_transcript_is_refused),
        cmocka_unit_test(messages_move_without_a_copy),
    };
    return cmocka_run_group_tests_name("transcript", tests, NULL, NULL);
}
