"""What a cell may contain, and what the next cell finds."""

import unittest

from driver import KernelTest, Session


class Results(KernelTest):
    def test_the_last_expression_is_the_result(self):
        cases = {
            "41 + 1": "42",
            "x = 3\nx * 2": "6",
            "'ä'": "'ä'",
            "None": None,
            "x = 1": None,
            "1; 2": "2",
            "5;": None,
            "": None,
            "# only a comment": None,
            "print('a')": None,
            "[1, 2]": "[1, 2]",
            "if True:\n    7": None,
            "def f(): pass": None,
            "\n\n  \n8": "8",
            "    9": "9",
        }
        for code, expected in cases.items():
            with self.subTest(code):
                self.assertEqual(self.value(code), expected)

    def test_variables_stay(self):
        self.ok("x = 41")
        self.assertEqual(self.value("x + 1"), "42")

    def test_an_exception_keeps_what_ran_before_it(self):
        self.error("a = 1\nb = 1 / 0", "ZeroDivisionError")
        self.assertEqual(self.value("a"), "1")
        self.error("b", "NameError")

    def test_out_and_underscore_refer_to_earlier_results(self):
        self.ok("6 * 7")
        self.assertEqual(self.value("_"), "42")
        self.assertEqual(self.value("Out[1] + 1"), "43")
        self.assertEqual(self.value("In[1]"), "'6 * 7'")

    def test_numbers_of_cells_are_the_sessions_numbers(self):
        self.session.number = 6
        self.ok("'seven'")
        self.assertEqual(self.value("Out[7], In[7]"), "('seven', \"'seven'\")")

    def test_await_works_at_the_top(self):
        self.ok("import asyncio\nasync def f():\n    await asyncio.sleep(0)\n    return 5")
        self.assertEqual(self.value("await f()"), "5")
        self.assertEqual(self.value("asyncio.run(f())"), "5")

    def test_a_task_made_in_one_cell_can_be_awaited_in_the_next(self):
        self.ok("import asyncio\nt = asyncio.create_task(asyncio.sleep(0, 'done'))\nawait asyncio.sleep(0)")
        self.assertEqual(self.value("await t"), "'done'")

    def test_a_seed_holds_in_the_next_cell(self):
        self.ok("import random, numpy as np; random.seed(1); np.random.seed(1)")
        self.assertEqual(
            self.value("round(random.random(), 6), round(float(np.random.rand()), 6)"), "(0.134364, 0.417022)"
        )

    def test_a_module_in_the_data_folder_can_be_imported_but_hides_nothing(self):
        self.session.write("helper.py", "answer = 42")
        self.session.write("statistics.py", "raise RuntimeError('hidden')")
        self.assertEqual(self.value("import helper; helper.answer"), "42")
        self.assertEqual(self.value("import statistics; statistics.mean([1, 3])"), "2")

    def test_an_argument_parser_sees_no_arguments(self):
        self.assertEqual(self.value("import sys; sys.argv[1:]"), "[]")

    def test_the_working_folder_is_home_and_holds_the_data(self):
        self.session.write("a.txt", "hi")
        self.assertEqual(self.value("open('a.txt').read()"), "'hi'")
        self.assertEqual(self.value("import os; os.path.expanduser('~') == os.getcwd()"), "True")

    def test_main_has_no_file(self):
        self.assertEqual(self.value("'__file__' in globals(), __name__"), "(False, '__main__')")

    def test_the_namespace_starts_clean(self):
        self.assertEqual(self.session.call("vars")["vars"], [])
        self.assertEqual(self.value("[k for k in globals() if k in ('x', 'np', 'math', '_1')]"), "[]")

    def test_dataclasses_and_pickle_find_their_classes(self):
        self.ok("import pickle\nfrom dataclasses import dataclass\n@dataclass\nclass P:\n    x: int = 1")
        self.assertEqual(self.value("pickle.loads(pickle.dumps(P(3)))"), "P(x=3)")


class Magics(KernelTest):
    def test_lines_with_percent_and_exclamation_mark(self):
        cases = {
            "!echo hello": "hello\n",
            "x = 5\n!echo {x} $x": "5 5\n",
            "for i in range(2):\n    !echo $i": "0\n1\n",
            "%%bash\necho from bash; echo $((1 + 1))": "from bash\n2\n",
            "\n%%bash\necho below an empty line": "below an empty line\n",
            "%%sh\necho plain": "plain\n",
            "%%python3\nprint(1 + 1)": "2\n",
            "%%script bash -s\necho scripted": "scripted\n",
            "!echo a | tr a b": "b\n",
        }
        for code, printed in cases.items():
            with self.subTest(code):
                self.assertEqual(self.ok(code).stdout, printed)

    def test_output_of_a_command_can_be_kept(self):
        self.assertEqual(self.value("x = !printf 'a\\nb\\n'\nlist(x)"), "['a', 'b']")
        self.ok("%%bash --out text\necho kept")
        self.assertEqual(self.value("text"), "'kept\\n'")

    def test_a_failing_script_is_an_error_and_a_failing_command_is_not(self):
        self.ok("!false")
        self.assertEqual(self.value("_exit_code"), "1")
        self.error("%%bash\nexit 3", "CalledProcessError")
        self.ok("%%bash --no-raise-error\nexit 3")

    def test_a_command_has_no_terminal_and_no_input(self):
        self.assertEqual(self.ok("!cat; test -t 1 || echo no terminal").stdout, "no terminal\n")

    def test_useful_magics_work(self):
        self.assertIn("per loop", self.ok("%timeit -n1 -r1 1 + 1").stdout)
        self.assertIn("time", self.ok("%%time\nx = 1").stdout)
        self.assertEqual(self.ok("%%writefile a.py\nprint('ran')\n").stdout, "Writing a.py\n")
        self.assertEqual(self.ok("%run a.py").stdout, "ran\n")
        self.ok("x = 1\n%who")
        self.ok("%load_ext autoreload\n%autoreload 2")
        self.ok("%reset -f")
        self.error("x", "NameError")

    def test_matplotlib_magics_do_no_harm(self):
        for line in (
            "%matplotlib inline",
            "%matplotlib widget",
            "%matplotlib notebook",
            "%matplotlib qt",
            "%matplotlib",
            "%config InlineBackend.figure_format = 'retina'",
            "%config InlineBackend.figure_formats = ['svg']",
        ):
            with self.subTest(line):
                reply = self.ok(line)
                self.assertEqual((reply.stdout, reply.stderr, reply["notes"]), ("", "", []))

    def test_an_unknown_magic_is_an_error(self):
        self.assertIn("nosuch", self.error("%nosuch", "UsageError")["value"])

    def test_an_error_in_a_script_that_was_run_is_printed(self):
        self.session.write("bad.py", "1/0\n")
        self.assertIn("ZeroDivisionError", self.ok("%run bad.py").stderr)

    def test_help_prints(self):
        self.assertIn("Return the number of items", self.ok("len?").stdout)


class Sessions(unittest.TestCase):
    def test_sessions_share_neither_variables_nor_random_numbers(self):
        with Session() as one, Session() as other:
            one.run("x = 1")
            self.assertEqual(other.run("x")["error"]["name"], "NameError")
            code = "import random, numpy as np; (random.random(), float(np.random.rand()))"
            self.assertNotEqual(one.run(code).text, other.run(code).text)

    def test_hello_carries_the_audit(self):
        with Session() as session:
            self.assertEqual(session.hello, {"audit": {"threads": 1}})


if __name__ == "__main__":
    unittest.main()
