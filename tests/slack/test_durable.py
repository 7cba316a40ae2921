"""Nothing lost and nothing doubled: links that come and go under load, and kills at every point."""
import os
import random
import signal
import sqlite3
import sys
import time
import unittest

from daemon import Case, python

MESSAGES, RECONNECTS = 10_000, 50


class Durable(Case):
    def test_ten_thousand_messages_over_fifty_links(self) -> None:
        """Every one of them passes the gate (a reaction to a known message), so each is kept, and told to the core once."""
        s = self.slack
        s.echo = False
        d = self.run_daemon("slack.backoff_max=100ms", "service.log_level=info")
        root = s.say("U1", "C1", "<@UBOT> " + python("print('ready')"))
        self.answer("C1", root, "ready")
        fds = d.fds()
        for i in range(MESSAGES):
            s.react("U1", "C1", root, f"mark{i}")
            if i % (MESSAGES // RECONNECTS) == 0:
                (s.cut if i % 3 == 0 else lambda: s.disconnect("refresh_requested", drop_after=0.3))()
        s.until(lambda: not s.waiting, 240, "all to be sent")
        self.all_acked(240)
        s.say("U1", "C1", python("print('last')"), thread=root)
        self.answer("C1", root, "last", timeout=240)
        self.assertLessEqual(d.fds(), fds + 4)
        d.end()
        with sqlite3.connect(self.folder / "data/sandbook.db") as db:
            seen = db.execute("SELECT count(*) FROM kept WHERE platform='slack' AND kind='seen' AND key LIKE 'e/%'").fetchone()[0]
            pending = db.execute("SELECT count(*) FROM kept WHERE platform='slack' AND kind='pending'").fetchone()[0]
        self.assertEqual((seen, pending), (MESSAGES + 2, 0))
        self.assertLessEqual(s.max_links, 3)

    PNG = "import matplotlib.pyplot as plt\nplt.plot([1, 2]); plt.title('t')\n"
    # calls that a question with a chart leads to, in order; True: they took effect before the kill
    POINTS = (
        ("users.info", False), ("files.getUploadURLExternal", False), ("files.getUploadURLExternal", True), ("upload", True), ("files.completeUploadExternal", False),
        ("files.completeUploadExternal", True), ("files.info", False), ("chat.postMessage", False), ("chat.postMessage", True),
    )

    def ask(self, n: int, channel: str) -> str:
        root = self.slack.say("U1", channel, f"<@UBOT> {python(self.PNG + f'print({n}, chr(33) * 3)')}")
        self.asked[root] = (n, channel)
        return root

    def each_once(self) -> None:
        """Every question has one answer, and one chart at most, now and when all is quiet."""
        s = self.slack
        for root, (n, channel) in self.asked.items():
            s.until(lambda c=channel, r=root: self.answers(c, r), what=f"an answer to {n}")
        probe = s.say("U1", "C3", "<@UBOT> " + python("print('through')"))
        self.answer("C3", probe, "through")
        for root, (n, channel) in self.asked.items():
            texts = [s.text_of(m) for m in self.answers(channel, root)]
            self.assertEqual(len(texts), 1, (n, texts))
            self.assertLessEqual(len([m for m in s.said(channel, root) if m.get("files")]), 1, n)
            self.assertTrue("!!!" in texts[0] or "restart" in texts[0], texts)

    def test_acceptance_f_killed_at_every_step_each_of_twenty_two_questions_ends_in_one_answer(self) -> None:
        s = self.slack
        self.asked: dict[str, tuple[int, str]] = {}
        d = self.run_daemon()
        d.p.send_signal(signal.SIGSTOP)  # delivered, and never read
        self.ask(0, "C1")
        self.ask(1, "C2")
        d.kill()
        d = self.run_daemon()
        self.ask(2, "C1")
        self.ask(3, "C2")
        self.all_acked()
        d.kill()
        for i, (method, apply) in enumerate(self.POINTS):
            held = s.hold(method, apply)
            d = self.run_daemon()
            self.ask(4 + 2 * i, "C1")
            self.ask(5 + 2 * i, "C2")
            s.until(lambda m=method: any(c["method"] == m and c["failed"] for c in s.calls), what=f"{method} to be held")
            self.all_acked()
            d.kill()
            held.set()
            s.faults.clear()
            s.calls.clear()
        self.run_daemon()
        self.assertEqual(len(self.asked), 22)
        self.each_once()

    FAULTS = (
        ("chat.postMessage", {"status": 429, "retry_after": 1}), ("chat.postMessage", {"status": 500}), ("chat.postMessage", {"cut": True, "apply": True}),
        ("chat.postMessage", {"html": True}), ("assistant.threads.setStatus", {"status": 503}), ("agents.sessions.setStatus", {"cut": True}),
        ("users.info", {"code": "internal_error"}), ("apps.connections.open", {"status": 500}), ("conversations.replies", {"status": 429, "retry_after": 1}),
    )

    @unittest.skipUnless(os.environ.get("SANDBOOK_SLACK_SOAK"), "a long run: SANDBOOK_SLACK_SOAK=2000 says how many turns")
    def test_acceptance_d_turns_in_many_threads_with_one_fault_in_a_hundred_of_each_kind(self) -> None:
        """In real time, not in a day's; links are replaced as often as in one. Nothing is lost, doubled, or kept open."""
        s, pick, turns = self.slack, random.Random(12), int(os.environ["SANDBOOK_SLACK_SOAK"])
        d = self.run_daemon("access.waiting=1000")
        roots: list[tuple[str, str]] = []
        asked: list[tuple[str, str, int]] = []
        level = (0, 0)
        for n in range(turns):
            for method, how in self.FAULTS:
                if pick.random() < 0.01:
                    s.fail(method, **how)
            if pick.random() < 0.01:
                pick.choice((s.cut, lambda: s.disconnect("refresh_requested", drop_after=0.3)))()
            words = "<@UBOT> " + python(f"print('turn {n}', chr(33) * 3)")
            if len(roots) < 40:
                roots.append((channel := f"C{1 + n % 3}", root := s.say("U1", channel, words)))
            else:
                channel, root = pick.choice(roots)
                s.say("U1", channel, words, thread=root)
            asked.append((channel, root, n))
            if n >= 10:  # so many are under way
                channel, root, i = asked[n - 10]
                self.answer(channel, root, f"turn {i} !!!", timeout=180)
            if n == turns // 2:
                level = (d.fds(), d.rss_kb())
        for channel, root, n in asked:
            self.answer(channel, root, f"turn {n} !!!", timeout=180)
            self.assertEqual(len(self.answers(channel, root, f"turn {n} !!!")), 1, n)
        print(f"at half time {level}, at the end {(d.fds(), d.rss_kb())} descriptors and KiB", file=sys.stderr)
        self.assertLessEqual(d.fds(), level[0] + 8)
        self.assertLessEqual(d.rss_kb(), level[1] * 1.5)

    @unittest.skipUnless(os.environ.get("SANDBOOK_SLACK_LIVES"), "a long run: SANDBOOK_SLACK_LIVES=100 says how many lives")
    def test_acceptance_f_killed_at_random_points(self) -> None:
        s = self.slack
        pick = random.Random(11)
        self.asked: dict[str, tuple[int, str]] = {}
        for life in range(int(os.environ["SANDBOOK_SLACK_LIVES"])):
            d = self.run_daemon()
            for i in range(3):
                self.ask(life * 3 + i, "C1" if i else "C2")
            self.all_acked()
            calls = len(s.calls) + pick.randrange(0, 26)
            give_up = time.monotonic() + 3
            with s.changed:
                while len(s.calls) < calls and time.monotonic() < give_up:
                    s.changed.wait(0.2)
            d.kill()
        self.run_daemon()
        self.each_once()


if __name__ == "__main__":
    unittest.main()
