"""A real Synapse on the loopback, and people who use it. Stdlib only: what a person does is a few requests."""
import hashlib
import hmac
import json
import os
import shutil
import signal
import socket
import subprocess
import tempfile
import time
import urllib.error
import urllib.parse
import urllib.request
from pathlib import Path

HERE = Path(__file__).resolve().parent
SECRET = "for-tests-only"


def peers() -> Path:
    done = subprocess.run([str(HERE / "peers")], stdout=subprocess.PIPE, text=True, check=True)
    return Path(done.stdout.strip().splitlines()[-1])


def free_port() -> int:
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


LIMITS = ("rc_registration rc_joins_per_room rc_room_creation rc_media_create rc_key_requests rc_message rc_admin_redaction "
          "rc_3pid_validation").split()


def config(folder: Path, port: int, extra: str) -> str:
    much = "{per_second: 10000, burst_count: 10000}"
    lines = [f"{name}: {much}" for name in LIMITS if f"{name}:" not in extra]
    lines += [f"rc_login: {{address: {much}, account: {much}, failed_attempts: {much}}}", f"rc_joins: {{local: {much}, remote: {much}}}",
              f"rc_invites: {{per_room: {much}, per_user: {much}, per_issuer: {much}}}"]
    limits = "\n".join(lines)
    return f"""
server_name: "localhost"
public_baseurl: "http://127.0.0.1:{port}/"
pid_file: {folder}/pid
listeners:
  - {{port: {port}, bind_addresses: ["127.0.0.1"], type: http, tls: false, x_forwarded: false, resources: [{{names: [client], compress: false}}]}}
database: {{name: sqlite3, args: {{database: {folder}/homeserver.db}}}}
media_store_path: {folder}/media
max_upload_size: 1M
enable_authenticated_media: true
signing_key_path: {folder}/signing.key
log_config: {folder}/log.yaml
registration_shared_secret: "{SECRET}"
macaroon_secret_key: "x"
form_secret: "y"
report_stats: false
enable_registration: false
bcrypt_rounds: 4
trusted_key_servers: []
suppress_key_server_warning: true
federation_domain_whitelist: []
url_preview_enabled: false
presence: {{enabled: false}}
{limits}
{extra}
"""


class Synapse:
    """Started once for a test file; each test makes its own people and rooms."""

    def __init__(self, extra: str = "") -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="sandbook-synapse-"))
        self.port = free_port()
        self.url = f"http://127.0.0.1:{self.port}"
        self.python = peers() / "bin/python"
        (self.folder / "homeserver.yaml").write_text(config(self.folder, self.port, extra))
        (self.folder / "log.yaml").write_text(
            f"version: 1\nhandlers: {{file: {{class: logging.FileHandler, filename: {self.folder}/log}}}}\n"
            "root: {level: WARNING, handlers: [file]}\n")
        subprocess.run([str(self.python.parent / "generate_signing_key"), "-o", str(self.folder / "signing.key")], check=True)
        self.people = 0
        self.start()

    def start(self) -> None:
        words = [str(self.python), "-m", "synapse.app.homeserver", "-c", str(self.folder / "homeserver.yaml")]
        out = open(self.folder / "out", "ab")  # pylint: disable=consider-using-with
        self.process = subprocess.Popen(words, stdout=out, stderr=out, cwd=self.folder)
        out.close()
        until = time.monotonic() + 120
        while time.monotonic() < until:
            if self.process.poll() is not None:
                raise RuntimeError(f"Synapse ended: {(self.folder / 'out').read_text()[-2000:]}")
            try:
                with urllib.request.urlopen(self.url + "/_matrix/client/versions", timeout=5):
                    return
            except OSError:
                time.sleep(0.1)  # a process that starts gives no other sign
        raise RuntimeError("Synapse did not start")

    def stop(self) -> None:
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
            try:
                self.process.wait(20)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()

    def close(self) -> None:
        self.stop()
        shutil.rmtree(self.folder, ignore_errors=True)

    def register(self, name: str = "person", admin: bool = False) -> "Person":
        self.people += 1
        user, password = f"{name}{self.people}", "secret"
        nonce = Person.call_at(self.url, None, "GET", "/_synapse/admin/v1/register")["nonce"]
        what = "\0".join([nonce, user, password, "admin" if admin else "notadmin"]).encode()
        mac = hmac.new(SECRET.encode(), what, hashlib.sha1).hexdigest()
        body = {"nonce": nonce, "username": user, "password": password, "admin": admin, "mac": mac}
        got = Person.call_at(self.url, None, "POST", "/_synapse/admin/v1/register", body)
        return Person(self, got["user_id"], got["access_token"], password)


class Refused(Exception):
    def __init__(self, status: int, body: dict) -> None:
        super().__init__(f"{status} {body}")
        self.status, self.body = status, body


class Person:
    """Somebody with a client: sends, and reads what comes."""

    def __init__(self, server: Synapse, user: str, token: str, password: str) -> None:
        self.server, self.user, self.token, self.password = server, user, token, password
        self.since: str | None = None
        self.txn = 0
        self.events: dict[str, list[dict]] = {}

    @staticmethod
    def call_at(url: str, token: str | None, method: str, path: str, body: object = None, raw: bytes | None = None,
                kind: str = "application/json") -> dict:
        data = raw if raw is not None else None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(url + path, data=data, method=method, headers={"Content-Type": kind})
        if token:
            request.add_header("Authorization", f"Bearer {token}")
        try:
            with urllib.request.urlopen(request, timeout=60) as got:
                return json.loads(got.read() or b"{}")
        except urllib.error.HTTPError as e:
            raise Refused(e.code, json.loads(e.read() or b"{}")) from e

    def call(self, method: str, path: str, body: object = None, **more: object) -> dict:
        return self.call_at(self.server.url, self.token, method, path, body, **more)

    def room(self, *invite: str, **options: object) -> str:
        body = {"preset": "private_chat", "invite": list(invite)} | options
        return self.call("POST", "/_matrix/client/v3/createRoom", body)["room_id"]

    def at(self, room: str, rest: str) -> str:
        return f"/_matrix/client/v3/rooms/{urllib.parse.quote(room, safe='')}/{rest}"

    def send_event(self, room: str, content: dict, kind: str = "m.room.message") -> str:
        self.txn += 1
        return self.call("PUT", self.at(room, f"send/{kind}/t{self.txn}"), content)["event_id"]

    def say(self, room: str, text: str, *mention: str, **more: object) -> str:
        content = {"msgtype": "m.text", "body": text, "m.mentions": {"user_ids": list(mention)} if mention else {}} | more
        return self.send_event(room, content)

    def in_thread(self, room: str, root: str, text: str, *mention: str, **more: object) -> str:
        relates = {"rel_type": "m.thread", "event_id": root, "is_falling_back": True, "m.in_reply_to": {"event_id": root}}
        return self.say(room, text, *mention, **({"m.relates_to": relates} | more))

    def upload(self, data: bytes, name: str, kind: str = "text/csv") -> str:
        path = f"/_matrix/media/v3/upload?filename={urllib.parse.quote(name)}"
        return self.call("POST", path, raw=data, kind=kind)["content_uri"]

    def send_file(self, room: str, data: bytes, name: str, caption: str | None = None, mention: tuple[str, ...] = (), **more: object) -> str:
        content = {"msgtype": "m.file", "body": caption or name, "filename": name, "url": self.upload(data, name),
                   "info": {"size": len(data), "mimetype": "text/csv"}, "m.mentions": {"user_ids": list(mention)} if mention else {}}
        return self.send_event(room, content | more)

    def redact(self, room: str, event: str) -> None:
        self.txn += 1
        self.call("PUT", self.at(room, f"redact/{urllib.parse.quote(event, safe='')}/r{self.txn}"), {})

    def download(self, mxc: str) -> bytes:
        request = urllib.request.Request(f"{self.server.url}/_matrix/client/v1/media/download/{mxc.removeprefix('mxc://')}",
                                         headers={"Authorization": f"Bearer {self.token}"})
        with urllib.request.urlopen(request, timeout=60) as got:
            return got.read()

    def sync(self, timeout_ms: int = 1000) -> None:
        since = f"&since={self.since}" if self.since else ""
        limit = urllib.parse.quote(json.dumps({"room": {"timeline": {"limit": 1000}}}))
        got = self.call("GET", f"/_matrix/client/v3/sync?timeout={timeout_ms if self.since else 0}&filter={limit}{since}")
        self.since = got["next_batch"]
        for room, what in got.get("rooms", {}).get("join", {}).items():
            self.events.setdefault(room, []).extend(what["timeline"]["events"])

    def until(self, room: str, wanted, seconds: float = 90) -> dict:
        """The first event in the room that wanted() likes, waiting for it."""
        looked, end = 0, time.monotonic() + seconds
        while True:
            events = self.events.get(room, [])
            for event in events[looked:]:
                if wanted(event):
                    return event
            looked = len(events)
            if time.monotonic() > end:
                raise AssertionError(f"nothing came; seen: {[(e['type'], e['sender'], e['content'].get('body')) for e in events]}")
            self.sync()

    def joined(self, room: str) -> set[str]:
        return set(self.call("GET", self.at(room, "joined_members"))["joined"])

    def history(self, room: str) -> list[dict]:
        """All events of a room, oldest first, as the server has them now."""
        out, token = [], ""
        while True:
            got = self.call("GET", self.at(room, f"messages?dir=f&limit=500{token}"))
            out += got["chunk"]
            if not got.get("end") or not got["chunk"]:
                return out
            token = f"&from={urllib.parse.quote(got['end'])}"


def cleanup_environment() -> dict[str, str]:
    return {k: v for k, v in os.environ.items() if "proxy" not in k.lower()}
