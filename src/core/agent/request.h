/* request.h - what kind of question a person asks, by the phrases of prompts/asks.md. Pure. */
#ifndef REQUEST_H
#define REQUEST_H
#include "base.h"

struct prompts;

/* A phrase of the list stands in the text: "en: how many, plot*" in lines, one for each language. */
bool request_has(const char *list, const char *text);

/* Something has to be computed for it. `follows`: there was a turn before, so that a short question about words ("what do you mean by
 * that sum?") is about what was said. */
bool request_wants_work(const struct prompts *p, const char *request, bool follows);
bool request_wants_program(const struct prompts *p, const char *request); /* a program may be the answer */

/* Of an answer: it says what is going to be done, and is no offer to do it. `begins`: with nothing before that. */
bool request_is_promise(const struct prompts *p, const char *text, bool *begins);
/* Of an answer: most of it is in another language than the question, which does not ask for one. */
bool request_is_foreign(const struct prompts *p, const char *request, const char *text);
bool request_asks_back(const char *text); /* it ends in a question */
#endif
