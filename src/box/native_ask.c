/* native_ask.c - a request of the port becomes a frame of sandbox/box_proto.h. */
#include <string.h>

#include "../../sandbox/box_proto.h"
#include "native.h"

enum {
    GRACE_MIN_MS = 500, /* between the interrupt and the kill: a quarter of the limit, within these */
    GRACE_MAX_MS = 2000,
    PAYLOAD_MAX = 8 * BOX_CODE_MAX,
};

static void set_payload(struct request *to, uint8_t type, const struct json *o)
{
    AUTO(str_clear) struct str s = STR_INIT(PAYLOAD_MAX);
    if (o)
        json_print(&s, o);
    to->type = type;
    to->payload_n = s.len;
    to->payload = str_take(&s);
}

static int code_text(char **out, const struct box_request *r, struct err *e)
{
    if (r->text_n > BOX_CODE_MAX)
        return err_set(e, ERR_DATA, "the code is longer than %d bytes", BOX_CODE_MAX);
    if (!r->text || !utf8_valid(r->text, r->text_n))
        return err_set(e, ERR_DATA, "the code is not valid UTF-8");
    *out = xstrndup(r->text, r->text_n);
    return 0;
}

static int64_t grace_ms(int64_t timeout_ms)
{
    int64_t quarter = timeout_ms / 4;
    return quarter < GRACE_MIN_MS ? GRACE_MIN_MS : quarter > GRACE_MAX_MS ? GRACE_MAX_MS : quarter;
}

static int cell_frame(struct request *to, const struct box_request *r, struct err *e)
{
    autofree char *code = NULL;
    if (code_text(&code, r, e) < 0)
        return -1;
    autojson struct json *o = json_new_object();
    json_set_str(o, "code", code);
    json_set_int(o, "number", r->number);
    json_set_int(o, "timeout_ms", to->timeout_ms);
    json_set_int(o, "grace_ms", grace_ms(to->timeout_ms));
    json_set_str(o, "audit", to->audit);
    set_payload(to, BOX_CELL, o);
    return 0;
}

static int name_ok(const struct box_request *r, struct err *e)
{
    if (!r->name || !delivery_path_ok(r->name))
        return err_set(e, ERR_DATA, "a file cannot have that name in the box");
    return 0;
}

static int put_frame(struct request *to, const struct box_request *r, struct err *e)
{
    if (name_ok(r, e) < 0)
        return -1;
    if (r->fd < 0)
        return err_set(e, ERR_DATA, "no descriptor of %s", r->name);
    autojson struct json *o = json_new_object();
    json_set_str(o, "name", r->name);
    set_payload(to, BOX_PUT, o);
    return 0;
}

static void call_frame(struct request *to, const char *op, const char *name)
{
    autojson struct json *o = json_new_object();
    json_set_str(o, "op", op);
    if (name)
        json_set_str(o, "name", name);
    json_set_int(o, "timeout_ms", to->timeout_ms);
    json_set_int(o, "grace_ms", grace_ms(to->timeout_ms));
    set_payload(to, BOX_CALL, o);
}

static int back_frame(struct request *to, const struct box_request *r, struct err *e)
{
    if (r->number < 0)
        return err_set(e, ERR_DATA, "there is no cell %d", r->number);
    autojson struct json *o = json_new_object();
    if (r->number > 0 || r->op == BOX_OP_BRANCH) /* undo without a number: the state before the last cell */
        json_set_int(o, "cell", r->number);
    set_payload(to, BOX_BACK, o);
    return 0;
}

/* What takes the head too long it leaves out by itself, well before the keeper would interrupt it. */
static int64_t budget_ms(int64_t timeout_ms)
{
    return timeout_ms - timeout_ms / 4;
}

static int checkpoint_frame(struct request *to, const struct box_request *r, struct err *e)
{
    const bool out = r->op == BOX_OP_CHECKPOINT;
    if (r->number < 0 || r->from < 0 || r->bytes < 0 || (!out && r->fd < 0))
        return err_set(e, ERR_DATA, "not a checkpoint");
    autojson struct json *o = json_new_object();
    json_set_str(o, "op", out ? "checkpoint" : "restore");
    if (out && r->max_bytes > 0) {
        json_set_int(o, "variable_max", r->max_bytes);
        json_set_int(o, "total_max", r->max_bytes);
    } else if (!out) {
        json_set_int(o, "from", r->from);
        json_set_int(o, "bytes", r->bytes);
        json_set_int(o, "number", r->number);
    }
    json_set_int(o, "budget_ms", budget_ms(to->timeout_ms));
    json_set_int(o, "timeout_ms", to->timeout_ms);
    json_set_int(o, "grace_ms", grace_ms(to->timeout_ms));
    set_payload(to, out ? BOX_CHECKPOINT : BOX_RESTORE, o);
    return 0;
}

char *pin_payload(int cell, bool pinned)
{
    AUTO(str_clear) struct str s = STR_INIT(PAYLOAD_MAX);
    autojson struct json *o = json_new_object();
    json_set_int(o, "cell", cell);
    json_set_bool(o, "pinned", pinned);
    json_print(&s, o);
    return str_take(&s);
}

int request_frame(struct request *to, const struct box_request *r, struct err *e)
{
    switch (r->op) {
    case BOX_OP_CELL: return cell_frame(to, r, e);
    case BOX_OP_PUT: return put_frame(to, r, e);
    case BOX_OP_INTAKE:
        if (name_ok(r, e) < 0)
            return -1;
        call_frame(to, "intake", r->name);
        return 0;
    case BOX_OP_VARS: call_frame(to, "vars", NULL); return 0;
    case BOX_OP_RESET: set_payload(to, BOX_RESET, NULL); return 0;
    case BOX_OP_UNDO:
    case BOX_OP_BRANCH: return back_frame(to, r, e);
    case BOX_OP_CHECKPOINT:
    case BOX_OP_RESTORE: return checkpoint_frame(to, r, e);
    }
    return err_set(e, ERR_DATA, "unknown request");
}
