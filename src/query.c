/* query.c - sandbook-query: one question to a database, then it ends. Started by the service (src/tool/tool_sql.c), never by hand; what it
 * does and why is in src/tool/sql.h. Request: descriptor 0; report: 1; table: 3. */
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include "tool/sql.h"

enum {
    TABLE_FD = 3,
    REQUEST_MAX = 1 << 20,
    SPARE_BYTES = 1 << 20, /* of a file over what the table may have: the last row */
};
#define MEMORY_MAX (INT64_C(2) << 30)

static void limit(int what, int64_t most)
{
    const struct rlimit r = { (rlim_t)most, (rlim_t)most };
    (void)setrlimit((__rlimit_resource_t)what, &r);
}

static void confine(const struct json *request)
{
    (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
    (void)prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
    (void)prctl(PR_SET_DUMPABLE, 0);
    limit(RLIMIT_CORE, 0);
    limit(RLIMIT_AS, MEMORY_MAX);
    limit(RLIMIT_FSIZE, json_int_or(request, "bytes_max", 0) + SPARE_BYTES);
    limit(RLIMIT_CPU, json_int_or(request, "timeout_ms", 1000) / 1000 + 2);
}

int main(void)
{
    AUTO(str_clear) struct str text = STR_INIT(REQUEST_MAX), report = STR_INIT(SQL_REPORT_MAX);
    autojson struct json *request = NULL;
    struct err e = { 0 };
    if (str_read_fd(&text, STDIN_FILENO, &e) < 0 ||
        json_parse(&request, str_peek(&text), text.len, REQUEST_MAX, &e) < 0) {
        (void)fputs("sandbook-query answers the service only; see docs/tools.md\n", stderr);
        return 2;
    }
    confine(request);
    FILE *table = fdopen(TABLE_FD, "w");
    if (!table)
        return 2;
    autojson struct json *answer = sql_answer(request, table);
    json_print(&report, answer);
    if (fclose(table) != 0 || str_check(&report, &e) < 0)
        return 1;
    return write_all(STDOUT_FILENO, str_peek(&report), report.len) < 0;
}
