/* markup_tree.h - private to markup*.c: how the tree is put together. */
#ifndef MARKUP_TREE_H
#define MARKUP_TREE_H
#include "markup.h"

struct markup *markup_new(enum markup_kind kind);
/* n bytes of text at the end of m, in the last run when it is of the same style and address. */
void markup_add_run(struct markup *m, const char *text, size_t n, unsigned style, const char *url);
/* Kind and attributes of m, without what is in it. */
struct markup *markup_shell(const struct markup *m);
bool markup_holds_runs(const struct markup *m);
#endif
