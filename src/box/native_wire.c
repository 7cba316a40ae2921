/* native_wire.c - frames of sandbox/box_proto.h over one SOCK_SEQPACKET socket.
 *
 * Out: frames wait in a bounded queue and leave when the socket takes them. In: the head of each frame is checked before a
 * byte of its payload is looked at; fragments are joined per (session, type), because the keeper may send a session's output
 * between two fragments of its claim. A peer that breaks a rule is finished: there is no resynchronising. */
#include "native_wire.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#include "../../sandbox/box_proto.h"
#include "loop.h"
#include "str.h"

enum {
    PAYLOAD_MAX = BOX_FRAME_MAX - sizeof(struct box_frame),
    QUEUE_MAX = 32 << 20, /* four cells of the longest code, written as badly as JSON allows */
    FRAMES_A_WAKE = 64,   /* then others get their turn */
    PARTIALS_MAX = 1024,  /* messages begun and not ended */
    DESCRIPTORS_MAX = 4,  /* more than one in a frame breaks a rule; room to see and close them */
};

struct frame {
    struct frame *next;
    int fd;
    size_t n;
    char bytes[];
};

struct partial {
    struct partial *next;
    uint32_t session, request;
    uint8_t type;
    int fd;
    struct str data;
};

struct wire {
    struct loop *l;
    int fd; /* -1: closed */
    struct wire_events ev;
    void *ud;
    bool paused;
    struct frame *first, **last;
    size_t queued_bytes;
    struct partial *partials;
    size_t partial_n;
    char *buf; /* one frame and a byte, to see one that is too long */
};

static void on_socket(void *ud, int fd, uint32_t events);

static void interest(struct wire *w)
{
    uint32_t want = (w->paused ? 0u : (uint32_t)EPOLLIN) | (w->first ? (uint32_t)EPOLLOUT : 0u);
    if (want)
        loop_io(w->l, w->fd, want, on_socket, w);
    else
        loop_io_stop(w->l, w->fd); /* a hang-up would be told in every round */
}

struct wire *wire_new(struct loop *l, int take_fd, const struct wire_events *ev, void *ud)
{
    struct wire *w = xcalloc(1, sizeof *w);
    *w = (struct wire){ .l = l, .fd = take_fd, .ev = *ev, .ud = ud };
    w->last = &w->first;
    w->buf = xcalloc(1, BOX_FRAME_MAX + 1);
    interest(w);
    return w;
}

static void frame_free(struct frame *f)
{
    if (f->fd >= 0)
        (void)close(f->fd);
    free(f);
}

static void partial_free(struct partial *p)
{
    if (p->fd >= 0)
        (void)close(p->fd);
    str_clear(&p->data);
    free(p);
}

static void wire_close(struct wire *w)
{
    if (w->fd < 0)
        return;
    loop_io_stop(w->l, w->fd);
    (void)close(w->fd);
    w->fd = -1;
    while (w->first) {
        struct frame *f = w->first;
        w->first = f->next;
        frame_free(f);
    }
    w->last = &w->first;
    while (w->partials) {
        struct partial *p = w->partials;
        w->partials = p->next;
        partial_free(p);
    }
}

static void release(void *ud)
{
    struct wire *w = ud;
    free(w->buf);
    free(w);
}

void wire_free(struct wire *w)
{
    if (!w)
        return;
    wire_close(w);
    loop_defer(w->l, release, w);
}

static void gone(struct wire *w, const char *why)
{
    if (w->fd < 0)
        return;
    wire_close(w);
    w->ev.gone(w->ud, why);
}

void wire_pause(struct wire *w, bool paused)
{
    w->paused = paused;
    if (w->fd >= 0)
        interest(w);
}

/* ---- out ---- */

/* 1: sent; 0: the socket is full; -1: broken. */
static int push(const struct wire *w, struct frame *f)
{
    union {
        struct cmsghdr align;
        char buf[CMSG_SPACE(sizeof(int))];
    } control = { 0 };
    struct iovec io = { .iov_base = f->bytes, .iov_len = f->n };
    struct msghdr m = { .msg_iov = &io, .msg_iovlen = 1 };
    if (f->fd >= 0) {
        m.msg_control = control.buf;
        m.msg_controllen = sizeof control.buf;
        struct cmsghdr *c = CMSG_FIRSTHDR(&m);
        c->cmsg_level = SOL_SOCKET;
        c->cmsg_type = SCM_RIGHTS;
        c->cmsg_len = CMSG_LEN(sizeof(int));
        memcpy(CMSG_DATA(c), &f->fd, sizeof f->fd);
    }
    ssize_t n = sendmsg(w->fd, &m, MSG_DONTWAIT | MSG_NOSIGNAL);
    if (n >= 0)
        return 1;
    return errno == EAGAIN || errno == EINTR || errno == ENOBUFS || errno == ETOOMANYREFS ? 0 : -1;
}

static int flush(struct wire *w)
{
    int rc = 1;
    while (w->first && (rc = push(w, w->first)) == 1) {
        struct frame *f = w->first;
        w->first = f->next;
        if (!w->first)
            w->last = &w->first;
        w->queued_bytes -= f->n;
        frame_free(f);
    }
    return rc;
}

static struct frame *frame_new(const struct wire_msg *m, size_t from, size_t n, int fd)
{
    const struct box_frame head = {
        .magic = BOX_MAGIC,
        .version = BOX_VERSION,
        .type = m->type,
        .flags = from + n < m->n ? BOX_MORE : 0,
        .session = m->session,
        .request = m->request,
        .len = (uint32_t)n,
    };
    struct frame *f = xcalloc(1, sizeof *f + sizeof head + n);
    f->fd = fd;
    f->n = sizeof head + n;
    memcpy(f->bytes, &head, sizeof head);
    if (n)
        memcpy(f->bytes + sizeof head, m->data + from, n);
    return f;
}

static void enqueue(struct wire *w, struct frame *f)
{
    *w->last = f;
    w->last = &f->next;
    w->queued_bytes += f->n;
}

int wire_send(struct wire *w, const struct wire_msg *m, struct err *e)
{
    if (w->fd < 0)
        return err_set(e, ERR_SANDBOX, "the sandbox's keeper is gone");
    if (w->queued_bytes + m->n > QUEUE_MAX)
        return err_set(e, ERR_SANDBOX, "the sandbox's keeper does not read what it is sent");
    int fd = -1;
    if (m->fd >= 0 && (fd = fcntl(m->fd, F_DUPFD_CLOEXEC, 0)) < 0)
        return err_sys(e, ERR_SANDBOX, errno, "duplicating a descriptor");
    size_t at = 0;
    do {
        size_t n = m->n - at < PAYLOAD_MAX ? m->n - at : PAYLOAD_MAX;
        enqueue(w, frame_new(m, at, n, fd));
        fd = -1; /* it rides in the first frame */
        at += n;
    } while (at < m->n);
    (void)flush(w); /* a broken socket is seen by the loop */
    interest(w);
    return 0;
}

/* ---- in ---- */

/* The first descriptor of a frame, the rest is closed; -2: more than one, or some were cut off. */
static int descriptor(struct msghdr *m)
{
    int fd = -1, n = 0;
    for (struct cmsghdr *c = CMSG_FIRSTHDR(m); c; c = CMSG_NXTHDR(m, c)) {
        if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS)
            continue;
        size_t k = (c->cmsg_len - CMSG_LEN(0)) / sizeof(int);
        for (size_t i = 0; i < k; i++) {
            int got;
            memcpy(&got, CMSG_DATA(c) + i * sizeof got, sizeof got);
            if (n++ == 0)
                fd = got;
            else
                (void)close(got);
        }
    }
    if (n <= 1 && !(m->msg_flags & MSG_CTRUNC))
        return fd;
    if (fd >= 0)
        (void)close(fd);
    return -2;
}

static ssize_t receive(const struct wire *w, int *fd)
{
    union {
        struct cmsghdr align;
        char buf[CMSG_SPACE(DESCRIPTORS_MAX * sizeof(int))];
    } control;
    struct iovec io = { .iov_base = w->buf, .iov_len = BOX_FRAME_MAX + 1 };
    struct msghdr m = {
        .msg_iov = &io,
        .msg_iovlen = 1,
        .msg_control = control.buf,
        .msg_controllen = sizeof control.buf,
    };
    ssize_t n = recvmsg(w->fd, &m, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
    *fd = n > 0 ? descriptor(&m) : -1;
    return n;
}

static const char *head_problem(const struct box_frame *h, size_t n)
{
    if (h->magic != BOX_MAGIC)
        return "a frame of the keeper has the wrong magic";
    if (h->version != BOX_VERSION)
        return "the keeper speaks another version of the protocol";
    if (h->len != n - sizeof *h)
        return "a frame of the keeper has the wrong length";
    if (h->flags & ~BOX_MORE)
        return "a frame of the keeper has unknown flags";
    return NULL;
}

static void deliver(struct wire *w, struct wire_msg *m)
{
    w->ev.msg(w->ud, m);
    if (m->fd >= 0)
        (void)close(m->fd);
}

static struct partial **partial_find(struct wire *w, const struct box_frame *h)
{
    struct partial **p = &w->partials;
    while (*p && ((*p)->session != h->session || (*p)->type != h->type))
        p = &(*p)->next;
    return p;
}

static const char *join(struct wire *w, const struct box_frame *h, struct partial *p, int fd)
{
    if (p->request != h->request || (p->fd >= 0 && fd >= 0)) {
        if (fd >= 0)
            (void)close(fd);
        return "fragments of two messages of the keeper are mixed";
    }
    if (fd >= 0)
        p->fd = fd;
    str_add(&p->data, w->buf + sizeof *h, h->len);
    return p->data.overflow ? "a message of the keeper is too long" : NULL;
}

static struct partial *partial_new(struct wire *w, const struct box_frame *h)
{
    struct partial *p = xcalloc(1, sizeof *p);
    *p = (struct partial){
        .next = w->partials,
        .session = h->session,
        .request = h->request,
        .type = h->type,
        .fd = -1,
        .data = STR_INIT(BOX_CLAIM_MAX),
    };
    w->partials = p;
    w->partial_n++;
    return p;
}

/* A fragment: kept, or, when it is the last, delivered with those before it. */
static const char *fragment(struct wire *w, const struct box_frame *h, struct partial **at, int fd)
{
    struct partial *p = *at;
    if (!p && w->partial_n >= PARTIALS_MAX) {
        if (fd >= 0)
            (void)close(fd);
        return "the keeper begins too many messages";
    }
    if (!p) {
        p = partial_new(w, h);
        at = &w->partials;
    }
    const char *why = join(w, h, p, fd);
    if (why || h->flags & BOX_MORE)
        return why;
    *at = p->next;
    w->partial_n--;
    struct wire_msg m = { h->type, h->session, h->request, str_peek(&p->data), p->data.len, p->fd };
    p->fd = -1;
    deliver(w, &m);
    partial_free(p);
    return NULL;
}

static const char *accept_frame(struct wire *w, size_t n, int fd)
{
    struct box_frame h;
    const char *why = NULL;
    if (n < sizeof h || n > BOX_FRAME_MAX)
        why = "a frame of the keeper has an impossible size";
    else if (fd == -2)
        why = "a frame of the keeper carries more than one descriptor";
    if (!why) {
        memcpy(&h, w->buf, sizeof h);
        why = head_problem(&h, n);
    }
    if (why) {
        if (fd >= 0)
            (void)close(fd);
        return why;
    }
    struct partial **p = partial_find(w, &h);
    if (*p || h.flags & BOX_MORE)
        return fragment(w, &h, p, fd);
    struct wire_msg m = { h.type, h.session, h.request, w->buf + sizeof h, h.len, fd };
    deliver(w, &m);
    return NULL;
}

static void drain(struct wire *w)
{
    for (int i = 0; i < FRAMES_A_WAKE && w->fd >= 0 && !w->paused; i++) {
        int fd = -1;
        ssize_t n = receive(w, &fd);
        if (n < 0 && (errno == EAGAIN || errno == EINTR))
            return;
        const char *why = n > 0 ? accept_frame(w, (size_t)n, fd) : "the keeper hung up";
        if (why) {
            gone(w, why);
            return;
        }
    }
}

static void on_socket(void *ud, int fd, uint32_t events)
{
    (void)fd;
    struct wire *w = ud;
    if (events & EPOLLOUT) {
        if (flush(w) < 0) {
            gone(w, "the keeper no longer takes what it is sent");
            return;
        }
        if (!w->first)
            interest(w);
    }
    if (events & (EPOLLIN | EPOLLHUP | EPOLLERR))
        drain(w);
}
