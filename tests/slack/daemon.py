"""The program as a service beside the fake Slack. Nothing here waits for time to pass: tests wait for what they can see."""
import json
import os
import shutil
import signal
import subprocess
import tempfile
import threading
import time
import unittest
from pathlib import Path

from fake import FakeSlack

ROOT = Path(__file__).resolve().parents[2]
PROGRAM = os.environ.get("SANDBOOK", str(ROOT / "build/sandbook"))
REAL = ROOT / "tests/data/real"


class Daemon:
    """One life of it, its log read as it comes."""

    def __init__(self, fake: FakeSlack, folder: Path, *settings: str, recording: list[dict] | None = None, socket_mode: bool = True, http: bool = False) -> None:
        self.fake, self.folder = fake, folder
        self.log: list[str] = []
        self.seen = threading.Condition()
        conf = folder / "sandbook.conf"
        lines = ["[service]", f"data_dir = {folder}/data", "log_level = info", "[slack]", f"api_url = {fake.url}/api/", f"file_hosts = 127.0.0.1:{fake.port}", "follow_hosts =", "backoff_max = 300ms"]
        lines.append(f"bot_token_file = {self.secret('bot', next(iter(fake.tokens)))}")
        if socket_mode:
            lines.append(f"app_token_file = {self.secret('app', fake.app_token)}")
        if http:
            lines += [f"signing_secret_file = {self.secret('sign', fake.signing_secret)}", "listen = 127.0.0.1:0"]
        if recording is not None:
            (folder / "replay.jsonl").write_text("".join(json.dumps(r) + "\n" for r in recording))
            lines += ["[agent]", "model = recorded", "[model recorded]", "dialect = replay", f"url = {folder}/replay.jsonl"]
        conf.write_text("\n".join(lines) + "\n")
        words = [PROGRAM, "run", "-c", str(conf)] + [w for s in settings for w in ("--set", s)]
        self.p = subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        self.reader = threading.Thread(target=self.read, daemon=True)
        self.reader.start()

    def secret(self, name: str, value: str) -> Path:
        path = self.folder / name
        path.write_text(value + "\n")
        path.chmod(0o600)
        return path

    def read(self) -> None:
        assert self.p.stderr
        for line in self.p.stderr:
            with self.seen:
                self.log.append(line.rstrip())
                self.seen.notify_all()
        with self.seen:
            self.log.append("event=ended")
            self.seen.notify_all()

    def until(self, event: str, n: int = 1, timeout: float = 90) -> str:
        """The n-th line of the log with that event."""
        give_up = time.monotonic() + timeout
        with self.seen:
            while True:
                found = [line for line in self.log if f"event={event} " in line + " "]
                if len(found) >= n:
                    return found[n - 1]
                if self.log and self.log[-1] == "event=ended":
                    raise AssertionError("the daemon ended:\n" + "\n".join(self.log[-20:]))
                if not self.seen.wait(give_up - time.monotonic()):
                    raise AssertionError(f"no {event} in the log:\n" + "\n".join(self.log[-20:]))

    def kill(self) -> None:
        self.p.send_signal(signal.SIGKILL)
        self.p.wait()
        self.close()

    def close(self) -> None:
        self.reader.join()
        assert self.p.stderr
        self.p.stderr.close()

    def end(self) -> None:
        if self.p.poll() is None:
            self.p.terminate()
            try:
                self.p.wait(30)
            except subprocess.TimeoutExpired:
                self.kill()
                return
        self.close()

    def fds(self) -> int:
        return len(os.listdir(f"/proc/{self.p.pid}/fd"))

    def rss_kb(self) -> int:
        return int(next(x for x in Path(f"/proc/{self.p.pid}/status").read_text().splitlines() if x.startswith("VmRSS")).split()[1])


class Case(unittest.TestCase):
    """A fake and a daemon of the test's own; what the fake complained about fails the test."""

    def setUp(self) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="sandbook-slack-"))
        self.addCleanup(shutil.rmtree, self.folder, ignore_errors=True)
        self.slack = FakeSlack()
        self.addCleanup(self.slack.close)
        self.daemons: list[Daemon] = []
        self.addCleanup(self.check)

    def check(self) -> None:
        for d in self.daemons:
            d.end()
        self.assertEqual(self.slack.complaints, [])
        logs = "\n".join(line for d in self.daemons for line in d.log)
        for secret in ("xoxb-", "xapp-", "xoxe", "ticket=", "/upload/v1/"):
            self.assertNotIn(secret, logs)
        self.assertNotIn("Sanitizer", logs)

    def run_daemon(self, *settings: str, online: bool = True, **more) -> Daemon:
        d = Daemon(self.slack, self.folder, *settings, **more)
        self.daemons.append(d)
        if online:
            d.until("slack_online")
        return d

    # ---- what people see ----
    def answers(self, channel: str, thread: str, words: str = "") -> list[dict]:
        return [m for m in self.slack.said(channel, thread) if not m.get("files") and words in self.slack.text_of(m)]

    def answer(self, channel: str, thread: str, words: str, timeout: float = 90) -> dict:
        return self.slack.until(lambda: next(iter(self.answers(channel, thread, words)), None), timeout, f"an answer with {words!r}")

    def all_acked(self, timeout: float = 60) -> None:
        """Every event was acknowledged, in one of its envelopes."""

        def missing() -> set[str]:
            acked = {e["payload"]["event_id"] for e in self.slack.envelopes.values() if e["acks"]}
            return {e["payload"]["event_id"] for e in self.slack.envelopes.values()} - acked

        self.slack.until(lambda: not missing(), timeout, "every event to be acknowledged")

    def calls(self, method: str) -> list[dict]:
        return [c for c in self.slack.calls if c["method"] == method]


def python(code: str) -> str:
    """A person's own program: run as it is, without a model. As Slack sends it."""
    return "```python\n" + code.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;") + "\n```"
