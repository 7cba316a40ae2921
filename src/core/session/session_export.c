/* session_export.c - the chat command `export`: the conversation as a ZIP archive, posted like an answer. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include "conf.h"
#include "core/export/export.h"
#include "json.h"
#include "log.h"
#include "session_private.h"

enum { FILES_JSON_MAX = 16 << 10 };

static void post(struct request *r, const char *path)
{
    struct session *s = r->session;
    struct err e = { 0 };
    struct stat st = { 0 };
    struct artifacts files = { 0 };
    AUTO(str_clear) struct str list = STR_INIT(FILES_JSON_MAX);
    if (stat(path, &st) < 0)
        log_warn("export_gone", KV_S("session", s->row.id));
    *artifacts_add(&files) = (struct artifact){ .path = xstrdup(path),
                                                .name = xasprintf("sandbook-%s.zip", s->row.id),
                                                .bytes = st.st_size };
    autojson struct json *v = artifacts_to_json(&files);
    json_print(&list, v);
    struct outbox_item o = session_item(s, r->event_id, "export", r->reply_to);
    o.markdown = words(WORD_EXPORTED, r->language, s->row.id, NULL);
    o.files = str_take(&list);
    if (store_outbox_add(s->hub->parts.store, &o, &o.id, &e) < 0)
        log_error("export_not_kept", KV_S("session", s->row.id), KV_E(&e));
    session_deliver(s->chat, &o);
    outbox_item_clear(&o);
    artifacts_clear(&files);
}

static void refuse(struct request *r, const struct err *e)
{
    struct session *s = r->session;
    autofree char *limit = xasprintf("%" PRId64 " MB", s->hub->parts.conf->upload_max_bytes >> 20);
    log_warn("not_exported", KV_S("session", s->row.id), KV_E(e));
    if (e->kind == ERR_LIMIT)
        session_notice_words(s, r, WORD_EXPORT_BIG, limit, s->row.id);
    else
        session_notice_words(s, r, e->kind == ERR_DATA ? WORD_NO_HISTORY : WORD_TRY_AGAIN, NULL, NULL);
}

void session_export(struct request *r)
{
    struct session *s = r->session;
    struct err e = { 0 };
    autofree char *out = NULL;
    autoclose int fd = -1;
    if (store_session_out(s->hub->parts.store, s->row.id, &fd, &out, &e) < 0) {
        refuse(r, &e);
        return;
    }
    autofree char *path = xasprintf("%s/.export-%" PRId64 ".zip", out, r->seq);
    (void)unlink(path); /* of a try that did not end */
    if (export_to_zip(s->hub->parts.store, s->row.id, path, s->hub->parts.conf->upload_max_bytes, NULL, &e) < 0)
        refuse(r, &e);
    else
        post(r, path);
}
