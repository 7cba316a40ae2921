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

    def test_labels_of_a_series(self):
        self.ok("import pandas as pd\ndf = pd.DataFrame({'Day': ['Sat', 'Sun', 'Sat'], 'n': [1, 2, 3]})")
        for code, expected in [
            ("df['Day'].value_counts()['sat']", "Did you mean: 'Sat'?"),
            ("df['Day'].value_counts()['Monday']", "Labels of that Series: 'Sat', 'Sun'"),
            ("df['n'].mode()[7]", "Labels of that Series: 0, 1, 2"),
        ]:
            with self.subTest(code):
                self.hint(code, expected)
                self.assertNotIn("Columns of", self.error(code)["traceback"])

    def test_what_a_message_of_pandas_asks_for(self):
        self.ok(
            "import pandas as pd\n"
            "df = pd.DataFrame({'a': ['x', 'y', 'x'], 'n': [1, 2, 3], 't': ['1,200', '3', '-'], 'd': ['2024-01-31', '2024-02-29', '2024-03-31'],"
            " 'f': [1.5, None, 2]})\n"
            "dates = pd.to_datetime(df['d'])\n"
            "other = pd.DataFrame({'n': ['1', '2'], 'w': [1, 2]})"
        )
        for code, expected in [
            ("df[df['a'] == 'x' & df['n'] == 2]", "put each comparison in parentheses"),
            ("df[df['n'] == 2 | df['a'] == 'x']", "put each comparison in parentheses"),
            ("df[df['n'] > 1 and df['n'] < 3]", "`and`, `or`, `not` and `if` take one value"),
            ("if df['n'] > 1: pass", "`.any()` or `.all()`"),
            ("df.corr()", "numeric_only=True"),
            ("df['t'].astype(float)", "errors='coerce'"),
            ("pd.to_numeric(df['t'])", "errors='coerce'"),
            ("df.groupby('a').mean()", "name the number columns"),
            ("df['t'].mean()", "Numbers that are kept as text"),
            ("df['t'] > 5", "One side is text"),
            ("df['t'] / df['n']", "One side is text"),
            ("df['f'].astype(int)", "astype('Int64')"),
            ("df['d'].dt.year", "pd.to_datetime(df['d'])"),
            ("dates > 5", "Dates compare with dates"),
            ("dates.month", "`s.dt.month`"),
            ("df['a'].lower()", "`s.str.lower`"),
            ("df['n'].resample('YE').mean()", "index of dates"),
            ("df.append(df)", "pd.concat"),
            ("df.applymap(str)", "df.map(function)"),
            ("df.fillna(method='ffill')", "`.ffill()` or `.bfill()`"),
            ("df.merge(other, on='n')", "The keys have two types"),
            ("df['n', 'a']", "`df[['n', 'a']]`"),
            ("df.drop('n')", "df.drop(columns=[...])"),
            ("df.query('n = 2')", "`==` compares"),
            ("df.query('n == x')", "need an `@`"),
            ("df[df['n'] == 99].iloc[0]", "no row passed the filter"),
            ("df[df['n'] == 99]['n'].values[0]", "no row passed the filter"),
            ("pd.to_datetime(df['a'])", "format='mixed'"),
            ("df['n'].max['x']", "called before its result is indexed"),
            ("df('n')", "Columns stand in brackets"),
            ("len = 5\nlen(df)", "`del len` brings it back"),
        ]:
            with self.subTest(code):
                self.hint(code, expected)
        self.ok("del len")

    def test_no_advice_where_the_message_means_something_else(self):
        self.ok("import pandas as pd\ndf = pd.DataFrame({'n': [1, 2]})")
        for code in ("[][5]", "raise ValueError('no such thing')", "raise TypeError('wrong')", "'a'.sort", "1 / 0", "{}[1, 2]", "df['n'].nosuch"):
            with self.subTest(code):
                self.assertEqual([n for n in self.error(code)["notes"] if not n.startswith(("Did you", "Columns", "Labels"))], [])

    def test_missing_brackets_are_named_where_they_would_help(self):
        for code, expected in [
            ("x = [1, 2]\nprint(len(x)\n", "Line 2 lacks ')' at its end: print(len(x))"),
            ("print(len([1, 2)", None),
            ("print(sum([1, 2]\ny = 1", "Line 1 lacks '))' at its end"),
            ("f = {'a': [1, (2,", "Line 1 lacks ')]}' at its end"),
            ("x = (1 +", None),
        ]:
            with self.subTest(code):
                notes = " ".join(self.error(code, "SyntaxError")["notes"])
                self.assertIn(expected or "", notes)
                self.assertEqual("lacks" in notes, expected is not None)

    def test_a_fence_in_a_cell_is_named(self):
        self.assertIn("leave out the fence", self.error("```python\nx = 1\n```", "SyntaxError")["traceback"])


class Oversights(KernelTest):
    def test_one_value_under_two_labels(self):
        self.ok("share = 0.38")
        for code in (
            "print(f'Men: {share:.1%}')\nprint(f'Women: {share:.1%}')",
            "print('Men', share)\nprint('Women', share)",
            "x = 1\nprint('Men:', share)\nprint('Children:', x)\nprint('Women:', share)",
        ):
            with self.subTest(code):
                self.assertIn("print the same variable", " ".join(self.ok(code)["notes"]))

    def test_other_lines_are_left_alone(self):
        self.ok("a = 1\nb = 1\nxs = [1, 2]")
        for code in (
            "print(f'Men: {a}')\nprint(f'Women: {b}')",
            "print(f'Men: {a}')\na = 2\nprint(f'Women: {a}')",
            "print(f'rough: {a:.0f}')\nprint(f'exact: {a:.3f}')",
            "print(a)\nprint(a)",
            "print('---')\nprint('---')",
            "print(f'Men: {a}')\nprint(f'Men: {a}')",
            "print('it', xs.pop())\na\nprint('next', xs.pop())",
            "for x in (1, 2):\n    print(f'Men: {x}')",
        ):
            with self.subTest(code):
                self.assertEqual(self.ok(code)["notes"], [])

    def test_a_method_that_was_not_called(self):
        self.ok("import pandas as pd\ns = pd.Series([1, 2])")
        for code in ("s.index", "[].append", "f = lambda: 1\nf"):
            with self.subTest(code):
                self.assertEqual(self.ok(code)["notes"], [])
        self.assertIn("`.max()`", self.ok("s.max")["notes"][0])

    TABLE = (
        "import pandas as pd\n"
        "df = pd.DataFrame({'Sex': ['male', 'female', 'male', None], 'Age': [3, 40, 50, 7], 'year': [1990, 1991, 1992, 1993]})\n"
    )

    def test_a_value_that_the_column_does_not_have(self):
        self.ok(self.TABLE)
        for code, expected in [
            ("len(df[df['Sex'] == 'Female'])", "df['Sex'] has no value 'Female'; it has 'female', 'male'."),
            ("print((df.Sex == 'women').sum())", "df.Sex has no value 'women'; it has 'male', 'female'."),
            ("x = df[(df['Sex'] == 'man') & (df['Age'] > 5)].shape[0]\nx", "has no value 'man'"),
            ("df[(df['year'] == 2015) & (df['Age'] > 5)]", "df['year'] has no value 2015; it has numbers from 1990 to 1993."),
            ("df['Sex'].isin(['male', 'Females']).sum()", "has no value 'Females'; it has 'female', 'male'."),
        ]:
            with self.subTest(code):
                self.assertIn(expected, " ".join(self.ok(code)["notes"]))
        for code in ("len(df[df['Sex'] == 'female'])", "df['Age'] == 'x'", "df['Age'] == 40.0", "df['Sex'] != 'x'", "'Female' == 'male'", "df['Sex'].isin([])"):
            with self.subTest(code):
                self.assertEqual(self.ok(code)["notes"], [])

    def test_a_filter_that_takes_nothing_or_all(self):
        self.ok(self.TABLE)
        for code, expected in [
            ("d = df[df['Age'] > 0]\nlen(d)", "`d` has all 4 rows of `df`"),
            ("d = df[(df['Age'] > 45) & (df['Age'] < 45)]\nlen(d)", "`d` has no rows"),
        ]:
            with self.subTest(code):
                self.assertIn(expected, " ".join(self.ok(code)["notes"]))
        for code in ("d = df[df['Age'] > 5]", "d = df[['Age', 'Sex']]", "d = df['Age']", "df = df[df['Age'] > 0]", "d = df[0:4]"):
            with self.subTest(code):
                self.assertEqual(self.ok(code)["notes"], [])

    def test_the_number_of_a_row_in_place_of_its_value(self):
        self.ok(self.TABLE)
        for code, expected in [
            ("year = df['Age'].idxmax()\nprint(f'It was {year}.')", "`df.loc[df['Age'].idxmax()]` shows that row"),
            ("print(df.Age.idxmin())", "the number of a row"),
        ]:
            with self.subTest(code):
                self.assertIn(expected, " ".join(self.ok(code)["notes"]))
        for code in ("print(df.loc[df['Age'].idxmax(), 'year'])", "s = df.set_index('year')['Age']\nprint(s.idxmax())", "i = df['Age'].idxmax()"):
            with self.subTest(code):
                self.assertEqual(self.ok(code)["notes"], [])

    def test_nothing_that_is_looked_at_can_break_a_cell(self):
        self.ok(self.TABLE)
        for code in (
            "class T(pd.DataFrame):\n    def __getitem__(self, k): raise SystemExit\nt = T({'a': ['x']})\nt.a == 'y'",
            "two = pd.DataFrame([['x', 'y']], columns=['a', 'a'])\ntwo['a'] == 'z'",
            "mixed = pd.DataFrame({'a': [['x'], {}, 'y']})\nmixed['a'] == 'z'",
            "x = " + "(" * 80 + "1" + ")" * 80,
            "%time 1",
            "x = '\\ud800'\nx == '\\ud801'",
        ):
            with self.subTest(code[:60]):
                self.ok(code)


if __name__ == "__main__":
    unittest.main()
