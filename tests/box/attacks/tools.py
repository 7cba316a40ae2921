# The first cell of each attacked session: what the programs of this folder use. SYS is put in front by catalogue.py.
import array, ctypes, errno, fcntl, mmap, os, platform, resource, select, shutil, signal, socket, struct, subprocess, sys, threading, time

libc = ctypes.CDLL(None, use_errno=True)
ARM = platform.machine() == "aarch64"


def word(f, *args):
    """What came of it: a name of errno, of an exception, or "open"."""
    try:
        f(*args)
    except OSError as e:
        print(errno.errorcode.get(e.errno, type(e).__name__))
    except BaseException as e:
        print(type(e).__name__)
    else:
        print("open")


def call(name, *args):
    """The same of a bare system call, by name or number. What this architecture lacks is as good as refused."""
    number = SYS.get(name, name)
    if number < 0:
        print("EPERM")
        return -1
    ctypes.set_errno(0)
    args = [ctypes.c_ulong(a & (1 << 64) - 1) if isinstance(a, int) else a for a in args]
    r = libc.syscall(ctypes.c_long(number), *args)
    print("open" if r >= 0 else errno.errorcode.get(ctypes.get_errno(), "?"))
    return r


def run_bytes(code):
    """Machine code, called as a function."""
    global _code
    _code = mmap.mmap(-1, 4096, prot=7)
    _code.write(code)
    return ctypes.CFUNCTYPE(ctypes.c_long)(ctypes.addressof(ctypes.c_char.from_buffer(_code)))()


def in_child(f, *args):
    """The same in a child, for what can't be taken back; a deadly signal is printed by its number."""
    sys.stdout.flush()
    pid = os.fork()
    if pid == 0:
        try:
            f(*args)
            sys.stdout.flush()
        finally:
            os._exit(0)
    status = os.waitpid(pid, 0)[1]
    if os.WIFSIGNALED(status):
        print("signal", os.WTERMSIG(status))


def small(code, *args):
    """A fresh, small interpreter: forking it is cheap. Prints what it prints."""
    p = subprocess.run([sys.executable, "-I", "-S", "-c", code, *args], capture_output=True, text=True)
    print(p.stdout.strip() or p.stderr[-300:] or f"exit {p.returncode}")
