/* What an answer says beyond digits: days, months, names, charts, files, and numbers that follow from others. True ones must pass as surely
 * as false ones are found, so each kind has both. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include "claims.h"

struct shown {
    const char *prose, *evidence, *program, *claims;
};

static void judge(const struct shown *all, size_t n, void (*find)(struct claims *, const char *, struct evidence *))
{
    for (size_t i = 0; i < n; i++) {
        AUTO(evidence_clear) struct evidence e = { 0 };
        AUTO(claims_clear) struct claims c = { 0 };
        evidence_add(&e, all[i].evidence);
        if (all[i].program)
            evidence_add_program(&e, all[i].program);
        find(&c, all[i].prose, &e);
        autofree char *list = claims_join(&c);
        if (strcmp(list, all[i].claims) != 0)
            fail_msg("\"%s\" beside \"%s\": \"%s\", not \"%s\"", all[i].prose, all[i].evidence, list, all[i].claims);
    }
}

/* ---- days and months ---- */

static void weekdays_and_months_have_to_be_shown(void **state)
{
    static const struct shown cases[] = {
        { "The best day is Sunday.", "day  tip\nSat 3.1\nFri 2.9", NULL, "Sunday" },
        { "The best day is Sunday.", "day  tip\nSun 3.3\nFri 2.9", NULL, "" },
        { "Sales peak on Saturdays.", "Saturday 120", NULL, "" },
        { "Sales peak on Saturdays.", "Friday 120", NULL, "Saturdays" },
        { "The best day is Sat.", "Friday 120", NULL, "Sat" },
        { "Sat down and counted 3.", "", NULL, "" },
        { "Sun is a name here; the sun shines.", "", NULL, "" },
        { "It was a Friday.", "2024-03-15 12", NULL, "" },
        { "It was a Monday.", "2024-03-15 12", NULL, "Monday" },
        { "Sundays sell best.", "6    812\n0    233", "df.groupby(df.date.dt.dayofweek).x.sum()", "" },
        { "Sundays sell best.", "6    812\n0    233", "df.groupby('shop').x.sum()", "Sundays" },
        { "March was the strongest month.", "2024-03-31  812", NULL, "" },
        { "March was the strongest month.", "3    812", "df.groupby(df.date.dt.month).x.sum()", "" },
        { "The strongest month was March.", "8    812", "df.groupby(df.date.dt.month).x.sum()", "March" },
        { "April was the strongest month.", "2024-03  812", NULL, "April" },
        { "In May the mean fell.", "2024-05-02", NULL, "" },
        { "In May the mean fell.", "2024-06-02", NULL, "May" },
        { "May I ask which column? It may be x.", "", NULL, "" },
        { "They march on.", "", NULL, "" },
        { "Der beste Tag ist Sonntag.", "Sun 3.2", NULL, "" },
        { "Der beste Tag ist Sonntag.", "Fri 3.2", NULL, "Sonntag" },
        { "Le meilleur jour est dimanche.", "Fri 3.2", NULL, "dimanche" },
        { "Il giorno migliore è domenica.", "Fri 3.2", NULL, "domenica" },
        { "De beste dag is zondag.", "Sun 3.2", NULL, "" },
        { "De beste dag is zondag.", "Fri 3.2", NULL, "zondag" },
        { "Najlepszy dzień to niedziela.", "Fri 3.2", NULL, "niedziela" },
        { "O melhor mês foi março.", "2024-03-01", NULL, "" },
        { "O melhor mês foi março.", "2024-04-01", NULL, "março" },
        { "Najlepszy miesiąc to styczeń.", "2024-01-01", NULL, "" },
        { "La marca es buena; maja y mei.", "", NULL, "" },
        { "El mejor mes es agosto.", "2024-08-01", NULL, "" },
        { "最好的一天是星期日。", "Sun 3.2", NULL, "" },
        { "最好的一天是星期日。", "Fri 3.2", NULL, "星期日" },
        { "最高的是3月。", "2024-03-01 5", NULL, "" },
        { "最高的是八月。", "2024-03-01 5", NULL, "八月" },
        { "每人一周三次。", "", NULL, "" },
        { "耗时3个月。", "", NULL, "" },
    };
    (void)state;
    judge(cases, countof(cases), claims_days);
}

static void dates_have_to_be_shown_in_some_form(void **state)
{
    static const struct shown cases[] = {
        { "The peak was on 2024-03-15.", "2024-03-15 00:00:00", NULL, "" },
        { "The peak was on March 15, 2024.", "Timestamp('2024-03-15 00:00:00')", NULL, "" },
        { "The peak was on 15 March 2024.", "2024-03-15", NULL, "" },
        { "The peak was on the 15th of March 2024.", "2024-03-15", NULL, "" },
        { "The peak was on 15.03.2024.", "2024-03-15", NULL, "" },
        { "Am 15. März 2024 war es am höchsten.", "2024-03-15", NULL, "" },
        { "le 15 mars 2024", "2024-03-15", NULL, "" },
        { "il 15 marzo 2024", "2024-03-15", NULL, "" },
        { "15 de março de 2024", "2024-03-15", NULL, "" },
        { "op 16 maart 2024", "2024-03-15", NULL, "16 maart 2024" },
        { "15 stycznia 2024", "2024-01-15", NULL, "" },
        { "2024年3月15日最高。", "2024-03-15", NULL, "" },
        { "3月15日最高。", "2024-03-15", NULL, "" },
        { "The peak was on 16 March 2024.", "2024-03-15", NULL, "16 March 2024" },
        { "The peak was on 2024-04-15.", "2024-03-15", NULL, "2024-04-15" },
        { "On March 16 it fell.", "2024-03-15", NULL, "March 16" },
        { "On March 15 it fell.", "2024-03-15", NULL, "" },
        { "2024年3月16日最高。", "2024-03-15", NULL, "2024年3月16日" },
        { "from 01/02/2024", "2024-02-01", NULL, "" },
        { "from 01/02/2024", "2024-01-02", NULL, "" },
        { "from 2024-01-03", "03.01.2024", NULL, "" },
        { "on 2024-03-15", "20240315", NULL, "" },
        { "on 2024-03-15", "year month day\n2024 3 15", NULL, "" },
        { "on 15-Mar-2024", "2024-03-15T10:00", NULL, "" },
        { "version 3.13.1 at 10:30", "", NULL, "" },
        { "`2024-03-15` and ```\n2031-01-01\n```", "2024-03-15", NULL, "" },
    };
    (void)state;
    judge(cases, countof(cases), claims_days);
}

/* ---- names ---- */

static void names_given_as_results_have_to_be_shown(void **state)
{
    static const struct shown cases[] = {
        { "The busiest port is Southampton.", "S    644\nC    168", NULL, "Southampton" },
        { "The busiest port is S (Southampton).", "S    644\nC    168", NULL, "" },
        { "The best stock is Apple (AAPL).", "AAPL 105.1", NULL, "" },
        { "The winner is **Berlin**.", "Paris 3\nRome 2", NULL, "Berlin" },
        { "The winner is **Paris**.", "Paris 3\nRome 2", NULL, "" },
        { "The cities are Paris, Rome and Berlin.", "Paris 3\nRome 2", NULL, "Berlin" },
        { "The top city is New York City.", "New York City 3", NULL, "" },
        { "The top city is New York.", "Boston 3", NULL, "New York" },
        { "The column `Fares` has the mean 3.", "df.columns: Fare, Age", NULL, "Fares" },
        { "The column `Fare` has the mean 3.", "df.columns: Fare, Age", NULL, "" },
        { "The value \"Gold\" leads.", "Silver 3", NULL, "Gold" },
        { "The value \"Silver\" leads.", "silver 3", NULL, "" },
        { "Use `tip_rate` for it.", "tip total_bill", "df['tip_rate'] = df.tip / df.total_bill", "" },
        { "Use `tip_rate` for it.", "tip total_bill", NULL, "tip_rate" },
        { "The total bill is highest.", "total_bill", NULL, "" },
        { "`Total Bill` is highest.", "total_bill", NULL, "" },
        { "I used `df.mean()` and `np.nan`.", "", NULL, "" },
        { "It is a `float64` column; the correlation is Pearson's.", "", NULL, "" },
        { "The answer is Yes.", "", NULL, "" },
        { "**Result:** the mean is 3. **Note:** none.", "", NULL, "" },
        { "The \"typical\" value is 3.", "", NULL, "" },
        { "There are 3 rows. This is the mean.", "", NULL, "" },
        { "The best day is Sunday.", "", NULL, "" }, /* claims_days says it */
        { "类别“黄金”最多。", "白银 3", NULL, "黄金" },
        { "类别“白银”最多。", "白银 3", NULL, "" },
        { "```python\nprint(\"is Rome\")\n```", "", NULL, "" },
        { "GDP is highest in 2009.", "realgdp", NULL, "" },
        { "The method is Welch's test.", "", NULL, "" },
    };
    (void)state;
    judge(cases, countof(cases), claims_names);
}

/* ---- numbers that follow from others, and how the world writes them ---- */

/* Both are claims; of those that follow the model is asked for the computation, and is believed when it stands by them. */
static void simple_arithmetic_on_shown_numbers_is_told_apart(void **state)
{
    static const struct {
        const char *prose, *evidence, *derived, *claims;
    } cases[] = {
        { "Women 74.2 %, men 18.9 %: a difference of 55.3 points.", "0.742038 0.188908", "55.3", "" },
        { "Women 74.2 %, men 18.9 %: a difference of 61.7 points.", "0.742038 0.188908", "", "61.7" },
        { "Lunch has 68 rows, dinner 176, together 244.", "Lunch 68\nDinner 176", "244", "" },
        { "Lunch has 68 rows, dinner 176, together 254.", "Lunch 68\nDinner 176", "", "254" },
        { "Lunch has 68 rows, dinner 176, together 244.", "Lunch 68\nDinner 176\n244", "", "" },
        { "Thur 62, Fri 19, Sat 87, Sun 76; 244 in total.", "62 19 87 76", "244", "" },
        { "176 of 244 rows (72.1 %) are dinners.", "176 244", "72.1 %", "" },
        { "176 of 244 rows (78.1 %) are dinners.", "176 244", "", "78.1 %" },
        { "It rose from 80 to 120, an increase of 50 %.", "80 120", "50 %", "" },
        { "120 is 1.5 times 80.", "80 120", "1.5", "" },
        { "61.6 % did not survive.", "0.3838", "61.6 %", "" },
        { "61.6 % did not survive.", "0.616", "", "" },
        { "The mean is 55.3.", "74.2 18.9", "", "55.3" }, /* nothing says that it is a difference */
        { "74.2 and 18.9.\n\nThe difference is 55.3.", "74.2 18.9", "", "55.3" },
    };
    (void)state;
    for (size_t i = 0; i < countof(cases); i++) {
        AUTO(evidence_clear) struct evidence e = { 0 };
        AUTO(claims_clear) struct claims derived = { 0 }, c = { 0 };
        evidence_add(&e, cases[i].evidence);
        claims_derived(&derived, cases[i].prose, &e);
        claims_numbers(&c, cases[i].prose, &e);
        autofree char *follows = claims_join(&derived), *list = claims_join(&c);
        if (strcmp(follows, cases[i].derived) != 0 || strcmp(list, cases[i].claims) != 0)
            fail_msg("\"%s\" beside \"%s\": \"%s\" and \"%s\"", cases[i].prose, cases[i].evidence, follows, list);
    }
}

static void other_units_signs_and_words_are_the_same_number(void **state)
{
    static const struct shown cases[] = {
        { "It took 1.5 hours.", "5400", NULL, "" },
        { "It took 90 minutes.", "1.5 h", NULL, "" },
        { "It took 95 minutes.", "1.5 h", NULL, "95" },
        { "The file has 1.2 MB.", "1234567", NULL, "" },
        { "12,34,567 rupees", "1234567", NULL, "" },
        { "12.3 lakh", "1234567", NULL, "" },
        { "rund 1,2 Mio. EUR", "1234567", NULL, "" },
        { "约123万元", "1234567", NULL, "" },
        { "约125万元", "1234567", NULL, "125万" },
        { "38,4 Prozent", "0.3838", NULL, "" },
        { "１２３４行", "1234", NULL, "" },
        { "١٢٣٤", "1234", NULL, "" },
        { "百分之38.4", "0.3838", NULL, "" },
        { "Forty-two rows", "42", NULL, "" },
        { "Forty-two rows", "41", NULL, "Forty-two" },
        { "twenty five rows", "25", NULL, "" },
        { "three hundred rows", "300", NULL, "" },
        { "three hundred rows", "200", NULL, "three hundred" },
        { "one of them, ten rows, the twelve months", "", NULL, "" },
        { "三百二十行", "320", NULL, "" },
        { "三百二十行", "310", NULL, "三百二十" },
        { "百分之三十", "0.3", NULL, "" },
        { "十分重要，千万别忘，一些", "", NULL, "" },
        { "nineteen", "19 rows", NULL, "" },
        { "the top 20", "twenty", NULL, "" },
        { "someone-fifty percent-ninety", "50 90", NULL, "" },
    };
    (void)state;
    judge(cases, countof(cases), claims_numbers);
}

/* ---- charts and files ---- */

static void a_chart_is_claimed_or_it_is_not(void **state)
{
    static const struct {
        const char *prose;
        bool claimed;
    } cases[] = {
        { "The chart shows a clear peak.", true },
        { "I've created a histogram of the fares.", true },
        { "See the figure below.", true },
        { "Here is the scatter plot you asked for.", true },
        { "A bar chart is attached.", true },
        { "如图所示，三月最高。", true },
        { "已绘制柱状图。", true },
        { "Das Diagramm zeigt den Verlauf.", true },
        { "De grafiek toont een stijging.", true },
        { "Wykres pokazuje wzrost.", true },
        { "グラフを作成しました。", true },
        { "グラフは作成していません。", false },
        { "De grafiek toont niet alles.", false },
        { "Le graphique montre une hausse.", true },
        { "I could not draw a chart.", false },
        { "No chart shows this.", false },
        { "Would you like to see the chart?", false },
        { "If you want, I can make a plot; I generated nothing.", false },
        { "The figure for 2019 is 25.", false },
        { "The mean is 3.", false },
        { "The plot of the story is thin.", false },
        { "可以画图吗？", false },
        { "没有生成图表。", false },
    };
    (void)state;
    for (size_t i = 0; i < countof(cases); i++)
        if (claims_chart(cases[i].prose) != cases[i].claimed)
            fail_msg("\"%s\"", cases[i].prose);
}

static bool is_there(const void *ud, const char *name)
{
    return strstr(ud, name) != NULL;
}

static void files_that_were_made_or_read_have_to_exist(void **state)
{
    static const struct {
        const char *prose, *there, *missing;
    } cases[] = {
        { "I read prices.csv and counted.", "sales.csv", "prices.csv" },
        { "I read sales.csv and counted.", "sales.csv", "" },
        { "I loaded `prices.xlsx`.", "", "prices.xlsx" },
        { "Die Tabelle wurde als bericht.xlsx gespeichert.", "", "bericht.xlsx" },
        { "Le tableau est enregistré dans rapport.csv.", "", "rapport.csv" },
        { "La tabla se ha guardado en informe.csv.", "", "informe.csv" },
        { "Таблица сохранена в отчёт.csv.", "", "отчёт.csv" },
        { "結果はreport.csvに保存しました。", "report.csv", "" },
        { "The result is in summary.xlsx.", "", "summary.xlsx" },
        { "See summary.xlsx for all rows.", "", "summary.xlsx" },
        { "De tabel is opgeslagen als rapport.xlsx.", "", "rapport.xlsx" },
        { "Tabela została zapisana w raport.csv.", "", "raport.csv" },
        { "La tabella è stata salvata? Non ho salvato report.csv.", "", "" },
        { "De tabel is niet opgeslagen als rapport.xlsx.", "", "" },
        { "You could send prices.csv, and I would read it.", "", "" },
        { "Should it be saved as out.csv?", "", "" },
        { "I can save it as out.csv if you like.", "", "" },
        { "There is no prices.csv; I read sales.csv.", "sales.csv", "" },
        { "Save it with `df.to_csv('x.csv')`.", "", "" },
    };
    (void)state;
    for (size_t i = 0; i < countof(cases); i++) {
        AUTO(claims_clear) struct claims c = { 0 };
        claims_files(&c, cases[i].prose, is_there, cases[i].there);
        autofree char *list = claims_join(&c);
        if (strcmp(list, cases[i].missing) != 0)
            fail_msg("\"%s\": \"%s\", not \"%s\"", cases[i].prose, list, cases[i].missing);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(weekdays_and_months_have_to_be_shown),
        cmocka_unit_test(dates_have_to_be_shown_in_some_form),
        cmocka_unit_test(names_given_as_results_have_to_be_shown),
        cmocka_unit_test(simple_arithmetic_on_shown_numbers_is_told_apart),
        cmocka_unit_test(other_units_signs_and_words_are_the_same_number),
        cmocka_unit_test(a_chart_is_claimed_or_it_is_not),
        cmocka_unit_test(files_that_were_made_or_read_have_to_exist),
    };
    return cmocka_run_group_tests_name("claims", tests, NULL, NULL);
}
