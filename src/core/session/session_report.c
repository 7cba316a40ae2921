/* session_report.c - a finished turn summed up: what is posted, the receipt under it, the facts for `ask --json`. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include "conf.h"
#include "json.h"
#include "session_private.h"

enum {
    FILES_POSTED_MAX = 20, /* more would bury the answer */
    RECEIPT_MAX = 2000,
    ARTIFACTS_JSON_MAX = 4 << 20,
    NOT_KEPT_MAX = 5,
    NOT_KEPT_BYTES = 16 << 10,
};

/* ---- artifacts ---- */

static void add_copy(struct artifacts *to, const struct artifact *a)
{
    *artifacts_add(to) = (struct artifact){
        .path = xstrdup_or_null(a->path),
        .name = xstrdup_or_null(a->name),
        .bytes = a->bytes,
        .width = a->width,
        .height = a->height,
        .title = xstrdup_or_null(a->title),
        .summary = xstrdup_or_null(a->summary),
    };
}

struct json *artifacts_to_json(const struct artifacts *a)
{
    struct json *array = json_new_array();
    for (size_t i = 0; i < a->n; i++) {
        struct json *o = json_new_object();
        json_set_str(o, "path", a->at[i].path);
        json_set_str(o, "name", a->at[i].name);
        json_set_int(o, "bytes", a->at[i].bytes);
        if (a->at[i].width) {
            json_set_int(o, "width", a->at[i].width);
            json_set_int(o, "height", a->at[i].height);
            json_set_str(o, "title", a->at[i].title);
        }
        json_push(array, o);
    }
    return array;
}

void artifacts_from_json(struct artifacts *a, const char *text)
{
    autojson struct json *array = NULL;
    struct err ignored = { 0 };
    if (!text || json_parse(&array, text, strlen(text), ARTIFACTS_JSON_MAX, &ignored) < 0)
        return;
    for (const struct json *o = json_first(array); o; o = json_next(o))
        *artifacts_add(a) = (struct artifact){
            .path = xstrdup_or_null(json_str_or(o, "path", NULL)),
            .name = xstrdup_or_null(json_str_or(o, "name", NULL)),
            .bytes = json_int_or(o, "bytes", 0),
            .width = (int)json_int_or(o, "width", 0),
            .height = (int)json_int_or(o, "height", 0),
            .title = xstrdup_or_null(json_str_or(o, "title", NULL)),
        };
}

static void drop(struct artifacts *a, size_t i)
{
    free(a->at[i].path);
    free(a->at[i].name);
    free(a->at[i].title);
    free(a->at[i].summary);
    memmove(&a->at[i], &a->at[i + 1], (a->n - i - 1) * sizeof(*a->at));
    a->n--;
}

/* A file that was written again is posted once, as it is now. */
static void add_file(struct artifacts *files, const struct artifact *a)
{
    for (size_t i = 0; i < files->n; i++) {
        if (strcmp(files->at[i].name, a->name) == 0) {
            drop(files, i);
            break;
        }
    }
    add_copy(files, a);
}

static void collect(struct turn_result *r, struct session *s, const struct agent_outcome *o)
{
    for (size_t i = 0; i < o->cell_n; i++) {
        const struct cell *c = &o->cells[i].cell;
        for (size_t k = 0; k < c->figures.n; k++)
            add_copy(&r->figures, &c->figures.at[k]);
        for (size_t k = 0; k < c->files.n; k++)
            if (!c->files.at[k].shown && !artifact_is_hidden(c->files.at[k].name) &&
                !session_was_uploaded(s, c->files.at[k].name, c->files.at[k].bytes))
                add_file(&r->files, &c->files.at[k]);
    }
    while (r->files.n > FILES_POSTED_MAX) {
        drop(&r->files, r->files.n - 1);
        r->left_behind++;
    }
}

/* ---- receipt ---- */

/* A file counts as used when a program of this turn names it. */
static bool is_named(const struct agent_outcome *o, const char *path)
{
    for (size_t i = 0; i < o->cell_n; i++)
        if (strstr(o->cells[i].code, path))
            return true;
    return false;
}

static int64_t version_of(struct session *s, const char *name)
{
    int64_t version = 1;
    for (size_t i = 0; i < s->staging.n; i++)
        if (strcmp(s->staging.files[i].name, name) == 0 && !s->staging.files[i].gone)
            version = s->staging.files[i].version;
    return version;
}

static struct json *files_used(struct session *s, const struct agent_outcome *o)
{
    struct json *files = json_new_array();
    for (const struct json *p = json_first(s->turn->profiles); p; p = json_next(p)) {
        const char *path = json_str_or(p, "path", "");
        if (!*path || !is_named(o, path))
            continue;
        struct json *f = json_new_object();
        json_set_str(f, "name", path);
        json_set_int(f, "version", version_of(s, path));
        if (json_type(json_get(p, "rows")) == JSON_NUMBER)
            json_set_int(f, "rows", json_int_or(p, "rows", 0));
        json_push(files, f);
    }
    return files;
}

static struct json *receipt_facts(struct session *s, const struct agent_outcome *o, int64_t took_ms)
{
    struct json *r = json_new_object();
    json_set_int(r, "cells", (int64_t)o->cell_n);
    json_set(r, "files", files_used(s, o));
    if (s->turn->made)
        json_set(r, "made", json_dup(s->turn->made));
    json_set_int(r, "took_ms", took_ms);
    json_set_int(r, "tokens", o->usage.in + o->usage.out);
    json_set_str(r, "model", s->turn->model->section->section);
    if (o->unsupported)
        json_set_str(r, "unsupported", o->unsupported);
    return r;
}

/* 1234567 as 1,234,567 */
static void add_number(struct str *out, int64_t n)
{
    char digits[24];
    const int len = snprintf(digits, sizeof(digits), "%" PRId64, n);
    for (int i = 0; i < len; i++) {
        if (i && (len - i) % 3 == 0 && digits[i - 1] != '-')
            str_putc(out, ',');
        str_putc(out, digits[i]);
    }
}

static void add_part(struct str *out, enum word w, const char *language, int64_t n)
{
    AUTO(str_clear) struct str number = STR_INIT(64);
    add_number(&number, n);
    autofree char *part = words(w, language, str_peek(&number), NULL);
    str_printf(out, "%s%s", out->len ? " \xc2\xb7 " : "", part);
}

static void add_file_part(struct str *out, const char *language, const struct json *f)
{
    str_printf(out, " \xc2\xb7 %s", json_str_or(f, "name", ""));
    if (json_int_or(f, "version", 1) > 1)
        str_printf(out, " v%" PRId64, json_int_or(f, "version", 1));
    if (json_get(f, "rows")) {
        AUTO(str_clear) struct str rows = STR_INIT(200);
        add_part(&rows, WORD_RECEIPT_ROWS, language, json_int_or(f, "rows", 0));
        str_printf(out, " (%s)", str_peek(&rows));
    }
}

static char *receipt_line(const struct json *facts, const char *language)
{
    AUTO(str_clear) struct str out = STR_INIT(RECEIPT_MAX);
    const int64_t cells = json_int_or(facts, "cells", 0), tokens = json_int_or(facts, "tokens", 0);
    char seconds[32];
    if (cells == 0 && tokens == 0)
        return NULL; /* nothing was computed and nothing spent */
    add_part(&out, cells == 1 ? WORD_RECEIPT_CELL : WORD_RECEIPT_CELLS, language, cells);
    for (const struct json *f = json_first(json_get(facts, "files")); f; f = json_next(f))
        add_file_part(&out, language, f);
    for (const struct json *f = json_first(json_get(facts, "made")); f; f = json_next(f))
        str_printf(&out, " \xc2\xb7 %s \xe2\x86\x92 v%" PRId64, json_str_or(f, "name", ""),
                   json_int_or(f, "version", 0));
    (void)snprintf(seconds, sizeof(seconds), "%.1f", (double)json_int_or(facts, "took_ms", 0) / 1000);
    autofree char *time = words(WORD_RECEIPT_TIME, language, seconds, NULL);
    str_printf(&out, " \xc2\xb7 %s", time);
    if (tokens)
        add_part(&out, WORD_RECEIPT_TOKENS, language, tokens);
    return str_take(&out);
}

/* ---- facts ---- */

static struct json *cells_to_json(const struct agent_outcome *o)
{
    struct json *array = json_new_array();
    for (size_t i = 0; i < o->cell_n; i++)
        json_push(array, cell_to_json(&o->cells[i].cell, o->cells[i].code));
    return array;
}

static struct json *turn_facts(const struct turn_result *r, const struct agent_outcome *o, int64_t took_ms)
{
    struct json *f = json_new_object(), *usage = json_new_object();
    json_set_str(f, "status", agent_status_name(o->status));
    json_set_str(f, "answer", r->answer);
    json_set(f, "cells", cells_to_json(o));
    json_set(f, "figures", artifacts_to_json(&r->figures));
    json_set(f, "files", artifacts_to_json(&r->files));
    json_set(f, "receipt", json_dup(r->receipt_facts));
    json_set_int(usage, "in", o->usage.in);
    json_set_int(usage, "cached", o->usage.cached);
    json_set_int(usage, "out", o->usage.out);
    json_set(f, "usage", usage);
    json_set_int(f, "steps", o->steps);
    json_set_int(f, "took_ms", took_ms);
    return f;
}

/* What the person would look for in vain: as code, so that a file's name marks nothing up. */
static void add_not_kept(struct str *out, const struct cell *c, size_t *n)
{
    for (size_t i = 0; i < c->note_n; i++) {
        if (strncmp(c->notes[i], CELL_NOT_KEPT, strlen(CELL_NOT_KEPT)) != 0 || ++*n > NOT_KEPT_MAX)
            continue;
        autofree char *what = xstrdup(c->notes[i] + strlen(CELL_NOT_KEPT));
        for (char *at = what; *at; at++)
            if (*at == '`' || *at == '\n')
                *at = '\'';
        str_printf(out, "%s`%s`", out->len ? ", " : "", what);
    }
}

/* Files with cells that a spreadsheet would run: whoever opens one should know. Their data are as the program wrote them. */
static void add_formulas(struct str *out, const struct cell *c, size_t *n)
{
    for (size_t i = 0; i < c->note_n; i++) {
        if (strncmp(c->notes[i], CELL_FORMULAS, strlen(CELL_FORMULAS)) != 0 || ++*n > NOT_KEPT_MAX)
            continue;
        autofree char *name = xstrdup(c->notes[i] + strlen(CELL_FORMULAS));
        char *end = strrchr(name, ':');
        if (end)
            *end = '\0';
        for (char *at = name; *at; at++)
            if (*at == '`' || *at == '\n')
                *at = '\'';
        str_printf(out, "%s`%s`", out->len ? ", " : "", strncmp(name, "out/", 4) == 0 ? name + 4 : name);
    }
}

static char *answer_text(struct session *s, const struct turn_result *r, const struct agent_outcome *o,
                         const char *language)
{
    AUTO(str_clear) struct str list = STR_INIT(NOT_KEPT_BYTES), files = STR_INIT(NOT_KEPT_BYTES);
    size_t n = 0, formula_n = 0;
    for (size_t i = 0; i < o->cell_n; i++) {
        add_not_kept(&list, &o->cells[i].cell, &n);
        add_formulas(&files, &o->cells[i].cell, &formula_n);
    }
    autofree char *more = r->left_behind ? words_n(WORD_MORE_FILES, language, (int64_t)r->left_behind, 0) : NULL;
    autofree char *lost = n ? words(WORD_NOT_KEPT, language, str_peek(&list), NULL) : NULL;
    autofree char *thawed = s->turn->silent ? NULL : session_thawed_words(s, language);
    if (thawed)
        session_thawed_told(s);
    autofree char *runs = formula_n ? words(WORD_FORMULAS, language, str_peek(&files), NULL) : NULL;
    return xasprintf("%s%s%s%s%s%s%s%s%s", o->answer, more ? "\n\n" : "", more ? more : "", lost ? "\n\n" : "",
                     lost ? lost : "", runs ? "\n\n" : "", runs ? runs : "", thawed ? "\n\n" : "",
                     thawed ? thawed : "");
}

void turn_result_fill(struct turn_result *r, struct session *s, struct agent_outcome *o)
{
    const int64_t took_ms = loop_now_ms(s->hub->parts.loop) - s->turn->started_ms;
    const char *language = s->turn->request->language;
    collect(r, s, o);
    r->answer = answer_text(s, r, o, language);
    r->receipt_facts = receipt_facts(s, o, took_ms);
    r->receipt = receipt_line(r->receipt_facts, language);
    if (r->receipt)
        json_set_str(r->receipt_facts, "text", r->receipt);
    r->facts = turn_facts(r, o, took_ms);
}

void turn_result_clear(struct turn_result *r)
{
    artifacts_clear(&r->figures);
    artifacts_clear(&r->files);
    free(r->receipt);
    free(r->answer);
    json_free(r->receipt_facts);
    json_free(r->facts);
    *r = (struct turn_result){ 0 };
}
