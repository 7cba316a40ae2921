/* map.h - things by name, in the order they were put. Floor 0. The keeper doesn't link this file.
 *
 * Why not uthash: each use of its macros counts as a hundred branches with the linter, and this is all that is needed. Peers who choose
 * the names cannot make them collide on purpose: the hash begins at a random number.
 *
 *   for (struct map_item *i = m.first; i; i = i->next) { struct thing *t = i->value; ... } */
#ifndef MAP_H
#define MAP_H
#include "base.h"

struct map_item {
    const char *key;
    void *value;
    struct map_item *next, *prev, *chain;
    uint64_t hash;
};
struct map {
    struct map_item **slots, *first, *last;
    size_t n, slot_n;
};

void *map_get(const struct map *m, const char *key); /* NULL: none */
/* At the end. key is borrowed and must live as long as value; it must not be there yet. */
void map_put(struct map *m, const char *key, void *value);
void *map_take(struct map *m, const char *key); /* out of it; NULL: none */
/* Empties it; fn (NULL: none) frees each value. */
void map_clear(struct map *m, void (*fn)(void *value));
#endif
