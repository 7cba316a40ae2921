/* http_tool.c - arguments into an address, a body, header lines.
 *
 * Trust boundary: a model wrote the arguments. They can fill a place within one segment of the path or one value of the query, and
 * nothing else: host, port, other segments and other keys are the operator's. */
#include "http_tool.h"
#include <ctype.h>

enum {
    URL_MAX = 8 << 10,
    VALUE_MAX = 2 << 10,
    BODY_MAX = 256 << 10,
    HEADERS_MAX = 32,
};

static bool has_body(const struct conf_tool *t)
{
    return strcmp(t->method, "GET") != 0 && strcmp(t->method, "DELETE") != 0;
}

/* ---- values ---- */

static void add_encoded(struct str *out, const char *text)
{
    static const char plain[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~";
    for (; *text; text++) {
        if (strchr(plain, *text))
            str_putc(out, *text);
        else
            str_printf(out, "%%%02X", (unsigned)(unsigned char)*text);
    }
}

/* A string, number or truth value as text. */
static int value_text(struct str *out, const struct json *v, const char *name, struct err *e)
{
    if (json_type(v) == JSON_STRING)
        str_puts(out, json_text(v));
    else if (json_type(v) == JSON_NUMBER || json_type(v) == JSON_BOOL)
        json_print(out, v);
    else
        return err_set(e, ERR_DATA, "`%.64s` must be a text, a number, true or false", name);
    if (str_check(out, e) < 0)
        return err_set(e, ERR_DATA, "`%.64s` is too long", name);
    return 0;
}

/* "." and ".." stay what they are when encoded: servers and proxies walk by them. */
static bool walks(const char *text)
{
    return strcmp(text, ".") == 0 || strcmp(text, "..") == 0;
}

/* ---- the address ---- */

static bool is_place(const char *url, const char *name)
{
    autofree char *place = xasprintf("{%s}", name);
    return strstr(url, place) != NULL;
}

static int fill_place(struct str *out, const char *name, bool in_query, const struct json *args, struct err *e)
{
    AUTO(str_clear) struct str value = STR_INIT(VALUE_MAX);
    const struct json *v = json_get(args, name);
    if (!v)
        return err_set(e, ERR_DATA, "`%.64s` is missing", name);
    if (value_text(&value, v, name, e) < 0)
        return -1;
    if (!in_query && (value.len == 0 || walks(str_peek(&value))))
        return err_set(e, ERR_DATA, "`%.64s` cannot be \"%s\"", name, str_peek(&value));
    add_encoded(out, str_peek(&value));
    return 0;
}

static int add_query(struct str *out, const struct conf_tool *t, const struct json *args, struct err *e)
{
    char between = strchr(t->url, '?') ? '&' : '?';
    for (const struct json *m = json_first(args); m; m = json_next(m)) {
        AUTO(str_clear) struct str value = STR_INIT(VALUE_MAX);
        if (is_place(t->url, json_key(m)) || json_type(m) == JSON_NULL)
            continue;
        if (value_text(&value, m, json_key(m), e) < 0)
            return -1;
        str_putc(out, between);
        add_encoded(out, json_key(m));
        str_putc(out, '=');
        add_encoded(out, str_peek(&value));
        between = '&';
    }
    return 0;
}

int http_tool_url(char **out, const struct conf_tool *t, const struct json *args, struct err *e)
{
    AUTO(str_clear) struct str url = STR_INIT(URL_MAX);
    for (const char *p = t->url; *p;) {
        const size_t n = strcspn(p, "{");
        str_add(&url, p, n);
        p += n;
        if (!*p)
            break;
        const size_t word = strcspn(p, "}");
        autofree char *name = xstrndup(p + 1, word - 1);
        if (fill_place(&url, name, memchr(t->url, '?', (size_t)(p - t->url)) != NULL, args, e) < 0)
            return -1;
        p += word + (p[word] == '}');
    }
    if (!has_body(t) && add_query(&url, t, args, e) < 0)
        return -1;
    if (str_check(&url, e) < 0)
        return err_set(e, ERR_DATA, "the arguments are too long");
    *out = str_take(&url);
    return 0;
}

char *http_tool_body(const struct conf_tool *t, const struct json *args)
{
    AUTO(str_clear) struct str text = STR_INIT(BODY_MAX);
    autojson struct json *body = json_new_object();
    if (!has_body(t))
        return NULL;
    for (const struct json *m = json_first(args); m; m = json_next(m))
        if (!is_place(t->url, json_key(m)))
            json_set(body, json_key(m), json_dup(m));
    json_print(&text, body);
    return str_take(&text);
}

/* ---- headers ---- */

static bool is_header(const char *line)
{
    static const char name[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
    const size_t n = strspn(line, name);
    if (n == 0 || line[n] != ':')
        return false;
    for (; *line; line++)
        if ((unsigned char)*line < 0x20 || *line == 0x7f)
            return false;
    return true;
}

static int add_header(char **lines, size_t *n, char *take_line, struct err *e)
{
    autofree char *line = take_line;
    if (*n == HEADERS_MAX)
        return err_set(e, ERR_CONFIG, "headers: more than %d", HEADERS_MAX);
    if (!is_header(line))
        return err_set(e, ERR_CONFIG, "headers: a part is not like Name: value"); /* not shown: it may hold a key */
    lines[(*n)++] = take(line);
    return 0;
}

static int add_given(char **lines, size_t *n, const char *headers, struct err *e)
{
    while (*headers) {
        const size_t all = strcspn(headers, "|");
        size_t blank = strspn(headers, " \t"), end = all;
        while (end > blank && isspace((unsigned char)headers[end - 1]))
            end--;
        if (end > blank && add_header(lines, n, xstrndup(headers + blank, end - blank), e) < 0)
            return -1;
        headers += all + (headers[all] == '|');
    }
    return 0;
}

static char *with_secret(const char *template, const char *secret)
{
    const char *at = strstr(template, "{secret}");
    const int before = at ? (int)(at - template) : 0;
    return xasprintf("%.*s%s%s", before, template, secret, at ? at + strlen("{secret}") : "");
}

int http_tool_headers(char ***out, const struct conf_tool *t, const char *secret, struct err *e)
{
    char **lines = xcalloc(HEADERS_MAX + 1, sizeof(*lines));
    size_t n = 0;
    int rc = add_given(lines, &n, t->headers, e);
    if (rc == 0 && has_body(t))
        rc = add_header(lines, &n, xstrdup("Content-Type: application/json"), e);
    if (rc == 0 && secret)
        rc = add_header(lines, &n, with_secret(t->secret_header, secret), e);
    if (rc < 0) {
        http_tool_headers_free(lines);
        return -1;
    }
    *out = lines;
    return 0;
}

void http_tool_headers_free(char **lines)
{
    for (char **l = lines; l && *l; l++) {
        explicit_bzero(*l, strlen(*l));
        free(*l);
    }
    free(lines);
}
