/* A conversation to build requests from: system, question, a call with its result, an answer, a new question. */
#ifndef TEST_WIRE_TALK_H
#define TEST_WIRE_TALK_H
#include "wire.h"

static struct model_tool_call talk_calls[] = { { (char[]){ "call_1" }, (char[]){ "run_python" },
                                                 (char[]){ "{\"code\":\"1\"}" } } };

static struct model_msg talk_msgs[] = {
    { .role = MODEL_SYSTEM, .text = (char[]){ "Be exact." } },
    { .role = MODEL_USER, .text = (char[]){ "One?" } },
    { .role = MODEL_ASSISTANT, .text = (char[]){ "Let me see." }, .calls = talk_calls, .call_n = 1 },
    { .role = MODEL_TOOL, .text = (char[]){ "1" }, .call_id = (char[]){ "call_1" }, .failed = true },
    { .role = MODEL_ASSISTANT, .text = (char[]){ "It is 1." } },
    { .role = MODEL_USER, .text = (char[]){ "Two?" } },
    { .role = MODEL_USER, .text = (char[]){ " \n" } },
    { .role = MODEL_USER, .text = (char[]){ "Now!" } },
};

static inline struct json *talk_schema(void)
{
    static const char text[] =
        "[{\"name\":\"run_python\",\"description\":\"Runs.\",\"parameters\":{\"type\":\"object\"}}]";
    struct json *v = NULL;
    struct err e = { 0 };
    assert_int_equal(json_parse(&v, text, strlen(text), 1000, &e), 0);
    return v;
}

static inline struct wire_request talk_request(const struct json *schema)
{
    return (struct wire_request){
        .model = "m",
        .provider = "house",
        .msgs = talk_msgs,
        .msg_n = countof(talk_msgs),
        .schema = schema,
        .stream = true,
        .max_output = 100,
        .cache_key = "key",
    };
}

static inline char *talk_print(const struct wire *w, const struct wire_request *r)
{
    AUTO(str_clear) struct str text = STR_INIT(1 << 20);
    autojson struct json *body = w->request(r);
    json_print(&text, body);
    return str_take(&text);
}

static inline void talk_expect(const struct wire *w, const struct wire_request *r, const char *want)
{
    autofree char *got = talk_print(w, r);
    assert_string_equal(got, want);
}

static inline void talk_has(const struct wire *w, const struct wire_request *r, const char *part, bool wanted)
{
    autofree char *got = talk_print(w, r);
    if ((strstr(got, part) != NULL) != wanted)
        fail_msg("%s %s in %s", part, wanted ? "is not" : "is", got);
}
#endif
