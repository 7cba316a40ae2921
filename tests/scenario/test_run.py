"""`sandbook run` as a service: scripted conversations over JSON lines, restarts included. The model is `replay`."""
import json
import os
import random
import signal
import socket
import subprocess
import urllib.error
import urllib.request
from pathlib import Path

from sandbook import PROGRAM, REAL, Case, run


class Service:
    """One life of the daemon. Events go in, posts come out, as lines; nothing here waits for time to pass."""

    def __init__(self, data_dir: str, conf: Path, *settings: str, closed: str = "", **env: str) -> None:
        """closed: what a shell does to its descriptors, such as 2>&-."""
        words = [PROGRAM, "run", "-c", str(conf), "--set", f"service.data_dir={data_dir}", "--set", "local.stdio=yes"]
        words += [w for s in settings for w in ("--set", s)]
        if closed:
            words = ["sh", "-c", f'exec "$@" {closed}', "sh", *words]
        self.p = subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=os.environ | env)
        self.seen: list[dict] = []

    def send(self, **event: object) -> None:
        assert self.p.stdin
        self.p.stdin.write(json.dumps({"room": "r", "sender": "@ann", "mentioned": True} | event) + "\n")
        self.p.stdin.flush()

    def until(self, wanted) -> dict:
        """The next line that wanted() likes; AssertionError with the log when the daemon ends first."""
        assert self.p.stdout
        for line in self.p.stdout:
            self.seen.append(json.loads(line))
            if wanted(self.seen[-1]):
                return self.seen[-1]
        raise AssertionError(f"the daemon ended: {self.p.stderr.read() if self.p.stderr else ''}")

    def answer(self) -> dict:
        return self.until(lambda x: x.get("post") == "answer")

    def kill(self) -> None:
        self.p.send_signal(signal.SIGKILL)
        self.end()

    def end(self) -> list[dict]:
        """Closes stdin, reads what is left, returns all lines of this life."""
        out, _ = self.p.communicate(timeout=120)
        for line in out.splitlines():
            if line.startswith("{"):
                try:
                    self.seen.append(json.loads(line))
                except json.JSONDecodeError:
                    pass  # a line that the kill cut
        return self.seen


def call(code: str) -> dict:
    return {"calls": [{"name": "run_python", "args": {"code": code}}]}


class Confined(Case):
    def test_the_service_and_its_keeper_have_filters_and_answer(self) -> None:
        conf = Path(self.out, "conf")
        conf.write_text("[agent]\nmodel = builtin\n")
        s = Service(str(Path(self.out, "data")), conf)
        self.addCleanup(lambda: s.p.poll() is None and s.kill())
        s.send(id="1", text="```python\nprint(6 * 7)\n```")
        self.assertIn("42", s.answer()["markdown"])
        keepers = [p for p in Path("/proc").glob("[0-9]*/status") if f"\nPPid:\t{s.p.pid}\n" in (text := p.read_text()) and text.startswith("Name:\tsandbook-box\n")]
        self.assertEqual(len(keepers), 1)
        for status in (Path(f"/proc/{s.p.pid}/status"), keepers[0]):
            facts = dict(line.split(":\t", 1) for line in status.read_text().splitlines() if ":\t" in line)
            self.assertEqual((facts["NoNewPrivs"], facts["Seccomp"]), ("1", "2"), status)
        s.end()
        self.assertEqual(s.p.returncode, 0)


class Conversations(Case):
    def service(self, *answers: dict, data: str = "data", settings: tuple[str, ...] = (), closed: str = "", **env: str) -> Service:
        recording = Path(self.out, "replay.jsonl")
        recording.write_text("".join(json.dumps(a) + "\n" for a in answers))
        conf = Path(self.out, "conf")
        conf.write_text(f"[agent]\nmodel = recorded\n[model recorded]\ndialect = replay\nurl = {recording}\n")
        s = Service(str(Path(self.out, data)), conf, *settings, closed=closed, **env)
        self.addCleanup(lambda: s.p.poll() is None and s.kill())
        return s

    def test_variables_live_from_turn_to_turn_and_not_in_another_room(self) -> None:
        s = self.service(call("x = 41"), {"text": "set"}, call("print(x + 1)"), {"text": "42"}, call("print(x)"), {"text": "unknown"})
        s.send(id="1", text="x is 41")
        self.assertEqual(s.answer()["markdown"], "set")
        s.send(id="2", text="x plus one?")
        self.assertEqual(s.answer()["markdown"], "42")
        s.send(id="3", room="other", text="x?")
        self.assertEqual(s.answer()["markdown"], "unknown")
        s.end()

    def test_a_failed_cell_is_repaired_and_the_chart_delivered_once(self) -> None:
        good = "import matplotlib.pyplot as plt\nplt.plot([1, 2]); plt.title('t'); plt.savefig('t.png')"
        s = self.service(call("1/0"), call(good), {"text": "done"})
        s.send(id="1", text="plot")
        post = s.answer()
        self.assertEqual((post["markdown"], len(post["figures"])), ("done", 1))
        self.assert_png(post["figures"][0])
        s.end()

    def test_files_reach_the_session_before_or_with_the_question(self) -> None:
        rows = call("import pandas as pd\nprint(len(pd.read_csv('tips.csv')))")
        s = self.service(rows, {"text": "244"}, rows, {"text": "244"})
        s.send(id="1", room="a", text="", files=[{"path": str(REAL / "tips.csv")}])
        s.send(id="2", room="a", text="rows?")
        self.assertEqual(s.until(lambda x: x.get("post") == "answer" and x["reply_to"] == "2")["markdown"], "244")
        s.send(id="3", room="b", text="rows?", files=[{"path": str(REAL / "tips.csv"), "name": "tips.csv"}])
        self.assertEqual(s.until(lambda x: x.get("post") == "answer" and x["reply_to"] == "3")["markdown"], "244")
        s.end()

    def test_the_same_event_many_times_is_one_answer(self) -> None:
        s = self.service({"text": "once"}, {"text": "twice"})
        for _ in range(3):
            s.send(id="1", text="hello")
        lines = s.end()
        self.assertEqual(sum(x.get("post") == "answer" for x in lines), 1)
        self.assertEqual(sum("accepted" in x for x in lines), 3)

    def test_a_killed_daemon_loses_and_repeats_nothing(self) -> None:
        pick = random.Random(7)
        wanted = [str(n) for n in range(24)]
        kept: set[str] = set()
        posts: dict[str, set[str]] = {}
        for _ in range(8):  # lives that end in a kill, then one that ends well
            self.live(wanted, kept, posts, pick.randrange(1, 6))
        self.live(wanted, kept, posts, None)
        for n in wanted:
            told = posts.get(n, set())
            self.assertEqual(len({t for t in told if ":answer" in t} or told), 1, (n, told))

    def live(self, wanted: list[str], kept: set[str], posts: dict[str, set[str]], lines: int | None) -> None:
        s = self.service(*[{"text": "ok"}] * 60)
        for n in wanted:
            if n not in kept:
                s.send(id=n, room=f"room{int(n) % 4}", sender=f"@person{int(n) % 5}", text=f"question {n}")
        if lines is not None:
            for _ in range(lines):
                s.until(lambda x: True)
            s.kill()
        else:
            s.end()
            self.assertEqual(s.p.returncode, 0)
        for x in s.seen:
            if "accepted" in x:
                kept.add(x["accepted"])
            if x.get("post") in ("answer", "notice") and x.get("reply_to"):
                posts.setdefault(x["reply_to"], set()).add(x["txn"])

    def test_a_second_daemon_on_the_same_data_is_refused(self) -> None:
        s = self.service({"text": "ok"})
        s.send(id="1", text="hello")
        s.answer()
        p = run("run", "--set", f"service.data_dir={Path(self.out, 'data')}", "--set", "local.stdio=yes")
        self.assertEqual(p.returncode, 2)
        self.assertIn(str(s.p.pid), p.stderr)
        s.end()

    def test_nothing_is_left_of_a_killed_daemon(self) -> None:
        s = self.service(call("import subprocess\nsubprocess.Popen(['sleep', '87654'])\nprint('started')"), {"text": "ok", "delay_ms": 60000})
        s.send(id="1", text="go")
        s.until(lambda x: "accepted" in x)
        s.kill()
        again = self.service({"text": "ok"})
        again.send(id="2", text="hello")
        again.until(lambda x: x.get("post") == "answer" and x["reply_to"] == "2")
        again.end()
        left = [p for p in Path("/proc").iterdir() if p.name.isdigit() and self.is_stray(p)]
        self.assertEqual(left, [])

    def test_a_closed_log_costs_nothing(self) -> None:
        """What is written to a standard descriptor that was closed must not land in a file that got its number."""
        s = self.service({"text": "ok"}, closed="2>&-")
        s.send(id="1", text="hello")
        self.assertEqual(s.answer()["markdown"], "ok")
        s.end()
        self.assertEqual(s.p.returncode, 0)
        again = self.service({"text": "ok"})
        again.send(id="2", text="hello")
        again.answer()
        again.end()

    def test_it_tells_who_watches_how_it_is(self) -> None:
        """systemd by datagrams, a monitor by HTTP."""
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as systemd, socket.socket() as taken:
            systemd.bind(str(Path(self.out, "notify")))
            systemd.settimeout(60)
            taken.bind(("127.0.0.1", 0))
            port = taken.getsockname()[1]
            taken.close()
            s = self.service(call("print(1)"), {"text": "ok"}, settings=(f"status.listen=127.0.0.1:{port}",), NOTIFY_SOCKET=str(Path(self.out, "notify")))
            self.assertEqual(systemd.recv(200), b"READY=1\nSTATUS=answering")
            self.assertEqual(self.get(port, "/health"), (200, '{"live":true,"ready":true}\n'))
            s.send(id="1", text="a-secret-word")
            s.answer()
            status, text = self.get(port, "/metrics")
            self.assertEqual(status, 200)
            for line in ('sandbook_turns_total{status="answered"} 1', 'sandbook_cells_total{verdict="ok"} 1', 'sandbook_chat_events_total{platform="local"} 1', "sandbook_sessions 1"):
                self.assertIn(f"\n{line}\n", text)
            for word in ("a-secret-word", "@ann", self.out):
                self.assertNotIn(word, text)
            s.p.send_signal(signal.SIGHUP)  # as SIGTERM: variables are written down
            self.assertEqual(systemd.recv(200), b"STOPPING=1\nSTATUS=writing down variables")
            s.end()
            self.assertEqual(s.p.returncode, 0)

    @staticmethod
    def get(port: int, path: str) -> tuple[int, str]:
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{port}{path}", timeout=60) as answer:
                return answer.status, answer.read().decode()
        except urllib.error.HTTPError as refusal:
            return refusal.code, refusal.read().decode()

    @staticmethod
    def is_stray(process: Path) -> bool:
        try:
            return b"sleep\x0087654" in (process / "cmdline").read_bytes()
        except OSError:
            return False


