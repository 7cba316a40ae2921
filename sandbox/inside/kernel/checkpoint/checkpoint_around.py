"""What a session has going that no variable shows, and no checkpoint can hold: named, so that nobody wonders."""

import asyncio
import os
import sys
import threading
import types

from .checkpoint_words import entry, is_a, type_of
from ..shell import Shell

_COMMAND_MAX = 60


def found(shell: Shell, named: set[int]) -> list[dict[str, str]]:
    """`named`: identities of what is in the report already."""
    lost = []
    for look in (_threads, _children, _tasks, _tables, _patches):
        try:
            lost += look(shell, named)
        except Exception:  # a library of another version, a module that was played with: it is only a courtesy
            continue
    return lost


def _of_a_cell(shell: Shell, value: object) -> bool:
    if is_a(value, classmethod, staticmethod, types.MethodType):
        value = value.__func__
    if is_a(value, property):
        value = value.fget
    if is_a(value, type):
        return type.__dict__["__module__"].__get__(value) == "__main__"
    return is_a(value, types.FunctionType) and value.__globals__ is shell.user_ns


def _threads(shell: Shell, named: set[int]) -> list[dict[str, str]]:
    lost = []
    for thread in threading.enumerate():
        work = getattr(thread, "function", None) or getattr(thread, "_target", None) or type(thread).run
        if thread is threading.main_thread() or id(thread) in named or not _of_a_cell(shell, work):
            continue
        why = f"the thread {thread.name} was running: it ended with the old interpreter"
        lost.append(entry(thread.name, type_of(thread), why))
    return lost


def _children(shell: Shell, named: set[int]) -> list[dict[str, str]]:
    from subprocess import Popen

    mine = {v.pid for v in list(shell.user_ns.values()) if is_a(v, Popen)}
    own = _command(os.getpid())
    lost = []
    for task in os.listdir("/proc/self/task"):
        with open(f"/proc/self/task/{task}/children") as file:
            numbers = [int(number) for number in file.read().split()]
        for number in numbers:
            command = _command(number)
            if number in mine or command in ("", own) or "multiprocessing" in command or "loky" in command:
                continue
            why = f"the process `{command}` was running: it ended with the old box"
            lost.append(entry(command, "process", why))
    return lost


def _command(number: int) -> str:
    try:
        with open(f"/proc/{number}/cmdline", "rb") as file:
            words = file.read().decode("utf-8", "replace").replace("\0", " ").strip()
    except OSError:
        return ""
    return words if len(words) <= _COMMAND_MAX else words[: _COMMAND_MAX - 1] + "…"


def _tasks(shell: Shell, named: set[int]) -> list[dict[str, str]]:
    """Tasks of cells that go on while another cell with `await` runs."""
    waiting = [task for task in list(asyncio.tasks._scheduled_tasks) if not task.done() and id(task) not in named]
    why = "the asyncio task {} was not done: it ended with the old interpreter"
    return [entry(task.get_name(), type_of(task), why.format(task.get_name())) for task in waiting]


def _tables(shell: Shell, named: set[int]) -> list[dict[str, str]]:
    """What `duckdb.sql("create table …")` made lies in a connection that nobody sees."""
    module = sys.modules.get("duckdb")
    if module is None:
        return []
    asked = module.default_connection().cursor()
    names = [row[0] for row in asked.execute("select table_name from duckdb_tables() where not internal").fetchall()]
    why = "the table {} was in duckdb's own memory: make it again"
    return [entry(name, "table", why.format(name)) for name in names]


def _patches(shell: Shell, named: set[int]) -> list[dict[str, str]]:
    """Functions from cells that were put into a library: `pd.DataFrame.total = total`."""
    lost = []
    for name, module in list(shell.user_ns.items()):
        if type(module) is not types.ModuleType or module is sys.modules.get("__main__"):
            continue
        for path, value in _attributes(name, module):
            if _of_a_cell(shell, value) or _of_a_cell(shell, getattr(value, "_accessor", None)):
                why = f"`{path}` was put into the library by a cell: what is changed there is not kept"
                lost.append(entry(path, type_of(value), why))
    return lost


def _attributes(name: str, module: types.ModuleType) -> list[tuple[str, object]]:
    every = [(f"{name}.{key}", value) for key, value in list(vars(module).items())]
    classes = [(path, value) for path, value in every if is_a(value, type)]
    inner = [(f"{path}.{key}", value) for path, kind in classes for key, value in list(vars(kind).items())]
    return every + inner
