"""Pages that every cell writes to, or every one that shows a table: found once, in the zygote, and copied after each fork
while nobody waits.

A fork makes every page shared, and the first write to each copies it: 200 times in the smallest cell, which is half
of what it takes. What is forked from one zygote has all at the same addresses, so a head of nobody's finds out which
they are: those that are its own after one more cell, when a copy had just been left behind.
"""

import array
import ctypes
import os
import signal
import socket
import struct
import tempfile

import numpy

from . import frames

_PAGE = 4096
_PRESENT_AND_OWN = numpy.uint64(1 << 63 | 1 << 56)  # of an entry in /proc/<pid>/pagemap
_PIECE = struct.Struct("=QQ")  # struct arena_piece
_PIECES_MAX = 1024
_WARM_UP = 4  # until it does nothing for the first time
_SETS = (("x = 1", "x"), ("import pandas; pandas.DataFrame({'a': [1, 2]})",))  # ARENA_OF_CELLS, ARENA_OF_TABLES
_TABLES = 1
_PATIENCE_S = 10


def _load() -> ctypes.CDLL | None:
    try:
        lock = ctypes.PyDLL("/opt/sandbook/lock.so")
        return lock if lock.arena_know_hot and lock.arena_touch_hot else None
    except (OSError, AttributeError):  # in tests of this package alone
        return None


_lock = _load()


def touch(tables: bool = False) -> None:
    """After a fork, in whoever goes on. Where a table was shown, another one may be."""
    if _lock is not None:
        for which in range(_TABLES + tables):
            _lock.arena_touch_hot(which)


class _Rehearsal:
    """A head, and what asks it."""

    def __init__(self) -> None:
        self._ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._ours.settimeout(_PATIENCE_S)
        self._asked = 0
        folder = tempfile.mkdtemp()
        self.pid = os.fork()
        if self.pid == 0:
            self._be_head(theirs, folder)
        theirs.close()
        self._folder = folder

    def _be_head(self, theirs: socket.socket, folder: str) -> None:
        try:
            from . import head

            signal.set_wakeup_fd(-1)
            self._ours.close()
            os.closerange(3, theirs.fileno())
            head.serve(theirs.detach(), folder)
        finally:
            os._exit(1)

    def _ask(self, kind: int, payload: bytes, *fds: int) -> None:
        self._asked += 1
        head = frames.HEAD.pack(frames.MAGIC, frames.VERSION, kind, 0, 1, self._asked, len(payload))
        rights = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", fds))] if fds else []
        self._ours.sendmsg([head + payload], rights)
        if not self._ours.recv(frames.FRAME_MAX):
            raise OSError("a rehearsal ended")

    def cells(self, codes: tuple[str, ...]) -> None:
        for code in codes:
            self._ask(frames.CELL, frames.encode({"code": code, "number": self._asked + 1, "audit": "note"}))

    def leave_copy(self) -> socket.socket:
        """It goes when this end is closed."""
        near, far = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        near.settimeout(_PATIENCE_S)
        self._ask(frames.COPY, b"", far.fileno())
        far.close()
        near.recv(frames.FRAME_MAX)
        return near

    def end(self) -> None:
        self._ours.close()
        os.kill(self.pid, signal.SIGKILL)
        os.waitpid(self.pid, 0)
        os.rmdir(os.path.join(self._folder, "out"))
        os.rmdir(self._folder)


def _regions() -> list[tuple[int, int]]:
    """Memory that is written to, but for what a session makes of its own."""
    with open("/proc/self/maps") as maps:
        lines = [line.split() for line in maps]
    return [(int(begin, 16), int(end, 16)) for begin, _, end in (line[0].partition("-") for line in lines if line[1] == "rw-p")]


def _own_pages(pid: int, regions: list[tuple[int, int]]) -> list[int]:
    """Of these those that no other process has."""
    found: list[int] = []
    with open(f"/proc/{pid}/pagemap", "rb", buffering=0) as pagemap:
        for begin, end in regions:
            raw = os.pread(pagemap.fileno(), (end - begin) // _PAGE * 8, begin // _PAGE * 8)
            entries = numpy.frombuffer(raw, dtype=numpy.uint64) & _PRESENT_AND_OWN
            found += [begin + int(i) * _PAGE for i in numpy.flatnonzero(entries == _PRESENT_AND_OWN)]
    return found


def _pieces(pages: list[int]) -> bytes:
    pieces: list[list[int]] = []
    for page in pages:
        if pieces and page == sum(pieces[-1]):
            pieces[-1][1] += _PAGE
        else:
            pieces.append([page, _PAGE])
    return b"".join(_PIECE.pack(*piece) for piece in pieces[:_PIECES_MAX])


def _written(rehearsal: _Rehearsal, regions: list[tuple[int, int]]) -> list[list[int]]:
    """By the cells of each set, and by none of a set before."""
    copy = rehearsal.leave_copy()
    known, found = set(_own_pages(rehearsal.pid, regions)), []  # those that the copy has replaced in itself
    for codes in _SETS:
        rehearsal.cells(codes)
        now = set(_own_pages(rehearsal.pid, regions))
        found.append(sorted(now - known))
        known |= now
    copy.close()
    return found


def learn() -> int:
    """In the zygote, last. -> how many pages, 0 when it could not be found out: cells are slower then, and all is well."""
    if _lock is None:
        return 0
    rehearsal = _Rehearsal()
    try:
        for codes in _SETS * _WARM_UP:
            rehearsal.cells(codes)
        found = _written(rehearsal, _regions())
    except OSError:
        return 0
    finally:
        rehearsal.end()
    for which, pages in enumerate(found):
        pieces = _pieces(pages)
        _lock.arena_know_hot(which, pieces, len(pieces) // _PIECE.size)
    return sum(map(len, found))
