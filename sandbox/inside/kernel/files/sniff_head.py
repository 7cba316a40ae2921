"""Where the table lies in a grid of cells: title rows, header, body, footer.

The grid is a list of rows of text, from a delimited file or from a sheet; both go wrong in the same ways.
"""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import pairwise
from statistics import median

from .sniff_date import is_date_like
from .sniff_number import is_number, sniff_dress

LOOK = 30  # rows in which a header is looked for
BODY = 60  # rows below it that are compared with it
COLUMNS = 60  # columns in which that is done

TOTAL = re.compile(
    r"(grand |sub ?|overall )?totals?\b|sum( total)?$|sum:|gesamt|summe|insgesamt|totaux|totale|итого|всего|"
    r"合计|总计|總計|合計|小计|小計|总和|計$",
    re.I,
)
_UNIT = re.compile(
    r"[(\[].{1,20}[)\]]|-|[^\W\d_]{1,4}|[^\d\s]{0,6}[/%°²³µμΩ€$£¥·^][\w%°²³/.·^-]{0,8}|"
    r"(?:kilo|mega|milli|centi)?(?:met|lit)(?:er|re)s?|(?:kilo|milli)?grams?|(?:milli)?seconds?|minutes?|hours?|days?|weeks?|months?|"
    r"years?|percent|degrees?|units?|count|pieces?|thousands?|millions?|dollars?|euros?|celsius|kelvin|watts?|volts?",
    re.I,
)
_NO_UNIT = re.compile(r"[\W_]{0,4}|[(\[].*[)\]]|text|string|name|id|n/?a|none", re.I)
_EMAIL = re.compile(r"[^@\s]+@[^@\s]+\.\w+$")
MISSING = frozenset(("", "na", "n/a", "nan", "null", "none", "-", "--", "?", ".", "#n/a", "<na>", "nil", "missing"))


@dataclass
class Layout:
    """Rows are counted from 0 in the grid, blank rows included."""

    header: int | None  # the row with the names; None: the table has none
    body: int  # first row of data
    end: int  # one past the last row of data, within the rows that were looked at
    width: int
    names: list[str] | None = None  # when they had to be put together
    merged: bool = False  # a row of group names above the header was joined with it
    row_names: bool = False  # the data have one column more than the header, in front
    units: list[str] = field(default_factory=list)  # of the row below the header that holds them; it is no data
    titles: list[str] = field(default_factory=list)
    footers: list[str] = field(default_factory=list)


def _filled(row: list[str]) -> int:
    return sum(1 for cell in row if cell.strip())


def _kind(cell: str) -> str:
    """number, date or address: what data are and names are not; "" for words."""
    return _kind_of(cell.strip()[:80])


@lru_cache(maxsize=4096)
def _kind_of(cell: str) -> str:
    if is_number(cell) or (re.match(r"\W{0,3}\d", cell) and sniff_dress([cell])):
        return "number"
    if is_date_like(cell):
        return "date"
    return "address" if _EMAIL.match(cell) else ""


def _is_value(cell: str) -> bool:
    return bool(_kind(cell))


def _runs_on(cells: list[str]) -> bool:
    """True for names like 2019, 2020, 2021, or 0, 1, 2, 3: numbers that are a header all the same."""
    if not all(re.fullmatch(r"\d{1,5}", cell.strip()) for cell in cells if is_number(cell.strip())):
        return False
    numbers = [int(cell) for cell in cells if cell.strip().isdecimal()]
    steps = {later - earlier for earlier, later in pairwise(numbers)}
    if len(steps) != 1 or steps == {0}:
        return False
    return all(1000 <= number <= 2999 for number in numbers) or (len(numbers) > 3 and numbers[:2] in ([0, 1], [1, 2]))


def header_score(row: list[str], body: list[list[str]]) -> float:
    """Above 0: the row names the columns of the body; below: it is data like the rest; 0: no evidence."""
    run = _runs_on(row) and not (body and _runs_on(body[0]))
    score = 0.0
    for at, cell in enumerate(row[:COLUMNS]):
        column = [line[at].strip() for line in body[:BODY] if at < len(line)]
        column = [value for value in column if value.lower() not in MISSING]
        if column and cell.strip().lower() not in MISSING:
            score += _evidence(cell.strip(), column, run)
    return score


def _evidence(cell: str, column: list[str], run: bool) -> float:
    """What one cell above one column says."""
    kinds = Counter(map(_kind, column))
    kind, alike = _kind(cell), kinds[_kind(cell)] / len(column)
    if kind:
        if run and kind == "number":
            return 0.0
        return -1.5 if alike > 0.5 else 0.5 if kind == "date" and kinds["number"] > 0.7 * len(column) else -0.5
    if alike < 0.3:
        return 1.0
    if cell in column:
        return -0.7
    lengths = {len(value) for value in column}
    if len(column) > 3 and len(lengths) == 1 and len(cell) not in lengths:
        return 0.6
    return 0.4 if len(column) > 3 and len(set(column)) <= len(column) / 2 else 0.1


def _pick_start(rows: list[list[str]], width: int) -> int:
    """The first row of the table, names or data."""
    typical = median([_filled(row) for row in rows if _filled(row)] or [0])
    need = min(max(2, typical / 2), typical)
    full = [at for at, row in enumerate(rows[:LOOK]) if _filled(row) >= need or _lacks_first(row, width)]
    exact = [at for at in full if len(rows[at]) == width]
    candidates = exact or full or [0]
    first = candidates[0]
    for at in candidates[:4]:
        body = [row for row in rows[at + 1 : at + BODY] if _filled(row) >= need]
        if at == first and header_score(rows[at], body) >= 1:
            return at
        if _filled(rows[at]) > _filled(rows[first]) and header_score(rows[at], body) >= 1 + at - first:
            return at
    return first


def _lacks_first(row: list[str], width: int) -> bool:
    """All names but that of the first column: a saved index."""
    return len(row) == width > 1 and not row[0].strip() and _filled(row) == width - 1


def table_end(rows: list[list[str]], body: int, width: int) -> int:
    """One past the last data row: below lie blank rows, notes of few cells, and a row of totals."""
    end = len(rows)
    typical = median([_filled(row) for row in rows[body : body + BODY] if _filled(row)] or [0])
    while end > body + 1 and _is_footer(rows[end - 1], typical, width):
        end -= 1
    return end


def _is_footer(row: list[str], typical: float, width: int) -> bool:
    filled = _filled(row)
    if not filled:
        return True
    first = next(cell.strip() for cell in row if cell.strip())
    if TOTAL.match(first) and width > 1 and any(map(is_number, map(str.strip, row))):
        return True
    note = (filled == 1 and (typical > 2 or len(row) < width)) or filled < typical / 3
    return note and not _is_value(first) and (len(row) < width or bool(row[0].strip()))


def find_layout(rows: list[list[str]], width: int, complete: bool = True) -> Layout:
    """The layout of a grid; `complete` says that its last row is the last of the table."""
    if not any(map(_filled, rows)):
        return Layout(None, 0, 0, width)
    start = _pick_start(rows, width)
    row_names = _has_row_names(rows, start, width)
    start -= row_names
    body = [row for row in rows[start + 1 : start + 1 + BODY] if _filled(row)]
    shifted = [row[1:] for row in body] if row_names else body
    named = row_names or not body or header_score(rows[start], shifted) >= 0
    if not body:
        named = not any(map(_is_value, rows[start])) if start < len(rows) else True
    layout = Layout(start if named else None, start + 1 if named else start, len(rows), width)
    layout.row_names = row_names
    layout.titles = [text for row in rows[:start] if (text := " ".join(filter(None, map(str.strip, row))))]
    if named:
        _join_groups(rows, start, layout)
        layout.units = _units(rows, layout)
        layout.body += bool(layout.units)
    if complete:
        layout.end = table_end(rows, layout.body, width)
        layout.footers = [" ".join(filter(None, map(str.strip, row))) for row in rows[layout.end :] if _filled(row)]
    return layout


def _units(rows: list[list[str]], layout: Layout) -> list[str]:
    """The row below the header when it holds units: one above every column of values, nothing above words."""
    if len(rows) < layout.body + 2:
        return []
    first = [cell.strip() for cell in rows[layout.body][:COLUMNS]]
    below = [row for row in rows[layout.body + 1 : layout.body + BODY] if _filled(row)]
    measured = 0
    for at, cell in enumerate(first):
        column = [row[at].strip() for row in below if at < len(row) and row[at].strip().lower() not in MISSING]
        values = len(column) > 0 and sum(map(_is_value, column)) > 0.9 * len(column)
        if cell and not (_UNIT.fullmatch(cell) if values else _NO_UNIT.fullmatch(cell)):
            return []
        measured += values and bool(cell) and cell.lower() not in MISSING
        if values and not cell and at and not all(_kind(value) == "date" for value in column):
            return []  # a number without a unit beside others with one: more likely a row with gaps
    return [cell for cell in first if cell] if measured > 1 else []


def _has_row_names(rows: list[list[str]], start: int, width: int) -> bool:
    """A header one shorter than all rows below, whose last fields are in use: R writes tables so."""
    first = next((at for at, row in enumerate(rows[:LOOK]) if _filled(row)), None)
    if first is None or start != first + 1 or len(rows[first]) != width - 1 or width < 2:
        return False
    return any(row[-1].strip() for row in rows[start : start + BODY] if len(row) == width)


def _join_groups(rows: list[list[str]], start: int, layout: Layout) -> None:
    """A row of merged group names above the header: `2023 | | 2024 |` over `Q1 | Q2 | Q1 | Q2`."""
    above, names = rows[start - 1] if start else [], rows[start]
    if _filled(above) < 2 or _filled(above) >= _filled(names) or any(map(_is_value, names)):
        return
    layout.names = joined_names(above, names)
    layout.merged = True
    layout.titles = layout.titles[:-1]


def joined_names(above: list[str], names: list[str]) -> list[str]:
    """Each group name is carried to the right until the next, and put before the column's own name."""
    joined, group = [], ""
    for at, name in enumerate(names):
        group = (above[at].strip() if at < len(above) else "") or group
        joined.append(f"{group} {name.strip()}".strip())
    return joined
