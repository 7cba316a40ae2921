/* slack_stream.c - how a turn is doing as a stream: each step a line that is ticked off, and the model's words as they come. Off unless
 * it is asked for.
 *
 * The answer itself never depends on a stream: Slack ends them after about five minutes, whatever happens in them, and what was to be
 * said then would be lost. So a stream is begun anew before that, it is taken away at the end, and the answer is a message of its own:
 * it has tables, a receipt and marks at what no output supports, which the words on their way have not. */
#include <stdio.h>
#include <string.h>
#include "slack_status_private.h"
#include "slack_text.h"

enum {
    WORDS_MAX = 10000, /* bytes in one stream; Slack takes 12,000 characters */
    PIECE_MAX = 3000,  /* in one call */
    LIFE_MS = 240000,
    LATCH_MS = 3600000, /* a workspace that has no streams is asked again after that, */
    PAUSE_MS = 60000,   /* and one that had none at the moment after that */
    TITLE_BYTES = 250,
};

bool stream_is_wanted(const struct slack_status *s)
{
    return s->o->conf->slack_streaming && s->place.root && s->place.team->no_stream_until_ms <= time_unix_ms();
}

/* ---- steps ---- */

/* How much of a line names its step: not the seconds behind the last comma. */
static size_t name_n(const char *line)
{
    const char *comma = strrchr(line, ','), *wide = strstr(line, "，");
    const char *end = wide ? wide : comma;
    return end ? (size_t)(end - line) : strlen(line);
}

static bool is_same_step(const char *a, const char *b)
{
    return a && name_n(a) == name_n(b) && strncmp(a, b, name_n(a)) == 0;
}

static struct json *step_json(int step, const char *title, const char *status)
{
    struct json *o = json_new_object();
    char id[16];
    autofree char *cut = xstrndup(title, utf8_cut(title, strlen(title), TITLE_BYTES));
    (void)snprintf(id, sizeof(id), "%d", step);
    json_set_str(o, "type", "task_update");
    json_set_str(o, "id", id);
    json_set_str(o, "title", cut);
    json_set_str(o, "status", status);
    return o;
}

/* ---- words ---- */

void stream_take_draft(struct slack_status *s, const char *draft)
{
    const size_t shown = s->said + s->saying;
    if (!draft || !s->draft || strncmp(draft, s->draft, shown) != 0)
        s->said = s->saying = 0;
    free(s->draft);
    s->draft = draft ? xstrdup(draft) : NULL;
}

/* Behind what is shown. */
static size_t piece_of(const struct slack_status *s)
{
    const size_t ready = s->draft ? slack_text_ready(s->draft, strlen(s->draft)) : 0;
    if (ready <= s->said || s->streamed + PIECE_MAX > WORDS_MAX)
        return 0; /* the rest is seen in the answer */
    const char *rest = s->draft + s->said;
    const size_t cut = utf8_cut(rest, ready - s->said, PIECE_MAX);
    return cut < ready - s->said ? slack_text_ready(rest, cut) : cut;
}

bool stream_has_words(const struct slack_status *s)
{
    return s->stream && piece_of(s) > 0;
}

static void add_words(struct slack_status *s, struct json *chunks)
{
    AUTO(str_clear) struct str text = STR_INIT((size_t)8 * PIECE_MAX);
    const size_t n = piece_of(s);
    if (n == 0)
        return;
    if (s->said == 0 && s->streamed > 0)
        str_puts(&text, "\n\n");
    slack_text_defuse(&text, s->draft + s->said, n);
    struct json *o = json_new_object();
    json_set_str(o, "type", "markdown_text");
    json_set_str(o, "text", str_peek(&text));
    json_push(chunks, o);
    s->saying = n;
}

static void words_are_shown(struct slack_status *s)
{
    s->said += s->saying;
    s->streamed += s->saying;
    s->saying = 0;
}

static void call(struct slack_status *s, const char *method, struct json *take_chunks, slack_reply_fn *fn)
{
    AUTO(str_clear) struct str form = STR_INIT(SLACK_FORM_MAX);
    autojson struct json *chunks = take_chunks;
    slack_form_add(&form, "channel", s->place.channel);
    slack_form_add(&form, "ts", s->ts);
    if (chunks)
        slack_form_add_json(&form, "chunks", chunks);
    const struct slack_request r = { .method = method, .team = s->place.team, .form = &form, .tries = 2 };
    s->call = slack_api_start(s->o->c.api, &r, fn, s);
}

/* ---- the end, and a new beginning ---- */

/* Gone, or never to be: with words still wanted, they are shown anew. */
static void on_taken_away(void *ud, const struct slack_reply *r)
{
    struct slack_status *s = ud;
    s->call = NULL;
    if (r->err && err_retryable(r->err)) {
        status_later(s, 3000);
        return;
    }
    free(s->ts);
    free(s->shown);
    s->ts = s->shown = NULL;
    s->stream = false;
    s->said = s->saying = s->streamed = 0;
    s->changed_ms = 0;
    status_keep(s);
    status_work(s);
}

static void on_stopped(void *ud, const struct slack_reply *r)
{
    struct slack_status *s = ud;
    (void)r; /* it may have ended by itself: then only its message is left */
    call(s, "chat.delete", NULL, on_taken_away);
}

static void take_away(struct slack_status *s)
{
    call(s, "chat.stopStream", NULL, on_stopped);
}

int64_t stream_left_ms(const struct slack_status *s)
{
    const int64_t left = s->stream_ms + LIFE_MS - loop_now_ms(s->o->loop);
    return left > 0 ? left : 0;
}

void stream_hold(struct slack_status *s)
{
    if (stream_left_ms(s))
        status_later(s, stream_left_ms(s));
    else
        take_away(s);
}

/* ---- going on ---- */

static void on_appended(void *ud, const struct slack_reply *r)
{
    struct slack_status *s = ud;
    s->call = NULL;
    if (r->error && strcmp(r->error, "stopped_by_user") == 0) { /* the event for it comes by itself */
        free(s->wanted);
        s->wanted = xstrdup("");
        take_away(s);
    } else if (r->err && !err_retryable(r->err)) {
        take_away(s);
    } else {
        if (!r->err || r->uncertain) /* once too few is better than twice */
            words_are_shown(s);
        s->saying = 0;
        status_work(s);
    }
}

void stream_show(struct slack_status *s)
{
    struct json *chunks = NULL;
    if (!*s->wanted) {
        take_away(s);
        return;
    }
    chunks = json_new_array();
    if (!is_same_step(s->shown, s->wanted))
        json_push(chunks, step_json(s->step++, s->shown ? s->shown : s->wanted, "complete"));
    if (!s->shown || strcmp(s->shown, s->wanted) != 0)
        json_push(chunks, step_json(s->step, s->wanted, "in_progress"));
    add_words(s, chunks);
    status_changed(s, xstrdup(s->wanted));
    call(s, "chat.appendStream", chunks, on_appended);
}

/* ---- the beginning ---- */

static void on_begun(void *ud, const struct slack_reply *r)
{
    struct slack_status *s = ud;
    const char *ts = json_str_or(r->body, "ts", NULL);
    s->call = NULL;
    if (r->err || !ts) {
        s->place.team->no_stream_until_ms = time_unix_ms() + (slack_lacks_feature(r) ? LATCH_MS : PAUSE_MS);
        free(s->shown);
        s->shown = NULL;
        s->changed_ms = 0;
    } else {
        free(s->ts);
        s->ts = xstrdup(ts);
        s->stream = true;
        s->stream_ms = loop_now_ms(s->o->loop);
        words_are_shown(s);
        status_keep(s);
    }
    s->saying = 0;
    status_work(s);
}

void stream_begin(struct slack_status *s)
{
    AUTO(str_clear) struct str form = STR_INIT(SLACK_FORM_MAX);
    autojson struct json *chunks = json_new_array();
    autofree char *workspace = xstrndup(s->room, strcspn(s->room, "/"));
    const char *user = NULL;
    (void)slack_inbox_asked(s->o->c.inbox, s->thread ? s->thread : "", &user);
    s->step = 1;
    json_push(chunks, step_json(s->step, s->wanted, "in_progress"));
    add_words(s, chunks);
    slack_form_add(&form, "channel", s->place.channel);
    slack_form_add(&form, "thread_ts", s->place.root);
    if (*s->place.channel != 'D' && user) {
        slack_form_add(&form, "recipient_user_id", user);
        slack_form_add(&form, "recipient_team_id", workspace);
    }
    slack_form_add(&form, "task_display_mode", "timeline");
    slack_form_add_json(&form, "chunks", chunks);
    status_keep(s);
    status_changed(s, xstrdup(s->wanted));
    const struct slack_request r = {
        .method = "chat.startStream", .team = s->place.team, .channel = s->place.channel, .form = &form, .tries = 2
    };
    s->call = slack_api_start(s->o->c.api, &r, on_begun, s);
}
