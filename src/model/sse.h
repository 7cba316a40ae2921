/* sse.h - server-sent events and JSON lines, byte by byte. Pure: no I/O, no JSON.
 *
 * The rules are those of the WHATWG's HTML standard (9.2, server-sent events), and of what servers make of them: lines end at LF, CR
 * or CR LF, also when these fall into different reads, and nowhere else; a leading BOM is skipped; a line that begins with a
 * colon is a comment; the blank behind a field's colon is optional; several data lines are joined by LF; an event goes out at
 * its blank line and at the end of the stream; fields other than data and event are ignored. The result does not depend on
 * where reads are cut.
 *
 * Trust boundary: bytes of a peer. What goes out may be any bytes, NULs and broken UTF-8 too. */
#ifndef SSE_H
#define SSE_H
#include "str.h"

enum {
    SSE_EVENT_MAX = 8 << 20,   /* one event, and one line: more is no answer of a model */
    SSE_STREAM_MAX = 64 << 20, /* all of it, framing and comments included */
};

enum sse_form { SSE_EVENTS, SSE_LINES }; /* text/event-stream; one value a line (NDJSON), blank lines skipped */

/* name: of the event, "" when it has none. Both are NUL-terminated and borrowed. Return false to hear no more. */
typedef bool sse_event_fn(void *ud, const char *name, const char *data, size_t n);

struct sse {
    sse_event_fn *fn;
    void *ud;
    enum sse_form form;
    struct str line, name, data;
    size_t total;
    bool begun;    /* the first line is over: no BOM any more */
    bool after_cr; /* an LF that comes next belongs to it */
    bool has_data; /* an event is open, even if its data is empty */
    bool stopped;  /* fn said so: the rest is swallowed */
};

void sse_init(struct sse *s, enum sse_form form, sse_event_fn *fn, void *ud);
void sse_clear(struct sse *s);
/* -1 with ERR_DATA when a ceiling was passed; then only sse_clear() is allowed. */
must_check int sse_feed(struct sse *s, const char *data, size_t n, struct err *e);
/* The stream is over: what is open goes out. */
must_check int sse_finish(struct sse *s, struct err *e);
#endif
