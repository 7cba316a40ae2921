/* slack_http.h - events by HTTP: whether a request is Slack's, and what to make of it. Pure but for the clock it is given.
 *
 * Trust boundary: anybody can reach the address. The signature is checked over the raw bytes before anything is parsed. */
#ifndef SLACK_HTTP_H
#define SLACK_HTTP_H
#include "json.h"
#include "str.h"

enum { SLACK_SIGNATURE_WINDOW_S = 300 };
/* signature: "v0=" and 64 hex digits; timestamp: seconds. Constant time in the signature. */
bool slack_signature_is_right(const char *secret, const char *timestamp, const char *signature, const char *body,
                              size_t n, int64_t now_s);
/* The JSON of a request: the body itself, or the form field payload=; NULL: neither. Caller frees. */
char *slack_http_payload(const char *type, const char *body);
#endif
