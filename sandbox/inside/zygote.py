"""The fork server: an interpreter with everything imported, from which each session's head is forked.

It runs in the base namespaces, whose init adopts its children when it goes: after some time another takes its place. It
never sees a byte of a person's: a request is a fixed struct and four descriptors (box_zygote.h). A head joins the box that the keeper built, locks itself
down with lock.so in the order that lock.h gives, audits itself, says so, and only then serves.

With --once it is for one session, and so is ready in a third of the time: what only pays for many is left out.

Order of a fork: next children into the box's pid namespace -> fork -> back into our own.
"""
import ctypes
import gc
import json
import os
import select
import signal
import socket
import struct
import sys
import warnings

SUPPORT = "/opt/sandbook"
CONTROL, BPF = 3, 4  # enum in box_zygote.h
HEAD_CONTROL = 3
FRAME = struct.Struct("=IBBHIII")  # struct box_frame
FORK = struct.Struct("=IIQQ")  # struct box_fork
FORK_FDS = 4
MAGIC, VERSION = 0x314B4253, 1
BOX_FORK, BOX_FORKED, BOX_EXIT, BOX_FAILED, BOX_HELLO = 64, 65, 66, 68, 96


def frame(kind, session, request, payload=b""):
    return FRAME.pack(MAGIC, VERSION, kind, 0, session, request, len(payload)) + payload


def load_lock():
    lock = ctypes.CDLL(SUPPORT + "/lock.so")
    lock.lock_step.restype = ctypes.c_char_p
    return lock


def check(lock, result):
    if result:
        code = -result & 0xFFF
        raise OSError(code, f"{lock.lock_step(result).decode()}: {os.strerror(code)}")


def status(names):
    """Fields of /proc/self/status, by name."""
    with open("/proc/self/status") as f:
        pairs = dict(line.split(":\t", 1) for line in f if ":\t" in line)
    return {name: pairs[name].strip() for name in names if name in pairs}


def read_all(fd):
    parts = []
    while part := os.read(fd, 1 << 16):
        parts.append(part)
    os.close(fd)
    return b"".join(parts)


class Zygote:
    def __init__(self):
        self.lock = load_lock()
        self.bpf = read_all(BPF)
        self.channel = socket.socket(fileno=CONTROL)
        self.heads = {}  # pid -> (session, generation)
        self.wake, wake = os.pipe2(os.O_CLOEXEC | os.O_NONBLOCK)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        signal.set_wakeup_fd(wake, warn_on_full_buffer=False)
        check(self.lock, self.lock.lock_zygote())

    def preload(self, once):
        arenas = ctypes.PyDLL(SUPPORT + "/lock.so")
        arenas.arena_begin()
        sys.path.insert(0, SUPPORT)
        import kernel

        kernel.preload(once)
        arenas.arena_settle()
        self.kernel = kernel
        if not once:
            gc.collect()
        gc.freeze()  # a collection in a head must not copy what they all share
        self.hot_pages = 0 if once else kernel.settle_memory()

    def hello(self):
        about = {
            "python": sys.version.split()[0],
            "landlock": self.lock.lock_landlock_abi(),
            "threads": len(os.listdir("/proc/self/task")),
            "hot_pages": self.hot_pages,
            "data_bytes": int(status(["VmData"])["VmData"].split()[0]) << 10,
        }
        self.channel.send(frame(BOX_HELLO, 0, 0, json.dumps(about).encode()))

    def serve(self):
        poll = select.poll()
        poll.register(self.channel, select.POLLIN)
        poll.register(self.wake, select.POLLIN)
        while True:
            ready = dict(poll.poll())
            if self.wake in ready:
                os.read(self.wake, 4096)
                self.reap()
            if CONTROL in ready:
                self.request()

    def reap(self):
        while self.heads:
            pid, how = os.waitpid(-1, os.WNOHANG)
            if pid == 0:
                return
            session, generation = self.heads.pop(pid, (0, 0))
            self.channel.send(frame(BOX_EXIT, session, generation, struct.pack("=i", how)))

    def request(self):
        try:
            data, fds, _, _ = socket.recv_fds(self.channel, FRAME.size + FORK.size, FORK_FDS)
        except ConnectionResetError:  # gone, with something of ours unread
            data, fds = b"", []
        if not data:
            self.reap()
            os._exit(0)  # the keeper is gone, or has another of us
        _, _, kind, _, session, generation, _ = FRAME.unpack_from(data)
        if kind != BOX_FORK or len(fds) != FORK_FDS:
            os._exit(2)  # a bug of ours
        pid = self.fork(session, generation, fds, data[FRAME.size :])
        for fd in fds:
            os.close(fd)
        if pid > 0:
            self.heads[pid] = (session, generation)
        self.channel.send(frame(BOX_FORKED, session, generation, struct.pack("=i", pid)))

    def fork(self, session, generation, fds, how):
        """The head's pid, or -errno."""
        if result := self.lock.lock_pid_enter(fds[0]):
            return -(-result & 0xFFF)
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", DeprecationWarning)  # a background thread of jemalloc's; see 5.8
                pid = os.fork()
        except OSError as e:
            pid = -e.errno
        if pid == 0:
            self.head(session, generation, fds, how)
        check(self.lock, self.lock.lock_pid_leave())
        return pid

    def head(self, session, generation, fds, how):
        """In the child: never returns."""
        control = fds[1]
        try:
            signal.set_wakeup_fd(-1)
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            self.channel.detach()  # its number becomes the head's own channel
            check(self.lock, self.lock.lock_join((ctypes.c_int32 * FORK_FDS)(*fds)))
            control = HEAD_CONTROL
            reseed()
            base = int(status(["VmData"])["VmData"].split()[0]) << 10
            uid, pids, file_bytes, data_bytes = FORK.unpack(how)
            how = FORK.pack(uid, pids, file_bytes, data_bytes and data_bytes + base)
            check(self.lock, self.lock.lock_shut(how, self.bpf, len(self.bpf) // 8))
            os.write(HEAD_CONTROL, frame(BOX_HELLO, session, generation, json.dumps({"audit": audit()}).encode()))
        except BaseException as e:  # nothing of a person's has run: this is ours, and goes to the keeper's log
            os.write(control, frame(BOX_FAILED, session, generation, repr(e).encode()[:2000]))
            os._exit(70)
        serve, lock = self.kernel.serve, self.lock
        self.__dict__.clear()
        del lock
        serve(HEAD_CONTROL)
        os._exit(0)


def reseed():
    """CPython reseeds `random` in a child, numpy doesn't (3.20)."""
    numpy = sys.modules.get("numpy")
    if numpy is not None:
        numpy.random.seed(int.from_bytes(os.urandom(4), "little"))


def audit():
    """What the kernel says of us once every lock is shut; raises when a lock is open."""
    is_now = status(["CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb", "NoNewPrivs", "Seccomp", "Threads"])
    open_fds = sorted(int(name) for name in os.listdir("/proc/self/fd"))[:-1]  # the last is the listing itself
    wrong = [name for name in is_now if name.startswith("Cap") and int(is_now[name], 16) != 0]
    wrong += [name for name, want in (("NoNewPrivs", "1"), ("Seccomp", "2"), ("Threads", "1")) if is_now[name] != want]
    if os.getresuid() != (1000, 1000, 1000) or os.getresgid() != (1000, 1000, 1000):
        wrong.append("ids")
    if open_fds != [0, 1, 2, HEAD_CONTROL]:
        wrong.append(f"descriptors {open_fds}")
    if wrong:
        raise RuntimeError("audit: " + ", ".join(wrong))
    return {"fds": open_fds, **is_now}


def main():
    zygote = Zygote()
    zygote.preload(once=sys.argv[1:] == ["--once"])
    zygote.hello()
    zygote.serve()


if __name__ == "__main__":
    main()
