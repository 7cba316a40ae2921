"""An exception, as people and models can use it.

The traceback is Python's own format, with the frames of the cells and the last frame of a library: what
lies between says nothing to somebody who wants to repair a cell. Hints (near names, what is installed) are
added below. Exceptions are a person's objects: their `__str__` may raise, lie or never end, so every step
has a plainer one to fall back on.
"""

import builtins
import os
import re
from collections.abc import Iterator
from traceback import TracebackException

from IPython.core.error import UsageError

from . import hints
from .cell import Cell

__builtins__ = dict(vars(builtins))

NAME_MAX = 200
VALUE_MAX = 2000
TRACEBACK_MAX = 2000
CHAIN_MAX = 5  # causes and contexts
FRAMES_MAX = 100_000
_ANSI = re.compile(r"\x1b\[[0-9;?]*[ -/]*[@-~]|\x1b[@-Z\\-_]")
_CELL = re.compile(r"<cell (\d+)>$")
_MAGIC_BODY = ("<timed exec>", "<timed eval>")
_OWN_FOLDER = os.path.dirname(__file__) + os.sep
_WITHOUT_A_LINE = (KeyboardInterrupt, SyntaxError, UsageError, SystemExit)
DAMAGED = "the interpreter itself failed: a cell has changed something that it needs; a reset gives a new one"
OMITTED = "\n  … {} characters left out …\n"


def clip(text: str, limit: int) -> str:
    """Head and tail, `limit` characters in all."""
    if len(text) <= limit:
        return text
    marker = OMITTED.format(len(text) - limit)
    keep = limit - len(marker)
    return text[: keep // 3] + marker + text[-(keep - keep // 3) :]


def name_of(error: BaseException) -> str:
    return clip(str(type.__dict__["__name__"].__get__(type(error))), NAME_MAX)


def value_of(error: BaseException) -> str:
    try:
        text = str(error.msg) if type(error) in (SyntaxError, IndentationError, TabError) else str(error)
    except BaseException as inner:
        if isinstance(inner, KeyboardInterrupt):
            raise
        return f"<its str() raised {name_of(inner)}>"
    return _ANSI.sub("", text[: VALUE_MAX * 4])


def _frames(error: BaseException) -> Iterator[tuple[object, int]]:
    trace, count = error.__traceback__, 0
    while trace is not None and count < FRAMES_MAX:
        yield trace.tb_frame, trace.tb_lineno
        trace, count = trace.tb_next, count + 1


def _skipped_lines(code: str) -> int:
    """Lines of a cell before the body of its cell magic."""
    lines = code.splitlines()
    first = next((i for i, line in enumerate(lines) if line.strip()), 0)
    return first + 1 if lines and lines[first].startswith("%%") else 0


def line_of(error: BaseException, cell: Cell) -> int | None:
    """Where in this cell: the deepest frame that is its code, or where its syntax breaks."""
    found = None
    for frame, line in _frames(error):
        name = frame.f_code.co_filename
        if name == cell.name:
            found = line
        elif name in _MAGIC_BODY:
            found = line + _skipped_lines(cell.code)
    if found is None and isinstance(error, SyntaxError) and error.filename in (cell.name, None):
        found = error.lineno
    return found if isinstance(found, int) else None


def _is_own(frame) -> bool:
    return _CELL.match(frame.filename) is not None or frame.filename in _MAGIC_BODY


def _trim(report: TracebackException, depth: int = 0) -> None:
    """Frames of the cells, and where in the library it ended."""
    own = [f for f in report.stack if _is_own(f)]
    last = report.stack[-1] if report.stack else None
    if last is not None and not _is_own(last) and not _is_machinery(last):
        own.append(last)
    report.stack[:] = own
    if depth >= CHAIN_MAX or _says_the_same(report.__cause__, report):
        report.__cause__ = None
    if depth >= CHAIN_MAX or _says_the_same(report.__context__, report):
        report.__context__ = None
    for other in (report.__cause__, report.__context__, *(report.exceptions or ())):
        if other is not None:
            _trim(other, depth + 1)


def _is_machinery(frame) -> bool:
    return frame.filename.startswith(_OWN_FOLDER) or "/IPython/" in frame.filename


def _says_the_same(inner: TracebackException | None, outer: TracebackException) -> bool:
    """A library that caught its own exception and raised it again in other words."""
    if inner is None or any(_is_own(f) for f in inner.stack):
        return False
    return str(inner) in str(outer)


def _shorten_paths(text: str) -> str:
    return re.sub(r'File "[^"\n]*/(?:dist|site)-packages/', 'File ".../', text)


def _format(error: BaseException) -> str:
    report = TracebackException(type(error), error, error.__traceback__, compact=True)
    _trim(report)
    return _ANSI.sub("", _shorten_paths("".join(report.format()))).rstrip()


def traceback_of(error: BaseException, name: str, value: str) -> str:
    try:
        return _format(error)
    except KeyboardInterrupt:
        raise
    except BaseException:
        return f"{name}: {value}" if value else name


def describe(error: BaseException, cell: Cell, namespace: dict) -> dict:
    """-> the claim's `error`; hints go to the cell's notes as well."""
    name, value = name_of(error), value_of(error)
    text = clip(traceback_of(error, name, value), TRACEBACK_MAX)
    line = line_of(error, cell)
    for hint in hints.for_error(error, value, text, cell, line, namespace):
        text += f"\n{clip(hint, VALUE_MAX)}"
        cell.note(hint)
    if line is None and not isinstance(error, _WITHOUT_A_LINE):
        cell.note(DAMAGED)
    return {"name": name, "value": clip(value, VALUE_MAX), "traceback": text, "line": line}


def undescribed(error: BaseException) -> dict:
    """When describing it was cut short, or is impossible."""
    name = name_of(error)
    return {"name": name, "value": "", "traceback": name, "line": None}
