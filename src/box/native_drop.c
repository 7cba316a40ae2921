/* native_drop.c - files that are taken out of a box, whatever runs in it: BOX_DROP. What is asked for before the box is open waits for
 * that; the keeper takes frames in order, so the last answer speaks for all. */
#include <string.h>

#include "../../sandbox/box_proto.h"
#include "log.h"
#include "native.h"

enum { FRAME_PATHS_MAX = 48 << 10 }; /* bytes of JSON, well within a frame */

void box_drop_forget(struct box *b)
{
    for (size_t i = 0; i < b->drop.n; i++)
        free(b->drop.paths[i]);
    free(b->drop.paths);
    b->drop.paths = NULL;
    b->drop.n = b->drop.cap = 0;
    b->drop.asked = 0;
}

static void finished(struct box *b)
{
    box_drop_forget(b);
    if (b->drop.done)
        b->drop.done(b->drop.ud);
}

/* As many from the i-th on as fit; how many that were. */
static size_t fill(struct str *out, const struct box *b, size_t i)
{
    autojson struct json *o = json_new_object();
    struct json *paths = json_new_array();
    size_t n = 0;
    for (size_t bytes = 0; i + n < b->drop.n; n++) {
        bytes += 2 * strlen(b->drop.paths[i + n]) + 4; /* no control characters: a quote is the worst */
        if (n > 0 && bytes > FRAME_PATHS_MAX)
            break;
        json_push(paths, json_new_string(b->drop.paths[i + n]));
    }
    json_set(o, "paths", paths);
    json_print(out, o);
    return n;
}

void box_drop_send(struct box *b)
{
    struct err e = { 0 };
    for (size_t i = 0, n = 0; i < b->drop.n; i += n) {
        AUTO(str_clear) struct str payload = STR_INIT(BOX_FRAME_MAX);
        n = fill(&payload, b, i);
        const struct wire_msg m = { BOX_DROP, b->session, ++b->s->last_request, str_peek(&payload), payload.len, -1 };
        if (wire_send(b->s->wire, &m, &e) < 0) { /* what is left there goes with the box */
            log_warn("files_not_dropped", KV_I("box", b->session), KV_E(&e));
            return;
        }
        b->drop.asked = m.request;
    }
    const uint32_t asked = b->drop.asked;
    box_drop_forget(b);
    b->drop.asked = asked;
}

void box_drop_answered(struct box *b)
{
    if (b->drop.n > 0) /* there is more by now */
        b->drop.asked = 0;
    else
        finished(b);
}

void native_drop(struct box *b, const char *const *paths, size_t n, void (*done)(void *ud), void *ud)
{
    b->drop.done = done;
    b->drop.ud = ud;
    for (size_t i = 0; i < n; i++) {
        if (!delivery_path_ok(paths[i]))
            continue;
        b->drop.paths = xgrow(b->drop.paths, &b->drop.cap, b->drop.n + 1, sizeof *b->drop.paths);
        b->drop.paths[b->drop.n++] = xstrdup(paths[i]);
    }
    if (b->life == LIFE_NONE || (b->drop.n == 0 && !b->drop.asked))
        finished(b); /* there is nobody to open them */
    else if (b->life == LIFE_OPEN)
        box_drop_send(b);
}
