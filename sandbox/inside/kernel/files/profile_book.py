"""Profiles of workbooks: every sheet, and a load call for the one that holds the table."""

from __future__ import annotations

import re
import zipfile
from dataclasses import dataclass, field, replace
from typing import Any
from xml.etree import ElementTree

import pandas as pd
import python_calamine

from .profile_base import ROWS_MAX, Profile
from .profile_table import bounded, finish_table
from .profile_text import skipped, unique_names, warn_duplicates, warn_layout
from .sniff_head import Layout, find_layout
from .tables_load import Load
from .tables_names import invented_names
from .tables_plan import TablePlan, plan_table

SHEETS_MAX = 50  # listed
TRIED_MAX = 50_000  # cells of a sheet up to which its call is run though another is described
READ_MAX = 20  # read, so that there is a load call
CELLS_MAX = 1_200_000  # of one sheet; a larger one is looked at from above only
ROWS_LOOKED = 2000
MERGED_MAX = 20_000  # merged cells of a sheet that are looked at
XML_MAX = 64 << 20
REACH_CHUNK = 4 << 20
REACH_MAX = 100_000_000  # cells of a grid that a reader may be asked to lay out
_REACH = re.compile(rb'<dimension ref="(?:[A-Z]{1,3}\d+:)?([A-Z]{1,3})(\d{1,7})"')
_COLUMNS = re.compile(rb' r="([A-Z]{2,3})\d')
_ROWS = re.compile(rb' r="(\d{4,7})"')
_UNCACHED = re.compile(rb"<f\b[^>]*(?:/>|>[^<]*</f>)\s*(?:<v\s*/>|<v></v>|</c>)")


@dataclass
class Sheet:
    """One sheet as a grid of text, and where its table lies."""

    name: str
    hidden: bool
    grid: list[list[str]]
    height: int
    layout: Layout
    columns: list[int] = field(default_factory=list)  # those that hold something
    merged: list[int] = field(default_factory=list)  # columns whose empty cells are all parts of a cell above
    typed: bool = False  # the header holds numbers or dates, which pandas would not take for text

    @property
    def rows(self) -> int:
        """Rows of data."""
        filled = sum(1 for row in self.grid[self.layout.body : self.layout.end] if any(row))
        return filled if len(self.grid) == self.height else self.height - self.layout.body

    @property
    def names(self) -> list[str]:
        """The column names that `load` gives."""
        layout = self.layout
        if layout.names:
            return unique_names([layout.names[at] for at in self.columns])
        if layout.header is None:
            body = self.grid[layout.body : layout.body + 300]
            return invented_names([[row[at] for row in body] for at in self.columns])
        header = [self.grid[layout.header][at] for at in self.columns]
        return unique_names([name or f"Unnamed: {at}" for at, name in enumerate(header)])


def _text(cell: Any) -> str:
    """A cell as a text file would have it."""
    if isinstance(cell, float) and cell.is_integer() and abs(cell) < 1e15:
        return str(int(cell))
    return cell.strip() if isinstance(cell, str) else str(cell)


def read_sheet(book: Any, meta: Any) -> Sheet:
    """The grid of one sheet and its layout."""
    sheet = book.get_sheet_by_name(meta.name)
    height, width = sheet.height, sheet.width
    start = sheet.start or (0, 0)
    height += start[0]
    whole = height * max(width, 1) <= CELLS_MAX
    cells = sheet.to_python(skip_empty_area=False, nrows=None if whole else ROWS_LOOKED)
    grid = [[_text(cell) for cell in row] for row in cells]
    layout = find_layout(grid, max(map(len, grid), default=0), complete=whole)
    hidden = meta.visible != python_calamine.SheetVisibleEnum.Visible
    found = Sheet(meta.name, hidden, grid, max(height, len(grid)), layout)
    first = layout.body if layout.header is None else layout.header - layout.merged
    table = grid[first : layout.end]
    if layout.header is not None:
        found.typed = not all(isinstance(cell, str) for cell in cells[layout.header])
    found.columns = [at for at in range(layout.width) if any(row[at] for row in table)]
    found.merged = _merged_down(sheet, found)
    return found


def _merged_down(sheet: Any, found: Sheet) -> list[int]:
    """Columns whose empty cells all belong to a cell that was merged downwards: they mean what it says."""
    covered: dict[int, set[int]] = {}
    for (top, left), (bottom, right) in (sheet.merged_cell_ranges or [])[:MERGED_MAX]:
        if left == right and bottom - top < ROWS_MAX:
            covered.setdefault(left, set()).update(range(top + 1, bottom + 1))
    layout = found.layout
    body = [(at, row) for at, row in enumerate(found.grid[layout.body : layout.end], layout.body) if any(row)]
    merged = []
    for column in found.columns:
        empty = {at for at, row in body if not row[column]}
        if empty and empty <= covered.get(column, set()):
            merged.append(column)
    return merged


def _letters(column: int) -> str:
    """0 -> A, 26 -> AA: how a workbook calls its columns."""
    text = ""
    column += 1
    while column:
        column, rest = divmod(column - 1, 26)
        text = chr(65 + rest) + text
    return text


def _usecols(columns: list[int]) -> str:
    """Column numbers as pandas' letters: [2, 3, 5] -> 'C:D,F'."""
    parts, run = [], [columns[0]]
    for column in [*columns[1:], -1]:
        if column == run[-1] + 1:
            run.append(column)
            continue
        parts.append(_letters(run[0]) + (f":{_letters(run[-1])}" if len(run) > 1 else ""))
        run = [column]
    return ",".join(parts)


def sheet_load(sheet: Sheet, only: bool) -> Load:
    """The load call of one sheet, before anything is known about single columns."""
    layout, grid = sheet.layout, sheet.grid
    options: dict[str, Any] = {} if only else {"sheet_name": sheet.name}
    named = bool(layout.names) or layout.header is None or sheet.typed
    if skip := skipped(layout, named):
        options["skiprows"] = skip
    if named:
        options |= {"header": None, "names": sheet.names}
    if sheet.columns and sheet.columns != list(range(layout.width)):
        options["usecols"] = _usecols(sheet.columns)
    elif not named and _is_index(sheet):
        options["index_col"] = 0
    if layout.footers:
        options["nrows"] = layout.end - layout.body
    options["engine"] = "calamine"
    blank = any(not any(row) for row in grid[layout.body : layout.end])
    return Load("pd.read_excel(", options, ").dropna(how='all')" if blank else ")")


def _is_index(sheet: Sheet) -> bool:
    """A nameless first column of 0, 1, 2...: the index of a frame that was saved with it."""
    layout, first = sheet.layout, sheet.columns[0] if sheet.columns else 0
    if layout.header is None or sheet.grid[layout.header][first]:
        return False
    cells = [row[first] for row in sheet.grid[layout.body : layout.end]]
    return len(cells) > 1 and cells[0] in ("0", "1") and cells == [str(int(cells[0]) + at) for at in range(len(cells))]


def _choose(sheets: list[Sheet]) -> Sheet | None:
    """The sheet to read: the first visible one with a table, unless another is far larger."""
    tables = [sheet for sheet in sheets if len(sheet.columns) > 1 and sheet.rows > 0]
    tables = tables or [sheet for sheet in sheets if sheet.columns and sheet.rows > 0]
    visible = [sheet for sheet in tables if not sheet.hidden] or tables
    if not visible:
        return None
    largest = max(visible, key=lambda sheet: sheet.rows * len(sheet.columns))
    return largest if largest.rows > 20 * visible[0].rows else visible[0]


def profile_book(profile: Profile, path: str) -> None:
    """Fills in the profile of an xlsx, xls, xlsb or ods file."""
    try:
        book = python_calamine.CalamineWorkbook.from_path(path)
    except Exception as error:
        locked = "password" in str(error).lower() or "encrypt" in str(error).lower()
        profile.warn("unreadable", "password-protected" if locked else f"no readable workbook: {error}")
        return
    far = _far_out(path)
    metas = [meta for meta in book.sheets_metadata if meta.typ == python_calamine.SheetTypeEnum.WorkSheet]
    metas, only = [meta for meta in metas if meta.name not in far], len(metas) == 1
    for name, cell in far.items():
        profile.warn("unreadable", f"sheet {name!r} is left out: it reaches {cell}; delete the stray cells far out")
    sheets = [read_sheet(book, meta) for meta in metas[:SHEETS_MAX]]
    readings = {sheet.name: _read(sheet, only) for sheet in sheets[:READ_MAX] if sheet.columns and sheet.rows}
    profile.set(sheets=[_entry(profile, path, sheet, readings.get(sheet.name)) for sheet in sheets])
    hidden = [sheet.name for sheet in sheets if sheet.hidden]
    if hidden:
        profile.warn("hidden_sheet", f"hidden sheets: {', '.join(map(repr, hidden))}")
    _warn_uncached(profile, path)
    chosen = _choose([sheet for sheet in sheets if sheet.name in readings])
    if chosen is None:
        profile.warn("empty", "no sheet holds a table")
        return
    _profile_sheet(profile, path, chosen, readings[chosen.name])


@dataclass
class Reading:
    """The load call of a sheet, and what is planned for its columns."""

    load: Load
    names: list[str]
    plan: TablePlan
    renamed: dict[str, str]

    def full(self) -> Load:
        """The call with all that the plan adds to it."""
        return self.load.with_options(**self.plan.options(self.renamed))


def _read(sheet: Sheet, only: bool) -> Reading:
    """Plans the columns of one sheet from its grid: the file need not be parsed again for it."""
    load = sheet_load(sheet, only)
    body = [row for row in sheet.grid[sheet.layout.body : sheet.layout.end] if any(row)][:ROWS_MAX]
    raw = pd.DataFrame([[row[at] for at in sheet.columns] for row in body], columns=sheet.names, dtype="str")
    merged = [sheet.names[sheet.columns.index(at)] for at in sheet.merged]
    raw[merged] = raw[merged].replace("", None).ffill()
    raw = raw.iloc[:, 1:] if "index_col" in load.options else raw
    renamed = _name_first(raw)
    if renamed:
        old_to_new = {old: new for new, old in renamed.items()}
        load = replace(load, after=f"{load.after}.rename(columns={old_to_new!r})")
        raw = raw.rename(columns=old_to_new)
    plan = plan_table(raw, typed=True)
    for name in set(merged) & set(plan.columns):
        if plan.columns[name].convert is None:
            plan.columns[name].convert = f"df[{name!r}].ffill()"
            plan.columns[name].note("merged_cells", f"{name!r} has cells merged over rows; `convert` fills each row")
    return Reading(load, list(raw.columns), plan, renamed)


def _entry(profile: Profile, path: str, sheet: Sheet, reading: Reading | None) -> dict[str, Any]:
    """One entry of `sheets`."""
    load = _tried(reading, path, sheet) if reading else None
    return {
        "name": sheet.name,
        "rows": sheet.rows,
        "columns": len(sheet.columns),
        "hidden": sheet.hidden,
        "header_row": sheet.layout.header,
        "names": reading.names if reading else [],
        "load": load.expr(profile.fields["path"]) if load else None,
        "convert": {c.name: c.convert for c in reading.plan.columns.values() if c.convert} if reading else {},
    }


def _tried(reading: Reading, path: str, sheet: Sheet) -> Load | None:
    """The full call, if it runs; on large sheets that is left to the one sheet that is described."""
    load = reading.full()
    if sheet.height * len(sheet.columns) <= TRIED_MAX:
        try:
            load.read(path, nrows=bounded(load))
        except Exception:
            return None
    return load


def _profile_sheet(profile: Profile, path: str, sheet: Sheet, reading: Reading) -> None:
    """Columns, load and warnings, from the chosen sheet."""
    layout = sheet.layout
    profile.set(header_row=layout.header)
    warn_layout(profile, layout, sheet.names if layout.header is None else None)
    if layout.header is not None and not layout.names:
        warn_duplicates(profile, [sheet.grid[layout.header][at] for at in sheet.columns])
    finish_table(profile, reading.load, path, reading.plan, reading.renamed)
    profile.set_sample("\n".join("\t".join(row[at] for at in sheet.columns) for row in sheet.grid[:8]))


def _name_first(raw: pd.DataFrame) -> dict[str, str]:
    """{new: old} for a first column without a name that holds dates or labels."""
    if not len(raw.columns) or raw.columns[0] != "Unnamed: 0":
        return {}
    new = invented_names([[str(cell) for cell in raw["Unnamed: 0"].head(300)]])[0]
    return {} if new in ("empty", "number", "flag") or new in raw.columns else {new: "Unnamed: 0"}


def _warn_uncached(profile: Profile, path: str) -> None:
    """Formulas whose result was never computed: written by a program, not by a spreadsheet."""
    try:
        counts = _uncached(path)
    except (zipfile.BadZipFile, KeyError, ElementTree.ParseError, OSError):
        return
    if counts:
        where = ", ".join(f"{name!r} ({count})" for name, count in counts.items())
        profile.warn("formulas_uncached", f"formulas without a stored result, read as empty: {where}")


def _uncached(path: str) -> dict[str, int]:
    """Sheet name -> number of formulas without a value; xlsx only."""
    if not zipfile.is_zipfile(path):
        return {}
    with zipfile.ZipFile(path) as archive:
        counts = {}
        for name, part in _parts(archive):
            with archive.open(part) as xml:
                counts[name] = len(_UNCACHED.findall(xml.read(XML_MAX)))
    return {name: count for name, count in counts.items() if count}


def _parts(archive: zipfile.ZipFile) -> list[tuple[str, str]]:
    """Sheet name and the part that holds it."""
    names = set(archive.namelist())
    if "xl/workbook.xml" not in names:
        return []
    links = {
        link.get("Id"): (link.get("Target") or "").removeprefix("/xl/")
        for link in ElementTree.fromstring(archive.read("xl/_rels/workbook.xml.rels"))
    }
    parts = []
    for sheet in ElementTree.fromstring(archive.read("xl/workbook.xml")).iter():
        key = next((value for name, value in sheet.attrib.items() if name.endswith("}id")), None)
        part = f"xl/{links.get(key, '')}"
        if sheet.tag.endswith("}sheet") and part in names:
            parts.append((sheet.get("name", ""), part))
    return parts


def _far_out(path: str) -> dict[str, str]:
    """Sheets with a stray cell so far out that the grid would not fit into any memory: {name: last cell}."""
    found = {}
    try:
        with zipfile.ZipFile(path) as archive:
            for name, part in _parts(archive):
                with archive.open(part) as xml:
                    width, height = _reach(xml)
                if width * height > REACH_MAX:
                    found[name] = f"{_letters(width - 1)}{height}"
    except (zipfile.BadZipFile, KeyError, ElementTree.ParseError, OSError):
        return {}
    return found


def _reach(xml: Any) -> tuple[int, int]:
    """The last column and row, by what a sheet says of itself and by where its cells are: either may lie."""
    width, height, left, tail = 1, 1, XML_MAX, b""
    while left > 0 and (chunk := xml.read(REACH_CHUNK)):
        if left == XML_MAX and (said := _REACH.search(chunk)):
            width, height = _column(said[1]), int(said[2])
        text, left = tail + chunk, left - len(chunk)
        width = max(width, *map(_column, {*_COLUMNS.findall(text)}), 1)
        height = max(height, *map(int, {*_ROWS.findall(text)}), 1)
        tail = text[-16:]
    return width, height


def _column(letters: bytes) -> int:
    """A -> 1, AA -> 27."""
    number = 0
    for letter in letters:
        number = 26 * number + letter - 64
    return number
