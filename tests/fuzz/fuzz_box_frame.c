/* Datagrams of a hostile peer: the check, then the putting together, as the keeper does it. The other two text parsers of the
 * keeper ride along: they read /proc, which a container may shape. */
#include <assert.h>
#include <string.h>
#include "box_cgroup.h"
#include "box_collect.h"
#include "box_frame.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { CEILING = 4096 };

/* Input: lengths of one byte (times 8), each followed by a datagram. */
static void frames(const uint8_t *data, size_t size)
{
    struct box_part part = { .body = STR_INIT(CEILING) };
    while (size > 0) {
        size_t n = (size_t)data[0] * 8;
        data++, size--;
        n = n < size ? n : size;
        struct box_frame head;
        if (box_frame_check(data, n, &head) == 0) {
            assert(head.len == n - sizeof head && head.magic == BOX_MAGIC && head.type != 0);
            int done = box_part_add(&part, &head, data + sizeof head);
            assert(part.body.len <= CEILING);
            if (done != 0)
                box_part_clear(&part);
        }
        data += n;
        size -= n;
    }
    box_part_clear(&part);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    frames(data, size);
    autofree char *text = xstrndup((const char *)data, size);
    autofree char *own = box_cgroup_own(text, "memory");
    autofree char *folder = box_cgroup_folder(text, "memory", own ? own : "/a");
    assert(!own || own[0] == '/');
    (void)box_cgroup_value(text, "oom_kill", 0);
    if (box_name_ok(text))
        assert(!strchr(text, '/') && strlen(text) <= BOX_NAME_MAX);
    return 0;
}
