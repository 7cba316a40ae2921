"""Which character separates the fields of a text, and how fields are quoted.

Every candidate splits the sample; the best is the one that gives many rows of the same width whose
cells look like values (after van den Burg's "CleverCSV": pattern score times type score).
"""

from __future__ import annotations

import csv
import io
import re
import sys
from collections import Counter
from dataclasses import dataclass

from .sniff_date import is_date_like
from .sniff_number import is_number

SAMPLE_RECORDS = 200
# A prior for each candidate: colons and blanks also occur inside values.
PRIORS = {",": 1.0, ";": 1.0, "\t": 1.05, "|": 1.0, "^": 0.9, "~": 0.9, "¦": 0.9, ":": 0.4}
BLANKS, WIDE_BLANKS = r"\s+", r"\s{2,}"

_WORDS = re.compile(r"[\w .'’&()/+#@%-]{0,60}$")
_DRESSED = re.compile(r"[^\w\s,;|]{0,3}\s?[\d][\d.,' \u00a0]*\s?[^\w\s,;|]{0,2}$")
_JOINED = re.compile(r"[^\s\"'][;|\t][^\s\"']")  # another separator between two values
_PLAIN = re.compile(r"[\w ]{1,30}$")


@dataclass(frozen=True)
class Dialect:
    """How a line is cut into fields."""

    separator: str  # as pandas takes it; "" for a single column
    quote: str = '"'  # "" when quotes mean nothing
    escape: str = ""
    score: float = 0.0
    width: int = 1  # fields of most rows

    @property
    def is_pattern(self) -> bool:
        """True when the separator is a regular expression."""
        return len(self.separator) > 1


def split_records(text: str, dialect: Dialect, limit: int = SAMPLE_RECORDS) -> list[list[str]]:
    """The first records, blank lines as empty lists; never an exception."""
    if dialect.is_pattern:
        return [_split_blanks(line.strip(), dialect.separator) for line in text.splitlines()[:limit]]
    if not dialect.separator:
        dialect = Dialect("\x1f", dialect.quote, dialect.escape)
    previous = csv.field_size_limit(min(sys.maxsize, 2**31 - 1))
    try:
        return _read(text, dialect, limit)
    finally:
        csv.field_size_limit(previous)


def _split_blanks(line: str, separator: str) -> list[str]:
    """The fields of an aligned line; blanks inside double quotes are text."""
    if not line:
        return []
    if separator == BLANKS and '"' in line:
        return [word.strip('"') for word in re.findall(r'"[^"]*"|\S+', line)]
    return re.split(separator, line)


def _read(text: str, dialect: Dialect, limit: int) -> list[list[str]]:
    """The records up to the first that csv can't take."""
    reader = csv.reader(
        io.StringIO(text, newline=""),
        delimiter=dialect.separator,
        quotechar=dialect.quote or None,
        quoting=csv.QUOTE_MINIMAL if dialect.quote else csv.QUOTE_NONE,
        escapechar=dialect.escape or None,
        doublequote=not dialect.escape,
    )
    records: list[list[str]] = []
    try:
        for record in reader:
            records.append(record)
            if len(records) == limit:
                break
    except csv.Error:
        pass
    return records


def _value_score(cell: str) -> float:
    """How much a cell looks like one value: numbers and dates fully, words less, a mixture hardly."""
    cell = cell.strip()
    if not cell or is_number(cell) or _PLAIN.match(cell) or _DRESSED.match(cell) or is_date_like(cell):
        return 1.0
    if _JOINED.search(cell):
        return 0.05
    return 0.8 if _WORDS.match(cell) else 0.25


def _score(records: list[list[str]]) -> tuple[float, int]:
    """(score, width) of one way to split."""
    rows = [record for record in records if any(map(str.strip, record))]
    widths = Counter(map(len, rows))
    wide = {width: count for width, count in widths.items() if width > 1}
    if not wide:
        return 0.0, 1
    width = max(wide, key=lambda w: (wide[w] * (w - 1) / w, w))
    pattern = sum(n * (w - 1) / w for w, n in wide.items()) / len(wide) / len(rows)
    cells = [cell for row in rows[:60] for cell in row[:40]]
    return pattern * sum(map(_value_score, cells)) / len(cells), width


def _quoting(text: str, separator: str) -> tuple[str, str]:
    """(quote, escape): double quotes unless single ones clearly do their work."""
    border = re.escape(separator)
    edge = rf"(?:^|{border}){{0}}[^{{0}}\n]*{{0}}(?={border}|$)"
    double = len(re.findall(edge.replace("{0}", '"'), text, re.M))
    single = len(re.findall(edge.replace("{0}", "'"), text, re.M))
    quote = "'" if single > 3 * double and single > 1 else '"'
    backslash = text.count("\\" + quote)
    return quote, "\\" if backslash > 1 and backslash > text.count(quote * 2) else ""


def _quotings(sample: str, separator: str) -> list[tuple[str, str]]:
    """The likely quoting, and none at all where a quote is left open: 5" may be inches."""
    quote, escape = _quoting(sample[:20_000], separator)
    return [(quote, escape)] + ([("", "")] if sample.count(quote) % 2 else [])


def _whitespace(text: str) -> Dialect | None:
    """Columns aligned with blanks: as many words in every line, numbers among them (prose has neither)."""
    for pattern in (BLANKS, WIDE_BLANKS):
        records = [r for r in split_records(text, Dialect(pattern)) if r]
        widths = Counter(map(len, records[1:]))  # the header may be one shorter, as R writes it
        width, count = max(widths.items(), key=lambda item: item[1], default=(1, 0))
        if width < 2 or count < max(2, 0.9 * len(records[1:])) or len(records[0]) not in (width, width - 1):
            continue
        body = [record for record in records[1:] if len(record) == width]
        numeric = [sum(map(is_number, column)) > 0.7 * len(column) for column in zip(*body, strict=True)]
        if any(numeric):
            return Dialect(pattern, score=0.6, width=width)
    return None


def sniff_dialect(text: str, hint: str = "") -> Dialect:
    """The dialect of a sample; `hint` is the separator that the file's name suggests."""
    best = Dialect("")
    sample = text[:200_000]
    for separator, prior in PRIORS.items():
        for quote, escape in _quotings(sample, separator) if separator in sample else ():
            score, width = _score(split_records(sample, Dialect(separator, quote, escape)))
            score *= prior * (1.1 if separator == hint else 1.0)
            if score > best.score:
                best = Dialect(separator, quote, escape, score, width)
    if best.separator in ("", ":") or (best.score < 0.35 and best.separator != "\t"):
        best = _whitespace(sample) or best
    return best
