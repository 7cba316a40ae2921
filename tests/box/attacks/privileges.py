# Namespaces, privileges, other processes (section 4, 26-32, 80, 81).
# %% 26 new user namespace -> EPERM ENOSYS
call("unshare", 0x10000000)
call("clone", 0x10000011, 0, 0, 0, 0)
call("clone3", 0, 0)
call("clone3", struct.pack("Q" * 8, 0x10000000, 0, 0, 0, 17, 0, 0, 0), 64)
call("clone3", struct.pack("Q" * 11, 0x200000000, 0, 0, 0, 17, 0, 0, 0, 0, 0, 3), 88)  # INTO_CGROUP
# %% 26b every namespace -> EPERM
for f in (0, 0x80, 0x200, 0x400, 0x20000, 0x2000000, 0x4000000, 0x8000000, 0x10000000, 0x20000000, 0x40000000, 0x7E020000):
    call("unshare", f)
    call("unshare", f | 1 << 32)
# %% 26c every namespace by clone -> EPERM
for f in (0x20000, 0x2000000, 0x4000000, 0x8000000, 0x10000000, 0x20000000, 0x40000000):
    call("clone", f | 17, 0, 0, 0, 0)
    call("clone", f | 17 | 1 << 40, 0, 0, 0, 0)
# %% 26d children that would be of another -> EPERM
for f in (0x8000, 0x2000, 0x800000):
    call("clone", f | 17, 0, 0, 0, 0)
# %% 26e programs that would do it -> absent
for tool in ("unshare", "nsenter", "bwrap", "newuidmap", "newgidmap", "fusermount", "fusermount3", "pkexec", "runuser", "chroot", "setpriv", "capsh", "ip", "nc", "curl", "wget", "gcc", "gdb", "strace", "perl"):
    print(tool if shutil.which(tool) else "absent")
# %% 27 setns -> EPERM EACCES
for n in os.listdir("/proc/self/ns"):
    try:
        fd = os.open("/proc/self/ns/" + n, os.O_RDONLY)
    except OSError as e:
        print(errno.errorcode[e.errno])
        continue
    word(os.setns, fd)
    os.close(fd)
word(os.setns, os.pidfd_open(os.getpid()), 0x20000)
# %% 28 mounts -> EPERM ENOSYS
call("mount", b"x", b"/tmp", b"tmpfs", 0, 0)
call("mount", b"/etc", b"/tmp", 0, 4096, 0)  # bind
call("mount", b"proc", b"/tmp", b"proc", 0, 0)
call("mount", b"o", b"/tmp", b"overlay", 0, b"lowerdir=/usr,upperdir=/mnt/data,workdir=/dev/shm")
call("mount", 0, b"/", 0, 32 | 4096, 0)  # remount, writable
call("mount", b"c", b"/tmp", b"cgroup", 0, b"memory")
call("umount2", b"/proc", 2)
# %% 28b the new way to mount -> EPERM ENOSYS
call("fsopen", b"tmpfs", 0)
call("fspick", -100, b"/", 0)
call("fsconfig", 3, 0, 0, 0, 0)
call("fsmount", 3, 0, 0)
call("open_tree", -100, b"/", 1)
call("move_mount", -100, b"/usr", -100, b"/tmp", 0)
call("mount_setattr", -100, b"/usr", 0, struct.pack("QQQQ", 0, 1, 0, 0), 32)
call("statmount", 0, 0, 0, 0)
# %% 29 chroot and pivot_root -> EPERM
word(os.chroot, "/tmp")
call("pivot_root", b".", b".")
# %% 30 ids -> EPERM 0000000000000000
for f in (os.setuid, os.setgid, os.seteuid, os.setegid):
    word(f, 0)
word(os.setgroups, [0])
word(os.setresuid, 0, 0, 0)
word(os.setresgid, 0, 0, 0)
word(os.setreuid, -1, 0)
print(*[line.split()[1] for line in open("/proc/self/status") if line.startswith("Cap")])
# %% 30b ids for files -> EPERM
call("setfsuid", 0)
call("setfsgid", 0)
# %% 30c capabilities -> EPERM
h = struct.pack("Ii", 0x20080522, 0)
call("capset", h, struct.pack("IIIIII", *[0xFFFFFFFF] * 6))
call("capset", h, struct.pack("IIIIII", 0, 0, 1, 0, 0, 1))
call("prctl", 47, 2, 21, 0, 0)  # raise an ambient one
call("prctl", 28, 0, 0, 0, 0)  # securebits
call("prctl", 8, 1, 0, 0, 0)  # keep capabilities
# %% 30d no groups but its own -> 1000 65534
print(os.getgid(), *os.getgroups())
# %% 31 programs with a name for power -> absent 1000 1
for tool in ("su", "sudo", "mount", "umount", "ping", "passwd", "newgrp", "chsh", "gpasswd"):
    if not shutil.which(tool):
        print("absent")
        continue
    print(subprocess.run([tool], capture_output=True, stdin=subprocess.DEVNULL).returncode)
print(subprocess.run(["id", "-u"], capture_output=True, text=True).stdout.strip())
# %% 31b no_new_privs can't be taken back -> 1 EINVAL EPERM
print(libc.prctl(39, 0, 0, 0, 0))
call("prctl", 38, 0, 0, 0, 0)
print(libc.prctl(39, 0, 0, 0, 0))
# %% 32 tracing of others -> EPERM
child = os.fork()
if child == 0:
    time.sleep(5)
    os._exit(0)
for request in (16, 0x4206, 0, 1, 4):  # ATTACH, SEIZE, TRACEME, PEEKTEXT, POKETEXT
    for pid in (os.getppid() or 1, 1, child):
        call("ptrace", request, pid, 0, 0)
iov = struct.pack("QQ", 0, 8)
for pid in (1, child, os.getpid()):
    call("process_vm_readv", pid, iov, 1, iov, 1, 0)
    call("process_vm_writev", pid, iov, 1, iov, 1, 0)
    call("kcmp", pid, os.getpid(), 0, 1, 1)
    call("migrate_pages", pid, 0, 0, 0)
    call("move_pages", pid, 0, 0, 0, 0, 0)
os.kill(child, 9)
os.waitpid(child, 0)
# %% 32b advice on the memory of others -> EPERM ENOSYS
child = os.fork()
if child == 0:
    time.sleep(5)
    os._exit(0)
fd = os.pidfd_open(child)
call("process_madvise", fd, struct.pack("QQ", 0, 4096), 1, 21, 0)
call("process_mrelease", fd, 0)
call("pidfd_getfd", fd, 0, 0)
call("pidfd_send_signal", fd, 9, 0, 0)
os.kill(child, 9)
os.waitpid(child, 0)
os.close(fd)
# %% 32c limits of others -> EPERM
for pid in (1, os.getppid() or 1):
    word(resource.prlimit, pid, resource.RLIMIT_NOFILE, (1, 1))
    word(os.sched_setaffinity, pid, {0})
    word(os.setpriority, os.PRIO_PROCESS, pid, 19)
word(os.setpriority, os.PRIO_USER, 0, 19)
word(os.setpriority, os.PRIO_PGRP, 1, 19)
# %% 45 handles of processes -> EPERM ENOSYS
word(os.pidfd_open, 1)
call("pidfd_open", 1 | 1 << 32, 0)
call("pidfd_getfd", 3, 0, 0)
own = os.pidfd_open(os.getpid())
call("pidfd_send_signal", own, 9, 0, 0)
call("pidfd_send_signal", os.open("/proc/self", os.O_DIRECTORY), 9, 0, 0)  # a folder of proc is a handle, too
call("pidfd_getfd", own, 0, 0)
os.close(own)
# %% 80 signals to init and to all -> EPERM
for p in (1, -1):
    word(os.kill, p, 9)
    call("kill", p & 0xFFFFFFFF, 9)
    call("kill", p & 0xFFFFFFFF | 1 << 32, 9)
call("tkill", 1, 9)
call("tgkill", 1, 1, 9)
call("tgkill", 1 | 1 << 32, 1, 9)
call("rt_sigqueueinfo", 1, 9, bytes(128))
call("rt_sigqueueinfo", 0xFFFFFFFF, 9, bytes(128))
call("rt_tgsigqueueinfo", 1, 1, 9, bytes(128))
# %% 80b signals by way of a descriptor -> EPERM
a, b = socket.socketpair()
for command in (8, 10, 15):  # SETOWN, SETSIG, SETOWN_EX
    for value in (1, -1, 9):
        call("fcntl", a.fileno(), command, value)
        call("fcntl", a.fileno(), command | 1 << 32, value)
call("ioctl", a.fileno(), 0x8901, struct.pack("i", 1))  # FIOSETOWN
call("ioctl", a.fileno(), 0x8902, struct.pack("i", 1))  # SIOCSPGRP
# %% 80c signals from timers go to oneself only -> EINVAL
t = ctypes.c_void_p()
for thread in (1, os.getppid() or 1):
    event = struct.pack("QiiI44x", 0, 9, 4, thread)  # SIGEV_THREAD_ID
    call("timer_create", 1, event, ctypes.byref(t))
# %% 80d a signal when the parent dies is ones own -> open
call("prctl", 1, 9, 0, 0, 0)
call("prctl", 1, 0, 0, 0, 0)
# %% 81 killing the neighbours -> ESRCH EPERM
mine = {os.getpid(), os.getppid()}
for p in [*range(3, 40), 700, 5000, 2**22]:
    if p not in mine and not os.path.exists(f"/proc/{p}"):
        word(os.kill, p, 0)
word(os.killpg, 1, 9)
# %% 81b sessions and groups of others -> ESRCH EPERM
word(os.setpgid, 1, 1)
word(os.setpgid, os.getpid(), 1)
# %% 81c what it can't adopt -> EPERM
call("prctl", 36, 1, 0, 0, 0)  # subreaper
call("prctl", 0x59616D61, os.getppid() or 1, 0, 0, 0)  # Yama: let it trace me
# %% 83 into the copies that wait -> none [fresh]
# Whatever number they have: no memory, environment or descriptor of another process of this session, nor of its init.
seen = []
for p in range(1, 400):
    if p in (os.getpid(), os.getppid()):
        continue
    for look, name in ((os.open, "mem"), (os.open, "environ"), (os.open, "maps"), (os.open, "fd/3"), (os.readlink, "root"), (os.listdir, "map_files")):
        try: look(f"/proc/{p}/{name}", *([os.O_RDONLY] if look is os.open else []))
        except OSError: continue
        seen.append(f"{p}/{name}")
print(*seen, "none")
# %% 83b copies killed by number cost only them -> done [fresh]
for p in range(2, 400):
    if p != os.getpid():
        try: os.kill(p, 9)
        except OSError: pass
print("done")
