/* fence.h - programs in ```python blocks, and calls of other tools in ```tool and ```sql blocks, for servers that know no tools. Pure.
 *
 * The agent does not notice: what it hands over as calls and results goes out as blocks and messages of the user, and a block that
 * comes back is a call of the tool. Small models go on after their program and write its output themselves: a stream is cut where the
 * first program is whole.
 *
 * Trust boundary: text of a model. A program found in it can at worst be another program, and those run in the box only. */
#ifndef FENCE_H
#define FENCE_H
#include "json.h"
#include "model.h"
#include "str.h"

/* Reads lines; the one place that knows what opens and closes a block. Blocks of other languages are skipped whole. */
struct fence_lines {
    enum fence_kind { FENCE_PROSE, FENCE_PROGRAM, FENCE_TOOL, FENCE_SQL, FENCE_OTHER } in;
    size_t ticks, indent; /* of the opening line */
    bool tools, sql;      /* there are such tools: else their blocks are of other languages */
};
/* What to look for beside programs: schema as in struct model_ask, may be NULL. */
struct fence_lines fence_lines_for(const struct json *schema);

/* A stream of text, however cut. */
struct fence_watch {
    struct fence_lines lines;
    struct str line; /* the one that is not over yet */
};
#define FENCE_WATCH_INIT                 \
    {                                    \
        .line = STR_INIT(FENCE_LINE_MAX) \
    }
enum { FENCE_LINE_MAX = 1 << 20, FENCE_PROGRAM_MAX = 2 << 20 };
/* True: a program or call is whole; more is not wanted. */
bool fence_watch_add(struct fence_watch *w, const char *text, size_t n);
void fence_watch_clear(struct fence_watch *w);

/* The conversation as one without tools: owned copies, roles system, user and assistant only. */
struct fence_talk {
    struct model_msg *msgs;
    size_t n;
};
void fence_talk_make(struct fence_talk *t, const struct model_ask *ask);
void fence_talk_clear(struct fence_talk *t);

/* Turns a program or call in the answer's text into a call with this id: of the schema's first tool (NULL: run_python), of the tool that a
 * ```tool block names, of the one that takes SQL. streamed: the first whole block counts and nothing behind it, since the stream was cut
 * there; else the last whole one. A block that is open when the model ended of its own accord is whole (the stop string was its end); one
 * that a limit cut becomes a call with cut arguments. */
void fence_answer(struct model_answer *a, bool streamed, const struct json *schema, const char *id);
/* Small models say the reminder after us: out of the text, to the end of its paragraph. */
void fence_forget(struct model_answer *a, const struct model_fence_words *w);
#endif
