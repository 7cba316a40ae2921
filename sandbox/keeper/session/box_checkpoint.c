/* box_checkpoint.c - see box_checkpoint.h. */
#include "box_checkpoint.h"
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include "box_copy.h"

static bool is_pipe_to_write(int fd, int flags)
{
    struct stat st;
    return (flags & O_ACCMODE) == O_WRONLY && fstat(fd, &st) == 0 && S_ISFIFO(st.st_mode) &&
           fcntl(fd, F_SETFL, flags & ~O_NONBLOCK) == 0;
}

static bool is_file_to_read(int fd, int flags)
{
    struct stat st;
    return (flags & (O_ACCMODE | O_PATH)) == O_RDONLY && fstat(fd, &st) == 0 && S_ISREG(st.st_mode);
}

int box_checkpoint_check(const struct box_request *r, const struct json *spec, struct err *e)
{
    const bool out = r->type == BOX_CHECKPOINT;
    const int flags = r->fd >= 0 ? fcntl(r->fd, F_GETFL) : -1;
    if (strcmp(json_str_or(spec, "op", ""), out ? "checkpoint" : "restore") != 0 || r->body.len > BOX_PAYLOAD_MAX)
        return err_set(e, ERR_DATA, "not what a checkpoint is asked for with");
    if (flags < 0)
        return err_set(e, ERR_DATA, "no descriptor came with it");
    if (out ? !is_pipe_to_write(r->fd, flags) : !is_file_to_read(r->fd, flags))
        return err_set(e, ERR_DATA, out ? "no pipe to write to" : "no file to read only");
    return 0;
}

bool box_restore_renews(struct box_session *s)
{
    struct box_request *r = &s->request;
    if (r->type != BOX_RESTORE)
        return false;
    const bool renewed = r->cause == BOX_CAUSE_RESTORE;
    r->cause = BOX_CAUSE_NONE;
    box_copies_clear(s); /* none leads here, and numbers must not mean two things */
    if (renewed || s->at.cell == s->base)
        return false;
    r->cause = BOX_CAUSE_RESTORE;
    box_session_sweep(s);
    return true;
}

void box_checkpoint_send(struct box_session *s)
{
    struct box_request *r = &s->request;
    const struct box_frame head = {
        .type = BOX_CALL, .session = s->id, .request = r->id, .len = (uint32_t)r->body.len
    };
    box_send_fds(&s->head.link, &head, str_peek(&r->body), &r->fd, 1);
    (void)close(r->fd);
    r->fd = -1;
}

void box_restore_arrived(struct box_session *s, uint32_t cell)
{
    s->base = cell;
    s->at = (struct box_place){ cell, cell, cell };
    s->thawed = true;
}
