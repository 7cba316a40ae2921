"""How numbers are written: 1234.5, 1,234.50, 1.234,50, 1'234, 1 234, $1,200, 12%, (300), 5 kg.

A cell alone is often ambiguous (`1.234`, `1,234`), a column seldom, a file hardly ever. So each cell
is put into the *systems* that can read it, a column keeps the systems that read all its cells, and the
file decides where a column can't.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

DOT, COMMA = ".", ","

_SIGN = r"[+\-]?"
_EXP = r"(?:[eE][+-]?\d+)?"
_INT = re.compile(rf"{_SIGN}(?:\d+|inf|Inf|infinity|Infinity)$", re.A)
_DOT = re.compile(rf"{_SIGN}(?:\d+\.?\d*|\.\d+){_EXP}$", re.A)
_COMMA = re.compile(rf"{_SIGN}(?:\d+,\d*|,\d+){_EXP}$", re.A)
_GROUPED = re.compile(rf"{_SIGN}\d{{1,3}}(?:([.,'’ \u00a0\u202f])\d{{3}})(?:\1\d{{3}})*(?:([.,])\d+)?$", re.A)
_INDIAN = re.compile(rf"{_SIGN}\d{{1,2}}(?:,\d{{2}})+,\d{{3}}(?:\.\d+)?$", re.A)

CURRENCY = r"[$€£¥₹₽₩₺元]|US\$|R\$|C\$|A\$|HK\$|USD|EUR|GBP|CNY|RMB|JPY|CHF|INR|kr\.?|zł|Rs\.?"
_DRESSED = re.compile(
    rf"\s*(?P<out>{CURRENCY})?\s*(?P<open>\()?\s*-?\s*(?P<pre>{CURRENCY})?\s*"
    r"(?P<num>[+\-]?[.,]?[0-9][0-9.,'’ \u00a0\u202f]*?)\s*"
    r"(?P<suf>%|‰|[^\W\d]{1,8}\.?|[$€£¥₹₽₩°]\w?|[^\W\d]{1,4}/[^\W\d]{1,4})?\s*(?P<close>\))?\s*$"
)
# Digits and signs of other scripts and typesetters, and what they are in a program.
FOREIGN = dict(zip("０１２３４５６７８９．，－−﹣٠١٢٣٤٥٦٧٨٩٫٬۰۱۲۳۴۵۶۷۸۹", "0123456789.,---0123456789.,0123456789", strict=True))
_BEHIND = re.compile(r"\s*(\d[\d.,]*)\s*-\s*$")  # a minus as bookkeeping programs print it
SCALES = {"k": 1e3, "千": 1e3, "万": 1e4, "萬": 1e4, "m": 1e6, "mn": 1e6, "百万": 1e6, "千万": 1e7,
          "亿": 1e8, "億": 1e8, "b": 1e9, "bn": 1e9}  # fmt: skip
_SCALE = "|".join(sorted(SCALES, key=len, reverse=True))
_SCALED = re.compile(
    rf"\s*(?P<money>{CURRENCY})?\s*(?P<num>[+\-]?[0-9][0-9.,]*)\s*(?P<scale>{_SCALE}|K|M|Mn|B|Bn|BN)?"
    rf"\s*(?P<after>{CURRENCY})?\s*$"
)
_RANGED = re.compile(r"\s*(?P<num>[+\-]?\d[\d.,]*)\s*[\[(][^\[\]()]*[\])]\s*$")


@dataclass(frozen=True)
class Style:
    """How the numbers of one column are written."""

    decimal: str  # "." or ","
    group: str = ""  # thousands separator, "" when none is used
    whole: bool = False  # nothing but digits in every cell: any reader takes them
    certain: bool = True  # False: the other decimal sign would read every cell as well
    share: float = 1.0  # of the distinct values that it reads


@dataclass(frozen=True)
class Dress:
    """What surrounds the numbers of a column kept as text."""

    style: Style
    kind: str  # percent, currency, unit, brackets, range, signs, scaled
    mark: str  # the sign or unit itself; "" for brackets alone; signs: those of FOREIGN; scaled: the scales, apart by blanks
    brackets: bool = False  # (300) means -300; signs: so does 300-


def _readings(text: str) -> dict[str, str]:
    """Decimal sign -> thousands separator, for each way in which the text is a number."""
    if _INT.match(text):
        return {DOT: "", COMMA: ""}
    found: dict[str, str] = {}
    if _DOT.match(text):
        found[DOT] = ""
    if _COMMA.match(text):
        found[COMMA] = ""
    grouped = _GROUPED.match(text)
    if grouped:
        found |= _grouped_readings(text, grouped.group(1), grouped.group(2), found)
    elif _INDIAN.match(text):
        found[DOT] = ","
    return found


def _grouped_readings(text: str, group: str, decimal: str | None, plain: dict[str, str]) -> dict[str, str]:
    """The readings of 1,234 / 1.234,5 / 1 234: a group can't start with 0, nor be its own decimal sign."""
    if group == decimal or re.match(r"[+\-]?0", text):
        return {}
    if group in (DOT, COMMA):
        other = COMMA if group == DOT else DOT
        return {other: group} if decimal in (None, other) else {}
    return {decimal: group} if decimal else {DOT: group, COMMA: group} if not plain else {}


def is_number(text: str) -> bool:
    """True when some system reads the text as a bare number."""
    return bool(_readings(text))


def sniff_style(values: Iterable[str], prefer: str = "") -> Style | None:
    """The style that reads most of the values; `prefer` decides between two that read equally many."""
    cells = [_readings(value) for value in values]
    if not cells:
        return None
    hits = {sign: sum(1 for cell in cells if sign in cell) for sign in (DOT, COMMA)}
    if not max(hits.values()):
        return None
    whole = all(cell == {DOT: "", COMMA: ""} for cell in cells)
    certain = whole or hits[DOT] != hits[COMMA]
    sign = max(hits, key=lambda s: (hits[s], s == (prefer or DOT)))
    groups = {cell[sign] for cell in cells if sign in cell} - {""}
    group = max(groups, key=lambda g: sum(1 for c in cells if c.get(sign) == g)) if groups else ""
    return Style(sign, group, whole, certain, hits[sign] / len(cells))


def sniff_dress(values: list[str], prefer: str = "") -> Dress | None:
    """What the column's numbers are dressed in, when nearly all of them are dressed alike."""
    if not values:
        return None
    if dress := _foreign(values, prefer) or _scaled(values, prefer):
        return dress
    matches = [match for match in map(_DRESSED.match, values) if match]
    if len(matches) >= 0.9 * len(values):
        return _dress(matches, prefer)
    ranged = [match for match in map(_RANGED.match, values) if match]
    if len(ranged) + sum(map(is_number, values)) >= 0.9 * len(values) and ranged:
        numbers = [match["num"] for match in ranged]
        style = sniff_style(numbers, prefer)
        return Dress(style, "range", "") if style else None
    return None


def _foreign(values: list[str], prefer: str) -> Dress | None:
    """Numbers but for the script of their signs, or with the minus behind: １２, −5, 5-."""
    used = "".join(sorted(set("".join(values)) & FOREIGN.keys()))
    plain = [_BEHIND.sub(r"-\1", value.translate(str.maketrans(FOREIGN))) for value in values]
    if plain == values:
        return None
    style = sniff_style(plain, prefer)
    return Dress(style, "signs", used, any(map(_BEHIND.match, values))) if style and style.share >= 0.95 else None


def _scaled(values: list[str], prefer: str) -> Dress | None:
    """2.5M, 300K, $1.2bn, 5万: amounts that must be multiplied. One letter behind every number is a unit, and 12B is a house."""
    matches = [match for match in map(_SCALED.match, values) if match]
    scales = {match["scale"] for match in matches} - {None}
    if not scales or len(matches) < 0.95 * len(values):
        return None
    money = any(match["money"] or match["after"] for match in matches)
    cut = any(match["scale"] and re.search(r"\d[.,]\d", match["num"]) for match in matches)
    mixed = len({scale.lower() for scale in scales}) > 1 or any(not match["scale"] for match in matches)
    if not (money or any(not scale.isascii() for scale in scales) or (cut and mixed and scales != {"m"})):
        return None
    style = sniff_style([match["num"] for match in matches], prefer)
    return Dress(style, "scaled", " ".join(sorted({scale.lower() for scale in scales}))) if style else None


def _dress(matches: list[re.Match[str]], prefer: str) -> Dress | None:
    """One currency, unit or sign for all: house numbers like 12A and 14B are not 12 and 14."""
    before = {match[part] for match in matches for part in ("out", "pre")} - {None}
    after = {match["suf"] for match in matches} - {None}
    accounting = any(match["open"] and match["close"] for match in matches)
    marks = before | after
    if len(marks) > 1 or (not marks and not accounting):
        return None
    mark = next(iter(marks), "")
    if after and sum(1 for match in matches if match["suf"]) < 0.8 * len(matches):
        return None
    style = sniff_style([match["num"].strip() for match in matches], prefer)
    if style is None or style.share < 0.95:
        return None
    kind = "percent" if mark in ("%", "‰") else "currency" if before or re.fullmatch(CURRENCY, mark) else "unit"
    return Dress(style, kind if marks else "brackets", mark, accounting)


def number_expr(column: str, style: Style, dress: Dress | None = None) -> str:
    """The expression over df that makes numbers of a text column."""
    steps = f"df[{column!r}]"
    if dress and dress.kind == "range":
        steps += r".str.extract(r'^\s*([-+]?\d[\d.,]*)', expand=False)"
    elif dress and dress.kind == "scaled":
        steps += r".str.extract(r'([-+]?\d[\d.,]*)', expand=False)"
    elif dress and dress.kind == "signs":
        steps += _in_ascii(dress)
    elif dress:
        steps += _undress(dress)
    if style.group:
        steps += (
            r".str.replace(r'\s', '', regex=True)" if style.group.isspace() else f".str.replace({style.group!r}, '')"
        )
    if style.decimal == COMMA:
        steps += ".str.replace(',', '.')"
    number = f"pd.to_numeric({steps}, errors='coerce')"
    return f"{number} * {_factor(column, dress)}" if dress and dress.kind == "scaled" else number


def _factor(column: str, dress: Dress) -> str:
    """What each number has to be multiplied with."""
    scales = {scale: SCALES[scale] for scale in sorted(dress.mark.split(), key=len, reverse=True)}
    found = f"df[{column!r}].str.extract({rf'(?i)\d\s*({"|".join(scales)})'!r}, expand=False)"
    return f"{found}.str.lower().map({scales!r}).fillna(1)"


def _in_ascii(dress: Dress) -> str:
    """Digits and signs as programs write them, the minus in front."""
    steps = f".str.translate(str.maketrans({dress.mark!r}, {dress.mark.translate(str.maketrans(FOREIGN))!r}))" if dress.mark else ""
    steps += r".str.replace(r'^\s*(.*\d)\s*-\s*$', r'-\1', regex=True)" if dress.brackets else ""
    return steps


def _undress(dress: Dress) -> str:
    """Takes off the sign or unit, then the brackets (an accountant's minus)."""
    steps = f".str.replace({dress.mark!r}, '')" if dress.mark else ""
    steps += r".str.replace(r'^\s*\((.*)\)\s*$', r'-\1', regex=True)" if dress.brackets else ""
    return steps + r".str.replace(r'\s', '', regex=True)"
