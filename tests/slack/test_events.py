"""What people and workspaces do, one test each; most of them on one daemon."""
import json
import re
import secrets
import tempfile
import time
import unittest
from pathlib import Path

from daemon import Case, Daemon, python
from fake import FakeSlack


class Conversations(Case):
    @classmethod
    def setUpClass(cls) -> None:
        cls.slack = FakeSlack()
        cls.addClassCleanup(cls.slack.close)
        folder = tempfile.TemporaryDirectory(prefix="sandbook-slack-")
        cls.addClassCleanup(folder.cleanup)
        cls.daemon = Daemon(cls.slack, Path(folder.name), http=True)
        cls.addClassCleanup(cls.daemon.end)
        cls.daemon.until("slack_online")
        port = re.search(r"port=(\d+)", cls.daemon.until("slack_listens"))
        cls.events = f"http://127.0.0.1:{port[1] if port else 0}/slack/events"

    def setUp(self) -> None:
        self.daemons = [self.daemon]
        self.addCleanup(self.reset)

    def reset(self) -> None:
        complaints, self.slack.complaints = self.slack.complaints, []
        self.slack.no_agent = False
        self.assertEqual(complaints, [])

    def quiet(self) -> None:
        """All that was sent before is through: a question in another room was answered since."""
        self.all_acked()
        probe = self.slack.say("U1", "C3", "<@UBOT> " + python("print('through')"))
        self.answer("C3", probe, "through")

    def engaged(self) -> str:
        root = self.slack.say("U1", "C1", "<@UBOT> " + python("x = 1\nprint('here')"))
        self.answer("C1", root, "here")
        return root

    def test_direct_messages_need_no_mention_and_are_threads(self) -> None:
        root = self.slack.say("U1", "D1", python("y = 5\nprint('direct')"))
        self.answer("D1", root, "direct")
        self.slack.say("U1", "D1", python("print(y * 2)"), thread=root)
        self.answer("D1", root, "10")

    def test_a_thread_goes_on_without_a_mention_and_keeps_its_variables(self) -> None:
        root = self.engaged()
        self.slack.say("U2", "C1", python("print('x is', x)"), thread=root)
        self.answer("C1", root, "x is 1")

    def test_what_is_said_to_somebody_else_or_elsewhere_is_not_answered(self) -> None:
        root = self.engaged()
        n = len(self.slack.said("C1"))
        self.slack.say("U2", "C1", "<@U1> " + python("print('for ann')"), thread=root)
        self.slack.say("U2", "C1", python("print('not in a thread')"))
        self.slack.say("U2", "M1", python("print('a group of people')"))
        self.quiet()
        self.assertEqual(len(self.slack.said("C1")), n)
        self.assertEqual(self.slack.said("M1"), [])

    def test_a_bare_mention_is_helped(self) -> None:
        root = self.slack.say("U1", "C2", "<@UBOT>")
        self.answer("C2", root, "history")

    def test_an_edited_question_runs_again_and_a_deleted_one_stops(self) -> None:
        root = self.engaged()
        asked = self.slack.say("U1", "C1", python("print('first wording')"), thread=root)
        self.answer("C1", root, "first wording")
        self.slack.edit("C1", asked, python("print('second wording')"))
        self.answer("C1", root, "second wording")
        asked = self.slack.say("U1", "C1", python("import time\nwhile True: time.sleep(0.1)"), thread=root)
        self.slack.until(lambda: any("Running" in x[2] and x[1] == root for x in self.slack.statuses), what="a status")
        self.slack.delete("C1", asked)
        self.slack.say("U1", "C1", python("print('free again')"), thread=root)
        self.answer("C1", root, "free again")

    def test_a_reaction_stops(self) -> None:
        root = self.engaged()
        asked = self.slack.say("U1", "C1", python("import time\nwhile True: time.sleep(0.1)"), thread=root)
        self.slack.until(lambda: any("Running" in x[2] and x[1] == root for x in self.slack.statuses), what="a status")
        self.slack.react("U1", "C1", asked, "octagonal_sign")
        self.answer("C1", root, "Stopped")

    def test_where_there_is_no_agent_the_status_is_one_message_that_goes_away(self) -> None:
        s = self.slack
        s.add_team("T2", "xoxb-unused")
        root = self.engaged()
        s.no_agent = True
        self.daemon.until("slack_online")
        asked = s.say("U1", "D2", python("import time; time.sleep(6); print('slept')"))
        shown = s.until(lambda: [m for m in s.said("D2", asked) if m["text"].startswith("_")], what="a status message")
        self.assertEqual(len(shown), 1)
        self.answer("D2", asked, "slept")
        s.until(lambda: not [m for m in s.said("D2", asked) if m["text"].startswith("_")], what="it to go away")
        self.assertEqual(len(self.answers("D2", asked)), 1)
        self.assertTrue(root)

    def test_a_pasted_table_and_a_forwarded_message_come_along(self) -> None:
        table = {"blocks": [{"type": "table", "rows": [[{"type": "raw_text", "text": "a"}, {"type": "raw_text", "text": "b"}], [{"type": "raw_number", "value": 1.5, "text": "1,5"}, {"type": "rich_text", "elements": [{"type": "rich_text_section", "elements": [{"type": "text", "text": "x"}]}]}]]}]}
        root = self.slack.say("U1", "C1", "<@UBOT> " + python("print(repr(open('pasted_1.csv').read()))"), attachments=[table])
        self.answer("C1", root, "\"a\",\"b\"\\n\"1.5\",\"x\"")
        f = self.slack.add_file("passed_on.csv", b"passed,on\n")
        shared = {"is_share": True, "from_url": "x", "text": "", "files": [self.slack.file_view(self.slack.files[f])]}
        root = self.slack.say("U1", "C1", "<@UBOT> " + python("print(open('passed_on.csv').read())"), attachments=[shared])
        self.answer("C1", root, "passed,on")

    def test_people_of_other_organisations_are_not_answered(self) -> None:
        m = {"type": "app_mention", "user": "U7", "user_team": "T7", "text": "<@UBOT> " + python("print('outside')"), "ts": self.slack.ts(), "channel": "C2"}
        self.slack.emit(m, is_ext_shared_channel=True)
        self.daemon.until("slack_external_ignored")
        self.quiet()
        self.assertEqual(self.answers("C2", m["ts"]), [])

    def test_an_event_of_an_unknown_workspace_is_acknowledged_and_dropped(self) -> None:
        self.slack.emit({"type": "app_mention", "user": "U7", "text": "<@UBOT> hi", "ts": self.slack.ts(), "channel": "C2"}, team="T99")
        self.daemon.until("slack_event_of_stranger")
        self.all_acked()

    def test_opening_the_app_suggests_prompts_once_an_hour_and_joining_greets_once(self) -> None:
        for _ in range(3):
            self.slack.emit({"type": "app_home_opened", "user": "U1", "channel": "D1", "tab": "messages", "event_ts": self.slack.ts()})
            self.slack.emit({"type": "member_joined_channel", "user": "UBOT", "channel": "G1", "channel_type": "G", "team": "T1"})
        self.slack.until(lambda: self.calls("assistant.threads.setSuggestedPrompts") and self.slack.said("G1"), what="both")
        self.quiet()
        self.assertEqual((len(self.calls("assistant.threads.setSuggestedPrompts")), len(self.slack.said("G1"))), (1, 1))

    def test_a_channel_that_gets_another_id_keeps_its_conversations(self) -> None:
        s = self.slack
        root = s.say("U1", "G1", "<@UBOT> " + python("kept = 'still here'\nprint('set')"))
        self.answer("G1", root, "set")
        with s.lock:
            s.channels["C77"] = "channel"
            s.messages["C77"] = s.messages.pop("G1")
        s.emit({"type": "channel_id_changed", "old_channel_id": "G1", "new_channel_id": "C77", "event_ts": s.ts()})
        s.say("U1", "C77", python("print(kept)"), thread=root)
        self.answer("C77", root, "still here")

    def test_events_by_http_are_taken_when_signed_and_once_by_whatever_way(self) -> None:
        s = self.slack
        ts = s.ts()
        event = {"type": "app_mention", "user": "U1", "text": "<@UBOT> " + python("print('by http')"), "ts": ts, "channel": "C2"}
        s.messages.setdefault("C2", []).append({"user": "U1", "text": "x", "ts": ts})
        payload = {"type": "event_callback", "event_id": "EvHttp1", "team_id": "T1", "event": event}
        self.assertEqual(s.post_event(self.events, {"type": "url_verification", "challenge": "abc"}), 200)
        self.assertEqual(json.loads(s.last_body), {"challenge": "abc"})
        self.assertEqual(s.post_event(self.events, payload, secret="wrong"), 401)
        self.assertEqual(s.post_event(self.events, payload, when=int(time.time()) - 400), 401)
        self.assertEqual(s.post_event(self.events, payload, when=int(time.time()) + 400), 401)
        self.assertEqual(s.post_event(self.events.replace("/events", "/other"), payload), 404)
        self.assertEqual(s.post_event(self.events, payload | {"x": "y" * (2 << 20)}), 413)
        for _ in range(2):
            self.assertEqual(s.post_event(self.events, payload), 200)
        s.deliver(payload)
        self.answer("C2", ts, "by http")
        self.quiet()
        self.assertEqual(len(self.answers("C2", ts)), 1)

    def test_buttons_by_http_are_kept_when_signed(self) -> None:
        s = self.slack
        root = self.engaged()
        m = self.answer("C1", root, "here")
        s.say("U1", "C1", python("print('next')"), thread=root)
        self.answer("C1", root, "next")
        pressed = s.pressed("U1", m, "C1", "good")
        self.assertEqual(s.post_event(self.events, pressed, form=True, secret="wrong"), 401)
        self.assertEqual(s.post_event(self.events, pressed, form=True), 200)
        s.until(lambda: s.asides, what="thanks")
        self.assertEqual([(a["user"], a["thread_ts"]) for a in s.asides], [("U1", root)])

    def test_buttons_and_commands_are_acknowledged(self) -> None:
        s = self.slack
        eid = s.send_once("slash_commands", {"command": "/x"})
        s.until(lambda: s.envelopes[eid]["acks"], what="the ack")


class Workspaces(Case):
    def test_a_token_that_is_refused_is_said_and_not_tried_again(self) -> None:
        self.slack.tokens.clear()
        self.slack.add_team("T1", "xoxb-other")
        d = Daemon(self.slack, self.folder)
        self.daemons.append(d)
        self.slack.tokens.clear()
        d.until("slack_team_refused")

    def test_a_token_that_ends_is_renewed_and_kept_before_it_is_used(self) -> None:
        s = self.slack
        s.tokens.clear()
        s.add_team("T1", "xoxe.xoxb-old", refresh="xoxe-1")
        installs = self.folder / "installs.json"
        installs.write_text(json.dumps([{"team_id": "T1", "bot_token": "xoxe.xoxb-old", "refresh_token": "xoxe-1", "expires_at": int(time.time()) + 40000}]))
        installs.chmod(0o600)
        secret = self.folder / "client"
        secret.write_text("client-secret\n")
        secret.chmod(0o600)
        self.run_daemon(f"slack.installs_file={installs}", "slack.client_id=1.2", f"slack.client_secret_file={secret}")
        s.tokens["xoxe.xoxb-old"]["expired"] = True
        root = s.say("U1", "C1", "<@UBOT> " + python("print('renewed')"))
        self.answer("C1", root, "renewed")
        kept = json.loads(installs.read_text())[0]
        self.assertIn(kept["bot_token"], s.tokens)
        self.assertEqual((s.refreshed, installs.stat().st_mode & 0o777), (1, 0o600))

    def test_a_flat_direct_message_is_one_conversation(self) -> None:
        self.run_daemon("slack.dm_mode=flat")
        self.slack.say("U1", "D1", python("z = 3\nprint('flat')"))
        self.slack.until(lambda: [m for m in self.slack.said("D1") if "flat" in self.slack.text_of(m) and "thread_ts" not in m], what="an answer beside it")
        self.slack.say("U1", "D1", python("print('z is', z)"))
        self.slack.until(lambda: [m for m in self.slack.said("D1") if "z is 3" in self.slack.text_of(m)], what="its variables")


if __name__ == "__main__":
    unittest.main()
