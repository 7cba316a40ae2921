#include "slack_http.h"
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include "digest.h"

static bool is_recent(const char *timestamp, int64_t now_s)
{
    const size_t n = strlen(timestamp);
    if (n == 0 || n > 12 || strspn(timestamp, "0123456789") != n)
        return false;
    const int64_t age = now_s - strtoll(timestamp, NULL, 10);
    return age <= SLACK_SIGNATURE_WINDOW_S && age >= -SLACK_SIGNATURE_WINDOW_S;
}

bool slack_signature_is_right(const char *secret, const char *timestamp, const char *signature, const char *body,
                              size_t n, int64_t now_s)
{
    uint8_t mac[DIGEST_BYTES];
    char hex[3 + 2 * DIGEST_BYTES + 1] = "v0=";
    if (!timestamp || !signature || !is_recent(timestamp, now_s) || strlen(signature) != sizeof(hex) - 1)
        return false;
    AUTO(str_clear) struct str base = STR_INIT(n + 64);
    str_printf(&base, "v0:%s:", timestamp);
    str_add(&base, body, n);
    digest_hmac(secret, strlen(secret), str_peek(&base), base.len, mac);
    for (size_t i = 0; i < DIGEST_BYTES; i++)
        (void)snprintf(hex + 3 + 2 * i, 3, "%02x", mac[i]);
    return digest_equal(hex, signature, sizeof(hex) - 1);
}

static char *unescape(const char *text, size_t n)
{
    char *out = xcalloc(1, n + 1);
    size_t len = 0;
    for (size_t i = 0; i < n; i++) {
        const bool hex = text[i] == '%' && i + 2 < n && hex_digit(text[i + 1]) >= 0 && hex_digit(text[i + 2]) >= 0;
        if (hex)
            out[len++] = (char)(16 * hex_digit(text[i + 1]) + hex_digit(text[i + 2]));
        else
            out[len++] = (char)(text[i] == '+' ? ' ' : text[i]);
        i += hex ? 2 : 0;
    }
    return out;
}

char *slack_http_payload(const char *type, const char *body)
{
    if (!type || strncasecmp(type, "application/x-www-form-urlencoded", 33) != 0)
        return *body == '{' ? xstrdup(body) : NULL;
    for (const char *at = body; *at;) {
        const size_t n = strcspn(at, "&");
        if (n > 8 && strncmp(at, "payload=", 8) == 0)
            return unescape(at + 8, n - 8);
        at += n + (at[n] == '&');
    }
    return NULL;
}
