"""What a session is asked for, and how it ends: cells, calls, limits, deaths, files."""
import os
import tempfile
import threading
import time
import unittest

from attacks.catalogue import resolve
from keeper import CANCEL, CELL, IS_ROOT, MIB, BoxTest, Keeper, for_each_user, wait_until

LOOP = "while True: pass"
DEAF = "while True:\n    try:\n        while True: pass\n    except BaseException: pass"
BOMB = "import os\nwhile True:\n    try: os.fork()\n    except BaseException: pass"


@for_each_user
class Cells(BoxTest):
    def test_a_cell_prints_and_has_a_result(self):
        a = self.box.cell("import sys\nprint('out')\nprint('err', file=sys.stderr)\n40 + 2")
        self.assertVerdict(a, "ok", "kept")
        self.assertEqual((a.out, a.err, a.result), (b"out\n", b"err\n", "42"))

    def test_variables_are_kept(self):
        self.box.cell("x = [1, 2]")
        self.assertEqual(self.box.cell("x").result, "[1, 2]")

    def test_an_exception_is_an_answer_and_keeps_state(self):
        self.box.cell("x = 1")
        a = self.box.cell("x += 1\n1 / 0")
        self.assertVerdict(a, "ok", "kept")
        self.assertEqual(a.error, "ZeroDivisionError")
        self.assertEqual(self.box.cell("x").result, "2")

    def test_took_and_start_are_told(self):
        a = self.box.cell("import time; time.sleep(0.2)")
        self.assertGreater(a.done["took_us"], 200_000)
        self.assertGreater(a.done["start_us"], 0)
        self.assertLess(a.done["start_us"], a.done["took_us"] - 200_000)  # the sleep is not in it

    def test_two_sessions_are_apart(self):
        other = self.keeper.open()
        self.box.cell("x = 1; open('a.txt', 'w').write('a')")
        self.assertEqual(other.cell("x").error, "NameError")
        self.assertEqual(other.cell("import os; os.path.exists('a.txt')").result, "False")
        self.close(other)

    def test_a_second_request_is_refused_while_one_runs(self):
        first = self.box.begin_cell("import time; time.sleep(0.5)")
        second = self.box.begin_cell("1")
        refused = {}
        self.keeper.stray = lambda kind, s, r, payload: refused.setdefault(r, payload)
        self.assertVerdict(self.keeper.answer(self.box.id, first), "ok")
        del self.keeper.stray
        self.assertIn(b"one request at a time", refused[second])

    def test_a_large_cell_goes_through(self):
        a = self.box.cell("s = '" + "é" * 400_000 + "'\nlen(s)")
        self.assertEqual(a.result, "400000")

    def test_reset_gives_a_new_interpreter_and_keeps_files(self):
        self.box.cell("x = 1; open('kept.txt', 'w').write('here'); open('/tmp/also', 'w').write('t')")
        self.assertVerdict(self.box.reset(), "ok", "lost")
        self.assertEqual(self.box.cell("x").error, "NameError")
        self.assertEqual(self.box.cell("open('kept.txt').read()").result, "'here'")

    def test_randomness_differs_between_sessions(self):
        code = "import random, numpy as np, uuid, os; print(random.random(), np.random.rand(), uuid.uuid4(), os.urandom(4))"
        other = self.keeper.open()
        mine, theirs = self.box.cell(code).words, other.cell(code).words
        self.assertFalse(set(mine) & set(theirs))
        self.close(other)

    def test_a_call_is_relayed(self):
        self.box.cell("answer = 42")
        a = self.box.call("vars")
        self.assertVerdict(a, "ok", "kept")
        self.assertIn("answer", [v["name"] for v in a.claim["vars"]])

    def test_an_unknown_session_is_told(self):
        self.keeper.request += 1
        self.keeper.send(CELL, 999_999, self.keeper.request, {"code": "1"})
        self.assertVerdict(self.keeper.answer(999_999, self.keeper.request), "failed", why="no such session")


@for_each_user
class Time(BoxTest):
    def test_a_loop_is_interrupted_and_state_is_kept(self):
        self.box.cell("x = 1")
        a = self.box.cell(LOOP, timeout_ms=500)
        self.assertVerdict(a, "timeout", "kept")
        self.assertEqual(a.error, "KeyboardInterrupt")
        self.assertEqual(self.box.cell("x").result, "1")

    def test_sleep_is_interrupted(self):
        self.assertVerdict(self.box.cell("import time; time.sleep(1e6)", timeout_ms=500), "timeout", "kept")

    def test_a_loop_that_ignores_interrupts_is_killed(self):
        a = self.box.cell(DEAF, timeout_ms=500, grace_ms=300)
        self.assertVerdict(a, "timeout", "lost")
        self.assertLess(a.ms, 2500)
        self.answers()

    def test_a_loop_in_c_is_killed(self):
        for code in ("sum(range(10**12))", "10**10**8", "import re; re.match('(a+)+$', 'a' * 64 + 'b')"):
            with self.subTest(code):
                self.assertVerdict(self.box.cell(code, timeout_ms=400, grace_ms=300), "timeout")
                self.answers()

    def test_ignored_signals_do_not_help(self):
        code = "import signal\nfor s in (2, 15, 24):\n    signal.signal(s, signal.SIG_IGN)\n" + LOOP
        self.assertVerdict(self.box.cell(code, timeout_ms=400, grace_ms=300), "timeout", "lost")
        self.answers()

    def test_a_stopped_head_is_killed(self):
        a = self.box.cell("import os; os.kill(os.getpid(), 19)", timeout_ms=400, grace_ms=300)
        self.assertVerdict(a, "timeout", "lost")
        self.answers()

    def test_a_blocked_read_is_interrupted(self):
        code = "import os; r, w = os.pipe(); os.read(r, 1)"
        self.assertVerdict(self.box.cell(code, timeout_ms=400), "timeout", "kept")

    def test_cancel_interrupts(self):
        request = self.box.begin_cell("import time\nprint('on', flush=True)\ntime.sleep(100)")
        threading.Timer(0.3, lambda: self.keeper.send(CANCEL, self.box.id, request)).start()
        self.assertVerdict(self.keeper.answer(self.box.id, request), "cancelled", "kept")
        self.answers()

    def test_cancel_kills_what_does_not_listen(self):
        request = self.box.begin_cell(DEAF, grace_ms=300)
        threading.Timer(0.3, lambda: self.keeper.send(CANCEL, self.box.id, request)).start()
        self.assertVerdict(self.keeper.answer(self.box.id, request), "cancelled", "lost")
        self.answers()

    def test_cancel_without_a_request_is_harmless(self):
        self.keeper.send(CANCEL, self.box.id, 12345)
        self.answers()

    def test_what_an_interrupted_cell_started_is_gone(self):
        a = self.box.cell("import subprocess, time; p = subprocess.Popen(['sleep', '1000']); time.sleep(100)", timeout_ms=600)
        self.assertVerdict(a, "timeout", "kept")
        self.assertEqual(self.box.cell("p.wait(timeout=5)").result, "-9")


@for_each_user
class Deaths(BoxTest):
    def test_each_crash_is_named_and_the_next_cell_answers(self):
        self.box.cell("x = 1")
        for code, signal in (
            ("import os; os.abort()", 6),
            ("import ctypes; ctypes.string_at(0)", 11),
            ("import os; os.kill(os.getpid(), 9)", 9),
            ("import os; os._exit(0)", 0),
            ("import os; os._exit(3)", 0),
            ("import os; os.closerange(3, 1024); os._exit(1)", 0),
            ("import ctypes; ctypes.memset(id(None), 0, 64); None", None),
        ):
            with self.subTest(code):
                a = self.box.cell(code)
                self.assertVerdict(a, "crash", "rolled_back", "variables are as before this cell")
                self.assertEqual(self.box.cell("x").result, "1")
                if signal is not None:
                    self.assertEqual(a.done["signal"], signal, a)
                self.answers()

    def test_what_was_printed_before_a_crash_is_told(self):
        a = self.box.cell("import os; os.write(1, b'before'); os.write(2, b'too'); os.abort()")
        self.assertEqual((a.out, a.err), (b"before", b"too"))

    def test_files_outlive_a_crash_and_are_delivered(self):
        a = self.box.cell("open('made.txt', 'w').write('made'); import os; os.abort()")
        self.assertEqual(a.files, {"made.txt": b"made"})
        self.assertEqual(self.box.cell("open('made.txt').read()").result, "'made'")

    def test_sys_exit_ends_nothing(self):
        a = self.box.cell("import sys; sys.exit(3)")
        self.assertVerdict(a, "ok", "kept")

    def test_a_death_between_requests_is_told(self):
        self.box.cell("import threading, os\nthreading.Timer(1.5, lambda: os._exit(1)).start()")
        time.sleep(2.5)
        a = self.box.cell("1 + 1")
        self.assertVerdict(a, "ok", "kept", "had ended since the request before; this ran on the variables as they were after cell 1")

    def test_background_of_a_killed_cell_is_gone(self):
        self.box.cell("import subprocess, os; subprocess.Popen(['sleep', '1000']); os.abort()")
        self.assertNotIn("sleep", self.keeper.descendants().values())

    def test_daemonised_children_die_with_the_cell(self):
        code = (
            "import os, time\n"
            "for _ in range(3):\n"
            "    if os.fork() == 0:\n"
            "        os.setsid()\n"
            "        if os.fork() == 0:\n"
            "            time.sleep(1000)\n"
            "        os._exit(0)\n"
            "os.abort()"
        )
        self.assertVerdict(self.box.cell(code), "crash")
        self.answers()

        def left():  # a copy takes its name a moment after its fork
            names = [n for pid, n in self.keeper.descendants().items() if pid not in self.still]
            return sorted(n for n in names if n != "parked")

        wait_until(lambda: left() == ["box-init", "python3"], f"the cell's processes are gone: {left()}")

    def test_background_processes_live_on_between_cells(self):
        self.box.cell("import subprocess; p = subprocess.Popen(['sh', '-c', 'sleep 0.3; exit 3'])")
        self.assertEqual(self.box.cell("p.wait()").result, "3")


@for_each_user
class Limits(BoxTest):
    def test_memory(self):
        for code in (
            "x = bytearray(10**10)\nfor i in range(0, 10**10, 4096): x[i] = 1",
            "l = []\nwhile True: l.append(bytearray(b'x') * (1 << 20))",
            "import numpy as np; a = np.ones(12_500_000_000)",
            "import os\nfor i in range(6):\n    if os.fork() == 0: break\nl = [bytearray(b'x') * (1 << 20) for _ in range(300)]\nimport time; time.sleep(5)",
        ):
            with self.subTest(code):
                a = self.box.cell(code)
                if a.verdict == "ok" and "os.fork" in code and not a.error:  # one of the children went, which is told
                    self.assertIn("a process that the code had started", a.why, a)
                elif a.verdict == "ok":  # without a control group it may be Python that says no
                    self.assertEqual(a.error, "MemoryError", a)
                else:
                    self.assertVerdict(a, "oom", why="memory limit of 512 MiB")
                    self.assertGreater(a.done["peak_bytes"], 400 * MIB)
                self.answers()

    def test_a_full_storage_is_named_when_memory_ends(self):
        if self.keeper.report["features"]["cgroups"] == "none":
            self.skipTest("without control groups files are not counted")
        balloon, places = "x = [bytearray(b'x') * (1 << 20) for _ in range(600)]", ("/mnt/data/f", "/tmp/f", "/dev/shm/f")
        self.close(self.box)
        self.box = self.keeper.open(memory_bytes=512 * MIB, disk_bytes=128 * MIB)
        a = self.box.cell("; ".join(f"open('{f}', 'wb').write(bytes({n} << 20))" for f, n in zip(places, (110, 50, 50))))
        self.assertEqual(a.error, None, a.claim)
        self.assertVerdict(self.box.cell(balloon), "oom", why="storage is full: files in /mnt/data")
        self.assertEqual(self.box.cell(f"import os\nfor f in {places}: os.unlink(f)").error, None)
        a = self.box.cell(balloon)
        self.assertVerdict(a, "oom")
        self.assertNotIn("storage", a.why)

    def test_filters_that_a_cell_puts_upon_itself_are_undone(self):
        self.assertVerdict(self.box.cell("x = 1"), "ok")
        refuse = (
            "import ctypes, struct\nallow, deny = struct.pack('HBBI', 6, 0, 0, 0x7FFF0000), struct.pack('HBBI', 6, 0, 0, 0x00050001)\n"
            f"code = ctypes.create_string_buffer(struct.pack('HBBI', 0x20, 0, 0, 0) + struct.pack('HBBI', 0x15, 0, 1, {resolve('openat')}) + deny + allow)\n"
            f"print(ctypes.CDLL(None).syscall({resolve('seccomp')}, 1, 0, struct.pack('HxxxxxxQ', 4, ctypes.addressof(code))))"
        )
        self.assertEqual(self.box.cell(refuse).words, ["0"])
        self.assertEqual(self.box.cell("open('/etc/passwd')").error, "PermissionError")
        self.assertVerdict(self.box.back(1), "ok", "rolled_back")
        self.assertEqual(self.box.cell("x, len(open('/etc/passwd').read()) > 0").result, "(1, True)")

    def test_a_fork_bomb_is_ended_at_once(self):
        a = self.box.cell(BOMB, timeout_ms=1000, grace_ms=500)
        self.assertVerdict(a, "timeout")
        self.assertLess(a.ms, 8000)
        self.answers()

    def test_a_bomb_of_threads(self):
        code = "import threading, time\nwhile True: threading.Thread(target=time.sleep, args=(100,)).start()"
        a = self.box.cell(code, timeout_ms=5000)
        self.assertIn((a.verdict, a.error), [("ok", "RuntimeError"), ("ok", "MemoryError"), ("timeout", "KeyboardInterrupt")], a)
        self.assertVerdict(self.box.reset(), "ok")
        self.answers()

    def test_zombies_are_reaped(self):
        code = (
            "import os\n"
            "for _ in range(300):\n"
            "    if os.fork() == 0:\n"
            "        if os.fork() == 0: os._exit(0)\n"
            "        os._exit(0)\n"
            "    os.wait()\n"
            "print('done')"
        )
        self.assertEqual(self.box.cell(code, timeout_ms=60000).out, b"done\n")

    def test_a_flood_is_cut(self):
        for code in ("while True: print('x' * 1000000)", "import os\nwhile True: os.write(2, bytes(65536))"):
            with self.subTest(code):
                a = self.box.cell(code)
                self.assertVerdict(a, "limit", why="16 MiB")
                self.assertLessEqual(len(a.out) + len(a.err), 16 * MIB)
                self.answers()

    def test_odd_bytes_are_relayed_as_they_are(self):
        a = self.box.cell("import os; os.write(1, b'\\x00\\xff\\x1b[31m\\xe2\\x82')")
        self.assertEqual(a.out, b"\x00\xff\x1b[31m\xe2\x82")

    def test_full_disks_are_errors(self):
        for place in (".", "/tmp", "/dev/shm"):
            with self.subTest(place):
                code = f"f = open('{place}/big', 'wb')\nwhile True: f.write(bytes(1 << 20))"
                a = self.box.cell(code)
                self.assertEqual((a.verdict, a.error), ("ok", "OSError"), a)
                self.box.cell(f"f.close(); import os; os.unlink('{place}/big')")
        self.answers()

    def test_inodes_end(self):
        a = self.box.cell("for i in range(100000): open(f'/tmp/{i}', 'w').close()")
        self.assertEqual((a.verdict, a.error), ("ok", "OSError"), a)
        self.answers()

    def test_huge_files_are_refused(self):
        a = self.box.cell("f = open('big', 'wb'); f.truncate(1 << 40)")
        self.assertEqual((a.verdict, a.error), ("ok", "OSError"), a)
        self.answers()

    def test_descriptors_end(self):
        a = self.box.cell("l = []\nwhile True: l.append(open('/dev/null'))")
        self.assertEqual((a.verdict, a.error), ("ok", "OSError"), a)

    def test_deep_recursion_hurts_only_itself(self):
        a = self.box.cell("import sys; sys.setrecursionlimit(10**9)\ndef f(n): return f(n + 1)\nf(0)")
        self.assertIn(a.verdict, ("ok", "crash", "oom"), a)
        self.answers()


@for_each_user
class Files(BoxTest):
    def test_new_files_come_once(self):
        a = self.box.cell("import os; os.makedirs('out/deep'); open('a.csv', 'w').write('1'); open('out/deep/b.txt', 'w').write('2')")
        self.assertEqual(a.files, {"a.csv": b"1", "out/deep/b.txt": b"2"})
        self.assertEqual(self.box.cell("1").files, {})

    def test_changed_files_come_again(self):
        self.box.cell("open('a', 'w').write('1')")
        self.assertEqual(self.box.cell("open('a', 'a').write('2')").files, {"a": b"12"})

    def test_a_call_sends_no_files(self):
        self.box.cell("x = 1")
        self.assertEqual(self.box.call("vars").files, {})

    def test_what_is_no_plain_file_never_comes(self):
        code = (
            "import os, socket\n"
            "os.symlink('/etc/passwd', 'link.png'); os.symlink('/etc', 'etc'); os.symlink('.', 'loop')\n"
            "os.mkdir('dir.png')\n"
            "s = socket.socket(socket.AF_UNIX); s.bind('sock.png')\n"
            "open('real.txt', 'w').write('r'); os.link('real.txt', 'hard.txt')\n"
            "open('.hidden', 'w').write('h')\n"
            "open('bad\\nname', 'w'); open(b'\\xff\\xfe', 'w'); open('\\x1b[31m', 'w')\n"
        )
        self.assertEqual(set(self.box.cell(code).files), {"real.txt", "hard.txt"})

    def test_unreadable_files_do_not_stop_the_rest(self):
        a = self.box.cell("import os; open('no', 'w').write('x'); os.chmod('no', 0); open('yes', 'w').write('y')")
        self.assertVerdict(a, "ok")
        self.assertEqual(a.files["yes"], b"y")

    def test_a_crowd_and_a_shaft_are_capped(self):
        a = self.box.cell("import os\nfor i in range(3000): open(f'{i}.txt', 'w').close()", timeout_ms=60000)
        self.assertVerdict(a, "ok")
        self.assertLessEqual(len(a.files), 1000)
        self.box.cell("import glob, os\nfor f in glob.glob('*.txt'): os.unlink(f)")
        a = self.box.cell("import os\np = '/'.join('d' * 1 for _ in range(20)); os.makedirs(p); open(p + '/deep', 'w').close()")
        self.assertEqual((a.verdict, a.files), ("ok", {}))

    def test_a_sparse_giant_is_only_described(self):
        a = self.box.cell("open('s', 'wb').truncate(200 << 20)")
        self.assertVerdict(a, "ok")
        self.assertEqual(len(a.files.get("s", b"")), MIB)  # what this test reads of it

    def test_a_file_that_turns_into_a_link_is_never_followed(self):
        code = (
            "import os, threading, time\n"
            "open('real', 'w').write('mine')\n"
            "def flip():\n"
            "    while True:\n"
            "        try:\n"
            "            open('t', 'w').write('mine'); os.rename('t', 'x'); os.symlink('/etc/passwd', 't'); os.rename('t', 'x')\n"
            "        except OSError: pass\n"
            "threading.Thread(target=flip, daemon=True).start()\n"
        )
        self.assertVerdict(self.box.cell(code), "ok")
        for _ in range(40):
            a = self.box.cell("time.sleep(0.002)")
            self.assertIn(a.files.get("x", b"mine"), (b"mine", b""), a)

    def test_put_and_read(self):
        self.assertVerdict(self.box.put("été 1.csv", b"a,b\n1,2\n"), "ok", "kept")
        a = self.box.cell("import os; s = os.stat('été 1.csv'); print(open('été 1.csv').read(), oct(s.st_mode), s.st_uid)")
        self.assertEqual(a.words, ["a,b", "1,2", "0o100644", "1000"])
        self.assertEqual(a.files, {})  # what was put is no news

    def test_put_replaces(self):
        self.box.put("a", b"1")
        self.box.put("a", b"22")
        self.assertEqual(self.box.cell("open('a').read()").result, "'22'")

    def test_put_does_not_follow_links(self):
        self.box.cell("import os; os.symlink('/mnt/data/target', 'a'); os.symlink('/tmp/x', '.sandbook-put')")
        self.assertVerdict(self.box.put("a", b"data"), "ok")
        a = self.box.cell("print(os.path.islink('a'), os.path.exists('target'), os.path.exists('/tmp/x'))")
        self.assertEqual(a.words, ["False", "False", "False"])

    def test_put_into_a_full_disk_says_so(self):
        self.assertVerdict(self.box.put("big", bytes(65 * MIB)), "failed", "kept", "no space left")
        self.assertEqual(self.box.cell("import os; 'big' in os.listdir('.')").result, "False")

    def test_put_refuses_names(self):
        for name in ("", ".", "..", "a/b", "/abs", "a\nb", "x" * 256):
            with self.subTest(name):
                self.assertVerdict(self.box.put(name, b"x"), "failed", why="name")

    def test_put_over_a_folder_fails(self):
        self.box.cell("import os; os.makedirs('d/e')")
        self.assertVerdict(self.box.put("d", b"x"), "failed", why="folder")

    def test_put_wants_a_regular_file(self):
        r, w = os.pipe()
        self.assertVerdict(self.box.put("p", fd=r), "failed")
        os.close(r)
        os.close(w)


class Starts(unittest.TestCase):
    def test_below_the_minimum_tier_nothing_opens(self):
        keeper = Keeper(user=IS_ROOT, min_tier="T0")
        if keeper.report["tier"] == "T0":
            keeper.stop()
            self.skipTest("a plain user has control groups here")
        opened = keeper.open().opened
        self.assertEqual(opened.verdict, "failed", opened)
        self.assertIn("tier", opened.why)
        self.assertTrue(any("min_tier" in p["fix"] for p in keeper.report["problems"]), keeper.report)
        self.assertEqual(keeper.stop(), 0)

    @unittest.skipUnless(IS_ROOT, "only root has ids to give")
    def test_the_hosts_root_is_never_mapped(self):
        keeper = Keeper(uid_base=0)
        self.assertIn("root", keeper.report["problems"][0]["what"])
        self.assertEqual(keeper.open().opened.verdict, "failed")
        keeper.stop()

    def test_an_image_that_is_not_there_is_told(self):
        old = os.environ.get("SANDBOOK_IMAGE")
        with tempfile.TemporaryDirectory() as empty:
            os.environ["SANDBOOK_IMAGE"] = empty
            try:
                keeper = Keeper()
            finally:
                del os.environ["SANDBOOK_IMAGE"]
                if old:
                    os.environ["SANDBOOK_IMAGE"] = old
            self.assertEqual(keeper.report["tier"], "T3")
            self.assertTrue(keeper.report["problems"][0]["fix"])
            self.assertEqual(keeper.stop(), 0)


if __name__ == "__main__":
    unittest.main()
