"""Objects that pickle refuses, or would take and give back as something else: how they are written down."""

import contextvars
import gc
import io
import os
import random
import re
import stat
import subprocess
import threading
import types
import weakref
from concurrent.futures import Future

from .. import checkpoint_rebuild as rebuild
from .checkpoint_refuse import Refused, what_is


def refuse(pickler, value: object):
    raise Refused(value, what_is(type(value)) or "")


# Files


def text_file(pickler, file: io.TextIOWrapper):
    text = {"encoding": file.encoding, "errors": file.errors}
    if file.closed:
        return _closed(file, text)
    mode = getattr(file, "mode", "w" if file.writable() else "r")
    return _file(pickler, file, mode, text, 1 if file.line_buffering else -1)


def byte_file(pickler, file: io.IOBase):
    if file.closed:
        return _closed(file, {})
    raw = _raw_of(file)
    mode = getattr(file, "mode", None) or raw.mode
    return _file(pickler, file, mode if "b" in mode else mode + "b", {}, 0 if file is raw else -1)


def _closed(file: io.IOBase, text: dict):
    """What is left of most `with open(...) as f`."""
    name, mode = getattr(file, "name", "?"), getattr(file, "mode", "r")
    usual = mode.replace("x", "w") if isinstance(mode, str) else "r"
    return rebuild.closed_file, (name if isinstance(name, (str, bytes)) else str(name), usual, text)


def _file(pickler, file: io.IOBase, mode: str, text: dict, buffering: int):
    """By name, mode and where it stands. The name is the one that the file has now."""
    _raw_of(file)
    path = _path_of(file)
    try:
        if file.writable():
            file.flush()
        at = file.tell() if file.seekable() else 0
    except OSError:
        raise Refused(file, "a file that was being read line by line: where it stood can't be told") from None
    name = file.name if isinstance(file.name, (str, bytes)) else path
    return rebuild.open_file, (name, pickler.place_of(path), mode, at, text, buffering)


def _raw_of(file: io.IOBase) -> io.FileIO:
    """A file below gzip or the like would be opened again without it."""
    raw = getattr(file, "buffer", file)
    raw = raw if isinstance(raw, io.FileIO) else getattr(raw, "raw", raw)
    if type(raw) is not io.FileIO:
        raise Refused(file, "a file that is read or written through something else, such as gzip: open it again")
    return raw


def _path_of(file: io.IOBase) -> str:
    try:
        number = file.fileno()
        status, path = os.fstat(number), os.readlink(f"/proc/self/fd/{number}")
    except (OSError, io.UnsupportedOperation):
        raise Refused(file, "a file that is no file on disk") from None
    if stat.S_ISFIFO(status.st_mode):
        raise Refused(file, "one end of a pipe: what was at the other end is gone")
    if stat.S_ISSOCK(status.st_mode):
        raise Refused(file, "a socket: the connection is closed")
    try:
        now = os.stat(path)
    except OSError:
        now = None
    if now is None or (now.st_ino, now.st_dev) != (status.st_ino, status.st_dev):
        raise Refused(file, "an open file that was deleted")
    return path


# Locks and threads


def lock(pickler, value):
    """A free lock is as good as a new one."""
    if value.locked():
        return refuse(pickler, value)
    return rebuild.lock, ()


def recursive_lock(pickler, value):
    if value._is_owned() or not value.acquire(blocking=False):
        return refuse(pickler, value)
    value.release()
    return rebuild.recursive_lock, ()


def thread_local(pickler, value: threading.local):
    return rebuild.thread_local, (type(value), dict(value.__dict__))


def child(pickler, value: subprocess.Popen):
    """One that has ended is only a number; one that runs would be somebody else's number."""
    if value.poll() is None or value.stdin or value.stdout or value.stderr:
        return refuse(pickler, value)
    return NotImplemented


def future(pickler, value: Future):
    return NotImplemented if value.done() else refuse(pickler, value)


# References of other kinds


def reference(pickler, value: weakref.ref):
    target = value()
    if target is None:
        return rebuild.dead_reference, ()
    back = value.__callback__
    return weakref.ref, (target,) if back is None else (target, back)


def method_reference(pickler, value: weakref.WeakMethod):
    method = value()
    return (rebuild.dead_reference, ()) if method is None else (weakref.WeakMethod, (method,))


def proxy(pickler, value):
    return weakref.proxy, (value.__reduce_ex__.__self__,)


def weak_dict(pickler, value):
    return type(value), (), None, None, iter(list(value.items()))


def dict_view(pickler, value):
    name = type(value).__name__.removeprefix("dict_")
    return rebuild.dict_view, (gc.get_referents(value)[0], name)


def read_only(pickler, value: types.MappingProxyType):
    """Of the same dictionary as before, so that it shows what changes there."""
    behind = gc.get_referents(value)[0]
    return types.MappingProxyType, (behind if type(behind) is dict else dict(value),)


def memory_view(pickler, value: memoryview):
    behind = value.obj
    whole = isinstance(behind, (bytes, bytearray)) and len(behind) == value.nbytes and value.c_contiguous
    if not whole:
        behind = value.tobytes() if value.readonly else bytearray(value.tobytes())
    return rebuild.memory_view, (behind, value.format, value.shape)


# Others


def random_numbers(pickler, value: random.SystemRandom):
    return type(value), ()


def context_variable(pickler, value: contextvars.ContextVar):
    nothing = object()
    default = contextvars.Context().run(_get, value, nothing)
    now = _get(value, nothing)
    is_set = value in contextvars.copy_context()
    return rebuild.context_variable, (
        value.name,
        () if default is nothing else (default,),
        (now,) if is_set else (),
    )


def _get(value: contextvars.ContextVar, nothing: object) -> object:
    try:
        return value.get()
    except LookupError:
        return nothing


def match(pickler, value: re.Match):
    """Found again in the same text."""
    for how in ("match", "search", "fullmatch"):
        for start in (value.pos, value.start()):
            again = getattr(value.re, how)(value.string, start, value.endpos)
            if again is not None and again.regs == value.regs:
                return rebuild.match, (value.re, how, value.string, start, value.endpos)
    raise Refused(value, "a match of a pattern that can't be found again")


def structure(pickler, value):
    return type(value), (value.format,)
