"""The fake is held to Slack's own SDKs: what they send it must understand, and what it sends they must take."""
import importlib
import json
import queue
import re
import sqlite3
import subprocess
import sys
import threading
import time
import unittest
from pathlib import Path

from fake import FakeSlack
from peers import HERE, peers, slack_go

PEERS, SLACK_GO = peers(), slack_go()
THEIRS = ",reactions:write,channels:read,im:read"  # scopes of bots that do more than ours


class Bot:
    """A peer's bot; what it does comes as lines of JSON."""

    def __init__(self, fake: FakeSlack, mode: str) -> None:
        words = ["node", str(HERE / "bolt_bot.mjs"), fake.url, mode, "xoxb-test-1", fake.app_token, fake.signing_secret]
        if mode == "go":
            words = [str(SLACK_GO), fake.url, "xoxb-test-1", fake.app_token]
        self.p = subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env={"PEERS": str(PEERS), "PATH": "/usr/local/bin:/usr/bin:/bin"})

    def until(self, word: str) -> dict:
        assert self.p.stdout and self.p.stderr
        for line in self.p.stdout:
            got = json.loads(line)
            if got["word"] == "error":
                raise AssertionError(got)
            if got["word"] == word:
                return got
        raise AssertionError(f"the bot ended before {word}: {self.p.stderr.read()}")

    def end(self) -> None:
        self.p.communicate()


@unittest.skipUnless(PEERS, "Slack's SDKs are not installed and can't be")
class Peers(unittest.TestCase):
    def setUp(self) -> None:
        self.slack = FakeSlack()
        self.slack.echo = False
        self.slack.tokens["xoxb-test-1"]["scopes"] += THEIRS
        self.addCleanup(self.slack.close)
        self.addCleanup(lambda: self.assertEqual(self.slack.complaints, []))

    def bot(self, mode: str) -> Bot:
        b = Bot(self.slack, mode)
        self.addCleanup(b.end)
        self.assertEqual(b.until("up")["team"], "T1")
        return b

    def test_acceptance_a_bolt_for_javascript_over_socket_mode(self) -> None:
        s, b = self.slack, self.bot("socket")
        s.until(s.online, what="a link")
        s.fail("chat.postMessage", status=429, retry_after=1)
        root = s.say("U1", "C1", "<@UBOT> hello", both="only mention")
        got = b.until("mentioned")
        self.assertEqual((got["text"], got["key"], got["name"], got["ok"]), ("<@UBOT> hello", "one", "ann", True))
        self.assertEqual([m.get("text") for m in s.said("C1", root)][0], "second")
        shared = [f for m in s.said("C1", root) for f in m.get("files", [])]
        self.assertEqual([s.bytes[f["id"]] for f in shared], [b"a,b\n", b"hello"])
        s.say("U1", "D1", "plain words")
        self.assertEqual(b.until("message")["channel_type"], "im")
        s.react("U1", "C1", root, "x")
        self.assertEqual(b.until("reaction"), {"word": "reaction", "reaction": "x", "item": root})
        s.stop_session("U1", "C1", root)
        self.assertEqual(b.until("stopped")["thread"], root)
        s.until(lambda: all(e["acks"] for e in s.envelopes.values()), what="acks")

    def test_acceptance_a_bolt_comes_back_after_a_disconnect_and_takes_fragments(self) -> None:
        s, b = self.slack, self.bot("socket")
        s.until(s.online, what="a link")
        old = s.links[0]
        s.disconnect("refresh_requested", drop_after=0.5)
        s.until(lambda: any(x is not old and x.ready for x in s.links), what="a new link")
        s.fragment = True
        s.say("U1", "D1", "plain " + "x" * 200_000)
        self.assertEqual(len(b.until("message")["text"]), 200_006)

    def test_acceptance_a_bolt_takes_our_signature_over_http(self) -> None:
        s, b = self.slack, Bot(self.slack, "http")
        self.addCleanup(b.end)
        port = b.until("port")["port"]
        payload = {"type": "event_callback", "event_id": "Ev1", "team_id": "T1", "api_app_id": "AAPP", "event": {"type": "message", "channel": "D1", "channel_type": "im", "user": "U1", "text": "plain", "ts": "1.000001"}}
        self.assertEqual(s.post_event(f"http://127.0.0.1:{port}/slack/events", payload, secret="wrong"), 401)
        self.assertEqual(s.post_event(f"http://127.0.0.1:{port}/slack/events", payload), 200)
        self.assertEqual(b.until("message")["text"], "plain")

    def test_acceptance_a_slack_sdk_for_python(self) -> None:
        sys.path.insert(0, str(PEERS / "python"))
        self.addCleanup(sys.path.pop, 0)
        sdk = importlib.import_module("slack_sdk")
        builtin = importlib.import_module("slack_sdk.socket_mode")
        response = importlib.import_module("slack_sdk.socket_mode.response")
        web = sdk.WebClient("xoxb-test-1", base_url=f"{self.slack.url}/api/")
        client = builtin.SocketModeClient(app_token=self.slack.app_token, web_client=web)
        self.addCleanup(client.close)
        got: list = []
        done = threading.Event()

        def on_request(c, request) -> None:
            c.send_socket_mode_response(response.SocketModeResponse(envelope_id=request.envelope_id))
            got.append(request.payload["event"])
            done.set()

        client.socket_mode_request_listeners.append(on_request)
        client.connect()
        self.slack.until(self.slack.online, what="a link")
        ts = self.slack.say("U1", "D1", "from python")
        self.assertTrue(done.wait(30))
        self.assertEqual(got[0]["ts"], ts)
        posted = web.chat_postMessage(channel="D1", thread_ts=ts, text="answer", blocks=[{"type": "section", "text": {"type": "mrkdwn", "text": "answer"}}])
        web.chat_update(channel="D1", ts=posted["ts"], text="changed")
        web.files_upload_v2(channel="D1", thread_ts=ts, filename="x.txt", content="text")
        self.assertEqual(len(web.conversations_replies(channel="D1", ts=ts)["messages"]), 3)
        with self.assertRaises(importlib.import_module("slack_sdk.errors").SlackApiError) as refused:
            web.chat_postMessage(channel="CNONE", text="x")
        self.assertEqual(refused.exception.response["error"], "channel_not_found")
        self.slack.until(lambda: all(e["acks"] for e in self.slack.envelopes.values()), what="acks")


    def test_acceptance_a_bolt_for_python(self) -> None:
        sys.path.insert(0, str(PEERS / "python"))
        self.addCleanup(sys.path.pop, 0)
        sdk, bolt = importlib.import_module("slack_sdk"), importlib.import_module("slack_bolt")
        handlers = importlib.import_module("slack_bolt.adapter.socket_mode")
        app = bolt.App(client=sdk.WebClient("xoxb-test-1", base_url=f"{self.slack.url}/api/"))
        got: queue.Queue = queue.Queue()

        @app.event("app_mention")
        def on_mention(event, say, client) -> None:
            posted = say(text="first", thread_ts=event["ts"], metadata={"event_type": "k", "event_payload": {"k": "one"}})
            client.chat_update(channel=event["channel"], ts=posted["ts"], text="second")
            client.reactions_add(channel=event["channel"], name="eyes", timestamp=event["ts"])
            client.files_upload_v2(channel=event["channel"], thread_ts=event["ts"], filename="a.csv", content="a,b\n")
            replies = client.conversations_replies(channel=event["channel"], ts=event["ts"], include_all_metadata=True)["messages"]
            got.put((replies[1]["metadata"]["event_payload"]["k"], client.users_info(user=event["user"])["user"]["profile"]["display_name"]))

        @app.action("feedback")
        def on_press(ack, action) -> None:
            ack()
            got.put(action["value"])

        handler = handlers.SocketModeHandler(app, self.slack.app_token)
        self.addCleanup(handler.close)
        handler.connect()
        s = self.slack
        s.until(s.online, what="a link")
        root = s.say("U1", "C1", "<@UBOT> hello", both="only mention")
        self.assertEqual(got.get(timeout=30), ("one", "ann"))
        self.assertEqual(s.said("C1", root)[0]["text"], "second")
        s.press("U1", answered(root), "C1", "good")
        self.assertEqual(got.get(timeout=30), "good")
        s.until(lambda: all(e["acks"] for e in s.envelopes.values()), what="acks")

    @unittest.skipUnless(SLACK_GO, "there is no Go for slack-go, or no registry")
    def test_acceptance_a_slack_go(self) -> None:
        s, b = self.slack, self.bot("go")
        b.until("connected")
        s.until(s.online, what="a link")
        root = s.say("U1", "C1", "<@UBOT> hello", both="only mention")
        got = b.until("mentioned")
        self.assertEqual((got["text"], got["key"], got["name"], got["replies"]), ("<@UBOT> hello", "one", "ann", 3))
        self.assertEqual(s.said("C1", root)[0]["text"], "second")
        s.say("U1", "D1", "plain words")
        self.assertEqual(b.until("message")["channel_type"], "im")
        s.react("U1", "C1", root, "x")
        self.assertEqual(b.until("reaction")["item"], root)
        s.press("U1", answered(root), "C1", "bad")
        self.assertEqual(b.until("pressed"), {"word": "pressed", "value": "bad", "action": "feedback"})
        old = s.links[0]
        s.disconnect("refresh_requested", drop_after=0.2)
        s.until(lambda: any(x is not old and x.ready for x in s.links), what="a new link")
        s.until(lambda: all(e["acks"] for e in s.envelopes.values()), what="acks")


def answered(root: str) -> dict:
    """A message of ours with its buttons."""
    buttons = {"type": "feedback_buttons", "action_id": "feedback", "positive_button": button("good"), "negative_button": button("bad")}
    return {"ts": "1.000002", "thread_ts": root, "user": "UBOT", "text": "x", "blocks": [{"type": "context_actions", "elements": [buttons]}]}


def button(value: str) -> dict:
    return {"text": {"type": "plain_text", "text": value}, "value": value}


# what is checked against which type of Slack's
EVENTS = {
    "agent_session_stopped": "AgentSessionStoppedEvent", "app_home_opened": "AppHomeOpenedEvent", "app_mention": "AppMentionEvent", "app_uninstalled": "AppUninstalledEvent",
    "channel_id_changed": "ChannelIDChangedEvent", "file_share": "FileShareMessageEvent", "member_joined_channel": "MemberJoinedChannelEvent", "message": "GenericMessageEvent",
    "message_changed": "MessageChangedEvent", "message_deleted": "MessageDeletedEvent", "reaction_added": "ReactionAddedEvent",
}
# every method that we call
ARGUMENTS = {
    "agents.sessions.setStatus": "AgentsSessionsSetStatus", "apps.connections.open": "AppsConnectionsOpen", "assistant.threads.setStatus": "AssistantThreadsSetStatus",
    "assistant.threads.setSuggestedPrompts": "AssistantThreadsSetSuggestedPrompts", "assistant.threads.setTitle": "AssistantThreadsSetTitle", "auth.test": "AuthTest", "chat.delete": "ChatDelete",
    "chat.appendStream": "ChatAppendStream", "chat.startStream": "ChatStartStream", "chat.stopStream": "ChatStopStream", "chat.postEphemeral": "ChatPostEphemeral", "chat.postMessage": "ChatPostMessage", "chat.update": "ChatUpdate", "conversations.history": "ConversationsHistory",
    "conversations.replies": "ConversationsReplies", "files.completeUploadExternal": "FilesCompleteUploadExternal", "files.getUploadURLExternal": "FilesGetUploadURLExternal",
    "files.info": "FilesInfo", "users.info": "UsersInfo",
}


def from_form(args: dict) -> dict:
    out = {}
    for k, v in args.items():
        nested = isinstance(v, str) and k in ("blocks", "metadata", "files", "prompts", "chunks")
        out["alt_text" if k == "alt_txt" else k] = json.loads(v) if nested else v == "true" if v in ("true", "false") else int(v) if k in ("limit", "length") else v
    return out


@unittest.skipUnless(PEERS, "Slack's SDKs are not installed and can't be")
class Types(unittest.TestCase):
    maxDiff = None

    def check_types(self, lines: list[str]) -> None:
        head = "import type * as T from '@slack/types';\nimport type * as W from '@slack/web-api';\nimport type { Manifest } from '@slack/web-api/dist/types/request/manifest';\n"
        probe = PEERS / f"probe-{threading.get_ident()}.ts"
        self.addCleanup(probe.unlink)
        probe.write_text(head + "\n".join(lines) + "\n")
        tsc = [str(PEERS / "node_modules/.bin/tsc"), "--noEmit", "--strict", "--skipLibCheck", "--target", "es2022", "--module", "nodenext", "--moduleResolution", "nodenext", str(probe)]
        p = subprocess.run(tsc, cwd=PEERS, capture_output=True, text=True, check=False)
        known = re.compile(r"assistant:write|agent_session_|app_context_changed|agent_view|file_access")
        faults = [line for line in p.stdout.splitlines() if "error TS" in line and not known.search(line)]
        self.assertEqual(faults, [])

    def test_acceptance_c_what_the_fake_sends_and_what_we_send_has_slacks_types(self) -> None:
        sys.path.insert(0, str(HERE))
        import daemon  # noqa: PLC0415

        case = daemon.Case()
        case.setUp()
        self.addCleanup(case.doCleanups)
        text = "Words with **bold**, `code` and [a link](https://example.org/).\n\n- one\n- two\n  1. deep\n\n> quoted\n\n```python\nx = 1\n```\n\n| a | b |\n|---|---:|\n| x | 1 |\n"
        d = case.run_daemon(recording=[{"text": text}, {"text": text}])
        s = case.slack
        root = s.say("U1", "C1", "<@UBOT> show all", files=[s.add_file("a.csv", b"a\n1\n")])
        answer = case.answer("C1", root, "quoted")
        s.edit("C1", root, "<@UBOT> show all!", edited=True)
        s.until(lambda: len(case.answers("C1", root)) == 2, what="the second answer")
        s.react("U1", "C1", root, "eyes")
        s.press("U1", answer, "C1", "good")
        s.stop_session("U1", "C1", root)
        s.emit({"type": "app_home_opened", "user": "U1", "channel": "D1", "tab": "messages", "event_ts": s.ts()})
        s.emit({"type": "member_joined_channel", "user": "UBOT", "channel": "G1", "channel_type": "G", "team": "T1", "event_ts": s.ts()})
        s.fail("agents.sessions.setStatus", code="unknown_method")
        nap = "import time, matplotlib.pyplot as plt\nplt.plot([1])\ntime.sleep({})\nprint('slept')"
        case.answer("D1", s.say("U1", "D1", daemon.python(nap.format(3))), "slept")
        case.answer("D1", s.say("U1", "D1", daemon.python(nap.format(3))), "slept")
        s.until(lambda: case.calls("assistant.threads.setTitle"), what="a title of the older kind")
        s.no_agent = True
        case.answer("D1", s.say("U1", "D1", daemon.python(nap.format(9))), "slept")
        s.until(lambda: case.calls("chat.delete"), what="the status to be taken away")
        s.say("U2", "C1", "a reply", thread=s.say("U2", "C1", "a root"))
        s.delete("C1", root)
        other = s.say("U2", "C1", "a root")
        s.say("U2", "C1", "<@UBOT> " + daemon.python("print('in the middle')"), thread=other)
        s.until(lambda: case.calls("conversations.replies"), what="the thread so far to be read")
        s.until(lambda: case.answers("C1", other), what="its answer: nothing is left over for the next life")
        case.all_acked()
        d.end()
        with sqlite3.connect(case.folder / "data/sandbook.db") as db:
            db.execute("UPDATE kept SET value=? WHERE kind='alive'", (str(int(time.time() - 1000) * 1000),))
        s.no_agent = False
        slow = {"text": "First I look at it. Then", "calls": [{"name": "run_python", "args": {"code": "import time; time.sleep(4)"}}]}
        case.run_daemon("slack.streaming=yes", recording=[slow, {"text": "Now I know."}]).until("slack_caught_up")
        case.answer("C2", s.say("U1", "C2", "<@UBOT> what is it?"), "Now I know")
        s.until(lambda: case.calls("chat.stopStream"), what="the stream to be stopped")
        self.assertIn("First I look at it. ", [m["_words"] for m in s.streamed])
        s.emit({"type": "channel_id_changed", "old_channel_id": "G1", "new_channel_id": "C77", "event_ts": s.ts()})
        s.emit({"type": "app_uninstalled"})
        case.all_acked()
        lines, kinds = [], set()
        for i, e in enumerate(s.envelopes.values()):
            event = e["payload"]["event"]
            kind = EVENTS.get(event.get("subtype") or event.get("type", ""))
            if kind and not event.get("bot_id") and not event.get("message", {}).get("bot_id") and not event.get("previous_message", {}).get("bot_id"):
                kinds.add(kind)
                absent = ", subtype: undefined}" if kind == "GenericMessageEvent" else "}"  # how Slack's type says that there is none
                lines.append(f"const e{i}: T.{kind} = {json.dumps(event)[:-1]}{absent};")
        for i, c in enumerate(s.calls):
            if c["method"] not in ("download", "upload"):
                lines.append(f"const a{i}: W.{ARGUMENTS[c['method']]}Arguments = {json.dumps(from_form(c['args']))};")
        self.assertEqual(kinds, set(EVENTS.values()))
        self.assertEqual({c["method"] for c in s.calls} - {"download", "upload"}, set(ARGUMENTS))
        self.check_types(lines)

    def test_acceptance_c_the_manifest_has_slacks_type(self) -> None:
        manifest = json.loads(Path(HERE.parent.parent, "config/slack-manifest.json").read_text())
        self.assertLessEqual(len(manifest["display_information"]["description"]), 140)
        self.assertLessEqual(len(manifest["features"]["agent_view"]["agent_description"]), 300)
        self.check_types([f"const m: Manifest = {json.dumps(manifest, indent=1)};"])


if __name__ == "__main__":
    unittest.main()
