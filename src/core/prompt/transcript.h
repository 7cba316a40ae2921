/* transcript.h - a list of messages that owns its strings: what is sent to a model and what a turn leaves behind. */
#ifndef TRANSCRIPT_H
#define TRANSCRIPT_H
#include "model.h"

struct transcript {
    struct model_msg *at;
    size_t n, cap;
};

void transcript_clear(struct transcript *t);
/* Copies text. The message is borrowed until the next add. */
struct model_msg *transcript_add(struct transcript *t, enum model_role role, const char *text);
/* The result of a call. */
void transcript_add_result(struct transcript *t, const char *call_id, const char *text, bool failed);
/* Adds a call to an assistant message; copies. */
void transcript_add_call(struct model_msg *m, const char *id, const char *name, const char *args);
/* Moves *m to the end; *m becomes empty. */
void transcript_take_msg(struct transcript *t, struct model_msg *m);
/* Moves all of from to the end of t; from becomes empty. */
void transcript_take(struct transcript *t, struct transcript *from);
/* Appends copies of from[start, end). */
void transcript_copy(struct transcript *t, const struct transcript *from, size_t start, size_t end);
void model_msg_clear(struct model_msg *m);

/* Makes what was loaded or cut fit for any provider: results without their call go, calls without a result get one that says
 * so, blank messages go, consecutive messages of people become one. `gap` words the missing result. */
void transcript_sanitize(struct transcript *t, const char *gap);
/* JSON array for the store: {"role","text","calls":[{"id","name","args"}],"call_id","failed","raw","provider"}; the caller frees. */
struct json *transcript_to_json(const struct transcript *t);
/* Appends. raw is kept only where it came from `provider` (borrowed for the life of t; NULL: keep none): what one provider
 * wants echoed another refuses. ERR_DATA when the text is no transcript. */
must_check int transcript_from_json(struct transcript *t, const struct json *array, const char *provider,
                                    struct err *e);
#endif
