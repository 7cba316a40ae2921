"""Which format the dates of a column have.

Decided for the column as a whole, never cell by cell: pandas swaps day and month silently where it
decides anew for each cell. Where no cell settles the order of day and month, the column says so.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

import pandas as pd

MONTHS = "jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec"
_LONG = "january|february|march|april|may|june|july|august|september|october|november|december"

# Shape of the date part -> its format. D and M stand for "day or month, the column decides".
_SHAPES = (
    (r"\d{4}(?P<s>[-/.])\d{1,2}(?P=s)\d{1,2}", "%Y{s}%m{s}%d"),
    (r"\d{1,2}(?P<s>[-/.])\d{1,2}(?P=s)\d{4}", "{D}{s}{M}{s}%Y"),
    (r"\d{1,2}(?P<s>[-/.])\d{1,2}(?P=s)\d{2}", "{D}{s}{M}{s}%y"),
    (r"\d{4}(?P<s>[-/])\d{1,2}", "%Y{s}%m"),
    (r"(?:19|20)\d{2}[01]\d[0-3]\d", "%Y%m%d"),
    (r"\d{4}年\d{1,2}月\d{1,2}日", "%Y年%m月%d日"),
    (r"\d{4}年\d{1,2}月", "%Y年%m月"),
    (rf"\d{{1,2}}(?P<s>[- /]?)(?:{MONTHS})(?P=s)\d{{4}}", "%d{s}%b{s}%Y"),
    (rf"\d{{1,2}}(?P<s>[- /]?)(?:{MONTHS})(?P=s)\d{{2}}", "%d{s}%b{s}%y"),
    (rf"\d{{1,2}} (?:{_LONG}) \d{{4}}", "%d %B %Y"),
    (rf"(?:{MONTHS}) \d{{1,2}}, \d{{4}}", "%b %d, %Y"),
    (rf"(?:{_LONG}) \d{{1,2}}, \d{{4}}", "%B %d, %Y"),
    (rf"(?:{MONTHS})(?P<s>[- ])\d{{4}}", "%b{s}%Y"),
    (rf"(?:{MONTHS})(?P<s>[- ])\d{{2}}", "%b{s}%y"),
    (rf"(?:{_LONG}) \d{{4}}", "%B %Y"),
    (rf"\d{{4}}(?P<s>[- ])(?:{MONTHS})", "%Y{s}%b"),
)
_DATES = tuple((re.compile(shape + "$", re.I), text) for shape, text in _SHAPES)
_TIME = re.compile(
    r"^(?P<date>.*?\d日?)(?P<gap>[ T])(?P<time>\d{1,2}:\d{2}(?P<sec>:\d{2}(?P<frac>[.]\d+)?)?)"
    r"(?P<half> ?[AaPp][Mm])?(?P<zone> ?(?:Z|UTC|[+-]\d{2}:?\d{2}))?$"
)
_QUARTER = re.compile(r"\d{4}[- ]?Q[1-4]$", re.I)


@dataclass(frozen=True)
class DateRule:
    """How a column's dates are read."""

    formats: tuple[str, ...]  # as pandas takes them, tried in this order; none for quarters
    ambiguous: bool = False  # no cell settles which of two numbers is the day
    share: float = 1.0  # of the distinct values that the rule reads

    @property
    def time(self) -> bool:
        """True when the cells hold a time of day as well."""
        return any("%H" in text or "%I" in text for text in self.formats)

    @property
    def zone(self) -> bool:
        """True when the cells name their offset from UTC."""
        return any("%z" in text for text in self.formats)

    @property
    def day_first(self) -> bool | None:
        """Which of two numbers is the day; None when the cells don't leave it open."""
        heads = {text[:2] for text in self.formats} & {"%d", "%m"}
        return None if len(heads) != 1 else heads == {"%d"}


def _shape(text: str) -> tuple[str, str] | None:
    """(format with D and M open, the date part) of one cell."""
    suffix, date = "", text
    timed = _TIME.match(text)
    if timed:
        date, suffix = timed["date"], _time_format(timed)
    for pattern, template in _DATES:
        match = pattern.match(date)
        if match:
            sign = match.groupdict().get("s") or ""
            return template.replace("{s}", sign) + suffix, date
    return None


def is_date_like(text: str) -> bool:
    """True for a cell that has the shape of a date, or of a quarter."""
    return bool(_QUARTER.match(text)) or _shape(text) is not None


def _time_format(timed: re.Match[str]) -> str:
    """The format of the time part, its gap included."""
    seconds = (":%S" + (".%f" if timed["frac"] else "")) if timed["sec"] else ""
    half = timed["half"] or ""
    clock = ("%I" if half else "%H") + ":%M" + seconds + ((" %p" if half[0] == " " else "%p") if half else "")
    zone = timed["zone"] or ""
    return timed["gap"] + clock + ((" %z" if zone[0] == " " else "%z") if zone else "")


def _order(dates: list[str]) -> tuple[bool | None, bool]:
    """(day first?, contradictory?) from cells whose first or second number can't be a month."""
    pairs = [tuple(map(int, re.findall(r"\d+", date)[:2])) for date in dates]
    first = any(pair[0] > 12 for pair in pairs)
    second = any(pair[1] > 12 for pair in pairs)
    return (None if first == second else first), first and second


def _steadier(values: list[str], template: str) -> bool | None:
    """Day first, when only that reading is in order of time; the reverse; None when both or none is."""
    sorted_by = []
    for day_first in (True, False):
        read = pd.to_datetime(pd.Series(values), format=_settle(template, day_first), errors="coerce")
        sorted_by.append(read.is_monotonic_increasing or read.is_monotonic_decreasing)
    return None if sorted_by[0] == sorted_by[1] else sorted_by[0]


def _settle(template: str, day_first: bool) -> str:
    first, second = ("%d", "%m") if day_first else ("%m", "%d")
    return template.replace("{D}", first).replace("{M}", second)


def sniff_dates(values: list[str], day_first: bool | None = None) -> DateRule | None:
    """The rule for distinct values in file order, or None when they are no dates.

    `day_first` is what the rest of the file suggests, for a column that is open."""
    if not values:
        return None
    if all(map(_QUARTER.match, values)):
        return DateRule(())
    known = [(value, *shape) for value in values if (shape := _shape(value))]
    if len(known) < 0.8 * len(values):
        return None
    formats: list[str] = []
    ambiguous = False
    for template in dict.fromkeys(template for _, template, _ in known):
        cells = [(value, date) for value, shape, date in known if shape == template]
        orders, doubt = _orders(cells, template, day_first)
        formats += [_settle(template, order) for order in orders]
        ambiguous |= doubt
    return _checked([value for value, _, _ in known], tuple(formats), ambiguous, len(values))


def _orders(cells: list[tuple[str, str]], template: str, hint: bool | None) -> tuple[list[bool], bool]:
    """Day first or not, for the cells of one shape; both, where they contradict each other."""
    if "{D}" not in template:
        return [False], False
    order, contradictory = _order([date for _, date in cells])
    if contradictory:
        return [True, False], True
    if order is None and len(cells) > 2:
        order = _steadier([value for value, _ in cells], template)
    if order is not None:
        return [order], False
    return [_habit(template, hint)], "{D}." not in template


def _habit(template: str, hint: bool | None) -> bool:
    """Where nothing in the column tells: 1.2.2024 and 1-2-2024 are written day first, 1/2/2024 either way."""
    return hint if hint is not None else "{D}/" not in template


def _checked(known: list[str], formats: tuple[str, ...], ambiguous: bool, total: int) -> DateRule | None:
    """The rule, if pandas agrees: 20241399 has the shape of a date but is none."""
    read = eval_formats(pd.Series(known), formats)
    share = int(read.notna().sum()) / total
    return DateRule(formats, ambiguous, share) if share >= 0.8 else None


def eval_formats(cells: pd.Series, formats: tuple[str, ...]) -> pd.Series:
    """Dates of the cells: the first format that fits each."""
    zone = any("%z" in text for text in formats)
    read = pd.to_datetime(cells, format=formats[0], errors="coerce", utc=zone)
    for text in formats[1:]:
        read = read.fillna(pd.to_datetime(cells, format=text, errors="coerce", utc=zone))
    return read


def date_expr(column: str, rule: DateRule) -> str:
    """The expression over df that makes dates of a text column."""
    cells = f"df[{column!r}]"
    if not rule.formats:
        quarters = f"{cells}.str.replace(r'[- ]', '', regex=True)"
        return f"pd.Series(pd.PeriodIndex({quarters}, freq='Q').to_timestamp(), index=df.index)"
    zone = ", utc=True" if rule.zone else ""
    reads = [f"pd.to_datetime({cells}, format={text!r}, errors='coerce'{zone})" for text in rule.formats]
    return reads[0] + "".join(f".fillna({read})" for read in reads[1:])
