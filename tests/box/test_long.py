"""Long sessions: many cells, much data, and what lives from cell to cell; what going back and a death do to each of these, and that it is told.

LONG=1: the whole sizes (1,000 cells, 5 million strings, a frame of 2 GB); else small ones of the same kind.
"""
import os
import statistics
import unittest
from pathlib import Path

from keeper import MIB, BoxTest, wait_until

LONG = os.environ.get("LONG") == "1"
CELLS = 1000 if LONG else 150
STRINGS = 5_000_000 if LONG else 200_000
GIB = 1024 * MIB

# name -> cells in a row, each with what its last line must show
HOLDS = {
    "seed of random": [("import random; random.seed(7); a = [random.random() for _ in range(3)]; random.seed(7)", None), ("x = random.random()", None), ("[x, random.random(), random.random()] == a", "True")],
    "seed of numpy": [("import numpy as np; np.random.seed(7); a = np.random.rand(3); np.random.seed(7); g = np.random.default_rng(1)", None), ("x = np.random.rand(2); y = g.random()", None), ("bool((np.append(x, np.random.rand(1)) == a).all()), y != g.random()", "(True, True)")],
    "status of a process": [("import subprocess; p = subprocess.Popen(['sh', '-c', 'exit 3'])", None), ("1", "1"), ("p.wait()", "3")],
    "pipes of a process": [("p = __import__('subprocess').Popen(['cat'], stdin=-1, stdout=-1, text=True)", None), ("_ = p.stdin.write('hello'); p.stdin.flush()", None), ("p.communicate('!')[0]", "'hello!'")],
    "transaction": [("import sqlite3; c = sqlite3.connect('a.db'); _ = c.execute('create table t (x)'); c.commit(); _ = c.execute('insert into t values (1)')", None), ("c.in_transaction", "True"), ("c.commit(); sqlite3.connect('a.db').execute('select x from t').fetchall()", "[(1,)]")],
    "transaction in WAL": [("import sqlite3; c = sqlite3.connect('w.db'); _ = c.execute('pragma journal_mode=wal'); _ = c.execute('create table t (x)'); c.commit(); _ = c.execute('insert into t values (1)')", None), ("1", "1"), ("c.commit(); c.execute('select count(*) from t').fetchone()", "(1,)")],
    "thread pool": [("from concurrent.futures import ThreadPoolExecutor; ex = ThreadPoolExecutor(2); f = ex.submit(pow, 2, 5)", None), ("ex.submit(pow, 2, 6).result()", "64"), ("f.result() + ex.submit(pow, 2, 7).result()", "160")],
    "process pool": [("import multiprocessing as mp; pool = mp.get_context('fork').Pool(2)", None), ("pool.map(abs, [-1, -2])", "[1, 2]"), ("pool.map(abs, [-3])", "[3]")],
    "timer": [("import threading; rang = threading.Event(); t = threading.Timer(0.2, rang.set); t.start()", None), ("1", "1"), ("rang.wait(60)", "True")],
    "thread left running": [("import threading, time; n = [0]\ndef count():\n    while True: n[0] += 1; time.sleep(0.001)\nthreading.Thread(target=count, daemon=True).start()", None), ("a = n[0]", None), ("import time; late = time.time() + 60\nwhile n[0] == a and time.time() < late: time.sleep(0.01)\nn[0] > a", "True")],
    "asyncio task": [("import asyncio\nasync def later():\n    await asyncio.sleep(0.05)\n    return 7\ntask = asyncio.create_task(later()) if True else None\nawait asyncio.sleep(0)", None), ("1", "1"), ("await task", "7")],
    "open file": [("f = open('a.txt', 'w+'); _ = f.write('one '); f.flush()", None), ("_ = f.write('two'); f.flush()", None), ("f.seek(0); f.read()", "'one two'")],
    "generator": [("g = (i * i for i in range(9)); _ = next(g), next(g)", None), ("next(g)", "4"), ("next(g)", "9")],
    "polars": [("import polars as pl; df = pl.DataFrame({'a': [1, 2, 2]}); _ = df.lazy().group_by('a').len().collect()", None), ("df['a'].sum()", "5"), ("df.lazy().group_by('a').len().collect().height", "2")],
    "waiting sees no copy": [("import os", None), ("x = 1", None), ("try: os.waitpid(-1, os.WNOHANG)\nexcept ChildProcessError: print('none')", None)],
}

# name -> what is set up, what is looked at afterwards, what that shows, and what is told of it (in the notes of whoever went back)
GOES = {
    "variable": ("x = [1]", "x", "[1]", None),
    "seed of random": ("import random; random.seed(7); a = random.random(); random.seed(7)", "random.random() == a", "True", None),
    "seed of numpy": ("import numpy as np; np.random.seed(7); a = np.random.rand(); np.random.seed(7)", "bool(np.random.rand() == a)", "True", None),
    "open file": ("f = open('a.txt', 'w+'); _ = f.write('one'); f.flush()", "f.seek(0); f.read()", "'one'", None),
    "generator": ("g = iter(range(9)); _ = next(g)", "next(g)", "1", None),
    "process": ("import subprocess; p = subprocess.Popen(['sleep', '1000'])", "p.poll() is not None", "True", "the process `p` (sleep 1000) is gone"),
    "process that had ended": ("import subprocess; p = subprocess.Popen(['sh', '-c', 'exit 3']); import time; time.sleep(0.3)", "p.wait()", "3", None),
    "transaction": ("import sqlite3; con = sqlite3.connect('a.db'); _ = con.execute('create table t (x)'); con.commit(); _ = con.execute('insert into t values (1)')", "sqlite3.connect('a.db').execute('select count(*) from t').fetchone()", "(0,)", "the open transaction of `con` is gone"),
    "thread pool": ("from concurrent.futures import ThreadPoolExecutor; ex = ThreadPoolExecutor(1); _ = ex.submit(abs, 1).result()", "try: ex.submit(abs, 1).result(5)\nexcept Exception as e: print(type(e).__name__)", None, "the thread pool `ex` is gone"),
    "process pool": ("import multiprocessing as mp; pool = mp.get_context('fork').Pool(1); _ = pool.map(abs, [1])", "try: pool.map(abs, [1])\nexcept Exception as e: print(type(e).__name__)", None, "the pool `pool` is gone"),
    "timer": ("import threading; t = threading.Timer(1000, print); t.start()", "t.is_alive()", "False", "the thread `t` is gone"),
    "polars": ("import polars as pl; df = pl.DataFrame({'a': [1, 2]}); _ = df.lazy().select('a').collect()", "df.height", "2", "polars does not work any more in this session, its threads are gone"),
}


class LongTest(BoxTest):
    def ok(self, code, box=None):
        a = (box or self.box).cell(code, timeout_ms=120000)
        self.assertEqual((a.verdict, a.error), ("ok", None), a)
        return a

    def another(self, **limits):
        if self.box:
            self.close(self.box)
        self.box = self.keeper.open(**(self.limits | limits))
        self.assertEqual(self.box.opened.verdict, "ok", self.box.opened)


class Many(LongTest):
    def rss(self):
        status = Path(f"/proc/{self.keeper.process.pid}/status").read_text()
        return int(status.split("VmRSS:")[1].split()[0]) << 10

    def test_many_cells_each_changing_something(self):
        self.ok("import numpy as np; total = 0; seen = {}; a = np.zeros(1000)")
        times, rss, fds = [], None, None
        for i in range(CELLS):
            times.append(self.ok(f"total += {i}; seen[{i}] = str({i}); a[{i % 1000}] += 1").ms)
            if i == 50:
                rss, fds = self.rss(), self.keeper.descriptors()
        self.assertEqual(self.ok("total, len(seen), int(a.sum())").result, str((sum(range(CELLS)), CELLS, CELLS)))
        self.assertVerdict(self.box.call("vars"), "ok")
        wait_until(lambda: list(self.keeper.descendants().values()).count("parked") == 8, "8 copies are kept")
        self.assertLess(self.rss() - rss, 8 * MIB)
        self.assertLessEqual(self.keeper.descriptors(), fds + 2)
        self.assertLess(statistics.median(times[-30:]), 10 * statistics.median(times[5:35]) + 50)
        a = self.box.back()
        self.assertEqual((a.verdict, a.state), ("ok", "rolled_back"), a)
        self.assertEqual(self.ok("total").result, str(sum(range(CELLS))))

    def test_many_strings_come_back(self):
        self.another(memory_bytes=(6 if LONG else 1) * GIB)
        self.ok(f"words = [str(i) for i in range({STRINGS})]")
        self.ok("words[0] = 'changed'; extra = 1")
        self.assertVerdict(self.box.back(), "ok", "rolled_back")
        self.assertEqual(self.ok(f"words[0], len(words), words[-1] == '{STRINGS - 1}', 'extra' in dir()").result, f"('0', {STRINGS}, True, False)")
        a = self.box.cell("words.clear(); import os; os.abort()", timeout_ms=120000)
        self.assertVerdict(a, "crash", "rolled_back")
        self.assertEqual(self.ok("len(words)").result, str(STRINGS))

    @unittest.skipUnless(LONG, "2 GB of memory: LONG=1")
    def test_a_frame_of_2_gb_is_undone(self):
        self.another(memory_bytes=8 * GIB, copies=2)
        self.ok("import numpy as np, pandas as pd; df = pd.DataFrame(np.ones((2_000_000, 125)))")
        self.ok("df.iloc[0, 0] = 5.0")
        self.assertVerdict(self.box.back(), "ok", "rolled_back")
        self.assertEqual(self.ok("float(df.iloc[0, 0]), df.shape").result, "(1.0, (2000000, 125))")

    def test_branches_from_one_copy_never_see_each_other(self):
        self.ok("import numpy as np, pandas as pd; l = [0]; d = {}; a = np.zeros(3); df = pd.DataFrame({'x': [0]}); class_ = type('C', (), {'v': 0})")
        look = "l, d, a.tolist(), df.x.tolist(), class_.v"
        root = self.ok(look).result
        states = {}
        for name, n in (("one", 1), ("two", 2)):
            self.assertVerdict(self.box.back(1), "ok", "rolled_back")
            self.assertEqual(self.ok(look).result, root)
            self.ok(f"l.append({n}); d[{n}] = {n}; a[:] = {n}; df.loc[0, 'x'] = {n}; class_.v = {n}")
            states[name] = (self.box.cells, self.ok(look).result)
        self.assertNotEqual(states["one"][1], states["two"][1])
        for cell, seen in (states["one"], states["two"], states["one"]):
            self.assertVerdict(self.box.back(cell), "ok", "rolled_back")
            self.assertEqual(self.ok(look).result, seen)


class FromCellToCell(LongTest):
    def test_what_lives_across_cells_holds(self):
        for name, cells in HOLDS.items():
            with self.subTest(name):
                self.another()
                for code, shows in cells:
                    a = self.ok(code)
                    if shows is not None:
                        self.assertEqual(a.result, shows, (code, a))
        self.assertEqual(a.words, ["none"], a)  # the last one printed it


class Afterwards(LongTest):
    """Once by undo, once by a death."""

    def gone(self, how):
        for name, (setup, probe, shows, told) in GOES.items():
            with self.subTest(name):
                self.another()
                self.ok(setup)
                self.ok("after = 1")
                self.assertVerdict(self.box.call("vars"), "ok")
                a = how()
                self.assertEqual(a.state, "rolled_back", a)
                notes = " | ".join(a.told)
                if told is None:
                    self.assertNotIn("gone", notes, a)
                else:
                    self.assertIn(told, notes, a)
                shown = self.ok(probe)
                if shows is not None:
                    self.assertEqual(shown.result, shows, shown)
                else:
                    self.assertTrue(shown.words, shown)  # an error of its own, at once, instead of a wait for ever

    def test_undo(self):
        self.gone(self.box_back)

    def box_back(self):
        a = self.box.back()
        self.assertVerdict(a, "ok")
        return a

    def test_death(self):
        def die():
            a = self.box.cell("import os; os.abort()")
            self.assertVerdict(a, "crash")
            return a

        self.gone(die)


if __name__ == "__main__":
    unittest.main()
