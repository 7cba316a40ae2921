"""Frames, requests besides cells, and what preloading leaves behind."""

import json
import subprocess
import sys
import unittest

import driver
from driver import CELL, HEAD, MAGIC, MORE, VERSION, HeadDied, KernelTest


class Frames(KernelTest):
    def test_long_requests_and_answers_come_in_parts(self):
        code = "x = '" + "ä" * 150_000 + "'\nlen(x)"
        self.assertEqual(self.ok(code).text, "150000")
        self.assertEqual(self.ok("1 + 1", part_max=10).text, "2")
        reply = self.ok("class A:\n    def _repr_html_(self): return 'é' * 200_000\nA()")
        self.assertEqual(len(reply["result"]["text/html"]), 200_000)

    def test_a_code_of_the_largest_size_runs(self):
        self.assertEqual(self.value("#" + "\u0001" * ((1 << 20) - 20) + "\n7"), "7")

    def test_a_broken_rule_ends_the_head(self):
        good = json.dumps({"code": "1", "number": 1}).encode()
        for name, frame in {
            "magic": HEAD.pack(1, VERSION, CELL, 0, 7, 1, len(good)) + good,
            "version": HEAD.pack(MAGIC, 9, CELL, 0, 7, 1, len(good)) + good,
            "type": HEAD.pack(MAGIC, VERSION, 33, 0, 7, 1, len(good)) + good,
            "length": HEAD.pack(MAGIC, VERSION, CELL, 0, 7, 1, 5) + good,
            "short": b"abc",
            "json": HEAD.pack(MAGIC, VERSION, CELL, 0, 7, 1, 1) + b"{",
            "no object": HEAD.pack(MAGIC, VERSION, CELL, 0, 7, 1, 2) + b"[]",
            "no code": HEAD.pack(MAGIC, VERSION, CELL, 0, 7, 1, 12) + b'{"number":1}',
            "no text": HEAD.pack(MAGIC, VERSION, CELL, 0, 7, 1, 2) + b"\xff\xff",
        }.items():
            with self.subTest(name):
                self.setUp()
                self.session.channel.send(frame)
                self.assertRaises((HeadDied, ConnectionError), self.session.finish)

    def test_parts_of_two_requests_do_not_mix(self):
        for number in (1, 2):
            self.session.channel.send(HEAD.pack(MAGIC, VERSION, CELL, MORE, 7, number, 1) + b"{")
        self.assertRaises((HeadDied, ConnectionError), self.session.finish)

    def test_the_session_and_the_request_are_echoed(self):
        payload = json.dumps({"code": "1", "number": 1}).encode()
        self.session.channel.send(HEAD.pack(MAGIC, VERSION, CELL, 0, 4711, 99, len(payload)) + payload)
        data = self.session.channel.recv(1 << 16)
        self.assertEqual(HEAD.unpack_from(data)[4:6], (4711, 99))


class Variables(KernelTest):
    def listed(self) -> dict[str, tuple[str, str]]:
        return {v["name"]: (v["type"], v["detail"]) for v in self.session.call("vars")["vars"]}

    def test_variables_are_listed_with_what_is_worth_knowing(self):
        self.ok(
            "import pandas as pd, numpy as np, math\n"
            "df = pd.DataFrame({'a': [1, 2], 'b': ['x', 'y']})\ns = df['a']\na = np.zeros((3, 4))\n"
            "n = 5\ntext = 'hello'\nitems = [1, 2, 3]; d = {}\n"
            "f = lambda x, y: x\nnothing = None\nv = np.float64(1.5)\n"
            "class K: pass\nk = K()\n_private = 1\nbig = 10**1000"
        )
        self.assertEqual(
            self.listed(),
            {
                "df": ("DataFrame", "2 rows x 2 columns: a, b"),
                "s": ("Series", "2 values, int64, name 'a'"),
                "a": ("ndarray", "shape (3, 4), float64"),
                "n": ("int", "5"),
                "text": ("str", "5 characters: 'hello'"),
                "items": ("list", "3 items"),
                "d": ("dict", "0 items"),
                "f": ("function", "(x, y)"),
                "nothing": ("NoneType", "None"),
                "v": ("float64", "1.5"),
                "K": ("type", ""),
                "k": ("K", ""),
                "big": ("int", "3322 bits"),
            },
        )

    def test_hostile_objects_are_only_named(self):
        self.ok(
            "class H:\n"
            "    def __repr__(self): raise SystemExit\n"
            "    __str__ = __len__ = __iter__ = __getattribute__ = __hash__ = __eq__ = __bool__ = __repr__\n"
            "h = H()\n"
            "class L(list):\n    def __len__(self):\n        while True: pass\n"
            "l = L()\n"
            "import pandas as pd\n"
            "class D(pd.DataFrame):\n    @property\n    def shape(self): raise SystemExit\n"
            "d = D({'a': [1]})"
        )
        self.assertEqual(
            {k: v[0] for k, v in self.listed().items()},
            {"H": "type", "h": "H", "L": "type", "l": "L", "D": "type", "d": "D"},
        )

    def test_the_list_has_an_end(self):
        self.ok("for i in range(150): globals()[f'v{i}'] = i")
        names = list(self.listed())
        self.assertEqual((len(names), names[-1]), (100, "i") if names[-1] == "i" else (100, "v149"))

    def test_a_name_that_hides_one_of_ours_is_listed(self):
        self.ok("exit = 5")
        self.assertEqual(self.listed(), {"exit": ("int", "5")})


class Calls(KernelTest):
    def test_an_unknown_op_is_an_error_and_nothing_else(self):
        reply = self.session.call("nosuch")
        self.assertEqual((reply["status"], reply["error"]["name"]), ("error", "ValueError"))
        self.assert_alive()

    def test_profile_and_intake_reach_their_modules(self):
        self.ok(
            "import sys, types\nimport kernel.files as k\n"
            "def stub(name, **members):\n"
            "    m = types.ModuleType('kernel.files.' + name); vars(m).update(members)\n"
            "    sys.modules['kernel.files.' + name] = m; setattr(k, name, m)\n"
            "stub('intake', intake=lambda name, cwd: [{'name': name, 'cwd': cwd}])\n"
            "stub('profile', profile_file=lambda path, name, root: {'path': path, 'name': name, 'root': root})"
        )
        folder = self.session.data_dir
        self.assertEqual(self.session.call("intake", name="a.zip")["profiles"], [{"name": "a.zip", "cwd": folder}])
        self.assertEqual(
            self.session.call("profile", path="a.csv", **{"as": "ä.csv"})["profiles"],
            [{"path": f"{folder}/a.csv", "name": "ä.csv", "root": folder}],
        )

    def test_a_failing_op_is_an_error(self):
        reply = self.session.call("profile")
        self.assertEqual((reply["status"], reply["error"]["name"]), ("error", "KeyError"))
        self.assert_alive()


WARM = ["IPython", "matplotlib.pyplot", "numpy", "pandas", "scipy.stats", "seaborn", "sklearn"]
PRELOAD = """
import json, os, sys, threading
sys.path.insert(0, sys.argv[1])
before = set(os.listdir('/proc/self/fd'))
import kernel
light = sorted(m for m in sys.modules if m.startswith('kernel.'))
kernel.preload(once=len(sys.argv) > 3)
from kernel.shell import Shell, shell
made = Shell.initialized()
from matplotlib import pyplot
import gc
print(json.dumps({
    'light': light,
    'fds': len(set(os.listdir('/proc/self/fd')) - before),
    'threads': threading.active_count(),
    'children': open('/proc/self/task/%d/children' % os.getpid()).read(),
    'names': sorted(n for n in shell().user_ns if not n.startswith('_')),
    'outputs': [len(shell().user_ns['Out']), len(shell().user_ns['In'])],
    'shell': made,
    'figures': pyplot.get_fignums(),
    'modules': [m for m in ('polars', 'statsmodels.api', 'tkinter', 'kernel.files.intake') if m in sys.modules],
    'warm': sorted(m for m in json.loads(sys.argv[2]) if m in sys.modules),
    'collector': [gc.isenabled(), gc.get_freeze_count() > 100000],
}))
"""


class Preload(unittest.TestCase):
    def preloaded(self, *how: str) -> dict:
        env = {"PATH": "/usr/bin:/bin", "HOME": "/nonexistent", "MPLCONFIGDIR": "/tmp/mpl", "OPENBLAS_NUM_THREADS": "1",
               "PYTHONDONTWRITEBYTECODE": "1"}  # fmt: skip
        done = subprocess.run(
            [sys.executable, "-c", PRELOAD, driver.SANDBOX, json.dumps(WARM), *how],
            capture_output=True,
            text=True,
            env=env,
            check=True,
            stdin=-3,
        )
        self.assertEqual(done.stderr, "")
        return json.loads(done.stdout)

    def test_nothing_is_left_behind(self):
        for how, warm, frozen in ((), WARM, True), (("once",), WARM[:4], False):
            with self.subTest(how):
                self.assertEqual(
                    self.preloaded(*how),
                    {
                        "light": [],
                        "fds": 0,
                        "threads": 1,
                        "children": "",
                        "names": ["In", "Out", "exit", "get_ipython", "open", "quit"],
                        "outputs": [0, 1],
                        "shell": True,
                        "figures": [],
                        "modules": [],
                        "warm": warm,
                        "collector": [False, frozen],
                    },
                )

    def test_a_head_collects_garbage(self):
        with driver.Session() as session:
            self.assertEqual(session.run("import gc; gc.isenabled()").text, "True")


if __name__ == "__main__":
    unittest.main()
