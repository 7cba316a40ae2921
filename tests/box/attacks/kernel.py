# Doors of the kernel (section 4, 34-50).
# %% 34 io_uring -> ENOSYS
call("io_uring_setup", 8, bytes(120))
call("io_uring_enter", 3, 1, 0, 0, 0, 0)
call("io_uring_register", 3, 0, 0, 0)
# %% 34b the older asynchronous input -> EPERM
call("io_setup", 8, bytes(8))
call("io_submit", 0, 0, 0)
call("io_destroy", 0)
# %% 35 userfaultfd and perf -> EPERM
for flags in (0, 1, 0x80000):
    call("userfaultfd", flags)
call("perf_event_open", bytes(128), 0, -1, -1, 0)
call("perf_event_open", struct.pack("IIQ", 1, 128, 0) + bytes(112), -1, 0, -1, 0)
# %% 36 keyrings -> EPERM
call("keyctl", 0, -3, 1)
call("keyctl", 22, -1, -2)  # GET_PERSISTENT
call("add_key", b"user", b"x", b"y", 1, -3)
call("add_key", b"logon", b"x:y", b"y", 1, -5)
call("request_key", b"user", b"x", 0, -3)
# %% 37 a 32-bit call -> !crash 31 [x86_64]
run_bytes(bytes([0xB8, 20, 0, 0, 0, 0xCD, 0x80, 0xC3]))
# %% 37b an x32 call -> !crash 31 [x86_64]
run_bytes(bytes([0xB8, 39, 0, 0, 0x40, 0x0F, 0x05, 0xC3]))
# %% 37c a 32-bit call by sysenter -> !crash 31 11 4 [x86_64]
run_bytes(bytes([0xB8, 20, 0, 0, 0, 0x0F, 0x34, 0xC3]))
# %% 37d a 32-bit code segment -> !crash 31 11 [x86_64]
# far return into the compatibility segment (0x23), there int 0x80; the stack is out of reach, so it dies one way or the other
low = libc.mmap
low.restype = ctypes.c_void_p
at = low(ctypes.c_void_p(0x10000000), ctypes.c_size_t(4096), 7, 0x22 | 0x40, -1, ctypes.c_long(0))
ctypes.memmove(at, bytes([0xB8, 20, 0, 0, 0, 0xCD, 0x80, 0xF4]), 8)
run_bytes(bytes([0x6A, 0x23, 0x68]) + struct.pack("<I", at) + bytes([0x48, 0xCB]))
# %% 37e negative and huge numbers -> !crash 31
libc.syscall(ctypes.c_long(-1))
# %% 38 numbers that nobody knows -> ENOSYS
for n in (463, 464, 465, 466, 470, 500, 548, 999, 0x3FFFFFFF):
    call(n)
# %% 38b calls that came late -> ENOSYS
# calls: openat2 cachestat fchmodat2 map_shadow_stack futex_wake statmount mseal memfd_secret quotactl_fd process_mrelease pidfd_getfd
for name in ("openat2", "cachestat", "fchmodat2", "map_shadow_stack", "futex_wake", "statmount", "mseal", "memfd_secret", "quotactl_fd", "process_mrelease", "pidfd_getfd"):
    call(name, -1, 0, 0, 0)
# %% 39 prctl -> EPERM
for option in (35, 22, 62, 36, 8, 24, 28, 47, 37, 40, 41, 43, 45, 48, 50, 52, 53, 54, 55, 57, 58, 59, 60, 61, 65, 66, 67, 68, 69, 70, 71, 72, 78):
    call("prctl", option, 1, 0, 0, 0)
    call("prctl", option | 1 << 32, 1, 0, 0, 0)
# %% 39b arch_prctl can't fault the processor id -> ENODEV EPERM EINVAL open EFAULT [x86_64]
call("arch_prctl", 0x1011, 99)
call("arch_prctl", 0x4001, 0)
# %% 40 listeners of seccomp -> EPERM
listen = struct.pack("HxxxxxxQ", 1, ctypes.addressof(ctypes.create_string_buffer(struct.pack("HBBI", 6, 0, 0, 0x7FFF0000), 8)))
call("seccomp", 1, 8, listen)
call("seccomp", 1, 8 | 1, listen)
call("seccomp", 1, 8 | 1 << 32, listen)
call("seccomp", 0, 0, 0)  # strict
call("seccomp", 2, 0, bytes(4))
call("seccomp", 3, 0, bytes(8))
call("prctl", 22, 2, listen, 0, 0)
# %% 42 personality -> EPERM
for p in (0x40000, 0x400000, 0x8, 0x20000, 0xFFFFFFFF):
    call("personality", p)
# %% 43 local descriptor tables -> EPERM [x86_64]
call("modify_ldt", 1, struct.pack("IIII", 0, 0, 0xFFFFF, 0x51), 16)
call("modify_ldt", 0, bytes(16), 16)
# %% 43b ports -> !crash 31 [x86_64]
libc.syscall(SYS["iopl"], 3)
# calls: iopl ioperm bpf kexec_load kexec_file_load init_module finit_module delete_module reboot
# %% 43c more ports -> !crash 31 [x86_64]
libc.syscall(SYS["ioperm"], 0, 1024, 1)
# %% 44 bpf -> !crash 31
libc.syscall(SYS["bpf"], 0, bytes(120), 120)
# %% 44b another kernel -> !crash 31
libc.syscall(SYS["kexec_load"], 0, 0, 0, 0)
# %% 44c another kernel by file -> !crash 31
libc.syscall(SYS["kexec_file_load"], 0, 0, 0, 0, 0)
# %% 44d a module -> !crash 31
libc.syscall(SYS["init_module"], 0, 0, b"")
# %% 44e a module by file -> !crash 31
libc.syscall(SYS["finit_module"], 0, b"", 0)
# %% 44f away with a module -> !crash 31
libc.syscall(SYS["delete_module"], b"x", 0)
# %% 44g reboot -> !crash 31
libc.syscall(SYS["reboot"], 0xFEE1DEAD, 672274793, 0x01234567, 0)
# %% 46 splice and its kin -> EPERM
r, w = os.pipe()
word(os.splice, r, w, 1)
call("tee", r, w, 1, 0)
call("vmsplice", w, struct.pack("QQ", 0, 0), 1, 8)
word(os.sendfile, w, os.open("/etc/passwd", 0), 0, 1)
os.close(r), os.close(w)
# %% 46b copying still works -> True
shutil.copy("/etc/passwd", "copy")
shutil.copyfile("copy", "copy2")
print(os.path.getsize("copy2") > 0)
# %% 47 watching -> EPERM
call("inotify_init1", 0)
call("fanotify_init", 0, 0)
call("inotify_add_watch", 0, b"/usr", 2)
call("fanotify_mark", 0, 1, 2, -100, b"/usr")
# %% 48 leases, owners and signals of descriptors -> EPERM
f = open("own", "w")
for command, value in ((1024, 0), (1024, 1), (1026, 1), (8, 1), (10, 9), (15, bytes(8))):
    word(fcntl.fcntl, f, command, value)
for command in (8, 10, 1024, 1026):
    call("fcntl", f.fileno(), command | 1 << 32, 1)
    call("fcntl", f.fileno(), command | 1 << 63, 1)
# %% 48b commands of fcntl that came late -> EPERM
for command in [*range(39, 64), *range(1035, 1060), 12, 13, 14]:
    call("fcntl", 1, command, 0)
# %% 49 tricks with terminals -> EPERM
for request in (0x5412, 0x541C, 0x5423, 0x540E, 0x5404, 0x5422, 0x5402, 0x8933, 0x8912, 0x89A1, 0x125D, 0x6601, 0xC020660B, 0x5310, 0xB701, 0xAE01, 0x4B46, 0x400454CA):
    call("ioctl", 0, request, bytes(64))
    call("ioctl", 0, request | 1 << 32, bytes(64))
# %% 49b the high half of an allowed number -> ENOTTY
call("ioctl", 0, 0x5401 | 1 << 32, bytes(64))
# %% 50 nested filters end, and cost only itself -> EINVAL ENOMEM EACCES E2BIG EFAULT [fresh]
allow = ctypes.create_string_buffer(struct.pack("HBBI", 6, 0, 0, 0x7FFF0000) * 4000, 32000)
program = struct.pack("HxxxxxxQ", 4000, ctypes.addressof(allow))
for _ in range(50):
    ctypes.set_errno(0)
    if libc.syscall(SYS["seccomp"], 1, 0, program) < 0:
        break
print(errno.errorcode.get(ctypes.get_errno(), "never"))
# calls: seccomp landlock_create_ruleset landlock_restrict_self
# %% 50b Landlock's domains end -> E2BIG [fresh]
for _ in range(40):
    ctypes.set_errno(0)
    rules = libc.syscall(SYS["landlock_create_ruleset"], struct.pack("Q", 1 << 6), 8, 0)
    refused = libc.syscall(SYS["landlock_restrict_self"], rules, 0) < 0
    os.close(rules)
    if refused:
        break
print(errno.errorcode.get(ctypes.get_errno(), "never"))
# %% 50c limits that one lowers cost only oneself -> done [fresh]
resource.setrlimit(resource.RLIMIT_NOFILE, (64, 64))
resource.setrlimit(resource.RLIMIT_DATA, (400 << 20, 400 << 20))
print("done")
# %% 50d limits can't be raised -> ValueError EPERM
for what in ("NOFILE", "NPROC", "FSIZE", "CORE", "MEMLOCK", "NICE", "RTPRIO", "SIGPENDING", "MSGQUEUE"):
    n = getattr(resource, "RLIMIT_" + what)
    soft, hard = resource.getrlimit(n)
    word(resource.setrlimit, n, (soft, hard + 1))
    word(resource.setrlimit, n, (soft, -1))
# %% 50e a filter of ones own that kills -> !crash 31 [fresh]
kill = ctypes.create_string_buffer(struct.pack("HBBI", 6, 0, 0, 0x80000000), 8)
libc.syscall(SYS["seccomp"], 1, 0, struct.pack("HxxxxxxQ", 1, ctypes.addressof(kill)))
# %% 47b memory policy -> EPERM
call("mbind", 0, 4096, 2, bytes(8), 64, 0)
call("set_mempolicy", 2, bytes(8), 64)
call("get_mempolicy", 0, 0, 0, 0, 0)
call("mlock", 0, 4096)
call("mlock2", 0, 4096, 0)
call("mlockall", 3)
call("mincore", 0, 4096, 0)
call("remap_file_pages", 0, 0, 0, 0, 0)
call("pkey_alloc", 0, 0)
# %% 47c message queues and shared memory of System V and POSIX -> EPERM
call("shmget", 42, 4096, 0o1777)
call("shmat", 0, 0, 0)
call("semget", 42, 1, 0o1777)
call("msgget", 42, 0o1777)
call("msgctl", 0, 0, 0)
call("mq_open", b"x", 0o102, 0o777, 0)
call("mq_unlink", b"x")
# %% 47d the machine's clock, name and books -> EPERM
call("settimeofday", bytes(16), 0)
call("clock_settime", 0, bytes(16))
call("clock_adjtime", 0, bytes(208))
call("adjtimex", bytes(208))
call("sethostname", b"x", 1)
call("setdomainname", b"x", 1)
call("acct", 0)
call("swapon", b"x", 0)
call("swapoff", b"x")
call("syslog", 3, bytes(100), 100)
call("quotactl", 0, 0, 0, 0)
call("vhangup")
call("sync")
call("syncfs", 0)
call("lookup_dcookie", 0, 0, 0)
# %% 76 priorities -> EPERM EACCES
word(os.nice, -5)
call("sched_setscheduler", 0, 1, struct.pack("i", 50))
call("sched_setattr", 0, struct.pack("IIQiIQQQ", 48, 6, 0, 0, 0, 10**6, 10**7, 10**7), 0)
call("sched_setparam", 0, struct.pack("i", 1))
call("setpriority", 0, 1, -20)
call("setpriority", 2, 0, -20)
call("prlimit64", 1, 7, 0, 0)
call("ioprio_set", 1, 0, 0)
# %% 76b memory protection and keys do not matter, but hold -> open ENOSYS EPERM ENOSPC EINVAL ENOMEM
call("mprotect", 0, 0, 7)
call("membarrier", 0, 0, 0)
# %% 33 code in a nameless file has no more rights -> 1000 0000000000000000
fd = os.memfd_create("x")
with open("/usr/bin/python3.13", "rb") as f: os.write(fd, f.read())
got = subprocess.run([f"/proc/self/fd/{fd}", "-I", "-S", "-c", "import os; print(os.getuid(), *[l.split()[1] for l in open('/proc/self/status') if l.startswith('Cap')])"],
                     pass_fds=[fd], capture_output=True, text=True)
print(got.stdout or got.stderr)
os.close(fd)
# %% 33b nor has code on the own disk -> EPERM EACCES
shutil.copy("/usr/bin/python3.13", "own-python")
os.chmod("own-python", 0o755)
got = subprocess.run(["./own-python", "-I", "-S", "-c", "import os\ntry: os.setuid(0)\nexcept OSError as e: print('EPERM')\ntry: open('/proc/self/mem', 'r+b')\nexcept OSError: print('EACCES')"],
                     capture_output=True, text=True)
print(got.stdout or got.stderr)
os.unlink("own-python")
# %% 33c programs on scratch space do not run -> PermissionError
for place in ("/tmp/prog", "/dev/shm/prog"):
    shutil.copy("/usr/bin/true", place)
    try: subprocess.run([place])
    except OSError as e: print(type(e).__name__)
    else: print("open")
    os.unlink(place)
