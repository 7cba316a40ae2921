/* slack_fetch_url.c - addresses and names of files, as strings only. */
#include <ctype.h>
#include <string.h>
#include <strings.h>
#include "slack_fetch.h"
#include "str.h"

enum { URL_MAX = 8192, NAME_BYTES = 120, SNIFF = 512 };

/* scheme://authority/...: the authority, at most n - 1 bytes; false: it is no plain http(s) address. */
static bool split(const char *url, bool *tls, char *authority, size_t n, const char **rest)
{
    *tls = strncasecmp(url, "https://", 8) == 0;
    if (!*tls && strncasecmp(url, "http://", 7) != 0)
        return false;
    const char *from = url + (*tls ? 8 : 7);
    const size_t len = strcspn(from, "/?#");
    if (len == 0 || len >= n || strlen(url) > URL_MAX)
        return false;
    for (const char *c = url; *c; c++)
        if (iscntrl((unsigned char)*c) || *c == ' ' || *c == '\\')
            return false;
    memcpy(authority, from, len);
    authority[len] = '\0';
    *rest = from + len;
    return !strchr(authority, '@');
}

/* Is the host among the words? "*.x" stands for every name below x. */
static bool listed(const char *host, const char *list)
{
    const size_t n = strlen(host);
    for (const char *at = list; at && *at;) {
        at += strspn(at, " \t,");
        const size_t len = strcspn(at, " \t,");
        if (len == n && strncasecmp(at, host, n) == 0)
            return true;
        if (len > 2 && at[0] == '*' && at[1] == '.' && n > len - 1 &&
            strncasecmp(at + 1, host + n - (len - 1), len - 1) == 0)
            return true;
        at += len;
    }
    return false;
}

enum slack_host slack_fetch_host(const char *url, const char *hosts, const char *follow)
{
    char host[256];
    const char *rest = NULL;
    bool tls = false;
    if (!split(url, &tls, host, sizeof(host), &rest))
        return SLACK_HOST_NO;
    const size_t n = strlen(host);
    if (tls && n > 4 && strcmp(host + n - 4, ":443") == 0)
        host[n - 4] = '\0';
    if (!tls && !strchr(host, ':')) /* only what is listed with its port may be reached without TLS */
        return SLACK_HOST_NO;
    if (listed(host, hosts))
        return SLACK_HOST_TOKEN;
    return listed(host, follow) ? SLACK_HOST_FOLLOW : SLACK_HOST_NO;
}

char *slack_fetch_resolve(const char *base, const char *location)
{
    char host[256];
    const char *rest = NULL;
    bool tls = false;
    if (strlen(location) > URL_MAX)
        return NULL;
    if (strncasecmp(location, "http://", 7) == 0 || strncasecmp(location, "https://", 8) == 0)
        return xstrdup(location);
    if (!split(base, &tls, host, sizeof(host), &rest))
        return NULL;
    if (strncmp(location, "//", 2) == 0)
        return xasprintf("%s:%s", tls ? "https" : "http", location);
    if (*location == '/')
        return xasprintf("%s://%s%s", tls ? "https" : "http", host, location);
    return NULL; /* nobody sends others; what is not understood is not followed */
}

/* Slack has a title too, but people name files by their names. */
const char *slack_fetch_label(const struct json *file)
{
    const char *name = json_str_or(file, "name", "");
    return *name ? name : json_str_or(file, "title", json_str_or(file, "id", "file"));
}

char *slack_fetch_name(const char *name)
{
    AUTO(str_clear)
    struct str clean = STR_INIT(16384); /* as much as the scrubbed one: what is cut there may end within a character */
    const char *slash = strrchr(name, '/'), *back = strrchr(name, '\\');
    const char *base = slash && (!back || slash > back) ? slash + 1 : back ? back + 1 : name;
    AUTO(str_clear) struct str scrubbed = STR_INIT(16384);
    utf8_scrub(&scrubbed, base, strnlen(base, 4096));
    const char *at = str_peek(&scrubbed) + strspn(str_peek(&scrubbed), ". \n\t");
    for (; *at; at++)
        str_putc(&clean, (char)(*at == '\n' || *at == '\t' ? '_' : *at));
    const char *text = str_peek(&clean), *dot = strrchr(text, '.');
    const size_t ending = dot && strlen(dot) <= 16 ? strlen(dot) : 0;
    if (!*text)
        return xstrdup("file");
    if (clean.len <= NAME_BYTES)
        return str_take(&clean);
    const size_t stem = utf8_cut(text, clean.len - ending, NAME_BYTES - ending);
    return xasprintf("%.*s%s", (int)stem, text, ending ? dot : "");
}

bool slack_fetch_is_html(const char *data, size_t n)
{
    static const char *const begins[] = { "<!doctype html", "<html" };
    const size_t limit = n < SNIFF ? n : SNIFF;
    size_t at = 0;
    if (limit >= 3 && memcmp(data, "\xef\xbb\xbf", 3) == 0)
        at = 3;
    while (at < limit && isspace((unsigned char)data[at]))
        at++;
    for (size_t i = 0; i < countof(begins); i++)
        if (n - at >= strlen(begins[i]) && strncasecmp(data + at, begins[i], strlen(begins[i])) == 0)
            return true;
    return false;
}
