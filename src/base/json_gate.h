/* json_gate.h - private to json.c: the check before the parser. */
#ifndef JSON_GATE_H
#define JSON_GATE_H
#include "str.h"

enum {
    JSON_DEPTH = 64,       /* containers within each other */
    JSON_NUMBER_CHARS = 62 /* cJSON copies a number into 64 bytes and cuts silently */
};

/* ERR_DATA unless text is one JSON value that fits all of json.h's promises but duplicate keys and number range. */
must_check int json_gate(const char *text, size_t n, size_t max_bytes, struct err *e);
#endif
