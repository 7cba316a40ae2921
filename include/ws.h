/* ws.h - a WebSocket client on the loop. Floor 1. curl connects (names, proxy, TLS), wslay frames, the handshake is ours.
 *
 * Text messages only; a binary one is dropped. Pings of the peer are answered here, own pings watch that it lives: a link
 * that is silent for silent_ms, owes a pong for pong_ms or takes nothing for as long is dead. No extensions are offered, no
 * redirect is followed.
 * Kinds of err: ERR_CONFIG (address, certificate), ERR_NET, ERR_TIMEOUT (connect, or dead), ERR_REFUSED (an answer other than
 * 101), ERR_LIMIT (429 instead of 101), ERR_DATA (handshake or frames against the protocol, a message too long). */
#ifndef WS_H
#define WS_H
#include "str.h"

struct loop;
struct ws;

enum ws_code { WS_NORMAL = 1000, WS_GOING = 1001, WS_PROTOCOL = 1002, WS_NO_CODE = 1005, WS_CUT = 1006 };

struct ws_request {
    const char *url;            /* wss://, or ws:// to this machine; may hold a ticket: never logged */
    const char *const *headers; /* "Name: value", NULL-terminated; may be NULL */
    bool allow_plain;           /* ws:// to other than loopback */
    size_t max_bytes;           /* of one message; 0: 16 MiB */
    int64_t connect_ms;         /* until the 101; 0: 10 s */
    int64_t ping_ms;            /* 0: 10 s */
    int64_t pong_ms;            /* 0: 15 s */
    int64_t silent_ms;          /* 0: 30 s */
};

struct ws_events {
    void (*open)(void *ud); /* upgraded; messages may follow at once */
    /* Valid UTF-8, a NUL behind it; borrowed. */
    void (*message)(void *ud, const char *text, size_t n);
    /* Last call. code: the peer's, WS_CUT when it sent none; e NULL: closed in order. */
    void (*closed)(void *ud, int code, const struct err *e);
};

must_check int ws_open(struct ws **out, struct loop *l, const struct ws_request *r, const struct ws_events *ev,
                       void *ud, struct err *e);
/* Queued; ERR_LIMIT when the peer takes nothing and the queue is full, ERR_NET when the link is not open. */
must_check int ws_send(struct ws *w, const char *text, size_t n, struct err *e);
/* Closes in order: closed() follows when the peer echoes, or 2 s later. */
void ws_close(struct ws *w, enum ws_code code);
/* At once and without callback; fine inside callbacks; NULL is fine. Also needed after closed(). */
void ws_free(struct ws *w);
#endif
