"""Speaks box_proto.h to a keeper, as the daemon does. What the tests of this folder share; stdlib only.

The keeper is build/keeper/sandbook-box (SANDBOOK_BOX overrides) with build/keeper/box as support (SANDBOOK_BOX_SUPPORT) and
the cached image that sandbox/image/build names (SANDBOOK_IMAGE).
"""
import contextlib
import json
import os
import shutil
import socket
import struct
import subprocess
import sys
import tempfile
import time
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
HEAD = struct.Struct("=IBBHIII")
MAGIC, VERSION, MORE, FRAME_MAX = 0x314B4253, 1, 1, 64 << 10
OPEN, CELL, CALL, PUT, CANCEL, CLOSE, CHECK, RESET, BACK, CHECKPOINT, RESTORE = range(1, 12)
READY, OUTPUT, FILE, CLAIM, DONE, NOTE = range(32, 38)
POOL, PIN, DROP = 16, 17, 18
GONE, KEPT_OUT = 40, 41
HELLO = 96
UID_BASE = 700000
MIB = 1 << 20
IS_ROOT = os.geteuid() == 0


def binary():
    return os.environ.get("SANDBOOK_BOX", str(ROOT / "build/keeper/sandbook-box"))


def support():
    return os.environ.get("SANDBOOK_BOX_SUPPORT", str(ROOT / "build/keeper/box"))


def image():
    named = os.environ.get("SANDBOOK_IMAGE")
    if not named:
        built = subprocess.run([str(ROOT / "sandbox/image/build")], stdout=subprocess.PIPE, text=True, check=True)
        named = built.stdout.strip().splitlines()[-1]
        os.environ["SANDBOOK_IMAGE"] = named
    return named


def wait_until(condition, what, most_s=60):
    """A state, not a time: however busy the machine is."""
    late = time.monotonic() + most_s
    while not condition():
        if time.monotonic() > late:
            raise AssertionError(f"still not so after {most_s} s: {what}")
        time.sleep(0.005)


def alive(pids):
    """Of these those that are there, the dead that nobody has waited for aside."""
    return [pid for pid in pids if state_of(pid) not in ("", "Z", "X")]


def state_of(pid):
    """As in ps; "": there is none."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return ""
    return stat[stat.rindex(")") + 2]


def descendants(top):
    """pid -> name of all that it started, however deep."""
    children = {}
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            stat = Path(f"/proc/{pid}/stat").read_text()
        except OSError:
            continue
        name, rest = stat[stat.index("(") + 1 : stat.rindex(")")], stat[stat.rindex(")") + 2 :].split()
        children.setdefault(int(rest[1]), []).append((int(pid), name))
    found, queue = {}, [top]
    while queue:
        for pid, name in children.get(queue.pop(), ()):
            found[pid] = name
            queue.append(pid)
    return found


def frame(kind, session, request, payload=b"", flags=0, **head):
    return HEAD.pack(
        head.get("magic", MAGIC), head.get("version", VERSION), kind, flags, session, request, head.get("len", len(payload))
    ) + payload


class Answer:
    """All that came for one request."""

    def __init__(self):
        self.out, self.err, self.claim_text, self.files, self.notes, self.done = b"", b"", b"", {}, [], None
        self.gone, self.kept_out = [], {}
        self.ms = 0.0

    def take(self, kind, payload, fds):
        if kind == OUTPUT:
            if payload[0] == 1:
                self.out += payload[1:]
            else:
                self.err += payload[1:]
        elif kind == FILE:
            with open(fds[0], "rb") as f:
                self.files[json.loads(payload)["path"]] = f.read(MIB)
        elif kind == GONE:
            self.gone.append(json.loads(payload)["path"])
        elif kind == KEPT_OUT:
            what = json.loads(payload)
            self.kept_out[what["path"]] = what["why"]
        elif kind == CLAIM:
            self.claim_text += payload
        elif kind == NOTE:
            self.notes.append(json.loads(payload))
        elif kind == DONE:
            self.done = json.loads(payload)
        else:
            raise AssertionError(f"frame of type {kind}")

    verdict = property(lambda self: self.done["verdict"])
    state = property(lambda self: self.done["state"])
    why = property(lambda self: self.done["why"] or "")
    claim = property(lambda self: json.loads(self.claim_text) if self.claim_text else {})
    error = property(lambda self: (self.claim.get("error") or {}).get("name"))
    result = property(lambda self: (self.claim.get("result") or {}).get("text/plain"))
    told = property(lambda self: self.claim.get("notes") or [])
    words = property(lambda self: self.out.decode("utf-8", "replace").split())

    def __repr__(self):
        return f"<{self.done} out={self.out[:300]!r} err={self.err[-600:]!r} error={self.error} files={list(self.files)}>"


class Keeper:
    def __init__(self, user=False, min_tier="T1", log=None, uid_base=UID_BASE, once=False):
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.socket, self.request, self.sessions, self.stash = ours, 0, 0, None
        self.begun = {}  # (session, request) -> what came of it so far
        self.own_log, self.last_log = log is None, ""
        self.log = log or tempfile.TemporaryFile()
        where, box = image(), support()
        before = []
        if user and IS_ROOT:  # a place that everybody may reach, in a mount namespace of its own
            self.stash = tempfile.mkdtemp(prefix="sandbook-box-")
            os.chmod(self.stash, 0o755)
            os.mkdir(self.stash + "/image")
            os.mkdir(self.stash + "/box")
            shutil.copy(binary(), self.stash + "/keeper")
            script = (
                f"mount --bind {where} {self.stash}/image && mount --bind {box} {self.stash}/box && "
                'exec setpriv --reuid 65534 --regid 65534 --clear-groups "$@"'
            )
            before = ["unshare", "--mount", "sh", "-c", script, "sh"]
            where, box, program = self.stash + "/image", self.stash + "/box", self.stash + "/keeper"
        else:
            program = binary()
        args = [program, "--image", where, "--support", box, "--uid-base", str(uid_base), "--min-tier", min_tier, *["--once"][:once]]
        fd = theirs.fileno()
        self.process = subprocess.Popen(
            before + args,
            env={"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "SECRET": "canary-7f1d"},
            stderr=self.log,
            close_fds=False,
            preexec_fn=lambda: (os.dup2(fd, 3), os.set_inheritable(3, True)),
        )
        theirs.close()
        ours.settimeout(60)
        self.report = json.loads(self.receive()[4])

    def send(self, kind, session, request, payload=b"", fds=()):
        if isinstance(payload, (dict, list)):
            payload = json.dumps(payload).encode()
        most = FRAME_MAX - HEAD.size
        for at in range(0, len(payload) or 1, most):
            more = MORE if at + most < len(payload) else 0
            socket.send_fds(self.socket, [frame(kind, session, request, payload[at : at + most], more)], list(fds))

    def receive(self):
        """type, flags, session, request, payload, descriptors"""
        data, fds, flags, _ = socket.recv_fds(self.socket, FRAME_MAX, 4)
        if not data:
            raise AssertionError("the keeper is gone: " + self.log_text()[-2000:])
        assert not flags & socket.MSG_TRUNC
        magic, version, kind, more, session, request, length = HEAD.unpack_from(data)
        assert (magic, version, length) == (MAGIC, VERSION, len(data) - HEAD.size)
        return kind, more, session, request, data[HEAD.size :], fds

    def answer(self, session, request, until=None):
        """until: not to its end, but to where it has printed that; ask once more for the rest."""
        a, began = self.begun.pop((session, request), None) or Answer(), time.perf_counter()
        while a.done is None:
            if until and until in a.out:
                self.begun[session, request] = a
                break
            kind, _, s, r, payload, fds = self.receive()
            if (s, r) == (session, request):
                a.take(kind, payload, fds)
            else:
                for fd in fds:
                    os.close(fd)
                self.stray(kind, s, r, payload)
        a.ms = (time.perf_counter() - began) * 1e3
        return a

    def stray(self, kind, session, request, payload):
        raise AssertionError(f"unexpected frame: type {kind}, session {session}, request {request}: {payload[:200]}")

    def open(self, **limits):
        self.sessions += 1
        s = Session(self, self.sessions)
        s.opened = s.start(**limits)
        return s

    def check(self):
        self.request += 1
        self.send(CHECK, 0, self.request)
        return self.answer(0, self.request)

    def stop(self):
        """Exit status, once it has taken everything away."""
        self.socket.close()
        status = self.process.wait(30)
        if self.own_log:
            self.last_log = self.log_text()
            self.log.close()
        if self.stash:
            shutil.rmtree(self.stash)
        return status

    def log_text(self):
        if self.log.closed:
            return self.last_log
        self.log.seek(0)
        return self.log.read().decode("utf-8", "replace")

    # ---- what is there on the host ----

    def descendants(self):
        return descendants(self.process.pid)

    def groups(self):
        """Others' come and go meanwhile, which a walk must not mind."""
        own = f"sandbook-{self.process.pid}-"
        return [os.path.join(where, d) for where, below, _ in os.walk("/sys/fs/cgroup") for d in below if d.startswith(own)]

    def descriptors(self):
        return len(os.listdir(f"/proc/{self.process.pid}/fd"))


@contextlib.contextmanager
def folder(path):
    fds = [os.open(path, os.O_RDONLY | os.O_DIRECTORY)] if path else []
    yield fds
    for fd in fds:
        os.close(fd)


class Session:
    def __init__(self, keeper, number):
        self.keeper, self.id, self.cells = keeper, number, 0

    def start(self, files=None, **limits):
        """files: a folder that /mnt/data begins with."""
        wanted = {"memory_bytes": 512 * MIB, "disk_bytes": 64 * MIB, "pids": 128, "cpu_pct": 200, "copies": 8} | limits
        with folder(files) as fds:
            self.keeper.send(OPEN, self.id, 0, wanted, fds)
        return self.keeper.answer(self.id, 0)

    def begin(self, kind, payload, fds=()):
        self.keeper.request += 1
        self.keeper.send(kind, self.id, self.keeper.request, payload, fds)
        return self.keeper.request

    def begin_cell(self, code, timeout_ms=20000, grace_ms=1000):
        self.cells += 1
        return self.begin(CELL, {"code": code, "number": self.cells, "timeout_ms": timeout_ms, "grace_ms": grace_ms})

    def begin_told(self, code, **limits):
        """Returns once the code has printed "=begun"."""
        request = self.begin_cell(code, **limits)
        a = self.keeper.answer(self.id, request, until=b"=begun")
        assert a.done is None, a
        return request

    def cancel(self):
        self.keeper.send(CANCEL, self.id, 0)

    def cell(self, code, **limits):
        return self.keeper.answer(self.id, self.begin_cell(code, **limits))

    def call(self, op, timeout_ms=20000, **more):
        request = self.begin(CALL, {"op": op, "timeout_ms": timeout_ms, "grace_ms": 1000} | more)
        return self.keeper.answer(self.id, request)

    def put(self, name, data=b"", fd=None):
        with tempfile.TemporaryFile() as f:
            f.write(data)
            f.flush()
            request = self.begin(PUT, {"name": name}, [f.fileno() if fd is None else fd])
            return self.keeper.answer(self.id, request)

    def reset(self):
        return self.keeper.answer(self.id, self.begin(RESET, b""))

    def back(self, cell=None, files=None):
        """To the state after that cell; None: before the last one. files: a folder, /mnt/data becomes that."""
        with folder(files) as fds:
            return self.keeper.answer(self.id, self.begin(BACK, {} if cell is None else {"cell": cell}, fds))

    def pin(self, cell, pinned=True):
        """The state after that cell stays although newer ones come; or no longer."""
        return self.keeper.answer(self.id, self.begin(PIN, {"cell": cell, "pinned": pinned}))

    def drop(self, *paths):
        """Those files below /mnt/data are gone."""
        return self.keeper.answer(self.id, self.begin(DROP, {"paths": paths}))

    def close(self):
        self.keeper.send(CLOSE, self.id, 0)
        return self.keeper.answer(self.id, 0)


class BoxTest(unittest.TestCase):
    """One keeper for a class; a fresh session for a test; nothing may be left of either."""

    user = False
    limits = {}

    @classmethod
    def setUpClass(cls):
        cls.mounts = Path("/proc/self/mountinfo").read_text()
        cls.keeper = Keeper(user=cls.user)
        if cls.keeper.report["tier"] > "T1":
            problem = str(cls.keeper.report["problems"])
            cls.keeper.stop()
            if "boxes can't be made: user namespaces" in problem:
                raise unittest.SkipTest(f"this machine makes no boxes: {problem}")
            raise AssertionError(f"{problem}\n{cls.keeper.log_text()[-2000:]}")
        cls.still = set(cls.keeper.descendants())
        cls.fds = cls.keeper.descriptors()

    @classmethod
    def tearDownClass(cls):
        keeper = cls.keeper
        began = keeper.descendants()
        status = keeper.stop()
        left = [pid for pid in began if os.path.exists(f"/proc/{pid}")]
        assert status == 0, f"exit status {status}: {keeper.log_text()[-3000:]}"
        assert not left, f"processes left: {left}"
        assert not keeper.groups(), f"groups left: {keeper.groups()}"
        assert Path("/proc/self/mountinfo").read_text() == cls.mounts, "mounts of the host changed"

    def setUp(self):
        self.box = self.keeper.open(**self.limits)
        self.assertEqual(self.box.opened.verdict, "ok", self.box.opened)

    def tearDown(self):
        if self.box:
            self.close(self.box)

    def close(self, box):
        """Closes, and sees that nothing of it is left: no process, no group, no descriptor of the keeper's."""
        self.assertEqual(box.close().verdict, "ok")
        if box is self.box:
            self.box = None
            self.assertEqual(set(self.keeper.descendants()) - self.still, set())
            self.assertEqual([g for g in self.keeper.groups() for s in os.listdir(g) if s.startswith("s")], [])
            self.assertEqual(self.keeper.descriptors(), self.fds)

    def answers(self, state="kept"):
        """The next cell of the session answers."""
        a = self.box.cell("print(6 * 7)")
        self.assertEqual((a.verdict, a.out, a.state), ("ok", b"42\n", state), a)

    def assertVerdict(self, answer, verdict, state=None, why=""):
        self.assertEqual(answer.verdict, verdict, answer)
        if state:
            self.assertEqual(answer.state, state, answer)
        self.assertIn(why, answer.why, answer)


def for_each_user(cls):
    """The same tests once more under a plain user's keeper, where the machine lets us play one."""
    if IS_ROOT:
        plain = type(cls.__name__ + "AsUser", (cls,), {"user": True, "__module__": cls.__module__})
        setattr(sys.modules[cls.__module__], plain.__name__, plain)
    return cls
