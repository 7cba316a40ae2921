/* cells_input.h - what `sandbook cells` reads, cut into units: a JSON line, or a cell of plain code up to the next "# %%" line.
 *
 * Bytes go in as they come, units come out in order. A unit longer than UNIT_BYTES_MAX is never held: what was read of it
 * is dropped, the rest is skipped, and one CELLS_TOO_LONG stands for it. A byte order mark at the beginning is none. */
#ifndef CELLS_INPUT_H
#define CELLS_INPUT_H
#include "str.h"

enum { CELLS_UNIT_MAX = 2 << 20, CELLS_INPUT_MAX = 2 * CELLS_UNIT_MAX + (1 << 20) };

enum cells_unit {
    CELLS_NONE, /* no whole unit yet; at the end of the input: no more */
    CELLS_UNIT,
    CELLS_TOO_LONG
};

struct cells_input {
    struct str in; /* what was read and not yet given out */
    size_t at;     /* where the next unit begins */
    size_t seen;   /* after at: looked through for an end, without one */
    bool lines;    /* units are lines */
    bool ended;
    bool begun;    /* past where a byte order mark may stand */
    bool skipping; /* the rest of a unit that was too long */
};

void cells_input_init(struct cells_input *i, bool lines);
void cells_input_clear(struct cells_input *i);
void cells_input_add(struct cells_input *i, const char *data, size_t n);
void cells_input_end(struct cells_input *i);
/* Whether enough waits: read no more until units were taken. A unit can be taken whenever this is true. */
bool cells_input_full(const struct cells_input *i);
/* *text, *n are the unit when there is one; borrowed until the next call. */
enum cells_unit cells_input_next(struct cells_input *i, const char **text, size_t *n);
#endif
