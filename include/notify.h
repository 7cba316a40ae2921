/* notify.h - what systemd is told (sd_notify(3)): a datagram to the socket that it named, without libsystemd. Floor 1.
 *
 * Where nobody listens nothing is said. With a watchdog the loop itself pings: a loop that hangs is restarted, and the store makes
 * that safe. */
#ifndef NOTIFY_H
#define NOTIFY_H
#include "base.h"

struct loop;
struct notify;

/* Takes NOTIFY_SOCKET, WATCHDOG_USEC and WATCHDOG_PID out of the environment, so that no child thinks it is meant. Never NULL. */
struct notify *notify_open(struct loop *l);
/* The service answers; from here on the watchdog is fed. status: a line for `systemctl status`. */
void notify_ready(struct notify *n, const char *status);
void notify_stopping(struct notify *n, const char *status);
void notify_close(struct notify *n); /* NULL is fine */
#endif
