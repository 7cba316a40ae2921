"""Child processes, pools and threads started from cells."""

import unittest

from driver import KernelTest

SETUP = """
import multiprocessing as mp, os
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
rate = 3
class P:
    def __init__(self, x): self.x = x
    def __eq__(self, other): return type(self) is type(other) and self.x == other.x
def times(x): return x * rate
def same(p): return p
"""


class Pools(KernelTest):
    def setUp(self):
        super().setUp()
        self.ok(SETUP)

    def test_functions_of_cells_run_in_processes_of_every_kind(self):
        for method in ("fork", "spawn", "forkserver"):
            with self.subTest(method):
                self.ok(f"ctx = mp.get_context({method!r})")
                self.assertEqual(self.value("with ctx.Pool(2) as pool:\n    r = pool.map(times, [1, 2])\nr"), "[3, 6]")
                self.assertEqual(
                    self.value(
                        "with ProcessPoolExecutor(1, mp_context=ctx) as ex:\n    r = list(ex.map(times, [5]))\nr"
                    ),
                    "[15]",
                )
                self.assertEqual(
                    self.value("with ctx.Pool(1) as pool:\n    r = pool.map(same, [P(1)])\nr[0] == P(1)"), "True"
                )
                self.assertEqual(
                    self.value("with ctx.Pool(1) as pool:\n    r = pool.map(lambda x: x + 1, [1])\nr")
                    if method != "fork"
                    else "[2]",
                    "[2]",
                )

    def test_loky_and_joblib_work(self):
        self.ok("from joblib import Parallel, delayed")
        self.assertEqual(self.value("Parallel(2)(delayed(times)(i) for i in (1, 2))"), "[3, 6]")
        self.ok("from joblib.externals.loky import get_reusable_executor")
        self.assertEqual(self.value("get_reusable_executor(1).submit(same, P(2)).result() == P(2)"), "True")
        self.ok("get_reusable_executor().shutdown(wait=True)")

    def test_scikit_learn_runs_jobs(self):
        code = (
            "from sklearn.ensemble import RandomForestClassifier as R\n"
            "R(4, n_jobs=2, random_state=0).fit([[0], [1]] * 5, [0, 1] * 5).predict([[1]])"
        )
        self.assertEqual(self.value(code), "array([1])")

    def test_an_exception_in_a_worker_comes_back(self):
        self.ok("def bad(x): raise ValueError('in the worker')")
        self.assertIn(
            "in the worker", self.error("with mp.Pool(1) as pool:\n    pool.map(bad, [1])", "ValueError")["value"]
        )

    def test_a_pool_holds_across_cells(self):
        self.ok("ex = ThreadPoolExecutor(1); f = ex.submit(times, 1)")
        self.assertEqual(self.value("f.result(), ex.submit(times, 2).result()"), "(3, 6)")
        self.ok("pool = mp.Pool(1)")
        self.assertEqual(self.value("pool.map(times, [4])"), "[12]")
        self.ok("pool.terminate()")


class Children(KernelTest):
    def test_a_child_and_its_status_hold_across_cells(self):
        self.ok("import subprocess; p = subprocess.Popen(['sh', '-c', 'exit 3'])")
        self.assertEqual(self.value("p.wait()"), "3")
        self.ok("q = subprocess.Popen(['cat'], stdin=-1, stdout=-1)")
        self.assertEqual(self.value("q.communicate(b'hello')[0]"), "b'hello'")

    def test_no_child_of_ours_is_in_the_way(self):
        self.ok("import matplotlib.pyplot as plt, os; plt.plot([1])")
        self.assertEqual(self.error("os.wait()", "ChildProcessError")["line"], 1)

    def test_a_fork_that_runs_on_says_nothing(self):
        self.assertEqual(self.ok("import os\npid = os.fork()\nif pid == 0: x = 'child'").stdout, "")
        self.assertEqual(self.value("os.waitpid(pid, 0)[1]"), "0")
        self.assert_alive()

    def test_a_forked_child_may_use_everything_and_exit(self):
        code = (
            "import os, numpy as np, pandas as pd\npid = os.fork()\n"
            "if pid == 0:\n    try:\n        print(pd.DataFrame({'a': [1, 1]}).groupby('a').size().sum(), flush=True)\n"
            "    finally:\n        os._exit(7)\n"
            "os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])"
        )
        reply = self.ok(code)
        self.assertEqual((reply.text, reply.stdout), ("7", "2\n"))

    def test_asynchronous_subprocesses_work(self):
        code = (
            "import asyncio\n"
            "p = await asyncio.create_subprocess_exec('echo', 'hi', stdout=-1)\n(await p.communicate())[0]"
        )
        self.assertEqual(self.value(code), "b'hi\\n'")


class Libraries(KernelTest):
    """One use of each: that it was preloaded, or forked, must not show."""

    def test_each_works_in_a_fork(self):
        for code in (
            "import polars as pl; pl.DataFrame({'a': [1, 1]}).lazy().group_by('a').len().collect().shape[0]",
            "import duckdb, pandas as pd; d = pd.DataFrame({'a': [1]}); duckdb.sql('select a from d').fetchall()[0][0]",
            "import statsmodels.api as sm, numpy as np; int(round(sm.OLS([1., 2., 3.], [1., 2., 3.]).fit().params[0]))",
            "import pandas as pd, io; int(pd.read_csv(io.StringIO('a\\n1'), engine='pyarrow').a[0])",
            "df = pd.DataFrame({'a': ['x']}); df.to_parquet('a.parquet'); len(pd.read_parquet('a.parquet'))",
            "df.to_excel('a.xlsx'); len(pd.read_excel('a.xlsx'))",
            "import numpy as np; int((np.ones((300, 300)) @ np.ones((300, 300)))[0, 0] // 300)",
            "import sqlite3; db = sqlite3.connect(':memory:'); db.execute('select 1').fetchone()[0]",
            "import sympy; int(sympy.integrate(sympy.Symbol('x'), (sympy.Symbol('x'), 0, 1)) * 2)",
            "import ssl, uuid, tempfile, secrets; len({uuid.uuid4(), uuid.uuid4()}) - 1",
        ):
            with self.subTest(code):
                self.assertEqual(self.value(code), "1")


if __name__ == "__main__":
    unittest.main()
