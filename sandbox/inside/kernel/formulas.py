"""Tables that a cell left in out/ and that a spreadsheet would run: cells that begin like a formula.

Data stay as they are: nothing is changed in a file that a program wrote. Whoever opens it is told, and so is the model. Bounded: the
newest files, and of each its beginning."""

import builtins
import csv
import io
import os
import re
import zipfile

from .cell import current

__builtins__ = dict(vars(builtins))

FILES_MAX = 5
TEXT_MAX = 4 << 20
SHEETS_MAX = 10
ENDINGS = (".csv", ".tsv", ".xlsx", ".xlsm")
_begins = re.compile(r"[=@\t\r]|[+-](?=[A-Za-z(@=])").match
_formula = re.compile(rb"<(?:x:)?f[ >]").findall
_scandir, _open, _reader, _zip = os.scandir, open, csv.reader, zipfile.ZipFile


def _in_text(path: str) -> int:
    with _open(path, "rb") as file:
        text = file.read(TEXT_MAX).decode("utf-8-sig", "replace")
    if not any(sign in text for sign in "=@+-\t\r"):
        return 0
    first = text.split("\n", 1)[0]
    separator = max(",;\t|", key=first.count)
    return sum(1 for row in _reader(io.StringIO(text, newline=""), delimiter=separator) for cell in row if _begins(cell))


def _in_workbook(path: str) -> int:
    found = 0
    with _zip(path) as book:
        for name in [n for n in book.namelist() if n.startswith("xl/worksheets/") and n.endswith(".xml")][:SHEETS_MAX]:
            with book.open(name) as sheet:
                found += len(_formula(sheet.read(TEXT_MAX)))
    return found


class Formulas:
    def __init__(self, data_dir: str):
        self._out = f"{data_dir}/out"
        self._seen: dict[str, tuple[int, int]] = {}

    def look(self) -> None:
        """Notes what the cell wrote since the last look."""
        for name, path in self._fresh()[:FILES_MAX]:
            try:
                found = _in_workbook(path) if name.lower().endswith((".xlsx", ".xlsm")) else _in_text(path)
            except (OSError, ValueError, csv.Error, zipfile.BadZipFile, RuntimeError, NotImplementedError):
                continue
            if found:
                current.note(f"formulas: out/{name}: {found} {'cell' if found == 1 else 'cells'} that a spreadsheet runs as formulas; the file is as your program wrote it")

    def _fresh(self) -> list[tuple[str, str]]:
        fresh = []
        try:
            with _scandir(self._out) as entries:
                for entry in entries:
                    if not entry.name.lower().endswith(ENDINGS) or not entry.is_file(follow_symlinks=False):
                        continue
                    status = entry.stat(follow_symlinks=False)
                    mark = (status.st_mtime_ns, status.st_size)
                    if self._seen.get(entry.path) != mark:
                        self._seen[entry.path] = mark
                        fresh.append((entry.name, entry.path))
        except OSError:  # no such folder: as a person may have it
            pass
        return fresh
