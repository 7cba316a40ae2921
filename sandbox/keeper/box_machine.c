/* box_machine.c - see box_machine.h. Rules are tried in order: the first that fits both the words and the facts speaks. */
#include "box_machine.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>
#include "str.h"

enum { KERNEL_OPENAT2 = 5006, KERNEL_LANDLOCK = 5013, TEXT_MAX = 64 << 10 };

/* ---- facts ---- */

static bool read_text(const char *path, struct str *out)
{
    char buf[4096];
    FILE *f = fopen(path, "re");
    if (!f)
        return false;
    for (size_t n; (n = fread(buf, 1, sizeof buf, f)) > 0 && out->len + n < TEXT_MAX;)
        str_add(out, buf, n);
    (void)fclose(f);
    return true;
}

static long number_in(const char *path)
{
    AUTO(str_clear) struct str text = STR_INIT(TEXT_MAX);
    return read_text(path, &text) ? strtol(str_peek(&text), NULL, 10) : -1;
}

static bool says(const char *path, const char *word)
{
    AUTO(str_clear) struct str text = STR_INIT(TEXT_MAX);
    return read_text(path, &text) && strstr(str_peek(&text), word) != NULL;
}

/* A single line "0 0 1" or the like: nobody else's ids are mapped. */
static bool has_one_id(void)
{
    AUTO(str_clear) struct str text = STR_INIT(TEXT_MAX);
    if (!read_text("/proc/self/uid_map", &text))
        return false;
    char *at = NULL;
    (void)strtoul(str_peek(&text), &at, 10);
    (void)strtoul(at, &at, 10);
    return strtoul(at, NULL, 10) == 1;
}

/* "6.18.44-cloud" */
static void read_release(struct box_machine *m, const char *release)
{
    char *at = NULL;
    m->kernel_major = (int)strtol(release, &at, 10);
    m->kernel_minor = *at == '.' ? (int)strtol(at + 1, NULL, 10) : 0;
}

void box_machine_look(struct box_machine *m)
{
    struct utsname u = { 0 };
    *m = (struct box_machine){
        .userns_clone = (int)number_in("/proc/sys/kernel/unprivileged_userns_clone"),
        .apparmor_restricted = (int)number_in("/proc/sys/kernel/apparmor_restrict_unprivileged_userns"),
        .max_user_namespaces = number_in("/proc/sys/user/max_user_namespaces"),
        .root = geteuid() == 0,
        .container = access("/.dockerenv", F_OK) == 0 || access("/run/.containerenv", F_OK) == 0 ||
                     getenv("KUBERNETES_SERVICE_HOST") != NULL, /* NOLINT(concurrency-mt-unsafe): one thread */
        .masked_proc = says("/proc/self/mountinfo", " /proc/"),
        .one_id = has_one_id(),
        .landlock_off = !says("/sys/kernel/security/lsm", "landlock"),
        .systemd = access("/run/systemd/system", F_OK) == 0,
    };
    if (uname(&u) == 0)
        read_release(m, u.release);
}

static bool older(const struct box_machine *m, int kernel)
{
    return m->kernel_major > 0 && m->kernel_major * 1000 + m->kernel_minor < kernel;
}

/* ---- words ---- */

static bool kernel_is_old(const struct box_machine *m)
{
    return older(m, KERNEL_OPENAT2);
}

static bool none_allowed(const struct box_machine *m)
{
    return m->max_user_namespaces == 0;
}

static bool debian_forbids(const struct box_machine *m)
{
    return !m->root && m->userns_clone == 0;
}

static bool apparmor_forbids(const struct box_machine *m)
{
    return !m->root && m->apparmor_restricted == 1;
}

static bool in_container(const struct box_machine *m)
{
    return m->container;
}

static bool proc_is_masked(const struct box_machine *m)
{
    return m->masked_proc;
}

static bool root_of_one_id(const struct box_machine *m)
{
    return m->root && m->one_id;
}

static bool is_root(const struct box_machine *m)
{
    return m->root;
}

static bool always(const struct box_machine *m)
{
    (void)m;
    return true;
}

static const struct {
    const char *why; /* part of the failing step's words; "": any */
    bool (*is)(const struct box_machine *m);
    const char *cure;
} rules[] = {
    { "", kernel_is_old, "the kernel is too old: 5.6 is the least, 5.14 or newer is right" },
    { "openat2", always,
      "take a kernel of 5.6 or newer, or a seccomp profile of the container that lets openat2 through" },
    { "proc", proc_is_masked,
      "something is mounted over parts of /proc, so the kernel allows no new one. Docker: --security-opt "
      "systempaths=unconfined; Podman: --security-opt unmask=ALL; systemd unit: leave out ProtectKernelTunables, "
      "ProtectKernelLogs and ProcSubset" },
    { "proc", always,
      "the kernel refused a new /proc: see that the host's /proc is mounted, and nothing over it (in a container it must be "
      "unmasked)" },
    { "user namespaces", none_allowed,
      "sysctl user.max_user_namespaces=15000 (it is 0, which forbids them to everybody)" },
    { "user namespaces", apparmor_forbids,
      "AppArmor keeps plain users from making user namespaces (Ubuntu 23.10 and newer): copy the installed profile to "
      "/etc/apparmor.d/sandbook and load it with apparmor_parser -r /etc/apparmor.d/sandbook, or run the service as root" },
    { "user namespaces", debian_forbids, "sysctl kernel.unprivileged_userns_clone=1, or run the service as root" },
    { "user namespaces", in_container,
      "the container's seccomp profile forbids it: give it one that lets unshare, setns, mount, pivot_root, open_tree, "
      "move_mount, fsopen, fsconfig, fsmount, mount_setattr and clone with namespaces through" },
    { "setgroups", root_of_one_id,
      "this is root of a user namespace with one id only (unshare -Ur, rootless containers without subuids): give it a range "
      "of ids, or run the service there as another uid than 0" },
    { "uid_map", is_root,
      "root needs CAP_SETUID and CAP_SETGID, and box.uid_base must lie within the ids that this container has, 65,536 of them" },
    { "uid_map", always,
      "this user may not map its own id: a security module or the container's profile forbids it; let it, or run the service as root" },
    { "image", always,
      "build the image with `make image`, or set box.image to where it lies; the keeper's user must be able to read it" },
    { "interpreter", always, "the log has the interpreter's own words; a damaged image is built anew by `make image`" },
    { "", in_container,
      "a container needs a seccomp profile that lets namespaces and mounts through, and an unmasked /proc (docs/sandbox.md)" },
    { "", apparmor_forbids, "load the installed AppArmor profile (docs/sandbox.md), or run the service as root" },
    { "", always, "see docs/sandbox.md, \"Mending a machine\", and the log" },
};

const char *box_machine_cure(const struct box_machine *m, const char *why)
{
    size_t i = 0;
    while (!strstr(why, rules[i].why) || !rules[i].is(m))
        i++;
    return rules[i].cure;
}

const char *box_machine_cure_landlock(const struct box_machine *m)
{
    if (older(m, KERNEL_LANDLOCK))
        return "take a kernel of 5.13 or newer";
    return m->landlock_off
               ? "boot with lsm=landlock, in front of the list that /sys/kernel/security/lsm shows"
               : "take a kernel that has CONFIG_SECURITY_LANDLOCK, or lift what hides it (a container's seccomp profile)";
}

const char *box_machine_cure_groups(const struct box_machine *m)
{
    if (m->container)
        return "mount the container's cgroup tree writable (Docker: --cgroupns=private and a read-write /sys/fs/cgroup)";
    if (!m->systemd)
        return "run as root, or give this user a cgroup of its own with the controllers cpu, memory and pids";
    return m->root
               ? "run it as a unit with Delegate=yes (config/systemd/sandbook.service)"
               : "run it under systemd with Delegate=yes: a user unit, or systemd-run --user --scope -p Delegate=yes sandbook ...";
}
