/* box_probes.h - the escapes that box_check.c tries, as data. Included there only.
 *
 * Each is a cell of the same fresh session. It prints what its attempts came to as words: names of errno values or of
 * exceptions, "open" for what should not have worked. Every word must be among those that are right. Numbers are those of
 * specification section 4. */
#ifndef BOX_PROBES_H
#define BOX_PROBES_H

struct box_probe {
    const char *name, *code;
    const char *words;    /* each printed word must be one of these; "*": whatever */
    const char *verdicts; /* of box_proto.h; what the keeper may have said of it */
    int timeout_ms;
};

/* Runs first; the probes use what it defines. */
static const char probe_tools[] = "import ctypes, errno, os, platform, socket\n"
                                  "_libc = ctypes.CDLL(None, use_errno=True)\n"
                                  "_arm = platform.machine() == 'aarch64'\n"
                                  "def _word(f, *args):\n"
                                  "    try: f(*args)\n"
                                  "    except OSError as e: print(errno.errorcode.get(e.errno, type(e).__name__))\n"
                                  "    except Exception as e: print(type(e).__name__)\n"
                                  "    else: print('open')\n"
                                  "def _libc_word(name, *args):\n"
                                  "    ctypes.set_errno(0)\n"
                                  "    r = getattr(_libc, name)(*args)\n"
                                  "    print('open' if r >= 0 else errno.errorcode.get(ctypes.get_errno(), '?'))\n";

static const struct box_probe probes[] = {
    { "host files are not there (1)",
      "for p in ('/etc/shadow', '/root', '/home', '/var', '/boot', '/run'): _word(os.stat, p)\n", "ENOENT EACCES", "ok",
      5000 },
    { "the system is read-only (2)",
      "for p in ('/x', '/usr/x', '/etc/x', '/opt/sandbook/x', '/dev/x'): _word(open, p, 'w')\n", "EROFS EACCES", "ok",
      5000 },
    { "other processes are out of sight (4)",
      "for p in ('/proc/1/root', '/proc/1/environ', '/proc/1/cwd'): _word(os.stat, p)\n", "ENOENT EACCES EPERM", "ok",
      5000 },
    { "the kernel's files are not there (7, 8, 9, 11)",
      "for p in ('/proc/kallsyms', '/proc/kcore', '/proc/keys', '/proc/sys/kernel/core_pattern', '/sys/kernel', '/dev/kmsg',"
      " '/dev/mem', '/dev/kvm', '/dev/vsock', '/sys/fs/cgroup'): _word(os.stat, p)\n",
      "ENOENT", "ok", 5000 },
    { "/proc can't be written (3.10)",
      "_word(open, '/proc/self/mem', 'r+b')\n_word(open, '/proc/self/oom_score_adj', 'w')\n", "EACCES", "ok", 5000 },
    { "no device nodes (10)", "_word(os.mknod, '/tmp/n', 0o60600, 0x800)\n_word(os.mkfifo, '/tmp/f')\n", "EPERM", "ok",
      5000 },
    { "no new namespaces (26, 27)",
      "_libc_word('unshare', 0x10000000)\n_libc_word('unshare', 0x20000)\n_word(lambda: os.setns(os.open('/proc/self/ns/user', 0)))\n",
      "EPERM EACCES", "ok", 5000 },
    { "no mounts, no chroot (28, 29)",
      "_libc_word('mount', b'x', b'/tmp', b'tmpfs', 0, 0)\n_libc_word('syscall', 430, b'tmpfs', 0)\n_word(os.chroot, '/tmp')\n",
      "EPERM ENOSYS", "ok", 5000 },
    { "no privileges (30)",
      "_word(os.setuid, 0)\n_word(os.setgroups, [])\n"
      "print(*[l.split()[1] for l in open('/proc/self/status') if l.startswith('Cap')])\n",
      "EPERM 0000000000000000", "ok", 5000 },
    { "no tracing (32)",
      "_libc_word('ptrace', 16, os.getppid() or 1, 0, 0)\n_libc_word('process_vm_readv', 1, 0, 0, 0, 0, 0)\n", "EPERM",
      "ok", 5000 },
    { "init can't be signalled (80, 45)", "_word(os.kill, 1, 9)\n_word(os.kill, -1, 9)\n_word(os.pidfd_open, 1)\n",
      "EPERM", "ok", 5000 },
    { "the kernel's riskier doors are shut (34, 35, 36, 46, 47)",
      "_libc_word('syscall', 425, 8, 0)\n_libc_word('syscall', 282 if _arm else 323, 0)\n"
      "_libc_word('syscall', 241 if _arm else 298, 0, 0, -1, -1, 0)\n_libc_word('syscall', 217 if _arm else 248, b'user', b'x', b'y', 1, -3)\n"
      "_libc_word('splice', 0, 0, 1, 0, 1, 0)\n_libc_word('inotify_init1', 0)\n",
      "ENOSYS EPERM", "ok", 5000 },
    { "no sockets but local ones (51)",
      "for f in (2, 10, 16, 17, 29, 30, 31, 38, 40, 44): _word(socket.socket, f, socket.SOCK_DGRAM)\n", "EPERM", "ok",
      5000 },
    { "no names are resolved (52)",
      "for h in ('example.com', '_dns.resolver.arpa', 'metadata.google.internal'): _word(socket.getaddrinfo, h, 80)\n",
      "gaierror", "ok", 5000 },
    { "nobody's abstract sockets (54)",
      "_s = socket.socket(socket.AF_UNIX)\n_word(_s.connect, '\\0/tmp/.X11-unix/X0')\n_word(_s.connect, '\\0systemd')\n",
      "EPERM ECONNREFUSED", "ok", 5000 },
    { "only its own descriptors (23)", "print(*sorted(map(int, os.listdir('/proc/self/fd')))[:4])\n", "0 1 2 3", "ok",
      5000 },
    { "an environment without secrets (25)",
      "print(*{k for k in os.environ if not k.startswith('KMP_')} - {'PATH', 'HOME', 'LANG', 'TZ', 'MPLBACKEND', 'MPLCONFIGDIR', 'XDG_CACHE_HOME', 'IPYTHONDIR',"
      " 'PYTHONDONTWRITEBYTECODE', 'OPENBLAS_NUM_THREADS', 'OMP_NUM_THREADS', 'LC_CTYPE', 'COLUMNS', 'LINES'}, 'none')\n",
      "none", "ok", 5000 },
    { "a full disk is an error, not the end (67)",
      "def _fill():\n    with open('fill', 'wb') as f:\n        while True: f.write(bytes(1 << 20))\n"
      "_word(_fill)\nos.unlink('fill')\n",
      "ENOSPC EFBIG", "ok", 20000 },
    { "a loop that ignores interrupts is ended (57, 58)",
      "while True:\n    try:\n        while True: pass\n    except BaseException: pass\n", "*", "timeout", 1000 },
    { "memory has a limit (63)", "_l = []\nwhile True: _l.append(b'x' * (1 << 22))\n", "*", "oom ok", 20000 },
    { "a fork bomb is ended (60)", "import os\nwhile True:\n    try: os.fork()\n    except BaseException: pass\n", "*",
      "timeout", 1000 },
    { "printing without end is ended (73)", "while True: print('x' * 65536)\n", "*", "limit", 20000 },
    { "a crash costs its own session only (79)", "import ctypes\nctypes.string_at(0)\n", "*", "crash", 5000 },
    { "the next cell answers", "print('alive')\n", "alive", "ok", 5000 },
};
#endif
