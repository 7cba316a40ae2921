"""Bad input: a clear sentence, the right exit status, nothing half-written."""
import json
import os
import subprocess
import tempfile
from pathlib import Path

from sandbook import PROGRAM, REAL, Case, run

OK, FAILED, USAGE, MACHINE = 0, 1, 2, 3


class Words(Case):
    def refused(self, status: int, hint: str, *words: str, **kw: str) -> None:
        p = run(*words, **kw)
        self.assertEqual(p.returncode, status, (words, p.stderr))
        self.assertIn(hint.lower(), p.stderr.lower())
        self.assertEqual(p.stdout, "")
        self.assertNotIn("Traceback", p.stderr)

    def test_help_of_every_command_helps(self) -> None:
        for command in ("run", "ask", "chat", "cells", "profile", "doctor", "check-config", "version"):
            p = run(command, "--help")
            self.assertEqual((p.returncode, p.stderr), (OK, ""))
            self.assertIn(f"sandbook {command}", p.stdout)

    def test_wrong_words_are_named(self) -> None:
        for hint, words in [
            ("no command", ["fly"]),
            ("Usage", []),
            ("--frob", ["ask", "--frob", "x"]),
            ("--file", ["ask", "x", "--file"]),
            ("ask what", ["ask"]),
            ("ask what", ["ask", "  "]),
            ("--timeout", ["cells", "--timeout", "soon"]),
            ("--timeout", ["cells", "--timeout", "-1"]),
            ("--memory", ["cells", "--memory", "lots"]),
            ("profile what", ["profile"]),
            ("reads code from stdin", ["cells", "file.py"]),
            ("no chat platform", ["run"]),
            ('did you mean "ask"', ["asq"]),
            ("did you mean --file?", ["ask", "--fiel", "x"]),
            ("did you mean --json?", ["cells", "--jsn"]),
            ("takes no value", ["ask", "--json=yes", "x"]),
            ("the command comes first", ["--json", "ask", "x"]),
            ("takes no words", ["version", "x"]),
            ("takes no words", ["check-config", "x"]),
            ("takes no words", ["doctor", "x"]),
        ]:
            with self.subTest(words=words):
                self.refused(USAGE, hint, *words)

    def test_settings_that_cannot_be_are_named(self) -> None:
        for hint, assignment in [
            ("box.memory", "box.memory=lots"),
            ("memroy", "box.memroy=1G"),
            ("frob", "frob.x=1"),
            ("turn_timeout", "agent.turn_timeout=5 parsecs"),
            ("agent.model", "agent.model=nobody"),
            ("min_tier", "box.min_tier=T7"),
        ]:
            with self.subTest(assignment=assignment):
                self.refused(USAGE, hint, "check-config", "--set", assignment)

    def test_a_bad_file_of_settings_is_named_with_its_line(self) -> None:
        path = Path(self.out, "bad.conf")
        path.write_text("[box]\nmemory = 1G\nmemroy = 2G\n")
        self.refused(USAGE, "line 3", "check-config", "-c", str(path))
        self.refused(USAGE, "missing.conf", "check-config", "-c", str(Path(self.out, "missing.conf")))

    def test_a_secret_that_others_can_read_is_refused(self) -> None:
        key = Path(self.out, "key")
        key.write_text("secret-canary\n")
        conf = Path(self.out, "s.conf")
        conf.write_text(f"[model house]\nname = m\nurl = http://127.0.0.1:1/v1\nkey_file = {key}\n")
        os.chmod(key, 0o644)
        self.refused(USAGE, "chmod 600", "check-config", "-c", str(conf))
        os.chmod(key, 0o600)
        p = run("check-config", "-c", str(conf))
        self.assertEqual(p.returncode, OK, p.stderr)
        self.assertNotIn("secret-canary", p.stdout + p.stderr)


class Streams(Case):
    def shell(self, script: str) -> subprocess.CompletedProcess:
        return subprocess.run(["sh", "-c", script, PROGRAM], capture_output=True, text=True, cwd=self.out, timeout=180, check=False)

    def test_a_result_that_could_not_be_written_is_a_failure(self) -> None:
        for words in ("version", "check-config", f"ask --json --file {REAL / 'tips.csv'} rows"):
            with self.subTest(words=words):
                p = self.shell(f'"$0" {words} >/dev/full')
                self.assertEqual(p.returncode, FAILED, p.stderr)
                self.assertIn("stdout could not be written", p.stderr)

    def test_closed_streams_are_empty_ones(self) -> None:
        """What is printed must never land in a file that got the number of a closed stream."""
        p = self.shell('"$0" cells --json <&- >&- 2>&-')
        self.assertEqual(p.returncode, OK)
        p = self.shell('echo \'{"code": "40 + 2"}\' | "$0" cells --json 2>&-')
        self.assertEqual(json.loads(p.stdout)["result"]["text/plain"], "42")

    def test_a_script_piped_into_a_chat_is_worked_off_line_by_line(self) -> None:
        """What a command tells is what the lines before it made, the last line included that has no end."""
        p = run("chat", "--file", str(REAL / "tips.csv"), "--out", self.out, stdin="how many rows?\n!code\n!history\n!undo\n!vars")
        self.assertEqual(p.returncode, OK, p.stderr)
        at = [p.stdout.find(words) for words in ("rows: 244", "```python\n# 1\n", "1. how many rows?", "before the first cell", "No variables yet")]
        self.assertNotIn(-1, at, p.stdout)
        self.assertEqual(at, sorted(at), p.stdout)

    def test_a_stdin_that_cannot_be_read_is_named(self) -> None:
        p = self.shell('"$0" cells --json </')
        self.assertEqual(p.returncode, FAILED)
        self.assertIn("stdin cannot be read", p.stderr)

    def test_cells_end_when_nobody_reads_on(self) -> None:
        p = self.shell("""yes '{"code": "1"}' | "$0" cells --json | head -n 1""")
        self.assertEqual(json.loads(p.stdout)["status"], "ok")

    def test_without_a_home_and_where_nothing_may_be_written_charts_go_to_the_temporary_files(self) -> None:
        p = run("ask", "--file", str(REAL / "tips.csv"), "average tip by day as a bar chart", cwd="/proc", TMPDIR=self.out)
        self.assertEqual(p.returncode, OK, p.stderr)
        self.assertRegex(p.stdout, rf"Chart: {self.out}/sandbook-out-\w+/figure-1-1.png")


class Places(Case):
    def test_a_data_dir_that_can_never_be_one_is_the_operators_to_mend(self) -> None:
        for place in ("/proc/x", "/dev/null", "/dev/null/x"):
            p = run("run", "--set", "local.stdio=yes", "--set", f"service.data_dir={place}")
            self.assertEqual(p.returncode, USAGE, p.stderr)
            self.assertIn("service.data_dir: cannot use /", p.stderr)


class Files(Case):
    def test_a_name_with_a_line_end_in_it_is_a_file_all_the_same(self) -> None:
        path = Path(self.out, "two\nlines.csv")
        path.write_bytes((REAL / "tips.csv").read_bytes())
        answer = self.ask("how many rows?", path)
        self.assertIn("244", answer["answer"])
        self.assertIn("two_lines.csv", answer["cells"][0]["code"])

    def test_files_that_cannot_be_read_are_named_before_anything_starts(self) -> None:
        secret = Path(self.out, "secret.csv")
        secret.write_text("a\n1\n")
        fifo = Path(self.out, "fifo")
        os.mkfifo(fifo)
        for hint, path in [("missing.csv", "missing.csv"), ("folder", self.out), ("regular", str(fifo)), ("regular", "/dev/zero")]:
            for command in (["ask", "--file", path, "rows?"], ["profile", path]):
                with self.subTest(command=command):
                    p = run(*command, cwd=self.out)
                    self.assertEqual(p.returncode, USAGE, p.stderr)
                    self.assertIn(hint, p.stderr)
        self.assertFalse(Path(self.out, "sandbook-out").exists())

    def test_empty_and_junk_files_are_told_in_words(self) -> None:
        Path(self.out, "empty.csv").write_bytes(b"")
        Path(self.out, "junk.csv").write_bytes(bytes(range(256)) * 64)
        for name in ("empty.csv", "junk.csv"):
            with self.subTest(name=name):
                answer = self.ask("average of a by b", Path(self.out, name))
                self.assertIn(answer["status"], ("failed", "refused"))
                self.assertIn(name, answer["answer"])
                self.assertNotIn("Traceback", answer["answer"])

    def test_an_out_folder_that_cannot_be_is_named(self) -> None:
        blocker = Path(self.out, "file")
        blocker.write_text("")
        p = run("ask", "--out", str(blocker / "sub"), "--file", str(REAL / "tips.csv"), "rows")
        self.assertEqual(p.returncode, USAGE)
        self.assertIn(str(blocker), p.stderr)

    def test_nothing_is_left_in_the_temporary_folder(self) -> None:
        with tempfile.TemporaryDirectory() as tmp:
            run("ask", "--out", self.out, "--file", str(REAL / "tips.csv"), "overview", TMPDIR=tmp)
            self.assertEqual(os.listdir(tmp), [])
