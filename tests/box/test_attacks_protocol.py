"""Attacks on what keeper and head say to each other, and the keeper between a slow daemon, wild boxes and death (3.15, 3.16).

ATTACKS=all: what takes long, and every kind of keeper for all of it. Nothing here is a matter of time: that others are not held up means
that they are answered while the attack is still going on.
"""
import os
import time
import unittest
from pathlib import Path

from attacks.world import IDENTITIES, ROOT_ALONE, Attacked, for_each_identity, in_range, through
from keeper import CLAIM, DONE, IS_ROOT, MAGIC, MIB, Answer, Keeper, alive, frame, state_of, wait_until

ALL = os.environ.get("ATTACKS") == "all"

LOST = ("lost", "rolled_back")
CLAIM_OF_OK = b'{"status":"ok","result":{"text/plain":"lie"}}'


def slow(test):
    """Where it is quick to be, once is enough: the keeper's code is the same for each identity."""

    def once(self):
        if not ALL and self.identity != next(iter(IDENTITIES)):
            self.skipTest("tried as another identity; ATTACKS=all tries it as each")
        test(self)

    once.__doc__ = test.__doc__
    return once


class Frames(Attacked):
    """What a head says is a claim, and only the head's."""

    def tearDown(self):
        if self.box:
            self.unharmed()
            self.close(self.box)

    def send_from_cell(self, *frames, more="", timeout_ms=60000):
        return self.box.cell(f"import os\nfor f in {list(frames)!r}: os.write(3, f)\n{more}", timeout_ms=timeout_ms)

    def assertCut(self, a, why="protocol"):
        self.assertVerdict(a, "limit", why=why)
        self.assertIn(a.state, LOST, a)
        self.answers()

    def answers(self, state="kept"):
        a = self.box.cell("print(6 * 7)")
        self.assertEqual((a.verdict, a.out), ("ok", b"42\n"), a)

    @slow
    def test_a_malformed_frame_ends_the_run(self):
        good = frame(CLAIM, 0, 0, b"{}")
        for what, bad in {
            "short": b"x",
            "magic": frame(CLAIM, 0, 0, b"{}", magic=MAGIC + 1),
            "version": frame(CLAIM, 0, 0, b"{}", version=9),
            "length": frame(CLAIM, 0, 0, b"{}", len=1 << 30),
            "negative": frame(CLAIM, 0, 0, b"{}", len=0xFFFFFFFF),
            "flags": frame(CLAIM, 0, 0, b"{}", flags=0x80),
            "type": frame(36, 0, 0, b"{}"),
            "nothing": frame(0, 0, 0, b""),
            "tail": good + b"x",
            "half": good[:19],
            "long": good + bytes(70000),
            "a code page": os.urandom(4096),
        }.items():
            with self.subTest(what):
                self.assertCut(self.send_from_cell(bad, more="import time; time.sleep(100)"))

    @slow
    def test_frames_of_others_are_refused(self):
        """Every type that another may send: daemon, keeper, zygote, init."""
        for kind in (1, 2, 3, 4, 5, 6, 7, 8, 32, 33, 34, 36, 37, 64, 65, 66, 67, 68, 69, 70, 96, 255):
            with self.subTest(kind):
                self.assertCut(self.send_from_cell(frame(kind, 1, 1, b'{"tier":"T0"}'), more="import time; time.sleep(100)"))

    def test_a_forged_claim_can_only_lie_about_itself(self):
        a = self.send_from_cell(frame(CLAIM, 7, 99, CLAIM_OF_OK), more="import time; time.sleep(0.3)")
        self.assertVerdict(a, "ok")  # it is the head's own word, relayed for this request only
        self.assertIn(self.box.cell("1").verdict, ("ok", "limit"))

    def test_a_claim_for_another_session_stays_here(self):
        for session in (self.bystander.id, 0, 2**32 - 1):
            self.send_from_cell(frame(CLAIM, session, 1, CLAIM_OF_OK), more="import time; time.sleep(0.1)")
            self.box.reset()

    def test_claims_in_advance_are_no_answers_to_what_comes(self):
        a = self.send_from_cell(*[frame(CLAIM, 0, 0, CLAIM_OF_OK)] * 5)
        self.assertIn(a.verdict, ("ok", "limit"), a)
        self.box.reset()
        self.assertEqual(self.box.cell("6 * 7").result, "42")

    def test_a_claim_that_never_ends_runs_into_the_time_limit(self):
        a = self.send_from_cell(frame(CLAIM, 0, 0, b"{", flags=1), more="while True: pass", timeout_ms=600)
        self.assertIn(a.verdict, ("timeout", "limit"), a)
        self.box.reset()
        self.answers()

    def test_pieces_of_different_kinds(self):
        first = frame(CLAIM, 0, 0, b"{", flags=1)
        for second in (frame(CLAIM, 1, 0, b"}"), frame(CLAIM, 0, 1, b"}")):
            self.assertCut(self.send_from_cell(first, second, more="import time; time.sleep(100)"))

    def test_a_claim_without_end_is_cut(self):
        piece = frame(CLAIM, 0, 0, bytes(65000), flags=1)
        a = self.box.cell(f"import os\np = {piece[:20]!r} + bytes(65000)\nwhile True: os.write(3, p)", timeout_ms=10000)
        self.assertCut(a)
        status = Path(f"/proc/{self.keeper.process.pid}/status").read_text()
        self.assertLess(int(status.split("VmRSS:")[1].split()[0]) << 10, 60 * MIB)

    @slow
    def test_what_is_not_json_is_relayed_and_harmless(self):
        for text in (b"", b"null", b"[" * 60000, b"\0" * 1000, b"\xff\xfe" * 1000, b'{"status":"ok"', b'{"result":' + b"9" * 60000 + b"}"):
            with self.subTest(text[:20]):
                a = self.send_from_cell(frame(CLAIM, 0, 0, text), more="import time; time.sleep(0.2)")
                self.assertVerdict(a, "ok")
                self.assertEqual(a.claim_text, text)
                self.box.reset()
        self.answers()

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

    def test_a_childs_empty_packet_is_not_the_end_of_the_channel(self):
        # recvmsg() gives 0 for an empty packet as for the end; only the packet has a sender.
        a = self.box.cell("import os, socket\nif os.fork() == 0:\n    socket.socket(fileno=3).send(b'')\n    os._exit(0)\nos.wait(); import time; time.sleep(0.8); print('mine')")
        self.assertVerdict(a, "ok", "kept")

    def test_a_claim_of_a_thread_is_the_heads(self):
        a = self.box.cell(f"import os, threading\nt = threading.Thread(target=os.write, args=(3, {frame(CLAIM, 0, 0, CLAIM_OF_OK)!r}))\nt.start(); t.join(); import time; time.sleep(0.2)")
        self.assertVerdict(a, "ok")

    def test_a_name_that_is_forged_is_refused_by_the_kernel(self):
        code = (
            "import os, socket, struct\nhead = os.getpid()\n"
            "if os.fork() == 0:\n"
            "    s = socket.socket(fileno=3)\n"
            "    for pid in (head, 1, os.getppid()):\n"
            f"        try: s.sendmsg([{frame(CLAIM, 0, 0, b'{}')!r}], [(1, 2, struct.pack('iii', pid, 1000, 1000))]); os.write(1, b'open ')\n"
            "        except PermissionError: os.write(1, b'EPERM ')\n"
            "    os._exit(0)\n"
            "os.wait(); print('mine')"
        )
        a = self.box.cell(code)
        self.assertEqual(set(a.words), {"EPERM", "mine"}, a)
        self.answers()

    def test_descriptors_passed_to_the_keeper_are_dropped(self):
        before = self.keeper.descriptors()
        code = (
            "import array, os, socket, time\n"
            "s = socket.socket(fileno=os.dup(3))\n"
            "for n in (1, 4, 150, 253):\n"
            f"    s.sendmsg([{frame(36, 0, 0, b'{}')!r}], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array('i', [0, 1, 2][:1] * n))])\n"
            "time.sleep(0.3)"
        )
        self.assertVerdict(self.box.cell(code), "limit")
        self.box.cell("1")
        self.assertLessEqual(self.keeper.descriptors(), before + 40)  # copies have some; a leak would be hundreds
        code = code.replace(repr(frame(36, 0, 0, b"{}")), repr(frame(CLAIM, 0, 0, b"{}")))
        self.box.cell(code)
        self.box.reset()
        self.assertLessEqual(self.keeper.descriptors(), before + 40)  # copies have some; a leak would be hundreds

    def test_a_closed_channel_ends_the_head(self):
        self.assertCut(self.box.cell("import os, time; os.close(3); time.sleep(100)", timeout_ms=60000), "closed its channel")

    @slow
    def test_a_half_closed_channel_ends_the_head(self):
        for how in (0, 1, 2):
            a = self.box.cell(f"import os, socket, time; s = socket.socket(fileno=os.dup(3)); s.shutdown({how}); time.sleep(3)", timeout_ms=1500)
            self.assertIn(a.verdict, ("limit", "crash", "timeout"), a)
            self.box.reset()
            self.answers()

    def meanwhile(self, request):
        """The neighbour is answered while that request still runs; then it is stopped, and that is its answer."""
        self.keeper.stray = lambda kind, session, number, payload: self.assertNotEqual((kind, number), (DONE, request), "it ended first")
        try:
            self.assertEqual(self.bystander.cell("2 + 2").result, "4")
        finally:
            del self.keeper.stray
        self.box.cancel()
        a = self.keeper.answer(self.box.id, request)
        self.assertIn(a.verdict, ("cancelled", "limit"), a)

    def beside(self, request):
        """Its answer; the neighbour is answered, before it or after."""
        a = self.keeper.begun[self.box.id, request] = Answer()
        self.keeper.stray = lambda kind, session, number, payload: a.take(kind, payload, [])
        try:
            self.assertEqual(self.bystander.cell("2 + 2").result, "4")
        finally:
            del self.keeper.stray
        return self.keeper.answer(self.box.id, request)

    def test_a_head_that_stops_listening_holds_nobody_up(self):
        self.box.cell("import os, threading\nthreading.Timer(0.1, lambda: os.kill(os.getpid(), 19)).start()")
        wait_until(lambda: any(state_of(pid) == "T" for pid in self.keeper.descendants()), "a stopped head")
        request = self.box.begin_cell("x = '" + "é" * 500_000 + "'", timeout_ms=60000, grace_ms=200)
        self.meanwhile(request)
        self.answers()

    @slow
    def test_frames_without_end_from_a_child_do_not_stop_others(self):
        """Reading them is the keeper's own time, which no limit of the box counts: so there is an end to it."""
        for junk in ("bytes(20)", "bytes(60000)", repr(frame(CLAIM, 0, 0, b"{}"))):
            code = f"import os\nif os.fork() == 0:\n    while True: os.write(3, {junk})\nimport time; time.sleep(100)"
            self.assertCut(self.beside(self.box.begin_cell(code, timeout_ms=60000)), "its children fill its channel")

    def test_frames_without_end_between_two_cells_end_what_sends_them(self):
        self.box.cell("import os\nif os.fork() == 0:\n    while True: os.write(3, bytes(20))")
        wait_until(lambda: "its children fill its channel" in self.keeper.log_text(), "they are ended")
        self.assertEqual(self.bystander.cell("2 + 2").result, "4")
        a = self.box.cell("print(6 * 7)")
        self.assertEqual(a.out, b"42\n", a)
        self.assertIn("had ended", a.why, a)

    def test_output_byte_by_byte_does_not_stop_others(self):
        self.meanwhile(self.box.begin_told("import os\nprint('=begun', flush=True)\nwhile True: os.write(1, b'x'); os.write(2, b'y')", timeout_ms=60000, grace_ms=200))
        self.box.reset()


for_each_identity(Frames)
del Frames, Attacked


class Neighbourhood(unittest.TestCase):
    """The keeper between a slow daemon, wild boxes, and death."""

    def start(self, make=Keeper):
        self.keeper = make()
        if self.keeper.report["tier"] > "T1":
            self.keeper.stop()
            self.skipTest(f"no boxes: {self.keeper.report['problems']}")

    def rss(self):
        status = Path(f"/proc/{self.keeper.process.pid}/status").read_text()
        return int(status.split("VmRSS:")[1].split()[0]) << 10

    def wait_until_it_rests(self):
        """Nobody reads what it says, so it waits: a process that sleeps, and has used no time since the last look."""
        before = [None]

        def rests():
            used = Path(f"/proc/{self.keeper.process.pid}/stat").read_text().rpartition(")")[2].split()
            same, before[0] = used[0] == "S" and used[11:13] == before[0], used[11:13]
            time.sleep(0.05)
            return same

        wait_until(rests, "the keeper waits for its daemon")

    def test_a_slow_daemon_does_not_make_the_keeper_grow(self):
        self.start()
        boxes = [self.keeper.open() for _ in range(3)]
        requests = [box.begin_cell("while True: print('x' * 100000)", timeout_ms=1500, grace_ms=200) for box in boxes]
        self.wait_until_it_rests()
        self.assertLess(self.rss(), 40 * MIB)
        self.keeper.stray = lambda *a: None
        self.assertIn(self.keeper.answer(boxes[0].id, requests[0]).verdict, ("limit", "timeout"))
        self.assertEqual(self.keeper.stop(), 0)

    def test_the_daemons_end_ends_everything(self):
        self.start()
        box = self.keeper.open()
        box.begin_told("import subprocess; subprocess.Popen(['sleep', '1000']); print('=begun', flush=True)\nwhile True: pass")
        started = self.keeper.descendants()
        self.assertEqual(self.keeper.stop(), 0)
        self.assertEqual([p for p in started if os.path.exists(f"/proc/{p}")], [])
        self.assertEqual(self.keeper.groups(), [])

    def test_a_killed_keeper_leaves_no_process_and_the_next_one_cleans_up(self):
        for identity in (Keeper, lambda: Keeper(user=True))[: 1 + (IS_ROOT and ALL)]:
            self.start(identity)
            box = self.keeper.open()
            box.begin_told("import os, subprocess; subprocess.Popen(['sleep', '1000'])\nif os.fork() == 0: os.setsid()\nelse: print('=begun', flush=True)\nwhile True: pass")
            started = self.keeper.descendants()
            self.keeper.process.kill()
            self.keeper.process.wait()
            wait_until(lambda started=started: not alive(started), "its processes are gone")
            old, self.keeper = self.keeper, identity()
            self.assertEqual(old.groups(), [])
            self.keeper.stop()
            old.stop()

    def test_a_killed_zygote_is_replaced(self):
        self.start()
        zygote = [p for p, n in self.keeper.descendants().items() if n.startswith("python")][0]
        box = self.keeper.open()
        self.assertEqual(box.cell("x = 41").verdict, "ok")
        os.kill(zygote, 9)
        self.assertEqual(self.keeper.open().cell("6 * 7").result, "42")
        self.assertEqual(box.cell("x + 1").result, "42")
        self.assertEqual(self.keeper.stop(), 0)
        self.assertEqual(self.keeper.groups(), [])

    def test_a_base_that_is_killed_ends_the_keeper(self):
        self.start()
        box = self.keeper.open()
        os.kill(min(p for p, n in self.keeper.descendants().items() if n == "box-init"), 9)
        self.keeper.process.wait(60)
        self.assertEqual(self.keeper.groups(), [])

    def test_a_malformed_frame_of_the_daemons_ends_the_keeper(self):
        self.start()
        self.keeper.socket.send(b"not a frame")
        self.assertEqual(self.keeper.process.wait(60), 0)
        self.keeper.stop()

    def test_sessions_come_and_go_without_a_trace(self):
        self.start()
        self.keeper.open().close()
        before, still = self.keeper.descriptors(), set(self.keeper.descendants())
        for _ in range(8):
            boxes = [self.keeper.open() for _ in range(4)]
            boxes[0].cell("import os; os.abort()")
            for box in boxes:
                box.close()
        self.assertEqual(self.keeper.descriptors(), before)
        self.assertEqual(set(self.keeper.descendants()) - still, set())
        self.assertEqual(self.keeper.stop(), 0)

    def test_closing_in_the_middle_of_anything(self):
        self.start()
        still = set(self.keeper.descendants())
        for code in ("import time; time.sleep(100)", "while True: print('x' * 10000)", "import os\nwhile True: os.fork()", "import os; os.kill(os.getpid(), 19)"):
            box = self.keeper.open()
            request = box.begin_told("print('=begun', flush=True)\n" + code)
            self.keeper.send(6, box.id, 0)
            self.assertEqual(self.keeper.answer(box.id, request).verdict, "cancelled")
            self.assertEqual(self.keeper.answer(box.id, 0).verdict, "ok")
        self.assertEqual(set(self.keeper.descendants()) - still, set())
        self.keeper.stop()

    def test_two_sessions_meet_nowhere(self):
        """54: abstract names, shared memory, scratch files, queues, locks, pids, by name from both sides."""
        self.start()
        here, there = self.keeper.open(), self.keeper.open()
        a = here.cell(
            "import os, socket\ns = socket.socket(socket.AF_UNIX); s.bind('\\0meet'); s.listen()\nd = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM); d.bind('/tmp/meet')\n"
            "from multiprocessing import shared_memory\nm = shared_memory.SharedMemory('meet', create=True, size=100)\nopen('/tmp/meet.txt', 'w').close(); print(os.getpid())"
        )
        self.assertVerdict(a, "ok")
        b = there.cell(
            "import os, socket\n"
            "def word(f, *a):\n    try: f(*a); print('open')\n    except OSError as e: print(type(e).__name__)\n"
            "word(socket.socket(socket.AF_UNIX).connect, '\\0meet'); word(socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM).connect, '/tmp/meet')\n"
            "word(os.stat, '/dev/shm/meet'); word(os.stat, '/tmp/meet.txt')\n"
            "word(lambda: __import__('multiprocessing.shared_memory').shared_memory.SharedMemory('meet'))\n"
            f"print(os.path.exists('/proc/{a.words[0]}/environ') and os.getpid() != {a.words[0]})\n"
        )
        self.assertEqual(set(b.words), {"ConnectionRefusedError", "FileNotFoundError", "False"}, b)
        self.assertEqual(self.keeper.stop(), 0)

    def assertVerdict(self, a, verdict):
        self.assertEqual((a.verdict, a.error), (verdict, None), a)

    @unittest.skipUnless(IS_ROOT, "one uid for all when not root")
    def test_each_session_has_its_own_uid(self):
        self.start()
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
        for identity in (Keeper, lambda: Keeper(user=True))[: 1 + (IS_ROOT and ALL)]:
            self.start(identity)
            a = self.keeper.check()
            self.assertEqual(a.verdict, "ok", [n for n in a.notes if n["outcome"] != "pass"])
            self.assertGreaterEqual(len(a.notes), 25)
            self.assertTrue(all(len(n["detail"]) < 60 and n["outcome"] == "pass" for n in a.notes), a.notes)
            self.assertEqual(self.keeper.stop(), 0)

    def test_without_groups_a_fork_bomb_does_not_stop_others(self):
        # Reading the memory of a process waits for its lock, and a process that forks holds that: a helper of the keeper's reads.
        # (On kernels with autogroups a bomb that calls setsid() has a share of the processor for each of its processes.)
        self.start(lambda: Keeper(user=IS_ROOT))
        if self.keeper.report["features"]["cgroups"] != "none":
            self.keeper.stop()
            raise unittest.SkipTest("a plain user has control groups here")
        wild, calm = self.keeper.open(pids=64), self.keeper.open(copies=0)
        calm.cell("1")
        bomb = "import os\nprint('=begun', flush=True)\nwhile True:\n    try:\n        if os.fork() == 0: os.setsid()\n    except BaseException: pass"
        request = wild.begin_told(bomb, timeout_ms=120000, grace_ms=200)
        wait_until(lambda: len(self.keeper.descendants()) > 40, "it has grown")
        wait_until(lambda: "box-watch" in self.keeper.descendants().values(), "it is watched")
        self.keeper.stray = lambda kind, session, number, payload: self.assertNotEqual((kind, number), (DONE, request), "it ended first")
        self.assertEqual([calm.cell(f"{n} + 1").result for n in range(5)], ["1", "2", "3", "4", "5"])
        self.keeper.stray = lambda *a: None
        wild.cancel()
        self.assertEqual(self.keeper.answer(wild.id, request).verdict, "cancelled")
        self.assertEqual(wild.close().verdict, "ok")
        self.assertNotIn("box-watch", self.keeper.descendants().values())
        self.keeper.stop()

    def test_without_groups_memory_counts_whoever_hides_it(self):
        """Processes that can't be dumped, whose first thread is gone, or whose program can't be read."""
        self.start(lambda: Keeper(user=IS_ROOT))
        if self.keeper.report["features"]["cgroups"] != "none":
            self.keeper.stop()
            raise unittest.SkipTest("a plain user has control groups here")
        box = self.keeper.open(memory_bytes=300 * MIB)  # any two of them have room
        fill = "time.sleep(0.3)\nx = bytearray(120 << 20)\nfor i in range(0, len(x), 4096): x[i] = 1\ntime.sleep(60)"
        exit_alone = 60 if os.uname().machine == "x86_64" else 93
        code = (
            "import ctypes, os, shutil, threading, time\nlibc = ctypes.CDLL(None)\n"
            "shutil.copy('/usr/bin/python3.13', 'p'); os.chmod('p', 0o111)\n"
            f"fill = {fill!r}\n"
            "def undumpable(): libc.prctl(4, 0, 0, 0, 0); exec(fill, globals())\n"
            f"def headless(): threading.Thread(target=exec, args=(fill, globals())).start(); libc.syscall({exit_alone}, 0)\n"
            "def unreadable(): os.execve('./p', ['p', '-I', '-S', '-c', 'import time\\n' + fill], {'PYTHONHOME': '/usr'})\n"
            "for hide in (undumpable, headless, unreadable):\n    if os.fork() == 0: hide()\n"
            "time.sleep(40)"
        )
        self.assertEqual(box.cell(code, timeout_ms=50000).verdict, "oom")
        self.keeper.stop()

    def test_without_groups_nameless_files_count_as_memory(self):
        # 508 descriptors of 256 MiB each are 127 GiB, beyond any box.memory. With control groups the same code ends in "oom", too (63e in
        # attacks/endings.py).
        self.start(lambda: Keeper(user=IS_ROOT))
        if self.keeper.report["features"]["cgroups"] != "none":
            self.keeper.stop()
            raise unittest.SkipTest("a plain user has control groups here")
        box = self.keeper.open(memory_bytes=256 * MIB)
        a = box.cell("import os, time\nfds = [os.memfd_create('x') for _ in range(3)]\nfor fd in fds:\n    for _ in range(150): os.write(fd, bytes(1 << 20))\ntime.sleep(0.6)")
        self.keeper.stop()
        self.assertEqual(a.verdict, "oom", a)

    def test_inside_a_user_namespace_of_one_id_that_is_root(self):
        # unshare -Ur: uid 0 without a range, which goes on as for a plain user.
        keeper = through(ROOT_ALONE, user=IS_ROOT)
        tier, problems = keeper.report["tier"], keeper.report["problems"]
        keeper.stop()
        self.assertLessEqual(tier, "T1", problems)

    def test_below_the_minimum_nothing_opens_in_such_a_namespace_either(self):
        keeper = through(ROOT_ALONE, user=IS_ROOT)
        opened = keeper.open().opened if keeper.report["tier"] > "T1" else None
        keeper.stop()
        self.assertTrue(opened is None or opened.verdict == "failed", opened)

    @unittest.skipUnless(IS_ROOT, "only root can give a range of ids")
    def test_inside_a_user_namespace_with_many_ids(self):
        self.start(in_range)
        a, b = self.keeper.open(), self.keeper.open()
        self.assertEqual(a.cell("import os; os.getuid()").result, "1000")
        self.assertEqual(b.cell("open('/etc/shadow')").error, "FileNotFoundError")
        uids = {os.stat(f"/proc/{pid}").st_uid for pid, name in self.keeper.descendants().items() if name.startswith("python")}
        self.assertEqual(len(uids), 3, uids)
        self.assertGreater(min(uids), 65535)
        check = self.keeper.check()
        self.assertEqual(check.verdict, "ok", [n for n in check.notes if n["outcome"] != "pass"])
        self.assertEqual(self.keeper.stop(), 0)


if __name__ == "__main__":
    unittest.main()
