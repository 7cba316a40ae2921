"""Why something is not in a checkpoint: one sentence for people, with the name that they gave it."""

import re
import types
from collections import deque
from traceback import walk_tb

from .checkpoint_clock import OutOfTime
from .checkpoint_file import TooLarge
from .checkpoint_refuse import Refused, name_of, what_is

NAME_MAX = 200
WHY_MAX = 300
NOTE_MAX = 2000
_LOOKED_AT_MAX = 5_000
_DEPTH_MAX = 6
_CELL = re.compile(r"<cell (\d+)>$")
_CANNOT = re.compile(r"cannot pickle '.+' object|no default __reduce__")  # says no more than we do


def type_of(value: object) -> str:
    return str(type.__dict__["__name__"].__get__(type(value)))


def is_a(value: object, *kinds: type) -> bool:
    """By what it is, not by what it says: a `__class__` of a person's may raise, or never return."""
    return issubclass(type(value), kinds)


def size(count: float) -> str:
    for unit in ("bytes", "kB", "MB"):
        if count < 1000:
            return f"{count:.0f} {unit}" if unit == "bytes" or count >= 10 else f"{count:.1f} {unit}"
        count /= 1000
    return f"{count:.1f} GB"


def entry(name: str, type_name: str, why: str) -> dict[str, str]:
    return {"name": clip(name, NAME_MAX), "type": clip(type_name, NAME_MAX), "why": clip(why, WHY_MAX)}


def clip(text: str, most: int) -> str:
    """In one line."""
    text = " ".join(text[: 4 * most].split())
    return text if len(text) <= most else text[: most - 1] + "…"


def why(name: str, value: object, error: BaseException, last: object) -> str:
    """`last` is what the pickler was looking at."""
    if isinstance(error, Refused):
        return _about(name, value, error.value, error.what)
    if isinstance(error, TooLarge):
        return f"`{name}` is larger than the {size(error.limit)} that there is room for"
    if isinstance(error, OutOfTime):
        took = f"took longer than {error.seconds:.1f} s" if error.seconds else "came when the time was up"
        return f"`{name}` {took} and was left out"
    if isinstance(error, RecursionError):
        return f"`{name}` is nested too deeply"
    if isinstance(error, MemoryError):
        return f"`{name}` needs more memory than there is"
    return _of_own_code(name, error) or _about(name, value, last, _refusal(last, error))


def _refusal(last: object, error: BaseException) -> str:
    known = what_is(type(last))
    if known:
        return known
    module, kind = name_of(type(last))
    full = kind if module in ("builtins", "__main__") else f"{module}.{kind}"
    said = _text(error)
    told = "" if _CANNOT.search(said) else f" ({said})"
    return f"{_article(full)} {full}, which can't be written down{told}"


def _article(word: str) -> str:
    return "an" if word[:1].lower() in "aeiou" else "a"


def _text(error: BaseException) -> str:
    try:
        said = str(error)
    except BaseException:  # the person's
        said = ""
    name = type(error).__name__
    return f"{name}: {said}" if said else name


def _of_own_code(name: str, error: BaseException) -> str | None:
    """The method of the person's class that raised."""
    for frame, _ in walk_tb(error.__traceback__):
        found = _CELL.match(frame.f_code.co_filename)
        if found:
            method = frame.f_code.co_qualname.replace(".<locals>", "")
            return f"`{name}`: {method} of cell {found[1]} raised {_text(error)}"
    return None


def _about(name: str, value: object, culprit: object, what: str) -> str:
    if culprit is value:
        return f"`{name}` is {what}"
    path = _path_to(name, value, culprit)
    return f"`{name}` holds {what}" + (f" (it is {path})" if path else "")


# Where it is


def _path_to(name: str, value: object, culprit: object) -> str | None:
    """`d['x'].lock`: through containers and attributes, not far, and without running anybody's code."""
    queue, seen = deque([(name, value, 0)]), {id(value)}
    while queue and len(seen) < _LOOKED_AT_MAX:
        path, holder, depth = queue.popleft()
        for step, part in _parts(holder):
            if part is culprit:
                return f"`{path}{step}`"
            if id(part) not in seen and depth < _DEPTH_MAX:
                seen.add(id(part))
                queue.append((path + step, part, depth + 1))
    return None


def _parts(holder: object) -> list[tuple[str, object]]:
    kind = type(holder)
    if kind is dict:
        return [(f"[{key!r}]" if type(key) in (str, int) else "[…]", v) for key, v in list(holder.items())[:1000]]
    if kind in (list, tuple):
        return [(f"[{place}]", part) for place, part in enumerate(holder[:1000])]
    if kind in (set, frozenset):
        return [(" (an element)", part) for part in list(holder)[:1000]]
    if kind is types.FunctionType and holder.__closure__:
        names = holder.__code__.co_freevars
        return [(f" (its variable {n})", _contents(c)) for n, c in zip(names, holder.__closure__)]
    try:
        attributes = object.__getattribute__(holder, "__dict__")
    except (AttributeError, TypeError):
        return []
    return [(f".{key}", part) for key, part in list(attributes.items())[:1000]]


def _contents(cell: types.CellType) -> object:
    try:
        return cell.cell_contents
    except ValueError:
        return None
