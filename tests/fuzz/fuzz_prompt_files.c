/* Property: whatever a box says of files, each line of what a model reads of them begins as one of ours does, holds no control, no mark of direction and no
 * blank that is none, and is UTF-8. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include "conf.h"
#include "json.h"
#include "prompt.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { TEXT_MAX = 4 << 20, INPUT_MAX = 1 << 20 };

static void must(bool holds)
{
    if (!holds)
        __builtin_trap();
}

static const struct prompts *shipped(void)
{
    static struct prompts *p;
    static struct conf conf;
    struct err e;
    if (!p) {
        conf_init(&conf);
        must(conf_set(&conf, "service.prompts_dir=prompts", &e) == 0 && prompts_load(&p, &conf, &e) == 0);
    }
    return p;
}

static bool is_ours(const char *line)
{
    return strncmp(line, "  ", 2) == 0 || strncmp(line, "file ", 5) == 0 || strncmp(line, "Files in ", 9) == 0;
}

static void check(const char *text)
{
    must(utf8_valid(text, strlen(text)));
    for (const char *line = text; *line;) {
        must(is_ours(line));
        line += strcspn(line, "\n");
        line += *line == '\n';
    }
    for (const char *at = text; *at;) {
        uint32_t c = utf8_next(&at);
        must(c == '\n' || (c >= 0x20 && c != 0x7f && c != 0x2028 && c != 0x2029 && !(c >= 0x202a && c <= 0x202e)));
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct err e;
    autojson struct json *files = NULL;
    struct transcript known = { 0 };
    AUTO(str_clear) struct str text = STR_INIT(TEXT_MAX);
    if (json_parse(&files, (const char *)data, size, INPUT_MAX, &e) < 0)
        return 0;
    prompt_files(&text, files, &known, shipped());
    check(str_peek(&text));
    return 0;
}
