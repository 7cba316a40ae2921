"""A checkpoint as a file: a head, blocks of bytes, a tail.

  head    magic, length, JSON: who wrote it (Python, packages, when)
  block   kind, checksum, length, then the bytes
            P   the next bytes of the pickle
            B   one big piece of memory (a column, an array), which the pickle asks for when it gets there
            E   JSON: the report of what was kept; always the last
  tail    where E begins, magic

Big memory goes from the object to the file and from the file to the object, never through the pickle: a frame
of a gigabyte needs no second one. Every block is checked before any byte of it is used. The checksum finds
accidents; that nobody changed the file on purpose is for the keeper to make sure, whose key a box never sees.

The file must be a regular one: the writer takes back what it wrote of a variable that can't be kept.
"""

import json
import os
import struct
from collections import deque
from zlib import crc32

import numpy

MAGIC = b"SBKCKPT1"
FORMAT = 1
_HEAD = struct.Struct("<8sI")
_BLOCK = struct.Struct("<cxxxIQ")
_TAIL = struct.Struct("<Q8s")
_PENDING_MAX = 1 << 20
_PIECE_MAX = 64 << 20  # one call; an interrupt comes through between two
_HEAD_MAX = 1 << 20


class Damaged(Exception):
    """The file is not what was written."""


class Unwritable(Exception):
    """The disk is full, or the like: nothing that a variable could help."""


class TooLarge(Exception):
    """More bytes than there may be; `limit` of them."""

    def __init__(self, limit: int):
        super().__init__(limit)
        self.limit = limit


def _json(value: dict) -> bytes:
    return json.dumps(value, separators=(",", ":")).encode()


def _checksum(view: memoryview) -> int:
    total = 0
    for start in range(0, len(view), _PIECE_MAX):
        total = crc32(view[start : start + _PIECE_MAX], total)
    return total


class Writer:
    """What the pickler writes to. `limit` is the size past which the variable at hand is given up."""

    def __init__(self, fd: int, head: dict):
        self._fd = fd
        self._at = 0
        self._pending = bytearray()
        self._ceiling: int | None = None
        self._allowed = 0
        os.lseek(fd, 0, os.SEEK_SET)
        os.ftruncate(fd, 0)
        data = _json(head)
        self._put(_HEAD.pack(MAGIC, len(data)) + data)

    @property
    def size(self) -> int:
        return self._at + len(self._pending)

    def allow(self, size: int | None) -> None:
        """From here on no more than that; None: as much as it takes."""
        self._ceiling = None if size is None else self.size + size
        self._allowed = size or 0

    def _check(self, size: int) -> None:
        if self._ceiling is not None and self.size + size > self._ceiling:
            raise TooLarge(self._allowed)

    def write(self, data) -> int:
        """The pickler's: data is bytes, or a buffer that is not to be kept."""
        size = data.nbytes if isinstance(data, memoryview) else len(data)
        self._check(size)
        if size > _PENDING_MAX:
            self.flush()
            self._block(b"P", memoryview(data).cast("B"))
            return size
        self._pending += data
        if len(self._pending) > _PENDING_MAX:
            self.flush()
        return size

    def memory(self, view: memoryview) -> None:
        """One big piece; a contiguous view of bytes."""
        self._check(view.nbytes)
        self.flush()
        self._block(b"B", view)

    def flush(self) -> None:
        if self._pending:
            self._block(b"P", memoryview(bytes(self._pending)))
            self._pending.clear()

    def mark(self) -> int:
        self.flush()
        return self._at

    def rewind(self, mark: int) -> None:
        """Nothing was written after `mark`."""
        self._pending.clear()
        os.ftruncate(self._fd, mark)
        os.lseek(self._fd, mark, os.SEEK_SET)
        self._at = mark

    def end(self, report: dict) -> int:
        """-> the file's size"""
        self._ceiling = None
        self.flush()
        start = self._at
        self._block(b"E", memoryview(_json(report)))
        self._put(_TAIL.pack(start, MAGIC))
        return self._at

    def _block(self, kind: bytes, view: memoryview) -> None:
        self._put(_BLOCK.pack(kind, _checksum(view), view.nbytes))
        self._put(view)

    def _put(self, data) -> None:
        view = memoryview(data).cast("B")
        while view:
            try:
                done = os.write(self._fd, view[:_PIECE_MAX])
            except OSError as error:
                raise Unwritable(f"the checkpoint could not be written: {error.strerror}") from None
            self._at += done
            view = view[done:]


def _pread(fd: int, view: memoryview, at: int) -> None:
    while view:
        done = os.preadv(fd, [view[:_PIECE_MAX]], at)
        if not done:
            raise Damaged("it is cut short")
        view, at = view[done:], at + done


def _bytes_at(fd: int, size: int, at: int) -> bytes:
    data = bytearray(size)
    _pread(fd, memoryview(data), at)
    return bytes(data)


class Reader:
    """What the unpickler reads from: the pickle's bytes; the memory between them by `memory` and iteration."""

    def __init__(self, fd: int):
        self._fd = fd
        self._size = os.fstat(fd).st_size
        self.head, self._first = self._read_head()
        self.report, self._end = self._read_end()
        self.restart(b"")

    def restart(self, prefix: bytes) -> None:
        """From the first block, after `prefix`."""
        self._at = self._first
        self._data, self._used = memoryview(prefix), 0
        self._waiting: deque[tuple[int, int, int]] = deque()  # place, size, checksum

    @property
    def done(self) -> bool:
        return self._used == len(self._data) and not self._next()

    # Structure

    def _read_head(self) -> tuple[dict, int]:
        if self._size < _HEAD.size + _TAIL.size:
            raise Damaged("it is too short to be a checkpoint")
        magic, length = _HEAD.unpack(_bytes_at(self._fd, _HEAD.size, 0))
        if magic != MAGIC:
            raise Damaged("it is no checkpoint")
        if length > min(_HEAD_MAX, self._size):
            raise Damaged("its head is not readable")
        return self._object(_bytes_at(self._fd, length, _HEAD.size)), _HEAD.size + length

    def _read_end(self) -> tuple[dict, int]:
        start, magic = _TAIL.unpack(_bytes_at(self._fd, _TAIL.size, self._size - _TAIL.size))
        if magic != MAGIC or not self._first <= start <= self._size - _TAIL.size - _BLOCK.size:
            raise Damaged("it is cut short")
        kind, checksum, length = self._block_at(start)
        if kind != b"E" or start + _BLOCK.size + length + _TAIL.size != self._size:
            raise Damaged("its end is not readable")
        return self._object(self._verified(start + _BLOCK.size, length, checksum)), start

    @staticmethod
    def _object(data: bytes) -> dict:
        try:
            value = json.loads(data)
        except ValueError:
            value = None
        if not isinstance(value, dict):
            raise Damaged("its head is not readable")
        return value

    def _block_at(self, at: int) -> tuple[bytes, int, int]:
        kind, checksum, length = _BLOCK.unpack(_bytes_at(self._fd, _BLOCK.size, at))
        if length > self._size - at - _BLOCK.size:
            raise Damaged("a block reaches beyond the end")
        return kind, checksum, length

    def _verified(self, at: int, size: int, checksum: int) -> bytes:
        data = _bytes_at(self._fd, size, at)
        if crc32(data) != checksum:
            raise Damaged("its bytes have changed")
        return data

    def _next(self) -> bool:
        """The next block of the pickle becomes the data at hand; memory on the way is only noted."""
        while self._at < self._end:
            kind, checksum, length = self._block_at(self._at)
            start = self._at + _BLOCK.size
            self._at = start + length
            if kind == b"P":
                self._data, self._used = memoryview(self._verified(start, length, checksum)), 0
                return True
            if kind != b"B":
                raise Damaged("a block is of no known kind")
            self._waiting.append((start, length, checksum))
        return False

    # The unpickler's

    def readinto(self, buffer) -> int:
        view, done = memoryview(buffer).cast("B"), 0
        while done < len(view):
            if self._used == len(self._data) and not self._next():
                break
            part = self._data[self._used : self._used + len(view) - done]
            view[done : done + len(part)] = part
            self._used += len(part)
            done += len(part)
        return done

    def read(self, size: int) -> bytes:
        if self._used + size <= len(self._data):
            self._used += size
            return bytes(self._data[self._used - size : self._used])
        if size > self._size:
            raise Damaged("it asks for more than there is")
        data = bytearray(size)
        del data[self.readinto(data) :]
        return bytes(data)

    def readline(self) -> bytes:
        line = bytearray()
        while byte := self.read(1):
            line += byte
            if byte == b"\n":
                break
        return bytes(line)

    def memory(self, target: memoryview | None = None) -> numpy.ndarray | None:
        """The next piece of memory, into `target` or into memory of its own."""
        if not self._waiting:
            raise Damaged("memory is missing")
        at, size, checksum = self._waiting.popleft()
        own = numpy.empty(size, numpy.uint8) if target is None else None
        view = memoryview(own) if target is None else target
        if view.nbytes != size:
            raise Damaged("memory has another size than it should")
        _pread(self._fd, view, at)
        if _checksum(view) != checksum:
            raise Damaged("its bytes have changed")
        return own

    def __iter__(self) -> "Reader":
        return self

    def __next__(self) -> numpy.ndarray:
        return self.memory()
