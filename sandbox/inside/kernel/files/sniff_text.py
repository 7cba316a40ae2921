"""Which encoding a file of text is in.

Only a byte-order mark or valid UTF-8 is proof. All else is a guess, and the profile says so; the
guess is made by reading the bytes in every candidate and asking which reading looks like writing.
"""

from __future__ import annotations

import codecs
import re
from dataclasses import dataclass

from .sniff_common import BY_PAGE

BOMS = (
    (codecs.BOM_UTF8, "utf-8-sig"),
    (codecs.BOM_UTF32_LE, "utf-32"),
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)

# Letters that each 8-bit code page is used for; the rest of the page is hardly ever written.
LETTERS = {
    "cp1252": "äöüßÄÖÜéèêëàâçîïôùûœñáíóúãõåæøÅÆØÉÀÈÇÑÓÁÍÚÂÊÔÎÃÕìò¿¡ºª",
    "cp1250": "ąćęłńóśźżĄĆĘŁŃÓŚŹŻáčďéěíňřšťúůýžÁČĎÉĚÍŇŘŠŤÚŮÝŽőűŐŰäöüÄÖÜß",
    "cp1254": "çğıöşüÇĞİÖŞÜ",
    "cp1251": "".join(map(chr, range(0x410, 0x450))) + "ёЁіїєґІЇЄҐ№",
    "cp1253": "".join(map(chr, range(0x391, 0x3CF))),
    # Of file names in archives only: what DOS wrote.
    "cp437": "äöüßÄÖÜéèêëàâçîïôùûñÑáíóúåÅæÆÉ",
    "cp866": "".join(map(chr, range(0x410, 0x450))) + "ёЁ",
}
TEXT_PAGES = ("gb18030", "big5", "shift_jis", "euc_kr", "euc_jp", "cp1252", "cp1250", "cp1254", "cp1251", "cp1253")
# Codec, and the lead bytes of the characters that a double-byte page lists first.
LEVELS = {
    "gb18030": ("gb2312", 0xB0, 0xD7),
    "big5": ("big5", 0xA4, 0xC6),
    "euc_kr": ("euc_kr", 0xB0, 0xC8),
    "shift_jis": ("shift_jis", 0x88, 0x97),
    "euc_jp": ("euc_jp", 0xB0, 0xCF),
}
SYMBOLS = "°€£¥¢§µ²³½¼×±–—‘’“”„…«»·•™®©\xa0"
# The strict codec refuses what Windows added to it: the same page with the additions.
WIDER = {"big5": "big5hkscs", "shift_jis": "cp932", "euc_kr": "cp949", "cp1252": "latin-1"}
_HIGH = re.compile(rb"[\x80-\xff]")


@dataclass(frozen=True)
class Encoding:
    """How to read the text, under the name that pandas knows."""

    name: str
    guessed: bool = False
    lossy: bool = False  # some bytes mean nothing in it; read with encoding_errors='replace'

    def decode(self, data: bytes) -> str:
        """The text, never an exception: a sample may end in the middle of a character."""
        return data.decode(self.name, "replace")


def sniff_bom(data: bytes) -> Encoding | None:
    """The encoding that the first bytes announce."""
    for mark, name in BOMS:
        if data.startswith(mark):
            return Encoding(name)
    return None


def _without_bom(data: bytes) -> Encoding | None:
    """UTF-16 without a mark shows in zero bytes at every second place."""
    even, odd = data[0:4096:2], data[1:4096:2]
    if len(odd) < 2:
        return None
    if odd.count(0) > 0.4 * len(odd) and even.count(0) < 0.05 * len(even):
        return Encoding("utf-16-le", guessed=True)
    if even.count(0) > 0.4 * len(even) and odd.count(0) < 0.05 * len(odd):
        return Encoding("utf-16-be", guessed=True)
    return None


def _common(char: str, page: str) -> float:
    """How likely a writer of the double-byte page is to use this character, 0 to 1."""
    code = ord(char)
    if 0x3040 <= code <= 0x30FF:
        return 1.0 if page in ("shift_jis", "euc_jp") else 0.3
    if char in BY_PAGE[page]:
        return 1.0
    if char in SYMBOLS or 0x3000 <= code <= 0x303F or 0xFF01 <= code <= 0xFF5E:
        return 0.7
    if 0xAC00 <= code <= 0xD7A3 or 0x4E00 <= code <= 0x9FFF:
        return _first_level(char, page)
    if char.isalpha() and code < 0x250:
        return 0.4
    return 0.0 if 0xFF61 <= code <= 0xFF9F or 0xE000 <= code <= 0xF8FF else 0.2  # half-width kana, private use


def _first_level(char: str, page: str) -> float:
    """Every page lists its everyday characters first: those ranges, by lead byte."""
    codec, low, high = LEVELS[page]
    code = char.encode(codec, "replace")
    return 0.45 if len(code) == 2 and low <= code[0] <= high else 0.1


def _wide(text: str, page: str) -> float:
    """Mean over the characters; one inside an ASCII word (`S邦d`) is a sign of a wrong reading."""
    marks = []
    for at, char in enumerate(text):
        if ord(char) >= 0x80:
            before, after = text[at - 1 : at], text[at + 1 : at + 2]
            inside = (
                "\u3400" <= char <= "\ud7a3"
                and before.isascii()
                and before.isalpha()
                and after.isascii()
                and after.isalpha()
            )
            marks.append(0.05 if inside else _common(char, page))
    return sum(marks) / len(marks) if marks else 0.0


def _latin(text: str, page: str) -> float:
    """Share of the non-ASCII characters that are letters of the page beside letters, or symbols."""
    letters, good, total = LETTERS[page], 0.0, 0
    whole_words = page in ("cp1251", "cp1253", "cp866")  # these scripts don't mix with ASCII letters inside a word
    for at, char in enumerate(text):
        if ord(char) < 0x80:
            continue
        total += 1
        before, after = text[at - 1 : at] or " ", text[at + 1 : at + 2] or " "
        if char in letters:
            good += _beside(before, after, whole_words)
        elif char in SYMBOLS and not (before.isalpha() and after.isalpha()):
            good += 0.8
    return good / total if total else 0.0


def _beside(before: str, after: str, whole_words: bool) -> float:
    """How well a letter suits its neighbours: umlauts stand among ASCII letters, Cyrillic ones never do."""
    letters = [near for near in (before, after) if near.isalpha()]
    ascii_letters = [near for near in letters if near.isascii()]
    if not letters:
        return 0.3
    if whole_words:
        return 0.1 if ascii_letters else 1.0
    return 1.0 if len(ascii_letters) == len(letters) else 0.5


def _score(data: bytes, page: str) -> tuple[float, str]:
    """How much the bytes look like writing in the page, and the codec that reads all of them."""
    for codec in (page, WIDER.get(page)):
        if codec is None:
            break
        try:
            text = data.decode(codec)
        except UnicodeDecodeError:
            continue
        if page in LETTERS:
            return _latin(text, page), codec
        return _wide(text, page), codec
    return -1.0, page


def guess(data: bytes, pages: tuple[str, ...] = TEXT_PAGES) -> Encoding:
    """The most likely encoding of bytes that are not UTF-8: only the lines that have high bytes count.

    Of equally good readings the first in `pages` is taken."""
    lines = [line for line in re.split(rb"[\r\n]+", data) if _HIGH.search(line)]
    telling = b"\n".join(line[:2000] for line in lines[:400])
    scored = [_score(telling, page) for page in pages]
    best = max(scored, key=lambda entry: entry[0])
    if best[0] < 0.25:
        return Encoding("cp1252" if _score(telling, "cp1252")[1] == "cp1252" else "latin-1", True)
    return Encoding(best[1], guessed=True)


def _mostly_utf8(data: bytes) -> bool:
    """A few broken bytes in text that is UTF-8 elsewhere: a cut or a pasted piece, no other page."""
    text = data.decode("utf-8", "replace")
    broken = text.count("\ufffd")
    sound = sum(1 for char in text if ord(char) >= 0x80) - broken
    return sound > 0 and broken <= 0.02 * sound


def is_utf8(data: bytes, cut: bool = False) -> bool:
    """True when it is valid UTF-8; with `cut`, the end may lie inside a character."""
    try:
        codecs.getincrementaldecoder("utf-8")().decode(data, final=not cut)
    except UnicodeDecodeError:
        return False
    return True


def sniff_encoding(data: bytes, cut: bool = False) -> Encoding:
    """The encoding of a text of which `data` is the beginning (`cut`) or the whole."""
    known = sniff_bom(data) or _without_bom(data)
    if known:
        return known
    if is_utf8(data, cut):
        return Encoding("utf-8")
    if _mostly_utf8(data):
        return Encoding("utf-8", guessed=True, lossy=True)
    return guess(data)


def looks_like_text(data: bytes) -> bool:
    """False for bytes that no writer makes: control characters other than blanks and escapes."""
    if sniff_bom(data) or _without_bom(data):
        return True
    if not data:
        return True
    controls = sum(data.count(bytes([code])) for code in range(32) if code not in (9, 10, 12, 13, 27))
    return controls <= 0.002 * len(data)
