/* picture.c - makes a PNG fit to be posted. Runs inside a box, where everything hostile is parsed.
 *
 *   picture [-m SIDE] [-s WIDTHxHEIGHT] IN OUT [IN OUT]...        "-" is stdin or stdout
 *
 * IN is a PNG, or pixels as they are: PAM (netpbm's P7) of 8-bit RGBA.
 * Each IN is read whole, each OUT is written anew: 8 bits a channel, gray, RGB or RGBA, no palette, no
 * interlacing, and no chunk but IHDR, IDAT and IEND, so that neither text nor profiles nor anything
 * after the end gets through. With -m, pictures whose longer side is above SIDE are made smaller by
 * averaging areas. IN and OUT may be one path. With -s, one that is larger than that has a small one
 * beside it, which fits: NAME.small.png beside NAME.png; where it can't be made, there is none.
 *
 * For each pair one line on stdout (stderr, if an OUT is "-"), in order: "width height bytes", or
 * "error: why". Status 0: all well; 1: at least one was not; 2: usage.
 *
 * Several pictures in one call, since starting a process costs more than a small picture.
 * Memory is bounded by PIXELS_MAX: 128 MiB for the pixels, twice that for an interlaced picture
 * which is also made smaller. Nothing is trusted of what the file says before it was checked here.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <png.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
    SIDE_MAX = 8192,       /* what chat clients and the daemon take */
    PIXELS_MAX = 32 << 20, /* 8192 x 4096 */
    CHUNK_MAX = 8 << 20,   /* one ancillary chunk while it is skipped */
    CHANNELS = 4,          /* everything is RGBA while it is here */
    PAM_LINE = 32,         /* of the head of a PAM */
    WHY_MAX = 200,
};

struct picture {
    uint32_t width, height;
    bool gray;   /* the file said so: all three colours are equal */
    bool opaque; /* no pixel lets the background through */
    uint8_t *rgba;
};

/* One decode or encode. libpng reports errors by longjmp to `escape`. */
struct job {
    jmp_buf escape;
    char why[WHY_MAX];
    FILE *file;
    uint8_t **rows;
};

/* Area averaging: how much of each input pixel goes to which output pixel, line by line. */
struct shrink {
    const struct picture *from;
    struct picture *to;
    double step_x, step_y; /* input pixels per output pixel, at least 1 */
    struct share *shares;  /* of each input pixel of a line, the same in all of them */
    float *line;           /* one input line, made narrower */
    float *sum;            /* the output line under way */
};

/* at: the output pixel; over: how much reaches into the next one. */
struct share {
    uint32_t at;
    float here, over;
};

struct fit {
    uint32_t side_max;      /* 0: any */
    uint32_t width, height; /* of the small one beside; 0: none */
};

static void fail(struct job *j, const char *format, ...) __attribute__((format(printf, 2, 3), noreturn));

static void fail(struct job *j, const char *format, ...)
{
    va_list ap;
    va_start(ap, format);
    vsnprintf(j->why, sizeof j->why, format, ap);
    va_end(ap);
    longjmp(j->escape, 1);
}

static void on_png_error(png_structp png, png_const_charp text)
{
    struct job *j = png_get_error_ptr(png);
    fail(j, "not a readable PNG (%s)", text);
}

static void on_png_warning(png_structp png, png_const_charp text)
{
    (void)png;
    (void)text;
}

static void *allocate(struct job *j, size_t count, size_t size)
{
    void *memory = calloc(count, size);
    if (!memory)
        fail(j, "out of memory");
    return memory;
}

/* Reading ------------------------------------------------------------------------------------- */

static void check_size(struct job *j, uint32_t width, uint32_t height)
{
    if (width == 0 || height == 0 || width > SIDE_MAX || height > SIDE_MAX)
        fail(j, "%ux%u pixels: a side may have %d", width, height, SIDE_MAX);
    if ((uint64_t)width * height > PIXELS_MAX)
        fail(j, "%ux%u pixels: more than %d in all", width, height, PIXELS_MAX);
}

/* Any of PNG's kinds becomes 8-bit RGBA. */
static void ask_for_rgba(png_structp png, png_infop info)
{
    png_set_expand(png); /* palette, 1-4 bits, transparent colour */
    png_set_scale_16(png);
    png_set_gray_to_rgb(png);
    png_set_add_alpha(png, 0xff, PNG_FILLER_AFTER);
    (void)png_set_interlace_handling(png);
    png_read_update_info(png, info);
}

static void limit(png_structp png)
{
    png_set_user_limits(png, SIDE_MAX, SIDE_MAX);
    png_set_chunk_cache_max(png, 16);
    png_set_chunk_malloc_max(png, CHUNK_MAX);
    png_set_keep_unknown_chunks(png, PNG_HANDLE_CHUNK_NEVER, NULL, 0);
    png_set_crc_action(png, PNG_CRC_DEFAULT, PNG_CRC_WARN_DISCARD);
}

static void read_rows(struct job *j, png_structp png, png_infop info, struct picture *p)
{
    png_init_io(png, j->file);
    limit(png);
    png_read_info(png, info);
    p->width = png_get_image_width(png, info);
    p->height = png_get_image_height(png, info);
    check_size(j, p->width, p->height);
    p->gray = !(png_get_color_type(png, info) & PNG_COLOR_MASK_COLOR);
    ask_for_rgba(png, info);
    size_t stride = (size_t)p->width * CHANNELS;
    if (png_get_rowbytes(png, info) != stride)
        fail(j, "unexpected row size");
    p->rgba = allocate(j, p->height, stride);
    j->rows = allocate(j, p->height, sizeof *j->rows);
    for (uint32_t y = 0; y < p->height; y++)
        j->rows[y] = p->rgba + y * stride;
    png_read_image(png, j->rows);
    png_read_end(png, NULL);
}

/* One line without its end; false: there is none, or it is too long. */
static bool read_line(FILE *file, char line[PAM_LINE])
{
    if (!fgets(line, PAM_LINE, file))
        return false;
    char *end = strchr(line, '\n');
    if (end)
        *end = '\0';
    return end != NULL;
}

static uint32_t pam_number(struct job *j, const char *name)
{
    char line[PAM_LINE], *end = NULL;
    size_t n = strlen(name);
    if (!read_line(j->file, line) || strncmp(line, name, n) != 0 || line[n] < '0' || line[n] > '9')
        fail(j, "not a readable PAM");
    unsigned long value = strtoul(line + n, &end, 10);
    if (*end || value > SIDE_MAX)
        fail(j, "not a readable PAM");
    return (uint32_t)value;
}

/* Only as figures.py writes it. */
static void read_pam(struct job *j, struct picture *p)
{
    static const char *const rest[] = { "DEPTH 4", "MAXVAL 255", "TUPLTYPE RGB_ALPHA", "ENDHDR" };
    char line[PAM_LINE];
    if (!read_line(j->file, line) || strcmp(line, "P7") != 0)
        fail(j, "not a readable PAM");
    p->width = pam_number(j, "WIDTH ");
    p->height = pam_number(j, "HEIGHT ");
    check_size(j, p->width, p->height);
    for (size_t i = 0; i < sizeof rest / sizeof *rest; i++)
        if (!read_line(j->file, line) || strcmp(line, rest[i]) != 0)
            fail(j, "not a readable PAM");
    p->rgba = allocate(j, p->height, (size_t)p->width * CHANNELS);
    if (fread(p->rgba, (size_t)p->width * CHANNELS, p->height, j->file) != p->height)
        fail(j, "not a readable PAM");
}

static bool is_pam(FILE *file)
{
    int first = fgetc(file);
    (void)ungetc(first, file);
    return first == 'P';
}

static bool is_opaque(const struct picture *p)
{
    size_t n = (size_t)p->width * p->height;
    for (size_t i = 0; i < n; i++)
        if (p->rgba[i * CHANNELS + 3] != 0xff)
            return false;
    return true;
}

static FILE *open_input(const char *path)
{
    if (strcmp(path, "-") == 0)
        return fdopen(dup(STDIN_FILENO), "rb");
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK); /* no waiting for the writer of a FIFO */
    struct stat st;
    if (fd >= 0 && (fstat(fd, &st) < 0 || !S_ISREG(st.st_mode))) {
        close(fd);
        errno = EINVAL;
        return NULL;
    }
    return fd < 0 ? NULL : fdopen(fd, "rb");
}

/* -> 0, or -1 with j->why. On success the caller frees p->rgba. */
static int picture_read(struct job *j, const char *path, struct picture *p)
{
    png_structp png = NULL;
    png_infop info = NULL;
    volatile int result = -1;
    j->rows = NULL;
    j->file = open_input(path);
    if (!j->file) {
        snprintf(j->why, sizeof j->why, "can't be read: %s", strerror(errno));
        return -1;
    }
    png = png_create_read_struct(PNG_LIBPNG_VER_STRING, j, on_png_error, on_png_warning);
    info = png ? png_create_info_struct(png) : NULL;
    if (!info) {
        snprintf(j->why, sizeof j->why, "out of memory");
    } else if (setjmp(j->escape) == 0) {
        if (is_pam(j->file))
            read_pam(j, p);
        else
            read_rows(j, png, info, p);
        p->opaque = is_opaque(p);
        result = 0;
    }
    png_destroy_read_struct(&png, &info, NULL);
    free(j->rows);
    j->rows = NULL;
    fclose(j->file);
    return result;
}

/* Making smaller ------------------------------------------------------------------------------ */

static uint32_t smaller(uint32_t side, uint32_t longest, uint32_t max)
{
    uint32_t n = (uint32_t)(((uint64_t)side * max + longest / 2) / longest);
    return n ? n : 1;
}

/* Colours count by their alpha: what is invisible must not tint what is not. */
static void add_pixel(float *to, const uint8_t *rgba, float share)
{
    float alpha = share * (float)rgba[3];
    to[0] += alpha * (float)rgba[0];
    to[1] += alpha * (float)rgba[1];
    to[2] += alpha * (float)rgba[2];
    to[3] += alpha;
}

static void narrow_line(struct shrink *s, uint32_t y)
{
    const uint8_t *from = s->from->rgba + (size_t)y * s->from->width * CHANNELS;
    memset(s->line, 0, (size_t)s->to->width * CHANNELS * sizeof *s->line);
    for (uint32_t x = 0; x < s->from->width; x++) {
        const struct share *share = &s->shares[x];
        float *to = s->line + (size_t)share->at * CHANNELS;
        add_pixel(to, from + (size_t)x * CHANNELS, share->here);
        if (share->over > 0)
            add_pixel(to + CHANNELS, from + (size_t)x * CHANNELS, share->over);
    }
}

static void find_shares(struct shrink *s)
{
    for (uint32_t x = 0; x < s->from->width; x++) {
        uint32_t at = (uint32_t)(x / s->step_x);
        if (at >= s->to->width)
            at = s->to->width - 1;
        double over = x + 1 - (at + 1) * s->step_x;
        if (over <= 0 || at + 1 == s->to->width)
            over = 0;
        s->shares[x] = (struct share){ .at = at, .here = (float)(1 - over), .over = (float)over };
    }
}

static void add_line(struct shrink *s, float share)
{
    size_t n = (size_t)s->to->width * CHANNELS;
    for (size_t i = 0; i < n; i++)
        s->sum[i] += share * s->line[i];
}

static uint8_t to_byte(float value)
{
    return value <= 0 ? 0 : value >= 255 ? 255 : (uint8_t)((int)(value * 2 + 1) / 2); /* to the nearest */
}

static void finish_line(struct shrink *s, uint32_t y)
{
    uint8_t *to = s->to->rgba + (size_t)y * s->to->width * CHANNELS;
    float area = (float)(s->step_x * s->step_y);
    for (uint32_t x = 0; x < s->to->width; x++) {
        float *sum = s->sum + (size_t)x * CHANNELS;
        float alpha = sum[3];
        for (int c = 0; c < 3; c++)
            to[x * CHANNELS + (uint32_t)c] = alpha > 0 ? to_byte(sum[c] / alpha) : 0;
        to[x * CHANNELS + 3] = s->from->opaque ? 0xff : to_byte(alpha / area);
    }
    memset(s->sum, 0, (size_t)s->to->width * CHANNELS * sizeof *s->sum);
}

static void shrink_lines(struct shrink *s)
{
    uint32_t at = 0;
    for (uint32_t y = 0; y < s->from->height; y++) {
        narrow_line(s, y);
        double over = y + 1 - (at + 1) * s->step_y;
        bool last = at + 1 == s->to->height;
        if (over < 0 || last) {
            add_line(s, 1);
            continue;
        }
        add_line(s, (float)(1 - over));
        finish_line(s, at++);
        add_line(s, (float)over);
    }
    if (at < s->to->height)
        finish_line(s, at);
}

/* A smaller one of its own. -> 0, or -1 with j->why */
static int shrunk(struct job *j, const struct picture *p, uint32_t max, struct picture *out)
{
    uint32_t longest = p->width > p->height ? p->width : p->height;
    struct picture to = { .width = smaller(p->width, longest, max),
                          .height = smaller(p->height, longest, max),
                          .gray = p->gray,
                          .opaque = p->opaque };
    struct shrink s = {
        .from = p, .to = &to, .step_x = (double)p->width / to.width, .step_y = (double)p->height / to.height
    };
    size_t width = (size_t)to.width * CHANNELS;
    to.rgba = calloc(to.height, width);
    s.line = calloc(width, sizeof *s.line);
    s.sum = calloc(width, sizeof *s.sum);
    s.shares = calloc(p->width, sizeof *s.shares);
    int result = to.rgba && s.line && s.sum && s.shares ? 0 : -1;
    if (result == 0) {
        find_shares(&s);
        shrink_lines(&s);
        *out = to;
    } else {
        free(to.rgba);
        snprintf(j->why, sizeof j->why, "out of memory");
    }
    free(s.line);
    free(s.sum);
    free(s.shares);
    return result;
}

/* -> 0, or -1 with j->why; p is replaced. */
static int picture_shrink(struct job *j, struct picture *p, uint32_t max)
{
    struct picture to;
    uint32_t longest = p->width > p->height ? p->width : p->height;
    if (max == 0 || longest <= max)
        return 0;
    if (shrunk(j, p, max, &to) < 0)
        return -1;
    free(p->rgba);
    *p = to;
    return 0;
}

/* Writing ------------------------------------------------------------------------------------- */

/* In place: the first of each pixel's channels is its gray. */
static void pack_gray(struct picture *p)
{
    size_t n = (size_t)p->width * p->height;
    for (size_t i = 0; i < n; i++)
        p->rgba[i] = p->rgba[i * CHANNELS];
}

static void write_rows(struct job *j, png_structp png, png_infop info, struct picture *p)
{
    bool gray = p->opaque && p->gray;
    int type = !p->opaque ? PNG_COLOR_TYPE_RGBA : gray ? PNG_COLOR_TYPE_GRAY : PNG_COLOR_TYPE_RGB;
    size_t stride = (size_t)p->width * (gray ? 1 : CHANNELS);
    if (gray)
        pack_gray(p);
    png_init_io(png, j->file);
    png_set_compression_level(png, 4);     /* charts: 6 takes a tenth longer for 1 % */
    png_set_filter(png, 0, PNG_FILTER_UP); /* the best single one for charts and photographs */
    png_set_IHDR(png, info, p->width, p->height, 8, type, PNG_INTERLACE_NONE, PNG_COMPRESSION_TYPE_DEFAULT,
                 PNG_FILTER_TYPE_DEFAULT);
    png_write_info(png, info);
    if (p->opaque && !gray)
        png_set_filler(png, 0, PNG_FILLER_AFTER); /* leaves the alpha out */
    for (uint32_t y = 0; y < p->height; y++)
        png_write_row(png, p->rgba + y * stride);
    png_write_end(png, NULL);
    if (fflush(j->file) != 0)
        fail(j, "can't be written: %s", strerror(errno));
}

static FILE *open_output(const char *path)
{
    if (strcmp(path, "-") == 0)
        return fdopen(dup(STDOUT_FILENO), "wb");
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, 0644);
    return fd < 0 ? NULL : fdopen(fd, "wb");
}

/* -> bytes written, or -1 with j->why */
static long picture_write(struct job *j, const char *path, struct picture *p)
{
    png_structp png = NULL;
    png_infop info = NULL;
    volatile long size = -1;
    j->file = open_output(path);
    if (!j->file) {
        snprintf(j->why, sizeof j->why, "can't be written: %s", strerror(errno));
        return -1;
    }
    png = png_create_write_struct(PNG_LIBPNG_VER_STRING, j, on_png_error, on_png_warning);
    info = png ? png_create_info_struct(png) : NULL;
    if (!info) {
        snprintf(j->why, sizeof j->why, "out of memory");
    } else if (setjmp(j->escape) == 0) {
        write_rows(j, png, info, p);
        size = ftell(j->file); /* -1 for a pipe; the reader can count */
        if (size < 0)
            size = 0;
    }
    png_destroy_write_struct(&png, &info);
    fclose(j->file);
    return size;
}

/* The small one beside out, which is a path. */
static void write_small(const struct picture *p, const struct fit *fit, const char *out)
{
    struct job j = { .why = "" };
    struct picture small = { 0 };
    char path[PATH_MAX];
    double x = (double)fit->width / p->width, y = (double)fit->height / p->height, by = x < y ? x : y;
    uint32_t longest = p->width > p->height ? p->width : p->height, side = (uint32_t)(longest * by);
    size_t n = strlen(out);
    if (fit->width == 0 || by >= 1 || n < 4 || n + sizeof ".small" > sizeof path || strcmp(out + n - 4, ".png") != 0)
        return;
    snprintf(path, sizeof path, "%.*s.small.png", (int)(n - 4), out);
    if (shrunk(&j, p, side ? side : 1, &small) == 0)
        (void)picture_write(&j, path, &small);
    free(small.rgba);
}

/* -> bytes written, or -1 with why */
static long normalise(const char *in, const char *out, const struct fit *fit, struct picture *p, char *why)
{
    struct job j = { .why = "" };
    long size = -1;
    if (picture_read(&j, in, p) == 0 && picture_shrink(&j, p, fit->side_max) == 0) {
        write_small(p, fit, out);
        size = picture_write(&j, out, p);
    }
    free(p->rgba);
    p->rgba = NULL;
    memcpy(why, j.why, WHY_MAX);
    return size;
}

static int usage(void)
{
    fputs("usage: picture [-m SIDE] [-s WIDTHxHEIGHT] IN OUT [IN OUT]...\n", stderr);
    return 2;
}

/* What stands before the character `end`; 0: not a side. */
static uint32_t side_of(const char *text, char end, const char **rest)
{
    char *at = NULL;
    unsigned long side = text[0] >= '0' && text[0] <= '9' ? strtoul(text, &at, 10) : 0;
    if (!at || *at != end || side > SIDE_MAX)
        return 0;
    *rest = end ? at + 1 : at;
    return (uint32_t)side;
}

/* -1: not understood */
static int options(int argc, char **argv, struct fit *fit)
{
    const char *rest = NULL;
    for (int option; (option = getopt(argc, argv, "m:s:")) != -1;) {
        if (option == 'm')
            fit->side_max = side_of(optarg, '\0', &rest);
        else if (option == 's')
            fit->width = side_of(optarg, 'x', &rest);
        if (option == 's' && fit->width > 0)
            fit->height = side_of(rest, '\0', &rest);
        if (option == '?' || (option == 'm' && !fit->side_max) || (option == 's' && !fit->height))
            return -1;
    }
    return optind == argc || (argc - optind) % 2 != 0 ? -1 : 0;
}

int main(int argc, char **argv)
{
    struct fit fit = { 0 };
    if (options(argc, argv, &fit) < 0)
        return usage();
    FILE *report = stdout;
    for (int i = optind; i < argc; i += 2)
        if (strcmp(argv[i + 1], "-") == 0)
            report = stderr;
    int status = 0;
    for (int i = optind; i < argc; i += 2) {
        struct picture p = { 0 };
        char why[WHY_MAX];
        long size = normalise(argv[i], argv[i + 1], &fit, &p, why);
        if (size < 0) {
            status = 1;
            fprintf(report, "error: %s\n", why);
        } else {
            fprintf(report, "%u %u %ld\n", p.width, p.height, size);
        }
    }
    return fflush(report) == 0 ? status : 1;
}
