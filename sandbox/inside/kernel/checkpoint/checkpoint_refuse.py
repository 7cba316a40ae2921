"""What can't be in a checkpoint, and why, in words for people.

Some of it pickle refuses by itself, but says "cannot pickle '_thread.lock' object". Some of it pickle would
take, and give back something that looks alive and is not: a Popen whose number is another process by then.
"""

# module and name of the type -> what it is: what became of it
KINDS: dict[tuple[str, str], str] = {
    ("builtins", "generator"): "a generator: it was running and cannot be kept",
    ("builtins", "async_generator"): "an asynchronous generator: it was running and cannot be kept",
    ("builtins", "coroutine"): "a coroutine: it was running or waiting to run, and cannot be kept",
    ("builtins", "frame"): "a stack frame: it ended with the old interpreter",
    ("builtins", "traceback"): "a traceback: its frames ended with the old interpreter",
    ("asyncio.events", "AbstractEventLoop"): "an event loop: it ended with the old interpreter",
    ("asyncio.futures", "Future"): "an asyncio future: what would have set it is gone",
    ("_asyncio", "Future"): "an asyncio future: what would have set it is gone",
    ("_asyncio", "Task"): "an asyncio task: it ended with the old interpreter",
    ("_thread", "lock"): "a lock that was held: who would release it is gone",
    ("_thread", "RLock"): "a lock that was held: who would release it is gone",
    ("threading", "Thread"): "a thread: it ended with the old interpreter",
    ("concurrent.futures._base", "Future"): "a future that was not done: what worked on it is gone",
    ("concurrent.futures._base", "Executor"): "a pool: its workers ended with the old interpreter",
    ("joblib.externals.loky.process_executor", "ProcessPoolExecutor"): "a pool: its workers ended with the old "
    "interpreter",
    ("multiprocessing.pool", "Pool"): "a pool: its workers ended with the old interpreter",
    ("multiprocessing.process", "BaseProcess"): "a child process: it ended with the old interpreter",
    ("multiprocessing.managers", "BaseManager"): "a manager: its process ended with the old interpreter",
    ("multiprocessing.managers", "BaseProxy"): "shared by a manager, whose process ended with the old interpreter",
    ("multiprocessing.synchronize", "SemLock"): "a lock between processes: they ended with the old interpreter",
    ("multiprocessing.queues", "Queue"): "a queue between processes: they ended with the old interpreter",
    ("multiprocessing.queues", "SimpleQueue"): "a queue between processes: they ended with the old interpreter",
    ("multiprocessing.connection", "_ConnectionBase"): "a pipe between processes: they ended with the old interpreter",
    ("multiprocessing.shared_memory", "SharedMemory"): "shared memory: it ended with the old box",
    ("subprocess", "Popen"): "a child process: it ended with the old interpreter",
    ("_socket", "socket"): "a socket: the connection is closed",
    ("selectors", "BaseSelector"): "a selector: what it waited for is gone",
    ("select", "epoll"): "a selector: what it waited for is gone",
    ("select", "poll"): "a selector: what it waited for is gone",
    ("sqlite3", "Connection"): "a database connection: connect again",
    ("sqlite3", "Cursor"): "a cursor of a database connection: connect again",
    ("sqlite3", "Row"): "a row of a database cursor: dict(row) can be kept",
    ("_duckdb", "DuckDBPyConnection"): "a duckdb connection: connect again",
    ("_duckdb", "DuckDBPyRelation"): "a duckdb relation: its connection is closed (`.df()` of it can be kept)",
    ("duckdb._relation", "DuckDBPyRelation"): "a duckdb relation: its connection is closed (`.df()` of it can be kept)",
    ("mmap", "mmap"): "memory mapped from a file: map it again",
    ("tempfile", "TemporaryDirectory"): "a temporary folder: it went with the old box",
    ("tempfile", "_TemporaryFileWrapper"): "a temporary file: it went with the old box",
    ("tempfile", "SpooledTemporaryFile"): "a temporary file: it went with the old box",
    ("_csv", "reader"): "a CSV reader: it was in the middle of its file",
    ("_csv", "writer"): "a CSV writer: make it again from its file",
    ("_contextvars", "Token"): "a token of a context variable: it belongs to the old interpreter",
    ("_contextvars", "Context"): "a context: it belongs to the old interpreter",
    ("ssl", "SSLContext"): "a TLS context: make it again",
    ("_hashlib", "HASH"): "a hash in progress: its state can't be read",
    ("lxml.etree", "_Element"): "an lxml element: etree.tostring(it) can be kept",
    ("lxml.etree", "_ElementTree"): "an lxml tree: etree.tostring(it) can be kept",
    ("os", "DirEntry"): "an entry of os.scandir: its .path can be kept",
    ("posix", "DirEntry"): "an entry of os.scandir: its .path can be kept",
    ("posix", "ScandirIterator"): "a listing of a folder in progress",
}


class Refused(Exception):
    """Not to be kept: the object, and what to say of it."""

    def __init__(self, value: object, what: str):
        super().__init__(what)
        self.value, self.what = value, what


def name_of(kind: type) -> tuple[str, str]:
    """As the type itself has it, whatever its metaclass makes of that."""
    module = type.__dict__["__module__"].__get__(kind)
    return str(module), str(type.__dict__["__qualname__"].__get__(kind))


def what_is(kind: type) -> str | None:
    """-> what to say of such an object; None: it may well be kept"""
    for base in type.__dict__["__mro__"].__get__(kind):
        found = KINDS.get(name_of(base))
        if found:
            return found
    return None
