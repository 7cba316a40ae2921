/* box_drop.c - see box_session.h: files that a person took back, out of a box in which code may run meanwhile. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include "box_session.h"
#include "log.h"

/* What the daemon asked for is no news of a cell's. */
static int drop_one(struct box_session *s, const char *path, bool folder)
{
    const int r = box_entry_drop(s->data_fd, path, folder);
    if (r == 0)
        box_listing_miss(&s->files, box_files_fd(s), path);
    return r;
}

/* Folders that an archive had made go with the last of its files. */
static void drop_folders(struct box_session *s, const char *path)
{
    autofree char *folder = xstrdup(path);
    for (char *slash; (slash = strrchr(folder, '/'));) {
        *slash = '\0';
        if (drop_one(s, folder, true) != 0)
            return;
    }
}

/* The first that would not go, in words; NULL: none is left. */
static const char *drop_all(struct box_session *s, const struct json *paths, char *why, size_t n)
{
    const char *fault = NULL;
    for (const struct json *x = json_first(paths); x; x = json_next(x)) {
        const char *path = json_text(x);
        const int error = path ? drop_one(s, path, false) : EINVAL;
        if (error == 0)
            drop_folders(s, path);
        else if (!fault) {
            (void)snprintf(why, n, "a file could not be removed: %s", strerror(error)); /* NOLINT: one thread */
            fault = why;
        }
    }
    return fault;
}

void box_drop(struct box_session *s, const struct box_msg *msg)
{
    struct err e;
    autojson struct json *v = NULL;
    char text[160];
    const char *why = NULL;
    if ((msg->head.flags & BOX_MORE) || s->data_fd < 0 ||
        json_parse(&v, (const char *)msg->payload, msg->head.len, BOX_FRAME_MAX, &e) < 0)
        why = "no files to be removed";
    if (!why) {
        box_session_mend_folder(s);
        why = drop_all(s, json_get(v, "paths"), text, sizeof text);
    }
    if (why)
        log_warn("box_files_not_dropped", KV_I("session", s->id), KV_S("why", why));
    const char *left = take(s->left); /* for whoever asks for something that concerns variables */
    box_answer(s, &(struct box_answer){ .request = msg->head.request,
                                        .verdict = why ? "failed" : "ok",
                                        .state = "kept",
                                        .why = why,
                                        .peak_bytes = -1 });
    s->left = left;
}
