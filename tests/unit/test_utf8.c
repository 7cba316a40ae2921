#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <string.h>
#include <time.h>
#include "str.h"

#define BYTES(literal) literal, sizeof(literal) - 1
#define FFFD           "\xef\xbf\xbd"
#define ZWJ            "\xe2\x80\x8d"
#define MAN            "\xf0\x9f\x91\xa8"
#define WOMAN          "\xf0\x9f\x91\xa9"
#define GIRL           "\xf0\x9f\x91\xa7"
#define FAMILY         MAN ZWJ WOMAN ZWJ GIRL
#define FLAG           "\xf0\x9f\x87\xa9\xf0\x9f\x87\xaa"
#define E_ACUTE        "e\xcc\x81" /* decomposed */

static void validity_follows_the_standard(void **state)
{
    (void)state;
    static const struct {
        const char *data;
        size_t n;
        bool valid;
    } cases[] = {
        { BYTES(""), true },
        { BYTES("plain \t\n\x7f"), true },
        { BYTES("\xc2\x80\xdf\xbf"), true },
        { BYTES("\xe0\xa0\x80\xed\x9f\xbf\xee\x80\x80\xef\xbf\xbf"), true },
        { BYTES("\xf0\x90\x80\x80\xf4\x8f\xbf\xbf"), true },
        { BYTES("a\0b"), false },
        { BYTES("\x80"), false },             /* continuation alone */
        { BYTES("\xc0\x80"), false },         /* overlong NUL */
        { BYTES("\xc1\xbf"), false },         /* overlong */
        { BYTES("\xe0\x9f\xbf"), false },     /* overlong */
        { BYTES("\xf0\x8f\xbf\xbf"), false }, /* overlong */
        { BYTES("\xed\xa0\x80"), false },     /* surrogate */
        { BYTES("\xed\xbf\xbf"), false },     /* surrogate */
        { BYTES("\xf4\x90\x80\x80"), false }, /* past U+10FFFF */
        { BYTES("\xf5\x80\x80\x80"), false },
        { BYTES("\xff"), false },
        { BYTES("\xe2\x82"), false }, /* cut off */
        { BYTES("\xf0\x9f\x98"), false },
        { BYTES("\xc3("), false },
        { BYTES("\xe2\x82("), false },
    };
    for (size_t i = 0; i < countof(cases); i++)
        assert_int_equal(utf8_valid(cases[i].data, cases[i].n), cases[i].valid);
}

/* Encodes any number as UTF-8 would, legal or not. */
static size_t encode(char *out, uint32_t cp)
{
    if (cp < 0x80) {
        out[0] = (char)cp;
        return 1;
    }
    size_t n = cp < 0x800 ? 2 : cp < 0x10000 ? 3 : 4;
    for (size_t i = n - 1; i > 0; i--, cp >>= 6)
        out[i] = (char)(0x80 | (cp & 0x3f));
    out[0] = (char)((0xf00U >> n & 0xff) | cp);
    return n;
}

static void every_code_point_decodes_to_itself(void **state)
{
    (void)state;
    for (uint32_t cp = 1; cp < 0x120000; cp++) {
        char text[8] = "";
        size_t n = encode(text, cp);
        bool legal = cp < 0x110000 && !(cp >= 0xd800 && cp < 0xe000);
        uint32_t got = 0;
        const char *p = text;
        if (utf8_valid(text, n) != legal || utf8_decode(text, n, &got) != (legal ? n : 0) || (legal && got != cp))
            fail_msg("U+%04X", cp);
        if (utf8_next(&p) != (legal ? cp : 0xfffd) || (legal && *p))
            fail_msg("U+%04X", cp);
    }
}

static void next_walks_code_points_and_steps_over_what_is_broken(void **state)
{
    (void)state;
    static const uint32_t want[] = { 'a', 0xe9, 0x20ac, 0x1f600, 0xfffd, 'b', 0xfffd, 0 };
    const char *p = "a\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80\xff"
                    "b\xe2\x82";
    for (size_t i = 0; i < countof(want); i++)
        assert_int_equal(utf8_next(&p), want[i]);
    assert_int_equal(utf8_next(&p), 0);
    uint32_t cp = 7;
    assert_int_equal(utf8_decode("", 0, &cp), 0);
    assert_int_equal(utf8_decode("\xc3(", 2, &cp), 0);
    assert_int_equal(cp, 7);
}

static const struct {
    const char *data;
    size_t n;
    const char *text;
} scrubs[] = {
    { BYTES(""), "" },
    { BYTES("plain text\n\tindented\n"), "plain text\n\tindented\n" },
    { BYTES("gr\xc3\xbc\xc3\x9f " FAMILY " " FLAG " \xe2\x9d\xa4\xef\xb8\x8f"),
      "gr\xc3\xbc\xc3\x9f " FAMILY " " FLAG " \xe2\x9d\xa4\xef\xb8\x8f" },
    /* broken sequences: one U+FFFD for each maximal subpart (Unicode 15, table 3-8) */
    { BYTES("a\x80"
            "b"),
      "a" FFFD "b" },
    { BYTES("\xc3"), FFFD },
    { BYTES("\xc0\x80"), FFFD FFFD },
    { BYTES("\xe2\x82"), FFFD },
    { BYTES("\xe2\x82z"), FFFD "z" },
    { BYTES("\xed\xa0\x80"), FFFD FFFD FFFD },
    { BYTES("\xf0\x9f\x98"
            "A"),
      FFFD "A" },
    { BYTES("\x61\xf1\x80\x80\xe1\x80\xc2\x62\x80\x63\x80\xbf\x64"), "a" FFFD FFFD FFFD "b" FFFD "c" FFFD FFFD "d" },
    { BYTES("\xf4\x90\x80\x80"), FFFD FFFD FFFD FFFD },
    /* control characters */
    { BYTES("a\0b\x01"
            "c\x07"
            "d\x08"
            "e\x0b"
            "f\x0c"
            "g\x7fh"),
      "abcdefgh" },
    { BYTES("a\xc2\x80"
            "b\xc2\x85"
            "c\xc2\x9f"
            "d"),
      "abcd" },
    { BYTES("\xc3\x1b[0m\xa9"), FFFD FFFD }, /* halves do not join over what is dropped */
    /* ends of lines */
    { BYTES("a\r\nb\r\n"), "a\nb\n" },
    { BYTES("a\r\r\nb"), "a\nb" },
    { BYTES(" 10%\r 20%\r100%\ndone"), "100%\ndone" },
    { BYTES("one\ntwo\rthree"), "one\nthree" },
    { BYTES("100%\r"), "100%" },
    { BYTES("100%\r\r"), "100%" },
    { BYTES("\rx"), "x" },
    { BYTES("a\r\x01\xc2\x80\nb"), "a\nb" },
    { BYTES("ab\r\xff"), FFFD },
    { BYTES("50%\r\x1b[K"), "" },
    { BYTES("50%\r\x1b[2Kdone"), "done" },
    { BYTES("50%\x1b[K"), "50%" },
    /* CSI */
    { BYTES("\x1b[31mred\x1b[0m"), "red" },
    { BYTES("\x1b[1;38;5;208mx\x1b[m"), "x" },
    { BYTES("\x1b[?25lx\x1b[?25h"), "x" },
    { BYTES("\x1b[ qx\x1b[!px"), "xx" },
    { BYTES("\x1b[31"), "" },
    { BYTES("\x1b["), "" },
    { BYTES("\x1b"), "" },
    { BYTES("\x1b[31\nx"), "\nx" },
    { BYTES("\x1b[3\xc3\xa9"), "\xc3\xa9" },
    { BYTES("\x1b[3\x1b[31mx"), "x" },
    { BYTES("\xc2\x9b"
            "31mred"),
      "31mred" }, /* C1: see the note in utf8.c */
    /* OSC and other strings */
    { BYTES("\x1b]0;title\x07x"), "x" },
    { BYTES("\x1b]8;;http://a\x1b\\link\x1b]8;;\x1b\\"), "link" },
    { BYTES("\x1b]0;title\xc2\x9cx"), "x" },
    { BYTES("say \xc3\xa2\xc2\x80\xc2\x9dno\xc3\xa2\xc2\x80\xc2\x9d twice"), "say \xc3\xa2no\xc3\xa2 twice" },
    { BYTES("\x1bPq#0\x1b\\x\x1b_apc\x1b\\y\x1b^pm\x1b\\z\x1bXsos\x1b\\."), "xyz." },
    { BYTES("\x1b]0;no end"), "" },
    { BYTES("\x1b]0;no end\nnext"), "\nnext" },
    { BYTES("\x1b]0;broken\x1b[31mx"), "x" },
    { BYTES("\x1b]0;\xff\xfe"
            "bytes\x07x"),
      "x" },
    { BYTES("\x1b]0;t\x1b"), "" },
    /* other escapes */
    { BYTES("\x1b(Bx\x1b)0y\x1b#8z"), "xyz" },
    { BYTES("\x1b"
            "7x\x1b"
            "8\x1b=\x1b>\x1b"
            "cy"),
      "xy" },
    { BYTES("\x1b $Px"), "x" }, /* an intermediate byte: no DCS */
    { BYTES("\x1b\xc3\xa9"), "\xc3\xa9" },
    { BYTES("\x1b \nx"), "\nx" },
    { BYTES("\x1b\x1b[31mx"), "x" },
    /* reordering is dropped, marks stay */
    { BYTES("a\xe2\x80\xae"
            "b\xe2\x80\xac"
            "c\xe2\x81\xa6"
            "d\xe2\x81\xa9"),
      "abcd" },
    { BYTES("\xd7\x90\xe2\x80\x8f!"), "\xd7\x90\xe2\x80\x8f!" },
};

static void scrub_turns_bytes_into_text(void **state)
{
    (void)state;
    for (size_t i = 0; i < countof(scrubs); i++) {
        AUTO(str_clear) struct str out = STR_INIT(1000);
        utf8_scrub(&out, scrubs[i].data, scrubs[i].n);
        if (strcmp(str_peek(&out), scrubs[i].text) != 0)
            print_error("case %zu\n", i);
        assert_string_equal(str_peek(&out), scrubs[i].text);
    }
}

static void scrubbing_twice_changes_nothing(void **state)
{
    (void)state;
    for (size_t i = 0; i < countof(scrubs); i++) {
        AUTO(str_clear) struct str twice = STR_INIT(1000);
        utf8_scrub(&twice, scrubs[i].text, strlen(scrubs[i].text));
        assert_string_equal(str_peek(&twice), scrubs[i].text);
    }
}

static void scrub_never_touches_what_was_there_before(void **state)
{
    (void)state;
    AUTO(str_clear) struct str out = STR_INIT(1000);
    str_puts(&out, "kept\nkept too: ");
    utf8_scrub(&out, BYTES("50%\r\r\x1b[K99%\rall"));
    assert_string_equal(str_peek(&out), "kept\nkept too: all");
}

static void scrub_stops_at_the_ceiling(void **state)
{
    (void)state;
    AUTO(str_clear) struct str out = STR_INIT(4);
    utf8_scrub(&out, BYTES("abc\nabcdef\rx\xff"));
    assert_true(out.overflow);
    assert_string_equal(str_peek(&out), "abc\n");
}

static void scrub_takes_time_in_proportion(void **state)
{
    (void)state;
    static const char *const patterns[] = { "\r", "x\r", "\x1b[", "\x1b]", "\xff", "\xc2\x9d", "a\n\r" };
    for (size_t i = 0; i < countof(patterns); i++) {
        AUTO(str_clear) struct str data = STR_INIT(2 << 20);
        AUTO(str_clear) struct str out = STR_INIT(8 << 20);
        while (data.len < 1 << 20)
            str_puts(&data, patterns[i]);
        clock_t start = clock();
        utf8_scrub(&out, data.buf, data.len);
        assert_true((clock() - start) / CLOCKS_PER_SEC < 5); /* quadratic would be minutes */
    }
}

static void cutting_keeps_grapheme_clusters_whole(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        size_t max, want;
    } cases[] = {
        { "", 0, 0 },
        { "abc", 10, 3 },
        { "abc", 3, 3 },
        { "abc", 2, 2 },
        { "abc", 0, 0 },
        { "\xc3\xa9\xc3\xa9", 3, 2 },
        { "\xc3\xa9", 1, 0 },      /* no code point fits */
        { "a" E_ACUTE "b", 2, 1 }, /* base without its accent */
        { "a" E_ACUTE "b", 4, 4 },
        { "x" FAMILY "y", 1, 1 },
        { "x" FAMILY "y", 18, 1 },
        { "x" FAMILY "y", 19, 19 },
        { FLAG FLAG, 8, 8 },
        { FLAG FLAG, 15, 8 },
        { "a\r\nb", 2, 1 },
        { FAMILY, 10, 7 }, /* longer than allowed: between code points */
        { E_ACUTE "\xcc\x81\xcc\x81", 4, 3 },
        { "a\xff\xff", 2, 2 },                            /* broken bytes count as one each */
        { "\xe1\x84\x92\xe1\x85\xa1\xe1\x86\xab", 8, 6 }, /* Hangul jamo of one syllable */
    };
    for (size_t i = 0; i < countof(cases); i++)
        assert_int_equal(utf8_cut(cases[i].text, strlen(cases[i].text), cases[i].max), cases[i].want);
}

static void splitting_by_cuts_always_moves_on(void **state)
{
    (void)state;
    AUTO(str_clear) struct str text = STR_INIT(4096);
    str_puts(&text, "a");
    for (int i = 0; i < 1000; i++)
        str_puts(&text, "\xcc\x81");
    size_t at = 0, pieces = 0;
    for (; at < text.len; pieces++) {
        size_t n = utf8_cut(text.buf + at, text.len - at, 100);
        assert_in_range(n, 1, 100);
        assert_true(utf8_valid(text.buf + at, n));
        at += n;
    }
    assert_int_equal(pieces, 21);
}

static void width_counts_columns(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        size_t columns;
    } cases[] = {
        { "", 0 },      { "abc", 3 },          { "gr\xc3\xbc\xc3\x9f", 4 },
        { E_ACUTE, 1 }, { FAMILY, 2 },         { FLAG, 2 },
        { "\n\t", 0 },  { "a" FAMILY "b", 4 }, { "\xe6\x97\xa5\xe6\x9c\xac", 4 }, /* two Han */
        { "\xff", 1 },
    };
    for (size_t i = 0; i < countof(cases); i++)
        assert_int_equal(utf8_width(cases[i].text, strlen(cases[i].text)), cases[i].columns);
}

static void normal_forms(void **state)
{
    (void)state;
    static const struct {
        const char *text, *nfc, *fold;
    } cases[] = {
        { "", "", "" },
        { "Stra\xc3\x9f"
          "e",
          "Stra\xc3\x9f"
          "e",
          "strasse" },
        { "E\xcc\x81", "\xc3\x89", "\xc3\xa9" },
        { "\xef\xac\x81le", "\xef\xac\x81le", "file" }, /* fi ligature */
        { "\xe2\x84\xab", "\xc3\x85", "\xc3\xa5" },     /* Angstrom sign */
        { "a\xc2\xad"
          "b",
          "a\xc2\xad"
          "b",
          "ab" },                   /* soft hyphen */
        { "\xff", "\xff", "\xff" }, /* not valid: as it is */
    };
    for (size_t i = 0; i < countof(cases); i++) {
        autofree char *nfc = utf8_nfc(cases[i].text);
        autofree char *fold = utf8_fold(cases[i].text);
        assert_string_equal(nfc, cases[i].nfc);
        assert_string_equal(fold, cases[i].fold);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(validity_follows_the_standard),
        cmocka_unit_test(every_code_point_decodes_to_itself),
        cmocka_unit_test(next_walks_code_points_and_steps_over_what_is_broken),
        cmocka_unit_test(scrub_turns_bytes_into_text),
        cmocka_unit_test(scrubbing_twice_changes_nothing),
        cmocka_unit_test(scrub_never_touches_what_was_there_before),
        cmocka_unit_test(scrub_stops_at_the_ceiling),
        cmocka_unit_test(scrub_takes_time_in_proportion),
        cmocka_unit_test(cutting_keeps_grapheme_clusters_whole),
        cmocka_unit_test(splitting_by_cuts_always_moves_on),
        cmocka_unit_test(width_counts_columns),
        cmocka_unit_test(normal_forms),
    };
    return cmocka_run_group_tests_name("utf8", tests, NULL, NULL);
}
