"""What the tests of the program against strict servers share."""
import json
import os
import re
import subprocess
import tempfile
import unittest
from pathlib import Path
from typing import Callable

from fakes import DIALECTS, KEY, ROOT, Fake, Reply, need

PROGRAM = Path(os.environ.get("SANDBOOK", str(ROOT / "build/sandbook")))


def code(text: str) -> tuple[str, dict]:
    return ("run_python", {"code": text})


def talk_of(body: dict) -> str:
    return json.dumps(body.get("messages") or body["input"], ensure_ascii=False)


def last_of(body: dict) -> str:
    return json.dumps((body.get("messages") or body["input"])[-1], ensure_ascii=False)


def counting(thinking: str = "") -> Callable[[dict], Reply]:
    """Keeps a running total in the box: a program for each question, then the number that the output shows."""
    state = {"calls": 0, "open": False}

    def script(body: dict) -> Reply:
        if state["open"]:
            state["open"] = False
            found = re.search(r"total is (\d+)", last_of(body))
            need(found, "no output in the last message")
            return Reply(text=f"The total is {found[1] if found else '?'}.", thinking=thinking)
        state["calls"] += 1
        state["open"] = True
        first = "t = 0\n" if state["calls"] == 1 else ""
        return Reply(text="Adding.", calls=[code(f"{first}t += {state['calls']}\nprint('total is', t)")], thinking=thinking)

    return script


@unittest.skipUnless(PROGRAM.exists(), f"{PROGRAM} is not built")
class Case(unittest.TestCase):
    def setUp(self) -> None:
        folder = tempfile.TemporaryDirectory(prefix="sandbook-test-")
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)
        self.key_file = self.folder / "key"
        self.key_file.write_text(KEY + "\n")
        self.key_file.chmod(0o600)

    def fake(self, dialect: str, script: Callable[[dict], Reply], **more: object) -> Fake:
        f = DIALECTS[dialect](script, **more)
        self.addCleanup(f.close)
        return f

    def settings(self, fake: Fake, dialect: str, **more: str) -> list[str]:
        values = {"dialect": dialect, "url": fake.url, "name": "m", "key_file": str(self.key_file)} | more
        return [w for k, v in values.items() for w in ("--set", f"model.house.{k}={v}")]

    def ask(self, fake: Fake, dialect: str, text: str, *options: str, **more: str) -> dict:
        words = [str(PROGRAM), "ask", "--json", "--out", str(self.folder / "out"), "--model", "house", *self.settings(fake, dialect, **more), *options, text]
        p = subprocess.run(words, capture_output=True, text=True, timeout=120, check=False)
        self.assertIn(p.returncode, (0, 1), p.stderr)
        self.assertNotIn(KEY, p.stderr)
        self.log = p.stderr
        return json.loads(p.stdout)

    def start(self, fake: Fake, *options: str, dialect: str = "chat") -> subprocess.Popen:
        """The service with its line on stdin, one data folder a test."""
        words = [str(PROGRAM), "run", "--set", f"service.data_dir={self.folder / 'data'}", "--set", "local.stdio=yes", *self.settings(fake, dialect),
                 "--set", "agent.model=house", *options]
        self.err = open(self.folder / "log", "w+")
        self.addCleanup(self.err.close)
        p = subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self.err, text=True)
        self.addCleanup(self.end, p)
        return p

    def end(self, p: subprocess.Popen) -> None:
        if p.poll() is None:
            p.kill()
        p.wait()
        for pipe in (p.stdin, p.stdout):
            if pipe:
                pipe.close()

    def say(self, p: subprocess.Popen, event: str, text: str, *files: Path) -> str | None:
        """A question; the answer's Markdown, None: the service ended."""
        assert p.stdin and p.stdout
        sent = {"files": [{"path": str(f), "name": f.name} for f in files]} if files else {}
        p.stdin.write(json.dumps({"id": event, "room": "r", "sender": "@ann", "mentioned": True, "text": text} | sent) + "\n")
        p.stdin.flush()
        return next((x["markdown"] for x in map(json.loads, p.stdout) if x.get("post") == "answer"), None)
