/* log.h - one event a line on stderr, key=value, quoted here and nowhere else. Floor 0.
 *
 * log_info("turn_done", KV_S("session", id), KV_I("steps", n), KV_E(&e));
 *   -> level=info event=turn_done session=4f2a steps=3 kind=net err="..."
 * A line needs at least one pair. Values are cut at 8 KiB. errno is kept.
 * Event names are snake_case and never reused. Bodies of messages and prompts only at debug; secrets never. */
#ifndef LOG_H
#define LOG_H
#include "err.h"

enum log_level { LOG_ERROR, LOG_WARN, LOG_INFO, LOG_DEBUG };

struct kv {
    const char *key;
    enum { KV_STR, KV_INT, KV_ERR, KV_SECRET } type;
    union {
        const char *s; /* NULL prints as "" */
        int64_t i;
        const struct err *e;
    } v;
};
/* clang-format off */
#define KV_S(k, x)      { .key = (k), .type = KV_STR, .v.s = (x) }
#define KV_I(k, x)      { .key = (k), .type = KV_INT, .v.i = (int64_t)(x) }
#define KV_E(x)         { .key = "err", .type = KV_ERR, .v.e = (x) } /* prints kind= too */
#define KV_SECRET(k, x) { .key = (k), .type = KV_SECRET, .v.s = (x) } /* prints its length only */
/* clang-format on */

/* Lines above this level are not written. Default LOG_INFO. */
void log_set_level(enum log_level level);
/* The word for the present level: what a child process is told. */
const char *log_level_word(void);
/* "error" ... "debug"; -1 when the word is none. */
int log_level_from(const char *word);
void log_emit(enum log_level level, const char *event, const struct kv *kv, size_t n);

/* clang-format off */
#define LOG_KV_(...) (const struct kv[]){ __VA_ARGS__ }
#define log_at(lv, ev, ...) \
    log_emit((lv), (ev), LOG_KV_(__VA_ARGS__), sizeof(LOG_KV_(__VA_ARGS__)) / sizeof(struct kv))
/* clang-format on */
#define log_error(ev, ...) log_at(LOG_ERROR, ev, __VA_ARGS__)
#define log_warn(ev, ...)  log_at(LOG_WARN, ev, __VA_ARGS__)
#define log_info(ev, ...)  log_at(LOG_INFO, ev, __VA_ARGS__)
#define log_debug(ev, ...) log_at(LOG_DEBUG, ev, __VA_ARGS__)
#endif
