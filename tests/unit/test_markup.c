#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdio.h>
#include <string.h>
#include "markup.h"

enum { ROOMY = 16 << 20 };

static char *plain_of(const struct markup *m)
{
    struct str s = STR_INIT(ROOMY);
    markup_plain(&s, m);
    return str_take(&s);
}

static char *plain(const char *markdown)
{
    AUTO(markup_freep) struct markup *m = markup_parse(markdown);
    return plain_of(m);
}

static const struct {
    const char *markdown, *plain;
} texts[] = {
    { "", "" },
    { "hello *you* **there**", "hello you there" },
    { "# Title\nText", "Title\n\nText" },
    { "a\nb  \nc", "a\nb\nc" },
    { "use `x < 1` and ~~not~~", "use `x < 1` and not" },
    { "[site](https://a.example/x) https://b.example", "site (https://a.example/x) https://b.example" },
    { "[x](javascript:alert(1))", "x" },
    { "[x](data:text/html,a)", "x" },
    { "![alt](https://a.example/p.png)", "alt (https://a.example/p.png)" },
    { "<b>bold</b> <script>x</script>", "<b>bold</b> <script>x</script>" },
    { "a &amp; b &lt;c&gt; &#65; &#x41; &bogus; &#0; &#xd800;", "a & b <c> A A &bogus; \xef\xbf\xbd \xef\xbf\xbd" },
    { "- a\n- b\n  - c", "- a\n- b\n  - c" },
    { "3. a\n4. b", "3. a\n4. b" },
    { "- [ ] open\n- [x] shut", "- [ ] open\n- [x] shut" },
    { "> quoted\n> more", "> quoted\n> more" },
    { "```python\nprint(1)\n\nx\n```", "```python\nprint(1)\n\nx\n```" },
    { "```py\"><script>\nx\n```", "```py\nx\n```" },
    { "    four blanks are no code", "four blanks are no code" },
    { "a\n\n---\n\nb", "a\n\n---\n\nb" },
    { "|a|bb|\n|---|--:|\n|1|2|\n|333|4|", "a   | bb\n----|---\n1   |  2\n333 |  4" },
    { "|名前|n|\n|---|---|\n|日本|1|", "名前 | n\n-----|--\n日本 | 1" },
};

static void markdown_reads_well_as_text(void **state)
{
    (void)state;
    for (size_t i = 0; i < countof(texts); i++) {
        autofree char *got = plain(texts[i].markdown);
        assert_string_equal(got, texts[i].plain);
    }
}

static void nesting_beyond_the_limit_keeps_its_text(void **state)
{
    (void)state;
    struct str deep = STR_INIT(ROOMY);
    for (int i = 0; i < 500; i++)
        str_puts(&deep, i % 2 ? "> " : "- ");
    str_puts(&deep, "core");
    autofree char *got = plain(str_peek(&deep));
    assert_non_null(strstr(got, "core"));
    str_clear(&deep);
}

static void broken_bytes_become_valid_text(void **state)
{
    (void)state;
    autofree char *got = plain("a\xff\xfe *b\xc3* \x01 \x1b[31mred");
    assert_true(utf8_valid(got, strlen(got)));
}

static void a_copy_is_equal_and_independent(void **state)
{
    (void)state;
    struct markup *m = markup_parse("- a\n- **b** [c](https://x.example)\n\n|x|\n|---|\n|1|");
    AUTO(markup_freep) struct markup *d = markup_dup(m);
    autofree char *before = plain_of(m);
    markup_free(m);
    autofree char *after = plain_of(d);
    assert_string_equal(before, after);
}

/* ---- parts ---- */

static size_t plain_size(void *ud, const struct markup *doc)
{
    (void)ud;
    autofree char *s = plain_of(doc);
    return strlen(s);
}

static size_t letters(const char *s)
{
    size_t n = 0;
    for (; *s; s++)
        n += strchr("abcdefghijklmnopqrstuvwxyz", *s) != NULL;
    return n;
}

/* Parts within the limit, each valid UTF-8, no letter lost. Returns how many. */
static size_t check_parts(const char *markdown, size_t max)
{
    AUTO(markup_freep) struct markup *doc = markup_parse(markdown);
    const struct markup_limit limit = { .max = max, .size = plain_size };
    autofree char *whole = plain_of(doc);
    size_t n = 0, got = 0;
    for (struct markup *part; (part = markup_part(doc, &limit)); n++) {
        autofree char *text = plain_of(part);
        assert_true(utf8_valid(text, strlen(text)));
        if (strlen(text) > max)
            fail_msg("a part of %zu for %zu: %s", strlen(text), max, text);
        got += letters(text);
        markup_free(part);
        assert_true(n < 100000);
    }
    assert_int_equal(got, letters(whole));
    return n;
}

static void what_fits_is_one_part(void **state)
{
    (void)state;
    assert_int_equal(check_parts("# a\n\nb\n\n- c\n- d", 1000), 1);
    assert_int_equal(check_parts("", 10), 0);
}

static void paragraphs_part_between_words(void **state)
{
    (void)state;
    AUTO(markup_freep) struct markup *doc = markup_parse("some words that are **too long** for one part of them");
    const struct markup_limit limit = { .max = 20, .size = plain_size };
    static const char *const want[] = { "some words that are", "too long for one", "part of them" };
    for (size_t i = 0; i < countof(want); i++) {
        AUTO(markup_freep) struct markup *part = markup_part(doc, &limit);
        assert_non_null(part);
        autofree char *text = plain_of(part);
        assert_string_equal(text, want[i]);
    }
    assert_null(markup_part(doc, &limit));
}

static void u6_parts_of_a_table_repeat_its_head(void **state)
{
    (void)state;
    AUTO(markup_freep) struct markup *doc = markup_parse("|H|\n|---|\n|1|\n|2|\n|3|\n|4|\n|5|");
    const struct markup_limit limit = { .max = 8, .size = plain_size };
    size_t n = 0;
    for (struct markup *part; (part = markup_part(doc, &limit)); n++) {
        autofree char *text = plain_of(part);
        assert_memory_equal(text, "H\n-\n", 4);
        markup_free(part);
    }
    assert_int_equal(n, 3);
}

static void code_goes_on_as_code(void **state)
{
    (void)state;
    AUTO(markup_freep) struct markup *doc = markup_parse("```py\none\ntwo\nthree\n```");
    const struct markup_limit limit = { .max = 17, .size = plain_size };
    static const char *const want[] = { "```py\none\ntwo\n```", "```py\nthree\n```" };
    for (size_t i = 0; i < countof(want); i++) {
        AUTO(markup_freep) struct markup *part = markup_part(doc, &limit);
        assert_non_null(part);
        autofree char *text = plain_of(part);
        assert_string_equal(text, want[i]);
    }
    assert_null(markup_part(doc, &limit));
}

static void numbers_go_on(void **state)
{
    (void)state;
    AUTO(markup_freep) struct markup *doc = markup_parse("1. aaaa\n2. bbbb\n3. cccc");
    const struct markup_limit limit = { .max = 16, .size = plain_size };
    AUTO(markup_freep) struct markup *one = markup_part(doc, &limit);
    AUTO(markup_freep) struct markup *two = markup_part(doc, &limit);
    autofree char *first = plain_of(one), *text = plain_of(two);
    assert_string_equal(first, "1. aaaa\n2. bbbb");
    assert_string_equal(text, "3. cccc");
}

static char *repeated(const char *text, size_t n, const char *before)
{
    struct str s = STR_INIT(ROOMY);
    str_puts(&s, before);
    while (n--)
        str_puts(&s, text);
    return str_take(&s);
}

static void u6_everything_parts(void **state)
{
    (void)state;
    static const char *const pieces[][2] = {
        { "", "word " },
        { "", "日本語" },
        { "", "👩‍👩‍👧‍👦" },
        { "", "a\n\n" },
        { "- ", "long item " },
        { "> ", "quoted text " },
        { "", "- item\n" },
        { "```\n", "line of code\n" },
        { "```\n", "onelongline" },
        { "|H|K|\n|---|---|\n", "|abc|def|\n" },
    };
    for (size_t i = 0; i < countof(pieces); i++)
        for (size_t max = 64; max <= 4096; max *= 4) {
            autofree char *text = repeated(pieces[i][1], 400, pieces[i][0]);
            assert_true(check_parts(text, max) >= 1);
        }
}

static void what_cannot_be_cut_is_handed_out(void **state)
{
    (void)state;
    AUTO(markup_freep) struct markup *doc = markup_parse("|head|\n|---|\n|aaaaaaaaaaaaaaaaaaaaaaaaaaaa|\n|b|\n\nafter");
    const struct markup_limit limit = { .max = 4, .size = plain_size };
    size_t n = 0;
    for (struct markup *part; (part = markup_part(doc, &limit)); n++)
        markup_free(part);
    assert_true(n >= 3 && n < 20);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(markdown_reads_well_as_text),
        cmocka_unit_test(nesting_beyond_the_limit_keeps_its_text),
        cmocka_unit_test(broken_bytes_become_valid_text),
        cmocka_unit_test(a_copy_is_equal_and_independent),
        cmocka_unit_test(what_fits_is_one_part),
        cmocka_unit_test(paragraphs_part_between_words),
        cmocka_unit_test(u6_parts_of_a_table_repeat_its_head),
        cmocka_unit_test(code_goes_on_as_code),
        cmocka_unit_test(numbers_go_on),
        cmocka_unit_test(u6_everything_parts),
        cmocka_unit_test(what_cannot_be_cut_is_handed_out),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
