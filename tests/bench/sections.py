"""The sections of the benchmark. Each drives a keeper as the daemon does, and gives rows for the table."""
import os
import shutil
import statistics
import sys
import tempfile
import threading
import time
from pathlib import Path

import peers
from keeper import CHECKPOINT, MIB, OPEN, RESTORE, Keeper, Session, alive, descendants, wait_until
from table import Row

POOL = 16  # BOX_POOL
TERMS = {"memory_bytes": 512 * MIB, "disk_bytes": 64 * MIB, "pids": 128, "cpu_pct": 200, "copies": 8}
CHART = "import matplotlib.pyplot as plt\n_ = plt.plot([1, 2, 3])"
ENOUGH_MIB = 6 * 1024  # of memory that must stay available


def available_mib() -> float:
    line = next(x for x in Path("/proc/meminfo").read_text().splitlines() if x.startswith("MemAvailable:"))
    return int(line.split()[1]) / 1024


def ok(box: Session, code: str) -> float:
    """Milliseconds of a cell that has to be well."""
    a = box.cell(code, timeout_ms=60000)
    assert (a.verdict, a.error) == ("ok", None), a
    return a.ms


def rested(box: Session, code: str = "x = 1") -> float:
    """As of a person, who does not ask while the copy of the cell before is being made."""
    box.call("vars")  # comes after the copy
    return ok(box, code)


def heads(keeper: Keeper) -> int:
    return sum(name == "python3" for name in keeper.descendants().values())


class Opened:
    """A keeper for a section, and boxes in it."""

    def __init__(self) -> None:
        self.keeper = Keeper()

    def __enter__(self) -> "Opened":
        return self

    def __exit__(self, *_: object) -> None:
        self.keeper.stop()

    def box(self, **terms: int) -> Session:
        box = self.keeper.open(**(TERMS | terms))
        assert box.opened.verdict == "ok", box.opened
        return box

    def pool(self, boxes: int) -> None:
        """Asks for so many and waits for them, and a little for the quiet after."""
        before = heads(self.keeper)
        self.keeper.send(POOL, 0, 0, TERMS | {"boxes": boxes})
        late = time.monotonic() + 60
        while heads(self.keeper) < before + boxes and time.monotonic() < late:
            time.sleep(0.01)
        time.sleep(0.3)


def first_answer(opened: Opened) -> float:
    """From the wish for a session to the answer of its first cell."""
    opened.keeper.sessions += 1
    box, began = Session(opened.keeper, opened.keeper.sessions), time.perf_counter()
    opened.keeper.send(OPEN, box.id, 0, TERMS)
    request = box.begin_cell("1 + 1")
    opened_answer = opened.keeper.answer(box.id, 0)
    a = opened.keeper.answer(box.id, request)
    took = (time.perf_counter() - began) * 1e3
    assert (opened_answer.verdict, a.result) == ("ok", "2"), (opened_answer, a)
    box.close()
    return took


def start(options) -> list[Row]:
    rounds = max(3, options.rounds // 3)
    cold = [c for c in (peers.cold("1 + 1") for _ in range(5)) if c is not None]
    kernel = [k for k in (jupyter_start() for _ in range(3)) if k is not None]
    with Opened() as opened:
        first_answer(opened)
        demand = [first_answer(opened) for _ in range(rounds)]
        pooled = []
        for _ in range(rounds):
            opened.pool(1)
            pooled.append(first_answer(opened))
            opened.keeper.send(POOL, 0, 0, TERMS | {"boxes": 0})
    return [
        Row("first answer of a new session, from the pool", pooled, target=1, peer="bubblewrap, cold", peer_values=cold, least=100),
        Row("first answer of a new session, on demand", demand, target=10, peer="bubblewrap, cold", peer_values=cold, least=20),
        Row("bubblewrap and a cold interpreter, same imports", cold, note="peer"),
        Row("Jupyter kernel: start, same imports, first answer", kernel, note="peer"),
    ]


def jupyter_start() -> float | None:
    kernel = peers.jupyter()
    if kernel is None:
        return None
    kernel.cell(peers.IMPORTS)
    kernel.cell("1 + 1")
    took = (time.perf_counter() - kernel.began) * 1e3
    kernel.close()
    return took


def cell(options) -> list[Row]:
    kernel, beside = peers.jupyter(), {}
    codes = {"round trip of a small cell": "x = 1", "an expression": "x", "a DataFrame shown": "df", "a line chart": CHART}
    if kernel:
        kernel.cell("get_ipython().run_line_magic('matplotlib', 'inline')")  # it draws, too, and as large
        kernel.cell("import matplotlib; matplotlib.rcParams.update({'figure.figsize': (8, 5), 'figure.dpi': 144})")
        kernel.cell(peers.IMPORTS + "\nimport pandas as pd; df = pd.DataFrame({'a': range(9)}); x = 1")
        for what, code in codes.items():
            beside[what] = [kernel.cell(code) for _ in range(options.rounds)]
        kernel.close()
    targets = {"round trip of a small cell": (1, 2), "an expression": (1, None), "a DataFrame shown": (None, 1), "a line chart": (None, 1)}
    rows = []
    with Opened() as opened:
        box = opened.box()
        ok(box, "import pandas as pd; df = pd.DataFrame({'a': range(9)}); x = 1")
        for what, code in codes.items():
            rested(box, code)
            times = [rested(box, code) for _ in range(options.rounds)]
            most, least = targets[what]
            rows.append(Row(what, times, target=most, peer="Jupyter", peer_values=beside.get(what, []), least=least))
    return rows


def undo(options) -> list[Row]:
    times = []
    with Opened() as opened:
        box = opened.box()
        for i in range(max(3, options.rounds // 3)):
            ok(box, "x = 0")
            rested(box, f"x = {i}")
            box.call("vars")
            a = box.back()
            assert (a.verdict, a.state) == ("ok", "rolled_back"), a
            times.append(a.ms)
    return [Row("undo", times, target=10)]


def death(options) -> list[Row]:
    times = []
    with Opened() as opened:
        box = opened.box()
        ok(box, "x = 41")
        for _ in range(max(3, options.rounds // 3)):
            rested(box, "x = 41")
            box.call("vars")
            a = box.cell("import os; os.abort()")
            assert (a.verdict, a.state) == ("crash", "rolled_back"), a
            times.append(a.ms)
            assert box.cell("x").result == "41"
    return [Row("state back after a death", times, target=10)]


def copy(options) -> list[Row]:
    """What is asked at once after an answer waits for the copy of the state before; its own time says how long."""
    with Opened() as opened:
        box = opened.box()
        ok(box, "x = 1")
        small = [box.cell("x = 2").done["start_us"] / 1000 for _ in range(options.rounds)]
        ok(box, "import numpy, pandas; frame = pandas.DataFrame(numpy.ones((12_000_000, 1)))")
        large = [box.cell("x = 2").done["start_us"] / 1000 for _ in range(max(3, options.rounds // 3))]
    return [Row("copy ready after the answer", small, target=30), Row("copy ready, with a frame of 96 MB", large, target=30)]


def memory(options) -> list[Row]:
    n = 40
    with Opened() as opened:
        opened.box()
        before = available_mib()
        boxes = [opened.box() for _ in range(n)]
        time.sleep(1)
        idle = (before - available_mib()) / n
        for box in boxes:
            ok(box, CHART)
        for box in boxes:
            box.call("vars")
        charted = (before - available_mib()) / n
    kernel = peers.jupyter()
    bare = charts = []
    if kernel:
        kernel.cell("get_ipython().run_line_magic('matplotlib', 'inline')")
        kernel.cell(peers.IMPORTS)
        bare = [kernel.memory()]
        kernel.cell(CHART)
        charts = [kernel.memory()]
        kernel.close()
    return [
        Row("memory of the whole machine per idle session", [idle], "MiB", 4, "Jupyter, imported", bare, 10),
        Row("the same after a chart, its copy included", [charted], "MiB", 20, "Jupyter", charts),
    ]


SLEEPERS = "import os, time\nfor _ in range(200):\n    if os.fork() == 0: time.sleep(1000)\nprint('=begun', flush=True)\ntime.sleep(1000)"
WILD = "import os\nprint('=begun', flush=True)\nwhile True:\n    try:\n        os.fork()\n    except BaseException: pass"
MANY = 190  # of the 200: a bomb meets its limits


def stopped(opened: Opened, program: str, grace_ms: int) -> tuple[float, float]:
    """From the order to stop: to the answer, after which nothing of it runs, and to the last of its processes being taken apart."""
    box = opened.box(pids=256, copies=1, memory_bytes=1024 * MIB)
    ok(box, "x = 1")
    box.call("vars")
    before = set(opened.keeper.descendants())
    request = box.begin_cell(program, timeout_ms=60000, grace_ms=grace_ms)
    opened.keeper.answer(box.id, request, until=b"=begun")
    wait_until(lambda: len(opened.keeper.descendants()) >= len(before) + MANY, "a bomb of 200")
    bombs = [pid for pid, name in opened.keeper.descendants().items() if pid not in before and name == "python3"]
    began = time.perf_counter()
    box.cancel()
    a = opened.keeper.answer(box.id, request)
    answered = (time.perf_counter() - began) * 1e3
    assert a.verdict == "cancelled", a
    wait_until(lambda: not alive(bombs), "no process of a bomb's")
    gone = (time.perf_counter() - began) * 1e3
    assert ok(box, "x") < 60000
    box.close()
    return answered, gone


def bomb(options) -> list[Row]:
    kinds = {"200 sleepers killed": (SLEEPERS, 0), "200 sleepers after an interrupt": (SLEEPERS, 20000), "a fork bomb of 200 killed": (WILD, 0)}
    rows = []
    with Opened() as opened:
        for what, (program, grace_ms) in kinds.items():
            times = [stopped(opened, program, grace_ms) for _ in range(5)]
            rows.append(Row(f"{what}: answered, none runs", [t[0] for t in times], target=100))
            rows.append(Row(f"{what}: all taken apart", [t[1] for t in times], target=100))
    return rows


def thaw(options) -> list[Row]:
    """10 MB of variables, written down in one box and read in another; the daemon's seal is not in it (10 ms at 1 GB/s)."""
    spec = {"timeout_ms": 30000, "grace_ms": 1000}
    saved, thawed, size = [], [], 0
    with Opened() as opened, tempfile.TemporaryFile() as file:
        box = opened.box()
        ok(box, "import numpy; a = numpy.random.rand(1_250_000); d = {i: str(i) for i in range(1000)}")
        for _ in range(5):
            ours, theirs = os.pipe()
            began = time.perf_counter()
            drain = threading.Thread(target=drained, args=(ours, file))
            drain.start()
            a = opened.keeper.answer(box.id, box.begin(CHECKPOINT, spec | {"op": "checkpoint"}, [theirs]))
            os.close(theirs)
            drain.join()
            saved.append((time.perf_counter() - began) * 1e3)
            assert a.verdict == "ok" and a.claim["status"] == "ok", a
            size = a.claim["report"]["bytes"]
            other, read = opened.box(), os.open(f"/proc/self/fd/{file.fileno()}", os.O_RDONLY)
            where = {"op": "restore", "from": 0, "bytes": size, "number": 1}
            began = time.perf_counter()
            a = opened.keeper.answer(other.id, other.begin(RESTORE, spec | where, [read]))
            thawed.append((time.perf_counter() - began) * 1e3)
            os.close(read)
            assert a.verdict == "ok" and other.cell("a.shape").result == "(1250000,)", a
            other.close()
    note = f"{size / 1e6:.1f} MB"
    return [Row("checkpoint of 10 MB written", saved, target=500, note=note), Row("checkpoint of 10 MB thawed", thawed, target=60, note=note)]


def drained(pipe: int, file) -> None:
    """All that comes out of the pipe, from the file's beginning on."""
    file.seek(0)
    with open(pipe, "rb") as source:
        shutil.copyfileobj(source, file)
    file.flush()


def many(options) -> list[Row]:
    """So many live sessions at once, one in ten with a chart: the last one is as quick as the first."""
    marks = [n for n in (1, 10, 100, 1000) if n <= options.sessions] or [options.sessions]
    rows, boxes, first = [], [], 0.0
    with Opened() as opened:
        before = available_mib()
        while len(boxes) < marks[-1] and available_mib() > ENOUGH_MIB:
            boxes.append(opened.box(copies=1, memory_bytes=256 * MIB, disk_bytes=32 * MIB))
            ok(boxes[-1], CHART if len(boxes) % 10 == 1 else "x = 1")
            if len(boxes) in marks:
                boxes[-1].call("vars")
                last = [rested(boxes[-1]) for _ in range(10)]
                started = [first_answer(opened) for _ in range(5)]
                first = first or statistics.median(last)
                rows.append(Row(f"small cell of the last of {len(boxes):,} sessions", last, target=max(1, 1.5 * first)))
                rows.append(Row(f"first answer of a new one beside {len(boxes):,}", started, target=10))
        n, used = len(boxes), before - available_mib()
        again = [rested(boxes[i]) for i in range(0, n, max(1, n // 50))]
        rows.append(Row(f"small cell in {n:,} sessions, one after the other", again, target=1, note="each idle before"))
        rows.append(Row(f"memory of the whole machine per session of {n:,}", [used / n], "MiB", 6))
        rows.append(Row("keeper's own memory", [rss_mib(opened.keeper.process.pid)], "MiB", 120))
        if n < marks[-1]:
            print(f"many: stopped at {n} sessions, {available_mib():.0f} MiB are available", file=sys.stderr)
        rows.append(Row(f"processes of {n:,} sessions", [float(len(descendants(opened.keeper.process.pid)))], ""))
    return rows


def rss_mib(pid: int) -> float:
    line = next(x for x in Path(f"/proc/{pid}/status").read_text().splitlines() if x.startswith("VmRSS:"))
    return int(line.split()[1]) / 1024
