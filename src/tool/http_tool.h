/* http_tool.h - a call of an operator's HTTP service as a request: pure, so that it can be tried and fuzzed. */
#ifndef HTTP_TOOL_H
#define HTTP_TOOL_H
#include "conf.h"
#include "json.h"

/* The address with its {places} filled and, for methods without a body, the other arguments as query. ERR_DATA in words for the model:
 * a place without argument, an argument that is no plain value, one that would walk to another path. Caller frees. */
must_check int http_tool_url(char **out, const struct conf_tool *t, const struct json *args, struct err *e);
/* The JSON body of the arguments that the address did not take; NULL when the method has none. Caller frees. */
char *http_tool_body(const struct conf_tool *t, const struct json *args);
/* Header lines, NULL-terminated; secret NULL: none. The caller frees (http_tool_headers_free wipes them). ERR_CONFIG: not a header. */
must_check int http_tool_headers(char ***out, const struct conf_tool *t, const char *secret, struct err *e);
void http_tool_headers_free(char **lines);
#endif
