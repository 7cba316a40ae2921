/* claims_files.c - "I saved it as x.csv": true only when there is an x.csv (reports: 9). */
#include <ctype.h>
#include <strings.h>
#include "claims.h"

enum { SENTENCE_MAX = 600, NAME_MAX_BYTES = 120 };

static size_t extension(const char *dot)
{
    static const char *const known[] = { "csv", "tsv", "xlsx",  "xls", "ods",  "json", "jsonl", "parquet", "feather",
                                         "txt", "md",  "html",  "pdf", "docx", "png",  "jpg",   "jpeg",    "svg",
                                         "zip", "py",  "ipynb", "sql", "pptx", "gz",   "db",    "sqlite" };
    for (size_t i = 0; i < countof(known); i++) {
        const size_t n = strlen(known[i]);
        if (strncasecmp(dot + 1, known[i], n) == 0 && !isalnum((unsigned char)dot[n + 1]))
            return n + 1;
    }
    return 0;
}

/* Chinese puts the name right behind "to", "as" or "into". */
static bool behind_particle(const char *begin, const char *at)
{
    static const char *const particles[] = { "\xe5\x88\xb0", "\xe4\xb8\xba", "\xe6\x88\x90" };
    for (size_t i = 0; i < countof(particles) && at - begin >= 3; i++)
        if (memcmp(at - 3, particles[i], 3) == 0)
            return true;
    return false;
}

/* Where the name that ends at `end` begins: behind a quote or backtick when it stands in a pair of them, else behind a
 * blank; the last part of a path is the name. */
static const char *name_start(const char *begin, const char *end, char after)
{
    const char *at = end;
    const bool quoted = after && strchr("`\"'", after);
    while (at > begin && at[-1] != '\n' && at[-1] != '/') {
        if (quoted ? at[-1] == after : strchr(" \t`\"'()[]{}*<>:,;", at[-1]) || behind_particle(begin, at))
            break;
        at--;
    }
    return at;
}

static bool ends_sentence(const char *at)
{
    return *at == '\n' || (strchr(".!?;", *at) && *at && (at[1] == ' ' || at[1] == '\n' || !at[1])) ||
           strncmp(at, "\xe3\x80\x82", 3) == 0 || strncmp(at, "\xef\xbc\x9b", 3) == 0;
}

static bool says(const char *from, const char *to, const char *const *words, size_t n)
{
    for (const char *at = from; at < to; at++)
        for (size_t i = 0; i < n; i++)
            if (strncasecmp(at, words[i], strlen(words[i])) == 0)
                return true;
    return false;
}

/* The sentence around [name, end) says that it was made, and does not deny it. */
static bool is_claimed(const char *begin, const char *name, const char *end)
{
    static const char *const made[] = { "saved",
                                        "wrote",
                                        "written",
                                        "exported",
                                        "stored",
                                        "attach",
                                        "created",
                                        "generated",
                                        "download",
                                        "delivered",
                                        "\xe4\xbf\x9d\xe5\xad\x98",
                                        "\xe5\xaf\xbc\xe5\x87\xba",
                                        "\xe5\x86\x99\xe5\x85\xa5",
                                        "\xe5\xb7\xb2\xe7\x94\x9f\xe6\x88\x90",
                                        "\xe4\xb8\x8b\xe8\xbd\xbd" };
    static const char *const denied[] = { " not ",
                                          "n't ",
                                          "n\xe2\x80\x99t ",
                                          "no file",
                                          "cannot",
                                          "unable",
                                          "failed to",
                                          " if you",
                                          "\xe6\xb2\xa1",
                                          "\xe6\x9c\xaa",
                                          "\xe6\x97\xa0\xe6\xb3\x95" };
    const char *from = name, *to = end;
    while (from > begin && name - from < SENTENCE_MAX && !ends_sentence(from - 1))
        from--;
    while (*to && to - end < SENTENCE_MAX && !ends_sentence(to))
        to++;
    return says(from, to, made, countof(made)) && !says(from, to, denied, countof(denied));
}

static bool is_listed(const struct claims *c, const char *name)
{
    for (size_t i = 0; i < c->n; i++)
        if (strcmp(c->at[i], name) == 0)
            return true;
    return false;
}

void claims_files(struct claims *out, const char *markdown, bool (*exists)(const void *ud, const char *name),
                  const void *ud)
{
    for (const char *dot = strchr(markdown, '.'); dot; dot = strchr(dot + 1, '.')) {
        const size_t n = extension(dot);
        const char *end = dot + n, *name = n ? name_start(markdown, dot, *end) : dot;
        if (name == dot || end - name > NAME_MAX_BYTES || !is_claimed(markdown, name, end))
            continue;
        autofree char *text = xstrndup(name, (size_t)(end - name));
        if (!exists(ud, text) && !is_listed(out, text) && out->n < CLAIMS_MAX)
            out->at[out->n++] = take(text);
    }
}
