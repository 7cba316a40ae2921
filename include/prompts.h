/* prompts.h - where the wording lies that models and planners are given: prompts/ as plain text, read at start. Floor 2. */
#ifndef PROMPTS_H
#define PROMPTS_H
#include "err.h"

/* The folder: `configured` (conf prompts_dir) when not empty, else the first that exists of <program's folder>/prompts,
 * /../../prompts (a build tree) and /../share/sandbook/prompts (installed). Caller frees. ERR_CONFIG: there is none. */
must_check int prompt_dir_resolve(char **out, const char *configured, struct err *e);
#endif
