# What is left lying about for whoever comes next in the same session: the kernel, its helpers, a new interpreter (section 4, 85, 95).
# Judged as the kind "interpreter" is: a new interpreter is asked for after each, and must be sound.
# %% 86 an audit hook that refuses everything, and can't be taken out -> !ok limit crash timeout [timeout=700 once]
def refuse(event, args): raise RuntimeError("no " + event)
sys.addaudithook(refuse)
# %% 86b a monitor of the interpreter that raises at every line -> !ok limit crash timeout [timeout=700 once]
m = sys.monitoring
m.use_tool_id(3, "mine")
def each(*a): raise SystemExit
for event in (m.events.PY_START, m.events.LINE, m.events.CALL): m.register_callback(3, event, each)
m.set_events(3, m.events.PY_START | m.events.LINE | m.events.CALL)
# %% 86c exceptions thrown into the first thread from another -> !ok limit crash timeout [timeout=700 once]
def throw():
    main = threading.main_thread().ident
    while True:
        ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(main), ctypes.py_object(SystemExit))
        time.sleep(0.0005)
threading.Thread(target=throw, daemon=True).start()
# %% 86d interrupts without end between cells -> !ok limit crash timeout error [timeout=700 once]
def interrupt():
    while True:
        signal.pthread_kill(threading.main_thread().ident, signal.SIGINT)
        time.sleep(0.0005)
threading.Thread(target=interrupt, daemon=True).start()
# %% 86e wake-ups of signals written into the channel -> !ok limit crash timeout [timeout=700 once]
os.set_blocking(3, False)
signal.set_wakeup_fd(3, warn_on_full_buffer=False)
signal.signal(signal.SIGALRM, lambda *a: None)
signal.setitimer(signal.ITIMER_REAL, 0.01, 0.01)
time.sleep(0.1)
# %% 86f dumps of the interpreter written into the channel -> !ok limit crash timeout [timeout=700 once]
import faulthandler
faulthandler.register(signal.SIGUSR1, file=3, all_threads=True)
os.kill(os.getpid(), signal.SIGUSR1)
faulthandler.dump_traceback_later(0.05, repeat=True, file=3)
time.sleep(0.2)
# %% 86g the finders of modules -> !ok limit crash timeout [timeout=700 once]
class Finder:
    def __getattr__(self, name): raise SystemExit
    def find_spec(self, *a): raise SystemExit
sys.meta_path[:] = [Finder()]
sys.path_hooks[:] = [Finder()]
sys.path_importer_cache.clear()
sys.path[:] = [object(), b"x", None, "/mnt/data"]
# %% 86h modules that are something else -> !ok limit crash timeout [timeout=700 once]
class Odd:
    def __getattr__(self, name): raise SystemExit
for name in list(sys.modules):
    if name.split(".")[0] in ("json", "pickle", "copyreg", "io", "select", "random", "warnings", "linecache", "traceback", "matplotlib", "pandas", "numpy", "kernel", "gc", "ast", "stat"):
        sys.modules[name] = Odd()
# %% 86i codecs and their handlers of errors -> !ok limit crash timeout [timeout=700 once]
import codecs
for name in ("strict", "replace", "ignore", "backslashreplace", "surrogateescape", "surrogatepass", "xmlcharrefreplace"):
    try: codecs.register_error(name, lambda e: ("x" * (1 << 20), e.start))
    except ValueError: pass
def search(name): raise SystemExit
codecs.register(search)
"\ud800 text"
# %% 86j what writes tracebacks and warnings -> !ok limit crash timeout [timeout=700 once]
import linecache, traceback, warnings, copyreg, tokenize, inspect
def loop(*a, **k):
    while True: pass
linecache.getlines = linecache.getline = linecache.updatecache = linecache.checkcache = loop
traceback.format_exception = traceback.print_exc = traceback.TracebackException = loop
warnings.showwarning = warnings.formatwarning = warnings.warn = loop
copyreg.dispatch_table.clear()
tokenize.generate_tokens = inspect.getsource = loop
1 / 0
# %% 86k a handler for every exception -> !ok limit crash timeout [timeout=700 once]
def handler(shell, etype, value, tb, tb_offset=None): raise SystemExit
get_ipython().set_custom_exc((BaseException,), handler)
1 / 0
# %% 86l formatters of everything -> !ok limit crash timeout [timeout=700 once]
def forever(*a):
    while True: pass
for f in get_ipython().display_formatter.formatters.values():
    for kind in (int, str, list, dict, type(None), object): f.for_type(kind, forever)
7
# %% 86m names that are no names -> !ok limit crash [timeout=3000 once]
g = globals()
g["\ud800"] = g["a b"] = g[""] = g["x" * (1 << 20)] = g["\u202e"] = g["\0"] = g["\n"] = 1
try: g[7] = g[None] = g[(1, 2)] = g[b"x"] = 1
except TypeError: pass
class Name(str):
    def __hash__(self): return 1
    def __eq__(self, other): raise SystemExit
    def __str__(self): raise SystemExit
    __repr__ = __format__ = startswith = __str__
g[Name("n")] = 1
# %% 86n variables that answer every question with a loop -> !ok limit crash timeout [timeout=2000 once]
class Meta(type):
    def __instancecheck__(cls, x): raise SystemExit
    def __subclasscheck__(cls, x): raise SystemExit
    def __getattribute__(cls, name): raise SystemExit
class Tar(metaclass=Meta):
    def __getattribute__(self, name): raise SystemExit
    def __eq__(self, other): raise SystemExit
    def __hash__(self): raise SystemExit
    def __bool__(self): raise SystemExit
    def __len__(self): return -1
    def __sizeof__(self): return -1
    def __repr__(self): raise SystemExit
    def __iter__(self): return self
    def __next__(self): return self
    def __reduce_ex__(self, p): raise SystemExit
    def __del__(self): raise SystemExit
tars = [Tar() for _ in range(10)]
tar = tars[0]
# %% 86o results of kinds that nobody has heard of -> !ok limit crash timeout [timeout=3000 once]
class Bundle:
    def _repr_mimebundle_(self, **k):
        return {"text/plain": "\ud800\0\x1b[2J", "text/html": b"\xff" * 100, "a/b\r\nc: d": {"x": float("nan"), 1: 2, None: object()}, 7: 7, "application/json": [[]] * 10, "image/png": b"not", "text/latex": "$" * (1 << 20)}
Bundle()
# %% 86p a bundle that contains itself -> !ok limit crash timeout [timeout=3000 once]
class Self:
    def _repr_mimebundle_(self, **k):
        x = {}
        x["text/plain"] = x
        return x
Self()
# %% 86q ten thousand displays -> !ok limit timeout [timeout=8000 once]
from IPython.display import display, clear_output, update_display
for i in range(10000): display(i, display_id=str(i))
# %% 86r pictures beyond all measure -> !ok limit crash timeout oom [timeout=8000 once]
import matplotlib.pyplot as plt
f = plt.figure(figsize=(10000, 10000), dpi=100)
f.add_subplot().plot([1, 2])
for _ in range(300): plt.figure(figsize=(1, 1))
# %% 86s figures that raise and loop when they are drawn -> !ok limit crash timeout [timeout=3000 once]
import matplotlib.pyplot as plt
class F(type(plt.figure())):
    def savefig(self, *a, **k): raise SystemExit
    def draw(self, *a, **k): raise SystemExit
    canvas = property(lambda self: 1 / 0, lambda self, v: None)
plt.close("all")
plt.gcf().__class__ = F
plt.rcParams["savefig.dpi"] = "figure"
# %% 86t every descriptor taken, and kept -> !ok limit crash
mine = []
try:
    while True: mine.append(os.open("/dev/null", 0))
except OSError: pass
# %% 86u every process taken, and kept past the cell -> !ok limit crash timeout [timeout=8000]
def leave():
    for _ in range(200):
        try: pid = os.fork()
        except OSError: break
        if pid == 0:
            os.setsid()
            try:
                for n in (0, 1, 2, 3): os.close(n)
            except OSError: pass
            while True: time.sleep(1000)
leave()
# %% 86v every disk full, and left so -> !ok limit crash
for place in ("/mnt/data/fill", "/tmp/fill", "/dev/shm/fill"):
    n = 0
    try:
        while True:
            with open(f"{place}{n}", "wb", buffering=0) as f:
                n += 1
                while f.write(bytes(1 << 20)) == 1 << 20: pass
                if f.tell() < 100 << 20: break
    except OSError: pass
# %% 86w and swept up again -> done
for top in ("/mnt/data", "/tmp", "/dev/shm"):
    for n in os.listdir(top):
        if n.startswith("fill"): os.unlink(f"{top}/{n}")
print("done")
# %% 86x no more folders and files to be had -> !ok limit crash
for top in ("/tmp", "/mnt/data"):
    try:
        for i in range(20000): os.mkdir(f"{top}/i{i}")
    except OSError: pass
# %% 86y and put away -> done
for top in ("/tmp", "/mnt/data"):
    for n in os.listdir(top):
        if n[0] == "i" and n[1:].isdigit(): os.rmdir(f"{top}/{n}")
print("done")
# %% 86z an alarm that ends the head when nothing runs -> !ok
signal.signal(signal.SIGALRM, signal.SIG_DFL)
signal.setitimer(signal.ITIMER_REAL, 0.2)
# %% 87b a timer that ends the head with a signal nobody can catch -> !ok
t = ctypes.c_void_p()
libc.timer_create(1, struct.pack("QiiI44x", 0, 9, 0, 0), ctypes.byref(t))
libc.timer_settime(t, 0, struct.pack("qqqq", 0, 0, 0, 200_000_000), None)
# %% 87c a stop that comes when nothing runs, and a start -> !ok
head = os.getpid()
if os.fork() == 0:
    time.sleep(0.1)
    os.kill(head, signal.SIGSTOP)
    time.sleep(0.3)
    os.kill(head, signal.SIGCONT)
    os._exit(0)
# %% 87d locks that no copy gets back -> !ok limit crash timeout [timeout=3000]
# Threads hold what the interpreter itself needs while it is forked: imports, streams, logging, memory, the random numbers.
import _imp, gc, logging, random
def hold(lock):
    lock.acquire()
    time.sleep(1000)
root = logging.getLogger()
logging.basicConfig()
for lock in (logging._lock, root.handlers[0].lock if root.handlers else threading.RLock(), random.Random()._inst if hasattr(random.Random(), "_inst") else threading.Lock()):
    threading.Thread(target=hold, args=(lock,), daemon=True).start()
def churn():
    while True: [bytearray(100000) for _ in range(10)]
for _ in range(3): threading.Thread(target=churn, daemon=True).start()
def importing():
    while True:
        _imp.acquire_lock()
        time.sleep(0.001)
        _imp.release_lock()
threading.Thread(target=importing, daemon=True).start()
