# Files and the host's view (section 4, 1-25). The format is told in catalogue.py; tools.py has run before.
# %% 01 host files -> ENOENT
for p in ("/etc/shadow", "/root", "/home", "/var/lib", "/boot", "/run", "/srv", "/etc/sandbook", "/etc/ssh", "/etc/resolv.conf"):
    word(os.stat, p)
# %% 02 write to the system -> EROFS EACCES
for p in ("/x", "/usr/x", "/etc/x", "/etc/passwd", "/opt/sandbook/init", "/dev/x", "/usr/lib/python3.13/os.py"):
    word(open, p, "w")
# %% 02b change the system -> EROFS EACCES EPERM EXDEV
word(os.chmod, "/usr/bin/python3", 0o777)
word(os.unlink, "/etc/passwd")
word(os.rename, "/usr", "/tmp/usr")
word(os.utime, "/usr/bin")
word(os.mkdir, "/usr/lib/new")
word(os.symlink, "/tmp", "/etc/new")
word(os.truncate, "/usr/bin/env", 0)
# %% 02c change owners and attributes -> EPERM EROFS
word(os.chown, "/usr/bin/env", 1000, 1000)
word(os.setxattr, "/usr/bin/env", "user.x", b"1")
open("mine", "w").close()
word(os.chown, "mine", 1000, 1000)
word(os.setxattr, "mine", "user.x", b"1")
# %% 03 walk up -> bin dev etc lib lib64 mnt opt proc sbin tmp usr
print(*os.listdir("../../../../.."), *os.listdir("/proc/self/root/../.."))
# %% 04 into init -> ENOENT EACCES EPERM
for p in ("root", "cwd", "exe", "ns/mnt", "fd/3"):
    word(os.readlink, "/proc/1/" + p)
for p in ("environ", "maps", "mem", "auxv", "syscall", "stack", "map_files", "pagemap"):
    word(os.open, "/proc/1/" + p, 0)
# %% 04b every process but ones own -> none
print(*[p for p in os.listdir("/proc") if p.isdigit() and int(p) != os.getpid()], "none")
# %% 05 own memory file -> EACCES EPERM
word(open, "/proc/self/mem", "r+b")
word(open, "/proc/self/oom_score_adj", "w")
word(open, "/proc/self/uid_map", "w")
word(open, f"/proc/self/task/{os.getpid()}/mem", "r+b")
word(open, "/proc/thread-self/mem", "r+b")
# %% 05b the other writable files of proc -> EACCES ENOENT
for p in ("timerslack_ns", "coredump_filter", "clear_refs", "attr/current", "attr/exec", "comm", "loginuid", "autogroup", "setgroups", "gid_map",
          "projid_map", "timens_offsets", "oom_adj", "sched", "make-it-fail"):
    word(open, "/proc/self/" + p, "w")
# %% 05c the memory file of a child -> EACCES
child = os.fork()
if child == 0:
    time.sleep(5)
    os._exit(0)
word(open, f"/proc/{child}/mem", "r+b")
word(open, f"/proc/{child}/oom_score_adj", "w")
os.kill(child, 9)
os.waitpid(child, 0)
# %% 05d no physical addresses in pagemap -> 0 EPERM EACCES
page = mmap.mmap(-1, 4096)
page[0] = 1
at = ctypes.addressof(ctypes.c_char.from_buffer(page)) // 4096 * 8
try:
    with open("/proc/self/pagemap", "rb", buffering=0) as f:
        print(struct.unpack("Q", os.pread(f.fileno(), 8, at))[0] & (1 << 55) - 1)
except OSError as e:
    print(errno.errorcode[e.errno])
# %% 06 only its own mounts -> overlay proc tmpfs devtmpfs ext4 xfs btrfs squashfs erofs zfs f2fs bcachefs
for line in open("/proc/self/mountinfo"):
    before, after = line.split(" - ")
    where, kind = before.split()[4], after.split()[0]
    print(kind if where in ("/", "/usr", "/etc", "/opt/sandbook", "/proc", "/tmp", "/dev/shm", "/mnt/data") or where.startswith("/dev/") else "open")
# %% 06b every mount is nosuid, and nodev but for the five devices -> 0
for line in open("/proc/self/mountinfo"):
    where, how = line.split()[4:6]
    five = where.startswith("/dev/") and where != "/dev/shm"
    print(0 if "nosuid" in how and (five or "nodev" in how) else where)
# %% 07 files of the kernel -> ENOENT
for p in ("kallsyms", "kcore", "kmsg", "keys", "key-users", "timer_list", "sched_debug", "cpuinfo", "meminfo", "version", "cmdline", "sys", "sysrq-trigger",
          "config.gz", "kpagecount", "slabinfo", "vmallocinfo", "iomem", "interrupts", "sysvipc/shm", "fs", "bus", "irq", "acpi", "scsi", "driver", "tty"):
    word(os.stat, "/proc/" + p)
# %% 08 core pattern -> ENOENT
for p in ("kernel/core_pattern", "kernel/modprobe", "vm/overcommit_memory", "kernel/hostname", "user/max_user_namespaces"):
    word(open, "/proc/sys/" + p, "w")
# %% 09 sysfs and cgroupfs -> ENOENT
for p in ("/sys/kernel", "/sys/fs/cgroup", "/sys/class", "/sys/kernel/debug", "/sys/kernel/uevent_helper", "/sys/fs/cgroup/release_agent", "/sys/firmware"):
    word(os.stat, p)
# %% 09b its own groups are without names -> / /run /init
print(*[line.split(":", 2)[2].strip() for line in open("/proc/self/cgroup")][:12])
# %% 10 device nodes -> EPERM
word(os.mknod, "n", 0o60600, 0x800)
word(os.mknod, "n", 0o20600, 0x103)
word(os.mknod, "/dev/shm/n", 0o20666, 0x101)
word(os.mknod, "plain", 0o100600)
word(os.mkfifo, "f")
# %% 10b a whiteout is a device, too -> EPERM
# renameat2(RENAME_WHITEOUT) would make a character device 0/0, which Landlock does not refuse.
open("w", "w").close()
for flags in (4, 5, 4 | 1 << 32):
    call("renameat2", -100, b"w", -100, b"w2", flags)
# %% 11 devices -> ENOENT
for p in ("mem", "kmem", "port", "kvm", "fuse", "vsock", "vda", "sda", "nvme0", "loop0", "loop-control", "net/tun", "tty", "ptmx", "pts", "console", "kmsg", "hwrng", "rtc0",
          "userfaultfd", "vhost-vsock", "vhost-net", "uinput", "snapshot", "mapper/control", "cuse", "vfio/vfio", "dri", "autofs", "btrfs-control"):
    word(os.stat, "/dev/" + p)
# %% 12 nothing from the host in dev -> fd full null random shm stderr stdin stdout urandom zero
print(*os.listdir("/dev"))
# %% 12b the random devices take no orders -> EPERM EACCES ENOTTY
f = os.open("/dev/urandom", os.O_RDWR)
for request in (0x40085203, 0x5204, 0x5206, 0x40045201):  # ADDENTROPY, ZAPENTCNT, CLEARPOOL, ADDTOENTCNT
    word(fcntl.ioctl, f, request, bytes(16))
os.close(f)
# %% 13 magic links lead nowhere -> ENOENT EACCES ENXIO EROFS ETXTBSY ELOOP EPERM
word(open, "/proc/self/exe", "wb")
word(open, "/proc/self/fd/3", "r+b")
word(os.open, "/proc/self/fd/3", os.O_RDWR)
p = os.open("/etc/passwd", os.O_PATH)
word(open, f"/proc/self/fd/{p}", "w")
word(os.open, f"/proc/self/fd/{p}", os.O_RDWR)
os.close(p)
# %% 13b hard links to the image -> EXDEV EPERM EROFS
word(os.link, "/etc/passwd", "passwd")
word(os.link, "/usr/bin/python3.13", "/tmp/python")
call("linkat", -100, b"/proc/self/exe", -100, b"exe", 0x400)
# %% 13c the page cache of the image can't be written -> EACCES EPERM EBADF EROFS EINVAL
f = open("/usr/bin/env", "rb")
word(mmap.mmap, f.fileno(), 4096, mmap.MAP_SHARED, mmap.PROT_READ | mmap.PROT_WRITE)
word(os.write, f.fileno(), b"x")
word(os.truncate, f.fileno(), 0)
word(os.copy_file_range, os.open("/etc/passwd", 0), f.fileno(), 10)
libc.mmap.restype = ctypes.c_void_p
at = libc.mmap(ctypes.c_void_p(0), ctypes.c_size_t(4096), 1, 1, f.fileno(), ctypes.c_long(0))
call("mprotect", ctypes.c_void_p(at), 4096, 3)
f.close()
# %% 13d dirty cow -> same
f = open("/etc/os-release", "rb")
before = f.read()
m = mmap.mmap(f.fileno(), len(before), mmap.MAP_PRIVATE, mmap.PROT_READ | mmap.PROT_WRITE)
until = time.time() + 0.4
def drop():
    while time.time() < until: m.madvise(mmap.MADV_DONTNEED)
def scribble():
    while time.time() < until: m[0:4] = b"OWND"
ts = [threading.Thread(target=t) for t in (drop, scribble)]
[t.start() for t in ts]; [t.join() for t in ts]
print("same" if open("/etc/os-release", "rb").read() == before else "open")
# %% 17b a folder of links is its own affair -> ELOOP ENOENT
os.symlink("a", "b"); os.symlink("b", "a")
word(open, "a")
for i in range(60): os.symlink(f"l{i + 1}", f"l{i}")
word(open, "l0")
# %% 20 suid -> open EPERM EACCES 1000 none
shutil.copy("/usr/bin/id", "x")
word(os.chmod, "x", 0o6755)
print(subprocess.run(["./x", "-u"], capture_output=True).stdout.decode().strip() or "none")
# %% 20b capabilities of files -> EPERM
shutil.copy("/usr/bin/id", "y")
word(os.setxattr, "y", "security.capability", struct.pack("<IIIIII", 0x02000001, 0xffffffff, 0, 0xffffffff, 0, 0))
word(os.setxattr, "y", "trusted.x", b"1")
word(os.setxattr, "y", "security.selinux", b"1")
# %% 21 suid in the image -> none
found = []
for top in ("/usr", "/opt", "/etc"):
    for d, _, names in os.walk(top):
        for n in names:
            st = os.lstat(os.path.join(d, n))
            if st.st_mode & 0o6000 and st.st_mode & 0o170000 == 0o100000: found.append(n)
print(*found, "none")
# %% 21b capabilities in the image -> none
found = []
for d, _, names in os.walk("/usr/bin"):
    found += [n for n in names if os.path.exists(os.path.join(d, n)) and "security.capability" in os.listxattr(os.path.join(d, n))]
print(*found, "none")
# %% 21c nothing in the image is writable -> none
found = [os.path.join(d, n) for top in ("/usr", "/etc", "/opt") for d, ds, ns in os.walk(top) for n in ds[:50] + ns[:50] if os.access(os.path.join(d, n), os.W_OK)]
print(*found[:5], "none")
# %% 22 file handles -> EPERM
call("name_to_handle_at", -100, b"/", 0, 0, 0)
for inode in range(2, 40):
    call("open_by_handle_at", -100, struct.pack("Iiq", 8, 1, inode), 0)
# %% 23 descriptors -> 0 1 2 3 [fresh]
held = {int(f) for f in os.listdir("/proc/self/fd")}
for f in held:
    try: to = os.readlink(f"/proc/self/fd/{f}")
    except OSError: continue
    harmless = to.startswith(("/mnt/data", "/usr/", "/dev/null", "/tmp", "/dev/shm", "pipe:", "anon_inode:", "/proc/"))
    print(f if f <= 3 else 0 if harmless else f"{f}={to}")
# %% 23b no descriptor of a folder of the host -> none
for f in os.listdir("/proc/self/fd"):
    try: up = os.path.realpath(f"/proc/self/fd/{f}/../../..")
    except OSError: continue
    if os.path.isdir(f"/proc/self/fd/{f}") and os.path.exists(f"/proc/self/fd/{f}/etc/shadow"): print(f, up)
print("none")
# %% 24 locks on shared files hurt nobody -> held
held = []
for p in ("/usr/bin/python3.13", "/etc/passwd", "/usr/lib/python3.13/os.py"):
    f = open(p)
    fcntl.flock(f, fcntl.LOCK_EX)
    fcntl.lockf(f, fcntl.LOCK_SH)
    held.append(f)
print("held")
# %% 24b leases and notices on shared files -> EPERM
f = open("/etc/passwd")
word(fcntl.fcntl, f, fcntl.F_SETLEASE, fcntl.F_RDLCK)
word(fcntl.fcntl, f, fcntl.F_NOTIFY, fcntl.DN_ACCESS)
f.close()
# %% 25 canaries -> none
text = "".join(open(f"/proc/self/{f}", errors="replace").read() for f in ("environ", "cmdline", "mountinfo", "cgroup", "status", "maps"))
print("open" if "canary-7f1d" in text or "SECRET" in text or "sandbook-1" in text else "none")
# %% 25e no path of the host -> none
# Neither as the root of a mount, nor as a source or a layer: each file system in the tree begins at its own root, devices aside.
found = []
for line in open("/proc/self/mountinfo"):
    before, after = line.split(" - ")
    root, where, options = before.split()[3], before.split()[4], after.split()[2]
    found += [root] if root != "/" and root != where.removeprefix("/dev") else []
    found += [o for o in options.split(",") if "=/" in o or ":/" in o]
print(*found, *[line.split()[0] for line in open("/proc/self/mounts") if line[0] == "/"], "none")
# %% 25b host and user of the machine -> sandbox (none) none
u = os.uname()
print(u.nodename, *set(open("/proc/self/environ").read().split("\0")) & {"USER", "LOGNAME", "SUDO_USER"}, "none")
print(*[line.split(":")[0] for line in open("/etc/passwd") if line.split(":")[2] not in ("0", "1000", "65534")], "none")
# %% 25c own memory has no canary of the service -> none [fresh]
found = 0
with open("/proc/self/maps") as maps, open("/proc/self/mem", "rb", buffering=0) as mem:
    for line in maps:
        span, how, *_ = line.split()
        low, high = (int(x, 16) for x in span.split("-"))
        if "r" not in how or "w" not in how or high - low > 64 << 20: continue
        try: data = os.pread(mem.fileno(), high - low, low)
        except OSError: continue
        at = data.find(b"canary-")
        while at >= 0:  # the whole word stands nowhere in this program
            found += data[at + 7 : at + 11][::-1] == b"d1f7"
            at = data.find(b"canary-", at + 1)
print(found or "none")
# %% 25d a deleted file has no other owner -> open 1000
fd = os.open(".", os.O_TMPFILE | os.O_RDWR)
os.write(fd, b"x")
call("linkat", -100, f"/proc/self/fd/{fd}".encode(), -100, b"was-nameless", 0x400)
print(os.stat("was-nameless").st_uid)
os.close(fd)
