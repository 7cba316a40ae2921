"""What columns are called, and what else they could be called.

A file without a header gets names from what its columns hold: `name`, `sex`, `year`, `number`. Columns
with a name that says little get the same words as aliases, so that "by sex" finds column 2.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable

from .sniff_date import sniff_dates
from .sniff_head import MISSING
from .sniff_number import is_number, sniff_dress

_MONTHS = (
    "january", "february", "march", "april", "may", "june", "july", "august", "september", "october", "november",
    "december",
)  # fmt: skip
_DAYS = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")
_SEXES = ("m", "f", "male", "female", "man", "woman", "w", "男", "女", "男性", "女性")
_FLAGS = ("yes", "no", "y", "n", "true", "false", "0", "1", "是", "否")
# Content -> (values that a column of this kind holds, words for it).
VOCABULARY: dict[str, tuple[frozenset[str], tuple[str, ...]]] = {
    "sex": (frozenset(_SEXES), ("sex", "gender", "性别")),
    "month": (frozenset((*_MONTHS, *(name[:3] for name in _MONTHS))), ("month", "月份")),
    "weekday": (frozenset(name[:n] for name in _DAYS for n in (3, 4, 5, 9)), ("weekday", "day", "星期")),
    "flag": (frozenset(_FLAGS), ()),
}
_EMAIL = re.compile(r"[^@\s]+@[^@\s]+\.\w+$")
_NAME = re.compile(r"[^\W\d_]+(?:[ '’.-]+[^\W\d_]+){0,3}$")
_CODE = re.compile(r"[A-Z0-9][A-Z0-9_-]{0,11}$")


def content_kind(values: Iterable[str]) -> str:
    """One word for what the values are: date, year, sex, number, email, code, name, text."""
    cells = [value.strip() for value in values if value.strip().lower() not in MISSING]
    if not cells:
        return "empty"
    lowered = {cell.lower() for cell in cells}
    for kind, (words, _) in VOCABULARY.items():
        if lowered <= words and (len(lowered) > 1 or (len(cells) == 1 and kind != "flag")):
            return kind
    if all(re.fullmatch(r"(1[5-9]|20)\d\d", cell) for cell in cells):
        return "year"
    if all(map(is_number, cells)):
        return "number"
    return _text_kind(cells)


def _text_kind(cells: list[str]) -> str:
    if sniff_dates(list(dict.fromkeys(cells))):
        return "date"
    if sniff_dress(cells):
        return "number"
    for kind, pattern in (("email", _EMAIL), ("code", _CODE), ("name", _NAME)):
        if sum(1 for cell in cells if pattern.match(cell)) >= 0.95 * len(cells):
            return kind
    return "text"


def invented_names(columns: list[list[str]]) -> list[str]:
    """Names for columns without any, from their values; equal ones are numbered: number, number2."""
    seen: Counter[str] = Counter()
    names: list[str] = []
    for column in columns:
        kind = content_kind(column)
        seen[kind] += 1
        names.append(kind if seen[kind] == 1 else f"{kind}{seen[kind]}")
    return names


def aliases(name: str, values: Iterable[str]) -> list[str]:
    """Further words for a column, where its few values give them away."""
    kind = content_kind(values)
    words = VOCABULARY.get(kind, (frozenset(), ()))[1]
    return [word for word in words if word.lower() != name.lower()]
