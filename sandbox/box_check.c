/* box_check.c - see box_check.h. A session of our own, whose answers come here instead of to the daemon: tools first, then one
 * probe after the other. A probe's code is ours and runs in an interpreter that nobody touched before, so its words can be
 * believed; what came of the request is the keeper's own verdict. */
#include "box_check.h"
#include <stdio.h>
#include <string.h>
#include "box_probes.h"
#include "log.h"

enum {
    CHECK_MEMORY = 256 << 20,
    CHECK_OUTPUT_MAX = 4096,
    CHECK_GRACE_MS = 300,
    DETAIL_MAX = 120,
    STEP_TOOLS = -1,
};

static const uint32_t CHECK_SESSION = UINT32_MAX; /* box_proto.h keeps it from the daemon */

struct box_check {
    struct box_keeper *keeper;
    struct box_session *session;
    uint32_t request;
    int step; /* index into probes; STEP_TOOLS before */
    int failed;
    struct str output;
};

static void finish(struct box_check *c, const char *why)
{
    struct box_keeper *k = c->keeper;
    char text[80];
    if (!why && c->failed > 0) {
        (void)snprintf(text, sizeof text, "%d of %zu attempts were answered wrongly", c->failed, countof(probes));
        why = text;
    }
    if (c->session) {
        c->session->check = NULL;
        box_session_close(c->session);
    }
    box_answer_check(k, c->request, why);
    k->check = NULL;
    str_clear(&c->output);
    free(c);
}

static void ask(struct box_check *c, const char *code, int timeout_ms)
{
    AUTO(str_clear) struct str text = STR_INIT(BOX_REQUEST_MAX);
    autojson struct json *v = json_new_object();
    json_set_str(v, "code", code);
    json_set_int(v, "number", c->step + 2);
    json_set_int(v, "timeout_ms", timeout_ms);
    json_set_int(v, "grace_ms", CHECK_GRACE_MS);
    json_print(&text, v);
    str_clear(&c->output);
    box_session_ask(c->session, BOX_CELL, (uint32_t)(c->step + 2), str_peek(&text), text.len);
}

void box_check_start(struct box_keeper *k, uint32_t request)
{
    struct err e;
    if (k->check || k->refused || !k->ready) {
        box_answer_check(k, request, k->check ? "a check is running" : "no box can be made");
        return;
    }
    struct box_check *c = xcalloc(1, sizeof *c);
    *c =
        (struct box_check){ .keeper = k, .request = request, .step = STEP_TOOLS, .output = STR_INIT(CHECK_OUTPUT_MAX) };
    autojson struct json *limits = json_new_object();
    json_set_int(limits, "memory_bytes", CHECK_MEMORY);
    json_set_int(limits, "disk_bytes", 32 << 20);
    json_set_int(limits, "pids", 64);
    k->check = c;
    c->session = box_session_open(k, CHECK_SESSION, limits, &e);
    if (c->session)
        c->session->check = c;
    else
        finish(c, e.msg);
}

void box_check_stop(struct box_keeper *k)
{
    struct box_check *c = take(k->check);
    if (!c)
        return;
    if (c->session)
        c->session->check = NULL;
    str_clear(&c->output);
    free(c);
}

void box_check_output(struct box_check *c, const char *data, size_t n)
{
    size_t room = CHECK_OUTPUT_MAX - c->output.len;
    str_add(&c->output, data, n < room ? n : room);
}

/* Is word (of n bytes) among the ones in list, which are separated by spaces? */
static bool is_among(const char *list, const char *word, size_t n)
{
    for (const char *at = list; (at = strstr(at, word)) != NULL; at++)
        if ((at == list || at[-1] == ' ') && (at[n] == ' ' || at[n] == '\0'))
            return true;
    return false;
}

static bool words_are_right(const struct box_probe *p, const char *output)
{
    if (strcmp(p->words, "*") == 0)
        return true;
    autofree char *copy = xstrdup(output);
    char *rest = NULL;
    int n = 0;
    for (char *word = strtok_r(copy, " \n", &rest); word; word = strtok_r(NULL, " \n", &rest), n++)
        if (!is_among(p->words, word, strlen(word)))
            return false;
    return n > 0;
}

/* The first words it printed, then the verdict; one line. */
static void describe(struct str *out, const struct box_check *c, const struct box_answer *a)
{
    utf8_scrub(out, str_peek(&c->output), c->output.len < DETAIL_MAX ? c->output.len : DETAIL_MAX);
    for (size_t i = 0; i < out->len; i++)
        out->buf[i] = (char)(out->buf[i] == '\n' ? ' ' : out->buf[i]);
    str_printf(out, "%s%s", out->len > 0 ? " -> " : "", a->verdict);
}

static void note(struct box_check *c, const struct box_probe *p, const struct box_answer *a)
{
    AUTO(str_clear) struct str text = STR_INIT(BOX_PAYLOAD_MAX), seen = STR_INIT(512);
    autojson struct json *v = json_new_object();
    bool right = is_among(p->verdicts, a->verdict, strlen(a->verdict)) && words_are_right(p, str_peek(&c->output));
    describe(&seen, c, a);
    c->failed += !right;
    json_set_str(v, "name", p->name);
    json_set_str(v, "outcome", right ? "pass" : "fail");
    json_set_str(v, "detail", str_peek(&seen));
    json_print(&text, v);
    box_send_text(&c->keeper->daemon, BOX_NOTE, 0, c->request, &text);
    if (!right)
        log_error("box_check_failed", KV_S("name", p->name), KV_S("detail", str_peek(&seen)));
}

void box_check_answer(struct box_check *c, const struct box_answer *a)
{
    if (a->request == 0 && strcmp(a->verdict, "ok") != 0) { /* it could not be opened, and is closing */
        finish(c, a->why);
        return;
    }
    if (a->request == 0) {
        ask(c, probe_tools, 10000);
        return;
    }
    if (strcmp(a->state, "lost") == 0 && strcmp(a->verdict, "failed") == 0) {
        finish(c, a->why);
        return;
    }
    if (c->step >= 0)
        note(c, &probes[c->step], a);
    if (++c->step == (int)countof(probes))
        finish(c, NULL);
    else
        ask(c, probes[c->step].code, probes[c->step].timeout_ms);
}
