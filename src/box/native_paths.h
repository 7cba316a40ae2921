/* native_paths.h - where the keeper, the box image and the box's own programs are. */
#ifndef NATIVE_PATHS_H
#define NATIVE_PATHS_H
#include "err.h"

struct conf;

struct native_paths {
    char *socket;   /* where a keeper listens that somebody else started: keeper, image and support are NULL then */
    char *keeper;   /* the sandbook-box program */
    char *image;    /* root tree of the box image this build was made for */
    char *image_id; /* its recipe's hash; of one that was set by hand, its path */
    char *support;  /* folder with kernel and helpers */
};

/* conf's own words first, then the places below. ERR_CONFIG says what is missing and what to do. */
must_check int native_paths_find(struct native_paths *out, const struct conf *c, struct err *e);
void native_paths_clear(struct native_paths *p);
#endif
