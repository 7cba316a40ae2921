"""Files of an archive that are pieces of one table: same columns, names that differ in a number or a word.

    yob1980.txt, yob1981.txt ... -> one table with a column `year`

Only the first piece is profiled in full; of the others the beginning is enough to see that they are alike.
"""

from __future__ import annotations

import os
import re
from dataclasses import dataclass, field
from itertools import groupby
from typing import Any

from .profile_text import TABLE_NAMES, read_sample, sniff_text
from .sniff import sniff_kind
from .sniff_head import find_layout
from .sniff_text import sniff_encoding
from .tables_names import content_kind

PEEK = 64 << 10  # bytes that tell the columns of a piece
PIECES_MIN = 2
_SUFFIXES = (*TABLE_NAMES, ".txt", ".dat")
_NUMBER = re.compile(r"\d+")


@dataclass
class Group:
    """Pieces of one table, and the column that tells them apart."""

    members: list[str]
    column: str = "file"
    values: list[Any] = field(default_factory=list)


def signature(path: str, name: str) -> tuple[Any, ...] | None:
    """What two files must have in common to be pieces of one table; None for what is no delimited table."""
    if sniff_kind(path, name) != "text":
        return None
    with open(path, "rb") as file:
        encoding = sniff_encoding(file.read(PEEK), cut=os.path.getsize(path) > PEEK)
    text = read_sample(path, encoding, PEEK)
    if not text.sample.strip() or not sniff_text(text, name):
        return None
    layout = find_layout(text.rows, text.dialect.width, complete=False)
    columns: tuple[str, ...]
    if layout.header is None:
        body = text.rows[layout.body : layout.body + 300]
        cells = [[row[at] for row in body if at < len(row)] for at in range(layout.width)]
        columns = tuple("number" if content_kind(column) == "number" else "text" for column in cells)
    else:
        columns = tuple(layout.names or text.rows[layout.header])
    page = "utf-8" if encoding.name in ("utf-8", "utf-8-sig") else encoding.name
    return (layout.header, layout.body, text.dialect.separator, page, columns)


def _shape(path: str) -> tuple[str, str]:
    """Folder and suffix: pieces lie together and are of one format."""
    return os.path.dirname(path), os.path.splitext(path)[1].lower()


def find_groups(root: str, members: list[str]) -> list[Group]:
    """All groups, the largest first."""
    groups = []
    tables = sorted((path for path in members if _shape(path)[1] in _SUFFIXES), key=_shape)
    for _, paths in groupby(tables, _shape):
        signed = [(signature(os.path.join(root, path), path), path) for path in paths]
        for key in dict.fromkeys(key for key, _ in signed if key is not None):
            alike = sorted((path for other, path in signed if other == key), key=_natural)
            if len(alike) >= PIECES_MIN and len(key[-1]) > 1:
                groups.append(_tell_apart(Group(alike), set(key[-1])))
    return sorted(groups, key=lambda group: -len(group.members))


def _natural(path: str) -> list[Any]:
    """Sorts part2 before part10."""
    return [int(part) if part.isdigit() else part.lower() for part in re.split(r"(\d+)", path)]


def _stem(path: str) -> str:
    return os.path.splitext(os.path.basename(path))[0]


def _tell_apart(group: Group, taken: set[str]) -> Group:
    """The column that keeps what the file names say, under a name that is free."""
    stems = [_stem(path) for path in group.members]
    numbers = [_NUMBER.findall(stem) for stem in stems]
    frames = {_NUMBER.sub("#", stem) for stem in stems}
    group.column, group.values = "file", list(stems)
    if len(frames) == 1 and numbers[0]:
        group.column, group.values = _from_numbers(numbers)
    while group.column in taken:
        group.column = f"file_{group.column}"
    return group


def _from_numbers(numbers: list[list[str]]) -> tuple[str, list[Any]]:
    """year from 1980, month from 2024-01, date from 2024-01-31, else a number."""
    dates = ["".join(parts) for parts in numbers]
    if all(re.fullmatch(r"(1[6-9]|20)\d\d(0[1-9]|1[0-2])([0-2]\d|3[01])", date) for date in dates):
        return "date", [f"{date[:4]}-{date[4:6]}-{date[6:]}" for date in dates]
    if all(re.fullmatch(r"(1[6-9]|20)\d\d(0[1-9]|1[0-2])", date) for date in dates):
        return "month", [f"{date[:4]}-{date[4:]}" for date in dates]
    varying = [column for column in zip(*numbers, strict=True) if len(set(column)) > 1]
    if len(varying) != 1:
        return "part", ["-".join(parts) for parts in numbers]
    years = all(re.fullmatch(r"(1[6-9]|20)\d\d", number) for number in varying[0])
    return "year" if years else "part", [int(number) for number in varying[0]]


def group_load(group: Group, call: str, first: str) -> str:
    """One expression for all pieces, from the load call of the first."""
    pattern = _pattern(group)
    piece = call.replace(repr(first), f"f{pattern!r}" if pattern else "path", 1)
    keyword = group.column
    if pattern:
        source = f"for {keyword} in range({group.values[0]}, {group.values[-1] + 1})"
    else:
        source = f"for path, {keyword} in {list(zip(group.members, group.values, strict=True))!r}"
    return f"pd.concat([{piece}.assign({keyword}={keyword}) {source}], ignore_index=True)"


def _pattern(group: Group) -> str | None:
    """`names/yob{year}.txt` when the numbers run on without a gap, and the rest needs no escaping."""
    values = group.values
    if not all(isinstance(value, int) for value in values) or values != list(range(values[0], values[0] + len(values))):
        return None
    patterns = {
        path.replace(str(value), "{" + group.column + "}") for path, value in zip(group.members, values, strict=True)
    }
    pattern = patterns.pop()
    plain = re.fullmatch(r"[^{}'\"\\]*\{\w+\}[^{}'\"\\]*", pattern)
    return pattern if plain and not patterns else None
