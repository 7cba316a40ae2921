/* A disk that is full, at every page of the way: what a person asks is answered once there is room, or they are told.
 *
 * Each round has so many KiB left, from none on to where the whole way fits, so that every write on it is once the one that fails. */
#include <sched.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include "core_world.h"

enum {
    DISK_KIB = 8 << 10,
    STEP_KIB = 4,   /* a page */
    LAST_KIB = 320, /* the whole way has room */
    UPLOAD_BYTES = 6000,
};

/* A file system of our own; false: this machine doesn't let us. */
static bool may_mount(void)
{
    if (unshare(CLONE_NEWNS) == 0 && mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) == 0)
        return true;
    print_message("not as root: no file system of the test's own\n");
    return false;
}

static void mount_small(const struct world *w)
{
    autofree char *size = xasprintf("size=%dk,mode=700", DISK_KIB);
    assert_int_equal(mount("tmpfs", w->dir, "tmpfs", 0, size), 0);
}

static void fill(const struct world *w, int left_kib)
{
    autofree char *path = xasprintf("%s/ballast", w->dir);
    autoclose int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    static char page[STEP_KIB << 10];
    while (write(fd, page, sizeof(page)) > 0)
        ;
    const off_t have = lseek(fd, 0, SEEK_END);
    assert_int_equal(ftruncate(fd, have > (off_t)left_kib << 10 ? have - ((off_t)left_kib << 10) : 0), 0);
}

static void make_room(const struct world *w)
{
    autofree char *path = xasprintf("%s/ballast", w->dir);
    assert_int_equal(unlink(path), 0);
}

/* The question with a file that a platform brings, and brings again until it was taken. */
static int bring(struct world *w)
{
    char bytes[UPLOAD_BYTES];
    memset(bytes, 'x', sizeof(bytes));
    FILE *f = tmpfile();
    assert_non_null(f);
    assert_int_equal(fwrite(bytes, 1, sizeof(bytes), f), sizeof(bytes));
    rewind(f);
    const struct chat_file file = { .name = "table.csv", .fd = fileno(f), .bytes = sizeof(bytes) };
    const struct chat_event ev = {
        .id = "question", .text = "what is in it?", .direct = true, .files = &file, .file_n = 1
    };
    const int rc = world_event(w, &ev);
    (void)fclose(f);
    return rc;
}

/* Answers under different keys: the same key shows once. */
static size_t answers_to(const struct world *w, const char *question)
{
    const char *first = NULL;
    size_t n = 0;
    for (size_t i = 0; i < w->chat.n; i++) {
        const struct post *p = &w->chat.posts[i];
        if (p->type != CHAT_ANSWER || strcmp(p->reply_to, question) != 0 || (first && strcmp(first, p->txn) == 0))
            continue;
        first = p->txn;
        n++;
    }
    return n;
}

static size_t told(const struct world *w, const char *question)
{
    size_t n = answers_to(w, question);
    for (size_t i = 0; i < w->chat.n; i++)
        n += w->chat.posts[i].type == CHAT_NOTICE && strcmp(w->chat.posts[i].reply_to, question) == 0;
    return n;
}

static void one_round(int left_kib)
{
    struct world w;
    world_open(&w, "", "{\"stdout\":\"1\",\"files\":[{\"path\":\"out.txt\",\"content\":\"made\"}]}\n");
    mount_small(&w);
    world_start(&w, CALL("x = 1") SAY("done") SAY("again"));
    log_set_level(getenv("TEST_LOG") ? LOG_DEBUG : LOG_ERROR);
    fill(&w, left_kib);
    const int taken = bring(&w);
    world_run(&w, 3000);
    if (told(&w, "question") == 0)
        fail_msg("%d KiB left: nobody was told anything (taken: %d)", left_kib, taken);
    make_room(&w);
    if (taken < 0)
        assert_int_equal(bring(&w), 0);
    world_run(&w, 120000);
    const size_t before = answers_to(&w, "question");
    world_stop(&w);
    world_start(&w, SAY("next") SAY("next") SAY("next"));
    world_run(&w, 3000);
    if (answers_to(&w, "question") > 1 || answers_to(&w, "question") < before)
        fail_msg("%d KiB left: %zu answers", left_kib, answers_to(&w, "question"));
    assert_int_equal(world_event(&w, &(struct chat_event){ .id = "next", .text = "and now?", .direct = true }), 0);
    world_run(&w, 3000);
    if (answers_to(&w, "next") != 1)
        fail_msg("%d KiB left: the next question was not answered", left_kib);
    world_stop(&w);
    (void)umount2(w.dir, MNT_DETACH);
    world_close(&w);
}

/* ---- descriptors ---- */

static rlim_t lowest_free(void)
{
    const int fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
    assert_true(fd >= 0);
    (void)close(fd);
    return (rlim_t)fd;
}

static void round_of_descriptors(rlim_t spare)
{
    struct world w;
    struct rlimit was, few;
    world_open(&w, "", "{\"stdout\":\"1\",\"files\":[{\"path\":\"out.txt\",\"content\":\"made\"}]}\n");
    world_start(&w, CALL("x = 1") SAY("done") SAY("again") SAY("again"));
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &was), 0);
    few =
        (struct rlimit){ lowest_free() + 1 + spare, was.rlim_max }; /* one is the platform's: the file that it brings */
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &few), 0);
    const int taken = bring(&w);
    world_run(&w, 3000);
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &was), 0);
    if (taken == 0 && told(&w, "question") == 0)
        fail_msg("%d descriptors: nobody was told anything", (int)spare);
    world_run(&w, 120000);
    assert_int_equal(world_event(&w, &(struct chat_event){ .id = "next", .text = "and now?", .direct = true }), 0);
    world_run(&w, 3000);
    if (answers_to(&w, "next") != 1)
        fail_msg("%d descriptors: the next question was not answered", (int)spare);
    world_close(&w);
}

static void descriptors_that_run_out_are_told_and_got_over(void **state)
{
    (void)state;
    for (rlim_t spare = 0; spare < 8; spare++)
        round_of_descriptors(spare);
}

static void a_full_disk_is_told_and_what_was_asked_is_answered_when_there_is_room(void **state)
{
    (void)state;
    if (!may_mount())
        skip();
    const char *only = getenv("TEST_KIB");
    log_set_level(LOG_ERROR);
    for (int kib = only ? atoi(only) : 0; kib <= (only ? atoi(only) : LAST_KIB);
         kib += kib < 64 ? STEP_KIB : 4 * STEP_KIB)
        one_round(kib);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_full_disk_is_told_and_what_was_asked_is_answered_when_there_is_room),
        cmocka_unit_test(descriptors_that_run_out_are_told_and_got_over),
    };
    return cmocka_run_group_tests_name("session_disk", tests, NULL, NULL);
}
