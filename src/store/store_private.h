/* store_private.h - what the store's files share. */
#ifndef STORE_PRIVATE_H
#define STORE_PRIVATE_H
#include "db.h"
#include "store.h"

struct store {
    struct db *db;
    char *dir;  /* data_dir, absolute */
    int dir_fd; /* the same; everything below is opened from here */
    int lock_fd;
    char *out; /* store_deliver_to; else NULL */
};

/* Open (making it when absent) a folder below parent; the name is one the store made. -1 with ERR_STORE. */
int store_folder(int parent, const char *name, struct err *e);
/* data_dir/sessions/<id>/<leaf>, opened; -1 with ERR_STORE. */
int store_session_folder(const struct store *s, const char *id, const char *leaf, struct err *e);
/* All that is in that folder, as far down as boxes make folders; the folder stays. */
void store_remove_below(int parent, const char *name);
/* The folders that boxes of an earlier life began with go: nothing else leads to what is withdrawn by now. */
void store_unlay_all(struct store *s);
/* An array of rows being filled by a db_each callback. */
struct rows {
    void *at;
    size_t n, cap, size;
};
void *rows_add(struct rows *r); /* zeroed; valid until the next add */
#endif
