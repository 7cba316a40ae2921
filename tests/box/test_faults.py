"""kill -9 at random moments: the next cell has the right state, or is told what was lost; nothing is left behind.

FAULTS: how many (20; 500 for a long look); SEED: which. Every failure names the seed and the fault.
"""
import collections
import json
import os
import random
import shutil
import subprocess
import sys
import tempfile
import time
import unittest
from pathlib import Path

from attacks.world import mounts
from keeper import IS_ROOT, ROOT, BoxTest, Keeper, alive, descendants, for_each_user, wait_until

FAULTS = int(os.environ.get("FAULTS", "20"))
SEED = int(os.environ.get("SEED", "1"))
PROGRAM = os.environ.get("SANDBOOK", str(ROOT / "build/sandbook"))
ADD = "import subprocess\nhistory.append({0})\n_ = subprocess.run(['sleep', '{1}'])"
KINDS = {"head": 8, "copy": 4, "child": 3, "any": 3, "init": 2}  # of what is killed, and how often
NAMES = {"python3": "head", "parked": "copy", "sleep": "child", "box-init": "init"}


def kill(pids, choice):
    """Which one it was; None: there was none any more. It has ended when this returns, so that what comes is this one's doing."""
    pid = choice.choice(sorted(pids)) if pids else None
    try:
        hit = pid and (os.kill(pid, 9) or pid)
    except ProcessLookupError:
        return None
    wait_until(lambda: not alive([pid] if hit else []), "who was killed is gone")
    return hit


class Followed:
    """What a session must hold, by what its answers say: after which cell the list held what. None: there is no list."""

    def __init__(self):
        self.after, self.now = {0: None}, None

    def take(self, answer, number, added=None):
        if answer.state == "lost" or answer.verdict == "failed":
            self.now = None
        elif answer.state == "rolled_back":
            if answer.done["cell"] not in self.after:
                raise AssertionError(f"back to a cell that left no state, of {sorted(self.after)}: {answer}")
            self.now = self.after[answer.done["cell"]]
        if answer.verdict == "ok":  # a cell that raised is a state, too
            self.now = self.now if added is None or answer.error else [*(self.now or ()), *added]
            self.after[number] = self.now
        elif answer.state == "kept" and added is None:  # cut short, and a state all the same
            self.after[number] = self.now


@for_each_user
class Sessions(BoxTest):
    """Processes of a session die; keeper and neighbours go on."""

    def victims(self, kind):
        found = {pid: NAMES.get(name, "child") for pid, name in self.keeper.descendants().items() if pid not in self.still}
        return alive([pid for pid, what in found.items() if kind in (what, "any")])

    def begin(self):
        """A new list, in a new session where the old one is gone."""
        if self.box is None:
            self.box = self.keeper.open(**self.limits)
            self.assertEqual(self.box.opened.verdict, "ok", self.box.opened)
        self.held = Followed()
        self.held.take(self.box.cell("history = []"), self.box.cells, [])

    def show(self):
        shown = self.box.cell("history", timeout_ms=60000)
        self.held.take(shown, self.box.cells)
        return shown

    def fault(self, i, choice):
        kind = choice.choices(list(KINDS), list(KINDS.values()))[0]
        request = self.box.begin_cell(ADD.format(i, round(choice.random() * 0.1, 3)), timeout_ms=60000)
        number = self.box.cells
        time.sleep(choice.random() * 0.15)  # the moment; every one is right
        hit = kill(self.victims(kind), choice)
        a = self.keeper.answer(self.box.id, request)
        self.held.take(a, number, [i])
        shown = self.show()
        if shown.verdict not in ("ok", "failed"):  # the kill came only now
            shown = self.show()
        seen = json.loads(shown.result) if shown.result else None
        self.assertEqual(seen, self.held.now, (kind, hit, a, shown))
        if shown.verdict == "failed" or a.verdict == "failed":
            self.box = None
            self.assertIn(kind, ("init", "any"), (a, shown))
            wait_until(lambda: not alive(set(self.keeper.descendants()) - self.still), "nothing is left of the session")
        elif hit is None:
            self.assertEqual((a.state, shown.state), ("kept", "kept"), (a, shown))
        self.seen[kind, a.verdict if hit else "missed", shown.state if a.state == "kept" else a.state] += 1

    def test_whatever_dies_the_next_cell_is_right_or_says_what_was_lost(self):
        choice, self.seen = random.Random(SEED), collections.Counter()
        self.begin()
        for i in range(FAULTS):
            with self.subTest(seed=SEED, fault=i):
                right = False
                try:
                    self.fault(i, choice)
                    right = True
                finally:
                    if not right and self.box:  # the next one is judged by itself
                        self.close(self.box)
                    if self.box is None or self.held.now is None:
                        self.begin()
        if FAULTS > 20:
            print(f"\n{type(self).__name__}, seed {SEED}: {dict(self.seen)}", file=sys.stderr)


class Program:
    """`sandbook cells --json`, a line at a time."""

    def __init__(self, out):
        self.p = subprocess.Popen([PROGRAM, "cells", "--json", "--out", out], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def begin(self, code):
        self.p.stdin.write(json.dumps({"code": code}) + "\n")
        self.p.stdin.flush()

    def end_of_it(self):
        return json.loads(self.p.stdout.readline())

    def cell(self, code):
        self.begin(code)
        return self.end_of_it()

    def keeper(self):
        return next(pid for pid, name in descendants(self.p.pid).items() if name == "sandbook-box")

    def zygote(self):
        """The first python of the keeper's."""
        below = descendants(self.keeper())
        return min(pid for pid, name in below.items() if name == "python3")

    def close(self):
        self.p.stdin.close()
        self.p.stdout.close()
        return self.p.wait(60)


def groups_of(pid):
    """os.walk, because groups go while one looks."""
    return [d for top, names, _ in os.walk("/sys/fs/cgroup") for d in (f"{top}/{n}" for n in names) if f"/sandbook-{pid}-" in d]


class Programs(unittest.TestCase):
    """What all sessions stand on dies: zygote, keeper, daemon."""

    def setUp(self):
        self.out = tempfile.mkdtemp(prefix="sandbook-faults-")
        self.addCleanup(shutil.rmtree, self.out, ignore_errors=True)
        self.mounts = mounts()

    def start(self):
        program = Program(self.out)
        self.addCleanup(lambda: program.p.poll() is None and program.close())
        self.assertEqual(program.cell("x = 1")["status"], "ok")
        return program

    def leaves_nothing(self, pids, keeper):
        wait_until(lambda: not alive(pids), "its processes are gone")
        wait_until(lambda: not (IS_ROOT and groups_of(keeper)), "its groups are gone")

    def one(self, program, kind, choice):
        keeper, known = program.keeper(), descendants(program.p.pid)
        fds = len(os.listdir(f"/proc/{program.p.pid}/fd"))
        program.begin("import time; x += 1; time.sleep(0.05)")
        time.sleep(choice.random() * 0.1)
        os.kill(program.keeper() if kind == "keeper" else program.zygote(), 9)
        a, shown = program.end_of_it(), program.cell("x")
        if shown["status"] == "failed":  # it died only now
            a, shown = shown, program.cell("x")
        if kind == "zygote" and "lost" not in (a.get("state"), shown.get("state")):  # sessions that live go on without it
            self.assertEqual(shown["result"]["text/plain"], "2", (a, shown))
            self.assertEqual(program.keeper(), keeper)
        else:
            self.assertIn("lost", (a.get("state"), shown.get("state")), (a, shown))
            self.assertEqual((shown["error"] or {}).get("name"), "NameError", shown)
            self.leaves_nothing(known, keeper)
        self.assertEqual(program.cell("x = 1")["status"], "ok")
        self.assertEqual(program.cell("x")["result"]["text/plain"], "1")
        wait_until(lambda: len(os.listdir(f"/proc/{program.p.pid}/fd")) <= fds, "the daemon closed what was the old keeper's")

    def test_a_keeper_and_a_zygote_that_die_are_replaced_and_what_was_lost_is_told(self):
        choice, program = random.Random(SEED), self.start()
        for i in range(max(2, FAULTS // 10)):
            with self.subTest(seed=SEED, fault=i):
                self.one(program, ("keeper", "zygote")[i % 2], choice)
        keeper, known = program.keeper(), descendants(program.p.pid)
        program.close()
        self.leaves_nothing(known, keeper)
        self.assertEqual(mounts(), self.mounts)

    def test_a_daemon_that_dies_takes_everything_along(self):
        choice = random.Random(SEED)
        for i in range(max(2, FAULTS // 10)):
            with self.subTest(seed=SEED, fault=i):
                program = self.start()
                keeper, known = program.keeper(), descendants(program.p.pid)
                program.begin("import subprocess; subprocess.run(['sleep', '1000'])")
                time.sleep(choice.random() * 0.1)
                known |= descendants(program.p.pid)
                program.p.kill()
                program.close()
                self.leaves_nothing(known, keeper)
        self.assertEqual(mounts(), self.mounts)


class Services(unittest.TestCase):
    """`sandbook run` is killed: everything asked is answered or told of, and nothing twice under two names."""

    def setUp(self):
        self.out = tempfile.mkdtemp(prefix="sandbook-faults-")
        self.addCleanup(shutil.rmtree, self.out, ignore_errors=True)
        lines = [{"calls": [{"name": "run_python", "args": {"code": "import time; time.sleep(0.03); open('out/a.txt', 'w').write('a')"}}]}, {"text": "done"}]
        Path(self.out, "tape").write_text("".join(json.dumps(x) + "\n" for x in lines * 50))
        Path(self.out, "conf").write_text(f"[agent]\nmodel = tape\n[model tape]\ndialect = replay\nurl = {self.out}/tape\n")

    def start(self):
        words = ["run", "-c", f"{self.out}/conf", "--set", f"service.data_dir={self.out}/data", "--set", "local.stdio=yes", "--set", "service.log_level=error"]
        p = subprocess.Popen([PROGRAM, *words], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.addCleanup(p.stdout.close)
        self.addCleanup(lambda: p.poll() is None and p.kill())
        return p

    def ask(self, p, number):
        p.stdin.write(json.dumps({"id": str(number), "room": f"r{number % 3}", "text": "go", "direct": True}) + "\n")
        p.stdin.flush()

    def test_questions_outlive_the_daemon(self):
        choice, told, asked = random.Random(SEED), {}, 0
        for i in range(max(2, FAULTS // 10)):
            with self.subTest(seed=SEED, fault=i):
                p = self.start()
                for _ in range(3):
                    asked += 1
                    self.ask(p, asked)
                time.sleep(choice.random() * 3)
                below = descendants(p.pid)
                p.kill()
                self.read(p, told)
                p.stdin.close()
                wait_until(lambda below=below: not alive(below), "its processes are gone")
        p = self.start()
        self.ask(p, asked + 1)
        accepted = {f"local:{n}:" for n in range(1, asked + 2)} & {k.rpartition(":")[0] + ":" for k in told} | {f"local:{asked + 1}:"}
        p.stdin.close()
        self.read(p, told)
        answered = {k.rpartition(":")[0] + ":" for k, (kind, _) in told.items() if kind == "answer"}
        self.assertLessEqual(accepted, answered, f"seed {SEED}")
        names = [str(f) for f in Path(self.out, "data").rglob("*") if ".tmp" in f.name or f.name.startswith(".")]
        self.assertEqual(names, [], "half-written files")

    def read(self, p, told):
        """All posts; the same transaction always says the same."""
        for line in p.stdout:
            try:
                post = json.loads(line)
            except json.JSONDecodeError:
                continue  # cut by the kill
            if post.get("post") == "answer":
                txn, words = post["txn"], ("answer", post["markdown"])
                self.assertEqual(told.setdefault(txn, words), words, f"seed {SEED}: {txn} said two things")
        p.wait(60)


if __name__ == "__main__":
    unittest.main()
