/* box_check.c - see box_check.h. A session of our own, whose answers come here instead of to the daemon: tools first, then one
 * probe after the other. A probe's code is ours and runs in an interpreter that nobody touched before, so its words can be
 * believed; what came of the request is the keeper's own verdict. Time limits are generous where an answer is expected, so
 * that a busy machine is not taken for an open one. */
#include "box_check.h"
#include <stdio.h>
#include <string.h>
#include "box_probes.h"
#include "log.h"

enum {
    CHECK_MEMORY = 256 << 20,
    CHECK_PIDS = 48, /* a fork bomb's processes have to be ended, too */
    CHECK_OUTPUT_MAX = 4096,
    CHECK_GRACE_MS = 200,
    QUICK_MS = 10000,
    AGAIN_MS = 10000,          /* from a look that found another check at work to the next */
    LOOK_TIMEOUT_MS = 60000,   /* of one attempt at the start: however busy the machine is */
    CHECK_TEXT_MAX = 16 << 10, /* all words of an output, and what is said about them */
    STEP_TOOLS = -1,
};

static const uint32_t CHECK_SESSION = UINT32_MAX; /* box_proto.h keeps it from the daemon */

struct box_check {
    struct box_keeper *keeper;
    struct box_session *session;
    uint32_t request;
    bool quiet; /* for the keeper's own look: nobody is told, and only the quick ones are tried */
    int step;   /* index into probes; STEP_TOOLS before */
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
    if (!c->quiet)
        box_answer_check(k, c->request, why);
    else if (why && !*k->escape)
        log_warn("box_look_failed", KV_S("why", why)); /* a session that can't be opened is told when it is asked for */
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

static void begin(struct box_keeper *k, uint32_t request, bool quiet)
{
    struct err e;
    struct box_check *c = xcalloc(1, sizeof *c);
    *c = (struct box_check){
        .keeper = k, .request = request, .quiet = quiet, .step = STEP_TOOLS, .output = STR_INIT(CHECK_OUTPUT_MAX)
    };
    autojson struct json *limits = json_new_object();
    json_set_int(limits, "memory_bytes", CHECK_MEMORY);
    json_set_int(limits, "disk_bytes", 32 << 20);
    json_set_int(limits, "pids", CHECK_PIDS);
    k->check = c;
    c->session = box_session_open(k, CHECK_SESSION, limits, -1, &e);
    if (c->session)
        c->session->check = c;
    else
        finish(c, e.msg);
}

void box_check_start(struct box_keeper *k, uint32_t request)
{
    if (k->check || k->looking || k->refused || !k->ready)
        box_answer_check(k, request, k->check || k->looking ? "a check is running" : "no box can be made");
    else
        begin(k, request, false);
}

void box_check_look(struct box_keeper *k)
{
    if (k->check || box_session_find(k, CHECK_SESSION)) { /* doctor is at it */
        k->look_ms = time_mono_ms() + AGAIN_MS;
        return;
    }
    k->looking = true;
    begin(k, 0, true);
}

bool box_check_looked(const struct box_keeper *k)
{
    return !k->check && !box_session_find(k, CHECK_SESSION);
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

/* What the probe said: the words behind "=", each once, in a row with ", "; *n: how many there were. Whatever else it, or a
 * library, printed is left out. False: one of them is wrong. */
static bool words_of(struct str *out, const char *right, const char *output, int *n)
{
    autofree char *copy = xstrdup(output);
    char *rest = NULL;
    bool good = true;
    for (char *word = strtok_r(copy, " \r\n", &rest); word; word = strtok_r(NULL, " \r\n", &rest)) {
        if (*word++ != '=' || !*word)
            continue;
        ++*n;
        good = good && (!right || is_among(right, word, strlen(word)));
        if (!strstr(str_peek(out), word))
            str_printf(out, "%s%.40s", out->len > 0 ? ", " : "", word);
    }
    return good;
}

/* For an operator: what came of it, and what should have. */
static void describe(struct str *out, const struct box_probe *p, const char *words, int n, const struct box_answer *a)
{
    static const struct {
        const char *verdict, *text;
    } ends[] = {
        { "timeout", "ended by the time limit" },
        { "oom", "ended by the memory limit" },
        { "limit", "ended by a limit" },
        { "crash", "ended at once" },
        { "cancelled", "cancelled" },
        { "failed", "not run" },
    };
    if (n > 0)
        str_printf(out, n > 1 ? "%s (%d tries)" : "%s", words, n);
    for (size_t i = 0; i < countof(ends); i++)
        if (strcmp(a->verdict, ends[i].verdict) == 0)
            str_printf(out, "%s%s", out->len > 0 ? "; " : "", ends[i].text);
    if (out->len == 0)
        str_puts(out, p->words ? "said nothing" : "refused by Python");
}

/* It ends nothing and fills nothing. */
static bool is_quick(const struct box_probe *p)
{
    return p->words && p->timeout_ms <= QUICK_MS;
}

static bool is_missing(const struct box_keeper *k, const struct box_probe *p)
{
    return p->needs == NEEDS_LANDLOCK && k->landlock < 1;
}

static void send_note(struct box_check *c, const struct box_probe *p, const char *outcome, const struct str *detail)
{
    AUTO(str_clear) struct str text = STR_INIT(BOX_PAYLOAD_MAX), line = STR_INIT(CHECK_TEXT_MAX);
    autojson struct json *v = json_new_object();
    utf8_scrub(&line, str_peek(detail), detail->len);
    json_set_str(v, "name", p->name);
    json_set_str(v, "outcome", outcome);
    json_set_str(v, "detail", str_peek(&line));
    json_print(&text, v);
    box_send_text(&c->keeper->daemon, BOX_NOTE, 0, c->request, &text);
}

bool box_check_judge(const struct box_probe *p, const char *output, const struct box_answer *a, struct str *detail)
{
    AUTO(str_clear) struct str words = STR_INIT(CHECK_TEXT_MAX);
    int n = 0;
    bool right = words_of(&words, p->words, output, &n);
    right = right && (!p->words || n > 0) && is_among(p->verdicts, a->verdict, strlen(a->verdict));
    describe(detail, p, str_peek(&words), n, a);
    if (right)
        return true;
    str_printf(detail, "; right would be %s", p->words ? p->words : p->verdicts);
    if (a->why)
        str_printf(detail, " (%.160s)", a->why);
    return false;
}

/* Did a wall give way, or was the machine only too busy to try it? */
static bool got_through(const struct box_check *c, const struct box_answer *a)
{
    return !c->quiet || strcmp(a->verdict, "ok") == 0;
}

static void note(struct box_check *c, const struct box_probe *p, const struct box_answer *a)
{
    AUTO(str_clear) struct str detail = STR_INIT(CHECK_TEXT_MAX);
    bool right = box_check_judge(p, str_peek(&c->output), a, &detail);
    if (!right)
        log_error("box_check_failed", KV_S("name", p->name), KV_S("detail", str_peek(&detail)),
                  KV_S("verdict", a->verdict));
    if (!right && got_through(c, a)) {
        c->failed++;
        (void)snprintf(c->keeper->escape, sizeof c->keeper->escape, "%s: %s", p->name, str_peek(&detail));
    }
    if (!c->quiet)
        send_note(c, p, right ? "pass" : "fail", &detail);
}

/* The next one that this machine can be asked; false: that was the last. */
static bool next_probe(struct box_check *c)
{
    while (++c->step < (int)countof(probes)) {
        if (c->quiet && !is_quick(&probes[c->step]))
            continue;
        if (!is_missing(c->keeper, &probes[c->step]))
            return true;
        if (c->quiet)
            continue;
        AUTO(str_clear) struct str detail = STR_INIT(CHECK_TEXT_MAX);
        str_puts(&detail, "needs Landlock, which this kernel does not have");
        send_note(c, &probes[c->step], "skip", &detail);
    }
    return false;
}

void box_check_answer(struct box_check *c, const struct box_answer *a)
{
    if (a->request == 0 && strcmp(a->verdict, "ok") != 0) { /* it could not be opened, and is closing */
        finish(c, a->why);
        return;
    }
    if (a->request == 0) {
        ask(c, probe_tools, LOOK_TIMEOUT_MS);
        return;
    }
    if (strcmp(a->state, "lost") == 0 && strcmp(a->verdict, "failed") == 0) {
        finish(c, a->why);
        return;
    }
    if (c->step >= 0)
        note(c, &probes[c->step], a);
    if (next_probe(c))
        ask(c, probes[c->step].code, c->quiet ? LOOK_TIMEOUT_MS : probes[c->step].timeout_ms);
    else
        finish(c, NULL);
}
