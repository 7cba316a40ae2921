/* access.h - who may ask, and where. Floor 4. */
#ifndef ACCESS_H
#define ACCESS_H
#include "base.h"

/* The list has patterns as of the shell's file names (* ? [...]), separated by blanks or commas; an empty list has everybody.
 * Ids are compared whole, byte by byte: platforms fold case themselves. */
bool access_listed(const char *list, const char *id);
#endif
