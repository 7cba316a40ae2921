/* What kind of question it is, in twelve languages. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <cmocka.h>
#include "conf.h"
#include "prompt.h"
#include "request.h"

static struct conf conf;
static struct prompts *prompts;

static int open_prompts(void **state)
{
    struct err e = { 0 };
    (void)state;
    conf_init(&conf);
    return conf_set(&conf, "service.prompts_dir=prompts", &e) < 0 || prompts_load(&prompts, &conf, &e) < 0;
}

static int close_prompts(void **state)
{
    (void)state;
    prompts_free(prompts);
    conf_clear(&conf);
    return 0;
}

static void questions_for_values_want_work(void **state)
{
    static const char *const asked[] = {
        "What is the mean fare?",
        "How many rows?",
        "plot the fares by class",
        "And the totals?",
        "Wie viele Zeilen gibt es?",
        "Was ist der Mittelwert?",
        "Zeichne ein Diagramm",
        "Quelle est la moyenne ?",
        "Combien de lignes ?",
        "Trace un histogramme",
        "¿Cuál es el promedio?",
        "¿Cuántas filas hay?",
        "Qual è la media?",
        "Quante righe?",
        "Qual é a média?",
        "Quantas linhas?",
        "Hoeveel rijen zijn er?",
        "Wat is het gemiddelde?",
        "Ile jest wierszy?",
        "Jaka jest średnia?",
        "Сколько строк?",
        "Какое среднее?",
        "平均はいくつですか",
        "何行ありますか",
        "平均票价是多少？",
        "画个图",
        "평균은 얼마입니까?",
        "몇 행입니까?",
        "what's the mean?",
    };
    (void)state;
    for (size_t i = 0; i < countof(asked); i++)
        if (!request_wants_work(prompts, asked[i], false))
            fail_msg("%s", asked[i]);
}

static void questions_about_words_do_not(void **state)
{
    static const char *const asked[] = {
        "what do you mean by that?",
        "What does that mean?",
        "why is the total so high?",
        "how did you get the sum?",
        "Explain the median to me",
        "thanks, that was great",
        "Was meinst du mit Anzahl?",
        "Warum ist die Summe so hoch?",
        "Que veut dire la moyenne ici ?",
        "Pourquoi ce total ?",
        "¿Qué significa la media?",
        "¿Por qué ese total?",
        "Cosa vuol dire media?",
        "Perché quel totale?",
        "O que quer dizer média?",
        "Por que esse total?",
        "Wat bedoel je met totaal?",
        "Waarom is het totaal zo?",
        "Co oznacza średnia?",
        "Dlaczego suma?",
        "Что значит среднее?",
        "Почему такая сумма?",
        "平均とはどういう意味ですか",
        "なぜ合計がこうなるの",
        "中位数是什么意思？",
        "为什么总和这么大？",
        "평균이 무슨 뜻이에요?",
        "왜 합계가 커요?",
        "hello",
        "你好",
    };
    (void)state;
    for (size_t i = 0; i < countof(asked); i++)
        if (request_wants_work(prompts, asked[i], true))
            fail_msg("%s", asked[i]);
    assert_false(request_wants_work(prompts, "What do you mean?", false));
    assert_true(request_wants_work(prompts, "Explain the mean of x by group", false)); /* nothing was said yet */
    assert_true(request_wants_work(prompts, "And what is the mean of the others?", true));
}

static void programs_are_asked_for_by_name(void **state)
{
    static const char *const asked[] = { "show me the code",    "how do I do that in pandas?",
                                         "Zeig mir das Skript", "Montre le code",
                                         "Muéstrame el código", "Mostrami il codice",
                                         "Mostre o código",     "Laat de code zien",
                                         "Pokaż kod",           "Покажи код",
                                         "コードを見せて",      "怎么写？",
                                         "코드를 보여줘" };
    (void)state;
    for (size_t i = 0; i < countof(asked); i++)
        if (!request_wants_program(prompts, asked[i]))
            fail_msg("%s", asked[i]);
    assert_false(request_wants_program(prompts, "encoded values per class"));
    assert_false(request_wants_program(prompts, "how many rows?"));
}

static void promises_are_no_answers(void **state)
{
    static const struct {
        const char *text;
        bool promise, begins;
    } cases[] = {
        { "I will load the data and compute it.", true, true },
        { "Sure! Let me load the data.", true, true },
        { "The column is missing, so I need to look again.", true, false },
        { "Ich werde die Daten laden.", true, true },
        { "Je vais charger les données.", true, true },
        { "Voy a cargar los datos.", true, true },
        { "Я загружу данные.", true, true },
        { "我将读取文件。", true, true },
        { "データを読み込みます。必要があります", true, false },
        { "Let me know what to do.", false, true },
        { "The best one is Rome.", false, false },
    };
    (void)state;
    for (size_t i = 0; i < countof(cases); i++) {
        bool begins = false;
        if (request_is_promise(prompts, cases[i].text, &begins) != cases[i].promise ||
            (cases[i].promise && begins != cases[i].begins))
            fail_msg("%s", cases[i].text);
    }
}

static void answers_keep_to_the_language_of_the_question(void **state)
{
    static const struct {
        const char *asked, *said;
        bool foreign;
    } cases[] = {
        { "What is the mean fare?", "The mean fare is 32.2 pounds in all classes.", false },
        { "What is the mean fare?", "平均票价是三十二点二英镑，所有舱位都计算在内，没有缺失值。", true },
        { "What is the mean fare of the women?",
          "Der mittlere Preis ist 32.2, und das ist nicht mit Kindern gerechnet.", true },
        { "Wie hoch ist der mittlere Preis der Frauen?", "The mean fare is 32.2, which is the value of the column.",
          true },
        { "Wie hoch ist der mittlere Preis?", "Der mittlere Preis ist 32,2 und wurde aus allen Zeilen berechnet.",
          false },
        { "Quelle est la moyenne des prix ?", "The mean fare is 32.2, which is the value of the column.", true },
        { "平均票价是多少？", "The mean fare is 32.2, which is the value of the column.", true },
        { "平均票价是多少？", "平均票价是 32.2（列 `Fare`，mean）。", false },
        { "平均票价是多少？请用英文回答", "The mean fare is 32.2, which is the value of the column.", false },
        { "What is the mean fare? Answer in German.",
          "Der mittlere Preis ist 32.2, und das ist nicht mit Kindern gerechnet.", false },
        { "運賃の平均はいくらですか", "平均票价是三十二点二英镑，所有舱位都计算在内，没有缺失值。", true },
        { "運賃の平均はいくらですか", "運賃の平均は32.2です。すべての行を使いました。", false },
        { "Какая средняя цена?", "The mean fare is 32.2, which is the value of the column.", true },
        { "Какая средняя цена?", "Средняя цена 32,2 (столбец `Fare`).", false },
        { "평균 요금은 얼마입니까?", "The mean fare is 32.2, which is the value of the column.", true },
        { "mean fare", "32.2", false },
        { "mean fare", "Fare: 32.2 (891 rows, `titanic.csv`)", false },
        { "df.describe()", "Le prix moyen est de 32,2 et le maximum est de 512.", false },
    };
    (void)state;
    for (size_t i = 0; i < countof(cases); i++)
        if (request_is_foreign(prompts, cases[i].asked, cases[i].said) != cases[i].foreign)
            fail_msg("%s: %s", cases[i].asked, cases[i].said);
}

static void questions_of_an_answer_end_it(void **state)
{
    (void)state;
    assert_true(request_asks_back("Which column?"));
    assert_true(request_asks_back("哪一列？"));
    assert_true(request_asks_back("どの列ですか。"));
    assert_true(request_asks_back("**Which column?**\n"));
    assert_false(request_asks_back("Which column? This one."));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(questions_for_values_want_work),
        cmocka_unit_test(questions_about_words_do_not),
        cmocka_unit_test(programs_are_asked_for_by_name),
        cmocka_unit_test(promises_are_no_answers),
        cmocka_unit_test(answers_keep_to_the_language_of_the_question),
        cmocka_unit_test(questions_of_an_answer_end_it),
    };
    return cmocka_run_group_tests_name("agent_request", tests, open_prompts, close_prompts);
}
