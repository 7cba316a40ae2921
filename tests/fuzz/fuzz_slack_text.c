/* Properties: decoded text is valid UTF-8 without control characters; escaped text has no live token and decodes to itself;
 * addresses that get the token begin with one of the listed hosts. */
#include <stdint.h>
#include <string.h>
#include "slack/slack_fetch.h"
#include "slack/slack_http.h"
#include "slack/slack_text.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void must(bool holds)
{
    if (!holds)
        __builtin_trap();
}

static const char *name_of(void *ud, const char *user)
{
    (void)ud;
    return user[1] == '1' ? "<@U2>" : NULL;
}

static void ignore_user(void *ud, const char *user)
{
    (void)ud;
    must(strlen(user) < 32);
}

/* Shown piece by piece as it is written, it starts nothing and takes nothing back. */
static void pieces(const char *text, size_t n)
{
    AUTO(str_clear) struct str shown = STR_INIT(1 << 22);
    const size_t step = n / 50 + 1;
    size_t said = 0;
    for (size_t i = 0; i <= n; i += step) {
        autofree char *so_far = xstrndup(text, i); /* as it is then: nothing behind it */
        const size_t ready = slack_text_ready(so_far, i);
        must(ready >= said && ready <= i);
        slack_text_defuse(&shown, text + said, ready - said);
        said = ready;
    }
    static const char *const live[] = { "<!", "<@", "<#", "@here", "@channel", "@everyone" };
    for (size_t i = 0; i < countof(live); i++)
        must(!strstr(str_peek(&shown), live[i]));
}

static void addresses(const char *text)
{
    static const char token[] = "https://files.slack.com";
    const enum slack_host host = slack_fetch_host(text, "files.slack.com", "*.slack.com");
    must(host != SLACK_HOST_TOKEN ||
         (strncasecmp(text, token, strlen(token)) == 0 && strchr("/?#:", text[strlen(token)])));
    autofree char *name = slack_fetch_name(text), *to = slack_fetch_resolve(token, text),
                  *payload = slack_http_payload("application/x-www-form-urlencoded", text);
    must(*name && strlen(name) <= 120 && !strchr(name, '/') && *name != '.' && utf8_valid(name, strlen(name)));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size > 1 << 14)
        return 0;
    autofree char *text = xstrndup((const char *)data, size);
    AUTO(str_clear) struct str decoded = STR_INIT(1 << 22);
    AUTO(str_clear) struct str clean = STR_INIT(1 << 22);
    AUTO(str_clear) struct str escaped = STR_INIT(1 << 22);
    AUTO(str_clear) struct str back = STR_INIT(1 << 22);
    slack_text_decode(&decoded, text, "UBOT", name_of, NULL);
    must(utf8_valid(str_peek(&decoded), decoded.len));
    slack_text_each_user(text, ignore_user, NULL);
    utf8_scrub(&clean, text, strlen(text));
    slack_text_escape(&escaped, str_peek(&clean), clean.len);
    must(!strchr(str_peek(&escaped), '<') && !strchr(str_peek(&escaped), '>'));
    slack_text_decode(&back, str_peek(&escaped), NULL, NULL, NULL);
    AUTO(str_clear) struct str plain = STR_INIT(1 << 22);
    for (const char *c = str_peek(&back); *c; c++) /* the joiner that makes @here dead */
        if (strncmp(c, "\xe2\x81\xa0", 3) == 0)
            c += 2;
        else
            str_putc(&plain, *c);
    must(strstr(str_peek(&clean), "\xe2\x81\xa0") || strcmp(str_peek(&plain), str_peek(&clean)) == 0);
    pieces(str_peek(&clean), clean.len);
    addresses(text);
    return 0;
}
