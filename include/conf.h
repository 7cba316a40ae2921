/* conf.h - every setting, once: the tables below are parser, defaults and manual. Floor 0.
 *
 * Precedence: default < file < --set.
 *
 * The file: UTF-8; [section], or [model NAME], [tool NAME], [database NAME]; one "key = value" a line, blanks around both removed, the rest taken as it
 * is, without quotes or escapes. A line that begins with # or ; is a comment; within a value both are ordinary.
 *
 * Types: STR, INT (from 0), BOOL (yes/no), MS ("90s", "5m", "250ms", "1h"; kept in milliseconds), SIZE (bytes, "64K", "1G";
 * kept in bytes), MONEY ("2", "0.25"; kept in millionths), SECRET (path of a regular file that only its owner may read; refused otherwise when set. A name
 * without / lies in $CREDENTIALS_DIRECTORY when systemd set that). */
#ifndef CONF_H
#define CONF_H
#include "err.h"

/* clang-format off */

/* One row is one setting. */
/*    section     key                 type    field               default    help */
#define CONF_TABLE(X)                                                                                              \
    X("service",  "data_dir",         STR,    data_dir,           "",        "where everything durable lives; empty: /var/lib/sandbook for root, else ~/.local/state/sandbook") \
    X("service",  "log_level",        STR,    log_level,          "auto",    "error, warn, info or debug; auto: info for the service, warn for other commands")          \
    X("service",  "prompts_dir",      STR,    prompts_dir,        "",        "folder of the prompts; empty: the installed ones") \
    X("service",  "forget_after",     MS,     forget_after_ms,    "0s",      "a conversation without a word for so long is forgotten, with its files; at least 1d; 0s: never") \
    X("agent",    "model",            STR,    model,              "builtin", "name of a [model NAME] section, or builtin") \
    X("agent",    "fallback",         STR,    fallback,           "",        "models that take over when the chosen one fails, by commas, in their order") \
    X("agent",    "max_steps",        INT,    max_steps,          "15",      "model calls in one turn")             \
    X("agent",    "max_repairs",      INT,    max_repairs,        "3",       "failed cells in a row before the turn gives up") \
    X("agent",    "max_malformed",    INT,    max_malformed,      "2",       "malformed calls in a row before the turn gives up") \
    X("agent",    "turn_timeout",     MS,     turn_timeout_ms,    "300s",    "wall clock of one turn")              \
    X("agent",    "output_head",      SIZE,   output_head_bytes,  "6K",      "of a long output the model sees this much of the beginning") \
    X("agent",    "output_tail",      SIZE,   output_tail_bytes,  "2K",      "and this much of the end")            \
    X("agent",    "domain",           STR,    domain,             "",        "what the data is about: name of a file in prompts/domains (finance, biology, operations, survey)") \
    X("budget",   "currency",         STR,    currency,           "USD",     "what prices and budgets are counted in; a word") \
    X("budget",   "turn_tokens",      INT,    turn_tokens,        "0",       "tokens of one question; 0: no limit, here and below") \
    X("budget",   "turn_money",       MONEY,  turn_money,         "0",       "money of one question")               \
    X("budget",   "person_tokens",    INT,    person_tokens,      "0",       "tokens of one person a day (from 00:00 UTC)") \
    X("budget",   "person_money",     MONEY,  person_money,       "0",       "money of one person a day")           \
    X("budget",   "room_tokens",      INT,    room_tokens,        "0",       "tokens of one room a day")            \
    X("budget",   "room_money",       MONEY,  room_money,         "0",       "money of one room a day")             \
    X("budget",   "day_tokens",       INT,    day_tokens,         "0",       "tokens of all together a day")        \
    X("budget",   "day_money",        MONEY,  day_money,          "0",       "money of all together a day")         \
    X("box",      "keeper",           STR,    keeper,             "",        "path of sandbook-box; empty: beside this program") \
    X("box",      "socket",           STR,    box_socket,         "",        "a keeper that runs by itself, as another user: path of its socket; empty: start one") \
    X("box",      "image",            STR,    image,              "",        "root tree of the box image; empty: the cached one") \
    X("box",      "support",          STR,    box_support,        "",        "folder with the box's own programs and kernel; empty: beside this program") \
    X("box",      "cell_timeout",     MS,     cell_timeout_ms,    "60s",     "wall clock of one cell; then an interrupt, then a kill") \
    X("box",      "cell_timeout_max", MS,     cell_timeout_max_ms, "300s",   "the longest that --timeout or a tier may ask for") \
    X("box",      "memory",           SIZE,   memory_bytes,       "1G",      "memory of one session")               \
    X("box",      "disk",             SIZE,   disk_bytes,         "384M",    "files of one session in the box; counts as its memory") \
    X("box",      "pids",             INT,    pids,               "128",     "processes and threads of one session") \
    X("box",      "cpus",             INT,    cpus,               "1",       "processors one session may keep busy") \
    X("box",      "copies",           INT,    copies,             "8",       "states of the past that a session keeps, to go back to; 0 to 64") \
    X("box",      "idle_checkpoint",  MS,     idle_checkpoint_ms, "1800s",   "a session idle so long is written down and its box closed; 0s: never") \
    X("box",      "checkpoint_every", MS,     checkpoint_every_ms, "300s",   "after an answer, when the last checkpoint is older; 0s: never") \
    X("box",      "checkpoint_max",   SIZE,   checkpoint_max_bytes, "2G",    "variables of one session on disk")    \
    X("box",      "checkpoint_timeout", MS,   checkpoint_timeout_ms, "30s",  "for writing or reading one checkpoint") \
    X("box",      "rerun_timeout",    MS,     rerun_timeout_ms,   "60s",     "for running cells again that no checkpoint has; 0s: none are") \
    X("box",      "stop_timeout",     MS,     stop_timeout_ms,    "20s",     "at the service's end, for checkpoints of the sessions that live") \
    X("box",      "pool",             INT,    pool,               "2",       "boxes that wait ready for new sessions of sandbook run; 0 to 64") \
    X("box",      "zygote_forks",     INT,    zygote_forks,       "1000",    "interpreters forked from one before another takes its place; 0: no matter") \
    X("box",      "zygote_age",       MS,     zygote_age_ms,      "3600s",   "the age at which another takes its place; 0: no matter") \
    X("box",      "audit",            STR,    audit,              "note",    "what a cell's risky calls lead to before it runs: off, note or refuse; a hint, not a wall") \
    X("box",      "min_tier",         STR,    min_tier,           "T1",      "T0 all layers, T1 without delegated cgroups; less is never served") \
    X("box",      "uid_base",         INT,    uid_base,           "2000000", "as root: first of 65,536 user ids that nobody else uses; a plain user has its own") \
    X("files",    "upload_max",       SIZE,   upload_max_bytes,   "100M",    "one uploaded file")                   \
    X("files",    "session_max",      SIZE,   session_max_bytes,  "2G",      "all files of one session, with their versions") \
    X("files",    "archive_max",      SIZE,   archive_max_bytes,  "200M",    "what one archive may unpack to")      \
    X("files",    "archive_entries",  INT,    archive_entries,    "1000",    "files in one archive")                \
    X("files",    "result_max",       SIZE,   result_max_bytes,   "3M",      "one picture shown inline")            \
    X("access",   "people",           STR,    access_people,      "",        "ids of those who may ask, with * and ?, separated by blanks; empty: everybody who can write to the bot") \
    X("access",   "rooms",            STR,    access_rooms,       "",        "ids of the rooms where it answers, in the same way; direct messages always count; empty: all") \
    X("access",   "waiting",          INT,    access_waiting,     "100",     "questions of one person that may wait and run at the same time, in all conversations together; 0: no limit") \
    X("matrix",   "homeserver",       STR,    matrix_homeserver,  "",        "base address, e.g. https://matrix.example.org; empty: asked from the server named in user") \
    X("matrix",   "user",             STR,    matrix_user,        "",        "the bot's account, e.g. @bot:example.org; empty: no Matrix") \
    X("matrix",   "auth",             STR,    matrix_auth,        "auto",    "token, password, device or auto: a token file, else a password file, else device (a person opens a page once)") \
    X("matrix",   "password_file",    SECRET, matrix_password_file, "",      "path of the account's password; used once, then a token is kept in data_dir") \
    X("matrix",   "access_token_file", SECRET, matrix_token_file, "",        "path of an access token, instead of a password") \
    X("matrix",   "device_name",      STR,    matrix_device_name, "Sandbook", "how people see the bot's device") \
    X("matrix",   "inviters",         STR,    matrix_inviters,    "",        "who may invite the bot: ids with * and ?, separated by blanks; empty: people of its own server; *: everybody") \
    X("matrix",   "autojoin",         STR,    matrix_autojoin,    "allowed", "invitations: allowed (from inviters), all, never") \
    X("matrix",   "max_rooms",        INT,    matrix_max_rooms,   "2000",    "invitations beyond are declined") \
    X("matrix",   "leave_when_alone", BOOL,   matrix_leave_alone, "yes",     "leave a room when all others did") \
    X("matrix",   "require_mention",  STR,    matrix_mention,     "groups",  "groups, always or never: where the bot answers only when it is addressed") \
    X("matrix",   "reply",            STR,    matrix_reply,       "thread",  "in rooms of many, an answer starts a thread, or stands in the room: thread, room") \
    X("matrix",   "msgtype",          STR,    matrix_msgtype,     "text",    "answers as text, or as notice: other bots ignore those") \
    X("matrix",   "progress",         STR,    matrix_progress,    "edits",   "typing: only the typing notice; edits: after a while also a line that is edited") \
    X("matrix",   "room_settings",    BOOL, matrix_room_settings, "yes",   "moderators of a room may say by its state how the bot behaves there (docs/matrix.md)") \
    X("matrix",   "e2ee",             STR,    matrix_e2ee,        "on",      "encrypted rooms: on; off: they are not answered; required: others are not answered") \
    X("matrix",   "recipients",       STR,    matrix_recipients,  "signed",  "whose devices can read the bot: all, signed (by their owner; people without an identity too), verified") \
    X("matrix",   "senders",          STR,    matrix_senders,     "all",     "whose devices are answered: all, signed, verified") \
    X("matrix",   "verification",     STR,    matrix_sas,         "operator", "people who verify the bot by emoji: operator (sandbook matrix verify), auto, off") \
    X("matrix",   "cross_signing",    BOOL,   matrix_cross_sign,  "yes",     "make an identity for the account when it has none, and sign the bot's device with it") \
    X("matrix",   "key_backup",       BOOL,   matrix_backup,      "yes",     "keep the keys of rooms, encrypted, on the server") \
    X("matrix",   "recovery_key_file", SECRET, matrix_recovery_file, "",     "path of the recovery key of an identity that was made elsewhere") \
    X("matrix",   "allow_http_loopback", BOOL, matrix_loopback,   "yes",     "http:// to a homeserver on this machine") \
    X("matrix",   "allow_plain_http", BOOL,   matrix_plain,       "no",      "http:// to hosts other than loopback: the token travels in the clear") \
    X("slack",    "bot_token_file",   SECRET, slack_bot_token_file, "",      "path of the bot token (xoxb-...); this or installs_file switches Slack on") \
    X("slack",    "app_token_file",   SECRET, slack_app_token_file, "",      "path of the app-level token (xapp-...): events come by Socket Mode") \
    X("slack",    "signing_secret_file", SECRET, slack_signing_secret_file, "", "path of the signing secret: events come by HTTP to `listen`") \
    X("slack",    "listen",           STR,    slack_listen,       "127.0.0.1:8087", "where events by HTTP arrive, /slack/events; TLS is a proxy's work") \
    X("slack",    "api_url",          STR,    slack_api_url,      "https://slack.com/api/", "address of the Web API; another for gateways and GovSlack") \
    X("slack",    "file_hosts",       STR,    slack_file_hosts,   "files.slack.com", "hosts that get the token when files are downloaded, apart by blanks") \
    X("slack",    "follow_hosts",     STR,    slack_follow_hosts, "*.slack.com *.slack-edge.com slack-files.com", "hosts that a download may be redirected to, without the token") \
    X("slack",    "links",            INT,    slack_links,        "1",       "Socket Mode links at the same time, 1 to 3") \
    X("slack",    "backoff_max",      MS,     slack_backoff_max_ms, "60s",   "longest pause between attempts to connect") \
    X("slack",    "recycle",          BOOL,   slack_recycle,      "no",      "ask Slack to recycle links every six minutes, to see that nothing is lost") \
    X("slack",    "follow_threads",   BOOL,   slack_follow_threads, "yes",   "answer in threads that the bot is part of without being mentioned again") \
    X("slack",    "dm_mode",          STR,    slack_dm_mode,      "thread",  "thread: each message of a DM begins a conversation; flat: a DM is one") \
    X("slack",    "external_users",   STR,    slack_external_users, "ignore", "people of other organisations (Slack Connect): ignore, answer or answer_without_files") \
    X("slack",    "status",           STR,    slack_status,       "auto",    "how a turn shows its progress: auto, agent, message or none") \
    X("slack",    "streaming",        BOOL,   slack_streaming,    "no",      "a turn's steps and the model's words as a stream that grows, instead of one line") \
    X("slack",    "feedback",         BOOL,   slack_feedback,     "yes",     "two buttons under an answer; the app's settings must have Interactivity switched on") \
    X("slack",    "catch_up",         MS,     slack_catch_up_ms,  "3600s",   "after an outage of more than five minutes: how old a missed message may be to be answered; 0: none is looked for") \
    X("slack",    "thread_context",   INT,    slack_thread_context, "20",    "messages of a thread before the bot was mentioned that a language model is told; 0: none") \
    X("slack",    "keep",             MS,     slack_keep_ms,      "604800s",    "how long message ids and timestamps are remembered, for edits and reactions") \
    X("slack",    "installs_file",    SECRET, slack_installs_file, "",       "path of a JSON array of installations, for several workspaces; rewritten when tokens rotate") \
    X("slack",    "client_id",        STR,    slack_client_id,    "",        "client id of the app: only for tokens that rotate") \
    X("slack",    "client_secret_file", SECRET, slack_client_secret_file, "", "path of the client secret: only for tokens that rotate") \
    X("status",   "listen",           STR,    status_listen,      "",        "where /health and /metrics are served, e.g. 127.0.0.1:8088; empty: nowhere") \
    X("status",   "public",           BOOL,   status_public,      "no",      "yes: listen may be an address that others reach; nobody is asked for a password") \
    X("local",    "stdio",            BOOL,   local_stdio,        "no",      "sandbook run: chat events as JSON lines on stdin, replies on stdout")

/* One [model NAME] section. */
#define CONF_MODEL_TABLE(X)                                                                                          \
    X("model",    "dialect",          STR,    dialect,            "chat",    "chat, responses, anthropic, ollama, builtin or replay") \
    X("model",    "url",              STR,    url,                "",        "base address, e.g. https://host/v1; replay: path of the recording") \
    X("model",    "name",             STR,    name,               "",        "what the server calls the model")     \
    X("model",    "key_file",         SECRET, key_file,           "",        "path of the API key; empty: none needed") \
    X("model",    "tools",            STR,    tools,              "auto",    "auto, native or fence")               \
    X("model",    "stream",           BOOL,   stream,             "yes",     "ask for the answer as it is made")    \
    X("model",    "allow_plain_http", BOOL,   allow_plain_http,   "no",      "http:// to hosts other than loopback") \
    X("model",    "context",          INT,    context_tokens,     "32768",   "tokens the model can see")            \
    X("model",    "max_output",       INT,    max_output_tokens,  "4096",    "tokens of one answer")                  \
    X("model",    "effort",           STR,    effort,             "",        "how much it reasons: none, minimal, low, medium, high, xhigh, max; empty: not said") \
    X("model",    "thinking",         STR,    thinking,           "auto",    "anthropic, ollama: on or off; auto: not said") \
    X("model",    "temperature",      STR,    temperature,        "auto",    "chance in its words, 0 to 2; auto: 0 for models without tools that do not reason, else not said; empty: not said") \
    X("model",    "system_role",      STR,    system_role,        "system",  "chat, responses: role of the system message: system, developer, or user where there is none") \
    X("model",    "api_version",      STR,    api_version,        "",        "Azure's api-version; empty: 2024-10-21 for old addresses, none for new ones") \
    X("model",    "price_in",         MONEY,  price_in,           "0",       "price of a million tokens read; 0: not known, tokens are counted only") \
    X("model",    "price_cached",     MONEY,  price_cached,       "0",       "price of a million tokens read from the provider's cache; 0: as price_in") \
    X("model",    "price_out",        MONEY,  price_out,          "0",       "price of a million tokens written")

/* One [tool NAME] section: an HTTP service that a model may call as the tool NAME. */
#define CONF_TOOL_TABLE(X)                                                                                           \
    X("tool",     "description",      STR,    description,        "",        "what the model is told about it")      \
    X("tool",     "schema",           STR,    schema,             "",        "JSON schema of its arguments: the text itself, or the path of a file; empty: none are taken") \
    X("tool",     "url",              STR,    url,                "",        "where it is; {name} is filled in from the arguments") \
    X("tool",     "method",           STR,    method,             "GET",     "GET, DELETE: other arguments go into the query; POST, PUT, PATCH: into a JSON body") \
    X("tool",     "headers",          STR,    headers,            "",        "more request headers, Name: value, divided by |") \
    X("tool",     "secret_file",      SECRET, secret_file,        "",        "path of a key for it; empty: none") \
    X("tool",     "secret_header",    STR,    secret_header,      "Authorization: Bearer {secret}", "the header that carries it") \
    X("tool",     "result_max",       SIZE,   result_max_bytes,   "16K",     "of an answer the model sees this much; longer ones also become a file") \
    X("tool",     "timeout",          MS,     timeout_ms,         "20s",     "wall clock of one call")               \
    X("tool",     "allow_plain_http", BOOL,   allow_plain_http,   "no",      "http:// to hosts other than loopback")

/* One [database NAME] section: read by the tools query_database and describe_database. */
#define CONF_DATABASE_TABLE(X)                                                                                       \
    X("database", "kind",             STR,    kind,               "sqlite",  "sqlite or postgres")                   \
    X("database", "path",             STR,    path,               "",        "sqlite: path of the file")             \
    X("database", "dsn_file",         SECRET, dsn_file,           "",        "postgres: path of a file with the connection string") \
    X("database", "description",      STR,    description,        "",        "what the model is told about it")      \
    X("database", "rows_max",         INT,    rows_max,           "100000",  "rows of one result; the rest is left out") \
    X("database", "bytes_max",        SIZE,   bytes_max,          "32M",     "bytes of one result")                  \
    X("database", "timeout",          MS,     timeout_ms,         "30s",     "wall clock of one query")
/* clang-format on */

#define CONF_C_STR    char *
#define CONF_C_INT    int64_t
#define CONF_C_BOOL   bool
#define CONF_C_MS     int64_t
#define CONF_C_SIZE   int64_t
#define CONF_C_MONEY  int64_t
#define CONF_C_SECRET char *

struct conf_model {
    char *section; /* NAME of [model NAME] */
#define X(sec, key, type, field, def, help) CONF_C_##type field;
    CONF_MODEL_TABLE(X)
#undef X
};

struct conf_tool {
    char *section; /* NAME of [tool NAME] */
#define X(sec, key, type, field, def, help) CONF_C_##type field;
    CONF_TOOL_TABLE(X)
#undef X
};

struct conf_database {
    char *section; /* NAME of [database NAME] */
#define X(sec, key, type, field, def, help) CONF_C_##type field;
    CONF_DATABASE_TABLE(X)
#undef X
};

struct conf {
#define X(sec, key, type, field, def, help) CONF_C_##type field;
    CONF_TABLE(X)
#undef X
    struct conf_model *models; /* builtin, then in the order of the file */
    size_t model_n;
    struct conf_tool *tools;
    size_t tool_n;
    struct conf_database *databases;
    size_t database_n;
    bool one_session; /* of no file: the command has one, and nobody comes after it */
};

/* All defaults, no file; models[0] is "builtin", which no file and no --set can change. */
void conf_init(struct conf *c);
void conf_clear(struct conf *c);
/* Read text over what is there. Unknown sections and keys, bad values, keys given twice in one text and unsafe secret
 * files are ERR_CONFIG with the line. After an error c holds what was read up to there; conf_clear() it. */
must_check int conf_parse(struct conf *c, const char *text, struct err *e);
must_check int conf_load(struct conf *c, const char *path, struct err *e);
/* One "section.key=value" ("model.NAME.key=value", tool and database alike) of the command line. A new NAME makes a new section. */
must_check int conf_set(struct conf *c, const char *assignment, struct err *e);
/* Checks that need the whole: models named, words known, ranges, addresses. */
must_check int conf_check(const struct conf *c, struct err *e);
/* The section by name; "builtin" always exists. NULL: none. */
const struct conf_model *conf_find_model(const struct conf *c, const char *name);
enum { CONF_NAME_SIZE = 65 };
/* The i-th name of agent.fallback; false: there are no more. */
bool conf_fallback(const struct conf *c, size_t i, char name[CONF_NAME_SIZE]);
const struct conf_tool *conf_find_tool(const struct conf *c, const char *name); /* NULL: none */
const struct conf_database *conf_find_database(const struct conf *c, const char *name);
/* Walk all rows for --help and check-config; false at the end. First the single settings, then those of each [model NAME],
 * [tool NAME] and [database NAME]; while there is none of a kind (but builtin), once its rows with their defaults, as a template
 * named "NAME". */
struct conf_row {
    const char *section, *key, *def, *help;
    const char *name;  /* NAME of [model NAME] and its like; NULL in other sections */
    const char *value; /* the present one as text; borrowed from c and from this row */
    char text[32];
};
bool conf_row(const struct conf *c, size_t i, struct conf_row *out);
/* Read the one-line secret behind a SECRET field, blanks around it removed; printable ASCII only, at most 4 KiB. The
 * caller wipes (explicit_bzero) and frees it. */
must_check int conf_read_secret(char **out, const char *path, struct err *e);
#endif
