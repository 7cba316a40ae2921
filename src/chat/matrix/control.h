/* control.h - what an operator asks the Matrix adapter: over a socket in data_dir while the service runs, else in the same process.
 * Floor 3; the command line is its other end.
 *
 * One request, one answer, each a JSON object on a line. {"do": "status"}; {"do": "verify"} lists who verifies us by emoji, with "txn"
 * and "match": true or false it says whether they are the same; {"do": "verify", "user": ID, "trust": true or false} takes a
 * user's identity for right without; {"do": "recovery"} shows the recovery key once, {"do": "recovery", "taken": true} forgets it;
 * {"do": "rotate", "room": ID}; {"do": "leave", "room": ID}; {"do": "room", "room": ID, "set": {KEY: WORD}} says what is
 * known of a room, after it was told how to behave there (WORD "": as configured); {"do": "logout"} ends the session on the server and forgets its device. The
 * answer has "error" when it did not work. */
#ifndef MATRIX_CONTROL_H
#define MATRIX_CONTROL_H
#include "json.h"

struct chat;

#define MATRIX_SOCKET "matrix.sock"
enum { MATRIX_CONTROL_MAX = 1 << 20 }; /* bytes of a line */

/* done is called once, maybe before this returns; reply is borrowed. */
typedef void matrix_control_fn(void *ud, const struct json *reply);
void matrix_control(struct chat *c, const struct json *request, matrix_control_fn *done, void *ud);
/* Logged in and syncing: 1; down for good: -1; else 0. */
int matrix_is_up(const struct chat *c);
/* And encryption has what the configuration wants of it: the device is signed, keys are backed up. */
bool matrix_is_settled(const struct chat *c);
#endif
