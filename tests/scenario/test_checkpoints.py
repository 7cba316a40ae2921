"""Variables outlive their box: on request, when a session idles, when the service ends or is killed."""
import json
import os
import signal
import sqlite3
import unittest
from pathlib import Path

from sandbook import Case
from test_run import Service, call

LEFT = "rate = 2\na = [1, 2]; b = a\ndef f(x): return x * rate\ng = (i for i in [1])\nimport os; h = open(os.__file__); _ = h.read(1)"
CHECKPOINT, RESTORE = {"command": "checkpoint"}, {"command": "restore"}


def text(answer: dict) -> str | None:
    return (answer["result"] or {}).get("text/plain")


class OnRequest(Case):
    def test_variables_come_back_in_a_new_interpreter(self) -> None:
        ask = "import sys; rate = 10; f(3), b is a, a, h.tell(), 'g' in globals(), hasattr(sys, 'mark')"
        saved, _, restored, after = self.cells(LEFT, CHECKPOINT, "import sys; sys.mark = 1; a.append(3); del f", RESTORE, ask)[1:]
        self.assertEqual(text(after), "(30, True, [1, 2], 1, False, False)", after)
        for line in (saved, restored):
            self.assertEqual((line["status"], line["cell"], [x["name"] for x in line["not_kept"]]), ("ok", 1, ["g"]), line)
            self.assertIn("generator", line["not_kept"][0]["why"])
            self.assertGreater(line["kept"], 4)
            self.assertGreater(line["bytes"], 1000)

    def test_it_is_the_floor_of_undo(self) -> None:
        lines = self.cells("x = 1", CHECKPOINT, "x = 2", RESTORE, "x = 3", {"command": "undo"}, "x", {"command": "undo", "cell": 1}, "x", RESTORE, "x")
        self.assertEqual([text(lines[i]) for i in (6, 8, 10)], ["1", "1", "1"], lines)

    def test_the_session_goes_on_and_the_newest_counts(self) -> None:
        lines = self.cells(LEFT, CHECKPOINT, "next(g)", "a.append(3)", CHECKPOINT, "a.clear()", RESTORE, "a")
        self.assertEqual((text(lines[2]), text(lines[-1])), ("1", "[1, 2, 3]"))

    def test_after_a_step_back_it_is_that_state(self) -> None:
        lines = self.cells("x = 1", "x = 2", {"command": "undo"}, CHECKPOINT, "x = 9", RESTORE, "x")
        self.assertEqual((lines[3]["cell"], text(lines[-1])), (1, "1"))

    def test_without_one_there_is_nothing_to_restore(self) -> None:
        lines = self.cells("x = 1", RESTORE, "x")
        self.assertEqual((lines[1]["status"], lines[1]["why"], text(lines[2])), ("refused", "there is no checkpoint", "1"))

    def test_one_that_hangs_costs_one_variable(self) -> None:
        hang = "class H:\n    def __reduce__(self):\n        while True: pass\nx = 1; w = H()"
        lines = self.cells(hang, CHECKPOINT, "x, w.__class__.__name__", RESTORE, "x", options=("--set", "box.checkpoint_timeout=2s"))
        self.assertEqual(([x["name"] for x in lines[1]["not_kept"]], text(lines[2]), text(lines[4])), (["w"], "(1, 'H')", "1"), lines)

    def test_what_does_not_fit_is_named(self) -> None:
        lines = self.cells("import numpy as np; big = np.ones(1_000_000); x = 1", CHECKPOINT, RESTORE, "x", options=("--set", "box.checkpoint_max=2M"))
        self.assertEqual(([x["name"] for x in lines[1]["not_kept"]], text(lines[3])), (["big"], "1"), lines)

    def test_a_large_frame(self) -> None:
        """200 MB in a box of 512 MB; with HEAVY=1 a gigabyte."""
        rows, memory = (125_000_000, "3G") if os.environ.get("HEAVY") == "1" else (25_000_000, "512M")
        make = f"import numpy as np, pandas as pd\ndf = pd.DataFrame({{'x': np.zeros({rows})}}); df.x += 1; col = df['x']"
        lines = self.cells(make, CHECKPOINT, RESTORE, "df.x.sum(), np.shares_memory(col, df['x'])", options=("--memory", memory))
        self.assertEqual(([x["status"] for x in lines], text(lines[3])), (["ok"] * 4, f"(np.float64({rows}.0), True)"), lines)


class Daemon(Case):
    def service(self, *settings: str, tape: Path | None = None) -> Service:
        conf = Path(self.out, "conf")
        model = f"tape\n[model tape]\ndialect = replay\nurl = {tape}" if tape else "builtin"
        conf.write_text("\n".join(("[box]", *settings, "[agent]", f"model = {model}", "")))
        s = Service(str(Path(self.out, "data")), conf)
        self.addCleanup(lambda: s.p.poll() is None and s.kill())
        self.count = getattr(self, "count", 0)
        return s

    def run_code(self, s: Service, code: str, room: str = "r") -> str:
        self.count += 1
        ours = f"e{self.count}"  # an answer of the last life may be posted once more
        s.send(id=ours, room=room, text=f"```python\n{code}\n```")
        return s.until(lambda line: line.get("post") == "answer" and line["reply_to"] == ours)["markdown"]

    def stop(self, s: Service) -> None:
        """As systemd does."""
        s.p.send_signal(signal.SIGTERM)
        s.end()
        self.assertIsNotNone(s.p.returncode)

    def checkpoints(self) -> list[Path]:
        return sorted(Path(self.out, "data").glob("sessions/*/checkpoints/*"))

    def rows(self) -> list[tuple]:
        with sqlite3.connect(Path(self.out, "data", "sandbook.db")) as db:
            return db.execute("SELECT session, cell FROM checkpoints ORDER BY id").fetchall()

    def test_an_idle_session_is_put_away_and_its_next_message_thaws_it(self) -> None:
        s = self.service("idle_checkpoint = 1ms", "checkpoint_every = 0s")
        self.run_code(s, LEFT)
        self.wait_for_log(s, "checkpoint_made")
        answer = self.run_code(s, "rate = 10\nprint(f(3), b is a, 'g' in globals(), h.tell())")
        self.assertIn("30 True False 1", answer)
        self.assertIn("`g` is a generator", answer)
        self.assertNotIn("generator", self.run_code(s, "print(f(4))"))
        s.end()

    def wait_for_log(self, s: Service, event: str) -> None:
        """Reads the log up to that event."""
        for line in s.p.stderr:
            if f"event={event}" in line:
                return
        self.fail(f"{event} did not come")

    def test_the_end_of_the_service_keeps_variables(self) -> None:
        s = self.service("checkpoint_every = 0s")
        self.run_code(s, "x = 41\ndef f(): return x + one")
        self.run_code(s, "one = 1")
        self.run_code(s, "x = 'other'", room="r2")
        self.assertEqual(self.checkpoints(), [])
        self.stop(s)
        self.assertEqual(len(self.checkpoints()), 2)
        s = self.service()
        self.assertIn("42", self.run_code(s, "print(f())"))
        answer = self.run_code(s, "print(x)", room="r2")
        self.assertIn("other", answer)
        self.assertNotIn("again", answer)
        s.end()

    def test_a_killed_service_goes_on_from_checkpoint_and_journal(self) -> None:
        s = self.service("checkpoint_every = 1h")
        self.run_code(s, "import random\nx = [random.random()]; print('made', x[0])")
        self.wait_for_log(s, "checkpoint_made")
        made = s.seen[-1]["markdown"].split("made ")[1].split()[0]
        self.run_code(s, "x.append(2)\ny = x\nimport os; open('n', 'a').write('.')")
        self.run_code(s, "1 / 0")
        self.run_code(s, "z = len(x)")
        s.kill()
        s = self.service()
        answer = self.run_code(s, "print(x[0], x[1:], y is x, z, open('n').read())")
        self.assertIn(f"{made} [2] True 2 .", answer)
        self.assertIn("run again: 2, 4", answer)
        self.assertNotIn("1 / 0", answer)
        self.assertNotIn("run again", self.run_code(s, "print(z)"))
        s.end()

    def test_without_any_checkpoint_all_cells_are_run_again(self) -> None:
        s = self.service("checkpoint_every = 0s")
        self.run_code(s, "x = 1")
        self.run_code(s, "x += 1")
        s.kill()
        self.assertEqual(self.checkpoints(), [])
        s = self.service()
        self.assertIn("now 2", self.run_code(s, "print('now', x)"))
        s.end()

    def test_what_cannot_be_run_again_is_named(self) -> None:
        s = self.service("checkpoint_every = 0s")
        self.run_code(s, "open('/tmp/once', 'x').close(); x = 1")
        self.run_code(s, "import os\nif not os.path.exists('/tmp/never'): y = 1")
        self.run_code(s, "open('/tmp/never', 'w').close()")
        self.run_code(s, "import time; t0 = globals().get('t0'); ok = time.sleep(0) if os.path.exists('/tmp/never') else missing")
        self.run_code(s, "import time; w = 3 if time.time() else 0")
        s.kill()
        s = self.service("rerun_timeout = 60s")
        answer = self.run_code(s, "print(x, y, w)")
        self.assertIn("1 1 3", answer)
        s.end()

    def test_a_cell_that_takes_too_long_to_run_again_is_named(self) -> None:
        s = self.service("checkpoint_every = 0s")
        self.run_code(s, "x = 1")
        self.run_code(s, "import time; time.sleep(1.5); y = 2")
        self.run_code(s, "z = 3")
        s.kill()
        s = self.service("rerun_timeout = 700ms")
        answer = self.run_code(s, "print(x, 'y' in globals(), 'z' in globals())")
        self.assertIn("1 False False", answer)
        self.assertIn("is missing: 2 (", answer)
        self.assertIn("3 (there was no time left for it)", answer)
        s.end()

    def test_undone_cells_are_not_run_again(self) -> None:
        s = self.service("checkpoint_every = 0s")
        self.run_code(s, "x = 1")
        self.run_code(s, "x = 'undone'")
        s.send(id="u", text="!undo")
        s.until(lambda line: line.get("post") == "notice")
        s.kill()
        s = self.service()
        self.assertIn("now 1", self.run_code(s, "print('now', x)"))
        s.end()

    def test_a_step_back_whose_copy_is_gone_comes_from_disk(self) -> None:
        s = self.service("checkpoint_every = 0s", "copies = 1")
        self.run_code(s, "x = 1")
        self.run_code(s, "x += 1; later = 1")
        self.run_code(s, "x += 1")
        s.send(id="b", text="!branch 1")
        notice = s.until(lambda line: line.get("post") == "notice")
        self.assertIn("cell 1", notice["markdown"])
        self.assertIn("now 1 False", self.run_code(s, "print('now', x, 'later' in globals())"))
        s.end()

    def long_answer(self, cells: int, *settings: str) -> Service:
        """A question whose answer took more cells than there are copies, after one that left a generator."""
        tape = Path(self.out, "tape")
        lines = [*(call(f"x += 1; y = {i}") for i in range(cells)), {"text": "done"}]
        tape.write_text("".join(json.dumps(line) + "\n" for line in lines))
        s = self.service("checkpoint_every = 0s", *settings, tape=tape)
        self.run_code(s, "x = 1; g = (n for n in (10, 20))")
        s.send(id="long", text="go on")
        self.assertEqual(s.until(lambda line: line.get("post") == "answer" and line["reply_to"] == "long")["markdown"], "done")
        return s

    def edited(self, s: Service, code: str) -> str:
        s.send(id="better", type="edit", about="long", text=f"```python\n{code}\n```")
        return s.until(lambda line: line.get("post") == "answer" and "now" in line["markdown"])["markdown"]

    def test_an_edited_question_finds_the_state_before_it_however_many_cells_its_answer_took(self) -> None:
        s = self.long_answer(5, "copies = 3")
        self.assertIn("now 1 10 False", self.edited(s, "print('now', x, next(g), 'y' in globals())"))  # no checkpoint has a generator
        s.end()

    def test_an_edited_question_whose_copy_is_gone_gets_its_state_from_disk(self) -> None:
        s = self.long_answer(3, "copies = 1")
        self.assertIn("now 1 10 False", self.edited(s, "print('now', x, next(g), 'y' in globals())"))  # the cell was run again
        s.end()

    def test_a_death_without_a_copy_costs_no_variable(self) -> None:
        s = self.service("copies = 0")
        self.run_code(s, "x = 1")
        self.run_code(s, "y = 2")
        answer = self.run_code(s, "y = 3; import os; os.abort()")
        self.assertIn("as they were before this cell", answer)
        self.assertIn("now 1 2", self.run_code(s, "print('now', x, y)"))
        s.end()

    def test_a_keeper_that_was_killed_costs_no_variable(self) -> None:
        s = self.service()
        self.run_code(s, "x = [1]; y = x")
        children = Path(f"/proc/{s.p.pid}/task/{s.p.pid}/children").read_text().split()
        keeper = [int(p) for p in children if Path(f"/proc/{p}/comm").read_text().startswith("sandbook-box")]
        self.assertEqual(len(keeper), 1)
        os.kill(keeper[0], signal.SIGKILL)
        self.wait_for_log(s, "keeper_gone")
        self.assertIn("now True [1]", self.run_code(s, "print('now', y is x, x)"))
        s.end()

    def test_undo_of_the_first_message_after_a_thaw(self) -> None:
        s = self.service()
        self.run_code(s, "x = 1")
        self.run_code(s, "x = 2")
        self.stop(s)
        s = self.service("copies = 0")
        self.run_code(s, "x = 3")
        s.send(id="u", text="!undo")
        s.until(lambda line: line.get("post") == "notice")
        self.assertIn("now 2", self.run_code(s, "print('now', x)"))
        s.end()

    def test_a_reset_leaves_no_checkpoint(self) -> None:
        s = self.service()
        self.run_code(s, "x = 1")
        self.wait_for_log(s, "checkpoint_made")
        self.assertEqual(len(self.checkpoints()), 1)
        s.send(id="r", text="!reset")
        s.until(lambda line: line.get("post") == "notice")
        self.assertEqual((self.checkpoints(), self.rows()), ([], []))
        s.kill()
        s = self.service()
        self.assertIn("False", self.run_code(s, "print('x' in globals())"))
        s.end()

    def test_vars_of_a_session_that_was_put_away(self) -> None:
        s = self.service()
        self.run_code(s, "x = 1")
        self.stop(s)
        s = self.service()
        s.send(id="v", text="!vars")
        self.assertIn("`x`", s.until(lambda line: line.get("post") == "notice")["markdown"])
        s.end()

    def test_one_changed_byte_is_refused_and_said_and_the_one_before_is_used(self) -> None:
        s = self.service("checkpoint_every = 1ms")
        self.run_code(s, "x = 1")
        self.wait_for_log(s, "checkpoint_made")
        self.run_code(s, "y = 2")
        self.stop(s)
        newest = max(self.checkpoints(), key=lambda p: int(p.name))
        for path in self.checkpoints():
            self.assertEqual(path.stat().st_mode & 0o777, 0o600)
        data = bytearray(newest.read_bytes())
        data[len(data) // 2] ^= 1
        newest.write_bytes(data)
        s = self.service()
        answer = self.run_code(s, "print(x, y)")
        self.assertIn("1 2", answer)
        self.assertIn("changed it", answer)
        s.end()

    def test_another_sessions_checkpoint_is_refused(self) -> None:
        s = self.service()
        self.run_code(s, "secret = 'of r1'", room="r1")
        self.run_code(s, "x = 1", room="r2")
        self.stop(s)
        mine, theirs = self.checkpoints()
        a, b = mine.read_bytes(), theirs.read_bytes()
        mine.write_bytes(b)
        theirs.write_bytes(a)
        s = self.service("rerun_timeout = 0s")
        answer = self.run_code(s, "print('secret' in globals(), 'x' in globals())", room="r2")
        self.assertIn("False False", answer)
        self.assertIn("another session", answer)
        s.end()

    def test_another_image_is_refused_and_said(self) -> None:
        s = self.service()
        self.run_code(s, "x = 1")
        self.stop(s)
        (path,) = self.checkpoints()
        label = json.loads(path.read_bytes()[16:4096].rstrip(b"\0"))
        path.write_bytes(path.read_bytes().replace(label["image"].encode(), label["image"][::-1].encode(), 1))
        s = self.service("rerun_timeout = 0s")
        self.assertIn("another box image", self.run_code(s, "print('x' in globals())"))
        s.end()

    def test_the_key_is_private_or_nothing_is_read(self) -> None:
        s = self.service()
        self.run_code(s, "x = 1")
        self.stop(s)
        key = Path(self.out, "data", "checkpoint.key")
        self.assertEqual((key.stat().st_mode & 0o777, key.stat().st_size), (0o600, 32))
        key.write_bytes(os.urandom(32))
        s = self.service("rerun_timeout = 0s")
        self.assertIn("changed it", self.run_code(s, "print('x' in globals())"))
        s.end()


if __name__ == "__main__":
    unittest.main()
