"""What makes the bot an agent of Slack's: titles, judgements, what was missed during an outage, and words for what did not work."""
import json
import queue
import sqlite3
import tempfile
import threading
import time
import unittest
from contextlib import closing
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

from daemon import Case, Daemon, python
from fake import FakeSlack

PNG_CODE = "import matplotlib.pyplot as plt\nplt.plot([1, 2]); plt.title('Line')\nprint('plotted')"


class Agent(Case):
    @classmethod
    def setUpClass(cls) -> None:
        cls.slack = FakeSlack()
        cls.addClassCleanup(cls.slack.close)
        folder = tempfile.TemporaryDirectory(prefix="sandbook-slack-")
        cls.addClassCleanup(folder.cleanup)
        cls.daemon = Daemon(cls.slack, Path(folder.name))
        cls.addClassCleanup(cls.daemon.end)
        cls.daemon.until("slack_online")
        cls.folder = Path(folder.name)

    def setUp(self) -> None:
        self.daemons = [self.daemon]
        self.addCleanup(self.reset)

    def reset(self) -> None:
        s = self.slack
        complaints, s.complaints = s.complaints, []
        s.faults.clear()
        s.lost_shares, s.no_agent = 0, False
        self.assertEqual(complaints, [])

    def ask(self, code: str, channel: str = "C1", **more) -> str:
        return self.slack.say("U1", channel, f"<@UBOT> {python(code)}", **more)

    def asked(self, words: str) -> tuple[str, dict]:
        """A thread and its answer, which the bot knows for its own by now: in a thread it says one thing after the other."""
        root = self.ask(f"print('{words}')")
        m = self.answer("C1", root, words)
        self.slack.say("U1", "C1", python("print('next')"), thread=root)
        self.answer("C1", root, "next")
        return root, m

    def kept(self, kind: str) -> dict[str, str]:
        with sqlite3.connect(f"file:{self.folder}/data/sandbook.db?mode=ro", uri=True) as db:
            return dict(db.execute("SELECT key, CAST(value AS TEXT) FROM kept WHERE platform='slack' AND kind=?", (kind,)))

    def test_a_conversation_is_called_as_it_was_asked_and_by_whom(self) -> None:
        s = self.slack
        root = s.say("U1", "D1", python("import time\ntime.sleep(3); print('counted')"))
        self.answer("D1", root, "counted")
        s.until(lambda: s.sessions.get(("D1", root)) == "active", what="the session to be active again")
        begun = next(c["args"] for c in self.calls("agents.sessions.setStatus") if c["args"].get("thread_ts") == root)
        self.assertEqual((begun["status"], begun["title"], begun["initiator_user_id"]), ("processing", "import time", "U1"))

    def test_what_people_think_of_an_answer_is_kept_and_thanked_for(self) -> None:
        s = self.slack
        root, m = self.asked("judge me")
        n = len(s.asides)
        for user, value in (("U1", "good"), ("U2", "good"), ("U2", "bad")):
            eid = s.press(user, m, "C1", value)
            s.until(lambda e=eid: s.envelopes[e]["acks"], what="the ack")
        s.until(lambda: len(s.asides) == n + 3, what="thanks")
        self.assertEqual({k: json.loads(v)["value"] for k, v in self.kept("feedback").items()}, {f"T1/C1/{m['ts']}/U1": "good", f"T1/C1/{m['ts']}/U2": "bad"})
        self.assertEqual(sorted((a["user"], a["thread_ts"]) for a in s.asides[n:]), [("U1", root), ("U2", root), ("U2", root)])  # each on its own way

    def test_judgements_by_outsiders_and_of_strange_messages_are_left(self) -> None:
        s = self.slack
        _, m = self.asked("not yours")
        n, before = len(s.asides), self.kept("feedback")
        others: list[dict] = [
            {"actions": [{"action_id": "other", "value": "bad"}]}, {"actions": [{"action_id": "feedback", "value": "terrible"}]}, {"actions": "x", "user": [], "message": 7},
            {"team": None}, {"type": "view_submission"}, {"channel": {"id": "../x"}},
        ]
        strange = [s.press("U9", m, "C1", "bad", home="T9"), s.press("U1", m | {"ts": "1.000001"}, "C1", "bad")]
        strange += [s.press("U1", m, "C1", "bad", other=other) for other in others]
        s.until(lambda: all(s.envelopes[e]["acks"] for e in strange), what="acks: their people would see an error")
        probe = self.ask("print('still here')", channel="C2")
        self.answer("C2", probe, "still here")
        self.assertEqual((len(s.asides), self.kept("feedback")), (n, before))

    def test_what_could_not_be_attached_is_said(self) -> None:
        s = self.slack
        for method, code, words in (
            ("files.completeUploadExternal", "storage_limit_reached", "no room for files left"), ("files.getUploadURLExternal", "file_type_not_allowed", "no files of its kind"),
            ("files.getUploadURLExternal", "missing_scope", "files:write"), ("files.completeUploadExternal", "not_in_channel", "not a member"),
        ):
            s.fail(method, code=code)
            root = self.ask(PNG_CODE)
            self.assertIn(words, s.text_of(self.answer("C1", root, "plotted")))
            self.assertEqual([m for m in s.said("C1", root) if m.get("files")], [])

    def test_a_file_behind_the_words_that_is_refused_is_said_after_them(self) -> None:
        s = self.slack
        s.fail("files.completeUploadExternal", code="file_uploads_disabled")
        root = self.ask("open('out/result.csv', 'w').write('a,b\\n')\nprint('written')")
        self.answer("C1", root, "written")
        self.answer("C1", root, "takes no files")

    def test_words_that_stand_in_blocks_only_are_read(self) -> None:
        s = self.slack
        code = {"type": "rich_text_preformatted", "elements": [{"type": "text", "text": "python\nprint('from blocks', 1 < 2)"}]}
        root = s.say("U1", "D1", "", blocks=[{"type": "rich_text", "elements": [code]}])
        self.answer("D1", root, "from blocks True")

    def test_programs_of_our_own_app_are_us_whatever_they_are_called(self) -> None:
        s = self.slack
        n = len(s.said("C2"))
        s.emit({"type": "message", "user": "U8", "app_id": "AAPP", "text": "<@UBOT> " + python("print('loop')"), "ts": s.ts(), "channel": "C2", "channel_type": "channel"})
        self.all_acked()
        probe = self.ask("print('through')", channel="C3")
        self.answer("C3", probe, "through")
        self.assertEqual(len(s.said("C2")), n)

    def test_people_of_other_organisations_are_told_once_a_day(self) -> None:
        s = self.slack
        for _ in range(3):
            s.emit({"type": "app_mention", "user": "U7", "user_team": "T7", "text": "<@UBOT> hello", "ts": s.ts(), "channel": "C2"}, is_ext_shared_channel=True)
            s.emit({"type": "message", "user": "U7", "user_team": "T7", "text": "to nobody", "ts": s.ts(), "channel": "C2", "channel_type": "channel"}, is_ext_shared_channel=True)
        s.until(lambda: [a for a in s.asides if a["user"] == "U7"], what="a word")
        self.all_acked()
        probe = self.ask("print('and quiet')", channel="C3")
        self.answer("C3", probe, "and quiet")
        self.assertEqual(len([a for a in s.asides if a["user"] == "U7"]), 1)


class Streams(Case):
    """A turn's steps as a stream, where that is asked for."""

    def nap(self, seconds: float, words: str = "slept") -> str:
        return python(f"import time; time.sleep({seconds}); print('{words}')")

    def left(self) -> list[dict]:
        return [m for all_ in self.slack.messages.values() for m in all_ if "_stream" in m]

    def known(self) -> bool:
        with closing(sqlite3.connect(self.folder / "data/sandbook.db")) as db:
            rows = db.execute("SELECT value FROM kept WHERE platform='slack' AND kind='status'").fetchall()
        return any(json.loads(value).get("stream") for (value,) in rows)

    def test_13_steps_grow_and_go_and_the_answer_is_a_message_of_its_own(self) -> None:
        s = self.slack
        self.run_daemon("slack.streaming=yes")
        for channel, text in (("C1", "<@UBOT> " + self.nap(7)), ("D1", self.nap(3))):
            root = s.say("U1", channel, text)
            self.answer(channel, root, "slept")
            s.until(lambda: not self.left(), what="the stream to be taken away")
            self.assertEqual(len(self.answers(channel, root)), 1)
        grown = s.streamed[0]["_stream"]
        self.assertEqual([x["status"] for x in grown.values()].count("in_progress"), 1)
        begun = self.calls("chat.startStream")[0]["args"]
        self.assertEqual((begun["recipient_user_id"], begun["recipient_team_id"]), ("U1", "T1"))
        self.assertEqual(self.calls("assistant.threads.setStatus"), [])

    def test_13_a_stream_that_ends_too_early_costs_no_word_of_the_answer(self) -> None:
        s = self.slack
        s.stream_ends = 0
        words = " ".join(f"word{i}" for i in range(1000))
        self.run_daemon("slack.streaming=yes", recording=[{"calls": [{"name": "run_python", "args": {"code": "import time; time.sleep(9)"}}]}, {"text": words}])
        root = s.say("U1", "C1", "<@UBOT> go on")
        self.assertIn(words, s.text_of(self.answer("C1", root, "word999")))
        s.until(lambda: not self.left(), what="no stream to be left")
        self.assertEqual(len(self.answers("C1", root)), 1)

    def test_13_where_there_are_no_streams_and_after_a_kill(self) -> None:
        s = self.slack
        s.fail("chat.startStream", n=5, code="unknown_method")
        d = self.run_daemon("slack.streaming=yes")
        root = s.say("U1", "C1", "<@UBOT> " + self.nap(3))
        self.answer("C1", root, "slept")
        self.assertTrue(self.calls("assistant.threads.setStatus"))
        self.assertEqual(len(self.calls("chat.startStream")), 1)
        s.faults.clear()
        d.end()
        d = self.run_daemon("slack.streaming=yes")
        s.say("U1", "C2", "<@UBOT> " + self.nap(60))
        s.until(lambda: self.left() and self.known(), what="a stream that the program knows of")
        d.kill()
        self.run_daemon("slack.streaming=yes")
        s.until(lambda: not self.left(), what="the stream of the earlier life to be taken away")


    def model(self) -> tuple[str, "queue.Queue[str | None]"]:
        """A model that says what is put into the queue, as it is put there; None: the end of an answer."""
        said: queue.Queue[str | None] = queue.Queue()

        class Model(BaseHTTPRequestHandler):
            def log_message(self, *_: object) -> None:
                pass

            def do_POST(self) -> None:
                self.rfile.read(int(self.headers["Content-Length"]))
                self.send_response(200)
                self.send_header("Content-Type", "text/event-stream")
                self.end_headers()
                while (words := said.get()) is not None:
                    chunk = {"id": "x", "object": "chat.completion.chunk", "choices": [{"index": 0, "delta": {"content": words}, "finish_reason": None}]}
                    self.wfile.write(f"data: {json.dumps(chunk)}\n\n".encode())
                last = {"id": "x", "object": "chat.completion.chunk", "choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]}
                self.wfile.write(f"data: {json.dumps(last)}\n\ndata: [DONE]\n\n".encode())

        server = ThreadingHTTPServer(("127.0.0.1", 0), Model)
        self.addCleanup(server.server_close)
        self.addCleanup(server.shutdown)
        self.addCleanup(said.put, None)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        return f"http://127.0.0.1:{server.server_address[1]}/v1", said

    def test_13_words_of_an_answer_are_shown_as_they_come_and_the_answer_follows_whole(self) -> None:
        s = self.slack
        url, said = self.model()
        self.run_daemon("slack.streaming=yes", "model.house.dialect=chat", f"model.house.url={url}", "model.house.name=m", "agent.model=house")
        root = s.say("U1", "C1", "<@UBOT> tell me something")
        said.put("It was a dark and ")
        said.put("stormy night; <!chan")
        shown = lambda: "".join(m.get("_words", "") for m in s.messages["C1"] if m.get("thread_ts") == root)
        s.until(lambda: shown() == "It was a dark and stormy night; ", what="the first words")
        said.put("nel> the rain fell in torrents.\n\n| a | b |\n|---|---|\n| 1")
        s.until(lambda: "torrents." in shown(), what="more words")
        self.assertNotIn("| 1", shown())
        said.put(" | 2 |\n\nThe end.")
        said.put(None)
        m = self.answer("C1", root, "The end.")
        self.assertIn("It was a dark and stormy night", s.text_of(m))
        s.until(lambda: not self.left(), what="the stream to be taken away")
        self.assertEqual(len(self.answers("C1", root)), 1)
        self.assertEqual(s.complaints, [])


class Outage(Case):
    """Nothing was delivered while the program was away, and nothing will be: Slack gave up."""

    def away(self, seconds: int) -> None:
        with sqlite3.connect(self.folder / "data/sandbook.db") as db:
            db.execute("UPDATE kept SET value=? WHERE platform='slack' AND kind='alive'", (str(int(time.time() - seconds) * 1000),))

    def missed(self, user: str, channel: str, text: str, thread: str | None = None, ago: int = 60, **more) -> str:
        s = self.slack
        with s.lock:
            ts = f"{int(time.time()) - ago}.{next(s.counter):06d}"
            m = {"type": "message", "user": user, "team": "T1", "text": text, "ts": ts} | ({"thread_ts": thread} if thread else {}) | more
            s.messages[channel] = sorted([*s.messages.get(channel, []), m], key=lambda x: x["ts"])
        return ts

    def test_what_addressed_the_bot_meanwhile_is_answered_once(self) -> None:
        s = self.slack
        d = self.run_daemon()
        root = s.say("U1", "C1", "<@UBOT> " + python("x = 7\nprint('before')"))
        self.answer("C1", root, "before")
        direct = s.say("U1", "D1", python("print('hello')"))
        self.answer("D1", direct, "hello")
        d.end()
        self.away(3000)
        follow = self.missed("U2", "C1", python("print('x was', x)"), thread=root)
        mention = self.missed("U2", "C1", "<@UBOT> " + python("print('missed mention')"))
        private = self.missed("U1", "D1", python("print('missed in private')"), files=[s.file_view(s.files[s.add_file("late.csv", b"a\n1\n")])])
        self.missed("U2", "C1", python("print('not for the bot')"))
        self.missed("U9", "C1", "<@UBOT> a program", bot_id="B9")
        self.missed("U8", "C1", "<@UBOT> " + python("print('a stranger')"), team="T8", user_team="T8")
        old = self.missed("U2", "C1", "<@UBOT> " + python("print('too old')"), ago=4000)
        s.files[s.add_file("x.csv", b"x")]["_"] = 0
        d = self.run_daemon()
        d.until("slack_caught_up")
        self.answer("C1", root, "x was 7")
        self.answer("C1", mention, "missed mention")
        self.answer("D1", private, "missed in private")
        s.deliver({"type": "event_callback", "event_id": "EvLate", "team_id": "T1", "event": s.find("C1", mention) | {"type": "app_mention", "channel": "C1"}}, retry=3)
        self.all_acked()
        probe = s.say("U1", "C3", "<@UBOT> " + python("print('through')"))
        self.answer("C3", probe, "through")
        said = " ".join(s.text_of(m) for c in ("C1", "D1") for m in s.said(c))
        for words, times in (("x was 7", 1), ("missed mention", 1), ("missed in private", 1), ("before", 1), ("hello", 1), ("not for the bot", 0), ("a stranger", 0), ("too old", 0)):
            self.assertEqual(said.count(words), times, words)
        self.assertEqual(self.answers("C1", old) + self.answers("C1", follow), [])

    def test_a_short_absence_and_a_bot_that_shall_not_look_read_no_history(self) -> None:
        s = self.slack
        d = self.run_daemon()
        root = s.say("U1", "C1", "<@UBOT> " + python("print('before')"))
        self.answer("C1", root, "before")
        d.end()
        d = self.run_daemon()
        d.end()
        self.away(3000)
        self.missed("U2", "C1", "<@UBOT> " + python("print('missed')"))
        d = self.run_daemon("slack.catch_up=0s")
        d.until("slack_was_deaf")
        probe = s.say("U1", "C3", "<@UBOT> " + python("print('through')"))
        self.answer("C3", probe, "through")
        self.assertEqual(self.calls("conversations.history"), [])

    def test_history_that_is_refused_or_limited_does_no_harm(self) -> None:
        s = self.slack
        d = self.run_daemon()
        for channel in ("C1", "C2"):
            root = s.say("U1", channel, "<@UBOT> " + python("print('before')"))
            self.answer(channel, root, "before")
        d.end()
        self.away(3000)
        mention = self.missed("U2", "C1", "<@UBOT> " + python("print('missed')"))
        s.fail("conversations.history", status=429, retry_after=1)
        s.fail("conversations.replies", n=3, code="channel_not_found")
        d = self.run_daemon()
        self.answer("C1", mention, "missed")
        d.until("slack_caught_up")


class Secrets(Case):
    MARKS = ("xoxb-", "xapp-", "xoxe", "ticket=", "/upload/v1/", "s3cr3t", "client-secret")

    def test_acceptance_h_no_token_ticket_or_upload_address_is_in_any_log_or_kept_file_whatever_fails(self) -> None:
        """Every call that carries a secret fails in every way, and the log says all that it can say."""
        s = self.slack
        d = self.run_daemon("service.log_level=debug", http=True)
        for method in ("chat.postMessage", "files.getUploadURLExternal", "files.completeUploadExternal", "users.info", "files.info"):
            for how in ({"status": 500}, {"html": True}, {"cut": True}, {"code": "internal_error"}):
                s.fail(method, **how)
        s.fail("upload", n=2)
        s.upgrade_status = 502
        s.cut()
        d.until("slack_offline")
        d.until("slack_link_over", 3)
        s.upgrade_status, s.bad_accept = 101, True
        n = len(s.opens)
        s.until(lambda: len(s.opens) > n + 1, what="a handshake that is refused")
        s.bad_accept = False
        s.until(s.online, what="a link")
        s.foreign_hop = True
        root = s.say("U1", "C1", "<@UBOT> " + python(PNG_CODE), files=[s.add_file("away.csv", b"x\n")])
        self.answer("C1", root, "plotted", timeout=180)
        s.foreign_hop = False
        d.end()
        s.tokens["xoxb-test-1"]["expired"] = True
        late = self.run_daemon("service.log_level=debug", online=False)
        late.until("slack_team_refused")
        late.end()
        logs = "\n".join(line for x in self.daemons for line in x.log).encode()
        self.assertGreater(logs.count(b"level=debug"), 10)
        kept = [(p, p.read_bytes()) for p in (self.folder / "data").rglob("*") if p.is_file()]
        self.assertIn("sandbook.db", [p.name for p, _ in kept])
        for mark in self.MARKS:
            for where, data in [("the log", logs), *kept]:
                self.assertNotIn(mark.encode(), data, where)


class Installs(Case):
    def installs(self, *rows: dict) -> Path:
        path = self.folder / "installs.json"
        path.write_text(json.dumps(rows))
        path.chmod(0o600)
        return path

    def test_two_organisations_answer_each_with_its_own_token(self) -> None:
        s = self.slack
        s.tokens.clear()
        s.add_team("T1", "xoxb-one", enterprise="E1")
        s.add_team("T2", "xoxb-two", enterprise="E2")
        installs = self.installs({"enterprise_id": "E1", "team_id": None, "bot_token": "xoxb-one"}, {"enterprise_id": "E2", "team_id": None, "bot_token": "xoxb-two"})
        d = self.run_daemon(f"slack.installs_file={installs}")
        for life in range(2):
            for team, org, channel in (("T1", "E1", "C1"), ("T2", "E2", "C2")):
                ts = s.ts()
                s.messages.setdefault(channel, []).append({"user": "U1", "text": "x", "ts": ts})
                bot = "UBOT" if team == "T1" else "UBOTT2"
                event = {"type": "app_mention", "user": "U1", "text": f"<@{bot}> " + python(f"print('life {life}')"), "ts": ts, "channel": channel}
                s.emit(event, team=team, authorizations=[{"enterprise_id": org, "team_id": None, "user_id": bot, "is_bot": True, "is_enterprise_install": True}])
                self.answer(channel, ts, f"life {life}")
            d.end()
            d = self.run_daemon(f"slack.installs_file={installs}") if life == 0 else d
        tokens = {c["args"]["channel"]: c["token"] for c in self.calls("chat.postMessage")}
        self.assertEqual(tokens, {"C1": "xoxb-one", "C2": "xoxb-two"})

    def test_an_organisation_answers_its_own_people_in_shared_channels_and_nobody_elses(self) -> None:
        s = self.slack
        s.tokens.clear()
        s.add_team("T1", "xoxb-one", enterprise="E1")
        installs = self.installs({"enterprise_id": "E1", "team_id": None, "bot_token": "xoxb-one"})
        d = self.run_daemon(f"slack.installs_file={installs}", "slack.bot_token_file=")
        people = {"W1": ("T5", {"enterprise_user": {"enterprise_id": "E1"}}), "W2": ("T9", {"enterprise_user": {"enterprise_id": "E9"}}), "W3": ("T8", {}), "W4": ("T7", {"is_stranger": True, "enterprise_user": {"enterprise_id": "E1"}})}
        said = {}
        for user, (home, more) in people.items():
            s.users[user] = {"id": user, "team_id": home, "name": user.lower(), "real_name": user, "profile": {"display_name": user.lower()}} | more
            said[user] = s.ts()
            s.messages.setdefault("C1", []).append({"user": user, "text": "x", "ts": said[user]})
            event = {"type": "app_mention", "user": user, "user_team": home, "text": "<@UBOT> " + python(f"print('for {user}')"), "ts": said[user], "channel": "C1"}
            s.emit(event, is_ext_shared_channel=True, authorizations=[{"enterprise_id": "E1", "team_id": None, "user_id": "UBOT", "is_bot": True, "is_enterprise_install": True}])
        self.answer("C1", said["W1"], "for W1")
        d.until("slack_external_ignored", 3)
        self.all_acked()
        self.assertEqual([u for u in said if self.answers("C1", said[u])], ["W1"])

    def test_a_renewal_keeps_what_others_wrote_into_the_row_and_waits_for_a_full_disk(self) -> None:
        s = self.slack
        s.tokens.clear()
        s.add_team("T1", "xoxe.xoxb-old", refresh="xoxe-1")
        installs = self.installs({"team_id": "T1", "bot_token": "xoxe.xoxb-old", "refresh_token": "xoxe-1", "expires_at": int(time.time()) + 60, "installed_by": "ann"})
        secret = self.folder / "client"
        secret.write_text("client-secret\n")
        secret.chmod(0o600)
        blocker = self.folder / "installs.json.new"
        blocker.mkdir()  # nothing can be written there
        d = self.run_daemon(f"slack.installs_file={installs}", "slack.client_id=1.2", f"slack.client_secret_file={secret}")
        d.until("slack_token_not_kept")
        blocker.rmdir()
        root = s.say("U1", "C1", "<@UBOT> " + python("print('renewed')"))
        self.answer("C1", root, "renewed")
        give_up = time.monotonic() + 60
        while (row := json.loads(installs.read_text())[0])["bot_token"] == "xoxe.xoxb-old" and time.monotonic() < give_up:
            with s.changed:
                s.changed.wait(0.2)
        self.assertIn(row["bot_token"], s.tokens)
        self.assertEqual((row["installed_by"], s.refreshed), ("ann", 1))

    def test_an_app_that_may_not_speak_is_not_started(self) -> None:
        self.slack.tokens["xoxb-test-1"]["scopes"] = "im:history"
        d = self.run_daemon(online=False)
        self.assertIn("chat:write", d.until("slack_team_useless"))

    def test_a_call_that_is_refused_for_ever_is_not_repeated_in_a_loop(self) -> None:
        self.slack.fail("auth.test", n=1000, code="access_denied")
        d = self.run_daemon(online=False)
        d.until("slack_team_refused")
        self.assertEqual(len(self.calls("auth.test")), 1)


if __name__ == "__main__":
    unittest.main()
