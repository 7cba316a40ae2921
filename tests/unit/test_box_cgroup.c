/* Where control groups are: the text of /proc/self/cgroup and mountinfo of several kinds of machine; and what is done with a v2
 * tree that is delegated, on folders and files that stand for one. */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <cmocka.h>
#include "box_cgroup.h"
#include "box_cgroup_find.h"
#include "box_group.h"
#include "box_limit.h"
#include "str.h"

static const char hybrid[] = "9:name=systemd:/system.slice/bot.service\n"
                             "8:pids:/system.slice/bot.service\n"
                             "4:memory:/a b/c\n"
                             "2:cpuacct,cpu:/x\n"
                             "0::/system.slice/bot.service\n";
static const char mounts[] =
    "22 1 254:0 / / rw,relatime - ext4 /dev/vda rw\n"
    "30 29 0:26 / /sys/fs/cgroup/pids rw,relatime shared:9 - cgroup cgroup rw,pids\n"
    "31 29 0:27 / /sys/fs/cg\\040roup/memory rw,relatime - cgroup cgroup rw,memory\n"
    "32 29 0:28 / /sys/fs/cgroup/cpu,cpuacct rw,relatime - cgroup cgroup rw,cpu,cpuacct\n"
    "33 29 0:29 / /sys/fs/cgroup/unified rw,relatime shared:3 master:2 - cgroup2 cgroup2 rw,nsdelegate\n";

static void check_own(const char *controller, const char *want)
{
    autofree char *got = box_cgroup_own(hybrid, controller);
    if (want)
        assert_string_equal(got, want);
    else
        assert_null(got);
}

static void own_paths_are_found(void **state)
{
    (void)state;
    check_own("pids", "/system.slice/bot.service");
    check_own("memory", "/a b/c");
    check_own("cpu", "/x");
    check_own("", "/system.slice/bot.service");
    check_own("cp", NULL);
    check_own("blkio", NULL);
}

static void check_folder(const char *info, const char *controller, const char *own, const char *want)
{
    autofree char *got = box_cgroup_folder(info, controller, own);
    if (want)
        assert_string_equal(got, want);
    else
        assert_null(got);
}

static void folders_are_found(void **state)
{
    (void)state;
    check_folder(mounts, "pids", "/system.slice/bot.service", "/sys/fs/cgroup/pids/system.slice/bot.service");
    check_folder(mounts, "memory", "/a b/c", "/sys/fs/cg roup/memory/a b/c");
    check_folder(mounts, "cpu", "/", "/sys/fs/cgroup/cpu,cpuacct");
    check_folder(mounts, "", "/u", "/sys/fs/cgroup/unified/u");
    check_folder(mounts, "blkio", "/", NULL);
}

/* In a container the mount's root is the container's own group. */
static void a_mount_of_a_subtree_is_stripped(void **state)
{
    static const char inside[] = "40 29 0:27 /docker/abc /sys/fs/cgroup/memory ro - cgroup cgroup rw,memory\n";
    (void)state;
    check_folder(inside, "memory", "/docker/abc", "/sys/fs/cgroup/memory");
    check_folder(inside, "memory", "/docker/abc/x", "/sys/fs/cgroup/memory/x");
    check_folder(inside, "memory", "/docker/abcd", NULL);
    check_folder(inside, "memory", "/", NULL);
}

static void junk_is_no_folder(void **state)
{
    static const char *const junk[] = {
        "", "\n\n", "1 2 3", "1 2 3 4 5 6 - cgroup", "- - - - - - - - -\n", "40 29 0:27 / /x ro -\n", "a:b", "0:\n"
    };
    (void)state;
    for (size_t i = 0; i < countof(junk); i++) {
        check_folder(junk[i], "memory", "/", NULL);
        autofree char *own = box_cgroup_own(junk[i], "memory");
        assert_null(own);
    }
}

static void values_are_read_by_name(void **state)
{
    (void)state;
    static const char text[] = "oom_kill_disable 0\nunder_oom 1\noom_kill 7\n";
    assert_int_equal(box_cgroup_value(text, "oom_kill", -1), 7);
    assert_int_equal(box_cgroup_value(text, "oom", -1), -1);
    assert_int_equal(box_cgroup_value("", "oom_kill", -1), -1);
    assert_int_equal(box_cgroup_value("max 3", "max", -1), 3);
}

static void without_groups_nothing_is_done(void **state)
{
    (void)state;
    struct err e;
    const struct box_cgroups none = { .kind = BOX_CGROUP_NONE };
    const struct box_group_limits l = { .memory_bytes = 1 << 20, .pids = 9 };
    struct box_group g;
    assert_int_equal(box_group_open(&g, &none, 1, &l, &e), 0);
    assert_int_equal(box_group_enter(&g), 0);
    assert_int_equal(box_group_run(&g, 1, &e), 0);
    box_group_kill(&g);
    assert_false(box_group_freeze(&g, true));
    assert_int_equal(box_group_usage(&g).peak_bytes, -1);
    assert_int_equal(box_group_files(&g), -1);
    assert_true(box_group_close(&g));
}

/* ---- a v2 tree: folders and files as the kernel would have made them ---- */

struct tree {
    char top[64], own[160];
    struct box_cgroups c;
};

static const char *const files[] = { "cgroup.procs",     "cgroup.subtree_control",
                                     "cgroup.kill",      "cgroup.freeze",
                                     "memory.max",       "memory.swap.max",
                                     "memory.zswap.max", "memory.oom.group",
                                     "memory.peak",      "pids.max",
                                     "cpu.max",          "cgroup.events",
                                     "memory.current",   "memory.stat",
                                     "memory.events",    "memory.events.local",
                                     "pids.events",      "cgroup.controllers" };

static void set(const char *dir, const char *file, const char *text)
{
    char path[512];
    (void)snprintf(path, sizeof path, "%s/%s", dir, file);
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
    assert_true(fd >= 0);
    assert_int_equal(write_all(fd, text, strlen(text)), 0);
    (void)close(fd);
}

static void assert_file(const char *dir, const char *file, const char *text)
{
    struct err e;
    char path[512];
    AUTO(str_clear) struct str got = STR_INIT(4096);
    (void)snprintf(path, sizeof path, "%s/%s", dir, file);
    assert_int_equal(str_read_file(&got, path, &e), 0);
    assert_string_equal(str_peek(&got), text);
}

static void folder_of(char *out, size_t n, const char *dir, const char *below)
{
    (void)snprintf(out, n, "%s%s", dir, below);
    assert_true(mkdir(out, 0755) == 0 || errno == EEXIST);
    for (size_t i = 0; i < countof(files); i++)
        set(out, files[i], "");
}

static void tree_begin(struct tree *t)
{
    *t = (struct tree){ .top = "/tmp/test-cgroup-XXXXXX" };
    assert_non_null(mkdtemp(t->top));
    folder_of(t->own, sizeof t->own, t->top, "");
    char below[80], made[160];
    folder_of(made, sizeof made, t->top, "/supervisor");
    (void)snprintf(below, sizeof below, "/sandbook-%d-%llu", (int)getpid(), box_start_ticks(getpid()));
    folder_of(t->own, sizeof t->own, t->top, below);
    set(t->top, "cgroup.controllers", "cpu memory pids\n");
}

static void tree_end(struct tree *t)
{
    box_cgroups_close(&t->c);
    autofree char *remove = xasprintf("rm -r '%s'", t->top);
    assert_int_equal(system(remove), 0); /* NOLINT: a name of our own */
}

static void a_delegated_tree_is_taken_and_left_by_the_keeper(void **state)
{
    (void)state;
    struct tree t;
    tree_begin(&t);
    assert_true(box_cgroups_open_v2(&t.c, t.top));
    assert_int_equal(t.c.kind, BOX_CGROUP_V2);
    for (int i = 0; i < BOX_CG_PARTS; i++)
        assert_string_equal(t.c.part[i], t.own);
    autofree char *leaf = xasprintf("%s/supervisor", t.top);
    assert_file(leaf, "cgroup.procs", "0"); /* no processes in inner nodes */
    tree_end(&t);
}

static void a_keeper_that_is_in_its_leaf_stays_there(void **state)
{
    (void)state;
    struct tree t;
    tree_begin(&t);
    autofree char *leaf = xasprintf("%s/supervisor", t.top);
    set(leaf, "cgroup.controllers", "memory pids\n");
    assert_true(box_cgroups_open_v2(&t.c, leaf));
    assert_string_equal(t.c.part[BOX_CG_MEMORY], t.own);
    assert_file(leaf, "cgroup.procs", "");
    tree_end(&t);
}

static void a_tree_without_memory_or_without_rights_is_none(void **state)
{
    (void)state;
    static const char *const lacking[] = { "", "cpu pids\n", "hugetlb memory\n" };
    struct tree t;
    tree_begin(&t);
    for (size_t i = 0; i < countof(lacking); i++) {
        set(t.top, "cgroup.controllers", lacking[i]);
        assert_false(box_cgroups_open_v2(&t.c, t.top));
        assert_int_equal(t.c.kind, BOX_CGROUP_NONE);
    }
    assert_false(box_cgroups_open_v2(&t.c, "/nowhere"));
    set(t.top, "cgroup.controllers", "memory pids\n");
    autofree char *control = xasprintf("%s/cgroup.subtree_control", t.top);
    assert_int_equal(unlink(control), 0); /* not delegated: it can't be written to */
    assert_false(box_cgroups_open_v2(&t.c, t.top));
    tree_end(&t);
}

static void a_session_is_limited_moved_killed_and_frozen(void **state)
{
    (void)state;
    struct err e;
    struct tree t;
    struct box_group g;
    char all[200], init[200], run[200], parked[200], copy[240];
    const struct box_group_limits l = { .memory_bytes = 256 << 20, .pids = 96, .cpu_pct = 150 };
    tree_begin(&t);
    assert_true(box_cgroups_open_v2(&t.c, t.top));
    folder_of(all, sizeof all, t.own, "/s7");
    folder_of(init, sizeof init, all, "/init");
    folder_of(run, sizeof run, all, "/run");
    folder_of(parked, sizeof parked, all, "/parked");
    folder_of(copy, sizeof copy, parked, "/c1");
    assert_int_equal(box_group_open(&g, &t.c, 7, &l, &e), 0);
    assert_file(run, "memory.max", "268435456");
    assert_file(run, "memory.oom.group", "1");
    assert_file(run, "memory.swap.max", "0");
    assert_file(run, "pids.max", "96");
    assert_file(all, "memory.max", "301989888"); /* and 32 MiB for init */
    assert_file(all, "memory.oom.group", "");
    assert_file(all, "cpu.max", "150000 100000");
    assert_int_equal(box_group_enter(&g), 0);
    assert_file(init, "cgroup.procs", "0");
    assert_int_equal(box_group_run(&g, 4711, &e), 0);
    assert_file(run, "cgroup.procs", "4711");
    assert_true(box_group_can_kill(&g));
    set(all, "cpu.max", "");
    box_group_kill(&g);
    assert_file(run, "cgroup.kill", "1");
    assert_file(all, "cpu.max", "max"); /* dying goes fast */
    set(run, "cgroup.events", "populated 0\nfrozen 1\n");
    assert_true(box_group_is_empty(&g));
    assert_true(box_group_freeze(&g, true));
    assert_file(run, "cgroup.freeze", "1");
    set(run, "cgroup.events", "populated 1\nfrozen 0\n");
    assert_false(box_group_is_empty(&g));
    assert_false(box_group_freeze(&g, true)); /* it does not stand still */
    assert_int_equal(box_group_park(&g, 1, 4712, &e), 0);
    assert_file(copy, "cgroup.procs", "4712");
    assert_file(copy, "cgroup.freeze", "1");
    box_group_unpark(&g, 1);
    assert_file(copy, "cgroup.kill", "1");
    tree_end(&t);
}

static void add_words(void *ud, const char *pid)
{
    str_printf(ud, "%s ", pid);
}

static void what_runs_is_listed(void **state)
{
    (void)state;
    struct err e;
    struct tree t;
    struct box_group g;
    char all[200], run[200];
    const struct box_group_limits l = { .memory_bytes = 256 << 20, .pids = 96 };
    AUTO(str_clear) struct str told = STR_INIT(1000);
    tree_begin(&t);
    assert_true(box_cgroups_open_v2(&t.c, t.top));
    folder_of(all, sizeof all, t.own, "/s7");
    folder_of(run, sizeof run, all, "/init");
    folder_of(run, sizeof run, all, "/parked");
    folder_of(run, sizeof run, all, "/run");
    assert_int_equal(box_group_open(&g, &t.c, 7, &l, &e), 0);
    set(run, "cgroup.procs", "");
    assert_false(box_group_each(&g, add_words, &told));
    set(run, "cgroup.procs", "17\n4711\n");
    assert_true(box_group_each(&g, add_words, &told));
    assert_string_equal(str_peek(&told), "17 4711 ");
    tree_end(&t);
}

static void what_a_session_used_is_read(void **state)
{
    (void)state;
    struct err e;
    struct tree t;
    struct box_group g;
    char all[200], below[200];
    const struct box_group_limits l = { .memory_bytes = 256 << 20, .pids = 96 };
    tree_begin(&t);
    assert_true(box_cgroups_open_v2(&t.c, t.top));
    folder_of(all, sizeof all, t.own, "/s7");
    folder_of(below, sizeof below, all, "/init");
    folder_of(below, sizeof below, all, "/parked");
    folder_of(below, sizeof below, all, "/run");
    assert_int_equal(box_group_open(&g, &t.c, 7, &l, &e), 0);
    box_group_begin_usage(&g);
    set(below, "memory.peak", "1000\n");
    set(below, "memory.events", "low 0\noom 3\noom_kill 2\n");
    set(all, "memory.events.local", "oom_kill 1\n");
    set(all, "memory.current", "9000\n");
    set(all, "memory.stat", "anon 5000\nshmem 700\ninactive_file 1500\nactive_file 500\n");
    const struct box_usage u = box_group_usage(&g);
    assert_int_equal(u.peak_bytes, 1000);
    assert_int_equal(u.oom_kills, 3);
    assert_int_equal(box_group_memory(&g), 7000); /* page cache can be had back */
    assert_int_equal(box_group_files(&g), 700);
    tree_end(&t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(own_paths_are_found),
        cmocka_unit_test(folders_are_found),
        cmocka_unit_test(a_mount_of_a_subtree_is_stripped),
        cmocka_unit_test(junk_is_no_folder),
        cmocka_unit_test(values_are_read_by_name),
        cmocka_unit_test(without_groups_nothing_is_done),
        cmocka_unit_test(a_delegated_tree_is_taken_and_left_by_the_keeper),
        cmocka_unit_test(a_keeper_that_is_in_its_leaf_stays_there),
        cmocka_unit_test(a_tree_without_memory_or_without_rights_is_none),
        cmocka_unit_test(a_session_is_limited_moved_killed_and_frozen),
        cmocka_unit_test(what_runs_is_listed),
        cmocka_unit_test(what_a_session_used_is_read),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
