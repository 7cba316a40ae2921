"""IPython's InteractiveShell, set up to run cells without a terminal, a disk or a person at a keyboard.

What cells may use is IPython's own: last expressions, `Out`, `_`, `%` and `!` lines, top-level await. What
is changed: nothing is written to a home folder, commands run on pipes instead of a pty (there is none),
tracebacks are not printed (the claim has them), and what a cell broke is mended when its code has ended.
"""

import builtins
import contextlib
import os
import sys
from collections.abc import Callable

from IPython.core.compilerop import CachingCompiler
from IPython.core.interactiveshell import InteractiveShell
from IPython.utils.text import LSString, SList
from traitlets import Instance
from traitlets.config import Config

from . import errors, magics, refusals, transforms
from .results import display
from .cell import Cell, current, name_of

__builtins__ = dict(vars(builtins))


class Compiler(CachingCompiler):
    def get_code_name(self, raw_code, transformed_code, number):
        return name_of(number)


_NOTHING_KEPT = contextlib.nullcontext()


def _nothing() -> None:
    pass


class Shell(InteractiveShell):
    """One per process; made in the zygote, used by one session after the fork."""

    display_pub_class = display.Publisher
    displayhook_class = display.Hook
    compiler_class = Compiler
    input_transformer_manager = Instance(transforms.Transformers, ())

    def __init__(self, installers: refusals.Installers, **kwargs):
        self.installers = installers
        self.after_code: Callable[[], None] = _nothing
        self.nested = -1  # a cell that runs cells: get_ipython().run_cell
        super().__init__(ipython_dir="", profile_dir=None, config=_config(), **kwargs)
        for name in ("exit", "quit"):  # IPython hides them from imported modules
            self.builtin_trap.auto_builtins.pop(name, None)
        magics.register(self)

    # What IPython would set up and a box has no use for

    def init_profile_dir(self, profile_dir) -> None:
        """No folder, no files."""

    def init_virtualenv(self) -> None:
        pass

    def init_logstart(self) -> None:
        pass

    def init_user_ns(self) -> None:
        """Our `exit`: IPython's would call itself on any line that begins with it, `exit = 5` included."""
        super().init_user_ns()
        for names in (self.user_ns, self.user_ns_hidden):
            names.update(exit=builtins.exit, quit=builtins.quit)
        for name in ("__spec__", "__loader__", "__package__", "__doc__"):  # a reset drops them; spawn asks for them
            self.user_ns.setdefault(name, None)

    def init_display_formatter(self) -> None:
        self.display_formatter = display.Formatter(parent=self)
        self.configurables.append(self.display_formatter)

    def enable_gui(self, gui=None) -> None:
        pass

    def enable_matplotlib(self, gui=None):
        return None, "agg"

    def debugger(self, force=False) -> None:
        refusals.no_debugger()

    def _format_exception_for_storage(self, exception, filename=None, running_compiled_code=False) -> dict:
        """IPython keeps a formatted traceback per cell; ours is in the claim."""
        return {}

    # Errors

    def showtraceback(
        self, exc_tuple=None, filename=None, tb_offset=None, exception_only=False, running_compiled_code=False
    ) -> None:
        """The cell's own exception is in its claim. Others (%run, a nested cell) are printed."""
        error = sys.exc_info()[1]
        if exc_tuple is not None or error is None or (running_compiled_code and self.nested == 0):
            return
        if exception_only or self.nested < 0:
            return
        name, value = errors.name_of(error), errors.value_of(error)
        print(errors.traceback_of(error, name, value), file=sys.stderr)

    def showsyntaxerror(self, filename=None, running_compiled_code=False) -> None:
        if self.nested > 0:
            self.showtraceback()

    def showindentationerror(self) -> None:
        self.showsyntaxerror()

    # Running

    def should_run_async(self, raw_cell: str, *, transformed_cell: str | None = None, preprocessing_exc_tuple=None) -> bool:
        """No other words make a coroutine of a cell; IPython would compile each once more to find out."""
        maybe = transformed_cell is None or "await" in transformed_cell or "async" in transformed_cell
        return maybe and super().should_run_async(
            raw_cell, transformed_cell=transformed_cell, preprocessing_exc_tuple=preprocessing_exc_tuple
        )

    def _tee(self, channel: str):
        """IPython would keep all that is printed in a session, in its memory."""
        return _NOTHING_KEPT

    def run_cell(self, *args, **kwargs):
        self.nested += 1
        try:
            return super().run_cell(*args, **kwargs)
        finally:
            self.nested -= 1

    async def run_ast_nodes(self, *args, **kwargs):
        try:
            return await super().run_ast_nodes(*args, **kwargs)
        finally:
            if self.nested <= 0:
                self.after_code()

    def run(self, cell: Cell) -> BaseException | None:
        """-> what the cell raised, if anything"""
        self._number(cell.number)
        self.nested = -1
        result = Shell.run_cell(self, cell.code, store_history=True)
        error = result.error_in_exec if result.error_before_exec is None else result.error_before_exec
        return _exit_is_no_error(error) if isinstance(error, SystemExit) else error

    def _number(self, number: int) -> None:
        """Out[n] and In[n] by the session's numbers, also after a reset."""
        self.execution_count = number
        history = self.history_manager
        history.input_hist_parsed.extend([""] * (number - len(history.input_hist_parsed)))
        history.input_hist_raw.extend([""] * (number - len(history.input_hist_raw)))

    def forget_all(self) -> None:
        """As new: no variables, no history."""
        self.reset(new_session=True)
        for name in ("_exit_code", "_dh"):
            self.user_ns.pop(name, None)
        self.init_user_ns()
        for history in (self.history_manager.input_hist_parsed, self.history_manager.input_hist_raw):
            history[:] = [""]
        self.compile.reset_compiler_flags()

    # Commands

    def system(self, command: str) -> None:
        command = self.installers.shell(self.var_expand(command, depth=1))
        self.user_ns["_exit_code"] = magics.run_shell(command)[0]

    system_piped = system_raw = system

    def getoutput(self, cmd, split=True, depth=0):
        command = self.installers.shell(self.var_expand(cmd, depth=depth + 1))
        out = magics.run_shell(command, stdout=-1)[1]
        return SList(out.splitlines()) if split else LSString(out)


def _exit_is_no_error(error: SystemExit) -> SystemExit | None:
    """exit() and sys.exit(0) end a cell well; a status or a message says that something failed."""
    current.note(refusals.EXIT_NOTE.format("exit()"))
    return error if error.code not in (None, 0, False) else None


def _config() -> Config:
    config = Config()
    config.HistoryManager.enabled = False
    config.HistoryManager.hist_file = ":memory:"
    config.InteractiveShell.colors = "nocolor"
    config.InteractiveShell.xmode = "Plain"
    config.InteractiveShell.warn_venv = False
    config.InteractiveShell.show_rewritten_input = False
    return config


def shell() -> Shell:
    """The process's shell; made on first use, which is in the zygote."""
    if not Shell.initialized():
        Shell.instance(refusals.Installers(current.note))
        Shell.instance().installers.install()
    return Shell.instance()


def user_path(path: list[str], folder: str) -> list[str]:
    """The data folder last: modules lying there can be imported, and never hide a library's."""
    own = {"", ".", folder, os.curdir}
    return [p for p in path if p not in own] + [folder]
