/* sql_answer.c - a request as JSON, answered as JSON; the table goes its own way. */
#include "sql.h"

enum { LINE_MAX_BYTES = SQL_DESCRIPTION_MAX };

static struct json *error(const struct err *e)
{
    struct json *out = json_new_object();
    if (e->kind == ERR_CONFIG) {
        json_set_str(out, "error", "the database could not be read; whoever runs this service has to look at it");
        json_set_str(out, "log", e->msg);
    } else {
        json_set_str(out, "error", e->msg);
    }
    return out;
}

static struct json *described(const struct sql_ops *ops, const struct sql_request *r)
{
    AUTO(str_clear) struct str text = STR_INIT(LINE_MAX_BYTES);
    struct err e = { 0 };
    if (ops->describe(r, &text, &e) < 0)
        return error(&e);
    struct json *out = json_new_object();
    json_set_str(out, "text", str_peek(&text));
    json_set_bool(out, "more", text.overflow);
    return out;
}

static struct json *queried(const struct sql_ops *ops, const struct sql_request *r, FILE *table)
{
    AUTO(sql_sink_clear) struct sql_sink sink = { .out = table, .rows_max = r->rows_max, .bytes_max = r->bytes_max };
    struct err e = { 0 };
    if (ops->query(r, &sink, &e) < 0)
        return error(&e);
    if (fflush(table) != 0) {
        (void)err_set(&e, ERR_CONFIG, "the table could not be written");
        return error(&e);
    }
    struct json *out = json_new_object();
    json_set(out, "columns", take(sink.columns));
    json_set(out, "preview", take(sink.preview));
    json_set_int(out, "rows", sink.rows);
    json_set_int(out, "guarded", sink.guarded);
    json_set_bool(out, "more", sink.more);
    return out;
}

struct json *sql_answer(const struct json *request, FILE *table)
{
    const struct sql_request r = {
        .kind = json_str_or(request, "kind", ""),
        .path = json_str_or(request, "path", ""),
        .dsn = json_str_or(request, "dsn", ""),
        .verb = json_str_or(request, "verb", ""),
        .sql = json_str_or(request, "sql", ""),
        .rows_max = json_int_or(request, "rows_max", 1),
        .bytes_max = json_int_or(request, "bytes_max", 1),
        .timeout_ms = json_int_or(request, "timeout_ms", 1),
    };
    const struct sql_ops *ops = strcmp(r.kind, "postgres") == 0 ? &sql_postgres : &sql_sqlite;
    return strcmp(r.verb, "describe_database") == 0 ? described(ops, &r) : queried(ops, &r, table);
}
