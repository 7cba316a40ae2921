/* Places in an order, "or", months and days, changes over time, running totals: what they become, and where they are refused. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <string.h>
#include "builtin_fixture.h"
#include "builtin/code.h"

/* clang-format off */
#define SHOP_PROFILE \
    "{\"path\":\"shop.csv\",\"name\":\"shop.csv\",\"kind\":\"csv\",\"rows\":900,\"load\":\"pd.read_csv('shop.csv', parse_dates=['date'])\"," \
    "\"time\":{\"columns\":[\"date\"],\"freq\":\"day\",\"expr\":\"df['date']\"},\"columns\":[" \
    "{\"name\":\"date\",\"dtype\":\"date\",\"nulls\":0,\"distinct\":602,\"min\":\"2022-01-02\",\"max\":\"2024-09-26\",\"examples\":[\"2022-08-30\"],\"role\":\"date\"}," \
    "{\"name\":\"region\",\"dtype\":\"category\",\"nulls\":0,\"distinct\":4,\"examples\":[\"South\",\"West\",\"East\",\"North\"],\"role\":\"group\"}," \
    "{\"name\":\"product\",\"dtype\":\"category\",\"nulls\":0,\"distinct\":3,\"examples\":[\"Chair\",\"Rug\",\"Lamp\"],\"role\":\"group\"}," \
    "{\"name\":\"units\",\"dtype\":\"int\",\"nulls\":0,\"distinct\":19,\"min\":1,\"max\":19,\"examples\":[5,10,7],\"role\":\"measure\"}," \
    "{\"name\":\"price\",\"dtype\":\"float\",\"nulls\":0,\"distinct\":300,\"min\":1,\"max\":99,\"examples\":[5.5],\"role\":\"measure\"}," \
    "{\"name\":\"revenue\",\"dtype\":\"float\",\"nulls\":0,\"distinct\":891,\"min\":6.11,\"max\":1706.18,\"examples\":[457.05],\"role\":\"measure\"}]}"
#define YEARLY_PROFILE \
    "{\"path\":\"y.csv\",\"name\":\"y.csv\",\"kind\":\"csv\",\"rows\":20,\"load\":\"pd.read_csv('y.csv')\"," \
    "\"time\":{\"columns\":[\"year\"],\"freq\":\"year\",\"expr\":\"pd.to_datetime(df['year'], format='%Y')\"},\"columns\":[" \
    "{\"name\":\"year\",\"dtype\":\"int\",\"nulls\":0,\"distinct\":20,\"min\":2000,\"max\":2019,\"examples\":[2000],\"role\":\"year\"}," \
    "{\"name\":\"visits\",\"dtype\":\"int\",\"nulls\":0,\"distinct\":20,\"min\":1,\"max\":99,\"examples\":[5],\"role\":\"measure\"}]}"
/* clang-format on */

static const struct {
    const char *request;
    const char *holds[3];
} plans[] = {
    /* places */
    { "which region has the second highest revenue?",
      { "rank(method=\"dense\", ascending=False) == 2", "[\"region\"]" } },
    { "which product had the third lowest total units", { "ascending=True) == 3", "groups[\"units\"].sum()" } },
    { "What is the 2nd highest revenue?",
      { "rows[\"revenue\"].rank(method=\"dense\", ascending=False)", "place == 2" } },
    { "10th lowest units", { "rows[\"units\"].rank(method=\"dense\", ascending=True)", "place == 10" } },
    { "second highest revenue in each region",
      { "groupby(\"region\", observed=True)[\"revenue\"].rank", "place == 2" } },
    { "top 3 revenues per region",
      { "groupby(\"region\", observed=True)[\"revenue\"].rank(method=\"min\"", "place <= 3" } },
    { "second most common product", { "groups.size()", "== 2" } },
    { "哪个地区的收入第二高", { "ascending=False) == 2", "[\"region\"]" } },
    /* either */
    { "how many rows are in North or of product Lamp",
      { "df[\"region\"] == \"North\"", "| (df[\"product\"] == \"Lamp\")" } },
    { "how many rows have units above 15 or revenue above 1000",
      { "df[\"units\"] > 15", "| (df[\"revenue\"] > 1000)" } },
    { "how many rows have units above 15 or below 3", { "(df[\"units\"] > 15) | (df[\"units\"] < 3)" } },
    { "how many rows have units under 3 or over 15", { "(df[\"units\"] > 15) | (df[\"units\"] < 3)" } },
    { "how many rows with units not between 3 and 15", { "(df[\"units\"] > 15) | (df[\"units\"] < 3)" } },
    { "how many rows have units at least 15 or at most 3", { "(df[\"units\"] >= 15) | (df[\"units\"] <= 3)" } },
    { "total revenue except 2022 and 2023", { "df[\"date\"].dt.year != 2022", "& (df[\"date\"].dt.year != 2023)" } },
    { "total revenue not in 2022 or 2023", { "df[\"date\"].dt.year != 2022", "& (df[\"date\"].dt.year != 2023)" } },
    { "revenue of lamps in North or South", { "& (df[\"region\"].isin([\"North\", \"South\"])" } },
    /* days and months */
    { "total revenue between March 2022 and June 2023", { ".between(\"2022-03-01\", \"2023-06-30\")" } },
    { "total revenue from January to February 2024", { ".between(\"2024-01-01\", \"2024-02-29\")" } },
    { "total units between 5 March 2022 and 10 April 2022", { ".between(\"2022-03-05\", \"2022-04-10\")" } },
    { "total revenue since March 2022", { ">= \"2022-03-01\"" } },
    { "total revenue after March 2022", { "> \"2022-03-31\"" } },
    { "total revenue before March 5, 2022", { "< \"2022-03-05\"" } },
    { "total revenue on March 5th, 2022", { ".between(\"2022-03-05\", \"2022-03-05\")" } },
    /* changes */
    { "year over year change in revenue", { "DateOffset(years=1)", "to_period(\"Y\")", "groups[\"revenue\"].sum()" } },
    { "monthly revenue yoy", { "DateOffset(years=1)", "to_period(\"M\")" } },
    { "month over month change of revenue", { "DateOffset(months=1)", "to_period(\"M\")" } },
    { "quarter on quarter growth in units by region", { "DateOffset(months=3)", "on=[", "\"region\"]" } },
    { "growth of revenue from 2022 to 2023",
      { ".between(2022, 2023)", "to_period(\"Y\")", "groups[\"revenue\"].sum()" } },
    { "monthly revenue growth from 2022 to 2023", { "DateOffset(months=1)", "to_period(\"M\")" } },
    { "monthly revenue growth", { "DateOffset(months=1)" } },
    { "收入同比增长", { "DateOffset(years=1)", "to_period(\"Y\")" } },
    { "每月收入环比", { "DateOffset(months=1)" } },
    { "running total of revenue", { "groups[\"revenue\"].sum()", ".cumsum()" } },
    { "cumulative units by month for each region", { "to_period(\"M\")", "groupby(\"region\", observed=True)[" } },
    { "按月累计收入", { "to_period(\"M\")", ".cumsum()" } },
};

static void each_is_computed_in_its_way(void **state)
{
    struct fixture f;
    (void)state;
    fixture_open(&f, "[" SHOP_PROFILE "]");
    for (size_t i = 0; i < countof(plans); i++) {
        struct bi_plan p;
        bi_plan_make(&p, f.lexicon, &f.tables, plans[i].request, SIZE_MAX);
        if (p.trouble)
            fail_msg("%s: %s", plans[i].request, p.trouble);
        autofree char *code = bi_code_write(f.lexicon, &f.tables, &p);
        for (size_t k = 0; k < countof(plans[i].holds) && plans[i].holds[k]; k++)
            if (!strstr(code, plans[i].holds[k]))
                fail_msg("%s: no %s in\n%s", plans[i].request, plans[i].holds[k], code);
        bi_plan_clear(&p);
    }
    fixture_close(&f);
}

/* Requests with two meanings, or with a part that would be lost. */
static void what_has_two_meanings_is_refused(void **state)
{
    static const struct {
        const char *profile, *request;
    } cases[] = {
        { SHOP_PROFILE, "second highest revenue by region" },
        { SHOP_PROFILE, "highest and second highest revenue" },
        { SHOP_PROFILE, "which region has the second highest revenue in each year" },
        { SHOP_PROFILE, "top 3 and second lowest revenue" },
        { SHOP_PROFILE, "second revenue" },
        { SHOP_PROFILE, "which day is second" },
        { SHOP_PROFILE, "how many rows are not in North or of product Lamp" },
        { SHOP_PROFILE, "how many rows are in North or South or of product Lamp" },
        { SHOP_PROFILE, "how many rows are in North and East or of product Lamp" },
        { SHOP_PROFILE, "how many rows in North or in 2023" },
        { SHOP_PROFILE, "share of North or Lamp" },
        { SHOP_PROFILE, "how many rows have units above 3 or below 15" },
        { SHOP_PROFILE, "how many rows have units over 3 or under 15" },
        { SHOP_PROFILE, "how many rows have units above 15 or above 3" },
        { SHOP_PROFILE, "how many rows have units above 15 and below 3" },
        { SHOP_PROFILE, "revenue between 31 February 2022 and 3 March 2022" },
        { SHOP_PROFILE, "total revenue between June 2023 and March 2022" },
        { SHOP_PROFILE, "revenue between March and June" },
        { SHOP_PROFILE, "year over year revenue growth in 2023" },
        { SHOP_PROFILE, "yoy and month over month change of revenue" },
        { SHOP_PROFILE, "weekly revenue yoy" },
        { SHOP_PROFILE, "running total of price" },
        { SHOP_PROFILE, "running total of average units" },
        { SHOP_PROFILE, "running average of revenue" },
        { SHOP_PROFILE, "cumulative revenue growth" },
        { SHOP_PROFILE, "year to date revenue" },
        { YEARLY_PROFILE, "month over month change of visits" },
    };
    (void)state;
    for (size_t i = 0; i < countof(cases); i++) {
        struct fixture f;
        struct bi_plan p;
        autofree char *profiles = xasprintf("[%s]", cases[i].profile);
        fixture_open(&f, profiles);
        bi_plan_make(&p, f.lexicon, &f.tables, cases[i].request, SIZE_MAX);
        if (!p.trouble) {
            autofree char *code = bi_code_write(f.lexicon, &f.tables, &p);
            fail_msg("%s: not refused\n%s", cases[i].request, code);
        }
        bi_plan_clear(&p);
        fixture_close(&f);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_is_computed_in_its_way),
        cmocka_unit_test(what_has_two_meanings_is_refused),
    };
    return cmocka_run_group_tests_name("builtin_places", tests, NULL, NULL);
}
