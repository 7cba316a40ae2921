"""The kernel's answer to every system call, made inside a session, against the policy as box_seccomp.c writes it down.

Each number is called in a child of its own, with zeros; the calls that are allowed with some arguments only are also called with
the arguments that matter, once more with a bit set in their upper half, which the kernel does not look at.
"""
import json
import platform
import re
import unittest
from collections import Counter

from attacks.catalogue import resolve
from keeper import ROOT, BoxTest, for_each_user

LAST_TRIED = 480
# uretprobe and uprobe of x86_64: kernels from 6.14 and 6.18 on let them through unfiltered, whatever the program says, and end or refuse
# a caller that is not the kernel's own trampoline.
UNFILTERED = {335, 336} if platform.machine() == "x86_64" else set()
ALLOWED, EPERM, ENOSYS, KILLED = "allowed", "EPERM", "ENOSYS", "killed"

# Runs inside: tries each (number, arguments) in a child and says what came of it. Children that do not come back were let through.
PROBE = r'''
import ctypes, errno, json, os, resource, signal, sys
libc = ctypes.CDLL(None, use_errno=True)
# What an allowed call may do to its own process must not be seen as an answer: it writes the answer itself, first thing.
def attempt(number, args):
    r, w = os.pipe()
    pid = os.fork()
    if pid == 0:
        # Signals that such a call may send (to its group, to itself) stay its own affair.
        os.setpgid(0, 0)
        signal.setitimer(signal.ITIMER_REAL, 0.15)
        if number == NUMBERS["alarm"] or number == NUMBERS["setitimer"]: signal.setitimer(signal.ITIMER_REAL, 0)
        ctypes.set_errno(0)
        got = libc.syscall(ctypes.c_long(number), *[ctypes.c_ulong(a) for a in args])
        os.write(w, b"ok" if got >= 0 else errno.errorcode.get(ctypes.get_errno(), "?").encode())
        os._exit(0)
    os.close(w)
    answer = b""
    try: answer = os.read(r, 100)
    finally: os.close(r)
    status = os.waitpid(pid, 0)[1]
    try: os.killpg(pid, 9)
    except OSError: pass
    if os.WIFSIGNALED(status) and os.WTERMSIG(status) == 31: return "killed"
    return answer.decode() or "gone"
NUMBERS = json.loads(sys.argv[1])
print(json.dumps([attempt(number, args) for number, args in json.load(open("tries.json"))]))
'''


def array(source, name):
    found = re.search(r"\b%s\[\] = \{(.*?)\n\};" % name, source, re.S)
    return re.sub(r"\s+", " ", re.sub(r"/\*.*?\*/", "", found[1], flags=re.S))


def number(text, source):
    """Of a constant in the source."""
    text = text.strip().replace("(uint32_t)", "").replace("(uint64_t)", "")
    if text == "CLONE_REFUSED":
        flags = {"NEWNS": 0x20000, "NEWCGROUP": 0x2000000, "NEWUTS": 0x4000000, "NEWIPC": 0x8000000, "NEWUSER": 0x10000000, "NEWPID": 0x20000000,
                 "NEWNET": 0x40000000, "PARENT": 0x8000, "PTRACE": 0x2000, "UNTRACED": 0x800000}
        named = re.findall(r"CLONE_(\w+)", re.search(r"#define CLONE_REFUSED(.*?)\n\n", source, re.S)[1])
        return sum(flags[n] for n in named)
    if text == "BOX_SYSCALL_LAST":
        header = (ROOT / "sandbox/keeper/walls/box_seccomp.h").read_text()
        return int(re.search(r"BOX_SYSCALL_LAST = (\d+)", header)[1])
    value = 0xFFFFFFFF
    for part in text.split("&"):
        part = part.strip().rstrip("U")
        n = 0xFFFFFFFF if part == "LOW" else ~int(part[1:], 0) if part.startswith("~") else int(part, 0)
        value &= n & 0xFFFFFFFF
    return value


class Policy:
    """The tables of box_seccomp.c, read as text."""

    def __init__(self):
        source = (ROOT / "sandbox/keeper/walls/box_seccomp.c").read_text()
        self.last = number("BOX_SYSCALL_LAST", source)
        self.names = {}

        def words(name):
            return {self.named(w) for text in re.findall(r'"([^"]+)"', array(source, name)) for w in text.split()} - {None}

        self.allowed, self.deadly = words("allowed"), words("deadly")
        self.unknown = {number(n, source) for n in re.findall(r'\{ "\w+", (\w+) \}', array(source, "unknown"))}
        self.filtered = {}
        for name, rest in re.findall(r'\{ "(\w+)", \d, \{ (.*?) \} \},', array(source, "filtered")):
            terms = [(int(i), 0xFFFFFFFF, number(v, source)) for i, v in re.findall(r"IS\((\d), ([^)]+)\)", rest)]
            terms += [(int(i), number(m, source), number(v, source)) for i, m, v in re.findall(r"\{ (\d), ([^,]+), (\w+) \}", rest)]
            self.filtered.setdefault(self.named(name), []).append(terms)
        self.guards = {(self.named(n), int(i), number(v, source)) for n, i, v in re.findall(r"\{ SYS_(\w+), (\d), ([^}]+) \}", array(source, "guards"))}

    def named(self, name):
        n = resolve(name)
        if n >= 0:
            self.names[n] = name
        return n if n >= 0 else None

    def answer(self, nr, args=(0, 0)):
        args = [a & 0xFFFFFFFF for a in (*args, 0, 0, 0)]
        if nr >= 0x40000000 or nr in self.deadly:
            return KILLED
        if nr > self.last or nr in self.unknown:
            return ENOSYS
        if any(nr == guarded and args[i] == value for guarded, i, value in self.guards):
            return EPERM
        if nr in self.filtered:
            ok = any(all(args[i] & mask == value for i, mask, value in terms) for terms in self.filtered[nr])
            return ALLOWED if ok else EPERM
        return ALLOWED if nr in self.allowed else EPERM


def arguments(policy):
    """(number, arguments) for the calls whose arguments count."""
    nr = {name: n for n, name in policy.names.items()}
    one = {
        "clone": [17, *[17 | 1 << b for b in (7, 13, 15, 17, 23, 25, 26, 27, 28, 29, 30)]],
        "socket": range(48),
        "socketpair": range(48),
        "prlimit64": [0, 1, 2, 0xFFFFFFFF],
        "sched_setaffinity": [0, 1, 0xFFFFFFFF],
        "kill": [0xFFFFFFFF, 1],
        "tkill": [1],
        "tgkill": [1],
        "rt_sigqueueinfo": [1, 0xFFFFFFFF],
        "pidfd_open": [1],
    }
    tries = [(nr[name], (value, 0)) for name, values in one.items() for value in values]
    tries += [(nr["setpriority"], (which, who)) for which in range(4) for who in (0, 1, 0xFFFFFFFF)]
    tries += [(nr["seccomp"], (op, flags)) for op in range(5) for flags in (0, 1, 2, 4, 8, 9, 16)]
    tries += [(nr["prctl"], (option, 0)) for option in [*range(1, 90), 0x41555856, 0x53564D41, 0x59616D61]]
    tries += [(nr["ioctl"], (0, request)) for request in [*range(0x5400, 0x5470), 0x8901, 0x8933, 0x125D, 0x6601, 0xC020660B, 0x4B46, 0xAE01]]
    tries += [(nr["fcntl"], (0, command)) for command in [*range(48), *range(1020, 1050)]]
    high = [(n, (a | 1 << 32, b)) if n not in (nr["ioctl"], nr["fcntl"]) else (n, (a, b | 1 << 32)) for n, (a, b) in tries]
    options = [(nr[name], (0, 1, option)) for name in ("getsockopt", "setsockopt") for option in range(70, 85)]
    memory = [(nr["mmap"], (0, 4096, 3, 0x22 | 1 << bit, -1 & 0xFFFFFFFF)) for bit in (14, 15, 16, 17, 18, 20)]
    memory += [(nr["memfd_create"], (0, 1 << bit)) for bit in range(5)] + [(nr["madvise"], (0, 0, advice)) for advice in (0, 4, 12, 21, 100, 101)]
    return tries + high + options + memory


@for_each_user
class Calls(BoxTest):
    limits = {"pids": 64}

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.policy = Policy()

    def ask(self, tries):
        self.assertEqual(self.box.put("probe.py", PROBE.encode()).verdict, "ok")
        self.assertEqual(self.box.put("tries.json", json.dumps(tries).encode()).verdict, "ok")
        numbers = json.dumps({name: resolve(name) for name in ("alarm", "setitimer")})
        code = f"import subprocess, sys\np = subprocess.run([sys.executable, '-I', '-S', 'probe.py', {numbers!r}], capture_output=True, text=True)\nprint(p.stdout, p.stderr)"
        a = self.box.cell(code, timeout_ms=120000)
        self.assertVerdict(a, "ok", "kept")
        return json.loads(a.out)

    def compare(self, tries):
        wrong, table = [], Counter()
        for (nr, args), got in zip(tries, self.ask(tries)):
            want = self.policy.answer(nr, args)
            seen = got if got in (EPERM, ENOSYS, KILLED) and want != ALLOWED else KILLED if got == KILLED else ALLOWED
            table[want] += 1
            if nr in UNFILTERED:
                self.assertNotEqual(got, "ok")
            elif seen != want:
                wrong.append((nr, self.policy.names.get(nr, "?"), args, f"{got} instead of {want}"))
        self.assertEqual(wrong, [])
        return table

    def test_every_number(self):
        table = self.compare([(nr, (0, 0, 0, 0, 0, 0)) for nr in range(LAST_TRIED)])
        self.assertGreater(table[ALLOWED], 150)
        self.assertGreater(table[EPERM], 100)
        self.assertGreater(table[ENOSYS], 40)
        self.assertGreaterEqual(table[KILLED], 7)

    def test_every_argument_that_counts(self):
        table = self.compare(arguments(self.policy))
        self.assertGreater(table[ALLOWED], 60)
        self.assertGreater(table[EPERM], 500)

    def test_numbers_of_other_abis_are_deadly(self):
        self.compare([(0x40000000 | n, (0, 0)) for n in (0, 1, 39, 59, 60, 425, 512, 520, 547)] + [(n, (0, 0)) for n in (0x7FFFFFFF, 0xFFFFFFFF, 0x80000000 | 39)])

    def test_what_is_allowed_is_what_the_documentation_says(self):
        """The kinds that were never to be let through, by name, whatever the table says."""
        never = """mount umount2 pivot_root chroot unshare setns ptrace process_vm_readv process_vm_writev process_madvise kcmp keyctl add_key request_key
            perf_event_open userfaultfd name_to_handle_at open_by_handle_at mknod mknodat setuid setgid setreuid setregid setresuid setresgid setfsuid setfsgid
            setgroups capset sethostname setdomainname personality modify_ldt acct quotactl swapon swapoff syslog settimeofday clock_settime clock_adjtime adjtimex
            ioprio_set sched_setscheduler sched_setattr sched_setparam mbind set_mempolicy migrate_pages move_pages mlock mlock2 mlockall remap_file_pages
            fanotify_init fanotify_mark inotify_init inotify_init1 inotify_add_watch vhangup splice tee vmsplice sendfile shmget shmat shmctl semget semop semctl
            msgget msgsnd msgrcv msgctl mq_open mq_unlink mq_notify setxattr lsetxattr fsetxattr removexattr mincore pidfd_send_signal chown fchown lchown fchownat
            io_setup io_submit pkey_alloc rt_tgsigqueueinfo sync syncfs bpf kexec_load init_module reboot iopl ioperm io_uring_setup clone3 fsopen open_tree
            move_mount memfd_secret pidfd_getfd""".split()
        open_doors = [n for n in never if (nr := self.policy.named(n)) is not None and self.policy.answer(nr) == ALLOWED]
        self.assertEqual(open_doors, [])


if __name__ == "__main__":
    unittest.main()
