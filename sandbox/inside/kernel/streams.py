"""stdout and stderr: pipes that the keeper reads.

Python's streams are line-buffered on purpose. Larger buffers would be faster, but then the lines before
a kill (memory, time) would be lost, and output of child processes would overtake that of the cell.

A cell may close or replace the streams, or the descriptors under them. It gets them back after the cell:
a redirection that is left on would swallow the output of all later cells.
"""

import builtins
import ctypes
import io
import os
import sys
from fcntl import F_DUPFD_CLOEXEC, fcntl

__builtins__ = dict(vars(builtins))

_SPARE = 100  # spare descriptors lie out of the way of those that cells get
_LINE_BUFFERED = 1
_libc = ctypes.CDLL(None)
_fflush = _libc.fflush
_dup2, _fstat = os.dup2, os.fstat


def _stream(fd: int) -> io.TextIOWrapper:
    raw = io.FileIO(fd, "w", closefd=False)
    return io.TextIOWrapper(
        io.BufferedWriter(raw, 8192), "utf-8", "backslashreplace", newline="\n", line_buffering=True
    )


def _c_stream_by_line(name: str) -> None:
    """printf of C code would else be kept back in its own buffer until the process ends."""
    stream = ctypes.c_void_p.in_dll(_libc, name)
    _libc.setvbuf(stream, None, _LINE_BUFFERED, 8192)


class Streams:
    def __init__(self) -> None:
        self._spare = {fd: fcntl(fd, F_DUPFD_CLOEXEC, _SPARE) for fd in (1, 2)}
        self._inode = {fd: self._identity(fd) for fd in (1, 2)}
        self._open()
        _c_stream_by_line("stdout")
        _c_stream_by_line("stderr")

    @staticmethod
    def _identity(fd: int) -> tuple[int, int] | None:
        try:
            status = _fstat(fd)
        except OSError:
            return None
        return status.st_dev, status.st_ino

    def _open(self) -> None:
        self.out, self.err = _stream(1), _stream(2)
        self._attach()

    def _attach(self) -> None:
        sys.stdout = sys.__stdout__ = self.out
        sys.stderr = sys.__stderr__ = self.err

    def replace(self, out: int, err: int) -> None:
        """In a head that was a copy: other pipes under the old numbers."""
        for fd, new in ((1, out), (2, err)):
            _dup2(new, fd)
            _dup2(new, self._spare[fd], inheritable=False)
            self._inode[fd] = self._identity(fd)

    def flush(self) -> None:
        for stream in (self.out, self.err):
            try:
                stream.flush()
            except (OSError, ValueError):
                pass  # closed by the cell: what was in it went with it
        _fflush(None)

    def mend(self) -> list[str]:
        """Everything as it was before the cell; what had been changed, for the notes."""
        changed = [f"sys.{n}" for n in ("stdout", "stderr") if getattr(sys, n, None) is not getattr(self, n[3:])]
        for fd, spare in self._spare.items():
            if self._identity(fd) != self._inode[fd]:
                _dup2(spare, fd)
                changed.append(f"file descriptor {fd}")
        if not (_usable(self.out) and _usable(self.err)):
            changed.append("a closed stream")
            self._open()
        self._attach()
        return changed


def _usable(stream: io.TextIOWrapper) -> bool:
    try:
        return not stream.closed
    except ValueError:  # detached
        return False
