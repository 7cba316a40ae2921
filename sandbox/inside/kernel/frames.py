"""The head's end of its channel: frames in, claims out.

The layout is box_proto.h's `struct box_frame`. Everything that turns a claim into bytes is bound here,
when the module is loaded, which is before the first byte of a person's: a cell that patches `json`,
`struct`, `socket` or `builtins` must not be able to forge or break an answer by accident. (A cell that
wants to lie can: it owns the process. The keeper treats all of this as a claim.)
"""

import builtins
import os
import socket
import struct
from _json import encode_basestring, make_encoder, make_scanner  # the C parts: immutable, no globals
from dataclasses import dataclass
from json import JSONDecoder

__builtins__ = dict(vars(builtins))  # functions below keep these, whatever a cell does to the module

MAGIC = 0x314B4253
VERSION = 1
FRAME_MAX = 64 << 10
CODE_MAX = 1 << 20
REQUEST_MAX = 8 * CODE_MAX  # a cell's code as JSON: \u00XX at worst
CLAIM_MAX = 4 << 20
MORE = 1

CELL, CALL, CLAIM, HELLO = 2, 3, 35, 96
COPY, WAKE, REHEARSE, COPIED, PARKED = 80, 81, 82, 97, 98
FDS_MAX = 3  # BOX_WAKE: control, stdout, stderr

HEAD = struct.Struct("=IBBHIII")
PAYLOAD_MAX = FRAME_MAX - HEAD.size


class ProtocolError(Exception):
    """The peer broke a rule of box_proto.h; the channel can't be trusted any more."""


@dataclass(frozen=True)
class Request:
    type: int
    session: int
    request: int
    payload: bytes
    fds: tuple[int, ...] = ()


def _refuse(value: object) -> None:
    raise TypeError(f"not JSON: {type(value).__name__}")


_iterencode = make_encoder(None, _refuse, encode_basestring, None, ":", ",", False, False, False)
_scan = make_scanner(JSONDecoder())
_unpack_fds = struct.iter_unpack
_pack, _unpack_from, _head_size = HEAD.pack, HEAD.unpack_from, HEAD.size
_getpid, _exit, _dup2 = os.getpid, os._exit, os.dup2
_CONTROL = socket.CMSG_SPACE(4 * FDS_MAX)
_CLOEXEC, _RIGHTS = socket.MSG_CMSG_CLOEXEC, (socket.SOL_SOCKET, socket.SCM_RIGHTS)


def encode(value: dict) -> bytes:
    """JSON of dicts, lists, strings, integers and finite floats; what is no text (surrogates) becomes '?'."""
    return "".join(_iterencode(value, 0)).encode("utf-8", "replace")


def decode(payload: bytes) -> dict:
    try:
        value, _ = _scan(payload.decode("utf-8"), 0)
    except (ValueError, StopIteration, RecursionError) as error:
        raise ProtocolError(f"payload is not JSON: {error}") from None
    if not isinstance(value, dict):
        raise ProtocolError("payload is not a JSON object")
    return value


class Channel:
    """A SEQPACKET socket to the keeper. Only the process that owns it may answer (see `send`)."""

    def __init__(self, fd: int, session: int = 0):
        self.socket = socket.socket(fileno=fd)
        self.socket.setblocking(True)
        self.socket.set_inheritable(False)
        self.session = session
        self.owner = _getpid()
        self._recvmsg, self._send = self.socket.recvmsg, self.socket.send
        self._fds: tuple[int, ...] = ()

    def fileno(self) -> int:
        return self.socket.fileno()

    def replace(self, fd: int, session: int) -> None:
        """In a head that was a copy: another channel under the old number, and it is ours."""
        _dup2(fd, self.fileno(), inheritable=False)
        self.session, self.owner = session, _getpid()

    def receive(self) -> Request | None:
        """The next request, put together from its frames; None when the keeper has closed the channel."""
        first = self._frame()
        if first is None:
            return None
        kind, flags, session, request, payload = first
        fds = self._fds
        parts, size = [payload], len(payload)
        while flags & MORE:
            frame = self._frame()
            if frame is None:
                return None
            if frame[0] != kind or frame[2:4] != (session, request):
                raise ProtocolError("fragments of two requests are mixed")
            flags = frame[1]
            parts.append(frame[4])
            size += len(frame[4])
            if size > REQUEST_MAX:
                raise ProtocolError("request is too long")
        self.session = session
        return Request(kind, session, request, b"".join(parts), fds)

    def _frame(self) -> tuple[int, int, int, int, bytes] | None:
        data, control, _, _ = self._recvmsg(FRAME_MAX + 1, _CONTROL, _CLOEXEC)
        self._fds = tuple(fd for *kind, fds in control if (*kind,) == _RIGHTS for (fd,) in _unpack_fds("=i", fds))
        if not data:
            return None
        if not _head_size <= len(data) <= FRAME_MAX:
            raise ProtocolError(f"frame of {len(data)} bytes")
        magic, version, kind, flags, session, request, length = _unpack_from(data)
        if magic != MAGIC or version != VERSION or length != len(data) - _head_size:
            raise ProtocolError("bad frame head")
        return kind, flags, session, request, data[_head_size:]

    def send(self, kind: int, request: int, payload: bytes) -> None:
        """A child that `os.fork` left running in a cell ends up here as well: it has nothing to say."""
        if _getpid() != self.owner:
            _exit(0)
        for start in range(0, len(payload) or 1, PAYLOAD_MAX):
            part = payload[start : start + PAYLOAD_MAX]
            more = MORE if start + PAYLOAD_MAX < len(payload) else 0
            self._send(_pack(MAGIC, VERSION, kind, more, self.session, request, len(part)) + part)
