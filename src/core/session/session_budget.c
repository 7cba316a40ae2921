/* session_budget.c - who has spent what: asked of the store before each call of a model, kept after it. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include "conf.h"
#include "log.h"
#include "metric.h"
#include "session_private.h"

enum {
    NEAR_PART = 80,      /* per cent that are worth a word */
    ANSWER_TOKENS = 300, /* what a call writes at least, in estimates */
    LINES_MAX = 8 << 10,
};

static const enum word scope_words[BUDGET_SCOPES] = {
    [BUDGET_TURN] = WORD_SCOPE_TURN,
    [BUDGET_PERSON] = WORD_SCOPE_PERSON,
    [BUDGET_ROOM] = WORD_SCOPE_ROOM,
    [BUDGET_DAY] = WORD_SCOPE_DAY,
};

/* ---- limits and sums ---- */

static void set_limits(struct budget all[BUDGET_SCOPES], const struct conf *c)
{
    all[BUDGET_TURN] = (struct budget){ .tokens_max = c->turn_tokens, .money_max = c->turn_money };
    all[BUDGET_PERSON] = (struct budget){ .tokens_max = c->person_tokens, .money_max = c->person_money };
    all[BUDGET_ROOM] = (struct budget){ .tokens_max = c->room_tokens, .money_max = c->room_money };
    all[BUDGET_DAY] = (struct budget){ .tokens_max = c->day_tokens, .money_max = c->day_money };
}

/* A sum that cannot be read counts as nothing: people are not kept from working by our disk. */
static void add_sum(struct budget *b, struct session *s, const struct usage_query *q)
{
    struct usage_sum sum;
    struct err e = { 0 };
    if (store_usage_sum(s->hub->parts.store, q, &sum, &e) < 0)
        log_error("usage_unread", KV_S("session", s->row.id), KV_E(&e));
    b->tokens = sum.tokens;
    b->money = sum.cost;
}

static void read_budgets(struct budget all[BUDGET_SCOPES], struct session *s, const char *person)
{
    const int64_t today = budget_day_start(time_unix_ms());
    set_limits(all, s->hub->parts.conf);
    add_sum(&all[BUDGET_PERSON], s, &(struct usage_query){ .since_ms = today, .person = person });
    add_sum(&all[BUDGET_ROOM], s,
            &(struct usage_query){ .since_ms = today, .platform = s->row.platform, .room = s->row.room });
    add_sum(&all[BUDGET_DAY], s, &(struct usage_query){ .since_ms = today });
    if (!s->turn)
        return;
    all[BUDGET_TURN].tokens = s->turn->used.in + s->turn->used.out;
    all[BUDGET_TURN].money = s->turn->cost;
}

static bool is_free(const struct session *s)
{
    return strcmp(session_model(s)->dialect, "builtin") == 0;
}

/* ---- before, and after ---- */

enum agent_spending session_may_spend(void *ud, int64_t in_tokens)
{
    struct session *s = ud;
    struct budget all[BUDGET_SCOPES];
    const struct model_usage need = { .in = in_tokens, .out = ANSWER_TOKENS };
    const int64_t money = budget_cost(s->turn->model->section, &need);
    const bool first = s->turn->used.in + s->turn->used.out == 0;
    enum agent_spending least = SPEND_FREELY;
    read_budgets(all, s, s->turn->request->sender);
    for (int i = 0; i < BUDGET_SCOPES; i++) {
        const enum agent_spending may = budget_allows(&all[i], need.in + need.out, money, first);
        least = may > least ? may : least;
    }
    if (least != SPEND_FREELY)
        log_info("budget_end", KV_S("session", s->row.id), KV_I("turn", s->turn->id), KV_I("may", least),
                 KV_I("need", need.in + need.out), KV_I("used", s->turn->used.in + s->turn->used.out));
    return least;
}

void session_spent(void *ud, const struct model_usage *u)
{
    struct session *s = ud;
    struct turn *t = s->turn;
    struct err e = { 0 };
    struct budget before[BUDGET_SCOPES], after[BUDGET_SCOPES];
    const struct usage_row row = {
        .session = s->row.id,
        .person = t->request->sender,
        .model = t->model->section->section,
        .in = u->in,
        .cached = u->cached,
        .out = u->out,
        .cost = budget_cost(t->model->section, u),
    };
    metric_count(METRIC_TOKENS, "in", u->in);
    metric_count(METRIC_TOKENS, "cached", u->cached);
    metric_count(METRIC_TOKENS, "out", u->out);
    read_budgets(before, s, row.person);
    if (store_usage_add(s->hub->parts.store, &row, &e) < 0)
        log_warn("usage_not_kept", KV_S("session", s->row.id), KV_E(&e));
    t->used.in += u->in;
    t->used.cached += u->cached;
    t->used.out += u->out;
    t->cost += row.cost;
    read_budgets(after, s, row.person);
    for (int i = BUDGET_PERSON; i < BUDGET_SCOPES; i++)
        if (budget_part(&before[i]) < NEAR_PART && budget_part(&after[i]) >= NEAR_PART)
            t->near = (enum budget_scope)i;
}

bool session_budget_over(struct session *s, const char *person, enum budget_scope *scope)
{
    struct budget all[BUDGET_SCOPES];
    if (is_free(s))
        return false;
    read_budgets(all, s, person);
    for (int i = BUDGET_PERSON; i < BUDGET_SCOPES; i++) {
        if (budget_part(&all[i]) < 100)
            continue;
        *scope = (enum budget_scope)i;
        return true;
    }
    return false;
}

char *session_scope_word(enum budget_scope scope, const char *language)
{
    return words(scope_words[scope], language, NULL, NULL);
}

/* Once, by the call that passed it. */
void session_tell_near(struct session *s)
{
    struct turn *t = s->turn;
    struct budget all[BUDGET_SCOPES];
    char part[16];
    if (t->near == BUDGET_TURN)
        return;
    read_budgets(all, s, t->request->sender);
    (void)snprintf(part, sizeof(part), "%d", budget_part(&all[t->near]));
    autofree char *scope = session_scope_word(t->near, t->request->language);
    session_notice_words(s, t->request, WORD_BUDGET_NEAR, part, scope);
}

/* ---- commands ---- */

static void add_tokens(struct str *out, const struct request *r, int64_t tokens)
{
    autofree char *text = words_n(tokens == 1 ? WORD_TOKEN : WORD_RECEIPT_TOKENS, r->language, tokens, 0);
    str_puts(out, text);
}

static void add_amount(struct str *out, const struct request *r, int64_t tokens, int64_t money)
{
    autofree char *sum = budget_money(money);
    add_tokens(out, r, tokens);
    if (money)
        str_printf(out, ", %s %s", sum, r->session->hub->parts.conf->currency);
}

static void add_budget(struct str *out, const struct request *r, enum budget_scope scope, const struct budget *b)
{
    const char *currency = r->session->hub->parts.conf->currency;
    autofree char *name = session_scope_word(scope, r->language);
    str_printf(out, "- %s: ", name);
    if (scope != BUDGET_TURN || b->tokens) {
        add_amount(out, r, b->tokens, b->money);
        str_puts(out, " / ");
    }
    autofree char *sum = budget_money(b->money_max), *none = words(WORD_NO_LIMIT, r->language, NULL, NULL);
    if (b->tokens_max)
        add_tokens(out, r, b->tokens_max);
    if (b->money_max)
        str_printf(out, "%s%s %s", b->tokens_max ? ", " : "", sum, currency);
    str_printf(out, "%s\n", b->tokens_max || b->money_max ? "" : none);
}

char *session_limits_text(struct request *r)
{
    struct budget all[BUDGET_SCOPES];
    const struct conf *c = r->session->hub->parts.conf;
    AUTO(str_clear) struct str out = STR_INIT(LINES_MAX);
    char seconds[24], memory[24];
    (void)snprintf(seconds, sizeof(seconds), "%" PRId64, c->cell_timeout_ms / 1000);
    (void)snprintf(memory, sizeof(memory), "%" PRId64, c->memory_bytes >> 20);
    autofree char *cell = words(WORD_LIMIT_CELL, r->language, seconds, memory);
    autofree char *turn = words_n(WORD_LIMIT_TURN, r->language, c->turn_timeout_ms / 1000, c->max_steps);
    autofree char *file = words_n(WORD_LIMIT_FILE, r->language, c->upload_max_bytes >> 20, 0);
    str_printf(&out, "- %s\n- %s\n- %s\n", cell, turn, file);
    read_budgets(all, r->session, r->sender);
    for (int i = 0; i < BUDGET_SCOPES; i++)
        add_budget(&out, r, (enum budget_scope)i, &all[i]);
    return str_take(&out);
}

char *session_usage_text(struct request *r)
{
    struct session *s = r->session;
    struct usage_sum here;
    struct budget all[BUDGET_SCOPES];
    struct err e = { 0 };
    AUTO(str_clear) struct str out = STR_INIT(LINES_MAX), amount = STR_INIT(LINES_MAX);
    char calls[24];
    if (store_usage_sum(s->hub->parts.store, &(struct usage_query){ .session = s->row.id }, &here, &e) < 0)
        log_error("usage_unread", KV_S("session", s->row.id), KV_E(&e));
    add_amount(&amount, r, here.tokens, here.cost);
    (void)snprintf(calls, sizeof(calls), "%" PRId64, here.calls);
    autofree char *first = words(here.calls == 1 ? WORD_USAGE_ONE : WORD_USAGE, r->language, str_peek(&amount), calls);
    str_printf(&out, "- %s\n", first);
    read_budgets(all, s, r->sender);
    for (int i = BUDGET_PERSON; i < BUDGET_SCOPES; i++)
        add_budget(&out, r, (enum budget_scope)i, &all[i]);
    return str_take(&out);
}
