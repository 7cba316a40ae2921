/* Arguments of a model into an address of the operator's.
 *
 * Properties: host and fixed parts stay as they are; no byte of an argument can end a segment, a value or the address; what is
 * refused has words; the body is valid JSON. */
#include <stdint.h>
#include "http_tool.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void must(bool holds)
{
    if (!holds)
        __builtin_trap();
}

static size_t count(const char *text, char c)
{
    size_t n = 0;
    for (; *text; text++)
        n += *text == c;
    return n;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static char url[] = "https://host.example/a/{a}/b/{b}", get[] = "GET", post[] = "POST", none[] = "";
    autojson struct json *args = NULL, *again = NULL;
    struct err e = { 0 };
    if (json_parse(&args, (const char *)data, size, 1 << 16, &e) < 0 || json_type(args) != JSON_OBJECT)
        return 0;
    struct conf_tool t = { .url = url, .method = size % 2 ? get : post, .headers = none };
    autofree char *made = NULL, *body = http_tool_body(&t, args);
    if (http_tool_url(&made, &t, args, &e) < 0) {
        must(*e.msg && e.kind == ERR_DATA);
        return 0;
    }
    must(strncmp(made, "https://host.example/a/", 23) == 0);
    made[strcspn(made, "?")] = '\0';
    must(count(made, '/') == 6 && !strpbrk(made, "#\\ \"<>") && !strstr(made, "/../") && !strstr(made, "/./"));
    if (body)
        must(json_parse(&again, body, strlen(body), 1 << 20, &e) == 0);
    return 0;
}
