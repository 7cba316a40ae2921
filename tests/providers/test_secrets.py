"""Secrets of the configuration are in no log at the most talkative level, in no answer, in nothing that is kept, and in nothing that goes elsewhere."""
import json
import sqlite3
import unittest

from database import READER_PASSWORD, Postgres
from fakes import DIALECTS, Reply
from service import code
from test_tools import SCHEMA, SECRET, Office, Tools

MODEL_KEY = "sk-model-Key-93f2c1"


class Secrets(Tools):
    """One service per dialect: good calls, refused ones, a wrong key, echoes of the key, cut answers, broken services."""

    def options(self, office: Office, dsn: str | None) -> list[str]:
        shop = self.folder / "shop.db"
        sqlite3.connect(shop).execute("CREATE TABLE t(x)").connection.close()
        found = ["--set", "service.log_level=debug", *self.section("database", "files", path=str(shop))]
        found += self.section("tool", "office", description="Knows.", schema=SCHEMA, url=office.url + "/{city}", secret_file=self.secret("tool", SECRET))
        if dsn:
            found += self.section("database", "shop", kind="postgres", dsn_file=self.secret("dsn", dsn))
        return found

    def everything(self) -> dict[str, bytes]:
        """All that the service wrote: its log, its store, its files."""
        return {str(p): p.read_bytes() for p in [self.folder / "log", *(self.folder / "data").rglob("*")] if p.is_file()}

    def check(self, dialect: str, dsn: str | None) -> None:
        echo = f"you sent {SECRET}"
        office = Office(lambda r: (500 if r["path"] == "/bad" else 200, {"x-echo": SECRET}, echo.encode()))
        self.addCleanup(office.close)
        database = {"database": "shop", "sql": "SELECT nothing FROM nowhere"}
        steps = [Reply(calls=[("office", {"city": "good"})]), Reply(calls=[("office", {"city": "bad"})]), Reply(text="Done."),
                 Reply(calls=[("query_database", database)]), Reply(text="Done."),
                 Reply(calls=[code("import os; print(os.environ); print(open('/proc/self/environ').read())")]), Reply(text="Done."),
                 Reply(status=400, error={"error": {"message": f"odd request with {MODEL_KEY}"}}), Reply(status=401, error={"error": {"message": f"Incorrect API key provided: {MODEL_KEY}"}}),
                 Reply(text="x" * 400, cut_after=100), Reply(text="Done.")]
        left = iter(steps)
        fake = self.fake(dialect, lambda body: next(left, Reply(text="Done.")), key=MODEL_KEY)
        self.key_file.write_text(MODEL_KEY + "\n")
        p = self.start(fake, *self.options(office, dsn), dialect=dialect)
        for i in range(6):
            self.assertIsNotNone(self.say(p, str(i), f"Question {i} about data: how many?"))
        p.stdin.close()
        shown = p.stdout.read()
        self.assertEqual(p.wait(60), 0)
        self.assertIn(SECRET, office.requests[1]["headers"]["authorization"])  # it is used, at least
        self.assertTrue(any(MODEL_KEY in v for v in fake.headers[-1].values()))
        kept = self.everything()
        self.assertTrue(any(k.endswith("sandbook.db") for k in kept))
        self.assertIn(b"level=debug", kept[str(self.folder / "log")])
        elsewhere = {"answers": shown.encode(), "to the model": json.dumps(fake.requests).encode(), "to the office": json.dumps([r["target"] + r["body"] for r in office.requests]).encode()}
        for where, content in (kept | elsewhere).items():
            for word in (SECRET, READER_PASSWORD, MODEL_KEY, "wrong-Pw-7"):
                self.assertNotIn(word.encode(), content, f"{word} is in {where} ({dialect})")

    def test_no_secret_is_logged_kept_shown_or_sent_elsewhere(self) -> None:
        for dialect in DIALECTS:
            with self.subTest(dialect=dialect):
                self.setUp()
                self.check(dialect, "host=/nonexistent user=reader password=wrong-Pw-7")

    def test_nor_the_password_of_a_database_that_answers(self) -> None:
        server = Postgres()
        self.addCleanup(server.close)
        server.sql(f"CREATE ROLE reader LOGIN PASSWORD '{READER_PASSWORD}'")
        self.check("chat", server.dsn())


del Tools

if __name__ == "__main__":
    unittest.main()
