/* cells_files.h - files of a session without a service: versions and branches in the store that goes with the command. Floor 5. */
#ifndef CELLS_FILES_H
#define CELLS_FILES_H
#include "store.h"

/* What that cell made and removed. What can't be kept is noted in it. */
void cells_keep(struct store *s, const char *session, struct cell *c);
/* A folder as a branch from that cell begins with; the caller closes it. */
must_check int cells_lay(struct store *s, const char *session, int cell, int *fd, struct err *e);
#endif
