/* ws_private.h - the parts of ws.c that need no socket: handshake and frames. */
#ifndef WS_PRIVATE_H
#define WS_PRIVATE_H
#include "ws.h"

/* ---- ws_handshake.c ---- */
enum { WS_KEY_MAX = 32, WS_HEAD_MAX = 16 << 10 };
/* 16 random bytes as base64. */
must_check int ws_handshake_key(char key[WS_KEY_MAX], struct err *e);
/* What the server must answer to that key. */
void ws_handshake_accept(const char *key, char accept[WS_KEY_MAX]);
void ws_handshake_request(struct str *out, const char *host, const char *target, const char *key,
                          const char *const *headers);
/* 1: upgraded, *used bytes of data were the answer, the rest are frames; 0: more must come; -1: no. */
must_check int ws_handshake_answer(const char *data, size_t n, const char *key, size_t *used, struct err *e);

/* ---- ws_frames.c: the only user of wslay ---- */
struct ws_frames;
struct ws_frames_events {
    void (*message)(void *ud, const char *text, size_t n);
    void (*pong)(void *ud, const char *data, size_t n);
};
struct ws_frames *ws_frames_new(size_t max_bytes, const struct ws_frames_events *ev, void *ud);
void ws_frames_free(struct ws_frames *f); /* NULL is fine */
/* What came. -1: the peer broke the protocol; what it is told is among the bytes to be sent. */
must_check int ws_frames_feed(struct ws_frames *f, const char *data, size_t n, struct err *e);
must_check int ws_frames_text(struct ws_frames *f, const char *text, size_t n, struct err *e);
void ws_frames_ping(struct ws_frames *f, const char *data, size_t n);
void ws_frames_close(struct ws_frames *f, int code);
/* Bytes to be sent, and how many of them were. */
const struct str *ws_frames_out(struct ws_frames *f);
void ws_frames_sent(struct ws_frames *f, size_t n);
/* The peer's close code; 0: it sent no close frame yet. */
int ws_frames_closed(const struct ws_frames *f);
#endif
