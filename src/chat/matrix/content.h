/* content.h - what is written into events: Markdown as the HTML that Matrix allows, contents of messages. Floor 3; pure. */
#ifndef MATRIX_CONTENT_H
#define MATRIX_CONTENT_H
#include "../markup.h"
#include "cell.h"
#include "json.h"

/* Only tags and attributes that the Matrix specification lists; everything else is text, escaped. */
void content_html(struct str *out, const struct markup *doc);
/* {"msgtype","body"[,"format","formatted_body"],"m.mentions":{}}: body reads well alone, HTML only where there is something to format. */
struct json *content_text(const struct markup *doc, const char *msgtype);
/* Bytes of content_text() as JSON: a markup_size_fn, ud: the msgtype. */
size_t content_size(void *ud, const struct markup *doc);
/* Puts "m.mentions": {"user_ids": [user]} in place of nobody. */
void content_mention(struct json *content, const char *user);
/* The thread's root, and what clients without threads show as quoted; either may be NULL. Neither: nothing is set. */
void content_relate(struct json *content, const char *root, const char *reply_to);
/* An edit of that event; take_new is the new content, without relations. */
struct json *content_edit(struct json *take_new, const char *event);
/* m.image for a picture that clients show, else m.file. url is set by the caller (or "file", encrypted). */
struct json *content_file(const struct artifact *a, const char *name, bool picture);
/* By the name's ending; application/octet-stream when it is none of the usual ones. */
const char *content_type(const char *name);
/* Last part of a path. Borrowed. */
const char *content_name(const struct artifact *a);
#endif
