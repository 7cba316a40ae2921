/* tool_secret.h - a service's key in the forms in which a server may repeat it: nothing of them reaches a model, a box or the log. Pure. */
#ifndef TOOL_SECRET_H
#define TOOL_SECRET_H
#include "base.h"

struct tool_secret;
/* The forms of a key: as it is, percent-encoded, as JSON writes it, in base64; and, of a key that is base64 itself (Authorization: Basic),
 * what it holds: "user:password", and the password. NULL when secret is NULL or "". */
struct tool_secret *tool_secret_new(const char *secret);
void tool_secret_free(struct tool_secret *s); /* wipes them; NULL is fine */
/* Every form becomes asterisks, in place. NULL is fine. */
void tool_secret_mask(const struct tool_secret *s, char *text);
#endif
