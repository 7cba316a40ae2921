"""What kind of file it is, told from its bytes; a name is a hint and nothing more."""

from __future__ import annotations

import os
import zipfile

from .sniff_text import looks_like_text

HEAD = 4096  # bytes that signatures lie in

# (offset, signature, kind); the first that fits decides.
SIGNATURES: tuple[tuple[int, bytes, str], ...] = (
    (0, b"%PDF-", "pdf"),
    (0, b"\x89PNG\r\n\x1a\n", "image"),
    (0, b"\xff\xd8\xff", "image"),
    (0, b"GIF87a", "image"),
    (0, b"GIF89a", "image"),
    (0, b"BM", "image?"),
    (8, b"WEBP", "image"),
    (0, b"II*\x00", "image"),
    (0, b"MM\x00*", "image"),
    (0, b"PAR1", "parquet"),
    (0, b"ARROW1", "feather"),
    (0, b"FEA1", "feather"),
    (0, b"SQLite format 3\x00", "sqlite"),
    (0, b"\x93NUMPY", "array"),
    (0, b"<stata_dta>", "stata"),
    *((0, bytes((release, order, 1, 0)), "stata") for release in (113, 114, 115) for order in (1, 2)),
    (0, b"ORC", "orc"),
    (0, b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1", "ole"),
    (0, b"PK\x03\x04", "zip"),
    (0, b"PK\x05\x06", "zip"),
    (0, b"\x1f\x8b", "archive"),
    (0, b"BZh", "archive"),
    (0, b"\xfd7zXZ\x00", "archive"),
    (0, b"\x28\xb5\x2f\xfd", "archive"),
    (0, b"7z\xbc\xaf\x27\x1c", "archive"),
    (0, b"Rar!\x1a\x07", "archive"),
    (257, b"ustar", "archive"),
)
PICKLE_NAMES = (".pkl", ".pickle", ".joblib", ".p")
# A file inside that tells what a zip file really is.
ZIP_MARKS = (
    ("xl/workbook.xml", "excel"),
    ("xl/workbook.bin", "excel"),
    ("word/document.xml", "docx"),
    ("ppt/presentation.xml", "binary"),
    ("META-INF/MANIFEST.MF", "binary"),
    ("AndroidManifest.xml", "binary"),
)


def sniff_kind(path: str, name: str) -> str:
    """The kind of a file: one of the contract's, or `text` for all that is text of some sort."""
    with open(path, "rb") as file:
        head = file.read(HEAD)
    if not head:
        return "empty"
    suffix = os.path.splitext(name.lower())[1]
    for offset, mark, kind in SIGNATURES:
        if head[offset : offset + len(mark)] == mark:
            return _refine(path, kind, head, suffix)
    if _is_pickle(head, suffix):
        return "pickle"
    return "text" if looks_like_text(head) else "binary"


def _refine(path: str, kind: str, head: bytes, suffix: str) -> str:
    """The kind where a signature alone does not tell."""
    if kind == "zip":
        return _zip_kind(path, suffix)
    if kind == "ole":
        return (
            "excel" if suffix in (".xls", ".xlsx", ".xlt", ".xlsm") or b"W\0o\0r\0k\0b\0o\0o\0k" in head else "binary"
        )
    if kind == "image?":
        return "text" if looks_like_text(head) else "image"
    return kind


def _zip_kind(path: str, suffix: str) -> str:
    """Office files, notebooks of arrays and programs are zip files that nobody wants unpacked."""
    try:
        with zipfile.ZipFile(path) as archive:
            names = set(archive.namelist()[:2000])
            mime = archive.read("mimetype")[:100] if "mimetype" in names and len(names) < 1000 else b""
    except Exception:  # cut off or damaged: the name says what it was
        return {".xlsx": "excel", ".xlsm": "excel", ".xlsb": "excel", ".ods": "ods", ".docx": "docx"}.get(suffix, "archive")
    if b"opendocument.spreadsheet" in mime:
        return "ods"
    if mime.startswith(b"application/"):
        return "binary"
    for mark, kind in ZIP_MARKS:
        if mark in names:
            return kind
    return "array" if names and all(name.endswith(".npy") for name in names) else "archive"


def _is_pickle(head: bytes, suffix: str) -> bool:
    """Protocol 2 and later announce themselves; older ones are known by name only."""
    return (head[:1] == b"\x80" and head[1:2] in b"\x02\x03\x04\x05" and len(head) > 2) or suffix in PICKLE_NAMES
