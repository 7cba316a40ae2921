/* What a well shown number is given as: the highest of a list that has a higher one, the mean of another column. True answers must pass as
 * surely as false ones are found. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include "claims.h"

#define DAYS \
    "Mean total bill per day:\nday\nFri     17.151579\nSat     20.441379\nSun     21.410000\nThur    17.682742\nName: total_bill, dtype: float64\n"
#define CLASSES "Pclass\n3    491\n1    216\n2    184\nName: count, dtype: int64\n"
#define YEARS   "year\n1990    -5.5\n1991     0.2\n1992    12.0\n"

static void lists_of_outputs_are_read_right(void **state)
{
    static const struct {
        const char *answer, *outputs, *other; /* NULL: nothing speaks against it */
    } cases[] = {
        { "The mean total bill is highest on Thursday, with a value of 17.682742.", DAYS, "21.410000" },
        { "The mean total bill is highest on Thur.", DAYS, "21.410000" },
        { "The highest mean is 17.68.", DAYS, "21.410000" },
        { "It is lowest on Sun.", DAYS, "17.151579" },
        { "Am höchsten ist es am Sat mit 20,44.", DAYS, "21.410000" },
        { "平均最高的是 Sat。", DAYS, "21.410000" },
        { "The largest change was in 1990: 5.5.", YEARS, "12.0" },
        { "All are shown. The highest mean is on Sat.", DAYS, "21.410000" },
        { "The highest is Sat.", "a 1\nb 2\n\n" DAYS, "21.410000" },

        { "The mean total bill is highest on **Friday**.", DAYS, "21.410000" },
        { "On Friday the mean bill is 17.68.", DAYS, "17.151579" },
        { "The mean of Sat is 21.41.", DAYS, "20.441379" },
        { "The number of passengers who travelled first class is 491.", CLASSES, "216" },
        { "In class 2 there were 491.", CLASSES, "184" },
        { "In the first class there were 216.", CLASSES, NULL },
        { "In class 3 there were 491, in class 1 216.", CLASSES, NULL },
        { "The 3 largest are 10.5, 11.5 and 12.5.", "0 12.5\n1 11.5\n2 10.5\n3 9.25\n", NULL },
        { "In 1990 it was 12.0.", YEARS, "-5.5" },
        { "In 1991 it was 5.5.", YEARS, NULL },
        { "The means are 17.15 on Fri and 17.68 on Thur.", DAYS, NULL },
        { "Sat and Sun have 20.44.", DAYS, NULL },
        { "On Sat there are 17 tables.", DAYS, NULL },
        { "On Sat it is 17.68.", DAYS "\nday\nFri 1.2\nSat 17.68\n\n", NULL },
        { "The mean total bill is highest on Sunday, with a value of 21.41.", DAYS, NULL },
        { "The highest is Sun, then Sat (20.44), then Thur.", DAYS, NULL },
        { "The second highest is Sat with 20.44.", DAYS, NULL },
        { "Sat is higher than Fri: 20.44.", DAYS, NULL },
        { "On Sat it is 20.44.", DAYS, NULL },
        { "The lowest is Fri and the highest is Sun.", DAYS, NULL },
        { "The highest single bill was 50.81.", DAYS, NULL },
        { "At least 20.44 on Sat.", DAYS, NULL },
        { "Most of the data is of Sat.", DAYS, NULL },
        { "The largest drop was 5.5, in 1990.", YEARS, NULL },
        { "The highest is Sat.", DAYS "\nday\nFri 19\nSat 87\n\n", NULL },
        { "The highest is Sat.", "Fri     17.1\n...\nSat     20.4\n", NULL },
        { "The highest is Sat.", "     a   b\nFri  17.1  3\nSat  20.4  2\nSun 21.4 1\n", NULL },
        { "The highest is Sat.", "Sat 20.4", NULL },
        { "The highest is Sat.", "", NULL },
        { "", DAYS, NULL },
    };
    (void)state;
    for (size_t i = 0; i < countof(cases); i++) {
        autofree char *other = claims_misread(cases[i].answer, cases[i].outputs);
        if (strcmp(other ? other : "-", cases[i].other ? cases[i].other : "-") != 0)
            fail_msg("\"%s\" beside \"%s\": %s", cases[i].answer, cases[i].outputs, other ? other : "nothing");
    }
}

static void a_measure_is_of_a_column_that_the_question_names(void **state)
{
    static const struct {
        const char *question, *columns[3];
        bool other;
    } cases[] = {
        { "What is the mean salary of the passengers?", { "Fare" }, true },
        { "What was the highest temperature?", { "pressure", "station" }, true },
        { "What is the total revenue by region?", { "cost" }, true },
        { "What is the mean salary?", { "fare", "Fare_Base" }, true },

        { "What is the mean fare?", { "Fare" }, false },
        { "What is the mean unemployment rate?", { "unemp" }, false },
        { "What was the highest GDP?", { "realgdp" }, false },
        { "What is the average unit price?", { "unitPrice" }, false },
        { "Which categories have the highest sales?", { "category", "s" }, false },
        { "What is the median of the tips?", { "tip" }, false },
        { "What is the mean salary?", { "amount" }, false },
        { "What is the mean salary?", { "Gehälter" }, false },
        { "What is the mean salary?", { NULL }, false },
        { "How many passengers boarded?", { "Embarked" }, false },
        { "Wie hoch ist das mittlere Gehalt?", { "Fare" }, false },
        { "What is the mean salary of passengers by class?", { "Fare", "Pclass" }, false },
    };
    (void)state;
    for (size_t i = 0; i < countof(cases); i++) {
        size_t n = 0;
        while (n < countof(cases[i].columns) && cases[i].columns[n])
            n++;
        if (claims_of_other(cases[i].question, cases[i].columns, n) != cases[i].other)
            fail_msg("%s %s", cases[i].question, n ? cases[i].columns[0] : "-");
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(lists_of_outputs_are_read_right),
        cmocka_unit_test(a_measure_is_of_a_column_that_the_question_names),
    };
    return cmocka_run_group_tests_name("claims_results", tests, NULL, NULL);
}
