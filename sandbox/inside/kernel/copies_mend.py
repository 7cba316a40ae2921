"""What is put right in a head that was a copy a moment ago: event loops, and libraries that a fork breaks."""

import asyncio
import builtins
import os
import selectors
import signal
import sys
import time
import types

__builtins__ = dict(vars(builtins))

PROBE_S = 0.2
_fork, _exit, _waitpid, _kill, _sleep, _now = os.fork, os._exit, os.waitpid, os.kill, time.sleep, time.monotonic
POLARS = (
    "polars does not work any more in this session, its threads are gone: what is in its frames can be had by "
    "`.to_dict(as_series=False)` and `.rows()`, `reset` makes a new interpreter"
)
# Tried without its threads: these answer, all others may wait for ever.
_POLARS_WORKS = frozenset(
    "to_dict to_dicts to_list rows row item iter_rows head tail limit slice clone serialize get_column get_columns "
    "to_series lazy is_empty estimated_size iter_columns rename alias".split()
)


def mend() -> list[str]:
    """-> notes"""
    _mend_loop()
    if not _was_used("polars") or _probe(_polars):
        return []
    _close_polars()
    return [POLARS]


def _mend_loop() -> None:
    """IPython's own loop: its tasks and timers are there, but epoll and the wake-up pipe were given up."""
    helpers = sys.modules.get("IPython.core.async_helpers")
    loop = getattr(helpers, "_asyncio_event_loop", None)
    if not isinstance(loop, asyncio.selector_events.BaseSelectorEventLoop) or loop.is_closed():
        return
    try:
        loop._selector.close()
        loop._selector = selectors.DefaultSelector()
        loop._ssock.close()
        loop._csock.close()
        loop._internal_fds -= 1
        loop._make_self_pipe()
    except Exception:  # played with: a new one is made at the next await
        helpers._asyncio_event_loop = None


def _was_used(name: str) -> bool:
    return name in sys.modules


def _polars() -> None:
    polars = sys.modules["polars"]
    polars.DataFrame({"a": [1, 2, 1]}).lazy().group_by("a").len().collect()


def _refuse(*args, **kwargs):
    raise RuntimeError(POLARS)


def _close_polars() -> None:
    """What needs the threads says so at once, instead of waiting for them until the cell's time is over."""
    polars = sys.modules["polars"]
    for name in ("DataFrame", "LazyFrame", "Series"):
        kind = getattr(polars, name, None)
        for method, value in list(getattr(kind, "__dict__", {}).items()):
            if isinstance(value, types.FunctionType) and not method.startswith("_") and method not in _POLARS_WORKS:
                setattr(kind, method, _refuse)
    for name in ("concat", "collect_all", "read_csv", "read_parquet", "read_json", "read_ndjson", "read_ipc", "read_excel", "align_frames"):
        if hasattr(polars, name):
            setattr(polars, name, _refuse)


def _probe(work) -> bool:
    """In a child, since no alarm gets through to a library that waits for a thread which is gone."""
    pid = _fork()
    if pid == 0:
        try:
            work()
        except BaseException:
            _exit(1)
        _exit(0)
    late = _now() + PROBE_S
    while _now() < late:
        done, status = _waitpid(pid, os.WNOHANG)
        if done:
            return status == 0
        _sleep(0.002)
    _kill(pid, signal.SIGKILL)
    _waitpid(pid, 0)
    return False
