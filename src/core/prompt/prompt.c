/* prompt.c - the wording: read once, at start. */
#include "prompt.h"
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include "conf.h"
#include "json.h"
#include "prompts.h"
#include "tokens.h"
#include "core/words.h"

enum { PROMPT_FILE_MAX = 256 << 10 };

struct prompts {
    char *system, *summary;
    struct json *tools;
    int64_t tools_tokens;
    struct model_fence_words fence; /* of the notes */
    char *notes[NOTES];
};

static const struct {
    const char *file, *section;
} note_names[NOTES] = {
    [NOTE_MALFORMED] = { "repair.md", "malformed" },
    [NOTE_CUT] = { "repair.md", "cut" },
    [NOTE_UNKNOWN_TOOL] = { "repair.md", "unknown_tool" },
    [NOTE_SKIPPED] = { "repair.md", "skipped" },
    [NOTE_INTERRUPTED] = { "repair.md", "interrupted" },
    [NOTE_CANCELLED] = { "repair.md", "cancelled" },
    [NOTE_NOT_RUN_LIMIT] = { "repair.md", "not_run_limit" },
    [NOTE_SYNTAX] = { "repair.md", "syntax" },
    [NOTE_NAME] = { "repair.md", "name" },
    [NOTE_POSITION] = { "repair.md", "position" },
    [NOTE_SAME_ERROR] = { "repair.md", "same_error" },
    [NOTE_SAME_CALL] = { "repair.md", "same_call" },
    [NOTE_EMPTY] = { "repair.md", "empty" },
    [NOTE_NOT_RUN] = { "repair.md", "not_run" },
    [NOTE_NOT_RUN_AGAIN] = { "repair.md", "not_run_again" },
    [NOTE_FOREIGN] = { "repair.md", "foreign" },
    [NOTE_UNSUPPORTED] = { "repair.md", "unsupported" },
    [NOTE_NO_FILE] = { "repair.md", "no_file" },
    [NOTE_NO_CHART] = { "repair.md", "no_chart" },
    [NOTE_COUNT] = { "repair.md", "count" },
    [NOTE_HEED] = { "repair.md", "heed" },
    [NOTE_MISREAD] = { "repair.md", "misread" },
    [NOTE_OTHER] = { "repair.md", "other" },
    [NOTE_PROMISED] = { "repair.md", "promised" },
    [NOTE_UNREAD] = { "repair.md", "unread" },
    [NOTE_ANOTHER] = { "repair.md", "another" },
    [NOTE_ECHO] = { "repair.md", "echo" },
    [NOTE_LANGUAGE] = { "repair.md", "language" },
    [NOTE_RESTARTED] = { "repair.md", "restarted" },
    [NOTE_EDITED] = { "repair.md", "edited" },
    [NOTE_WITHDRAWN] = { "repair.md", "withdrawn" },
    [NOTE_WITHDRAWN_VERSION] = { "repair.md", "withdrawn_version" },
    [NOTE_SANDBOX] = { "repair.md", "sandbox" },
    [NOTE_FILES_BRIEF] = { "repair.md", "files_brief" },
    [NOTE_SQUEEZED] = { "repair.md", "squeezed" },
    [NOTE_SUMMARY] = { "repair.md", "summary" },
    [NOTE_SUMMARY_TAKEN] = { "repair.md", "summary_taken" },
    [NOTE_TOOL_TABLE] = { "repair.md", "tool_table" },
    [NOTE_TOOL_FILE] = { "repair.md", "tool_file" },
    [NOTE_FINAL_BUDGET] = { "final.md", "budget" },
    [NOTE_FINAL_REPAIRS] = { "final.md", "repairs" },
    [NOTE_FINAL_MALFORMED] = { "final.md", "malformed" },
    [NOTE_FINAL_STEPS] = { "final.md", "steps" },
    [NOTE_FINAL_TIME] = { "final.md", "time" },
    [NOTE_FINAL_LOOP] = { "final.md", "loop" },
    [NOTE_FINAL_EMPTY] = { "final.md", "empty" },
    [NOTE_FINAL_ASK] = { "final.md", "ask" },
    [NOTE_FENCE_HOW] = { "fence.md", "how" },
    [NOTE_FENCE_REMIND] = { "fence.md", "remind" },
    [NOTE_FENCE_OUTPUT] = { "fence.md", "output" },
    [NOTE_FENCE_FAILED] = { "fence.md", "failed" },
    [NOTE_FENCE_TOOLS] = { "fence.md", "tools" },
    [NOTE_ASKS_COMPUTE] = { "asks.md", "compute" },
    [NOTE_ASKS_TALK] = { "asks.md", "talk" },
    [NOTE_ASKS_PROGRAM] = { "asks.md", "program" },
    [NOTE_ASKS_PROMISE] = { "asks.md", "promise" },
    [NOTE_ASKS_OFFER] = { "asks.md", "offer" },
    [NOTE_ASKS_LANGUAGE] = { "asks.md", "language" },
};

/* ---- reading ---- */

static int read_prompt(struct str *out, const char *dir, const char *name, struct err *e)
{
    autofree char *path = xasprintf("%s/%s", dir, name);
    str_clear(out);
    if (str_read_file(out, path, e) < 0) {
        e->kind = ERR_CONFIG;
        return err_wrap(e, "prompts");
    }
    if (!utf8_valid(str_peek(out), out->len))
        return err_set(e, ERR_CONFIG, "prompts: %.180s is not UTF-8", path);
    return 0;
}

/* What stands under "## name", without blank lines around it; NULL: no such section. */
static char *section(const char *text, const char *name)
{
    autofree char *heading = xasprintf("## %s\n", name);
    const char *at = strstr(text, heading);
    while (at && at != text && at[-1] != '\n')
        at = strstr(at + 1, heading);
    if (!at)
        return NULL;
    at += strlen(heading);
    at += strspn(at, "\n");
    const char *end = strstr(at, "\n## ");
    size_t n = end ? (size_t)(end - at) : strlen(at);
    while (n && at[n - 1] == '\n')
        n--;
    return n ? xstrndup(at, n) : NULL;
}

static int load_notes(struct prompts *p, const char *dir, const char *file, struct err *e)
{
    AUTO(str_clear) struct str text = STR_INIT(PROMPT_FILE_MAX);
    if (read_prompt(&text, dir, file, e) < 0)
        return -1;
    for (size_t i = 0; i < NOTES; i++) {
        if (strcmp(note_names[i].file, file) != 0)
            continue;
        p->notes[i] = section(str_peek(&text), note_names[i].section);
        if (!p->notes[i])
            return err_set(e, ERR_CONFIG, "prompts: %s has no section \"## %s\"", file, note_names[i].section);
    }
    return 0;
}

static int load_tools(struct prompts *p, const char *dir, struct err *e)
{
    AUTO(str_clear) struct str text = STR_INIT(PROMPT_FILE_MAX);
    if (read_prompt(&text, dir, "tools.json", e) < 0)
        return -1;
    if (json_parse(&p->tools, str_peek(&text), text.len, PROMPT_FILE_MAX, e) < 0)
        return err_wrap(e, "prompts: tools.json");
    if (json_type(p->tools) != JSON_ARRAY || json_len(p->tools) == 0)
        return err_set(e, ERR_CONFIG, "prompts: tools.json must be a list of tools");
    p->tools_tokens = tokens_of_text(str_peek(&text));
    return 0;
}

/* What an operator says the data is about; a word, so that it names nothing outside its folder. */
static int add_domain(struct str *system, const char *dir, const char *domain, struct err *e)
{
    AUTO(str_clear) struct str text = STR_INIT(PROMPT_FILE_MAX);
    static const char good[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-";
    if (!*domain)
        return 0;
    if (strspn(domain, good) != strlen(domain))
        return err_set(e, ERR_CONFIG, "agent.domain must be the name of a file in prompts/domains, without .md");
    autofree char *name = xasprintf("domains/%s.md", domain);
    if (read_prompt(&text, dir, name, e) < 0)
        return err_wrap(e, "agent.domain");
    str_printf(system, "\n%s", str_peek(&text));
    return 0;
}

static int load_system(struct prompts *p, const char *dir, const struct conf *c, struct err *e)
{
    AUTO(str_clear) struct str text = STR_INIT(PROMPT_FILE_MAX);
    char timeout[32], memory[32];
    if (read_prompt(&text, dir, "system.md", e) < 0 || add_domain(&text, dir, c->domain, e) < 0)
        return -1;
    (void)snprintf(timeout, sizeof(timeout), "%" PRId64 " seconds", c->cell_timeout_ms / 1000);
    (void)snprintf(memory, sizeof(memory), "%" PRId64 " MB of memory", c->memory_bytes >> 20);
    const char *const pairs[][2] = { { "cell_timeout", timeout }, { "memory", memory }, { NULL, NULL } };
    p->system = words_fill(str_peek(&text), "{{", "}}", pairs);
    return 0;
}

static int load_summary(struct prompts *p, const char *dir, struct err *e)
{
    AUTO(str_clear) struct str text = STR_INIT(PROMPT_FILE_MAX);
    if (read_prompt(&text, dir, "summary.md", e) < 0)
        return -1;
    p->summary = str_take(&text);
    return 0;
}

int prompts_load(struct prompts **out, const struct conf *c, struct err *e)
{
    autofree char *dir = NULL;
    if (prompt_dir_resolve(&dir, c->prompts_dir, e) < 0)
        return -1;
    struct prompts *p = xcalloc(1, sizeof(*p));
    if (load_system(p, dir, c, e) < 0 || load_notes(p, dir, "repair.md", e) < 0 ||
        load_notes(p, dir, "final.md", e) < 0 || load_notes(p, dir, "fence.md", e) < 0 ||
        load_notes(p, dir, "asks.md", e) < 0 || load_tools(p, dir, e) < 0 || load_summary(p, dir, e) < 0) {
        prompts_free(p);
        return -1;
    }
    p->fence = (struct model_fence_words){ p->notes[NOTE_FENCE_HOW], p->notes[NOTE_FENCE_REMIND],
                                           p->notes[NOTE_FENCE_OUTPUT], p->notes[NOTE_FENCE_FAILED], NULL };
    *out = p;
    return 0;
}

void prompts_free(struct prompts *p)
{
    if (!p)
        return;
    for (size_t i = 0; i < NOTES; i++)
        free(p->notes[i]);
    json_free(p->tools);
    free(p->system);
    free(p->summary);
    free(p);
}

/* ---- giving ---- */

const char *prompts_system(const struct prompts *p)
{
    return p->system;
}

const struct json *prompts_tools(const struct prompts *p)
{
    return p->tools;
}

int64_t prompts_tools_tokens(const struct prompts *p)
{
    return p->tools_tokens;
}

const struct model_fence_words *prompts_fence(const struct prompts *p)
{
    return &p->fence;
}

const char *prompts_summary(const struct prompts *p)
{
    return p->summary;
}

char *prompts_note(const struct prompts *p, enum prompt_note n, const char *a, const char *b)
{
    const char *const pairs[][2] = { { "a", a }, { "b", b }, { NULL, NULL } };
    return words_fill(p->notes[n], "{{", "}}", pairs);
}

void prompt_nonce(char out[PROMPT_NONCE_SIZE])
{
    uint8_t random[(PROMPT_NONCE_SIZE - 1) / 2];
    if (getentropy(random, sizeof(random)) < 0)
        abort();
    for (size_t i = 0; i < sizeof(random); i++)
        (void)snprintf(out + 2 * i, 3, "%02x", random[i]);
}
