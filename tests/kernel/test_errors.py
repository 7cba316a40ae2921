"""Exceptions: where, what, and what was probably meant. Also those that don't want to be described."""

import unittest

from driver import KernelTest


class Place(KernelTest):
    def test_the_line_is_that_of_the_cell(self):
        cases = [
            ("1/0", 1),
            ("x = 1\ny = 2\n1/0", 3),
            ("\n\n1/0", 3),
            ("def f():\n    return 1/0\n\nf()", 2),
            ("for i in range(3):\n    if i:\n        raise ValueError(i)", 3),
            ("x = (\n  1 +\n  unknown\n)", 3),
            ("def f(:\n", 1),
            ("x = 1\nif x\n    pass", 2),
            ("  x = 1\n  1/0", 2),
            ("%%time\nx = 1\n1/0", 3),
            ("import json\njson.loads('{')", 2),
            ("eval('1+')", 1),
            ("!true\n1/0", 2),
            ("x = 'a\nb'", 1),
            ("import asyncio\nawait asyncio.sleep(0)\n1/0", 3),
        ]
        for code, line in cases:
            with self.subTest(code):
                self.assertEqual(self.error(code)["line"], line)

    def test_a_function_of_an_earlier_cell_names_both_places(self):
        self.ok("def f():\n    1/0")
        error = self.error("x = 1\nf()")
        self.assertEqual(error["line"], 2)
        self.assertIn('"<cell 1>", line 2', error["traceback"])
        self.assertIn('"<cell 2>", line 2', error["traceback"])

    def test_only_own_frames_and_the_last_of_a_library_are_shown(self):
        text = self.error("import pandas as pd\npd.DataFrame({'a': [1]}).groupby('b').sum()", "KeyError")["traceback"]
        self.assertIn("pd.DataFrame", text)
        self.assertEqual(text.count("/pandas/"), 1)
        self.assertNotIn("IPython", text)
        self.assertNotIn("\x1b", text)

    def test_code_of_the_kernel_is_not_shown(self):
        self.assertNotIn("refusals", self.error("input()")["traceback"])

    def test_causes_are_shown_and_repetitions_are_not(self):
        text = self.error("try:\n    1/0\nexcept ZeroDivisionError as e:\n    raise ValueError('no') from e")[
            "traceback"
        ]
        self.assertIn("division by zero", text)
        self.assertIn("direct cause", text)
        text = self.error("import pandas as pd\npd.DataFrame({'a': [1]})['b']")["traceback"]
        self.assertNotIn("direct cause", text)


class Hostile(KernelTest):
    def test_every_exception_is_described(self):
        cases = [
            ("raise", "RuntimeError", "No active exception"),
            ("raise SystemExit('bad input')", "SystemExit", "bad input"),
            ("raise KeyboardInterrupt", "KeyboardInterrupt", ""),
            ("raise GeneratorExit", "GeneratorExit", ""),
            (
                "class E(Exception):\n    def __str__(self): raise ValueError\nraise E",
                "E",
                "its str() raised ValueError",
            ),
            (
                "class E(Exception):\n    def __str__(self): raise SystemExit\nraise E",
                "E",
                "its str() raised SystemExit",
            ),
            ("class E(Exception):\n    def __str__(self): return 5\nraise E", "E", "raised TypeError"),
            ("class E(Exception):\n    __module__ = None\nraise E('m')", "E", "m"),
            ("class E(BaseException): pass\nraise E('base')", "E", "base"),
            ("raise ExceptionGroup('two', [ValueError(1), KeyError('k')])", "ExceptionGroup", "two"),
            ("raise ValueError('x' * 10**6)", "ValueError", "left out"),
            ("def f(n): return f(n + 1)\nf(0)", "RecursionError", "maximum recursion"),
            ("raise ValueError('\\ud800 \\x1b[31mred')", "ValueError", "red"),
            ("raise type('Ünï', (Exception,), {})('ö')", "Ünï", "ö"),
            ("e = ValueError('loop'); e.__cause__ = e\nraise e", "ValueError", "loop"),
            ("class E(Exception):\n    def __bool__(self): return False\nraise E('no')", "E", "no"),
            ("class E(Exception):\n    def __len__(self): return 0\nraise E('none')", "E", "none"),
            ("raise ValueError(*range(3))", "ValueError", "(0, 1, 2)"),
            ("e = ValueError('v'); e.add_note('see below'); raise e", "ValueError", "v"),
            ("assert 1 == 2, 'unequal'", "AssertionError", "unequal"),
            (
                "class M(type):\n    __name__ = property(lambda s: 1/0)\n"
                "class E(Exception, metaclass=M): pass\nraise E('m')",
                "E",
                "m",
            ),
            ("x = 10**5000\nstr(x)", "ValueError", "digits"),
            ("async def f(): raise ValueError('later')\nawait f()", "ValueError", "later"),
            ("eval('(' * 500)", "SyntaxError", ""),
            ("return 5", "SyntaxError", "outside function"),
            ("x = 1\n  y = 2", "IndentationError", "unexpected indent"),
            ("exec('x = = 1')", "SyntaxError", "invalid syntax"),
            ("b'\\xff'.decode()", "UnicodeDecodeError", "0xff"),
        ]
        for code, name, value in cases:
            with self.subTest(code):
                error = self.error(code, name)
                self.assertIn(value, error["value"])
                self.assertLessEqual(len(error["value"]), 2000)
                self.assertLessEqual(len(error["traceback"]), 2000 + 500)
                self.assertNotIn("\x1b", error["value"] + error["traceback"])
        self.assert_alive()

    def test_groups_and_notes_are_in_the_traceback(self):
        text = self.error("raise ExceptionGroup('two', [ValueError('first'), KeyError('second')])")["traceback"]
        self.assertIn("first", text)
        self.assertIn("second", text)
        self.assertIn("see below", self.error("e = ValueError('v'); e.add_note('see below'); raise e")["traceback"])

    def test_a_str_that_never_returns_yields_to_an_interrupt(self):
        self.session.start(
            "class E(Exception):\n"
            "    def __str__(self):\n"
            "        print('describing')\n"
            "        while True: pass\n"
            "raise E"
        )
        self.session.wait_printed("describing")
        self.session.interrupt()
        self.assertEqual(self.session.finish()["error"]["name"], "E")
        self.assert_alive()

    def test_a_broken_traceback_module_does_not_hide_the_error(self):
        self.ok("import traceback\ntraceback.StackSummary.format = None\ntraceback.TracebackException.format = None")
        self.assertEqual(self.error("1/0", "ZeroDivisionError")["line"], 1)


class Hints(KernelTest):
    def hint(self, code: str, expected: str) -> None:
        error = self.error(code)
        self.assertIn(expected, error["traceback"])
        self.assertTrue(any(expected in note for note in error["notes"]), error["notes"])

    def test_near_column_names(self):
        self.ok("import pandas as pd\ndf = pd.DataFrame({'Fare ': [1], 'Age': [2], 'Ticket No': [3], '销售额': [4]})")
        for code, expected in [
            ("df['fare']", "Did you mean: 'Fare '?"),
            ("df['ticket_no']", "Did you mean: 'Ticket No'?"),
            ("df[['Age', 'fare']]", "Did you mean: 'Fare '?"),
            ("df.groupby('age').sum()", "Did you mean: 'Age'?"),
            ("df.sort_values('Agee')", "Did you mean: 'Age'?"),
            ("df['zzz']", "Columns of df: 'Fare ', 'Age', 'Ticket No', '销售额'"),
            ("df.loc[0, 'AGE']", "Did you mean: 'Age'?"),
            ("df['销售']", "Did you mean: '销售额'?"),
            ("df.fare", "Did you mean: 'Fare '?"),
            ("df.drop(columns=['fare'])", "Did you mean: 'Fare '?"),
            ("df.agg({'fare': 'sum'})", "Did you mean: 'Fare '?"),
        ]:
            with self.subTest(code):
                self.hint(code, expected)

    def test_a_key_of_a_dict_is_no_column(self):
        self.ok("import pandas as pd\ndf = pd.DataFrame({'Fare': [1]})")
        self.assertEqual(self.error("{}['fare']", "KeyError")["notes"], [])

    def test_near_file_names(self):
        self.session.write("sales.xlsx", b"")
        self.session.write("Umsätze 2024.csv", b"")
        self.session.write("zip/deep/inner.csv", b"")
        for code, expected in [
            ("open('/mnt/data/Sales.XLSX')", "Did you mean: 'sales.xlsx'?"),
            ("open('sales.csv')", "'sales.xlsx'"),
            ("import pandas as pd; pd.read_csv('Umsa\\u0308tze 2024.csv')", "'Umsätze 2024.csv'"),
            ("open('inner.csv')", "'zip/deep/inner.csv'"),
            ("pd.read_excel('sales2.xlsx')", "'sales.xlsx'"),
            ("open('qqqqq')", "Files here: 'Umsätze 2024.csv', 'sales.xlsx', 'zip/deep/inner.csv'"),
        ]:
            with self.subTest(code):
                self.hint(code, expected)

    def test_an_empty_folder_is_said_to_be_empty(self):
        self.hint("open('data.csv')", "There are no files here yet.")

    def test_near_variables_and_forgotten_imports(self):
        self.ok("customers = [1]")
        for code, expected in [
            ("custmers", "customers"),
            ("Customers_", "customers"),
            ("np.array([1])", "import numpy as np"),
            ("plt.plot()", "import matplotlib.pyplot as plt"),
        ]:
            with self.subTest(code):
                self.assertIn(expected, self.error(code, "NameError")["traceback"])

    def test_missing_modules_name_what_is_here(self):
        for code, expected in [
            ("import torch", "scikit-learn"),
            ("import PyPDF2", "pypdf"),
            ("from prophet import Prophet", "statsmodels"),
            ("import requests_html", "Installed are: numpy"),
            ("import sklearn.nosuch", "scikit-learn"),
        ]:
            with self.subTest(code):
                self.hint(code, expected)

    def test_a_fence_in_a_cell_is_named(self):
        self.assertIn("leave out the fence", self.error("```python\nx = 1\n```", "SyntaxError")["traceback"])


if __name__ == "__main__":
    unittest.main()
