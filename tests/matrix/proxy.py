"""Between the bot and a real Synapse: loses, delays, refuses and changes what goes through, as a test says. All else passes as it is."""
import http.client
import json
import re
import threading
import urllib.parse
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

HOP = {"connection", "keep-alive", "transfer-encoding", "content-length", "host", "accept-encoding", "expect"}


class Call:
    """One request on its way. What a rule does with it: reply(), lose(), or nothing, and then the next rule is asked."""

    def __init__(self, handler: "Handler", body: bytes) -> None:
        self.handler, self.body = handler, body
        self.method = handler.command
        self.path = urllib.parse.unquote(urllib.parse.urlsplit(handler.path).path)
        self.token = (handler.headers.get("Authorization") or "").removeprefix("Bearer ")
        self.status = 0  # what the bot was told; 0: nothing
        self.got = (0, b"")  # what the server said
        self.kind = "application/json"
        self.done = False

    @property
    def json(self) -> dict:
        return json.loads(self.body or b"{}")

    def ask_server(self) -> None:
        link = http.client.HTTPConnection("127.0.0.1", self.handler.server.proxy.port, timeout=120)
        try:
            headers = {k: v for k, v in self.handler.headers.items() if k.lower() not in HOP}
            link.request(self.method, self.handler.path, self.body or (None if self.method == "GET" else b""), headers)
            got = link.getresponse()
            self.kind = got.getheader("Content-Type") or self.kind
            self.got = got.status, got.read()
        finally:
            link.close()

    def reply(self, status: int, body: object) -> None:
        data = body if isinstance(body, bytes) else json.dumps(body).encode()
        self.done, self.status = True, status
        self.handler.send_response(status)
        self.handler.send_header("Content-Length", str(len(data)))
        self.handler.send_header("Content-Type", self.kind)
        self.handler.end_headers()
        self.handler.wfile.write(data)

    def lose(self) -> None:
        self.done = True
        self.handler.close_connection = True
        self.handler.connection.close()


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: "Server"

    def log_message(self, format: str, *args: object) -> None:  # pylint: disable=redefined-builtin
        pass

    def handle_any(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        call = Call(self, body)
        try:
            self.server.proxy.pass_on(call)
        except (OSError, http.client.HTTPException):  # the bot was killed, or the server is gone
            self.close_connection = True
        self.server.proxy.note(call)

    do_GET = do_POST = do_PUT = do_DELETE = handle_any


class Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 64
    proxy: "Proxy"

    def handle_error(self, request: object, client_address: object) -> None:
        pass


class Rule:
    def __init__(self, proxy: "Proxy", pattern: str, do: Callable[[Call], object], times: int, late: bool) -> None:
        self.proxy, self.pattern, self.do, self.left, self.late = proxy, re.compile(pattern), do, times, late
        self.hits = 0

    def claim(self, call: Call, late: bool) -> bool:
        with self.proxy.came:
            if self.left == 0 or late != self.late or not self.pattern.search(f"{call.method} {call.path}"):
                return False
            self.left -= 1 if self.left > 0 else 0
            self.hits += 1
            self.proxy.came.notify_all()
            return True

    def off(self) -> None:
        with self.proxy.came:
            self.left = 0


class Proxy:
    def __init__(self, port: int) -> None:
        self.port = port
        self.http = Server(("127.0.0.1", 0), Handler)
        self.http.proxy = self
        self.url = f"http://127.0.0.1:{self.http.server_address[1]}"
        self.rules: list[Rule] = []
        self.calls: list[Call] = []
        self.came = threading.Condition()
        threading.Thread(target=self.http.serve_forever, daemon=True).start()

    def close(self) -> None:
        self.http.shutdown()
        self.http.server_close()

    def on(self, pattern: str, do: Callable[[Call], object], times: int = -1, late: bool = False) -> Rule:
        """pattern: of "METHOD /path". The newest rule is asked first. late: when the server has done it and answered, also what was
        on its way before the rule was made."""
        rule = Rule(self, pattern, do, times, late)
        self.rules.insert(0, rule)
        return rule

    def answers(self, pattern: str, edit: Callable[[dict], object], times: int = -1) -> Rule:
        """Each answer of the server that is JSON goes through edit, which changes it in place; False: that was not the one."""
        def change(call: Call) -> None:
            status, data = call.got
            body = json.loads(data)
            if edit(body) is False:
                rule.left += 1 if times >= 0 else 0
                rule.hits -= 1
            call.got = status, json.dumps(body).encode()
        rule = self.on(pattern, change, times, late=True)
        return rule

    def fails(self, pattern: str, status: int, times: int = -1, **body: object) -> Rule:
        return self.on(pattern, lambda call: call.reply(status, {"errcode": "M_UNKNOWN"} | body), times)

    def loses_answers(self, pattern: str, times: int = -1) -> Rule:
        """The server has done it; nobody is told."""
        return self.on(pattern, Call.lose, times, late=True)

    def pass_on(self, call: Call) -> None:
        for late in (False, True):
            if late:
                call.ask_server()
            for rule in list(self.rules):
                if rule.claim(call, late):
                    rule.do(call)
                    if call.done:
                        return
        call.reply(*call.got)

    def note(self, call: Call) -> None:
        with self.came:
            self.calls.append(call)
            self.came.notify_all()

    def seen(self, pattern: str, since: int = 0) -> list[Call]:
        with self.came:
            return [c for c in self.calls[since:] if re.search(pattern, f"{c.method} {c.path}")]

    def until(self, wanted: Callable[[], object], seconds: float = 90) -> None:
        with self.came:
            if not self.came.wait_for(wanted, seconds):
                raise AssertionError(f"it never came; asked: {[(c.method, c.path[:80], c.status) for c in self.calls[-20:]]}")
