/* Numbers as people of many countries write them, held against what programs print. A false alarm costs as much as a miss: each kind has
 * sentences that are true beside ones that are not. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <cmocka.h>
#include "claims.h"

struct said_case {
    const char *prose, *shown, *claims;
};

/* All that fail are named at once: a change of one rule shows what it did to the others. */
static void judge(const struct said_case *all, size_t n)
{
    size_t wrong = 0;
    for (size_t i = 0; i < n; i++) {
        AUTO(evidence_clear) struct evidence e = { 0 };
        AUTO(claims_clear) struct claims c = { 0 };
        evidence_add(&e, all[i].shown);
        claims_numbers(&c, all[i].prose, &e);
        autofree char *list = claims_join(&c);
        if (strcmp(list, all[i].claims) != 0 && ++wrong)
            (void)fprintf(stderr, "\"%s\" beside \"%s\": \"%s\", not \"%s\"\n", all[i].prose, all[i].shown, list,
                          all[i].claims);
    }
    assert_int_equal(wrong, 0);
}

static void words_of_twelve_languages_are_numbers(void **state)
{
    static const struct said_case cases[] = {
        { "There are three groups.", "", "" },
        { "There are seventeen rows.", "17", "" },
        { "There are seventeen rows.", "18", "seventeen" },
        { "Es sind dreizehn Zeilen.", "13", "" },
        { "Es sind dreizehn Zeilen.", "14", "dreizehn" },
        { "Es sind zweiundvierzig Zeilen.", "42", "" },
        { "Es sind zweiundvierzig Zeilen.", "41", "zweiundvierzig" },
        { "Es sind dreihundertzwölf Zeilen.", "312", "" },
        { "Insgesamt zweitausend Zeilen.", "2000", "" },
        { "Drei Gruppen, eine davon leer.", "", "" },
        { "Il y a quarante-deux lignes.", "42", "" },
        { "Il y a quarante-deux lignes.", "43", "quarante-deux" },
        { "Il y a quatre-vingt-dix-sept lignes.", "97", "" },
        { "Il y a soixante et onze lignes.", "71", "" },
        { "Il y a deux cents lignes.", "200", "" },
        { "Mille mercis !", "", "" },
        { "Hay cuarenta y dos filas.", "42", "" },
        { "Hay cuarenta y dos filas.", "43", "cuarenta y dos" },
        { "Hay tres mil filas.", "3000", "" },
        { "Ci sono ventitré righe.", "23", "" },
        { "Ci sono quarantadue righe.", "41", "quarantadue" },
        { "Há trinta e cinco linhas.", "35", "" },
        { "Há trinta e cinco linhas.", "36", "trinta e cinco" },
        { "Er zijn vijfentwintig rijen.", "25", "" },
        { "Er zijn tweeëntwintig rijen.", "23", "tweeëntwintig" },
        { "Jest dwadzieścia pięć wierszy.", "25", "" },
        { "Jest dwadzieścia pięć wierszy.", "26", "dwadzieścia pięć" },
        { "Всего сорок две строки.", "42", "" },
        { "Всего сорок две строки.", "43", "сорок две" },
        { "全部で三百二十行です。", "320", "" },
        { "一共二十五行。", "26", "二十五" },
        { "모두 이십오 행입니다.", "25", "" },
        { "모두 이십오 행입니다.", "26", "이십오" },
        { "Seize the day, said the quince.", "", "" },
        { "What happened at once is over; ten to one it will.", "", "" },
        { "The letzten 20 Tage.", "der letzten zwanzig Tage", "" },
        { "les 30 premiers", "les trente premiers", "" },
        { "Twenty-fifth in line, and a hundred per cent sure.", "", "" },
        { "Sechs, sieben und acht.", "", "" },
        { "Ein Tausendfüßler im Dreißigjährigen Krieg, siebzehnfach.", "", "" },
    };
    (void)state;
    judge(cases, countof(cases));
}

static void each_country_groups_and_points_its_own_way(void **state)
{
    static const struct said_case cases[] = {
        { "Summe: 1.234,5 EUR", "1234.5", "" },
        { "Summe: 1.234,5 EUR", "1235.5", "1.234,5" },
        { "Somme : 1 234,5 EUR", "1234.5", "" },
        { "Somme : 1 234,5 EUR", "1239.5", "1 234,5" },
        { "1 234 567 строк", "1234567", "" },
        { "51 234 тыс.", "51 234 тыс.", "" },
        { "51 234 тыс.", "51234000", "" },
        { "1 234 567 строк", "1234568", "1 234 567" },
        { "1234567 rows", "1 234 567", "" },
        { "１２３行", "123", "" },
        { "１２３行", "124", "123" },
        { "１，２３４行", "1234", "" },
        { "有123，其中456。", "123 456", "" },
        { "In 2023 250 rows were added.", "2023 250", "" },
        { "CHF 1’234.50", "1234.5", "" },
        { "R$ 1.234,56", "1234.56", "" },
        { "12,5 %", "0.125", "" },
        { "12,5 %", "0.135", "12,5 %" },
        { "0,125", "0.125", "" },
        { "-1.234,00", "-1234", "" },
        { "١٬٢٣٤٫٥", "1234.5", "" },
    };
    (void)state;
    judge(cases, countof(cases));
}

static void percents_fractions_and_magnitudes_are_one_value(void **state)
{
    static const struct said_case cases[] = {
        { "A share of 0.384.", "38.4%", "" },
        { "A share of 0.394.", "38.4%", "0.394" },
        { "38.4 procent", "0.384", "" },
        { "38,4 procent van de rijen", "0.394", "38,4 procent" },
        { "38,4 proc. wierszy", "0.384", "" },
        { "38.4 por cento", "0.384", "" },
        { "0.4 percentage points", "0.004", "" },
        { "38.4 points de pourcentage", "38.4", "" },
        { "25 basis points", "0.0025", "" },
        { "1.2M rows", "1234567", "" },
        { "1.3M rows", "1234567", "1.3M" },
        { "$1.2 mn", "1234567", "" },
        { "3.4bn", "3412345678", "" },
        { "450K", "449800", "" },
        { "1,2 mln euro", "1234567", "" },
        { "1,2 miliona", "1234567", "" },
        { "1,2 miljoen", "1234567", "" },
        { "1,2 milioni", "1234567", "" },
        { "1,2 milhão", "1234567", "" },
        { "1,2 Millionen", "1334567", "1,2 Millionen" },
        { "1,2 миллиона", "1234567", "" },
        { "12 тысяч строк", "12345", "" },
        { "13 тысяч строк", "12345", "13 тысяч" },
        { "12 tys. wierszy", "12345", "" },
        { "12.3만 행", "123456", "" },
        { "1.2億円", "123456789", "" },
        { "1.5 × 10^6", "1500000", "" },
        { "1.5×10⁶", "1500000", "" },
        { "2.5 x 10^-3", "0.0025", "" },
        { "2.5 x 10^-3", "0.0035", "2.5 x 10^-3" },
        { "half of the 5 m rope", "", "" },
    };
    (void)state;
    judge(cases, countof(cases));
}

static void rounding_says_so_in_every_language(void **state)
{
    static const struct said_case cases[] = {
        { "etwa 1.200 Zeilen", "1234", "" },    { "genau 1.200 Zeilen", "1234", "1.200" },
        { "environ 1 200 lignes", "1234", "" }, { "circa 1200 righe", "1234", "" },
        { "unas 1200 filas", "1234", "" },      { "cerca de 1200 linhas", "1234", "" },
        { "ongeveer 1200 rijen", "1234", "" },  { "około 1200 wierszy", "1234", "" },
        { "около 1200 строк", "1234", "" },     { "約1200行", "1234", "" },
        { "대략 1200 행", "1234", "" },         { "about $1,200", "1234", "" },
        { "about 1,300", "1234", "1,300" },     { "The mean is about 32.", "32.2042", "" },
        { "from 18 to 25", "18 25", "" },       { "18–25", "18 26", "25" },
        { "18-25 years", "18 25", "" },         { "zwischen 18 und 25", "18 25", "" },
    };
    (void)state;
    judge(cases, countof(cases));
}

static void what_is_no_result_is_no_claim(void **state)
{
    static const struct said_case cases[] = {
        { "13. first\n14. second", "", "" },
        { "(13) first", "", "" },
        { "The p-value is below 0.001, so it is significant.", "p = 2.3e-10", "" },
        { "p < 0.05", "p 0.0312", "" },
        { "p < 0.05", "p 0.312", "0.05" },
        { "The 95 % confidence interval is 1.2 to 3.4.", "1.2 3.4", "" },
        { "at the 5 % level", "", "" },
        { "Python 3.13 and pandas 2.2", "", "" },
        { "It&#39;s fine, it&#x27;s &nbsp; fine.", "", "" },
        { "color #123456 and #ff0033", "", "" },
        { "see www.example.com/77", "", "" },
        { "see [the docs](https://x.org/77?y=88) and <https://x.org/99>", "", "" },
        { "[44](https://x.org)", "", "44" },
        { "```bash\nhead -77 x\n```", "", "" },
        { "```js\nlet x = 77\n```\n78", "", "78" },
        { "```\n77.5\n```", "", "77.5" },
        { "```text\n77.5\n```", "", "77.5" },
        { "On 3 March 2024 it fell.", "2024-03-03", "" },
        { "On 15 March 2024 it fell.", "20240315", "" },
        { "On 16 March 2024 it fell.", "20240315", "16, 2024" }, /* as a day too */
        { "Am 15.03.2024 fiel es.", "2024-03-15", "" },
        { "the 25th row", "25", "" },
        { "the 25th row", "26", "25" },
        { "the 19th century", "", "" },
        { "In 2009 it fell.", "2009", "" },
        { "In 2010 it fell.", "2009", "2010" },
        { "the top-15 list", "15", "" },
        { "v1.25, id_4711, Q13 and COVID-19", "", "" },
        { "It lasted 52 minutes.", "", "52" },
        { "at 14:30", "14:30:00", "" },
        { "at 14:35", "14:30:00", "35" },
    };
    (void)state;
    judge(cases, countof(cases));
}

static void what_a_program_states_itself_shows_nothing(void **state)
{
    static const struct {
        const char *code, *output, *prose, *claims;
    } cases[] = {
        { "print(\"The mean is 42\")", "The mean is 42\n", "The mean is 42.", "42" },
        { "print(42)", "42\n", "It is 42.", "42" },
        { "print('Mean:', 42.5)", "Mean: 42.5\n", "It is 42.5.", "42.5" },
        { "mean = 42.5\nprint(mean)", "42.5\n", "It is 42.5.", "42.5" },
        { "mean = 42.5\nprint(f'The mean is {mean:.2f} now')", "The mean is 42.50 now\n", "It is 42.50.", "42.50" },
        { "print(f\"{42.5:.1f}\")", "42.5\n", "It is 42.5.", "42.5" },
        { "print(\"mean %d\" % 42)", "mean 42\n", "It is 42.", "42" },
        { "print('mean ' + str(42))", "mean 42\n", "It is 42.", "42" },
        { "print('mean {}'.format(42))", "mean 42\n", "It is 42.", "42" },
        { "x = 42\nx", "42", "It is 42.", "42" },
        { "42", "42", "It is 42.", "42" },
        { "'The mean is 42'", "'The mean is 42'", "It is 42.", "42" },
        { "r = {'mean': 42.5, 'n': 891}\nr", "{'mean': 42.5, 'n': 891}", "42.5 of 891", "42.5, 891" },
        { "r = {'mean': 42.5}\nfor k, v in r.items():\n    print(k, v)", "mean 42.5\n", "It is 42.5.", "42.5" },
        { "r['mean'] = 42.5\nprint(r)", "{'mean': 42.5}", "It is 42.5.", "42.5" },
        { "df = pd.DataFrame({'a': [42, 43]})\nprint(df)", "    a\n0  42\n1  43\n", "42 and 43", "42, 43" },
        { "try:\n    m = df.x.mean()\nexcept Exception:\n    m = 42.5\nprint(m)", "42.5\n", "It is 42.5.", "42.5" },
        { "try:\n    print(df.x.mean())\nexcept:\n    print('Mean: 32.2')", "Mean: 32.2\n", "It is 32.2.", "32.2" },
        { "# the mean is 42\nprint('done')", "done\n", "It is 42.", "42" },
        { "print('''\nmean 42\nmax 99\n''')", "\nmean 42\nmax 99\n\n", "42 and 99", "42, 99" },
        { "print('Output:\\n42')", "Output:\n42\n", "It is 42.", "42" },
        { "import sys\nsys.stdout.write('42\\n')", "42\n", "It is 42.", "42" },
        { "print([42, 43])", "[42, 43]\n", "42 and 43", "42, 43" },
        { "print('There are forty-two rows')", "There are forty-two rows", "Forty-two.", "Forty-two" },
        /* computed, or told */
        { "print(df.x.mean())", "42.5\n", "It is 42.5.", "" },
        { "print('The mean is', df.x.mean())", "The mean is 42.5\n", "It is 42.5.", "" },
        { "print(f'Of 891 rows: {df.x.mean():.1f}')", "Of 891 rows: 42.5\n", "42.5 of 891", "891" },
        { "print(df.head(15))", "x\n", "The first 15.", "" },
        { "n = 15\nprint('top', n)\nprint(df.nlargest(n, 'x'))", "top 15\n", "The top 15.", "" },
        { "print('over 65:', len(df[df.age > 65]))", "over 65: 77\n", "77 are over 65.", "" },
        { "limit = 65\nprint(f'over {limit}: {(df.age > limit).sum()}')", "over 65: 77\n", "77 are over 65.", "" },
        { "print(df.query('age > 65').shape[0])", "77\n", "77 are over 65.", "" },
        { "for q in [0.25, 0.75]:\n    print(q, df.x.quantile(q))", "0.25 31\n0.75 47\n", "31 to 47", "" },
        { "qs = [0.25, 0.75]\nfor q in qs:\n    print(q, df.x.quantile(q))", "0.25 31\n0.75 47\n", "25 %, 75 %", "" },
        { "b = [0, 18, 65]\nd = pd.cut(df.age, b)\nprint(d.value_counts())", "(18, 65] 77\n", "18 to 65: 77", "" },
        { "print('2023:', df.loc['2023'].x.sum())", "2023: 77\n", "77 in 2023", "" },
        { "print(100 * a / b)", "77.5\n", "77.5 of 100", "" },
        { "print(17 * 23)", "391\n", "It is 391.", "" },
        { "print(round(df.x.mean(), 15))", "42.123\n", "42.12", "" },
        { "total = 0\nfor x in df.x:\n    total += x\nprint(total)", "420\n", "420", "" },
        { "df['year'] = 2023\nprint(df.groupby('year').x.sum())", "2023 77\n", "77 in 2023", "" },
        { "m = df.x.mean()\nprint(m)", "42.5\n", "42.5", "" },
        { "print('Check: 244 rows', len(df))", "Check: 244 rows 244\n", "244 rows", "" },
        { "plt.figure(figsize=(14, 15))\nprint(df.x.sum())", "77", "77", "" },
        { "print(df.x.sum())  # 42", "77\n", "77, not 42", "42" },
        { "if n > 500:\n    print('many', n)", "many 777\n", "777 are more than 500", "" },
        { "print('many' if n > 500 else 'few', n)", "many 777\n", "777 are more than 500", "" },
        { "x = 'unclosed", "42", "42", "" },
        { "f\"{x[\"", "42", "42", "" },
        { "print(((((", "42", "42", "" },
    };
    size_t wrong = 0;
    (void)state;
    for (size_t i = 0; i < countof(cases); i++) {
        AUTO(evidence_clear) struct evidence e = { 0 };
        AUTO(claims_clear) struct claims c = { 0 };
        evidence_add_output(&e, cases[i].code, cases[i].output);
        evidence_add_program(&e, cases[i].code);
        claims_numbers(&c, cases[i].prose, &e);
        autofree char *list = claims_join(&c);
        if (strcmp(list, cases[i].claims) != 0 && ++wrong)
            (void)fprintf(stderr, "%s\n-> \"%s\": \"%s\", not \"%s\"\n", cases[i].code, cases[i].prose, list,
                          cases[i].claims);
    }
    assert_int_equal(wrong, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(words_of_twelve_languages_are_numbers),
        cmocka_unit_test(each_country_groups_and_points_its_own_way),
        cmocka_unit_test(percents_fractions_and_magnitudes_are_one_value),
        cmocka_unit_test(rounding_says_so_in_every_language),
        cmocka_unit_test(what_is_no_result_is_no_claim),
        cmocka_unit_test(what_a_program_states_itself_shows_nothing),
    };
    return cmocka_run_group_tests_name("claims_numbers", tests, NULL, NULL);
}
