"""Checkpoints: time and memory. Run by itself (`TEST_MODULE=test_checkpoint_speed run IMAGE_ROOT`) it gives figures."""

import os
import shutil
import statistics
import sys
import tempfile
import time
import unittest

from driver import Session
from test_checkpoint_base import CheckpointTest, new_session

GIGABYTE = "/opt/tests/gigabyte"
STATES = {
    "empty": "pass",
    "10 MB frame of numbers": "import pandas as pd, numpy as np\nbig = pd.DataFrame(np.random.rand(130_000, 10))",
    "10 MB frame of strings": "import pandas as pd\nbig = pd.DataFrame({'s': ['name %08d of many' % n for n in range(450_000)]})",
    "10 MB of small objects": "xs = [{'name': 'n%d' % n, 'v': n * 1.5} for n in range(250_000)]",
    "10 MB of instances": "class P:\n    def __init__(self, n): self.n, self.s = n, str(n)\nps = [P(n) for n in range(250_000)]",
    "1,000 variables, 100 functions": "for n in range(1000): globals()[f'v{n}'] = [n]\nfor n in range(100): exec(f'def f{n}(x): return x + v{n}[0]')",
    "model and chart": "import matplotlib.pyplot as plt\nfrom sklearn.ensemble import RandomForestRegressor\nimport numpy as np\nm = RandomForestRegressor(50).fit(np.random.rand(2000, 5), np.random.rand(2000))\nfig, ax = plt.subplots(); ax.plot(range(1000))",
}


class Speed(CheckpointTest):
    """Limits are generous: the machine may be shared."""

    def test_ten_megabytes_are_quick(self):
        self.ok("import pandas as pd, numpy as np\nbig = pd.DataFrame(np.random.rand(130_000, 10))")
        began = time.perf_counter()
        report = self.save()
        saved = time.perf_counter() - began
        self.assertLess(10_000_000, report["bytes"])
        self.assertLess(saved, 1)
        began = time.perf_counter()
        self.thaw()
        self.assertLess(time.perf_counter() - began, 3)

    def test_a_large_table_needs_no_second_one(self):
        """200 MB; a gigabyte if asked for (`run` clears the environment: an empty file `gigabyte` beside this one does the same)."""
        rows = 125_000_000 if os.environ.get("CHECKPOINT_GIGABYTE") or os.path.exists(GIGABYTE) else 25_000_000
        self.ok(
            f"import numpy as np, pandas as pd\nbig = pd.DataFrame({{'x': np.zeros({rows})}}); big.x += 1; col = big['x']; view = big['x'].to_numpy()[5:]"
        )
        size = rows * 8
        self.assertLess(self.peak_of(lambda: self.save()), size * 0.3)
        self.assertLess(os.path.getsize(self.path), size * 1.1)
        self.ok("del big, col, view")
        self.thaw_measured(size)

    def thaw_measured(self, size: int) -> None:
        self.session = self.enter(new_session())
        self.assertLess(self.peak_of(lambda: self.restore()), size * 1.3)
        self.true("col.iloc[-1] == 1.0", "view[0] == 1.0", "np.shares_memory(view, big['x'].to_numpy())")

    def peak_of(self, step) -> int:
        """How much more memory the head had at its fullest, in bytes; what a file takes in the page cache is not its."""
        before = self._status("VmRSS")
        with open(f"/proc/{self.session.pid}/clear_refs", "w") as file:
            file.write("5")
        step()
        return self._status("VmHWM") - before

    def _status(self, name: str) -> int:
        with open(f"/proc/{self.session.pid}/status") as file:
            line = next(line for line in file if line.startswith(name))
        return int(line.split()[1]) << 10


def figures(rounds: int) -> None:
    folder = tempfile.mkdtemp(prefix="kernel-checkpoint-")
    path = os.path.join(folder, "state")
    for name, code in STATES.items():
        with new_session() as old:
            old.run(code)
            saving = [_timed(old, "checkpoint", path) for _ in range(rounds)]
        thawing = []
        for _ in range(rounds):
            with new_session() as new:
                thawing.append(_timed(new, "restore", path))
        megabytes = os.path.getsize(path) / 1e6
        print(
            f"{name:32} {megabytes:6.1f} MB   save p50 {statistics.median(saving):6.1f} ms, thaw {statistics.median(thawing):6.1f} ms"
        )
    shutil.rmtree(folder)


def _timed(session: Session, op: str, path: str) -> float:
    with open(path, "wb" if op == "checkpoint" else "rb") as file:
        began = time.perf_counter()
        reply = session.call(op, fds=(file.fileno(),))
    took = 1e3 * (time.perf_counter() - began)
    assert reply["status"] == "ok" and not reply["report"]["error"] and not reply["report"]["lost"], reply
    return took


if __name__ == "__main__":
    if len(sys.argv) > 1 and sys.argv[1] == "test":
        unittest.main(argv=sys.argv[1:])
    figures(7)
