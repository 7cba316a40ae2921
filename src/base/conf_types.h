/* conf_types.h - the types of conf.h's tables: how text becomes a value of each, and how it is shown. */
#ifndef CONF_TYPES_H
#define CONF_TYPES_H
#include "conf.h"

/* field: of the struct, of that type. ERR_CONFIG says what a good value is. */
typedef int conf_set_fn(void *field, const char *value, struct err *e);
conf_set_fn conf_set_STR, conf_set_INT, conf_set_BOOL, conf_set_MS, conf_set_SIZE, conf_set_MONEY, conf_set_SECRET;
/* Sets out->value, borrowed from the field or from out->text. */
typedef void conf_show_fn(struct conf_row *out, const void *field);
conf_show_fn conf_show_STR, conf_show_INT, conf_show_BOOL, conf_show_MS, conf_show_SIZE, conf_show_MONEY,
    conf_show_SECRET;
#endif
