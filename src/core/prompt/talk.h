/* talk.h - the conversation as it is sent: system, notes of what was summarised, earlier turns, this turn; and the ways to make it
 * shorter. Pure.
 *
 *   [system] [notes, taken]? [turn][turn]...  [this turn: question, calls, results ...]
 *            \__ at most once  \__ turns[]     \__ turn_at
 *
 * Cuts fall between whole turns, a call and its results go together. What was done to an earlier turn is done again in the same
 * way when it is read from the store, so that its bytes stay what the provider has read already. */
#ifndef TALK_H
#define TALK_H
#include "transcript.h"

enum { TALK_KEPT_TURNS = 3 }; /* the newest earlier turns that are never summarised */

struct talk {
    struct transcript msgs;
    struct talk_turn {
        size_t at;  /* its first message */
        int64_t id; /* in the store; 0: none */
    } * turns;      /* earlier ones, oldest first */
    size_t turn_n, turn_cap, turn_at;
};
void talk_clear(struct talk *t);
void talk_copy(struct talk *out, const struct talk *t); /* out: empty */
/* Appends copies of an earlier turn's messages, made fit for any provider. */
void talk_add_turn(struct talk *t, const struct transcript *turn, int64_t id, const char *gap);
/* Index of the message behind the i-th earlier turn. */
size_t talk_turn_end(const struct talk *t, size_t i);
/* How many of the earlier turns are old: all but the newest TALK_KEPT_TURNS. */
size_t talk_old_turns(const struct talk *t);
/* The first n earlier turns become notes: a message that carries them and one that takes them; earlier notes go. */
void talk_note(struct talk *t, size_t n, const char *notes, const char *taken);
/* The first n earlier turns go without notes. */
void talk_drop_turns(struct talk *t, size_t n);
/* Programs that failed and were replaced go, results but the newest `keep` are cut to their first line and `gone`: in the first n
 * earlier turns; in this turn. */
void talk_shorten_turns(struct talk *t, size_t n, const char *gone);
void talk_shorten_this(struct talk *t, size_t keep, const char *gone);
/* The same for a turn as it is stored. */
void transcript_shorten(struct transcript *t, const char *gone);
#endif
