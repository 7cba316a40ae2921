/* box_zygotes.h - the interpreters that heads are forked from: which one is asked, when another takes its place, and what
 * happens when one dies.
 *
 * There is one at a time that is asked. It is replaced after so many forks, or when it is so old, since all its children have
 * the layout of its memory and its hash secret in common; the next one warms up before it goes. A zygote that leaves, or is
 * killed, takes nobody along: heads it forked live on, and the base's init, whose children they become, tells how they end.
 * Only a head that was on its way is asked for again. While none is ready, whoever wants a head waits. */
#ifndef BOX_ZYGOTES_H
#define BOX_ZYGOTES_H
#include "wire/box_frame.h"
#include "wire/box_loop.h"

struct box_keeper;
struct box_session;
struct box_zygote;

struct box_zygotes {
    struct box_zygote *now;  /* is asked; NULL: none is ready */
    struct box_zygote *next; /* warms up */
    struct box_zygote *old;  /* asked to leave, or ended: read to their last word */
    uint32_t made;
    uint32_t failures; /* in a row, without a head in between */
    int64_t again_ms;  /* after a failure: not before */
    uint32_t forks_max;
    int64_t age_max_ms;
    int64_t inherited_bytes, inherited_ms; /* as of then */
};

/* The base stands: start the first one. */
void box_zygotes_begin(struct box_keeper *k);
/* Asks for a head; theirs, borrowed: control, stdout, stderr. How it went is told by box_session_zygote(). */
void box_zygotes_ask(struct box_session *s, const int theirs[3]);
/* A head of the present one serves: it is sound. */
void box_zygotes_proved(struct box_keeper *k, uint32_t number);
/* Starts what is due; idle: nobody waits for the processor. -> when to be called next, INT64_MAX: never. */
int64_t box_zygotes_tick(struct box_keeper *k, int64_t now_ms, bool idle);
/* What its children have in common with it and each other, in bytes of each; 0: none is there. */
int64_t box_zygotes_inherited(struct box_keeper *k);
/* What waits for the present one to read can't be written at once. */
void box_zygotes_flush(struct box_keeper *k);
/* Forget them: the base's end is theirs. */
void box_zygotes_stop(struct box_keeper *k);
#endif
