"""multiprocessing with functions and classes from cells.

A spawned worker is a new interpreter: it can't import a cell, so pickle's "by name" finds nothing in its
`__main__`, and the pool waits for ever for workers that keep dying. With cloudpickle such objects travel by
value. The worker loads this module on the way, so that what it sends back travels the same way.
"""

import types
from multiprocessing import reduction

import cloudpickle

_KINDS = (types.FunctionType, type)


def load(data: bytes) -> object:
    install()
    return cloudpickle.loads(data)


def _reduce(self, value: object) -> object:
    if isinstance(value, _KINDS) and getattr(value, "__module__", None) == "__main__":
        return load, (cloudpickle.dumps(value),)
    return NotImplemented


def install() -> None:
    reduction.ForkingPickler.reducer_override = _reduce
