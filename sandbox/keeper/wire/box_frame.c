/* box_frame.c - see box_frame.h. */
#include "box_frame.h"
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/socket.h>

struct box_packet {
    struct box_packet *next;
    size_t n;
    int fds[BOX_FDS_MAX];
    int fd_n;
    uint8_t data[];
};

int box_frame_check(const void *data, size_t n, struct box_frame *head)
{
    if (n < sizeof *head || n > BOX_FRAME_MAX)
        return -1;
    memcpy(head, data, sizeof *head);
    bool right = head->magic == BOX_MAGIC && head->version == BOX_VERSION && head->type != 0 &&
                 (head->flags & ~BOX_MORE) == 0 && head->len == n - sizeof *head;
    return right ? 0 : -1;
}

/* ---- in ---- */

static void take_control(struct box_msg *msg, struct msghdr *h)
{
    for (struct cmsghdr *c = CMSG_FIRSTHDR(h); c; c = CMSG_NXTHDR(h, c)) {
        if (c->cmsg_level != SOL_SOCKET)
            continue;
        if (c->cmsg_type == SCM_CREDENTIALS) {
            struct ucred who;
            memcpy(&who, CMSG_DATA(c), sizeof who);
            msg->pid = who.pid;
        } else if (c->cmsg_type == SCM_RIGHTS) {
            msg->fd_n = (int)((c->cmsg_len - CMSG_LEN(0)) / sizeof(int));
            memcpy(msg->fds, CMSG_DATA(c), (size_t)msg->fd_n * sizeof(int));
        }
    }
}

enum box_recv box_recv(int fd, struct box_msg *msg, bool fds)
{
    /* Credentials come first; with room for them only, descriptors are discarded by the kernel. */
    _Alignas(struct cmsghdr) char control[CMSG_SPACE(sizeof(struct ucred)) + CMSG_SPACE(sizeof msg->fds)];
    size_t room = CMSG_SPACE(sizeof(struct ucred)) + (fds ? CMSG_SPACE(sizeof msg->fds) : 0);
    struct iovec io = { msg->raw, sizeof msg->raw };
    struct msghdr h = { .msg_iov = &io, .msg_iovlen = 1, .msg_control = control, .msg_controllen = room };
    msg->pid = 0;
    msg->fd_n = 0;
    ssize_t n = recvmsg(fd, &h, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
    if (n < 0)
        return errno == EAGAIN || errno == EINTR ? BOX_RECV_NOTHING : BOX_RECV_END;
    take_control(msg, &h);
    if (n == 0 && msg->pid == 0 && msg->fd_n == 0) /* an empty packet has a sender, the end has none */
        return BOX_RECV_END;
    if ((h.msg_flags & MSG_TRUNC) || box_frame_check(msg->raw, (size_t)n, &msg->head) < 0)
        return BOX_RECV_BAD;
    msg->payload = msg->raw + sizeof msg->head;
    return BOX_RECV_FRAME;
}

void box_msg_clear(struct box_msg *msg)
{
    for (int i = 0; i < msg->fd_n; i++)
        if (msg->fds[i] >= 0)
            (void)close(msg->fds[i]);
    msg->fd_n = 0;
}

int box_part_add(struct box_part *part, const struct box_frame *head, const void *payload)
{
    if (part->head.type == 0)
        part->head = *head;
    else if (part->head.type != head->type || part->head.session != head->session ||
             part->head.request != head->request)
        return -1;
    str_add(&part->body, payload, head->len);
    if (part->body.overflow)
        return -1;
    return head->flags & BOX_MORE ? 0 : 1;
}

void box_part_clear(struct box_part *part)
{
    str_clear(&part->body);
    part->head.type = 0;
}

/* ---- out ---- */

static ssize_t send_now(int fd, const void *data, size_t n, const int *fds, int fd_n)
{
    _Alignas(struct cmsghdr) char control[CMSG_SPACE(BOX_FDS_MAX * sizeof(int))] = { 0 };
    struct iovec io = { .iov_len = n };
    memcpy(&io.iov_base, &data, sizeof data); /* sendmsg does not write there; iovec has no const */
    struct msghdr h = { .msg_iov = &io, .msg_iovlen = 1 };
    if (fd_n > 0) {
        size_t size = (size_t)fd_n * sizeof(int);
        h.msg_control = control;
        h.msg_controllen = CMSG_SPACE(size);
        struct cmsghdr *c = CMSG_FIRSTHDR(&h);
        c->cmsg_level = SOL_SOCKET;
        c->cmsg_type = SCM_RIGHTS;
        c->cmsg_len = CMSG_LEN(size);
        memcpy(CMSG_DATA(c), fds, size);
    }
    return sendmsg(fd, &h, MSG_DONTWAIT | MSG_NOSIGNAL);
}

static void packet_free(struct box_packet *p)
{
    for (int i = 0; i < p->fd_n; i++)
        if (p->fds[i] >= 0)
            (void)close(p->fds[i]);
    free(p);
}

static void enqueue(struct box_link *link, const struct box_frame *head, const void *payload, const int *fds, int fd_n)
{
    size_t n = sizeof *head + head->len;
    struct box_packet *p = xcalloc(1, sizeof *p + n);
    p->n = n;
    memcpy(p->data, head, sizeof *head);
    if (head->len > 0)
        memcpy(p->data + sizeof *head, payload, head->len);
    for (p->fd_n = 0; p->fd_n < fd_n; p->fd_n++)
        p->fds[p->fd_n] = fcntl(fds[p->fd_n], F_DUPFD_CLOEXEC, 0);
    *(link->last ? &link->last->next : &link->first) = p;
    link->last = p;
    link->queued += n;
}

int box_link_flush(struct box_link *link)
{
    while (link->first) {
        struct box_packet *p = link->first;
        if (send_now(link->fd, p->data, p->n, p->fds, p->fd_n) < 0) {
            if (errno == EINTR)
                continue;
            return errno == EAGAIN || errno == ENOBUFS ? 1 : -1;
        }
        link->first = p->next;
        if (!link->first)
            link->last = NULL;
        link->queued -= p->n;
        packet_free(p);
    }
    return 0;
}

void box_send_fds(struct box_link *link, const struct box_frame *head, const void *payload, const int *fds, int fd_n)
{
    if (link->fd < 0)
        return;
    struct box_frame f = *head;
    f.magic = BOX_MAGIC;
    f.version = BOX_VERSION;
    enqueue(link, &f, payload, fds, fd_n);
    (void)!box_link_flush(link); /* a peer that is gone shows as end of its socket */
}

void box_send(struct box_link *link, uint8_t type, uint32_t session, uint32_t request, const void *payload, size_t n)
{
    const uint8_t *at = payload;
    do {
        size_t part = n < BOX_PAYLOAD_MAX ? n : BOX_PAYLOAD_MAX;
        const struct box_frame head = {
            .type = type,
            .flags = part < n ? BOX_MORE : 0,
            .session = session,
            .request = request,
            .len = (uint32_t)part,
        };
        box_send_fds(link, &head, at, NULL, 0);
        at = part > 0 ? at + part : at;
        n -= part;
    } while (n > 0);
}

void box_send_text(struct box_link *link, uint8_t type, uint32_t session, uint32_t request, const struct str *text)
{
    box_send(link, type, session, request, str_peek(text), text->len);
}

void box_link_close(struct box_link *link)
{
    while (link->first) {
        struct box_packet *p = link->first;
        link->first = p->next;
        packet_free(p);
    }
    link->last = NULL;
    link->queued = 0;
    if (link->fd >= 0)
        (void)close(link->fd);
    link->fd = -1;
}
