/* Properties: no payload of our own starts anything; ids and timestamps that pass have their shape. */
#include <stdint.h>
#include <string.h>
#include "slack/slack_event.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void must(bool holds)
{
    if (!holds)
        __builtin_trap();
}

static void check(const struct slack_event *ev)
{
    must(!ev->team || slack_is_id(ev->team));
    must(!ev->channel || slack_is_id(ev->channel));
    must(!ev->ts || slack_is_ts(ev->ts));
    must(!ev->root || slack_is_ts(ev->root));
    must(!ev->about || slack_is_ts(ev->about));
    if (ev->kind == SLACK_MESSAGE)
        must(ev->team && ev->channel && ev->ts && ev->root && ev->user && ev->text && strcmp(ev->user, "UBOT") != 0);
    if (ev->kind == SLACK_EDIT || ev->kind == SLACK_DELETE || ev->kind == SLACK_REACTION)
        must(ev->team && ev->channel && ev->ts && ev->about);
    if (ev->kind == SLACK_STOP)
        must(ev->channel && ev->root && ev->user);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const struct slack_self self = { .user = "UBOT", .bot = "BBOT", .app = "AAPP" };
    struct err e = { 0 };
    struct slack_event ev;
    autojson struct json *j = NULL;
    if (size > 1 << 16 || json_parse(&j, (const char *)data, size, 1 << 16, &e) < 0)
        return 0;
    slack_event_read(&ev, j, &self);
    check(&ev);
    return 0;
}
