/* call_args.h - what a model meant by a tool call: the one place that knows how calls go wrong. Pure; fuzzed.
 *
 * Models send bare code where JSON was asked for, JSON inside a string, other names, a call written out as text. All that
 * is read. What is never done: to mend JSON that was cut. A program without its end is not the program that was meant. */
#ifndef CALL_ARGS_H
#define CALL_ARGS_H
#include "base.h"

#define CALL_TOOL "run_python"

enum call_kind {
    CALL_NONE,      /* call_from_text only: ordinary prose */
    CALL_CODE,      /* *code is the program */
    CALL_CUT,       /* ends in the middle of an object, array or string: must not run */
    CALL_MALFORMED, /* whole, but no program can be read from it */
    CALL_UNKNOWN,   /* a tool that does not exist */
    CALL_OTHER,     /* another tool of ours (tool.h); never returned from here */
};

/* Shell commands, as models send them to tools of other houses (execute_bash, {"command"}), become a %%bash cell; a program in
 * another language is CALL_UNKNOWN. args as received, NULL counts as "". On CALL_CODE the caller frees *code: valid UTF-8, never blank. */
enum call_kind call_args_read(const char *name, const char *args, char **code);
/* A whole message that is nothing but one call written out: {"name","arguments"} or <tool_call>...</tool_call>. */
enum call_kind call_from_text(const char *text, char **code);
/* A whole message that is nothing but a Python program which nobody fenced: it begins with an import, and every line of it is code or a
 * comment. A copy, or NULL; caller frees. */
char *call_bare_program(const char *text);
/* What a person sent when it is nothing but ```python blocks: their content, joined; else NULL. Caller frees. */
char *call_fenced_code(const char *text);
/* The arguments object for a program, as history keeps it; caller frees. */
char *call_args_write(const char *code);
#endif
