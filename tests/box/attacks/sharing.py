# What sessions have in common without being told: the kernel's own pools, names, handles and clocks (section 4, 24, 36, 45, 54, 77).
# %% 24d huge pages are the host's -> EPERM
# They come from a pool that no group of a box's counts: whoever holds them starves a database outside.
for flags in (0x40022, 0x40021, 0x40022 | 21 << 26, 0x40022 | 30 << 26, 0x40022 | 1 << 32):
    call("mmap", 0, 2 << 20, 3, flags, -1 & 0xFFFFFFFF, 0)
for flags in (4, 5, 4 | 21 << 26, 4 | 1 << 32):
    call("memfd_create", b"x", flags)
# %% 24e pages that are merged with a neighbour's -> EPERM
page = mmap.mmap(-1, 1 << 20)
at = ctypes.addressof(ctypes.c_char.from_buffer(page))
for advice in (12, 100, 101, 12 | 1 << 32):  # MERGEABLE, HWPOISON, SOFT_OFFLINE
    call("madvise", at, 4096, advice)
# %% 24f advice that is harmless still works -> open
page = mmap.mmap(-1, 1 << 20)
at = ctypes.addressof(ctypes.c_char.from_buffer(page))
for advice in (0, 3, 4, 14, 15, 16):  # NORMAL, WILLNEED, DONTNEED, HUGEPAGE, NOHUGEPAGE, DONTDUMP
    call("madvise", at, 4096, advice)
os.close(call("memfd_create", b"x", 3))
# %% 24g locks on every file of the image, for ever -> held
held = []
for d, _, names in os.walk("/usr/lib/python3.13"):
    for n in names:
        if len(held) < 200 and n.endswith(".py"):
            f = open(os.path.join(d, n))
            try: fcntl.flock(f, fcntl.LOCK_EX | fcntl.LOCK_NB)  # files may be one by a hard link
            except BlockingIOError: pass
            fcntl.fcntl(f, 37, struct.pack("hhqqi4x", fcntl.F_RDLCK, 0, 0, 0, 0))  # OFD_SETLK
            held.append(f)
print("held")
# %% 24h and no lock is left of one who was here before -> free
# The same open file description is nobody else's: what another box holds on the image can be seen, and stops no reader.
for n in ("os.py", "json/__init__.py", "re/__init__.py"):
    with open("/usr/lib/python3.13/" + n) as f:
        assert f.read(1)
print("free")
# %% 36c nothing of a neighbour's -> none
found = []
for top in ("/dev/shm", "/tmp", "/mnt"):
    for d, ds, ns in os.walk(top):
        for n in ns:
            path = os.path.join(d, n)
            try:
                if os.lstat(path).st_uid not in (os.getuid(), 65534) or b"untouched" in open(path, "rb").read(100): found.append(path)
            except OSError: pass
print(*found, "none")
# %% 36d shared memory by name is the session's own -> FileNotFoundError
from multiprocessing import shared_memory
for name in ("mine", "psm_00000000", "sem.mp-00000000"):
    try: shared_memory.SharedMemory(name)
    except OSError as e: print(type(e).__name__)
    else: print("open")
# %% 36e attributes by descriptor and by folder -> EPERM ENOSYS ENOENT
# What an overlay or a security module reads of a file: none of it can be forged, by any of the calls.
f = open("plain", "w")
for name in (b"user.overlay.opaque", b"trusted.overlay.opaque", b"user.overlay.redirect", b"user.overlay.metacopy", b"user.overlay.origin", b"security.ima", b"system.posix_acl_access"):
    call("setxattr", b"plain", name, b"y", 1, 0)
    call("lsetxattr", b"plain", name, b"y", 1, 0)
    call("fsetxattr", f.fileno(), name, b"y", 1, 0)
    call("removexattr", b"plain", name)
    call("fremovexattr", f.fileno(), name)
for number in (463, 466, 467, 468, 469):  # setxattrat, removexattrat, open_tree_attr, file_getattr, file_setattr
    call(number, -100, b"plain", 0, bytes(64), 64, 0)
# %% 36f a device like an overlay's whiteout -> EPERM
for mode in (0o20000, 0o20644, 0o60000, 0o10644, 0o140644):
    call("mknod", b"gone", mode, 0)
    call("mknodat", -100, b"gone", mode, 0)
    call("mknodat", -100, b"out/gone", mode, 0)
# %% 45b a child's handle opens no namespace -> EPERM ENOSYS EACCES
child = os.fork()
if child == 0:
    time.sleep(5)
    os._exit(0)
fd = os.pidfd_open(child)
for kind in (0x20000, 0x4000000, 0x8000000, 0x10000000, 0x20000000, 0x40000000, 0x2000000, 0x7E020000):
    word(os.setns, fd, kind)
for request in (0xFF00 | n for n in range(1, 12)):  # PIDFD_GET_*_NAMESPACE, PIDFD_GET_INFO
    try: fcntl.ioctl(fd, request, 0)
    except OSError as e: print(errno.errorcode[e.errno])
    else: print("open")
os.kill(child, 9)
os.waitpid(child, 0)
os.close(fd)
# %% 45c the last pidfd of a process that is gone -> ESRCH
child = os.fork()
if child == 0: os._exit(0)
os.waitpid(child, 0)
word(os.pidfd_open, child)
# %% 45d fds of a child by proc -> EACCES ENOENT EPERM ENXIO
r, w = os.pipe()
child = os.fork()
if child == 0:
    time.sleep(5)
    os._exit(0)
for path in (f"/proc/{child}/fd/3", "/proc/self/fd/3", f"/proc/{child}/ns/user", f"/proc/{child}/map_files/0-0", f"/proc/{child}/syscall", f"/proc/{child}/stack"):
    word(os.open, path, os.O_RDWR)
os.kill(child, 9)
os.waitpid(child, 0)
os.close(r), os.close(w)
# %% 54e descriptors sent to itself by a socket with a name keep their limits -> EROFS EACCES EBADF EPERM
left, right = socket.socketpair()
for path in ("/usr/bin/env", "/etc/passwd", "/opt/sandbook/init"):
    fd = os.open(path, os.O_RDONLY)
    left.sendmsg([b"x"], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", [fd]))])
    got = array.array("i", right.recvmsg(1, socket.CMSG_SPACE(4))[1][0][2])[0]
    word(os.write, got, b"x")
    word(os.fchmod, got, 0o777)
    word(os.open, f"/proc/self/fd/{got}", os.O_RDWR)
    os.close(fd), os.close(got)
left.close(), right.close()
# %% 54f programs for the kernel's own compiler -> EPERM
a, b = socket.socketpair()
code = ctypes.create_string_buffer(struct.pack("HBBI", 6, 0, 0, 0xFFFF) * 100)
for option in (26, 51):  # 50 and 52 want programs of bpf(), which nobody has
    word(a.setsockopt, socket.SOL_SOCKET, option, struct.pack("HxxxxxxQ", 100, ctypes.addressof(code)))
    call("setsockopt", a.fileno(), 1, option | 1 << 32, struct.pack("HxxxxxxQ", 100, ctypes.addressof(code)), 16)
# %% 77e the machine is not woken by its clock -> EPERM EINVAL ENOTSUP
t = ctypes.c_void_p()
for clock in (8, 9):  # REALTIME_ALARM, BOOTTIME_ALARM
    call("timer_create", clock, 0, ctypes.byref(t))
    call("timerfd_create", clock, 0)
    call("clock_nanosleep", clock, 0, struct.pack("qq", 0, 1), 0)
# %% 77f clocks of others and of devices -> EINVAL EPERM ENODEV EOPNOTSUPP
for clock in (~os.getppid() << 3 | 2, ~1 << 3 | 2, ~0 << 3 | 3, ~3 << 3 | 3):
    call("clock_settime", clock & 0xFFFFFFFF, bytes(16))
    call("clock_adjtime", clock & 0xFFFFFFFF, bytes(208))
# %% 33d programs without arguments and names -> EFAULT ENOENT EACCES EINVAL ran
# An empty argument vector has got set-uid programs into trouble; here there is none, and the kernel puts one in.
def bare():
    libc.execve(b"/usr/bin/true", None, None)
    os._exit(9)
in_child(bare)
for path, flags in ((b"", 0x1000), (b"", 0), (b"/proc/self/mem", 0), (b"/dev/null", 0), (b"/usr", 0)):
    call("execveat", -100, path, 0, 0, flags)
print("ran")
# %% 66d a program with an endless environment -> E2BIG
def endless(): subprocess.run(["/bin/true"], env={f"E{i}": "x" * 100000 for i in range(100)})
def one(): subprocess.run(["/bin/true", "x" * (200 << 10)])
word(endless)
word(one)
# %% 66e a program whose interpreter is itself -> ELOOP ENOEXEC EACCES EPERM FileNotFoundError OSError ENOENT
with open("self", "w") as f: f.write("#!/mnt/data/self\n")
os.chmod("self", 0o755)
word(os.execv, "/mnt/data/self", ["self"])
with open("long", "w") as f: f.write("#!" + "/" * 5000 + "usr/bin/env\n")
os.chmod("long", 0o755)
word(os.execv, "/mnt/data/long", ["long"])
os.unlink("self"), os.unlink("long")
# %% 66f a program made to break the loader -> signal 11 7 9 4 6 done ENOEXEC
def loaded(text):
    with open("elf", "wb") as f: f.write(text)
    os.chmod("elf", 0o755)
    try: os.execv("/mnt/data/elf", ["elf"])
    except OSError: os._exit(0)
head = b"\x7fELF\x02\x01\x01" + bytes(9)
for kind, phnum, phsize in ((2, 0, 56), (2, 65535, 56), (3, 1, 56), (2, 1, 65535), (4, 1, 56)):
    fields = struct.pack("HHIQQQIHHHHHH", kind, 62, 1, 0x400000, 64, 0, 0, 64, phsize, phnum, 0, 0, 0)
    for segment in ((1, 7, 0, 0x400000, 0x400000, 1 << 62, 1 << 62, 4096), (3, 4, 0, 0, 0, 1 << 40, 1 << 40, 1), (1, 7, 1 << 62, 1 << 46, 0, 4096, 4096, 3)):
        in_child(loaded, head + fields + struct.pack("IIQQQQQQ", *segment))
print("done")
# %% 81d signals by groups and sessions of its own making reach nobody else -> EPERM ESRCH open
child = os.fork()
if child == 0:
    os.setsid()
    for target in (-1, -2, -3, -os.getppid(), 1):
        try: os.kill(target, 0)
        except OSError: pass
    os._exit(0)
os.waitpid(child, 0)
word(os.killpg, 2**22, 0)
word(os.kill, -(2**31), 0)
# %% 25f more of proc without a path or a name of the host -> none
text = ""
for f in ("mounts", "mountstats", "cpuset", "sched", "stat", "statm", "limits", "io", "timers", "smaps", "numa_maps", "arch_status", "wchan", "sessionid", "net/dev", "net/unix", "net/route", "net/arp", "net/protocols", "attr/current"):
    try: text += open("/proc/self/" + f, errors="replace").read()
    except OSError: pass
print(*[line for line in text.splitlines() for w in ("canary-7f1d", "/root", "/home", "/var", "/work", "/.cache", "image-", "docker", "sandbook-1") if w in line], "none")
