/* conf_suggest.h - private to conf.c: "did you mean ...?" */
#ifndef CONF_SUGGEST_H
#define CONF_SUGGEST_H
#include "base.h"

/* The name that is a typing slip away from word (up to a third of its letters), or NULL. */
const char *conf_nearest(const char *word, const char *const *names, size_t n);
#endif
