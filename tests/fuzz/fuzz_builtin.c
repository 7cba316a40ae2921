/* Property: whatever is asked about whatever columns, the planner answers: with a program whose literals all end on
 * their line, or with a sentence; both valid UTF-8. The first line of the input is the request, the others are
 * columns: a name, a tab, its values. */
#include <stdint.h>
#include "builtin/answer.h"
#include "builtin/code.h"
#include "json.h"
#include "prompts.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void must(bool holds)
{
    if (!holds)
        __builtin_trap();
}

static const struct bi_lexicon *lexicon(void)
{
    static struct bi_lexicon *x;
    autofree char *dir = NULL;
    struct err e;
    if (!x)
        must((prompt_dir_resolve(&dir, "", &e) == 0 || prompt_dir_resolve(&dir, "prompts", &e) == 0) &&
             bi_lexicon_open(&x, dir, &e) == 0);
    return x;
}

/* A column of a profile; its sort goes round with its place. */
static struct json *column(char *line, int place)
{
    static const char *const dtypes[] = { "category", "float", "int", "date", "text", "int", "bool" };
    static const char *const roles[] = { "group", "measure", "group", "date", "text", "flag", "flag" };
    struct json *c = json_new_object(), *examples = json_new_array();
    char *values = strchr(line, '\t');
    if (values)
        *values++ = '\0';
    json_set_str(c, "name", line);
    json_set_str(c, "dtype", dtypes[place % 7]);
    json_set_str(c, "role", roles[place % 7]);
    json_set_int(c, "nulls", place % 3);
    json_set_int(c, "distinct", 2 + place);
    bool number = place % 7 == 1 || place % 7 == 2 || place % 7 == 5;
    for (int i = 0; i < 2 && number; i++)
        json_push(examples, json_new_number(i));
    char *save = NULL;
    for (char *v = values ? strtok_r(values, "\t", &save) : NULL; v && !number; v = strtok_r(NULL, "\t", &save))
        json_push(examples, json_new_string(v));
    if (number) {
        json_set_num(c, "min", 0);
        json_set_num(c, "max", 1 + place);
    }
    json_set(c, "examples", examples);
    return c;
}

static struct json *profile(char *lines)
{
    struct json *files = json_new_array(), *file = json_new_object(), *columns = json_new_array();
    char *save = NULL;
    int place = 0;
    for (char *line = strtok_r(lines, "\n", &save); line && place < 12; line = strtok_r(NULL, "\n", &save))
        json_push(columns, column(line, place++));
    json_set_str(file, "path", "a.csv");
    json_set_str(file, "name", "a.csv");
    json_set_str(file, "load", "pd.read_csv('a.csv')");
    json_set_int(file, "rows", 10);
    json_set(file, "columns", columns);
    json_push(files, file);
    return files;
}

/* Past a literal that begins at p; NULL when it does not end on its line. */
static const char *past_literal(const char *p)
{
    char quote = *p++;
    for (; *p != quote; p++) {
        if (*p == '\\' && p[1])
            p++;
        if (!*p || *p == '\n')
            return NULL;
    }
    return p + 1;
}

static void check_literals(const char *code)
{
    for (const char *p = code; *p;) {
        if (strncmp(p, "\"\"\"", 3) == 0) {
            p = strstr(p + 3, "\"\"\"");
            must(p != NULL);
            p += 3;
        } else if (*p == '#') {
            p += strcspn(p, "\n");
        } else if (*p == '"' || *p == '\'') {
            p = past_literal(p);
            must(p != NULL);
        } else {
            p++;
        }
    }
}

static void check_plan(const struct bi_lexicon *x, struct bi_tables *t, const char *request)
{
    struct bi_plan p;
    AUTO(str_clear) struct str answer = STR_INIT(1 << 20);
    const char *requests[] = { "average by day", request };
    bi_plan_make_chain(&p, x, t, requests, 2);
    if (p.trouble) {
        bi_answer_trouble(&answer, x, t, &p);
        autofree char *code = bi_code_look_up(t, p.look_up, p.look_up_n);
        check_literals(code);
    } else {
        autofree char *code = bi_code_write(x, t, &p);
        must(utf8_valid(code, strlen(code)));
        check_literals(code);
        bi_answer_result(&answer, x, t, &p, "- rows: 1\n");
    }
    must(answer.len > 0 && utf8_valid(str_peek(&answer), answer.len));
    bi_plan_clear(&p);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    AUTO(str_clear) struct str text = STR_INIT(1 << 20);
    if (size > 4000)
        return 0;
    utf8_scrub(&text, (const char *)data, size);
    autofree char *request = xstrdup(str_peek(&text));
    char *lines = strchr(request, '\n');
    if (lines)
        *lines++ = '\0';
    autojson struct json *files = profile(lines ? lines : request + strlen(request));
    struct bi_tables t;
    bi_tables_read(&t, lexicon(), files);
    check_plan(lexicon(), &t, request);
    bi_tables_clear(&t);
    return 0;
}
