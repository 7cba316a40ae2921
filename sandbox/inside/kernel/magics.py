"""Magics that IPython has, but that need a terminal, a thread or a network in its own version."""

import os
import signal
import subprocess
import sys
from threading import current_thread, main_thread

from IPython.core.error import UsageError
from IPython.core.magic import Magics, cell_magic, line_magic, magics_class
from IPython.core.magic_arguments import argument, magic_arguments
from IPython.utils.process import arg_split
from traitlets import Any, Dict, Unicode
from traitlets.config import Configurable

from . import packages, refusals
from .cell import current

SHELL = "/bin/bash" if os.path.exists("/bin/bash") else "/bin/sh"
_INTERPRETERS = {"bash": [SHELL], "sh": ["/bin/sh"], "python": [sys.executable], "python3": [sys.executable]}
_PATIENCE_S = 0.5
_install = signal.signal  # a cell may put something else there


def _stop(child: subprocess.Popen) -> None:
    """An interrupted command and what it started: asked first, then killed (`&` jobs don't hear the question)."""
    try:
        os.killpg(child.pid, signal.SIGINT)
        child.wait(_PATIENCE_S)
    except (subprocess.TimeoutExpired, ProcessLookupError):
        pass
    try:
        os.killpg(child.pid, signal.SIGKILL)
    except ProcessLookupError:
        pass
    child.wait()


def _start(children: list[subprocess.Popen], args: list[str], **how) -> None:
    """No interrupt comes between the fork and the moment that the child is known: it would be nobody's to stop."""
    late: list[bool] = []
    alone = current_thread() is main_thread()  # no other is interrupted
    before = _install(signal.SIGINT, lambda *_: late.append(True)) if alone else None
    try:
        children.append(subprocess.Popen(args, **how))
    finally:
        if alone:
            _install(signal.SIGINT, before)
    if late:
        raise KeyboardInterrupt


def run(args: list[str], source: str | None = None, **streams) -> tuple[int, str, str]:
    """Run to the end, output straight to ours unless a pipe is asked for. -> status, stdout, stderr"""
    sys.stdout.flush()
    sys.stderr.flush()
    stdin = subprocess.DEVNULL if source is None else subprocess.PIPE
    children: list[subprocess.Popen] = []
    try:
        _start(children, args, stdin=stdin, text=True, errors="replace", process_group=0, **streams)
        out, err = children[0].communicate(source)
    except BaseException:
        for child in children:
            _stop(child)
        raise
    return children[0].returncode, out or "", err or ""


def run_shell(command: str, **streams) -> tuple[int, str, str]:
    return run([SHELL, "-c", command], **streams)


@magics_class
class BoxMagics(Magics):
    """%pip and its kin, %%bash and its kin."""

    @line_magic("pip")
    def pip(self, line: str) -> None:
        self._answer(f"pip {line}")

    @line_magic("conda")
    def conda(self, line: str) -> None:
        self._answer(f"conda {line}")

    @line_magic("mamba")
    def mamba(self, line: str) -> None:
        self._answer(f"mamba {line}")

    @line_magic("uv")
    def uv(self, line: str) -> None:
        self._answer(f"uv {line}")

    @staticmethod
    def _answer(command: str) -> None:
        print(packages.answer(command))
        current.note(packages.short(command))

    @line_magic("matplotlib")
    def matplotlib(self, line: str) -> None:
        """Figures arrive whatever is chosen here."""

    @line_magic("debug")
    def debug(self, line: str) -> None:
        refusals.no_debugger()

    @line_magic("pdb")
    def pdb(self, line: str) -> None:
        refusals.no_debugger()

    @magic_arguments()
    @argument("--out", help="variable for the standard output")
    @argument("--err", help="variable for the standard error")
    @argument("--bg", action="store_true", help="taken, but the script is waited for")
    @argument("--no-raise-error", action="store_true", help="a failing script is no error")
    @cell_magic("script")
    def script(self, line: str, cell: str) -> None:
        self._run_script([], line, cell)

    def _run_script(self, interpreter: list[str], line: str, cell: str) -> None:
        options, words = self.script.parser.parse_known_args(arg_split(line))
        command = interpreter + words
        if not command:
            raise UsageError("%%script needs the name of a program")
        streams = {}
        if options.out:
            streams["stdout"] = subprocess.PIPE
        if options.err:
            streams["stderr"] = subprocess.PIPE
        source = self.shell.installers.shell(cell) if os.path.basename(command[0]) in ("bash", "sh") else cell
        status, out, err = run(command, source, **streams)
        for name, text in ((options.out, out), (options.err, err)):
            if name:
                self.shell.user_ns[name] = text
        if status and not options.no_raise_error:
            raise subprocess.CalledProcessError(status, command[0])


def _interpreter_magic(name: str):
    def interpreter(self, line: str, cell: str) -> None:
        self._run_script(_INTERPRETERS[name], line, cell)

    interpreter.__doc__ = f"Run the cell with {name}."
    return interpreter


class InlineBackend(Configurable):
    """`%config InlineBackend.…` sets how a notebook shows figures. Here it changes nothing, and harms nothing."""

    figure_format = Any("png", config=True)
    figure_formats = Any({"png"}, config=True)
    print_figure_kwargs = Dict(config=True)
    close_figures = Any(True, config=True)
    rc = Dict(config=True)
    backend = Unicode("agg", config=True)


def register(shell) -> None:
    magics = BoxMagics(shell)
    shell.register_magics(magics)
    for name in _INTERPRETERS:
        function = _interpreter_magic(name).__get__(magics)
        shell.register_magic_function(function, "cell", name)
    shell.configurables.append(InlineBackend(parent=shell))
