/* box_machine.h - a machine that can't make boxes, and how to mend it: what doctor and refusals say to an operator. The words
 * are chosen from facts, so that a test can play any machine. */
#ifndef BOX_MACHINE_H
#define BOX_MACHINE_H
#include <stdbool.h>

/* Facts. -1: the kernel has no such switch, or does not say. */
struct box_machine {
    int kernel_major, kernel_minor;
    int userns_clone;        /* Debian's kernel.unprivileged_userns_clone */
    int apparmor_restricted; /* Ubuntu's kernel.apparmor_restrict_unprivileged_userns */
    long max_user_namespaces;
    bool root;
    bool container;    /* Docker, Podman, Kubernetes */
    bool masked_proc;  /* something is mounted over parts of /proc: then the kernel allows no new one */
    bool one_id;       /* of a user namespace that has a single id */
    bool landlock_off; /* built in, and left out of lsm= */
    bool systemd;
};

void box_machine_look(struct box_machine *m);
/* What to do about boxes that can't be made; why: the step that failed, as box_ns.c and box_mount.c name it. Static. */
const char *box_machine_cure(const struct box_machine *m, const char *why);
const char *box_machine_cure_landlock(const struct box_machine *m);
const char *box_machine_cure_groups(const struct box_machine *m);
#endif
