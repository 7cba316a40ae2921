/* What a walk of a hostile folder may meet, judged, listed, compared. Two trees are read from the input; whoever knows the first
 * and is told the changes must know the second, and no path that is told leads anywhere but down. */
#include <stdlib.h>
#include <sys/stat.h>
#include "box_collect.h"
#include "str.h"

enum { ENTRIES_MAX = 64, KINDS = 8 };

static void check(bool right)
{
    if (!right)
        abort();
}

struct input {
    const uint8_t *at, *end;
};

static unsigned byte(struct input *in)
{
    return in->at < in->end ? *in->at++ : 0;
}

static char *text(struct input *in)
{
    size_t n = byte(in) * (byte(in) % 8 == 0 ? 5U : 1U), have = (size_t)(in->end - in->at);
    n = n < have ? n : have;
    const char *from = (const char *)in->at;
    in->at += n;
    return xstrndup(from, n); /* up to a NUL, as names end */
}

static void check_path(const char *path)
{
    size_t n = strlen(path);
    check(n > 0 && n <= BOX_PATH_MAX && utf8_valid(path, n) && path[0] != '/');
    for (const char *part = path; part; part = strchr(part, '/')) {
        part += *part == '/';
        size_t k = strcspn(part, "/");
        check(k > 0 && k <= BOX_NAME_MAX && !(k == 1 && part[0] == '.') &&
              !(k == 2 && part[0] == '.' && part[1] == '.'));
    }
    for (const char *at = path; *at;) {
        uint32_t c = utf8_next(&at);
        check(c >= 0x20 && (c < 0x7f || c >= 0xa0));
    }
}

/* One entry, below the folder that prefix says; a folder becomes the prefix of what follows. */
static void entry(struct input *in, struct box_listing *l, char prefix[BOX_PATH_MAX + 2], int *depth)
{
    static const unsigned modes[KINDS] = { S_IFREG, S_IFREG, S_IFDIR, S_IFCHR, S_IFLNK, S_IFIFO, S_IFSOCK, S_IFDIR };
    char path[BOX_PATH_MAX + 1];
    const char *why = NULL;
    const unsigned what = byte(in), flags = byte(in) & 3, number = byte(in);
    autofree char *name = text(in);
    const struct box_seen seen = { prefix, name, *depth, modes[what % KINDS], what & 8 ? 259 : 0 };
    enum box_kind kind = box_judge(&seen, flags, path, &why);
    check((why != NULL) == (kind == BOX_IS_REFUSED));
    if (kind == BOX_IS_NOTHING)
        return;
    if (kind != BOX_IS_REFUSED)
        check_path(path);
    check(strlen(path) <= BOX_PATH_MAX && utf8_valid(path, strlen(path)));
    if (kind == BOX_IS_FOLDER) {
        check(*depth < BOX_DEPTH_MAX);
        size_t n = strlen(path);
        memcpy(prefix, path, n);
        memcpy(prefix + n, "/", 2);
        ++*depth;
        return;
    }
    const struct box_entry x = { .path = path, .kind = kind, .why = why, .ino = number, .bytes = number };
    box_listing_add(l, &x);
}

static void tree(struct input *in, struct box_listing *l)
{
    char prefix[BOX_PATH_MAX + 2] = "";
    int depth = 0;
    for (unsigned n = byte(in) % ENTRIES_MAX; n > 0; n--) {
        if (byte(in) % 4 == 0) {
            prefix[0] = '\0';
            depth = 0;
        }
        entry(in, l, prefix, &depth);
    }
    box_listing_sort(l);
}

/* ---- who is told ---- */

struct known {
    struct box_listing files;
    enum box_kind last;
};

static bool is_below(const char *path, const char *folder)
{
    size_t n = strlen(folder);
    return strncmp(path, folder, n) == 0 && (!path[n] || path[n] == '/');
}

static void forget(struct box_listing *l, const char *path, bool below)
{
    for (size_t i = 0; i < l->n;) {
        if (below ? is_below(l->v[i].path, path) : strcmp(l->v[i].path, path) == 0) {
            free(l->v[i].path);
            l->v[i] = l->v[--l->n];
        } else {
            i++;
        }
    }
}

static void told(void *ud, const struct box_entry *x)
{
    struct known *k = ud;
    check(x->kind >= BOX_IS_FILE && x->kind != BOX_IS_FOLDER && x->path);
    check(k->last != BOX_IS_REFUSED || x->kind == BOX_IS_REFUSED); /* the order */
    check(k->last != BOX_IS_FILE || x->kind != BOX_IS_GONE);
    k->last = x->kind;
    if (x->kind == BOX_IS_GONE)
        forget(&k->files, x->path, false); /* below it nothing is older than the folder */
    if (x->kind == BOX_IS_FILE) {
        forget(&k->files, x->path, false);
        box_listing_add(&k->files, x);
    }
}

static void files_of(struct box_listing *out, const struct box_listing *from)
{
    for (size_t i = 0; i < from->n; i++)
        if (from->v[i].kind == BOX_IS_FILE) {
            forget(out, from->v[i].path, false); /* one name has one file */
            box_listing_add(out, &from->v[i]);
        }
}

static bool has(const struct box_listing *l, const char *path)
{
    for (size_t i = 0; i < l->n; i++)
        if (strcmp(l->v[i].path, path) == 0)
            return true;
    return false;
}

static void nothing_new(void *ud, const struct box_entry *x)
{
    (void)ud;
    (void)x;
    abort();
}

/* In a real folder a name is there once; input may say otherwise. */
static bool has_twins(const struct box_listing *l)
{
    for (size_t i = 1; i < l->n; i++)
        if (strcmp(l->v[i - 1].path, l->v[i].path) == 0)
            return true;
    return false;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct input in = { data, data + size };
    struct box_listing before = { 0 }, now = { 0 }, right = { 0 };
    struct known k = { .last = BOX_IS_NOTHING };
    tree(&in, &before);
    tree(&in, &now);
    files_of(&k.files, &before);
    files_of(&right, &now);
    box_compare(&before, &now, told, &k);
    if (!has_twins(&before) && !has_twins(&now)) {
        check(k.files.n == right.n);
        for (size_t i = 0; i < right.n; i++)
            check(has(&k.files, right.v[i].path));
        box_compare(&now, &now, nothing_new, NULL);
    }
    box_listing_clear(&before);
    box_listing_clear(&now);
    box_listing_clear(&right);
    box_listing_clear(&k.files);
    return 0;
}
