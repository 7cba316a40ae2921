/* slack_message.c - one message of an answer: sent, looked for when that is in doubt, laid out anew when Slack refuses its looks. */
#include <stdio.h>
#include <string.h>
#include "slack_out_private.h"

enum { DOUBT_MS = 60000, PAGE = 200 };
static const char metadata_type[] = "sandbook_part";

static void post(struct job *j, size_t i);

static char *key_of(const struct job *j, size_t i)
{
    return xasprintf("%s|m%zu", j->txn, i);
}

/* The first message that Slack has not got yet. */
static size_t at(const struct job *j)
{
    char part[24];
    size_t i = 0;
    for (; i < j->layout.n; i++) {
        (void)snprintf(part, sizeof(part), "m%zu", i);
        if (!json_str_or(job_part(j, part), "ts", NULL))
            break;
    }
    return i;
}

static bool keep(struct job *j, size_t i, const char *ts)
{
    char part[24];
    struct err e = { 0 };
    (void)snprintf(part, sizeof(part), "m%zu", i);
    if (job_keep(j, part, ts, NULL, &e) == 0)
        return true;
    job_fail(j, &e);
    return false;
}

/* ---- looking for it ---- */

static const char *find_key(const struct json *messages, const char *key)
{
    for (const struct json *m = json_first(messages); m; m = json_next(m)) {
        const struct json *payload = json_get(json_get(m, "metadata"), "event_payload");
        const char *k = json_str_or(payload, "k", NULL);
        if (k && strcmp(k, key) == 0)
            return json_str_or(m, "ts", NULL);
    }
    return NULL;
}

static void on_looked(void *ud, const struct slack_reply *r)
{
    struct job *j = ud;
    const size_t i = at(j);
    autofree char *key = key_of(j, i);
    const char *ts = find_key(json_get(r->body, "messages"), key);
    j->call = NULL;
    j->looked = true;
    if (r->err && err_retryable(r->err)) {
        job_fail(j, r->err); /* not known whether it is there: the outbox comes again */
        return;
    }
    if (!ts) {
        post(j, i);
        return;
    }
    log_info("slack_part_found", KV_S("key", key));
    if (keep(j, i, ts))
        job_step(j);
}

static void look(struct job *j, int64_t since_ms)
{
    AUTO(str_clear) struct str form = STR_INIT(SLACK_FORM_MAX);
    char oldest[40];
    const int64_t from = since_ms - DOUBT_MS;
    (void)snprintf(oldest, sizeof(oldest), "%lld.000000", (long long)(from / 1000));
    slack_form_add(&form, "channel", j->place.channel);
    if (j->place.root)
        slack_form_add(&form, "ts", j->place.root);
    slack_form_add(&form, "oldest", oldest);
    slack_form_add(&form, "include_all_metadata", "true");
    slack_form_add_int(&form, "limit", PAGE);
    const struct slack_request r = { .method = j->place.root ? "conversations.replies" : "conversations.history",
                                     .team = j->place.team,
                                     .form = &form };
    j->call = slack_api_start(j->o->c.api, &r, on_looked, j);
}

/* ---- sending it ---- */

static bool is_uprooted(const char *code)
{
    static const char *const codes[] = { "thread_not_found", "message_not_found", "cannot_reply_to_message" };
    for (size_t i = 0; i < countof(codes); i++)
        if (strcmp(code, codes[i]) == 0)
            return true;
    return false;
}

/* The next rung; what was said already is not said again: then the whole goes as a file. */
static void lower(struct job *j, const char *code)
{
    const enum slack_rung next = at(j) ? SLACK_FILE : (enum slack_rung)(j->rung + 1);
    struct err e = { 0 };
    log_warn("slack_payload_refused", KV_S("txn", j->txn), KV_I("rung", (int64_t)j->rung), KV_S("error", code));
    if (j->rung >= SLACK_FILE) {
        (void)err_set(&e, ERR_REFUSED, "Slack takes no form of this answer: %.60s", code);
        job_fail(j, &e);
        return;
    }
    const size_t said = at(j);
    j->refused = true;
    job_relay(j, next);
    if (said) { /* the file is what is missing */
        j->layout.n = j->layout.n < said ? j->layout.n : said;
    }
    job_step(j);
}

static void on_posted(void *ud, const struct slack_reply *r)
{
    struct job *j = ud;
    const char *ts = json_str_or(r->body, "ts", NULL);
    j->call = NULL;
    if (!r->err && ts) {
        if (keep(j, at(j), ts)) {
            if (j->type != CHAT_NOTICE && j->place.root)
                slack_inbox_engage(j->o->c.inbox, j->place.room, j->place.root);
            job_step(j);
        }
    } else if (r->uncertain && !j->looked) {
        look(j, time_unix_ms());
    } else if (r->error && slack_error_class(r->error) == SLACK_PAYLOAD) {
        lower(j, r->error);
    } else if (r->error && is_uprooted(r->error) && j->place.root && !j->uprooted) {
        j->uprooted = true; /* the thread is gone: once, into the channel */
        free(j->place.root);
        j->place.root = NULL;
        post(j, at(j));
    } else {
        const struct err lost = { .kind = ERR_DATA, .msg = "chat.postMessage: no ts" };
        job_fail(j, r->err ? r->err : &lost);
    }
}

static void add_content(struct str *form, const struct slack_message *m)
{
    if (m->blocks)
        slack_form_add_json(form, "blocks", m->blocks);
    slack_form_add(form, "text", m->text);
}

static struct json *metadata_json(const char *key)
{
    struct json *o = json_new_object(), *payload = json_new_object();
    json_set_str(o, "event_type", metadata_type);
    json_set_str(payload, "k", key);
    json_set(o, "event_payload", payload);
    return o;
}

static void post(struct job *j, size_t i)
{
    AUTO(str_clear) struct str form = STR_INIT(SLACK_FORM_MAX);
    autofree char *key = key_of(j, i);
    autojson struct json *metadata = metadata_json(key);
    j->looked = false;
    slack_form_add(&form, "channel", j->place.channel);
    slack_form_add(&form, "thread_ts", j->place.root);
    add_content(&form, &j->layout.at[i]);
    slack_form_add_json(&form, "metadata", metadata);
    slack_form_add(&form, "unfurl_links", "false");
    slack_form_add(&form, "unfurl_media", "false");
    const struct slack_request r = {
        .method = "chat.postMessage", .team = j->place.team, .channel = j->place.channel, .form = &form
    };
    j->call = slack_api_start(j->o->c.api, &r, on_posted, j);
}

void message_send(struct job *j, size_t i)
{
    char part[24];
    (void)snprintf(part, sizeof(part), "m%zu", i);
    const struct json *begun = job_part(j, part);
    const bool absent = j->refused;
    j->refused = false;
    if (begun && !absent) /* by an earlier life, or try */
        look(j, json_int_or(begun, "at", time_unix_ms()));
    else if (keep(j, i, NULL))
        post(j, i);
}

/* ---- an answer that is out of date ---- */

static const char *amended_ts(const struct job *j, size_t i)
{
    char part[24];
    (void)snprintf(part, sizeof(part), "m%zu", i);
    return json_str_or(job_part(j, part), "ts", NULL);
}

static void on_amended(void *ud, const struct slack_reply *r)
{
    struct job *j = ud;
    j->call = NULL;
    if (r->error && slack_error_class(r->error) == SLACK_PAYLOAD && j->rung < SLACK_TEXT) {
        job_relay(j, SLACK_TEXT);
        message_amend(j);
    } else if (r->err && err_retryable(r->err)) {
        job_fail(j, r->err);
    } else {
        j->amended++; /* gone or not to be changed: nothing more can be done */
        message_amend(j);
    }
}

/* The first of its messages gets the new words, the rest go away. */
void message_amend(struct job *j)
{
    const char *ts = amended_ts(j, j->amended);
    AUTO(str_clear) struct str form = STR_INIT(SLACK_FORM_MAX);
    if (!ts) {
        job_fail(j, NULL);
        return;
    }
    if (!j->laid)
        job_relay(j, SLACK_RICH);
    slack_form_add(&form, "channel", j->place.channel);
    slack_form_add(&form, "ts", ts);
    if (j->amended == 0) {
        add_content(&form, &j->layout.at[0]);
        if (!j->layout.at[0].blocks)
            slack_form_add(&form, "blocks", "[]");
    }
    const struct slack_request r = { .method = j->amended ? "chat.delete" : "chat.update",
                                     .team = j->place.team,
                                     .form = &form };
    j->call = slack_api_start(j->o->c.api, &r, on_amended, j);
}
