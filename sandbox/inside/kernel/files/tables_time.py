"""Which columns of a table tell the time of a row, and one expression that makes dates of them."""

from __future__ import annotations

import re
from typing import Any

from .sniff_date import is_date_like, sniff_dates

_QUARTER = re.compile(r"(^|[^a-z])(quarter|qtr|q)$|quartal|季度|季$", re.I)
_MONTH = re.compile(r"(^|[^a-z])(month|mon|monat|mois|mes)$|^month|月份|^月$", re.I)
_DAY = re.compile(r"(^|[^a-z])(day|tag|jour|día|dia)$|^日$", re.I)


def _find(columns: list[dict[str, Any]], pattern: re.Pattern[str], low: int, high: int) -> str | None:
    """A column of whole numbers within the range and with a name that says so."""
    for column in columns:
        whole = column["dtype"] == "int" and column["min"] is not None
        if whole and pattern.search(column["name"]) and low <= column["min"] and column["max"] <= high:
            return str(column["name"])
    return None


def _parts(columns: list[dict[str, Any]], year: str) -> tuple[list[str], str, str]:
    """(columns, freq, the month and day of pd.to_datetime's dict) beside a year column."""
    quarter = _find(columns, _QUARTER, 1, 4)
    month = _find(columns, _MONTH, 1, 12)
    day = _find(columns, _DAY, 1, 31)
    if month and day:
        return [year, month, day], "day", f"'month': df[{month!r}], 'day': df[{day!r}]"
    if month:
        return [year, month], "month", f"'month': df[{month!r}], 'day': 1"
    if quarter:
        return [year, quarter], "quarter", f"'month': df[{quarter!r}] * 3 - 2, 'day': 1"
    return [year], "year", "'month': 1, 'day': 1"


def _freq(column: dict[str, Any]) -> str:
    """The step of a date column, from its range and number of distinct days."""
    if column["dtype"] == "datetime":
        return "time"
    form = column["date_format"] or ""
    if form == "quarter":
        return "quarter"
    if form and "%d" not in form and form != "mixed":
        return "month"
    return "day"


def time_hint(columns: list[dict[str, Any]]) -> dict[str, Any] | None:
    """The `time` entry of a profile: the first date column, else a year with what stands beside it."""
    dates = [column for column in columns if column["role"] == "date"]
    if dates:
        column = dates[0]
        name = column["name"]
        return {"columns": [name], "freq": _freq(column), "expr": column["convert"] or f"df[{name!r}]"}
    years = [column["name"] for column in columns if column["role"] == "year"]
    if years:
        names, freq, rest = _parts(columns, years[0])
        expr = f"pd.to_datetime({{'year': df[{years[0]!r}], {rest}}}, errors='coerce')"
        return {"columns": names, "freq": freq, "expr": expr}
    return _wide(columns)


def _wide(columns: list[dict[str, Any]]) -> dict[str, Any] | None:
    """Years or days as column names: the long table is what charts and groupings need."""
    names = [column["name"] for column in columns]
    years = [name for name in names if re.fullmatch(r"(1[5-9]|20)\d\d", name)]
    if len(years) > 2:
        return {
            "columns": years,
            "freq": "year",
            "expr": None,
            "melt": _melt(names, years, "year", "d.year.astype(int)"),
        }
    days = [name for name in names if is_date_like(name)]
    rule = sniff_dates(days) if len(days) > 2 else None
    if rule is None or len(rule.formats) != 1:
        return None
    freq = "day" if "%d" in rule.formats[0] else "month"
    melt = _melt(names, days, "date", f"pd.to_datetime(d.date, format={rule.formats[0]!r})")
    return {"columns": days, "freq": freq, "expr": None, "melt": melt}


def _melt(names: list[str], periods: list[str], column: str, value: str) -> str:
    """One row for each period, which becomes a column `year` or `date`."""
    keep = [name for name in names if name not in periods]
    long = f"df.melt(id_vars={keep!r}, value_vars={periods!r}, var_name={column!r}, value_name='value')"
    return f"{long}.assign({column}=lambda d: {value})"
