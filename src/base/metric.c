/* metric.c - see metric.h. One thread counts, so there are no locks. */
#include "metric.h"
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum { LABELS_MAX = 16, LABEL_BYTES = 32 };

enum kind { COUNTER, SUMMARY, GAUGE, SECONDS };

struct about {
    const char *name, *label, *help;
    enum kind kind;
};

static const struct about table[METRICS] = {
#define X(name, prom, kind, label, help) [METRIC_##name] = { prom, label, help, kind },
    METRIC_TABLE(X)
#undef X
};

struct value {
    char label[LABEL_BYTES];
    int64_t n, sum_ms;
};

static struct {
    struct value at[LABELS_MAX + 1]; /* the last: "other" */
    size_t n;
} values[METRICS];

static void clean(char out[LABEL_BYTES], const char *label)
{
    (void)snprintf(out, LABEL_BYTES, "%s", label ? label : "");
    for (char *p = out; *p; p++)
        if (!((*p >= 'a' && *p <= 'z') || (*p >= '0' && *p <= '9')))
            *p = '_';
}

static struct value *find(enum metric m, const char *name)
{
    for (size_t i = 0; i < values[m].n; i++)
        if (strcmp(values[m].at[i].label, name) == 0)
            return &values[m].at[i];
    return NULL;
}

static struct value *get(enum metric m, const char *label)
{
    char name[LABEL_BYTES];
    clean(name, label);
    struct value *v = find(m, name);
    if (v)
        return v;
    const bool full = values[m].n >= LABELS_MAX;
    if (full && values[m].n > LABELS_MAX)
        return &values[m].at[LABELS_MAX];
    v = &values[m].at[values[m].n++];
    (void)snprintf(v->label, sizeof(v->label), "%s", full ? "other" : name);
    return v;
}

void metric_count(enum metric m, const char *label, int64_t n)
{
    get(m, label)->n += n;
}

void metric_took_ms(enum metric m, const char *label, int64_t ms)
{
    struct value *v = get(m, label);
    v->n++;
    v->sum_ms += ms > 0 ? ms : 0;
}

void metric_set(enum metric m, const char *label, int64_t value)
{
    get(m, label)->n = value;
}

int64_t metric_value(enum metric m, const char *label)
{
    char name[LABEL_BYTES];
    clean(name, label);
    const struct value *v = find(m, name);
    return v ? v->n : 0;
}

void metric_forget(void)
{
    memset(values, 0, sizeof(values));
}

/* ---- printed ---- */

static void print_label(struct str *out, const struct about *a, const struct value *v)
{
    if (*a->label)
        str_printf(out, "{%s=\"%s\"}", a->label, v->label);
}

static void print_value(struct str *out, const struct about *a, const struct value *v)
{
    str_puts(out, a->name);
    if (a->kind == SUMMARY) {
        str_puts(out, "_sum");
        print_label(out, a, v);
        str_printf(out, " %" PRId64 ".%03" PRId64 "\n%s_count", v->sum_ms / 1000, v->sum_ms % 1000, a->name);
    }
    print_label(out, a, v);
    if (a->kind == SECONDS)
        str_printf(out, " %" PRId64 ".%06" PRId64 "\n", v->n / 1000000, v->n % 1000000);
    else
        str_printf(out, " %" PRId64 "\n", v->n);
}

void metric_print(struct str *out)
{
    static const char *const words[] = {
        [COUNTER] = "counter", [SUMMARY] = "summary", [GAUGE] = "gauge", [SECONDS] = "gauge"
    };
    for (size_t m = 0; m < METRICS; m++) {
        const struct about *a = &table[m];
        const struct value none = { .n = 0 };
        str_printf(out, "# HELP %s %s\n# TYPE %s %s\n", a->name, a->help, a->name, words[a->kind]);
        for (size_t i = 0; i < values[m].n; i++)
            print_value(out, a, &values[m].at[i]);
        if (values[m].n == 0 && !*a->label) /* what was never seen is 0, and there from the start */
            print_value(out, a, &none);
    }
}
