/* claims_days.c - weekdays, months and dates: what an answer names must be shown, as a name, by a date that falls on it, or by a number
 * where a program counts days or months. */
#include <ctype.h>
#include <strings.h>
#include "claims_private.h"

static bool begins_word(const char *begin, const char *at)
{
    return at == begin || (!isalnum((unsigned char)at[-1]) && at[-1] != '_' && (unsigned char)at[-1] < 0x80) ||
           (unsigned char)at[-1] >= 0x80;
}

/* ---- evidence ---- */

static void add_date(struct evidence *e, const struct calendar_date *d)
{
    for (size_t i = 0; i < d->n; i++) {
        const int32_t ymd = d->days[i];
        e->days = xgrow(e->days, &e->day_cap, e->day_n + 1, sizeof(*e->days));
        e->days[e->day_n++] = ymd;
        e->months |= 1u << (ymd / 100 % 100 - 1);
        if (ymd > 10000)
            e->weekdays |= 1u << calendar_weekday(ymd);
    }
}

static void add_names(struct evidence *e, const char *begin, const char *at)
{
    int day = -1, month = -1;
    if (calendar_cjk_weekday(begin, at, &day))
        e->weekdays |= 1u << day;
    if (calendar_cjk_month(begin, at, &month))
        e->months |= 1u << month;
    if (!begins_word(begin, at))
        return;
    const struct calendar_name *name = calendar_name_at(at, calendar_word(at));
    if (name && name->weekday >= 0)
        e->weekdays |= 1u << name->weekday;
    if (name && name->month >= 0 && !(name->how == CALENDAR_MODAL && islower((unsigned char)*at)))
        e->months |= 1u << name->month;
}

/* "2024-03" */
static void add_month_of_year(struct evidence *e, const char *begin, const char *at)
{
    static const char digits[] = "0123456789";
    if ((at > begin && isalnum((unsigned char)at[-1])) || strspn(at, digits) != 4 || (at[4] != '-' && at[4] != '/'))
        return;
    const long month = strspn(at + 5, digits) <= 2 ? strtol(at + 5, NULL, 10) : 0;
    if (month >= 1 && month <= CALENDAR_MONTHS)
        e->months |= 1u << (month - 1);
}

void days_collect(struct evidence *e, const char *text)
{
    for (const char *at = text; *at; (void)utf8_next(&at)) {
        struct calendar_date d;
        add_names(e, text, at);
        if (!isdigit((unsigned char)*at) && !isalpha((unsigned char)*at) && (unsigned char)*at < 0x80)
            continue;
        add_month_of_year(e, text, at);
        if (calendar_date(&d, text, at) || (isdigit((unsigned char)*at) && calendar_columns(&d, text, at)))
            add_date(e, &d);
    }
    days_count(e, text);
}

void days_count(struct evidence *e, const char *text)
{
    e->counts_weekdays = e->counts_weekdays || strcasestr(text, "weekday") || strcasestr(text, "dayofweek") ||
                         strcasestr(text, "day_of_week") || strstr(text, "星期") || strstr(text, "%w");
    e->counts_months = e->counts_months || strcasestr(text, "month") || strcasestr(text, "monat") || strstr(text, "月");
}

/* ---- claims ---- */

bool days_have(const struct evidence *e, const struct calendar_date *d)
{
    for (size_t i = 0; i < e->day_n; i++)
        for (size_t k = 0; k < d->n; k++)
            if (e->days[i] == d->days[k] || (d->days[k] < 10000 && e->days[i] % 10000 == d->days[k]))
                return true;
    return false;
}

/* pandas counts from Monday 0, ISO from Monday 1, SQL from Sunday 0. */
static bool has_weekday(const struct evidence *e, int day)
{
    return e->weekdays >> day & 1 || (e->counts_weekdays && (evidence_has(e, day, 0) || evidence_has(e, day + 1, 0) ||
                                                             evidence_has(e, (day + 1) % 7, 0)));
}

static bool has_month(const struct evidence *e, int month)
{
    return e->months >> month & 1 || (e->counts_months && evidence_has(e, month + 1, 0));
}

static bool begins_sentence(const char *begin, const char *at)
{
    while (at > begin && strchr(" *_\"'(", at[-1]))
        at--;
    return at == begin || strchr(".!?\n", at[-1]) != NULL;
}

/* In, of, on May; May 2024; **May** */
static bool stands_as_month(const char *begin, const char *at, size_t n)
{
    static const char *const before[] = { "in ",  "of ",   "on ",    "by ", "for ",   "from ",   "to ",
                                          "and ", "or ",   "until ", "is ", "since ", "during ", "was ",
                                          "mid-", "late ", "early ", "**",  "\"",     "`" };
    const char *behind = at + n + strspn(at + n, " ");
    if (isdigit((unsigned char)*behind) && behind > at + n)
        return true;
    for (size_t i = 0; i < countof(before); i++) {
        const size_t k = strlen(before[i]);
        if ((size_t)(at - begin) >= k && strncasecmp(at - k, before[i], k) == 0)
            return true;
    }
    return false;
}

static bool claims_it(const struct calendar_name *name, const char *begin, const char *at, size_t n)
{
    if (name->how == CALENDAR_NO_CLAIM)
        return false;
    if (name->how == CALENDAR_MODAL)
        return isupper((unsigned char)*at) && stands_as_month(begin, at, n);
    if (name->how == CALENDAR_SHORT)
        return isupper((unsigned char)*at) && !begins_sentence(begin, at) && !isupper((unsigned char)at[1]);
    return true;
}

/* Returns what is behind a name, `at` when there is none. */
static const char *check_name(struct claims *out, const char *begin, const char *at, const struct evidence *e)
{
    int day = -1, month = -1;
    size_t n = calendar_cjk_weekday(begin, at, &day);
    n = n ? n : calendar_cjk_month(begin, at, &month);
    if (n == 0 && begins_word(begin, at)) {
        const size_t k = calendar_word(at);
        const struct calendar_name *name = calendar_name_at(at, k);
        if (name && !isalnum((unsigned char)at[k]) && at[k] != '_' && claims_it(name, begin, at, k)) {
            day = name->weekday;
            month = name->month;
            n = k;
        }
    }
    if ((day >= 0 && !has_weekday(e, day)) || (month >= 0 && !has_month(e, month)))
        claims_add(out, at, n);
    return at + n;
}

/* A program is no claim. */
static const char *skip_program(const char *at)
{
    const char *end = strncmp(at, "```", 3) == 0 ? strstr(at + 3, "```") : NULL;
    return end ? end + 3 : at;
}

void claims_days(struct claims *out, const char *markdown, struct evidence *e)
{
    evidence_sort(e);
    autofree char *plain = number_plain(markdown);
    for (const char *at = plain; *at;) {
        struct calendar_date d;
        const char *from = skip_program(at);
        if (from == at && calendar_date(&d, plain, at)) {
            if (!days_have(e, &d))
                claims_add(out, at, (size_t)(d.end - at));
            from = d.end;
        } else if (from == at) {
            from = check_name(out, plain, at, e);
        }
        if (from == at)
            (void)utf8_next(&at);
        else
            at = from;
    }
}
