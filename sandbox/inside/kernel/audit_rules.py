"""What the code check calls risky: names of calls, by kind. Data of audit.py.

A name ends the search at its longest match: a whole path in CALLS first, then SAFE, then a folder of paths in TREES.
"""

import builtins

__builtins__ = dict(vars(builtins))

SHELL, PROCESS, CONTROL, NETWORK = "shell", "process", "process control", "network"
CODE, NATIVE, KERNEL, DELETE, UNCHECKED = "built code", "native code", "kernel files", "deletes a tree", "unchecked"

WORDS = {
    SHELL: "runs a shell command",
    PROCESS: "starts a program or process",
    CONTROL: "acts on processes, limits or privileges",
    NETWORK: "uses the network, which is not there",
    CODE: "runs code that is built while it runs",
    NATIVE: "calls native code",
    KERNEL: "looks at files of the kernel",
    DELETE: "deletes a folder with all that is in it",
    UNCHECKED: "could not be checked",
}


def _named(kind: str, module: str, names: str) -> dict[str, str]:
    return {f"{module}.{name}": kind for name in names.split()}


CALLS = (
    _named(SHELL, "os", "system popen")
    | _named(SHELL, "subprocess", "getoutput getstatusoutput")
    | _named(SHELL, "commands", "getoutput getstatusoutput")
    | _named(SHELL, "asyncio", "create_subprocess_shell")
    | _named(SHELL, "asyncio.subprocess", "create_subprocess_shell")
    | _named(SHELL, "pty", "spawn")
    | _named(SHELL, "get_ipython()", "system getoutput system_raw system_piped")
    | _named(PROCESS, "subprocess", "run Popen call check_call check_output")
    | _named(PROCESS, "asyncio", "create_subprocess_exec")
    | _named(PROCESS, "asyncio.subprocess", "create_subprocess_exec")
    | _named(PROCESS, "os", "execl execle execlp execlpe execv execve execvp execvpe posix_spawn posix_spawnp startfile")
    | _named(PROCESS, "os", "spawnl spawnle spawnlp spawnlpe spawnv spawnve spawnvp spawnvpe fork forkpty")
    | _named(PROCESS, "pty", "fork")
    | _named(CONTROL, "os", "kill killpg abort _exit nice setuid seteuid setgid setegid setreuid setregid setresuid setresgid")
    | _named(CONTROL, "os", "setgroups initgroups setsid setpgid setns unshare chroot pidfd_open sched_setscheduler setpriority")
    | _named(CONTROL, "os", "register_at_fork mknod mkfifo")
    | _named(CONTROL, "signal", "pidfd_send_signal pthread_kill raise_signal")
    | _named(CONTROL, "resource", "setrlimit prlimit")
    | _named(NETWORK, "asyncio", "open_connection start_server open_unix_connection start_unix_server")
    | _named(NETWORK, "urllib", "urlopen urlretrieve")
    | _named(CODE, "builtins", "eval exec compile")
    | _named(CODE, "marshal", "loads load")
    | _named(CODE, "types", "CodeType FunctionType")
    | _named(CODE, "code", "interact InteractiveInterpreter InteractiveConsole")
    | _named(CODE, "runpy", "run_path run_module")
    | _named(NATIVE, "numpy.ctypeslib", "load_library")
    | _named(DELETE, "shutil", "rmtree")
    | _named(DELETE, "os", "removedirs")
)

TREES = {
    "ctypes": NATIVE,
    "_ctypes": NATIVE,
    "cffi": NATIVE,
    "distutils.ccompiler": NATIVE,
    "socket": NETWORK,
    "socketserver": NETWORK,
    "ssl": NETWORK,
    "requests": NETWORK,
    "httpx": NETWORK,
    "aiohttp": NETWORK,
    "urllib3": NETWORK,
    "urllib.request": NETWORK,
    "http.client": NETWORK,
    "http.server": NETWORK,
    "xmlrpc": NETWORK,
    "ftplib": NETWORK,
    "smtplib": NETWORK,
    "imaplib": NETWORK,
    "poplib": NETWORK,
    "telnetlib": NETWORK,
    "nntplib": NETWORK,
    "websocket": NETWORK,
    "websockets": NETWORK,
    "paramiko": NETWORK,
    "pexpect": PROCESS,
    "plumbum": PROCESS,
    "sh": SHELL,
}
SAFE = frozenset({"socket.gethostname", "socket.AF_UNIX", "socket.socketpair", "urllib.request.pathname2url", "ctypes.sizeof", "ctypes.util"})

# Modules that are the same under another name.
SAME = {"posix": "os", "nt": "os", "_posixsubprocess": "subprocess", "_socket": "socket", "_signal": "signal", "__builtin__": "builtins", "__builtins__": "builtins"}

# Functions that are objects of a class of their own.
OBJECTS = {"_RmtreeType": "shutil.rmtree"}
BUILTINS = frozenset({"eval", "exec", "compile", "__import__", "getattr", "globals", "locals", "vars", "open"})
MAGICS = {"bash": SHELL, "sh": SHELL, "sx": SHELL, "system": SHELL, "script": SHELL, "perl": SHELL, "ruby": SHELL}
KERNEL_PATHS = ("/proc", "/sys", "/dev")
HARMLESS_PATHS = ("/dev/null", "/dev/shm", "/dev/stdin", "/dev/stdout", "/dev/stderr", "/dev/urandom", "/dev/random", "/dev/zero", "/dev/full")
# Who is given an address to go there; others may write one on a chart.
READERS = ("read_", "scan_", "open", "urlopen", "urlretrieve", "load", "fetch", "get", "post", "put", "imread", "download", "connect")
URLS = ("http://", "https://", "ftp://", "ftps://", "s3://", "gs://", "ws://", "wss://")

# A cell without one of these words has nothing to find: most cells are done with here.
_ROADS = "getattr __import__ import_module attrgetter methodcaller modules __dict__ __builtins__ builtins get_ipython posix"
TELLTALES = frozenset(
    [path.rpartition(".")[2] for path in CALLS] + [m.partition(".")[0] for m in TREES] + list(SAME) + _ROADS.split() + ["partial"]
)
MARKS = ("/proc", "/sys", "/dev", "://", "!", "%")
