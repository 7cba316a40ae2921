/* post.c - what a post looks like as events. The same post always becomes the same messages: their places are part of their keys. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include "ids.h"
#include "outbox.h"

void message_clear(struct message *m)
{
    json_free(m->content);
    json_free(m->sealed);
    markup_free(m->doc);
    markup_free(m->rest);
    free(m->type);
    free(m->target);
    free(m->path);
    free(m->name);
    free(m->small);
    if (m->fd > 0)
        (void)close(m->fd);
    *m = (struct message){ 0 };
}

static struct message *add(struct job *job)
{
    size_t cap = job->n;
    job->messages = xgrow(job->messages, &cap, job->n + 1, sizeof(*job->messages));
    struct message *m = &job->messages[job->n++];
    *m = (struct message){ 0 };
    return m;
}

static const char *msgtype(const struct job *job)
{
    if (job->type == CHAT_NOTICE || job->type == CHAT_STATUS)
        return "m.notice";
    return strcmp(matrix_room_setting(job->room, "msgtype", job->c->conf->matrix_msgtype), "notice") == 0 ? "m.notice"
                                                                                                          : "m.text";
}

/* ---- text ---- */

struct parts {
    struct markup *at[OUT_PARTS_MAX];
    size_t n;
    bool more; /* there is more than that */
};

static void parts_clear(struct parts *p)
{
    for (size_t i = 0; i < p->n; i++)
        markup_free(p->at[i]);
    p->n = 0;
}

static void cut(struct parts *p, struct markup *doc, const struct job *job, size_t text_max)
{
    char kind[16];
    (void)snprintf(kind, sizeof(kind), "%s", msgtype(job));
    const struct markup_limit limit = { .max = text_max, .size = content_size, .ud = kind };
    struct markup *part = NULL;
    while (p->n < OUT_PARTS_MAX && (part = markup_part(doc, &limit)))
        p->at[p->n++] = part;
    p->more = doc->first != NULL;
    for (size_t i = 0; i < p->n; i++)
        p->more = p->more || content_size(kind, p->at[i]) > 2 * text_max; /* a row that can't be cut */
}

static struct markup *document(const struct chat_post *p)
{
    struct markup *doc = markup_parse(p->markdown ? p->markdown : "");
    if (!p->receipt || !*p->receipt)
        return doc;
    struct markup *line = markup_parse(p->receipt);
    while (line->first) {
        struct markup *x = line->first;
        line->first = x->next;
        for (size_t i = 0; i < x->run_n; i++)
            x->runs[i].style |= MARKUP_ITALIC;
        markup_append(doc, x);
    }
    line->last = NULL;
    markup_free(line);
    return doc;
}

static void add_text(struct job *job, const struct markup *part, const char *edits)
{
    struct message *m = add(job);
    m->content = content_text(part, msgtype(job));
    m->doc = markup_dup(part);
    m->text = true;
    if (!edits)
        return;
    m->content = content_edit(m->content, edits);
    m->target = xstrdup(edits);
}

static void add_redaction(struct job *job, const char *event)
{
    add(job)->target = xstrdup(event);
}

/* Where an answer that is too long for the chat lies until it is uploaded: it is in the outbox, so a temporary file will do. */
static int write_answer(const struct job *job, struct message *m, const char *markdown, struct err *e)
{
    const int fd = matrix_temp_file(job->c, e);
    if (fd < 0)
        return -1;
    m->fd = fd;
    m->path = xasprintf("/proc/self/fd/%d", fd);
    if (write_all(fd, markdown, strlen(markdown)) < 0)
        return err_sys(e, ERR_STORE, errno, "cannot write the answer's file");
    return 0;
}

static int add_long(struct job *job, const struct chat_post *p, struct parts *parts, struct err *e)
{
    struct markup *tail = markup_parse("…\n\n*The whole answer is attached: `answer.md`*");
    const struct artifact a = { .path = xstrdup(""),
                                .name = xstrdup("answer.md"),
                                .bytes = (int64_t)strlen(p->markdown) };
    if (parts->n && !(parts->at[0]->first && content_size((char[]){ "m.text" }, parts->at[0]) > OUT_TEXT_MAX + 4096))
        add_text(job, parts->at[0], NULL);
    add_text(job, tail, NULL);
    markup_free(tail);
    struct message *m = add(job);
    m->content = content_file(&a, "answer.md", false);
    m->name = xstrdup("answer.md");
    free(a.path);
    free(a.name);
    return write_answer(job, m, p->markdown, e);
}

/* ---- files ---- */

static char *small_of(const char *path)
{
    const char *dot = strrchr(path, '.');
    return dot ? xasprintf("%.*s" PICTURE_SMALL, (int)(dot - path), path) : NULL;
}

static void add_file(struct job *job, const struct artifact *a, bool figure)
{
    const char *name = content_name(a), *type = content_type(name);
    const bool shown = figure && strncmp(type, "image/", 6) == 0 && strcmp(type, "image/svg+xml") != 0 &&
                       a->bytes <= job->c->conf->result_max_bytes;
    struct message *m = add(job);
    m->content = content_file(a, name, shown);
    m->path = xstrdup(a->path);
    m->name = xstrdup(name);
    if (shown && job->room->encrypted)
        m->small = small_of(a->path);
}

static void add_files(struct job *job, const struct chat_post *p)
{
    for (size_t i = 0; i < p->figure_n; i++)
        add_file(job, &p->figures[i], true);
    for (size_t i = 0; i < p->file_n; i++)
        if (!p->files[i].shown)
            add_file(job, &p->files[i], false);
}

/* ---- relations ---- */

/* A thread's messages belong to its root; in a room of many an answer quotes the question; a direct one needs neither. */
static void relate_one(const struct job *job, const struct message *m, bool first)
{
    if (!m->content || m->target)
        return;
    if (job->thread && !m->bare)
        content_relate(m->content, job->thread, job->reply_to);
    else if (job->reply_to && !matrix_room_is_direct(job->room) && first && !m->bare)
        content_relate(m->content, NULL, job->reply_to);
    if (job->reply_to && job->type != CHAT_NOTICE) /* a word on the way is no answer: caught_up.c */
        json_set_str(m->content, MATRIX_ANSWERS, job->reply_to);
}

static void relate(struct job *job)
{
    for (size_t i = 0; i < job->n; i++)
        relate_one(job, &job->messages[i], i == 0);
}

/* The person who asked is called once, by the first message of the answer. */
static int mention(struct job *job, struct err *e)
{
    AUTO(place_clear) struct place asked = { 0 };
    bool found = false;
    if (job->type != CHAT_ANSWER || !job->reply_to || !job->n || !job->messages[0].content)
        return 0;
    if (matrix_place_get(job->c, job->reply_to, &asked, &found, e) < 0)
        return -1;
    if (found && asked.by && strcmp(asked.by, job->c->login.user) != 0 && !matrix_room_is_direct(job->room))
        content_mention(job->messages[0].content, asked.by);
    return 0;
}

/* ---- posts ---- */

static int fill_new(struct job *job, const struct chat_post *p, size_t text_max, struct err *e)
{
    AUTO(parts_clear) struct parts parts = { .n = 0 };
    AUTO(markup_freep) struct markup *doc = document(p);
    cut(&parts, doc, job, text_max);
    if (parts.more) {
        if (add_long(job, p, &parts, e) < 0)
            return -1;
    } else {
        for (size_t i = 0; i < parts.n; i++)
            add_text(job, parts.at[i], NULL);
    }
    add_files(job, p);
    relate(job);
    return mention(job, e);
}

/* The old answer's messages become the new text, one for one; what is left over goes, what is more is said behind. */
static int fill_amend(struct job *job, const struct chat_post *p, struct err *e)
{
    AUTO(parts_clear) struct parts parts = { .n = 0 };
    AUTO(markup_freep) struct markup *doc = document(p);
    autofree char *text = NULL;
    autojson struct json *sent = NULL;
    size_t n = 0;
    const struct kept k = { MATRIX_PLATFORM, "sent", p->amends ? p->amends : "" };
    if (store_kept(job->c->store, &k, &text, &n, e) < 0 || (text && json_parse(&sent, text, n, 64 << 10, e) < 0))
        return -1;
    const struct json *event = json_first(json_get(sent, "events"));
    if (!event)
        return err_set(e, ERR_REFUSED, "the answer to be replaced is not known");
    cut(&parts, doc, job, OUT_TEXT_MAX / 2); /* an edit has it twice */
    for (size_t i = 0; i < parts.n; i++) {
        add_text(job, parts.at[i], json_text(event));
        event = json_next(event);
    }
    for (; event; event = json_next(event))
        if (json_text(event))
            add_redaction(job, json_text(event));
    relate(job);
    return 0;
}

int job_fill(struct job *job, const struct chat_post *p, size_t text_max, struct err *e)
{
    return p->type == CHAT_AMEND ? fill_amend(job, p, e) : fill_new(job, p, text_max, e);
}

/* ---- texts that the server finds too large ---- */

/* The first piece is the message's; an edit stays one, what comes behind it is said anew. */
static void take_piece(struct job *job, struct message *m)
{
    char kind[16];
    (void)snprintf(kind, sizeof(kind), "%s", msgtype(job));
    const struct markup_limit limit = { .max = m->limit, .size = content_size, .ud = kind };
    markup_free(m->doc);
    m->doc = markup_part(m->rest, &limit);
    json_free(m->content);
    json_free(take(m->sealed));
    m->content = content_text(m->doc, kind);
    if (m->target)
        m->content = content_edit(m->content, m->target);
    relate_one(job, m, false);
}

/* What is said and what comes behind it, as one again. */
static void join(struct message *m)
{
    struct markup *rest = m->rest;
    m->rest = take(m->doc);
    for (struct markup *x; rest && (x = rest->first);) {
        rest->first = x->next;
        x->next = NULL;
        markup_append(m->rest, x);
    }
    if (rest)
        rest->last = NULL;
    markup_free(rest);
}

bool job_halve(struct job *job)
{
    struct message *m = &job->messages[job->at];
    char kind[16];
    (void)snprintf(kind, sizeof(kind), "%s", msgtype(job));
    const size_t now = m->doc ? content_size(kind, m->doc) : 0;
    if (now / 2 < OUT_TEXT_MIN)
        return false;
    join(m);
    m->limit = now / 2;
    take_piece(job, m);
    return true;
}

bool job_next_piece(struct job *job)
{
    struct message *m = &job->messages[job->at];
    if (!m->rest || !m->rest->first)
        return false;
    free(take(m->target));
    take_piece(job, m);
    return true;
}

void job_pass_pieces(struct job *job)
{
    const struct json *cuts = json_get(job->sent, "cuts");
    struct message *m = job->at < job->n ? &job->messages[job->at] : NULL;
    if (!m || !m->doc || !json_len(cuts))
        return;
    join(m);
    for (const struct json *x = json_first(cuts); x && m->rest->first; x = json_next(x)) {
        m->limit = (size_t)json_number(x);
        take_piece(job, m);
    }
    if (!job_next_piece(job)) /* a crash came between the last piece and the word that it was the last */
        job->at++;
}

void job_replace_with_words(struct job *job, const char *words)
{
    AUTO(markup_freep) struct markup *doc = markup_of_text(words);
    struct message *m = &job->messages[job->at];
    json_free(m->content);
    json_free(take(m->sealed));
    free(take(m->path));
    m->content = content_text(doc, "m.notice");
    if (job->thread)
        content_relate(m->content, job->thread, job->reply_to);
}
