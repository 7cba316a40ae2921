"""Checkpoints: a session written down inside its box, and thawed in the head of a new one.

    dump(shell, fd)     -> report       checkpoint_save
    load(shell, fd)     -> report       checkpoint_thaw
    op_checkpoint, op_restore           the same as requests of the keeper's

A report says what is there and what is not, each with its reason, in words for people:

    {"kept": 12, "bytes": 10485760, "lost": [{"name", "type", "why"}], "notes": [...], "error": null}

The bytes go through a descriptor that comes with the request and is closed with it; no path is ever named. A
checkpoint is a program, as every pickle is: it may only be read inside a box of the session that wrote it.
Who owns it and that nobody changed it is the daemon's to know, with a key that no box sees.
"""

import contextlib
import ctypes
import platform
from collections.abc import Iterator

from .checkpoint_save import Limits, dump
from .checkpoint_thaw import load
from ..shell import shell

__all__ = ["Limits", "dump", "load", "op_checkpoint", "op_restore"]

_GET_DUMPABLE, _SET_DUMPABLE = 3, 4
_prctl = ctypes.CDLL(None).prctl


def op_checkpoint(context, spec: dict) -> dict:
    """BOX_CHECKPOINT with what takes the bytes, a pipe -> {"report":…, "python":…}

    "variable_max", "total_max" (bytes) and "budget_ms": see `Limits`.
    """
    limits = Limits.of(spec)
    with _ours_alone():
        report = dump(shell(), _the_one(context), limits=limits, data_dir=context.data_dir)
    return {"report": report, "python": platform.python_version()}


def op_restore(context, spec: dict) -> dict:
    """BOX_RESTORE with a file; "from" and "bytes": where in it -> {"report":…}; its "error" says why nothing was changed."""
    place = {"at": int(spec.get("from", 0)), "size": int(spec["bytes"]) if "bytes" in spec else None}
    seconds = spec.get("budget_ms", 30_000) / 1000
    with _ours_alone():
        report = load(shell(), _the_one(context), data_dir=context.data_dir, seconds=seconds, **place)
    return {"report": report}


def _the_one(context) -> int:
    if len(context.fds) != 1:
        raise ValueError("a checkpoint needs one descriptor")
    return context.fds[0]


@contextlib.contextmanager
def _ours_alone() -> Iterator[None]:
    """Other processes of the session can't open this one's descriptors by way of /proc meanwhile."""
    before = _prctl(_GET_DUMPABLE, 0, 0, 0, 0)
    _prctl(_SET_DUMPABLE, 0, 0, 0, 0)
    try:
        yield
    finally:
        _prctl(_SET_DUMPABLE, 1 if before == 1 else 0, 0, 0, 0)
