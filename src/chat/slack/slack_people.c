/* slack_people.c - names of people: asked once a day each, and never worth waiting for. */
#include <stdio.h>
#include <string.h>
#include "slack_teams_private.h"

enum {
    PEOPLE_MAX = 20000,
    KNOWN_MS = 24 * 3600 * 1000,
    UNKNOWN_MS = 600000,
    WAIT_MS = 4000,
};

struct person {
    struct slack_teams *t;
    char *key, *name; /* name NULL: not known */
    char *enterprise; /* NULL: none, or not known */
    bool stranger;    /* of another organisation, in a shared channel */
    int64_t until_ms;
    struct slack_call *call;
};

struct people_wait {
    struct people_wait *next;
    struct slack_teams *t;
    void (*fn)(void *ud);
    void *ud;
    loop_timer timer;
    char **keys;
    size_t n;
};

static char *key_of(const struct slack_team *team, const char *user)
{
    return xasprintf("%s/%s", team->team ? team->team : team->enterprise, user);
}

static void person_free(void *person)
{
    struct person *p = person;
    slack_api_cancel(p->call);
    free(p->key);
    free(p->name);
    free(p->enterprise);
    free(p);
}

static void wait_free(struct people_wait *w)
{
    struct people_wait **at = &w->t->waits;
    while (*at != w)
        at = &(*at)->next;
    *at = w->next;
    loop_cancel(w->t->loop, w->timer);
    for (size_t i = 0; i < w->n; i++)
        free(w->keys[i]);
    free(w->keys);
    free(w);
}

void people_free(struct slack_teams *t)
{
    while (t->waits)
        wait_free(t->waits);
    map_clear(&t->people, person_free);
}

const char *slack_people_name(struct slack_teams *t, const struct slack_team *team, const char *user)
{
    if (team->user && team->name && strcmp(user, team->user) == 0)
        return team->name;
    autofree char *key = key_of(team, user);
    const struct person *p = map_get(&t->people, key);
    return p ? p->name : NULL;
}

bool slack_people_is_outside(struct slack_teams *t, const struct slack_team *team, const char *user)
{
    autofree char *key = key_of(team, user);
    const struct person *p = map_get(&t->people, key);
    if (!p || !p->enterprise || !team->enterprise)
        return true;
    return p->stranger || strcmp(p->enterprise, team->enterprise) != 0;
}

static bool is_settled(const struct people_wait *w)
{
    for (size_t i = 0; i < w->n; i++) {
        const struct person *p = map_get(&w->t->people, w->keys[i]);
        if (p && p->call)
            return false;
    }
    return true;
}

static void finish(void *ud)
{
    struct people_wait *w = ud;
    void (*fn)(void *ud) = w->fn;
    void *fn_ud = w->ud;
    wait_free(w);
    fn(fn_ud);
}

static void wake(struct slack_teams *t)
{
    for (struct people_wait *w = t->waits; w; w = w->next) {
        if (!is_settled(w))
            continue;
        loop_cancel(t->loop, w->timer);
        w->timer = loop_after(t->loop, 0, finish, w);
    }
}

static const char *said(const struct json *o, const char *key)
{
    const char *s = json_str_or(o, key, "");
    return *s ? s : NULL;
}

static void on_user(void *ud, const struct slack_reply *r)
{
    struct person *p = ud;
    const struct json *user = json_get(r->body, "user"), *profile = json_get(user, "profile");
    const char *name = said(profile, "display_name");
    name = name ? name : said(profile, "real_name") ? said(profile, "real_name") : said(user, "real_name");
    name = name ? name : said(user, "name");
    const char *of = said(json_get(user, "enterprise_user"), "enterprise_id");
    of = of ? of : said(user, "enterprise_id");
    p->call = NULL;
    p->stranger = json_bool_or(user, "is_stranger", false);
    if (of) {
        free(p->enterprise);
        p->enterprise = xstrdup(of);
    }
    p->until_ms = loop_now_ms(p->t->loop) + (name ? KNOWN_MS : UNKNOWN_MS);
    if (name) {
        free(p->name);
        p->name = xstrdup(name);
    }
    wake(p->t);
}

/* Of too many the one known longest goes. */
static struct person *person_new(struct slack_teams *t, const char *key)
{
    if (t->people.n >= PEOPLE_MAX)
        person_free(map_take(&t->people, t->people.first->key));
    struct person *p = xcalloc(1, sizeof(*p));
    *p = (struct person){ .t = t, .key = xstrdup(key) };
    map_put(&t->people, p->key, p);
    return p;
}

static void ask(struct slack_teams *t, struct slack_team *team, const char *user, const char *key)
{
    struct person *p = map_get(&t->people, key);
    if (p && (p->call || p->until_ms > loop_now_ms(t->loop)))
        return;
    p = p ? p : person_new(t, key);
    AUTO(str_clear) struct str form = STR_INIT(SLACK_FORM_MAX);
    slack_form_add(&form, "user", user);
    p->call = slack_api_start(
        t->api, &(struct slack_request){ .method = "users.info", .team = team, .form = &form, .tries = 2 }, on_user, p);
}

void slack_people_ask(struct slack_teams *t, struct slack_team *team, const char *const *users, size_t n,
                      void (*fn)(void *ud), void *ud)
{
    struct people_wait *w = xcalloc(1, sizeof(*w));
    *w = (struct people_wait){ .next = t->waits, .t = t, .fn = fn, .ud = ud, .n = n };
    w->keys = xcalloc(n + 1, sizeof(*w->keys));
    t->waits = w;
    for (size_t i = 0; i < n; i++) {
        w->keys[i] = key_of(team, users[i]);
        if (!team->user || strcmp(users[i], team->user) != 0)
            ask(t, team, users[i], w->keys[i]);
    }
    w->timer = loop_after(t->loop, is_settled(w) ? 0 : WAIT_MS, finish, w);
}

void slack_people_forget(struct slack_teams *t, void *ud)
{
    for (struct people_wait *w = t->waits, *next; w; w = next) {
        next = w->next;
        if (w->ud == ud)
            wait_free(w);
    }
}
