"""Checkpoints: what belongs to a session besides its variables."""

import re
import unittest

from test_checkpoint_base import CheckpointTest


class Notebook(CheckpointTest):
    def test_what_puts_it_together_has_the_name_that_every_checkpoint_has(self):
        self.ok("def f(): return 1")
        self.save()
        with open(self.path, "rb") as file:
            named = set(re.findall(rb"kernel\.[a-z_.]+", file.read()))
        self.assertEqual(named, {b"kernel.checkpoint_rebuild"})

    def test_in_out_and_the_counter_go_on(self):
        self.ok("[1, 2]")
        self.ok("x = Out[2]; 'second'")
        number = self.session.number
        self.save()
        self.thaw()
        self.true(
            "_ == 'second'",
            "Out[2] is x and _2 is x",
            f"In[{number}].startswith('x = Out')",
            "_oh is Out and _ih is In",
        )
        self.ok("'third'")
        self.true(
            "_ == 'third'",
            "len(In) == get_ipython().execution_count",
            "Out[2] == [1, 2]",
            "get_ipython().execution_count > 5",
        )
        self.true("___ is not None", "_i2 == '[1, 2]'")

    def test_results_that_do_not_fit_are_left_out_and_said(self):
        self.ok("'small'")
        self.ok("'x' * 3_000_000")
        self.ok("y = 'y' * 3_000_000; y")
        self.ok("(n for n in [1])")
        report = self.save(results_max=1_000_000)
        self.assertEqual(report["lost"], [])
        self.assertEqual(len(report["notes"]), 2, report)
        self.assertIn("not kept: Out[3]; results that no variable holds may take 1.0 MB", report["notes"])
        self.assertIn("`Out[5]` is a generator", "".join(report["notes"]))
        self.thaw()
        self.true("Out[2] == 'small'", "3 not in Out", "Out[4] is y", "5 not in Out")

    def test_magics_and_aliases_of_cells_hold(self):
        self.ok("""
            from IPython.core.magic import register_line_magic, register_cell_magic
            @register_line_magic
            def twice(line): return line * factor
            @register_cell_magic
            def shout(line, cell): return cell.upper()
            factor = 2
        """)
        self.ok("%alias greet echo hello")
        self.ok("%load_ext autoreload")
        self.assertEqual(self.save()["lost"], [])
        self.assertEqual(self.thaw()["lost"], [])
        self.true("get_ipython().run_line_magic('twice', 'ab') == 'abab'")
        self.assertEqual(self.value("%%shout\nabc"), r"'ABC\n'")
        self.assertEqual(self.ok("%greet").stdout, "hello\n")
        self.ok("%autoreload 0")

    def test_macros_and_the_shell_itself_hold(self):
        self.over("ip = get_ipython(); display_ = display")
        self.true("ip is get_ipython()", "ip.user_ns is globals()")

    def test_what_is_shown_of_expressions_holds(self):
        self.over("get_ipython().ast_node_interactivity = 'all'")
        self.assertEqual(self.ok("1\n2").stdout, "1\n")


class Surroundings(CheckpointTest):
    def test_the_folder_holds(self):
        self.over("import os\nos.makedirs('sub/deep'); os.chdir('sub')")
        self.true("os.path.basename(os.getcwd()) == 'sub'", "os.path.isdir('deep')")

    def test_a_folder_that_is_gone_is_said(self):
        self.ok("import os\nos.makedirs('gone'); os.chdir('gone')")
        self.save()
        self.ok("os.chdir('..'); os.rmdir('gone')")
        self.assertIn("gone", "".join(self.thaw()["notes"]))
        self.assert_alive()

    def test_random_numbers_go_on(self):
        code = """
            import random, numpy as np
            from random import randint
            from numpy.random import rand
            random.seed(5); np.random.seed(6); random.random(); np.random.rand()
        """
        self.ok(code)
        self.save()
        expected = self.value("random.random(), float(np.random.rand()), randint(0, 10**9)")  # writing down drew none
        self.thaw()
        self.assertEqual(self.value("random.random(), float(np.random.rand()), randint(0, 10**9)"), expected)
        self.ok("""
            random.seed(1); a = randint(0, 10**9); random.seed(1); b = random.randint(0, 10**9)
            np.random.seed(1); c = rand(); np.random.seed(1); d = np.random.rand()
        """)
        self.true("a == b", "c == d")

    def test_settings_of_libraries_hold(self):
        code = """
            import pandas as pd, numpy as np, matplotlib as mpl, matplotlib.pyplot as plt, sklearn, plotly.io as pio, seaborn as sns
            pd.set_option('display.max_rows', 7)
            pd.options.display.float_format = '{:.1f}'.format; np.set_printoptions(precision=2)
            plt.rcParams['figure.figsize'] = (3, 3); rc = plt.rcParams
            np.seterr(divide='ignore'); sklearn.set_config(display='text')
            pio.templates.default = 'plotly_dark'; sns.set_theme()
        """
        self.over(code)
        self.true(
            "pd.get_option('display.max_rows') == 7",
            "pd.options.display.float_format(1.26) == '1.3'",
            "np.get_printoptions()['precision'] == 2",
            "mpl.rcParams['axes.facecolor'] == '#EAEAF2'",
            "rc is mpl.rcParams",
        )
        self.true(
            "np.geterr()['divide'] == 'ignore'",
            "sklearn.get_config()['display'] == 'text'",
            "pio.templates.default == 'plotly_dark'",
            "pd.get_option('display.max_columns') == 20",
        )

    def test_settings_of_python_hold(self):
        code = """
            import sys, os, decimal, warnings, logging, locale
            sys.setrecursionlimit(3000); os.environ['MINE'] = 'x'; env = os.environ
            decimal.getcontext().prec = 5; ctx = decimal.getcontext()
            warnings.filterwarnings('error', 'mine')
            logging.basicConfig(level=logging.INFO, format='%(message)s')
            log = logging.getLogger('me'); log.setLevel(logging.DEBUG)
            sys.path.append('/mnt/else'); sys.argv.append('-v')
            locale.setlocale(locale.LC_ALL, 'C.UTF-8'); own = logging.StreamHandler(sys.stdout)
            log.addHandler(own); log.propagate = False
        """
        self.over(code)
        self.true(
            "sys.getrecursionlimit() == 3000",
            "os.environ['MINE'] == 'x' and env is os.environ",
            "decimal.getcontext() is ctx and ctx.prec == 5",
            "log.level == 10 and logging.root.level == 20",
            "'/mnt/else' in sys.path",
            "sys.argv[-1] == '-v'",
            "locale.setlocale(locale.LC_ALL) == 'C.UTF-8'",
            "log.handlers == [own]",
        )
        self.assertEqual(self.ok("log.debug('mine')").stdout, "mine\n")
        self.assertEqual(self.ok("logging.info('heard')").stderr, "heard\n")
        self.error("warnings.warn('mine')", "UserWarning")

    def test_a_new_session_has_nothing_to_say(self):
        report = self.save()
        self.assertEqual((report["kept"], report["lost"], report["notes"]), (0, [], []))
        self.assertLess(report["bytes"], 60_000)
        report = self.thaw()
        self.assertEqual((report["kept"], report["lost"], report["notes"], report["error"]), (0, [], [], None))

    def test_what_a_session_had_is_replaced(self):
        self.ok("a = 1")
        self.save()
        self.ok("a = 2; b = 3")
        self.assertIsNone(self.restore()["report"]["error"])
        self.true("a == 1", "'b' not in globals()")

    def test_timers_and_handlers_of_the_person_go_on(self):
        self.ok("""
            import signal
            rung = []
            signal.signal(signal.SIGALRM, lambda *a: rung.append(1))
            _ = signal.setitimer(signal.ITIMER_REAL, 0.3)
        """)
        self.save()
        self.true("signal.pause() is None", "rung == [1]")

    def test_a_checkpoint_of_a_thawed_session_is_the_same_again(self):
        self.ok("""
            import pandas as pd, numpy as np
            rate = 2
            def f(x): return x * rate
            class A: pass
            a = A(); a.f = f; df = pd.DataFrame({'x': range(9000), 's': 'y'})
            v = np.arange(90_000); w = v[1:]
        """)
        first = self.save()
        for _ in range(2):
            self.thaw()
            again = self.save()
            self.assertEqual((again["kept"], again["lost"]), (first["kept"], []))
            self.assertLess(abs(again["bytes"] - first["bytes"]), 20_000)
        self.ok("rate = 4; v[1] = 9")
        self.true("a.f(2) == 8", "w[0] == 9", "type(a) is A", "df.x.sum() > 0")


if __name__ == "__main__":
    unittest.main()
