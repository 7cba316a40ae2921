/* claims_words.c - names and charts.
 *
 * Prose is full of names that prove nothing; only what stands where a result stands is held against the evidence: behind "is" and its
 * like, and what is called a column or value. A name that is explained by one that was shown, "Apple (AAPL)", is fine. */
#include <ctype.h>
#include <strings.h>
#include "claims_private.h"
#include "str.h"

enum { NAME_MAX_BYTES = 60, NAMES_MAX = 8, SENTENCE_MAX = 400, SHORT_NAME = 2 };

/* ---- is it shown? ---- */

static bool is_gap(char c)
{
    return (unsigned char)c < 0x80 && !isalnum((unsigned char)c);
}

/* What is between words does not count: "total bill" is total_bill. */
static bool matches_at(const char *hay, const char *needle)
{
    for (;;) {
        while (is_gap(*needle) && *needle)
            needle++;
        if (!*needle)
            return true;
        while (is_gap(*hay) && *hay)
            hay++;
        if (*hay++ != *needle++)
            return false;
    }
}

/* Short names have to be words of their own. */
static bool is_in(const struct str *where, const char *folded)
{
    const char *hay = str_peek(where);
    const size_t n = strlen(folded);
    for (const char *at = hay; *at; at++) {
        if (is_gap(*at) || !matches_at(at, folded))
            continue;
        if (n > SHORT_NAME || ((at == hay || is_gap(at[-1])) && (!at[n] || is_gap(at[n]))))
            return true;
    }
    return false;
}

/* Words that name no value, wherever they stand. */
static bool is_common(const char *folded)
{
    static const char *const words[] = {
        "yes",        "no",         "not",      "none",    "nan",     "nat",     "na",       "null",     "true",
        "false",      "pearson",    "spearman", "kendall", "welch",   "student", "gauss",    "gaussian", "poisson",
        "fisher",     "python",     "pandas",   "numpy",   "english", "excel",   "csv",      "json",     "dataframe",
        "series",     "int64",      "float64",  "object",  "string",  "str",     "int",      "float",    "bool",
        "category",   "datetime64", "datetime", "index",   "columns", "utf-8",   "utf8",     "latin-1",  "iso-8859-1",
        "dtype",      "mean",       "median",   "sum",     "count",   "std",     "min",      "max",      "mode",
        "groupby",    "row",        "rows",     "column",  "unknown", "missing", "other",    "all",      "both",
        "run_python", "iqr",        "usd",      "eur",     "gbp",     "bayes",   "bayesian", "markdown", "matplotlib",
        "out",        "undo",       "rerun",    "i",       "sql",
    };
    for (size_t i = 0; i < countof(words); i++)
        if (strcmp(words[i], folded) == 0)
            return true;
    return false;
}

static bool is_shown(const struct evidence *e, const char *at, size_t n)
{
    autofree char *name = xstrndup(at, n), *folded = utf8_fold(name);
    return is_common(folded) || is_in(&e->words, folded) || is_in(&e->programs, folded);
}

/* ---- names in quotes and backticks ---- */

static const struct quote {
    const char *open, *close;
} quotes[] = { { "`", "`" }, { "\"", "\"" }, { "“", "”" }, { "„", "“" }, { "«", "»" }, { "「", "」" }, { "**", "**" } };

static const char *const callers[] = { "column ",    "columns ", "category ", "categories ", "value ",
                                       "group ",     "class ",   "called ",   "named ",      "spalte ",
                                       "kategorie ", "colonne ", "columna ",  "列",          "类别",
                                       "字段",       "名为",     "叫",        "colonna ",    "coluna ",
                                       "kolom ",     "kolumna ", "столбец ",  "カラム",      "열 " };
static const char *const copulas[] = { " is ",  " are ", " was ",  " were ", " ist ", " sind ", " war ",
                                       " est ", " es ",  " fue ",  "是",     "为",    "：",     ": ",
                                       " è ",   " é ",   " jest ", " это ",  " — ",   "は" };

static bool is_behind(const char *begin, const char *at, const char *const *words, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        const size_t k = strlen(words[i]);
        if ((size_t)(at - begin) >= k && strncasecmp(at - k, words[i], k) == 0)
            return true;
    }
    return false;
}

/* Letters, digits, blanks and a few signs, one at least a letter: no program, no file, no sentence. */
static bool is_name(const char *at, size_t n)
{
    size_t letters = 0, blanks = 0;
    for (size_t i = 0; i < n; i++) {
        if (strchr("()=<>[]{}/\\*+;:.,|$#\n", at[i]))
            return false;
        letters += isalpha((unsigned char)at[i]) || (unsigned char)at[i] >= 0x80;
        blanks += at[i] == ' ';
    }
    return n > 0 && n <= NAME_MAX_BYTES && letters && blanks <= 3;
}

/* Backticks are for what exists; quotes and bold, only where a result or a name of one stands. */
static const char *check_quoted(struct claims *out, const char *begin, const char *at, const struct quote *q,
                                const struct evidence *e)
{
    const char *name = at + strlen(q->open), *end = strstr(name, q->close), *line = strchr(name, '\n');
    if (!end || (line && line < end))
        return name;
    const bool called = is_behind(begin, at, callers, countof(callers)),
               result = is_behind(begin, at, copulas, countof(copulas));
    const bool proper = isupper((unsigned char)*name) || (unsigned char)*name >= 0x80;
    const bool counts =
        *q->open == '`' ? called || result || memchr(name, '_', (size_t)(end - name)) : called || (result && proper);
    if (counts && is_name(name, (size_t)(end - name)) && !is_shown(e, name, (size_t)(end - name)))
        claims_add(out, name, (size_t)(end - name));
    return end + strlen(q->close);
}

/* ---- proper names behind "is" ---- */

static const char *skip_article(const char *at)
{
    static const char *const articles[] = { "the ", "a ", "an " };
    for (size_t i = 0; i < countof(articles); i++)
        if (strncasecmp(at, articles[i], strlen(articles[i])) == 0)
            return at + strlen(articles[i]);
    return at;
}

/* "New York City": bytes, 0: no proper name begins here. */
static size_t proper_name(const char *at)
{
    size_t n = 0;
    while (isupper((unsigned char)at[n]) && islower((unsigned char)at[n + 1])) {
        while (isalpha((unsigned char)at[n]))
            n++;
        if (at[n] != ' ' || !isupper((unsigned char)at[n + 1]) || !islower((unsigned char)at[n + 2]))
            break;
        n++;
    }
    while (n && at[n - 1] == ' ')
        n--;
    return n;
}

static bool has_shown_part(const struct evidence *e, const char *at, size_t n)
{
    for (const char *end = at + n; at < end;) {
        const size_t word = strcspn(at, " ");
        const size_t k = word < (size_t)(end - at) ? word : (size_t)(end - at);
        if (is_shown(e, at, k))
            return true;
        at += k + 1;
    }
    return false;
}

/* "Apple (AAPL)" with AAPL shown. */
static bool is_explained(const struct evidence *e, const char *behind)
{
    if (strncmp(behind, " (", 2) != 0)
        return false;
    const size_t n = strcspn(behind + 2, ")\n");
    return behind[2 + n] == ')' && n > 0 && has_shown_part(e, behind + 2, n);
}

/* "is Rome", "are Rome, Paris and Berlin" */
static void check_proper(struct claims *out, const char *at, const struct evidence *e)
{
    for (size_t i = 0; i < NAMES_MAX; i++) {
        at = skip_article(at);
        const size_t n = proper_name(at);
        if (!n)
            return;
        if (!has_shown_part(e, at, n) && !is_explained(e, at + n) && n > SHORT_NAME)
            claims_add(out, at, n);
        at += n;
        if (strncmp(at, ", and ", 6) == 0)
            at += 6;
        else if (strncmp(at, ", ", 2) == 0)
            at += 2;
        else if (strncmp(at, " and ", 5) == 0)
            at += 5;
        else
            return;
    }
}

static const char *check_next(struct claims *out, const char *begin, const char *at, const struct evidence *e)
{
    static const char *const is[] = { " is ", " are ", " was ", " were " };
    if (strncmp(at, "```", 3) == 0)
        return strstr(at + 3, "```") ? strstr(at + 3, "```") + 3 : at + strlen(at);
    for (size_t i = 0; i < countof(quotes); i++)
        if (strncmp(at, quotes[i].open, strlen(quotes[i].open)) == 0)
            return check_quoted(out, begin, at, &quotes[i], e);
    for (size_t i = 0; i < countof(is); i++)
        if (strncmp(at, is[i], strlen(is[i])) == 0) {
            check_proper(out, at + strlen(is[i]), e);
            return at + strlen(is[i]) - 1;
        }
    return at + 1;
}

void claims_names(struct claims *out, const char *markdown, struct evidence *e)
{
    struct claims days = { 0 };
    AUTO(claims_clear) struct claims all = { 0 };
    struct evidence none = { 0 };
    for (const char *at = markdown; *at;)
        at = check_next(&all, markdown, at, e);
    for (size_t i = 0; i < all.n; i++) { /* days and months are judged by claims_days */
        claims_days(&days, all.at[i], &none);
        if (days.n == 0)
            claims_add(out, all.at[i], strlen(all.at[i]));
        claims_clear(&days);
    }
}

/* ---- charts ---- */

static bool says(const char *from, const char *to, const char *const *words, size_t n)
{
    for (const char *at = from; at < to; at++)
        for (size_t i = 0; i < n; i++)
            if (strncasecmp(at, words[i], strlen(words[i])) == 0)
                return true;
    return false;
}

static bool is_chart_claim(const char *from, const char *to)
{
    static const char *const things[] = { " chart",  " plot",    " graph",   " histogram", " heatmap",  "scatter plot",
                                          "boxplot", " diagram", "diagramm", "grafik",     "graphique", "gráfico",
                                          "图",      "圖",       "график",   " figure",    "grafiek",   "wykres",
                                          "グラフ",  "그래프",   "차트",     "grafico" };
    static const char *const made[] = { "chart shows",    "plot shows",    "graph shows",    "histogram shows",
                                        "figure shows",   "chart below",   "plot below",     "graph below",
                                        "figure below",   "chart above",   "plot above",     "graph above",
                                        "figure above",   "see the chart", "see the plot",   "see the graph",
                                        "see the figure", "in the chart",  "in the plot",    "here is the ",
                                        "here is a ",     "here's the ",   "here's a ",      "have plotted",
                                        "i plotted",      "'ve plotted",   "have created",   "i created",
                                        "'ve created",    "have drawn",    "i drew",         "have made a",
                                        "i made a",       "i generated",   "have generated", "attached",
                                        "is shown in",    "is displayed",  "illustrates",    "posted",
                                        "zeigt",          "siehe ",        "montre",         "ci-dessous",
                                        "muestra",        "显示",          "如图",           "见图",
                                        "mostra",         "toont",         "laat zien",      "pokazuje",
                                        "示して",         "作成しました",  "보여",           "보여줍니다",
                                        "所示",           "下图",          "上图",           "已绘制",
                                        "已生成",         "画好了",        "показыва" };
    static const char *const denied[] = {
        " not ",  "n't",     "n’t",      "cannot", "unable",  "no chart", "no plot",  "no figure", "no graph",
        " if ",   " would ", " could ",  " will ", "can be ", "let me",   "you can ", "?",         "to see ",
        "未",     "没",      "无法",     "不能",   "可以",    "如果",     "？",       " kein",     " pas ",
        "i'll",   "should",  "going to", "want",   "wirst",   "soll",     "要",       " non ",     " não ",
        " niet ", " geen ",  " nie ",    " не ",   "ません",  "ない",     "않",       " no ",      " kann"
    };
    return says(from, to, things, countof(things)) && says(from, to, made, countof(made)) &&
           !says(from, to, denied, countof(denied));
}

bool claims_chart(const char *markdown)
{
    for (const char *at = markdown; *at;) {
        const char *end = prose_sentence_end(at), *behind = end + (*end != '\0');
        if (is_chart_claim(at, behind))
            return true;
        at = behind;
    }
    return false;
}
