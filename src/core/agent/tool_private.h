/* tool_private.h - what tool_table.c and tool_set.c share. */
#ifndef TOOL_PRIVATE_H
#define TOOL_PRIVATE_H
#include "tool_table.h"

const struct tool *tool_harmless(const char *name); /* NULL: none */
#endif
