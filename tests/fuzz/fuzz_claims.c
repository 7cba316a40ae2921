/* Property: every number that can be read out of a text supports itself; claims are parts of the text; both readers stay within it. */
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
    AUTO(evidence_clear) struct evidence none = { 0 }, own = { 0 };
    AUTO(claims_clear) struct claims all = { 0 }, left = { 0 }, files = { 0 };
    utf8_scrub(&text, (const char *)data, size);
    claims_numbers(&all, str_peek(&text), &none);
    for (size_t i = 0; i < all.n; i++)
        must(strstr(str_peek(&text), all.at[i]) != NULL);
    evidence_add(&own, str_peek(&text));
    claims_numbers(&left, str_peek(&text), &own);
    must(left.n == 0);
    claims_files(&files, str_peek(&text), never, str_peek(&text));
    return 0;
}
