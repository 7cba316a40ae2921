/* Property: any text is read or refused with a message; what is read can be checked, listed and given back as --set. */
#include <stdint.h>
#include "conf.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void must(bool holds)
{
    if (!holds)
        __builtin_trap();
}

static void must_be_config(int rc, const struct err *e)
{
    must(rc == 0 || (e->kind == ERR_CONFIG && *e->msg));
}

/* Setting everything listed gives the same settings. */
static void check_rows(const struct conf *c)
{
    AUTO(conf_clear) struct conf again;
    struct conf_row row, same;
    struct err e;
    conf_init(&again);
    for (size_t i = 0; conf_row(c, i, &row); i++) {
        if (c->model_n == 1 && row.name)
            break; /* the template */
        autofree char *set = row.name ? xasprintf("%s.%s.%s=%s", row.section, row.name, row.key, row.value)
                                      : xasprintf("%s.%s=%s", row.section, row.key, row.value);
        must(conf_set(&again, set, &e) == 0);
    }
    for (size_t i = 0; conf_row(c, i, &row); i++)
        must(conf_row(&again, i, &same) && strcmp(row.value, same.value) == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    autofree char *text = xcalloc(size + 1, 1);
    AUTO(conf_clear) struct conf c;
    AUTO(conf_clear) struct conf set;
    struct err e = { 0 };
    if (size > 0)
        memcpy(text, data, size);
    conf_init(&c);
    conf_init(&set);
    int rc = conf_parse(&c, text, &e);
    must_be_config(rc, &e);
    if (rc == 0) {
        must_be_config(conf_check(&c, &e), &e);
        check_rows(&c);
    }
    must_be_config(conf_set(&set, text, &e), &e);
    return 0;
}
