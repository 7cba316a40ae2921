#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <string.h>
#include "matrix/content.h"

enum { ROOMY = 16 << 20 };

static const struct {
    const char *markdown, *html;
} pages[] = {
    { "a **b** *c* ~~d~~ `e<f`", "<p>a <strong>b</strong> <em>c</em> <del>d</del> <code>e&lt;f</code></p>" },
    { "# T\n\nx", "<h1>T</h1><p>x</p>" },
    { "a\nb", "<p>a<br>b</p>" },
    { "[x](https://a.example/?q=\"1\"&r=2)", "<p><a href=\"https://a.example/?q=&quot;1&quot;&amp;r=2\">x</a></p>" },
    { "[x](javascript:alert(1))", "<p>x</p>" },
    { "<script>alert(1)</script>", "<p>&lt;script&gt;alert(1)&lt;/script&gt;</p>" },
    { "- a\n- b", "<ul><li>a</li><li>b</li></ul>" },
    { "3. a\n4. b", "<ol start=\"3\"><li>a</li><li>b</li></ol>" },
    { "> q", "<blockquote><p>q</p></blockquote>" },
    { "```python\nif a < b:\n```", "<pre><code class=\"language-python\">if a &lt; b:\n</code></pre>" },
    { "|a|b|\n|---|---|\n|1|<2|",
      "<table><thead><tr><th>a</th><th>b</th></tr></thead><tbody><tr><td>1</td><td>&lt;2</td></tr></tbody></table>" },
    { "---", "<hr>" },
};

static void u6_html(void **state)
{
    (void)state;
    for (size_t i = 0; i < countof(pages); i++) {
        AUTO(markup_freep) struct markup *doc = markup_parse(pages[i].markdown);
        AUTO(str_clear) struct str html = STR_INIT(ROOMY);
        content_html(&html, doc);
        assert_string_equal(str_peek(&html), pages[i].html);
    }
}

static void plain_words_need_no_html(void **state)
{
    (void)state;
    AUTO(markup_freep) struct markup *plain = markup_parse("just words"), *bold = markup_parse("**bold**");
    autojson struct json *a = content_text(plain, "m.text"), *b = content_text(bold, "m.notice");
    assert_null(json_get(a, "formatted_body"));
    assert_string_equal(json_str_or(a, "body", ""), "just words");
    assert_int_equal(json_type(json_get(a, "m.mentions")), JSON_OBJECT);
    assert_string_equal(json_str_or(b, "formatted_body", ""), "<p><strong>bold</strong></p>");
    assert_string_equal(json_str_or(b, "msgtype", ""), "m.notice");
}

static void sizes_are_those_of_the_json(void **state)
{
    (void)state;
    AUTO(markup_freep) struct markup *doc = markup_parse("\"\"\"\n\"");
    autojson struct json *j = content_text(doc, "m.text");
    AUTO(str_clear) struct str text = STR_INIT(ROOMY);
    char kind[] = "m.text";
    json_print(&text, j);
    assert_int_equal(content_size(kind, doc), text.len);
}

static void relations_say_where_a_message_belongs(void **state)
{
    (void)state;
    autojson struct json *thread = json_new_object(), *reply = json_new_object(), *none = json_new_object();
    content_relate(thread, "$root", "$last");
    content_relate(reply, NULL, "$asked");
    content_relate(none, NULL, NULL);
    const struct json *r = json_get(thread, "m.relates_to");
    assert_string_equal(json_str_or(r, "rel_type", ""), "m.thread");
    assert_true(json_bool_or(r, "is_falling_back", false));
    assert_string_equal(json_str_or(json_get(r, "m.in_reply_to"), "event_id", ""), "$last");
    r = json_get(reply, "m.relates_to");
    assert_null(json_get(r, "rel_type"));
    assert_string_equal(json_str_or(json_get(r, "m.in_reply_to"), "event_id", ""), "$asked");
    assert_int_equal(json_len(none), 0);
}

static void an_edit_has_the_whole_new_content(void **state)
{
    (void)state;
    AUTO(markup_freep) struct markup *doc = markup_parse("**new**");
    autojson struct json *edit = content_edit(content_text(doc, "m.text"), "$old");
    const struct json *inner = json_get(edit, "m.new_content"), *r = json_get(edit, "m.relates_to");
    assert_string_equal(json_str_or(edit, "body", ""), "* new");
    assert_string_equal(json_str_or(inner, "body", ""), "new");
    assert_null(json_get(inner, "m.relates_to"));
    assert_string_equal(json_str_or(r, "rel_type", ""), "m.replace");
    assert_string_equal(json_str_or(r, "event_id", ""), "$old");
}

static void pictures_have_their_size_and_files_their_type(void **state)
{
    (void)state;
    struct artifact a = {
        .path = (char[]){ "/x/out/plot.png" }, .name = (char[]){ "out/plot.png" }, .bytes = 12, .width = 3, .height = 4
    };
    autojson struct json *image = content_file(&a, content_name(&a), true), *file = content_file(&a, "t.csv", false);
    assert_string_equal(json_str_or(image, "filename", ""), "plot.png");
    assert_int_equal(json_int_or(json_get(image, "info"), "w", 0), 3);
    assert_string_equal(json_str_or(json_get(image, "info"), "mimetype", ""), "image/png");
    assert_string_equal(json_str_or(file, "msgtype", ""), "m.file");
    assert_string_equal(json_str_or(json_get(file, "info"), "mimetype", ""), "text/csv");
    assert_string_equal(content_type("noending"), "application/octet-stream");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(u6_html),
        cmocka_unit_test(plain_words_need_no_html),
        cmocka_unit_test(sizes_are_those_of_the_json),
        cmocka_unit_test(relations_say_where_a_message_belongs),
        cmocka_unit_test(an_edit_has_the_whole_new_content),
        cmocka_unit_test(pictures_have_their_size_and_files_their_type),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
