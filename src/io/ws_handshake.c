/* ws_handshake.c - RFC 6455 section 4: what is asked, and whether the answer is one.
 *
 * Trust boundary: the answer comes from whoever answers at that address. */
#include <errno.h>
#include <stdio.h>
#include <strings.h>
#include <sys/random.h>

#include <openssl/evp.h>
#include "ws_private.h"

int ws_handshake_key(char key[WS_KEY_MAX], struct err *e)
{
    unsigned char raw[16];
    if (getrandom(raw, sizeof(raw), 0) != (ssize_t)sizeof(raw))
        return err_sys(e, ERR_NET, errno, "getrandom");
    (void)EVP_EncodeBlock((unsigned char *)key, raw, sizeof(raw));
    return 0;
}

void ws_handshake_accept(const char *key, char accept[WS_KEY_MAX])
{
    unsigned char digest[EVP_MAX_MD_SIZE];
    unsigned int n = 0;
    autofree char *text = xasprintf("%s258EAFA5-E914-47DA-95CA-C5AB0DC85B11", key);
    if (EVP_Digest(text, strlen(text), digest, &n, EVP_sha1(), NULL) != 1)
        abort();
    (void)EVP_EncodeBlock((unsigned char *)accept, digest, 20);
}

void ws_handshake_request(struct str *out, const char *host, const char *target, const char *key,
                          const char *const *headers)
{
    str_printf(out,
               "GET %s HTTP/1.1\r\nHost: %s\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
               "Sec-WebSocket-Key: %s\r\nSec-WebSocket-Version: 13\r\n",
               target, host, key);
    for (; headers && *headers; headers++)
        str_printf(out, "%s\r\n", *headers);
    str_puts(out, "\r\n");
}

/* Value of the header within the head, blanks around it removed; newly allocated, NULL: absent. */
static char *header(const char *head, const char *name)
{
    const size_t n = strlen(name);
    for (const char *at = strstr(head, "\r\n"); at; at = strstr(at + 2, "\r\n")) {
        const char *line = at + 2;
        if (strncasecmp(line, name, n) != 0 || line[n] != ':')
            continue;
        const char *from = line + n + 1, *to;
        from += strspn(from, " \t");
        to = from + strcspn(from, "\r\n");
        while (to > from && (to[-1] == ' ' || to[-1] == '\t'))
            to--;
        return xstrndup(from, (size_t)(to - from));
    }
    return NULL;
}

/* "keep-alive, Upgrade" has the token upgrade. */
static bool has_token(const char *list, const char *token)
{
    const size_t n = strlen(token);
    while (list && *list) {
        list += strspn(list, " \t,");
        const size_t len = strcspn(list, ",");
        size_t end = len;
        while (end && (list[end - 1] == ' ' || list[end - 1] == '\t'))
            end--;
        if (end == n && strncasecmp(list, token, n) == 0)
            return true;
        list += len;
    }
    return false;
}

static int refused(const char *head, struct err *e)
{
    autofree char *after = header(head, "Retry-After");
    char line[80];
    (void)snprintf(line, sizeof(line), "%.*s", (int)strcspn(head, "\r\n"), head);
    if (strncmp(head, "HTTP/1.1 429", 12) != 0)
        return err_set(e, ERR_REFUSED, "the server does not upgrade: %s", line);
    (void)err_set(e, ERR_LIMIT, "the server asks to wait: %s", line);
    const long seconds = after ? strtol(after, NULL, 10) : 0;
    e->retry_ms = seconds > 0 && seconds <= 3600 ? seconds * 1000 : 30000;
    return -1;
}

static int check(const char *head, const char *key, struct err *e)
{
    char want[WS_KEY_MAX];
    if (strncmp(head, "HTTP/1.1 101 ", 13) != 0 && strncmp(head, "HTTP/1.1 101\r", 13) != 0)
        return refused(head, e);
    autofree char *upgrade = header(head, "Upgrade"), *connection = header(head, "Connection");
    autofree char *accept = header(head, "Sec-WebSocket-Accept"), *extra = header(head, "Sec-WebSocket-Extensions");
    if (!has_token(upgrade, "websocket") || !has_token(connection, "upgrade"))
        return err_set(e, ERR_DATA, "the server's 101 is not a WebSocket upgrade");
    ws_handshake_accept(key, want);
    if (!accept || strcmp(accept, want) != 0)
        return err_set(e, ERR_DATA, "the server's accept key is wrong: something between us does not speak WebSocket");
    if (extra && *extra)
        return err_set(e, ERR_DATA, "the server wants an extension that was not offered");
    return 0;
}

int ws_handshake_answer(const char *data, size_t n, const char *key, size_t *used, struct err *e)
{
    const char *end = memmem(data, n, "\r\n\r\n", 4);
    if (!end)
        return n < WS_HEAD_MAX ? 0 : err_set(e, ERR_DATA, "the server's answer has no end");
    *used = (size_t)(end - data) + 4;
    if (*used > WS_HEAD_MAX)
        return err_set(e, ERR_DATA, "the server's answer is too long");
    autofree char *head = xstrndup(data, *used);
    if (strlen(head) != *used)
        return err_set(e, ERR_DATA, "the server's answer holds a NUL");
    return check(head, key, e) < 0 ? -1 : 1;
}
