/* native_paths.c - find what the sandbox is made of.
 *
 * Beside the program first (a build tree), then as installed (PREFIX/bin beside PREFIX/lib/sandbook). The image is too big
 * to lie there: it is in the cache of whoever built it, or of the machine (/var/cache/sandbook), under the hash of its recipe, so that
 * a program never runs on an image of another time. */
#include "native_paths.h"

#include <pwd.h>

#include "conf.h"
#include "paths.h"

#ifndef BOX_IMAGE_HASH
#define BOX_IMAGE_HASH "" /* the Makefile knows the recipe */
#endif

static bool given(const char *setting)
{
    return setting && *setting;
}

static int find_keeper(struct native_paths *out, const struct conf *c, const char *here, struct err *e)
{
    static const char *const at[] = { "sandbook-box", "../lib/sandbook/sandbook-box",
                                      "../libexec/sandbook/sandbook-box" };
    if (given(c->keeper) && !path_is_program(c->keeper))
        return err_set(e, ERR_CONFIG, "box.keeper: %s is not a program", c->keeper);
    out->keeper = given(c->keeper) ? xstrdup(c->keeper) : path_first(here, at, countof(at), path_is_program);
    if (!out->keeper)
        return err_set(e, ERR_CONFIG, "sandbook-box is not beside this program: install it there or set box.keeper");
    return 0;
}

static int find_support(struct native_paths *out, const struct conf *c, const char *here, struct err *e)
{
    static const char *const at[] = { "box", "../lib/sandbook/box" };
    if (given(c->box_support) && !path_is_folder(c->box_support))
        return err_set(e, ERR_CONFIG, "box.support: %s is not a folder", c->box_support);
    out->support = given(c->box_support) ? xstrdup(c->box_support) : path_first(here, at, countof(at), path_is_folder);
    if (!out->support)
        return err_set(e, ERR_CONFIG,
                       "the box's own programs are not beside this one: install them or set box.support");
    return 0;
}

/* As sandbox/image/build has it. The caller frees; NULL: no home. */
static char *cache_folder(void)
{
    const char *own = secure_getenv("SANDBOOK_CACHE"), *xdg = secure_getenv("XDG_CACHE_HOME"),
               *home = secure_getenv("HOME");
    if (given(own))
        return xstrdup(own);
    if (given(xdg))
        return xasprintf("%s/sandbook", xdg);
    if (given(home))
        return xasprintf("%s/.cache/sandbook", home);
    const struct passwd *user = getpwuid(geteuid()); /* a cron job, or env -i */
    return user && given(user->pw_dir) ? xasprintf("%s/.cache/sandbook", user->pw_dir) : NULL;
}

static int find_image(struct native_paths *out, const struct conf *c, const char *here, struct err *e)
{
    static const char *const at[] = { "image-" BOX_IMAGE_HASH "/root" };
    static const char *const beside[] = { "../lib/sandbook/image-" BOX_IMAGE_HASH "/root" };
    if (given(c->image) && !path_is_folder(c->image))
        return err_set(e, ERR_CONFIG, "box.image: %s is not a folder", c->image);
    out->image_id = xstrdup(given(c->image) ? c->image : BOX_IMAGE_HASH);
    if (given(c->image)) {
        out->image = xstrdup(c->image);
        return 0;
    }
    autofree char *cache = cache_folder();
    out->image = path_first(cache, at, countof(at), path_is_folder);
    if (!out->image)
        out->image = path_first("/var/cache/sandbook", at, countof(at), path_is_folder);
    if (!out->image)
        out->image = path_first(here, beside, countof(beside), path_is_folder);
    if (!out->image)
        return err_set(e, ERR_CONFIG, "the box image is not built: run `make image` (looked for image-%s)",
                       BOX_IMAGE_HASH);
    return 0;
}

int native_paths_find(struct native_paths *out, const struct conf *c, struct err *e)
{
    *out = (struct native_paths){ 0 };
    if (given(c->box_socket)) { /* whoever listens there has brought the rest */
        out->socket = xstrdup(c->box_socket);
        out->image_id = xstrdup(BOX_IMAGE_HASH);
        return 0;
    }
    autofree char *here = path_program_folder();
    if (find_keeper(out, c, here, e) == 0 && find_support(out, c, here, e) == 0 && find_image(out, c, here, e) == 0)
        return 0;
    native_paths_clear(out);
    return -1;
}

void native_paths_clear(struct native_paths *p)
{
    free(p->socket);
    free(p->keeper);
    free(p->image);
    free(p->image_id);
    free(p->support);
    *p = (struct native_paths){ 0 };
}
