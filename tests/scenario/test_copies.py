"""What people do across cells, what going back gives them, and what a death costs: from the reports that notebooks get."""
import unittest

from sandbook import Case

UNDO = {"command": "undo"}


def text(answer: dict) -> str | None:
    return (answer["result"] or {}).get("text/plain")


class AcrossCells(Case):
    """With a copy left after every cell, none of this may come out differently than in one process."""

    def across(self, *cells: str) -> str | None:
        answers = self.cells(*cells)
        for a in answers:
            self.assertEqual((a["status"], a["state"]), ("ok", "kept"), a)
        return text(answers[-1])

    def test_the_exit_status_of_a_child(self) -> None:
        self.assertEqual(self.across("import subprocess; p = subprocess.Popen(['sh', '-c', 'exit 3'])", "p.wait()"), "3")

    def test_a_pipe_to_a_child(self) -> None:
        start = "import subprocess; q = subprocess.Popen(['cat'], stdin=subprocess.PIPE, stdout=subprocess.PIPE)"
        self.assertEqual(self.across(start, "q.communicate(b'hello', timeout=9)[0]"), "b'hello'")

    def test_a_transaction(self) -> None:
        begin = "import sqlite3; db = sqlite3.connect('p.db'); db.execute('create table t(a)'); _ = db.execute('insert into t values(1)')"
        self.assertEqual(self.across(begin, "db.commit()", "sqlite3.connect('p.db').execute('select count(*) from t').fetchone()"), "(1,)")

    def test_a_pool_of_threads(self) -> None:
        start = "from concurrent.futures import ThreadPoolExecutor; ex = ThreadPoolExecutor(2); ex.submit(int).result()"
        self.assertEqual(self.across(start, "ex.submit(lambda: 7).result(timeout=9)"), "7")

    def test_a_pool_of_processes(self) -> None:
        start = "from multiprocessing import Pool; pool = Pool(2); pool.map(abs, [-1])"
        self.assertEqual(self.across(start, "pool.map(abs, [-1, -2])", "pool.terminate(); pool.map(abs, [1]) if False else 'done'"), "'done'")

    def test_a_timer_between_cells(self) -> None:
        start = "import threading, time; hits = []; threading.Timer(0.3, lambda: hits.append(1)).start()"
        self.assertEqual(self.across(start, "time.sleep(1); hits"), "[1]")

    def test_an_asyncio_task(self) -> None:
        start = "import asyncio\nasync def work():\n    await asyncio.sleep(0.1)\n    return 5\ntask = asyncio.ensure_future(work())\nawait asyncio.sleep(0)"
        self.assertEqual(self.across(start, "await task"), "5")

    def test_an_open_file(self) -> None:
        self.assertEqual(self.across("f = open('a', 'w'); f.write('abc'); f.flush()", "f.write('def'); f.flush()", "open('a').read()"), "'abcdef'")

    def test_nobody_else_is_waited_for(self) -> None:
        self.assertEqual(self.across("x = 1", "import os\ntry: r = os.wait()\nexcept ChildProcessError: r = 'none'\nr"), "'none'")

    def test_polars(self) -> None:
        use = "pl.DataFrame({'a': [1, 2] * 5000}).lazy().group_by('a').len().collect().shape"
        answers = self.cells("import polars as pl\n" + use, use)
        if answers[0]["error"] and answers[0]["error"]["name"] == "ModuleNotFoundError":
            self.skipTest("the image has no polars")
        self.assertEqual([text(a) for a in answers], ["(2, 2)", "(2, 2)"])


class Back(Case):
    def test_undo_goes_back_one_cell_and_says_what_does_not(self) -> None:
        answers = self.cells("x = 1", "x = 2; open('a', 'w').write('2')", {"command": "undo", "id": "u"}, "x, open('a').read()")
        undo = answers[2]
        self.assertEqual((undo["id"], undo["status"], undo["state"], undo["cell"]), ("u", "ok", "rolled_back", 1))
        self.assertIn("files", undo["notes"][0])
        self.assertEqual(text(answers[3]), "(1, '2')")

    def test_a_branch_from_any_cell_as_often_as_wanted(self) -> None:
        branch = {"command": "branch", "cell": 1}
        answers = self.cells("l = [0]", "l.append(1)", branch, "l.append(2); l", branch, "l.append(3); l", {"command": "branch", "cell": 2}, "l")
        self.assertEqual([text(answers[i]) for i in (3, 5, 7)], ["[0, 2]", "[0, 3]", "[0, 1]"])

    def test_what_is_not_there_is_refused_with_what_is(self) -> None:
        answers = self.cells("x = 1", "x = 2", {"command": "branch", "cell": 9}, "x")
        self.assertEqual(answers[2]["status"], "refused")
        self.assertIn("1, 2", answers[2]["why"])
        self.assertEqual(text(answers[3]), "2")

    def test_a_pool_that_is_gone_is_named(self) -> None:
        start = "from concurrent.futures import ThreadPoolExecutor; ex = ThreadPoolExecutor(2); ex.submit(int).result()"
        answers = self.cells(start, "x = 1", UNDO, "ex.submit(int)")
        self.assertTrue(any("`ex`" in note for note in answers[2]["notes"]), answers[2])
        self.assertEqual(answers[3]["error"]["name"], "BrokenThreadPool")


class Deaths(Case):
    def test_a_killed_cell_costs_itself_only(self) -> None:
        for death, status in (("os.abort()", "crash"), ("x.append(bytearray(b'x') * (1 << 30) * 9)" , "oom"), ("sum(range(10**13))", "timeout")):
            with self.subTest(death):
                answers = self.cells("import os; x = ['kept']", "x.append('lost'); " + death, "x", options=("--timeout", "3", "--memory", "512M"))
                if answers[1]["state"] != "kept":
                    self.assertEqual((answers[1]["status"], answers[1]["state"]), (status, "rolled_back"), answers[1])
                    self.assertIn("variables are as before this cell", answers[1]["why"])
                    self.assertEqual(text(answers[2]), "['kept']")

    def test_what_ran_in_the_background_is_named(self) -> None:
        answers = self.cells("import subprocess, os; p = subprocess.Popen(['sleep', '98764'])", "os.abort()", "1")
        self.assertTrue(any("`p` (sleep 98764)" in note for note in answers[1]["notes"]), answers[1])

    def test_without_copies_it_is_lost(self) -> None:
        answers = self.cells("x = 1", "import os; os.abort()", "x", options=("--set", "box.copies=0"))
        self.assertEqual(answers[1]["state"], "lost")
        self.assertEqual(answers[2]["error"]["name"], "NameError")


if __name__ == "__main__":
    unittest.main()
