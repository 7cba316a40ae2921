"""The program itself, agent and box included, against the same strict servers. SANDBOOK names another program."""
import json
import re
import subprocess

from fakes import DIALECTS, KEY, ROOT, Chat, Reply, need
from service import PROGRAM, Case, code, counting, last_of, talk_of

TURNS = 20


class Service(Case):
    def test_one_question_of_each_dialect_runs_its_program_in_the_box(self) -> None:
        for dialect in DIALECTS:
            with self.subTest(dialect=dialect):
                fake = self.fake(dialect, counting())
                a = self.ask(fake, dialect, "What is the total?")
                self.assertEqual((a["status"], a["answer"], a["steps"]), ("answered", "The total is 1.", 2), fake.faults)
                self.assertEqual(a["cells"][0]["stdout"], "total is 1\n")
                self.assertEqual(a["usage"], {"in": 200, "cached": 0 if dialect == "ollama" else 128, "out": 40})
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
