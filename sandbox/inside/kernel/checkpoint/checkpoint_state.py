"""What belongs to a session besides its variables: where it is, its random numbers, settings of libraries.

Each piece has a way to look (None: as in a new session, nothing to write down) and a way to put it back. A
piece that fails costs itself only. The settings are compared with those of a new session, so that a newer
version of the kernel keeps its own where the person changed nothing.
"""

import contextlib
import decimal
import locale
import logging
import os
import random
import sys
import warnings
from collections.abc import Callable

import matplotlib
import numpy
import pandas
from pandas._config import config as pandas_config

from ..results import style

_OPTIONS_OF_THE_BOX = {"HOME", "MPLBACKEND", "MPLCONFIGDIR", "PWD", "OLDPWD"}
_NOT_OF_CHARTS = {"backend", "backend_fallback", "interactive", "toolbar"}


def _differs(a: object, b: object) -> bool:
    try:
        return type(a) is not type(b) or bool(a != b)
    except Exception:  # arrays and the like
        return True


# Python


def _look_at_random() -> object:
    return random.getstate()


def _look_at_environment() -> dict | None:
    """What differs from the environment that the interpreter was started with; all, if that can't be read."""
    first = {}
    with contextlib.suppress(OSError), open("/proc/self/environ", "rb") as file:
        pairs = (entry.partition(b"=")[::2] for entry in file.read().split(b"\0") if entry)
        first = {os.fsdecode(key): os.fsdecode(value) for key, value in pairs}
    now = dict(os.environ)
    changed = {key: now.get(key) for key in first.keys() | now.keys() if now.get(key) != first.get(key)}
    return {key: value for key, value in changed.items() if key not in _OPTIONS_OF_THE_BOX} or None


def _set_environment(changed: dict[str, str | None]) -> None:
    for key, value in changed.items():
        if value is None:
            os.environ.pop(key, None)
        else:
            os.environ[key] = value


def _set_warnings(filters: list) -> None:
    warnings.filters[:] = filters
    for name in ("_filters_mutated", "_filters_mutated_lock_held"):  # the second since Python 3.14
        mutated = getattr(warnings, name, None)
        if mutated is not None:
            with getattr(warnings, "_lock", contextlib.nullcontext()):
                mutated()
            return


def _look_at_decimal() -> decimal.Context | None:
    now = decimal.getcontext()
    return now if repr(now) != repr(decimal.DefaultContext.copy()) else None


def _look_at_locale() -> str:
    return locale.setlocale(locale.LC_ALL)


def _set_locale(name: str) -> None:
    if name != locale.setlocale(locale.LC_ALL):
        locale.setlocale(locale.LC_ALL, name)


def _look_at_limits() -> dict[str, int]:
    return {"recursion": sys.getrecursionlimit(), "digits": sys.get_int_max_str_digits()}


def _set_limits(limits: dict[str, int]) -> None:
    sys.setrecursionlimit(limits["recursion"])
    sys.set_int_max_str_digits(limits["digits"])


def _set_arguments(arguments: list) -> None:
    sys.argv[:] = arguments


def _look_at_logging() -> dict | None:
    """Levels of all loggers, and where they write to; the handlers that libraries have by default do nothing."""
    named = {n: o for n, o in list(logging.root.manager.loggerDict.items()) if isinstance(o, logging.Logger)}
    states = {name: _logger_state(logger) for name, logger in named.items()}
    changed = {name: state for name, state in states.items() if state != (0, True, [])}
    return {"loggers": changed, "root": _logger_state(logging.root), "disabled": logging.root.manager.disable}


def _logger_state(logger: logging.Logger) -> tuple[int, bool, list]:
    handlers = [handler for handler in logger.handlers if type(handler) is not logging.NullHandler]
    return logger.level, logger.propagate, handlers


def _set_logging(state: dict) -> None:
    for logger, (level, propagate, handlers) in [
        (logging.root, state["root"]),
        *((logging.getLogger(name), own) for name, own in state["loggers"].items()),
    ]:
        logger.setLevel(level)
        logger.propagate = propagate
        logger.handlers[:] = handlers or logger.handlers
    logging.disable(state["disabled"])


# numpy, pandas, matplotlib and others


def _look_at_numpy() -> dict:
    return {"random": numpy.random.get_state(), "errors": numpy.geterr(), "printing": numpy.get_printoptions()}


def _set_numpy(state: dict) -> None:
    numpy.random.set_state(state["random"])
    numpy.seterr(**state["errors"])
    state["printing"].pop("override_repr", None)
    numpy.set_printoptions(**state["printing"])


def _look_at_pandas() -> dict | None:
    changed = {}
    for name, option in pandas_config._registered_options.items():
        root, last = pandas_config._get_root(name)
        now = root[last]
        if _differs(now, style.TABLE.get(name, option.defval)):
            changed[name] = now
    return changed or None


def _set_pandas(changed: dict) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for name, value in changed.items():
            pandas.set_option(name, value)


def _look_at_charts() -> dict | None:
    new = {**dict.copy(matplotlib.rcParamsOrig), **style.CHART}
    now = dict.copy(matplotlib.rcParams)
    changed = {k: v for k, v in now.items() if k not in _NOT_OF_CHARTS and _differs(v, new.get(k))}
    return changed or None


def _set_charts(changed: dict) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        matplotlib.rcParams.update(changed)


def _look_at_plotly() -> str | None:
    module = sys.modules.get("plotly.io")
    return module.templates.default if module is not None else None


def _set_plotly(template: str) -> None:
    import plotly.io

    if plotly.io.templates.default != template:
        plotly.io.templates.default = template


def _look_at_sklearn() -> dict | None:
    module = sys.modules.get("sklearn")
    return dict(module.get_config()) if module is not None else None


def _set_sklearn(options: dict) -> None:
    import sklearn

    sklearn.set_config(**options)


def _look_at_polars() -> str | None:
    """Asked only if it is there: to import it takes longer than the rest of a thaw."""
    module = sys.modules.get("polars")
    if module is None or not any(value is not None for value in module.Config.state(if_set=True).values()):
        return None
    return module.Config.save()


def _set_polars(options: str) -> None:
    import polars

    polars.Config.load(options)


PIECES: dict[str, tuple[Callable[[], object], Callable[[object], None]]] = {
    "environment": (_look_at_environment, _set_environment),
    "limits": (_look_at_limits, _set_limits),
    "arguments": (lambda: list(sys.argv), _set_arguments),
    "locale": (_look_at_locale, _set_locale),
    "decimal": (_look_at_decimal, decimal.setcontext),
    "warnings": (lambda: list(warnings.filters), _set_warnings),
    "logging": (_look_at_logging, _set_logging),
    "pandas options": (_look_at_pandas, _set_pandas),
    "rcParams": (_look_at_charts, _set_charts),
    "plotly's template": (_look_at_plotly, _set_plotly),
    "scikit-learn's options": (_look_at_sklearn, _set_sklearn),
    "polars' options": (_look_at_polars, _set_polars),
    "random numbers": (_look_at_random, random.setstate),
    "numpy": (_look_at_numpy, _set_numpy),  # last, and random before it: nothing after it may use them
}


def look(notes: list[str]) -> dict[str, object]:
    found = {}
    for name, (see, _) in PIECES.items():
        try:
            value = see()
        except Exception as error:
            notes.append(f"the {name} could not be read: {type(error).__name__}: {error}")
            continue
        if value is not None:
            found[name] = value
    return found


def put_back(name: str, value: object) -> None:
    if name in PIECES:
        PIECES[name][1](value)


# Imports: what has to be there before the first variable


def places_to_look(data_dir: str) -> list[tuple[int, str]]:
    """Entries of sys.path, each with where it comes: before what every session has, or after."""
    return [(place, entry) for place, entry in enumerate(sys.path) if isinstance(entry, str) and entry != data_dir]


def look_there_too(entries: list[tuple[int, str]]) -> None:
    known = set(sys.path)
    for place, entry in entries:
        if entry not in known:
            sys.path.insert(min(place, len(sys.path)), entry)


def parts_of_packages(packages: set[str]) -> list[str]:
    """`import a.b.c` makes only `a` a variable: the public parts of each package that had been imported."""
    names = (name for name in list(sys.modules) if "." in name and "._" not in name)
    return [name for name in names if name.partition(".")[0] in packages]
