/* What an operator is told on machines that we do not have. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>
#include "base.h"
#include "box_machine.h"

/* A kernel of today, without anybody's own switches. */
#define MANY   .max_user_namespaces = 60000, .userns_clone = -1
#define KERNEL .kernel_major = 6, .kernel_minor = 8

static const struct {
    const char *what;
    struct box_machine m;
    const char *why, *cure;
} cures[] = {
    { "Ubuntu, a plain user",
      { KERNEL, MANY, .apparmor_restricted = 1 },
      "user namespaces: Operation not permitted",
      "apparmor_parser -r" },
    { "Ubuntu, uid_map refused",
      { KERNEL, MANY, .apparmor_restricted = 1 },
      "mounts private: Permission denied",
      "AppArmor profile" },
    { "Ubuntu, root",
      { KERNEL, MANY, .apparmor_restricted = 1, .root = true },
      "user namespaces: x",
      "docs/sandbox.md" },
    { "Debian's switch",
      { KERNEL, .max_user_namespaces = 60000, .userns_clone = 0 },
      "user namespaces: Operation not permitted",
      "kernel.unprivileged_userns_clone=1" },
    { "none allowed",
      { KERNEL, .userns_clone = -1, .max_user_namespaces = 0, .root = true },
      "user namespaces: No space left on device",
      "user.max_user_namespaces" },
    { "Docker, seccomp",
      { KERNEL, MANY, .container = true, .root = true },
      "user namespaces: Operation not permitted",
      "seccomp profile" },
    { "Docker, masked",
      { KERNEL, MANY, .container = true, .masked_proc = true },
      "proc: is the host's /proc masked?: Operation not permitted",
      "systempaths=unconfined" },
    { "a unit that hides /proc",
      { KERNEL, MANY, .masked_proc = true, .systemd = true },
      "proc: x",
      "ProtectKernelTunables" },
    { "unshare -Ur",
      { KERNEL, MANY, .root = true, .one_id = true },
      "setgroups: Operation not permitted",
      "range of ids" },
    { "root without rights", { KERNEL, MANY, .root = true }, "uid_map: Operation not permitted", "CAP_SETUID" },
    { "a user that may map nothing", { KERNEL, MANY }, "uid_map: Operation not permitted", "its own id" },
    { "an old kernel",
      { .kernel_major = 4, .kernel_minor = 19, MANY },
      "open_tree: Function not implemented",
      "too old" },
    { "5.5", { .kernel_major = 5, .kernel_minor = 5, MANY }, "the kernel has no openat2", "5.6" },
    { "no openat2 on a new kernel",
      { KERNEL, MANY },
      "the kernel has no openat2 (5.6 or newer is needed)",
      "lets openat2 through" },
    { "no image", { KERNEL, MANY }, "image /x/root: No such file or directory", "make image" },
    { "a damaged image",
      { KERNEL, MANY },
      "the interpreter ended while it was loading; the log has the reason",
      "make image" },
    { "whatever", { KERNEL, MANY }, "something nobody thought of", "docs/sandbox.md" },
    { "nothing known", { 0 }, "", "docs/sandbox.md" },
};

static void each_bad_machine_gets_its_own_cure(void **state)
{
    (void)state;
    for (size_t i = 0; i < countof(cures); i++) {
        const char *cure = box_machine_cure(&cures[i].m, cures[i].why);
        if (!strstr(cure, cures[i].cure))
            fail_msg("%s: \"%s\" does not say \"%s\"", cures[i].what, cure, cures[i].cure);
    }
}

static void landlock_is_missing_for_one_of_three_reasons(void **state)
{
    (void)state;
    assert_non_null(
        strstr(box_machine_cure_landlock(&(struct box_machine){ .kernel_major = 5, .kernel_minor = 10 }), "5.13"));
    assert_non_null(strstr(box_machine_cure_landlock(&(struct box_machine){ .kernel_major = 6, .landlock_off = true }),
                           "lsm=landlock"));
    assert_non_null(
        strstr(box_machine_cure_landlock(&(struct box_machine){ .kernel_major = 6 }), "CONFIG_SECURITY_LANDLOCK"));
}

static void control_groups_are_had_differently_everywhere(void **state)
{
    (void)state;
    assert_non_null(strstr(box_machine_cure_groups(&(struct box_machine){ .container = true }), "writable"));
    assert_non_null(strstr(box_machine_cure_groups(&(struct box_machine){ .systemd = true }), "systemd-run --user"));
    assert_non_null(
        strstr(box_machine_cure_groups(&(struct box_machine){ .systemd = true, .root = true }), "Delegate=yes"));
    assert_non_null(strstr(box_machine_cure_groups(&(struct box_machine){ .root = false }), "run as root"));
}

static void this_machine_can_be_looked_at(void **state)
{
    struct box_machine m;
    (void)state;
    box_machine_look(&m);
    assert_true(m.kernel_major >= 5);
    assert_true(m.max_user_namespaces >= -1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_bad_machine_gets_its_own_cure),
        cmocka_unit_test(landlock_is_missing_for_one_of_three_reasons),
        cmocka_unit_test(control_groups_are_had_differently_everywhere),
        cmocka_unit_test(this_machine_can_be_looked_at),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
