/* native_cell.c - verdict, claim and delivered files become a cell. */
#include "native_cell.h"

#include <stdio.h>
#include <string.h>

#include "../../sandbox/box_proto.h"
#include "json.h"

enum {
    DONE_MAX = 64 << 10,
    NAME_TEXT_MAX = 200, /* of an exception's class, of a figure's title */
    SUMMARY_MAX = 2000,
    NOTE_MAX = 2000,
    NOTES_MAX = 50,
    FINDINGS_MAX = 20,
    FINDING_TEXT_MAX = 100,
    SECOND_MS = 1000,
};

/* ---- words ---- */

/* Claimed text: scrubbed, at most max bytes, cut between characters. The caller frees. */
static char *clean(const char *text, size_t max)
{
    AUTO(str_clear) struct str s = STR_INIT(3 * strlen(text) + 1);
    utf8_scrub(&s, text, strlen(text));
    size_t n = utf8_cut(str_peek(&s), s.len, max);
    return xstrndup(str_peek(&s), n);
}

static char *clean_or_null(const struct json *obj, const char *key, size_t max)
{
    const char *text = json_str_or(obj, key, NULL);
    return text ? clean(text, max) : NULL;
}

static void mebibytes(char out[32], int64_t bytes)
{
    if (bytes >= INT64_C(1) << 30)
        (void)snprintf(out, 32, "%.1f GiB", (double)bytes / (1 << 30));
    else
        (void)snprintf(out, 32, "%.0f MiB", (double)bytes / (1 << 20));
}

/* ---- the keeper's verdict ---- */

static const char *const verdict_name[] = {
    [VERDICT_OK] = "ok",         [VERDICT_TIMEOUT] = "timeout", [VERDICT_OOM] = "oom",
    [VERDICT_CRASH] = "crash",   [VERDICT_LIMIT] = "limit",     [VERDICT_CANCELLED] = "cancelled",
    [VERDICT_FAILED] = "failed",
};

static const char *const state_name[] = {
    [CELL_KEPT] = "kept",
    [CELL_ROLLED_BACK] = "rolled_back",
    [CELL_LOST] = "lost",
};

static int word(const char *const *words, size_t n, const char *text)
{
    for (size_t i = 0; i < n; i++)
        if (strcmp(words[i], text) == 0)
            return (int)i;
    return -1;
}

static int64_t not_negative(int64_t n)
{
    return n > 0 ? n : 0;
}

static int verdict_from(struct verdict *v, const struct json *o, struct err *e)
{
    const char *kind = NULL;
    if (json_str(o, "verdict", &kind, e) < 0)
        return -1;
    int k = word(verdict_name, countof(verdict_name), kind);
    int s = word(state_name, countof(state_name), json_str_or(o, "state", "kept"));
    if (k < 0 || s < 0)
        return err_set(e, ERR_SANDBOX, "unknown verdict or state");
    int64_t sig = json_int_or(o, "signal", 0);
    int64_t cell = json_int_or(o, "cell", -1);
    *v = (struct verdict){
        .cell = cell >= 0 && cell <= INT32_MAX ? (int)cell : -1,
        .kind = (enum verdict_kind)k,
        .state = (enum cell_state)s,
        .why = clean_or_null(o, "why", NOTE_MAX),
        .signal = sig > 0 && sig <= 64 ? (int)sig : 0,
        .peak_bytes = not_negative(json_int_or(o, "peak_bytes", 0)),
        .took_ms = (double)not_negative(json_int_or(o, "took_us", 0)) / 1000,
        .start_ms = (double)not_negative(json_int_or(o, "start_us", 0)) / 1000,
    };
    return 0;
}

int verdict_parse(struct verdict *v, const char *data, size_t n, struct err *e)
{
    autojson struct json *o = NULL;
    if (json_parse(&o, data, n, DONE_MAX, e) < 0 || verdict_from(v, o, e) < 0) {
        e->kind = ERR_SANDBOX;
        return err_wrap(e, "the keeper's verdict");
    }
    return 0;
}

void verdict_clear(struct verdict *v)
{
    free(v->why);
    *v = (struct verdict){ 0 };
}

void delivered_clear(struct delivered *d)
{
    free(d->box_path);
    free(d->file.path);
    free(d->file.name);
    free(d->file.title);
    free(d->file.summary);
    free(d->file.box_name);
    *d = (struct delivered){ 0 };
}

/* ---- the head's claim ---- */

static bool is_or_null(const struct json *obj, const char *key, enum json_type type)
{
    enum json_type t = json_type(json_get(obj, key));
    return t == JSON_NULL || t == type;
}

static bool error_well_formed(const struct json *x)
{
    return json_type(x) == JSON_NULL ||
           (json_type(json_get(x, "name")) == JSON_STRING && is_or_null(x, "value", JSON_STRING) &&
            is_or_null(x, "traceback", JSON_STRING) && is_or_null(x, "line", JSON_NUMBER));
}

static bool result_well_formed(const struct json *x)
{
    return json_type(x) == JSON_NULL ||
           (is_or_null(x, "text/plain", JSON_STRING) && is_or_null(x, "text/html", JSON_STRING));
}

static bool items_are(const struct json *list, enum json_type type)
{
    for (const struct json *x = json_first(list); x; x = json_next(x))
        if (json_type(x) != type)
            return false;
    return true;
}

static bool claim_well_formed(const struct json *o)
{
    const char *status = json_str_or(o, "status", "");
    if (strcmp(status, "ok") != 0 && strcmp(status, "error") != 0)
        return false;
    return is_or_null(o, "result", JSON_OBJECT) && is_or_null(o, "error", JSON_OBJECT) &&
           is_or_null(o, "figures", JSON_ARRAY) && is_or_null(o, "notes", JSON_ARRAY) &&
           is_or_null(o, "audit", JSON_ARRAY) && items_are(json_get(o, "audit"), JSON_OBJECT) &&
           is_or_null(o, "same_as", JSON_OBJECT) && result_well_formed(json_get(o, "result")) &&
           error_well_formed(json_get(o, "error")) && items_are(json_get(o, "figures"), JSON_OBJECT) &&
           items_are(json_get(o, "notes"), JSON_STRING);
}

static int line_of(const struct json *x)
{
    int64_t line = json_int_or(x, "line", 0);
    return line > 0 && line <= INT32_MAX ? (int)line : 0;
}

static void take_error(struct cell *c, const struct json *x)
{
    if (json_type(x) == JSON_NULL)
        return;
    c->error_name = clean(json_str_or(x, "name", ""), NAME_TEXT_MAX);
    c->error_value = clean(json_str_or(x, "value", ""), BOX_CLAIM_MAX);
    c->error_traceback = clean(json_str_or(x, "traceback", ""), BOX_CLAIM_MAX);
    c->error_line = line_of(x);
}

static void take_findings(struct cell *c, const struct json *list)
{
    for (const struct json *x = json_first(list); x && c->finding_n < FINDINGS_MAX; x = json_next(x))
        cell_add_finding(c, clean(json_str_or(x, "kind", ""), FINDING_TEXT_MAX),
                         clean(json_str_or(x, "what", ""), FINDING_TEXT_MAX), line_of(x));
}

static void take_claim(struct cell *c, const struct json *o)
{
    const struct json *result = json_get(o, "result");
    c->result_text = clean_or_null(result, "text/plain", BOX_CLAIM_MAX);
    c->result_html = clean_or_null(result, "text/html", BOX_CLAIM_MAX);
    take_error(c, json_get(o, "error"));
    for (const struct json *x = json_first(json_get(o, "notes")); x; x = json_next(x))
        cell_add_note(c, json_text(x));
    take_findings(c, json_get(o, "audit"));
    c->status = c->error_name || strcmp(json_str_or(o, "status", ""), "ok") != 0 ? CELL_ERROR : CELL_OK;
}

/* ---- files ---- */

static struct delivered *delivered_find(const struct account *a, const char *path)
{
    for (size_t i = 0; path && i < a->file_n; i++)
        if (a->files[i].box_path && strcmp(a->files[i].box_path, path) == 0)
            return &a->files[i];
    return NULL;
}

static void move_file(struct artifacts *to, struct delivered *d)
{
    if (d->file.name && strcmp(d->file.name, d->box_path) != 0)
        d->file.box_name = take(d->box_path);
    *artifacts_add(to) = d->file;
    d->file = (struct artifact){ 0 };
    delivered_clear(d);
}

static void take_figures(struct cell *c, struct account *a, const struct json *figures)
{
    for (const struct json *x = json_first(figures); x; x = json_next(x)) {
        struct delivered *d = delivered_find(a, json_str_or(x, "path", NULL));
        if (!d || !d->file.width || d->small)
            continue;
        d->file.title = clean_or_null(x, "title", NAME_TEXT_MAX);
        d->file.summary = clean_or_null(x, "summary", SUMMARY_MAX);
        move_file(&c->figures, d);
    }
}

/* A picture that the code saved of a figure stays a file, but need not be shown again: {"its path": "the figure's"}. */
static void mark_shown(struct account *a, const struct json *same_as)
{
    for (const struct json *x = json_first(same_as); x; x = json_next(x)) {
        struct delivered *saved = delivered_find(a, json_key(x));
        const struct delivered *figure = delivered_find(a, json_text(x));
        if (saved && figure && saved != figure && figure->file.width)
            saved->file.shown = true;
    }
}

/* What the claim did not name. Without a claim a whole figure is still one. */
static void take_rest(struct cell *c, struct account *a, bool claimed)
{
    for (size_t i = 0; i < a->file_n; i++) {
        struct delivered *d = &a->files[i];
        if (d->small)
            delivered_clear(d);
        else if (d->box_path)
            move_file(!claimed && d->figure && d->file.width ? &c->figures : &c->files, d);
    }
    a->file_n = 0;
}

/* ---- the whole ---- */

static char *why_oom(const struct account *a, bool killed)
{
    char limit[32], peak[32];
    mebibytes(limit, a->memory_bytes);
    mebibytes(peak, a->verdict->peak_bytes);
    if (!killed) /* the peak would mislead: what did not fit was never there */
        return xasprintf("the code asked for more memory than the %s of its session have left (MemoryError)", limit);
    return xasprintf("over the memory limit of %s; peak %s", limit, peak);
}

static char *why_crash(const struct verdict *v)
{
    const char *name = v->signal ? sigdescr_np(v->signal) : NULL;
    if (v->signal)
        return xasprintf("the interpreter was killed by signal %d (%s)", v->signal, name ? name : "unknown");
    return xstrdup("the code ended its interpreter");
}

/* The keeper's words when it has some; ours otherwise. */
static char *why(const struct account *a)
{
    const struct verdict *v = a->verdict;
    if (v->why && *v->why)
        return xstrdup(v->why);
    switch (v->kind) {
    case VERDICT_OK: return NULL;
    case VERDICT_TIMEOUT:
        return xasprintf("over the time limit of %lld s", (long long)(a->timeout_ms + SECOND_MS - 1) / SECOND_MS);
    case VERDICT_OOM: return why_oom(a, true);
    case VERDICT_CRASH: return why_crash(v);
    case VERDICT_LIMIT: return xstrdup("over a limit of the sandbox");
    case VERDICT_CANCELLED: return xstrdup("stopped on request");
    case VERDICT_FAILED: return xstrdup("the sandbox failed");
    }
    return NULL;
}

static const enum cell_status status_of[] = {
    [VERDICT_OK] = CELL_OK,        [VERDICT_TIMEOUT] = CELL_TIMEOUT, [VERDICT_OOM] = CELL_OOM,
    [VERDICT_CRASH] = CELL_CRASH,  [VERDICT_LIMIT] = CELL_LIMIT,     [VERDICT_CANCELLED] = CELL_CANCELLED,
    [VERDICT_FAILED] = CELL_CRASH,
};

static bool ends_with(const char *text, const char *end)
{
    size_t n = strlen(text), k = strlen(end);
    return n >= k && strcmp(text + n - k, end) == 0;
}

static void judge(struct cell *c, const struct account *a, bool claimed)
{
    const struct verdict *v = a->verdict;
    c->state = v->state;
    if (v->kind == VERDICT_OK && v->why && *v->why)
        cell_add_note(c, v->why);
    if (v->kind != VERDICT_OK) {
        c->status = status_of[v->kind];
        c->why = why(a);
    } else if (!claimed) {
        c->status = CELL_CRASH;
        c->why = xstrdup("the box answered with something malformed");
    } else if (c->error_name && ends_with(c->error_name, "MemoryError")) { /* numpy has its own: _ArrayMemoryError */
        c->status = CELL_OOM;
        c->why = why_oom(a, false);
    }
}

static void take_output(struct cell *c, const struct account *a)
{
    bool cut[2] = { false, false };
    free(c->out);
    free(c->err);
    c->out = output_text(a->printed[0], &cut[0]);
    c->err = output_text(a->printed[1], &cut[1]);
    c->truncated = cut[0] || cut[1];
}

static void take_notes(struct cell *c, struct account *a)
{
    for (size_t i = 0; i < a->note_n; i++) {
        cell_add_note(c, a->notes[i]);
        free(a->notes[i]);
    }
    free(a->notes);
    a->notes = NULL;
    a->note_n = 0;
}

void cell_from_account(struct cell *out, struct account *a)
{
    cell_init(out);
    out->number = a->number;
    out->took_ms = a->verdict->took_ms;
    out->start_ms = a->verdict->start_ms;
    out->peak_bytes = a->verdict->peak_bytes;
    take_output(out, a);
    struct err e = { 0 };
    autojson struct json *claim = NULL;
    bool claimed =
        a->claim && json_parse(&claim, a->claim, a->claim_n, BOX_CLAIM_MAX, &e) == 0 && claim_well_formed(claim);
    if (claimed) {
        take_claim(out, claim);
        mark_shown(a, json_get(claim, "same_as"));
        take_figures(out, a, json_get(claim, "figures"));
    }
    take_rest(out, a, claimed);
    out->gone = take(a->gone);
    out->gone_n = a->gone_n;
    take_notes(out, a);
    judge(out, a, claimed);
}

struct json *reply_from_back(const struct verdict *v, const struct json *claim, bool own_files)
{
    struct json *o = json_new_object(), *notes = json_new_array();
    size_t n = 0;
    json_push(notes, json_new_string(
                         own_files ? "this branch has files of its own: those that were there after that cell, and "
                                     "all that was sent"
                                   : "files are as they were: going back changes variables only"));
    for (const struct json *x = json_first(json_get(claim, "notes")); x && n < NOTES_MAX; x = json_next(x), n++) {
        autofree char *text = json_type(x) == JSON_STRING ? clean(json_text(x), NOTE_MAX) : NULL;
        if (text)
            json_push(notes, json_new_string(text));
    }
    json_set_str(o, "state", state_name[v->state]);
    if (v->cell >= 0)
        json_set_int(o, "cell", v->cell);
    json_set(o, "notes", notes);
    return o;
}
