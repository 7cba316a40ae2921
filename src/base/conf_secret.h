/* conf_secret.h - private to conf.c: files that hold a secret. conf_read_secret() is declared in conf.h. */
#ifndef CONF_SECRET_H
#define CONF_SECRET_H
#include "err.h"

/* Where a SECRET value points: a bare name lies in $CREDENTIALS_DIRECTORY (systemd's LoadCredential=) when that is
 * set. The caller frees it. */
char *conf_secret_path(const char *value);
/* ERR_CONFIG unless path is a regular file that only its owner may read. */
must_check int conf_secret_check(const char *path, struct err *e);
#endif
