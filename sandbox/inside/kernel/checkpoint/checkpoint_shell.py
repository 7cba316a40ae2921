"""What belongs to a session of IPython's: numbers, In and Out, magics, aliases, the source of its cells."""

import builtins
import dataclasses
import linecache
import logging
import os
import random
import re
import sys
import types
import warnings

import matplotlib
import numpy
import pandas

from .checkpoint_words import is_a
from ..shell import Shell

INPUT_MAX = 4 << 20
_CELL = re.compile(r"<cell \d+>$")
_NEWEST = ("_", "__", "___")
_OF_INPUT = ("_i", "_ii", "_iii")
_NUMBERED = re.compile(r"_i?\d+$")
_OF_MODULE = {"__name__", "__doc__", "__package__", "__loader__", "__spec__", "__builtins__", "__builtin__"}


def anchors(shell: Shell) -> dict[str, object]:
    """What every session has: a checkpoint only says which. New ones may be added; the file names those it has."""
    generator = numpy.random.mtrand._rand
    return {
        "namespace": shell.user_ns,
        "In": shell.history_manager.input_hist_parsed,
        "Out": shell.history_manager.output_hist,
        "shell": shell,
        "hidden": shell.user_ns_hidden,
        "builtins": vars(builtins),
        "stdin": sys.stdin,
        "stdout": sys.stdout,
        "stderr": sys.stderr,
        "random": random._inst,
        "numpy.random": generator,
        "numpy.random.bits": generator._bit_generator,
        "environ": os.environ,
        "path": sys.path,
        "argv": sys.argv,
        "modules": sys.modules,
        "warnings": warnings.filters,
        "loggers": logging.root.manager,
        "rcParams": matplotlib.rcParams,
        "rcParamsDefault": matplotlib.rcParamsDefault,
        "pandas.options": pandas.options,
        "dataclasses.MISSING": dataclasses.MISSING,
        "dataclasses.KW_ONLY": dataclasses.KW_ONLY,
        "dataclasses.factory": dataclasses._HAS_DEFAULT_FACTORY,
    }


def told_apart(found: dict[str, object]) -> dict[str, object]:
    """The first of those that are one object now, such as stdout and stderr of a person who joined them."""
    first = {id(value): name for name, value in reversed(found.items())}
    return {name: value for name, value in found.items() if first[id(value)] == name and value is not None}


def is_variable(shell: Shell, name: object, value: object) -> bool:
    """The person's own; not what IPython puts there."""
    hidden = shell.user_ns_hidden
    if is_a(name, str) and type(name) is not str:  # a name that only a hostile cell makes: comparing it may do anything
        return False
    if name in _OF_MODULE or name in _NEWEST or name in _OF_INPUT:
        return False
    if isinstance(name, str) and _NUMBERED.match(name):
        return False
    return not (name in hidden and hidden[name] is value)


def variables(shell: Shell) -> list[tuple[str, object]]:
    """Modules first: a person's `__setstate__` may need them."""
    found = [(n, v) for n, v in list(shell.user_ns.items()) if is_variable(shell, n, v)]
    return sorted(found, key=lambda pair: not is_a(pair[1], types.ModuleType))


# Numbers and input


def session(shell: Shell) -> dict:
    history, hook = shell.history_manager, shell.displayhook
    return {
        "count": shell.execution_count,
        "input": _capped(history.input_hist_parsed),
        "raw": _capped(history.input_hist_raw),
        "last input": [getattr(history, name, "") for name in ("_i00", *_OF_INPUT)],
        "folders": list(shell.user_ns.get("_dh", ())),
        "expressions": shell.ast_node_interactivity,
        "flags": shell.compile.flags,
        "aliases": list(shell.alias_manager.aliases),
        "extensions": sorted(shell.extension_manager.loaded),
        "cache": hook.cache_size,
    }


def _capped(lines: list[str]) -> list[str]:
    """The newest that fit; numbers stay as they are."""
    kept, left = [], INPUT_MAX
    for line in reversed(lines):
        left -= len(line)
        kept.append(line if left > 0 else "")
    return kept[::-1]


def sources() -> dict[str, tuple]:
    """For the lines in tracebacks, and inspect.getsource."""
    return {name: entry for name, entry in linecache.cache.items() if _CELL.match(name)}


def set_sources(entries: dict[str, tuple]) -> None:
    linecache.cache.update(entries)


def set_session(shell: Shell, state: dict) -> None:
    history = shell.history_manager
    shell.execution_count = state["count"]
    history.input_hist_parsed[:] = state["input"]
    history.input_hist_raw[:] = state["raw"]
    for name, value in zip(("_i00", *_OF_INPUT), state["last input"]):
        setattr(history, name, value)
    inputs = dict(zip(_OF_INPUT, state["last input"][1:]))
    inputs |= {f"_i{number}": line for number, line in enumerate(state["raw"]) if line}
    shell.push(inputs, interactive=False)
    if isinstance(shell.user_ns.get("_dh"), list):
        shell.user_ns["_dh"][:] = state["folders"]
    shell.ast_node_interactivity = state["expressions"]
    shell.compile.flags = state["flags"]
    shell.displayhook.cache_size = state["cache"]
    _set_commands(shell, state)


def _set_commands(shell: Shell, state: dict) -> None:
    known = dict(shell.alias_manager.aliases)
    for name, command in state["aliases"]:
        if known.get(name) != command:
            shell.alias_manager.soft_define_alias(name, command)
    for name in state["extensions"]:
        if name not in shell.extension_manager.loaded:
            shell.extension_manager.load_extension(name)


# Magics from cells


def magics(shell: Shell) -> list[tuple[str, str, object]]:
    """-> kind, name and function of each"""
    table = shell.magics_manager.magics
    every = [(kind, name, function) for kind, named in table.items() for name, function in named.items()]
    return [entry for entry in every if _is_of_a_cell(shell, entry[2])]


def _is_of_a_cell(shell: Shell, function: object) -> bool:
    function = getattr(function, "__func__", function)
    return is_a(function, types.FunctionType) and function.__globals__ is shell.user_ns


def set_magic(shell: Shell, kind: str, name: str, function: object) -> None:
    shell.register_magic_function(function, kind, name)


# Results


def results(shell: Shell) -> list[tuple[int, object]]:
    """The newest first."""
    entries = [(n, v) for n, v in shell.history_manager.output_hist.items() if type(n) is int]
    return sorted(entries, key=lambda entry: entry[0], reverse=True)


def newest(shell: Shell) -> list[tuple[str, object]]:
    """`_`, `__` and `___`, as variables and as IPython knows them; they differ if the person has used them."""
    names = [(name, shell.user_ns[name]) for name in _NEWEST if name in shell.user_ns]
    return names + [(f"hook {name}", getattr(shell.displayhook, name)) for name in _NEWEST]


def set_results(shell: Shell, out: dict[int, object], named: dict[str, object]) -> None:
    history = shell.history_manager.output_hist
    history.clear()
    history.update(sorted(out.items()))
    shell.push({f"_{number}": value for number, value in out.items()}, interactive=False)
    for name in _NEWEST:
        hook = named.get(f"hook {name}", "")
        setattr(shell.displayhook, name, hook)
        if name in named:
            shell.push({name: named[name]}, interactive=named[name] is not hook)
