/* openai_chat.h - private to the dialect: the question is in openai_chat.c, the answer in openai_chat_answer.c. */
#ifndef OPENAI_CHAT_H
#define OPENAI_CHAT_H
#include "wire.h"

/* A member of a message that holds what the model thought. */
bool chat_is_reasoning(const char *key);
/* As in struct wire. */
void chat_event(struct wire_reader *r, const char *name, const struct json *v);
void chat_whole(struct wire_reader *r, const struct json *v);
struct json *chat_replay(struct wire_reader *r);
#endif
