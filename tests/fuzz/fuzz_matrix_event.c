/* Properties: whatever a room's event holds, reading it touches no memory of others, and its words are valid UTF-8. */
#include <stdint.h>
#include "matrix/event.h"
#include "matrix/ids.h"

enum { MAX = 1 << 18 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void must(bool holds)
{
    if (!holds)
        __builtin_trap();
}

static void read_content(const struct json *content)
{
    static const struct mx_self self = { .user = "@bot:example.org", .localpart = "bot", .display_name = "Data Bot" };
    struct mx_relation r;
    struct mx_file f;
    mx_relation_read(&r, json_get(content, "m.relates_to"));
    must((r.type == MX_NO_RELATION || r.type == MX_OTHER_RELATION) || mx_is_event(r.target));
    must(!r.reply_to || mx_is_event(r.reply_to));
    if (mx_file_read(&f, content) && *f.mxc) {
        autofree char *server = NULL, *media = NULL;
        must(mx_split_mxc(f.mxc, &server, &media) && f.bytes >= 0);
        must(!strpbrk(media, "/.%?#") && !strpbrk(server, "/%?#"));
    }
    for (const struct json *x = json_first(mx_gallery(content)); x; x = json_next(x))
        if (mx_file_read(&f, x))
            must(f.name && f.mxc && f.bytes >= 0);
    (void)mx_is_mentioned(content, &self);
    autofree char *text = mx_text(content, &self, r.reply_to != NULL);
    must(utf8_valid(text, strlen(text)));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    autojson struct json *j = NULL;
    struct err e = { 0 };
    struct mx_event ev;
    if (json_parse(&j, (const char *)data, size, MAX, &e) < 0)
        return 0;
    if (mx_event_read(&ev, j)) {
        must(mx_is_event(ev.id) && mx_is_user(ev.sender) && ev.type);
        read_content(ev.content);
        read_content(json_get(ev.content, "m.new_content"));
    }
    read_content(j);
    return 0;
}
