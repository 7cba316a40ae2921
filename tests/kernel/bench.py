"""What a cell costs beyond its own work: round trips through the driver, in milliseconds.

Not a test: run it by itself (`TEST_MODULE=bench run IMAGE_ROOT`), on a quiet machine.
"""

import statistics
import time

from driver import Session, Zygote

CELLS = {
    "assignment": "x = 1",
    "expression": "x",
    "print": "print(1)",
    "exception": "1/0",
    "table shown": "df",
    "shell line": "!true",
}
CHART = "plt.plot([1, 2, 3], label='a'); plt.title('monthly'); plt.legend(); plt.xlabel('x')"
CHARTS = {
    "chart": CHART,
    "chart with CJK": "plt.bar(['一月', '二月'], [1, 2]); plt.title('月度销售额')",
    "four panels": "fig, a = plt.subplots(2, 2)\nfor x in a.flat: x.plot([1, 2])",
}


def show(name: str, times: list[float]) -> None:
    times = sorted(times)
    tail = times[min(len(times) - 1, int(len(times) * 0.99))]
    print(f"{name:34} p50 {statistics.median(times):7.2f}  p99 {tail:7.2f}  n {len(times)}")


def first_charts(rounds: int) -> None:
    for name, code in CHARTS.items():
        times = []
        for _ in range(rounds):
            with Session() as session:
                times.append(session.run(f"import matplotlib.pyplot as plt\n{code}").took_ms)
        show(f"first cell of a session: {name}", times)


def warm(rounds: int) -> None:
    with Session() as session:
        session.run(
            "import pandas as pd, matplotlib.pyplot as plt\ndf = pd.DataFrame({'a': range(30), 'b': 'x'})\nx = 1"
        )
        for name, code in CELLS.items():
            show(name, [session.run(code).took_ms for _ in range(rounds)])
        for name, code in CHARTS.items():
            show(f"later: {name}", [session.run(code).took_ms for _ in range(rounds // 10)])


def forks(rounds: int) -> None:
    times = []
    for _ in range(rounds):
        began = time.perf_counter()
        with Session():
            times.append(1e3 * (time.perf_counter() - began))
    show("fork to hello", times)


if __name__ == "__main__":
    began = time.perf_counter()
    Zygote.shared()
    print(f"preload {time.perf_counter() - began:.2f} s")
    forks(30)
    first_charts(15)
    warm(300)
