"""The program itself, agent and box included, against the same strict servers. SANDBOOK names another program."""
import json
import os
import re
import subprocess
import tempfile
import unittest
from pathlib import Path
from typing import Callable

from fakes import DIALECTS, KEY, ROOT, Chat, Fake, Reply, need

PROGRAM = Path(os.environ.get("SANDBOOK", str(ROOT / "build/sandbook")))
TURNS = 20


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
class Service(unittest.TestCase):
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

    def ask(self, fake: Fake, dialect: str, text: str, **more: str) -> dict:
        words = [str(PROGRAM), "ask", "--json", "--out", str(self.folder / "out"), "--model", "house", *self.settings(fake, dialect, **more), text]
        p = subprocess.run(words, capture_output=True, text=True, timeout=120, check=False)
        self.assertIn(p.returncode, (0, 1), p.stderr)
        self.assertNotIn(KEY, p.stderr)
        return json.loads(p.stdout)

    def test_one_question_of_each_dialect_runs_its_program_in_the_box(self) -> None:
        for dialect in DIALECTS:
            with self.subTest(dialect=dialect):
                fake = self.fake(dialect, counting())
                a = self.ask(fake, dialect, "What is the total?")
                self.assertEqual((a["status"], a["answer"], a["steps"]), ("answered", "The total is 1.", 2), fake.faults)
                self.assertEqual(a["cells"][0]["stdout"], "total is 1\n")
                self.assertEqual(a["usage"], {"in": 200, "cached": 128, "out": 40})
                self.assertEqual(fake.faults, [])

    def test_twenty_turns_of_each_dialect_break_no_rule(self) -> None:
        for dialect in DIALECTS:
            with self.subTest(dialect=dialect):
                self.conversation(dialect)

    def conversation(self, dialect: str) -> None:
        fake = self.fake(dialect, counting("let me think"))
        if isinstance(fake, Chat):
            fake.reasoning = "let me think"
        data = self.folder / dialect
        words = [str(PROGRAM), "run", "--set", f"service.data_dir={data}", "--set", "local.stdio=yes", *self.settings(fake, dialect, context="200000"),
                 "--set", "agent.model=house"]
        p = subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.addCleanup(lambda: p.poll() is None and p.kill())
        assert p.stdin and p.stdout
        total = 0
        for n in range(1, TURNS + 1):
            total += n
            p.stdin.write(json.dumps({"id": str(n), "room": "r", "sender": "@ann", "mentioned": True, "text": f"Question {n}?"}) + "\n")
            p.stdin.flush()
            answer = next((x for x in map(json.loads, p.stdout) if x.get("post") == "answer"), None)
            self.assertIsNotNone(answer, p.stderr.read() if p.stderr and not answer else "")
            self.assertEqual(answer and answer["markdown"], f"The total is {total}.", fake.faults)
        _, log = p.communicate(timeout=60)
        self.assertNotIn(KEY, log)
        self.assertEqual(fake.faults, [])
        self.assertEqual(len(fake.requests), 2 * TURNS)

    def test_a_server_without_tools_gets_fences_and_the_person_an_answer(self) -> None:
        def script(body: dict) -> Reply:
            need("tools" not in body, "m does not support tools")
            if "Output of your program" in last_of(body):
                need("<data nonce=" in last_of(body), "output without marks")
                return Reply(text="It is 42.")
            return Reply(text="```python\nprint(6 * 7)\n```\nOutput: 41\n" + "So it is 41. " * 50)

        fake = self.fake("chat", script)
        a = self.ask(fake, "chat", "Six times seven?")
        self.assertEqual((a["answer"], a["cells"][0]["stdout"]), ("It is 42.", "42\n"))
        self.assertEqual(len(fake.faults), 1)

    def test_a_call_written_out_as_text_is_run(self) -> None:
        left = [Reply(text='<tool_call>\n{"name": "run_python", "arguments": {"code": "print(6*7)"}}\n</tool_call>'), Reply(text="It is 42.")]
        fake = self.fake("chat", lambda body: left.pop(0))
        a = self.ask(fake, "chat", "Six times seven?")
        self.assertEqual((a["answer"], len(a["cells"])), ("It is 42.", 1), fake.faults)
        self.assertEqual(fake.faults, [])

    def test_a_busy_server_is_asked_again(self) -> None:
        left = [Reply(status=429, headers={"retry-after": "0.1"}, error={"error": {"message": "slow down"}}), Reply(text="Hello.")]
        fake = self.fake("chat", lambda body: left.pop(0))
        self.assertEqual(self.ask(fake, "chat", "Hi")["answer"], "Hello.")

    def test_a_wrong_key_fails_at_once_with_words(self) -> None:
        fake = self.fake("anthropic", lambda body: Reply(text="x"), key="another")
        a = self.ask(fake, "anthropic", "Hi")
        self.assertEqual(a["status"], "failed")
        self.assertTrue(a["answer"])
        self.assertEqual(len(fake.headers), 1)


if __name__ == "__main__":
    unittest.main()
