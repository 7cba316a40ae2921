"""What a cell that worked probably did not mean: one value under two labels, a filter for a value that is not there.

Small models and hurried people make these, nothing fails, and a wrong answer stands in an output. A note names what
was seen; it changes nothing. One that begins with CHECK speaks of what can hardly be meant. Only what the cell's own lines say is looked at, with the tables as they are afterwards.
"""

import ast
import re
from collections.abc import Iterator

import pandas

from . import hints
from .cell import Cell

CODE_MAX = 10_000
NOTES_MAX = 3
CHECK = "check: "  # the service asks about these when an answer passes them by
LABEL_MAX = 60
ROWS_MAX = 1_000_000  # of a column that is looked through
DIFFERENT_MAX = 1000
SHOWN_MAX = 8
_WORTH = re.compile(r"==|\.isin\(|\.idx(?:max|min)\(|=\s*\w+\[|print\(.*\n[\s\S]*print\(")  # else nothing below finds anything
_METHOD = re.compile(r"<bound method ([\w.<>]+) of ")


def _short(text: str) -> str:
    return text if len(text) <= LABEL_MAX else text[: LABEL_MAX - 1] + "…"


# One value under two labels


def _split(call: ast.Call) -> tuple[str, str] | None:
    """print of one value with words around it -> (the words, the value as code with its format)"""
    words, values = [], []
    for argument in call.args:
        for part in argument.values if isinstance(argument, ast.JoinedStr) else [argument]:
            if isinstance(part, ast.Constant) and isinstance(part.value, str):
                words.append(part.value)
            else:
                values.append(ast.unparse(part if isinstance(part, ast.FormattedValue) else ast.FormattedValue(part, -1, None)))
    label = "".join(words).strip(" :=\n")
    return (label, values[0]) if label and len(values) == 1 else None


def _printed(node: ast.stmt) -> ast.Call | None:
    call = node.value if isinstance(node, ast.Expr) else None
    return call if isinstance(call, ast.Call) and isinstance(call.func, ast.Name) and call.func.id == "print" else None


def _labels(body: list[ast.stmt]) -> Iterator[str]:
    """Of lines in a row, with nothing between them that could change the value."""
    seen: dict[str, str] = {}
    for node in body:
        call = _printed(node)
        if call is None:
            seen.clear()
            continue
        label, value = _split(call) or ("", "")
        if value and seen.setdefault(value, label) != label:
            yield f"{CHECK}{_short(seen[value])!r} and {_short(label)!r} print the same variable. If they are two things, compute each from its own rows."


# Filters


def _column(node: ast.AST, namespace: dict) -> tuple[str, pandas.Series] | None:
    """`df['a']` or `df.a` of a table that is there -> how it was written, the column"""
    if isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Constant):
        owner, name = node.value, node.slice.value
    elif isinstance(node, ast.Attribute):
        owner, name = node.value, node.attr
    else:
        return None
    table = namespace.get(owner.id) if isinstance(owner, ast.Name) else None
    if type(table) is not pandas.DataFrame or not isinstance(name, str) or list(table.columns).count(name) != 1:
        return None
    return ast.unparse(node), table[name]


def _compared(node: ast.AST) -> tuple[ast.AST, list[object]] | None:
    """`x == value` or `x.isin([value, ...])` -> x, the texts and numbers"""
    if isinstance(node, ast.Compare) and len(node.ops) == 1 and isinstance(node.ops[0], ast.Eq):
        column, wanted = node.left, [node.comparators[0]]
    elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "isin" and len(node.args) == 1:
        column, wanted = node.func.value, getattr(node.args[0], "elts", [])
    else:
        return None
    return column, [w.value for w in wanted if isinstance(w, ast.Constant) and type(w.value) in (str, int, float)]


def _listed(text: str, column: pandas.Series) -> str | None:
    """What a column of texts has, when that text is not among it."""
    values = column.unique() if not isinstance(column.dtype, pandas.CategoricalDtype) and pandas.api.types.is_string_dtype(column.dtype) else []
    if not 0 < len(values) <= DIFFERENT_MAX or text in values:
        return None
    there = [str(v) for v in values]
    found = hints.near(text, there) or there[:SHOWN_MAX]
    return ", ".join(repr(_short(v)) for v in found) + (", …" if len(there) > len(found) else "")


def _spanned(number: float, column: pandas.Series) -> str | None:
    """From where to where a column of numbers goes, when that number is not in it."""
    kinds = pandas.api.types
    if not kinds.is_numeric_dtype(column.dtype) or kinds.is_bool_dtype(column.dtype) or (column == number).any():
        return None
    return f"numbers from {column.min()} to {column.max()}"


def _absent(tree: ast.Module, namespace: dict) -> Iterator[str]:
    """A value that is looked for and occurs nowhere in the column: misspelt, or the data do not hold it."""
    for node in ast.walk(tree):
        compared = _compared(node)
        found = _column(compared[0], namespace) if compared else None
        if found is None or not 0 < found[1].count() <= len(found[1]) <= ROWS_MAX:
            continue
        written, column = found[0], found[1].dropna()
        for value in compared[1]:
            there = _listed(value, column) if isinstance(value, str) else _spanned(value, column)
            if there is not None:
                yield f"{written} has no value {_short(repr(value))}; it has {there}."


def _filtered(node: ast.stmt) -> tuple[str, str] | None:
    """`part = whole[condition]` -> the two names"""
    if not isinstance(node, ast.Assign) or not isinstance(node.targets[0], ast.Name) or not isinstance(node.value, ast.Subscript):
        return None
    part, whole, condition = node.targets[0], node.value.value, node.value.slice
    plain = isinstance(whole, ast.Name) and whole.id != part.id and isinstance(condition, (ast.Compare, ast.BinOp, ast.UnaryOp))
    return (part.id, whole.id) if plain else None


def _filters(body: list[ast.stmt], namespace: dict) -> Iterator[str]:
    for node in body:
        names = _filtered(node)
        part, whole = (namespace.get(n) for n in names) if names else (None, None)
        if not type(part) is type(whole) is pandas.DataFrame or not len(whole):
            continue
        if len(part) == len(whole) > 1:
            yield f"{CHECK}`{names[0]}` has all {len(whole)} rows of `{names[1]}`: that filter takes nothing out. Is that what was meant?"
        elif not len(part):
            yield f"`{names[0]}` has no rows: nothing in `{names[1]}` passes that filter."


# Labels of rows


def _is_label(node: ast.AST) -> bool:
    return isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in ("idxmax", "idxmin")


def _shown(node: ast.stmt) -> Iterator[ast.AST]:
    call = _printed(node)
    for argument in call.args if call else []:
        for part in argument.values if isinstance(argument, ast.JoinedStr) else [argument]:
            yield part.value if isinstance(part, ast.FormattedValue) else part


def _positions(body: list[ast.stmt], namespace: dict) -> Iterator[str]:
    """`year = df['x'].idxmax()`, printed as if it were a year, of a table whose rows are only numbered"""
    names: dict[str, ast.Call] = {}
    for node in body:
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name) and _is_label(node.value):
            names[node.targets[0].id] = node.value
        for part in _shown(node):
            label = names.get(part.id) if isinstance(part, ast.Name) else part if _is_label(part) else None
            found = _column(label.func.value, namespace) if label else None
            if found and isinstance(found[1].index, pandas.RangeIndex):
                code, table = ast.unparse(label), re.match(r"\w+", found[0])[0]
                yield f"{CHECK}`{code}` is the number of a row, not a value: `{table}.loc[{code}]` shows that row."


def _in_code(cell: Cell, namespace: dict) -> Iterator[str]:
    if len(cell.code) > CODE_MAX or not _WORTH.search(cell.code):
        return
    try:
        tree = ast.parse(cell.code)
    except (SyntaxError, ValueError, RecursionError, MemoryError):  # magics, or what only IPython reads
        return
    yield from _absent(tree, namespace)
    yield from _filters(tree.body, namespace)
    yield from _positions(tree.body, namespace)
    yield from _labels(tree.body)


# Results


def _methods(cell: Cell) -> Iterator[str]:
    text = (cell.result or {}).get("text/plain", "")
    found = _METHOD.match(text) if isinstance(text, str) else None
    if found:
        yield f"{CHECK}that is the method itself, not its result: call it, `.{found[1].rpartition('.')[2]}()`."


def look(cell: Cell, namespace: dict) -> None:
    """Adds its notes to a cell that ended well."""
    for note in list(dict.fromkeys([*_methods(cell), *_in_code(cell, namespace)]))[:NOTES_MAX]:
        cell.note(note)
