/* tokens.h - how long a text is for a model, without its tokenizer. Pure. */
#ifndef TOKENS_H
#define TOKENS_H
#include "transcript.h"

/* Estimated to within 10-20 %: by script, and whether it is prose or code. */
int64_t tokens_of_text(const char *text);
int64_t tokens_of(const struct transcript *t, size_t from, size_t to);

/* What a model's own counts taught about the estimate; one a model, for the life of the process. Zero: nothing yet. */
struct token_scale {
    double ratio;   /* reported / estimated, smoothed; 0: not known */
    int64_t window; /* what the server seems to hold, when that is less than configured; 0: as configured */
    bool told;      /* that it drops what is longer */
};
/* An estimate as this model counts. NULL: as it is. */
int64_t tokens_scaled(const struct token_scale *s, int64_t estimate);
/* A prompt of that estimate was reported as so many tokens (0: not reported). False: so few that the server must have dropped a part
 * of it without a word; then nothing is learned but the window. */
bool tokens_learn(struct token_scale *s, int64_t estimate, int64_t reported);
/* A prompt of that estimate was refused for its length; what the server said of its window and of what it counted, 0: nothing. */
void tokens_refused(struct token_scale *s, int64_t estimate, int64_t window, int64_t sent);
#endif
