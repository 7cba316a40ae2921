/* ids.h - names of things in Matrix, checked before they become part of a path. Floor 3; pure. */
#ifndef MATRIX_IDS_H
#define MATRIX_IDS_H
#include "base.h"

enum { MX_ID_MAX = 255 };

/* Sigil, 2 to 255 bytes, no control characters or blanks. Room ids of version 12 have no server part. */
bool mx_is_user(const char *id);  /* "@name:server" */
bool mx_is_room(const char *id);  /* "!..." */
bool mx_is_event(const char *id); /* "$..." */
/* "server" of "@name:server"; "" when there is none. Borrowed from id. */
const char *mx_server_of(const char *user);
/* "name" of "@name:server"; caller frees. */
char *mx_localpart(const char *user);
/* As one segment of a path: all but letters, digits and -._~ as %XX. Caller frees. */
char *mx_escape(const char *segment);
/* Bytes for %XX; what is no such sequence stays. Caller frees. */
char *mx_unescape(const char *text);
/* "mxc://server/media" of a well-formed address only: names that can't leave their place in a path. Caller frees both. */
bool mx_split_mxc(const char *url, char **server, char **media);
/* Does a name match one of the patterns (parted by blanks or commas; * and ? stand for any)? */
bool mx_matches(const char *patterns, const char *name);
#endif
