/* matrix.c - the adapter's life. matrix.h says how its parts fit together. */
#include "matrix.h"
#include "log.h"

static bool wanted(const struct conf *conf)
{
    return *conf->matrix_user != '\0';
}

static void matrix_close(struct chat *c)
{
    if (!c)
        return;
    loop_cancel(c->loop, c->sync_timer);
    loop_cancel(c->loop, c->mark.timer);
    matrix_prune_stop(c);
    loop_cancel(c->loop, c->login.timer);
    loop_cancel(c->loop, c->login.refresh_timer);
    api_free(c->api); /* first: no callback into what is freed below */
    matrix_control_close(c);
    matrix_media_free(c);
    matrix_e2ee_close(c);
    if (c->inbox)
        matrix_inbox_close(c);
    if (c->outbox)
        matrix_outbox_close(c);
    matrix_rooms_free(c);
    matrix_login_clear(&c->login);
    json_free(c->direct);
    json_free(c->ignored);
    free(c->since);
    free(c->filter);
    free(c->display_name);
    free(c);
}

static int matrix_open(struct chat **out, const struct chat_home *home, const struct chat_events *ev, void *ud,
                       struct err *e)
{
    struct chat *c = xcalloc(1, sizeof(*c));
    bool found = false;
    *c = (struct chat){
        .loop = home->loop, .conf = home->conf, .store = home->store, .data_dir = home->data_dir, .ev = ev, .ud = ud
    };
    if (api_new(&c->api, c->loop, c->conf->matrix_plain, matrix_login_stale, c, e) < 0 ||
        matrix_login_load(c, &found, e) < 0 || matrix_rooms_load(c, e) < 0) {
        matrix_close(c);
        return -1;
    }
    matrix_inbox_open(c);
    matrix_outbox_open(c);
    matrix_control_open(c);
    matrix_login_start(c);
    *out = c;
    return 0;
}

const struct chat_ops chat_matrix = {
    .name = MATRIX_PLATFORM, .wanted = wanted, .open = matrix_open, .post = matrix_post, .close = matrix_close
};
