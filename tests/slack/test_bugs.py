"""What other bots got wrong: twenty reports from their trackers, each as a test. All on one daemon; each in a thread of its own."""
import json
import re
import sqlite3
import tempfile
import threading
import time
import unittest
import urllib.error
import urllib.request
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

from daemon import Case, Daemon, python
from fake import FakeSlack

PNG_CODE = "import matplotlib.pyplot as plt\nplt.plot([1, 2]); plt.title('Line')\nprint('plotted')"


class Reports(Case):
    @classmethod
    def setUpClass(cls) -> None:
        cls.slack = FakeSlack()
        cls.addClassCleanup(cls.slack.close)
        folder = tempfile.TemporaryDirectory(prefix="sandbook-slack-")
        cls.addClassCleanup(folder.cleanup)
        cls.daemon = Daemon(cls.slack, Path(folder.name), "status.listen=127.0.0.1:0")
        cls.addClassCleanup(cls.daemon.end)
        cls.daemon.until("slack_online")

    def setUp(self) -> None:
        self.daemons = [self.daemon]
        s = self.slack
        s.until(s.online, what="a link")
        self.addCleanup(self.reset)

    def reset(self) -> None:
        s = self.slack
        s.refuse_blocks = s.html_files = s.cdn_hop = s.foreign_hop = s.unfurl = s.fragment = s.slow = False
        s.faults.clear()
        s.lost_shares, s.share_delay, s.phantom_links, s.upgrade_status = 0, 0, 0, 101
        complaints, s.complaints = s.complaints, []
        self.assertEqual(complaints, [])

    def ask(self, code: str, channel: str = "C1", **more) -> str:
        return self.slack.say("U1", channel, f"<@UBOT> {python(code)}", **more)

    def once(self, channel: str, root: str, words: str) -> dict:
        """Answered, and after everything is quiet still only once."""
        got = self.answer(channel, root, words)
        self.all_acked()
        probe = self.ask("print('quiet')", channel="C3")  # what was on its way is through when this is
        self.answer("C3", probe, "quiet")
        self.assertEqual(len(self.answers(channel, root, words)), 1)
        return got

    def test_01_a_slow_answer_and_deliveries_again_are_one_answer(self) -> None:
        before = set(self.slack.envelopes)
        root = self.ask("import time; time.sleep(3); print('slow one')")
        for e in set(self.slack.envelopes) - before:
            self.slack.resend_envelope(e)
            for retry in (1, 2, 3):
                self.slack.deliver(self.slack.envelopes[e]["payload"], retry=retry)
        self.all_acked()
        self.assertEqual(self.answers("C1", root), [], "acknowledged only when it was answered")
        self.once("C1", root, "slow one")

    def test_02_what_comes_only_as_a_retry_is_answered(self) -> None:
        s = self.slack
        s.upgrade_status = 503
        s.cut()
        s.until(lambda: not s.links, what="no link")
        root = self.ask("print('came as retry')")
        self.assertTrue(s.waiting)
        s.upgrade_status = 101
        self.once("C1", root, "came as retry")
        self.assertTrue(all(e["retry"] == 1 for e in s.envelopes.values() if e["payload"]["event"].get("ts") == root))

    def test_04_no_message_waits_while_a_link_is_replaced(self) -> None:
        s = self.slack
        old, s.gap_ms, n = s.links[0], 0.0, s.events_sent
        s.disconnect("warning", drop_after=4)
        sent = [s.say("U1", "C2", f"overheard {i}") for i in range(60)]
        s.until(lambda: any(x is not old and x.ready for x in s.links), what="the new link")
        sent += [s.say("U1", "C2", f"overheard {i}") for i in range(60)]
        self.all_acked()
        self.assertEqual(s.gap_ms, 0)
        retries = [e["retry"] for e in s.envelopes.values() if e["payload"]["event"].get("ts") in sent]
        self.assertEqual(retries, [0] * len(sent))
        self.assertGreaterEqual(s.events_sent - n, 120)
        s.until(lambda: old.close_code == 1000, what="the old link to be closed in order")

    def test_05_a_server_that_sends_no_pings_but_answers_ours_is_alive(self) -> None:
        link = self.slack.links[0]
        self.slack.until(lambda: link.pings or not link.open, timeout=30, what="a ping of ours")
        self.assertTrue(link.open)

    def test_07_another_process_on_the_same_token_is_told(self) -> None:
        self.slack.phantom_links = 3
        self.slack.disconnect("refresh_requested")
        self.daemon.until("slack_links_shared")

    def test_08_a_login_page_is_no_file(self) -> None:
        s = self.slack
        s.html_files = True
        root = s.say("U1", "C1", "<@UBOT> " + python("import os; print(sorted(os.listdir('.')))"), files=[s.add_file("gone.csv", b"a,b\n1,2\n")])
        self.answer("C1", root, "files:read")
        self.assertNotIn("gone.csv", s.text_of(self.answer("C1", root, "[")))
        s.html_files = False
        token = s.tokens["xoxb-test-1"]
        scopes, token["scopes"] = token["scopes"], token["scopes"].replace("files:read", "")
        try:
            root = s.say("U1", "C2", "<@UBOT> " + python("import os; print(sorted(os.listdir('.')))"), files=[s.add_file("barred.csv", b"a,b\n1,2\n")])
            self.answer("C2", root, "files:read")
            self.assertNotIn("barred.csv", s.text_of(self.answer("C2", root, "[")))
        finally:
            token["scopes"] = scopes

    def test_09_the_token_follows_no_redirect_to_strangers(self) -> None:
        s = self.slack
        s.cdn_hop = True
        root = s.say("U1", "C1", "<@UBOT> " + python("print(open('hop.csv').read())"), files=[s.add_file("hop.csv", b"over,the,hop\n")])
        self.answer("C1", root, "over,the,hop")
        s.cdn_hop, s.foreign_hop = False, True
        root = s.say("U1", "C1", "<@UBOT>", files=[s.add_file("away.csv", b"x\n")])
        self.answer("C1", root, "does not trust")
        s.foreign_hop = False
        n = len(self.calls("download"))
        root = s.say("U1", "C1", "<@UBOT>", files=[s.add_file("drive.csv", b"x\n", is_external=True, mode="external")])
        self.answer("C1", root, "outside Slack")
        self.assertEqual((s.foreign_tokens, len(self.calls("download"))), ([], n))

    def test_10_changes_that_are_no_edits_start_nothing(self) -> None:
        s = self.slack
        s.unfurl = True
        root = self.ask("print('see http://x.example/')")
        self.answer("C1", root, "http://x.example")
        m = s.find("C1", root)
        for other in ({"attachments": [{"from_url": "http://x"}]}, {"reactions": [{"name": "eyes"}]}, {"metadata": {"event_type": "x"}}):
            s.emit({"type": "message", "subtype": "message_changed", "hidden": True, "channel": "C1", "channel_type": "channel", "ts": s.ts(), "message": m | other, "previous_message": m})
        bot = {"type": "message", "user": "U9", "bot_id": "B9", "text": "<@UBOT> loop", "ts": s.ts(), "thread_ts": root, "channel": "C1", "channel_type": "channel"}
        s.emit(bot)
        s.emit(bot | {"type": "app_mention"})
        self.once("C1", root, "http://x.example")

    def test_11_a_mention_and_its_message_are_one_question_in_any_order(self) -> None:
        for order in (True, "mention first", "only mention"):
            root = self.ask(f"print('order {order}')", both=order)
            self.once("C1", root, f"order {order}")
        s = self.slack
        old = next(x for x in s.links if x.ready and not x.leaving)
        s.disconnect("warning")
        new = s.until(lambda: next((x for x in s.links if x is not old and x.ready), None), what="the new link")
        m = {"type": "message", "user": "U1", "text": "<@UBOT> " + python("print('by two links')"), "ts": s.ts(), "channel": "C1", "channel_type": "channel", "team": "T1"}
        s.messages["C1"].append(dict(m))
        body = {"type": "event_callback", "team_id": "T1", "api_app_id": "AAPP", "event_id": "EvTwo1", "event": m}
        other = body | {"event_id": "EvTwo2", "event": {k: v for k, v in m.items() if k != "channel_type"} | {"type": "app_mention"}}
        threads = [threading.Thread(target=s.deliver, args=(b,), kwargs={"link": x}) for b, x in ((body, old if old.open else new), (other, new))]
        for t in threads:
            t.start()
        for t in threads:
            t.join()
        self.once("C1", m["ts"], "by two links")
        thread = self.ask("print('root of it')")
        self.answer("C1", thread, "root of it")
        ts = self.slack.say("U1", "C1", python("print('told to all')"), thread=thread, subtype="thread_broadcast", root={"ts": thread})
        m = self.slack.find("C1", ts)
        self.slack.emit({"type": "message", "subtype": "message_changed", "hidden": True, "channel": "C1", "channel_type": "channel", "ts": self.slack.ts(), "message": m, "previous_message": m})
        self.once("C1", thread, "told to all")

    def test_11_an_edit_that_adds_the_mention_is_one_question(self) -> None:
        s = self.slack
        for i, mention_first in enumerate((False, True)):
            ts = s.say("U1", "C2", python(f"print('edited in {i}')"))
            m = s.find("C2", ts)
            before, m["text"] = dict(m), "<@UBOT> " + m["text"]
            m["edited"] = {"user": "U1", "ts": s.ts()}
            changed = {"type": "message", "subtype": "message_changed", "hidden": True, "channel": "C2", "channel_type": "channel", "ts": s.ts(), "message": dict(m), "previous_message": before}
            mention = {k: v for k, v in m.items() if k != "channel_type"} | {"type": "app_mention", "channel": "C2"}
            for event in (mention, changed) if mention_first else (changed, mention):
                s.emit(event)
            self.once("C2", ts, f"edited in {i}")
            self.assertEqual(len(self.answers("C2", ts)), 1)

    def test_12_files_of_earlier_messages_in_a_thread_are_there(self) -> None:
        s = self.slack
        root = s.say("U1", "C1", "here is the data", files=[s.add_file("early.csv", b"early,bird\n")])
        for i in range(5):
            s.say("U2", "C1", f"talk {i}", thread=root)
        s.say("U2", "C1", f"<@UBOT> {python('print(open(chr(101)+chr(97)+chr(114)+chr(108)+chr(121)+chr(46)+chr(99)+chr(115)+chr(118)).read())')}", thread=root)
        self.answer("C1", root, "early,bird")

    def test_14_charts_are_waited_for_and_a_lost_share_is_done_again(self) -> None:
        s = self.slack
        s.share_delay = 1.5
        root = self.ask(PNG_CODE)
        text = self.answer("C1", root, "plotted")
        picture = next(m for m in s.said("C1", root) if m.get("files"))
        self.assertLess(picture["ts"].split(".")[1], text["ts"].split(".")[1])
        s.share_delay, s.lost_shares = 0, 1
        root = self.ask(PNG_CODE)
        self.answer("C1", root, "plotted")
        self.assertEqual(len([m for m in s.said("C1", root) if m.get("files")]), 1)

    def test_15_an_answer_whose_blocks_are_refused_arrives_as_text(self) -> None:
        self.slack.refuse_blocks = True
        root = self.ask("print('plain words')")
        m = self.once("C1", root, "plain words")
        self.assertNotIn("blocks", m)

    def test_16_a_limit_of_one_channel_holds_up_no_other(self) -> None:
        s = self.slack
        s.fail("chat.postMessage", status=200, code="ratelimited", retry_after=1)
        s.fail("users.info", status=429, retry_after=2)
        root = self.ask("print('limited')")
        self.once("C1", root, "limited")
        asked = s.say("U1", "C1", python("print('first wording')"), thread=root)
        self.answer("C1", root, "first wording")
        s.calls.clear()
        held = s.hold("chat.update", False)
        s.fail("chat.update", status=429, retry_after=1)
        s.fail("chat.update", code="ratelimited", retry_after=1)
        s.edit("C1", asked, python("print('second wording')"))
        s.until(lambda: self.calls("chat.update"), what="an update that hangs")
        other = self.ask("print('meanwhile')", channel="C2")
        self.answer("C2", other, "meanwhile")
        self.assertEqual(len(self.calls("chat.update")), 1, "the other channel waited for the update")
        held.set()
        s.until(lambda: not self.answers("C1", root, "first wording"), what="the old answer to be amended")

    def test_17_model_output_mentions_nobody(self) -> None:
        words = "<!channel> <@U1> if a<b && c>d @here <https://evil.example|bank>"
        root = self.ask(f"print({words!r})")
        m = self.answer("C1", root, "a<b && c>d")
        self.assertNotIn("<!channel>", m["text"])
        self.slack.refuse_blocks = True
        root = self.ask(f"print({words!r})")
        m = self.answer("C1", root, "a&lt;b &amp;&amp; c&gt;d")
        self.assertNotRegex(m["text"], r"<[!@#h]|@here")

    def test_18_a_file_that_only_has_an_id_is_asked_for(self) -> None:
        s = self.slack
        f = s.add_file("shared.csv", b"from,afar\n")
        whole = dict(s.files[f])
        s.files[f] = {"id": f, "mode": "file_access", "file_access": "check_file_info", "_full": whole}
        root = s.say("U1", "C1", "<@UBOT> " + python("print(open('shared.csv').read())"), files=[f])
        s.files[f] |= whole
        self.answer("C1", root, "from,afar")
        self.assertEqual(len([c for c in self.calls("files.info") if c["args"]["file"] == f]), 1)

    def test_19_large_envelopes_in_pieces_arrive_whole(self) -> None:
        s = self.slack
        s.fragment = True
        root = self.ask("print('in pieces')", padding="x" * 300_000)
        self.once("C1", root, "in pieces")
        s.fragment, s.slow = False, True
        root = self.ask("print('byte by byte')")
        self.once("C1", root, "byte by byte")

    def test_20_being_deaf_is_known(self) -> None:
        s = self.slack
        n = sum("slack_offline" in line for line in self.daemon.log)
        self.assertEqual(self.ready(), (200, None))
        s.upgrade_status = 502
        s.cut()
        self.daemon.until("slack_offline", n + 1)
        self.assertEqual(self.ready(), (503, "slack: no link is up"))
        s.upgrade_status = 101
        s.until(s.online, what="a link")
        self.daemon.until("slack_online", n + 2)
        self.assertEqual(self.ready(), (200, None))

    def ready(self) -> tuple[int, str | None]:
        """What the health page says to whoever watches."""
        port = re.search(r"port=(\d+)", self.daemon.until("status_served"))
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{port[1] if port else 0}/health", timeout=30) as r:
                return r.status, json.load(r).get("why")
        except urllib.error.HTTPError as e:
            return e.code, json.load(e).get("why")


class Alone(Case):
    def test_03_a_kill_between_acknowledgement_and_answer_loses_and_doubles_nothing(self) -> None:
        d = self.run_daemon()
        s = self.slack
        roots = [s.say("U1", "C1", f"<@UBOT> {python(f'print({i} * 1000)')}") for i in range(4)]
        self.all_acked()
        d.kill()
        envelopes = list(s.envelopes.values())
        self.run_daemon()
        for e in envelopes:  # Slack repeats for a day, also to a process that never saw it
            s.deliver(e["payload"], retry=1)
        for root in roots:
            s.until(lambda r=root: self.answers("C1", r), what="an answer")
        self.all_acked()
        probe = s.say("U1", "C2", f"<@UBOT> {python('print(1)')}")
        s.until(lambda: self.answers("C2", probe), what="the probe")
        self.assertEqual([len(self.answers("C1", r)) for r in roots], [1] * 4)

    def test_03_what_comes_again_a_day_later_is_known(self) -> None:
        """Five minutes and twenty-three hours after the first time, and also by a process that was started since."""
        d, s = self.run_daemon(), self.slack
        root = s.say("U1", "C1", "<@UBOT> " + python("print('long ago')"))
        self.answer("C1", root, "long ago")
        self.all_acked()
        envelopes = list(s.envelopes.values())
        for minutes in (6, 23 * 60):
            d.end()
            with sqlite3.connect(self.folder / "data/sandbook.db") as db:  # as if all this had been then
                db.execute("UPDATE kept SET value=CAST(value AS INTEGER)-? WHERE platform='slack' AND kind='seen' AND key LIKE 'e/%'", (minutes * 60_000,))
                db.execute("UPDATE kept SET value=json_set(value, '$.at', json_extract(value, '$.at')-?) WHERE platform='slack' AND kind='seen' AND key LIKE 'm/%'", (minutes * 60_000,))
            d = self.run_daemon()
            for e in envelopes:
                s.deliver(e["payload"], retry=3)
                s.deliver(e["payload"] | {"event_id": f"EvAgain{minutes}"}, retry=3)  # the same message under another event's id
            self.all_acked()
            probe = s.say("U1", "C2", "<@UBOT> " + python("print('through')"))
            self.answer("C2", probe, "through")
            self.assertEqual(len(self.answers("C1", root)), 1)

    def test_05_a_link_that_hangs_half_open_is_replaced_and_nothing_is_lost(self) -> None:
        d, s = self.run_daemon(), self.slack
        s.freeze()
        frozen, began = list(s.links), time.monotonic()
        root = s.say("U1", "C1", "<@UBOT> " + python("print('said to a dead link')"))
        s.until(lambda: any(x.ready and x not in frozen for x in s.links), timeout=60, what="another link")
        self.assertLess(time.monotonic() - began, 40)
        for x in frozen:
            x.frozen = False
            x.drop()
        self.answer("C1", root, "said to a dead link")
        self.assertEqual(len(self.answers("C1", root)), 1)
        d.until("slack_online", 2)

    def test_06_fifty_disconnects_make_no_storm_and_leak_nothing(self) -> None:
        d = self.run_daemon("slack.backoff_max=60s")
        s = self.slack
        fds, began = d.fds(), time.monotonic()
        for _ in range(4):
            s.until(s.online, what="a link")
            links = list(s.links)
            for i in range(13):
                s.disconnect(("warning", "refresh_requested", "odd", "")[i % 4], links=links)
            for link in links:
                link.drop()
            s.until(lambda gone=links: not any(x in s.links for x in gone), what="the links to be gone")
        minutes = (time.monotonic() - began) / 60
        self.assertLessEqual(s.max_links, 2)
        self.assertLess(len(s.opens), 10 * max(1, minutes))
        s.until(lambda: s.online() or s.links == [], what="quiet")
        self.assertLessEqual(d.fds(), fds + 4)

    def test_12_a_model_is_told_what_was_said_before(self) -> None:
        told: list[str] = []

        class Model(BaseHTTPRequestHandler):
            def log_message(self, *_: object) -> None:
                pass

            def do_POST(self) -> None:
                told.append(self.rfile.read(int(self.headers["Content-Length"])).decode())
                body = json.dumps({"id": "x", "object": "chat.completion", "choices": [{"index": 0, "message": {"role": "assistant", "content": "I have read it."}, "finish_reason": "stop"}], "usage": {"prompt_tokens": 1, "completion_tokens": 1}}).encode()
                self.send_response(200)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

        server = ThreadingHTTPServer(("127.0.0.1", 0), Model)
        self.addCleanup(server.server_close)
        self.addCleanup(server.shutdown)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        url = f"http://127.0.0.1:{server.server_address[1]}/v1"
        self.run_daemon("model.house.dialect=chat", f"model.house.url={url}", "model.house.name=m", "model.house.stream=no", "agent.model=house")
        s = self.slack
        root = s.say("U1", "C1", "the root of all", files=[s.add_file("first.csv", b"a\n1\n")])
        with s.lock:
            s.messages["C1"] += [{"type": "message", "user": "U2", "text": f"remark {i}", "ts": s.ts(), "thread_ts": root} for i in range(248)]
            s.messages["C1"].append({"type": "message", "user": "U9", "bot_id": "B9", "username": "deployer", "text": "deployed", "ts": s.ts(), "thread_ts": root})
        s.say("U1", "C1", "<@UBOT> what was said here?", thread=root)
        self.answer("C1", root, "I have read it")
        whole = json.dumps(json.loads(told[0]), ensure_ascii=False)
        for words in ("what was said here?", "ann: the root of all", "remark 247", "deployer: deployed", "first.csv"):
            self.assertIn(words, whole)
        self.assertNotIn("remark 100", whole)

    def test_13_and_15_answers_of_every_size_arrive_whole(self) -> None:
        wide = "|" + "|".join(f"c{i}" for i in range(30)) + "|\n|" + "---|" * 30 + "\n" + ("|" + "|".join("" if i % 7 == 0 else str(i) for i in range(30)) + "|\n") * 500
        tables = "\n\n".join(f"Table {i}\n\n| a | b |\n|---|---|\n| {i} | |\n" for i in range(60))
        long = "\n\n".join(f"Paragraph {i}. " + "word " * 100 for i in range(400))
        tall = "| n | square |\n|---:|---:|\n" + "".join(f"| {i} | {i * i} |\n" for i in range(300))
        self.run_daemon(recording=[{"text": t} for t in (wide, tables, long, tall, "short")])
        s = self.slack
        parts = (
            (wide, [f"c{i}" for i in range(30)]), (tables, [f"Table {i}" for i in range(60)]), (long, [f"Paragraph {i}." for i in range(400)]),
            (tall, [str(i * i) for i in range(300)]), ("short", ["short"]),
        )
        for text, wanted in parts:
            root = s.say("U1", "C1", "<@UBOT> go on")
            s.until(lambda r=root: self.answers("C1", r), what="an answer")
            whole = lambda r=root: " ".join([s.text_of(m) for m in s.said("C1", r)] + [s.bytes[f["id"]].decode() for m in s.said("C1", r) for f in m.get("files", [])])
            s.until(lambda w=wanted: all(x in whole() for x in w), what=f"all of {text[:20]!r}")


if __name__ == "__main__":
    unittest.main()
