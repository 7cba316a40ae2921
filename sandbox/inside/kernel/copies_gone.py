"""What a copy can't carry: found when it is made, named when it is woken.

Threads and pools, processes, pipes and sockets, open transactions and held locks belong to a process and
stay with it. This looks at the session's variables by their types alone and runs nothing of the person's.
"""

import builtins
import contextlib
import io
import os
import socket
import sqlite3
import stat
import subprocess
import sys
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

__builtins__ = dict(vars(builtins))

NAMES_MAX = 2000  # variables looked at
NOTES_MAX = 15
NOTE_MAX = 400
COMMAND_MAX = 60
KILLED = -9
_BROKEN = "it did not survive going back to an earlier state: make a new one"
_waitid, _fstat, _readlink, _getpid = os.waitid, os.fstat, os.readlink, os.getpid
_get = object.__getattribute__
_LOCKS = (type(threading.Lock()), type(threading.RLock()))


def _kind(module: str, name: str) -> type | None:
    """A class of a module that is imported already; one that is not can have no object here."""
    return getattr(sys.modules.get(module), name, None)


def _is(value: object, kind: type | None) -> bool:
    return kind is not None and kind in type.__dict__["__mro__"].__get__(type(value))


def _is_special(fd: object) -> bool:
    try:
        mode = _fstat(fd).st_mode
    except (OSError, TypeError):
        return False
    return stat.S_ISFIFO(mode) or stat.S_ISSOCK(mode)


def _command(process: subprocess.Popen) -> str:
    args = _get(process, "args")
    words = args if isinstance(args, str) else " ".join(a for a in args if isinstance(a, str))
    return words if len(words) <= COMMAND_MAX else words[: COMMAND_MAX - 1] + "…"


def _status(pid: int) -> int:
    """Of a child that has ended already; of one that still runs, how it will end. Reaps nothing."""
    try:
        seen = _waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT)
    except OSError:
        return KILLED
    if seen is None:
        return KILLED
    return seen.si_status if seen.si_code == os.CLD_EXITED else -seen.si_status


class Gone:
    """Taken in the head before the fork; `mend` and `notes` are for the head that a copy becomes."""

    def __init__(self, namespace: dict):
        self.notes: list[str] = []
        self._mends: list[Callable[[], None]] = []
        self._transactions = False
        self._threads: set[int] = set()
        looks = (self._pool, self._process, self._channel_like, self._database, self._thread, self._lock)
        for name, value in list(namespace.items())[-NAMES_MAX:]:
            if not isinstance(name, str) or name.startswith("_"):
                continue
            for look in looks:
                try:
                    if look(name, value):
                        break
                except BaseException:  # an object that was played with; nobody interrupts this
                    continue
        self._nameless_threads()

    def _say(self, text: str) -> bool:
        if len(self.notes) < NOTES_MAX:
            self.notes.append(text if len(text) <= NOTE_MAX else text[: NOTE_MAX - 1] + "…")
        return True

    def _break(self, value: object, attribute: str, to: object) -> None:
        self._mends.append(lambda: object.__setattr__(value, attribute, to))

    def mend(self) -> list[str]:
        """Objects whose other half is gone say so when they are used, instead of waiting for ever."""
        for mend in self._mends:
            try:
                mend()
            except Exception:
                continue
        return []

    # What is looked for

    def _pool(self, name: str, value: object) -> bool:
        if _is(value, ThreadPoolExecutor):
            threads = _get(value, "_threads")
            self._threads.update(id(t) for t in threads)
            if threads:
                self._break(value, "_broken", _BROKEN)
            return bool(threads) and self._say(f"the thread pool `{name}` is gone")
        if _is(value, _kind("concurrent.futures.process", "ProcessPoolExecutor")):
            self._threads.add(id(_get(value, "_executor_manager_thread")))
            self._break(value, "_broken", _BROKEN)
            return self._say(f"the process pool `{name}` is gone")
        if _is(value, _kind("multiprocessing.pool", "Pool")):
            workers = ("_worker_handler", "_task_handler", "_result_handler")
            self._threads.update(id(_get(value, w)) for w in workers)
            self._threads.update(id(t) for t in _get(value, "_pool"))
            self._break(value, "_state", "TERMINATE")
            return _get(value, "_state") == "RUN" and self._say(f"the pool `{name}` is gone")
        return False

    def _process(self, name: str, value: object) -> bool:
        if _is(value, subprocess.Popen):
            if _get(value, "returncode") is not None:
                return True
            status = _status(_get(value, "pid"))
            self._break(value, "returncode", status)
            return status != KILLED or self._say(f"the process `{name}` ({_command(value)}) is gone")
        if _is(value, _kind("multiprocessing.process", "BaseProcess")):
            popen = _get(value, "_popen")
            if popen is None or _get(popen, "returncode") is not None:
                return True
            self._break(popen, "returncode", _status(_get(popen, "pid")))
            return self._say(f"the process `{name}` is gone")
        return False

    def _channel_like(self, name: str, value: object) -> bool:
        if _is(value, socket.socket):
            return socket.socket.fileno(value) < 0 or self._say(f"the socket `{name}` is gone")
        if _is(value, _kind("multiprocessing.connection", "_ConnectionBase")):
            return _get(value, "_handle") is None or self._say(f"the connection `{name}` is gone")
        if type(value) in (io.TextIOWrapper, io.BufferedReader, io.BufferedWriter, io.FileIO):
            if value is sys.stdout or value is sys.stderr or value.closed:
                return True
            return _is_special(value.fileno()) and self._say(f"the pipe `{name}` is gone")
        return False

    def _database(self, name: str, value: object) -> bool:
        if _is(value, sqlite3.Connection):
            if not sqlite3.Connection.in_transaction.__get__(value):
                return True
            self._transactions = True
            return self._say(f"the open transaction of `{name}` is gone, nothing of it was kept: connect again")
        if type.__dict__["__name__"].__get__(type(value)) == "DuckDBPyConnection":
            return self._say(f"the connection `{name}` is gone: connect again")
        return False

    def _thread(self, name: str, value: object) -> bool:
        if not _is(value, threading.Thread):
            return False
        self._threads.add(id(value))
        return threading.Thread.is_alive(value) and self._say(f"the thread `{name}` is gone")

    def _lock(self, name: str, value: object) -> bool:
        if type(value) is _LOCKS[0]:
            return value.locked() and self._say(f"the lock `{name}` was held and still is: whoever held it may be gone")
        return False

    def _nameless_threads(self) -> None:
        main = threading.main_thread()
        others = [t for t in list(threading._active.values()) if t is not main and id(t) not in self._threads]
        for thread in others:
            with contextlib.suppress(BaseException):  # its name may be code of a person's
                self._nameless(thread)

    def _nameless(self, thread: threading.Thread) -> None:
        module = type.__dict__["__module__"].__get__(type(thread))
        if not str(module).startswith(("concurrent.", "multiprocessing.")) and "ThreadPoolExecutor" not in thread.name:
            self._say(f"the thread {thread.name} is gone")

    def unsafe_files(self, files: dict[int, int]) -> list[int]:
        """Of a database in a transaction: its locks stay with the process, and without them a write does harm."""
        if not self._transactions:
            return []
        paths = {}
        for fd in files:
            try:
                paths[fd] = _readlink(f"/proc/self/fd/{fd}").removesuffix(" (deleted)")
            except OSError:
                continue
        every = set(paths.values())
        ends = ("-journal", "-wal")
        return [fd for fd, path in paths.items() if path.endswith(ends) or any(path + end in every for end in ends)]
