"""Which variables hold something that could not be put together again."""

import gc
import types
from collections.abc import Iterable

import numpy

from .checkpoint_code import importable


class Trace:
    """Follows references as the garbage collector does: no code of the person's runs."""

    def __init__(self, broken: dict[int, tuple[object, str]], anchors: Iterable[object]):
        self._broken = broken
        self._clean = {id(anchor) for anchor in anchors}

    def why(self, value: object) -> str | None:
        """-> what is said of the first broken thing that is found; None: there is none"""
        stack, seen = [value], set()
        while stack:
            part = stack.pop()
            if id(part) in self._broken:
                return self._broken[id(part)][1]
            if id(part) in self._clean or id(part) in seen or self._leads_away(part):
                continue
            seen.add(id(part))
            stack += _parts(part)
        self._clean |= seen
        return None

    @staticmethod
    def _leads_away(part: object) -> bool:
        """Into what every session has."""
        return isinstance(part, types.ModuleType) or (isinstance(part, (type, types.FunctionType)) and importable(part))


def _parts(part: object) -> list[object]:
    if isinstance(part, numpy.ndarray) and part.dtype.hasobject:  # numpy does not tell the collector
        return [part.base] if part.dtype != object else part.ravel().tolist()
    return gc.get_referents(part)
