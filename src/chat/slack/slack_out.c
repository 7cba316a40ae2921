#include "slack_out.h"
#include <stdio.h>
#include <string.h>
#include "slack_out_private.h"
#include "slack_text.h"

enum { ROW_MAX = 1 << 20, NOTE_BYTES = 700 };

/* ---- places ---- */

static struct kept row(const char *kind, const char *key)
{
    return (struct kept){ .platform = "slack", .kind = kind, .key = key };
}

void slack_place_clear(struct place *p)
{
    free(p->room);
    free(p->channel);
    free(p->root);
    *p = (struct place){ 0 };
}

bool place_of(struct slack_out *o, const char *room, const char *thread, struct place *out)
{
    const char *last = thread ? strrchr(thread, '/') : NULL;
    char *channel = NULL;
    *out = (struct place){ .team = slack_inbox_place(o->c.inbox, room, &channel) };
    if (!out->team)
        return false;
    out->room = xstrdup(room);
    out->channel = channel;
    out->root = thread ? xstrdup(last ? last + 1 : thread) : NULL;
    return true;
}

/* ---- jobs ---- */

static void files_free(struct upload_file *f, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        free(f[i].path);
        free(f[i].text);
        free(f[i].name);
        free(f[i].title);
        free(f[i].alt);
    }
    free(f);
}

static void job_free(struct job *j)
{
    struct job **at = &j->o->jobs;
    while (*at && *at != j)
        at = &(*at)->next;
    if (*at)
        *at = j->next;
    slack_api_cancel(j->call);
    upload_cancel(j->upload);
    loop_cancel(j->o->loop, j->timer);
    files_free(j->figures, j->figure_n);
    files_free(j->files, j->file_n);
    slack_layout_clear(&j->layout);
    slack_place_clear(&j->place);
    json_free(j->sent);
    free(j->txn);
    free(j->amends);
    free(j->room);
    free(j->thread);
    free(j->markdown);
    free(j->receipt);
    free(j);
}

static bool same_place(const struct job *a, const struct job *b)
{
    return strcmp(a->room, b->room) == 0 && strcmp(a->thread ? a->thread : "", b->thread ? b->thread : "") == 0;
}

static void run(void *ud);

/* In a thread one after the other. */
static void wake(struct slack_out *o)
{
    for (struct job *j = o->jobs; o->begun && j; j = j->next) {
        bool first = !j->running && !j->timer;
        for (const struct job *k = o->jobs; k != j; k = k->next)
            first = first && !same_place(k, j);
        if (first)
            j->timer = loop_after(o->loop, 0, run, j);
    }
}

static void job_end(struct job *j, const struct err *e)
{
    struct slack_out *o = j->o;
    void (*done)(void *ud, const struct err *e) = j->done;
    void *ud = j->ud;
    job_free(j);
    if (done)
        done(ud, e);
    wake(o);
}

void job_fail(struct job *j, const struct err *e)
{
    job_end(j, e);
}

/* ---- its row ---- */

const struct json *job_part(const struct job *j, const char *part)
{
    return json_get(json_get(j->sent, "parts"), part);
}

static int keep_ours(struct job *j, const char *ts, struct err *e)
{
    autofree char *key = xasprintf("%s/%s", j->place.room, ts);
    AUTO(str_clear) struct str text = STR_INIT(4096);
    autojson struct json *o = json_new_object();
    json_set_int(o, "at", time_unix_ms());
    json_set_str(o, "root", j->place.root ? j->place.root : ts);
    json_print(&text, o);
    const struct kept k = row("ours", key);
    return store_keep(j->o->store, &k, str_peek(&text), text.len, e);
}

/* json.h hands out what it holds as const; a part is rebuilt whole. */
static struct json *parts_with(const struct job *j, const char *part, struct json *take_value)
{
    const struct json *old = json_get(j->sent, "parts");
    struct json *parts = old ? json_dup(old) : json_new_object();
    json_set(parts, part, take_value);
    return parts;
}

int job_keep(struct job *j, const char *part, const char *ts, const struct json *ids, struct err *e)
{
    AUTO(store_batch_end) struct store_batch b = { 0 };
    AUTO(str_clear) struct str text = STR_INIT(ROW_MAX);
    struct json *value = json_new_object();
    const struct json *before = job_part(j, part);
    json_set_int(value, "at", json_int_or(before, "at", time_unix_ms()));
    if (ts)
        json_set_str(value, "ts", ts);
    if (ids || json_get(before, "ids"))
        json_set(value, "ids", json_dup(ids ? ids : json_get(before, "ids")));
    json_set(j->sent, "parts", parts_with(j, part, value));
    json_set_int(j->sent, "rung", (int64_t)j->layout.rung);
    json_print(&text, j->sent);
    const struct kept k = row("sent", j->txn);
    if (store_batch_begin(&b, j->o->store, e) < 0 || store_keep(j->o->store, &k, str_peek(&text), text.len, e) < 0 ||
        (ts && *ts && keep_ours(j, ts, e) < 0))
        return -1;
    return store_batch_commit(&b, e);
}

static struct json *sent_row(struct slack_out *o, const char *txn)
{
    struct err e = { 0 };
    autofree char *value = NULL;
    struct json *sent = NULL;
    size_t n = 0;
    const struct kept k = row("sent", txn);
    if (store_kept(o->store, &k, &value, &n, &e) == 0 && value && json_parse(&sent, value, n, ROW_MAX, &e) == 0)
        return sent;
    sent = json_new_object();
    json_set_int(sent, "at", time_unix_ms());
    return sent;
}

/* ---- the next part ---- */

static void append(char **text, const char *more)
{
    char *whole = xasprintf("%s\n\n%s", *text, more);
    free(*text);
    *text = whole;
}

void job_note(struct job *j, const char *left_out)
{
    autofree char *note = xasprintf("Not attached: %s.", left_out);
    if (!job_part(j, "m0")) {
        json_set_str(j->sent, "note", note); /* durable with the part that ends now */
        append(&j->markdown, note);
        job_relay(j, j->rung);
        return;
    }
    AUTO(str_clear) struct str text = STR_INIT(64 << 10);
    slack_text_escape(&text, note, utf8_cut(note, strlen(note), NOTE_BYTES));
    j->layout.at = xgrow(j->layout.at, &j->layout.cap, j->layout.n + 1, sizeof(*j->layout.at));
    j->layout.at[j->layout.n++] = (struct slack_message){ .text = str_take(&text) };
}

void job_relay(struct job *j, enum slack_rung rung)
{
    slack_layout_clear(&j->layout);
    slack_layout_make(&j->layout, j->markdown, j->receipt, rung);
    if (j->type == CHAT_ANSWER && j->o->conf->slack_feedback)
        slack_layout_feedback(&j->layout);
    j->rung = j->layout.rung;
    j->laid = true;
}

static void add_text_file(struct job *j, const char *name, const char *text)
{
    if (!*text)
        return;
    j->files = xgrow(j->files, &j->file_cap, j->file_n + 1, sizeof(*j->files));
    j->files[j->file_n++] = (struct upload_file){ .text = xstrdup(text), .name = xstrdup(name) };
}

/* What the layout does not show goes along as files. */
static void add_layout_files(struct job *j)
{
    for (size_t i = 0; i < j->layout.csv_n; i++) {
        autofree char *name = xasprintf("table-%zu.csv", i + 1);
        add_text_file(j, name, j->layout.csv[i]);
    }
    if (j->rung == SLACK_FILE)
        add_text_file(j, "answer.md", j->markdown);
}

static bool is_done(const struct job *j, const char *part)
{
    return json_str_or(job_part(j, part), "ts", NULL) != NULL;
}

void job_step(struct job *j)
{
    char part[24];
    if (j->type == CHAT_AMEND) {
        message_amend(j);
        return;
    }
    if (j->figure_n && !is_done(j, "charts")) {
        upload_start(j, "charts", j->figures, j->figure_n);
        return;
    }
    for (size_t i = 0; i < j->layout.n; i++) {
        (void)snprintf(part, sizeof(part), "m%zu", i);
        if (!is_done(j, part)) {
            message_send(j, i);
            return;
        }
    }
    if (j->laid) {
        add_layout_files(j);
        j->laid = false;
    }
    if (j->file_n && !is_done(j, "files"))
        upload_start(j, "files", j->files, j->file_n);
    else
        job_end(j, NULL);
}

static void run(void *ud)
{
    struct job *j = ud;
    struct err e = { 0 };
    j->timer = 0;
    j->running = true;
    if (!place_of(j->o, j->room, j->thread, &j->place)) {
        (void)err_set(&e, ERR_REFUSED, "no installation for %.60s", j->room);
        job_end(j, &e);
        return;
    }
    j->sent = sent_row(j->o, j->type == CHAT_AMEND ? j->amends : j->txn);
    if (j->type != CHAT_AMEND && json_str_or(j->sent, "note", NULL))
        append(&j->markdown, json_str_or(j->sent, "note", ""));
    if (j->type != CHAT_AMEND)
        job_relay(j, (enum slack_rung)json_int_or(j->sent, "rung", SLACK_RICH));
    job_step(j);
}

/* ---- from the core ---- */

static char *dup_or_null(const char *s)
{
    return s ? xstrdup(s) : NULL;
}

static struct upload_file *copy_artifacts(const struct artifact *a, size_t n)
{
    struct upload_file *f = xcalloc(n ? n : 1, sizeof(*f));
    for (size_t i = 0; i < n; i++)
        f[i] = (struct upload_file){ .path = xstrdup(a[i].path),
                                     .name = dup_or_null(a[i].name),
                                     .title = dup_or_null(a[i].title),
                                     .alt = dup_or_null(a[i].summary ? a[i].summary : a[i].title) };
    return f;
}

int slack_out_post(struct slack_out *o, const struct chat_post *p, void (*done)(void *ud, const struct err *e),
                   void *ud, struct err *e)
{
    (void)e;
    hint_end(o, p->room, p->thread);
    if (p->type == CHAT_STATUS) {
        slack_status_post(o, p);
        if (done)
            done(ud, NULL);
        return 0;
    }
    struct job *j = xcalloc(1, sizeof(*j)), **end = &o->jobs;
    *j = (struct job){ .o = o,
                       .type = p->type,
                       .txn = xstrdup(p->txn),
                       .amends = dup_or_null(p->amends),
                       .room = xstrdup(p->room),
                       .thread = dup_or_null(p->thread),
                       .markdown = xstrdup(p->markdown),
                       .receipt = dup_or_null(p->receipt),
                       .figures = copy_artifacts(p->figures, p->figure_n),
                       .figure_n = p->figure_n,
                       .files = copy_artifacts(p->files, p->file_n),
                       .file_n = p->file_n,
                       .file_cap = p->file_n ? p->file_n : 1,
                       .done = done,
                       .ud = ud };
    while (*end)
        end = &(*end)->next;
    *end = j;
    wake(o);
    return 0;
}

/* ---- life ---- */

struct slack_out *slack_out_new(const struct slack_out_config *c)
{
    struct slack_out *o = xcalloc(1, sizeof(*o));
    *o = (struct slack_out){ .c = *c, .loop = c->home->loop, .store = c->home->store, .conf = c->home->conf };
    return o;
}

void slack_out_begin(struct slack_out *o)
{
    o->begun = true;
    status_begin(o);
    wake(o);
}

void slack_out_free(struct slack_out *o)
{
    if (!o)
        return;
    for (struct job *j = o->jobs, *next; j; j = next) {
        next = j->next;
        job_free(j);
    }
    hint_free_all(o);
    slack_status_free_all(o);
    free(o);
}
