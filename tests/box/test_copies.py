"""What a session's head leaves behind after its cells: going back to it, on purpose and after a death."""
import os
import time
import unittest
from pathlib import Path

from keeper import MIB, PIN, POOL, BoxTest, for_each_user

ABORT = "import os; os.abort()"
HEAVY = os.environ.get("HEAVY") == "1"


class CopyTest(BoxTest):
    def value(self, code):
        a = self.box.cell(code)
        self.assertEqual((a.verdict, a.error), ("ok", None), a)
        return a.result

    def ok(self, *codes):
        for code in codes:
            a = self.box.cell(code)
            self.assertEqual((a.verdict, a.error), ("ok", None), a)
        return a

    def parked(self):
        return [pid for pid, name in self.keeper.descendants().items() if name == "parked" and pid not in self.still]

    def assertParked(self, count):
        """What was ended may take a moment to be gone."""
        for _ in range(500):
            if len(self.parked()) == count:
                break
            time.sleep(0.02)
        self.assertEqual(len(self.parked()), count)

    def settle(self):
        """A call waits until the copy of the cell before it is parked."""
        self.assertVerdict(self.box.call("vars"), "ok")


@for_each_user
class GoingBack(CopyTest):
    def test_undo_goes_back_one_cell_and_again(self):
        self.ok("x = 1", "x = 2", "y = 3")
        a = self.box.back()
        self.assertVerdict(a, "ok", "rolled_back")
        self.assertEqual(a.done["cell"], 2)
        self.assertEqual(self.value("x, 'y' in dir()"), "(2, False)")
        self.assertEqual(self.box.back().done["cell"], 2)
        self.assertEqual(self.box.back().done["cell"], 1)
        self.assertEqual(self.value("x"), "1")

    def test_back_before_the_first_cell_is_a_new_interpreter_and_then_it_ends(self):
        self.ok("x = 1")
        self.assertEqual(self.box.back().done["cell"], 0)
        self.assertVerdict(self.box.back(), "failed", "kept", "no cell before")
        self.assertEqual(self.box.cell("x").error, "NameError")

    def test_two_branches_from_one_copy_never_see_each_other(self):
        self.ok("l = ['root']", "l.append('a')", "l.append('aa')")
        for name in "bc":
            self.assertVerdict(self.box.back(1), "ok", "rolled_back")
            self.assertEqual(self.value(f"l.append('{name}'); l"), f"['root', '{name}']")
        self.box.back(3)
        self.assertEqual(self.value("l"), "['root', 'a', 'aa']")
        self.box.back(4)
        self.assertEqual(self.value("l"), "['root', 'b']")

    def test_a_state_that_is_not_there_is_refused_with_those_that_are(self):
        self.ok("x = 1", "x = 2")
        self.assertVerdict(self.box.back(77), "failed", "kept", "gone back to: 1, 2")
        self.assertEqual(self.value("x"), "2")

    def test_so_many_are_kept_and_the_oldest_go_first(self):
        self.ok(*[f"x = {i}" for i in range(1, 13)])
        self.settle()
        self.assertParked(8)
        self.assertVerdict(self.box.back(4), "failed", "kept")
        self.assertVerdict(self.box.back(5), "ok")
        self.assertEqual(self.value("x"), "5")

    def test_reset_drops_them(self):
        self.ok("x = 1", "x = 2")
        self.assertVerdict(self.box.reset(), "ok", "lost")
        self.assertParked(0)
        self.assertVerdict(self.box.back(), "failed", "kept")

    def test_files_do_not_go_back(self):
        self.ok("open('a', 'w').write('1')", "open('a', 'w').write('2')")
        self.box.back()
        self.assertEqual(self.value("open('a').read()"), "'2'")

    def test_offsets_of_open_files_go_back_each_time(self):
        self.ok("f = open('a', 'w+'); f.write('abc'); f.flush()", "f.write('def'); f.flush()")
        for _ in range(2):
            self.box.back(1)
            self.assertEqual(self.value("f.tell()"), "3")

    def test_undo_repeats_the_random_numbers(self):
        code = "random.random(), float(np.random.rand())"
        self.ok("import random, numpy as np; random.seed(5); np.random.seed(5)")
        first = self.value(code)
        for _ in range(2):
            self.box.back(1)
            self.assertEqual(self.value(code), first)

    def test_what_did_not_come_along_is_named_once(self):
        self.ok(
            "import threading, socket, subprocess, sqlite3, time\n"
            "from concurrent.futures import ThreadPoolExecutor\n"
            "ex = ThreadPoolExecutor(1); ex.submit(int).result()\n"
            "p = subprocess.Popen(['sleep', '1000'])\n"
            "done = subprocess.Popen(['sh', '-c', 'exit 3']); time.sleep(0.3)\n"
            "s, t = socket.socketpair()\n"
            "worker = threading.Thread(target=time.sleep, args=(1000,), daemon=True); worker.start()\n"
            "db = sqlite3.connect('d.db'); db.execute('create table t(a)'); db.execute('insert into t values(1)')",
            "y = 1",
        )
        notes = " ".join(self.box.back(1).told)
        for name in ("thread pool `ex`", "process `p` (sleep 1000)", "socket `s`", "socket `t`", "thread `worker`", "transaction of `db`"):
            self.assertIn(name, notes)
        self.assertEqual(self.box.cell("1").told, [])
        self.assertEqual(self.value("p.wait(), done.wait()"), "(-9, 3)")
        self.assertEqual(self.box.cell("ex.submit(int)").error, "BrokenThreadPool")
        self.assertEqual(self.value("list(sqlite3.connect('d.db').execute('select * from t'))"), "[]")

    def test_polars_without_its_threads_says_so_at_once(self):
        self.ok("import polars as pl; df = pl.DataFrame({'a': [2, 1, 2], 's': ['x', 'y', 'z']}); n = df.lazy().group_by('a').len().collect()", "y = 1")
        self.assertIn("polars does not work any more", " ".join(self.box.back(1).told))
        for code in ("df.sort('a')", "df.lazy().collect()", "df.filter(pl.col('a') > 1)", "pl.concat([df, df])", "df.to_pandas()", "df.write_csv()", "df['a'].sort()"):
            a = self.box.cell(code, timeout_ms=5000)
            self.assertEqual((a.verdict, a.state, a.error), ("ok", "kept", "RuntimeError"), (code, a))
        self.assertEqual(self.value("df.to_dict(as_series=False), df.rows()[0]"), "({'a': [2, 1, 2], 's': ['x', 'y', 'z']}, (2, 'x'))")
        self.assertEqual(self.value("len(df), df['a'].to_list()"), "(3, [2, 1, 2])")
        self.assertVerdict(self.box.reset(), "ok")
        self.assertEqual(self.value("import polars as pl; pl.DataFrame({'a': [2, 1]}).sort('a')['a'].to_list()"), "[1, 2]")

    def test_polars_that_was_never_used_goes_on_working(self):
        self.ok("import polars as pl", "y = 1")
        self.assertEqual(self.box.back(1).told, [])
        self.assertEqual(self.value("pl.DataFrame({'a': [2, 1]}).sort('a')['a'].to_list()"), "[1, 2]")

    def test_await_works_in_a_woken_head(self):
        self.ok("import asyncio; await asyncio.sleep(0)", "x = 1")
        self.box.back()
        self.assertEqual(self.value("await asyncio.sleep(0.01, 7)"), "7")

    def test_output_goes_to_the_right_place_afterwards(self):
        self.ok("x = 1", "x = 2")
        self.box.back()
        a = self.box.cell("import os, subprocess, sys; print('one'); os.system('echo two'); print('three', file=sys.stderr)")
        self.assertEqual((a.out, a.err), (b"one\ntwo\n", b"three\n"))


@for_each_user
class Pins(CopyTest):
    def test_a_pinned_state_outlives_newer_ones_until_it_is_let_go(self):
        self.ok("x = 1", "x = 2")
        self.assertVerdict(self.box.pin(1), "ok", "kept")
        self.ok(*[f"x = {i}" for i in range(3, 14)])
        self.settle()
        self.assertParked(8)
        self.assertVerdict(self.box.back(2), "failed", "kept", "gone back to: 1, 7")
        self.assertVerdict(self.box.back(1), "ok")
        self.assertEqual(self.value("x"), "1")
        self.assertVerdict(self.box.pin(1, False), "ok")
        self.ok(*["x"] * 8)
        self.settle()
        self.assertVerdict(self.box.back(1), "failed", "kept")

    def test_a_state_is_pinned_while_a_cell_runs(self):
        self.ok("x = 1")
        request = self.box.begin_cell("import time; time.sleep(0.3); x = 2")
        self.assertVerdict(self.box.pin(1), "ok")  # its answer comes before that of the cell
        self.assertVerdict(self.keeper.answer(self.box.id, request), "ok")
        self.ok(*["x"] * 9)
        self.assertVerdict(self.box.back(1), "ok")

    def test_one_place_is_always_left_for_the_newest(self):
        self.ok(*[f"x = {i}" for i in range(1, 9)])
        self.settle()
        self.assertEqual([self.box.pin(cell).verdict for cell in range(1, 9)], ["ok"] * 7 + ["failed"])
        self.ok("x = 9", "x = 10")
        self.assertVerdict(self.box.cell(ABORT), "crash", "rolled_back")
        self.assertEqual(self.value("x"), "10")
        self.box.back(1)
        self.assertEqual(self.value("x"), "1")

    def test_what_is_not_there_is_not_pinned(self):
        self.ok("x = 1")
        for cell in (0, 7, -1, 1 << 40):
            self.assertVerdict(self.box.pin(cell), "failed", "kept", "not there")
        self.assertVerdict(self.box.pin(7, False), "ok")
        self.assertVerdict(self.keeper.answer(self.box.id, self.box.begin(PIN, b"{")), "failed", "kept")

    def test_a_machine_without_memory_to_spare_takes_all_but_the_newest(self):
        self.ok(*[f"x = {i}" for i in range(1, 6)])
        self.settle()
        self.box.pin(1)
        self.keeper.send(POOL, 0, 0, {"spare_bytes": 1 << 50})
        self.assertParked(1)
        self.keeper.send(POOL, 0, 0, {})
        self.assertVerdict(self.box.back(1), "failed", "kept", "gone back to: 5")
        self.assertVerdict(self.box.cell(ABORT), "crash", "rolled_back")
        self.assertEqual(self.value("x"), "5")


@for_each_user
class Deaths(CopyTest):
    def test_a_death_costs_its_cell_only(self):
        self.ok("x = [1]")
        for code, verdict in (
            (ABORT, "crash"),
            ("x.append(2); import os; os._exit(7)", "crash"),
            ("x.append(3)\nwhile True:\n    try:\n        while True: pass\n    except BaseException: pass", "timeout"),
            ("x.append(4)\nl = []\nwhile True: l.append(bytearray(b'x') * (1 << 20))", "oom"),
        ):
            with self.subTest(code):
                a = self.box.cell(code, timeout_ms=1500 if verdict == "timeout" else 20000, grace_ms=300)
                if a.error != "MemoryError":
                    self.assertVerdict(a, verdict, "rolled_back", "variables are as before this cell")
                else:
                    self.box.back()
                self.assertEqual(self.value("x"), "[1]")

    def test_a_woken_head_dies_with_its_status_known(self):
        self.ok("x = 1")
        for status in (3, 4):
            a = self.box.cell(f"import os; os._exit({status})")
            self.assertVerdict(a, "crash", "rolled_back", f"exit status {status}")

    def test_the_first_cell_has_no_copy_before_it(self):
        self.assertVerdict(self.box.cell(ABORT), "crash", "lost")
        self.answers()

    def test_an_older_copy_is_woken_and_that_is_said(self):
        self.ok("x = 1", "x = 2")
        self.settle()
        os.kill(max(self.parked()), 9)
        time.sleep(0.2)
        a = self.box.cell(ABORT)
        self.assertVerdict(a, "crash", "rolled_back", "as they were after cell 1")
        self.assertEqual(self.value("x"), "1")

    def test_all_copies_killed_is_a_loss(self):
        self.ok("x = 1", "x = 2")
        self.settle()
        for pid in self.parked():
            os.kill(pid, 9)
        self.assertVerdict(self.box.cell(ABORT), "crash", "lost")
        self.answers()

    def test_what_was_started_dies_with_the_cell_and_copies_live(self):
        self.ok("import subprocess; p = subprocess.Popen(['sleep', '1000'])")
        self.settle()
        before = set(self.parked())
        a = self.box.cell(ABORT)
        self.assertIn("process `p`", " ".join(a.told))
        self.assertNotIn("sleep", self.keeper.descendants().values())
        self.assertParked(len(before))
        self.assertEqual(set(self.parked()), before)

    def test_a_fork_bomb_costs_its_cell_only(self):
        self.ok("x = 1")
        bomb = "import os\nwhile True:\n    try: os.fork()\n    except BaseException: pass"
        self.assertVerdict(self.box.cell(bomb, timeout_ms=1000, grace_ms=500), "timeout")
        self.assertEqual(self.value("x"), "1")


@for_each_user
class Parking(CopyTest):
    def test_a_cell_sees_no_copy(self):
        self.ok("x = 1", "x = 2")
        code = "import os\ntry: print(os.wait())\nexcept ChildProcessError: print('none')"
        self.assertEqual(self.ok(code).out, b"none\n")

    def test_a_copy_is_out_of_reach(self):
        self.ok("x = 1")
        self.settle()
        (pid,) = self.parked()
        status = Path(f"/proc/{pid}/status").read_text()
        self.assertEqual(Path(f"/proc/{pid}/oom_score_adj").read_text().strip(), "0")
        self.assertIn("Threads:\t1\n", status)
        links = {os.readlink(f"/proc/{pid}/fd/{fd}") for fd in os.listdir(f"/proc/{pid}/fd")}
        self.assertEqual(len([link for link in links if link.startswith(("pipe:", "socket:"))]), 1, links)
        if self.keeper.report["features"]["copies_frozen"]:
            self.assertIn("/parked", Path(f"/proc/{pid}/cgroup").read_text())
            frozen = [p.read_text() for g in self.keeper.groups() for p in Path(g).glob("s*/parked/c*/cgroup.events")]
            self.assertTrue(all("frozen 1" in text for text in frozen), frozen)

    def test_an_interrupt_costs_no_copy(self):
        """Made in the same hundredth of a second in which the interrupted cell began."""
        for i in range(6):
            self.ok(f"x = {i}")
            self.assertVerdict(self.box.cell("import time; time.sleep(60)", timeout_ms=30), "timeout", "kept")
        self.settle()
        self.assertParked(8)

    def test_a_pipe_of_a_cell_ends_when_the_cell_closes_it(self):
        self.ok("import subprocess; q = subprocess.Popen(['cat'], stdin=subprocess.PIPE, stdout=subprocess.PIPE)")
        self.assertEqual(self.value("q.communicate(b'hello', timeout=5)[0]"), "b'hello'")

    def test_a_hook_that_hangs_in_the_child_costs_the_copy(self):
        self.ok("x = 1", "import os, time\nos.register_at_fork(after_in_child=lambda: time.sleep(1000))")
        self.assertEqual(self.value("x"), "1")
        self.assertVerdict(self.box.back(2), "failed", "kept")
        self.assertParked(1)

    def test_a_hook_that_hangs_in_the_head_costs_the_head(self):
        self.ok("x = 1", "import os, time\nos.register_at_fork(before=lambda: time.sleep(1000)); x = 2")
        a = self.box.cell("x")
        self.assertVerdict(a, "ok", "rolled_back", "after cell 1")
        self.assertEqual(a.result, "1")

    def test_a_hook_that_starts_a_thread_costs_the_copy(self):
        code = "import os, threading, time\nos.register_at_fork(after_in_child=lambda: threading.Thread(target=time.sleep, args=(99,)).start())"
        self.ok("x = 1", code)
        self.settle()
        self.assertParked(1)

    def test_memory_pressure_releases_the_oldest(self):
        if not self.keeper.report["features"]["copies_frozen"]:
            self.skipTest("without groups memory is watched for all of it")
        self.ok("import numpy as np", *["a = np.ones(10_000_000)"] * 8)  # 80 MB each, kept by each copy; 512 MiB in all
        self.assertLess(len(self.parked()), 8)
        self.assertEqual(self.value("float(a.sum())"), "10000000.0")

    def test_a_large_state_is_copied(self):
        rows, strings = (125_000_000, 5_000_000) if HEAVY else (5_000_000, 300_000)
        box = self.keeper.open(memory_bytes=(8 << 10) * MIB if HEAVY else 512 * MIB)
        for code in (f"import pandas as pd, numpy as np; df = pd.DataFrame({{'a': np.arange({rows}), 'b': np.ones({rows})}})",
                     f"big = [str(i) for i in range({strings})]", "df = big = None"):
            self.assertVerdict(box.cell(code, timeout_ms=120000), "ok")
        a = box.back(2)
        self.assertVerdict(a, "ok", "rolled_back")
        self.assertEqual(box.cell("len(df), len(big)").result, f"({rows}, {strings})")
        self.close(box)


class Long(CopyTest):
    def test_a_thousand_cells_stay_quick_and_small(self):
        count = 1000 if HEAVY else 150
        times = [self.box.cell(f"v{i} = {i}").done["took_us"] for i in range(count)]
        head, tail = sorted(times[10:60])[25], sorted(times[-50:])[25]
        self.assertLess(tail, 4 * head + 5000)
        self.settle()
        self.assertParked(8)
        self.assertEqual(self.value(f"v{count - 1}"), str(count - 1))


if __name__ == "__main__":
    unittest.main()
