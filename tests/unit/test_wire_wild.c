/* Shapes of answers that servers and gateways send, and that have broken clients: what is made of each. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdio.h>
#include "wire.h"

struct shape {
    const char *what, *body;
    const char *want; /* text|name(args)|name(args)..., "length", "refused", or "error: words" */
};

static void describe(struct str *out, const struct model_answer *a)
{
    static const char *const stops[] = {
        [MODEL_STOP_END] = "", [MODEL_STOP_LENGTH] = "|length", [MODEL_STOP_REFUSED] = "|refused"
    };
    str_puts(out, a->msg.text);
    for (size_t i = 0; i < a->msg.call_n; i++)
        str_printf(out, "|%s(%s)", a->msg.calls[i].name, a->msg.calls[i].args);
    str_puts(out, stops[a->stop]);
}

static void read_in_pieces(const struct wire *w, const struct shape *s, size_t step, struct str *out)
{
    static const struct wire_request ask = { .model = "m", .provider = "house", .cache_key = "k" };
    const size_t n = strlen(s->body);
    struct model_answer a = { 0 };
    struct err e = { 0 };
    AUTO(wire_reader_clear) struct wire_reader r;
    wire_reader_init(&r, w, NULL, NULL);
    for (size_t at = 0; at < n; at += step)
        assert_int_equal(wire_reader_feed(&r, s->body + at, n - at < step ? n - at : step, &e), 0);
    if (wire_reader_finish(&r, &ask, &a, &e) < 0)
        str_printf(out, "error: %s", e.msg);
    else
        describe(out, &a);
    wire_answer_clear(&a);
}

static void check_shapes(const struct wire *w, const struct shape *shapes, size_t n)
{
    static const size_t steps[] = { 1, 7, 1 << 20 };
    for (size_t i = 0; i < n; i++) {
        for (size_t k = 0; k < countof(steps); k++) {
            AUTO(str_clear) struct str got = STR_INIT(1 << 20);
            read_in_pieces(w, &shapes[i], steps[k], &got);
            const bool error = strncmp(shapes[i].want, "error: ", 7) == 0;
            if (error ? !strstr(str_peek(&got), shapes[i].want + 7) || strncmp(str_peek(&got), "error", 5) != 0
                      : strcmp(str_peek(&got), shapes[i].want) != 0)
                fail_msg("%s, in pieces of %zu: %s, not %s", shapes[i].what, steps[k], str_peek(&got), shapes[i].want);
        }
    }
}

/* ---- Chat Completions ---- */

#define EVENT(json)          "data: " json "\n\n"
#define DONE                 "data: [DONE]\n\n"
#define DELTA(members)       EVENT("{\"choices\":[{\"index\":0,\"delta\":{" members "}}]}")
#define END(reason)          EVENT("{\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":\"" reason "\"}]}")
#define CALLS(calls)         DELTA("\"tool_calls\":[" calls "]")
#define FN(more, name, args) "{" more "\"function\":{\"name\":\"" name "\",\"arguments\":\"" args "\"}}"
#define ARGS(more, args)     "{" more "\"function\":{\"arguments\":\"" args "\"}}"
#define A1                   "{\\\"code\\\":\\\"1\\\"}"
#define A2                   "{\\\"code\\\":\\\"2\\\"}"
#define CALL1                "|f({\"code\":\"1\"})"
#define CALL2                "|f({\"code\":\"2\"})"

static const struct shape chat_shapes[] = {
    /* which call a piece belongs to */
    { "no index, ids", CALLS(FN("\"id\":\"a\",", "f", A1)) CALLS(FN("\"id\":\"b\",", "f", A2)) DONE, CALL1 CALL2 },
    { "no index, pieces without an id",
      CALLS(FN("\"id\":\"a\",", "f", "{\\\"code")) CALLS(ARGS("", "\\\":\\\"1\\\"}")) DONE, CALL1 },
    { "no index, the id in each piece",
      CALLS(FN("\"id\":\"a\",", "f", "{\\\"code")) CALLS(ARGS("\"id\":\"a\",", "\\\":\\\"1\\\"}")) DONE, CALL1 },
    { "no index, the id in the last piece only",
      CALLS(FN("", "f", "{\\\"code")) CALLS(ARGS("\"id\":\"a\",", "\\\":\\\"1\\\"}")) DONE, CALL1 },
    { "an index that is null", CALLS(FN("\"index\":null,\"id\":\"a\",", "f", A1)) DONE, CALL1 },
    { "indexes that begin at one and jump",
      CALLS(FN("\"index\":1,\"id\":\"a\",", "f", A1)) CALLS(FN("\"index\":7,\"id\":\"b\",", "f", A2)) DONE,
      CALL1 CALL2 },
    { "arguments at another index than the name",
      CALLS(FN("\"index\":0,\"id\":\"a\",", "f", "")) CALLS(ARGS("\"index\":1,\"id\":null,", A1)) DONE, CALL1 },
    { "arguments at another index in pieces",
      CALLS(FN("\"index\":0,\"id\":\"a\",", "f", "")) CALLS(ARGS("\"index\":1,", "{\\\"code"))
          CALLS(ARGS("\"index\":1,", "\\\":\\\"1\\\"}")) DONE,
      CALL1 },
    { "an index that grows with each piece of one id",
      CALLS(FN("\"index\":0,\"id\":\"a\",", "f", "{\\\"code"))
          CALLS(ARGS("\"index\":1,\"id\":\"a\",", "\\\":\\\"1\\\"}")) DONE,
      CALL1 },
    { "all at index 0, told apart by ids",
      CALLS(FN("\"index\":0,\"id\":\"a\",", "f", A1)) CALLS(FN("\"index\":0,\"id\":\"b\",", "f", A2)) DONE,
      CALL1 CALL2 },
    { "all at index 0, without ids", CALLS(FN("\"index\":0,", "f", A1)) CALLS(FN("\"index\":0,", "f", A2)) DONE,
      CALL1 CALL2 },
    { "two calls in turns",
      CALLS(FN("\"index\":0,\"id\":\"a\",", "f", "{\\\"code") "," FN("\"index\":1,\"id\":\"b\",", "f", "{\\\"code"))
          CALLS(ARGS("\"index\":1,", "\\\":\\\"2\\\"}")) CALLS(ARGS("\"index\":0,", "\\\":\\\"1\\\"}")) DONE,
      CALL1 CALL2 },
    { "two calls in one piece", CALLS(FN("", "f", A1) "," FN("", "f", A2)) DONE, CALL1 CALL2 },
    /* names */
    { "the name in each piece",
      CALLS(FN("\"index\":0,\"id\":\"a\",", "f", "{\\\"code")) CALLS(FN("\"index\":0,", "f", "\\\":\\\"1\\\"}"))
          CALLS(FN("\"index\":0,", "f", "")) DONE,
      CALL1 },
    { "the name in pieces",
      CALLS(FN("\"index\":0,\"id\":\"a\",", "run_", "")) CALLS(FN("\"index\":0,", "python", ""))
          CALLS(ARGS("\"index\":0,", A1)) DONE,
      "|run_python({\"code\":\"1\"})" },
    { "the name as far as it is known",
      CALLS(FN("\"index\":0,\"id\":\"a\",", "run_", "")) CALLS(FN("\"index\":0,", "run_python", ""))
          CALLS(ARGS("\"index\":0,", A1)) DONE,
      "|run_python({\"code\":\"1\"})" },
    { "the name behind the arguments",
      CALLS(ARGS("\"index\":0,\"id\":\"a\",", A1)) CALLS(FN("\"index\":0,", "f", "")) DONE, CALL1 },
    { "a name that is null",
      CALLS("{\"index\":0,\"id\":\"a\",\"function\":{\"name\":\"f\",\"arguments\":\"\"}}")
          CALLS("{\"index\":0,\"function\":{\"name\":null,\"arguments\":\"" A1 "\"}}") DONE,
      CALL1 },
    /* arguments */
    { "all of the arguments once more at the end",
      CALLS(FN("\"index\":0,\"id\":\"a\",", "f", "{\\\"code")) CALLS(ARGS("\"index\":0,", "\\\":\\\"1\\\"}"))
          CALLS(ARGS("\"index\":0,", A1)) DONE,
      CALL1 },
    { "all so far in each piece",
      CALLS(FN("\"index\":0,\"id\":\"a\",", "f", "{")) CALLS(ARGS("\"index\":0,", "{\\\"co"))
          CALLS(ARGS("\"index\":0,", "{\\\"code\\\":\\\"1")) CALLS(ARGS("\"index\":0,", A1)) DONE,
      CALL1 },
    { "the whole call twice",
      CALLS(FN("\"index\":0,\"id\":\"a\",", "f", A1)) CALLS(FN("\"index\":0,\"id\":\"a\",", "f", A1)) DONE, CALL1 },
    { "the whole call twice, without ids", CALLS(FN("\"index\":0,", "f", A1)) CALLS(FN("\"index\":0,", "f", A1)) DONE,
      CALL1 },
    { "members that begin as the whole does",
      CALLS(FN("\"index\":0,\"id\":\"a\",", "f", "{\\\"a\\\":")) CALLS(ARGS("\"index\":0,", "{\\\"a\\\":1}}")) DONE,
      "|f({\"a\":{\"a\":1}})" },
    { "two different objects", CALLS(FN("\"index\":0,\"id\":\"a\",", "f", A1)) CALLS(ARGS("\"index\":0,", A2)) DONE,
      "|f({\"code\":\"1\"}{\"code\":\"2\"})" },
    { "an empty object, then the arguments",
      CALLS(FN("\"index\":0,\"id\":\"a\",", "f", "{}")) CALLS(ARGS("\"index\":0,", "{\\\"code"))
          CALLS(ARGS("\"index\":0,", "\\\":\\\"1\\\"}")) DONE,
      CALL1 },
    { "a call that is no list",
      DELTA("\"tool_calls\":" FN("\"index\":0,\"id\":\"a\",", "f", "{\\\"code"))
          DELTA("\"tool_calls\":" ARGS("\"index\":0,", "\\\":\\\"1\\\"}")) DONE,
      CALL1 },
    { "a call without a function", CALLS("{\"index\":0,\"id\":\"a\",\"name\":\"f\",\"arguments\":\"" A1 "\"}") DONE,
      CALL1 },
    { "arguments as an object",
      CALLS("{\"index\":0,\"id\":\"a\",\"function\":{\"name\":\"f\",\"arguments\":{\"code\":\"1\"}}}") DONE, CALL1 },
    { "arguments that are null",
      CALLS("{\"index\":0,\"id\":\"a\",\"function\":{\"name\":\"f\",\"arguments\":null}}") DONE, "|f({})" },
    { "no arguments", CALLS(FN("\"index\":0,\"id\":\"a\",", "f", "")) DONE, "|f({})" },
    { "pieces cut within an escape",
      CALLS(FN("\"index\":0,\"id\":\"a\",", "f", "{\\\"code\\\":\\\"\\\\ud83d"))
          CALLS(ARGS("\"index\":0,", "\\\\ude00\\\"}")) DONE,
      "|f({\"code\":\"😀\"})" },
    { "half a character in the outer text",
      CALLS(FN("\"index\":0,\"id\":\"a\",", "f", "{\\\"code\\\":\\\"\\ud83d")) CALLS(ARGS("\"index\":0,", "\\\"}"))
          DONE,
      "|f({\"code\":\"\xef\xbf\xbd\"})" },
    { "a function_call",
      DELTA("\"function_call\":{\"name\":\"f\",\"arguments\":\"\"}")
          DELTA("\"function_call\":{\"arguments\":\"" A1 "\"}") END("function_call"),
      CALL1 },
    /* reasons */
    { "stop with calls", CALLS(FN("\"index\":0,\"id\":\"a\",", "f", A1)) END("stop"), CALL1 },
    { "end_turn", DELTA("\"content\":\"Hi\"") END("end_turn"), "Hi" },
    { "tool_use", CALLS(FN("\"index\":0,\"id\":\"a\",", "f", A1)) END("tool_use"), CALL1 },
    { "STOP", DELTA("\"content\":\"Hi\"") END("STOP"), "Hi" },
    { "a reason that is blank, then the mark",
      EVENT("{\"choices\":[{\"delta\":{\"content\":\"Hi\"},\"finish_reason\":\"\"}]}") DONE, "Hi" },
    { "no reason, only the mark", DELTA("\"content\":\"Hi\"") DONE, "Hi" },
    { "no reason and no mark, but the bill",
      DELTA("\"content\":\"Hi\"") EVENT("{\"choices\":[],\"usage\":{\"prompt_tokens\":1,\"completion_tokens\":1}}"),
      "Hi" },
    { "a bill in each piece is no end",
      EVENT("{\"choices\":[{\"delta\":{\"content\":\"Hi\"}}],\"usage\":{\"completion_tokens\":1}}"), "error: cut off" },
    { "a bill before anything is no end",
      EVENT("{\"choices\":[],\"usage\":{\"completion_tokens\":1}}") DELTA("\"content\":\"Hi\""), "error: cut off" },
    { "length", DELTA("\"content\":\"Hi\"") END("length"), "Hi|length" },
    { "MAX_TOKENS", DELTA("\"content\":\"Hi\"") END("MAX_TOKENS"), "Hi|length" },
    { "model_length", DELTA("\"content\":\"Hi\"") END("model_length"), "Hi|length" },
    { "content_filter", DELTA("\"content\":\"Hi\"") END("content_filter"), "Hi|refused" },
    { "SAFETY", END("SAFETY"), "|refused" },
    { "content_filter: RECITATION", END("content_filter: RECITATION"), "|refused" },
    { "sensitive", END("sensitive"), "|refused" },
    { "a call that the filter spoilt", END("function_call_filter: MALFORMED_FUNCTION_CALL"), "" },
    { "insufficient_system_resource", DELTA("\"content\":\"Hi\"") END("insufficient_system_resource"),
      "error: server failed" },
    { "network_error", END("network_error"), "error: server failed" },
    { "error as a reason, with words",
      EVENT(
          "{\"error\":{\"code\":502,\"message\":\"Provider disconnected\"},\"choices\":[{\"delta\":{\"content\":\"\"},\"finish_reason\":\"error\"}]}"),
      "error: Provider disconnected" },
    /* content */
    { "a role alone first", DELTA("\"role\":\"assistant\"") DELTA("\"content\":\"Hi\"") DONE, "Hi" },
    { "content that is null",
      DELTA("\"role\":\"assistant\",\"content\":null,\"refusal\":null,\"tool_calls\":null") DELTA("\"content\":\"Hi\"")
          DONE,
      "Hi" },
    { "content as parts",
      DELTA("\"content\":[{\"type\":\"text\",\"text\":\"H\"},\"i\",{\"type\":\"output_text\",\"text\":\"!\"},[1]]")
          DONE,
      "Hi!" },
    { "content as one part", DELTA("\"content\":{\"type\":\"text\",\"text\":\"Hi\"}") DONE, "Hi" },
    { "thinking among the parts",
      DELTA(
          "\"content\":[{\"type\":\"thinking\",\"thinking\":[{\"type\":\"text\",\"text\":\"Hm\"}]},{\"type\":\"text\",\"text\":\"Hi\"}]")
          DONE,
      "Hi" },
    { "text in place of a delta", EVENT("{\"choices\":[{\"index\":0,\"text\":\"Hi\"}]}") DONE, "Hi" },
    { "a message in place of a delta", EVENT("{\"choices\":[{\"message\":{\"content\":\"Hi\"}}]}") DONE, "Hi" },
    { "a delta that is null",
      EVENT("{\"choices\":[{\"index\":0,\"delta\":null,\"finish_reason\":null}]}") DELTA("\"content\":\"Hi\"") DONE,
      "Hi" },
    { "a filter's findings first and later",
      EVENT("{\"choices\":[],\"prompt_filter_results\":[{\"prompt_index\":0,\"content_filter_results\":{}}]}")
          DELTA("\"content\":\"Hi\"") EVENT(
              "{\"choices\":[{\"index\":0,\"finish_reason\":null,\"content_filter_results\":{\"hate\":{\"filtered\":false}},\"content_filter_offsets\":{\"check_offset\":1}}]}")
              END("stop"),
      "Hi" },
    { "<think>", DELTA("\"content\":\"<think>Hm</\"") DELTA("\"content\":\"think>Hi\"") DONE, "Hi" },
    { "</think> alone", DELTA("\"content\":\"Hm</think>Hi\"") DONE, "Hi" },
    { "[THINK]", DELTA("\"content\":\"[THINK]Hm[/THINK]Hi\"") DONE, "Hi" },
    { "<seed:think>", DELTA("\"content\":\"<seed:think>Hm</seed:think>Hi\"") DONE, "Hi" },
    { "◁think▷", DELTA("\"content\":\"◁think▷Hm◁/think▷Hi\"") DONE, "Hi" },
    { "<thought>", DELTA("\"content\":\"<thought>Hm</thought>Hi\"") DONE, "Hi" },
    { "a tag that people write", DELTA("\"content\":\"Use </thought> so.\"") DONE, "Use </thought> so." },
    /* framing */
    { "comments", ": OPENROUTER PROCESSING\n\n" DELTA("\"content\":\"Hi\"") ": OPENROUTER PROCESSING\n\n" DONE, "Hi" },
    { "CRLF and a mark of byte order",
      "\xef\xbb\xbf"
      "data: {\"choices\":[{\"delta\":{\"content\":\"Hi\"}}]}\r\n\r\ndata: [DONE]\r\n\r\n",
      "Hi" },
    { "no line end at the end", DELTA("\"content\":\"Hi\"") "data: [DONE]", "Hi" },
    { "the mark twice", DELTA("\"content\":\"Hi\"") DONE DONE, "Hi" },
    { "an error behind the mark", DELTA("\"content\":\"Hi\"") DONE EVENT("{\"error\":{\"message\":\"late\"}}"), "Hi" },
    { "words behind the mark", DELTA("\"content\":\"Hi\"") DONE DELTA("\"content\":\" there\""), "Hi" },
    { "signs of life as events",
      "event: ping\ndata: 1700000000\n\n" EVENT("{}") EVENT("ping") EVENT("[KEEPALIVE]") EVENT("")
          DELTA("\"content\":\"Hi\"") DONE,
      "Hi" },
    { "choices that are empty", EVENT("{\"choices\":[]}") EVENT("{\"choices\":null}") DELTA("\"content\":\"Hi\"") DONE,
      "Hi" },
    /* errors at status 200 */
    { "an error that is null", EVENT("{\"error\":null,\"choices\":[{\"delta\":{\"content\":\"Hi\"}}]}") DONE, "Hi" },
    { "errors that say nothing",
      EVENT("{\"error\":\"\",\"choices\":[{\"delta\":{\"content\":\"H\"}}]}")
          EVENT("{\"error\":{},\"choices\":[{\"delta\":{\"content\":\"i\"}}]}") EVENT(
              "{\"error\":false,\"success\":true,\"msg\":\"ok\",\"choices\":[{\"delta\":{\"content\":\"!\"}}]}") DONE,
      "Hi!" },
    { "an event called error", "event: error\ndata: {\"code\":1302,\"msg\":\"too fast\"}\n\n" DONE, "error: too fast" },
    { "an event called error, in words", "event: error\ndata: no room left\n\n", "error: no room left" },
    { "an event called error that says nothing", "event: error\ndata: {}\n\n" DONE, "error: server failed" },
    { "msg and success", "{\"code\":500,\"msg\":\"404 NOT_FOUND\",\"success\":false}", "error: 404 NOT_FOUND" },
    { "base_resp", "{\"choices\":null,\"base_resp\":{\"status_code\":1004,\"status_msg\":\"login fail\"}}",
      "error: login fail" },
    { "base_resp of an answer",
      "{\"choices\":[{\"message\":{\"content\":\"Hi\"}}],\"base_resp\":{\"status_code\":0,\"status_msg\":\"\"}}",
      "Hi" },
    { "an address that is not there, at 200", "{\"error\":\"Unexpected endpoint or method. (POST /chat/completions)\"}",
      "error: check url" },
    { "words at 200", "upstream connect error", "error: upstream connect error" },
    { "nothing but signs of life", ": ping\n\n: ping\n\n", "error: no answer" },
    { "a web page at 200", "<!DOCTYPE html><html><title>Sign in</title>", "error: check url" },
    { "whole, with content in parts",
      "{\"choices\":[{\"message\":{\"content\":[{\"type\":\"text\",\"text\":\"Hi\"}]}}]}", "Hi" },
    { "whole, in a list", "[{\"error\":{\"code\":429,\"message\":\"slowly\",\"status\":\"RESOURCE_EXHAUSTED\"}}]",
      "error: busy" },
};

static void chat_completions_in_all_their_shapes(void **state)
{
    (void)state;
    check_shapes(&wire_chat, chat_shapes, countof(chat_shapes));
}

/* ---- Anthropic Messages ---- */

#define AN(type, members) "event: " type "\ndata: {\"type\":\"" type "\"" members "}\n\n"
#define AN_TEXT(i, text) \
    AN("content_block_delta", ",\"index\":" i ",\"delta\":{\"type\":\"text_delta\",\"text\":\"" text "\"}")
#define AN_JSON(i, text)      \
    AN("content_block_delta", \
       ",\"index\":" i ",\"delta\":{\"type\":\"input_json_delta\",\"partial_json\":\"" text "\"}")
#define AN_START(i, block) AN("content_block_start", ",\"index\":" i ",\"content_block\":" block)
#define AN_STOP(i)         AN("content_block_stop", ",\"index\":" i)
#define AN_END(reason)                                                                                 \
    AN("message_delta", ",\"delta\":{\"stop_reason\":\"" reason "\"},\"usage\":{\"output_tokens\":1}") \
    AN("message_stop", "")
#define AN_TOOL "{\"type\":\"tool_use\",\"id\":\"a\",\"name\":\"f\",\"input\":{}}"

static const struct shape anthropic_shapes[] = {
    { "pings",
      AN("ping", "") AN("message_start", ",\"message\":{\"usage\":{\"input_tokens\":1}}") AN("ping", "") AN_START(
          "0", "{\"type\":\"text\",\"text\":\"\"}") AN_TEXT("0", "Hi") AN("ping", "") AN_STOP("0") AN_END("end_turn"),
      "Hi" },
    { "text without a beginning", AN_TEXT("0", "H") AN_TEXT("0", "i") AN_STOP("0") AN_END("end_turn"), "Hi" },
    { "a text block without text", AN_START("0", "{\"type\":\"text\"}") AN_TEXT("0", "Hi") AN_END("end_turn"), "Hi" },
    { "a call without an end", AN_START("0", AN_TOOL) AN_JSON("0", A1) AN_END("tool_use"), CALL1 },
    { "a call whose input came at once",
      AN_START("0", "{\"type\":\"tool_use\",\"id\":\"a\",\"name\":\"f\",\"input\":{\"code\":\"1\"}}") AN_STOP("0")
          AN_END("tool_use"),
      CALL1 },
    { "a call whose input came twice",
      AN_START("0", "{\"type\":\"tool_use\",\"id\":\"a\",\"name\":\"f\",\"input\":{\"code\":\"1\"}}") AN_JSON("0", A1)
          AN_STOP("0") AN_END("tool_use"),
      CALL1 },
    { "a call without input", AN_START("0", AN_TOOL) AN_STOP("0") AN_END("tool_use"), "|f({})" },
    { "two blocks of one index",
      AN_START("0", "{\"type\":\"text\",\"text\":\"\"}") AN_TEXT("0", "Hi") AN_STOP("0") AN_START("0", AN_TOOL)
          AN_JSON("0", A1) AN_STOP("0") AN_END("tool_use"),
      "Hi" CALL1 },
    { "tools of the server and unknown blocks",
      AN_START("0", "{\"type\":\"server_tool_use\",\"id\":\"s\",\"name\":\"web_search\",\"input\":{}}") AN_JSON("0",
                                                                                                                "{}")
          AN_STOP("0") AN_START("1", "{\"type\":\"web_search_tool_result\",\"tool_use_id\":\"s\",\"content\":[]}")
              AN_STOP("1") AN_START("2", "{\"type\":\"hologram\"}") AN_STOP("2")
                  AN_START("3", "{\"type\":\"text\",\"text\":\"\"}") AN_TEXT("3", "Hi")
                      AN("content_block_delta", ",\"index\":3,\"delta\":{\"type\":\"citations_delta\",\"citation\":{}}")
                          AN("unheard_of", "") AN_STOP("3") AN_END("end_turn"),
      "Hi" },
    { "pause_turn",
      AN_START("0", "{\"type\":\"text\",\"text\":\"\"}") AN_TEXT("0", "Hi") AN_STOP("0") AN_END("pause_turn"), "Hi" },
    { "refusal", AN_START("0", "{\"type\":\"text\",\"text\":\"\"}") AN_TEXT("0", "No.") AN_STOP("0") AN_END("refusal"),
      "No.|refused" },
    { "overloaded within",
      AN_TEXT(
          "0",
          "H") "event: error\ndata: {\"type\":\"error\",\"error\":{\"type\":\"overloaded_error\",\"message\":\"Overloaded\"}}\n\n",
      "error: busy" },
    { "an error behind the end",
      AN_TEXT("0", "Hi")
          AN_END("end_turn") "event: error\ndata: {\"type\":\"error\",\"error\":{\"type\":\"api_error\"}}\n\n",
      "Hi" },
    { "whole, with a reason that is null",
      "{\"type\":\"message\",\"content\":[{\"type\":\"text\",\"text\":\"Hi\"}],\"stop_reason\":null}", "Hi" },
    { "an error of a gateway at 200",
      "{\"success\":false,\"errors\":[{\"code\":10000,\"message\":\"Authentication error\"}]}",
      "error: Authentication error" },
};

static void anthropic_messages_in_all_their_shapes(void **state)
{
    (void)state;
    check_shapes(&wire_anthropic, anthropic_shapes, countof(anthropic_shapes));
}

/* ---- Responses ---- */

#define RS(type, members) EVENT("{\"type\":\"response." type "\"" members "}")
#define RS_END            RS("completed", ",\"response\":{\"status\":\"completed\",\"output\":[]}")
#define RS_CALL(id, args) \
    "{\"type\":\"function_call\",\"id\":\"fc_" id "\",\"call_id\":\"" id "\",\"name\":\"f\",\"arguments\":\"" args "\"}"
#define RS_MESSAGE(text) \
    "{\"type\":\"message\",\"id\":\"m1\",\"content\":[{\"type\":\"output_text\",\"text\":\"" text "\"}]}"

static const struct shape responses_shapes[] = {
    { "nothing is counted",
      RS("output_item.added", ",\"item\":{\"type\":\"reasoning\",\"id\":\"r\"}")
          RS("output_item.done", ",\"item\":{\"type\":\"reasoning\",\"id\":\"r\",\"summary\":[]}")
              RS("output_item.added", ",\"item\":" RS_CALL("a", ""))
                  RS("function_call_arguments.delta", ",\"item_id\":\"fc_a\",\"delta\":\"" A1 "\"")
                      RS("output_item.added", ",\"item\":" RS_CALL("b", ""))
                          RS("function_call_arguments.delta", ",\"item_id\":\"fc_b\",\"delta\":\"" A2 "\"")
                              RS("output_item.done", ",\"item\":" RS_CALL("a", A1))
                                  RS("output_item.done", ",\"item\":" RS_CALL("b", A2)) RS_END,
      CALL1 CALL2 },
    { "nothing is counted or named",
      RS("output_item.added", ",\"item\":{\"type\":\"function_call\",\"call_id\":\"a\",\"name\":\"f\"}")
          RS("function_call_arguments.delta", ",\"delta\":\"" A1 "\"")
              RS("output_item.done",
                 ",\"item\":{\"type\":\"function_call\",\"call_id\":\"a\",\"name\":\"f\",\"arguments\":\"" A1 "\"}")
                  RS("output_item.added", ",\"item\":{\"type\":\"function_call\",\"call_id\":\"b\",\"name\":\"f\"}")
                      RS("function_call_arguments.delta", ",\"delta\":\"" A2 "\"") RS_END,
      CALL1 CALL2 },
    { "words and a call of one index",
      RS("output_item.added", ",\"output_index\":0,\"item\":{\"type\":\"message\",\"id\":\"m1\",\"content\":[]}")
          RS("output_text.delta", ",\"output_index\":0,\"item_id\":\"m1\",\"delta\":\"H\"")
              RS("output_item.added", ",\"output_index\":0,\"item\":" RS_CALL("a", ""))
                  RS("function_call_arguments.delta", ",\"output_index\":0,\"item_id\":\"fc_a\",\"delta\":\"" A1 "\"")
                      RS("output_text.delta", ",\"output_index\":0,\"item_id\":\"m1\",\"delta\":\"i\"")
                          RS("output_item.done", ",\"output_index\":0,\"item\":" RS_CALL("a", A1))
                              RS("output_item.done", ",\"output_index\":0,\"item\":" RS_MESSAGE("Hi")) RS_END,
      "Hi" CALL1 },
    { "ids that change from event to event",
      RS("output_item.added",
         ",\"output_index\":1,\"item\":{\"type\":\"function_call\",\"id\":\"x1\",\"call_id\":\"a\",\"name\":\"f\",\"arguments\":\"\"}")
          RS("function_call_arguments.delta", ",\"output_index\":1,\"item_id\":\"x2\",\"delta\":\"" A1 "\"") RS(
              "output_item.done",
              ",\"output_index\":1,\"item\":{\"type\":\"function_call\",\"id\":\"x3\",\"call_id\":\"a\",\"name\":\"f\",\"arguments\":\"" A1
              "\"}") RS_END,
      CALL1 },
    { "words that nobody announced",
      RS("output_text.delta", ",\"delta\":\"H\"") RS("output_text.delta", ",\"delta\":\"i\"") RS_END, "Hi" },
    { "a call that was not streamed",
      RS("output_text.delta", ",\"output_index\":0,\"item_id\":\"m1\",\"delta\":\"Hi\"")
          RS("completed",
             ",\"response\":{\"status\":\"completed\",\"output\":[" RS_MESSAGE("Hi") "," RS_CALL("a", A1) "]}"),
      "Hi" CALL1 },
    { "a call that was streamed without its name",
      RS("function_call_arguments.delta", ",\"output_index\":0,\"delta\":\"" A1 "\"")
          RS("completed", ",\"response\":{\"status\":\"completed\",\"output\":[" RS_CALL("a", A1) "]}"),
      CALL1 },
    { "unknown events", RS("hologram.added", "") RS("output_text.delta", ",\"delta\":\"Hi\"") RS("queued", "") RS_END,
      "Hi" },
    { "only the end", RS("completed", ",\"response\":{\"status\":\"completed\",\"output\":[" RS_MESSAGE("Hi") "]}"),
      "Hi" },
    { "incomplete for its length",
      RS("output_text.delta", ",\"delta\":\"Hi\"")
          RS("incomplete",
             ",\"response\":{\"status\":\"incomplete\",\"incomplete_details\":{\"reason\":\"max_output_tokens\"}}"),
      "Hi|length" },
    { "incomplete for a filter",
      RS("incomplete",
         ",\"response\":{\"status\":\"incomplete\",\"incomplete_details\":{\"reason\":\"content_filter\"}}"),
      "|refused" },
    { "a refusal part",
      RS("output_item.done",
         ",\"output_index\":0,\"item\":{\"type\":\"message\",\"id\":\"m\",\"content\":[{\"type\":\"refusal\",\"refusal\":\"No.\"}]}")
          RS_END,
      "No.|refused" },
    { "failed",
      RS("failed",
         ",\"response\":{\"status\":\"failed\",\"error\":{\"code\":\"rate_limit_exceeded\",\"message\":\"slowly\"}}"),
      "error: busy" },
    { "an error, flat",
      EVENT(
          "{\"type\":\"error\",\"code\":\"server_is_overloaded\",\"message\":\"Our servers are overloaded\",\"param\":null}"),
      "error: busy" },
    { "an error, nested",
      EVENT(
          "{\"type\":\"error\",\"error\":{\"type\":\"server_error\",\"code\":\"server_error\",\"message\":\"oops\"}}"),
      "error: oops" },
    { "cut off", RS("output_text.delta", ",\"delta\":\"Hi\""), "error: cut off" },
};

static void responses_in_all_their_shapes(void **state)
{
    (void)state;
    check_shapes(&wire_responses, responses_shapes, countof(responses_shapes));
}

/* ---- Ollama ---- */

static const struct shape ollama_shapes[] = {
    { "thinking beside words",
      "{\"message\":{\"role\":\"assistant\",\"content\":\"\",\"thinking\":\"Hm\"}}\n{\"message\":{\"content\":\"Hi\"},\"done\":true,\"done_reason\":\"stop\"}\n",
      "Hi" },
    { "loaded, and nothing said",
      "{\"message\":{\"role\":\"assistant\",\"content\":\"\"},\"done\":true,\"done_reason\":\"load\"}\n", "" },
    { "a call with an index",
      "{\"message\":{\"content\":\"\",\"tool_calls\":[{\"function\":{\"index\":0,\"name\":\"f\",\"arguments\":{\"code\":\"1\"}}}]},\"done\":true}\n",
      CALL1 },
    { "an error in a line",
      "{\"message\":{\"content\":\"H\"}}\n{\"error\":\"an error was encountered while running the model\"}\n",
      "error: an error was encountered" },
    { "an error behind the end", "{\"message\":{\"content\":\"Hi\"},\"done\":true}\n{\"error\":\"late\"}\n", "Hi" },
};

static void ollama_in_all_its_shapes(void **state)
{
    (void)state;
    check_shapes(&wire_ollama, ollama_shapes, countof(ollama_shapes));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(chat_completions_in_all_their_shapes),
        cmocka_unit_test(anthropic_messages_in_all_their_shapes),
        cmocka_unit_test(responses_in_all_their_shapes),
        cmocka_unit_test(ollama_in_all_its_shapes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
