/* session_stage.c - the files of a session into its box: laid under it or put there, unpacked, looked into.
 *
 * The newest version of a name lies under that name; older ones that people sent beside it as "name (v1).csv", also when a cell has
 * written over them or deleted them. A box that is new begins with them all, as a folder of links; one that lives gets what came
 * since, one request after the other. Profiles are kept in the store: what people sent is looked into once, an archive again in
 * each new box, since that is what unpacks it. */
#include <fcntl.h>
#include <inttypes.h>
#include <string.h>
#include "conf.h"
#include "json.h"
#include "log.h"
#include "session_private.h"

enum { PROFILE_MAX = 16 << 20, NAME_BYTES = 255, TAIL_MAX = 50 };

/* Each step from the loop: a box may answer at once, and a thousand files must not be a thousand frames of stack. */
static void stage_next(void *session);

static void next_later(struct session *s)
{
    loop_defer(s->hub->parts.loop, stage_next, s);
}

/* ---- names and versions ---- */

/* Its message was deleted while it was on its way. */
static bool is_withdrawn(const struct file_row *f)
{
    return f->gone && f->cell == 0;
}

static bool is_newest(const struct staging *g, size_t i)
{
    for (size_t k = i + 1; k < g->n; k++)
        if (strcmp(g->files[k].name, g->files[i].name) == 0 && !is_withdrawn(&g->files[k]))
            return false;
    return true;
}

/* It lies in the box. */
static bool has_place(const struct staging *g, size_t i)
{
    return !g->files[i].gone && (g->files[i].cell == 0 || is_newest(g, i));
}

static bool is_name_of_another(const struct staging *g, const char *name)
{
    for (size_t i = 0; i < g->n; i++)
        if (strcmp(g->files[i].name, name) == 0)
            return true;
    return false;
}

/* "name (v1).csv", or "name (v1_).csv" where that is a file of its own; cut so that it still is a name. */
static char *older_name(const struct staging *g, const struct file_row *f)
{
    static const char lines[] = "________";
    const char *dot = strrchr(f->name, '.'), *end = f->name + strlen(f->name);
    const char *tail = dot && dot != f->name && end - dot <= TAIL_MAX ? dot : end;
    for (int extra = 0;; extra++) {
        autofree char *mark = xasprintf(" (v%" PRId64 "%.*s)", f->version, extra, lines);
        const size_t room = NAME_BYTES - strlen(mark) - strlen(tail), stem = (size_t)(tail - f->name);
        autofree char *name =
            xasprintf("%.*s%s%s", (int)(stem <= room ? stem : utf8_cut(f->name, stem, room)), f->name, mark, tail);
        if (extra == (int)sizeof(lines) - 1 || !is_name_of_another(g, name))
            return take(name);
    }
}

/* What the i-th file is called in the box; caller frees. */
static char *box_name(const struct staging *g, size_t i)
{
    return is_newest(g, i) ? xstrdup(g->files[i].name) : older_name(g, &g->files[i]);
}

static struct staged *find_staged(const struct session *s, int64_t file)
{
    for (size_t i = 0; i < s->staged_n; i++)
        if (s->staged[i].file == file)
            return &s->staged[i];
    return NULL;
}

void session_mark_staged(struct session *s, int64_t file, char *take_name)
{
    struct staged *old = find_staged(s, file);
    if (old) {
        free(old->name);
        old->name = take_name;
        return;
    }
    s->staged = xgrow(s->staged, &s->staged_cap, s->staged_n + 1, sizeof(*s->staged));
    s->staged[s->staged_n++] = (struct staged){ .file = file, .name = take_name };
}

static void clear_files(struct staging *g)
{
    for (size_t i = 0; i < g->n; i++)
        file_row_clear(&g->files[i]);
    free(g->files);
    g->files = NULL;
    g->n = 0;
}

void session_stage_forget(struct session *s)
{
    for (size_t i = 0; i < s->staged_n; i++)
        free(s->staged[i].name);
    loop_defer_cancel(s->hub->parts.loop, stage_next, s);
    free(s->staged);
    s->staged = NULL;
    s->staged_n = s->staged_cap = 0;
    if (s->staging.fd >= 0)
        (void)close(s->staging.fd);
    free(s->staging.name);
    clear_files(&s->staging);
    s->staging = (struct staging){ .fd = -1 };
}

/* ---- withdrawn ---- */

bool session_is_staged(const struct session *s, const char *name)
{
    for (size_t i = 0; i < s->staged_n; i++)
        if (strcmp(s->staged[i].name, name) == 0)
            return true;
    return false;
}

/* What an archive was taken apart into. */
static void add_members(struct names *out, const struct json *profiles)
{
    for (const struct json *p = json_first(profiles); p; p = json_next(p))
        for (const struct json *m = json_first(json_get(p, "members")); m; m = json_next(m))
            if (json_text(m))
                names_add(out, json_text(m));
}

static void unstage(struct staged *at, size_t *n, int64_t file, struct names *out)
{
    for (size_t i = 0; i < *n; i++) {
        if (at[i].file != file)
            continue;
        names_add(out, at[i].name);
        free(at[i].name);
        at[i] = at[--*n];
        return;
    }
}

void session_unstage(struct session *s, const struct file_row *f, struct names *out)
{
    autojson struct json *profiles = NULL;
    struct err ignored = { 0 };
    struct staging *g = &s->staging;
    unstage(s->staged, &s->staged_n, f->id, out);
    unstage(s->branch.at, &s->branch.n, f->id, out);
    if (f->profile && json_parse(&profiles, f->profile, strlen(f->profile), PROFILE_MAX, &ignored) == 0)
        add_members(out, profiles);
    for (size_t i = 0; i < g->n; i++)
        if (g->files[i].id == f->id)
            g->files[i].gone = g->again = true;
}

/* It came into the box while its message was deleted. */
static void take_out_again(struct session *s, const char *name, const struct json *profiles)
{
    AUTO(names_clear) struct names gone = { 0 };
    names_add(&gone, name);
    add_members(&gone, profiles);
    session_drop_names(s, &gone);
}

/* ---- looked into ---- */

static bool is_archive(const struct file_row *f)
{
    return f->profile && strstr(f->profile, "\"kind\":\"archive\"");
}

static void keep_profile(struct session *s, struct file_row *f, const struct json *reply)
{
    const struct json *profiles = json_get(reply, "profiles");
    AUTO(str_clear) struct str text = STR_INIT(PROFILE_MAX);
    struct err e = { 0 };
    json_print(&text, profiles);
    if (json_type(profiles) != JSON_ARRAY || str_check(&text, &e) < 0)
        return;
    free(f->profile);
    f->profile = str_take(&text);
    if (store_file_profile(s->hub->parts.store, f->id, f->profile, &e) < 0)
        log_warn("profile_not_kept", KV_S("session", s->row.id), KV_E(&e));
}

static void on_intake(void *ud, const struct box_reply *r, const struct err *e)
{
    struct session *s = ud;
    struct file_row *f = &s->staging.files[s->staging.at];
    if (!r)
        log_warn("file_not_profiled", KV_S("session", s->row.id), KV_I("file", f->id), KV_E(e));
    else if (is_withdrawn(f))
        take_out_again(s, f->name, json_get(r->reply, "profiles"));
    else
        keep_profile(s, f, r->reply);
    struct staged *there = find_staged(s, f->id);
    if (there)
        there->looked = true;
    s->staging.at++;
    next_later(s);
}

static void look_into(struct session *s)
{
    static const struct box_events events = { .done = on_intake };
    const struct file_row *f = &s->staging.files[s->staging.at];
    const struct box_request r = { .op = BOX_OP_INTAKE, .name = f->name, .fd = -1 };
    struct err e = { 0 };
    if (s->hub->parts.sandbox_ops->ask(s->box, &r, &events, s, &e) < 0)
        on_intake(s, NULL, &e);
}

/* ---- put ---- */

static void end_staging(struct session *s, const struct err *e)
{
    void (*done)(struct session *, const struct err *) = s->staging.done;
    s->staging.done = NULL;
    done(s, e);
}

static void put_failed(struct session *s, const struct err *e)
{
    log_warn("file_not_put", KV_S("session", s->row.id), KV_I("file", s->staging.files[s->staging.at].id), KV_E(e));
    if (!s->staging.lenient) {
        end_staging(s, e);
        return;
    }
    s->staging.at++;
    next_later(s);
}

static bool is_wanted(const struct staging *g, const char *name)
{
    for (size_t i = 0; i < g->n; i++) {
        autofree char *box = has_place(g, i) ? box_name(g, i) : NULL;
        if (box && strcmp(box, name) == 0)
            return true;
    }
    return false;
}

/* Where it had another name before, and none has it now, nothing is left under that. */
static void put_under(struct session *s, int64_t file, char *take_name)
{
    const struct staged *was = find_staged(s, file);
    AUTO(names_clear) struct names old = { 0 };
    if (was && strcmp(was->name, take_name) != 0 && !is_wanted(&s->staging, was->name))
        names_add(&old, was->name);
    session_mark_staged(s, file, take_name);
    session_drop_names(s, &old);
}

static void on_put(void *ud, const struct box_reply *r, const struct err *e)
{
    struct session *s = ud;
    struct staging *g = &s->staging;
    const struct file_row *f = &g->files[g->at];
    autofree char *name = take(g->name);
    (void)r;
    (void)close(g->fd);
    g->fd = -1;
    if (e) {
        put_failed(s, e);
        return;
    }
    if (is_withdrawn(f))
        take_out_again(s, name, NULL);
    else
        put_under(s, f->id, take(name));
    next_later(s);
}

static void put(struct session *s)
{
    static const struct box_events events = { .done = on_put };
    struct staging *g = &s->staging;
    struct err e = { 0 };
    g->name = box_name(g, g->at);
    g->fd = open(g->files[g->at].path, O_RDONLY | O_CLOEXEC);
    if (g->fd < 0) {
        free(take(g->name));
        (void)err_set(&e, ERR_STORE, "cannot read %.180s", g->files[g->at].path);
        put_failed(s, &e);
        return;
    }
    const struct box_request r = { .op = BOX_OP_PUT, .name = g->name, .fd = g->fd };
    if (s->hub->parts.sandbox_ops->ask(s->box, &r, &events, s, &e) < 0)
        on_put(s, NULL, &e);
}

static bool is_there(const struct session *s, size_t i)
{
    const struct staged *there = find_staged(s, s->staging.files[i].id);
    autofree char *name = box_name(&s->staging, i);
    return there && strcmp(there->name, name) == 0;
}

/* Of what people sent, or what became of it. */
static bool wants_look(const struct session *s, size_t i)
{
    const struct staging *g = &s->staging;
    const struct file_row *f = &g->files[i];
    const struct staged *there = find_staged(s, f->id);
    bool sent = false;
    for (size_t k = 0; k <= i; k++)
        sent = sent || (g->files[k].cell == 0 && strcmp(g->files[k].name, f->name) == 0);
    return sent && is_newest(g, i) && there && !there->looked && (!f->profile || is_archive(f));
}

static bool is_done(const struct session *s, size_t i)
{
    return !has_place(&s->staging, i) || (is_there(s, i) && !wants_look(s, i));
}

static void stage_next(void *session)
{
    struct session *s = session;
    if (s->staging.again) {
        s->staging.again = false;
        s->staging.at = 0;
    }
    while (s->staging.at < s->staging.n && is_done(s, s->staging.at))
        s->staging.at++;
    if (s->staging.at == s->staging.n)
        end_staging(s, NULL);
    else if (is_there(s, s->staging.at))
        look_into(s);
    else
        put(s);
}

void session_stage(struct session *s, bool lenient, void (*done)(struct session *s, const struct err *e))
{
    struct err e = { 0 };
    clear_files(&s->staging);
    s->staging = (struct staging){ .fd = -1, .done = done, .lenient = lenient };
    if (store_files(s->hub->parts.store, s->row.id, &s->staging.files, &s->staging.n, &e) < 0) {
        end_staging(s, &e);
        return;
    }
    stage_next(s);
}

/* ---- laid under a new box ---- */

void laid_clear(struct laid *l)
{
    for (size_t i = 0; i < l->n; i++)
        free(l->at[i].name);
    free(l->at);
    if (l->fd > 0)
        (void)close(l->fd);
    *l = (struct laid){ 0 };
}

void session_adopt(struct session *s, struct laid *l)
{
    session_stage_forget(s);
    if (s->files_fd > 0)
        (void)close(s->files_fd);
    s->files_fd = l->fd;
    s->staged = l->at;
    s->staged_n = l->n;
    s->staged_cap = l->cap;
    *l = (struct laid){ 0 };
}

static int lay(struct session *s, const struct staging *g, bool alone, struct laid *out, struct err *e)
{
    autofree struct file_link *links = xcalloc(g->n + 1, sizeof(*links));
    size_t n = 0;
    for (size_t i = 0; i < g->n; i++) {
        if (!has_place(g, i))
            continue;
        out->at = xgrow(out->at, &out->cap, out->n + 1, sizeof(*out->at));
        out->at[out->n] = (struct staged){ .file = g->files[i].id, .name = box_name(g, i) };
        links[n++] = (struct file_link){ .path = g->files[i].path, .name = out->at[out->n++].name };
    }
    return store_files_lay(s->hub->parts.store, s->row.id, links, n, alone, &out->fd, e);
}

int session_lay(struct session *s, int cell, bool alone, struct laid *out, struct err *e)
{
    struct store *store = s->hub->parts.store;
    struct staging g = { .fd = -1 };
    *out = (struct laid){ 0 };
    int r = cell < 0 ? store_files(store, s->row.id, &g.files, &g.n, e)
                     : store_files_after(store, s->row.id, cell, &g.files, &g.n, e);
    if (r == 0)
        r = lay(s, &g, alone, out, e);
    if (r < 0)
        laid_clear(out);
    clear_files(&g);
    return r;
}

/* ---- what the model is told of them ---- */

/* For a file that could not be looked into: its name and size, and that. */
static struct json *bare_profile(const struct file_row *f)
{
    struct json *p = json_new_object(), *warnings = json_new_array(), *w = json_new_object();
    json_set_str(w, "code", "unreadable");
    json_set_str(w, "text", "this file could not be looked into");
    json_push(warnings, w);
    json_set_str(p, "path", f->name);
    json_set_str(p, "name", f->name);
    json_set_int(p, "bytes", f->bytes);
    json_set_str(p, "kind", "binary");
    json_set(p, "warnings", warnings);
    return p;
}

static void add_older(struct json *profile, const struct staging *g, size_t newest)
{
    struct json *older = json_new_array();
    for (size_t i = 0; i < newest; i++) {
        bool is_older = strcmp(g->files[i].name, g->files[newest].name) == 0 && has_place(g, i);
        autofree char *name = is_older ? box_name(g, i) : NULL;
        if (name)
            json_push(older, json_new_string(name));
    }
    if (json_len(older))
        json_set(profile, "older", older);
    else
        json_free(older);
}

static void add_profiles(struct json *all, const struct staging *g, size_t i)
{
    autojson struct json *own = NULL;
    struct err ignored = { 0 };
    const struct file_row *f = &g->files[i];
    if (!f->profile || json_parse(&own, f->profile, strlen(f->profile), PROFILE_MAX, &ignored) < 0 || !json_len(own)) {
        json_push(all, bare_profile(f));
        return;
    }
    for (const struct json *p = json_first(own); p; p = json_next(p)) {
        struct json *copy = json_dup(p);
        if (strcmp(json_str_or(p, "path", ""), f->name) == 0)
            add_older(copy, g, i);
        json_push(all, copy);
    }
}

/* What a cell made is in the talk already. */
static bool is_shown(const struct session *s, size_t i)
{
    return has_place(&s->staging, i) && (s->staging.files[i].cell == 0 || s->staging.files[i].profile);
}

struct json *session_profiles(struct session *s)
{
    struct json *all = json_new_array();
    for (size_t i = 0; i < s->staging.n; i++)
        if (is_newest(&s->staging, i) && find_staged(s, s->staging.files[i].id) && is_shown(s, i))
            add_profiles(all, &s->staging, i);
    return all;
}

/* Put into the box by the agent now; by the next turn, which looks into it, it is one of the session's files. */
int session_keep_file(void *ud, const char *name, int fd, struct err *e)
{
    struct session *s = ud;
    AUTO(file_row_clear) struct file_row row = { 0 };
    const struct file_offer offer = {
        .name = name,
        .seq = s->turn->request->seq,
        .fd = fd,
        .max_bytes = s->hub->parts.conf->upload_max_bytes,
        .max_total = s->hub->parts.conf->session_max_bytes,
    };
    return store_file_add(s->hub->parts.store, s->row.id, &offer, &row, e);
}

bool session_was_uploaded(const struct session *s, const char *name, int64_t bytes)
{
    for (size_t i = 0; i < s->staging.n; i++) {
        autofree char *box = s->staging.files[i].cell == 0 ? box_name(&s->staging, i) : NULL;
        if (box && strcmp(box, name) == 0 && s->staging.files[i].bytes == bytes)
            return true;
    }
    return false;
}
