/* Property: an answer made fit to be shown stays UTF-8, loses no plain text, loads no picture from anywhere; output cut to head and tail stays UTF-8 and near its size. */
#include <stdint.h>
#include <string.h>
#include "agent_result.h"
#include "answer.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void must(bool holds)
{
    if (!holds)
        __builtin_trap();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    AUTO(str_clear) struct str text = STR_INIT(1 << 20), capped = STR_INIT(1 << 20);
    utf8_scrub(&text, (const char *)data, size);
    autofree char *clean = answer_clean(str_peek(&text), NULL, 0, "en");
    must(utf8_valid(clean, strlen(clean)));
    if (!strpbrk(str_peek(&text), "[`s@<"))
        must(strstr(str_peek(&text), clean) !=
             NULL); /* no link, code, address, call or tag: only blanks around it go */
    if (!strchr(str_peek(&text), '`'))
        must(!strstr(clean, "!["));
    result_cap(&capped, str_peek(&text), 300, 100);
    must(utf8_valid(str_peek(&capped), capped.len));
    must(capped.len <= 400 + 200);
    return 0;
}
