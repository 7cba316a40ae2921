"""Plays zygote and keeper for the tests: one preloaded process that forks heads, and sessions to talk to them.

`Session` speaks the frames of box_proto.h itself, so that a mistake in kernel/frames.py can't hide. Every
wait has an event and a deadline; nothing sleeps.
"""

import atexit
import json
import os
import selectors
import shutil
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import time
import unittest
import warnings

HERE = os.path.dirname(os.path.abspath(__file__))
SANDBOX = os.environ.get("SANDBOOK_SANDBOX", os.path.join(HERE, "..", "..", "sandbox", "inside"))
HEAD = struct.Struct("=IBBHIII")
MAGIC, VERSION, MORE = 0x314B4253, 1, 1
CELL, CALL, CLAIM, HELLO = 2, 3, 35, 96
FRAME_MAX = 64 << 10
DEADLINE_S = 120


def pair() -> tuple[socket.socket, socket.socket]:
    return socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)


# The zygote: this file run as a program


def _adopt(fds: list[int]) -> int:
    """Descriptors as a head has them: 0 null, 1 and 2 pipes, 3 the channel, no other."""
    null = os.open("/dev/null", os.O_RDONLY)
    high = [os.dup(fd) for fd in (null, *fds)]
    for target, fd in zip((0, 1, 2, 3), (high[0], high[2], high[3], high[1])):
        os.dup2(fd, target)
    os.closerange(4, 4096)
    return 3


def zygote(control: socket.socket) -> None:
    sys.path.insert(0, SANDBOX)
    import kernel

    kernel.preload()
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    control.send(b"ready")
    while True:
        message, fds, _, _ = socket.recv_fds(control, 4096, 3)
        if not message:
            os._exit(0)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)  # of a background thread that pyarrow starts
            pid = os.fork()
        if pid == 0:
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            kernel.serve(_adopt(fds), message.decode(), 7, {"audit": {"threads": 1}})
        for fd in fds:
            os.close(fd)
        control.send(str(pid).encode())


class Zygote:
    _running = None

    def __init__(self, python: list[str] | None = None):
        self.control, theirs = pair()
        env = {
            "PATH": "/usr/bin:/bin",
            "LANG": "C.UTF-8",
            "HOME": "/tmp",
            "MPLBACKEND": "Agg",
            "MPLCONFIGDIR": "/tmp/mpl",
            "OPENBLAS_NUM_THREADS": "1",
            "OMP_NUM_THREADS": "1",
            "PYTHONDONTWRITEBYTECODE": "1",
        }
        passed = ("SANDBOOK_SANDBOX", "SANDBOOK_PICTURE", "MATPLOTLIBRC")
        env.update((name, os.environ[name]) for name in passed if name in os.environ)
        args = [*(python or [sys.executable]), os.path.abspath(__file__), str(theirs.fileno())]
        self.process = subprocess.Popen(args, env=env, pass_fds=[theirs.fileno()], cwd="/")
        theirs.close()
        self.control.settimeout(DEADLINE_S)
        if self.control.recv(16) != b"ready":
            raise RuntimeError("the zygote did not start")

    def fork(self, data_dir: str, fds: list[int]) -> int:
        socket.send_fds(self.control, [data_dir.encode()], fds)
        return int(self.control.recv(32))

    def close(self) -> None:
        self.control.close()
        self.process.wait()

    @classmethod
    def shared(cls) -> "Zygote":
        if cls._running is None:
            cls._running = cls()
            atexit.register(cls._running.close)
        return cls._running


# The keeper's side


class HeadDied(Exception):
    pass


class Reply(dict):
    """A claim, with what was printed until it came."""

    stdout = ""
    stderr = ""
    took_ms = 0.0

    @property
    def text(self) -> str | None:
        return self["result"] and self["result"]["text/plain"]

    @property
    def paths(self) -> list[str]:
        return [figure["path"] for figure in self["figures"]]


class Session:
    def __init__(self, zygote: Zygote | None = None):
        self.data_dir = tempfile.mkdtemp(prefix="kernel-test-")
        self.number = self.request = 0
        self.channel, channel = pair()
        self.pipes = {}
        ends = [channel.fileno()]
        for name in ("stdout", "stderr"):
            ours, theirs = os.pipe()
            os.set_blocking(ours, False)
            self.pipes[name] = ours
            ends.append(theirs)
        self.printed = {"stdout": b"", "stderr": b""}
        self._select = selectors.DefaultSelector()
        self._select.register(self.channel, selectors.EVENT_READ, "channel")
        for name, fd in self.pipes.items():
            self._select.register(fd, selectors.EVENT_READ, name)
        self.pid = (zygote or Zygote.shared()).fork(self.data_dir, ends)
        channel.close()
        for fd in ends[1:]:
            os.close(fd)
        self.hello = self._collect(HELLO, 0)

    def close(self) -> None:
        self.channel.close()
        for fd in self.pipes.values():
            os.close(fd)
        self._select.close()
        shutil.rmtree(self.data_dir, ignore_errors=True)

    def __enter__(self) -> "Session":
        return self

    def __exit__(self, *_) -> None:
        self.close()

    # Sending

    def send(self, kind: int, spec: dict, part_max: int = FRAME_MAX - HEAD.size, fds: tuple[int, ...] = ()) -> None:
        payload = json.dumps(spec).encode()
        self.request += 1
        self.printed = {"stdout": b"", "stderr": b""}
        for start in range(0, len(payload), part_max):
            part = payload[start : start + part_max]
            more = MORE if start + part_max < len(payload) else 0
            frame = HEAD.pack(MAGIC, VERSION, kind, more, 7, self.request, len(part)) + part
            socket.send_fds(self.channel, [frame], [] if start else list(fds))

    def start(self, code: str, **options) -> None:
        self.number += 1
        self.send(CELL, {"code": code, "number": self.number, "timeout_ms": 1000, "grace_ms": 500}, **options)

    def interrupt(self) -> None:
        os.kill(self.pid, signal.SIGINT)

    # Receiving

    def _events(self, deadline: float):
        left = deadline - time.monotonic()
        ready = self._select.select(max(left, 0))
        if not ready:
            raise TimeoutError(f"nothing within {DEADLINE_S} s; printed so far: {self.printed}")
        for key, _ in ready:
            yield key.data

    def _drain(self, name: str) -> None:
        try:
            while part := os.read(self.pipes[name], 1 << 16):
                self.printed[name] += part
            self._select.unregister(self.pipes[name])
        except BlockingIOError:
            pass

    def _frame(self) -> tuple[int, int, int, int, bytes]:
        data = self.channel.recv(FRAME_MAX)
        if not data:
            raise HeadDied(self.printed)
        magic, version, kind, flags, session, request, length = HEAD.unpack_from(data)
        assert (magic, version, length) == (MAGIC, VERSION, len(data) - HEAD.size), "bad frame head"
        return kind, flags, session, request, data[HEAD.size :]

    def _collect(self, want: int, number: int) -> dict:
        deadline, parts = time.monotonic() + DEADLINE_S, []
        while True:
            for name in self._events(deadline):
                if name != "channel":
                    self._drain(name)
                    continue
                kind, flags, session, request, payload = self._frame()
                assert (kind, session, request) == (want, 7, number), (kind, session, request)
                parts.append(payload)
                if not flags & MORE:
                    return json.loads(b"".join(parts))

    def wait_printed(self, text: str, name: str = "stdout") -> None:
        deadline = time.monotonic() + DEADLINE_S
        while text.encode() not in self.printed[name]:
            for source in self._events(deadline):
                if source == "channel":
                    raise AssertionError(f"the cell ended without printing {text!r}: {self.finish()}")
                self._drain(source)

    def finish(self) -> Reply:
        reply = Reply(self._collect(CLAIM, self.request))
        for name in self.pipes:
            self._drain(name)
        reply.stdout = self.printed["stdout"].decode("utf-8", "replace")
        reply.stderr = self.printed["stderr"].decode("utf-8", "replace")
        return reply

    def run(self, code: str, **options) -> Reply:
        began = time.perf_counter()
        self.start(code, **options)
        reply = self.finish()
        reply.took_ms = 1e3 * (time.perf_counter() - began)
        return reply

    def call(self, op: str, fds: tuple[int, ...] = (), **arguments) -> Reply:
        self.send(CALL, {"op": op, "timeout_ms": 1000, "grace_ms": 500, **arguments}, fds=fds)
        return self.finish()

    # Files

    def path(self, name: str) -> str:
        return os.path.join(self.data_dir, name)

    def write(self, name: str, data: str | bytes) -> None:
        os.makedirs(os.path.dirname(self.path(name)), exist_ok=True)
        with open(self.path(name), "wb") as file:
            file.write(data.encode() if isinstance(data, str) else data)

    def exists(self, name: str) -> bool:
        return os.path.exists(self.path(name))


class KernelTest(unittest.TestCase):
    """A new session for every test."""

    maxDiff = None

    def setUp(self) -> None:
        self.session = Session()
        self.addCleanup(self.session.close)

    def run_cell(self, code: str, **options) -> Reply:
        return self.session.run(code, **options)

    def ok(self, code: str, **options) -> Reply:
        reply = self.run_cell(code, **options)
        self.assertEqual(reply["status"], "ok", reply)
        return reply

    def error(self, code: str, name: str | None = None, **options) -> dict:
        reply = self.run_cell(code, **options)
        self.assertEqual(reply["status"], "error", reply)
        if name:
            self.assertEqual(reply["error"]["name"], name, reply)
        return reply["error"] | {"notes": reply["notes"]}

    def value(self, code: str) -> str | None:
        return self.ok(code).text

    def assert_alive(self) -> None:
        self.assertEqual(self.value("40 + 2"), "42")


if __name__ == "__main__":
    zygote(socket.socket(fileno=int(sys.argv[1])))
