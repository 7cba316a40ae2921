/* native_output.h - what a cell printed: its head and its tail are kept, and pieces become text as they come. */
#ifndef NATIVE_OUTPUT_H
#define NATIVE_OUTPUT_H
#include "str.h"

enum { OUTPUT_HEAD = 64 << 10, OUTPUT_TAIL = 64 << 10 };

struct output {
    struct str head; /* raw bytes, the first OUTPUT_HEAD */
    char *tail;      /* a ring of the last OUTPUT_TAIL bytes after the head; NULL while the head has room */
    uint64_t n;      /* bytes in all */
    char held[64];   /* end of the last piece that is no text yet: half a character, half an escape sequence, a CR */
    size_t held_n;
};

void output_init(struct output *o);
void output_clear(struct output *o);
void output_add(struct output *o, const char *data, size_t n);
/* Scrubbed text of this piece and of what was held back; appends to text. `last`: hold nothing back. */
void output_piece(struct output *o, struct str *text, const char *data, size_t n, bool last);
/* All of it as scrubbed text, with a line between head and tail that says how much is left out. The caller frees. */
char *output_text(const struct output *o, bool *cut);
#endif
