"""Checkpoints: a session written to a file inside the box, and thawed in the head of a new one.

    dump(shell, fd)     -> report       checkpoint_save
    load(shell, fd)     -> report       checkpoint_thaw
    op_checkpoint, op_restore           the same as requests of the keeper's

A report says what is there and what is not, each with its reason, in words for people:

    {"kept": 12, "bytes": 10485760, "lost": [{"name", "type", "why"}], "notes": [...], "error": null}

A checkpoint is a program, as every pickle is: it may only be read inside a box of the session that wrote it.
Who owns it and that nobody changed it is the keeper's to know, with a key that no box sees.
"""

import contextlib
import os
from collections.abc import Iterator

from .checkpoint_save import Limits, dump
from .checkpoint_thaw import load
from .shell import shell

__all__ = ["Limits", "dump", "load", "op_checkpoint", "op_restore"]


def op_checkpoint(context, spec: dict) -> dict:
    """BOX_CALL {"op":"checkpoint","path":…} -> {"report":…}

    `path`: where the keeper wants it; the folder has to exist. Nothing is there until all of it is.
    "variable_max", "total_max" (bytes) and "budget_ms": see `Limits`.
    """
    limits = Limits.of(spec)
    with _appearing(spec["path"]) as fd:
        report = dump(shell(), fd, limits=limits, data_dir=context.data_dir)
    return {"report": report}


def op_restore(context, spec: dict) -> dict:
    """BOX_CALL {"op":"restore","path":…} -> {"report":…}; its "error" says why nothing was changed."""
    fd = os.open(spec["path"], os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW)
    try:
        seconds = spec.get("budget_ms", 30_000) / 1000
        return {"report": load(shell(), fd, data_dir=context.data_dir, seconds=seconds)}
    finally:
        os.close(fd)


@contextlib.contextmanager
def _appearing(path: str) -> Iterator[int]:
    """A new file beside `path` that takes its place at the end, or is gone."""
    folder, name = os.path.split(path)
    temporary = os.path.join(folder, f".{name}.{os.getpid()}.part")
    with contextlib.suppress(FileNotFoundError):
        os.unlink(temporary)  # of a head that was killed and had our number
    fd = os.open(temporary, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    try:
        yield fd
        os.rename(temporary, path)
    except BaseException:
        os.unlink(temporary)
        raise
    finally:
        os.close(fd)
