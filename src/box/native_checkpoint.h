/* native_checkpoint.h - a session's variables on their way out of a box, and the box's account of them. Trust boundary: what
 * comes out of the pipe is counted and handed on unread, the report is text that a box wrote.
 *
 * The box writes into a pipe whose other end is here, so that a gigabyte needs no room anywhere on its way. Nothing ends the
 * stream but the report: whoever in the box has kept the pipe is not waited for, and what they say after it is not read. */
#ifndef NATIVE_CHECKPOINT_H
#define NATIVE_CHECKPOINT_H
#include "err.h"

struct json;
struct loop;

struct outflow {
    struct loop *l;
    int fd; /* our end; -1: none */
    int64_t bytes;
    int (*sink)(void *ud, const char *data, size_t n, struct err *e);
    void *ud;
    bool failed; /* the rest is thrown away */
    struct err why;
};
#define OUTFLOW_INIT \
    {                \
        .fd = -1     \
    }

/* Makes the pipe; *theirs is for the box, the caller's to close. sink: -1 stops it. f stays where it is until cleared. */
must_check int outflow_open(struct outflow *f, struct loop *l, int *theirs,
                            int (*sink)(void *ud, const char *data, size_t n, struct err *e), void *ud, struct err *e);
/* The box has told its report: what is still in the pipe is taken. `said`: how many bytes there were, as the box says. */
must_check int outflow_end(struct outflow *f, int64_t said, struct err *e);
void outflow_clear(struct outflow *f);

/* {"kept","bytes","lost":[{"name","type","why"}],"notes":[...],"python"} out of a claim, whatever that holds. ERR_DATA: it says
 * that nothing could be read. The caller frees. */
must_check int report_from_claim(struct json **out, const struct json *claim, struct err *e);
#endif
