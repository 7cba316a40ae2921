/* notify.c - see notify.h. */
#include "notify.h"
#include <errno.h>
#include <sys/socket.h>
#include <sys/un.h>
#include "log.h"
#include "loop.h"

struct notify {
    struct loop *l;
    int fd; /* -1: nobody listens */
    struct sockaddr_un to;
    socklen_t to_n;
    int64_t every_ms; /* 0: no watchdog */
    loop_timer timer;
};

static void say(struct notify *n, const char *text)
{
    if (n->fd >= 0 &&
        sendto(n->fd, text, strlen(text), MSG_NOSIGNAL | MSG_DONTWAIT, (struct sockaddr *)&n->to, n->to_n) < 0)
        log_warn("systemd_not_told", KV_S("what", text), KV_S("why", strerrorname_np(errno)));
}

/* A path, or "@name" in the abstract space. */
static void find_socket(struct notify *n, const char *path)
{
    const size_t size = path ? strlen(path) : 0;
    if (size < 2 || size >= sizeof(n->to.sun_path) || (*path != '/' && *path != '@'))
        return;
    n->to.sun_family = AF_UNIX;
    memcpy(n->to.sun_path, path, size);
    if (*path == '@')
        n->to.sun_path[0] = '\0';
    n->to_n = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + size + (*path == '/'));
    n->fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
}

/* Twice in the time after which it would be killed. */
static int64_t watchdog_ms(void)
{
    const char *us = getenv("WATCHDOG_USEC"), *pid = getenv("WATCHDOG_PID");
    if (!us || (pid && strtol(pid, NULL, 10) != (long)getpid()))
        return 0;
    const int64_t ms = strtoll(us, NULL, 10) / 2000;
    return ms > 0 && ms < INT32_MAX ? ms : 0;
}

struct notify *notify_open(struct loop *l)
{
    struct notify *n = xcalloc(1, sizeof(*n));
    *n = (struct notify){ .l = l, .fd = -1, .every_ms = watchdog_ms() };
    find_socket(n, getenv("NOTIFY_SOCKET"));
    (void)unsetenv("NOTIFY_SOCKET");
    (void)unsetenv("WATCHDOG_USEC");
    (void)unsetenv("WATCHDOG_PID");
    return n;
}

static void feed(void *ud)
{
    struct notify *n = ud;
    say(n, "WATCHDOG=1");
    n->timer = loop_after(n->l, n->every_ms, feed, n);
}

void notify_ready(struct notify *n, const char *status)
{
    autofree char *text = xasprintf("READY=1\nSTATUS=%s", status);
    say(n, text);
    if (n->fd >= 0 && n->every_ms > 0 && !n->timer)
        feed(n);
}

void notify_stopping(struct notify *n, const char *status)
{
    autofree char *text = xasprintf("STOPPING=1\nSTATUS=%s", status);
    say(n, text);
}

void notify_close(struct notify *n)
{
    if (!n)
        return;
    loop_cancel(n->l, n->timer);
    if (n->fd >= 0)
        (void)close(n->fd);
    free(n);
}
