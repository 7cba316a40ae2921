#include "matrix.h"

void matrix_grant_start(struct chat *c)
{
    struct err e = { 0 };
    (void)err_set(&e, ERR_CONFIG, "neither matrix.access_token_file nor matrix.password_file is set");
    matrix_down(c, &e);
}

void matrix_grant_refresh(struct chat *c, api_fn *fn)
{
    (void)c;
    (void)fn;
}

void matrix_grant_free(struct device_grant *g)
{
    free(g);
}
