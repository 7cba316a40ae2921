"""The head: the process that runs every cell of a session.

One request at a time: receive, run with the gate open, mend what the cell broke, draw its figures, answer.
After an answer the keeper asks for a copy (copies.py); a copy that is woken goes on in the loop below.
Between requests it waits with all signals open, so that a person's timers go on; what their handlers raise
there is printed and forgotten. The head ends when the keeper closes the channel, and by nothing that a cell
can raise.
"""

import builtins
import contextlib
import gc
import os
import random
import select
import sys
from collections.abc import Callable

import numpy

from . import audit, errors, frames, hot, ops, oversights
from .cell import Cell, current
from .copies import Copies
from .results.figures import figures
from .folder import Folder
from .formulas import Formulas
from .results.gallery import Gallery
from .gate import Gate, close_signals, open_signals
from .mend import Mender
from .shell import shell, user_path
from .streams import Streams

__builtins__ = dict(vars(builtins))

REHEARSED = ("x = 1\nx", "1 / 0")
CUT_SHORT = "drawing the figures was interrupted"
_exit, _close = os._exit, os.close


class Head:
    def __init__(self, channel: frames.Channel, data_dir: str):
        self._channel = channel
        self._data_dir = data_dir
        self._gate = Gate()
        self._streams = Streams()
        self._mender = Mender(self._gate, self._streams)
        self._shell = shell()
        self._shell.after_code = self._mend
        self._gallery = figures.gallery = Gallery(data_dir)
        self._formulas = Formulas(data_dir)
        self._folder = Folder(data_dir)
        self._copies = Copies(channel, self._streams, self._shell.user_ns, self._folder)
        self._poll = select.poll()
        self._poll.register(channel.fileno(), select.POLLIN)
        self._answers: dict[int, Callable[[dict, tuple[int, ...]], dict]] = {frames.CELL: self._cell, frames.CALL: self._call}

    def serve(self) -> None:
        self._gate.install()
        hot.touch()
        while True:
            self._wait()
            request = self._channel.receive()
            if request is None:
                return
            self._gate.forget()
            if request.type == frames.REHEARSE:
                self._rehearse()
                continue
            if request.type == frames.COPY:
                self._copies.leave(request)
                continue
            answer = _claim(self._answer(request))
            for fd in request.fds:
                _close(fd)
            self._channel.send(frames.CLAIM, request.request, answer)

    def _wait(self) -> None:
        while True:
            try:
                open_signals()
                self._poll.poll()
                close_signals()
                return
            except BaseException as error:  # a person's signal handler raised
                self._report(error)

    def _report(self, error: BaseException) -> None:
        try:
            name, value = errors.name_of(error), errors.value_of(error)
            print(errors.traceback_of(error, name, value), file=sys.stderr)
        except BaseException:
            pass

    def _answer(self, request: frames.Request) -> dict:
        answer = self._answers.get(request.type)
        if answer is None:
            raise frames.ProtocolError(f"frame type {request.type}")
        spec = frames.decode(request.payload)
        try:
            self._folder.settle()
            return answer(spec, request.fds)
        except frames.ProtocolError:
            raise
        except BaseException as error:  # ours, or a signal handler of the person's that raised in our code
            self._mend()
            return {"status": "error", "error": errors.undescribed(error)}

    def _rehearse(self) -> None:
        """Before it is anybody's: what a first cell would copy page by page is copied now."""
        for code in REHEARSED:
            _claim(self._cell({"number": 1, "code": code}, ()))
        self._shell.forget_all()
        current.cell = Cell()
        self._gate.forget()
        _fresh_randomness()

    # A cell

    def _cell(self, spec: dict, fds: tuple[int, ...]) -> dict:
        number, code = spec.get("number"), spec.get("code")
        if type(number) is not int or type(code) is not str or len(code) > frames.CODE_MAX:
            raise frames.ProtocolError("a cell needs a number and code")
        cell = current.cell = Cell(number, code, self._data_dir)
        for note in self._copies.take_notes():
            cell.note(note)
        found, refused = self._checked(cell, spec.get("audit", "off"))
        if refused:
            return _claim_of(cell, refused) | {"audit": found}
        self._gallery.begin()
        error = self._run(cell)
        self._mend()
        drawing_error = self._guarded(figures.finish)
        figures.forget()
        error = drawing_error if error is None else error
        self._guarded(self._gallery.deliver)
        self._guarded(self._formulas.look)
        described = self._look(cell) if error is None else self._describe(error, cell)
        self._mend()
        self._streams.flush()
        return _claim_of(cell, described) | {"figures": self._gallery.delivered, "same_as": self._gallery.same_as, "audit": found}

    def _checked(self, cell: Cell, mode: object) -> tuple[list[dict], dict | None]:
        """What the code check found, and the error of a cell that is not to run. A hint: what it misses the box holds."""
        if mode not in ("note", "refuse"):
            return [], None
        found = audit.check(cell.code, self._shell.user_ns, self._shell.transform_cell)
        if not found:
            return [], None
        if mode == "refuse":
            words = audit.refusal(found)
            return [f.claim() for f in found], {"name": "CodeRefused", "value": words, "traceback": f"CodeRefused: {words}", "line": found[0].line}
        cell.note(audit.note(found))
        return [f.claim() for f in found], None

    def _run(self, cell: Cell) -> BaseException | None:
        try:
            return self._gate.run(self._run_traced, cell)
        except BaseException as error:  # an interrupt in IPython's code, or what a cell did to it
            return error

    def _run_traced(self, cell: Cell) -> BaseException | None:
        self._mender.before_cell()
        return self._shell.run(cell)

    def _mend(self) -> None:
        for note in self._mender.after_cell():
            current.note(note)

    def _guarded(self, step: Callable[[], None]) -> KeyboardInterrupt | None:
        """A step towards the pictures. An interrupt ends it and the cell, not what was done before."""
        try:
            self._gate.run(step)
        except KeyboardInterrupt as error:
            current.note(CUT_SHORT)
            return error
        except Exception as error:
            current.note(f"figures could not be delivered: {errors.name_of(error)}: {errors.value_of(error)}")
        return None

    def _look(self, cell: Cell) -> None:
        with contextlib.suppress(BaseException):  # an interrupt takes the note, not the answer
            self._gate.run(oversights.look, cell, self._shell.user_ns)

    def _describe(self, error: BaseException, cell: Cell) -> dict:
        try:
            return self._gate.run(errors.describe, error, cell, self._shell.user_ns)
        except BaseException:
            return errors.undescribed(error)

    # Other requests

    def _call(self, spec: dict, fds: tuple[int, ...]) -> dict:
        current.cell = Cell(data_dir=self._data_dir)
        context = ops.Context(self._shell.user_ns, self._shell.user_ns_hidden, self._data_dir, fds)
        try:
            return {"status": "ok", "error": None, **self._gate.run(ops.run, context, spec)}
        except BaseException as error:
            return {"status": "error", "error": self._describe(error, current.cell)}
        finally:
            self._streams.flush()


TOO_LONG = {"name": "Error", "value": "what there was to be told is too long", "traceback": "", "line": None}


def _claim_of(cell: Cell, error: dict | None) -> dict:
    return {
        "status": "ok" if error is None else "error",
        "result": cell.result or None,
        "error": error,
        "figures": [],
        "same_as": {},
        "notes": cell.notes,
    }


def _claim(answer: dict) -> bytes:
    try:
        payload = frames.encode(answer)
    except (TypeError, ValueError) as error:
        answer = {"status": "error", "error": errors.undescribed(error)}
        payload = frames.encode(answer)
    if len(payload) > frames.CLAIM_MAX and answer.get("result"):
        answer["result"] = {"text/plain": "(the result is too long to be shown)"}
        payload = frames.encode(answer)
    if len(payload) > frames.CLAIM_MAX:  # the keeper would end the interpreter for it
        payload = frames.encode({"status": answer.get("status", "ok"), "error": answer.get("error") and TOO_LONG, "notes": [TOO_LONG["value"]]})
    return payload


def _fresh_randomness() -> None:
    """Every fork of the zygote has its own random numbers. Never after a person's first cell: a seed of theirs must hold."""
    random.seed()
    numpy.random.seed(numpy.frombuffer(os.urandom(64), dtype=numpy.uint32))


def _prepare(data_dir: str) -> None:
    os.environ.update(HOME=data_dir, MPLBACKEND="Agg")
    os.environ.setdefault("MPLCONFIGDIR", "/tmp/mpl")
    try:
        os.chdir(data_dir)
        os.makedirs("out", exist_ok=True)
    except OSError:  # what earlier cells made of the folder must not keep an interpreter from starting
        pass
    sys.argv = [""]
    sys.path[:] = user_path(sys.path, data_dir)
    _fresh_randomness()


def serve(sock_fd: int, data_dir: str = "/mnt/data", session: int = 0, hello: dict | None = None) -> None:
    """Serves until the channel is closed; ends the process. `hello`: sent as BOX_HELLO; None: the caller did."""
    status = 1
    try:
        close_signals()
        _prepare(data_dir)
        channel = frames.Channel(sock_fd, session)
        head = Head(channel, data_dir)
        gc.enable()
        if hello is not None:
            channel.send(frames.HELLO, 0, frames.encode(hello))
        head.serve()
        status = 0
    except (frames.ProtocolError, ConnectionError) as error:
        os.write(2, f"head: {error}\n".encode())
    finally:
        _exit(status)
