/* ws_frames.c - bytes to messages and back. wslay checks what RFC 6455 demands: reserved bits, masks, opcodes, fragments,
 * control frames, UTF-8, lengths.
 *
 * Trust boundary: every byte fed comes from the network. */
#include <sys/random.h>

#include <wslay/wslay.h>
#include "ws_private.h"

enum {
    OUT_MAX = 4 << 20,
    QUEUED_MAX = 1024, /* frames: a peer that floods us with pings and reads nothing is cut off */
    CODE_MIN = 1000,
};

struct ws_frames {
    wslay_event_context_ptr ctx;
    struct ws_frames_events ev;
    void *ud;
    const uint8_t *in;
    size_t in_n;
    struct str out;
    int closed;
};

static ssize_t on_recv(wslay_event_context_ptr ctx, uint8_t *buf, size_t n, int flags, void *ud)
{
    struct ws_frames *f = ud;
    (void)flags;
    if (!f->in_n) {
        wslay_event_set_error(ctx, WSLAY_ERR_WOULDBLOCK);
        return -1;
    }
    n = n < f->in_n ? n : f->in_n;
    memcpy(buf, f->in, n);
    f->in += n;
    f->in_n -= n;
    return (ssize_t)n;
}

static ssize_t on_send(wslay_event_context_ptr ctx, const uint8_t *data, size_t n, int flags, void *ud)
{
    struct ws_frames *f = ud;
    (void)flags;
    if (f->out.len + n > OUT_MAX) {
        wslay_event_set_error(ctx, WSLAY_ERR_WOULDBLOCK);
        return -1;
    }
    str_add(&f->out, data, n);
    return (ssize_t)n;
}

static int on_mask(wslay_event_context_ptr ctx, uint8_t *buf, size_t n, void *ud)
{
    (void)ud;
    if (getrandom(buf, n, 0) == (ssize_t)n)
        return 0;
    wslay_event_set_error(ctx, WSLAY_ERR_CALLBACK_FAILURE);
    return -1;
}

static void on_message(wslay_event_context_ptr ctx, const struct wslay_event_on_msg_recv_arg *arg, void *ud)
{
    struct ws_frames *f = ud;
    (void)ctx;
    if (arg->opcode == WSLAY_TEXT_FRAME) {
        autofree char *text = xcalloc(1, arg->msg_length + 1);
        if (arg->msg_length)
            memcpy(text, arg->msg, arg->msg_length);
        f->ev.message(f->ud, text, arg->msg_length);
    } else if (arg->opcode == WSLAY_PONG) {
        f->ev.pong(f->ud, (const char *)arg->msg, arg->msg_length);
    } else if (arg->opcode == WSLAY_CONNECTION_CLOSE) {
        f->closed = arg->status_code >= CODE_MIN ? arg->status_code : WS_NO_CODE;
    }
}

struct ws_frames *ws_frames_new(size_t max_bytes, const struct ws_frames_events *ev, void *ud)
{
    static const struct wslay_event_callbacks callbacks = {
        .recv_callback = on_recv,
        .send_callback = on_send,
        .genmask_callback = on_mask,
        .on_msg_recv_callback = on_message,
    };
    struct ws_frames *f = xcalloc(1, sizeof(*f));
    *f = (struct ws_frames){ .ev = *ev, .ud = ud, .out = STR_INIT(OUT_MAX) };
    if (wslay_event_context_client_init(&f->ctx, &callbacks, f) != 0)
        abort();
    wslay_event_config_set_max_recv_msg_length(f->ctx, max_bytes);
    return f;
}

void ws_frames_free(struct ws_frames *f)
{
    if (!f)
        return;
    wslay_event_context_free(f->ctx);
    str_clear(&f->out);
    free(f);
}

int ws_frames_feed(struct ws_frames *f, const char *data, size_t n, struct err *e)
{
    f->in = (const uint8_t *)data;
    f->in_n = n;
    while (f->in_n && !f->closed) {
        const int rc = wslay_event_recv(f->ctx);
        if (rc == WSLAY_ERR_NOMEM)
            abort();
        if (rc != 0)
            return err_set(e, ERR_DATA, "frames could not be read (%d)", rc);
        if (!f->closed && !wslay_event_get_read_enabled(f->ctx))
            return err_set(e, ERR_DATA, "the server's frames break the protocol (%u)",
                           (unsigned)wslay_event_get_status_code_sent(f->ctx));
        if (wslay_event_get_queued_msg_count(f->ctx) > QUEUED_MAX)
            return err_set(e, ERR_DATA, "the server floods us with pings");
    }
    return 0;
}

static int queue(struct ws_frames *f, uint8_t opcode, const char *data, size_t n)
{
    const struct wslay_event_msg msg = { .opcode = opcode, .msg = (const uint8_t *)data, .msg_length = n };
    return wslay_event_queue_msg(f->ctx, &msg);
}

int ws_frames_text(struct ws_frames *f, const char *text, size_t n, struct err *e)
{
    if (wslay_event_get_queued_msg_count(f->ctx) > QUEUED_MAX / 2)
        (void)wslay_event_send(f->ctx); /* as bytes they take less room, and count against OUT_MAX only */
    if (wslay_event_get_queued_msg_count(f->ctx) > QUEUED_MAX)
        return err_set(e, ERR_LIMIT, "the server takes nothing");
    return queue(f, WSLAY_TEXT_FRAME, text, n) == 0 ? 0 : err_set(e, ERR_NET, "the link is closing");
}

void ws_frames_ping(struct ws_frames *f, const char *data, size_t n)
{
    (void)queue(f, WSLAY_PING, data, n);
}

void ws_frames_close(struct ws_frames *f, int code)
{
    (void)wslay_event_queue_close(f->ctx, (uint16_t)code, NULL, 0);
}

const struct str *ws_frames_out(struct ws_frames *f)
{
    if (wslay_event_want_write(f->ctx))
        (void)wslay_event_send(f->ctx);
    return &f->out;
}

void ws_frames_sent(struct ws_frames *f, size_t n)
{
    str_drop(&f->out, n);
}

int ws_frames_closed(const struct ws_frames *f)
{
    return f->closed;
}
