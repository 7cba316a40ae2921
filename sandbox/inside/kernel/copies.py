"""Copies: what the head leaves behind after a cell, and how one becomes the head.

The head runs every cell; nothing of a session's is ever run in a copy. A copy is forked by a process between
(lock.c), which is reaped: it is nobody's child, so `os.wait()` in a cell does not see it. It gives
up every pipe and socket (a parked write end would keep a reader waiting for ever), reports itself on its own
channel and waits there; the keeper looks at it from outside, moves it out of reach and freezes it. To be
woken it forks the same way again, and the child goes on in `leave` where the head once was: that is the new
head. The copy itself stays, for the next time.

Hooks that a person gave to `os.register_at_fork` run in these forks and can't be kept out. They cost the
copy when they hang, and the keeper's deadline sees to it.
"""

import builtins
import ctypes
import gc
import os
import random
import signal
import stat
import time
import warnings
from collections.abc import Callable

from . import copies_gone, copies_mend, frames, hot
from .cell import current
from .folder import Folder
from .streams import Streams

__builtins__ = dict(vars(builtins))

REAP_S = 1.2  # of the keeper's two seconds
NAME = b"parked"
_SET_DUMPABLE, _SET_NAME, _GET_NAME = 4, 15, 16
_KEPT_DEVICES = frozenset(os.makedev(1, minor) for minor in (3, 5, 7, 8, 9))  # null, zero, full, (u)random
_prctl = ctypes.CDLL(None).prctl
_fork, _exit, _dup2, _close, _open, _setsid = os.fork, os._exit, os.dup2, os.close, os.open, os.setsid
_fstat, _lseek, _listdir, _waitpid, _kill = os.fstat, os.lseek, os.listdir, os.waitpid, os.kill
_isreg, _isdir, _ischr = stat.S_ISREG, stat.S_ISDIR, stat.S_ISCHR
_sleep, _now = time.sleep, time.monotonic
_getstate, _setstate = random.getstate, random.setstate
_quiet, _simplefilter = warnings.catch_warnings, warnings.simplefilter
_gc_on, _gc_off, _gc_is_on = gc.enable, gc.disable, gc.isenabled
_sigpending, _sigtimedwait, _getsignal, _SIGCHLD = signal.sigpending, signal.sigtimedwait, signal.getsignal, signal.SIGCHLD
_PLAIN_HANDLERS = (signal.SIG_DFL, signal.SIG_IGN, None)


def _find_aside() -> Callable[[], int] | None:
    """`lock_fork_aside`, where the zygote has loaded it; else, in tests of this package alone, two forks do."""
    try:
        return ctypes.PyDLL("/opt/sandbook/lock.so").lock_fork_aside
    except (OSError, AttributeError):
        return None


_aside = _find_aside()


def _quiet_fork() -> int:
    """Python warns of a fork beside threads; a filter of the person's could make an error of it."""
    with _quiet():
        _simplefilter("ignore")
        return _fork()


class Descriptors:
    """What is open, taken before the fork: a copy shares its offsets with a head that goes on."""

    def __init__(self, but: int):
        self.offsets: dict[int, int] = {}
        self.special: list[int] = []
        for name in _listdir("/proc/self/fd"):
            fd = int(name)
            if fd not in (0, but):
                self._take(fd)

    def _take(self, fd: int) -> None:
        try:
            status = _fstat(fd)
            if _isreg(status.st_mode):
                self.offsets[fd] = _lseek(fd, 0, 1)
            elif not _isdir(status.st_mode) and not (_ischr(status.st_mode) and status.st_rdev in _KEPT_DEVICES):
                self.special.append(fd)
        except OSError:  # closed meanwhile, or O_PATH
            pass

    def give_up(self, fds: list[int]) -> None:
        """To /dev/null: the number stays taken, since a Python object may own it."""
        null = _open("/dev/null", os.O_RDWR | os.O_CLOEXEC)
        for fd in fds:
            _dup2(null, fd, inheritable=fd in (1, 2))
        _close(null)

    def put_back(self) -> None:
        for fd, offset in self.offsets.items():
            try:
                _lseek(fd, offset, 0)
            except OSError:
                pass


def _reap(pid: int) -> None:
    """The middle process. One that hangs in a hook is killed: the copy is lost, the head is not."""
    late, pause = _now() + REAP_S, 0.0002
    try:
        while _waitpid(pid, os.WNOHANG)[0] == 0:
            if _now() > late:
                _kill(pid, 9)
                _waitpid(pid, 0)
                return
            _sleep(pause)
            pause = min(pause * 1.5, 0.002)
    except ChildProcessError:  # the person ignores SIGCHLD, or waits in a thread
        pass


def _fork_between() -> int:
    """As `lock_fork_aside`, slower: 0 in the one that is nobody's child."""
    pid = _quiet_fork()
    try:
        if pid != 0 or _quiet_fork() == 0:
            return pid
    except BaseException:
        _exit(70)
    _exit(0)


def _twice(then: Callable[[], None]) -> bool:
    """Fork to a process that is nobody's child. True there, once `then` has returned; False in the caller."""
    had = _SIGCHLD in _sigpending()
    pid = (_aside or _fork_between)()
    if pid != 0:
        if pid < 0:
            raise OSError("no process")
        _reap(pid)
        if not had and _getsignal(_SIGCHLD) not in _PLAIN_HANDLERS:
            _sigtimedwait({_SIGCHLD}, 0)  # the middle's end is no news for a handler of the person's
        return False
    try:
        then()
        return True
    except BaseException:
        _exit(70)


class Copies:
    def __init__(self, channel: frames.Channel, streams: Streams, namespace: dict, folder: Folder):
        self._channel, self._streams, self._namespace, self._folder = channel, streams, namespace, folder
        self._notes: list[str] = []

    def take_notes(self) -> list[str]:
        """What is gone since a copy became the head, when nobody has said so yet."""
        notes, self._notes = self._notes, []
        return notes

    def leave(self, request: frames.Request) -> None:
        """BOX_COPY. Returns in the head, which goes on, and in each head that the copy becomes later."""
        if len(request.fds) != 1:
            raise frames.ProtocolError("BOX_COPY needs one descriptor")
        fd, why, woken, collecting = request.fds[0], "", False, _gc_is_on()
        _gc_off()  # finalizers are the person's code
        try:
            woken = self._fork(fd)
        except Exception as error:  # no process, no memory: this cell gets no copy
            why = type(error).__name__
        if collecting:
            _gc_on()
        hot.touch("text/html" in (current.cell.result or {}))
        if not woken:
            _close(fd)
            self._channel.send(frames.COPIED, request.request, frames.encode({"why": why}))

    def _fork(self, fd: int) -> bool:
        gone = copies_gone.Gone(self._namespace)
        files = Descriptors(fd)
        state = _getstate()
        return _twice(lambda: self._park(fd, files, gone, state))

    # In the copy

    def _park(self, fd: int, files: Descriptors, gone: copies_gone.Gone, state: object) -> None:
        """Returns in a woken head only."""
        _setstate(state)
        name = ctypes.create_string_buffer(16)
        _prctl(_GET_NAME, name, 0, 0, 0)
        files.give_up(files.special + gone.unsafe_files(files.offsets))
        self._folder.leave()
        _setsid()
        _prctl(_SET_NAME, NAME, 0, 0, 0)
        _prctl(_SET_DUMPABLE, 0, 0, 0, 0)
        channel = frames.Channel(fd, self._channel.session)
        channel.send(frames.PARKED, 0, frames.encode({"threads": len(_listdir("/proc/self/task"))}))
        while True:
            request = channel.receive()
            if request is None:
                _exit(0)
            if request.type == frames.WAKE and len(request.fds) == 3 and self._wake(request):
                break
            for ours in request.fds:
                _close(ours)
            channel.send(frames.COPIED, 0, b"{}")
        _prctl(_SET_NAME, name, 0, 0, 0)
        channel.socket.detach()
        _close(fd)
        self._become_head(request, files, gone)

    def _wake(self, request: frames.Request) -> bool:
        state = _getstate()
        try:
            return _twice(lambda: _setstate(state))
        except OSError:  # no process, since what is dying counts: who asked sees its channel end, and asks again
            return False

    # In the new head

    def _become_head(self, request: frames.Request, files: Descriptors, gone: copies_gone.Gone) -> None:
        control, out, err = request.fds
        _setsid()
        _prctl(_SET_DUMPABLE, 1, 0, 0, 0)
        self._channel.replace(control, request.session)
        self._streams.replace(out, err)
        for fd in request.fds:
            _close(fd)
        self._folder.come_back()
        files.put_back()
        notes = gone.notes + gone.mend() + copies_mend.mend()
        tell = frames.decode(request.payload).get("tell") is True
        self._notes = [] if tell else notes
        claim = {"status": "ok", "error": None, "notes": notes if tell else []}
        self._channel.send(frames.HELLO, request.request, frames.encode(claim))
