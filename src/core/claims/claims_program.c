/* claims_program.c - what a program states instead of computing it: print("The mean is 42"), result = 42; print(result).
 *
 * Its output shows no more than the model's own words would. What is used for anything else, a limit of a filter, a window, is a parameter:
 * that is what the person asked for, or what the answer may name. */
#include <ctype.h>
#include "claims_private.h"
#include "str.h"

enum { FRAMES_MAX = 64, NAMES_MAX = 64, FEEDS_MAX = 128, TEXT_MIN = 1, LINES_MAX = 200 };

/* ---- where a literal stands ---- */

struct frame {
    bool printed, computed;
};

/* A name that is given a value, and whether it is ever used for more than to be shown. */
struct given {
    const struct token *name;
    bool used;
};

struct program {
    struct tokens t;
    struct frame frames[FRAMES_MAX];
    size_t depth;
    struct given names[NAMES_MAX];
    size_t name_n;
    struct feed {
        size_t from, to; /* names: one is the value of the other */
    } feeds[FEEDS_MAX];
    size_t feed_n;
    size_t target; /* the name that this statement gives a value to; NAMES_MAX: none */
    struct {
        size_t token, name;
    } waiting[FEEDS_MAX]; /* literals that are printed when the name is only shown */
    size_t waiting_n;
};

static const char *const printers[] = { "print",    "display",    "Markdown",   "HTML",     "write",
                                        "pprint",   "title",      "set_title",  "suptitle", "text",
                                        "annotate", "set_xlabel", "set_ylabel", "xlabel",   "ylabel" };
static const char *const wrappers[] = { "str",    "round",  "float", "int",         "dict",      "list",  "tuple",
                                        "format", "set",    "repr",  "Series",      "DataFrame", "array", "dumps",
                                        "items",  "values", "keys",  "OrderedDict", "join",      "index" };

static bool is_sign(const struct program *p, size_t i, char sign)
{
    return i < p->t.n && p->t.at[i].kind == TOKEN_SIGN && p->t.at[i].sign == sign;
}

static bool is_operator(const struct program *p, size_t i)
{
    return i < p->t.n && p->t.at[i].kind == TOKEN_SIGN && !strchr("()[]{},:=.\n;", p->t.at[i].sign);
}

static bool is_operand(const struct program *p, size_t i)
{
    const struct token *t = &p->t.at[i];
    return t->kind == TOKEN_NAME || t->kind == TOKEN_NUMBER || t->kind == TOKEN_TEXT || is_sign(p, i, ')') ||
           is_sign(p, i, ']') || is_sign(p, i, '}');
}

/* Between strings, "+" and "%" only put them together; "-3" is a number. */
static bool is_computed(const struct program *p, size_t i)
{
    const bool text = p->t.at[i].kind == TOKEN_TEXT;
    const bool before = i > 0 && is_operator(p, i - 1), behind = is_operator(p, i + 1);
    const bool joins = before && i > 1 && (text || p->t.at[i - 2].kind == TOKEN_TEXT) &&
                       (p->t.at[i - 1].sign == '+' || p->t.at[i - 1].sign == '%');
    const bool minus = before && (i < 2 || !is_operand(p, i - 2)) && p->t.at[i - 1].sign == '-';
    const bool joined = behind && text && (p->t.at[i + 1].sign == '+' || p->t.at[i + 1].sign == '%');
    return (before && !joins && !minus) || (behind && !joined);
}

static struct frame *top(struct program *p)
{
    return &p->frames[p->depth < FRAMES_MAX ? p->depth : FRAMES_MAX - 1];
}

/* What an opening bracket does to all between it and its end. */
static struct frame frame_of(struct program *p, size_t i)
{
    const struct frame outer = *top(p);
    const bool behind = i > 0 && is_operand(p, i - 1);
    if (is_sign(p, i, '(') && behind && p->t.at[i - 1].kind == TOKEN_NAME) {
        if (token_is(&p->t.at[i - 1], printers, countof(printers)))
            return (struct frame){ .printed = true };
        if (token_is(&p->t.at[i - 1], wrappers, countof(wrappers)))
            return outer;
        return (struct frame){ .computed = true };
    }
    return behind && !is_sign(p, i, '{') ? (struct frame){ .computed = true } : outer;
}

/* ---- names ---- */

static size_t name_of(struct program *p, const struct token *t, bool add)
{
    for (size_t i = 0; i < p->name_n; i++)
        if (p->names[i].name->n == t->n && memcmp(p->names[i].name->at, t->at, t->n) == 0)
            return i;
    if (!add || p->name_n == NAMES_MAX)
        return NAMES_MAX;
    p->names[p->name_n] = (struct given){ .name = t };
    return p->name_n++;
}

static bool is_word(const struct token *t)
{
    static const char *const words[] = { "if",   "else",   "elif",   "for",   "while", "try",   "except", "finally",
                                         "with", "return", "import", "from",  "def",   "as",    "and",    "or",
                                         "not",  "in",     "is",     "None",  "True",  "False", "break",  "lambda",
                                         "pass", "else",   "raise",  "yield", "del",   "class", "global" };
    return token_is(t, words, countof(words));
}

/* ---- statements ---- */

static size_t statement_end(const struct program *p, size_t i)
{
    size_t depth = 0;
    for (; i < p->t.n; i++) {
        const struct token *t = &p->t.at[i];
        if (t->kind != TOKEN_SIGN)
            continue;
        depth += strchr("([{", t->sign) != NULL;
        depth -= depth && strchr(")]}", t->sign);
        if (depth == 0 && (t->sign == '\n' || t->sign == ';'))
            break;
    }
    return i;
}

/* "x = ", "x['mean'] = ", "for k, v in x:" The sign or word in the middle; 0: it gives nothing a value. */
static size_t giving_at(const struct program *p, size_t from, size_t to, bool *loop)
{
    static const char *const in[] = { "in" }, *const starts[] = { "for" };
    size_t depth = 0;
    *loop = token_is(&p->t.at[from], starts, 1);
    for (size_t i = from; i < to; i++) {
        depth += is_sign(p, i, '[') || is_sign(p, i, '(');
        depth -= depth && (is_sign(p, i, ']') || is_sign(p, i, ')'));
        if (depth == 0 && i > from && (*loop ? token_is(&p->t.at[i], in, 1) : is_sign(p, i, '=')))
            return i;
    }
    return 0;
}

/* The names on the left are no uses; the last one stands for all of them. */
static void read_targets(struct program *p, size_t from, size_t giving)
{
    size_t depth = 0;
    for (size_t i = from; i < giving; i++) {
        depth += is_sign(p, i, '[') || is_sign(p, i, '(');
        depth -= depth && (is_sign(p, i, ']') || is_sign(p, i, ')'));
        if (p->t.at[i].kind == TOKEN_NAME && depth == 0 && !is_word(&p->t.at[i]) &&
            !(i > from && is_sign(p, i - 1, '.')))
            p->target = name_of(p, &p->t.at[i], true);
    }
}

/* "x.mean()", "x + 1": more than x as it is. */
static bool is_worked_on(const struct program *p, size_t i)
{
    const bool method =
        is_sign(p, i + 1, '.') && i + 2 < p->t.n && !token_is(&p->t.at[i + 2], wrappers, countof(wrappers));
    return method || is_computed(p, i);
}

static void use_name(struct program *p, size_t i, bool shown)
{
    const struct token *t = &p->t.at[i];
    const bool plain = !top(p)->computed && !is_worked_on(p, i);
    if ((i > 0 && is_sign(p, i - 1, '.')) || is_word(t) || is_sign(p, i + 1, '('))
        return; /* an attribute, a function */
    if (plain && (top(p)->printed || shown))
        return;
    const size_t name = name_of(p, t, true);
    if (name == NAMES_MAX)
        return;
    if (plain && p->target != NAMES_MAX && p->feed_n < FEEDS_MAX)
        p->feeds[p->feed_n++] = (struct feed){ name, p->target };
    else
        p->names[name].used = true;
}

static void read_literal(struct program *p, size_t i, bool shown)
{
    struct token *t = &p->t.at[i];
    if (top(p)->computed || is_computed(p, i))
        return;
    t->printed = top(p)->printed || shown;
    if (!t->printed && p->target != NAMES_MAX && p->waiting_n < FEEDS_MAX) {
        p->waiting[p->waiting_n].token = i;
        p->waiting[p->waiting_n++].name = p->target;
    }
}

/* `shown`: it is the last one, whose value is put out. */
static void read_statement(struct program *p, size_t from, size_t to, bool last)
{
    bool loop = false;
    const size_t giving = giving_at(p, from, to, &loop);
    const bool shown = last && !giving && !is_word(&p->t.at[from]);
    p->target = NAMES_MAX;
    p->depth = 0;
    p->frames[0] = (struct frame){ .computed = !giving && !shown };
    if (giving)
        read_targets(p, from, giving);
    for (size_t i = giving ? giving + 1 : from; i < to; i++) {
        const struct token *t = &p->t.at[i];
        if (t->kind == TOKEN_NAME && !(is_sign(p, i + 1, '=') && p->depth))
            use_name(p, i, shown);
        else if (t->kind == TOKEN_NUMBER || t->kind == TOKEN_TEXT)
            read_literal(p, i, shown);
        else if (t->kind == TOKEN_SIGN && strchr("([{", t->sign)) {
            const struct frame inner = frame_of(p, i);
            p->depth++;
            *top(p) = inner;
        } else if (t->kind == TOKEN_SIGN && strchr(")]}", t->sign) && p->depth)
            p->depth--;
    }
}

/* ---- the whole ---- */

static void settle(struct program *p)
{
    for (size_t round = 0; round < p->feed_n; round++)
        for (size_t i = 0; i < p->feed_n; i++)
            if (p->names[p->feeds[i].to].used)
                p->names[p->feeds[i].from].used = true;
    for (size_t i = 0; i < p->waiting_n; i++)
        if (!p->names[p->waiting[i].name].used)
            p->t.at[p->waiting[i].token].printed = true;
}

static void program_clear(struct program *p)
{
    tokens_clear(&p->t);
}

static void program_read(struct program *p, const char *code)
{
    *p = (struct program){ .target = NAMES_MAX };
    tokens_read(&p->t, code);
    size_t kept = 0;
    for (size_t i = 0; i < p->t.n; i++)
        if (p->t.at[i].kind != TOKEN_COMMENT)
            p->t.at[kept++] = p->t.at[i];
    p->t.n = kept;
    while (p->t.n && is_sign(p, p->t.n - 1, '\n'))
        p->t.n--;
    for (size_t from = 0; from < p->t.n;) {
        const size_t to = statement_end(p, from);
        if (to > from)
            read_statement(p, from, to, to == p->t.n);
        from = to + 1;
    }
    settle(p);
}

static void blank(char *text, size_t n)
{
    for (size_t i = 0; i < n; i++)
        text[i] = text[i] == '\n' ? '\n' : ' ';
}

char *program_parameters(const char *code)
{
    AUTO(program_clear) struct program p = { 0 };
    AUTO(tokens_clear) struct tokens all = { 0 };
    char *text = xstrdup(code);
    program_read(&p, code);
    tokens_read(&all, code);
    for (size_t i = 0; i < all.n; i++)
        if (all.at[i].kind == TOKEN_COMMENT)
            blank(text + (all.at[i].at - code), all.at[i].n);
    for (size_t i = 0; i < p.t.n; i++)
        if (p.t.at[i].printed)
            blank(text + (p.t.at[i].at - code), p.t.at[i].n);
    return text;
}

/* ---- outputs ---- */

static bool touches(char c)
{
    return isalnum((unsigned char)c) || c == '.' || c == ',' || c == '_';
}

/* All copies that stand alone: "42" is not in 142. */
static void take_out(char *output, const char *text, size_t n)
{
    for (char *at = strstr(output, text); at; at = strstr(at + 1, text)) {
        const bool before = at > output && touches(at[-1]) && touches(*text);
        const bool behind =
            touches(at[n]) && touches(text[n - 1]) && !(strchr(".,", at[n]) && !isdigit((unsigned char)at[n + 1]));
        if (!before && !behind)
            blank(at, n);
    }
}

/* A text with a result in it. A label, "Saturday:", is none: what stands behind it may be computed. */
static bool has_result(const char *text)
{
    static const char *const verbs[] = { " is ", " are ", " was ", " were ", " ist ", " sind ", " war ", " est ",
                                         " es ", " è ",   " é ",   "是",     "为",    "です",   "：" };
    if (strpbrk(text, "0123456789"))
        return true;
    for (size_t i = 0; i < countof(verbs); i++)
        if (strstr(text, verbs[i]))
            return true;
    return false;
}

/* Line by line, as it was printed. */
static void take_out_text(char *output, const struct token *t, size_t *lines)
{
    autofree char *plain = xstrndup(t->at, t->n);
    char *to = plain;
    for (const char *from = plain; *from; from++) {
        const bool escaped = *from == '\\' && from[1];
        from += escaped;
        *to = *from;
        if (escaped && strchr("nrt", *from))
            *to = '\n';
        to++;
    }
    *to = '\0';
    for (char *save = NULL, *line = strtok_r(plain, "\n", &save); line && *lines < LINES_MAX;
         line = strtok_r(NULL, "\n", &save)) {
        line += strspn(line, " ");
        size_t n = strlen(line);
        while (n && line[n - 1] == ' ')
            line[--n] = '\0';
        if (n >= TEXT_MIN && has_result(line)) {
            take_out(output, line, n);
            ++*lines;
        }
    }
}

static int by_value(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* The numbers that are printed as they stand, in order; caller frees. */
static double *stated_numbers(const struct program *p, size_t *n)
{
    double *all = xcalloc(p->t.n + 1, sizeof(*all));
    *n = 0;
    for (size_t i = 0; i < p->t.n; i++) {
        const struct token *t = &p->t.at[i];
        if (t->printed && t->kind == TOKEN_NUMBER && isdigit((unsigned char)*t->at))
            all[(*n)++] = strtod(t->at, NULL);
    }
    qsort(all, *n, sizeof(*all), by_value);
    return all;
}

/* However they were printed: 42, 42.0, 4.2e+01 */
static void take_out_numbers(char *output, const double *all, size_t all_n)
{
    for (char *at = output; *at && all_n;) {
        struct number n;
        struct run r;
        if (!isdigit((unsigned char)*at)) {
            at++;
            continue;
        }
        const bool read = number_read(&n, &r, at), alone = at == output || !touches(at[-1]) || at[-1] == ',';
        const double value = strtod(at, NULL);
        char *end = output + (n.end - output);
        if (read && alone && bsearch(&value, all, all_n, sizeof(*all), by_value))
            blank(at, (size_t)(end - at));
        at = end;
    }
}

/* The same text is used for something else as well: a value that is filtered by. */
static bool is_parameter(const struct program *p, const struct token *t)
{
    for (size_t i = 0; i < p->t.n; i++) {
        const struct token *other = &p->t.at[i];
        if (other->kind == TOKEN_TEXT && !other->printed && other->n == t->n && memcmp(other->at, t->at, t->n) == 0)
            return true;
    }
    return false;
}

char *program_results(const char *code, const char *output)
{
    AUTO(program_clear) struct program p = { 0 };
    char *left = xstrdup(output);
    size_t number_n = 0, lines = 0;
    program_read(&p, code);
    for (size_t i = 0; i < p.t.n && lines < LINES_MAX; i++) {
        const struct token *t = &p.t.at[i];
        if (t->printed && t->kind == TOKEN_TEXT && t->n && !is_parameter(&p, t))
            take_out_text(left, t, &lines);
    }
    autofree double *numbers = stated_numbers(&p, &number_n);
    take_out_numbers(left, numbers, number_n);
    return left;
}
