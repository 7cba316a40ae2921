/* native_wire.h - the daemon's end of the keeper's socket: whole messages in and out, never blocking. */
#ifndef NATIVE_WIRE_H
#define NATIVE_WIRE_H
#include "err.h"

struct loop;
struct wire;

/* Borrowed: valid during the callback only. */
struct wire_msg {
    uint8_t type; /* enum box_frame_type */
    uint32_t session, request;
    const char *data;
    size_t n;
    int fd; /* -1: none; a callback that keeps it writes -1 here, else it is closed */
};

struct wire_events {
    void (*msg)(void *ud, struct wire_msg *m);
    /* The peer hung up, or broke a rule of the protocol: `why` in words. Last call. */
    void (*gone)(void *ud, const char *why);
};

/* Takes fd, a connected SOCK_SEQPACKET socket. */
struct wire *wire_new(struct loop *l, int take_fd, const struct wire_events *ev, void *ud);
void wire_free(struct wire *w); /* fine inside its own callbacks; NULL is fine */
/* Queue a message; fd (-1: none) is duplicated. ERR_SANDBOX when the peer has stopped reading and the queue is full. */
must_check int wire_send(struct wire *w, const struct wire_msg *m, struct err *e);
/* While paused nothing is read, so that the peer has to wait. */
void wire_pause(struct wire *w, bool paused);
#endif
