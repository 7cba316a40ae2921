/* agent_reading.c - whether programs read what the question is about: some of the files, those that it names, a column that it names. */
#include <ctype.h>
#include <string.h>
#include <strings.h>
#include "agent_private.h"
#include "json.h"

/* ---- names ---- */

static const char *last_part(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

static bool is_name_byte(char c)
{
    return isalnum((unsigned char)c) || c == '_' || c == '-' || (unsigned char)c >= 0x80;
}

/* As a name of its own: "a.csv" is not in "data.csv". Chinese has no blanks around it. */
static bool names_it(const char *text, const char *name)
{
    const size_t n = strlen(name);
    for (const char *at = n ? strcasestr(text, name) : NULL; at; at = strcasestr(at + 1, name))
        if ((at == text || !is_name_byte(at[-1]) || (unsigned char)at[-1] >= 0x80) &&
            (!is_name_byte(at[n]) || (unsigned char)at[n] >= 0x80))
            return true;
    return false;
}

/* The file as the box or the person calls it. */
static bool names_file(const char *text, const struct json *file)
{
    return names_it(text, last_part(json_str_or(file, "path", ""))) || names_it(text, json_str_or(file, "name", ""));
}

/* ---- programs ---- */

static bool worked(const struct agent *a, size_t i)
{
    return a->cells[i].cell.status == CELL_OK;
}

static bool programs_name(const struct agent *a, const struct json *file)
{
    for (size_t i = 0; i < a->cell_n; i++)
        if (worked(a, i) && names_file(a->cells[i].code, file))
            return true;
    return false;
}

/* Any way to come by data without a name that we know. */
static bool reads_somehow(const char *code)
{
    static const char *const ways[] = { "read_", "open(",    "glob",    "listdir", "iterdir",   "scandir", "os.walk",
                                        "load",  "connect",  "scan_",   "fetch",   "ZipFile",   "%%",      "%run",
                                        "!",     "globals(", "locals(", "parquet", "genfromtxt" };
    for (size_t i = 0; i < countof(ways); i++)
        if (strstr(code, ways[i]))
            return true;
    return false;
}

/* Programs of earlier turns may have left variables. */
static bool has_past(const struct agent *a)
{
    for (size_t i = 1; i < a->talk.turn_at; i++)
        if (a->talk.msgs.at[i].call_n)
            return true;
    return (a->in.notes && *a->in.notes) || a->in.first_cell > 1;
}

/* Services bring data too. */
static bool asked_service(const struct agent *a)
{
    for (size_t i = a->talk.turn_at; i < a->talk.msgs.n; i++)
        for (size_t k = 0; k < a->talk.msgs.at[i].call_n; k++)
            if (strcmp(a->talk.msgs.at[i].calls[k].name, CALL_TOOL) != 0)
                return true;
    return false;
}

bool agent_read_nothing(const struct agent *a)
{
    size_t n = 0;
    if (!json_len(a->in.files) || has_past(a) || asked_service(a))
        return false;
    for (size_t i = 0; i < a->cell_n; i++) {
        n += worked(a, i);
        if (worked(a, i) && reads_somehow(a->cells[i].code))
            return false;
    }
    for (const struct json *f = json_first(a->in.files); f; f = json_next(f))
        if (programs_name(a, f))
            return false;
    return n > 0;
}

const char *agent_read_another(const struct agent *a, const char **read)
{
    const char *asked = NULL;
    *read = NULL;
    for (const struct json *f = json_first(a->in.files); f; f = json_next(f)) {
        const bool named = a->in.request && names_file(a->in.request, f), used = programs_name(a, f);
        const char *name = json_str_or(f, "name", last_part(json_str_or(f, "path", "")));
        if (named && used)
            return NULL; /* of several that are named, one may do for all: they may have been joined before */
        if (named)
            asked = name;
        else if (used)
            *read = name;
    }
    for (size_t i = 0; i < a->cell_n; i++)
        if (strstr(a->cells[i].code, "glob") || strstr(a->cells[i].code, "listdir"))
            return NULL;
    return *read ? asked : NULL;
}

/* ---- columns ---- */

static bool is_used(const struct agent *a, const char *column)
{
    autofree char *single = xasprintf("'%s'", column), *doubled = xasprintf("\"%s\"", column);
    autofree char *attribute = xasprintf(".%s", column);
    for (size_t i = 0; i < a->cell_n; i++)
        if (a->cells[i].cell.status == CELL_OK &&
            (strstr(a->cells[i].code, single) || strstr(a->cells[i].code, doubled) ||
             strstr(a->cells[i].code, attribute)))
            return true;
    return false;
}

/* Of this turn's programs, all of them: what an earlier one loaded under other names is not known. NULL, too, when the answer gives no
 * number, or says what it takes for the thing that was asked for. */
char *agent_other_columns(const struct agent *a, const char *answer)
{
    enum { USED_MAX = 8, NAME_BYTES = 40, LIST_MAX = 1024 }; /* longer ones are texts of the file */
    const char *used[USED_MAX] = { NULL };
    size_t n = 0;
    AUTO(str_clear) struct str list = STR_INIT(LIST_MAX);
    if (!strpbrk(answer, "0123456789"))
        return NULL;
    for (const struct json *p = json_first(a->in.files); p; p = json_next(p))
        for (const struct json *c = json_first(json_get(p, "columns")); c; c = json_next(c)) {
            const char *name = json_str_or(c, "name", "");
            if (!*name || !is_used(a, name))
                continue;
            if (n == USED_MAX || strstr(answer, name) || strlen(name) > NAME_BYTES || strpbrk(name, "`\n"))
                return NULL;
            used[n++] = name;
            str_printf(&list, "%s`%s`", n > 1 ? ", " : "", name);
        }
    return claims_of_other(a->in.request ? a->in.request : "", used, n) ? str_take(&list) : NULL;
}
