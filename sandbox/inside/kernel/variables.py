"""The session's variables: what a person or a model may want to know of each, without running their code.

Only exact built-in types and those of the libraries we know are asked for more than their type: a `__repr__`
or `__len__` of a class from a cell may do anything, and may never return.
"""

import builtins
import types

import numpy
import pandas

__builtins__ = dict(vars(builtins))

VARIABLES_MAX = 100
DETAIL_MAX = 100
CLIP_FROM = 10_000  # of a name or a text of megabytes
COLUMNS_MAX = 8
_SCALARS = (int, float, complex, bool, type(None))
_SIZED = (list, tuple, dict, set, frozenset, bytes, bytearray, range)
_FUNCTIONS = (types.FunctionType, types.BuiltinFunctionType, types.MethodType)


def _clip(text: str) -> str:
    text = " ".join(text[:CLIP_FROM].split())
    return text if len(text) <= DETAIL_MAX else text[: DETAIL_MAX - 1] + "…"


def _columns(frame: pandas.DataFrame) -> str:
    names = [str(c) for c in frame.columns[:COLUMNS_MAX]]
    more = len(frame.columns) - COLUMNS_MAX
    return ", ".join(names) + (f", … {more} more" if more > 0 else "")


def _frame(value: pandas.DataFrame) -> str:
    rows, columns = value.shape
    return f"{rows} rows x {columns} columns: {_columns(value)}"


def _series(value: pandas.Series) -> str:
    return f"{len(value)} values, {value.dtype}" + (f", name {value.name!r}" if isinstance(value.name, str) else "")


def _scalar(value: object) -> str:
    if type(value) is int and value.bit_length() > 400:  # printing it could take for ever, or be refused
        return f"{value.bit_length()} bits"
    return repr(value)


def _function(value) -> str:
    if type(value) is not types.FunctionType:
        return ""
    code = value.__code__
    return "(" + ", ".join(code.co_varnames[: code.co_argcount]) + ")"


def _detail(value: object) -> str:
    kind = type(value)
    if kind in _SCALARS:
        return _scalar(value)
    if kind is str:
        return f"{len(value)} characters: {value[:60]!r}"
    if kind in _SIZED:
        return f"{len(value)} items"
    if kind in _FUNCTIONS:
        return _function(value)
    if issubclass(kind, numpy.ndarray):
        return f"shape {value.shape}, {value.dtype}"
    if issubclass(kind, numpy.generic):
        return str(value) if kind.__module__ == "numpy" else ""
    if kind is pandas.DataFrame:
        return _frame(value)
    if kind is pandas.Series:
        return _series(value)
    if issubclass(kind, pandas.Index):
        return f"{len(value)} values, {value.dtype}"
    return _shape_of_known(value, kind)


def _shape_of_known(value: object, kind: type) -> str:
    library = kind.__module__.partition(".")[0]
    if library in ("polars", "pyarrow", "scipy") and hasattr(kind, "shape"):
        return f"shape {value.shape}"
    return ""


def _entry(name: str, value: object) -> dict[str, str]:
    kind = type.__dict__["__name__"].__get__(type(value))
    try:
        detail = _clip(_detail(value))
    except Exception:
        detail = ""
    return {"name": _clip(name), "type": _clip(str(kind)), "detail": detail}


def listing(namespace: dict, hidden: dict) -> list[dict[str, str]]:
    """In the order in which they were made; the newest, if there are too many."""
    shown = []
    for name, value in list(namespace.items()):
        if not isinstance(name, str) or name.startswith("_") or type(value) is types.ModuleType:
            continue
        if name in hidden and hidden[name] is value:
            continue
        shown.append((name, value))
    return [_entry(name, value) for name, value in shown[-VARIABLES_MAX:]]
