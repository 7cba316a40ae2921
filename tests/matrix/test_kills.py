"""Killed with SIGKILL at each point where it would hurt, in an encrypted room: every question is answered once, no index of a key is used
twice, all of it can be read.

`make check` kills at one point of each kind; with SANDBOOK_MATRIX_FULL=1, as .ci/run sets it, each point has twenty questions of its own."""
import os
import random
import signal
import subprocess
import tempfile
import threading
import time
import unittest
from collections.abc import Callable
from pathlib import Path

from bot import Bot, call, longer
from encrypted import API, Encrypted, index_of
from jspeer import JsPerson
from linepeer import Peer
from proxy import Call, Proxy
from synapse import HERE

CSV = "region,amount\nnorth,10\n"
# A picture with a small one beside it, and a file made of the one that came.
FILES = call("""import numpy as np
from PIL import Image
open('copy.csv', 'w').write(open('sales.csv').read() * 2)
Image.fromarray(np.full((700, 900, 3), 90, np.uint8))""")


COMMITS = 20  # a turn has fewer
ONCE = ("after_sync_recv after_key_recv after_encrypt after_put_before_ack key_not_sent key_sent_before_ack after_otk_gen after_otk_upload "
        "refresh_before after_refresh_recv").split()
DEVICES = "query_before query_after claim_before claim_after".split()  # each death wants a new device of his
UPLOADS = [f"mid_upload_{n}{after}" for n in (1, 2, 3) for after in ("", "_after")]
DOWNLOADS = ["mid_download", "mid_download_after"]


class Victim:
    """A bot that dies where it is told to."""

    def __init__(self, case: "Kills", killer: Path, **answers: object) -> None:
        self.case = case
        self.proxy = Proxy(case.server.port)
        case.addCleanup(self.proxy.close)
        self.bot: Bot = case.bot(start=False, url=self.proxy.url, **answers)
        self.killer = self.bot.folder / "kill"
        self.bot.env = {"LD_PRELOAD": str(killer), "KILLER_FILE": str(self.killer)}
        self.deaths = 0

    def commit(self, when: str, n: int) -> None:
        self.killer.with_suffix(".new").write_text(f"{when} {n}")
        self.killer.with_suffix(".new").rename(self.killer)

    def on(self, pattern: str, after: bool, wanted: Callable[[Call, bytes], bool] = lambda call, data: True) -> None:
        """after: the server has done what it was asked for, and the bot will never hear of it."""
        def die(call: Call) -> None:
            if wanted(call, call.got[1]):
                rule.off()
                self.bot.process.kill()
                call.lose()
        rule = self.proxy.on(pattern, die, late=after)

    def on_sync(self, room: str) -> None:
        """It was told of a message, and did nothing about it yet."""
        self.on("GET .*/sync$", True, lambda call, data: room.encode() in data and b"m.room.encrypted" in data)

    def on_key(self) -> None:
        self.on("GET .*/sync$", True, lambda call, data: b'"to_device"' in data and b"m.olm.v1" in data)

    def dies(self, seconds: float = 120) -> bool:
        """False: not of this. Where a machine is so busy that no box is ready in a minute it ends by itself, and is started again."""
        status = self.bot.process.wait(seconds)
        self.bot.kill()
        if self.gave_up():
            return False
        if status != -signal.SIGKILL:
            raise AssertionError(f"it ended by itself, {status}:\n" + "\n".join(self.bot.log[-40:]))
        self.deaths += 1
        self.killer.unlink(missing_ok=True)
        return True

    def gave_up(self) -> bool:
        return self.bot.process.poll() is not None and any("keeper was not ready in time" in line for line in self.bot.log[self.bot.life:])

    def starts(self) -> None:
        self.bot.start(wait="")


class Kills(Encrypted):
    extra = "refreshable_access_token_lifetime: 5s\nrefresh_token_lifetime: 24h\n"
    killer: Path
    dan: JsPerson
    checked: set[str]  # what assert_once() has seen

    @classmethod
    def setUpClass(cls) -> None:
        super().setUpClass()
        folder = tempfile.TemporaryDirectory(prefix="sandbook-killer-")
        cls.addClassCleanup(folder.cleanup)
        cls.killer = Path(folder.name) / "killer.so"
        subprocess.run(["cc", "-std=c17", "-D_GNU_SOURCE", "-O1", "-fPIC", "-shared", "-o", str(cls.killer), str(HERE / "killer.c")], check=True)

    def victim(self, *answers: dict, **settings: str) -> tuple[Victim, JsPerson, str]:
        """Up, with a room whose key is new after every third message, and one question answered."""
        victim = Victim(self, self.killer, msgtype="text", **settings)
        conf = victim.bot.conf.read_text()
        victim.bot.conf.write_text(f"[agent]\nmodel = recorded\n[model recorded]\ndialect = replay\nurl = {victim.bot.recording}\n" + conf)
        victim.bot.answers({"text": "an answer"})
        victim.starts()
        victim.bot.logged("matrix_synced")
        ann = self.js()
        self.dan = self.js("dan", identity=False)  # whose new devices get keys although nobody signs them
        room = self.room(ann, victim.bot, self.dan, encryption={"rotation_period_msgs": 3})
        self.ask(ann, victim.bot, room, "hello")
        self.checked = {e["event_id"] for e in ann.account.history(room)}
        victim.bot.stop()
        victim.bot.answers(*(list(answers) or [{"text": "an answer"}]) * 100)
        victim.starts()
        victim.bot.logged("matrix_synced")
        return victim, ann, room

    def answer(self, ann: Peer, bot: Bot, question: str, seconds: float = 150) -> dict:
        try:
            return super().answer(ann, bot, question, seconds)
        except AssertionError as e:
            raise AssertionError(f"{e}\n" + "\n".join(line for line in bot.log[-200:] if "box_state" not in line)) from e

    def served(self, victim: Victim, ann: Peer, question: str) -> None:
        """Its answer, from a service that is started again where the machine was too busy for it."""
        end = time.monotonic() + 300
        while True:
            try:
                self.answer(ann, victim.bot, question, 60)
                return
            except AssertionError:
                if time.monotonic() > end:
                    raise
                if victim.gave_up():
                    victim.starts()

    def take_one_time_key(self, victim: Victim, ann: JsPerson) -> None:
        """Somebody begins a channel: one key fewer, so that the bot makes another."""
        body = {"one_time_keys": {victim.bot.user: {self.device_of_store(victim): "signed_curve25519"}}}
        ann.account.call("POST", f"{API}/keys/claim", body)

    def device_of_store(self, victim: Victim) -> str:
        return next(line for line in victim.bot.log if "matrix_logged_in" in line).split("device=")[1].split()[0]

    def points(self, victim: Victim, ann: JsPerson, room: str) -> dict[str, Callable[[], None]]:
        """By name: what makes it die there at its next chance. What has to happen for the chance to come happens too."""
        def put(kind: str, after: bool) -> Callable[[], None]:
            return lambda: victim.on(f"PUT .*/{kind}/", after)

        def share(after: bool) -> Callable[[], None]:
            def arm() -> None:
                victim.bot.logged("matrix_synced")  # before that it has no keys
                victim.bot.command("rotate", room)
                victim.on("PUT .*/sendToDevice/m.room.encrypted/", after)
            return arm

        def up(n: int, after: bool) -> Callable[[], None]:
            def arm() -> None:
                seen = iter(range(n))
                victim.on("POST .*/media/v3/upload$", after, lambda call, data: next(seen, n) == n - 1)
            return arm

        def device(what: str, after: bool) -> Callable[[], None]:
            def arm() -> None:
                victim.on(f"POST .*/keys/{what}$", after)
                self.js(identity=False, account=self.dan.account)
            return arm

        def upload(after: bool) -> Callable[[], None]:
            def arm() -> None:
                victim.on("POST .*/keys/upload$", after)
                self.take_one_time_key(victim, ann)
            return arm

        def key_came() -> None:
            victim.on_key()
            ann.do("discard", room=room)
        return {
            "after_sync_recv": lambda: victim.on_sync(room), "after_key_recv": key_came,
            "after_encrypt": put("send/m.room.encrypted", False), "after_put_before_ack": put("send/m.room.encrypted", True),
            "key_not_sent": share(False), "key_sent_before_ack": share(True),
            "after_otk_gen": upload(False), "after_otk_upload": upload(True),
            "query_before": device("query", False), "query_after": device("query", True),
            "claim_before": device("claim", False), "claim_after": device("claim", True),
            "refresh_before": lambda: victim.on("POST .*/refresh$", False), "after_refresh_recv": lambda: victim.on("POST .*/refresh$", True),
            "mid_download": lambda: victim.on("GET .*/media/download/", False), "mid_download_after": lambda: victim.on("GET .*/media/download/", True),
        } | {name: up(int(name.split("_")[2]), name.endswith("_after")) for name in UPLOADS} | {
            f"{when}_commit_{n}": (lambda w=when, k=n: victim.commit(w, k)) for when in ("before", "after") for n in range(1, COMMITS + 1)}

    def dies(self, victim: Victim, ann: JsPerson, room: str, point: str) -> None:
        """Somebody does something in the room now and then: what a point waits for may come with the next /sync only."""
        for _ in range(40):
            try:
                if victim.dies(3):
                    return
                victim.starts()
            except subprocess.TimeoutExpired:
                ann.do("send", room=room, type="org.example.nudge", content={})
        raise AssertionError(f"it never came to {point}:\n" + "\n".join(victim.bot.log[-30:]))

    def goes_through(self, victim: Victim, ann: JsPerson, room: str, plan: list[str], prompts: int = 20) -> None:
        """Twenty questions, and with every few of them it dies at the plan's next point; nobody waits for an answer before the last is asked."""
        points, asked = self.points(victim, ann, room), []
        del ann.events[:]  # what was said before is checked
        for n, point in enumerate(plan):
            points[point]()
            asked += [ann.say(room, f"question {i}", victim.bot.user) for i in range(n * prompts // len(plan), (n + 1) * prompts // len(plan))]
            self.dies(victim, ann, room, point)
            victim.starts()
        for question in asked:
            self.served(victim, ann, question)
        self.assert_once(victim, ann, room, asked)

    def goes_through_files(self, victim: Victim, ann: JsPerson, room: str, plan: list[str], prompts: int = 20) -> None:
        """The same with a file in each question and two in each answer. A turn that runs at a death is told to be cut off, and makes none: so
        nothing goes up before all have run that were asked with it, and what comes down is each death's only one."""
        points, asked = self.points(victim, ann, room), []
        del ann.events[:]  # what was said before is checked
        for n, point in enumerate(plan):
            its = list(range(n * prompts // len(plan), (n + 1) * prompts // len(plan)))
            points[point]()
            if point in DOWNLOADS:
                asked.append(self.ask_with_file(victim, ann, room, its[0]))
                self.dies(victim, ann, room, point)
                victim.starts()
                self.assert_files(victim, ann, its[0], asked[-1])
                asked += self.ask_in_turn(victim, ann, room, its[1:])
            else:
                held = threading.Event()
                rule = victim.proxy.on("POST .*/media/v3/upload$", lambda call, held=held: held.wait(1800))
                asked += self.ask_in_turn(victim, ann, room, its)
                victim.bot.command("status")  # the last answer is kept before anything else is done
                rule.off()
                held.set()
                self.dies(victim, ann, room, point)
                victim.starts()
            for i in its:
                self.assert_files(victim, ann, i, asked[i])
        for i, question in enumerate(asked):  # nothing came again later
            self.assert_files(victim, ann, i, question)
        self.assert_once(victim, ann, room, asked)

    def ask_in_turn(self, victim: Victim, ann: JsPerson, room: str, its: list[int]) -> list[str]:
        """Since the recording has an order, a turn begins when the one before is over; its answer may still wait."""
        asked, since = [], len(victim.bot.log)
        for i in its:
            asked.append(self.ask_with_file(victim, ann, room, i))
            victim.bot.logged("event=turn_done", since, times=len(asked))
        return asked

    def ask_with_file(self, victim: Victim, ann: JsPerson, room: str, n: int) -> str:
        return ann.send_file(room, self.csv(n), "sales.csv", caption=f"question {n}", more={"m.mentions": {"user_ids": [victim.bot.user]}})

    def csv(self, n: int) -> bytes:
        return (CSV + f"south,{n}\n").encode()

    def assert_files(self, victim: Victim, ann: JsPerson, n: int, question: str) -> None:
        """The answer has one picture with a small one, and one file, and they can be opened."""
        for kind in ("m.image", "m.file"):
            def wanted(e: dict, kind: str = kind) -> bool:
                content = e.get("content", {})
                return e.get("sender") == victim.bot.user and content.get("org.sandbook.re") == question and content.get("msgtype") == kind
            content = ann.until(wanted, 150)["content"]
            data = ann.download(content)
            if kind == "m.file":
                self.assertEqual(data, self.csv(n) * 2)
            else:
                self.assertEqual((data[:4], ann.download({"file": content["info"]["thumbnail_file"]})[:4]), (b"\x89PNG", b"\x89PNG"))
            self.assertEqual(sum(map(wanted, ann.events)), 1, kind)

    def assert_once(self, victim: Victim, ann: JsPerson, room: str, asked: list[str]) -> None:
        """Each of these has one answer, none before them has another by now, no index was ever used twice, and she can read it all."""
        bot = victim.bot
        history = [e for e in ann.account.history(room) if e["sender"] == bot.user and e["type"] == "m.room.encrypted"]
        new = {e["event_id"] for e in history} - self.checked
        seen: dict[str, dict] = {}

        def all_read(event: dict) -> bool:
            if event.get("event") in new and not event["failed"]:
                seen[event["event"]] = event
            return len(seen) == len(new)
        ann.until(all_read)
        answers = [e["content"]["org.sandbook.re"] for e in seen.values() if e["content"].get("msgtype") == "m.text" and "m.new_content" not in e["content"]]
        self.assertEqual({q: answers.count(q) for q in {*asked, *answers}}, dict.fromkeys(asked, 1))
        used = [index_of(e["content"]) for e in history]
        self.assertEqual(len(used), len(set(used)), "an index of a key was used twice")
        self.assertEqual({e["shield"] for e in seen.values()}, {0})
        self.assert_all_readable(ann)
        refused = [c.status for c in victim.proxy.seen("POST .*/keys/upload") if c.status == 400]  # a token may end at any time
        self.assertFalse(refused, "a one-time key was offered under an id that another one has")
        self.checked |= new

    def test_E04_S03_killed_at_a_point_of_each_kind_twenty_questions_have_twenty_answers(self) -> None:
        victim, ann, room = self.victim()
        self.goes_through(victim, ann, room, ["after_sync_recv", "after_encrypt", "after_put_before_ack", "before_commit_1", "after_commit_2",
                                              "after_otk_gen", "after_otk_upload", "after_key_recv", "before_commit_5"])
        self.assertEqual(victim.deaths, 9)

    def test_S03_killed_while_files_come_and_go_none_is_lost_and_none_is_there_twice(self) -> None:
        victim, ann, room = self.victim(FILES, {"text": "made `copy.csv`"})
        self.goes_through_files(victim, ann, room, ["mid_upload_2", "mid_download_after"], 2)
        self.assertEqual(victim.deaths, 2)

    def each(self, rounds: dict[str, list[str]], goes_through: Callable[..., None], *answers: dict) -> None:
        """Twenty questions of its own for each round, all in one room of one bot; after one that fails there are a new bot and room."""
        victim, ann, room = self.victim(*answers)
        for name, plan in rounds.items():
            with self.subTest(point=name):
                before, began = victim.deaths, time.monotonic()
                goes_through(victim, ann, room, plan)
                self.assertEqual(victim.deaths - before, len(plan))
                print(f"{name}: {len(plan)} deaths, {time.monotonic() - began:.0f} s", flush=True)
                continue
            victim.bot.close()
            victim, ann, room = self.victim(*answers)

    @longer
    def test_S03_each_point_with_twenty_questions_of_its_own(self) -> None:
        self.each({point: [point] * 4 for point in ONCE} | {point: [point] * 2 for point in DEVICES}, self.goes_through)

    @longer
    def test_S03_before_and_after_each_commit_of_a_turn_with_twenty_questions_of_its_own(self) -> None:
        self.each({f"commit_{n}": [f"before_commit_{n}", f"after_commit_{n}"] for n in range(1, COMMITS + 1)}, self.goes_through)

    @longer
    def test_S03_each_point_of_files_on_their_way_with_twenty_questions_of_its_own(self) -> None:
        self.each({point: [point] * 2 for point in UPLOADS + DOWNLOADS}, self.goes_through_files, FILES, {"text": "made `copy.csv`"})

    @longer
    def test_E28_a_soak_with_kills_of_the_bot_and_pauses_of_a_peer(self) -> None:
        victim, ann, room = self.victim()
        dice, asked, paused, waited = random.Random(28), [], False, [0.0]
        end, seconds = time.monotonic(), float(os.environ.get("SANDBOOK_MATRIX_SOAK_S", "1800"))
        end += seconds
        kill_at, pause_at = time.monotonic() + dice.uniform(20, 60), time.monotonic() + dice.uniform(20, 60)
        while time.monotonic() < end:
            asked.append(ann.say(room, f"question {len(asked)}", victim.bot.user))
            if len(asked) % 5 == 0:
                since, began = len(victim.bot.log), time.monotonic()
                self.served(victim, ann, asked[-1])
                waited.append(time.monotonic() - began)
                if waited[-1] > 60:
                    print("late:", *(line for line in victim.bot.log[since:] if "box_state" not in line), sep="\n", flush=True)
            else:
                time.sleep(1)  # a message a second is what is soaked
            if time.monotonic() > kill_at:
                victim.bot.process.kill()
                victim.dies()
                victim.starts()
                kill_at = time.monotonic() + dice.uniform(20, 60)
            if time.monotonic() > pause_at:
                self.dan.do("resume" if paused else "pause")
                paused, pause_at = not paused, time.monotonic() + dice.uniform(20, 60)
        if paused:
            self.dan.do("resume")
        for question in asked:
            self.served(victim, ann, question)
        peak = next(line for line in Path(f"/proc/{victim.bot.process.pid}/status").read_text().splitlines() if "VmHWM" in line)
        self.assert_once(victim, ann, room, asked)
        last = self.ask(ann, victim.bot, room, "the end")
        self.dan.until(lambda e: e.get("event") == last["event"] and not e["failed"])
        self.assert_all_readable(self.dan)
        print(f"\n{len(asked)} questions, {victim.deaths} deaths in {seconds:.0f} s, the longest wait {max(waited):.0f} s, {peak}")


if __name__ == "__main__":
    unittest.main()
