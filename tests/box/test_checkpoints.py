"""Variables leave a box as bytes and come back into another: the keeper's part. Nothing here reads those bytes."""
import os
import tempfile
import threading
import unittest

from keeper import CHECKPOINT, MIB, RESTORE, BoxTest, for_each_user

LEFT = "a = [1, 2]; b = a; rate = 2\ndef f(x): return x * rate\ng = (i for i in [1])"


class Drain(threading.Thread):
    """Reads a pipe to its end, as the daemon does."""

    def __init__(self, fd):
        super().__init__()
        self.fd, self.data = fd, b""
        self.start()

    def run(self):
        with open(self.fd, "rb") as pipe:
            self.data = pipe.read()


class CheckpointTest(BoxTest):
    def ok(self, code, box=None):
        a = (box or self.box).cell(code)
        self.assertEqual((a.verdict, a.error), ("ok", None), a)
        return a

    def value(self, code, box=None):
        return self.ok(code, box).result

    def ask(self, kind, fds, box=None, **more):
        box = box or self.box
        spec = {"op": "checkpoint" if kind == CHECKPOINT else "restore", "timeout_ms": 20000, "grace_ms": 1000} | more
        return self.keeper.answer(box.id, box.begin(kind, spec, fds))

    def save(self, box=None, **more):
        """-> what the keeper said, and the bytes."""
        ours, theirs = os.pipe()
        drain = Drain(ours)
        answer = self.ask(CHECKPOINT, [theirs], box, **more)
        os.close(theirs)
        drain.join(20)
        return answer, drain.data

    def saved(self, box=None, **more):
        answer, data = self.save(box, **more)
        self.assertVerdict(answer, "ok", "kept")
        self.assertEqual(answer.claim["status"], "ok", answer.claim)
        self.assertEqual(answer.claim["report"]["bytes"], len(data))
        return data

    def thaw(self, data, box=None, cell=3, **more):
        with tempfile.TemporaryFile() as file:
            file.write(b"label" + data + b"seal")
            file.flush()
            read_only = os.open(f"/proc/self/fd/{file.fileno()}", os.O_RDONLY)
        try:
            where = {"from": 5, "bytes": len(data), "number": cell} | more
            return self.ask(RESTORE, [read_only], box, **where)
        finally:
            os.close(read_only)

    def thawed(self, data, box=None, cell=3):
        answer = self.thaw(data, box, cell)
        self.assertVerdict(answer, "ok", "kept")
        self.assertIsNone(answer.claim["report"]["error"], answer.claim)
        (box or self.box).cells = cell
        return answer.claim["report"]

    def anew(self):
        self.close(self.box)
        self.box = self.keeper.open(**self.limits)


@for_each_user
class Life(CheckpointTest):
    def test_variables_come_back_in_another_box(self):
        self.ok(LEFT)
        data = self.saved()
        self.anew()
        self.assertEqual([e["name"] for e in self.thawed(data)["lost"]], ["g"])
        self.assertEqual(self.value("rate = 10; b is a, f(3)"), "(True, 30)")

    def test_the_session_goes_on_after_one(self):
        self.ok(LEFT)
        self.saved()
        self.assertEqual(self.value("next(g), a"), "(1, [1, 2])")
        self.saved()
        self.answers()

    def test_it_is_the_floor_of_undo(self):
        self.ok("x = 1")
        data = self.saved()
        self.anew()
        self.thawed(data)
        self.assertVerdict(self.box.back(), "failed", why="it came from a checkpoint")
        self.ok("x = 2")
        back = self.box.back()
        self.assertVerdict(back, "ok", "rolled_back")
        self.assertEqual(back.done["cell"], 3)
        self.assertEqual(self.value("x"), "1")
        died = self.box.cell("x = 5; import os; os.abort()")
        self.assertVerdict(died, "crash", "rolled_back")
        self.assertEqual(self.value("x"), "1")

    def test_it_never_is_a_new_interpreter_under_its_number(self):
        """The floor's copy is gone, since only one is kept: what its number meant is not to be had any more."""
        self.close(self.box)
        self.box = self.keeper.open(copies=1)
        self.ok("x = 1")
        self.thawed(self.saved())
        self.ok("x = 2")
        self.assertVerdict(self.box.call("vars"), "ok")
        self.assertVerdict(self.box.back(3), "failed", why="not there any more")
        self.assertEqual(self.value("x"), "2")

    def test_a_session_that_has_run_gets_a_new_interpreter_for_it(self):
        self.ok("x = 1")
        data = self.saved()
        self.ok("import threading, sys; sys.marked = 1; x = 2; y = 3; threading.Thread(target=threading.Event().wait, daemon=True).start()")
        self.thawed(data, cell=2)
        self.assertEqual(self.value("x, 'y' in globals(), threading.active_count() if 'threading' in globals() else 0"), "(1, False, 0)")
        self.assertEqual(self.value("import sys; hasattr(sys, 'marked')"), "False")

    def test_files_stay(self):
        self.ok("open('f', 'w').write('abc'); h = open('f'); h.read(1)")
        data = self.saved()
        self.thawed(data)
        self.assertEqual(self.value("h.read()"), "'bc'")

    def test_nothing_of_it_is_among_the_files(self):
        self.ok("x = 1")
        data = self.saved()
        answer = self.thaw(data)
        self.assertEqual(answer.files, {})
        after = self.ok("import os; fds = sorted(os.listdir('/proc/self/fd')); len(fds)")
        self.assertEqual(after.files, {})
        self.saved()
        self.assertEqual(self.value("sorted(os.listdir('/proc/self/fd')) == fds, os.listdir('.')"), "(True, ['out'])")


# One thing of each kind that a session promises to bring back, and what must be true of it in another box.
PROMISED = """
import dataclasses, enum, functools, threading
rate = 2
def times(x): return x * rate
first = [1, 2]; second = first; pair = (first, {'same': first})
def make():
    n = 0
    def up():
        nonlocal n
        n += 1
        return n
    def now(): return n
    return up, now
up, now = make(); up()
class Base:
    def __init__(self): self.v = 1
    def get(self): return self.v * rate
class Derived(Base):
    def get(self): return super().get() + 1
thing = Derived()
@dataclasses.dataclass(order=True)
class Point:
    x: int
    tags: list = dataclasses.field(default_factory=list)
point = Point(3, first)
class Colour(enum.Enum):
    RED = 1
    def low(self): return self.name.lower()
red = Colour.RED; by_colour = {Colour.RED: 'r'}
twice = lambda x, k=first: x * len(k)
calls = []
@functools.lru_cache
def slow(x): calls.append(x); return x + rate
slow(1); slow(1)
open('f.txt', 'w').write('abcdef'); h = open('f.txt'); h.read(2)
lock = threading.Lock()
class Service:
    def __init__(self): self.lock = threading.RLock(); self.log = first
service = Service()
"""
TRUE = """times(5) == 10 and (rate := 3) and times(5) == 15
second is first and pair[0] is first and pair[1]['same'] is first and point.tags is first and service.log is first
up() == 2 and now() == 2
thing.get() == 4 and isinstance(thing, Base) and type(thing) is Derived
point == Point(3, [1, 2]) and Point(2) < point
red is Colour.RED and Colour(1) is red and by_colour[red] == 'r' and red.low() == 'red'
twice(4) == 8 and (first.append(3) or twice(4) == 12)
slow(1) in (3, 4) and slow.cache_info().currsize == 1
h.tell() == 2 and h.read() == 'cdef'
lock.acquire(False) and lock.locked() and service.lock.acquire(False)"""


@for_each_user
class Promised(CheckpointTest):
    def check(self):
        for line in TRUE.splitlines():
            with self.subTest(line):
                self.assertEqual(self.value(line), "True")

    def test_everything_that_is_promised_comes_back_from_a_checkpoint(self):
        self.ok(PROMISED)
        self.thawed(self.saved())
        self.check()

    def test_and_from_a_copy(self):
        self.ok(PROMISED)
        self.ok("rate = 100; first.clear(); up(); del Point, Colour, slow; h.close(); lock.acquire()")
        self.assertVerdict(self.box.back(1), "ok", "rolled_back")
        self.check()

    def test_what_cannot_is_named_and_costs_nothing_else(self):
        self.ok(PROMISED)
        self.ok("import sqlite3, duckdb\ng = (i for i in first); db = sqlite3.connect(':memory:'); dk = duckdb.connect(); held = threading.Lock(); held.acquire()\n"
            "t = threading.Thread(target=threading.Event().wait, daemon=True); t.start()")
        answer, data = self.save()
        lost = {e["name"]: e["why"] for e in answer.claim["report"]["lost"]}
        self.assertEqual(set(lost), {"g", "db", "dk", "held", "t"}, lost)
        self.thawed(data)
        self.check()


@for_each_user
class Hostile(CheckpointTest):
    """What is read is a program of the session's own. It runs inside its walls, ends at its limits, and leaves the next one sound."""

    def after(self, *verdicts, timeout_ms=1500):
        answer, data = self.save(budget_ms=1000, timeout_ms=3000)
        self.assertIn(answer.verdict, ("ok", *verdicts), answer)
        if answer.verdict == "ok":
            thawed = self.thaw(data, timeout_ms=timeout_ms, budget_ms=1000)
            self.assertIn(thawed.verdict, ("ok", *verdicts), thawed)
        self.assertVerdict(self.box.reset(), "ok")
        self.assertEqual(self.value("6 * 7"), "42")

    def test_reducers_that_run_whatever_they_like(self):
        for call in ("(os.system, ('id > ran',))", "(os._exit, (0,))", "(os.kill, (os.getpid(), 19))", "(exec, ('while True: pass',))", "(bytearray, (1 << 40,))",
                     "(eval, ('[0] * (1 << 28)',))", "(sys.exit, ())", "(getattr, (os, 'fork'))", "(os.close, (3,))", "(os.write, (3, b'x' * 100))", "(__import__, ('nothing',))"):
            with self.subTest(call):
                self.ok(f"import os, sys\nclass R:\n    def __reduce__(self): return {call}\nr = R(); x = 1")
                self.after("timeout", "crash", "limit", "oom", "failed")

    def test_equality_hashing_and_names_that_fight_back(self):
        self.ok("class E:\n    def __eq__(self, o): raise SystemExit\n    def __hash__(self): raise SystemExit\n    def __bool__(self): raise SystemExit\n"
                "    def __getattribute__(self, n): raise SystemExit\n    def __repr__(self): raise SystemExit\n    def __len__(self): raise SystemExit\n"
                "es = [E() for _ in range(5)]; x = 1; d = {'a': es[0], 'b': es}\nglobals()['\\ud800'] = es[0]; globals()['a b'] = es[1]")
        self.after("crash", "limit")

    def test_a_pickler_and_modules_that_were_replaced(self):
        self.ok("import pickle, copyreg, io, sys, builtins, zlib, gc\nx = 1\ndef bad(*a, **k): raise SystemExit\n"
                "pickle.Pickler = pickle.Unpickler = pickle.dumps = pickle.loads = copyreg.reduce_ex = copyreg.__newobj__ = io.BytesIO = bad\n"
                "zlib.crc32 = bad; gc.get_objects = gc.get_referents = bad\nbuiltins.open = builtins.__import__ = builtins.isinstance = bad\nsys.modules['pickle'] = sys.modules['copyreg'] = None")
        self.after("crash", "limit", "timeout", "failed")


# Names that an interpreter, a library or a helper looks for in the working folder or at home.
TRAPS = ("json.py", "pickle.py", "sitecustomize.py", "usercustomize.py", "numpy.py", "pandas.py", "encodings.py", "kernel.py", "openpyxl.py", "chardet.py", "charset_normalizer.py",
         "matplotlib.py", "IPython.py", "pyarrow.py", "polars.py", "tabulate.py", "PIL.py", "zipfile.py", "csv.py", "colorsys.py", "this.py")
CONFIG = ("matplotlibrc", ".config/matplotlib/matplotlibrc", ".matplotlib/matplotlibrc", ".ipython/profile_default/startup/00.py", ".ipython/profile_default/ipython_config.py",
          ".pythonrc", ".pdbrc", ".duckdbrc", ".config/fontconfig/fonts.conf", "pyvenv.cfg", "python313._pth", ".local/lib/python3.13/site-packages/evil.pth",
          ".local/lib/python3.13/site-packages/usercustomize.py", ".cache/fontconfig/x", ".jupyter/jupyter_notebook_config.py", "setup.cfg", "pyproject.toml")


@for_each_user
class Traps(CheckpointTest):
    """Files that lie where the next interpreter might look for its own: none of them is run by what is ours."""

    def test_no_interpreter_and_no_helper_of_ours_runs_what_lies_in_the_folder(self):
        marked = "open('/tmp/trapped', 'a').write(__name__ + ' ')\nraise SystemExit\n"
        self.ok(f"import os, py_compile\nfor n in {TRAPS!r} + {CONFIG!r}:\n    os.makedirs(os.path.dirname(n) or '.', exist_ok=True)\n    open(n, 'w').write({marked!r})\n"
                f"for home in ('/tmp', '/tmp/mpl'):\n    for n in {CONFIG!r}:\n        os.makedirs(os.path.dirname(f'{{home}}/{{n}}') or '.', exist_ok=True)\n        open(f'{{home}}/{{n}}', 'w').write({marked!r})\n"
                "os.makedirs('__pycache__', exist_ok=True)\nfor n in ('json', 'pickle', 'numpy'): py_compile.compile(f'{n}.py', cfile=f'__pycache__/{n}.cpython-313.pyc')")
        self.assertVerdict(self.box.reset(), "ok")
        self.ok("x = [1]; y = x")
        self.thawed(self.saved())
        self.assertEqual(self.value("y is x"), "True")
        self.assertVerdict(self.box.call("vars"), "ok")
        self.assertEqual(self.box.put("t.csv", b"a;b\n1;2,5\n").verdict, "ok")
        self.assertVerdict(self.box.call("intake", name="t.csv"), "ok")
        drawn = self.ok("import matplotlib.pyplot as plt\nplt.plot([1, 2]); plt.title('t'); plt.show()")
        self.assertEqual(len(drawn.claim["figures"]), 1, drawn)
        self.assertVerdict(self.box.cell("import os; os.abort()"), "crash", "rolled_back")
        self.assertEqual(self.value("y is x, __import__('os').path.exists('/tmp/trapped')"), "(True, False)")


@for_each_user
class Trouble(CheckpointTest):
    def test_one_that_takes_too_long_is_ended_and_the_head_stays(self):
        self.ok("x = 1\nclass Slow:\n    def __getstate__(self):\n        while True: pass\ns = Slow()")
        answer, _ = self.save(timeout_ms=500, budget_ms=60000)
        self.assertVerdict(answer, "timeout", "kept")
        self.assertEqual(self.value("x, type(s).__name__"), "(1, 'Slow')")

    def test_what_hangs_costs_only_itself_within_the_budget(self):
        self.ok("x = 1\nclass Slow:\n    def __getstate__(self):\n        while True: pass\ns = Slow()")
        answer, data = self.save(budget_ms=1000)
        self.assertEqual([e["name"] for e in answer.claim["report"]["lost"]], ["s"])
        self.thawed(data)
        self.assertEqual(self.value("x"), "1")

    def test_one_that_kills_the_head_costs_nothing_else(self):
        self.ok("x = 1\nclass Deadly:\n    def __getstate__(self):\n        import os; os.abort()\nd = Deadly()")
        answer, _ = self.save()
        self.assertVerdict(answer, "crash", "rolled_back")
        self.assertEqual(self.value("x"), "1")

    def test_it_can_be_cancelled(self):
        self.ok("x = 1\nclass Slow:\n    def __getstate__(self):\n        while True: pass\ns = Slow()")
        ours, theirs = os.pipe()
        drain = Drain(ours)
        request = self.box.begin(CHECKPOINT, {"op": "checkpoint", "timeout_ms": 20000, "grace_ms": 5000}, [theirs])
        os.close(theirs)
        self.box.keeper.send(5, self.box.id, request)
        self.assertVerdict(self.keeper.answer(self.box.id, request), "cancelled", "kept")
        drain.join(20)
        self.assertEqual(self.value("x"), "1")

    def test_nobody_reads(self):
        self.ok("import numpy as np; x = np.arange(3_000_000)")
        ours, theirs = os.pipe()
        os.close(ours)
        answer = self.ask(CHECKPOINT, [theirs])
        os.close(theirs)
        self.assertVerdict(answer, "ok", "kept")
        self.assertIn("nobody takes it", answer.claim["error"]["value"])
        self.assertEqual(self.value("x[-1]"), "np.int64(2999999)")

    def test_a_state_of_most_of_the_memory_needs_no_second_one(self):
        """The bytes are never all in the box at once, neither when they go nor when they come."""
        self.ok(f"import numpy as np; x = np.ones({230 * MIB // 8})")
        data = self.saved()
        self.assertGreater(len(data), 230 * MIB)
        self.anew()
        self.thawed(data)
        self.assertEqual(self.value("x.sum() == x.size"), "np.True_")

    def test_one_that_is_damaged_leaves_a_session_that_runs(self):
        self.ok("x = 1")
        data = bytearray(self.saved())
        data[len(data) // 2] ^= 1
        answer = self.thaw(bytes(data))
        self.assertVerdict(answer, "ok")
        self.assertIn("could not be read", answer.claim["report"]["error"])
        self.answers()


class Descriptors(CheckpointTest):
    """What the keeper lets through."""

    def refused(self, kind, fds, why, **more):
        answer = self.ask(kind, fds, **more)
        self.assertVerdict(answer, "failed", "kept", why)
        self.answers()

    def test_none_came(self):
        for kind in (CHECKPOINT, RESTORE):
            self.refused(kind, [], "no descriptor")

    def test_a_file_to_write_to_is_no_pipe(self):
        with tempfile.TemporaryFile() as file:
            self.refused(CHECKPOINT, [file.fileno()], "no pipe")
        self.refused(CHECKPOINT, [os.open("/", os.O_RDONLY)], "no pipe")

    def test_a_file_that_could_be_changed_is_not_handed_in(self):
        with tempfile.TemporaryFile() as file:
            self.refused(RESTORE, [file.fileno()], "read only")

    def test_a_folder_is_no_file(self):
        folder = os.open("/", os.O_RDONLY | os.O_DIRECTORY)
        self.refused(RESTORE, [folder], "read only")
        os.close(folder)

    def test_the_read_end_is_no_way_out(self):
        ours, theirs = os.pipe()
        self.refused(CHECKPOINT, [ours], "no pipe")
        os.close(ours)
        os.close(theirs)

    def test_another_op_is_not_run_with_a_descriptor(self):
        ours, theirs = os.pipe()
        self.refused(CHECKPOINT, [theirs], "not what", op="vars")
        os.close(ours)
        os.close(theirs)

    def test_other_processes_of_the_session_cannot_open_it(self):
        """A child of the person's looks at the head's descriptors while a checkpoint is being made."""
        self.ok(
            "import os, subprocess, sys\n"
            "code = 'import os\\ntry: print(len(os.listdir(\"/proc/%d/fd\")))\\nexcept OSError as e: print(type(e).__name__)' % os.getpid()\n"
            "def look(): return subprocess.run([sys.executable, '-c', code], capture_output=True, text=True).stdout.strip()\n"
            "class Look:\n"
            "    def __getstate__(self):\n"
            "        global seen; seen = look()\n"
            "        return {}\n"
            "it = Look()"
        )
        self.saved()
        self.assertIn(self.value("seen"), ("'PermissionError'", "'FileNotFoundError'"))
        self.assertTrue(self.value("look()").strip("'").isdigit(), "the test would see nothing in any case")


if __name__ == "__main__":
    unittest.main()
