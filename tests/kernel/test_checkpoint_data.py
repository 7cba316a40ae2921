"""Checkpoints: arrays, tables, files and what libraries make."""

import os
import unittest

from test_checkpoint_base import CheckpointTest


class Arrays(CheckpointTest):
    def test_views_stay_views(self):
        self.over("""
            import numpy as np
            a = np.arange(100_000); v = a[10:20]; back = a[::-1]
            rec = np.zeros(5, [('x', 'f8'), ('n', 'i4')]); xs = rec['x']
            ro = a[:5]; ro.flags.writeable = False
        """)
        self.ok("a[10] = -1; xs[0] = 7")
        self.true(
            "v[0] == -1", "back[-11] == -1", "rec['x'][0] == 7", "not ro.flags.writeable", "np.shares_memory(a, ro)"
        )

    def test_arrays_of_any_order_type_and_size_hold(self):
        code = """
            import numpy as np
            f = np.asfortranarray(np.arange(60_000.).reshape(200, 300))
            t = np.arange(60_000).reshape(200, 300).T
            alone = np.arange(100_000)[5:50_000:3].copy()
            step = np.arange(100_000)[::7]; o = np.array([1, 'a', None], object)
            e = np.empty((0, 3)); z = np.array(5); s = np.array(['a', 'bc'])
            dt = np.array(['2024-01-01'], 'M8[D]')
            c = np.ones(9, complex); b = np.ones(30_000, bool)
            big = np.arange(9000, dtype='>i4')
            vs = np.array(['x', 'yy'], np.dtypes.StringDType())
            m = np.ma.masked_array([1, 2], [True, False])
            mat = np.matrix([[1]]); g = np.float32(1.5); sub = np.arange(6)[2:4]
            masked = np.ma.masked
        """
        self.over(code)
        self.true(
            "f.flags.f_contiguous and f[3, 4] == 904",
            "t[4, 3] == 904",
            "alone[1] == 8",
            "step[2] == 14",
            "o.tolist() == [1, 'a', None]",
            "e.shape == (0, 3)",
            "z == 5",
        )
        self.true(
            "dt[0] == np.datetime64('2024-01-01')",
            "big[5] == 5 and big.dtype == '>i4'",
            "vs[1] == 'yy'",
            "m.sum() == 2",
            "type(mat) is np.matrix",
            "g.dtype == 'f4'",
            "masked is np.ma.masked",
        )
        self.ok("f.resize((10, 10), refcheck=False); b[0] = False")

    def test_memory_maps_are_opened_again(self):
        self.ok("""
            import numpy as np
            m = np.memmap('m.bin', 'f8', 'w+', shape=(1000, 3)); m[5] = 2; part = m[5:7]
            plain = np.asarray(m)[5]
        """)
        self.assertEqual(self.save()["lost"], [])
        self.assertEqual(self.thaw()["lost"], [])
        self.ok("m[5, 0] = 9; m.flush()")
        self.true(
            "type(m) is np.memmap and m.mode == 'r+'",
            "part[0, 0] == 9",
            "plain[0] == 9",
            "np.fromfile('m.bin')[15] == 9.0",
            "type(part) is np.memmap",
        )

    def test_generators_of_random_numbers_go_on(self):
        self.ok("""
            import numpy as np, random
            rng = np.random.default_rng(1); rng.random(); also = rng; r = random.Random(2)
            r.random(); bits = rng.bit_generator; old = np.random.RandomState(3)
            sysr = random.SystemRandom()
        """)
        self.save()
        self.assertEqual(self.thaw()["lost"], [])
        self.true("rng is also", "rng.bit_generator is bits", "sysr.random() < 1")
        self.ok("""
            want = np.random.default_rng(1); want.random(); w2 = random.Random(2); w2.random()
            w3 = np.random.RandomState(3)
        """)
        self.true("rng.random() == want.random()", "r.random() == w2.random()", "old.rand() == w3.rand()")


class Tables(CheckpointTest):
    def test_a_write_to_one_table_does_not_show_in_another(self):
        code = """
            import pandas as pd, numpy as np
            df = pd.DataFrame({'a': np.arange(50_000), 'b': np.arange(50_000)})
            other = df.rename(columns={'a': 'c'}); col = df['a']; idx = pd.Index(df['b'])
            shallow = df.copy(deep=False); arr = df['a'].to_numpy(); t = df.T
        """
        self.ok(code)
        report = self.save()
        self.assertLess(report["bytes"], 2_000_000)  # the memory that they share, once
        self.thaw()
        self.true("np.shares_memory(df['a'].to_numpy(), other['c'].to_numpy())")
        self.ok("df.loc[0, 'a'] = 99; df.iloc[1, 1] = 98; col.iloc[2] = 97")
        self.true(
            "other.loc[0, 'c'] == 0",
            "shallow.loc[0, 'a'] == 0",
            "col[0] == 0",
            "idx[1] == 1",
            "df.loc[2, 'a'] == 2",
            "other.loc[2, 'c'] == 2",
            "arr[0] == 0",
            "t.iloc[0, 0] == 0",
        )

    def test_tables_of_every_kind_hold(self):
        code = """
            import pandas as pd, numpy as np
            df = pd.DataFrame({'s': ['a', None, 'ü'], 'c': pd.Categorical(['x', 'y', 'x'], ordered=True), 't': pd.to_datetime(['2024-01-01', None, '2024-02-01']).tz_localize('Europe/Berlin'),
              'i': pd.array([1, None, 3], 'Int64'), 'f': [1.5, np.nan, 2], 'o': [[1], {}, None], 'p': pd.period_range('2024-01', periods=3, freq='M'), 'd': pd.to_timedelta([1, 2, 3], 'D')})
            df['arrow'] = pd.array([1, 2, None], dtype='int64[pyarrow]')
            df['iv'] = pd.interval_range(0, 3); df.attrs['from'] = 'here'
            mi = pd.DataFrame({'v': range(4)}, index=pd.MultiIndex.from_product([['a', 'b'], [1, 2]], names=['k', 'n']))
            sp = pd.Series([0, 0, 1], dtype='Sparse[int]'); before = df.copy(); mb = mi.copy()
            gb = mi.groupby('k'); roll = mi.v.rolling(2)
            long = pd.Series(['name %d' % i for i in range(20_000)]); part = long[100:105]
            same = pd.DataFrame({'x': long})
        """
        self.over(code)
        self.ok("""
            pd.testing.assert_frame_equal(df, before); pd.testing.assert_frame_equal(mi, mb)
        """)
        self.true(
            "df.dtypes.astype(str).tolist() == before.dtypes.astype(str).tolist()",
            "df.attrs == {'from': 'here'}",
            "gb.v.sum()['b'] == 5",
            "roll.sum().iloc[1] == 1",
            "sp.sum() == 1",
            "part.iloc[0] == 'name 100'",
            "same.x.iloc[-1] == 'name 19999'",
            "df.s.isna().sum() == 1",
            "df.c.cat.ordered",
        )
        self.ok("df.loc[0, 's'] = 'new'; long.iloc[0] = 'z'")
        self.true("before.loc[0, 's'] == 'a'", "same.x.iloc[0] == 'name 0'")

    def test_strings_that_tables_share_are_written_once(self):
        self.ok("""
            import pandas as pd
            long = pd.DataFrame({'s': ['a long name of number %d' % i for i in range(50_000)], 'u': 1})
            sub = long[['s']]; again = long.rename(columns={'s': 'q'})
        """)
        size = self.value("int(long.s.array._pa_array.nbytes)")
        report = self.save()
        self.assertLess(report["bytes"], int(size) * 1.7)
        self.thaw()
        self.true("again.q.iloc[-1] == sub.s.iloc[-1] == 'a long name of number 49999'")

    def test_a_table_with_columns_joined_is_whole(self):
        self.over("""
            import pandas as pd
            parts = pd.concat([pd.DataFrame({'s': ['a%d' % i] * 1000}) for i in range(3)])
        """)
        self.true("parts.shape == (3000, 1)", "parts.s.iloc[-1] == 'a2'")

    def test_arrow_polars_and_their_plans_hold(self):
        self.over("""
            import polars as pl, pyarrow as pa
            t = pl.DataFrame({'a': [1, 2], 's': ['x', None]})
            lazy = t.lazy().filter(pl.col('a') > 1); ser = t['a']; e = pl.col('a') * 2
            tb = pa.table({'n': list(range(10_000))}); sl = tb.slice(5, 3)
        """)
        self.true(
            "t.shape == (2, 2)",
            "lazy.collect().item(0, 'a') == 2",
            "ser.sum() == 3",
            "t.select(e).item(1, 0) == 4",
            "tb['n'][7].as_py() == 7",
            "sl['n'].to_pylist() == [5, 6, 7]",
        )


class Libraries(CheckpointTest):
    def test_models_and_pictures_hold(self):
        code = """
            import numpy as np
            from sklearn.linear_model import LinearRegression
            from sklearn.pipeline import make_pipeline
            from sklearn.preprocessing import StandardScaler
            from sklearn.ensemble import RandomForestClassifier
            X = np.arange(20.).reshape(-1, 1)
            pipe = make_pipeline(StandardScaler(), LinearRegression()).fit(X, 2 * X)
            rf = RandomForestClassifier(3, random_state=0).fit(X, X[:, 0] > 9)
            from PIL import Image
            im = Image.new('RGB', (20, 10), 'red'); import plotly.graph_objects as go
            fig = go.Figure(go.Scatter(x=[1], y=[2])); import networkx as nx
            G = nx.path_graph(3)
            import sympy
            x = sympy.Symbol('x'); expr = x**2 + 1
            import scipy.sparse
            sm = scipy.sparse.eye(3).tocsr(); import scipy.interpolate
            ip = scipy.interpolate.interp1d([0, 1], [0, 2])
        """
        self.over(code)
        self.true(
            "round(float(pipe.predict([[3.]])[0, 0])) == 6",
            "bool(rf.predict([[15.]])[0])",
            "im.getpixel((1, 1)) == (255, 0, 0)",
            "fig.data[0].y == (2,)",
            "G.number_of_edges() == 2",
            "expr.subs(x, 2) == 5",
            "sm.sum() == 3",
            "float(ip(0.5)) == 1.0",
        )

    def test_what_libraries_hold_is_named_or_there(self):
        code = """
            import openpyxl, bs4, seaborn as sns, pandas as pd, tqdm, io, statsmodels.formula.api as smf
            wb = openpyxl.Workbook(); ws = wb.active; ws['A1'] = 5; soup = bs4.BeautifulSoup('<b>x</b>', 'html.parser')
            grid = sns.FacetGrid(pd.DataFrame({'a': [1, 2], 'b': ['x', 'y']}), col='b'); bar = tqdm.tqdm(range(3), file=io.StringIO())
            res = smf.ols('a ~ b', pd.DataFrame({'a': [1.0, 2, 3], 'b': [1.0, 2, 4]})).fit()
            st = pd.DataFrame({'a': [1]}).style.highlight_max(); reader = pd.read_csv(io.StringIO('a\\n1'), chunksize=1)
        """
        self.assertEqual(set(self.lost(code)), {"reader"})
        self.true("ws['A1'].value == 5", "soup.b.text == 'x'", "round(res.params['b'], 3) == 0.643", "bar.total == 3")
        self.true("'background' in st.to_html()", "grid.axes.shape == (1, 2)")

    def test_figures_can_be_changed_and_shown(self):
        self.ok("""
            import matplotlib.pyplot as plt
            fig, ax = plt.subplots(); line, = ax.plot([1, 2]); ax.set_title('before')
        """)
        self.assertEqual(self.save()["lost"], [])
        self.assertEqual(self.thaw()["lost"], [])
        self.assertEqual(self.ok("1")["figures"], [])
        self.true("fig.axes[0] is ax and ax.lines[0] is line")
        figures = self.ok("ax.set_title('after')")["figures"]
        self.assertEqual([figure["title"] for figure in figures], ["after"])
        self.assertEqual(len(self.ok("fig.savefig('f.png')")["figures"]), 1)
        self.assertEqual(len(self.ok("plt.plot([3])")["figures"]), 1)


class Files(CheckpointTest):
    def test_open_files_go_on_where_they_were(self):
        self.session.write("t.txt", "hällo\nworld\n")
        self.session.write("b.bin", bytes(range(100)))
        code = """
            r = open('t.txt', encoding='utf-8'); r.readline(); b = open('b.bin', 'rb')
            b.seek(50); w = open('w.txt', 'w'); w.write('buffered'); a = open('a.txt', 'a')
            a.write('x')
            rw = open('b.bin', 'r+b'); rw.seek(3); raw = open('b.bin', 'rb', buffering=0)
            raw.read(7); same = r
        """
        self.over(code)
        self.true(
            "r.readline() == 'world\\n'",
            "same is r",
            "b.read(1) == bytes([50])",
            "w.tell() == 8",
            "w.mode == 'w' and not w.readable()",
            "rw.read(1) == bytes([3])",
            "raw.read(1) == bytes([7])",
            "r.name == 't.txt'",
        )
        self.ok("""
            w.write(' more'); w.close(); a.write('y'); a.close(); rw.write(b'!'); rw.close()
        """)
        self.true(
            "open('w.txt').read() == 'buffered more'",
            "open('a.txt').read() == 'xy'",
            "open('b.bin', 'rb').read(5)[4] == 33",
        )

    def test_closed_files_stay_closed(self):
        self.session.write("t.txt", "a")
        self.over("with open('t.txt') as f: f.read()\nwith open('t.txt', 'rb') as g: pass")
        self.true("f.closed and g.closed", "f.name == 't.txt'")

    def test_the_streams_are_those_of_the_new_session(self):
        self.over("""
            import sys, logging
            out = sys.stdout; h = logging.StreamHandler(sys.stdout)
        """)
        self.true("out is sys.stdout", "h.stream is sys.stdout")

    def test_what_is_no_file_any_more_is_named(self):
        code = """
            import os, gzip, tempfile
            gone = open('g.txt', 'w'); os.unlink('g.txt')
            rd, wr = (os.fdopen(n, m) for n, m in zip(os.pipe(), 'rw'))
            z = gzip.open('z.gz', 'wt'); tmp = tempfile.NamedTemporaryFile()
            by_line = open('/etc/passwd'); next(by_line)
        """
        lost = self.lost(code)
        self.assertEqual(set(lost), {"gone", "rd", "wr", "z", "tmp", "by_line"})
        self.assertEqual(lost["gone"], "`gone` is an open file that was deleted")
        self.assertIn("pipe", lost["rd"])
        self.assertIn("line by line", lost["by_line"])

    def test_a_file_that_is_missing_later_costs_only_itself(self):
        self.session.write("t.txt", "a")
        self.ok("f = open('t.txt'); d = {'f': f}; x = [1]; y = x")
        self.assertEqual(self.save()["lost"], [])
        os.unlink(self.session.path("t.txt"))
        report = self.thaw()
        self.assertEqual(
            {entry["name"]: entry["type"] for entry in report["lost"]}, {"f": "TextIOWrapper", "d": "dict"}
        )
        self.assertIn("could not be opened again", report["lost"][0]["why"])
        self.true("y is x", "'f' not in globals()", "x == [1]")


if __name__ == "__main__":
    unittest.main()
