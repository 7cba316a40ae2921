/* session_pin.c - states that somebody may want again. A box keeps copies of the last few states only, and one answer can take more
 * cells than that; an edited question goes back to before its answer, and so do people. */
#include <string.h>
#include "session_private.h"

static bool is_pinned(const struct session *s, int cell)
{
    for (size_t i = 0; i < PINS_MAX; i++)
        if (s->pins[i] == cell)
            return true;
    return false;
}

void session_pin(struct session *s)
{
    const struct sandbox_ops *ops = s->hub->parts.sandbox_ops;
    if (s->turn->pinned || !s->box)
        return;
    s->turn->pinned = true;
    if (s->base <= 0 || is_pinned(s, s->base))
        return;
    if (s->pins[0] > 0)
        ops->pin(s->box, s->pins[0], false);
    memmove(s->pins, s->pins + 1, sizeof s->pins - sizeof *s->pins);
    s->pins[PINS_MAX - 1] = s->base;
    ops->pin(s->box, s->base, true);
}

void session_pins_forget(struct session *s)
{
    for (size_t i = 0; i < PINS_MAX; i++)
        s->pins[i] = 0;
}
