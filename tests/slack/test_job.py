"""The job itself, from two uploaded files to a chart in the thread."""
import json
import unittest

from daemon import REAL, Case, python


def call(code: str) -> dict:
    return {"calls": [{"name": "run_python", "args": {"code": code}}]}


class Job(Case):
    def test_two_files_a_question_a_follow_up_an_edit_and_a_stop(self) -> None:
        chart = "import pandas as pd, matplotlib.pyplot as plt\na = pd.read_csv('tips.csv'); b = pd.read_csv('more.csv')\ntotal = len(a) + len(b)\nplt.bar(['a', 'b'], [len(a), len(b)]); plt.title('Rows')\nprint(total)"
        table = "Both files together:\n\n| file | rows |\n|---|---:|\n| tips | 244 |\n| more | 2 |\n\nThat is **246** rows."
        self.run_daemon(recording=[call(chart), {"text": table}, call("print(total * 2)"), {"text": "Twice that is 492."}, call("print(total * 3)"), {"text": "Three times that is 738."}, call("import time\nwhile True: time.sleep(0.1)"), {"text": "never"}])
        s = self.slack
        files = [s.add_file("tips.csv", (REAL / "tips.csv").read_bytes()), s.add_file("more.csv", b"x,y\n1,2\n3,4\n")]
        s.fail("chat.postMessage", status=429, retry_after=1)
        root = s.say("U1", "C1", "<@UBOT> how many rows are in both?", files=files)
        for e in list(s.envelopes):  # each is delivered three times
            s.resend_envelope(e)
            s.resend_envelope(e)
        s.disconnect("refresh_requested")
        self.answer("C1", root, "246")
        posted = self.answers("C1", root)
        self.assertEqual(len(posted), 1, posted)
        self.assertEqual([b["type"] for b in posted[0]["blocks"]], ["rich_text", "table", "rich_text", "context", "context_actions"])
        self.assertIn("1 cell", s.text_of(posted[0]))
        pictures = [m for m in s.said("C1", root) if m.get("files")]
        self.assertEqual(len(pictures), 1)
        self.assertEqual(s.bytes[pictures[0]["files"][0]["id"]][:8], b"\x89PNG\r\n\x1a\n")
        question = s.say("U2", "C1", "and twice that?", thread=root)
        self.answer("C1", root, "492")
        s.edit("C1", question, "and three times that?")
        self.answer("C1", root, "738")
        s.until(lambda: not self.answers("C1", root, "492"), what="the old answer to be amended")
        before = len(s.statuses)
        s.say("U2", "C1", "run for ever", thread=root)
        s.until(lambda: any("Running" in x[2] for x in s.statuses[before:]), what="a status of this turn")
        s.stop_session("U2", "C1", root)
        self.answer("C1", root, "Stopped")
        s.until(lambda: s.sessions.get(("C1", root)) == "active", what="the session to be active again")
        self.all_acked()


if __name__ == "__main__":
    unittest.main()
