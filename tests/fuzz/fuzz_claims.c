/* Property: all that can be read out of a text supports itself: numbers, days, names; readers stay within it. */
#include <stdint.h>
#include <string.h>
#include "claims.h"
#include "str.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void must(bool holds)
{
    if (!holds)
        __builtin_trap();
}

static bool never(const void *ud, const char *name)
{
    must(*name && strstr(ud, name));
    return false;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    AUTO(str_clear) struct str text = STR_INIT(1 << 20);
    AUTO(evidence_clear) struct evidence own = { 0 };
    AUTO(claims_clear) struct claims left = { 0 }, files = { 0 };
    utf8_scrub(&text, (const char *)data, size);
    evidence_add(&own, str_peek(&text));
    claims_numbers(&left, str_peek(&text), &own);
    claims_derived(&left, str_peek(&text), &own);
    claims_days(&left, str_peek(&text), &own);
    claims_names(&left, str_peek(&text), &own);
    (void)claims_chart(str_peek(&text));
    must(left.n == 0);
    evidence_add_output(&own, str_peek(&text), str_peek(&text)); /* as a program and as its output: only read */
    evidence_add_program(&own, str_peek(&text));
    claims_files(&files, str_peek(&text), never, str_peek(&text));
    return 0;
}
