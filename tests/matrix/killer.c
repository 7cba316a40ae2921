/* killer.c - loaded before a daemon under test: it dies around its n-th commit, with a SIGKILL, as from a power switch.
 *
 * A file named by KILLER_FILE says when: "before 3" or "after 3", from the moment the file is there. It goes with the process. */
#include <dlfcn.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct sqlite3;
typedef int exec_fn(struct sqlite3 *db, const char *sql, int (*row)(void *, int, char **, char **), void *ud, char **why);
exec_fn sqlite3_exec;

static int left = -1;
static int after;

static void look(const char *path)
{
    char when[8] = "";
    FILE *f = left < 0 ? fopen(path, "re") : NULL;
    if (!f)
        return;
    if (fscanf(f, "%7s %d", when, &left) != 2) /* NOLINT(cert-err34-c) */
        left = -1;
    after = strcmp(when, "after") == 0;
    (void)fclose(f);
}

static void die(const char *path)
{
    (void)unlink(path);
    (void)kill(getpid(), SIGKILL);
}

int sqlite3_exec(struct sqlite3 *db, const char *sql, int (*row)(void *, int, char **, char **), void *ud, char **why)
{
    static exec_fn *real;
    const char *path = getenv("KILLER_FILE");
    const int commits = strcmp(sql, "COMMIT") == 0;
    if (!real) {
        void *found = dlsym(RTLD_NEXT, "sqlite3_exec");
        memcpy(&real, &found, sizeof(real));
    }
    if (path && commits)
        look(path);
    const int now = commits && left > 0 && --left == 0;
    if (now && !after)
        die(path);
    const int rc = real(db, sql, row, ud, why);
    if (now && after)
        die(path);
    return rc;
}
