"""Writing a session down.

Variables go one after the other through one pickler: one that can't be kept costs itself only, and all others
share what they shared. Nothing of the session is changed: not its random numbers, not what is printed.
"""

import contextlib
import gc
import importlib.util
import os
import platform
import random
import sys
import threading
import time
import types
import warnings
from collections.abc import Iterator
from dataclasses import dataclass

import numpy

from . import checkpoint_around, checkpoint_shell, checkpoint_state, checkpoint_words
from .checkpoint_clock import Clock, OutOfTime
from .checkpoint_file import FORMAT, TooLarge, Unwritable, Writer
from .checkpoint_pickle import Pickler
from ..shell import Shell

LOST_MAX = 200
PACKAGES = ("numpy", "pandas", "pyarrow", "polars", "scipy", "sklearn", "statsmodels", "matplotlib", "seaborn")
PACKAGES += ("plotly", "PIL", "sympy", "networkx", "IPython", "cloudpickle")


def _head(anchors: dict[str, object]) -> dict:
    return {
        "format": FORMAT,
        "created": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
        "python": platform.python_version(),
        "bytecode": bytecode(),
        "packages": packages(),
        "anchors": list(anchors),
    }


def bytecode() -> str:
    """Functions are kept as the bytes that the interpreter runs; another one can't run them."""
    return f"{platform.python_implementation()} {importlib.util.MAGIC_NUMBER.hex()}"


def packages() -> dict[str, str]:
    found = {name: getattr(sys.modules.get(name), "__version__", None) for name in PACKAGES}
    return {name: version for name, version in found.items() if isinstance(version, str)}


@dataclass(frozen=True)
class Limits:
    """Bytes of one variable, of the whole, of results that only `Out` holds; seconds for all of it."""

    variable_max: int = 2 << 30
    total_max: int = 4 << 30
    results_max: int = 16 << 20
    seconds: float = 20.0

    @classmethod
    def of(cls, spec: dict) -> "Limits":
        given = {name: int(spec[name]) for name in ("variable_max", "total_max", "results_max") if name in spec}
        if "budget_ms" in spec:
            given["seconds"] = spec["budget_ms"] / 1000
        return cls(**given)


def dump(shell: Shell, fd: int, *, limits: Limits | None = None, data_dir: str = "/mnt/data") -> dict:
    """`fd`: a pipe, or a file to be written from where it stands. What is raised leaves it unfinished."""
    work = _Dump(shell, fd, limits or Limits(), data_dir)
    with unnoticed(), not_collecting():
        return work.run()


# So that nobody notices


class _Nowhere:
    """Takes what this thread prints; other threads of the person's go on printing."""

    encoding, errors = "utf-8", "replace"

    def __init__(self, stream):
        self._stream, self._thread = stream, threading.get_ident()

    def write(self, text: str) -> int:
        return len(text) if threading.get_ident() == self._thread else self._stream.write(text)

    def __getattr__(self, name: str):
        return getattr(self._stream, name)


@contextlib.contextmanager
def unnoticed() -> Iterator[None]:
    """A person's `__reduce__` or `__del__` may print, warn, and draw random numbers: none of it is to be seen."""
    streams = sys.stdout, sys.stderr
    dice = random.getstate(), numpy.random.get_state()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        sys.stdout, sys.stderr = (_Nowhere(stream) for stream in streams)
        try:
            yield
        finally:
            sys.stdout, sys.stderr = streams
            random.setstate(dice[0])
            numpy.random.set_state(dice[1])


@contextlib.contextmanager
def not_collecting() -> Iterator[None]:
    """A million new objects, none of them garbage, would be searched for it again and again."""
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()


class _Dump:
    def __init__(self, shell: Shell, fd: int, limits: Limits, data_dir: str):
        """Looks at what `unnoticed` replaces: to be made outside of it."""
        self._shell, self._limits, self._data_dir = shell, limits, data_dir
        self._notes: list[str] = []
        self._lost: list[dict[str, str]] = []
        self._named: set[int] = set()
        self._kept = 0
        self._state = checkpoint_state.look(self._notes)
        anchors = checkpoint_shell.told_apart(checkpoint_shell.anchors(shell))
        self._writer = Writer(fd, _head(anchors))
        self._pickler = Pickler(self._writer, anchors, data_dir)

    def run(self) -> dict:
        with Clock(self._limits.seconds) as self._clock:
            self._before()
            self._variables()
            self._magics()
            self._results()
            self._after()
            self._around()
        return self._end()

    # The parts, in the order in which they are read

    def _before(self) -> None:
        modules = [v for _, v in checkpoint_shell.variables(self._shell) if checkpoint_words.is_a(v, types.ModuleType)]
        packages = {name.partition(".")[0] for m in modules if isinstance(name := vars(m).get("__name__"), str)}
        self._extra("folder", self._folder())
        self._extra("places", checkpoint_state.places_to_look(self._data_dir))
        self._extra("parts", checkpoint_state.parts_of_packages(packages))
        self._extra("sources", checkpoint_shell.sources())
        self._own_modules(modules)

    def _folder(self) -> str:
        try:
            return self._pickler.place_of(os.getcwd())
        except OSError:  # it was removed
            return "."

    def _own_modules(self, modules: list[types.ModuleType]) -> None:
        folder = os.path.realpath(self._data_dir) + os.sep
        for module in modules:
            path = vars(module).get("__file__")
            if isinstance(path, str) and os.path.realpath(path).startswith(folder):
                self._note(
                    f"the module {module.__name__} is read anew from its file; what a cell changed in it is gone"
                )

    def _variables(self) -> None:
        for name, value in checkpoint_shell.variables(self._shell):
            error = self._put("variable", name, value, self._limits.variable_max)
            if error is not None:
                self._lose(str(name), value, error)
            elif not checkpoint_words.is_a(value, types.ModuleType) and not str(name).startswith("__"):
                self._kept += 1

    def _magics(self) -> None:
        for kind, name, function in checkpoint_shell.magics(self._shell):
            error = self._put("magic", [kind, name], function, self._limits.variable_max)
            if error is not None:
                self._lose(f"%{name}", function, error)

    def _results(self) -> None:
        """Those that are variables as well cost nothing; the others have to fit."""
        left, too_large = self._limits.results_max, []
        for number, value in checkpoint_shell.results(self._shell):
            before = self._writer.size
            error = self._put("result", number, value, left)
            left -= self._writer.size - before
            if isinstance(error, TooLarge):
                too_large.append(f"Out[{number}]")
            elif error is not None and id(value) not in self._named:
                self._note(self._why(f"Out[{number}]", value, error))
        if too_large:
            room = checkpoint_words.size(self._limits.results_max)
            self._note(f"not kept: {', '.join(too_large[:10])}; results that no variable holds may take {room}")
        for name, value in checkpoint_shell.newest(self._shell):
            self._put("newest", name, value, max(left, 0))

    def _after(self) -> None:
        for name, value in self._state.items():
            self._extra(name, value)
        self._extra("session", checkpoint_shell.session(self._shell))
        self._extra("figures", self._pickler.figures)

    def _around(self) -> None:
        with contextlib.suppress(OutOfTime), self._clock.share():  # a database may be busy
            self._lost += checkpoint_around.found(self._shell, self._named)

    def _end(self) -> dict:
        more = len(self._lost) - LOST_MAX
        if more > 0:
            self._note(f"{more} more variables were not kept")
        report = {"kept": self._kept, "lost": self._lost[:LOST_MAX], "notes": self._notes, "error": None}
        size = self._writer.end(report)
        return {**report, "bytes": size}

    # One thing

    def _extra(self, name: str, value: object) -> None:
        error = self._put("extra", name, value, None)
        if error is not None:
            self._note(self._why(name, value, error).replace("`", ""))

    def _put(self, kind: str, name: object, value: object, size: int | None) -> BaseException | None:
        """-> why it was not written down"""
        for last_try in (False, True):
            try:
                self._allow(size)
                with self._clock.share():
                    self._pickler.put([kind, name, checkpoint_words.type_of(value), value])
                return None
            except (KeyboardInterrupt, Unwritable):
                raise
            except BaseException as error:
                if last_try or not _changed_meanwhile(error):
                    return error
        return None

    def _allow(self, size: int | None) -> None:
        left = max(self._limits.total_max - self._writer.size, 0)
        self._writer.allow(left if size is None else min(size, left))

    # The report

    def _why(self, name: str, value: object, error: BaseException) -> str:
        return checkpoint_words.why(name, value, error, self._pickler.last)

    def _lose(self, name: str, value: object, error: BaseException) -> None:
        self._named.add(id(value))
        self._lost.append(checkpoint_words.entry(name, checkpoint_words.type_of(value), self._why(name, value, error)))

    def _note(self, text: str) -> None:
        text = checkpoint_words.clip(text, checkpoint_words.NOTE_MAX)
        if text not in self._notes and len(self._notes) < LOST_MAX:
            self._notes.append(text)


def _changed_meanwhile(error: BaseException) -> bool:
    """A thread of the person's was adding to it; it may be still the next time."""
    return isinstance(error, RuntimeError) and ("changed size" in str(error) or "mutated" in str(error))
