/* box_pool.h - boxes that wait for a session: built, their heads forked, locked down and looked at, nothing of anybody in them.
 *
 * The daemon says how many and on what terms (BOX_POOL). An open request on the same terms takes one and is answered at once;
 * on other terms, or when none is there, a box is made for it. A box is used for one session and never comes back. New ones are
 * made while nobody waits for anything: never between a request and its answer. */
#ifndef BOX_POOL_H
#define BOX_POOL_H
#include "session/box_session.h"

/* BOX_POOL: from now on so many, on these terms; what waits on others goes. */
void box_pool_set(struct box_keeper *k, const struct json *wish);
/* One for that session, answered already or, if it is still being made, to be answered when it is ready. files_fd: the
 * folder that /mnt/data begins with, or -1; taken when there is one. NULL: none. */
struct box_session *box_pool_take(struct box_keeper *k, uint32_t id, const struct box_terms *terms, int files_fd);
/* All that wait go: their zygote is not the present one. */
void box_pool_clear(struct box_keeper *k);
/* One could not be made: not at once the next. */
void box_pool_failed(struct box_keeper *k);
/* Does nobody wait for the keeper or for a box? */
bool box_pool_is_quiet(const struct box_keeper *k);
/* Makes one, if one is wanted and it is quiet. -> when to be called next, INT64_MAX: never. */
int64_t box_pool_tick(struct box_keeper *k, int64_t now_ms, bool quiet);
#endif
