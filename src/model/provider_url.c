/* provider_url.c - where a request goes, and as whom. */
#include <strings.h>
#include "provider.h"

/* Azure's last stable version of the old paths; the new ones (/openai/v1) need none. */
#define AZURE_VERSION "2024-10-21"

static bool ends_with(const char *text, size_t n, const char *end)
{
    const size_t e = strlen(end);
    return n >= e && memcmp(text + n - e, end, e) == 0;
}

/* True when the host is `domain` or lies below it. */
static bool is_host(const char *url, const char *domain)
{
    const char *host = strstr(url, "://");
    host = host ? host + 3 : url;
    const size_t n = strcspn(host, ":/"), d = strlen(domain);
    return n >= d && strncasecmp(host + n - d, domain, d) == 0 && (n == d || host[n - d - 1] == '.');
}

static bool is_azure(const char *url)
{
    return is_host(url, "azure.com") || strstr(url, "/openai/deployments/");
}

bool provider_is_plain(const char *url)
{
    return strncasecmp(url, "http://", 7) == 0;
}

static const char *path_of(const struct wire *w)
{
    if (w == &wire_ollama)
        return "/api/chat";
    if (w == &wire_anthropic)
        return "/messages";
    return w == &wire_chat ? "/chat/completions" : "/responses";
}

/* What has to stand in front of the path when the base has nothing but a host. */
static const char *version_of(const struct wire *w, const char *base, size_t n)
{
    const char *host = strstr(base, "://");
    const bool bare = host && !memchr(host + 3, '/', n - (size_t)(host + 3 - base));
    if (bare && is_host(base, "azure.com"))
        return "/openai/v1";
    if (w == &wire_anthropic && !ends_with(base, n, "/v1"))
        return "/v1";
    return bare && is_host(base, "api.openai.com") ? "/v1" : "";
}

/* The address of another of its doors does as well. */
static size_t without_ollama_door(const char *base, size_t n)
{
    static const char *const doors[] = { "/v1", "/api" };
    for (size_t i = 0; i < countof(doors); i++)
        if (ends_with(base, n, doors[i]))
            return n - strlen(doors[i]);
    return n;
}

char *provider_url(const struct wire *w, const char *base, const char *version)
{
    const bool deployment = strstr(base, "/openai/deployments/") != NULL;
    size_t n = strlen(base);
    while (n && base[n - 1] == '/')
        n--;
    if (w == &wire_ollama)
        n = without_ollama_door(base, n);
    version = !*version && deployment ? AZURE_VERSION : version;
    const bool whole = ends_with(base, n, path_of(w));
    return xasprintf("%.*s%s%s%s%s", (int)n, base, whole ? "" : version_of(w, base, n), whole ? "" : path_of(w),
                     *version ? "?api-version=" : "", version);
}

char *provider_count_url(const char *url)
{
    const int path = (int)strcspn(url, "?");
    return xasprintf("%.*s/count_tokens%s", path, url, url + path);
}

unsigned provider_first_quirks(const struct wire *w, const char *url)
{
    if (w == &wire_chat && (is_host(url, "api.openai.com") || is_azure(url)))
        return WIRE_MAX_COMPLETION;
    return 0;
}

static char *key_header(const struct wire *w, const char *url, const char *key)
{
    static const char oauth[] = "sk-ant-oat";
    if (is_azure(url))
        return xasprintf("api-key: %s", key);
    if (w == &wire_anthropic && strncmp(key, oauth, strlen(oauth)) != 0)
        return xasprintf("x-api-key: %s", key);
    return xasprintf("Authorization: Bearer %s", key);
}

char **provider_headers(const struct wire *w, const char *url, const char *key)
{
    enum { MOST = 4 };
    char **lines = xcalloc(MOST + 1, sizeof(*lines));
    size_t n = 0;
    lines[n++] = xstrdup("Content-Type: application/json");
    lines[n++] = xstrdup("Accept: text/event-stream, application/json");
    if (w == &wire_anthropic)
        lines[n++] = xstrdup("anthropic-version: 2023-06-01");
    if (key)
        lines[n] = key_header(w, url, key);
    return lines;
}

void provider_headers_free(char **lines)
{
    for (char **l = lines; l && *l; l++) {
        explicit_bzero(*l, strlen(*l));
        free(*l);
    }
    free(lines);
}
