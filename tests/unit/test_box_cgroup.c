/* Where control groups are: the text of /proc/self/cgroup and mountinfo of several kinds of machine. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>
#include "box_cgroup.h"

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
    assert_true(box_group_close(&g));
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
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
