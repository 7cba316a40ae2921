"""Profiles of files that carry their own types: Parquet, Feather, arrays, Stata, SQLite, JSON."""

from __future__ import annotations

import os
import sqlite3
import time
from typing import Any

import numpy as np
import pandas as pd
import pyarrow.parquet

from .profile_base import ROWS_MAX, Facts, Profile
from .profile_table import finish_frame, plain_names
from .tables_load import Load

JSON_MAX = 32 << 20  # a larger document is not parsed as a whole
COUNT_S = 5.0  # for the rows of one table or view
ENDLESS_MAX = 2  # of those that can't be counted, before all others are left out, too
FRAME_MAX = 64 << 20  # file bytes up to which columnar files are read in full


def profile_parquet(profile: Profile, path: str) -> None:
    """Rows from the footer; the figures from the first rows when there are many."""
    file = pyarrow.parquet.ParquetFile(path)
    rows = file.metadata.num_rows
    if rows <= ROWS_MAX:
        frame = Load("pd.read_parquet(").read(path)
    else:
        batch = next(file.iter_batches(batch_size=ROWS_MAX))
        frame = batch.to_pandas()
    _finish(profile, frame, Load("pd.read_parquet("), rows)


def _finish(profile: Profile, frame: pd.DataFrame, load: Load, rows: int | None = None) -> None:
    """Columns and figures; an index with a name becomes a column."""
    if frame.index.names != [None]:
        frame, load = frame.reset_index(), Load(load.before, load.options, load.after + ".reset_index()")
    total = len(frame) if rows is None else rows
    frame, load = plain_names(frame, load)
    finish_frame(profile, frame, load)
    profile.set(rows=total)
    if total > ROWS_MAX:
        profile.warn("truncated", f"the figures are from the first {ROWS_MAX:,} of {total:,} rows")


def profile_simple(profile: Profile, path: str, reader: str) -> None:
    """Formats that one pandas call reads."""
    if profile.fields["bytes"] > FRAME_MAX:
        profile.warn("truncated", "too large to be looked into")
        profile.set(load=Load(f"pd.{reader}(").expr(profile.fields["path"]))
        return
    load = Load(f"pd.{reader}(")
    _finish(profile, load.read(path), load)


def profile_array(profile: Profile, path: str) -> None:
    """A numpy array of plain numbers; one of objects is a pickle in disguise."""
    try:
        array = np.load(path, mmap_mode="r", allow_pickle=False)
    except ValueError as error:
        if "pickle" not in str(error).lower() and "object" not in str(error).lower():
            raise
        profile.set(kind="pickle")
        profile.warn("pickle_refused", "an array of Python objects is a pickle: loading it would run code")
        return
    if isinstance(array, np.ndarray):
        profile.set(sample=f"array of shape {array.shape}, {array.dtype}")
        if array.ndim in (1, 2) and array.shape[-1] <= 1000:
            load = Load("pd.DataFrame(__import__('numpy').load(", {}, ")).add_prefix('col')")
            _finish(profile, load.read(path), load)
    else:
        with array:
            profile.set(sample="arrays: " + ", ".join(array.files)[:500])


def profile_sqlite(profile: Profile, path: str) -> None:
    """Tables and views; `load` reads the largest table."""
    connection = sqlite3.connect(f"file:{_quoted_uri(path)}?mode=ro", uri=True)
    try:
        tables, endless = _tables(connection)
    finally:
        connection.close()
    if endless:
        profile.warn("truncated", f"left out, for counting their rows takes too long: {', '.join(map(repr, endless))}")
    for table in tables:
        table["load"] = _sql_load(table["name"]).expr(profile.fields["path"])
    profile.set(sheets=tables)
    if not tables:
        profile.warn("empty", "the database has no tables")
        return
    largest = max(tables, key=lambda table: table["rows"])
    frame = _sql_load(largest["name"], f" LIMIT {ROWS_MAX}").read(path)
    _finish(profile, frame, _sql_load(largest["name"]), largest["rows"])


def _quoted_uri(path: str) -> str:
    return "".join(char if char not in "?#%" else f"%{ord(char):02x}" for char in os.path.abspath(path))


def _identifier(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def _sql_load(table: str, limit: str = "") -> Load:
    query = f"SELECT * FROM {_identifier(table)}{limit}"
    return Load(f"pd.read_sql({query!r}, __import__('sqlite3').connect(", {}, "))")


def _count(connection: sqlite3.Connection, name: str) -> int | None:
    """Rows of a table or view; None when that takes too long, as it does for a view that makes rows without end."""
    until = time.monotonic() + COUNT_S
    connection.set_progress_handler(lambda: time.monotonic() > until, 100_000)
    try:
        return connection.execute(f"SELECT count(*) FROM {_identifier(name)}").fetchone()[0]
    except sqlite3.OperationalError:
        return None
    finally:
        connection.set_progress_handler(None, 0)


def _tables(connection: sqlite3.Connection) -> tuple[list[dict[str, Any]], list[str]]:
    """The `sheets` entries of a database, and the names of what can't be counted."""
    query = "SELECT name FROM sqlite_master WHERE type IN ('table', 'view') AND name NOT LIKE 'sqlite_%' LIMIT 200"
    tables: list[dict[str, Any]] = []
    endless: list[str] = []
    for (name,) in connection.execute(query).fetchall():
        rows = _count(connection, name) if len(endless) < ENDLESS_MAX else None
        if rows is None:
            endless.append(name)
            continue
        names = [row[1] for row in connection.execute(f"PRAGMA table_info({_identifier(name)})")]
        tables.append(
            {
                "name": name,
                "rows": rows,
                "columns": len(names),
                "hidden": False,
                "header_row": None,
                "names": names,
                "convert": {},
            }
        )
    return tables, endless


def profile_json(profile: Profile, path: str, encoding: str, data: Any) -> None:
    """A document: the records in it, wherever they lie. None stands for one too large to parse."""
    if data is None:
        profile.warn("truncated", "too large to be parsed for a profile")
        return
    load = _json_load(data, encoding)
    if load is not None:
        _finish(profile, load.read(path), load)


def _json_load(data: Any, encoding: str) -> Load | None:
    """The expression that makes a table of a document, by the shape of it."""
    keys = _records_at(data)
    if keys is not None:
        records = data
        for key in keys:
            records = records[key]
        if not keys and encoding == "utf-8" and _flat(records):
            return Load("pd.read_json(", {"dtype": False})
        return _document("pd.json_normalize(", encoding, "".join(f"[{key!r}]" for key in keys) + ")")
    if isinstance(data, list):
        return _list_load(data, encoding)
    return _dict_load(data, encoding) if isinstance(data, dict) and data else None


def _document(before: str, encoding: str, after: str) -> Load:
    """An expression around the parsed document."""
    return Load(f"{before}__import__('json').load(open(", {"encoding": encoding}, f")){after}")


def _records_at(data: Any) -> list[str] | None:
    """The keys that lead to the longest list of objects, at most three deep; [] when the document is one."""
    best: tuple[int, list[str]] | None = None
    queue: list[tuple[list[str], Any]] = [([], data)]
    while queue:
        keys, value = queue.pop(0)
        if isinstance(value, list) and value and all(isinstance(item, dict) for item in value[:1000]):
            if best is None or len(value) > best[0]:
                best = (len(value), keys)
        elif isinstance(value, dict) and len(keys) < 3 and len(value) <= 1000:
            queue += [([*keys, key], item) for key, item in value.items()]
    return best[1] if best else None


def _flat(records: list[dict[str, Any]]) -> bool:
    """True when no cell is an object or a list, and no number too big for pandas' own parser."""
    cells = [cell for record in records[:1000] for cell in record.values()]
    return not any(isinstance(cell, dict | list) or (isinstance(cell, int) and abs(cell) > 2**53) for cell in cells)


def _list_load(data: list[Any], encoding: str) -> Load | None:
    """Rows as lists, with names in the first or none; or plain values."""
    if not data:
        return None
    if not all(isinstance(row, list) for row in data):
        return _document("pd.DataFrame({'value': ", encoding, "})")
    if all(isinstance(cell, str) for cell in data[0]) and len(data) > 1:
        return _document("(lambda rows: pd.DataFrame(rows[1:], columns=rows[0]))(", encoding, ")")
    return _document("pd.DataFrame(", encoding, ").add_prefix('col')")


def _dict_load(data: dict[str, Any], encoding: str) -> Load:
    """Columns by name, records by key, or one record."""
    values = list(data.values())
    if all(isinstance(value, list) for value in values) and len({len(value) for value in values}) == 1:
        return _document("pd.DataFrame(", encoding, ")")
    if all(isinstance(value, dict) for value in values) and len(values) > 1:
        return _document("pd.DataFrame.from_dict(", encoding, ", orient='index').reset_index(names='key')")
    return _document("pd.json_normalize(", encoding, ")")


def profile_jsonl(profile: Profile, path: str, encoding: str, facts: Facts) -> None:
    """One object a line; nested ones stay as they are in their cells."""
    load = Load("pd.read_json(", {"lines": True, "dtype": False})
    if encoding != "utf-8":
        load = load.with_options(encoding=encoding)
    frame = load.read(path, nrows=ROWS_MAX)
    if _nested(frame):
        lines = "pd.json_normalize([__import__('json').loads(line) for line in open("
        load = Load(lines, {"encoding": encoding}, ") if line.strip()])")
        frame = load.read(path) if profile.fields["bytes"] <= JSON_MAX else frame
    _finish(profile, frame, load, None if len(frame) < ROWS_MAX else facts.records)


def _nested(frame: pd.DataFrame) -> bool:
    """True when some cell is an object."""
    head = frame.head(200)
    mixed = [name for name in head.columns if head[name].dtype == object]
    return any(head[name].map(lambda cell: isinstance(cell, dict)).any() for name in mixed)
