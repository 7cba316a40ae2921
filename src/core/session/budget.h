/* budget.h - what a turn, a person, a room and a day may spend on models: tokens, and money where a price is known. Pure; the sums
 * come from the store (session_budget.c).
 *
 * A day begins at 00:00 UTC. Money is counted in millionths of the currency that prices are given in. */
#ifndef BUDGET_H
#define BUDGET_H
#include "core/agent/agent.h"
#include "store.h"

struct conf_model;

enum budget_scope { BUDGET_TURN, BUDGET_PERSON, BUDGET_ROOM, BUDGET_DAY, BUDGET_SCOPES };

struct budget {
    int64_t tokens, money;         /* used */
    int64_t tokens_max, money_max; /* 0: no limit */
};

/* 0 when the model has no price. */
int64_t budget_cost(const struct conf_model *m, const struct model_usage *u);
/* Money is limited, and what this model spends of it is not known. */
bool budget_is_blind(const struct conf *c, const struct conf_model *m);
/* Used, in per cent of whichever limit is nearer; 0 without limits, never over 1,000. */
int budget_part(const struct budget *b);
/* May a call go out that needs about so much; first: none has gone out in this turn. */
enum agent_spending budget_allows(const struct budget *b, int64_t tokens, int64_t money, bool first);
/* "1.25" for 1250000; caller frees. */
char *budget_money(int64_t millionths);
int64_t budget_day_start(int64_t unix_ms);
#endif
