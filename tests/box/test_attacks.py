"""What a box must withstand: specification section 4, by its numbers.

Each attack is a cell in a fresh session. It prints what its attempts came to: names of errno values or of exceptions, and
"open" for what must never work. After each, the next cell of the session answers, a bystander's session is as it was, and
closing leaves nothing behind.
"""
import os
import platform
import time
import unittest
from pathlib import Path

from keeper import CLAIM, IS_ROOT, MAGIC, MIB, BoxTest, Keeper, for_each_user, frame

TOOLS = """
import ctypes, errno, os, platform, socket, struct, sys
libc = ctypes.CDLL(None, use_errno=True)
ARM = platform.machine() == 'aarch64'
def word(f, *args):
    try: f(*args)
    except OSError as e: print(errno.errorcode.get(e.errno, type(e).__name__))
    except BaseException as e: print(type(e).__name__)
    else: print('open')
def call(x86, arm, *args):
    ctypes.set_errno(0)
    r = libc.syscall(arm if ARM else x86, *args)
    print('open' if r >= 0 else errno.errorcode.get(ctypes.get_errno(), '?'))
"""

# name, code, the words that are right
ATTACKS = (
    ("01_host_files", "for p in ('/etc/shadow', '/root', '/home', '/var/lib', '/boot', '/run', '/srv'): word(os.stat, p)", "ENOENT"),
    ("02_write_to_the_system", "for p in ('/x', '/usr/x', '/etc/x', '/etc/passwd', '/opt/sandbook/init', '/dev/x'): word(open, p, 'w')", "EROFS EACCES"),
    ("02b_change_the_system", "word(os.chmod, '/usr/bin/python3', 0o777); word(os.unlink, '/etc/passwd'); word(os.rename, '/usr', '/tmp/usr'); word(os.utime, '/usr/bin')", "EROFS EACCES EPERM EXDEV"),
    ("03_walk_up", "print(*sorted(os.listdir('../../../../..')), *sorted(os.listdir('/proc/self/root/../..')))",
     "bin dev etc lib lib64 mnt opt proc sbin tmp usr"),
    ("04_inits_root", "for p in ('root', 'cwd', 'environ', 'exe', 'fd', 'maps', 'mem'): word(os.stat, '/proc/1/' + p)", "ENOENT"),
    ("05_own_memory_file", "word(open, '/proc/self/mem', 'r+b'); word(open, '/proc/self/oom_score_adj', 'w'); word(open, '/proc/self/uid_map', 'w')", "EACCES EPERM"),
    ("07_kernel_files", "for p in ('kallsyms', 'kcore', 'kmsg', 'keys', 'timer_list', 'cpuinfo', 'meminfo', 'net', 'sys', 'sysrq-trigger', 'config.gz'): word(os.stat, '/proc/' + p)", "ENOENT"),
    ("08_core_pattern", "word(open, '/proc/sys/kernel/core_pattern', 'w')", "ENOENT"),
    ("09_sysfs_and_cgroupfs", "for p in ('/sys/kernel', '/sys/fs/cgroup', '/sys/class'): word(os.stat, p)", "ENOENT"),
    ("10_device_nodes", "word(os.mknod, 'n', 0o60600, 0x800); word(os.mknod, 'n', 0o20600, 0x103); word(os.mkfifo, 'f')", "EPERM"),
    ("11_devices", "for p in ('mem', 'kvm', 'fuse', 'vsock', 'vda', 'sda', 'net/tun', 'tty', 'ptmx', 'console', 'kmsg'): word(os.stat, '/dev/' + p)", "ENOENT"),
    ("12_nothing_from_the_host_in_dev", "print(*sorted(os.listdir('/dev')))", "fd full null random shm stderr stdin stdout urandom zero"),
    ("20_suid", "import shutil; shutil.copy('/usr/bin/id', 'x'); word(os.chmod, 'x', 0o4755); import subprocess; print(subprocess.run(['./x', '-u'], capture_output=True).stdout.decode().strip() or 'none')", "open EPERM 1000 none"),
    ("21_suid_in_the_image", "print(*[p for d, _, fs in os.walk('/usr/bin') for p in [os.path.join(d, f) for f in fs] if os.path.exists(p) and os.stat(p).st_mode & 0o6000], 'none')", "none"),
    ("22_file_handles", "call(303, 264, -100, b'/', 0, 0, 0); call(304, 265, -100, 0, 0)", "EPERM"),
    ("23_descriptors", "print(*[f for f in map(int, sorted(os.listdir('/proc/self/fd'))) if f <= 3]); \nfor f in range(4, 64):\n    try: os.fstat(f)\n    except OSError: continue\n    t = os.readlink(f'/proc/self/fd/{f}'); print('open' if t.startswith(('socket', '/')) and not t.startswith(('/mnt/data', '/usr', '/dev/null', '/tmp', '/dev/shm')) else 0)", "0 1 2 3"),
    ("25_canaries", "t = ''.join(open(f'/proc/self/{f}').read() for f in ('environ', 'cmdline', 'mountinfo', 'cgroup', 'status'))\nprint('open' if 'canary-7f1d' in t or 'SECRET' in t or 'sandbook-' in open('/proc/self/cgroup').read() else 'none')", "none"),
    ("26_new_user_namespace", "call(272, 97, 0x10000000); call(56, 220, 0x10000011, 0, 0, 0, 0); call(435, 435, 0, 0)", "EPERM ENOSYS"),
    ("26b_every_namespace", "for f in (0x20000, 0x2000000, 0x4000000, 0x8000000, 0x20000000, 0x40000000, 0x80): call(272, 97, f)", "EPERM"),
    ("26c_clone_parent", "for f in (0x8000, 0x2000, 0x800000): call(56, 220, f | 17, 0, 0, 0, 0)", "EPERM"),
    ("27_setns", "for n in os.listdir('/proc/self/ns'):\n    try: fd = os.open('/proc/self/ns/' + n, os.O_RDONLY)\n    except OSError as e: print(errno.errorcode[e.errno]); continue\n    word(os.setns, fd)", "EPERM EACCES"),
    ("28_mounts", "call(165, 40, b'x', b'/tmp', b'tmpfs', 0, 0); call(166, 39, b'/tmp', 2); call(430, 430, b'tmpfs', 0); call(428, 428, -100, b'/', 1); call(429, 429, -100, b'/', -100, b'/tmp', 0); call(442, 442, -100, b'/', 0, 0, 0)", "EPERM ENOSYS"),
    ("29_chroot", "word(os.chroot, '/tmp'); call(155, 41, b'.', b'.')", "EPERM"),
    ("30_ids", "for f in (os.setuid, os.setgid, os.seteuid): word(f, 0)\nword(os.setgroups, [0]); word(os.setresuid, 0, 0, 0)\nprint(*[l.split()[1] for l in open('/proc/self/status') if l.startswith('Cap')])", "EPERM 0000000000000000"),
    ("30b_capset", "h = struct.pack('Ii', 0x20080522, 0); d = struct.pack('IIIIII', *[0xffffffff] * 6); call(126, 91, h, d); call(157, 167, 47, 2, 21, 0, 0)", "EPERM"),
    ("32_ptrace", "call(101, 117, 16, os.getppid() or 1, 0, 0); call(101, 117, 0, 0, 0, 0); call(310, 270, os.getpid(), 0, 0, 0, 0, 0); call(311, 271, os.getpid(), 0, 0, 0, 0, 0); call(312, 272, 1, 1, 0, 0, 0)", "EPERM"),
    ("34_io_uring", "for n in (425, 426, 427): call(n, n, 8, 0)", "ENOSYS"),
    ("35_userfaultfd_perf", "call(323, 282, 0); call(298, 241, 0, 0, -1, -1, 0)", "EPERM"),
    ("36_keyrings", "call(250, 219, 0, -3, 1); call(248, 217, b'user', b'x', b'y', 1, -3); call(249, 218, b'user', b'x', 0, -3)", "EPERM"),
    ("38_unknown_numbers", "for n in (463, 500, 999): call(n, n)", "ENOSYS"),
    ("39_prctl", "for n in (35, 22, 62, 36, 8, 24, 28, 47): call(157, 167, n, 1, 0, 0, 0)", "EPERM"),
    ("40_seccomp_listener", "call(317, 277, 1, 8, 0); call(317, 277, 0, 0, 0); call(317, 277, 3, 0, 0)", "EPERM"),
    ("42_personality", "call(135, 92, 0x0040000)", "EPERM"),
    ("43_ldt", "print('EPERM') if ARM else call(154, 0, 0, 0, 0)", "EPERM"),
    ("45_pidfds", "word(os.pidfd_open, 1); call(438, 438, 3, 0, 0); call(424, 424, os.pidfd_open(os.getpid()), 9, 0, 0)", "EPERM ENOSYS"),
    ("46_splice", "r, w = os.pipe()\nword(os.splice, r, w, 1); call(276, 77, r, w, 1, 0); call(278, 75, w, 0, 0, 0); word(os.sendfile, w, os.open('/etc/passwd', 0), 0, 1)", "EPERM"),
    ("46b_copying_still_works", "import shutil; shutil.copy('/etc/passwd', 'copy'); shutil.copyfile('copy', 'copy2'); print(os.path.getsize('copy2') > 0)", "True"),
    ("47_watching", "call(294, 26, 0); call(300, 262, 0, 0); call(254, 27, 0, b'/usr', 2)", "EPERM"),
    ("48_leases_and_owners", "import fcntl\nf = open('own', 'w')\nfor c, a in ((1024, 0), (1026, 1), (8, 1), (10, 9), (15, b'\\0' * 8)): word(fcntl.fcntl, f, c, a)\ncall(72, 25, f.fileno(), 8 | 1 << 32, 1)", "EPERM"),
    ("49_terminal_tricks", "import fcntl\nfor n in (0x5412, 0x541c, 0x5423, 0x540e, 0x5412 | 1 << 32): call(16, 29, 0, n, b'x')", "EPERM"),
    ("50_nested_filters_hurt_only_oneself", "import resource; resource.setrlimit(resource.RLIMIT_NOFILE, (64, 64)); print('done')", "done"),
    ("51_socket_families", "for f in range(2, 46): word(socket.socket, f, socket.SOCK_DGRAM); word(socket.socket, f, socket.SOCK_RAW)", "EPERM"),
    ("51b_families_by_the_high_half", "call(41, 198, 2 | 1 << 32, 2, 0); call(41, 198, 38 | 1 << 40, 5, 0)", "EPERM"),
    ("52_names", "for h in ('example.com', 'metadata.google.internal', 'sandbox', '1.2.3.4.in-addr.arpa'): word(socket.getaddrinfo, h, 80)", "gaierror"),
    ("53_metadata_service", "for a in (('169.254.169.254', 80), ('127.0.0.1', 22), ('10.0.0.1', 80)): word(socket.create_connection, a, 1)", "EPERM PermissionError"),
    ("54_abstract_sockets", "s = socket.socket(socket.AF_UNIX)\nfor n in ('\\0sandbook-test-abstract', '\\0/tmp/.X11-unix/X0'): word(s.connect, n)", "EPERM ECONNREFUSED"),
    ("56_dns_by_hand", "call(41, 198, 2, 2, 17); call(41, 198, 10, 2, 17); call(41, 198, 16, 3, 0)", "EPERM"),
    ("70_memfd_is_memory", "fd = os.memfd_create('x')\nword(os.ftruncate, fd, 10 << 30)", "EFBIG EINVAL open"),
    ("71_mapped_files_can_be_cut", "import mmap\nf = open('m', 'w+b'); f.truncate(1 << 20); m = mmap.mmap(f.fileno(), 1 << 20); f.truncate(0); print('done')", "done"),
    ("76_priorities", "word(os.nice, -5); call(144, 119, 0, 1, struct.pack('i', 50)); call(141, 140, 0, 1, -20); call(302, 261, 1, 7, 0, 0); call(203, 122, 1, 8, b'\\xff' * 8); call(251, 30, 1, 0, 0)", "EPERM EACCES"),
    ("77_timers_and_signals", "import ctypes\nn = 0\nfor _ in range(100000):\n    t = ctypes.c_void_p()\n    if libc.timer_create(1, None, ctypes.byref(t)) != 0: break\n    n += 1\nprint('done' if n < 100000 else 'open')", "done"),
    ("80_signals_to_others", "for p in (1, -1): word(os.kill, p, 9)\ncall(200, 130, 1, 9); call(234, 131, 1, 1, 9); call(62, 129, 1 | 1 << 32, 9); call(129, 138, 1, 9, b'\\0' * 128)", "EPERM"),
    ("81_killing_the_neighbours", "for p in list(range(3, 50)) + [os.getppid() or 2**22]:\n    if p != os.getpid(): word(os.kill, p, 9)", "ESRCH EPERM"),
    ("89_environment", "print(*{k for k in os.environ if not k.startswith('KMP_')} - {'PATH', 'HOME', 'LANG', 'TZ', 'MPLBACKEND', 'MPLCONFIGDIR', 'XDG_CACHE_HOME', 'IPYTHONDIR', 'PYTHONDONTWRITEBYTECODE', 'OPENBLAS_NUM_THREADS', 'OMP_NUM_THREADS', 'LC_CTYPE', 'COLUMNS', 'LINES'}, 'none')", "none"),
)

# Code that does not come back, and the verdict.
DEADLY = (
    ("37_int_80", "b = bytes([0xb8, 20, 0, 0, 0, 0xcd, 0x80, 0xc3])", "crash", "x86_64"),
    ("37b_x32", "b = bytes([0xb8, 39, 0, 0, 0x40, 0x0f, 0x05, 0xc3])", "crash", "x86_64"),
    ("43_iopl", "libc.syscall(172, 3)", "crash", "x86_64"),
    ("44_bpf", "libc.syscall(280 if ARM else 321, 0, 0, 0)", "crash", None),
    ("44b_modules_and_kexec", "libc.syscall(104 if ARM else 246, 0, 0, 0, 0)", "crash", None),
)
RUN_CODE = "\nimport mmap\nm = mmap.mmap(-1, 4096, prot=7); m.write(b)\nctypes.CFUNCTYPE(ctypes.c_long)(ctypes.addressof(ctypes.c_char.from_buffer(m)))()"


class Guarded(BoxTest):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.bystander = cls.keeper.open()
        cls.bystander.cell("mine = 'untouched'; open('mine.txt', 'w').write(mine)")
        cls.still = set(cls.keeper.descendants())
        cls.fds = cls.keeper.descriptors()

    def close(self, box):
        a = self.bystander.cell("print(mine, open('mine.txt').read())")
        self.assertEqual((a.words, a.state), (["untouched", "untouched"], "kept"), a)
        self.assertEqual(box.close().verdict, "ok")
        self.box = None
        self.assertEqual(set(self.keeper.descendants()) - self.still, set())
        self.assertEqual(self.keeper.descriptors(), self.fds)


@for_each_user
class Attacks(Guarded):
    def attack(self, code, right):
        a = self.box.cell(TOOLS + code, timeout_ms=30000)
        self.assertVerdict(a, "ok", "kept")
        self.assertIsNone(a.error, a)
        self.assertTrue(a.words, a)
        self.assertLessEqual(set(a.words), set(right.split()), a)
        self.answers()

    def deadly(self, code, verdict):
        a = self.box.cell(TOOLS + code, timeout_ms=5000)
        self.assertVerdict(a, verdict, "lost")
        self.assertEqual(a.done["signal"], 31, a)
        self.answers()


def add_attacks():
    for name, code, right in ATTACKS:
        setattr(Attacks, f"test_{name}", lambda self, code=code, right=right: self.attack(code, right))
    for name, code, verdict, machine in DEADLY:
        if machine in (None, platform.machine()):
            code += RUN_CODE if code.startswith("b = ") else ""
            setattr(Attacks, f"test_{name}", lambda self, code=code, verdict=verdict: self.deadly(code, verdict))


add_attacks()


@for_each_user
class Frames(Guarded):
    """3.15: what a head says is a claim, and only the head's."""

    def send_from_cell(self, *frames, more=""):
        return self.box.cell(f"import os\nfor f in {list(frames)!r}: os.write(3, f)\n{more}", timeout_ms=5000)

    def test_a_malformed_frame_ends_the_run(self):
        good = frame(CLAIM, 0, 0, b"{}")
        for what, bad in {
            "short": b"x",
            "magic": frame(CLAIM, 0, 0, b"{}", magic=MAGIC + 1),
            "version": frame(CLAIM, 0, 0, b"{}", version=9),
            "length": frame(CLAIM, 0, 0, b"{}", len=1 << 30),
            "flags": frame(CLAIM, 0, 0, b"{}", flags=0x80),
            "type": frame(36, 0, 0, b"{}"),
            "tail": good + b"x",
            "long": good + bytes(70000),
        }.items():
            with self.subTest(what):
                a = self.send_from_cell(bad, more="import time; time.sleep(10)")
                self.assertVerdict(a, "limit", "lost", "protocol")
                self.answers()

    def test_a_forged_claim_can_only_lie_about_itself(self):
        a = self.send_from_cell(frame(CLAIM, 7, 99, b'{"status":"ok","result":{"text/plain":"lie"}}'), more="import time; time.sleep(0.3)")
        self.assertVerdict(a, "ok")  # it is the head's own word, relayed for this request only
        second = self.box.cell("1")
        self.assertIn(second.verdict, ("ok", "limit"))

    def test_a_childs_frame_is_not_the_heads(self):
        code = (
            "import os, time\n"
            f"if os.fork() == 0:\n    os.write(3, {frame(CLAIM, 0, 0, b'{}')!r})\n    os.write(3, b'junk')\n    os._exit(0)\n"
            "os.wait(); time.sleep(0.1); print('mine')"
        )
        a = self.box.cell(code)
        self.assertVerdict(a, "ok", "kept")
        self.assertEqual(a.out, b"mine\n")
        self.answers()

    def test_a_claim_without_end_is_cut(self):
        piece = frame(CLAIM, 0, 0, bytes(65000), flags=1)
        a = self.box.cell(f"import os\np = HEAD = {piece[:20]!r} + bytes(65000)\nwhile True: os.write(3, p)", timeout_ms=10000)
        self.assertVerdict(a, "limit", "lost", "protocol")
        self.answers()

    def test_descriptors_passed_to_the_keeper_are_dropped(self):
        before = self.keeper.descriptors()
        code = (
            "import array, os, socket\n"
            "s = socket.socket(fileno=os.dup(3))\n"
            f"s.sendmsg([{frame(CLAIM, 0, 0, b'{}')!r}], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array('i', [0, 1, 2] * 50))])\n"
            "import time; time.sleep(0.3)"
        )
        self.box.cell(code)
        self.box.cell("1")
        self.assertLessEqual(self.keeper.descriptors(), before)

    def test_a_closed_channel_ends_the_head(self):
        a = self.box.cell("import os, time; os.close(3); time.sleep(100)", timeout_ms=10000)
        self.assertVerdict(a, "limit", "lost", "closed its channel")
        self.answers()

    def test_frames_without_end_from_a_child_do_not_stop_others(self):
        self.box.begin_cell("import os\nif os.fork() == 0:\n    while True: os.write(3, bytes(20))\nimport time; time.sleep(3)", timeout_ms=2000)
        began = time.perf_counter()
        other = self.bystander.cell("2 + 2")
        self.assertEqual(other.result, "4")
        self.assertLess(time.perf_counter() - began, 2)
        self.assertVerdict(self.keeper.answer(self.box.id, self.keeper.request - 1), "timeout")


class Neighbourhood(unittest.TestCase):
    """The keeper between a slow daemon, wild boxes, and death."""

    def setUp(self):
        self.keeper = Keeper()
        if self.keeper.report["tier"] > "T1":
            self.keeper.stop()
            self.skipTest(f"no boxes: {self.keeper.report['problems']}")

    def test_a_slow_daemon_does_not_make_the_keeper_grow(self):
        box = self.keeper.open()
        request = box.begin_cell("while True: print('x' * 100000)", timeout_ms=4000)
        time.sleep(2)
        status = Path(f"/proc/{self.keeper.process.pid}/status").read_text()
        rss = int(status.split("VmRSS:")[1].split()[0]) << 10
        self.assertLess(rss, 40 * MIB)
        self.assertIn(self.keeper.answer(box.id, request).verdict, ("limit", "timeout"))
        self.assertEqual(box.cell("6 * 7").result, "42")
        self.assertEqual(self.keeper.stop(), 0)

    def test_the_daemons_end_ends_everything(self):
        box = self.keeper.open()
        box.begin_cell("import subprocess; subprocess.Popen(['sleep', '1000'])\nwhile True: pass")
        time.sleep(0.3)
        started = self.keeper.descendants()
        self.assertEqual(self.keeper.stop(), 0)
        self.assertEqual([p for p in started if os.path.exists(f"/proc/{p}")], [])
        self.assertEqual(self.keeper.groups(), [])

    def test_a_killed_keeper_leaves_no_process_and_the_next_one_cleans_up(self):
        box = self.keeper.open()
        box.begin_cell("import subprocess; subprocess.Popen(['sleep', '1000'])\nwhile True: pass")
        time.sleep(0.3)
        started = self.keeper.descendants()
        self.keeper.process.kill()
        self.keeper.process.wait()
        deadline = time.time() + 5
        while any(os.path.exists(f"/proc/{p}") for p in started) and time.time() < deadline:
            time.sleep(0.02)
        self.assertEqual([p for p in started if os.path.exists(f"/proc/{p}")], [])
        old, self.keeper = self.keeper, Keeper()
        self.assertEqual(old.groups(), [])
        self.keeper.stop()
        old.stop()

    def test_a_killed_zygote_ends_the_keeper(self):
        box = self.keeper.open()
        zygote = [p for p, n in self.keeper.descendants().items() if n.startswith("python")][0]
        os.kill(zygote, 9)
        self.keeper.process.wait(20)
        self.assertEqual(self.keeper.groups(), [])
        self.keeper.stop()
        del box

    def test_a_malformed_frame_of_the_daemons_ends_the_keeper(self):
        self.keeper.socket.send(b"not a frame")
        self.assertEqual(self.keeper.process.wait(20), 0)
        self.keeper.stop()

    def test_sessions_come_and_go_without_a_trace(self):
        self.keeper.open().close()
        before = self.keeper.descriptors()
        for _ in range(10):
            boxes = [self.keeper.open() for _ in range(5)]
            boxes[0].cell("import os; os.abort()")
            for box in boxes:
                box.close()
        self.assertEqual(self.keeper.descriptors(), before)
        self.assertEqual(len(self.keeper.descendants()), 1)
        self.assertEqual(self.keeper.stop(), 0)

    def test_closing_in_the_middle_of_anything(self):
        for code in ("import time; time.sleep(100)", "while True: print('x' * 10000)", "import os\nwhile True: os.fork()"):
            box = self.keeper.open()
            request = box.begin_cell(code)
            time.sleep(0.2)
            self.keeper.send(6, box.id, 0)
            self.assertEqual(self.keeper.answer(box.id, request).verdict, "cancelled")
            self.assertEqual(self.keeper.answer(box.id, 0).verdict, "ok")
        self.assertEqual(len(self.keeper.descendants()), 1)
        self.keeper.stop()

    @unittest.skipUnless(IS_ROOT, "one uid for all when not root")
    def test_each_session_has_its_own_uid(self):
        boxes = [self.keeper.open() for _ in range(3)]
        uids = set()
        for pid, name in self.keeper.descendants().items():
            if name.startswith("python"):
                uids.add(os.stat(f"/proc/{pid}").st_uid)
        self.assertEqual(len(uids), 4, uids)  # the zygote and three heads
        self.assertNotIn(0, uids)
        del boxes
        self.keeper.stop()

    def test_doctors_check_passes(self):
        a = self.keeper.check()
        self.assertEqual(a.verdict, "ok", [n for n in a.notes if n["outcome"] != "pass"])
        self.assertGreaterEqual(len(a.notes), 20)
        self.keeper.stop()


if __name__ == "__main__":
    unittest.main()
