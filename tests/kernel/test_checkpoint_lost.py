"""Checkpoints: what can't be kept is named with its reason, and costs nothing else."""

import os
import shutil
import threading
import unittest

from driver import Reply
from test_checkpoint_base import CheckpointTest


class Named(CheckpointTest):
    def test_a_generator_is_named_and_the_rest_is_there(self):
        lost = self.lost("""
            import pandas as pd
            df = pd.DataFrame({'x': [1]}); f = open('a', 'w'); g = (i for i in [1]); alias = g
            d = {'deep': [g]}; a = [1]; b = a
        """)
        self.assertEqual(set(lost), {"g", "alias", "d"})
        self.assertEqual(lost["g"], "`g` is a generator: it was running and cannot be kept")
        self.assertIn("`d` holds a generator", lost["d"])
        self.assertIn("`d['deep'][0]`", lost["d"])
        self.true("df.shape == (1, 1)", "b is a", "f.writable()")
        self.error("g", "NameError")

    def test_connections_and_databases_are_named(self):
        code = """
            import sqlite3, duckdb, socket, selectors, mmap
            db = sqlite3.connect('x.db'); cur = db.cursor(); dk = duckdb.connect()
            rel = duckdb.sql('select 1 as a'); s, t = socket.socketpair()
            sel = selectors.DefaultSelector(); _ = open('m', 'wb').write(b'0' * 10)
            mm = mmap.mmap(os.open('m', 2), 10) if (os := __import__('os')) else 0
            duckdb.sql('create table made as select 1 as a'); df = rel.df()
        """
        lost = self.lost(code)
        self.assertEqual(set(lost), {"db", "cur", "dk", "rel", "s", "t", "sel", "mm", "made"})
        self.assertEqual(lost["db"], "`db` is a database connection: connect again")
        self.assertIn("duckdb connection", lost["dk"])
        self.assertIn("duckdb relation", lost["rel"])
        self.assertIn("socket", lost["s"])
        self.assertIn("in duckdb's own memory", lost["made"])
        self.true("df.a.tolist() == [1]")

    def test_threads_pools_locks_and_processes_are_named(self):
        code = """
            import threading, subprocess, time, multiprocessing as mp
            from concurrent.futures import ThreadPoolExecutor, ProcessPoolExecutor
            held = threading.Lock(); held.acquire(); stop = threading.Event()
            th = threading.Thread(target=stop.wait); th.start(); ex = ThreadPoolExecutor(1)
            done = ex.submit(len, 'ab'); done.result(); px = ProcessPoolExecutor(1)
            pool = mp.get_context('fork').Pool(1)
            p = subprocess.Popen(['sleep', '50']); ended = subprocess.Popen(['true'])
            ended.wait(); q = mp.Queue(); ml = mp.Lock(); slow = ex.submit(stop.wait)
            def work(): stop.wait()
            hidden = None
            threading.Thread(target=work, name='worker').start()
            subprocess.Popen(['sleep', '49']); pass
        """
        lost = self.lost(code)
        self.assertEqual(
            set(lost), {"held", "th", "ex", "px", "pool", "p", "q", "ml", "slow", "worker", "sleep 49", "stop"}
        )
        self.assertEqual(lost["p"], "`p` is a child process: it ended with the old interpreter")
        self.assertEqual(lost["worker"], "the thread worker was running: it ended with the old interpreter")
        self.assertIn("held", lost["held"])
        self.assertIn("a pool", lost["ex"])
        self.true("ended.returncode == 0", "done.result() == 2")

    def test_what_waits_for_asyncio_is_named(self):
        lost = self.lost("""
            import asyncio
            async def co(): await asyncio.sleep(60)
            c = co(); t = asyncio.create_task(co(), name='mine')
            loop = asyncio.get_running_loop(); await asyncio.sleep(0)
            async def agen(): yield 1
            ag = agen(); ev = asyncio.Event()
        """)
        self.assertEqual(set(lost), {"c", "t", "loop", "ag"})
        self.assertIn("coroutine", lost["c"])
        self.assertIn("asyncio task", lost["t"])
        self.true("ev.is_set() is False")

    def test_a_task_that_no_variable_has_is_named(self):
        lost = self.lost("""
            import asyncio
            async def co(): await asyncio.sleep(60)
            asyncio.create_task(co(), name='mine'); await asyncio.sleep(0)
        """)
        self.assertEqual(set(lost), {"mine"})

    def test_changes_to_libraries_are_named(self):
        code = """
            import pandas as pd, math
            def total(self): return self.sum()
            pd.DataFrame.total = total; math.mine = lambda: 1
            @pd.api.extensions.register_series_accessor('geo')
            class Geo:
                def __init__(self, s): pass
        """
        lost = self.lost(code)
        self.assertEqual(set(lost), {"pd.DataFrame.total", "math.mine", "pd.Series.geo"})

    def test_objects_of_c_code_without_pickle_are_named(self):
        lost = self.lost("""
            import hashlib, lxml.etree, csv, io, zlib
            h = hashlib.sha256(); el = lxml.etree.fromstring('<a/>')
            rd = csv.reader(io.StringIO('a')); z = zlib.compressobj(); obj = type('T', (), {})()
            obj.z = z
        """)
        self.assertEqual(set(lost), {"h", "el", "rd", "z", "obj"})
        self.assertIn("zlib.Compress", lost["z"])
        self.assertIn("`obj.z`", lost["obj"])

    def test_a_closure_over_what_is_lost_is_named(self):
        lost = self.lost("""
            def make():
                g = (i for i in [1])
                return lambda: next(g)
            f = make()
            def uses(): return g2
            g2 = (i for i in [])
        """)
        self.assertEqual(set(lost), {"f", "g2"})
        self.assertIn("its variable g", lost["f"])
        self.error("uses()", "NameError")

    def test_magics_that_hold_what_is_lost_are_named(self):
        lost = self.lost("""
            from IPython.core.magic import register_line_magic
            g = (i for i in [])
            @register_line_magic
            def m(line, g=g): pass
        """)
        self.assertEqual(set(lost), {"g", "m", "%m"})


class OwnCode(CheckpointTest):
    def test_what_pickling_methods_raise_is_told(self):
        lost = self.lost("""
            class R:
                def __reduce__(self): raise ValueError('not me')
            class S:
                def __getstate__(self): return 1 / 0
            r = R(); s = S(); rs = [r]; class_ = R
            class X:
                def __reduce__(self): raise SystemExit
            x = X()
        """)
        self.assertEqual(set(lost), {"r", "s", "rs", "x"})
        self.assertRegex(lost["r"], r"`r`: R.__reduce__ of cell \d+ raised ValueError: not me")
        self.assertIn("ZeroDivisionError", lost["s"])
        self.true("class_ is R")

    def test_what_raises_when_thawed_costs_only_itself(self):
        code = """
            import numpy as np
            class B:
                def __setstate__(self, s): raise ValueError('not again')
            shared = [1, 2]; b = B(); b.x = 1; b.s = shared; holder = {'b': b, 's': shared}
            also = shared; arr = np.arange(50_000)
            def f(): return shared
            class H:
                def __hash__(self): raise TypeError('no hash') if thawed else 1
                def __init__(self): self.n = 1
            class Flag: pass
            after = shared
        """
        self.ok(code)
        self.assertEqual(self.save()["lost"], [])
        report = self.thaw()
        self.assertEqual({entry["name"]: entry["type"] for entry in report["lost"]}, {"b": "B", "holder": "dict"})
        self.assertIn("ValueError: not again", report["lost"][0]["why"])
        self.true("also is shared and after is shared and f() is shared", "arr[7] == 7", "B.__name__ == 'B'")

    def test_what_hangs_is_cut_off(self):
        code = """
            import time
            class Hang:
                def __reduce__(self):
                    while True: pass
            class Sleep:
                def __getstate__(self):
                    while True:
                        try: time.sleep(60)
                        except Exception: pass
            h = Hang(); s = Sleep(); x = 1
        """
        self.ok(code)
        report = self.save(budget_ms=1500)
        self.assertEqual({entry["name"] for entry in report["lost"]}, {"h", "s"})
        self.assertIn("took longer than", report["lost"][0]["why"])
        self.thaw()
        self.true("x == 1")

    def test_what_hangs_when_thawed_is_cut_off(self):
        self.ok("""
            class Hang:
                def __setstate__(self, s):
                    while True: pass
            h = Hang(); h.x = 1; y = [1]; z = y
        """)
        self.save()
        report = self.thaw(budget_ms=1500)
        self.assertEqual([entry["name"] for entry in report["lost"]], ["h"])
        self.true("z is y", "Hang.__name__ == 'Hang'")

    def test_what_prints_or_draws_is_not_noticed(self):
        self.ok("""
            import random, warnings
            class P:
                def __getstate__(self):
                    print('saving'); warnings.warn('w'); random.random(); return {}
                def __setstate__(self, s): print('loading')
            p = P(); random.seed(3)
        """)
        self.save()  # asserts that nothing was printed
        expected = self.value("random.random()")
        self.thaw()
        self.assertEqual(self.value("random.random()"), expected)

    def test_what_changes_globals_meanwhile_does_no_harm(self):
        self.ok("""
            n = 0
            class M:
                def __getstate__(self):
                    global n
                    n += 1
                    globals()['new_%d' % n] = 1
                    globals().pop('gone', None)
                    return {}
            m = M(); gone = 5; last = 7
        """)
        self.assertEqual(self.save()["lost"], [])
        self.thaw()
        self.true("n == 0", "gone == 5", "last == 7")

    def test_what_is_endless_is_cut_off(self):
        code = """
            class Deep:
                def __reduce__(self): return (Deep, (Deep(),))
            d = Deep()
            link = None
            for _i2x in range(200_000): link = (link,)
            class Endless:
                def __reduce__(self): return (list, (), None, iter(int, 1))
            e = Endless(); ok = 1
        """
        self.ok(code)
        report = self.save(variable_max=5_000_000)
        self.assertEqual({entry["name"] for entry in report["lost"]}, {"d", "link", "e"})
        self.assertIn("nested too deeply", report["lost"][0]["why"])
        self.ok("del link")
        self.thaw()
        self.true("ok == 1")

    def test_a_thread_that_adds_to_a_dictionary_does_no_harm(self):
        self.ok("""
            import threading
            d = {}; stop = False
            def add():
                n = 0
                while not stop:
                    d[n] = str(n); n += 1
            th = threading.Thread(target=add, daemon=True); th.start()
        """)
        report = self.save()
        self.ok("stop = True")
        self.assertLessEqual({entry["name"] for entry in report["lost"]}, {"th", "d", "Thread-1 (add)"})
        self.assertIsNone(self.thaw()["error"])

    def test_broken_metaclasses_and_reprs_do_no_harm(self):
        code = """
            class M(type):
                def __eq__(c, o): raise ValueError
                def __hash__(c): raise ValueError
                def __getattribute__(c, n):
                    if n == '__name__': raise ValueError
                    return super().__getattribute__(n)
            class Odd(metaclass=M):
                def __repr__(self): raise ValueError
            o = Odd(); g = (o for _ in [1]); x = 1
        """
        self.ok(code)
        report = self.save()
        self.assertIn("g", {entry["name"] for entry in report["lost"]})
        self.assertIsNone(self.thaw()["error"])
        self.true("x == 1")


class Limits(CheckpointTest):
    def test_a_variable_that_is_too_large_is_named(self):
        self.ok("""
            import numpy as np, pandas as pd
            small = 1; big = np.zeros(1_000_000); text = 'x' * 5_000_000
            many = [str(n) for n in range(500_000)]; alias = big; part = big[:10]
            df = pd.DataFrame({'a': range(10)})
        """)
        report = self.save(variable_max=3_000_000)
        lost = {entry["name"]: entry["why"] for entry in report["lost"]}
        self.assertEqual(set(lost), {"big", "text", "many", "alias", "part"})
        self.assertEqual(lost["big"], "`big` is larger than the 3.0 MB that there is room for")
        self.assertLess(report["bytes"], 2 * 1_000_000 + 200_000)  # what was written of it until it was too much
        self.thaw()
        self.true("small == 1", "df.a.sum() == 45")

    def test_the_whole_has_a_limit_and_small_things_still_fit(self):
        self.ok("""
            import numpy as np
            a = np.zeros(200_000); b = np.zeros(200_000); c = np.zeros(200_000); d = 'small'
        """)
        report = self.save(total_max=3_500_000)
        self.assertEqual([entry["name"] for entry in report["lost"]], ["c"])
        self.thaw()
        self.true("d == 'small'", "b.size == 200_000")


class Damage(CheckpointTest):
    def setUp(self):
        super().setUp()
        self.ok("""
            import numpy as np
            x = [1, 2]; arr = np.arange(100_000); big = [str(n) for n in range(100_000)]
        """)
        self.save()
        with open(self.path, "rb") as file:
            self.whole = file.read()

    def refused(self, data: bytes) -> str:
        with open(self.path, "wb") as file:
            file.write(data)
        self.ok("""
            mine = 5; import os, random, sys; before = (os.getcwd(), list(sys.path)); random.seed(1)
        """)
        reply = self.restore()
        self.assertEqual(reply["status"], "ok", reply)
        self.assertIsNotNone(reply["report"]["error"], reply)
        self.true("mine == 5", "x == [1, 2]", "before == (os.getcwd(), sys.path)")
        return reply["report"]["error"]

    def test_a_file_that_is_cut_short_changes_nothing(self):
        for size in (0, 5, 30, 500, len(self.whole) // 2, len(self.whole) - 1):
            with self.subTest(size):
                self.refused(self.whole[:size])

    def test_a_file_with_other_bytes_changes_nothing(self):
        for place in (
            1,
            9,
            20,
            2000,
            len(self.whole) // 3,
            len(self.whole) // 2,
            len(self.whole) - 40,
            len(self.whole) - 3,
        ):
            with self.subTest(place):
                data = bytearray(self.whole)
                data[place] ^= 0x55
                self.refused(bytes(data))

    def test_a_file_that_is_none_is_refused(self):
        self.assertIn("not a checkpoint", self.refused(b"PK" + os.urandom(5000)))

    def test_one_of_another_python_is_refused(self):
        self.assertIn("Python", self.refused(self.whole.replace(b"CPython ", b"CPytHon ", 1)))

    def test_one_of_another_format_is_refused(self):
        self.assertIn("format", self.refused(self.whole.replace(b'{"format":1', b'{"format":7', 1)))

    def test_a_request_without_a_descriptor_is_an_error(self):
        for op in ("restore", "checkpoint"):
            self.assertEqual(self.session.call(op)["error"]["name"], "ValueError")
        self.true("x == [1, 2]")

    def test_it_may_be_a_part_of_a_file(self):
        with open(self.path, "wb") as file:
            file.write(b"label" + self.whole + b"seal")
        reply = self.restore(**{"from": 5, "bytes": len(self.whole)})
        self.assertIsNone(reply["report"]["error"], reply)
        self.assertEqual(reply["report"]["bytes"], len(self.whole))
        self.true("x == [1, 2]", "arr[5] == 5")
        self.assertIsNotNone(self.restore()["report"]["error"])
        self.assertIsNotNone(self.restore(**{"from": 4, "bytes": len(self.whole)})["report"]["error"])

    def test_another_version_of_a_package_is_said(self):
        self.assertIn(b'"numpy":"2.', self.whole)
        with open(self.path, "wb") as file:
            file.write(self.whole.replace(b'"numpy":"2.', b'"numpy":"1.', 1))
        self.assertRegex("".join(self.thaw()["notes"]), r"numpy was 1\..* and is 2\..* now")
        self.true("arr[5] == 5")


class Writing(CheckpointTest):
    def through_a_pipe(self, **options) -> Reply:
        """Into self.path, by way of a pipe that somebody reads."""
        ours, theirs = os.pipe()
        reader = threading.Thread(target=self._drain, args=(ours,))
        reader.start()
        try:
            return self.session.call("checkpoint", fds=(theirs,), **options)
        finally:
            os.close(theirs)
            reader.join()

    def _drain(self, fd: int) -> None:
        with open(fd, "rb") as pipe, open(self.path, "wb") as file:
            shutil.copyfileobj(pipe, file)

    def test_a_pipe_takes_it_as_well(self):
        self.ok("import numpy as np; x = np.arange(3_000_000); y = x[::2]; s = 'é' * 9_000_000; z = (i for i in 'a')")
        reply = self.through_a_pipe()
        self.assertEqual(([e["name"] for e in reply["report"]["lost"]], reply.stderr), (["z"], ""))
        self.assertEqual(reply["report"]["bytes"], os.path.getsize(self.path))
        self.thaw()
        self.true("x[-1] == 2_999_999", "np.shares_memory(x, y)", "len(s) == 9_000_000", "'z' not in globals()")

    def test_what_was_written_of_a_lost_variable_does_not_count(self):
        """The pipe has it already: big memory and all."""
        self.ok("""
            import numpy as np
            bad = [np.arange(3_000_000), 'a' * 3_000_000, (i for i in 'a')]
            good = [np.arange(5), 'b' * 2_000_000]
            worse = [np.ones(2_000_000), (i for i in 'b')]
            last = [good, np.arange(2_000_000)]
        """)
        reply = self.through_a_pipe()
        self.assertEqual([e["name"] for e in reply["report"]["lost"]], ["bad", "worse"])
        self.thaw()
        self.true("last[0] is good", "last[1][-1] == 1_999_999", "len(good[1]) == 2_000_000", "good[0][4] == 4")

    def test_a_variable_that_is_broken_off_in_the_middle(self):
        """Out of time between two blocks of it."""
        self.ok("""
            import numpy as np, time
            class Slow:
                def __getstate__(self):
                    time.sleep(60)
            a = [np.arange(2_000_000), Slow(), np.arange(1_000_000)]
            b = {'x': 1}
        """)
        reply = self.through_a_pipe(budget_ms=1000)
        self.assertEqual([e["name"] for e in reply["report"]["lost"]], ["a"])
        self.thaw()
        self.true("b == {'x': 1}")

    def test_nobody_takes_it(self):
        self.ok("import numpy as np, signal; x = np.arange(1_000_000); signal.signal(signal.SIGPIPE, signal.SIG_DFL)")
        ours, theirs = os.pipe()
        os.close(ours)
        reply = self.session.call("checkpoint", fds=(theirs,))
        os.close(theirs)
        self.assertIn("nobody takes it", reply["error"]["value"])
        self.true("x[5] == 5", "signal.getsignal(signal.SIGPIPE) == signal.SIG_DFL")

    def test_no_descriptor_is_left(self):
        self.ok("import os; before = sorted(os.listdir('/proc/self/fd')); who = os.stat('/proc/self/fd').st_uid")
        self.save()
        self.true("sorted(os.listdir('/proc/self/fd')) == before", "os.stat('/proc/self/fd').st_uid == who")
        self.restore()
        self.true("sorted(os.listdir('/proc/self/fd')) == before")

    def test_it_is_made_again_and_again(self):
        for n in (1, 2):
            self.ok(f"x = {n}")
            self.save()
        self.thaw()
        self.true("x == 2")

    def test_an_interrupt_ends_it(self):
        self.ok("""
            class Slow:
                def __getstate__(self):
                    print('slow', flush=True)
                    import os; os.write(1, b'started')
                    while True: pass
            s = Slow()
        """)
        with open(self.path, "wb") as file:
            self.session.send(3, {"op": "checkpoint", "timeout_ms": 1000, "grace_ms": 500}, fds=(file.fileno(),))
        self.session.wait_printed("started")
        self.session.interrupt()
        self.assertEqual(self.session.finish()["error"]["name"], "KeyboardInterrupt")
        self.ok("import signal, sys")
        self.true(
            "signal.getitimer(signal.ITIMER_REAL)[0] == 0",
            "s is not None",
            "type(sys.stdout).__name__ == 'TextIOWrapper'",
        )

    def test_a_full_disk_is_told(self):
        self.ok("""
            import numpy as np, resource
            x = np.zeros(1_000_000); soft = resource.getrlimit(resource.RLIMIT_FSIZE)
            import signal; signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
            resource.setrlimit(resource.RLIMIT_FSIZE, (1_000_000, soft[1]))
        """)
        reply = self.checkpoint()
        self.assertIn("could not be written", reply["error"]["value"])
        self.assert_alive()


if __name__ == "__main__":
    unittest.main()
