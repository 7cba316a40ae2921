"""A checkpoint as a stream of bytes: a head, blocks, a tail.

  head    magic, length, JSON: who wrote it (Python, packages, when)
  block   kind, checksum, length, then the bytes
            P   the next bytes of the pickle
            B   the beginning of one big piece of memory (a column, an array), which the pickle asks for when it gets there
            b   more of that memory
            R   no bytes; that many before it were written for a variable that can't be kept: they do not count
            E   JSON: the report of what was kept; always the last
  tail    where E begins, magic

It is written into a pipe, so nothing can be taken back but by a block that says so, and read from a file. Big memory
goes from the object to the pipe and from the file to the object, never through the pickle: a frame of a gigabyte
needs no second one. Every block is checked before any byte of it is used. The checksum finds accidents; that
nobody changed the file on purpose is for the daemon to make sure, whose key a box never sees.
"""

import json
import os
import signal
import struct
from collections import deque
from signal import SIG_BLOCK, SIG_SETMASK, pthread_sigmask
from zlib import crc32

import numpy

from ..gate import BLOCKED

MAGIC = b"SBKCKPT1"
FORMAT = 1
_HEAD = struct.Struct("<8sI")
_BLOCK = struct.Struct("<cxxxIQ")
_TAIL = struct.Struct("<Q8s")
_PENDING_MAX = 1 << 20
_BLOCK_MAX = 8 << 20  # one that is broken off has to be filled up
_CALL_MAX = 1 << 20  # one call; an interrupt comes through between two
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


class Writer:
    """What the pickler writes to. `limit` is the size past which the variable at hand is given up."""

    def __init__(self, fd: int, head: dict):
        self._fd = fd
        self._at = 0
        self._missing = 0  # of the block that was begun
        self._pending = bytearray()
        self._ceiling: int | None = None
        self._allowed = 0
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
            self._blocks(b"P", b"P", memoryview(data).cast("B"))
            return size
        self._pending += data
        if len(self._pending) > _PENDING_MAX:
            self.flush()
        return size

    def memory(self, view: memoryview) -> None:
        """One big piece; a contiguous view of bytes."""
        self._check(view.nbytes)
        self.flush()
        self._blocks(b"B", b"b", view)

    def flush(self) -> None:
        if self._pending:
            self._blocks(b"P", b"P", memoryview(bytes(self._pending)))
            self._pending.clear()

    def mark(self) -> int:
        self.flush()
        return self._at

    def rewind(self, mark: int) -> None:
        """Nothing was written after `mark`."""
        self._pending.clear()
        if self._missing:
            self._put(bytes(self._missing))
        if self._at > mark:
            self._put(_BLOCK.pack(b"R", 0, self._at - mark))

    def end(self, report: dict) -> int:
        """-> how many bytes there are"""
        self._ceiling = None
        self.flush()
        start = self._at
        self._block(b"E", memoryview(_json(report)))
        self._put(_TAIL.pack(start, MAGIC))
        return self._at

    def _blocks(self, first: bytes, rest: bytes, view: memoryview) -> None:
        for start in range(0, view.nbytes or 1, _BLOCK_MAX):
            self._block(rest if start else first, view[start : start + _BLOCK_MAX])

    def _block(self, kind: bytes, view: memoryview) -> None:
        head = _BLOCK.pack(kind, crc32(view), view.nbytes)
        self._missing = len(head) + view.nbytes
        self._put(head)
        self._put(view)

    def _put(self, data) -> None:
        view = memoryview(data).cast("B")
        while view:
            view = view[self._put_some(view[:_CALL_MAX]) :]

    def _put_some(self, view: memoryview) -> int:
        """No handler may raise between the call and the sum, or nobody knew where in the stream we are."""
        mask = pthread_sigmask(SIG_BLOCK, BLOCKED)
        try:
            done = os.write(self._fd, view)
            self._at += done
            self._missing = max(self._missing - done, 0)
            return done
        except BrokenPipeError:
            signal.sigtimedwait({signal.SIGPIPE}, 0)  # a person's handler, or none, would have it otherwise
            raise Unwritable("the checkpoint could not be written: nobody takes it") from None
        except OSError as error:
            raise Unwritable(f"the checkpoint could not be written: {error.strerror}") from None
        finally:
            pthread_sigmask(SIG_SETMASK, mask)


def _pread(fd: int, view: memoryview, at: int) -> None:
    while view:
        done = os.preadv(fd, [view[:_CALL_MAX]], at)
        if not done:
            raise Damaged("it is cut short")
        view, at = view[done:], at + done


def _bytes_at(fd: int, size: int, at: int) -> bytes:
    data = bytearray(size)
    _pread(fd, memoryview(data), at)
    return bytes(data)


type _Block = tuple[int, int, int]  # place, size, checksum


class Reader:
    """What the unpickler reads from: the pickle's bytes; the memory between them by `memory` and iteration.

    `fd`: a file that can be read at any place; the checkpoint is `size` bytes of it from `at` on.
    """

    def __init__(self, fd: int, at: int = 0, size: int | None = None):
        self._fd, self._base = fd, at
        self._size = os.fstat(fd).st_size - at if size is None else size
        self.head, first = self._read_head()
        self.report, end = self._read_end(first)
        self._blocks = self._counted(first, end)
        self.restart(b"")

    def restart(self, prefix: bytes) -> None:
        """From the first block, after `prefix`."""
        self._next_block = 0
        self._data, self._used = memoryview(prefix), 0
        self._waiting: deque[list[_Block]] = deque()

    @property
    def size(self) -> int:
        return self._size

    @property
    def done(self) -> bool:
        return self._used == len(self._data) and not self._next()

    # Structure

    def _bytes_at(self, size: int, at: int) -> bytes:
        return _bytes_at(self._fd, size, self._base + at)

    def _read_head(self) -> tuple[dict, int]:
        if self._size < _HEAD.size + _TAIL.size:
            raise Damaged("it is too short to be a checkpoint")
        magic, length = _HEAD.unpack(self._bytes_at(_HEAD.size, 0))
        if magic != MAGIC:
            raise Damaged("it is not a checkpoint")
        if length > min(_HEAD_MAX, self._size):
            raise Damaged("its head is not readable")
        return self._object(self._bytes_at(length, _HEAD.size)), _HEAD.size + length

    def _read_end(self, first: int) -> tuple[dict, int]:
        start, magic = _TAIL.unpack(self._bytes_at(_TAIL.size, self._size - _TAIL.size))
        if magic != MAGIC or not first <= start <= self._size - _TAIL.size - _BLOCK.size:
            raise Damaged("it is cut short")
        kind, checksum, length = self._block_at(start)
        if kind != b"E" or start + _BLOCK.size + length + _TAIL.size != self._size:
            raise Damaged("its end is not readable")
        return self._object(self._verified((start + _BLOCK.size, length, checksum))), start

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
        kind, checksum, length = _BLOCK.unpack(self._bytes_at(_BLOCK.size, at))
        if length > (at if kind == b"R" else self._size - at - _BLOCK.size):
            raise Damaged("a block reaches beyond the end")
        return kind, checksum, length

    def _counted(self, at: int, end: int) -> list[tuple[bytes, list[_Block]]]:
        """The blocks that count: without those that were taken back; memory in one."""
        places, blocks = [], []
        while at < end:
            kind, checksum, length = self._block_at(at)
            start = at + _BLOCK.size
            if kind == b"R":
                while places and places[-1] >= at - length:
                    places.pop()
                    blocks.pop()
                at = start
                continue
            block = (start, length, checksum)
            if kind == b"b" and blocks and blocks[-1][0] == b"B":
                blocks[-1][1].append(block)
            elif kind in (b"P", b"B"):
                places.append(at)
                blocks.append((kind, [block]))
            else:
                raise Damaged("a block is of no known kind")
            at = start + length
        return blocks

    def _verified(self, block: _Block) -> bytes:
        at, size, checksum = block
        data = self._bytes_at(size, at)
        if crc32(data) != checksum:
            raise Damaged("its bytes have changed")
        return data

    def _next(self) -> bool:
        """The next block of the pickle becomes the data at hand; memory on the way is only noted."""
        while self._next_block < len(self._blocks):
            kind, parts = self._blocks[self._next_block]
            self._next_block += 1
            if kind == b"P":
                self._data, self._used = memoryview(self._verified(parts[0])), 0
                return True
            self._waiting.append(parts)
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
        parts = self._waiting.popleft()
        whole = sum(size for _, size, _ in parts)
        own = numpy.empty(whole, numpy.uint8) if target is None else None
        view = memoryview(own) if target is None else target
        if view.nbytes != whole:
            raise Damaged("memory has another size than it should")
        for at, size, checksum in parts:
            part, view = view[:size], view[size:]
            _pread(self._fd, part, self._base + at)
            if crc32(part) != checksum:
                raise Damaged("its bytes have changed")
        return own

    def __iter__(self) -> "Reader":
        return self

    def __next__(self) -> numpy.ndarray:
        return self.memory()
