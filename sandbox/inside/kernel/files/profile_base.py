"""What all profiles have in common: the fields, the warnings, and one bounded pass over the bytes."""

from __future__ import annotations

import codecs
import hashlib
import os
import unicodedata
from dataclasses import dataclass
from typing import Any

import numpy as np

from .tables_plan import PLANNED_MAX

ROWS_MAX = 200_000  # rows that the figures of a profile are made from
COLUMNS_MAX = PLANNED_MAX  # columns that are described
SAMPLE_CHARS = 600
CHUNK = 4 << 20
DATA_DIR = "/mnt/data"  # also where a cell has gone elsewhere with chdir

FIELDS: dict[str, Any] = {
    "path": "", "name": "", "bytes": 0, "sha256": "", "kind": "binary",
    "encoding": None, "separator": None, "quote": None, "decimal": None, "thousands": None, "header_row": None,
    "rows": None, "columns": [], "time": None, "sheets": [], "members": [], "collection": None,
    "load": None, "sample": None, "warnings": [],
}  # fmt: skip


@dataclass
class Facts:
    """What one pass over a file's bytes tells."""

    size: int = 0
    sha256: str = ""
    utf8: bool = True
    records: int = 0  # lines that hold something and end outside quotes


class Profile:
    """A profile in the making; `fields` is what goes out."""

    def __init__(self, path: str, name: str) -> None:
        self.fields: dict[str, Any] = {key: list(v) if isinstance(v, list) else v for key, v in FIELDS.items()}
        self.set(path=path, name=unicodedata.normalize("NFC", name))

    def set(self, **fields: Any) -> None:
        """Sets fields of the contract, and the few that only one kind has."""
        self.fields.update(fields)

    def warn(self, code: str, text: str) -> None:
        """Adds a warning; its text is for people and models, and never longer than a line or two."""
        self.fields["warnings"].append({"code": code, "text": text[:300]})

    def has(self, code: str) -> bool:
        """True when such a warning was given."""
        return any(warning["code"] == code for warning in self.fields["warnings"])

    def set_sample(self, text: str) -> None:
        """The first lines, each cut: one huge cell must not push the others out."""
        lines = [line if len(line) <= 200 else line[:199] + "…" for line in text[:20_000].splitlines()[:12]]
        self.set(sample="\n".join(lines)[:SAMPLE_CHARS])


def scan(path: str) -> Facts:
    """Size, hash, whether it is UTF-8 and how many records: one pass, in constant memory."""
    facts, digest = Facts(), hashlib.sha256()
    decoder: Any = codecs.getincrementaldecoder("utf-8")()
    counter = RecordCounter()
    with open(path, "rb") as file:
        while chunk := file.read(CHUNK):
            digest.update(chunk)
            counter.add(chunk)
            facts.size += len(chunk)
            facts.utf8 = facts.utf8 and _decodes(decoder, chunk)
    facts.utf8 = facts.utf8 and _decodes(decoder, b"", final=True)
    facts.sha256 = digest.hexdigest()[:16]
    facts.records = counter.finish()
    return facts


def _decodes(decoder: Any, chunk: bytes, final: bool = False) -> bool:
    try:
        decoder.decode(chunk, final)
    except UnicodeDecodeError:
        return False
    return True


class RecordCounter:
    """Counts lines that are not blank, taking line ends inside double quotes for text."""

    def __init__(self) -> None:
        self._count = 0
        self._quoted = False
        self._last = b"\n"

    def add(self, chunk: bytes) -> None:
        """Takes the next piece of the file."""
        if b"\r" in chunk or self._last == b"\r":
            chunk = self._unify(chunk)
        data = np.frombuffer(self._last + chunk, dtype=np.uint8)
        ends = (data[1:] == 0x0A) & (data[:-1] != 0x0A)
        if b'"' in chunk or self._quoted:
            inside = (np.cumsum(data[1:] == 0x22, dtype=np.uint32) + self._quoted) % 2 == 1
            ends &= ~inside
            self._quoted = bool(inside[-1])
        self._count += int(np.count_nonzero(ends))
        self._last = chunk[-1:]

    def _unify(self, chunk: bytes) -> bytes:
        """All line ends as newlines: a CR LF counts once more as a blank line, which counts for nothing."""
        return chunk.replace(b"\r\n", b"\n").replace(b"\r", b"\n")

    def finish(self) -> int:
        """The number of records, one that lacks its line end included."""
        return self._count + (self._last != b"\n")


def relative(path: str, root: str) -> str:
    """The path as a cell would write it: below the working folder, or the one that cells start in."""
    full = os.path.abspath(path)
    for base in (os.path.abspath(root), DATA_DIR):
        if full.startswith(base + os.sep):
            return os.path.relpath(full, base)
    return path
