/* slack_asked.c - what was asked last in a thread, and by whom: for the title that Slack shows in its list of conversations.
 * In memory only, the newest few: what people say is not kept for a title. */
#include <string.h>
#include "slack_inbox_private.h"

enum { TITLE_BYTES = 120 }; /* Slack takes 200 characters and shows some 60 */

static void clear(struct asked *a)
{
    free(a->thread);
    free(a->title);
    free(a->user);
    *a = (struct asked){ 0 };
}

void asked_free(struct slack_inbox *in)
{
    for (size_t i = 0; i < SLACK_ASKED_MAX; i++)
        clear(&in->asked[i]);
}

/* The first line with words, which that of a fence is not; NULL: there is none. */
static char *title_of(const char *text)
{
    text += strspn(text, " \t\n");
    while (strncmp(text, "```", 3) == 0) {
        text += strcspn(text, "\n");
        text += strspn(text, " \t\n");
    }
    const size_t n = utf8_cut(text, strcspn(text, "\n"), TITLE_BYTES);
    return n ? xstrndup(text, n) : NULL;
}

void asked_keep(struct slack_inbox *in, const char *thread, const char *user, const char *text)
{
    struct asked *a = &in->asked[in->asked_at++ % SLACK_ASKED_MAX];
    char *title = title_of(text);
    clear(a);
    if (title)
        *a = (struct asked){ .thread = xstrdup(thread), .title = title, .user = xstrdup(user) };
}

const char *slack_inbox_asked(const struct slack_inbox *in, const char *thread, const char **user)
{
    for (size_t i = 1; i <= SLACK_ASKED_MAX; i++) { /* the newest first */
        const struct asked *a = &in->asked[(in->asked_at + SLACK_ASKED_MAX - i) % SLACK_ASKED_MAX];
        if (a->thread && strcmp(a->thread, thread) == 0) {
            *user = a->user;
            return a->title;
        }
    }
    return NULL;
}
