/* Killed at every durable step: whatever was accepted is answered once, and nothing half is left.
 *
 * Each round is a child that kills itself at its n-th step to the disk (a sync, a rename, a link, a removal), and another that
 * finds what it left. What the chat has shown is in a file, since a killed program remembers nothing. */
#include <signal.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include "core_world.h"

enum { STEPS_MAX = 400 };

/* ---- the disk, with a counter: these take the place of the C library's, for SQLite, too ---- */

static long steps, kill_at;

static void step(void)
{
    if (kill_at && ++steps == kill_at)
        (void)kill(getpid(), SIGKILL);
}

/* What was written is in the kernel's hands: a kill loses nothing of it, so that nothing needs to wait for a disk here. */
int fsync(int fd)
{
    (void)fd;
    step();
    return 0;
}

int fdatasync(int fd)
{
    (void)fd;
    step();
    return 0;
}

int renameat(int from_fd, const char *from, int to_fd, const char *to)
{
    step();
    return (int)syscall(SYS_renameat2, from_fd, from, to_fd, to, 0);
}

int unlinkat(int fd, const char *path, int flags)
{
    step();
    return (int)syscall(SYS_unlinkat, fd, path, flags);
}

int linkat(int from_fd, const char *from, int to_fd, const char *to, int flags)
{
    step();
    return (int)syscall(SYS_linkat, from_fd, from, to_fd, to, flags);
}

/* ---- the chat, as its people see it ---- */

static char folder[64];

static void note(const char *word, const char *what, const char *text)
{
    autofree char *path = xasprintf("%s/shown", folder);
    autofree char *line = xasprintf("%s %s %.*s\n", word, what, (int)strcspn(text, "\n"), text);
    autoclose int fd = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    assert_int_equal(write_all(fd, line, strlen(line)), 0);
}

static int show(struct chat *c, const struct chat_post *p, void (*done)(void *ud, const struct err *e), void *ud,
                struct err *e)
{
    (void)c;
    (void)e;
    step(); /* the platform has not got it; and at the next step it has, and we don't know */
    if (p->type == CHAT_ANSWER)
        note("answer", p->txn, p->markdown);
    step();
    done(ud, NULL);
    return 0;
}

static const struct chat_ops chat_shown = { .name = "test", .post = show };

static char *shown(void)
{
    autofree char *path = xasprintf("%s/shown", folder);
    struct str text = STR_INIT(1 << 20);
    struct err e = { 0 };
    if (str_read_file(&text, path, &e) < 0)
        return xstrdup("");
    return str_take(&text);
}

static bool was_shown(const char *text)
{
    autofree char *all = shown();
    return strstr(all, text) != NULL;
}

/* ---- a life ---- */

static void bring(struct world *w, const char *id, const char *text, bool with_file)
{
    autofree char *accepted = xasprintf("accepted %s ", id);
    if (was_shown(accepted))
        return;
    FILE *f = tmpfile();
    assert_non_null(f);
    assert_true(fputs("a,b\n1,2\n", f) >= 0);
    rewind(f);
    const struct chat_file file = { .name = "table.csv", .fd = fileno(f), .bytes = 8 };
    const struct chat_event ev = { .id = id, .text = text, .direct = true, .files = &file, .file_n = with_file };
    if (world_event(w, &ev) == 0)
        note("accepted", id, "");
    (void)fclose(f);
}

static void begin(struct world *w)
{
    static const char box[] = "{\"stdout\":\"1\",\"files\":[{\"path\":\"out.txt\",\"content\":\"made\"}]}\n"
                              "{\"op\":\"checkpoint\",\"content\":\"variables\",\"kept\":1}\n";
    static const struct model_ops *const models[] = { &model_replay, NULL };
    struct err e = { 0 };
    world_open(w, "", box);
    (void)nftw(w->dir, world_remove_one, 4, FTW_DEPTH | FTW_PHYS);
    (void)snprintf(w->dir, sizeof(w->dir), "%s", folder);
    autofree char *url = xasprintf("model.tape.url=%s/model.jsonl", w->dir);
    assert_int_equal(conf_set(&w->conf, url, &e), 0);
    world_model(w, CALL("x = 1") SAY("done") SAY("again") SAY("again"));
    assert_int_equal(store_open(&w->store, w->dir, &e), 0);
    const struct session_parts parts = { .loop = w->l,
                                         .conf = &w->conf,
                                         .store = w->store,
                                         .sandbox_ops = &sandbox_fake,
                                         .sandbox = w->sandbox,
                                         .models = models,
                                         .keep_state = true };
    assert_int_equal(session_hub_new(&w->hub, &parts, &e), 0);
    session_hub_attach(w->hub, &chat_shown, &w->chat);
    assert_int_equal(session_hub_resume(w->hub, &e), 0);
}

/* Does what it is told and is gone, one way or the other; true: it got to its end. */
static bool live(long die_at, const char *last)
{
    int status = 0;
    const pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        struct world w;
        kill_at = die_at;
        begin(&w);
        bring(&w, "q", "what is in it?", true);
        world_run(&w, 2000);
        if (last)
            bring(&w, last, last, false);
        world_run(&w, 2000);
        world_stop(&w);
        _exit(0);
    }
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFEXITED(status) ? WEXITSTATUS(status) == 0 : WTERMSIG(status) == SIGKILL);
    return WIFEXITED(status);
}

static size_t incoming_n, folders_n;

static int look(const char *path, const struct stat *st, int type, struct FTW *at)
{
    (void)st;
    incoming_n += strcmp(path + at->base, ".incoming") == 0;
    folders_n += type == FTW_D && strstr(path, "/files/") != NULL;
    return 0;
}

/* Every version has its bytes, and no bytes are there that belong to none. */
static void assert_whole(bool forgotten)
{
    struct store *s = NULL;
    struct session_row row;
    struct file_row *files = NULL;
    struct err e = { 0 };
    size_t n = 0;
    incoming_n = folders_n = 0;
    assert_int_equal(nftw(folder, look, 16, FTW_PHYS), 0);
    assert_int_equal(store_open(&s, folder, &e), 0);
    assert_int_equal(store_session_get(s, "test", "room", NULL, &row, NULL, &e), 0);
    assert_int_equal(store_files(s, row.id, &files, &n, &e), 0);
    for (size_t i = 0; i < n; i++) {
        struct stat st;
        assert_int_equal(stat(files[i].path, &st), 0);
        assert_int_equal(st.st_size, files[i].bytes);
        file_row_clear(&files[i]);
    }
    free(files);
    assert_true(folders_n >= n);
    if (forgotten)
        assert_int_equal(n + folders_n, 0);
    session_row_clear(&row);
    store_close(s);
}

static void assert_answered(const char *question)
{
    autofree char *all = shown(), *key = xasprintf("answer test:%s:answer", question);
    if (!strstr(all, key))
        fail_msg("%s was not answered:\n%s", question, all);
}

/* What is done is done: another life has nothing to say. */
static void assert_nothing_more(const char *last)
{
    autofree char *before = shown();
    assert_true(live(0, last));
    autofree char *after = shown();
    assert_string_equal(before, after);
}

static void remove_all(void)
{
    (void)nftw(folder, world_remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

/* last: what is said at the end of the life that is killed. */
static void kill_everywhere(const char *last, bool forgets)
{
    bool ended = false;
    long n = 0;
    while (!ended && n++ < STEPS_MAX) {
        (void)snprintf(folder, sizeof(folder), "/dev/shm/test-kill-XXXXXX");
        assert_non_null(mkdtemp(folder));
        ended = live(n, last);
        assert_true(live(0, last));
        if (!forgets) {
            assert_answered("q");
            assert_answered(last);
        }
        if (n % 8 == 0)
            assert_nothing_more(last);
        assert_whole(forgets);
        remove_all();
    }
    assert_true(ended);
    assert_true(n > 20); /* there were as many steps to die at */
    if (getenv("TEST_LOG"))
        print_message("%ld steps\n", n);
}

static void a_question_with_a_file_survives_a_kill_at_every_step(void **state)
{
    (void)state;
    kill_everywhere("next", false);
}

static void a_forget_survives_a_kill_at_every_step(void **state)
{
    (void)state;
    kill_everywhere("!forget", true);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_question_with_a_file_survives_a_kill_at_every_step),
        cmocka_unit_test(a_forget_survives_a_kill_at_every_step),
    };
    return cmocka_run_group_tests_name("session_kill", tests, NULL, NULL);
}
