"""The program itself, agent and box included, against the same strict servers. SANDBOOK names another program."""
import json
import re
import sqlite3
import subprocess

from fakes import DIALECTS, KEY, Chat, Fake, Reply, need
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

    def test_twenty_rough_turns_of_each_dialect_break_no_rule(self) -> None:
        """Programs that fail, calls cut by people, servers that die, a window that fills: what is sent stays what a strict server takes."""
        for dialect in DIALECTS:
            with self.subTest(dialect=dialect):
                self.rough_conversation(dialect)

    def rough_conversation(self, dialect: str) -> None:
        left: list[Reply] = []

        def script(body: dict) -> Reply:
            notes = "Shorten the earlier part" in last_of(body)
            reply = Reply(text="The notes.") if notes else left.pop(0) if left else Reply(text="Enough.")
            reply.usage = (len(talk_of(body)) // 4, 0, 20)
            return reply

        def thought(**said: object) -> Reply:
            return Reply(thinking="let me think", **said)  # type: ignore[arg-type]

        fake = self.fake(dialect, script)
        if isinstance(fake, Chat):
            fake.reasoning = "let me think"
        p = self.start(fake, "--set", f"service.data_dir={self.folder / dialect}", "--set", "model.house.context=9000", "--set", "model.house.max_output=1000", dialect=dialect)
        for n in range(1, TURNS + 1):
            kind = n % 5 if n < 6 or n % 5 < 3 else 1  # a stop and a dead server take seconds: one of each
            if kind == 1:
                left[:] = [thought(calls=[code("1/0")]), thought(text="Again.", calls=[code(f"print('row 123456 ' * 400, {n})")]), thought(text="Done.")]
            elif kind == 2:
                left[:] = [thought(calls=[code(f"print({n})"), code("print(x_unknown)"), code("print(3)")]), thought(text="Done.")]
            elif kind == 3:
                left[:] = [Reply(text="x" * 400, cut_after=300), thought(text="Done.")]
            elif kind == 4:
                left[:] = [thought(calls=[code("import time\ntime.sleep(60)")])]
            else:
                left[:] = [thought(text=""), thought(calls=[("no_such_tool", {"a": 1})]), thought(text="Done.")]
            self.assertEqual(self.stopped(p, str(n), fake) if kind == 4 else self.say(p, str(n), f"Question {n}?"), "Stopped by @ann. Variables and files are kept." if kind == 4 else "Done.",
                             (fake.faults, (self.folder / "log").read_text()[-1500:]))
        assert p.stdin
        p.stdin.close()
        self.assertEqual(p.wait(60), 0)
        self.assertEqual(fake.faults, [])
        self.assertTrue(any("The notes." in talk_of(r) or "left out to save space" in talk_of(r) for r in fake.requests), "nothing was shortened")

    def stopped(self, p: subprocess.Popen, event: str, fake: Fake) -> str | None:
        """A question, stopped once its cell runs; the answer to it."""
        assert p.stdin and p.stdout
        line = {"room": "r", "sender": "@ann", "mentioned": True}
        p.stdin.write(json.dumps(line | {"id": event, "text": "Wait a minute."}) + "\n")
        p.stdin.flush()
        for post in map(json.loads, p.stdout):
            if post.get("post") == "status" and "cell" in post.get("markdown", ""):
                p.stdin.write(json.dumps(line | {"id": f"stop-{event}", "text": "stop"}) + "\n")
                p.stdin.flush()
            elif post.get("post") == "answer" and post.get("reply_to") == event:
                return post["markdown"]
        return None

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

    def test_the_next_model_takes_over_where_the_first_one_fails(self) -> None:
        """In the middle of a turn, with other rules for histories; what the first one thought stays behind."""
        steps = iter([Reply(thinking="secret thought", calls=[code("print(6*7)")]), Reply(status=401, error={"error": {"message": "no"}})])
        first = self.fake("chat", lambda body: next(steps))
        first.reasoning = "secret thought"  # type: ignore[attr-defined]
        second = self.fake("anthropic", lambda body: Reply(text="It is 42."))
        other = [w for k, v in {"dialect": "anthropic", "url": second.url, "name": "m", "key_file": str(self.key_file)}.items() for w in ("--set", f"model.spare.{k}={v}")]
        a = self.ask(first, "chat", "Six times seven?", *other, "--set", "agent.fallback=builtin, house,spare")
        self.assertEqual((a["status"], a["answer"]), ("answered", "It is 42.\n\n*(Answered by the model `spare`: `house` could not be asked.)*"), self.log)
        self.assertEqual((len(first.requests), len(second.requests), second.faults), (2, 1, []))
        self.assertNotIn("secret thought", talk_of(second.requests[0]))
        self.assertIn("model_fallback", self.log)

    def test_what_each_model_cost_stands_under_its_own_name(self) -> None:
        left = [Reply(calls=[code("print(6*7)")], usage=(1000, 0, 100)), Reply(status=402, error={"error": {"message": "Insufficient credits"}})]
        first = self.fake("chat", lambda body: left.pop(0))
        second = self.fake("anthropic", lambda body: Reply(text="It is 42.", usage=(2000, 0, 10)))
        other = [w for k, v in {"dialect": "anthropic", "url": second.url, "name": "m", "key_file": str(self.key_file), "price_in": "3"}.items() for w in ("--set", f"model.spare.{k}={v}")]
        p = self.start(first, *other, "--set", "agent.fallback=spare", "--set", "model.house.price_in=1")
        self.assertIn("Answered by the model `spare`", self.say(p, "1", "Six times seven?") or "")
        rows = sqlite3.connect(self.folder / "data/sandbook.db").execute("SELECT model, tokens_in, tokens_out, cost FROM usage ORDER BY rowid").fetchall()
        self.assertEqual(rows, [("house", 1000, 100, 1000), ("spare", 2000, 10, 6000)])
        assert p.stdin
        p.stdin.close()
        self.assertEqual(p.wait(60), 0)

    def test_budgets_end_a_turn_and_a_day_in_words(self) -> None:
        fake = self.fake("anthropic", lambda body: Reply(text="Hello.", usage=(1000, 0, 500)))
        p = self.start(fake, "--set", "budget.person_tokens=9000", "--set", "model.house.price_in=2", "--set", "model.house.price_out=10", dialect="anthropic")
        said = [self.heard(p, str(n), "Hi") for n in range(8)]
        self.assertEqual(sum("%" in x for x in said), 1, said)  # told once, at 80 per cent
        self.assertLess(len(fake.requests), 8)
        self.assertIn("USD", self.heard(p, "u", "usage"))
        self.assertIn("42", self.heard(p, "c", "```python\n6*7\n```"))

    def heard(self, p: subprocess.Popen, event: str, text: str) -> str:
        """All that is posted up to the first answer or, for a command, notice."""
        assert p.stdin and p.stdout
        p.stdin.write(json.dumps({"id": event, "room": "r", "sender": "@ann", "mentioned": True, "text": text}) + "\n")
        p.stdin.flush()
        said = ""
        for post in map(json.loads, p.stdout):
            said += post.get("markdown", "") if post.get("post") in ("answer", "notice") else ""
            if post.get("post") == "answer" or (said and text == "usage"):
                break
        return said

    def test_a_wrong_key_fails_at_once_with_words(self) -> None:
        fake = self.fake("anthropic", lambda body: Reply(text="x"), key="another")
        a = self.ask(fake, "anthropic", "Hi")
        self.assertEqual(a["status"], "failed")
        self.assertTrue(a["answer"])
        self.assertEqual(len(fake.headers), 1)


if __name__ == "__main__":
    unittest.main()
