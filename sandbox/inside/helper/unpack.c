/* unpack.c - takes an archive apart. Runs inside a box, where everything hostile is parsed.
 *
 *   unpack ARCHIVE DEST [--max-bytes N] [--max-entries N] [--max-depth N]
 *
 * zip, tar (plain or compressed), 7z and rar; also a single compressed file (sales.csv.gz gives DEST/sales.csv).
 * Nested archives come out as files: what to do with them is the caller's decision.
 *
 * One JSON object a line on stdout: {"path","bytes"} for what was written, {"skipped","why"} for what was not,
 * and last {"entries","bytes","truncated","single","error"}. Bytes of a name that are not UTF-8 are written as they
 * are, to the disk and (as the lone surrogates dc80..dcff, which is what Python calls surrogateescape) to the output:
 * guessing the encoding of names takes all of them together, and is done by intake_names.py.
 *
 * Status 0: all well; 1: no archive, or damaged (what came before the damage is there); 2: usage; 4: a limit was hit.
 *
 * Nothing is trusted: sizes that an archive states are not looked at, only bytes that come out are counted. Nothing
 * can be written outside DEST: names are cut into components, "..", absolute names and links of all sorts are
 * refused, and every component is opened relative to the one before with O_NOFOLLOW. Since no link is ever made
 * here, there is none to follow. libarchive's own writer, with its SECURE_* flags, is not used at all.
 */
#include <archive.h>
#include <archive_entry.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <locale.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
    READ_BYTES = 64 << 10,
    PATH_BYTES_MAX = 1024, /* BOX_PATH_MAX: the keeper collects no longer ones */
    NAME_BYTES_MAX = 255,
    RENAMES_MAX = 1000, /* tries at "a (2).csv" */
    SKIPS_SHOWN = 2000, /* lines about skipped entries; a hostile archive must not flood the reader */
};

enum { OK = 0, BAD_ARCHIVE = 1, USAGE = 2, LIMIT_HIT = 4 };

struct limits {
    int64_t bytes, entries, depth;
};

/* One run. */
struct job {
    struct limits max;
    const char *archive_path;
    int dest_fd;
    int64_t bytes, entries, skips;
    bool truncated;    /* a limit was hit: what follows in the archive was not looked at */
    bool single;       /* one compressed file, no archive */
    const char *fault; /* why it ended early, or NULL */
};

/* A name that was found fit to be written: components separated by single slashes. */
struct path {
    char text[PATH_BYTES_MAX];
};

/* ---- JSON out ------------------------------------------------------------------------------------------------------- */

/* Length of the UTF-8 character at s, or 0 if there is none. s is NUL-terminated, which ends every sequence. */
static size_t utf8_length(const unsigned char *s)
{
    if (s[0] < 0x80)
        return 1;
    size_t n = s[0] >= 0xf0 ? 4 : s[0] >= 0xe0 ? 3 : s[0] >= 0xc2 ? 2 : 0;
    if (s[0] > 0xf4 || n == 0)
        return 0;
    for (size_t i = 1; i < n; i++)
        if ((s[i] & 0xc0) != 0x80)
            return 0;
    bool overlong = (s[0] == 0xe0 && s[1] < 0xa0) || (s[0] == 0xf0 && s[1] < 0x90);
    bool surrogate = s[0] == 0xed && s[1] >= 0xa0;
    bool beyond = s[0] == 0xf4 && s[1] >= 0x90;
    return overlong || surrogate || beyond ? 0 : n;
}

static void put_string(const char *text)
{
    putchar('"');
    for (const unsigned char *s = (const unsigned char *)text; *s;) {
        size_t n = utf8_length(s);
        if (n == 0)
            printf("\\udc%02x", *s++);
        else if (*s < 0x20 || *s == '"' || *s == '\\' || *s == 0x7f)
            printf("\\u%04x", *s++);
        else
            for (; n > 0; n--)
                putchar(*s++);
    }
    putchar('"');
}

static void report_written(const char *path, int64_t bytes)
{
    fputs("{\"path\":", stdout);
    put_string(path);
    printf(",\"bytes\":%" PRId64 "}\n", bytes);
}

static void report_skipped(struct job *job, const char *path, const char *why)
{
    if (++job->skips > SKIPS_SHOWN)
        return;
    fputs("{\"skipped\":", stdout);
    put_string(path);
    printf(",\"why\":\"%s\"}\n", why);
}

static void report_end(const struct job *job)
{
    printf("{\"entries\":%" PRId64 ",\"bytes\":%" PRId64 ",\"truncated\":%s,\"single\":%s,\"error\":", job->entries,
           job->bytes, job->truncated ? "true" : "false", job->single ? "true" : "false");
    if (job->fault)
        put_string(job->fault);
    else
        fputs("null", stdout);
    puts("}");
}

/* ---- names ---------------------------------------------------------------------------------------------------------- */

static bool is_utf8(const char *text)
{
    for (const unsigned char *s = (const unsigned char *)text; *s;) {
        size_t n = utf8_length(s);
        if (n == 0)
            return false;
        s += n;
    }
    return true;
}

/* What file managers leave in archives without anybody having asked for it. */
static bool is_litter(const char *name)
{
    static const char *const litter[] = { "__MACOSX", ".DS_Store", "Thumbs.db", "desktop.ini" };
    for (size_t i = 0; i < sizeof litter / sizeof *litter; i++)
        if (strcmp(name, litter[i]) == 0)
            return true;
    return strncmp(name, "._", 2) == 0;
}

/* Adds one component; NULL, or why it can't be. An empty one and "." say nothing and are left out. */
static const char *path_add(struct path *path, size_t *used, const char *name, size_t n)
{
    if (n == 0 || (n == 1 && name[0] == '.'))
        return NULL;
    if (n == 2 && name[0] == '.' && name[1] == '.')
        return "leads outside";
    if (n > NAME_BYTES_MAX || *used + n + 2 > sizeof path->text)
        return "name too long";
    if (*used > 0)
        path->text[(*used)++] = '/';
    char *component = path->text + *used;
    memcpy(component, name, n);
    component[n] = '\0';
    for (char *c = component; *c; c++) /* control characters in names only help to deceive */
        if ((unsigned char)*c < 0x20 || *c == 0x7f)
            *c = '_';
    *used += n;
    return is_litter(component) ? "system file" : NULL;
}

/* The path that an entry's name asks for; NULL, or why it is refused. Trust boundary: the name is the archive's. */
static const char *path_parse(struct path *path, const char *name, int64_t max_depth)
{
    if (name[0] == '/' || (name[0] != '\0' && name[1] == ':' && strchr("/\\", name[2])))
        return "absolute path";
    /* Some Windows programs write backslashes. In a name that is not UTF-8 the byte may be half a character. */
    const char *separators = is_utf8(name) && !strchr(name, '/') ? "/\\" : "/";
    if (separators[1] && name[0] == '\\')
        return "absolute path";
    size_t used = 0;
    int64_t depth = 0;
    for (const char *at = name; *at;) {
        size_t n = strcspn(at, separators);
        const char *why = path_add(path, &used, at, n);
        if (why)
            return why;
        depth += n > 0;
        at += n + (at[n] != '\0');
    }
    if (used == 0)
        return "no name";
    return depth > max_depth ? "too deep" : NULL;
}

/* sales.csv.gz -> sales.csv: a compressed file does not reliably know its own name. */
static void single_name(char *name, size_t size, const char *archive_path)
{
    static const char *const suffixes[] = { ".gz", ".bz2", ".xz", ".zst", ".lzma", ".z", ".Z" };
    const char *slash = strrchr(archive_path, '/');
    snprintf(name, size, "%s", slash ? slash + 1 : archive_path);
    size_t n = strlen(name);
    for (size_t i = 0; i < sizeof suffixes / sizeof *suffixes; i++) {
        size_t cut = strlen(suffixes[i]);
        if (n > cut && strcasecmp(name + n - cut, suffixes[i]) == 0) {
            name[n - cut] = '\0';
            return;
        }
    }
}

/* ---- writing -------------------------------------------------------------------------------------------------------- */

/* Opens the folder that the path's last component lies in, making what is missing. -1 with errno set. */
static int open_parent(int dest_fd, char *path, const char **last)
{
    int fd = dup(dest_fd);
    for (char *slash; fd >= 0 && (slash = strchr(path, '/')); path = slash + 1) {
        *slash = '\0';
        int next = -1;
        if (mkdirat(fd, path, 0755) == 0 || errno == EEXIST)
            next = openat(fd, path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        int saved = errno;
        close(fd);
        errno = saved;
        fd = next;
        *slash = '/';
    }
    *last = path;
    return fd;
}

/* "a.csv" -> "a (2).csv", in place of the last component. False if it would be too long. */
static bool number_name(struct path *numbered, const struct path *path, int number)
{
    const char *slash = strrchr(path->text, '/');
    const char *name = slash ? slash + 1 : path->text;
    const char *dot = strrchr(name, '.');
    size_t stem = dot && dot > name ? (size_t)(dot - path->text) : strlen(path->text);
    int n = snprintf(numbered->text, sizeof numbered->text, "%.*s (%d)%s", (int)stem, path->text, number,
                     path->text + stem);
    return n > 0 && (size_t)n < sizeof numbered->text;
}

/* Makes the file, under another name if an entry of that name came before. `path` becomes the name in use. */
static int create_file(const struct job *job, struct path *path, mode_t mode)
{
    struct path wanted = *path;
    for (int number = 2;; number++) {
        const char *last;
        int parent_fd = open_parent(job->dest_fd, path->text, &last);
        if (parent_fd < 0)
            return -1;
        int fd = openat(parent_fd, last, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, mode);
        int saved = errno;
        close(parent_fd);
        errno = saved;
        if (fd >= 0 || saved != EEXIST || number > RENAMES_MAX || !number_name(path, &wanted, number))
            return fd;
    }
}

static void remove_file(const struct job *job, struct path *path)
{
    const char *last;
    int parent_fd = open_parent(job->dest_fd, path->text, &last);
    if (parent_fd < 0)
        return;
    unlinkat(parent_fd, last, 0);
    close(parent_fd);
}

static bool write_all(int fd, const char *data, size_t n)
{
    while (n > 0) {
        ssize_t written = write(fd, data, n);
        if (written < 0 && errno == EINTR)
            continue;
        if (written < 0)
            return false;
        data += written;
        n -= (size_t)written;
    }
    return true;
}

/* Copies one entry's content to fd and counts it. NULL, or why it is not complete. */
static const char *copy_content(struct job *job, struct archive *archive, int fd, int64_t *bytes)
{
    static char buffer[READ_BYTES];
    *bytes = 0;
    for (;;) {
        ssize_t n = archive_read_data(archive, buffer, sizeof buffer);
        if (n == ARCHIVE_RETRY || n == ARCHIVE_WARN)
            continue;
        if (n < 0)
            return "damaged";
        if (n == 0)
            return NULL;
        if (n > job->max.bytes - job->bytes - *bytes) {
            job->truncated = true;
            return "over the limit of bytes";
        }
        if (!write_all(fd, buffer, (size_t)n)) {
            job->truncated = true;
            return "no room on the disk";
        }
        *bytes += n;
    }
}

static void extract(struct job *job, struct archive *archive, struct path *path, mode_t mode)
{
    int fd = create_file(job, path, mode);
    if (fd < 0) {
        report_skipped(job, path->text, errno == ENOSPC ? "no room on the disk" : "name taken");
        return;
    }
    int64_t bytes;
    const char *why = copy_content(job, archive, fd, &bytes);
    close(fd);
    if (why) { /* a part of a table passes for the whole: better none */
        remove_file(job, path);
        report_skipped(job, path->text, why);
        return;
    }
    job->bytes += bytes;
    report_written(path->text, bytes);
}

/* ---- reading -------------------------------------------------------------------------------------------------------- */

/* NULL, or why an entry of this sort is not taken. */
static const char *refuse_type(struct archive_entry *entry)
{
    if (archive_entry_hardlink(entry) || archive_entry_symlink(entry) || archive_entry_filetype(entry) == AE_IFLNK)
        return "link";
    if (archive_entry_filetype(entry) != AE_IFREG && archive_entry_filetype(entry) != 0)
        return "special file";
    return archive_entry_is_encrypted(entry) ? "password-protected" : NULL;
}

static void take_entry(struct job *job, struct archive *archive, struct archive_entry *entry)
{
    char own_name[PATH_BYTES_MAX];
    const char *name = archive_entry_pathname(entry);
    if (job->single) {
        single_name(own_name, sizeof own_name, job->archive_path);
        name = own_name;
    }
    if (archive_entry_filetype(entry) == AE_IFDIR)
        return;
    struct path path;
    const char *why = name ? path_parse(&path, name, job->max.depth) : "name not readable";
    if (!why)
        why = refuse_type(entry);
    if (why) {
        report_skipped(job, name ? name : "", why);
        return;
    }
    extract(job, archive, &path, archive_entry_perm(entry) & S_IXUSR && !job->single ? 0755 : 0644);
}

/* Formats and filters by name: "all" would include filters that are run as programs found in PATH. */
static struct archive *open_archive(const char *path)
{
    struct archive *archive = archive_read_new();
    if (!archive)
        return NULL;
    archive_read_support_filter_gzip(archive);
    archive_read_support_filter_bzip2(archive);
    archive_read_support_filter_xz(archive);
    archive_read_support_filter_lzma(archive);
    archive_read_support_filter_zstd(archive);
    archive_read_support_filter_compress(archive);
    archive_read_support_format_zip(archive);
    archive_read_support_format_tar(archive);
    archive_read_support_format_7zip(archive);
    archive_read_support_format_rar(archive);
    archive_read_support_format_rar5(archive);
    archive_read_support_format_raw(archive);
    archive_read_open_filename(archive, path, READ_BYTES);
    return archive;
}

/* libarchive's "raw" takes anything for a file: it counts only below a compression. */
static bool is_nothing_known(struct job *job, struct archive *archive)
{
    bool raw = archive_format(archive) == ARCHIVE_FORMAT_RAW;
    job->single = raw && archive_filter_count(archive) > 1;
    return raw && !job->single;
}

static void fail(struct job *job, struct archive *archive)
{
    bool locked = archive_read_has_encrypted_entries(archive) > 0;
    const char *why = archive_error_string(archive);
    job->fault = locked ? "password-protected" : why ? why : "damaged";
}

static int read_entries(struct job *job, struct archive *archive)
{
    struct archive_entry *entry;
    for (;;) {
        int rc = archive_read_next_header(archive, &entry);
        if (rc == ARCHIVE_EOF)
            return OK;
        if (rc == ARCHIVE_RETRY)
            continue;
        if (rc != ARCHIVE_OK && rc != ARCHIVE_WARN) {
            fail(job, archive);
            return BAD_ARCHIVE;
        }
        if (job->entries == 0 && is_nothing_known(job, archive)) {
            job->fault = "not an archive";
            return BAD_ARCHIVE;
        }
        if (job->entries == job->max.entries) {
            job->truncated = true;
            return LIMIT_HIT;
        }
        job->entries++;
        take_entry(job, archive, entry);
        if (job->truncated)
            return LIMIT_HIT;
    }
}

static int unpack(struct job *job)
{
    struct archive *archive = open_archive(job->archive_path);
    if (!archive)
        return BAD_ARCHIVE;
    int rc = read_entries(job, archive);
    report_end(job); /* the fault's text belongs to the archive */
    archive_read_free(archive);
    return rc;
}

/* ---- the command line ----------------------------------------------------------------------------------------------- */

static int usage(void)
{
    fputs("usage: unpack ARCHIVE DEST [--max-bytes N] [--max-entries N] [--max-depth N]\n", stderr);
    return USAGE;
}

static bool parse_option(struct limits *max, const char *name, const char *value)
{
    char *end;
    errno = 0;
    long long number = strtoll(value, &end, 10);
    if (errno || *end || end == value || number < 1)
        return false;
    if (strcmp(name, "--max-bytes") == 0)
        max->bytes = number;
    else if (strcmp(name, "--max-entries") == 0)
        max->entries = number;
    else if (strcmp(name, "--max-depth") == 0)
        max->depth = number;
    else
        return false;
    return true;
}

int main(int argc, char **argv)
{
    struct job job = { .max = { .bytes = 200 << 20, .entries = 1000, .depth = 8 } };
    if (argc < 3 || argc % 2 == 0)
        return usage();
    for (int i = 3; i + 1 < argc; i += 2)
        if (!parse_option(&job.max, argv[i], argv[i + 1]))
            return usage();
    /* libarchive turns the UTF-16 of 7z and rar into the locale's bytes. This locale is part of the C library. */
    if (!setlocale(LC_CTYPE, "C.UTF-8"))
        fputs("unpack: no C.UTF-8 locale: names may be lost\n", stderr);
    signal(SIGXFSZ, SIG_IGN); /* the box's limit on file sizes is an error of write() here */
    umask(022);
    job.archive_path = argv[1];
    job.dest_fd = open(argv[2], O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (job.dest_fd < 0) {
        fprintf(stderr, "unpack: %s: %s\n", argv[2], strerror(errno));
        return USAGE;
    }
    int rc = unpack(&job);
    close(job.dest_fd);
    return fflush(stdout) == 0 ? rc : BAD_ARCHIVE;
}
