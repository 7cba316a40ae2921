#include "map.h"
#include "digest.h"

enum { SLOTS_FIRST = 16 };

/* FNV-1a, begun at a number that peers can't know: they choose many of the names. */
static uint64_t hash_of(const char *key)
{
    static uint64_t seed;
    if (!seed)
        digest_random(&seed, sizeof(seed));
    uint64_t h = seed;
    for (; *key; key++)
        h = (h ^ (uint8_t)*key) * 0x100000001b3U;
    return h ^ h >> 32;
}

static struct map_item **slot(const struct map *m, uint64_t hash)
{
    return &m->slots[hash & (m->slot_n - 1)];
}

static void grow(struct map *m)
{
    if (m->n < m->slot_n)
        return;
    free(m->slots);
    m->slot_n = m->slot_n ? 2 * m->slot_n : SLOTS_FIRST;
    m->slots = xcalloc(m->slot_n, sizeof(struct map_item *));
    for (struct map_item *i = m->first; i; i = i->next) {
        struct map_item **at = slot(m, i->hash);
        i->chain = *at;
        *at = i;
    }
}

/* Where the item hangs in its chain; NULL: there is none. */
static struct map_item **find(const struct map *m, const char *key)
{
    if (m->n == 0)
        return NULL;
    const uint64_t hash = hash_of(key);
    for (struct map_item **at = slot(m, hash); *at; at = &(*at)->chain)
        if ((*at)->hash == hash && strcmp((*at)->key, key) == 0)
            return at;
    return NULL;
}

void *map_get(const struct map *m, const char *key)
{
    struct map_item **at = find(m, key);
    return at ? (*at)->value : NULL;
}

void map_put(struct map *m, const char *key, void *value)
{
    grow(m);
    struct map_item *i = xcalloc(1, sizeof(*i));
    *i = (struct map_item){ .key = key, .value = value, .hash = hash_of(key), .prev = m->last };
    struct map_item **at = slot(m, i->hash);
    i->chain = *at;
    *at = i;
    if (m->last)
        m->last->next = i;
    else
        m->first = i;
    m->last = i;
    m->n++;
}

void *map_take(struct map *m, const char *key)
{
    struct map_item **at = find(m, key);
    if (!at)
        return NULL;
    struct map_item *i = *at;
    void *value = i->value;
    *at = i->chain;
    if (i->prev)
        i->prev->next = i->next;
    else
        m->first = i->next;
    if (i->next)
        i->next->prev = i->prev;
    else
        m->last = i->prev;
    m->n--;
    free(i);
    return value;
}

void map_clear(struct map *m, void (*fn)(void *value))
{
    for (struct map_item *i = m->first, *next; i; i = next) {
        next = i->next;
        if (fn)
            fn(i->value);
        free(i);
    }
    free(m->slots);
    *m = (struct map){ 0 };
}
