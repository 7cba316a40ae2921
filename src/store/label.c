/* label.c - see label.h. */
#include "label.h"
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include "json.h"

static const char magic[8] = "SBKSTATE";
enum { VERSION_AT = 8, LENGTH_AT = 12, JSON_AT = 16, JSON_MAX = LABEL_BYTES - JSON_AT };

void label_clear(struct label *l)
{
    free(l->sandbook);
    free(l->image);
    free(l->python);
    *l = (struct label){ 0 };
}

static void put32(unsigned char *at, uint32_t n)
{
    for (int i = 0; i < 4; i++)
        at[i] = (unsigned char)(n >> 8 * i);
}

static uint32_t get32(const unsigned char *at)
{
    uint32_t n = 0;
    for (int i = 0; i < 4; i++)
        n |= (uint32_t)at[i] << 8 * i;
    return n;
}

int label_write(unsigned char out[LABEL_BYTES], const struct label *l, struct err *e)
{
    autojson struct json *o = json_new_object();
    AUTO(str_clear) struct str text = STR_INIT(JSON_MAX);
    json_set_str(o, "sandbook", l->sandbook);
    json_set_str(o, "image", l->image);
    json_set_str(o, "python", l->python);
    json_set_str(o, "session", l->session);
    json_set_int(o, "cell", l->cell);
    json_set_int(o, "created_ms", l->created_ms);
    json_set_int(o, "bytes", l->bytes);
    json_set_int(o, "kept", l->kept);
    json_print(&text, o);
    if (str_check(&text, e) < 0)
        return err_wrap(e, "the label of a checkpoint");
    for (size_t i = 0; i < LABEL_BYTES; i++)
        out[i] = 0;
    memcpy(out, magic, sizeof magic);
    put32(out + VERSION_AT, LABEL_VERSION);
    put32(out + LENGTH_AT, (uint32_t)text.len);
    memcpy(out + JSON_AT, str_peek(&text), text.len);
    return 0;
}

static bool is_session(const char *id)
{
    return strlen(id) == 16 && strspn(id, "0123456789abcdef") == 16;
}

static int take_fields(struct label *l, const struct json *o, struct err *e)
{
    const char *sandbook = NULL, *image = NULL, *python = NULL, *session = NULL;
    int64_t cell = 0;
    if (json_str(o, "sandbook", &sandbook, e) < 0 || json_str(o, "image", &image, e) < 0 ||
        json_str(o, "python", &python, e) < 0 || json_str(o, "session", &session, e) < 0 ||
        json_int(o, "cell", &cell, e) < 0 || json_int(o, "created_ms", &l->created_ms, e) < 0 ||
        json_int(o, "bytes", &l->bytes, e) < 0 || json_int(o, "kept", &l->kept, e) < 0)
        return -1;
    if (!is_session(session) || cell < 0 || cell > INT_MAX || l->bytes < 0 || l->kept < 0)
        return err_set(e, ERR_DATA, "its label makes no sense");
    (void)snprintf(l->session, sizeof l->session, "%s", session);
    l->cell = (int)cell;
    l->sandbook = xstrdup(sandbook);
    l->image = xstrdup(image);
    l->python = xstrdup(python);
    return 0;
}

/* Where its JSON ends; 0: it is no label. */
static size_t json_length(const unsigned char *data, size_t n, struct err *e)
{
    const uint32_t version = n >= LABEL_BYTES ? get32(data + VERSION_AT) : 0;
    const uint32_t length = n >= LABEL_BYTES ? get32(data + LENGTH_AT) : 0;
    if (n < LABEL_BYTES || memcmp(data, magic, sizeof magic) != 0)
        (void)err_set(e, ERR_DATA, "it is not a checkpoint");
    else if (version != LABEL_VERSION)
        (void)err_set(e, ERR_DATA, "it is of version %u, and this program reads version %d", (unsigned)version,
                      LABEL_VERSION);
    else if (length == 0 || length > JSON_MAX)
        (void)err_set(e, ERR_DATA, "its label is cut short");
    else
        return length;
    return 0;
}

int label_read(struct label *l, const unsigned char *data, size_t n, struct err *e)
{
    autojson struct json *o = NULL;
    *l = (struct label){ 0 };
    const size_t length = json_length(data, n, e);
    if (length == 0)
        return -1;
    for (size_t i = JSON_AT + length; i < LABEL_BYTES; i++)
        if (data[i])
            return err_set(e, ERR_DATA, "its label has something behind it");
    if (json_parse(&o, (const char *)data + JSON_AT, length, JSON_MAX, e) == 0 && take_fields(l, o, e) == 0)
        return 0;
    label_clear(l);
    return -1;
}
