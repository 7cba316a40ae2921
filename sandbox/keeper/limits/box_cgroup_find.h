/* box_cgroup_find.h - where control groups are, and what their files say: pure functions of texts that the kernel wrote. */
#ifndef BOX_CGROUP_FIND_H
#define BOX_CGROUP_FIND_H
#include "base.h"

/* From /proc/self/cgroup: the path in the hierarchy of that controller; "" means v2. Newly allocated or NULL. */
char *box_cgroup_own(const char *proc_cgroup, const char *controller);
/* From /proc/self/mountinfo and a path as above: the folder on disk. Newly allocated or NULL. */
char *box_cgroup_folder(const char *mountinfo, const char *controller, const char *own);
/* "name 12\n" anywhere in a flat-keyed file; otherwise when absent. */
int64_t box_cgroup_value(const char *text, const char *name, int64_t otherwise);
#endif
