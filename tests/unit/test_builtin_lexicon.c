/* The language files of the built-in planner: mistakes name file and line; the shipped ones are whole. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include "builtin_fixture.h"

static void put(const char *dir, const char *name, const char *text)
{
    autofree char *path = xasprintf("%s/builtin/%s", dir, name);
    FILE *f = fopen(path, "w");
    assert_non_null(f);
    assert_true(fputs(text, f) >= 0);
    assert_int_equal(fclose(f), 0);
}

static void remove_all(const char *dir)
{
    static const char *const names[] = { "builtin/en.conf", "builtin/zh.conf", "builtin", "" };
    for (size_t i = 0; i < countof(names); i++) {
        autofree char *path = xasprintf("%s/%s", dir, names[i]);
        (void)remove(path);
    }
}

static void mistakes_name_file_and_line(void **state)
{
    (void)state;
    static const struct {
        const char *text, *says;
    } table[] = {
        { "[aggregate]\nmean = average\nmeen = x\n", "en.conf:3: [aggregate] knows no key meen" },
        { "# words\n\n[aggregates]\n", "en.conf:3: unknown section [aggregates]" },
        { "mean = average\n", "en.conf:1: a key before the first [section]" },
        { "[aggregate]\naverage\n", "en.conf:2: neither [section] nor key = phrases" },
        { "[aggregate\n", "en.conf:1: a [section] without its bracket" },
        { "[value]\nfemale = woman\n", "en.conf:2: female: a value's key is class.value" },
        { "[superlative]\nmost = oldest\n", "en.conf:2: most: no concept" },
        { "[comparative]\nmost age = older\n", "en.conf:2: [compare] knows no key most" },
        { "[kind]\nloud = sales\n", "en.conf:2: [kind] knows no key loud" },
        { "[number]\nten = ten\n", "en.conf:2: [number] ten: no whole number" },
        { "[aggregate]\nmean = \xff\n", "en.conf: not UTF-8" },
    };
    char dir[] = "/tmp/sandbook-lexicon-XXXXXX";
    assert_non_null(mkdtemp(dir));
    autofree char *folder = xasprintf("%s/builtin", dir);
    assert_int_equal(mkdir(folder, 0700), 0);
    put(dir, "zh.conf", "");
    for (size_t i = 0; i < countof(table); i++) {
        struct bi_lexicon *x = NULL;
        struct err e = { 0 };
        put(dir, "en.conf", table[i].text);
        assert_int_equal(bi_lexicon_open(&x, dir, &e), -1);
        assert_int_equal(e.kind, ERR_CONFIG);
        if (!strstr(e.msg, table[i].says))
            fail_msg("%s: %s", table[i].says, e.msg);
    }
    remove_all(dir);
}

static void a_missing_folder_is_named(void **state)
{
    (void)state;
    struct bi_lexicon *x = NULL;
    struct err e = { 0 };
    assert_int_equal(bi_lexicon_open(&x, "/nonexistent", &e), -1);
    assert_int_equal(e.kind, ERR_CONFIG);
    assert_non_null(strstr(e.msg, "/nonexistent/builtin/en.conf"));
}

static void every_sense_has_words_in_every_language(void **state)
{
    (void)state;
    struct fixture f;
    fixture_open(&f, "[]");
    for (int s = BI_NONE + 1; s < BI_SENSES; s++)
        for (int language = 0; language < BI_LANGUAGES; language++) {
            bool found = false;
            for (size_t i = 0; i < bi_lexicon_phrases(f.lexicon) && !found; i++) {
                const struct bi_phrase *p = bi_lexicon_phrase(f.lexicon, i);
                const bool place = p->type == BI_PHRASE_ORDINAL && s == BI_NTH;
                found = (place || (p->type == BI_PHRASE_SENSE && (int)p->sense == s)) && (int)p->language == language;
            }
            if (!found)
                fail_msg("language %d has no words for %s", language, bi_sense_name((enum bi_sense)s));
        }
    fixture_close(&f);
}

static void sayings_fill_in_their_names(void **state)
{
    (void)state;
    struct fixture f;
    struct str out = STR_INIT(4096);
    fixture_open(&f, "[]");
    bi_say(&out, f.lexicon, BI_EN, "ask_column",
           (const char *const[]){ "words", "rate", "columns", "`a` or `b`", NULL });
    assert_string_equal(str_peek(&out), "\"rate\" could be `a` or `b`. Which one do you mean?");
    str_clear(&out);
    bi_say(&out, f.lexicon, BI_EN, "ask_column", (const char *const[]){ "words", "{columns}", NULL });
    assert_string_equal(str_peek(&out), "\"{columns}\" could be {columns}. Which one do you mean?");
    assert_string_equal(bi_text(f.lexicon, BI_EN, "no such key"), "no such key");
    str_clear(&out);
    fixture_close(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(mistakes_name_file_and_line),
        cmocka_unit_test(a_missing_folder_is_named),
        cmocka_unit_test(every_sense_has_words_in_every_language),
        cmocka_unit_test(sayings_fill_in_their_names),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
