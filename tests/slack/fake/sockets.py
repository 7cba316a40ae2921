"""Socket Mode, the server's side: frames by hand, so that no client's code is measured by its own."""
import json
import secrets
import socket
import struct
import threading
import time

from .state import State

GUID = "258EAFA5-E914-47DA-95CA-C5AB0DC85B11"


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


class Sockets(State):
    """Links, the envelopes on them, and who acknowledged what."""

    def connections_open(self, token: str | None) -> dict:
        if token != self.app_token:
            raise Refusal("invalid_auth" if token else "not_authed")
        ticket = secrets.token_hex(16)
        self.tickets.add(ticket)
        self.opens.append(time.monotonic())
        return {"url": f"ws://127.0.0.1:{self.port}/link/?ticket={ticket}&app_id=AAPP"}

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

    def send_once(self, kind: str, payload: dict) -> str:
        """What is not of the Events API: to one link, and never again."""
        with self.lock:
            link = next(x for x in self.links if x.ready and x.open)
            eid = secrets.token_hex(8)
            self.envelopes[eid] = {"sent": time.monotonic(), "acks": 0, "payload": {"event_id": eid, "event": {}}, "retry": 0}
        link.send({"envelope_id": eid, "type": kind, "payload": payload, "accepts_response_payload": True})
        return eid

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

    def disconnect(self, reason: str = "warning", drop_after: float | None = None, links: list[Link] | None = None) -> None:
        """Tells links to go: those given, or all present ones that were not told before."""
        with self.lock:
            told = links if links is not None else [x for x in self.links if not x.leaving]
            for x in told:
                x.leaving = True
        for x in told:
            x.send({"type": "disconnect", "reason": reason, "debug_info": {"host": "fake"}})
            if drop_after is not None:
                threading.Timer(drop_after, x.drop).start()

    def cut(self) -> None:
        for x in list(self.links):
            x.drop()

    def freeze(self) -> None:
        for x in list(self.links):
            x.frozen = True

    def later(self, event: dict) -> None:
        if self.echo:
            threading.Thread(target=self.emit, args=(event,), daemon=True).start()
