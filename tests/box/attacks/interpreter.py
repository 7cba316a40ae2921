# The interpreter turned against its harness (section 4, 85, 95). What such a program gets for itself does not matter: a
# neighbour's session and a new interpreter in the same box must be sound.
# %% 85 streams -> !ok limit crash
sys.stdout = sys.stderr = sys.__stdout__ = sys.__stderr__ = None
# %% 85b builtins -> !ok limit crash timeout [timeout=1500]
import builtins
for name in ("print", "len", "isinstance", "type", "open", "__import__", "getattr", "repr", "str", "compile", "exec", "__build_class__"):
    setattr(builtins, name, lambda *a, **k: None)
# %% 85c builtins removed -> !ok limit crash
import builtins
vars(builtins).clear()
# %% 85d codecs of the channel -> !ok limit crash timeout [timeout=1500]
import json
json.dumps = json.JSONEncoder.encode = lambda *a, **k: '{"status": "ok", "result": {"text/plain": "forged"}}'
json.loads = json.JSONDecoder.decode = lambda *a, **k: {"code": "1", "number": 1}
struct.pack = struct.unpack = struct.Struct = lambda *a, **k: b"x" * 20
socket.socket.send = socket.socket.recv = socket.socket.sendmsg = lambda *a, **k: b""
# %% 85e the operating system -> !ok limit crash timeout [timeout=1500]
for name in ("write", "read", "fork", "_exit", "kill", "dup2", "fstat", "getpid"):
    setattr(os, name, lambda *a, **k: 0)
# %% 85f the kernel's own modules -> !ok limit crash timeout [timeout=1500]
for name, module in list(sys.modules.items()):
    if name.startswith("kernel"):
        for key in list(vars(module)):
            if not key.startswith("__"): setattr(module, key, None)
# %% 85g its objects, found by the collector -> !ok limit crash timeout [timeout=1500]
import gc
for x in gc.get_objects():
    if type(x).__module__.startswith("kernel") and hasattr(x, "__dict__"):
        try: x.__dict__.clear()
        except BaseException: pass
# %% 85h its code objects -> !ok limit crash timeout [timeout=1500]
import gc, types
def nothing(*a, **k): return {}
for x in gc.get_objects():
    if isinstance(x, types.FunctionType) and (x.__module__ or "").startswith("kernel"):
        try: x.__code__ = nothing.__code__
        except BaseException: pass
# %% 85i tracing -> !ok limit crash timeout [timeout=1500]
def trace(frame, event, arg):
    frame.f_trace_opcodes = True
    if "kernel" in frame.f_code.co_filename and event == "line":
        try: frame.f_locals.clear()
        except BaseException: pass
    return trace
sys.settrace(trace)
sys.setprofile(lambda *a: None)
threading.settrace_all_threads(trace)
# %% 85j callbacks of the collector and audit hooks -> !ok limit crash timeout [timeout=1500]
import gc
gc.callbacks.append(lambda *a: 1 / 0)
sys.addaudithook(lambda event, args: None)
gc.set_threshold(1, 1, 1)
gc.freeze()
# %% 85k exits, hooks and finalisers -> !ok limit crash timeout [timeout=1500]
import atexit, weakref
atexit.register(lambda: print("at exit"))
sys.excepthook = sys.unraisablehook = sys.displayhook = lambda *a: 1 / 0
class Undead:
    def __del__(self): globals()["again"] = self
    def __repr__(self): raise SystemExit
u = Undead()
del u
Undead()
# %% 85l a result that lies about itself -> !ok
class Liar(str):
    def __repr__(self): return "42"
    def _repr_html_(self): return "<script>fetch('http://evil/')</script>"
    def __class_getitem__(cls, x): return cls
Liar("7")
# %% 85m a result without end -> !ok limit timeout oom [timeout=3000]
class Long:
    def __repr__(self): return "x" * (100 << 20)
Long()
# %% 85n a result that never comes -> !timeout ok [timeout=600]
class Slow:
    def __repr__(self):
        while True: pass
Slow()
# %% 85o an error that lies about itself -> !ok limit crash timeout [timeout=1500]
class Nasty(Exception):
    def __str__(self): raise self
    __repr__ = __str__
    __traceback__ = property(lambda self: 1 / 0)
    __class__ = property(lambda self: 1 / 0)
raise Nasty
# %% 85p an error without end -> !ok limit timeout crash [timeout=3000]
e = None
for _ in range(100000):
    n = Exception("x" * 100)
    n.__cause__ = e
    e = n
raise e
# %% 85q modules in the own folder -> !ok
for name in ("numpy.py", "json.py", "struct.py", "sitecustomize.py", "usercustomize.py", "encodings.py", "kernel.py", "matplotlibrc", ".pythonrc", "re.py", "os.py", "pickle.py"):
    open(name, "w").write("raise SystemExit('mine')\n" if name.endswith("py") else "backend: mine\n")
os.makedirs(".local/lib/python3.13/site-packages", exist_ok=True)
open(".local/lib/python3.13/site-packages/x.pth", "w").write("import os; os._exit(1)\n")
os.makedirs("/tmp/.ipython/profile_default/startup", exist_ok=True)
open("/tmp/.ipython/profile_default/startup/0.py", "w").write("import os; os._exit(1)\n")
# %% 85r the environment -> !ok
os.environ.clear()
os.environ.update(PYTHONPATH="/mnt/data", PYTHONSTARTUP="/mnt/data/x.py", LD_PRELOAD="/mnt/data/x.so", PYTHONHOME="/mnt/data", MPLBACKEND="mine", LC_ALL="zz_ZZ", TZ="Nowhere/Else")
time.tzset()
# %% 85s IPython itself -> !ok limit crash timeout [timeout=1500]
ip = get_ipython()
for name in ("run_cell", "user_ns", "showtraceback", "display_formatter", "input_transformer_manager", "events", "ast_node_interactivity"):
    try: setattr(ip, name, None)
    except BaseException: pass
# %% 85t its inputs, rewritten -> !ok limit crash timeout [timeout=1500]
ip = get_ipython()
ip.input_transformers_cleanup.append(lambda lines: ["while True: pass\n"])
ip.ast_transformers.append(type("T", (), {"visit": lambda self, node: None})())
ip.events.register("pre_run_cell", lambda *a: 1 / 0)
# %% 85u the channel taken by a thread -> !ok limit crash timeout [timeout=1500]
def take():
    while True:
        try: os.read(3, 65536)
        except BaseException: pass
for _ in range(4): threading.Thread(target=take, daemon=True).start()
time.sleep(0.2)
# %% 85v the channel swapped for one of its own -> !ok limit crash timeout [timeout=1500]
a, b = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
os.dup2(b.fileno(), 3)
# %% 85w the small integers and None -> !crash ok timeout limit [timeout=1500]
ctypes.memmove(id(256) + 24, struct.pack("I", 7), 4)
ctypes.memset(id(None), 0, 8)
# %% 85x every type made mutable -> !ok crash limit timeout [timeout=1500]
import gc
d = gc.get_referents(str.__dict__)[0]
d["encode"] = lambda self, *a: b"{}"
d = gc.get_referents(dict.__dict__)[0]
d["get"] = lambda self, *a: None
ctypes.pythonapi.PyType_Modified(ctypes.py_object(str))
ctypes.pythonapi.PyType_Modified(ctypes.py_object(dict))
# %% 95 recursion, switching and time -> !ok limit crash timeout [timeout=1500]
import faulthandler, locale
sys.setrecursionlimit(10**9)
sys.setswitchinterval(1e9)
faulthandler.dump_traceback_later(0.1, repeat=True)
try: locale.setlocale(locale.LC_ALL, "tr_TR.UTF-8")
except locale.Error: pass
os.umask(0o777)
# %% 95b signal handlers that raise -> !ok limit crash timeout [timeout=1500]
def raiser(*a): raise RuntimeError("from a handler")
for s in set(signal.valid_signals()) - {9, 19, 32, 33}:
    try: signal.signal(s, raiser)
    except (OSError, ValueError): pass
signal.setitimer(signal.ITIMER_REAL, 0.001, 0.001)
# %% 95c the working folder taken away -> !ok limit crash
os.makedirs("/mnt/data/here")
os.chdir("/mnt/data/here")
shutil.rmtree("/mnt/data/here")
# %% 95d its folder made unusable -> !ok limit crash [fresh]
for n in os.listdir("/mnt/data"):
    shutil.rmtree("/mnt/data/" + n, ignore_errors=True)
os.chmod("/mnt/data", 0)
# %% 95e code at each fork -> !ok limit crash timeout [timeout=1500]
os.register_at_fork(before=lambda: time.sleep(0.01), after_in_child=lambda: [__import__("threading").Thread(target=time.sleep, args=(60,)).start() for _ in range(3)],
                    after_in_parent=lambda: 1 / 0)
# %% 95f a fork that never returns in its copy -> !ok limit crash timeout [timeout=1500]
def loop():
    while True: pass
os.register_at_fork(after_in_child=loop)
# %% 95g a fork that never begins -> !ok limit crash timeout [timeout=1500]
os.register_at_fork(before=loop)
# %% 95h a lock that each fork needs -> !ok limit crash timeout [timeout=1500]
locked = threading.Lock()
locked.acquire()
os.register_at_fork(before=locked.acquire)
