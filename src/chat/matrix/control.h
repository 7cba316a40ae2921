/* control.h - what an operator asks the Matrix adapter: over a socket in data_dir while the service runs, else in the same
 * process. Floor 3; the command line (sandbook matrix) is its other end.
 *
 * One request, one answer, each a JSON object on a line. Requests:
 *   {"do": "status"}
 *   {"do": "verify"}                                       who verifies us by emoji
 *   {"do": "verify", "txn": T, "match": true|false}        the emoji are the same, or not
 *   {"do": "verify", "user": ID, "trust": true|false}      the user's identity is right, or not, without emoji
 *   {"do": "block", "user": ID, "device": ID, "on": true|false}   that device gets no room keys, or does again
 *   {"do": "reset"}                                        a new identity for the account, with a new recovery key and backup
 *   {"do": "recovery"}                                     shows the recovery key
 *   {"do": "recovery", "taken": true}                      forgets it here
 *   {"do": "rotate", "room": ID}                           the next message has a new room key
 *   {"do": "leave", "room": ID}
 *   {"do": "room", "room": ID, "set": {KEY: WORD}}         how to behave there (WORD "": as configured)
 *   {"do": "logout"}                                       ends the session on the server, forgets its device
 * The answer has "error" when it did not work. */
#ifndef MATRIX_CONTROL_H
#define MATRIX_CONTROL_H
#include "json.h"

struct chat;

#define MATRIX_SOCKET "matrix.sock"
enum { MATRIX_CONTROL_MAX = 1 << 20 }; /* bytes of a line */

/* done is called once, maybe before this returns; reply is borrowed. */
typedef void matrix_control_fn(void *ud, const struct json *reply);
void matrix_control(struct chat *c, const struct json *request, matrix_control_fn *done, void *ud);
/* A login was kept, be it good or not. */
bool matrix_has_session(const struct chat *c);
/* Logged in and syncing: 1; down for good: -1; else 0. */
int matrix_is_up(const struct chat *c);
/* And encryption has what the configuration wants of it: the device is signed, keys are backed up. */
bool matrix_is_settled(const struct chat *c);
#endif
