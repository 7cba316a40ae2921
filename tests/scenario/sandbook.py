"""What the scenario tests share: the program as a child process. Stdlib only."""
import json
import os
import shutil
import subprocess
import tempfile
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PROGRAM = os.environ.get("SANDBOOK", str(ROOT / "build/sandbook"))
REAL = ROOT / "tests/data/real"
UPLOADS = ROOT / "tests/data/uploads"


def run(*words: str, stdin: str | bytes = "", cwd: str | None = None, timeout: float = 180, **env: str) -> subprocess.CompletedProcess:
    """One call of the program; stdout and stderr as text."""
    data = stdin.encode() if isinstance(stdin, str) else stdin
    p = subprocess.run([PROGRAM, *words], input=data, capture_output=True, cwd=cwd, timeout=timeout, env=os.environ | env, check=False)
    p.stdout, p.stderr = p.stdout.decode(), p.stderr.decode(errors="replace")
    return p


class Case(unittest.TestCase):
    """A test with a folder of its own for what the program writes."""

    def setUp(self) -> None:
        self.out = tempfile.mkdtemp(prefix="sandbook-test-")
        self.addCleanup(shutil.rmtree, self.out, ignore_errors=True)

    def cells(self, *lines: str | dict, options: tuple[str, ...] = ()) -> list[dict]:
        """Each line is code, or a whole input object; one answer a line comes back."""
        objects = [line if isinstance(line, dict) else {"code": line} for line in lines]
        text = "".join(json.dumps(o) + "\n" for o in objects)
        p = run("cells", "--json", "--out", self.out, *options, stdin=text)
        self.assertIn(p.returncode, (0, 1), p.stderr)
        answers = [json.loads(line) for line in p.stdout.splitlines()]
        self.assertEqual(len(answers), len(objects), p.stderr)
        return answers

    def ask(self, text: str, *files: str | Path, options: tuple[str, ...] = ()) -> dict:
        words = [w for f in files for w in ("--file", str(f))]
        p = run("ask", "--json", "--out", self.out, *options, *words, text)
        self.assertIn(p.returncode, (0, 1), p.stderr)
        self.assertNotIn("Traceback", p.stdout.partition('"cells"')[0])
        return json.loads(p.stdout)

    def assert_png(self, figure: dict) -> None:
        data = Path(figure["path"]).read_bytes()
        self.assertEqual(data[:8], b"\x89PNG\r\n\x1a\n")
        self.assertEqual((figure["width"], figure["height"]), (int.from_bytes(data[16:20], "big"), int.from_bytes(data[20:24], "big")))
        self.assertGreater(figure["width"], 300)
