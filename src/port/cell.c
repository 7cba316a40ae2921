/* cell.c - memory and JSON of a cell. */
#include "cell.h"

#include <math.h>

#include "json.h"

enum { NOTE_MAX = 2000, NOTES_MAX = 50 };

void cell_init(struct cell *c)
{
    *c = (struct cell){ 0 };
    c->out = xstrdup("");
    c->err = xstrdup("");
}

void cell_clear(struct cell *c)
{
    char *const owned[] = {
        c->id,  c->out, c->err, c->result_text, c->result_html, c->error_name, c->error_value, c->error_traceback,
        c->why,
    };
    for (size_t i = 0; i < countof(owned); i++)
        free(owned[i]);
    for (size_t i = 0; i < c->note_n; i++)
        free(c->notes[i]);
    free(c->notes);
    for (size_t i = 0; i < c->finding_n; i++) {
        free(c->findings[i].kind);
        free(c->findings[i].what);
    }
    free(c->findings);
    for (size_t i = 0; i < c->gone_n; i++)
        free(c->gone[i]);
    free(c->gone);
    artifacts_clear(&c->figures);
    artifacts_clear(&c->files);
    *c = (struct cell){ 0 };
}

/* NOLINTNEXTLINE(readability-non-const-parameter): it is ours from here on */
void cell_add_finding(struct cell *c, char *take_kind, char *take_what, int line)
{
    size_t cap = c->finding_n;
    c->findings = xgrow(c->findings, &cap, c->finding_n + 1, sizeof *c->findings);
    c->findings[c->finding_n++] = (struct cell_finding){ .kind = take_kind, .what = take_what, .line = line };
}

void cell_add_note(struct cell *c, const char *text)
{
    AUTO(str_clear) struct str s = STR_INIT(3 * strlen(text) + 1);
    size_t cap = c->note_n;
    if (c->note_n >= NOTES_MAX)
        return;
    utf8_scrub(&s, text, strlen(text));
    c->notes = xgrow(c->notes, &cap, c->note_n + 1, sizeof *c->notes);
    c->notes[c->note_n++] = xstrndup(str_peek(&s), utf8_cut(str_peek(&s), s.len, NOTE_MAX));
}

const char *cell_status_name(enum cell_status s)
{
    switch (s) {
    case CELL_OK: return "ok";
    case CELL_ERROR: return "error";
    case CELL_TIMEOUT: return "timeout";
    case CELL_OOM: return "oom";
    case CELL_CRASH: return "crash";
    case CELL_LIMIT: return "limit";
    case CELL_CANCELLED: return "cancelled";
    }
    return "crash";
}

const char *cell_state_name(enum cell_state s)
{
    switch (s) {
    case CELL_KEPT: return "kept";
    case CELL_ROLLED_BACK: return "rolled_back";
    case CELL_LOST: return "lost";
    }
    return "lost";
}

struct artifact *artifacts_add(struct artifacts *a)
{
    a->at = xgrow(a->at, &a->cap, a->n + 1, sizeof *a->at);
    a->at[a->n] = (struct artifact){ 0 };
    return &a->at[a->n++];
}

void artifacts_clear(struct artifacts *a)
{
    for (size_t i = 0; i < a->n; i++) {
        free(a->at[i].path);
        free(a->at[i].name);
        free(a->at[i].title);
        free(a->at[i].summary);
        free(a->at[i].box_name);
    }
    free(a->at);
    *a = (struct artifacts){ 0 };
}

/* ---- JSON ---- */

/* Microseconds are as exact as the keeper's clock. */
static double rounded(double ms)
{
    return round(ms * 1000) / 1000;
}

static struct json *result_json(const struct cell *c)
{
    if (!c->result_text && !c->result_html)
        return NULL;
    struct json *r = json_new_object();
    if (c->result_text)
        json_set_str(r, "text/plain", c->result_text);
    if (c->result_html)
        json_set_str(r, "text/html", c->result_html);
    return r;
}

static struct json *error_json(const struct cell *c)
{
    if (!c->error_name)
        return NULL;
    struct json *r = json_new_object();
    json_set_str(r, "name", c->error_name);
    json_set_str(r, "value", c->error_value ? c->error_value : "");
    json_set_str(r, "traceback", c->error_traceback ? c->error_traceback : "");
    if (c->error_line > 0)
        json_set_int(r, "line", c->error_line);
    else
        json_set(r, "line", NULL);
    return r;
}

static struct json *figures_json(const struct artifacts *a)
{
    struct json *list = json_new_array();
    for (size_t i = 0; i < a->n; i++) {
        struct json *f = json_new_object();
        json_set_str(f, "path", a->at[i].path);
        json_set_int(f, "width", a->at[i].width);
        json_set_int(f, "height", a->at[i].height);
        json_set_str(f, "title", a->at[i].title ? a->at[i].title : "");
        if (a->at[i].summary)
            json_set_str(f, "summary", a->at[i].summary);
        json_push(list, f);
    }
    return list;
}

static struct json *files_json(const struct artifacts *a)
{
    struct json *list = json_new_array();
    for (size_t i = 0; i < a->n; i++) {
        struct json *f = json_new_object();
        json_set_str(f, "path", a->at[i].path);
        json_set_int(f, "bytes", a->at[i].bytes);
        json_push(list, f);
    }
    return list;
}

static struct json *notes_json(const struct cell *c)
{
    struct json *list = json_new_array();
    for (size_t i = 0; i < c->note_n; i++)
        json_push(list, json_new_string(c->notes[i]));
    return list;
}

static struct json *findings_json(const struct cell *c)
{
    struct json *list = json_new_array();
    for (size_t i = 0; i < c->finding_n; i++) {
        struct json *f = json_new_object();
        json_set_str(f, "kind", c->findings[i].kind);
        json_set_int(f, "line", c->findings[i].line);
        json_set_str(f, "what", c->findings[i].what);
        json_push(list, f);
    }
    return list;
}

struct json *cell_to_json(const struct cell *c, const char *code)
{
    struct json *o = json_new_object();
    json_set_str(o, "id", c->id);
    json_set_int(o, "cell", c->number);
    if (code)
        json_set_str(o, "code", code);
    json_set_str(o, "status", cell_status_name(c->status));
    json_set_str(o, "stdout", c->out ? c->out : "");
    json_set_str(o, "stderr", c->err ? c->err : "");
    json_set(o, "result", result_json(c));
    json_set(o, "error", error_json(c));
    json_set(o, "figures", figures_json(&c->figures));
    json_set(o, "files", files_json(&c->files));
    json_set_str(o, "state", cell_state_name(c->state));
    json_set_bool(o, "truncated", c->truncated);
    json_set_num(o, "took_ms", rounded(c->took_ms));
    json_set_num(o, "start_ms", rounded(c->start_ms));
    json_set_int(o, "peak_bytes", c->peak_bytes);
    if (c->why)
        json_set_str(o, "why", c->why);
    if (c->note_n)
        json_set(o, "notes", notes_json(c));
    if (c->finding_n)
        json_set(o, "audit", findings_json(c));
    return o;
}

bool artifact_is_hidden(const char *name)
{
    for (const char *part = name; part; part = strchr(part, '/')) {
        part += *part == '/';
        if (*part == '.' || strncmp(part, "__pycache__", 11) == 0)
            return true;
    }
    return false;
}

/* ---- pictures ---- */

enum { PNG_HEAD = 24, PICTURE_SIDE_MAX = 8192 };

static uint32_t big_endian(const unsigned char *p)
{
    return (uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 | (uint32_t)p[2] << 8 | p[3];
}

void picture_size(int fd, int *width, int *height)
{
    static const unsigned char magic[] = {
        0x89, 'P', 'N', 'G', '\r', '\n', 0x1a, '\n', 0, 0, 0, 13, 'I', 'H', 'D', 'R'
    };
    unsigned char head[PNG_HEAD];
    if (pread(fd, head, sizeof head, 0) != (ssize_t)sizeof head || memcmp(head, magic, sizeof magic) != 0)
        return;
    uint32_t w = big_endian(head + 16), h = big_endian(head + 20);
    if (w == 0 || h == 0 || w > PICTURE_SIDE_MAX || h > PICTURE_SIDE_MAX)
        return;
    *width = (int)w;
    *height = (int)h;
}
