/* Datagrams of a hostile peer: the check, then the putting together, as the keeper does it; and the same datagrams on a real socket,
 * some with a descriptor, as the daemon reads them. Two text parsers of the keeper's ride along: they read /proc, which a
 * container may shape. */
#include <assert.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>
#include "box_cgroup_find.h"
#include "box_collect.h"
#include "box_frame.h"
#include "loop.h"
#include "native_wire.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { CEILING = 4096, DATAGRAMS_MAX = 64, WITH_FD = 0x80 };

/* Input: lengths of one byte (times 8), each followed by a datagram. */
static void frames(const uint8_t *data, size_t size)
{
    struct box_part part = { .body = STR_INIT(CEILING) };
    while (size > 0) {
        size_t n = (size_t)data[0] * 8;
        data++, size--;
        n = n < size ? n : size;
        struct box_frame head;
        if (box_frame_check(data, n, &head) == 0) {
            assert(head.len == n - sizeof head && head.magic == BOX_MAGIC && head.type != 0);
            int done = box_part_add(&part, &head, data + sizeof head);
            assert(part.body.len <= CEILING);
            if (done != 0)
                box_part_clear(&part);
        }
        data += n;
        size -= n;
    }
    box_part_clear(&part);
}

/* ---- the daemon's end ---- */

struct heard {
    size_t messages, ends;
};

static void on_msg(void *ud, struct wire_msg *m)
{
    struct heard *h = ud;
    h->messages++;
    assert(h->ends == 0 && m->n <= BOX_CLAIM_MAX);
    assert(m->n == 0 || m->data[m->n - 1] == m->data[m->n - 1]); /* its last byte is there to be read */
}

static void on_gone(void *ud, const char *why)
{
    struct heard *h = ud;
    assert(why && h->ends == 0);
    h->ends++;
}

static void send_datagram(int fd, const uint8_t *data, size_t n, bool with_fd)
{
    union {
        struct cmsghdr align;
        char buf[CMSG_SPACE(sizeof(int))];
    } control = { 0 };
    struct iovec io = { .iov_len = n };
    memcpy(&io.iov_base, &data, sizeof data);
    struct msghdr m = { .msg_iov = &io, .msg_iovlen = 1 };
    if (with_fd) {
        m.msg_control = control.buf;
        m.msg_controllen = sizeof control.buf;
        struct cmsghdr *c = CMSG_FIRSTHDR(&m);
        c->cmsg_level = SOL_SOCKET;
        c->cmsg_type = SCM_RIGHTS;
        c->cmsg_len = CMSG_LEN(sizeof(int));
        memcpy(CMSG_DATA(c), &(int){ STDERR_FILENO }, sizeof(int)); /* not one of the pair: it would keep itself open */
    }
    (void)sendmsg(fd, &m, MSG_DONTWAIT | MSG_NOSIGNAL);
}

/* Input as above, but that the highest bit of a length says: with a descriptor. */
static void on_the_wire(const uint8_t *data, size_t size)
{
    static const struct wire_events events = { .msg = on_msg, .gone = on_gone };
    struct err e;
    struct heard heard = { 0 };
    struct loop *l = NULL;
    int pair[2];
    if (loop_new(&l, NULL, NULL, &e) < 0 || socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
        abort();
    struct wire *w = wire_new(l, pair[0], &events, &heard);
    for (int i = 0; size > 0 && i < DATAGRAMS_MAX; i++) {
        const bool with_fd = data[0] & WITH_FD;
        size_t n = (size_t)(data[0] & ~WITH_FD) * 8;
        data++, size--;
        n = n < size ? n : size;
        send_datagram(pair[1], data, n, with_fd);
        if (loop_once(l, 0, &e) < 0)
            abort();
        data += n;
        size -= n;
    }
    (void)close(pair[1]);
    for (int i = 0; heard.ends == 0 && i < DATAGRAMS_MAX; i++)
        if (loop_once(l, 0, &e) < 0)
            abort();
    assert(heard.ends == 1);
    wire_free(w);
    (void)loop_once(l, 0, &e);
    loop_free(l);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    frames(data, size);
    on_the_wire(data, size);
    autofree char *text = xstrndup((const char *)data, size);
    autofree char *own = box_cgroup_own(text, "memory");
    autofree char *folder = box_cgroup_folder(text, "memory", own ? own : "/a");
    assert(!own || own[0] == '/');
    (void)box_cgroup_value(text, "oom_kill", 0);
    if (box_name_ok(text))
        assert(!strchr(text, '/') && strlen(text) <= BOX_NAME_MAX);
    return 0;
}
