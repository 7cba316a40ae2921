"""What people do, as the events that Slack makes of it."""
import hashlib
import hmac
import json
import secrets
import time
import urllib.error
import urllib.parse
import urllib.request

from .files import Files


class People(Files):
    """People who write, upload, edit, delete, react and press buttons."""

    def say(self, user: str, channel: str, text: str, thread: str | None = None, files: list[str] | None = None, both: bool | str = True, **more: object) -> str:
        """A person's message; with a mention in a channel Slack sends it twice, as message and as app_mention."""
        with self.lock:
            kind = self.channels[channel]
            m: dict = {"type": "message", "user": user, "text": text, "ts": self.ts(), "channel": channel, "channel_type": kind, "team": "T1"}
            if thread:
                m["thread_ts"] = thread
            if files:
                m |= {"subtype": "file_share", "files": [self.file_view(self.files[f]) for f in files], "upload": True}
            else:
                m["client_msg_id"] = secrets.token_hex(8)
            m["event_ts"] = m["ts"]
            m |= more
            self.messages.setdefault(channel, []).append({k: v for k, v in m.items() if k not in ("channel", "channel_type", "event_ts")})
            team = str(more.get("outer_team", "T1"))
            m.pop("outer_team", None)
            events = [m]
            if "<@UBOT>" in text and kind != "im" and both:
                mention = {k: v for k, v in m.items() if k not in ("channel_type", "subtype", "upload")} | {"type": "app_mention"}
                events = [mention, m] if both == "mention first" else [m, mention]
                if both == "only mention":
                    events = [mention]
        for e in events:
            self.emit(e, team=team)
        return m["ts"]

    def edit(self, channel: str, ts: str, text: str, edited: bool = True) -> None:
        with self.lock:
            m = self.find(channel, ts)
            assert m
            before = dict(m)
            m["text"] = text
            if edited:
                m["edited"] = {"user": m["user"], "ts": self.ts()}
            event = {"type": "message", "subtype": "message_changed", "hidden": True, "channel": channel, "channel_type": self.channels[channel], "ts": self.ts(), "message": dict(m), "previous_message": before}
        self.emit(event)

    def delete(self, channel: str, ts: str) -> None:
        with self.lock:
            m = self.find(channel, ts)
            assert m
            self.messages[channel].remove(m)
            event = {"type": "message", "subtype": "message_deleted", "hidden": True, "channel": channel, "channel_type": self.channels[channel], "ts": self.ts(), "deleted_ts": ts, "previous_message": m}
        self.emit(event)

    def react(self, user: str, channel: str, ts: str, name: str) -> None:
        self.emit({"type": "reaction_added", "user": user, "reaction": name, "item_user": "UBOT", "item": {"type": "message", "channel": channel, "ts": ts}, "event_ts": self.ts()})

    def stop_session(self, user: str, channel: str, thread: str) -> None:
        self.emit({"type": "agent_session_stopped", "user": user, "channel": channel, "thread_ts": thread, "streaming_message_ts": [], "event_ts": self.ts()})

    def post_event(self, url: str, payload: dict, when: int | None = None, secret: str | None = None, form: bool = False) -> int:
        """The Events API: one signed request to the app; its status."""
        body, stamp = json.dumps(payload).encode(), str(when or int(time.time()))
        kind = "application/x-www-form-urlencoded" if form else "application/json"
        body = urllib.parse.urlencode({"payload": body}).encode() if form else body
        mac = hmac.new((secret or self.signing_secret).encode(), b"v0:" + stamp.encode() + b":" + body, hashlib.sha256).hexdigest()
        req = urllib.request.Request(url, body, {"Content-Type": kind, "X-Slack-Request-Timestamp": stamp, "X-Slack-Signature": f"v0={mac}"})
        try:
            with urllib.request.urlopen(req, timeout=10) as r:
                self.last_body = r.read().decode()
                return r.status
        except urllib.error.HTTPError as e:
            return e.code

    def press(self, user: str, m: dict, channel: str, value: str, home: str = "T1", other: dict | None = None) -> str:
        """One of the two buttons under an answer; the id of the envelope. Slack sends these once, and shows an error when nobody acknowledges."""
        return self.send_once("interactive", self.pressed(user, m, channel, value, home) | (other or {}))

    def pressed(self, user: str, m: dict, channel: str, value: str, home: str = "T1") -> dict:
        buttons = next(e for b in m["blocks"] if b["type"] == "context_actions" for e in b["elements"])
        pressed = next(buttons[x] for x in ("positive_button", "negative_button") if buttons[x]["value"] == value)
        return {
            "type": "block_actions", "team": {"id": "T1", "domain": "fake"}, "user": {"id": user, "team_id": home}, "api_app_id": "AAPP", "channel": {"id": channel, "name": "x"}, "is_enterprise_install": False, "enterprise": None,
            "container": {"type": "message", "message_ts": m["ts"], "channel_id": channel, "thread_ts": m.get("thread_ts"), "is_ephemeral": False}, "message": m, "trigger_id": "1.2.x", "response_url": f"{self.url}/response",
            "actions": [{"type": "feedback_buttons", "action_id": buttons["action_id"], "block_id": "b1", "value": pressed["value"], "text": pressed["text"], "action_ts": self.ts()}],
        }
