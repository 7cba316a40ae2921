/* metric.h - what the program counts, for those who watch it (src/status). Floor 0.
 *
 * Like log lines: any part may count, nobody has to be handed anything. Labels are words of ours from a small set (a status, a
 * platform), never what people said, nor their ids; whatever else a label holds becomes "_", and from the seventeenth on "other". */
#ifndef METRIC_H
#define METRIC_H
#include "str.h"

/* clang-format off */
/*    name             as Prometheus calls it            kind     label       help */
#define METRIC_TABLE(X) \
    X(TURNS,           "sandbook_turns_total",           COUNTER, "status",   "questions seen through to their end") \
    X(TURN_TIME,       "sandbook_turn_seconds",          SUMMARY, "",         "from a question's turn to its answer") \
    X(WAIT_TIME,       "sandbook_wait_seconds",          SUMMARY, "",         "from a question to its turn") \
    X(CELLS,           "sandbook_cells_total",           COUNTER, "verdict",  "cells that were run") \
    X(CELL_TIME,       "sandbook_cell_seconds",          SUMMARY, "",         "wall clock of cells") \
    X(TOKENS,          "sandbook_tokens_total",          COUNTER, "kind",     "tokens of models: in, of these cached, out") \
    X(EVENTS,          "sandbook_chat_events_total",     COUNTER, "platform", "messages and the like that a platform reported") \
    X(CHAT_LAG,        "sandbook_chat_lag_seconds",      SUMMARY, "platform", "from when a message was sent, by the platform's clock, to when it came here") \
    X(POSTS_FAILED,    "sandbook_posts_failed_total",    COUNTER, "platform", "tries to post an answer that did not succeed") \
    X(LINKS,           "sandbook_links",                 GAUGE,   "platform", "connections by which a platform's events come") \
    X(FEEDBACK,        "sandbook_feedback_total",        COUNTER, "value",    "what people think of answers, by button: good, bad") \
    X(CHECKPOINTS,     "sandbook_checkpoints_total",     COUNTER, "outcome",  "variables written down: made, given_up, failed") \
    X(LOG_LINES,       "sandbook_log_lines_total",       COUNTER, "level",    "lines of the log, whether written or not") \
    X(SESSIONS,        "sandbook_sessions",              GAUGE,   "",         "conversations in memory") \
    X(BOXES,           "sandbook_boxes",                 GAUGE,   "state",    "boxes of conversations: busy, idle") \
    X(REQUESTS,        "sandbook_requests",              GAUGE,   "state",    "questions and commands: running, waiting") \
    X(UNDELIVERED,     "sandbook_answers_undelivered",   GAUGE,   "",         "answers that no platform has taken yet") \
    X(LOOP_LAG,        "sandbook_loop_lag_seconds",      SECONDS, "",         "longest that one callback took since the last look") \
    X(MEMORY,          "process_resident_memory_bytes",  GAUGE,   "",         "memory of this process") \
    X(DESCRIPTORS,     "process_open_fds",               GAUGE,   "",         "open descriptors of this process") \
    X(STARTED,         "process_start_time_seconds",     GAUGE,   "",         "Unix time when the service began")
/* clang-format on */

enum metric {
#define X(name, prom, kind, label, help) METRIC_##name,
    METRIC_TABLE(X)
#undef X
        METRICS
};

/* label: NULL or "" where the table names none. */
void metric_count(enum metric m, const char *label, int64_t n); /* a COUNTER: so many more */
/* A SUMMARY: once more, and so long; below 0 counts as 0. */
void metric_took_ms(enum metric m, const char *label, int64_t ms);
void metric_set(enum metric m, const char *label, int64_t value); /* a GAUGE; SECONDS: in microseconds */
int64_t metric_value(enum metric m, const char *label);           /* SUMMARY: how often; 0: never seen */
void metric_print(struct str *out);                               /* Prometheus' text format, version 0.0.4 */
void metric_forget(void);                                         /* all of them: for tests */
#endif
