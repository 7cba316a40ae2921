/* Requests become plans: what is computed, of which rows, and what is refused, by the Python that a plan is written
 * as. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <string.h>
#include "builtin_fixture.h"
#include "builtin/code.h"

struct example {
    const char *request;
    const char *holds[4]; /* parts of the program */
    const char *not_in;   /* must not be in it; NULL: anything */
};

static void check(const char *profiles, const struct example *table, size_t n)
{
    struct fixture f;
    fixture_open(&f, profiles);
    for (size_t i = 0; i < n; i++) {
        struct bi_plan p;
        bi_plan_make(&p, f.lexicon, &f.tables, table[i].request, SIZE_MAX);
        if (p.trouble)
            fail_msg("%s: %s", table[i].request, p.trouble);
        autofree char *code = bi_code_write(f.lexicon, &f.tables, &p);
        for (size_t k = 0; k < countof(table[i].holds) && table[i].holds[k]; k++)
            if (!strstr(code, table[i].holds[k]))
                fail_msg("%s: no %s in\n%s", table[i].request, table[i].holds[k], code);
        if (table[i].not_in && strstr(code, table[i].not_in))
            fail_msg("%s: %s in\n%s", table[i].request, table[i].not_in, code);
        bi_plan_clear(&p);
    }
    fixture_close(&f);
}

static void statistics_groups_and_charts_are_understood(void **state)
{
    (void)state;
    static const struct example table[] = {
        { "average tip by day as a bar chart",
          { "groupby([\"day\"]", "groups[\"tip\"].mean()", "plot.bar", "\"Thur\", \"Fri\", \"Sat\", \"Sun\"" },
          NULL },
        { "按星期几统计平均小费", { "groupby([\"day\"]", "groups[\"tip\"].mean()" }, "plot" },
        { "mean and median tip by smoker",
          { "groups[\"tip\"].mean()", "groups[\"tip\"].median()", "[\"smoker\"]" },
          NULL },
        { "average tip and total bill for each day",
          { "groups[\"tip\"].mean()", "groups[\"total_bill\"].mean()" },
          NULL },
        { "min and max tip", { "df[\"tip\"].min()", "df[\"tip\"].max()" }, NULL },
        { "tips by day", { "groups[\"tip\"].sum()", "groups[\"tip\"].mean()" }, NULL },
        { "averrage tip", { "df[\"tip\"].mean()" }, NULL },
        { "90th percentile of tip", { ".quantile(0.9)" }, NULL },
        { "total_bill distribution", { "df[\"total_bill\"].dropna()", "plot.hist" }, NULL },
        { "crosstab smoker by day", { "groupby([\"day\", \"smoker\"]" }, NULL },
        { "相关性", { ".corr()", "heatmap" }, NULL },
        { "哪些列有缺失值？画出缺失比例", { "df.isna().sum()", "plot.bar" }, NULL },
    };
    check("[" TIPS_PROFILE "]", table, countof(table));
}

static void filters_are_understood(void **state)
{
    (void)state;
    static const struct example table[] = {
        { "average fare of women older than 30",
          { "df[\"Sex\"] == \"female\"", "df[\"Age\"] > 30", "df[\"Fare\"].mean()" },
          NULL },
        { "passengers with more than 3 siblings", { "df[\"SibSp\"] > 3" }, "df[\"PassengerId\"] > 3" },
        { "how many passengers had no siblings", { "df[\"SibSp\"] == 0", "len(df)" }, NULL },
        { "average fare except first class", { "df[\"Pclass\"] != 1" }, NULL },
        { "average fare in first and second class", { "df[\"Pclass\"].isin([1, 2])", "groupby([\"Pclass\"]" }, NULL },
        { "how many men died", { "df[\"Sex\"] == \"male\"", "df[\"Survived\"] == 0" }, NULL },
        { "age between 20 and 30", { "df[\"Age\"].between(20, 30)" }, NULL },
        { "60岁以上的女性有多少", { "df[\"Age\"] >= 60", "df[\"Sex\"] == \"female\"" }, NULL },
        { "average age not over 40", { "df[\"Age\"] <= 40" }, NULL },
        { "passengers named \"Smith\"", { "contains(\" smith \"" }, NULL },
        { "survival rate of passengers under 18", { "df[\"Age\"] < 18" }, "PassengerId\"] <" },
    };
    check("[" TITANIC_PROFILE "]", table, countof(table));
}

static void shares_and_rates_know_their_base(void **state)
{
    (void)state;
    static const struct example table[] = {
        { "survival rate by class and sex", { "groupby([\"Pclass\", \"Sex\"]", "groups[\"Survived\"].mean()" }, NULL },
        { "share of women among survivors",
          { "df = df[df[\"Survived\"] == 1]", "(df[\"Sex\"] == \"female\").astype" },
          NULL },
        { "percentage of women who survived",
          { "df = df[df[\"Sex\"] == \"female\"]", "(df[\"Survived\"] == 1).astype" },
          NULL },
        { "女性中存活的比例", { "df = df[df[\"Sex\"] == \"female\"]", "df[\"Survived\"].dropna()" }, NULL },
        { "mortality rate of men", { "df = df[df[\"Sex\"] == \"male\"]", "(df[\"Survived\"] == 0).astype" }, NULL },
        { "survival among women", { "df = df[df[\"Sex\"] == \"female\"]", "df[\"Survived\"].dropna()" }, NULL },
    };
    check("[" TITANIC_PROFILE "]", table, countof(table));
    static const struct example ratios[] = {
        { "tip as a share of total bill", { "df[\"tip\"] / df[\"total_bill\"]" }, NULL },
        { "what share of the bill is the tip", { "df[\"tip\"] / df[\"total_bill\"]" }, NULL },
        { "账单中小费的比例", { "df[\"tip\"] / df[\"total_bill\"]" }, NULL },
        { "小费占总账单的比例", { "df[\"tip\"] / df[\"total_bill\"]" }, NULL },
    };
    check("[" TIPS_PROFILE "]", ratios, countof(ratios));
}

static void rankings_are_of_rows_or_of_groups(void **state)
{
    (void)state;
    static const struct example table[] = {
        { "小费最高的5个账单", { "sort_values(\"tip\", ascending=False", "head(5)" }, "groupby" },
        { "which day has the highest total bill",
          { "groups[\"total_bill\"].sum()", "groups[\"total_bill\"].mean()" },
          NULL },
        { "哪天的平均小费最高？", { "groupby([\"day\"]", "groups[\"tip\"].mean()", "ascending=False" }, NULL },
        { "smallest 3 tips on Friday", { "df[\"day\"] == \"Fri\"", "ascending=True", "head(3)" }, NULL },
        { "what is the highest tip", { "df[\"tip\"].max()", "rows = df[df[\"tip\"] == df[\"tip\"].max()]" }, NULL },
        { "first 3 rows", { "df.head(3)" }, NULL },
    };
    check("[" TIPS_PROFILE "]", table, countof(table));
}

static void times_are_years_columns_or_dates(void **state)
{
    (void)state;
    static const struct example table[] = {
        { "trend of unemployment over time", { "pd.to_datetime({'year': df['year']", "plot.line" }, NULL },
        { "2000年以后的平均失业率", { "df[\"year\"] > 2000", "df[\"unemp\"].mean()" }, NULL },
        { "unemployment in the 1980s", { "df[\"year\"].between(1980, 1989)" }, NULL },
        { "average unemployment between 1990 and 2000", { "df[\"year\"].between(1990, 2000)" }, NULL },
        { "average unemployment by quarter", { "groupby([\"quarter\"]" }, NULL },
        { "average unemployment in the first quarter of 1990",
          { "df[\"quarter\"] == 1", "df[\"year\"] == 1990" },
          NULL },
    };
    check("[" MACRO_PROFILE "]", table, countof(table));
}

static void what_is_not_understood_is_refused_by_name(void **state)
{
    (void)state;
    static const struct {
        const char *request, *says;
    } table[] = {
        { "average salary by department", "\"salary\", \"department\"" },
        { "average tip by day excluding holidays", "\"holidays\"" },
        { "tips for vegetarians", "\"vegetarians\"" },
        { "predict the tip", "\"predict\"" },
        { "why do smokers tip less", "\"why\"" },
        { "tip percentage by smoker", "`tip`" },
        { "tip growth", "no date or year column" },
        { "average", "average" },
        { "average tip in euros", "\"euros\"" },
        { "top 10% of tips", "percent" },
        { "average tip by day and bill by time by size by smoker", "one or two" },
        { "trend of tips", "date" },
        { "按性别比较平均小费", "“性别”" },
        { "外国游客的平均小费", "“游客”" },
        { "средний чаевые", "English and Chinese" },
        { "correlation of average tip by day", "statistic" },
        { "line chart of tip", "chart" },
        { "average tip by day and average bill by time", "two questions" },
    };
    struct fixture f;
    fixture_open(&f, "[" TIPS_PROFILE "]");
    for (size_t i = 0; i < countof(table); i++) {
        struct bi_plan p;
        bi_plan_make(&p, f.lexicon, &f.tables, table[i].request, SIZE_MAX);
        if (!p.trouble || !strstr(p.trouble, table[i].says))
            fail_msg("%s: %s", table[i].request, p.trouble ? p.trouble : "not refused");
        bi_plan_clear(&p);
    }
    fixture_close(&f);
}

static void two_columns_that_fit_alike_are_asked_about(void **state)
{
    (void)state;
    struct fixture f;
    struct bi_plan p;
    fixture_open(&f, "[" MACRO_PROFILE "]");
    bi_plan_make(&p, f.lexicon, &f.tables, "average price by year", SIZE_MAX);
    assert_true(p.asks);
    assert_non_null(strstr(p.trouble, "`unit_price` or `total_price`"));
    bi_plan_clear(&p);
    fixture_close(&f);
}

static void the_file_is_chosen_by_the_words(void **state)
{
    (void)state;
    static const struct example table[] = {
        { "average tip by day", { "pd.read_csv('tips.csv')", "groups[\"tip\"].mean()" }, "titanic" },
        { "survival rate by sex", { "pd.read_csv('titanic.csv')" }, "tips.csv" },
        { "how many rows", { "tips.csv", "titanic.csv" }, NULL },
        { "how many rows in titanic.csv", { "titanic.csv" }, "tips.csv" },
    };
    check("[" TIPS_PROFILE "," TITANIC_PROFILE "]", table, countof(table));
    struct fixture f;
    struct bi_plan p;
    fixture_open(&f, "[" TIPS_PROFILE "," TITANIC_PROFILE "]");
    bi_plan_make(&p, f.lexicon, &f.tables, "join the files", SIZE_MAX);
    assert_non_null(strstr(p.trouble, "no column that these files share"));
    bi_plan_clear(&p);
    fixture_close(&f);
}

static void follow_ups_change_the_plan_before(void **state)
{
    (void)state;
    static const struct {
        const char *requests[3];
        size_t n, stands_for;
        const char *holds[3];
    } table[] = {
        { { "average tip by day", "as a bar chart" }, 2, 2, { "groups[\"tip\"].mean()", "plot.bar" } },
        { { "average tip by day", "now only for smokers" },
          2,
          2,
          { "df[\"smoker\"] == \"Yes\"", "groups[\"tip\"].mean()" } },
        { { "按星期几统计平均小费", "只看晚餐", "换成中位数" },
          3,
          3,
          { "df[\"time\"] == \"Dinner\"", "groups[\"tip\"].median()" } },
        { { "average tip by day", "median bill by time" }, 2, 1, { "groups[\"total_bill\"].median()", "[\"time\"]" } },
        { { "average tip by day", "what about the bill" }, 2, 2, { "groups[\"total_bill\"].mean()", "[\"day\"]" } },
    };
    struct fixture f;
    fixture_open(&f, "[" TIPS_PROFILE "]");
    for (size_t i = 0; i < countof(table); i++) {
        struct bi_plan p;
        size_t used = bi_plan_make_chain(&p, f.lexicon, &f.tables, table[i].requests, table[i].n);
        if (p.trouble)
            fail_msg("%s: %s", table[i].requests[table[i].n - 1], p.trouble);
        autofree char *code = bi_code_write(f.lexicon, &f.tables, &p);
        for (size_t k = 0; k < countof(table[i].holds) && table[i].holds[k]; k++)
            if (!strstr(code, table[i].holds[k]))
                fail_msg("%s: no %s in\n%s", table[i].requests[1], table[i].holds[k], code);
        assert_int_equal(used, table[i].stands_for);
        bi_plan_clear(&p);
    }
    fixture_close(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(statistics_groups_and_charts_are_understood),
        cmocka_unit_test(filters_are_understood),
        cmocka_unit_test(shares_and_rates_know_their_base),
        cmocka_unit_test(rankings_are_of_rows_or_of_groups),
        cmocka_unit_test(times_are_years_columns_or_dates),
        cmocka_unit_test(what_is_not_understood_is_refused_by_name),
        cmocka_unit_test(two_columns_that_fit_alike_are_asked_about),
        cmocka_unit_test(the_file_is_chosen_by_the_words),
        cmocka_unit_test(follow_ups_change_the_plan_before),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
