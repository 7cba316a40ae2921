"""Profiles of delimited text: from bytes to a load call that pandas agrees with."""

from __future__ import annotations

import os
import re
from collections import Counter
from dataclasses import dataclass, field, replace
from typing import Any

import pandas as pd

from .profile_base import ROWS_MAX, Facts, Profile
from .profile_table import bounded, finish_table
from .sniff_delim import WIDE_BLANKS, Dialect, sniff_dialect, split_records
from .sniff_head import Layout, find_layout, table_end
from .sniff_text import Encoding
from .tables_load import Load
from .tables_names import invented_names
from .tables_plan import plan_table, shown

SAMPLE_FIRST = 1 << 20  # bytes that are looked at to find out how the text is cut
TAIL = 16 << 10  # bytes at the end of a large file in which footers are looked for
SAMPLE_MAX = 8 << 20  # the same when single cells are huge
HINTS = {".tsv": "\t", ".tab": "\t", ".csv": ",", ".psv": "|"}
TABLE_NAMES = (".csv", ".tsv", ".tab", ".psv")
PROSE_NAMES = (
    ".md", ".rst", ".tex", ".srt", ".yaml", ".yml", ".toml", ".ini",
    ".py", ".r", ".sql", ".js", ".ts", ".c", ".h", ".java",
)  # fmt: skip


@dataclass
class Text:
    """A text file and what has been found out about its form."""

    path: str
    encoding: Encoding
    sample: str
    complete: bool  # the sample is the whole file
    dialect: Dialect = field(default_factory=lambda: Dialect(""))
    rows: list[list[str]] = field(default_factory=list)
    trailing: bool = False  # every line ends with a separator


def read_sample(path: str, encoding: Encoding, limit: int = SAMPLE_FIRST) -> Text:
    """The beginning of the file as text, cut after a whole line; more of it when lines are huge."""
    size = os.path.getsize(path)
    while True:
        with open(path, "rb") as file:
            data = file.read(limit)
        text = encoding.decode(data).removeprefix("\ufeff")
        complete = limit >= size
        lines = len(re.findall(r"\r\n?|\n", text))
        if complete or lines > 20 or limit >= SAMPLE_MAX:
            break
        limit *= 8
    return Text(path, encoding, text if complete else _whole_lines(text), complete)


def _whole_lines(text: str) -> str:
    """Without the last line, which the sample may have cut."""
    cut = max(text.rfind("\n"), text.rfind("\r"))
    return text[: cut + 1] if cut > 0 else text


def sniff_text(text: Text, name: str) -> bool:
    """Finds the dialect; False when the text is prose, or code, and no table."""
    suffix = os.path.splitext(name.lower())[1]
    text.dialect = sniff_dialect(text.sample, HINTS.get(suffix, ""))
    text.rows = split_records(text.sample, text.dialect, 10**7 if text.complete else 2000)
    _drop_trailing(text)
    if suffix in TABLE_NAMES:
        return True
    return suffix not in PROSE_NAMES and _surely_table(text)


def _drop_trailing(text: Text) -> None:
    """`a;b;c;`: a last field that is always empty is no column."""
    width = text.dialect.width
    wide = [row for row in text.rows if len(row) == width]
    if width > 2 and len(wide) > 1 and not any(row[-1].strip() for row in wide):
        text.trailing = True
        text.rows = [row[: width - 1] for row in text.rows]
        text.dialect = Dialect(**{**text.dialect.__dict__, "width": width - 1})


def _surely_table(text: Text) -> bool:
    """For files whose name promises no table: nearly all lines as wide as the others."""
    rows = [row for row in text.rows[:200] if row]
    wide = sum(1 for row in rows if len(row) == text.dialect.width)
    wide += len(rows[0]) == text.dialect.width - 1 if rows else 0  # the header of a table that R wrote
    return text.dialect.score >= 0.4 and text.dialect.width > 1 and len(rows) > 1 and wide >= 0.8 * len(rows)


def base_load(text: Text, layout: Layout, names: list[str] | None, facts: Facts) -> Load:
    """The load call before anything is known about single columns."""
    dialect = text.dialect
    options: dict[str, Any] = {}
    if dialect.separator not in ("", ","):
        options["sep"] = dialect.separator
    if dialect.separator == WIDE_BLANKS:
        options["engine"] = "python"
    if text.encoding.name != "utf-8":
        options["encoding"] = text.encoding.name
    if text.encoding.lossy:
        options["encoding_errors"] = "replace"
    if not dialect.quote:
        options["quoting"] = 3
    elif dialect.quote != '"':
        options["quotechar"] = dialect.quote
    if dialect.escape:
        options["escapechar"] = dialect.escape
    options |= _row_options(text, layout, names)
    if layout.footers:
        counted = sum(map(_is_row, text.rows[layout.body : layout.end]))
        options["nrows"] = counted if text.complete else _rows(facts, layout)
    return Load("pd.read_csv(", options, ").reset_index(names='row')" if layout.row_names else ")")


def _row_options(text: Text, layout: Layout, names: list[str] | None) -> dict[str, Any]:
    """Which rows are read, and what the columns are called."""
    options: dict[str, Any] = {}
    if skip := skipped(layout, bool(names)):
        options["skiprows"] = skip
    if names:
        options |= {"header": None, "names": names}
    header = text.rows[layout.header] if layout.header is not None else []
    if text.trailing:
        options["usecols"] = list(range(text.dialect.width))
    if header and not header[0].strip() and _counts_rows(text, layout) and not names:
        options["index_col"] = 0
    if _blank_after_separator(text, layout):
        options["skipinitialspace"] = True
    return options


def skipped(layout: Layout, named: bool) -> int | list[int]:
    """What `skiprows` has to say: what lies above the table, and a row of units in it; `named`: the call brings names."""
    if named or not layout.units:
        return layout.body if named else layout.header or 0
    return [*range(layout.header or 0), layout.body - 1]


def _rows(facts: Facts, layout: Layout) -> int:
    """Rows of data, from the count of lines."""
    return -bool(layout.units) + facts.records - (layout.header is not None) - layout.merged - len(layout.titles) - len(layout.footers)


def tail_footers(text: Text) -> list[str]:
    """Rows below the table of a file that is too large to be cut into records: found from its end."""
    if text.encoding.name.startswith(("utf-16", "utf-32")):
        return []  # a cut may lie inside a character
    with open(text.path, "rb") as file:
        file.seek(-TAIL, os.SEEK_END)
        tail = text.encoding.decode(file.read())
    rows = split_records(tail[tail.find("\n") + 1 :], text.dialect, 10_000)
    end = table_end(rows, 0, text.dialect.width)
    return [" ".join(filter(None, map(str.strip, row))) for row in rows[end:] if any(map(str.strip, row))]


def _blank_after_separator(text: Text, layout: Layout) -> bool:
    """`a, b, c`: the blank belongs to the separator."""
    start = layout.body if layout.header is None else layout.header
    rows = [row for row in text.rows[start : start + 20] if len(row) == text.dialect.width > 1]
    spaced = sum(1 for row in rows if all(cell.startswith(" ") or not cell for cell in row[1:]))
    return bool(rows) and not text.dialect.is_pattern and spaced > 0.9 * len(rows) and any(map(str.strip, rows[0][1:]))


def _counts_rows(text: Text, layout: Layout) -> bool:
    """A nameless first column of 0, 1, 2...: the index of a frame that was saved with it."""
    first = [row[0].strip() for row in text.rows[layout.body : layout.end] if _is_row(row)]
    return len(first) > 1 and first[0] in ("0", "1") and first == [str(int(first[0]) + at) for at in range(len(first))]


def _is_row(record: list[str]) -> bool:
    """False for a line that pandas skips as blank."""
    return len(record) > 1 or any(map(str.strip, record))


def profile_text(profile: Profile, text: Text, facts: Facts) -> None:
    """Fills in the profile of a delimited text."""
    layout = find_layout(text.rows, text.dialect.width, complete=text.complete)
    profile.set(
        kind="tsv" if text.dialect.separator == "\t" else "csv",
        encoding=text.encoding.name,
        separator=text.dialect.separator or ",",
        quote=text.dialect.quote or None,
        header_row=layout.header,
    )
    names = _names(text, layout)
    if not text.complete:
        layout.footers = tail_footers(text)
    warn_layout(profile, layout, names)
    if layout.header is not None:
        warn_duplicates(profile, text.rows[layout.header])
    reader = Reader(profile, text.path, base_load(text, layout, names, facts))
    raw = reader.read()
    renamed = reader.name_first(raw)
    raw = raw.rename(columns={old: new for new, old in renamed.items()})
    frame = finish_table(profile, reader.load, text.path, plan_table(raw, text.dialect.separator), renamed)
    _count_rows(profile, frame, layout, facts, text)


def _names(text: Text, layout: Layout) -> list[str] | None:
    """Names for the load call, where the file's own can't be used as they stand."""
    if layout.names:
        return unique_names(layout.names)
    if layout.header is not None:
        return None
    body = [row for row in text.rows[layout.body : layout.end] if row]
    body = body[:: len(body) // 500 + 1]  # from all over the file: its beginning may be sorted by a column
    width = max(text.dialect.width, 1)
    return invented_names([[row[at] for row in body if at < len(row)] for at in range(width)])


def warn_layout(profile: Profile, layout: Layout, names: list[str] | None) -> None:
    """Says what lies around the table and what was done about it."""
    if layout.titles:
        profile.warn("title_rows", f"{len(layout.titles)} rows above the table are skipped: {shown(layout.titles, 2)}")
    if layout.footers:
        profile.warn(
            "footer_rows", f"{len(layout.footers)} rows below the table are left out: {shown(layout.footers, 2)}"
        )
    if layout.units:
        profile.warn("units_row", f"the row below the names holds units and is skipped: {shown(layout.units, 6)}")
    if layout.merged:
        profile.warn("merged_header", "the header has two rows; their names were joined")
    if layout.header is None:
        profile.warn(
            "no_header", f"the file names no columns; these names were made up from the values: {shown(names or [], 8)}"
        )


class Reader:
    """Reads all cells as text, giving in to one complaint of pandas after the other."""

    def __init__(self, profile: Profile, path: str, load: Load) -> None:
        self.profile, self.path, self.load = profile, path, load

    def read(self) -> pd.DataFrame:
        """The cells as text; the load call is amended until pandas takes the file."""
        for _ in range(6):
            try:
                raw = self.load.read(self.path, nrows=bounded(self.load), dtype="str", na_filter=False)
            except (ValueError, pd.errors.ParserError) as error:
                if not self._amend(str(error)):
                    raise
                continue
            if self._index_taken(raw):
                self.load = self.load.with_options(index_col=False, on_bad_lines="skip")
                continue
            return raw
        raise ValueError("pandas can't read it")

    def _index_taken(self, raw: pd.DataFrame) -> bool:
        """pandas made an index of the first column, as the first row has more fields than the header."""
        return not isinstance(raw.index, pd.RangeIndex) and "index_col" not in self.load.options

    def _amend(self, complaint: str) -> bool:
        """Answers one complaint; False when there is no answer left."""
        options = self.load.options
        if "Expected" in complaint and "on_bad_lines" not in options:
            more: dict[str, Any] = {"on_bad_lines": "skip"}
        elif ("EOF" in complaint or "end of data" in complaint) and "quoting" not in options:
            more = {"quoting": 3}
        elif "codec can't decode" in complaint and "encoding_errors" not in options:
            more = {"encoding_errors": "replace"}
        elif "engine" not in options:
            more = {"engine": "python", "on_bad_lines": "skip"}
        else:
            return False
        self.load = self.load.with_options(**more)
        return True

    def name_first(self, raw: pd.DataFrame) -> dict[str, str]:
        """{new: old} for a first column without a name: dates saved with their index, or numbered rows."""
        old = raw.columns[0] if len(raw.columns) else None
        if old != "Unnamed: 0" or len(raw.columns) < 2 or "index_col" in self.load.options:
            return {}
        new = invented_names([list(raw[old].head(300))])[0]
        if new in ("empty", "number", "flag") or new in raw.columns:
            return {}
        self.load = replace(self.load, after=f").rename(columns={{{old!r}: {new!r}}})")
        return {new: str(old)}


def warn_duplicates(profile: Profile, names: list[str]) -> None:
    """Names that occur twice: pandas numbers them."""
    twice = [name for name, count in Counter(names).items() if count > 1 and name.strip()]
    if twice:
        profile.warn("duplicate_columns", f"column names that occur more than once: {shown(twice)}; numbered .1, .2")


def unique_names(names: list[str]) -> list[str]:
    """Names as pandas makes them unique: a, a.1."""
    seen: dict[str, int] = {}
    unique = []
    for name in names:
        count = seen.get(name, 0)
        seen[name] = count + 1
        unique.append(f"{name}.{count}" if count else name)
    return unique


def _count_rows(profile: Profile, frame: pd.DataFrame, layout: Layout, facts: Facts, text: Text) -> None:
    """The number of rows of the whole file, lines that were skipped, and a table of none."""
    rows = len(frame)
    if rows >= ROWS_MAX:
        rows = max(rows, _rows(facts, layout))
        profile.warn("truncated", f"the figures are from the first {len(frame):,} of {rows:,} rows")
    profile.set(rows=rows)
    if text.complete:
        _warn_bad_lines(profile, layout, text)
    elif "on_bad_lines" in (profile.fields["load"] or ""):
        lost = _rows(facts, layout) - rows
        profile.warn("bad_lines", f"{lost if lost > 0 else 'some'} rows have too many fields and are skipped")
    if not rows and layout.header is not None:
        profile.warn("header_only", "the file has column names but no rows")


def _warn_bad_lines(profile: Profile, layout: Layout, text: Text) -> None:
    """Rows with more or fewer fields than the others."""
    body = [row for row in text.rows[layout.body : layout.end] if _is_row(row)]
    long = sum(1 for row in body if len(row) > text.dialect.width)
    short = sum(1 for row in body if len(row) < text.dialect.width)
    load = profile.fields["load"] or ""
    if "quoting=3" in load:
        return
    if long and text.dialect.separator:
        done = "cut" if "index_col=False" in load else "skipped"
        profile.warn("bad_lines", f"{long} of {len(body)} rows have too many fields and are {done}")
    elif short and text.dialect.separator:
        profile.warn("bad_lines", f"{short} of {len(body)} rows have too few fields; the missing ones are empty")
