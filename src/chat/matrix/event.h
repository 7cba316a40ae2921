/* event.h - what an event of a room says: relations, mentions, text, files. Floor 3; pure; fuzzed.
 *
 * Trust boundary: everything in an event comes from anybody. Each field is checked for presence and type; what makes no sense
 * counts as not there. Strings in the structs are borrowed from the JSON. */
#ifndef MATRIX_EVENT_H
#define MATRIX_EVENT_H
#include "json.h"

struct mx_event {
    const char *id, *type, *sender;
    int64_t sent_ms;
    const struct json *content; /* an object */
    const char *redacts;        /* m.room.redaction: its target, wherever the room version puts it; else NULL */
    const char *transaction_id; /* our own, when this device sent it; else NULL */
    bool redacted;              /* its content is gone */
};
/* False: this is no event that could be acted on. */
bool mx_event_read(struct mx_event *out, const struct json *event);

enum mx_relation_type { MX_NO_RELATION, MX_THREAD, MX_REPLACE, MX_ANNOTATION, MX_OTHER_RELATION };
struct mx_relation {
    enum mx_relation_type type;
    const char *target;   /* root, edited event, ...; NULL without a type */
    const char *key;      /* of an annotation */
    const char *reply_to; /* a reply that a person meant: not what clients without threads get to see; NULL: none */
};
/* relates: content's "m.relates_to", for encrypted events that of the clear part. */
void mx_relation_read(struct mx_relation *out, const struct json *relates);

/* Who we are, as far as texts name us. */
struct mx_self {
    const char *user, *localpart, *display_name; /* display_name may be "" */
};
/* "m.mentions" alone decides when it is there. Else a link to us, our whole id, or our name in front. */
bool mx_mentions_others(const struct json *content); /* somebody is called by "m.mentions" */
bool mx_is_mentioned(const struct json *content, const struct mx_self *self);

struct mx_file {
    const char *name, *mxc, *mimetype;
    const struct json *encrypted; /* the "file" object; NULL: plain */
    int64_t bytes;                /* as its sender says; 0: not said */
};
/* True when the message, or an item of a gallery, is a file. mxc "": without a usable address. */
bool mx_file_read(struct mx_file *out, const struct json *content);

/* The items of a message that is several files; NULL: it is none. */
const struct json *mx_gallery(const struct json *content);

/* The words of a message: body or caption, fit to be shown, without the quote that old clients put in front of replies and without
 * the mention of us in front. is_reply: there is a reply_to. "" for a file without a caption. Caller frees. */
char *mx_text(const struct json *content, const struct mx_self *self, bool is_reply);

enum mx_msgtype { MX_TEXT, MX_NOTICE, MX_FILE, MX_VERIFICATION, MX_OTHER };
enum mx_msgtype mx_msgtype(const struct json *content);
#endif
