/* native_keeper.h - a keeper of the tests: the test program, started again by the adapter under test. What a session is told to
 * do is a little script of lines, sent as the cell's code; how the keeper begins is the name of the image folder. */
#ifndef NATIVE_KEEPER_H
#define NATIVE_KEEPER_H
#include <errno.h>
#include <signal.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>

#include "box_proto.h"
#include "json.h"
#include "str.h"

/* ---- the keeper ---- */

enum { KEEPER_SOCKET = 3, PAYLOAD_MAX = BOX_FRAME_MAX - (int)sizeof(struct box_frame) };

struct asked {
    struct box_frame h;
    struct str data;
    int fd;
};

static inline void k_die(const char *what)
{
    (void)fprintf(stderr, "test keeper: %s: %s\n", what, strerrordesc_np(errno));
    _exit(9);
}

static inline void k_frame(const struct box_frame *h, const char *data, int fd)
{
    char buf[BOX_FRAME_MAX], control[CMSG_SPACE(sizeof(int))] = { 0 };
    memcpy(buf, h, sizeof *h);
    memcpy(buf + sizeof *h, data, h->len);
    struct iovec io = { buf, sizeof *h + h->len };
    struct msghdr m = { .msg_iov = &io, .msg_iovlen = 1 };
    if (fd >= 0) {
        m.msg_control = control;
        m.msg_controllen = sizeof control;
        struct cmsghdr *c = CMSG_FIRSTHDR(&m);
        c->cmsg_level = SOL_SOCKET;
        c->cmsg_type = SCM_RIGHTS;
        c->cmsg_len = CMSG_LEN(sizeof(int));
        memcpy(CMSG_DATA(c), &fd, sizeof fd);
    }
    if (sendmsg(KEEPER_SOCKET, &m, MSG_NOSIGNAL) < 0)
        _exit(0); /* the daemon is gone: so are we */
}

static inline void k_send(uint8_t type, uint32_t session, uint32_t request, const char *data, size_t n, int fd)
{
    size_t at = 0;
    do {
        size_t k = n - at < PAYLOAD_MAX ? n - at : PAYLOAD_MAX;
        struct box_frame h = { BOX_MAGIC, BOX_VERSION, type, at + k < n ? BOX_MORE : 0, session, request, (uint32_t)k };
        k_frame(&h, data + at, fd);
        at += k;
        fd = -1;
    } while (at < n);
}

static inline void k_text(uint8_t type, const struct box_frame *to, const char *text)
{
    k_send(type, to->session, to->request, text, strlen(text), -1);
}

/* The next whole message; ends this process when the daemon hangs up. */
static inline struct asked k_receive(void)
{
    static char buf[BOX_FRAME_MAX];
    struct asked a = { .data = STR_INIT(16 << 20), .fd = -1 };
    do {
        char control[CMSG_SPACE(sizeof(int))];
        struct iovec io = { buf, sizeof buf };
        struct msghdr m = { .msg_iov = &io, .msg_iovlen = 1, .msg_control = control, .msg_controllen = sizeof control };
        ssize_t n = recvmsg(KEEPER_SOCKET, &m, MSG_CMSG_CLOEXEC);
        if (n <= 0)
            _exit(0);
        memcpy(&a.h, buf, sizeof a.h);
        if (a.h.magic != BOX_MAGIC || a.h.len != (size_t)n - sizeof a.h)
            k_die("bad frame of the daemon");
        struct cmsghdr *c = CMSG_FIRSTHDR(&m);
        if (c)
            memcpy(&a.fd, CMSG_DATA(c), sizeof a.fd);
        str_add(&a.data, buf + sizeof a.h, a.h.len);
    } while (a.h.flags & BOX_MORE);
    return a;
}

static inline void k_file(const struct box_frame *to, const char *path, const void *data, size_t n)
{
    int fd = memfd_create("file", MFD_CLOEXEC);
    if (fd < 0 || write_all(fd, data, n) < 0)
        k_die("memfd");
    autojson struct json *o = json_new_object();
    json_set_str(o, "path", path);
    json_set_int(o, "bytes", (int64_t)n);
    AUTO(str_clear) struct str s = STR_INIT(8192);
    json_print(&s, o);
    k_send(BOX_FILE, to->session, to->request, str_peek(&s), s.len, fd);
    (void)close(fd);
}

static inline void k_png(const struct box_frame *to, const char *path, unsigned w, unsigned h)
{
    unsigned char b[] = { 0x89, 'P', 'N', 'G', '\r', '\n', 0x1a, '\n', 0, 0, 0, 13, 'I',
                          'H',  'D', 'R', 0,   0,    0,    0,    0,    0, 0, 0, 8 };
    b[18] = (unsigned char)(w >> 8), b[19] = (unsigned char)w;
    b[22] = (unsigned char)(h >> 8), b[23] = (unsigned char)h;
    k_file(to, path, b, sizeof b);
}

static inline void k_filled(const struct box_frame *to, const char *path, size_t n)
{
    char *b = malloc(n);
    if (!b)
        k_die("malloc");
    memset(b, 'x', n);
    k_file(to, path, b, n);
    free(b);
}

static inline void k_output(const struct box_frame *to, int stream, const char *data, size_t n)
{
    char buf[PAYLOAD_MAX];
    for (size_t at = 0; at < n;) {
        size_t k = n - at < sizeof buf - 1 ? n - at : sizeof buf - 1;
        buf[0] = (char)stream;
        memcpy(buf + 1, data + at, k);
        k_send(BOX_OUTPUT, to->session, to->request, buf, k + 1, -1);
        at += k;
    }
}

/* Numbered lines, n bytes or a little more. */
static inline void k_flood(const struct box_frame *to, size_t n)
{
    AUTO(str_clear) struct str s = STR_INIT(n + 64);
    for (int i = 0; s.len < n; i++)
        str_printf(&s, "line %d \xc3\xa4\n", i);
    k_output(to, 1, str_peek(&s), s.len);
}

static inline void k_long_claim(const struct box_frame *to, size_t n)
{
    AUTO(str_clear) struct str s = STR_INIT(n + 128);
    str_puts(&s, "{\"status\":\"ok\",\"result\":{\"text/plain\":\"");
    for (size_t i = 0; i < n; i++)
        str_putc(&s, 'r');
    str_puts(&s, "\"}}");
    k_text(BOX_CLAIM, to, str_peek(&s));
}

/* What this process was given: environment, descriptors, arguments. */
extern char **environ;
static char k_args[4096];

static inline void k_self(const struct box_frame *to)
{
    int fds = 0, env = 0;
    for (int fd = 0; fd < 1024; fd++)
        fds += fcntl(fd, F_GETFD) >= 0;
    while (environ && environ[env])
        env++;
    AUTO(str_clear) struct str s = STR_INIT(8192);
    str_printf(&s, "fds %d env %d args%s\n", fds, env, k_args);
    k_output(to, 1, str_peek(&s), s.len);
}

static inline const char *word_after(const char *line, const char *verb)
{
    size_t n = strlen(verb);
    return strncmp(line, verb, n) == 0 && line[n] == ' ' ? line + n + 1 : NULL;
}

static inline void k_await(uint8_t type)
{
    struct asked a = k_receive();
    if (a.h.type != type)
        k_die("another frame was awaited");
    str_clear(&a.data);
}

static inline void k_make(const struct box_frame *to, const char *line)
{
    char path[512] = "";
    unsigned a = 0, b = 0;
    int at = 0;
    if (sscanf(line, "png %511s %u %u", path, &a, &b) == 3)
        k_png(to, path, a, b);
    else if (sscanf(line, "big %511s %u", path, &a) == 2)
        k_filled(to, path, a);
    else if (sscanf(line, "file %511s %n", path, &at) == 1)
        k_file(to, path, line + at, strlen(line + at));
}

static inline void k_break(const struct box_frame *to, const char *line)
{
    struct box_frame bad = { 0x12345678, BOX_VERSION, BOX_OUTPUT, 0, to->session, to->request, 0 };
    if (strcmp(line, "magic") == 0)
        k_frame(&bad, "", -1);
    if (strcmp(line, "odd") == 0)
        k_send(77, to->session, to->request, "", 0, -1);
    if (word_after(line, "exit"))
        _exit(7);
    if (strcmp(line, "abort") == 0) {
        (void)signal(SIGABRT, SIG_DFL);
        abort();
    }
}

static inline void k_line(const struct box_frame *to, const char *line)
{
    const char *w;
    if ((w = word_after(line, "out")))
        k_output(to, 1, w, strlen(w));
    else if ((w = word_after(line, "err")))
        k_output(to, 2, w, strlen(w));
    else if ((w = word_after(line, "flood")))
        k_flood(to, strtoul(w, NULL, 10));
    else if ((w = word_after(line, "claim")))
        k_text(BOX_CLAIM, to, w);
    else if ((w = word_after(line, "longclaim")))
        k_long_claim(to, strtoul(w, NULL, 10));
    else if ((w = word_after(line, "done")))
        k_text(BOX_DONE, to, w);
    else if (strcmp(line, "cut") == 0) /* a character in two frames */
        k_output(to, 1, "\xe2\x82", 2), k_output(to, 1, "\xac\n", 2);
    else if (strcmp(line, "self") == 0)
        k_self(to);
    else if (strcmp(line, "await-cancel") == 0)
        k_await(BOX_CANCEL);
    else
        k_make(to, line), k_break(to, line);
}

static inline void k_cell(const struct asked *a)
{
    struct err e = { 0 };
    autojson struct json *o = NULL;
    const char *code = NULL;
    if (json_parse(&o, a->data.buf, a->data.len, 16 << 20, &e) < 0 || json_str(o, "code", &code, &e) < 0)
        k_die("cell without code");
    autofree char *copy = xstrdup(code);
    char *rest = copy;
    for (char *line; (line = strsep(&rest, "\n"));)
        k_line(&a->h, line);
}

static inline void k_put(const struct asked *a)
{
    char buf[64] = "", claim[256];
    if (a->fd < 0 || pread(a->fd, buf, sizeof buf - 1, 0) < 0)
        k_die("put without a file");
    (void)close(a->fd);
    (void)snprintf(claim, sizeof claim, "{\"status\":\"ok\",\"content\":\"%s\"}", buf);
    k_text(BOX_CLAIM, &a->h, claim);
    k_text(BOX_DONE, &a->h, "{\"verdict\":\"ok\",\"state\":\"kept\"}");
}

static inline void k_call(const struct asked *a)
{
    const char *text = str_peek(&a->data);
    const char *verdict =
        strstr(text, "bomb") ? "{\"verdict\":\"oom\",\"state\":\"kept\",\"why\":\"too big\"}" : "{\"verdict\":\"ok\"}";
    if (strstr(text, "broken.csv"))
        k_text(BOX_CLAIM, &a->h, "{\"status\":\"error\",\"error\":{\"name\":\"ValueError\",\"value\":\"no table\"}}");
    else if (!strstr(text, "bomb"))
        k_text(BOX_CLAIM, &a->h,
               strstr(text, "intake") ? "{\"status\":\"ok\",\"profiles\":[{\"name\":\"a\"}]}"
                                      : "{\"status\":\"ok\",\"vars\":[]}");
    k_text(BOX_DONE, &a->h, verdict);
}

static inline void k_check(const struct asked *a)
{
    k_text(BOX_NOTE, &a->h, "{\"name\":\"escape\",\"outcome\":\"pass\",\"detail\":\"none\"}");
    k_text(BOX_NOTE, &a->h, "{\"name\":\"network\",\"outcome\":\"skip\",\"detail\":\"\"}");
    k_text(BOX_DONE, &a->h, "{\"verdict\":\"ok\"}");
}

static inline void k_serve(const struct asked *a, const char *how)
{
    switch (a->h.type) {
    case BOX_OPEN:
        if (strcmp(how, "slow-open") == 0)
            k_await(BOX_CLOSE);
        k_text(BOX_DONE, &a->h,
               strcmp(how, "no-open") == 0 ? "{\"verdict\":\"failed\",\"why\":\"no cgroup\"}" : "{\"verdict\":\"ok\"}");
        break;
    case BOX_POOL: break;
    case BOX_CELL: k_cell(a); break;
    case BOX_PUT: k_put(a); break;
    case BOX_CALL: k_call(a); break;
    case BOX_CHECK: k_check(a); break;
    case BOX_RESET: k_text(BOX_DONE, &a->h, "{\"verdict\":\"ok\",\"state\":\"lost\"}"); break;
    case BOX_CLOSE: k_text(BOX_DONE, &a->h, "{\"verdict\":\"ok\"}"); break;
    default: k_die("unknown frame");
    }
}

static inline int keeper(int argc, char **argv)
{
    static const struct box_frame nobody = { 0 };
    const char *how = strrchr(argv[2], '/') + 1;
    size_t n = 0;
    for (int i = 3; i < argc && n < sizeof k_args; i++)
        n += (size_t)snprintf(k_args + n, sizeof k_args - n, " %s", argv[i][0] == '/' ? "PATH" : argv[i]);
    if (strcmp(how, "dies") == 0)
        return 3;
    if (strcmp(how, "refuses") == 0)
        k_text(BOX_READY, &nobody,
               "{\"tier\":\"T3\",\"problems\":[{\"what\":\"no user namespaces\",\"fix\":\"sysctl x\"}]}");
    else if (strcmp(how, "silent") != 0)
        k_text(BOX_READY, &nobody, "{\"tier\":\"T0\",\"features\":{},\"problems\":[]}");
    for (;;) {
        struct asked a = k_receive();
        k_serve(&a, how);
        str_clear(&a.data);
    }
}
#endif
