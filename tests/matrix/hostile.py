"""A homeserver of our own making, for what a real one never does: each test says how it misbehaves."""
import json
import re
import threading
import urllib.parse
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

USER, DEVICE, ROOM, ANN = "@bot:fake", "FAKEDEVICE", "!room:fake", "@ann:fake"


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: "Server"

    def log_message(self, format: str, *args: object) -> None:  # pylint: disable=redefined-builtin
        pass

    def handle_any(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        fake = self.server.fake
        with fake.came:
            fake.requests.append((self.command, self.path, dict(self.headers), body))
            fake.came.notify_all()
        try:
            fake.answer(self, body)
        except (BrokenPipeError, ConnectionResetError):
            self.close_connection = True

    do_GET = do_POST = do_PUT = handle_any

    def reply(self, status: int, body: object, **headers: str) -> None:
        data = body if isinstance(body, bytes) else json.dumps(body).encode()
        self.send_response_only(status)
        usual = {"Date": self.date_time_string(), "Content-Length": str(len(data)), "Content-Type": "application/json"}
        for name, value in (usual | headers).items():
            self.send_header(name.replace("_", "-"), value)
        self.end_headers()
        self.wfile.write(data)

    def hang_up(self) -> None:
        self.close_connection = True
        self.connection.close()


class Server(ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, request: object, client_address: object) -> None:
        pass  # the daemon was killed, or hung up
    fake: "Fake"


class Fake:
    """rules: (method, path pattern, what to do); the first that matches and does not return False answers."""

    def __init__(self) -> None:
        self.http = Server(("127.0.0.1", 0), Handler)
        self.http.fake = self
        self.url = f"http://127.0.0.1:{self.http.server_address[1]}"
        self.requests: list[tuple[str, str, dict, bytes]] = []
        self.came = threading.Condition()
        self.syncs: list[object] = []
        self.sent: dict[str, dict] = {}
        self.position, self.events = 0, 0
        self.rules: list[tuple[str, str, Callable[[Handler, bytes], object]]] = []
        threading.Thread(target=self.http.serve_forever, daemon=True).start()

    def close(self) -> None:
        self.http.shutdown()
        self.http.server_close()
        with self.came:
            self.came.notify_all()

    def on(self, method: str, pattern: str, do: Callable[[Handler, bytes], object]) -> None:
        self.rules.append((method, pattern, do))

    def first(self, n: int, method: str, pattern: str, do: Callable[[Handler, bytes], object]) -> None:
        """Only the first n times."""
        left = [n]

        def some(handler: Handler, body: bytes) -> object:
            left[0] -= 1
            return do(handler, body) if left[0] >= 0 else False
        self.on(method, pattern, some)

    def count(self, pattern: str) -> int:
        return sum(bool(re.search(pattern, path)) for _, path, _, _ in self.requests)

    def until(self, wanted: Callable[[], object], seconds: float = 90) -> None:
        with self.came:
            if not self.came.wait_for(wanted, seconds):
                raise AssertionError(f"it never came; asked: {[(m, p[:80]) for m, p, _, _ in self.requests[-20:]]}")

    def until_more(self, count: Callable[[], int], wanted: int, seconds: float = 90) -> None:
        """However long it takes, as long as there is more of it every so many seconds."""
        while (n := count()) < wanted:
            self.until(lambda n=n: count() > n, seconds)

    # ---- what is said in the room ----

    def message(self, content: object, **more: object) -> dict:
        self.events += 1
        return {"event_id": f"$e{self.events}", "type": "m.room.message", "sender": ANN, "origin_server_ts": 1, "content": content} | more

    def deliver(self, *events: object, **more: object) -> None:
        """One response of /sync, with these events in the room."""
        room = {"timeline": {"events": list(events), "limited": False}, "summary": {"m.joined_member_count": 2}}
        self.raw({"rooms": {"join": {ROOM: room | more}}})

    def raw(self, response: object) -> None:
        with self.came:
            self.syncs.append(response)
            self.came.notify_all()

    def ask(self, text: str) -> str:
        event = self.message({"msgtype": "m.text", "body": text})
        self.deliver(event)
        return event["event_id"]

    # ---- answers ----

    def answer(self, handler: Handler, body: bytes) -> None:
        path = urllib.parse.urlparse(handler.path).path
        for method, pattern, do in self.rules:
            if method == handler.command and re.search(pattern, path) and do(handler, body) is not False:
                return
        self.ordinary(handler, path, body)

    def ordinary(self, handler: Handler, path: str, body: bytes) -> None:
        if path.endswith("/versions"):
            handler.reply(200, {"versions": ["v1.11"]})
        elif path.endswith("/login"):
            handler.reply(200, {"user_id": USER, "device_id": DEVICE, "access_token": "secret-token"})
        elif path.endswith("/whoami"):
            handler.reply(200, {"user_id": USER, "device_id": DEVICE})
        elif path.endswith("/sync"):
            self.sync(handler)
        elif "/send/" in path or "/redact/" in path:
            handler.reply(200, {"event_id": self.keep(path, body)})
        else:
            handler.reply(200, {})

    def keep(self, path: str, body: bytes) -> str:
        """As servers do: the same transaction id is the same event."""
        with self.came:
            new = {"id": f"$s{len(self.sent)}", "content": json.loads(body or b"{}")}
            got = self.sent.setdefault(path, new)
            self.came.notify_all()
        return got["id"]

    def sync(self, handler: Handler) -> None:
        with self.came:
            self.came.wait_for(lambda: self.syncs, 1)
            response = self.syncs.pop(0) if self.syncs else {}
            self.position += 1
        if isinstance(response, bytes):
            handler.reply(200, response)
        else:
            handler.reply(200, {"next_batch": f"s{self.position}"} | response)

    def texts(self) -> list[str]:
        return [s["content"].get("body", "") for s in self.sent.values()]
