/* e2ee.h - private to the Matrix adapter: what drives crypto.h. Each of its requests goes out as it asks, each answer goes back. */
#ifndef MATRIX_E2EE_H
#define MATRIX_E2EE_H
#include "crypto/attach.h"
#include "crypto/crypto.h"
#include "matrix.h"

struct e2ee {
    struct chat *c;
    struct crypto *crypto;
    loop_timer timer;
    bool started;  /* the sync was told to begin */
    bool more;     /* the last response was full of to-device events: there are more */
    uint64_t said; /* verification events of this life */
    int64_t life_ms;
    struct errand *errands; /* its requests on their way */
    struct unread *unread;  /* messages whose keys are missing, until that is said */
};

/* A message that was encrypted. 1: readable, accepted; 0: to be dropped; 2: its keys may come; -1: the store. */
must_check int e2ee_open(struct chat *c, const char *room, const struct json *event, struct crypto_message *out,
                         struct err *e);
/* Is this verification talk? Then it was handed on, and nothing else is to be done. */
must_check int e2ee_verification(struct chat *c, const struct crypto_room_event *ev, bool *taken, struct err *e);

/* ---- unread.c: who writes what can't be read is told so, in a direct room once an hour, in others once ---- */
/* m: why not. */
void unread_note(struct chat *c, const char *room, const struct json *event, const struct crypto_message *m);
void unread_opened(struct chat *c, const char *event); /* its key came after all */
void unread_free_all(struct chat *c);

/* ---- cipher.c: whole files, a slice in each round of the loop ---- */
/* fd: the other file at 0, the callee's; file: of an encryption, what goes into the event (url still to be set by attach_file); problem
 * NULL: it worked. */
typedef void cipher_fn(void *ud, int fd, int64_t bytes, struct attach *take_attach, const char *problem);
/* take_fd is closed in the end. file NULL: encrypt. */
void cipher_start(struct chat *c, int take_fd, const struct json *file, cipher_fn *fn, void *ud);
void cipher_free_all(struct chat *c);
#endif
