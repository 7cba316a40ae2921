"""The fake is held to Slack's own SDKs: what they send it must understand, and what it sends they must take."""
import importlib
import json
import re
import subprocess
import sys
import threading
import time
import unittest
from pathlib import Path

from fake import FakeSlack
from peers import HERE, peers

PEERS = peers()


class Bot:
    def __init__(self, fake: FakeSlack, mode: str) -> None:
        words = ["node", str(HERE / "bolt_bot.mjs"), fake.url, mode, "xoxb-test-1", fake.app_token, fake.signing_secret]
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
        self.addCleanup(self.slack.close)
        self.addCleanup(lambda: self.assertEqual(self.slack.complaints, []))

    def bot(self, mode: str) -> Bot:
        b = Bot(self.slack, mode)
        self.addCleanup(b.end)
        self.assertEqual(b.until("up")["team"], "T1")
        return b

    def test_bolt_for_javascript_over_socket_mode(self) -> None:
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

    def test_bolt_comes_back_after_a_disconnect_and_takes_fragments(self) -> None:
        s, b = self.slack, self.bot("socket")
        s.until(s.online, what="a link")
        old = s.links[0]
        s.disconnect("refresh_requested", drop_after=0.5)
        s.until(lambda: any(x is not old and x.ready for x in s.links), what="a new link")
        s.fragment = True
        s.say("U1", "D1", "plain " + "x" * 200_000)
        self.assertEqual(len(b.until("message")["text"]), 200_006)

    def test_bolt_takes_our_signature_over_http(self) -> None:
        s, b = self.slack, Bot(self.slack, "http")
        self.addCleanup(b.end)
        port = b.until("port")["port"]
        payload = {"type": "event_callback", "event_id": "Ev1", "team_id": "T1", "api_app_id": "AAPP", "event": {"type": "message", "channel": "D1", "channel_type": "im", "user": "U1", "text": "plain", "ts": "1.000001"}}
        self.assertEqual(s.post_event(f"http://127.0.0.1:{port}/slack/events", payload, secret="wrong"), 401)
        self.assertEqual(s.post_event(f"http://127.0.0.1:{port}/slack/events", payload), 200)
        self.assertEqual(b.until("message")["text"], "plain")

    def test_slack_sdk_for_python(self) -> None:
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


# what is checked against which type of Slack's
EVENTS = {"app_mention": "AppMentionEvent", "message": "GenericMessageEvent", "file_share": "FileShareMessageEvent", "message_changed": "MessageChangedEvent", "message_deleted": "MessageDeletedEvent", "reaction_added": "ReactionAddedEvent"}
ARGUMENTS = {"chat.postMessage": "ChatPostMessageArguments", "chat.update": "ChatUpdateArguments", "files.completeUploadExternal": "FilesCompleteUploadExternalArguments", "assistant.threads.setStatus": "AssistantThreadsSetStatusArguments"}


def from_form(args: dict) -> dict:
    out = {}
    for k, v in args.items():
        nested = isinstance(v, str) and k in ("blocks", "metadata", "files", "prompts")
        out[k] = json.loads(v) if nested else v == "true" if v in ("true", "false") else int(v) if k in ("limit", "length") else v
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

    def test_what_the_fake_sends_and_what_we_send_has_slacks_types(self) -> None:
        sys.path.insert(0, str(HERE))
        import daemon  # noqa: PLC0415

        case = daemon.Case()
        case.setUp()
        self.addCleanup(case.doCleanups)
        text = "Words with **bold**, `code` and [a link](https://example.org/).\n\n- one\n- two\n  1. deep\n\n> quoted\n\n```python\nx = 1\n```\n\n| a | b |\n|---|---:|\n| x | 1 |\n"
        case.run_daemon(recording=[{"text": text}])
        s = case.slack
        root = s.say("U1", "C1", "<@UBOT> show all", files=[s.add_file("a.csv", b"a\n1\n")])
        case.answer("C1", root, "quoted")
        s.edit("C1", root, "<@UBOT> show all!", edited=True)
        s.react("U1", "C1", root, "eyes")
        s.delete("C1", root)
        case.all_acked()
        lines = []
        for i, e in enumerate(s.envelopes.values()):
            event = e["payload"]["event"]
            kind = EVENTS.get(event.get("subtype") or event["type"])
            if kind and not event.get("bot_id") and "message" not in event:
                lines.append(f"const e{i}: T.{kind} = {json.dumps(event)};")
        for i, c in enumerate(s.calls):
            if c["method"] in ARGUMENTS:
                lines.append(f"const a{i}: W.{ARGUMENTS[c['method']]} = {json.dumps(from_form(c['args']))};")
        self.assertGreater(len(lines), 3)
        self.check_types(lines)

    def test_the_manifest_has_slacks_type(self) -> None:
        manifest = json.loads(Path(HERE.parent.parent, "config/slack-manifest.json").read_text())
        self.assertLessEqual(len(manifest["display_information"]["description"]), 140)
        self.assertLessEqual(len(manifest["features"]["agent_view"]["agent_description"]), 300)
        self.check_types([f"const m: Manifest = {json.dumps(manifest, indent=1)};"])


if __name__ == "__main__":
    unittest.main()
