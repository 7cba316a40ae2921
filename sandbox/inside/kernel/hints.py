"""What was probably meant: near names for columns, files, variables and modules.

Models and people misspell in the same ways (case, blanks, another extension), and one line with the right
name saves a round of guessing. Hints only ever look: at names and labels, never at values.
"""

import difflib
import os
import re
import unicodedata
from collections.abc import Iterable, Iterator

import pandas

from . import hints_usage, packages
from .cell import Cell

NAMES_MAX = 30
LABELS_MAX = 1000
CODE_MAX = 20_000
FILES_MAX = 1000
DEPTH_MAX = 3
_OURS = (".", "figure-")  # hidden files, and the pictures that were delivered
USUAL = {
    "np": "import numpy as np",
    "pd": "import pandas as pd",
    "plt": "import matplotlib.pyplot as plt",
    "sns": "import seaborn as sns",
    "px": "import plotly.express as px",
    "go": "import plotly.graph_objects as go",
    "sm": "import statsmodels.api as sm",
    "pl": "import polars as pl",
    "sp": "import sympy as sp",
    "nx": "import networkx as nx",
    "stats": "from scipy import stats",
}


def _fold(name: object) -> str:
    """Case, blanks, underscores and ways to compose an accent don't count."""
    return re.sub(r"[\s_\-]+", "", unicodedata.normalize("NFKC", str(name))).casefold()


def near(name: object, names: Iterable[object], count: int = 3) -> list:
    """The nearest first; equal but for case and blanks beats everything."""
    folded: dict[str, list] = {}
    for candidate in names:
        folded.setdefault(_fold(candidate), []).append(candidate)
    wanted = _fold(name)
    keys = [wanted] if wanted in folded else []
    keys += [k for k in difflib.get_close_matches(wanted, folded, count, 0.6) if k not in keys]
    keys += [k for k in folded if len(wanted) > 2 and k not in keys and (wanted in k or (len(k) > 2 and k in wanted))]
    return [candidate for key in keys[:count] for candidate in folded[key]][:count]


def _listed(names: Iterable[object]) -> str:
    names = list(names)
    text = ", ".join(repr(n) for n in names[:NAMES_MAX])
    return text + (f", … {len(names) - NAMES_MAX} more" if len(names) > NAMES_MAX else "")


def _did_you_mean(found: list) -> str:
    return f"Did you mean: {', '.join(repr(n) for n in found)}?"


# Columns


def _asked(error: BaseException) -> pandas.DataFrame | pandas.Series | None:
    """What was asked, if pandas itself raised: it is `self` in one of its frames, the deepest."""
    trace, found, depth = error.__traceback__, None, 0
    while trace is not None and depth < 1000:
        owner = trace.tb_frame.f_locals.get("self")
        if issubclass(type(owner), (pandas.DataFrame, pandas.Series)):
            found = owner
        trace, depth = trace.tb_next, depth + 1
    return found


def _raised_in_pandas(error: BaseException) -> bool:
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    return trace is not None and "/pandas/" in trace.tb_frame.f_code.co_filename


def _tables(error: BaseException, namespace: dict) -> dict[str, pandas.DataFrame]:
    named = {k: v for k, v in list(namespace.items()) if issubclass(type(v), pandas.DataFrame) and k[:1] != "_"}
    asked = _asked(error)
    if asked is None:
        return named
    name = next((k for k, v in named.items() if v is asked), "the table")
    return {name: asked}


def _missing_columns(error: KeyError, value: str) -> list:
    key = error.args[0] if error.args else value
    quoted = re.findall(r"'([^']+)'", key) if isinstance(key, str) and "not in index" in key else []
    if not quoted and isinstance(key, str) and "are in the [" in key:
        quoted = re.findall(r"'([^']+)'", key)
    return quoted or [key]


def _columns(names: list, tables: dict[str, pandas.DataFrame]) -> Iterator[str]:
    for table, frame in list(tables.items())[:3]:
        columns = list(frame.columns)
        found = [c for n in names for c in near(n, columns)]
        if found:
            yield _did_you_mean(found[:6])
        yield f"Columns of {table}: {_listed(columns)}"


def _labels(name: object, series: pandas.Series) -> Iterator[str]:
    labels = list(series.index[:LABELS_MAX])
    found = near(name, labels)
    if found:
        yield _did_you_mean(found)
    yield f"Labels of that Series: {_listed(labels)}"


def _key(error: KeyError, value: str, namespace: dict) -> Iterator[str]:
    asked = _asked(error)
    if issubclass(type(asked), pandas.Series):
        yield from _labels(error.args[0] if error.args else value, asked)
        return
    tables = _tables(error, namespace) if _raised_in_pandas(error) else {}
    if tables:
        yield from _columns(_missing_columns(error, value), tables)


def _attribute(error: AttributeError, text: str, namespace: dict) -> Iterator[str]:
    owner, name = getattr(error, "obj", None), getattr(error, "name", None)
    if issubclass(type(owner), pandas.DataFrame) and isinstance(name, str):
        found = near(name, owner.columns)
        if found and "Did you mean" not in text:
            yield _did_you_mean(found)
        yield f"Columns: {_listed(owner.columns)}"


# Files


def files_below(folder: str) -> list[str]:
    found: list[str] = []
    for path, folders, names in os.walk(folder):
        depth = os.path.relpath(path, folder).count(os.sep)
        folders[:] = sorted(f for f in folders if not f.startswith(".")) if depth < DEPTH_MAX else []
        found += [os.path.relpath(os.path.join(path, n), folder) for n in sorted(names) if not n.startswith(_OURS)]
        if len(found) >= FILES_MAX:
            break
    return found[:FILES_MAX]


def _file(error: FileNotFoundError, cell: Cell) -> Iterator[str]:
    if not isinstance(error.filename, (str, bytes)):
        return
    wanted = os.path.basename(os.fsdecode(error.filename))
    files = files_below(cell.data_dir)
    if not files:
        yield "There are no files here yet."
        return
    by_name: dict[str, list[str]] = {}
    for path in files:
        by_name.setdefault(os.path.basename(path), []).append(path)
    stems = [n for n in by_name if _fold(os.path.splitext(n)[0]) == _fold(os.path.splitext(wanted)[0])]
    names = list(dict.fromkeys([n for n in by_name if _fold(n) == _fold(wanted)] + stems + near(wanted, by_name)))
    found = [path for name in names for path in by_name[name]][:3]
    yield _did_you_mean(found) if found else f"Files here: {_listed(files)}"


# Variables and modules


def _name(error: NameError, text: str, namespace: dict) -> Iterator[str]:
    name = getattr(error, "name", None)
    if not isinstance(name, str):
        return
    if name in USUAL:
        yield f"Did you forget `{USUAL[name]}`?"
    elif "Did you mean" not in text and "Did you forget" not in text:
        own = [k for k in namespace if isinstance(k, str) and k[:1] != "_"]
        found = near(name, own)
        if found:
            yield _did_you_mean(found)


def _module(error: ModuleNotFoundError, namespace: dict) -> Iterator[str]:
    if isinstance(error.name, str) and not packages.is_standard(error.name):
        yield packages.missing_module(error.name)


_CLOSERS = {"(": ")", "[": "]", "{": "}"}


def _open_brackets(line: str) -> str:
    """What would close them, in order. Brackets in strings are counted too: whether it helps, a compiler says."""
    waiting: list[str] = []
    for c in line:
        if c in _CLOSERS:
            waiting.append(_CLOSERS[c])
        elif waiting and c == waiting[-1]:
            waiting.pop()
    return "".join(reversed(waiting))


def _closed(error: SyntaxError, cell: Cell) -> Iterator[str]:
    """Brackets that are missing at the end of their line"""
    lines = cell.code.splitlines()
    if not isinstance(error.lineno, int) or not 0 < error.lineno <= len(lines) or len(cell.code) > CODE_MAX:
        return
    line = lines[error.lineno - 1]
    mended = line.rstrip() + _open_brackets(line)
    try:
        compile("\n".join([*lines[: error.lineno - 1], mended, *lines[error.lineno :]]), cell.name, "exec", dont_inherit=True)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return
    yield f"Line {error.lineno} lacks {_open_brackets(line)!r} at its end: {mended.strip()}"


def _syntax(error: SyntaxError, cell: Cell) -> Iterator[str]:
    if error.filename == cell.name and error.text and error.text.lstrip()[:3] in ("```", "~~~"):
        yield "A cell holds Python only: leave out the fence."
    elif error.filename == cell.name and "was never closed" in str(error.msg):
        yield from _closed(error, cell)


def _all(error: BaseException, value: str, text: str, cell: Cell, namespace: dict) -> Iterator[str]:
    if isinstance(error, KeyError):
        yield from _key(error, value, namespace)
    elif isinstance(error, AttributeError):
        yield from _attribute(error, text, namespace)
    elif isinstance(error, FileNotFoundError):
        yield from _file(error, cell)
    elif isinstance(error, NameError):
        yield from _name(error, text, namespace)
    elif isinstance(error, ModuleNotFoundError):
        yield from _module(error, namespace)
    elif isinstance(error, SyntaxError):
        yield from _syntax(error, cell)


def _failed_line(cell: Cell, number: int | None) -> str:
    lines = cell.code.splitlines()
    return lines[number - 1] if number is not None and 0 < number <= len(lines) else ""


def for_error(error: BaseException, value: str, text: str, cell: Cell, line: int | None, namespace: dict) -> list[str]:
    """`line`: of the cell, where it failed."""
    try:
        usage = hints_usage.for_error(error, value, _failed_line(cell, line), namespace)
        return [*_all(error, value, text, cell, namespace), *usage]
    except Exception:
        return []  # a hint is a kindness; the error itself must get through
