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
