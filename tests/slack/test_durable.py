"""Nothing lost and nothing doubled: links that come and go under load, and kills at every point."""
import random
import sqlite3
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

    def test_killed_at_any_point_every_question_ends_in_one_answer(self) -> None:
        s = self.slack
        pick = random.Random(11)
        roots: dict[str, int] = {}
        png = "import matplotlib.pyplot as plt\nplt.plot([1, 2]); plt.title('t')\n"
        for life in range(7):
            d = self.run_daemon()
            for i in range(3):
                n = life * 3 + i
                roots[s.say("U1", "C1" if i else "C2", f"<@UBOT> {python(png + f'print({n}, chr(33) * 3)')}")] = n
            self.all_acked()
            calls = len(s.calls) + pick.randrange(0, 26)
            give_up = time.monotonic() + 3
            with s.changed:
                while len(s.calls) < calls and time.monotonic() < give_up:
                    s.changed.wait(0.2)
            d.kill()
        self.run_daemon()
        for root, n in roots.items():
            channel = "C1" if s.find("C1", root) else "C2"
            s.until(lambda c=channel, r=root: self.answers(c, r), what=f"an answer to {n}")
        probe = s.say("U1", "C3", "<@UBOT> " + python("print('through')"))
        self.answer("C3", probe, "through")
        for root, n in roots.items():
            channel = "C1" if s.find("C1", root) else "C2"
            texts = [s.text_of(m) for m in self.answers(channel, root)]
            pictures = [m for m in s.said(channel, root) if m.get("files")]
            self.assertEqual(len(texts), 1, (n, texts))
            self.assertLessEqual(len(pictures), 1, n)
            self.assertTrue("!!!" in texts[0] or "restart" in texts[0], texts)


if __name__ == "__main__":
    unittest.main()
