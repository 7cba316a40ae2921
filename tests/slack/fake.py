"""A Slack on the loopback for tests: Web API, files, Socket Mode, HTTP events, and every fault that real ones show.

Strict: an argument that Slack does not know, JSON where it wants a form, a block over a documented limit are refused as Slack
refuses them, and noted in `complaints`, which every test expects to be empty. Stdlib only. Every public method is control: tests
call them from their own thread; POST /control/<method> with a JSON object of arguments does the same for other languages."""
import base64
import hashlib
import hmac
import itertools
import json
import re
import secrets
import socket
import struct
import threading
import time
import urllib.parse
import urllib.request
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

GUID = "258EAFA5-E914-47DA-95CA-C5AB0DC85B11"
SCOPES = (
    "app_mentions:read,assistant:write,channels:history,channels:read,chat:write,files:read,files:write,groups:history,groups:read,im:history,im:read,"
    "im:write,mpim:history,mpim:read,reactions:read,reactions:write,users:read"
)
COMMON = {"token", "team_id"}
# method -> (required, optional, accepts JSON)
METHODS: dict[str, tuple[set[str], set[str], bool]] = {
    "auth.test": (set(), set(), True),
    "api.test": (set(), {"error", "foo"}, True),
    "apps.connections.open": (set(), set(), True),
    "chat.postMessage": (
        {"channel"},
        {"text", "blocks", "attachments", "markdown_text", "thread_ts", "reply_broadcast", "unfurl_links", "unfurl_media", "mrkdwn", "link_names", "parse", "metadata"},
        True,
    ),
    "chat.update": ({"channel", "ts"}, {"text", "blocks", "attachments", "markdown_text", "metadata", "file_ids", "reply_broadcast", "link_names", "parse"}, True),
    "chat.delete": ({"channel", "ts"}, set(), True),
    "chat.postEphemeral": ({"channel", "user"}, {"text", "blocks", "thread_ts"}, True),
    "agents.sessions.setStatus": ({"channel_id", "status"}, {"thread_ts", "title", "initiator_user_id"}, True),
    "agents.sessions.rename": ({"channel_id", "title"}, {"thread_ts"}, True),
    "assistant.threads.setStatus": ({"channel_id", "thread_ts", "status"}, {"loading_messages"}, True),
    "assistant.threads.setTitle": ({"channel_id", "thread_ts", "title"}, set(), True),
    "assistant.threads.setSuggestedPrompts": ({"channel_id", "prompts"}, {"title", "thread_ts"}, True),
    "reactions.add": ({"channel", "name", "timestamp"}, set(), True),
    "reactions.remove": ({"channel", "name", "timestamp"}, set(), True),
    "conversations.replies": ({"channel", "ts"}, {"cursor", "limit", "oldest", "latest", "inclusive", "include_all_metadata"}, False),
    "conversations.history": ({"channel"}, {"cursor", "limit", "oldest", "latest", "inclusive", "include_all_metadata"}, False),
    "conversations.info": ({"channel"}, {"include_locale", "include_num_members"}, False),
    "conversations.open": (set(), {"users", "channel", "return_im"}, True),
    "users.info": ({"user"}, {"include_locale"}, False),
    "files.info": ({"file"}, {"cursor", "limit"}, False),
    "files.getUploadURLExternal": ({"filename", "length"}, {"alt_txt", "snippet_type"}, False),
    "files.completeUploadExternal": ({"files"}, {"channel_id", "channels", "thread_ts", "initial_comment", "blocks"}, True),
    "files.delete": ({"file"}, set(), True),
    "oauth.v2.access": (set(), {"grant_type", "refresh_token", "code", "redirect_uri", "client_id", "client_secret"}, False),
}
NEEDS = {"chat.": "chat:write", "files.info": "files:read", "files.getUpload": "files:write", "files.complete": "files:write", "users.info": "users:read"}


class Refusal(Exception):
    def __init__(self, code: str, **more: object) -> None:
        super().__init__(code)
        self.body = {"ok": False, "error": code} | more


def chars(v: object) -> int:
    return len(json.dumps(v, ensure_ascii=False, separators=(",", ":")))


def check_text(text: object, limit: int, where: str) -> None:
    if not isinstance(text, str) or not 0 < len(text) <= limit:
        raise Refusal("invalid_blocks", response_metadata={"messages": [f"[ERROR] bad text at {where}"]})


def check_rich(element: dict, where: str, depth: int = 0) -> None:
    kinds = {"rich_text_section", "rich_text_list", "rich_text_preformatted", "rich_text_quote"} if depth == 0 else {"text", "link", "user", "emoji", "rich_text_section"}
    if element.get("type") not in kinds or depth > 3:
        raise Refusal("invalid_blocks", response_metadata={"messages": [f"[ERROR] unsupported element {element.get('type')} at {where}"]})
    if element["type"] in ("text", "link"):
        if element["type"] == "text" or "text" in element:
            check_text(element.get("text"), 12000, where)
        if element["type"] == "link":
            check_text(element.get("url"), 3000, where)
    for i, e in enumerate(element.get("elements", [])):
        check_rich(e, f"{where}/elements/{i}", depth + 1)
    if element["type"].startswith("rich_") and not element.get("elements"):
        raise Refusal("invalid_blocks", response_metadata={"messages": [f"[ERROR] no elements at {where}"]})


def check_table(block: dict, where: str) -> int:
    rows = block.get("rows")
    data = block["type"] == "data_table"
    if not isinstance(rows, list) or not (2 if data else 1) <= len(rows) <= (101 if data else 100) or not 1 <= len(rows[0]) <= 20:
        raise Refusal("invalid_blocks", response_metadata={"messages": [f"[ERROR] table size at {where}"]})
    if data:
        check_text(block.get("caption"), 2000, where)
    total = 0
    for r, cells in enumerate(rows):
        if len(cells) != len(rows[0]):
            raise Refusal("invalid_blocks", response_metadata={"messages": [f"[ERROR] row length at {where}/rows/{r}"]})
        for cell in cells:
            if cell.get("type") not in ("raw_text", "rich_text", "raw_number") or (r == 0 and cell["type"] != "raw_text"):
                raise Refusal("invalid_blocks", response_metadata={"messages": [f"[ERROR] cell type at {where}/rows/{r}"]})
            if cell["type"] != "rich_text":
                check_text(cell.get("text"), 2000, f"{where}/rows/{r}")
                total += len(cell["text"])
    return total


def check_blocks(blocks: list) -> None:
    if not isinstance(blocks, list) or len(blocks) > 50:
        raise Refusal("msg_blocks_too_many" if isinstance(blocks, list) else "invalid_blocks_format")
    if chars(blocks) > 13200:
        raise Refusal("msg_blocks_too_long")
    cells = tables = 0
    for i, b in enumerate(blocks):
        kind = b.get("type")
        if kind == "rich_text":
            if not b.get("elements"):
                raise Refusal("invalid_blocks", response_metadata={"messages": [f"[ERROR] no elements at /blocks/{i}"]})
            for k, e in enumerate(b["elements"]):
                check_rich(e, f"/blocks/{i}/elements/{k}")
        elif kind in ("table", "data_table"):
            cells += check_table(b, f"/blocks/{i}")
            tables += 1
        elif kind == "context":
            if not 1 <= len(b.get("elements", [])) <= 10:
                raise Refusal("invalid_blocks")
            for e in b["elements"]:
                check_text(e.get("text"), 2000, f"/blocks/{i}")
        elif kind == "section":
            check_text(b.get("text", {}).get("text"), 3000, f"/blocks/{i}")
        elif kind not in ("divider", "markdown", "header", "image"):
            raise Refusal("invalid_blocks", response_metadata={"messages": [f"[ERROR] unsupported type {kind} at /blocks/{i}"]})
    if cells > 10000 or tables > 1:
        raise Refusal("invalid_blocks", response_metadata={"messages": ["[ERROR] tables"]})


class Link:
    """The server's end of one WebSocket."""

    def __init__(self, fake: "FakeSlack", sock: socket.socket, ahead: bytes) -> None:
        self.fake, self.sock, self.ahead = fake, sock, ahead
        self.id = next(fake.counter)
        self.ready = self.frozen = self.leaving = False
        self.open = True
        self.unacked: dict[str, dict] = {}
        self.close_code: int | None = None
        self.pings = self.pongs = 0
        self.lock = threading.Lock()

    def frame(self, opcode: int, data: bytes, fin: bool = True, mask: bool = False, rsv: int = 0) -> bytes:
        head = bytes([(0x80 if fin else 0) | rsv << 4 | opcode])
        bit = 0x80 if mask else 0
        n = len(data)
        head += bytes([bit | n]) if n < 126 else struct.pack("!BH", bit | 126, n) if n < 65536 else struct.pack("!BQ", bit | 127, n)
        return head + (b"\0\0\0\0" if mask else b"") + data

    def raw(self, data: bytes) -> None:
        if self.frozen:
            return
        try:
            with self.lock:
                if self.fake.slow:
                    for i in range(len(data)):
                        self.sock.sendall(data[i : i + 1])
                else:
                    self.sock.sendall(data)
        except OSError:
            self.open = False

    def send(self, message: dict) -> None:
        data = json.dumps(message).encode()
        if self.fake.fragment:
            step = max(1, len(data) // 3)
            parts = [data[i : i + step] for i in range(0, len(data), step)]
            for i, part in enumerate(parts):
                self.raw(self.frame(1 if i == 0 else 0, part, fin=i == len(parts) - 1))
                self.raw(self.frame(9, b"between")) if i < len(parts) - 1 else None
        else:
            self.raw(self.frame(1, data))

    def take(self, n: int) -> bytes:
        while len(self.ahead) < n:
            got = self.sock.recv(65536)
            if not got:
                raise EOFError
            self.ahead += got
        out, self.ahead = self.ahead[:n], self.ahead[n:]
        return out

    def read_frame(self) -> tuple[int, bytes]:
        a, b = self.take(2)
        n = b & 0x7F
        if not b & 0x80:
            self.fake.complain("a client's frame is not masked")
        if n == 126:
            n = struct.unpack("!H", self.take(2))[0]
        elif n == 127:
            n = struct.unpack("!Q", self.take(8))[0]
        key = self.take(4) if b & 0x80 else b"\0\0\0\0"
        data = self.take(n)
        mask = (key * (n // 4 + 1))[:n]
        return a & 0x0F, (int.from_bytes(data, "big") ^ int.from_bytes(mask, "big")).to_bytes(n, "big")

    def serve(self) -> None:
        try:
            while True:
                opcode, data = self.read_frame()
                while self.frozen:
                    time.sleep(0.05)
                    if not self.open:
                        return
                if opcode == 8:
                    self.close_code = struct.unpack("!H", data[:2])[0] if len(data) >= 2 else 1005
                    self.raw(self.frame(8, data[:2]))
                    break
                if opcode == 9:
                    self.pings += 1
                    if self.fake.answer_pings:
                        self.raw(self.frame(10, data))
                elif opcode == 10:
                    self.pongs += 1
                elif opcode == 1:
                    self.fake.on_ack(self, json.loads(data))
        except (OSError, EOFError, ValueError):
            pass
        finally:
            self.drop()

    def drop(self) -> None:
        self.open = False
        try:
            self.sock.shutdown(socket.SHUT_RDWR)
        except OSError:
            pass
        self.sock.close()
        self.fake.on_link_gone(self)


class Quiet(ThreadingHTTPServer):
    def handle_error(self, *_: object) -> None:
        """Peers that are killed hang up in the middle of things."""


class FakeSlack:
    def __init__(self) -> None:
        self.counter = itertools.count(1)
        self.lock = threading.RLock()
        self.changed = threading.Condition(self.lock)
        self.complaints: list[str] = []
        self.calls: list[dict] = []
        self.messages: dict[str, list[dict]] = {}
        self.files: dict[str, dict] = {}
        self.bytes: dict[str, bytes] = {}
        self.users = {u: {"id": u, "team_id": "T1", "name": n, "real_name": n.title(), "profile": {"display_name": n, "real_name": n.title()}} for u, n in (("U1", "ann"), ("U2", "bob"))}
        self.users["UBOT"] = {"id": "UBOT", "team_id": "T1", "name": "sandbook", "is_bot": True, "profile": {"display_name": "sandbook", "real_name": "sandbook"}}
        self.channels = {"C1": "channel", "C2": "channel", "C3": "channel", "G1": "group", "D1": "im", "D2": "im", "M1": "mpim"}
        self.tokens: dict[str, dict] = {}
        self.add_team("T1", "xoxb-test-1")
        self.app_token = "xapp-test-1"
        self.signing_secret = "s3cr3t"
        self.links: list[Link] = []
        self.tickets: set[str] = set()
        self.opens: list[float] = []
        self.envelopes: dict[str, dict] = {}
        self.waiting: list[dict] = []  # events that no link took
        self.ack_ms: list[float] = []
        self.events_sent = 0
        self.max_links = 0
        self.gap_ms = 0.0
        self.alone_since: float | None = None
        self.statuses: list[tuple[str, str, str]] = []
        self.sessions: dict[tuple[str, str], str] = {}
        self.faults: dict[str, list[dict]] = {}
        self.refuse_blocks = self.no_agent = self.html_files = self.cdn_hop = self.foreign_hop = False
        self.foreign_tokens: list[str | None] = []
        self.echo = True
        self.unfurl = False
        self.lost_shares = 0
        self.share_delay = 0.0
        self.fragment = self.slow = False
        self.answer_pings = True
        self.no_hello = self.bad_accept = False
        self.upgrade_status = 101
        self.phantom_links = 0
        self.refreshed = 0
        self.server = Quiet(("127.0.0.1", 0), self.handler())
        self.server.daemon_threads = True
        self.port = self.server.server_address[1]
        self.url = f"http://127.0.0.1:{self.port}"
        threading.Thread(target=self.server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True).start()

    def close(self) -> None:
        for link in list(self.links):
            link.frozen = False
            link.drop()
        self.server.shutdown()
        self.server.server_close()

    def complain(self, words: str) -> None:
        self.complaints.append(words)

    def add_team(self, team: str, token: str, **more: object) -> None:
        suffix = "" if team == "T1" else team
        self.tokens[token] = {"team": team, "user": f"UBOT{suffix}", "bot": f"BBOT{suffix}", "scopes": SCOPES} | more

    # ---- waiting ----
    def until(self, wanted, timeout: float = 60, what: str = "it"):
        """The first true value of wanted(), looked at whenever something happened."""
        give_up = time.monotonic() + timeout
        with self.changed:
            while not (got := wanted()):
                left = give_up - time.monotonic()
                if left <= 0:
                    raise AssertionError(f"waited {timeout} s for {what}; last calls: {[c['method'] for c in self.calls[-15:]]}")
                self.changed.wait(min(left, 0.5))
            return got

    # ---- people ----
    def ts(self) -> str:
        return f"{int(time.time())}.{next(self.counter):06d}"

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

    def add_file(self, name: str, data: bytes, mimetype: str = "text/csv", **more: object) -> str:
        with self.lock:
            fid = f"F{next(self.counter):06d}"
            url = f"{self.url}/files-pri/T1-{fid}/download/{urllib.parse.quote(name)}"
            self.bytes[fid] = data
            self.files[fid] = {
                "id": fid, "name": name, "title": name, "mimetype": mimetype, "filetype": name.rsplit(".", 1)[-1], "size": len(data), "mode": "hosted",
                "is_external": False, "url_private": url, "url_private_download": url, "file_access": "visible", "user": "U1", "shares": {}, "channels": [],
            } | more
            return fid

    def file_view(self, f: dict) -> dict:
        return {k: v for k, v in f.items() if not k.startswith("_")}

    def find(self, channel: str, ts: str) -> dict | None:
        return next((m for m in self.messages.get(channel, []) if m["ts"] == ts), None)

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

    # ---- events ----
    def emit(self, event: dict, team: str = "T1", event_id: str | None = None, retry: int = 0, **outer: object) -> str:
        bot = next((t for t in self.tokens.values() if t["team"] == team), {"user": "UBOT"})
        payload = {
            "type": "event_callback", "event_id": event_id or f"Ev{next(self.counter):08d}", "event_time": int(time.time()), "team_id": team, "api_app_id": "AAPP",
            "context_team_id": team, "authorizations": [{"enterprise_id": None, "team_id": team, "user_id": bot["user"], "is_bot": True, "is_enterprise_install": False}],
            "is_ext_shared_channel": False, "event": event,
        } | outer
        self.deliver(payload, retry)
        return payload["event_id"]

    def deliver(self, payload: dict, retry: int = 0, envelope_id: str | None = None, link: Link | None = None) -> None:
        """To one of the links; what finds none comes as a retry once there is one."""
        with self.lock:
            ready = [x for x in self.links if x.ready and x.open and not x.leaving] or [x for x in self.links if x.ready and x.open]
            target = link or (ready[next(self.counter) % len(ready)] if ready else None)
            if not target:
                self.waiting.append(payload)
                return
            envelope = {"envelope_id": envelope_id or secrets.token_hex(8), "type": "events_api", "payload": payload, "accepts_response_payload": False, "retry_attempt": retry, "retry_reason": "timeout" if retry else ""}
            target.unacked[envelope["envelope_id"]] = payload
            self.envelopes[envelope["envelope_id"]] = {"sent": time.monotonic(), "acks": 0, "payload": payload, "retry": retry}
            self.events_sent += 1
        target.send(envelope)

    def resend_envelope(self, envelope_id: str) -> None:
        e = self.envelopes[envelope_id]
        self.deliver(e["payload"], retry=e["retry"], envelope_id=envelope_id)

    def on_ack(self, link: Link, message: dict) -> None:
        with self.changed:
            e = self.envelopes.get(message.get("envelope_id", ""))
            if not e:
                self.complain(f"an ack of no envelope: {message}")
                return
            if set(message) - {"envelope_id", "payload"}:
                self.complain(f"an ack with more than its id: {message}")
            e["acks"] += 1
            if e["acks"] == 1:
                self.ack_ms.append((time.monotonic() - e["sent"]) * 1000)
            for x in self.links:
                x.unacked.pop(message["envelope_id"], None)
            link.unacked.pop(message["envelope_id"], None)
            self.changed.notify_all()

    def on_link_gone(self, link: Link) -> None:
        with self.changed:
            if link in self.links:
                self.links.remove(link)
                self.waiting += list(link.unacked.values())
                if not any(x.ready for x in self.links):
                    self.alone_since = time.monotonic()
                elif any(x.ready for x in self.links):
                    self.flush()
            self.changed.notify_all()

    def flush(self) -> None:
        waiting, self.waiting = self.waiting, []
        for payload in waiting:
            self.deliver(payload, retry=1)

    def online(self) -> bool:
        return any(x.ready and x.open and not x.leaving for x in self.links)

    def disconnect(self, reason: str = "warning", drop_after: float | None = None) -> None:
        """Tells every present link to go."""
        with self.lock:
            links = [x for x in self.links if not x.leaving]
            for x in links:
                x.leaving = True
        for x in links:
            x.send({"type": "disconnect", "reason": reason, "debug_info": {"host": "fake"}})
            if drop_after is not None:
                threading.Timer(drop_after, x.drop).start()

    def cut(self) -> None:
        for x in list(self.links):
            x.drop()

    def freeze(self) -> None:
        for x in list(self.links):
            x.frozen = True

    # ---- faults of the Web API ----
    def fail(self, method: str, n: int = 1, status: int = 200, code: str | None = None, retry_after: int | None = None, html: bool = False, apply: bool = False, delay: float = 0, cut: bool = False) -> None:
        """The next n calls of the method fail so; apply: they take effect all the same; cut: no answer comes at all."""
        self.faults.setdefault(method, []).extend([{"status": status, "code": code, "retry_after": retry_after, "html": html, "apply": apply, "delay": delay, "cut": cut}] * n)

    # ---- what is there to see ----
    def said(self, channel: str, thread: str | None = None) -> list[dict]:
        """Messages of the bot."""
        with self.lock:
            return [m for m in self.messages.get(channel, []) if m.get("bot_id") and (thread is None or m.get("thread_ts") == thread)]

    def text_of(self, m: dict) -> str:
        """All words of a message, blocks before text."""
        words: list[str] = []

        def walk(v: object) -> None:
            if isinstance(v, dict):
                if isinstance(v.get("text"), str):
                    words.append(v["text"])
                for k, x in v.items():
                    if k != "text" or not isinstance(x, str):
                        walk(x)
            elif isinstance(v, list):
                for x in v:
                    walk(x)

        walk(m.get("blocks"))
        return " ".join(words) or m.get("text", "")

    # ---- the Web API ----
    def api(self, method: str, args: dict, token: str | None, as_json: bool) -> dict:
        if method not in METHODS:
            raise Refusal("unknown_method")
        required, optional, json_ok = METHODS[method]
        if unknown := set(args) - required - optional - COMMON:
            self.complain(f"{method}: unknown arguments {sorted(unknown)}")
        if as_json and args and not json_ok:
            raise Refusal("invalid_arguments")
        if "" in args.values() and not (method == "assistant.threads.setStatus" and args.get("status") == ""):
            self.complain(f"{method}: an empty argument")
        if method == "apps.connections.open":
            return self.connections_open(token)
        if method == "oauth.v2.access":
            return self.oauth(args)
        who = self.tokens.get(token or "")
        if not who:
            raise Refusal("invalid_auth" if token else "not_authed")
        if who.get("expired"):
            raise Refusal("token_expired")
        for prefix, scope in NEEDS.items():
            if method.startswith(prefix) and scope not in who["scopes"]:
                raise Refusal("missing_scope", needed=scope, provided=who["scopes"])
        if missing := required - set(args):
            raise Refusal("invalid_arguments", response_metadata={"messages": [f"[ERROR] missing required field: {sorted(missing)[0]}"]})
        return getattr(self, "do_" + re.sub(r"[.]", "_", method))(args, who)

    def connections_open(self, token: str | None) -> dict:
        if token != self.app_token:
            raise Refusal("invalid_auth" if token else "not_authed")
        ticket = secrets.token_hex(16)
        self.tickets.add(ticket)
        self.opens.append(time.monotonic())
        return {"url": f"ws://127.0.0.1:{self.port}/link/?ticket={ticket}&app_id=AAPP"}

    def oauth(self, args: dict) -> dict:
        old = next((t for t in self.tokens.values() if t.get("refresh") == args.get("refresh_token")), None)
        if args.get("grant_type") != "refresh_token" or not old:
            raise Refusal("invalid_refresh_token")
        self.refreshed += 1
        token, refresh = f"xoxe.xoxb-{secrets.token_hex(6)}", f"xoxe-{secrets.token_hex(6)}"
        self.tokens[token] = old | {"expired": False, "refresh": refresh}
        old["expired"], old["refresh"] = True, None
        return {"access_token": token, "refresh_token": refresh, "expires_in": 43200, "token_type": "bot"}

    def do_auth_test(self, _: dict, who: dict) -> dict:
        return {"url": "https://fake.slack.com/", "team": "Fake", "team_id": who["team"], "user": "sandbook", "user_id": who["user"], "bot_id": who["bot"], "is_enterprise_install": False}

    def do_api_test(self, args: dict, _: dict) -> dict:
        return {"args": args}

    def place(self, args: dict, key: str = "channel") -> str:
        channel = args[key]
        if channel not in self.channels:
            raise Refusal("channel_not_found")
        return channel

    def content(self, args: dict, who: dict) -> dict:
        blocks = args.get("blocks")
        if isinstance(blocks, str):
            blocks = json.loads(blocks)
        if blocks:
            if self.refuse_blocks:
                raise Refusal("invalid_blocks", response_metadata={"messages": ["[ERROR] because the test wants it"]})
            try:
                check_blocks(blocks)
            except Refusal as r:
                self.complain(f"blocks refused: {r.body}: {json.dumps(blocks)[:500]}")
                raise
        text = args.get("text", "")
        if not text and not blocks and not args.get("markdown_text"):
            raise Refusal("no_text")
        if len(text) > 40000:
            raise Refusal("msg_too_long")
        if len(text) > 4000:
            self.complain("text that Slack would split anywhere")
        for token in re.findall(r"<[!@#][^>]*>", text):
            self.complain(f"a live token in text: {token}")
        m = {"type": "message", "user": who["user"], "bot_id": who["bot"], "app_id": "AAPP", "team": who["team"], "text": text}
        if blocks:
            m["blocks"] = blocks
        return m

    def do_chat_postMessage(self, args: dict, who: dict) -> dict:
        channel, m = self.place(args), self.content(args, who)
        if args.get("thread_ts"):
            root = self.find(channel, args["thread_ts"])
            if not root:
                raise Refusal("thread_not_found")
            if root.get("thread_ts") not in (None, root["ts"]):
                self.complain("thread_ts is no root")
            m["thread_ts"] = root["thread_ts"] = args["thread_ts"]
        if args.get("metadata"):
            m["metadata"] = json.loads(args["metadata"]) if isinstance(args["metadata"], str) else args["metadata"]
        m["ts"] = self.ts()
        self.messages.setdefault(channel, []).append(m)
        self.later(m | {"channel": channel, "channel_type": self.channels[channel]})
        if self.unfurl and "http" in m["text"]:
            self.later({"type": "message", "subtype": "message_changed", "hidden": True, "channel": channel, "channel_type": self.channels[channel], "ts": self.ts(), "message": m | {"attachments": [{"from_url": "http://x"}]}, "previous_message": m})
        return {"channel": channel, "ts": m["ts"], "message": m}

    def later(self, event: dict) -> None:
        if self.echo:
            threading.Thread(target=self.emit, args=(event,), daemon=True).start()

    def do_chat_update(self, args: dict, who: dict) -> dict:
        channel = self.place(args)
        m = self.find(channel, args["ts"])
        if not m:
            raise Refusal("message_not_found")
        if m.get("bot_id") != who["bot"]:
            raise Refusal("cant_update_message")
        before, new = dict(m), self.content(args, who)
        if args.get("blocks") in ("[]", []):
            m.pop("blocks", None)
        m |= new | {"edited": {"user": who["bot"], "ts": self.ts()}}
        self.later({"type": "message", "subtype": "message_changed", "hidden": True, "channel": channel, "channel_type": self.channels[channel], "ts": self.ts(), "message": dict(m), "previous_message": before})
        return {"channel": channel, "ts": m["ts"], "text": m["text"]}

    def do_chat_delete(self, args: dict, who: dict) -> dict:
        channel = self.place(args)
        m = self.find(channel, args["ts"])
        if not m:
            raise Refusal("message_not_found")
        self.messages[channel].remove(m)
        self.later({"type": "message", "subtype": "message_deleted", "hidden": True, "channel": channel, "channel_type": self.channels[channel], "ts": self.ts(), "deleted_ts": args["ts"], "previous_message": m})
        return {"channel": channel, "ts": args["ts"]}

    def do_chat_postEphemeral(self, args: dict, _: dict) -> dict:
        self.place(args)
        return {"message_ts": self.ts()}

    def do_agents_sessions_setStatus(self, args: dict, _: dict) -> dict:
        if self.no_agent:
            raise Refusal("feature_not_enabled")
        if args["status"] not in ("active", "processing", "suspended", "closed"):
            raise Refusal("invalid_arguments")
        self.sessions[args["channel_id"], args.get("thread_ts", "")] = args["status"]
        return {"status": args["status"]}

    def do_agents_sessions_rename(self, args: dict, _: dict) -> dict:
        return {"title": args["title"]}

    def do_assistant_threads_setStatus(self, args: dict, _: dict) -> dict:
        if self.no_agent:
            raise Refusal("not_agent_app")
        self.statuses.append((args["channel_id"], args["thread_ts"], args["status"]))
        return {}

    def do_assistant_threads_setTitle(self, *_: dict) -> dict:
        return {}

    def do_assistant_threads_setSuggestedPrompts(self, args: dict, _: dict) -> dict:
        prompts = json.loads(args["prompts"]) if isinstance(args["prompts"], str) else args["prompts"]
        if not 1 <= len(prompts) <= 4:
            raise Refusal("invalid_arguments")
        return {}

    def do_reactions_add(self, args: dict, _: dict) -> dict:
        m = self.find(self.place(args), args["timestamp"])
        if not m:
            raise Refusal("message_not_found")
        m.setdefault("reactions", []).append({"name": args["name"]})
        return {}

    def do_reactions_remove(self, args: dict, _: dict) -> dict:
        m = self.find(self.place(args), args["timestamp"])
        if not m or not m.get("reactions"):
            raise Refusal("no_reaction")
        m["reactions"] = [r for r in m["reactions"] if r["name"] != args["name"]]
        return {}

    def page(self, all_: list[dict], args: dict) -> dict:
        limit, at = min(int(args.get("limit", 100)), 200), int(args.get("cursor") or 0)
        oldest, latest = float(args.get("oldest") or 0), float(args.get("latest") or 1e12)
        part = [m for m in all_ if oldest < float(m["ts"]) <= latest]
        if not args.get("include_all_metadata"):
            part = [{k: v for k, v in m.items() if k != "metadata"} for m in part]
        more = at + limit < len(part)
        return {"messages": part[at : at + limit], "has_more": more, "response_metadata": {"next_cursor": str(at + limit) if more else ""}}

    def do_conversations_replies(self, args: dict, _: dict) -> dict:
        channel = self.place(args)
        root = self.find(channel, args["ts"])
        if not root:
            raise Refusal("thread_not_found")
        return self.page([m for m in self.messages[channel] if args["ts"] in (m["ts"], m.get("thread_ts"))], args)

    def do_conversations_history(self, args: dict, _: dict) -> dict:
        return self.page([m for m in reversed(self.messages.get(self.place(args), [])) if m.get("thread_ts") in (None, m["ts"])], args)

    def do_conversations_info(self, args: dict, _: dict) -> dict:
        channel = self.place(args)
        return {"channel": {"id": channel, "name": channel.lower(), "is_im": self.channels[channel] == "im"}}

    def do_conversations_open(self, args: dict, _: dict) -> dict:
        return {"channel": {"id": "D1"}}

    def do_users_info(self, args: dict, _: dict) -> dict:
        if args["user"] not in self.users:
            raise Refusal("user_not_found")
        return {"user": self.users[args["user"]]}

    def do_files_info(self, args: dict, _: dict) -> dict:
        f = self.files.get(args["file"])
        if not f or f.get("_pending"):
            raise Refusal("file_not_found")
        if f.get("_share_at") and time.monotonic() >= f["_share_at"]:
            self.share(f)
        full = self.file_view(f | f.get("_full", {}))
        return {"file": full}

    def do_files_getUploadURLExternal(self, args: dict, _: dict) -> dict:
        if int(args["length"]) <= 0:
            raise Refusal("missing_argument")
        fid = self.add_file(args["filename"], b"", "", _pending=True, _length=int(args["length"]), alt_txt=args.get("alt_txt", ""))
        return {"upload_url": f"{self.url}/upload/v1/{secrets.token_hex(12)}-{fid}", "file_id": fid}

    def do_files_completeUploadExternal(self, args: dict, who: dict) -> dict:
        wanted = json.loads(args["files"]) if isinstance(args["files"], str) else args["files"]
        out = []
        group = [w["id"] for w in wanted]
        for w in wanted:
            f = self.files.get(w["id"])
            if not f or not f.get("_pending") or len(self.bytes[w["id"]]) != f["_length"]:
                raise Refusal("file_not_found")
        for w in wanted:
            f = self.files[w["id"]]
            f |= {"_pending": False, "title": w.get("title", f["name"]), "size": f["_length"], "user": who["user"], "mimetype": "image/png" if self.bytes[w["id"]][:4] == b"\x89PNG" else "text/plain"}
            if args.get("channel_id") and self.lost_shares <= 0:
                f |= {"_to": self.place(args, "channel_id"), "_thread": args.get("thread_ts"), "_group": group, "_share_at": time.monotonic() + self.share_delay}
            out.append({"id": f["id"], "title": f["title"]})
        if args.get("channel_id"):
            self.lost_shares -= 1
            if not self.share_delay and self.files[group[0]].get("_share_at"):
                self.share(self.files[group[0]])
        return {"files": out}

    def share(self, f: dict) -> None:
        channel, thread = f["_to"], f["_thread"]
        m = {"type": "message", "subtype": "file_share", "user": f["user"], "bot_id": "BBOT", "app_id": "AAPP", "text": "", "ts": self.ts(), "files": [self.file_view(self.files[x]) for x in f["_group"]]}
        if thread:
            m["thread_ts"] = thread
        self.messages.setdefault(channel, []).append(m)
        for x in f["_group"]:
            self.files[x]["_share_at"] = None
            self.files[x]["shares"] = {"private" if channel[0] in "DG" else "public": {channel: [{"ts": m["ts"], "thread_ts": thread}]}}
        self.later(m | {"channel": channel, "channel_type": self.channels[channel]})

    def do_files_delete(self, args: dict, _: dict) -> dict:
        if not self.files.pop(args["file"], None):
            raise Refusal("file_not_found")
        return {}

    # ---- HTTP ----
    def post_event(self, url: str, payload: dict, when: int | None = None, secret: str | None = None) -> int:
        """The Events API: one signed request to the app; its status."""
        body, stamp = json.dumps(payload).encode(), str(when or int(time.time()))
        mac = hmac.new((secret or self.signing_secret).encode(), b"v0:" + stamp.encode() + b":" + body, hashlib.sha256).hexdigest()
        req = urllib.request.Request(url, body, {"Content-Type": "application/json", "X-Slack-Request-Timestamp": stamp, "X-Slack-Signature": f"v0={mac}"})
        try:
            with urllib.request.urlopen(req, timeout=10) as r:
                self.last_body = r.read().decode()
                return r.status
        except urllib.error.HTTPError as e:
            return e.code

    def handler(fake) -> type:  # noqa: N805
        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"
            disable_nagle_algorithm = True

            def log_message(self, *_: object) -> None:
                pass

            def answer(self, status: int, body: bytes, kind: str = "application/json", **headers: str) -> None:
                self.send_response(status)
                for k, v in {"Content-Type": kind, "Content-Length": str(len(body))}.items():
                    self.send_header(k, v)
                for k, v in headers.items():
                    self.send_header(k.replace("_", "-"), v)
                self.end_headers()
                self.wfile.write(body)

            def body(self) -> bytes:
                return self.rfile.read(int(self.headers.get("Content-Length") or 0))

            def do_GET(self) -> None:
                if self.path.startswith("/link/"):
                    self.upgrade()
                elif self.path.startswith("/files-pri/"):
                    self.download()
                elif self.path.startswith("/login"):
                    self.answer(200, b"<!DOCTYPE html><html><title>Slack login</title></html>", "text/html; charset=utf-8")
                elif self.path.startswith("/foreign"):
                    fake.foreign_tokens.append(self.headers.get("Authorization"))
                    self.answer(200, b"stolen")
                elif self.path.startswith("/api/"):
                    self.call(dict(urllib.parse.parse_qsl(urllib.parse.urlparse(self.path).query)), False)
                else:
                    self.answer(404, b"")

            def do_POST(self) -> None:
                if self.path.startswith("/api/"):
                    raw, kind = self.body(), self.headers.get("Content-Type", "")
                    as_json = "json" in kind
                    args = json.loads(raw or b"{}") if as_json else dict(urllib.parse.parse_qsl(raw.decode(), keep_blank_values=True))
                    self.call(args, as_json)
                elif self.path.startswith("/upload/v1/"):
                    self.upload()
                elif self.path.startswith("/control/"):
                    out = getattr(fake, self.path.rsplit("/", 1)[-1])(**json.loads(self.body() or b"{}"))
                    self.answer(200, json.dumps(out, default=str).encode())
                else:
                    self.body()
                    self.answer(404, b"")

            def call(self, args: dict, as_json: bool) -> None:
                method = urllib.parse.urlparse(self.path).path.split("/api/", 1)[1]
                auth = self.headers.get("Authorization", "")
                token = auth[7:] if auth.startswith("Bearer ") else args.get("token")
                with fake.changed:
                    fault = fake.faults.get(method, []) and fake.faults[method].pop(0)
                    fake.calls.append({"method": method, "args": {k: v for k, v in args.items() if k != "token"}, "at": time.monotonic(), "token": token, "failed": bool(fault)})
                    out: dict = {}
                    if not fault or fault["apply"]:
                        try:
                            out = {"ok": True} | fake.api(method, args, token, as_json)
                        except Refusal as r:
                            out = r.body
                    fake.changed.notify_all()
                if fault:
                    time.sleep(fault["delay"])
                    if fault["cut"]:
                        self.close_connection = True
                        return
                    headers = {"Retry_After": str(fault["retry_after"])} if fault["retry_after"] is not None else {}
                    body = b"<html>oops</html>" if fault["html"] else json.dumps({"ok": False, "error": fault["code"] or "ratelimited"}).encode()
                    self.answer(fault["status"], body, "text/html" if fault["html"] else "application/json", **headers)
                    return
                scopes = fake.tokens.get(token or "", {}).get("scopes", "")
                self.answer(200, json.dumps(out).encode(), **({"x_oauth_scopes": scopes} if scopes else {}))

            def upload(self) -> None:
                raw, fid = self.body(), self.path.rsplit("-", 1)[-1]
                kind = self.headers.get("Content-Type", "")
                if kind.startswith("multipart/"):
                    boundary = b"--" + kind.split("boundary=")[1].encode()
                    raw = raw.split(boundary)[1].split(b"\r\n\r\n", 1)[1].rsplit(b"\r\n", 1)[0]
                with fake.changed:
                    fault = fake.faults.get("upload", []) and fake.faults["upload"].pop(0)
                    if fid not in fake.files or fault:
                        self.answer(500, b"no")
                        return
                    fake.bytes[fid] = raw
                    fake.changed.notify_all()
                self.answer(200, f"OK - {len(raw)}".encode(), "text/plain")

            def download(self) -> None:
                fid = self.path.split("/")[2].split("-")[1]
                who = fake.tokens.get(self.headers.get("Authorization", "")[7:])
                fake.calls.append({"method": "download", "args": {"file": fid}, "at": time.monotonic(), "token": self.headers.get("Authorization"), "failed": False})
                if fake.foreign_hop:
                    self.answer(302, b"", Location=f"http://localhost:{fake.port}/foreign/{fid}")
                elif fake.cdn_hop and "hop=1" not in self.path:
                    self.answer(302, b"", Location=f"{self.path}?hop=1")
                elif fake.html_files:
                    self.answer(200, b"<!DOCTYPE html><html>login</html>", "text/html")
                elif not who or "files:read" not in who["scopes"]:
                    self.answer(302, b"", Location=f"/login?redir={urllib.parse.quote(self.path)}")
                else:
                    f = fake.files[fid]
                    self.answer(200, fake.bytes[fid], f["mimetype"] or "application/octet-stream")

            def upgrade(self) -> None:
                ticket = urllib.parse.parse_qs(urllib.parse.urlparse(self.path).query).get("ticket", [""])[0]
                self.close_connection = True
                if ticket not in fake.tickets:
                    self.answer(401, b"")
                    return
                fake.tickets.discard(ticket)
                if fake.upgrade_status != 101:
                    self.answer(fake.upgrade_status, b"")
                    return
                key = "wrong" if fake.bad_accept else self.headers["Sec-WebSocket-Key"]
                accept = base64.b64encode(hashlib.sha1((key + GUID).encode()).digest()).decode()
                self.connection.sendall(f"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Accept: {accept}\r\n\r\n".encode())
                link = Link(fake, self.connection, b"")
                with fake.changed:
                    fake.links.append(link)
                    fake.max_links = max(fake.max_links, sum(x.open for x in fake.links))
                if not fake.no_hello:
                    self.hello(link)
                link.serve()

            def hello(self, link: Link) -> None:
                n = len(fake.links) + fake.phantom_links
                if n > 10 and not fake.phantom_links:
                    link.send({"type": "disconnect", "reason": "too_many_websockets"})
                    return
                link.send({"type": "hello", "num_connections": n, "connection_info": {"app_id": "AAPP"}, "debug_info": {"host": "fake", "approximate_connection_time": 18060}})
                with fake.changed:
                    link.ready = True
                    if fake.alone_since is not None:
                        fake.gap_ms = max(fake.gap_ms, (time.monotonic() - fake.alone_since) * 1000)
                        fake.alone_since = None
                    fake.flush()
                    fake.changed.notify_all()

        return Handler
