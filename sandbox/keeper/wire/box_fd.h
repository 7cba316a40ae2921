/* box_fd.h - the one descriptor helper that base.h lacks: take() for an autoclose descriptor. */
#ifndef BOX_FD_H
#define BOX_FD_H

/* Move a descriptor out of a variable, leaving -1, so that autoclose does nothing. */
static inline int box_fd_take(int *fd)
{
    int out = *fd;
    *fd = -1;
    return out;
}
#endif
