"""One HTTP server on the loopback for the Web API, files, links and control."""
import base64
import hashlib
import json
import threading
import time
import urllib.parse
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from .limits import Refusal
from .sockets import GUID, Link
from .web import Web


class Quiet(ThreadingHTTPServer):
    def handle_error(self, *_: object) -> None:
        """Peers that are killed hang up in the middle of things."""


class FakeSlack(Web):
    """The whole of it, listening."""

    def __init__(self) -> None:
        super().__init__()
        self.server = Quiet(("127.0.0.1", 0), handler(self))
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


def handler(fake: FakeSlack) -> type:
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
            if "chunked" in self.headers.get("Transfer-Encoding", ""):
                out = b""
                while n := int(self.rfile.readline().split(b";")[0], 16):
                    out += self.rfile.read(n)
                    self.rfile.readline()
                self.rfile.readline()
                return out
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
                        fake.calls[-1]["error"] = out["error"]
                fake.changed.notify_all()
            if fault:
                time.sleep(fault["delay"])
                if fault.get("hold"):
                    fault["hold"].wait(60)
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
                held = fault and fault.get("hold")
                if fid not in fake.files or (fault and not held):
                    self.answer(500, b"no")
                    return
                fake.calls.append({"method": "upload", "args": {"file": fid}, "at": time.monotonic(), "token": None, "failed": bool(held)})
                fake.bytes[fid] = raw
                fake.changed.notify_all()
            if held:
                held.wait(60)
                self.close_connection = True
                return
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
