# What a box may learn of others through the kernel, and what of theirs it may take (section 4, 24, 25, 36, 45, 63, 81). The format is told in catalogue.py.
# %% 24i whether a page of the image is in memory -> EPERM
buffer = ctypes.create_string_buffer(16)
vector = struct.pack("QQ", ctypes.addressof(buffer), 16)
fd = os.open("/usr/bin/env", os.O_RDONLY)
for flags in (8, 0x80, 8 | 0x80, 8 | 1 << 32, 8 | 2):  # RWF_NOWAIT, RWF_DONTCACHE
    call("preadv2", fd, vector, 1, 0, 0, flags)
os.close(fd)
# %% 24j but reading at a place is allowed -> open [once]
fd = os.open("/usr/bin/env", os.O_RDONLY)
call("preadv2", fd, vector, 1, 0, 0, 0)
call("preadv2", fd, vector, 1, 0, 0, 1)  # RWF_HIPRI
word(os.preadv, fd, [bytearray(8)], 0)
os.close(fd)
# %% 24k the page cache is not emptied for others -> EPERM
for path in ("/usr/bin/python3.13", "/usr/lib/python3.13/turtle.py", "/opt/sandbook/init"):
    with open(path, "rb") as f:
        word(os.posix_fadvise, f.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
        call("fadvise64", f.fileno(), 0, 0, 4 | 1 << 32)
        call("readahead", f.fileno(), 0, 1 << 20)
# %% 24l other advice is taken -> open [once]
with open("/usr/bin/env", "rb") as f:
    for advice in (0, 1, 2, 3, 5): word(os.posix_fadvise, f.fileno(), 0, 0, advice)
# %% 24m nor is memory swapped out at will -> EPERM
with open("/usr/lib/python3.13/turtle.py", "rb") as f:
    image = mmap.mmap(f.fileno(), 0, prot=1)
own = mmap.mmap(-1, 1 << 20)
for m in (image, own): word(m.madvise, 21)
call("madvise", ctypes.addressof(ctypes.c_char.from_buffer(own)), 4096, 21 | 1 << 32)
call("process_madvise", os.pidfd_open(os.getpid()), struct.pack("QQ", 0, 4096), 1, 21, 0)
# %% 24n pages of the image can't be taken out, locked or made huge for all -> EPERM EACCES EINVAL ENOSYS ENOMEM EAGAIN open [once]
with open("/usr/lib/python3.13/turtle.py", "rb") as f: image = mmap.mmap(f.fileno(), 0, prot=1)
before = image[:]
for advice in (4, 8, 9, 20, 23, 24, 25): word(image.madvise, advice)
call("mlock2", 0, 4096, 1)
call("mmap", 0, 4096, 3, 0x2022, -1, 0)  # MAP_LOCKED
print("open" if image[:] == before == open("/usr/lib/python3.13/turtle.py", "rb").read() else "changed")
# %% 25g how full the host's disk is -> own
for path in ("/", "/usr", "/usr/bin/env", "/etc", "/opt/sandbook", "/mnt/data", "/tmp", "/dev/shm"):
    v = os.statvfs(path)
    print("own" if v.f_blocks * v.f_frsize <= 256 << 20 and v.f_files <= 1 << 20 else f"{path}:{v.f_blocks}")
# %% 25h nothing but the image is in the image -> none
print(*[d for d in ("/usr/data", "/etc/data", "/opt/sandbook/data", "/usr/work", "/usr/up", "/usr/lower") if os.path.exists(d)], "none")
# %% 25i no process of another box by its number -> ESRCH
# Of all numbers only own ones answer, whatever is asked about them.
own = {int(p) for p in os.listdir("/proc") if p.isdigit()} | {0, 1}
for pid in [n for n in range(2, 3000) if n not in own]:
    for ask in (lambda: os.getpgid(pid), lambda: os.getsid(pid), lambda: os.sched_getaffinity(pid), lambda: os.sched_getparam(pid), lambda: os.getpriority(os.PRIO_PROCESS, pid)):
        try: ask()
        except OSError as e:
            if e.errno != errno.ESRCH: print(errno.errorcode[e.errno])
            continue
        if not os.path.exists(f"/proc/{pid}"): break  # a copy: of this session, and hidden
print("ESRCH")
# %% 25j what the keeper's socket tells of it -> 0 nobody EPERM ENOPROTOOPT EOPNOTSUPP ENODATA ENOTCONN
s = socket.socket(fileno=os.dup(3))
pid, uid, gid = struct.unpack("iii", s.getsockopt(1, 17, 12))
print(pid, "nobody" if uid in (65534, 1000) else uid)
for option in (31, 59, 77):  # PEERSEC, PEERGROUPS, PEERPIDFD
    try: got = s.getsockopt(1, option, 64)
    except OSError as e: print(errno.errorcode[e.errno])
    else: print(len(got.strip(b"\0")) if option == 59 else "open")
print(len(s.getsockname()))
s.detach()
# %% 25k clocks and limits of other processes -> EPERM ESRCH EINVAL
for pid in (1, os.getppid() or 1):
    for what in range(16): call("prlimit64", pid, what, 0, bytes(16))
    call("sched_setaffinity", pid, 8, bytes(8))
    call("setpriority", 0, pid, 19)
    call("ioprio_set", 1, pid, 0)
    call("ioprio_get", 1, pid)
    call("migrate_pages", pid, 64, bytes(8), bytes(8))
    call("move_pages", pid, 1, bytes(8), 0, bytes(8), 0)
    call("kcmp", os.getpid(), pid, 0, 0, 0)
    call("process_vm_readv", pid, bytes(16), 1, bytes(16), 1, 0)
    call("ptrace", 16, pid, 0, 0)
# %% 25l calls newer than the policy -> ENOSYS [once]
for number in [*range(463, 520), 600, 1000, 0x3FFFFFFF]: call(number, 0, 0, 0, 0, 0, 0)
# %% 25m the same with the upper half of the number set -> ENOSYS EPERM open [once]
# The kernel takes the low half as the number: what it then does is what the policy says of that one.
for number in (1 << 32 | SYS["getpid"], 1 << 63 | SYS["getpid"], 1 << 32 | 480): call(number)
# calls: getpid
# %% 37d a call of the old entry in a child, by every number that could open something -> signal 31 [x86_64 once]
for number in (5, 11, 120, 102, 21, 136, 359, 378):  # open execve clone socketcall mount personality socket execveat
    in_child(run_bytes, bytes([0xB8]) + struct.pack("I", number) + bytes([0x31, 0xDB, 0x31, 0xC9, 0x31, 0xD2, 0xCD, 0x80, 0xC3]))
# %% 37e a program for 32 bits does not run -> ENOEXEC EACCES signal 31 [x86_64 once]
head = b"\x7fELF\x01\x01\x01" + bytes(9) + struct.pack("HHIIIIIHHHHHH", 2, 3, 1, 0x8048054, 52, 0, 0, 52, 32, 1, 0, 0, 0)
body = head + struct.pack("IIIIIIII", 1, 0, 0x8048000, 0x8048000, 96, 96, 5, 4096) + b"\xb8\x14\x00\x00\x00\xcd\x80\xf4"
with open("elf32", "wb") as f: f.write(body)
os.chmod("elf32", 0o755)
def start32():
    try: os.execv("/mnt/data/elf32", ["elf32"])
    except OSError as e: os.write(1, errno.errorcode[e.errno].encode() + b"\n")
in_child(start32)
os.unlink("elf32")
# %% 37f a far jump into 32-bit code -> signal 31 11 [x86_64 once]
def far():
    libc.mmap.restype = ctypes.c_void_p
    at = libc.mmap(ctypes.c_void_p(0x10000), ctypes.c_size_t(4096), 7, 0x32, -1, ctypes.c_long(0))
    ctypes.memmove(at, b"\xb8\x14\x00\x00\x00\xcd\x80\xf4" + bytes(8) + struct.pack("IH", 0x10000, 0x23), 22)
    run_bytes(b"\xff\x2c\x25" + struct.pack("I", 0x10010) + b"\xc3")
in_child(far)
# %% 26e raw threads and children with odd flags -> EPERM EINVAL [once]
for flag in (0x20000, 0x2000000, 0x4000000, 0x8000000, 0x10000000, 0x20000000, 0x40000000, 0x8000, 0x2000, 0x800000):
    for others in (17, 0x100 | 17, 0x10F00, 0x4000 | 17, 1 << 32 | 17): call("clone", flag | others, 0, 0, 0, 0)
# %% 26f a child with the descriptors of its parent can't speak for it -> mine
pid = os.getpid()
libc.syscall.restype = ctypes.c_long
child = libc.syscall(SYS["clone"], 0x400 | 17, 0, 0, 0, 0)  # CLONE_FILES
if child == 0:
    try: os.write(3, b"SBK1 is not mine to say")
    finally: os._exit(0)
os.waitpid(child, 0)
print("mine")
# %% 26g a child with the memory of its parent neither -> mine
r, w = os.pipe()
code = "import os, sys; os.write(3, b'x' * 20)"
child = subprocess.Popen([sys.executable, "-I", "-S", "-c", code], close_fds=False, pass_fds=[3], stderr=subprocess.DEVNULL)
child.wait()
os.close(r), os.close(w)
print("mine")
# %% 54g descriptors sent through a socket in the own folder, again and again -> done [once]
path = "/mnt/data/meet"
l = socket.socket(socket.AF_UNIX)
l.bind(path), l.listen(8)
for _ in range(50):
    c = socket.socket(socket.AF_UNIX)
    c.connect(path)
    c.sendmsg([b"x"], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", [c.fileno(), l.fileno()]))])
    c.close()
    l.accept()[0].close()
l.close(), os.unlink(path)
print("done")
# %% 54h listeners with everything waiting -> done EMFILE EAGAIN ECONNREFUSED ENOBUFS ENOMEM [once]
held = []
try:
    for i in range(40):
        l = socket.socket(socket.AF_UNIX)
        l.bind(f"\0l{i}"), l.listen(4096)
        held.append(l)
        for _ in range(11):
            c = socket.socket(socket.AF_UNIX)
            c.setblocking(False)
            c.connect(f"\0l{i}")
            held.append(c)
    print("done")
except OSError as e: print(errno.errorcode[e.errno])
for s in held: s.close()
# %% 72g everything watched by everything -> done ENOSPC ENOMEM EMFILE EEXIST [once]
pollers, ends = [], []
try:
    for _ in range(150): pollers.append(select.epoll())
    for _ in range(100): ends.extend(os.pipe())
    for p in pollers:
        for fd in ends: p.register(fd, select.EPOLLIN | select.EPOLLOUT | select.EPOLLET)
    print("done")
except OSError as e: print(errno.errorcode[e.errno])
for fd in ends[1::2]: os.write(fd, b"x")
for p in pollers: p.close()
for fd in ends: os.close(fd)
# %% 77g a storm of timers of every kind -> done EAGAIN ENOTSUP [once]
fds, ids = [], []
for i in range(200):
    fd = libc.timerfd_create(1, 0o4000)
    if fd < 0: break
    libc.timerfd_settime(fd, 0, struct.pack("qqqq", 0, 1, 0, 1), 0)
    fds.append(fd)
for i in range(200):
    t = ctypes.c_void_p()
    if libc.timer_create(1, struct.pack("QiiQQQQQ", 0, 0, 1, 0, 0, 0, 0, 0), ctypes.byref(t)) != 0: break
    libc.timer_settime(t, 0, struct.pack("qqqq", 0, 1, 0, 1), 0)
    ids.append(t)
time.sleep(0.3)
for t in ids: libc.timer_delete(t)
for fd in fds: os.close(fd)
print("done")
# %% 77h barriers for every processor, without end -> done [once]
until = time.monotonic() + 0.4
while time.monotonic() < until:
    for command in (0, 1, 2, 4, 8, 16, 32, 64, 128, 256): libc.syscall(SYS["membarrier"], command, 0, 0)
print("done")
# calls: membarrier
# %% 77i locks of each kind on one file, by many -> done ENOLCK [once]
f = open("locked", "w+")
f.truncate(1 << 20)
children = []
for c in range(6):
    pid = os.fork()
    if pid == 0:
        g = open("locked", "r+")
        try:
            for i in range(c, 3000, 12):
                fcntl.lockf(g, fcntl.LOCK_EX | fcntl.LOCK_NB, 1, i)
                fcntl.fcntl(g, 37, struct.pack("hhqqi4x", fcntl.F_WRLCK, 0, 100000 + i, 1, 0))
        except OSError: pass
        os._exit(0)
    children.append(pid)
for pid in children: os.waitpid(pid, 0)
print("done")
# %% 66g as many pieces of memory as there can be -> ENOMEM done [once]
size = 140000 * 4096
m = mmap.mmap(-1, size)
at = ctypes.addressof(ctypes.c_char.from_buffer(m))
for i in range(0, 140000, 2):
    if libc.mprotect(ctypes.c_void_p(at + i * 4096), 4096, 0) != 0: break
libc.mprotect(ctypes.c_void_p(at), ctypes.c_size_t(size), 3)
print("done")
# %% 68d entries that nobody can name -> done ENOSPC ENAMETOOLONG EMFILE [once]
held = []
try:
    for i in range(400): held.append(os.open("/mnt/data", os.O_TMPFILE | os.O_RDWR))
    print("done")
except OSError as e: print(errno.errorcode[e.errno])
for fd in held: os.close(fd)
# %% 68e files with times beyond any calendar -> done
for i, t in enumerate((2**62, -2**62, 2**63 - 1, -2**63, 9223372036, -1)):
    with open(f"time{i}.txt", "w") as f: f.write("x")
    os.utime(f"time{i}.txt", (t, t))
print("done")
# %% 68f many small files that come and go while they are looked for -> done [once]
if os.fork() == 0:
    try:
        for n in range(20000):
            with open(f"gone{n % 50}.txt", "w") as f: f.write("x" * (n % 7))
            os.rename(f"gone{n % 50}.txt", f"gone{(n + 1) % 50}.txt")
            if n % 3 == 0: os.unlink(f"gone{(n + 1) % 50}.txt")
    except BaseException: pass
    os._exit(0)
time.sleep(0.05)
print("done")
# %% 68g a file that is sealed, leased, mapped and written while it is collected -> done
def scribble():
    f = open("mapped.bin", "r+b")
    m = mmap.mmap(f.fileno(), 1 << 20)
    until = time.time() + 1
    while time.time() < until:
        m[0:4096] = os.urandom(4096)
        os.ftruncate(f.fileno(), 1 << 20)
    os._exit(0)
with open("mapped.bin", "wb") as f: f.truncate(1 << 20)
if os.fork() == 0: scribble()
os.link("mapped.bin", "twice.bin")
print("done")
# %% 13e a memory file under another's name -> ENOENT EXDEV EPERM EROFS EACCES ELOOP
fd = os.memfd_create("x", 2)
os.write(fd, b"x" * 100)
fcntl.fcntl(fd, 1033, 0xF)
word(os.link, f"/proc/self/fd/{fd}", "/mnt/data/from-memory")
call("linkat", fd, b"", -100, b"/mnt/data/from-memory", 0x1000)
call("linkat", -100, f"/proc/self/fd/{fd}".encode(), -100, b"/mnt/data/from-memory", 0x400)
os.close(fd)
# %% 23c no way from a descriptor of the root's out of it -> dev etc mnt opt proc tmp usr bin sbin lib lib64
fd = os.open("/", os.O_PATH | os.O_DIRECTORY)
for up in ("..", "../..", "../../../..", "proc/self/root/..", "mnt/data/../../.."):
    print(*os.listdir(os.open(up, os.O_RDONLY | os.O_DIRECTORY, dir_fd=fd)))
