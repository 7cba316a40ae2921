/* claims_files.c - "I saved it as x.csv", "I read x.csv": true only when there is an x.csv. */
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
    static const char *const particles[] = { "到", "为", "成", "は", "を", "に", "が", "在", "自" };
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
    return *at == '\n' || (strchr(".!;", *at) && *at && (at[1] == ' ' || at[1] == '\n' || !at[1])) ||
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

/* The sentence around [name, end) says that it was made or read, and does not deny it. */
static bool is_claimed(const char *begin, const char *name, const char *end)
{
    static const char *const made[] = {
        "saved",      "wrote",
        "written",    "exported",
        "stored",     "attach",
        "created",    "generated",
        "download",   "delivered",
        "i read",     "i loaded",
        "i opened",   "i used",
        "i analysed", "i analyzed",
        "is in ",     "are in ",
        "see ",       "here is",
        "find ",      "gespeichert",
        "exportiert", "erstellt",
        "enregistr",  "export\xc3\xa9",
        "guardado",   "exportado",
        "сохран",     "записан",
        "保存",       "导出",
        "salvato",    "esportat",
        "salvo ",     "salvei",
        "opgeslagen", "ge\xc3\xabxporteerd",
        "zapisan",    "zapisa\xc5\x82",
        "書き出し",   "저장",
        "写入",       "已生成",
        "下载",       "저장",
    };
    static const char *const denied[] = {
        " not ", "n't ",  "n\xe2\x80\x99t ", "no file", "there is no", "cannot", "unable",  "failed to",
        " if ",  " non ", " niet ",          " nie ",   "could ",      "would ", "should ", " can ",
        "?",     "kein",  " pas ",           "没",      "未",          "无法",   "不能",    "可以",
        "？",    "e.g.",  "such as",         "example",
    };
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

/* Part of a program: df.to_csv('x.csv') */
static bool in_call(const char *begin, const char *dot)
{
    const char *at = dot;
    while (at > begin && !strchr("\n`'\"(", at[-1]))
        at--;
    return at - begin >= 2 && (at[-1] == '\'' || at[-1] == '"') && at[-2] == '(';
}

void claims_files(struct claims *out, const char *markdown, bool (*exists)(const void *ud, const char *name),
                  const void *ud)
{
    for (const char *dot = strchr(markdown, '.'); dot; dot = strchr(dot + 1, '.')) {
        const size_t n = in_call(markdown, dot) ? 0 : extension(dot);
        const char *end = dot + n, *name = n ? name_start(markdown, dot, *end) : dot;
        if (name == dot || end - name > NAME_MAX_BYTES || !is_claimed(markdown, name, end))
            continue;
        autofree char *text = xstrndup(name, (size_t)(end - name));
        if (!exists(ud, text) && !is_listed(out, text) && out->n < CLAIMS_MAX)
            out->at[out->n++] = take(text);
    }
}
