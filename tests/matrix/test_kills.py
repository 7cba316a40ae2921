"""Killed with SIGKILL at each point where it would hurt, in an encrypted room: every question is answered once, no index of a key is used
twice, all of it can be read.

`make check` kills at one point of each kind; with SANDBOOK_MATRIX_FULL=1 each point has twenty questions of its own, and commits are gone
through one by one."""
import os
import random
import subprocess
import tempfile
import time
import unittest
from collections.abc import Callable
from pathlib import Path

from bot import Bot, call
from encrypted import API, FULL, Encrypted, index_of
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

    def dies(self, seconds: float = 120) -> None:
        self.bot.process.wait(seconds)
        self.deaths += 1
        self.killer.unlink(missing_ok=True)
        self.bot.kill()

    def starts(self) -> None:
        self.bot.start(wait="")


class Kills(Encrypted):
    extra = "refreshable_access_token_lifetime: 5s\nrefresh_token_lifetime: 24h\n"
    killer: Path
    dan: JsPerson

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
        } | {f"mid_upload_{n}{'_after' * after}": up(n, after) for n in (1, 2, 3) for after in (False, True)} | {
            "mid_download": lambda: victim.on("GET .*/media/download/", False), "mid_download_after": lambda: victim.on("GET .*/media/download/", True),
        } | {f"{when}_commit_{n}": (lambda w=when, k=n: victim.commit(w, k)) for when in ("before", "after") for n in range(1, 21)}

    def goes_through(self, victim: Victim, ann: JsPerson, room: str, plan: list[str], prompts: int = 20, files: bool = False) -> None:
        """Each question of a plan's point: armed, asked, dead, up again. Points behind its end have nothing armed."""
        points, asked = self.points(victim, ann, room), []
        for n in range(prompts):
            if n < len(plan):
                points[plan[n]]()
            if files:
                asked.append(ann.send_file(room, self.csv(n), "sales.csv", caption=f"question {n}", more={"m.mentions": {"user_ids": [victim.bot.user]}}))
            else:
                asked.append(ann.say(room, f"question {n}", victim.bot.user))
            if n < len(plan):
                try:
                    victim.dies()
                except subprocess.TimeoutExpired as e:
                    raise AssertionError(f"it never came to {plan[n]}:\n" + "\n".join(victim.bot.log[-30:])) from e
                victim.starts()
            if files:  # one after the other: a turn that runs when it dies is told to be cut off, and has none
                self.assert_files(victim, ann, n, asked[-1])
        for n, question in enumerate(asked):
            self.answer(ann, victim.bot, question)
            if files:  # nothing came again later
                self.assert_files(victim, ann, n, question)
        self.assert_once(victim, ann, room, asked)

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

    def assert_once(self, victim: Victim, ann: JsPerson, room: str, asked: list[str], parts: int = 1) -> None:
        bot = victim.bot
        history = [e for e in ann.account.history(room) if e["sender"] == bot.user and e["type"] == "m.room.encrypted"]
        seen = {}
        for event in history:
            seen[event["event_id"]] = ann.until(lambda e, i=event["event_id"]: e.get("event") == i and not e["failed"])
        answers = [e["content"]["org.sandbook.re"] for e in seen.values() if e["content"].get("msgtype") == "m.text" and "m.new_content" not in e["content"]]
        self.assertEqual({q: answers.count(q) for q in asked}, dict.fromkeys(asked, parts))
        used = [index_of(e["content"]) for e in history]
        self.assertEqual(len(used), len(set(used)), "an index of a key was used twice")
        self.assertEqual({e["shield"] for e in seen.values()}, {0})
        self.assert_all_readable(ann)
        refused = [c.status for c in victim.proxy.seen("POST .*/keys/upload") if c.status >= 400]
        self.assertFalse(refused, "a one-time key was offered under an id that another one has")

    def test_E04_S03_killed_at_a_point_of_each_kind_twenty_questions_have_twenty_answers(self) -> None:
        victim, ann, room = self.victim()
        self.goes_through(victim, ann, room, ["after_sync_recv", "after_encrypt", "after_put_before_ack", "before_commit_1", "after_commit_2",
                                              "after_otk_gen", "after_otk_upload", "after_key_recv", "before_commit_5"])
        self.assertEqual(victim.deaths, 9)

    def test_S03_killed_while_files_come_and_go_none_is_lost_and_none_is_there_twice(self) -> None:
        victim, ann, room = self.victim(FILES, {"text": "made `copy.csv`"})
        points = [n for n in self.points(victim, ann, room) if n.startswith("mid_")] * 2 if FULL else ["mid_upload_2", "mid_download_after"]
        self.goes_through(victim, ann, room, points, 20 if FULL else 2, files=True)
        self.assertEqual(victim.deaths, len(points))

    @unittest.skipUnless(FULL, "SANDBOOK_MATRIX_FULL=1 goes through all of them")
    def test_S03_each_point_with_twenty_questions_of_its_own(self) -> None:
        victim, ann, room = self.victim()
        names, deaths = [n for n in self.points(victim, ann, room) if "commit" not in n and not n.startswith("mid_")], 0
        for name in names:
            with self.subTest(point=name):
                many = 2 if "claim" in name or "query" in name else 4  # each needs one more device of his
                self.goes_through(victim, ann, room, [name] * many)
                deaths += victim.deaths
                print(name, victim.deaths, flush=True)
            victim.bot.close()  # the next point has a bot of its own, whatever became of this one
            victim, ann, room = self.victim()
        print(f"\n{len(names)} points, {20 * len(names)} questions, {deaths} deaths")

    @unittest.skipUnless(FULL, "SANDBOOK_MATRIX_FULL=1 goes through all of them")
    def test_S03_each_commit_of_a_turn_before_and_after(self) -> None:
        for when in ("before", "after"):
            with self.subTest(when=when):
                victim, ann, room = self.victim()
                self.goes_through(victim, ann, room, [f"{when}_commit_{n}" for n in range(1, 13)])
                print(f"{when}: {victim.deaths} deaths at commits", flush=True)

    @unittest.skipUnless(FULL, "SANDBOOK_MATRIX_FULL=1 takes half an hour, or SANDBOOK_MATRIX_SOAK_S seconds")
    def test_E28_a_soak_with_kills_of_the_bot_and_pauses_of_a_peer(self) -> None:
        victim, ann, room = self.victim()
        dice, asked, paused = random.Random(28), [], False
        end, seconds = time.monotonic(), float(os.environ.get("SANDBOOK_MATRIX_SOAK_S", "1800"))
        end += seconds
        kill_at, pause_at = time.monotonic() + dice.uniform(20, 60), time.monotonic() + dice.uniform(20, 60)
        while time.monotonic() < end:
            asked.append(ann.say(room, f"question {len(asked)}", victim.bot.user))
            if len(asked) % 5 == 0:
                self.answer(ann, victim.bot, asked[-1], 300)
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
            self.answer(ann, victim.bot, question, 300)
        peak = next(line for line in Path(f"/proc/{victim.bot.process.pid}/status").read_text().splitlines() if "VmHWM" in line)
        self.assert_once(victim, ann, room, asked)
        last = self.ask(ann, victim.bot, room, "the end")
        self.dan.until(lambda e: e.get("event") == last["event"] and not e["failed"])
        self.assert_all_readable(self.dan)
        print(f"\n{len(asked)} questions, {victim.deaths} deaths in {seconds:.0f} s, {peak}")


if __name__ == "__main__":
    unittest.main()
