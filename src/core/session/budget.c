/* budget.c - sums and parts. */
#include "budget.h"
#include <inttypes.h>
#include <string.h>
#include "conf.h"

enum { DAY_MS = 86400000, PART_MAX = 1000 };

static int64_t price(int64_t tokens, int64_t per_million)
{
    return (int64_t)((double)tokens * (double)per_million / 1e6 + 0.5);
}

int64_t budget_cost(const struct conf_model *m, const struct model_usage *u)
{
    const int64_t cached = u->cached < u->in ? u->cached : u->in;
    const int64_t cached_price = m->price_cached ? m->price_cached : m->price_in;
    return price(u->in - cached, m->price_in) + price(cached, cached_price) + price(u->out, m->price_out);
}

bool budget_is_blind(const struct conf *c, const struct conf_model *m)
{
    const bool limited = c->turn_money || c->person_money || c->room_money || c->day_money;
    const bool costs_nothing = strcmp(m->dialect, "builtin") == 0 || strcmp(m->dialect, "replay") == 0;
    return limited && !costs_nothing && !m->price_in && !m->price_out;
}

static int64_t part(int64_t used, int64_t max)
{
    if (max <= 0)
        return 0;
    const double p = (double)used * 100 / (double)max;
    return p < PART_MAX ? (int64_t)p : PART_MAX;
}

int budget_part(const struct budget *b)
{
    const int64_t tokens = part(b->tokens, b->tokens_max), money = part(b->money, b->money_max);
    return (int)(tokens > money ? tokens : money);
}

static bool fits(int64_t used, int64_t need, int64_t max)
{
    return max <= 0 || need <= max - used;
}

enum agent_spending budget_allows(const struct budget *b, int64_t tokens, int64_t money, bool first)
{
    if (budget_part(b) >= 100 || !fits(b->tokens, tokens, b->tokens_max) || !fits(b->money, money, b->money_max))
        return SPEND_NOTHING;
    if (first)
        return SPEND_FREELY; /* a last word before anything was run would help nobody */
    const bool twice = fits(b->tokens, 2 * tokens, b->tokens_max) && fits(b->money, 2 * money, b->money_max);
    return twice ? SPEND_FREELY : SPEND_LAST;
}

char *budget_money(int64_t millionths)
{
    const int64_t cents = (millionths + 5000) / 10000;
    if (millionths > 0 && cents == 0)
        return xstrdup("<0.01");
    return xasprintf("%" PRId64 ".%02d", cents / 100, (int)(cents % 100));
}

int64_t budget_day_start(int64_t unix_ms)
{
    return unix_ms - unix_ms % DAY_MS;
}
