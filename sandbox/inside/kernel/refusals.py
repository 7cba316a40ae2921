"""What can't work in a cell, and says so at once instead of hanging or failing oddly.

Nobody sits at a keyboard, so `input()` and debuggers would wait for ever. Nothing can be installed, so
every road to an installer ends in `packages`. And `exit()` ends the cell, not the session.
"""

import builtins
import functools
import getpass
import os
import pdb
import shlex
import subprocess
import sys
from collections.abc import Callable
from typing import NoReturn

from . import packages

NO_KEYBOARD = (
    "{} can't be answered: nobody is at the keyboard while a cell runs. "
    "Put the value into a variable, or ask for it in the chat."
)
NO_DEBUGGER = "a debugger can't be used here: nobody is at the keyboard. Print the values instead."
EXIT_NOTE = "{} ended this cell; the session and its variables stay."


class Exit:
    """`exit` and `quit`: as a script has them, they stop what runs now. IPython's would go on to the end."""

    def __init__(self, name: str):
        self._name = name

    def __repr__(self) -> str:
        return f"{self._name}() ends the cell. The session stays; there is nothing to leave."

    def __call__(self, code: object = None) -> NoReturn:
        raise SystemExit(code)


def _no_input(prompt: object = "", /) -> NoReturn:
    raise EOFError(NO_KEYBOARD.format("input()"))


def _no_password(prompt: str = "", stream: object = None) -> NoReturn:
    raise EOFError(NO_KEYBOARD.format("getpass()"))


def no_debugger(*args: object, **kwargs: object) -> NoReturn:
    sys.settrace(None)
    raise RuntimeError(NO_DEBUGGER)


def shell_with_answers(command: str, said: str) -> str:
    """A shell command in which the installers are functions that print the answer and succeed."""
    say = "printf '%s\\n' " + shlex.quote(said)
    own = os.path.basename(sys.executable)
    functions = [f"{name}() {{ {say}; }}" for name in ("pip", "pip3", "conda", "mamba", "uv", "poetry", "apt")]
    functions += [
        f'{python}() {{ if [ "$1" = -m ] && [ "$2" = pip ]; then {say}; else command {python} "$@"; fi; }}'
        for python in ("python", "python3", own)
    ]
    functions.append('sudo() { "$@"; }')
    command = command.replace(sys.executable, own).replace("apt-get", "apt")  # not every shell takes such names
    return "\n".join([*functions, command])


class Installers:
    """Answers installers that are started as child processes."""

    def __init__(self, note: Callable[[str], None]):
        self._note = note

    def install(self) -> None:
        popen, system = subprocess.Popen.__init__, os.system

        @functools.wraps(popen)
        def answered_popen(process, args, *rest, **options):
            return popen(process, self._rewritten(args, options), *rest, **options)

        @functools.wraps(system)
        def answered_system(command):
            return system(self.shell(command) if isinstance(command, str) else command)

        subprocess.Popen.__init__, os.system = answered_popen, answered_system

    def shell(self, command: str) -> str:
        """A command line for a shell, with its installers answered."""
        if not packages.is_installer(command):
            return command
        self._note(packages.short(command))
        return shell_with_answers(command, packages.answer(command))

    def _rewritten(self, args: object, options: dict) -> object:
        """An installer's arguments become those of a program that prints the answer."""
        if isinstance(args, str):
            return self.shell(args) if options.get("shell") else args
        if not isinstance(args, (list, tuple)) or not all(isinstance(a, str) for a in args):
            return args
        command = shlex.join(args)
        if not packages.is_installer(command):
            return args
        self._note(packages.short(command))
        options.pop("executable", None)
        return ["/bin/sh", "-c", 'printf "%s\\n" "$1"', "pip", packages.answer(command)]


def install() -> None:
    """Process-wide, in the zygote: nothing here belongs to a session."""
    builtins.input = _no_input
    builtins.exit, builtins.quit = Exit("exit"), Exit("quit")
    getpass.getpass = getpass.fallback_getpass = getpass.unix_getpass = _no_password
    sys.breakpointhook = no_debugger
    pdb.Pdb.interaction = no_debugger  # all of pdb's doors lead here; doctest, which only makes one, works
