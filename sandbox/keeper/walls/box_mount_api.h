/* box_mount_api.h - the kernel's mounts by descriptor, by their numbers: linux/mount.h and sys/mount.h don't go together on
 * every Debian, and these never change. What fails leaves errno. */
#ifndef BOX_MOUNT_API_H
#define BOX_MOUNT_API_H
#include <fcntl.h>
#include <stdint.h>
#include <sys/syscall.h>
#include <unistd.h>

enum {
    MOUNT_RDONLY = 1,
    MOUNT_NOSUID = 2,
    MOUNT_NODEV = 4,
    MOUNT_NOEXEC = 8,
    MOUNT_IDMAP = 0x100000,
    MOUNT_NOSYMFOLLOW = 0x200000,
};

/* A detached clone of the mount at path, below dir_fd; path "": of what dir_fd is open on. */
static inline int mount_clone(int dir_fd, const char *path)
{
    return (int)syscall(428 /* open_tree */, dir_fd, path, 1U /* CLONE */ | O_CLOEXEC | (*path ? 0 : AT_EMPTY_PATH));
}

/* set: MOUNT_*; userns_fd matters with MOUNT_IDMAP only. */
static inline int mount_set(int tree_fd, uint64_t set, int userns_fd)
{
    const struct {
        uint64_t set, clear, propagation, userns_fd;
    } a = { .set = set, .userns_fd = set & MOUNT_IDMAP ? (uint64_t)userns_fd : 0 };
    return (int)syscall(442 /* mount_setattr */, tree_fd, "", AT_EMPTY_PATH, &a, sizeof a);
}

/* Puts a detached tree at path below dir_fd; path "": over what dir_fd is open on. */
static inline int mount_attach(int tree_fd, int dir_fd, const char *path)
{
    return (int)syscall(429 /* move_mount */, tree_fd, "", dir_fd, path,
                        4U /* from a descriptor */ | (*path ? 0 : 0x40U));
}

/* A file system that is being set up: options, then mount_make(). */
static inline int mount_begin(const char *kind)
{
    return (int)syscall(430 /* fsopen */, kind, 1U /* CLOEXEC */);
}

/* value NULL: an option without one. */
static inline int mount_option(int fs, const char *key, const char *value)
{
    return (int)syscall(431 /* fsconfig */, fs, value ? 1U : 0U, key, value, 0);
}

/* The detached mount, with MOUNT_* on it. */
static inline int mount_make(int fs, uint32_t attributes)
{
    if (syscall(431 /* fsconfig */, fs, 6U /* CREATE */, NULL, NULL, 0) < 0)
        return -1;
    return (int)syscall(432 /* fsmount */, fs, 1U /* CLOEXEC */, attributes);
}
#endif
