"""What every column of a table means, decided from its cells as text.

The result is what `load` has to say beyond the separator (which cells are missing, which columns are
dates, which must stay text) and a `convert` for columns that pandas' reader can't turn by itself.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

import pandas as pd

from .sniff_date import DateRule, date_expr, sniff_dates
from .sniff_number import COMMA, DOT, Dress, Style, number_expr, sniff_dress, sniff_style

DISTINCT_MAX = 3000  # distinct values of a column that are looked at one by one
PLANNED_MAX = 300  # columns; of a wider table the others are left to pandas
LONG_DIGITS = 15  # more digits than a float holds

# What pandas takes for missing by itself, and what people write besides.
PANDAS_MISSING = frozenset((
    "", "#N/A", "#N/A N/A", "#NA", "-1.#IND", "-1.#QNAN", "-NaN", "-nan", "1.#IND", "1.#QNAN", "<NA>", "N/A", "NA",
    "NULL", "NaN", "None", "n/a", "nan", "null",
))  # fmt: skip
MORE_MISSING = frozenset((
    "?", "??", "-", "--", "---", "–", "—", ".", "..", "...", "*", "N.A.", "n.a.", "NAN", "na", "Na", "none", "NONE",
    "Null", "nil", "NIL", "missing", "Missing", "MISSING", "(null)", "[null]", "\\N", "#DIV/0!", "#REF!", "#VALUE!",
    "#NAME?", "#NUM!", "无", "缺失", "空", "未知", "不详", "暂无", "k.A.", "k. A.", "keine Angabe", "s/d", "n.d.",
))  # fmt: skip
# Words that are missing where numbers belong but an answer like any other among words.
WEAK_MISSING = frozenset(("none", "NONE", "*", ".", "未知", "空", "无", "nil", "na", "Na"))
SENTINELS = (-99999, -9999, -999, -99, -9, 99999, 9999, 999)

_COUNTRY = re.compile(r"country|countries|nation|iso|continent|region|state|land$|pays|pa[ií]s|国|洲|code", re.I)
_CODE = re.compile(r"[A-Z]{2,3}$")
_FORMULA = re.compile(r"[=@]\w|[+-][A-Za-z]")
_EPOCH = re.compile(r"time|epoch|^ts$|_ts$|_at$|date", re.I)
_SERIAL = re.compile(r"(?<![A-Za-z])[Dd]ate(?![a-z])|[a-z]Date(?![a-z])|(?<![A-Z])DATE(?![A-Z])|日期|[Dd]atum\b|[Ff]echa")
_DAY_NUMBER = re.compile(r"date|day|dat|日|time", re.I)


@dataclass
class ColumnPlan:
    """What one column is, and what has to be said so that pandas reads it so."""

    name: str
    kind: str = "text"  # number, date, bool, code, text, empty
    style: Style | None = None
    dress: Dress | None = None
    rule: DateRule | None = None
    convert: str | None = None
    missing: list[Any] = field(default_factory=list)  # cells that mean "no value", pandas' own excepted
    na_seen: set[str] = field(default_factory=set)  # cells that pandas takes for missing
    grouped: bool = False  # a thousands sign would make numbers of some of its cells (01.02.2024, 1.2.3)
    keep_na: bool = False  # 'NA' is a value here (Namibia, North America)
    notes: dict[str, str] = field(default_factory=dict)  # warning code -> text

    def note(self, code: str, text: str) -> None:
        """Remembers a warning; the first of a kind stays."""
        self.notes.setdefault(code, text)


def shown(values: Iterable[Any], limit: int = 3) -> str:
    """A few values for a warning's text, cut short: they come from the file."""
    return ", ".join(repr(str(value)[:30]) for value in list(values)[:limit])


def _distinct(cells: pd.Series) -> pd.Series:
    """Distinct values with their counts, in the order of the file; of very many, an even choice."""
    counts = cells.str.strip().value_counts(sort=False)
    if len(counts) <= DISTINCT_MAX:
        return counts
    return counts.iloc[:: len(counts) // DISTINCT_MAX + 1]


def plan_column(name: str, cells: pd.Series, hint: str = "") -> ColumnPlan:
    """Decides one column; `cells` are all text, `hint` is the decimal sign that the file prefers."""
    plan = ColumnPlan(name)
    counts = _distinct(cells)
    plan.na_seen = set(counts.index) & PANDAS_MISSING
    plan.keep_na = _means_na(name, counts)
    missing = PANDAS_MISSING - ({"NA"} if plan.keep_na else set())
    given = counts[~counts.index.isin(missing)]
    extra = given[given.index.isin(MORE_MISSING)]
    values = given[~given.index.isin(MORE_MISSING)]
    if values.empty:
        plan.kind = "empty" if given.empty else "text"
        return plan
    decided = any(step(plan, values, cells, hint) for step in (_bools, _codes, _numbers, _dates, _dressed))
    if not decided:
        extra = extra[~extra.index.isin(WEAK_MISSING)] if len(values) > 1 else extra[:0]
    if plan.kind == "text" and any(map(_FORMULA.match, values.index)):
        plan.note("formula_cells", f"{name!r} has cells that a spreadsheet would run as formulas")
    if len(extra):
        plan.missing = list(extra.index)
        plan.note("missing_codes", f"{name!r}: {shown(plan.missing)} read as missing")
    return plan


def _means_na(name: str, counts: pd.Series) -> bool:
    """True when 'NA' is a code among codes: two or three capitals in (nearly) every cell."""
    if "NA" not in counts.index:
        return False
    others = [value for value in counts.index if value not in PANDAS_MISSING]
    codes = sum(1 for value in others if _CODE.match(value))
    if not others or codes < 0.9 * len(others):
        return False
    return len({len(value) for value in others}) == 1 and (len(others) > 2 or bool(_COUNTRY.search(name)))


def _bools(plan: ColumnPlan, values: pd.Series, _cells: pd.Series, _hint: str) -> bool:
    if not {value.lower() for value in values.index} <= {"true", "false"}:
        return False
    plan.kind = "bool"
    return True


def _codes(plan: ColumnPlan, values: pd.Series, cells: pd.Series, _hint: str) -> bool:
    """Digits that are a name, not an amount: 01234, or more of them than a number holds."""
    digits = sum(1 for value in values.index if value.isascii() and value.isdigit())
    if digits < 0.9 * len(values):
        return False
    bare = cells.str.strip()
    zeros = bare.str.match(r"0\d+$")
    if zeros.any() and not all(map(_is_day, values.index)):
        plan.note("leading_zeros", f"{plan.name!r} has leading zeros ({shown(bare[zeros].unique())}): kept as text")
    long = bare.str.match(rf"\d{{{LONG_DIGITS + 1},}}$")
    if long.any():
        plan.note("long_digits", f"{plan.name!r} has numbers of over {LONG_DIGITS} digits: kept as text")
    plan.kind = "code" if plan.notes else plan.kind
    return bool(plan.notes)


def _is_day(text: str) -> bool:
    """True for digits that could be a day written as 20240131."""
    return bool(re.match(r"(19|20)\d{2}[01]\d[0-3]\d$", text))


def _numbers(plan: ColumnPlan, values: pd.Series, cells: pd.Series, hint: str) -> bool:
    days = all(map(_is_day, values.index)) and (_DAY_NUMBER.search(plan.name) or len(values) > 2)
    if days and _dates(plan, values, cells, hint):
        return True
    style = sniff_style(values.index, hint)
    if style is None or style.share < 0.8:
        return False
    plan.kind, plan.style = "number", style
    _epoch(plan, values)
    _serial(plan, values)
    plus = [value for value in values.index if re.match(r"\+\d{7,}", value)]
    if len(plus) > 0.5 * len(values):
        plan.kind = "code"
    return True


def _epoch(plan: ColumnPlan, values: pd.Series) -> None:
    """Seconds or milliseconds since 1970, in a column that is called a time."""
    lengths = {len(value) for value in values.index}
    if not (plan.style and plan.style.whole and _EPOCH.search(plan.name) and lengths in ({10}, {13})):
        return
    unit = "s" if lengths == {10} else "ms"
    if all("09" <= value[:2] <= "20" for value in values.index):
        plan.convert = f"pd.to_datetime(df[{plan.name!r}], unit={unit!r})"


def _serial(plan: ColumnPlan, values: pd.Series) -> None:
    """Days since 1900 as a spreadsheet counts them, in a column that is called a date."""
    days = all(re.fullmatch(r"[2-5]\d{4}(\.\d+)?", value) for value in values.index)
    if days and len(values) > 1 and _SERIAL.search(plan.name):
        plan.convert = f"pd.to_datetime(df[{plan.name!r}], unit='D', origin='1899-12-30')"
        plan.note("numbers_as_dates", f"{plan.name!r} holds a spreadsheet's day numbers; `convert` makes dates of them")


def _dates(plan: ColumnPlan, values: pd.Series, _cells: pd.Series, _hint: str) -> bool:
    rule = sniff_dates(list(values.index))
    if rule is None:
        return False
    plan.kind, plan.rule = "date", rule
    return True


def _dressed(plan: ColumnPlan, values: pd.Series, _cells: pd.Series, hint: str) -> bool:
    dress = sniff_dress(list(values.index), hint)
    if dress is None:
        return False
    plan.kind, plan.style, plan.dress = "number", dress.style, dress
    return True


@dataclass
class TablePlan:
    """The plans of all columns and what the load call has to say for them together."""

    columns: dict[str, ColumnPlan]
    decimal: str = DOT
    thousands: str = ""
    typed: bool = False  # cells have types of their own (a workbook): text and numbers may share a column

    def options(self, original: dict[str, str] | None = None) -> dict[str, Any]:
        """Keyword arguments for pandas' reader; `original` maps columns that `load` renames to what they were."""
        was = original or {}
        options: dict[str, Any] = {}
        if self.decimal != DOT:
            options["decimal"] = self.decimal
        if self.thousands:
            options["thousands"] = self.thousands
        pinned = {was.get(name, name): "str" for name, plan in self.columns.items() if self._pin(plan)}
        if pinned:
            options["dtype"] = pinned
        return options | self._missing(was) | self._date_options(was)

    def demote(self, frame: pd.DataFrame) -> bool:
        """Columns that came back as text although the plan says otherwise get a convert; True if there are any."""
        changed = False
        for name, plan in self.columns.items():
            if plan.convert or name not in frame.columns or not _is_text(frame[name]):
                continue
            if plan.kind == "number" and plan.style:
                plan.convert = number_expr(name, plan.style)
                plan.note("mixed_types", f"{name!r} holds numbers and also text; `convert` makes the text missing")
            elif plan.kind == "date" and plan.rule:
                plan.convert = date_expr(name, plan.rule)
                plan.note("mixed_dates", f"{name!r} has cells that are not dates; `convert` makes them NaT")
            changed |= plan.convert is not None
        return changed

    def _pin(self, plan: ColumnPlan) -> bool:
        """Text that pandas would take for a number: codes, and with a thousands sign also 01.02.2024 or 1.2.3."""
        if plan.kind == "code":
            return True
        if plan.convert and plan.style and not plan.style.whole and (self.typed or not plan.dress):
            return True
        return bool(self.thousands) and plan.kind in ("date", "text") and plan.grouped

    def _missing(self, was: dict[str, str]) -> dict[str, Any]:
        extra = {was.get(name, name): plan.missing for name, plan in self.columns.items() if plan.missing}
        if not any(plan.keep_na for plan in self.columns.values()):
            return {"na_values": extra} if extra else {}
        seen = {}
        for name, plan in self.columns.items():
            tokens = sorted((plan.na_seen | {""}) - ({"NA"} if plan.keep_na else set()))
            seen[was.get(name, name)] = tokens + plan.missing
        tokens = list(dict.fromkeys(token for listed in seen.values() for token in listed))
        alike = not extra and "NA" not in tokens
        return {"keep_default_na": False, "na_values": tokens if alike else seen}

    def _date_options(self, was: dict[str, str]) -> dict[str, Any]:
        plans = {was.get(name, name): plan for name, plan in self.columns.items()}
        dates = {name: plan.rule.formats[0] for name, plan in plans.items() if plan.rule and not plan.convert}
        if not dates:
            return {}
        formats = {name: text for name, text in dates.items() if not text.startswith("%Y-%m-%d")}
        options: dict[str, Any] = {"parse_dates": list(dates)}
        if formats:
            alike = len(set(dates.values())) == 1
            options["date_format"] = next(iter(formats.values())) if alike else dates
        return options


def _is_text(values: pd.Series) -> bool:
    return bool(values.notna().any()) and not (
        pd.api.types.is_numeric_dtype(values) or pd.api.types.is_datetime64_any_dtype(values)
    )


def plan_table(raw: pd.DataFrame, separator: str = ",", typed: bool = False) -> TablePlan:
    """Plans all columns of a table whose cells are text, then what only the file as a whole can tell."""
    prefer = COMMA if separator == ";" else ""
    columns = {name: plan_column(name, raw[name], prefer) for name in raw.columns[:PLANNED_MAX]}
    plan = TablePlan(columns, typed=typed)
    _choose_signs(plan, raw)
    _choose_day_first(plan, raw)
    for column in columns.values():
        if plan.thousands and column.kind in ("date", "text"):
            bare = raw[column.name].str.replace(plan.thousands, "")
            column.grouped = bool(bare.str.match(r"\s*[+-]?\d+\s*$").any())
        _settle(column, plan, raw[column.name])
    return plan


def _choose_signs(plan: TablePlan, raw: pd.DataFrame) -> None:
    """The decimal and thousands signs of the load call: those of the columns that leave no doubt."""
    written = [(c, c.style) for c in plan.columns.values() if c.style and not c.dress and not c.style.whole]
    commas = sum(1 for _, style in written if style.decimal == COMMA)
    dots = sum(1 for _, style in written if style.decimal == DOT and style.certain)
    plan.decimal = COMMA if commas > dots else DOT
    groups = set()
    for column, style in written:
        if not style.certain and style.decimal != plan.decimal:
            style = sniff_style(_values(raw[column.name]), plan.decimal) or style
            column.style = style
        if style.group and style.decimal == plan.decimal:
            groups.add(style.group)
    if len(groups) == 1 and groups <= {",", ".", "'"}:
        plan.thousands = groups.pop()


def _values(cells: pd.Series) -> list[str]:
    """The distinct values of a column that are not missing."""
    return [value for value in _distinct(cells).index if value not in PANDAS_MISSING | MORE_MISSING]


def _choose_day_first(plan: TablePlan, raw: pd.DataFrame) -> None:
    """Dates that are open take the order of those that are not; a decimal comma means day first."""
    known = {c.rule.day_first for c in plan.columns.values() if c.rule and not c.rule.ambiguous} - {None}
    hint = known.pop() if len(known) == 1 else True if plan.decimal == COMMA else None
    for column in plan.columns.values():
        if column.rule and column.rule.ambiguous and len(column.rule.formats) == 1 and hint is not None:
            column.rule = sniff_dates(_values(raw[column.name]), hint) or column.rule


def _settle(column: ColumnPlan, plan: TablePlan, cells: pd.Series) -> None:
    """The convert expression and the warnings of one column, now that the file's signs are known."""
    if column.kind == "date" and column.rule:
        _settle_date(column, column.rule)
    elif column.kind == "number" and column.style:
        _settle_number(column, column.style, plan, cells)


def settle_text(column: ColumnPlan, cells: pd.Series) -> None:
    """For a text column that no reader's options apply to: whatever it means is left to `convert`."""
    _settle(column, TablePlan({column.name: column}), cells)
    column.missing = []
    column.notes.pop("missing_codes", None)
    if column.rule:
        column.convert = date_expr(column.name, column.rule)
    elif column.kind == "number" and column.style and not column.convert:
        column.convert = number_expr(column.name, column.style)
        column.note("numbers_as_text", f"{column.name!r} holds numbers as text; `convert` makes numbers of them")


def _settle_date(column: ColumnPlan, rule: DateRule) -> None:
    name = column.name
    if rule.ambiguous:
        order = "day/month" if rule.formats[0].find("%d") < rule.formats[0].find("%m") else "month/day"
        column.note("ambiguous_dates", f"{name!r}: no date settles the order of day and month; read as {order}")
    if len(rule.formats) > 1 or rule.share < 1:
        column.note("mixed_dates", f"{name!r} has dates of several forms; what can't be read becomes NaT")
    if len(rule.formats) != 1 or rule.share < 1 or rule.zone:
        column.convert = date_expr(name, rule)


def _settle_number(column: ColumnPlan, style: Style, plan: TablePlan, cells: pd.Series) -> None:
    name = column.name
    if column.dress:
        _settle_dress(column, style, column.dress)
    elif style.share < 1:
        column.convert = number_expr(name, style)
        column.note("mixed_types", f"{name!r} holds numbers and also text; `convert` makes the text missing")
    elif not _fits(style, plan):
        column.convert = number_expr(name, style)
        column.note("numbers_as_text", f"{name!r} holds numbers written unlike the others; `convert` reads them")
    else:
        _find_sentinels(column, style, cells)


def _fits(style: Style, plan: TablePlan) -> bool:
    """True when the reader's decimal and thousands signs read this column right."""
    return style.whole or (style.decimal == plan.decimal and style.group in ("", plan.thousands))


def _settle_dress(column: ColumnPlan, style: Style, dress: Dress) -> None:
    column.convert = number_expr(column.name, style, dress)
    what = {
        "percent": f"with {dress.mark!r}; `convert` takes it off (12% becomes 12)",
        "currency": f"with {dress.mark!r}; `convert` takes it off",
        "unit": f"in {dress.mark!r}; `convert` takes the unit off",
        "brackets": "with brackets for minus; `convert` reads them",
        "signs": "with signs of another script or the minus behind; `convert` reads them",
        "scaled": f"with {dress.mark!r} for thousands, millions and the like; `convert` multiplies",
        "range": "with a range in brackets; `convert` keeps the number before it",
    }
    column.note("numbers_as_text", f"{column.name!r} holds numbers as text, {what[dress.kind]}")


def _find_sentinels(column: ColumnPlan, style: Style, cells: pd.Series) -> None:
    """Numbers like -999 that stand for "no value": far off all others."""
    numbers = pd.to_numeric(cells, errors="coerce") if style.decimal == DOT else pd.Series(dtype="float64")
    counts = numbers.value_counts()
    for code in SENTINELS:
        if code in counts.index and _is_sentinel(code, int(counts[code]), numbers[numbers != code].dropna()):
            column.missing.append(code)
    if any(isinstance(token, int) for token in column.missing):
        column.note("missing_codes", f"{column.name!r}: {column.missing} read as missing, far off all other values")


def _is_sentinel(code: int, count: int, others: pd.Series) -> bool:
    if len(others) < 3 or count > 0.9 * len(others):
        return False
    if code == -9:
        return count > 1 and others.min() >= 0
    if code < 0:
        return bool(others.min() > code / 2)
    return count > 1 and bool(others.max() < code / 5)
