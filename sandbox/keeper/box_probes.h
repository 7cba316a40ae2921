/* box_probes.h - the escapes that box_check.c tries, as data. Included there only.
 *
 * Each is a cell of the same fresh session. It says what its attempts came to with _say(): names of errno values or of
 * exceptions, "open" for what should not have worked. Every word must be among those that are right; what else is printed
 * (a library's warning, say) is no word. Those that end the interpreter come last, since they take the tools with them.
 * The numbers in brackets are those of the attempts in tests/box/attacks. */
#ifndef BOX_PROBES_H
#define BOX_PROBES_H

enum box_needs { NEEDS_NOTHING, NEEDS_LANDLOCK };

struct box_probe {
    const char *name, *code;
    const char *words;    /* each word must be one of these, and there must be one; NULL: whatever */
    const char *verdicts; /* of box_proto.h; what the keeper may have said of it */
    int timeout_ms;
    enum box_needs needs; /* else it is skipped, and says why */
};

/* Runs first; the probes use what it defines. */
static const char probe_tools[] = "import ctypes, errno, fcntl, os, platform, resource, socket, subprocess\n"
                                  "_libc = ctypes.CDLL(None, use_errno=True)\n"
                                  "_arm = platform.machine() == 'aarch64'\n"
                                  "def _say(*words):\n"
                                  "    for w in words: os.write(1, f'\\n=' .encode() + str(w).encode() + b'\\n')\n"
                                  "def _word(f, *args):\n"
                                  "    try: f(*args)\n"
                                  "    except OSError as e: _say(errno.errorcode.get(e.errno, type(e).__name__))\n"
                                  "    except Exception as e: _say(type(e).__name__)\n"
                                  "    else: _say('open')\n"
                                  "def _libc_word(name, *args):\n"
                                  "    ctypes.set_errno(0)\n"
                                  "    r = getattr(_libc, name)(*args)\n"
                                  "    _say('open' if r >= 0 else errno.errorcode.get(ctypes.get_errno(), '?'))\n";

static const struct box_probe probes[] = {
    { "host files are not there (1)",
      "for p in ('/etc/shadow', '/root', '/home', '/var', '/boot', '/run'): _word(os.stat, p)\n", "ENOENT EACCES", "ok",
      5000, NEEDS_NOTHING },
    { "the system is read-only (2)",
      "for p in ('/x', '/usr/x', '/etc/x', '/opt/sandbook/x', '/dev/x'): _word(open, p, 'w')\n", "EROFS EACCES", "ok",
      5000, NEEDS_NOTHING },
    { "other processes can't be looked into (4)",
      "_word(os.readlink, '/proc/1/root')\nfor p in ('environ', 'mem', 'maps'): _word(os.open, '/proc/1/' + p, 0)\n",
      "ENOENT EACCES EPERM", "ok", 5000, NEEDS_NOTHING },
    { "files of the kernel are not there (7, 8, 9, 11)",
      "for p in ('/proc/kallsyms', '/proc/kcore', '/proc/keys', '/proc/sys/kernel/core_pattern', '/sys/kernel', '/dev/kmsg',"
      " '/dev/mem', '/dev/kvm', '/dev/vsock', '/sys/fs/cgroup'): _word(os.stat, p)\n",
      "ENOENT", "ok", 5000, NEEDS_NOTHING },
    { "/proc can't be written", "_word(open, '/proc/self/mem', 'r+b')\n_word(open, '/proc/self/oom_score_adj', 'w')\n",
      "EACCES", "ok", 5000, NEEDS_LANDLOCK },
    { "no device nodes (10)", "_word(os.mknod, '/tmp/n', 0o60600, 0x800)\n_word(os.mkfifo, '/tmp/f')\n", "EPERM", "ok",
      5000, NEEDS_NOTHING },
    { "no set-uid programs (20)",
      "import shutil\nshutil.copy('/usr/bin/id', 'probe-id')\ntry: os.chmod('probe-id', 0o4755)\nexcept OSError: pass\n"
      "_say(subprocess.run(['./probe-id', '-u'], capture_output=True, text=True).stdout.strip())\nos.unlink('probe-id')\n",
      "1000", "ok", 10000, NEEDS_NOTHING },
    { "no new namespaces (26, 27)",
      "_libc_word('unshare', 0x10000000)\n_libc_word('unshare', 0x20000)\n"
      "_libc_word('syscall', 220 if _arm else 56, ctypes.c_long(0x10000011), 0, 0, 0, 0)\n"
      "_word(lambda: os.setns(os.open('/proc/self/ns/user', 0)))\n",
      "EPERM EACCES", "ok", 5000, NEEDS_NOTHING },
    { "no mounts, no chroot (28, 29)",
      "_libc_word('mount', b'x', b'/tmp', b'tmpfs', 0, 0)\n_libc_word('syscall', 430, b'tmpfs', 0)\n_word(os.chroot, '/tmp')\n",
      "EPERM ENOSYS", "ok", 5000, NEEDS_NOTHING },
    { "no privileges (30)",
      "_word(os.setuid, 0)\n_word(os.setgroups, [])\n"
      "_say(*['none' if int(l.split()[1], 16) == 0 else l.split()[0] for l in open('/proc/self/status') if l.startswith('Cap')])\n",
      "EPERM none", "ok", 5000, NEEDS_NOTHING },
    { "no tracing (32)",
      "_libc_word('ptrace', 16, os.getppid() or 1, 0, 0)\n_libc_word('process_vm_readv', 1, 0, 0, 0, 0, 0)\n", "EPERM",
      "ok", 5000, NEEDS_NOTHING },
    { "init can't be signalled (45, 80)", "_word(os.kill, 1, 9)\n_word(os.kill, -1, 9)\n_word(os.pidfd_open, 1)\n",
      "EPERM", "ok", 5000, NEEDS_NOTHING },
    { "risky doors of the kernel are shut (34-36, 46, 47)",
      "_libc_word('syscall', 425, 8, 0)\n_libc_word('syscall', 282 if _arm else 323, 0)\n"
      "_libc_word('syscall', 241 if _arm else 298, 0, 0, -1, -1, 0)\n_libc_word('syscall', 217 if _arm else 248, b'user', b'x', b'y', 1, -3)\n"
      "_libc_word('splice', 0, 0, 1, 0, 1, 0)\n_libc_word('inotify_init1', 0)\n",
      "ENOSYS EPERM", "ok", 5000, NEEDS_NOTHING },
    { "no leases, no typing into terminals (48, 49)",
      "_f = open('probe-lease', 'w')\n_word(fcntl.fcntl, _f, 1024, 0)\n_word(fcntl.fcntl, _f, 8, 1)\n"
      "_libc_word('syscall', 29 if _arm else 16, 0, ctypes.c_long(0x5412 | 1 << 32), b'x')\n_f.close()\nos.unlink('probe-lease')\n",
      "EPERM", "ok", 5000, NEEDS_NOTHING },
    { "limits can't be raised",
      "for _n in (resource.RLIMIT_NOFILE, resource.RLIMIT_NPROC, resource.RLIMIT_FSIZE, resource.RLIMIT_CORE):\n"
      "    _word(resource.setrlimit, _n, (resource.getrlimit(_n)[0], resource.getrlimit(_n)[1] + 1))\n",
      "ValueError EPERM", "ok", 5000, NEEDS_NOTHING },
    { "no sockets but local ones (51)",
      "for f in (2, 10, 16, 17, 29, 30, 31, 38, 40, 44): _word(socket.socket, f, socket.SOCK_DGRAM)\n", "EPERM", "ok",
      5000, NEEDS_NOTHING },
    { "no names are resolved (52)",
      "for h in ('example.com', '_dns.resolver.arpa', 'metadata.google.internal'): _word(socket.getaddrinfo, h, 80)\n",
      "gaierror", "ok", 5000, NEEDS_NOTHING },
    { "nobody's abstract sockets (54)",
      "for n in ('\\0/tmp/.X11-unix/X0', '\\0systemd'): _word(socket.socket(socket.AF_UNIX).connect, n)\n",
      "EPERM ECONNREFUSED", "ok", 5000, NEEDS_NOTHING },
    { "only its own descriptors (23)", "_say(*sorted(map(int, os.listdir('/proc/self/fd')))[:4])\n", "0 1 2 3", "ok",
      5000, NEEDS_NOTHING },
    { "an environment without secrets (25)",
      "_say(*{k for k in os.environ if not k.startswith('KMP_')} - {'PATH', 'HOME', 'LANG', 'TZ', 'MPLBACKEND', 'MPLCONFIGDIR', 'XDG_CACHE_HOME', 'IPYTHONDIR',"
      " 'PYTHONDONTWRITEBYTECODE', 'OPENBLAS_NUM_THREADS', 'OMP_NUM_THREADS', 'LC_CTYPE', 'COLUMNS', 'LINES'}, 'nothing')\n",
      "nothing", "ok", 5000, NEEDS_NOTHING },
    { "a full disk is an error, not the end (67, 68)",
      "def _fill():\n    with open('probe-fill', 'wb') as f:\n        while True: f.write(bytes(1 << 20))\n"
      "_word(_fill)\nos.unlink('probe-fill')\n"
      "def _names():\n    for i in range(10**6): os.close(os.open(f'/dev/shm/{i}', os.O_CREAT))\n"
      "_word(_names)\nfor n in os.listdir('/dev/shm'): os.unlink('/dev/shm/' + n)\n",
      "ENOSPC EFBIG", "ok", 20000, NEEDS_NOTHING },
    { "descriptors end (72)",
      "_held = []\ndef _many():\n    while True: _held.append(os.dup(0))\n_word(_many)\nfor _fd in _held: os.close(_fd)\n",
      "EMFILE", "ok", 5000, NEEDS_NOTHING },
    { "x32 and 32-bit calls are deadly (37)", "import ctypes\nctypes.CDLL(None).syscall(ctypes.c_long(0x40000027))\n",
      NULL, "crash", 5000, NEEDS_NOTHING },
    { "bpf is deadly (44)",
      "import ctypes, platform\nctypes.CDLL(None).syscall(280 if platform.machine() == 'aarch64' else 321, 0, 0, 0)\n",
      NULL, "crash", 5000, NEEDS_NOTHING },
    { "a loop that ignores interrupts is ended (57)",
      "while True:\n    try:\n        while True: pass\n    except BaseException: pass\n", NULL, "timeout", 500,
      NEEDS_NOTHING },
    { "memory has a limit (63)", "_l = []\nwhile True: _l.append(b'x' * (1 << 22))\n", NULL, "oom ok", 20000,
      NEEDS_NOTHING },
    { "a fork bomb is ended (60)",
      "import os\nwhile True:\n    try:\n        if os.fork() == 0: os.closerange(1, 3)\n    except BaseException: pass\n",
      NULL, "timeout limit oom", 500, NEEDS_NOTHING },
    { "printing without end is ended (73)", "import os\nwhile True: os.write(1, b'x' * 65536)\n", NULL, "limit", 20000,
      NEEDS_NOTHING },
    { "a crash costs its own session only (79)", "import ctypes\nctypes.string_at(0)\n", NULL, "crash", 5000,
      NEEDS_NOTHING },
    { "the next cell answers", "import os\nos.write(1, b'\\n=alive\\n')\n", "alive", "ok", 5000, NEEDS_NOTHING },
};
#endif
