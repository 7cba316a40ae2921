/* answer.h - what a model wrote, made fit to be shown. Pure; fuzzed. */
#ifndef ANSWER_H
#define ANSWER_H
#include "agent.h"

/* Figures and files are attached by us, so links and pictures that point into the box lead nowhere: their text stays, their address
 * becomes the name of the attached file, and the answer says so when there is no such file. Pictures from elsewhere become plain
 * links: nothing is loaded from the network because a model said so. @room, pills and the like become plain text: a model cannot
 * notify anybody. language: of the words that are added. The caller frees. */
char *answer_clean(const char *markdown, const struct agent_cell *cells, size_t cell_n, const char *language);
/* Without ```python blocks, where words are left then: for answers to people who asked for no program. The caller frees. */
char *answer_without_programs(const char *markdown);
#endif
