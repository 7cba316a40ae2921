"""The daemon under test as a Matrix bot."""
import itertools
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests/scenario"))
from sandbook import PROGRAM  # noqa: E402
from synapse import Person, Refused, Synapse  # noqa: E402


FULL = os.environ.get("SANDBOOK_MATRIX_FULL") == "1"  # also what takes longer than it tells
longer = unittest.skipUnless(FULL, "SANDBOOK_MATRIX_FULL=1 runs it")


def call(code: str) -> dict:
    return {"calls": [{"name": "run_python", "args": {"code": code}}]}


class Bot:
    """One data folder; start() and kill() are lives of the daemon on it."""

    def __init__(self, server: Synapse, answers: list[dict], url: str | None = None, account: Person | None = None, **settings: str) -> None:
        self.server, self.account = server, account or server.register("bot")
        self.user = self.account.user
        self.env: dict[str, str] = {}
        self.folder = Path(tempfile.mkdtemp(prefix="sandbook-bot-"))
        self.recording = self.folder / "replay.jsonl"
        self.answers(*answers)
        password = self.folder / "password"
        password.write_text(self.account.password)
        password.chmod(0o600)
        rows = {"homeserver": url or server.url, "user": self.user, "password_file": str(password)} | settings
        rows = {k: v for k, v in rows.items() if v}
        self.conf = self.folder / "conf"
        model = f"[agent]\nmodel = recorded\n[model recorded]\ndialect = replay\nurl = {self.recording}\n" if answers else ""
        self.conf.write_text(f"[service]\ndata_dir = {self.folder}/data\nlog_level = debug\n{model}[matrix]\n" +
                             "".join(f"{k} = {v}\n" for k, v in rows.items()))
        self.log: list[str] = []
        self.life = 0
        self.came = threading.Condition()
        self.process: subprocess.Popen | None = None

    def answers(self, *answers: dict) -> None:
        """What the model says in the next life; a recording begins anew with each."""
        self.recording.write_text("".join(json.dumps(a) + "\n" for a in answers))

    def start(self, wait: str = "matrix_logged_in") -> "Bot":
        self.process = subprocess.Popen([PROGRAM, "run", "-c", str(self.conf)], stdin=subprocess.DEVNULL, stderr=subprocess.PIPE,
                                        stdout=subprocess.DEVNULL, text=True, env=os.environ | self.env)
        begun = self.life = len(self.log)
        self.reader = threading.Thread(target=self._read, args=(self.process,), daemon=True)
        self.reader.start()
        if wait:
            self.logged(wait, begun)
        return self

    def _read(self, process: subprocess.Popen) -> None:
        for line in process.stderr or ():
            with self.came:
                self.log.append(line.rstrip("\n"))
                self.came.notify_all()
        process.stderr.close()
        with self.came:
            self.log.append("(ended)")
            self.came.notify_all()

    def logged(self, word: str, since: int | None = None, seconds: float = 90, times: int = 1) -> str:
        """The first line with that word in this life, or the one with which there are so many, waiting for it."""
        since = self.life if since is None else since
        def found() -> str | None:
            return next(itertools.islice((line for line in self.log[since:] if word in line), times - 1, None), None)
        with self.came:
            if not self.came.wait_for(lambda: found() or "(ended)" in self.log[since:], seconds) or not found():
                raise AssertionError(f"{word} was not logged:\n" + "\n".join(self.log[-40:]))
            return found()

    def command(self, *words: str) -> dict:
        """`sandbook matrix`, as an operator would."""
        done = subprocess.run([PROGRAM, "matrix", "--json", "-c", str(self.conf), "--set", "service.log_level=warn", *words],
                              capture_output=True, text=True, timeout=150, check=False)
        if done.returncode != 0 or not done.stdout:
            raise AssertionError(f"matrix {words}: {done.returncode} {done.stdout} {done.stderr}")
        return json.loads(done.stdout)

    def until(self, wanted, seconds: float = 60) -> None:
        """For what the server knows and nobody is told: asked again and again."""
        end = time.monotonic() + seconds
        while not wanted():
            if time.monotonic() > end:
                raise AssertionError("it never was so:\n" + "\n".join(self.log[-20:]))
            self.account.sync(200)

    def has(self, method: str, path: str) -> bool:
        try:
            return bool(self.account.call(method, path))
        except Refused:
            return False

    def cpu_s(self) -> float:
        """What it has taken of a processor in this life: says the same on a busy machine."""
        told = Path(f"/proc/{self.process.pid}/stat").read_text().rsplit(")", 1)[1].split()
        return (int(told[11]) + int(told[12])) / os.sysconf("SC_CLK_TCK")

    def forget(self) -> None:
        """Its data folder is lost."""
        shutil.rmtree(self.folder / "data")

    def kill(self) -> None:
        if self.process and self.process.poll() is None:
            self.process.send_signal(signal.SIGKILL)
        if self.process:
            self.process.wait(60)
            self.reader.join(60)  # its last words belong to this life

    def stop(self) -> int:
        self.process.send_signal(signal.SIGTERM)
        status = self.process.wait(60)
        self.reader.join(60)
        return status

    def close(self) -> None:
        self.kill()
        shutil.rmtree(self.folder, ignore_errors=True)


class Case(unittest.TestCase):
    """A test file shares one Synapse; each test has people and rooms of its own."""
    server: Synapse
    extra = ""

    @classmethod
    def setUpClass(cls) -> None:
        cls.server = Synapse(cls.extra)
        cls.addClassCleanup(cls.server.close)

    def bot(self, *answers: dict, start: bool = True, **settings: str) -> Bot:
        bot = Bot(self.server, list(answers), **settings)
        self.addCleanup(bot.close)
        return bot.start() if start else bot

    def person(self, name: str = "ann") -> Person:
        return self.server.register(name)

    def group(self, bot: Bot, *people: Person, **options: object) -> tuple[Person, str]:
        """A room of three, the bot in it."""
        ann = people[0] if people else self.person()
        others = people[1:] or (self.person("bea"),)
        room = ann.room(bot.user, *(p.user for p in others), **options)
        for p in others:
            p.call("POST", p.at(room, "join"), {})
        self.until_joined(ann, room, bot)
        return ann, room

    def until_joined(self, ann: Person, room: str, bot: Bot) -> None:
        ann.until(room, lambda e: e["type"] == "m.room.member" and e["state_key"] == bot.user and e["content"]["membership"] == "join")

    def direct(self, bot: Bot) -> tuple[Person, str]:
        ann = self.person()
        room = ann.room(bot.user, is_direct=True, preset="trusted_private_chat")
        self.until_joined(ann, room, bot)
        return ann, room

    def answer(self, ann: Person, room: str, bot: Bot, question: str | None = None) -> dict:
        return ann.until(room, lambda e: is_answer(e, bot, question))


def is_answer(event: dict, bot: Bot, question: str | None = None) -> bool:
    return (event["sender"] == bot.user and event["type"] == "m.room.message" and event["content"].get("msgtype") == "m.text" and
            (question is None or event["content"].get("org.sandbook.re") == question))
