/* http_retry.c - the retry policy that the providers' own SDKs have in common. */
#include <errno.h>
#include <math.h>
#include <string.h>
#include <sys/random.h>

#include <curl/curl.h>
#include "http_call.h"

enum {
    BACKOFF_FIRST_MS = 500,
    BACKOFF_MAX_MS = 8000,
    ASKED_MAX_MS = 24 * 3600 * 1000, /* more is nonsense */
    SECOND_MS = 1000,
    CHANCES = 4 * 256, /* of a byte: at most a quarter */
};

/* A number, maybe with a fraction, and nothing after it; negative when it is none. */
static double number(const char *text)
{
    char *end = NULL;
    errno = 0;
    double x = strtod(text, &end);
    if (end == text || errno || !isfinite(x) || strspn(end, " \t") != strlen(end))
        return -1;
    return x;
}

static int64_t sane(double ms)
{
    return ms > 0 && ms <= ASKED_MAX_MS ? (int64_t)ceil(ms) : 0;
}

int64_t http_retry_asked_ms(const char *retry_after_ms, const char *retry_after, int64_t now_s)
{
    int64_t ms = retry_after_ms ? sane(number(retry_after_ms)) : 0;
    if (ms || !retry_after)
        return ms;
    double s = number(retry_after);
    if (s >= 0)
        return sane(s * SECOND_MS);
    time_t at = curl_getdate(retry_after, NULL);
    return at > 0 ? sane((double)(at - now_s) * SECOND_MS) : 0;
}

int64_t http_retry_backoff_ms(int n)
{
    unsigned char chance = 0;
    int64_t ms = BACKOFF_FIRST_MS;
    for (int i = 1; i < n && ms < BACKOFF_MAX_MS; i++)
        ms *= 2;
    ms = ms < BACKOFF_MAX_MS ? ms : BACKOFF_MAX_MS;
    if (getrandom(&chance, sizeof chance, GRND_NONBLOCK) < 0)
        chance = 0; /* no jitter then */
    return ms - ms * chance / CHANCES;
}

bool http_retry_status(int status, const char *should_retry)
{
    if (should_retry && strcasecmp(should_retry, "false") == 0)
        return false;
    if (should_retry && strcasecmp(should_retry, "true") == 0)
        return status >= 400;
    return status == 408 || status == 409 || status == 429 || status >= 500;
}
