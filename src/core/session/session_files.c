/* session_files.c - what cells make of the files: versions in the store, and branches with files of their own. */
#include <inttypes.h>
#include <string.h>
#include "conf.h"
#include "json.h"
#include "log.h"
#include "session_private.h"

static bool was_sent(const struct session *s, const char *name)
{
    for (size_t i = 0; i < s->staging.n; i++)
        if (s->staging.files[i].cell == 0 && strcmp(s->staging.files[i].name, name) == 0)
            return true;
    return false;
}

static void note_version(struct session *s, struct cell *c, const char *name, int64_t version)
{
    struct json *v = json_new_object();
    json_set_str(v, "name", name);
    json_set_int(v, "version", version);
    if (!s->turn->made)
        s->turn->made = json_new_array();
    json_push(s->turn->made, v);
    if (!was_sent(s, name))
        return;
    autofree char *note =
        xasprintf("%s is version %" PRId64 " now; what the person sent is kept, and is there as an older version "
                  "from the next question on",
                  name, version);
    cell_add_note(c, note);
}

static void keep_one(struct session *s, struct cell *c, const struct artifact *a)
{
    struct err e = { 0 };
    struct file_version v = { 0 };
    const char *name = a->box_name ? a->box_name : a->name;
    if (!name)
        return;
    const struct file_made made = {
        .name = name, .path = a->path, .cell = c->number, .max_total = s->hub->parts.conf->session_max_bytes
    };
    if (store_file_made(s->hub->parts.store, s->row.id, &made, &v, &e) < 0) {
        log_warn("file_not_kept", KV_S("session", s->row.id), KV_I("cell", c->number), KV_E(&e));
        autofree char *note =
            xasprintf(CELL_NOT_KEPT "%s: %s", a->name, e.kind == ERR_LIMIT ? e.msg : "it could not be stored");
        cell_add_note(c, note);
        return;
    }
    session_mark_staged(s, v.file, xstrdup(name));
    if (v.fresh && v.version > 1)
        note_version(s, c, name, v.version);
}

void session_keep_files(struct session *s, struct cell *c)
{
    struct err e = { 0 };
    for (size_t i = 0; i < c->gone_n; i++)
        if (store_file_gone(s->hub->parts.store, s->row.id, c->gone[i], c->number, &e) < 0)
            log_warn("file_not_gone", KV_S("session", s->row.id), KV_I("cell", c->number), KV_E(&e));
    for (size_t i = 0; i < c->files.n; i++)
        if (!artifact_is_hidden(c->files.at[i].name))
            keep_one(s, c, &c->files.at[i]);
}

/* ---- branches ---- */

void session_branched(struct session *s, int cell)
{
    struct err e = { 0 };
    if (s->branch.fd <= 0)
        return;
    if (store_branch(s->hub->parts.store, s->row.id, cell, s->row.cells + 1, &e) < 0)
        log_error("branch_not_kept", KV_S("session", s->row.id), KV_I("cell", cell), KV_E(&e));
    session_adopt(s, &s->branch);
    s->hub->parts.sandbox_ops->refit(s->box, s->files_fd);
}
