#include "ids.h"
#include <string.h>
#include "str.h"

enum { ESCAPED_MAX = 3 * 4096 };

static bool is_id(const char *id, char sigil)
{
    const size_t n = id ? strnlen(id, MX_ID_MAX + 1) : 0;
    if (n < 2 || n > MX_ID_MAX || *id != sigil)
        return false;
    for (const char *p = id; *p; p++)
        if ((unsigned char)*p <= ' ' || *p == 0x7f)
            return false;
    return true;
}

bool mx_is_user(const char *id)
{
    const char *colon = id ? strchr(id, ':') : NULL;
    return is_id(id, '@') && colon && colon[1];
}

bool mx_is_room(const char *id)
{
    return is_id(id, '!');
}

bool mx_is_event(const char *id)
{
    return is_id(id, '$');
}

const char *mx_server_of(const char *user)
{
    const char *colon = strchr(user, ':');
    return colon ? colon + 1 : "";
}

char *mx_localpart(const char *user)
{
    const char *from = *user == '@' ? user + 1 : user;
    return xstrndup(from, strcspn(from, ":"));
}

static bool is_unreserved(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || (c && strchr("-._~", c));
}

char *mx_escape(const char *segment)
{
    static const char digits[] = "0123456789ABCDEF";
    struct str s = STR_INIT(ESCAPED_MAX);
    for (const char *p = segment; *p; p++) {
        const unsigned char byte = (unsigned char)*p;
        if (is_unreserved(*p))
            str_putc(&s, *p);
        else
            str_add(&s, (const char[]){ '%', digits[byte >> 4], digits[byte & 15] }, 3);
    }
    return str_take(&s);
}

char *mx_unescape(const char *text)
{
    char *out = xcalloc(1, strlen(text) + 1), *to = out;
    for (const char *p = text; *p; p++) {
        const int high = *p == '%' ? hex_digit(p[1]) : -1, low = high >= 0 ? hex_digit(p[2]) : -1;
        if (low >= 0 && (high || low)) {
            *to++ = (char)(high * 16 + low);
            p += 2;
        } else {
            *to++ = *p;
        }
    }
    return out;
}

static bool all_of(const char *text, size_t n, const char *extra)
{
    for (size_t i = 0; i < n; i++)
        if (!is_unreserved(text[i]) && !strchr(extra, text[i]))
            return false;
    return n > 0;
}

bool mx_split_mxc(const char *url, char **server, char **media)
{
    static const char scheme[] = "mxc://";
    if (!url || strncmp(url, scheme, strlen(scheme)) != 0 || strlen(url) > (size_t)2 * MX_ID_MAX)
        return false;
    const char *host = url + strlen(scheme), *slash = strchr(host, '/');
    if (!slash || !all_of(host, (size_t)(slash - host), ":[]") || !all_of(slash + 1, strlen(slash + 1), ""))
        return false;
    if (strpbrk(slash + 1, ".~") || *host == '.') /* media ids have neither dots nor tildes */
        return false;
    *server = xstrndup(host, (size_t)(slash - host));
    *media = xstrdup(slash + 1);
    return true;
}

/* Iterative: a star is tried again one byte later when what follows it does not match. */
static bool glob(const char *p, size_t n, const char *text)
{
    size_t at = 0, star = SIZE_MAX;
    const char *from = NULL;
    while (*text) {
        if (at < n && (p[at] == '?' || p[at] == *text) && p[at] != '*') {
            at++;
            text++;
        } else if (at < n && p[at] == '*') {
            star = at++;
            from = text;
        } else if (from) {
            at = star + 1;
            text = ++from;
        } else {
            return false;
        }
    }
    while (at < n && p[at] == '*')
        at++;
    return at == n;
}

bool mx_matches(const char *patterns, const char *name)
{
    static const char between[] = " ,\t";
    for (const char *p = patterns + strspn(patterns, between); *p; p += strspn(p, between)) {
        const size_t n = strcspn(p, between);
        if (glob(p, n, name))
            return true;
        p += n;
    }
    return false;
}
