# What does not come back by itself (section 4, 57-65, 73, 79). Each has a session that is renewed after it.
# %% 57 a loop -> !timeout [timeout=250]
while True: pass
# %% 57b a loop that ignores interrupts -> !timeout [timeout=250]
while True:
    try:
        while True: pass
    except BaseException: pass
# %% 57c a loop behind finally and with -> !timeout [timeout=250]
class Stay:
    def __enter__(self): return self
    def __exit__(self, *a): return True
while True:
    with Stay():
        try:
            while True: pass
        finally:
            continue
# %% 58 a loop in C -> !timeout [timeout=250]
sum(range(10**12))
# %% 58b signals that are ignored -> !timeout [timeout=250]
for s in (1, 2, 3, 10, 12, 13, 14, 15, 24, 25):
    signal.signal(s, signal.SIG_IGN)
signal.pthread_sigmask(signal.SIG_BLOCK, range(1, 65))
10 ** 10**8
# %% 58c a pattern that never ends -> !timeout [timeout=250]
import re
re.match("(a+)+$", "a" * 64 + "b")
# %% 58d machine code -> !timeout [timeout=250 x86_64]
run_bytes(bytes([0xEB, 0xFE]))
# %% 58e a sort that asks for ever -> !timeout [timeout=250]
class Never:
    def __lt__(self, other):
        while True:
            try: time.sleep(1)
            except BaseException: pass
sorted([Never(), Never()])
# %% 59 sleep -> !timeout [timeout=250]
time.sleep(10**6)
# %% 59b a read that nobody answers -> !timeout [timeout=250]
r, w = os.pipe()
os.read(r, 1)
# %% 59c stopped -> !timeout [timeout=250]
os.kill(os.getpid(), 19)
# %% 59d waiting for an interrupt that is blocked -> !timeout [timeout=250]
signal.pthread_sigmask(signal.SIG_BLOCK, {2})
while True: signal.pause()
# %% 59e waiting for a lock of a thread that is gone -> !timeout [timeout=250]
lock = threading.Lock()
lock.acquire()
try: lock.acquire()
finally: lock.acquire()
# %% 59f a child that holds the pipes -> !timeout [timeout=250]
subprocess.run(["sleep", "1000"])
# %% 59g waiting in a frozen vfork -> !timeout [timeout=250]
libc.vfork.restype = ctypes.c_int
subprocess.Popen(["sh", "-c", "kill -STOP $$; sleep 100"]).wait()
# %% 60c a fork bomb -> !timeout [timeout=400]
while True:
    try: os.fork()
    except BaseException: pass
# %% 60d a fork bomb of shells -> !timeout ok [timeout=400]
subprocess.run(["bash", "-c", ":() { : | : & }; :; while :; do sleep 1; done"], stderr=subprocess.DEVNULL)
# %% 60e a fork bomb that leaves its group and session -> !timeout [timeout=400 groups]
# Without groups: Neighbourhood in test_attacks_protocol.py.
while True:
    try:
        if os.fork() == 0:
            os.setsid()
            os.setpgid(0, 0)
    except BaseException: pass
# %% 60f a fork bomb that shouts -> !timeout limit [timeout=400]
while True:
    try: os.fork()
    except BaseException as e: print(e, file=sys.stderr, flush=True)
# %% 60g a bomb of threads that never end -> !timeout ok oom [timeout=400]
def spin():
    while True:
        try: threading.Thread(target=spin).start()
        except BaseException: pass
spin()
# %% 60h a bomb by programs -> !timeout ok [timeout=400]
while True:
    try: subprocess.Popen([sys.executable, "-I", "-S", "-c", "while True: pass"])
    except BaseException: pass
# %% 60i a race with the killing -> !timeout [timeout=500]
if os.fork() == 0:
    import signal
    for s in range(1, 32):
        if s not in (9, 19): signal.signal(s, signal.SIG_IGN)
    while True:
        if os.fork() > 0: os._exit(0)
while True:
    try: time.sleep(1)
    except BaseException: pass
# %% 63 a balloon -> !oom ok [timeout=15000]
held = []
while True: held.append(b"x" * (1 << 22))
# %% 63b a balloon by mmap -> !oom ok crash [timeout=15000]
held = []
while True:
    held.append(mmap.mmap(-1, 32 << 20))
    for i in range(0, 32 << 20, 4096): held[-1][i] = 1
# %% 63c a balloon by many -> !oom ok timeout [timeout=1500]
for _ in range(8):
    if os.fork() == 0:
        held = []
        while True: held.append(b"x" * (1 << 22))
time.sleep(0.8)
# %% 63d a balloon that is shared -> !oom ok crash [timeout=15000]
m = mmap.mmap(-1, 2 << 30)
for i in range(0, 2 << 30, 4096): m[i] = 1
# %% 63e a balloon without a name -> !oom limit crash ok [timeout=15000 groups]
held = []
for _ in range(8):
    fd = os.memfd_create("x")
    held.append(fd)
    for _ in range(200): os.write(fd, bytes(1 << 20))
# %% 63f a balloon of page tables -> !oom ok crash timeout [timeout=5000 groups]
m = mmap.mmap(-1, 1 << 42, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | 0x4000, prot=1)
for i in range(0, 1 << 42, 2 << 20): m[i]
# %% 63g a balloon of buffers -> !oom ok timeout [timeout=5000]
pairs = []
try:
    while True:
        a, b = socket.socketpair()
        a.setblocking(False)
        pairs.append((a, b))
        try:
            while True: a.send(bytes(60000))
        except BlockingIOError: pass
except OSError: print("EMFILE")
# %% 65 an array beyond all memory -> !oom ok [timeout=15000]
import numpy
a = numpy.empty(12_500_000_000)
a[::512] = 1
# %% 73 printing without end -> !limit [timeout=15000]
while True: print("x" * 65536)
# %% 73b one line without end -> !limit [timeout=15000]
while True: sys.stdout.write("x" * 65536)
# %% 73c zeros and broken text -> !limit [timeout=15000]
while True: os.write(1, b"\0\xff\xfe\xe2\x82\x1b[2J\x07" * 4096)
# %% 73d by a child that stays behind -> !ok limit [reset]
if os.fork() == 0:
    try:
        while True: os.write(1, b"x" * 4096)
    except BaseException: os._exit(0)
time.sleep(0.05)
# %% 74 both streams at once -> !limit [timeout=15000]
while True:
    os.write(1, b"o" * 4096)
    os.write(2, b"e" * 4096)
# %% 74b a stream that is made nonblocking and full -> !ok limit
os.set_blocking(1, False)
try:
    while True: os.write(1, bytes(65536))
except BlockingIOError: pass
# %% 79 abort -> !crash 6
os.abort()
# %% 79b a null pointer -> !crash 11
ctypes.string_at(0)
# %% 79c a null write -> !crash 11
ctypes.memset(0, 1, 1)
# %% 79d its own exit -> !crash
os._exit(0)
# %% 79e its own exit by the system call -> !crash
# calls: exit_group
libc.syscall(SYS["exit_group"], 7)
# %% 79f its own kill -> !crash 9
os.kill(os.getpid(), 9)
# %% 79g its own group's kill -> !crash 9
os.killpg(0, 9)
# %% 79h a smashed stack -> !crash
b = ctypes.create_string_buffer(8)
ctypes.memset(ctypes.addressof(b) - 512, 0x41, 1 << 20)
ctypes.memmove(id(sys), bytes(4096), 4096)
sys.stdout.write("x")
# %% 79i a jump into nowhere -> !crash
ctypes.CFUNCTYPE(ctypes.c_int)(0x4141414141)()
# %% 79j a privileged instruction -> !crash 11 4 [x86_64]
run_bytes(bytes([0xF4, 0xC3]))
# %% 79k a division by zero -> !crash 8 [x86_64]
run_bytes(bytes([0x31, 0xC9, 0x31, 0xD2, 0xF7, 0xF1, 0xC3]))
# %% 79l a trap -> !crash 5 [x86_64]
run_bytes(bytes([0xCC, 0xC3]))
# %% 79m all real-time signals -> !crash
for s in range(34, 65): os.kill(os.getpid(), s)
# %% 79n all descriptors closed -> !crash limit
os.closerange(0, 1024)
os._exit(1)
# %% 79o only the channel closed -> !limit crash
os.close(3)
time.sleep(30)
# %% 79p another in the head's place -> !crash limit
os.execv("/usr/bin/sleep", ["sleep", "1"])
# %% 79q another that keeps the channel -> !crash limit timeout [timeout=1500]
os.set_inheritable(3, True)
os.execv("/usr/bin/sleep", ["sleep", "100"])
# %% 79r only its first thread ends -> !crash timeout limit [timeout=800]
# calls: exit
threading.Thread(target=time.sleep, args=(100,)).start()
libc.syscall(SYS["exit"], 0)
# %% 79s a process that is its own parent no more -> !ok crash
for _ in range(20):
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0: time.sleep(1000)
        os._exit(0)
