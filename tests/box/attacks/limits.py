# Limits that end in an error of the program's own (section 4, 66-78).
# %% 62 zombies -> done
small("import os\nfor _ in range(10000):\n    try: pid = os.fork()\n    except BlockingIOError: break\n    if pid == 0: os._exit(0)\nprint('done')")
# %% 62b orphans are reaped -> done
small("""import os
for _ in range(500):
    if os.fork() == 0:
        try:
            if os.fork() == 0: os._exit(0)
        except OSError: pass
        os._exit(0)
    os.wait()
print('done')""")
# %% 66 memory that is only asked for -> done ENOMEM MemoryError
held = []
try:
    for _ in range(70000): held.append(mmap.mmap(-1, 4096, prot=1 if len(held) % 2 else 3))
    print("done")
except OSError as e: print(errno.errorcode[e.errno])
except MemoryError: print("MemoryError")
del held
# %% 66b the stack -> signal 11 4 6 9 done
def deep():
    import threading
    threading.stack_size(0)
    sys.setrecursionlimit(10**9)
    class Loop:
        def __getattr__(self, name): return getattr(self, name + "x")
    try: Loop().a
    except BaseException: pass
in_child(deep)
print("done")
# %% 66c a program with endless arguments -> E2BIG
word(subprocess.run, ["/bin/true", *["x" * 100000] * 100])
# %% 67 full disks -> ENOSPC EFBIG [memory=512]
for place in ("/mnt/data/fill", "/tmp/fill", "/dev/shm/fill"):
    def fill():
        with open(place, "wb", buffering=0) as f:
            while True:
                if f.write(bytes(1 << 20)) < 1 << 20: raise OSError(errno.ENOSPC, "short")
    word(fill)
    os.unlink(place)
# %% 67b full by many files -> ENOSPC
made = []
def many():
    for i in range(400):
        with open(f"/mnt/data/part{i}", "wb") as f:
            made.append(f.name)
            f.write(bytes(1 << 20))
word(many)
for name in made: os.unlink(name)
# %% 67c full by holes that are filled -> ENOSPC EFBIG
def holes():
    with open("/mnt/data/holes", "wb") as f: os.posix_fallocate(f.fileno(), 0, 200 << 20)
word(holes)
os.path.exists("holes") and os.unlink("holes")
# %% 68 inodes -> ENOSPC
for place in ("/tmp/n", "/dev/shm/n", "/mnt/data/n"):
    os.mkdir(place)
    def names():
        for i in range(100000): os.close(os.open(f"{place}/{i}", os.O_CREAT))
    word(names)
    shutil.rmtree(place)
# %% 68b inodes by folders, links and sockets -> ENOSPC ENAMETOOLONG
os.mkdir("/tmp/o")
def folders():
    for i in range(100000): os.mkdir(f"/tmp/o/{i}")
def links():
    for i in range(100000): os.symlink("x" * 4000, f"/tmp/o/l{i}")
word(folders)
word(links)
shutil.rmtree("/tmp/o")
# %% 68c the deepest tree -> done ENOSPC
top = os.getcwd()
try:
    for _ in range(3000):
        os.mkdir("d" * 50)
        os.chdir("d" * 50)
    print("done")
except OSError as e: print(errno.errorcode[e.errno])
os.chdir(top)
# %% 69 huge files -> EFBIG ENOSPC EINVAL
f = open("huge", "wb")
for n in (1 << 40, 200 << 30, (1 << 63) - 1):
    word(f.truncate, n)
    word(os.posix_fallocate, f.fileno(), 0, n)
f.close()
os.unlink("huge")
# %% 69b a signal for a file too long -> !limit crash 25 [fresh]
signal.signal(signal.SIGXFSZ, signal.SIG_DFL)
open("huge", "wb").truncate(1 << 40)
# %% 70 a nameless file is no way round -> EFBIG
fd = os.memfd_create("x")
word(os.ftruncate, fd, 10 << 30)
os.close(fd)
# %% 71 a mapped file that is cut -> signal 7
def cut():
    f = open("m", "w+b")
    f.truncate(1 << 20)
    m = mmap.mmap(f.fileno(), 1 << 20)
    f.truncate(0)
    m[5]
in_child(cut)
# %% 72 descriptors -> EMFILE
for make in (lambda: os.open("/dev/null", 0), lambda: os.pipe(), lambda: socket.socketpair(), lambda: os.memfd_create("x"), lambda: os.eventfd(0)):
    held = []
    def until():
        while True: held.append(make())
    word(until)
    for x in held:
        for fd in x if isinstance(x, tuple) else [x]:
            fd.close() if hasattr(fd, "close") else os.close(fd)
# %% 72b pipes as large as can be -> EMFILE EPERM ENOMEM EBUSY
held = []
def swell():
    while True:
        r, w = os.pipe()
        held.extend((r, w))
        fcntl.fcntl(w, 1031, 1 << 20)
word(swell)
for fd in held: os.close(fd)
# %% 72c descriptors in flight -> ETOOMANYREFS EAGAIN ENOBUFS EPERM
a, b = socket.socketpair()
a.setblocking(False)
def fly():
    while True: a.sendmsg([b"x"], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", [0] * 250))])
word(fly)
a.close(), b.close()
# %% 72d sockets in a ring in flight -> open ETOOMANYREFS
def ring():
    for _ in range(1000):
        a, b = socket.socketpair()
        for s, t in ((a, a), (b, a), (a, b)):
            s.sendmsg([b"x"], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", [t.fileno(), s.fileno()]))])
        a.close(), b.close()
word(ring)
# %% 72e nests of epoll -> EINVAL ELOOP EMFILE
held = [select.epoll()]
def nest():
    while True:
        held.append(select.epoll())
        held[-1].register(held[-2].fileno(), select.EPOLLIN)
word(nest)
for e in held: e.close()
# %% 77 timers -> done EAGAIN
n = 0
ids = []
for _ in range(100000):
    t = ctypes.c_void_p()
    if libc.timer_create(1, None, ctypes.byref(t)) != 0: break
    ids.append(t)
print("done" if len(ids) < 100000 else "open")
for t in ids: libc.timer_delete(t)
# %% 77b queued signals -> EAGAIN
signal.pthread_sigmask(signal.SIG_BLOCK, [40])
def queue():
    while True:
        ctypes.set_errno(0)
        if libc.sigqueue(os.getpid(), 40, ctypes.c_void_p(1)) < 0: raise OSError(ctypes.get_errno(), "")
word(queue)
signal.signal(40, signal.SIG_IGN)
signal.pthread_sigmask(signal.SIG_UNBLOCK, [40])
# %% 77c a storm of timers -> done
signal.signal(signal.SIGALRM, signal.SIG_IGN)
signal.setitimer(signal.ITIMER_REAL, 1e-6, 1e-6)
time.sleep(0.3)
signal.setitimer(signal.ITIMER_REAL, 0)
print("done")
# %% 77d record locks without end -> ENOLCK EMFILE EAGAIN done
f = open("locks", "w")
f.truncate(1 << 20)
try:
    for i in range(0, 6000, 2): fcntl.lockf(f, fcntl.LOCK_EX, 1, i)
    print("done")
except OSError as e: print(errno.errorcode[e.errno])
f.close()
# %% 78 names that are not there fill no cache of others -> done
small("import os\nfor i in range(100000):\n    try: os.stat('/tmp/none%d' % i)\n    except OSError: pass\nprint('done')")
# %% 60 threads end -> RuntimeError MemoryError
stop = threading.Event()
ts = []
def bomb():
    while True:
        t = threading.Thread(target=stop.wait, daemon=True)
        t.start()
        ts.append(t)
word(bomb)
stop.set()
for t in ts: t.join()
# %% 60b processes end -> BlockingIOError EAGAIN ENOMEM done
small("import os, signal, time\nps = []\ntry:\n    while len(ps) < 5000:\n        p = os.fork()\n        if p == 0: time.sleep(30); os._exit(0)\n        ps.append(p)\nexcept OSError as e: print(type(e).__name__)\nfor p in ps: os.kill(p, 9)\nfor p in ps: os.wait()\nprint('done')")
# %% 76c the first to go when memory ends -> 1000
print(open("/proc/self/oom_score_adj").read())
# %% 24c cores are not dumped -> signal 11 none
in_child(ctypes.string_at, 0)
print(*[n for n in os.listdir(".") if n.startswith("core")], "none")
resource.getrlimit(resource.RLIMIT_CORE) == (0, 0) or print("open")
