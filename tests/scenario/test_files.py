"""Files of a conversation as people meet them: sent, changed by programs, kept in versions, branched, there again after a kill."""
import base64
import json
import os
import signal
import sqlite3
import zipfile
from pathlib import Path

from sandbook import Case, run
from test_run import Service


class Files(Case):
    def setUp(self) -> None:
        super().setUp()
        self.number = 0
        self.data = str(Path(self.out, "data"))

    def service(self, *settings: str) -> Service:
        conf = Path(self.out, "conf")
        conf.write_text("".join(f"{s}\n" for s in settings))
        s = Service(self.data, conf)
        self.addCleanup(lambda: s.p.poll() is None and s.kill())
        return s

    def say(self, s: Service, text: str, **files: str) -> dict:
        """One message and what is posted to it. files: name -> content, sent along."""
        self.number += 1
        sent = []
        for name, content in files.items():
            path = Path(self.out, f"sent-{self.number}-{len(sent)}")
            path.write_text(content)
            sent.append({"path": str(path), "name": name})
        s.send(id=f"e{self.number}", text=text, files=sent)
        return s.until(lambda x: x.get("post") in ("answer", "notice") and x.get("reply_to") == f"e{self.number}")

    def program(self, s: Service, code: str, **files: str) -> dict:
        return self.say(s, f"```python\n{code}\n```", **files)

    def prints(self, s: Service, code: str, expected: str) -> None:
        self.assertIn(expected, self.program(s, code)["markdown"])

    def test_what_a_program_writes_over_is_kept_and_told(self) -> None:
        s = self.service()
        post = self.program(s, "open('sales.csv', 'a').write('S,2\\n')\nopen('out/r.txt', 'w').write('r')", **{"sales.csv": "region,amount\nN,1\n"})
        self.assertEqual({f["path"].rpartition("/out/")[2] for f in post["files"]}, {"sales.csv", "r.txt"})
        self.assertIn("sales.csv \u2192 v2", post["receipt"])
        self.prints(s, "print(open('sales.csv').read().count('\\n'), open('sales (v1).csv').read().count('\\n'))", "3 2")
        listed = self.say(s, "!files")["markdown"]
        for line in ("- `sales.csv`, v1, 1 KB", "- `sales.csv`, v2, 1 KB, made by cell 1", "- `out/r.txt`, v1, 1 KB, made by cell 1"):
            self.assertIn(line, listed)
        self.program(s, "import os; os.unlink('sales.csv')")
        self.assertIn("- `sales.csv`, v3, deleted by cell 3", self.say(s, "!files")["markdown"])
        self.prints(s, "print(os.path.exists('sales.csv'), open('sales (v1).csv').read().count('\\n'))", "False 2")
        self.program(s, "1", **{"sales.csv": "region,amount\nW,4\n"})
        self.prints(s, "print(open('sales.csv').read())", "W,4")
        self.assertIn("- `sales.csv`, v4, 1 KB", self.say(s, "!files")["markdown"])
        s.end()

    def test_files_are_there_again_after_a_kill(self) -> None:
        s = self.service()
        self.program(s, "import os\nopen('made.txt', 'w').write('made')\nos.makedirs('a/b'); open('a/b/c', 'w').write('deep'); os.unlink('gone.csv')", **{"gone.csv": "x\n", "e\u0301t\u00e9.csv": "y\n"})
        s.kill()
        s = self.service()
        self.prints(s, "import os; print(open('made.txt').read(), open('a/b/c').read(), open('\u00e9t\u00e9.csv').read(), os.path.exists('gone.csv'), os.path.exists('gone (v1).csv'))", "made deep y\n False True")
        self.program(s, "open('made.txt', 'w').write('again')")
        s.kill()
        s = self.service()
        self.prints(s, "print(open('made.txt').read())", "again")
        s.end()
        self.assertEqual([p for p in Path(self.data).glob("sessions/*/box/*")], [])

    def test_a_branch_has_files_of_its_own_and_so_has_the_line_it_left(self) -> None:
        s = self.service()
        self.program(s, "x = 1; open('a.txt', 'w').write('base')", **{"sales.csv": "s\n"})
        self.program(s, "x = 2; open('a.txt', 'w').write('first'); open('first.txt', 'w').write('f'); import os; os.unlink('sales.csv')")
        self.assertIn("files of its own", self.say(s, "!branch 1")["markdown"])
        self.prints(s, "import os; print(x, open('a.txt').read(), os.path.exists('first.txt'), open('sales.csv').read())", "1 base False s")
        self.program(s, "x = 4; open('a.txt', 'w').write('second'); open('/mnt/data/second.txt', 'w').write('s')")
        self.say(s, "!branch 2")
        self.prints(s, "print(x, open('a.txt').read(), os.path.exists('first.txt'), os.path.exists('second.txt'), os.path.exists('sales.csv'))", "2 first True False False")
        s.kill()
        s = self.service()
        self.prints(s, "import os; print(open('a.txt').read(), sorted(f for f in os.listdir('.') if f.endswith('t')))", "first ['a.txt', 'first.txt', 'out']")
        s.end()

    def test_undo_leaves_files_and_says_so(self) -> None:
        s = self.service()
        self.program(s, "x = 1; open('a.txt', 'w').write('1')")
        self.program(s, "x = 2; open('a.txt', 'w').write('2')")
        self.assertIn("files are as they were", self.say(s, "!undo")["markdown"])
        self.prints(s, "print(x, open('a.txt').read())", "1 2")
        s.end()

    def test_what_cannot_be_kept_reaches_the_person(self) -> None:
        s = self.service("[files]", "upload_max = 1M", "session_max = 3M")
        post = self.program(s, "open('big.bin', 'wb').write(bytes(2 << 20)); open('bad\\nname', 'w'); open('fine', 'w').write('f')")
        self.assertIn("big.bin: it is larger than 1 MB", post["markdown"])
        self.assertIn("its name has control characters", post["markdown"])
        self.assertEqual([Path(f["path"]).name for f in post["files"]], ["fine"])
        post = self.program(s, "import os\nfor i in range(5): open(f'{i}.bin', 'wb').write(os.urandom(900_000))")
        self.assertIn("more than 3 MB together", post["markdown"])
        full = self.say(s, "", **{"more.csv": "x" * 900_000})
        self.assertIn("more than 3 MB together", full["markdown"])
        s.end()

    def test_older_versions_of_results_make_room_and_what_was_sent_stays(self) -> None:
        s = self.service("[files]", "upload_max = 1M", "session_max = 3M")
        self.program(s, "1", **{"sent.csv": "x" * 500_000})
        for _ in range(4):
            post = self.program(s, "import os; open('r.bin', 'wb').write(os.urandom(900_000)); open('sent.csv', 'w').write('short')")
            self.assertNotIn("together", post["markdown"])
        self.prints(s, "print(len(open('sent (v1).csv').read()))", "500000")
        s.end()

    def test_branches_of_cells_never_see_each_others_files(self) -> None:
        answers = self.cells(
            "x = 1; open('a.txt', 'w').write('base')",
            "x = 2; open('a.txt', 'w').write('one'); open('one.txt', 'w').write('1')",
            {"command": "branch", "cell": 1},
            "import os; x, open('a.txt').read(), os.path.exists('one.txt')",
            "x = 3; open('a.txt', 'w').write('two')",
            {"command": "branch", "cell": 2},
            "import os; x, open('a.txt').read(), os.path.exists('one.txt')",
        )
        self.assertEqual([a["status"] for a in answers], ["ok"] * 7, answers)
        self.assertEqual([answers[i]["result"]["text/plain"] for i in (3, 6)], ["(1, 'base', False)", "(2, 'one', True)"])

    # ---- export ----

    def conversation(self, s: Service) -> None:
        self.program(s, "import pandas as pd\ndf = pd.read_csv('/mnt/data/sales.csv')\nprint('sum', df.amount.sum())\ndf['amount'] *= 2\ndf.to_csv('sales.csv', index=False)", **{"sales.csv": "region,amount\nN,1\nS,2\n"})
        self.program(s, "total = pd.read_csv('sales.csv').amount.sum()\nimport matplotlib.pyplot as plt\nplt.plot([1, total]); plt.title('t')\ntotal")
        self.program(s, "undone = 1\nprint('left by a branch')")
        self.say(s, "!branch 2")
        self.program(s, "print('undone' in dir(), total)\nopen('out/result.txt', 'w').write(str(total))\n1 / 0", **{"it's a file.csv": "x\n5\n"})
        self.program(s, "print(open(\"it's a file.csv\").read().split()[1], '```')")

    def test_export_is_a_notebook_with_its_data(self) -> None:
        s = self.service()
        self.conversation(s)
        zipped = self.say(s, "!export")
        session = next(Path(self.data, "sessions").iterdir()).name
        target = Path(self.out, "exported")
        p = run("export", session, "--set", f"service.data_dir={self.data}", "--out", str(target))  # while the service runs
        self.assertEqual((p.returncode, p.stdout), (0, f"{target}/notebook.ipynb\n"), p.stderr)
        names = {str(f.relative_to(target)) for f in target.rglob("*") if f.is_file()}
        self.assertEqual(names, {"notebook.ipynb", "notebook.py", "README.md", "data/sales.csv", "data/it's a file.csv", "out/sales.csv", "out/result.txt"})
        self.assertEqual((target / "data/sales.csv").read_text(), "region,amount\nN,1\nS,2\n")
        book = json.loads((target / "notebook.ipynb").read_text())
        code = [c for c in book["cells"] if c["cell_type"] == "code"]
        self.assertEqual([c["execution_count"] for c in code if c["execution_count"]], [1, 2, 4, 5])
        self.assertTrue(any("image/png" in o.get("data", {}) for c in code for o in c["outputs"]))
        self.assertTrue(any(o["output_type"] == "error" and o["ename"] == "ZeroDivisionError" for c in code for o in c["outputs"]))
        self.assertIn("Cell 3 does not run here", "".join(c["source"] for c in book["cells"] if c["cell_type"] == "markdown"))
        self.assertNotIn("/mnt/data", "".join(c["source"] for c in code).replace("which was /mnt/data", ""))
        compile((target / "notebook.py").read_text(), "notebook.py", "exec")
        with zipfile.ZipFile(zipped["files"][0]["path"]) as z:
            self.assertIsNone(z.testzip())
            self.assertEqual(set(z.namelist()), names)
            self.assertEqual(z.read("data/it's a file.csv"), b"x\n5\n")
        again = run("export", session, "--set", f"service.data_dir={self.data}", "--out", str(target))
        self.assertEqual(again.returncode, 2, again.stderr)
        self.assertIn("not empty", again.stderr)
        s.end()

    def test_export_refuses_what_is_no_session(self) -> None:
        s = self.service()
        self.program(s, "1")
        s.end()
        for words, status in ((("export",), 2), (("export", "../../etc"), 2), (("export", "0" * 16), 1)):
            p = run(*words, "--set", f"service.data_dir={self.data}", cwd=self.out)
            self.assertEqual(p.returncode, status, p.stderr)
        p = run("export", "0" * 16, "--set", f"service.data_dir={self.out}/none", cwd=self.out)
        self.assertEqual(p.returncode, 2, p.stderr)
        self.assertEqual(sorted(f for f in os.listdir(self.out) if f.startswith("sandbook")), [])

    def test_the_notebook_is_valid_and_gives_the_numbers_again(self) -> None:
        """Checked with nbformat and run by IPython, in a box."""
        s = self.service()
        self.conversation(s)
        self.say(s, "!export")
        zipped = next(Path(self.data).glob("sessions/*/out/.export-*.zip")).read_bytes()
        s.end()
        runner = (
            "import json, os\nfrom IPython.core.interactiveshell import InteractiveShell\nos.chdir('book'); shell = InteractiveShell.instance()\n"
            "for c in json.load(open('notebook.ipynb'))['cells']:\n    if c['cell_type'] == 'code': shell.run_cell(c['source'])\n"
        )
        code = (
            "import base64, io, zipfile, nbformat, json, os, subprocess, sys\n"
            f"zipfile.ZipFile(io.BytesIO(base64.b64decode({base64.b64encode(zipped).decode()!r}))).extractall('book')\n"
            f"nb = nbformat.read('book/notebook.ipynb', 4); nbformat.validate(nb)\nopen('run.py', 'w').write({runner!r})\n"
            "p = subprocess.run([sys.executable, 'run.py'], capture_output=True, text=True); print(p.stdout, p.stderr)\n"
            "q = subprocess.run([sys.executable, 'notebook.py'], cwd='book', capture_output=True, text=True); print('PLAIN', q.stdout, q.stderr)\n"
        )
        cell, = self.cells(code)
        self.assertEqual(cell["status"], "ok", cell)
        book, _, plain = cell["stdout"].partition("PLAIN")
        for text in (book, plain):
            self.assertIn("sum 3", text, cell)
            self.assertIn("False 6", text)
            self.assertIn("ZeroDivisionError", text)
            self.assertIn("5 ```", text)
            self.assertNotIn("left by a branch", text)

    def test_a_name_that_an_older_version_would_take(self) -> None:
        s = self.service()
        self.program(s, "1", **{"a.csv": "old", "a (v1).csv": "own", "n" * 251 + ".csv": "long"})
        self.program(s, "1", **{"a.csv": "new", "n" * 251 + ".csv": "longer"})
        self.prints(s, "print(*(open(f).read() for f in ('a.csv', 'a (v1).csv', 'a (v1_).csv')), open('n' * 246 + ' (v1).csv').read())", "new own old long")
        s.end()

    def test_killed_between_bytes_and_row_nothing_half_is_left(self) -> None:
        s = self.service()
        self.program(s, "open('a', 'w').write('1')")
        s.p.send_signal(signal.SIGKILL)
        s.end()
        db = sqlite3.connect(Path(self.data, "sandbook.db"))
        rows = db.execute("SELECT session, id, name, bytes FROM files").fetchall()
        self.assertEqual([(r[2], r[3]) for r in rows], [("a", 1)])
        self.assertEqual(Path(self.data, "sessions", rows[0][0], "files", str(rows[0][1]), "a").read_text(), "1")
        db.close()
