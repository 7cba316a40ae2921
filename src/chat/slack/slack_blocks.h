/* slack_blocks.h - an answer as messages that Slack takes. Pure.
 *
 * Prose becomes rich_text, tables become table or data_table blocks. Text in both is literal: nothing a model writes can turn
 * into a mention, a broadcast or a link of its own, and nothing has to be escaped. When Slack refuses a rung, the caller lays
 * out the next: the answer never gets lost because its looks were not liked.
 * Property (fuzzed): no payload breaks a documented limit; see the numbers in slack_blocks.c. */
#ifndef SLACK_BLOCKS_H
#define SLACK_BLOCKS_H
#include "json.h"
#include "str.h"

struct markup;

enum slack_rung {
    SLACK_RICH,  /* all that there is: sorting tables for the longer ones */
    SLACK_PLAIN, /* without what came in 2026: `table` for every table */
    SLACK_CODE,  /* tables as blocks of code */
    SLACK_TEXT,  /* no blocks: mrkdwn in parts of 3,800 bytes */
    SLACK_FILE,  /* one line, and the answer as a file */
};

struct slack_message {
    struct json *blocks; /* NULL: text only */
    char *text;          /* escaped; never empty: what notifications show */
};

struct slack_layout {
    enum slack_rung rung; /* the one asked for, or a lower one when the answer is too long for it */
    struct slack_message *at;
    size_t n, cap;
    char **csv; /* tables of which only the beginning is shown, whole, as CSV that no spreadsheet executes */
    size_t csv_n, csv_cap;
};

#define SLACK_FEEDBACK_ACTION "feedback"
#define SLACK_FEEDBACK_GOOD   "good"
#define SLACK_FEEDBACK_BAD    "bad"

enum { SLACK_MESSAGES_MAX = 4 }; /* more for one answer: it goes as a file */

/* receipt: a line under the last message, or NULL. */
void slack_layout_make(struct slack_layout *out, const char *markdown, const char *receipt, enum slack_rung rung);
/* Two small buttons under the last message, if it has blocks and is on the first rung: what people think of it. */
void slack_layout_feedback(struct slack_layout *l);
void slack_layout_clear(struct slack_layout *l);

/* ---- slack_mrkdwn.c: the text rung ---- */
void slack_mrkdwn(struct str *out, const struct markup *doc);

/* ---- slack_table.c ---- */
/* The block for this table; NULL when Slack takes none of its size. Tables over the row limit are cut, *shown says where. */
struct json *slack_table(const struct markup *table, bool data_table, size_t *shown);
void slack_table_csv(struct str *out, const struct markup *table);
#endif
