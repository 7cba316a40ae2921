"""Names of unpacked files: made readable, and unique, without ever leaving the folder.

`unpack` writes names as the archive has them. Zip files from Windows hold them in whatever code page the
machine had (GBK, Shift-JIS, cp437), and say nothing about it; one name is too short to tell, all together
usually are not.
"""

from __future__ import annotations

import os
import unicodedata

from .sniff_text import guess

# Code pages of file names, besides those of texts: DOS wrote umlauts and Cyrillic its own way.
NAME_PAGES = ("gb18030", "big5", "shift_jis", "euc_kr", "cp437", "cp866", "cp1251", "cp1252")
NAME_BYTES_MAX = 255


def _is_raw(path: str) -> bool:
    """True for a path with bytes that are not UTF-8, which arrive as lone surrogates."""
    return any("\udc80" <= char <= "\udcff" for char in path)


def _component(text: str) -> str:
    """One component that no decoding can have turned into a way out, cut to what a disk takes."""
    text = unicodedata.normalize("NFC", text).replace("/", "_").replace("\0", "_")
    if text in (".", ".."):
        return "_"
    stem, dot, suffix = text.rpartition(".")
    while len(text.encode("utf-8", "replace")) > NAME_BYTES_MAX and stem:
        stem = stem[:-1]
        text = f"{stem}{dot}{suffix}"
    return text


def _decode(raw: bytes, page: str) -> str:
    """A component as text: UTF-8 where it is that, whatever the others are in."""
    try:
        return raw.decode("utf-8")
    except UnicodeDecodeError:
        return raw.decode(page, "replace")


def readable(paths: list[str]) -> list[str]:
    """The same paths with names that can be shown, in order."""
    raw = [os.fsencode(path) for path in paths if _is_raw(path)]
    page = guess(b"\n".join(raw), NAME_PAGES).name if raw else "utf-8"
    parts = [[_component(_decode(part, page)) for part in os.fsencode(path).split(b"/")] for path in paths]
    return ["/".join(part) for part in parts]


def unique_path(path: str) -> str:
    """The path, or `name (2).ext` if something is there already."""
    stem, suffix = os.path.splitext(path)
    candidate, number = path, 2
    while os.path.lexists(candidate):
        candidate, number = f"{stem} ({number}){suffix}", number + 1
    return candidate


def rename_all(folder: str, paths: list[str]) -> list[str]:
    """Gives the files below the folder their readable names; returns these, in order."""
    named = []
    for old, new in zip(paths, readable(paths), strict=True):
        if old == new:
            named.append(new)
            continue
        target = unique_path(os.path.join(folder, new))
        os.makedirs(os.path.dirname(target), exist_ok=True)
        os.rename(os.path.join(folder, old), target)
        _prune(folder, os.path.dirname(old))
        named.append(os.path.relpath(target, folder))
    return named


def _prune(folder: str, below: str) -> None:
    """Removes folders that the renaming has emptied."""
    while below:
        try:
            os.rmdir(os.path.join(folder, below))
        except OSError:
            return
        below = os.path.dirname(below)
