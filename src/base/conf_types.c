/* conf_types.c - values of settings from text and back. */
#include "conf_types.h"
#include <inttypes.h>
#include <stdio.h>
#include "conf_secret.h"

struct unit {
    const char *name;
    int64_t factor;
};

static const struct unit no_units[] = { { "", 1 }, { NULL, 0 } };
/* "90" without a unit is refused: nobody remembers whether it was seconds. */
static const struct unit times[] = { { "ms", 1 },      { "s", 1000 },     { "m", 60000 },
                                     { "h", 3600000 }, { "d", 86400000 }, { NULL, 0 } };
static const struct unit sizes[] = { { "", 1 }, { "K", 1 << 10 }, { "M", 1 << 20 }, { "G", 1 << 30 }, { NULL, 0 } };

static int bad_number(struct err *e, const char *value, const struct unit *units)
{
    const char *wanted = units == times   ? "a time such as 250ms, 90s or 5m"
                         : units == sizes ? "a size such as 64K, 100M or 1G"
                                          : "a whole number";
    return err_set(e, ERR_CONFIG, "\"%.80s\" is not %s", value, wanted);
}

/* Digits and a unit. By hand: strtoll would take signs, blanks and the locale's ideas. */
static int parse_number(int64_t *out, const char *value, const struct unit *units, struct err *e)
{
    int64_t n = 0;
    const char *p = value;
    for (; *p >= '0' && *p <= '9'; p++)
        if (__builtin_mul_overflow(n, 10, &n) || __builtin_add_overflow(n, *p - '0', &n))
            return err_set(e, ERR_CONFIG, "\"%.80s\" is too large", value);
    for (const struct unit *u = units; u->name && p > value; u++) {
        if (strcmp(u->name, p) != 0)
            continue;
        if (__builtin_mul_overflow(n, u->factor, out))
            return err_set(e, ERR_CONFIG, "\"%.80s\" is too large", value);
        return 0;
    }
    return bad_number(e, value, units);
}

int conf_set_INT(void *field, const char *value, struct err *e)
{
    return parse_number(field, value, no_units, e);
}

int conf_set_MS(void *field, const char *value, struct err *e)
{
    return parse_number(field, value, times, e);
}

int conf_set_SIZE(void *field, const char *value, struct err *e)
{
    return parse_number(field, value, sizes, e);
}

/* "12", "0.25": at most six places, kept in millionths. */
int conf_set_MONEY(void *field, const char *value, struct err *e)
{
    const char *point = strchr(value, '.');
    const size_t whole_n = point ? (size_t)(point - value) : strlen(value);
    const size_t places = point ? strlen(point + 1) : 0;
    if (places > 6 || (point && places == 0) || whole_n == 0 || whole_n > 9)
        return err_set(e, ERR_CONFIG, "\"%.80s\" is not an amount such as 2 or 0.25", value);
    char digits[24];
    (void)snprintf(digits, sizeof(digits), "%.*s%s%.*s", (int)whole_n, value, point ? point + 1 : "", (int)(6 - places),
                   "000000");
    if (strspn(digits, "0123456789") != strlen(digits))
        return err_set(e, ERR_CONFIG, "\"%.80s\" is not an amount such as 2 or 0.25", value);
    return parse_number(field, digits, no_units, e);
}

int conf_set_BOOL(void *field, const char *value, struct err *e)
{
    bool yes = strcmp(value, "yes") == 0;
    if (!yes && strcmp(value, "no") != 0)
        return err_set(e, ERR_CONFIG, "\"%.80s\" is neither yes nor no", value);
    *(bool *)field = yes;
    return 0;
}

int conf_set_STR(void *field, const char *value, struct err *e)
{
    char **text = field;
    (void)e;
    free(*text);
    *text = xstrdup(value);
    return 0;
}

int conf_set_SECRET(void *field, const char *value, struct err *e)
{
    autofree char *path = conf_secret_path(value);
    if (*path && conf_secret_check(path, e) < 0)
        return -1;
    return conf_set_STR(field, path, e);
}

static void show_number(struct conf_row *out, int64_t n, const struct unit *u)
{
    (void)snprintf(out->text, sizeof(out->text), "%" PRId64 "%s", n / u->factor, u->name);
    out->value = out->text;
}

void conf_show_INT(struct conf_row *out, const void *field)
{
    show_number(out, *(const int64_t *)field, no_units);
}

/* Whole seconds stay seconds, as in the table: "300s", not "5m". */
void conf_show_MS(struct conf_row *out, const void *field)
{
    int64_t n = *(const int64_t *)field;
    show_number(out, n, &times[n % 1000 == 0]);
}

void conf_show_SIZE(struct conf_row *out, const void *field)
{
    int64_t n = *(const int64_t *)field;
    const struct unit *u = sizes;
    while (n > 0 && u[1].name && n % u[1].factor == 0)
        u++;
    show_number(out, n, u);
}

void conf_show_MONEY(struct conf_row *out, const void *field)
{
    const int64_t n = *(const int64_t *)field;
    int len = snprintf(out->text, sizeof(out->text), "%" PRId64 ".%06" PRId64, n / 1000000, n % 1000000);
    while (len > 0 && out->text[len - 1] == '0')
        out->text[--len] = '\0';
    if (len > 0 && out->text[len - 1] == '.')
        out->text[--len] = '\0';
    out->value = out->text;
}

void conf_show_BOOL(struct conf_row *out, const void *field)
{
    out->value = *(const bool *)field ? "yes" : "no";
}

void conf_show_STR(struct conf_row *out, const void *field)
{
    out->value = *(const char *const *)field;
}

void conf_show_SECRET(struct conf_row *out, const void *field)
{
    conf_show_STR(out, field);
}
