/* Property: whatever a model sends, reading it ends in a kind; a program that is read is UTF-8, not blank, and read back from what
 * history keeps of it; JSON that is open at its end never becomes a program. */
#include <stdint.h>
#include <string.h>
#include "call_args.h"
#include "str.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void must(bool holds)
{
    if (!holds)
        __builtin_trap();
}

static void check_code(enum call_kind kind, const char *code)
{
    must((kind == CALL_CODE) == (code != NULL));
    if (!code)
        return;
    must(utf8_valid(code, strlen(code)) && code[strspn(code, " \t\n\v\f\r")]);
    autofree char *args = call_args_write(code), *back = NULL;
    must(call_args_read(CALL_TOOL, args, &back) == CALL_CODE);
    must(strncmp(code, "```", 3) == 0 || strcmp(back, code) == 0); /* a fence inside a fence is taken off too */
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    autofree char *text = xstrndup(size ? (const char *)data : "", size), *code = NULL, *said = NULL, *own = NULL;
    const enum call_kind kind = call_args_read(CALL_TOOL, text, &code);
    check_code(kind, code);
    must(kind != CALL_NONE && kind != CALL_UNKNOWN);
    check_code(call_from_text(text, &said), said);
    autofree char *bare = call_bare_program(text);
    must(!bare || strncmp(bare, "import ", 7) == 0 || strncmp(bare, "from ", 5) == 0);
    own = call_fenced_code(text);
    must(!own || strstr(text, "```"));
    /* the same call, cut: the beginning of an object that was not closed */
    autofree char *cut = xasprintf("{\"code\":\"%s", text), *never = NULL;
    if (!strchr(text, '"'))
        must(call_args_read(CALL_TOOL, cut, &never) == CALL_CUT);
    return 0;
}
