"""Objects of many kinds as results, and what display() makes of them."""

import struct
import unittest

from driver import KernelTest

# 3 x 2, red
PNG = "b'iVBORw0KGgoAAAANSUhEUgAAAAMAAAACCAIAAAASFvFNAAAAEElEQVR4nGP4z8AAQQxwFgBB0gX7h/C5SAAAAABJRU5ErkJggg=='"


def png_size(path: str) -> tuple[int, int]:
    with open(path, "rb") as file:
        return struct.unpack(">II", file.read(24)[16:])


class Tables(KernelTest):
    def setUp(self):
        super().setUp()
        self.ok("import pandas as pd, numpy as np\ndf = pd.DataFrame({'a': range(100), 'b': ['x'] * 100})")

    def test_a_table_is_text_and_html(self):
        result = self.ok("df.head(2)")["result"]
        self.assertEqual(set(result), {"text/plain", "text/html"})
        self.assertIn("<table", result["text/html"])

    def test_a_long_table_shows_twenty_rows_and_its_size(self):
        text = self.value("df")
        self.assertIn("[100 rows x 2 columns]", text)
        self.assertLessEqual(text.count("\n"), 24)

    def test_a_wide_table_is_cut_in_columns_not_wrapped(self):
        text = self.value("pd.DataFrame(np.zeros((3, 100)))")
        self.assertIn("...", text)
        self.assertLessEqual(max(map(len, text.splitlines())), 160)

    def test_a_series_is_text_only(self):
        self.assertEqual(set(self.ok("df['a'].head(2)")["result"]), {"text/plain"})

    def test_long_arrays_are_summarised(self):
        self.assertLess(len(self.value("np.arange(100000)")), 200)

    def test_a_styler_is_shown_with_its_formats(self):
        result = self.ok("df.head(2).style.format({'a': '{:.2f} €'})")["result"]
        self.assertIn("1.00 €", result["text/plain"])
        self.assertIn("1.00 €", result["text/html"])

    def test_settings_of_a_person_are_kept(self):
        self.ok("pd.set_option('display.max_rows', 4)")
        self.assertLessEqual(self.value("df").count("\n"), 8)

    def test_columns_of_wide_characters_stay_aligned(self):
        text = self.value("pd.DataFrame({'城市': ['北京', '上'], 'n': [1, 2]})")
        self.assertEqual(text.splitlines()[1], "0  北京  1")
        self.assertEqual(text.splitlines()[2], "1    上  2")


class Objects(KernelTest):
    def test_text_of_many_kinds(self):
        cases = {
            "from IPython.display import *; Markdown('# **head**')": "# **head**",
            "HTML('<p>one</p><p>two &amp; three</p><script>x</script>')": "one\ntwo & three",
            "Latex('$x^2$')": "$x^2$",
            "JSON({'a': [1]})": '{"a": [1]}',
            "import sympy; x = sympy.Symbol('x'); x**2 + 1": "x**2 + 1",
            "object.__repr__": "<slot wrapper '__repr__' of 'object' objects>",
            "{'b': 1, 'a': 2}": "{'b': 1, 'a': 2}",
        }
        for code, text in cases.items():
            with self.subTest(code):
                self.assertEqual(self.value(code), text)

    def test_html_of_an_object_is_passed_on(self):
        self.assertEqual(
            self.ok("from IPython.display import HTML; HTML('<b>x</b>')")["result"]["text/html"], "<b>x</b>"
        )

    def test_odd_reprs_are_survived(self):
        cases = {
            "class A:\n    def __repr__(self): raise ValueError\nA()": "<A object; its repr raised ValueError>",
            "class A:\n    def __repr__(self): return 5\nA()": "<A object; its repr raised TypeError>",
            "class A:\n    def _repr_html_(self): raise ValueError\n    def __repr__(self): return 'fine'\nA()": "fine",
            "class A:\n    def _repr_html_(self): return 5\n    def __repr__(self): return 'fine'\nA()": "fine",
            "class A:\n    def _repr_png_(self): return b'no png'\n    def __repr__(self): return 'fine'\nA()": "fine",
            "class A:\n    def __getattr__(self, n): raise RuntimeError(n)\n"
            "    def __repr__(self): return 'fine'\nA()": "fine",
            "class A:\n    __class__ = property(lambda s: 1/0)\n    def __repr__(self): return 'fine'\nA()": "fine",
            "class A(list):\n    def __len__(self): return 10**9\n    def __repr__(self): return 'fine'\nA()": "fine",
            "a = []; a.append(a); a": "[[...]]",
        }
        for code, text in cases.items():
            with self.subTest(code):
                self.assertEqual(self.value(code), text)

    def test_an_exit_in_a_repr_is_reported(self):
        self.run_cell("class A:\n    def __repr__(self): raise SystemExit(3)\nA()")
        self.assert_alive()

    def test_long_results_keep_head_and_tail(self):
        text = self.value("'a' * 10**6 + 'z'")
        self.assertLess(len(text), 70_000)
        self.assertIn("characters left out", text)
        self.assertTrue(text.endswith("z'"))
        self.assertIn("999", self.value("list(range(10**6))"))

    def test_html_that_is_too_long_is_left_out_and_said(self):
        reply = self.ok("from IPython.display import HTML; HTML('x' * 10**6)")
        self.assertNotIn("text/html", reply["result"])
        self.assertTrue(any("too long" in note for note in reply["notes"]))

    def test_a_claim_of_control_characters_fits(self):
        self.assertEqual(
            self.ok(
                "class A:\n    def __repr__(self): return chr(1) * 10**6\n"
                "    def _repr_html_(self): return chr(1) * 500_000\nA()"
            )["status"],
            "ok",
        )

    def test_several_expressions_can_be_shown(self):
        self.ok("get_ipython().ast_node_interactivity = 'all'")
        reply = self.ok("1\n2\n3")
        self.assertEqual((reply.stdout, reply.text), ("1\n2\n", "3"))


class Displayed(KernelTest):
    def test_display_prints_in_order(self):
        code = (
            "import pandas as pd\nprint('one')\ndisplay(pd.DataFrame({'a': [1]}))\nprint('three')\ndisplay('four', 5)"
        )
        self.assertEqual(self.ok(code).stdout, "one\n   a\n0  1\nthree\n'four'\n5\n")

    def test_display_of_rich_objects_prints_their_text(self):
        self.assertEqual(
            self.ok("from IPython.display import *\ndisplay(Markdown('# hi'), HTML('<b>bold</b>'))").stdout,
            "# hi\nbold\n",
        )
        self.assertEqual(self.ok("display({'text/plain': 'raw'}, raw=True)").stdout, "raw\n")

    def test_a_handle_can_be_updated(self):
        self.assertEqual(self.ok("h = display('a', display_id=True)\nh.update('b')").stdout, "'a'\n'b'\n")

    def test_clear_output_is_harmless(self):
        self.ok("from IPython.display import clear_output\nprint('x'); clear_output(wait=True)")


class Pictures(KernelTest):
    def size_of(self, reply) -> list[tuple[int, int]]:
        sizes = [png_size(self.session.path(path)) for path in reply.paths]
        self.assertEqual(sizes, [(f["width"], f["height"]) for f in reply["figures"]])
        return sizes

    def test_pictures_of_all_kinds_are_delivered(self):
        self.ok("from PIL import Image as I; from IPython.display import Image, display\nimport io, base64")
        self.ok("def jpeg():\n    b = io.BytesIO(); I.new('RGB', (5, 4)).save(b, 'JPEG'); return b.getvalue()")
        self.ok("import numpy as np")
        cases = [
            ("I.new('RGB', (30, 20))", (30, 20)),
            ("I.new('CMYK', (30, 20))", (30, 20)),
            ("I.new('I;16', (30, 20))", (30, 20)),
            ("I.new('F', (30, 20))", (30, 20)),
            ("I.new('P', (30, 20))", (30, 20)),
            ("I.new('1', (30, 20))", (30, 20)),
            ("I.new('RGBA', (30, 20))", (30, 20)),
            ("I.new('L', (5000, 2500))", (2000, 1000)),
            (f"Image(data=base64.b64decode({PNG}))", (3, 2)),
            ("Image(data=jpeg(), format='jpeg')", (5, 4)),
            ("open('a.jpg', 'wb').write(jpeg()); Image('a.jpg')", (5, 4)),
            (f"class P:\n    def _repr_png_(self): return base64.b64decode({PNG})\nP()", (3, 2)),
            (f"class P:\n    def _repr_png_(self): return {PNG}.decode(), {{}}\nP()", (3, 2)),
            (f"class P:\n    def _repr_mimebundle_(self, **k): return {{'image/png': {PNG}.decode()}}\nP()", (3, 2)),
            ("class P:\n    def _repr_jpeg_(self): return jpeg()\nP()", (5, 4)),
            ("display(I.new('RGB', (7, 6)))", (7, 6)),
        ]
        for code, size in cases:
            with self.subTest(code):
                reply = self.ok(code)
                self.assertEqual((self.size_of(reply), reply["result"]), ([size], None), reply)

    def test_a_broken_picture_is_said(self):
        reply = self.ok("class P:\n    def _repr_png_(self): return b'\\x89PNG broken'\nP()")
        self.assertEqual(reply["figures"], [])
        self.assertIn("not a readable PNG", reply["notes"][0])

    def test_an_svg_is_written_as_a_file(self):
        reply = self.ok("from IPython.display import SVG\nSVG('<svg xmlns=\"http://www.w3.org/2000/svg\"></svg>')")
        self.assertTrue(self.session.exists("out/picture-1-1.svg"))
        self.assertEqual(reply["notes"], ["an SVG picture was written to out/picture-1-1.svg"])


class Plotly(KernelTest):
    def test_an_interactive_chart_is_a_file_and_a_picture(self):
        for code in ("fig", "fig.show()", "display(fig)"):
            with self.subTest(code):
                reply = self.ok(
                    f"import plotly.express as px\nfig = px.bar(x=['a', 'b'], y=[1, 2], title='Bars')\n{code}"
                )
                number = self.session.number
                self.assertTrue(self.session.exists(f"out/plotly-{number}-1.html"))
                self.assertEqual(reply["notes"], [f"the interactive chart was written to out/plotly-{number}-1.html"])
                self.assertEqual([f["title"] for f in reply["figures"]], ["Bars"])
                self.assertIn("2 bars", reply["figures"][0]["summary"])

    def test_the_common_kinds_are_drawn(self):
        self.ok("import plotly.express as px, plotly.graph_objects as go, pandas as pd\ndf = px.data.tips()")
        self.ok("t = pd.date_range('2024-01-01', periods=4)")
        for code, *words in [
            ("px.line(x=t, y=[1, 3, 2, 4])", "1 line", "x 2024-01-01…2024-01-04"),
            ("px.scatter(df, x='total_bill', y='tip', color='sex')", "2 scatters", "244 points"),
            ("px.scatter(df, x='total_bill', y='tip', size='size', color='tip')", "1 scatter", "244 points"),
            ("px.bar(df, x='day', y='tip')", "4 bars", "y 0…260.4"),  # plotly adds up: Saturday's tips
            ("px.bar(df, x='day', y='tip', color='sex')", "8 bars", "y 0…260.4"),
            ("px.bar(df, x='day', y='tip', color='sex', barmode='group')", "8 bars", "y 0…186.78"),
            ("px.bar(df.head(6), x='tip', y='day', orientation='h')", "1 bar", "x 0…17.8"),
            ("px.bar(x=['a', 'a', 'b'], y=[1, -2, 3])", "3 bars", "y -2…3"),
            ("px.pie(df, values='tip', names='day')", "4 wedges"),
            ("px.histogram(df, x='tip')", "bars"),
            ("px.box(df, x='day', y='tip')", "lines"),
            ("px.imshow([[1, 2], [3, 4]])", "1 image"),
            ("go.Figure(go.Scatter(x=[1, 2], y=[3, 4], mode='lines+markers'))", "1 line"),
        ]:
            with self.subTest(code):
                reply = self.ok(code)
                self.assertEqual(len(reply["figures"]), 1, reply)
                for word in words:
                    self.assertIn(word, reply["figures"][0]["summary"])

    def test_what_would_be_drawn_wrong_is_not_drawn(self):
        self.ok("import plotly.express as px, plotly.graph_objects as go\ndf = px.data.tips()")
        for code, reason in [
            ("px.scatter(df, x='tip', y='size', facet_col='sex')", "facets"),
            ("px.area(x=[1, 2], y=[1, 2])", "areas"),
            ("px.histogram(df, x='day', y='tip')", "aggregation"),
            ("px.histogram(df, x='tip', histnorm='percent')", "aggregation"),
            ("px.scatter(df, x='tip', y='size', animation_frame='sex')", "animation"),
            ("go.Figure(go.Bar(x=['a'], y=[1], base=[2]))", "base"),
            ("go.Figure([go.Bar(x=['a'], y=[1]), go.Scatter(x=['a'], y=[9], yaxis='y2')])", "second axis"),
            ("px.sunburst(df, path=['sex', 'day'])", "sunburst"),
        ]:
            with self.subTest(code):
                reply = self.ok(code)
                self.assertEqual(reply["figures"], [])
                self.assertIn("no picture of it can be made here", reply["notes"][0])
                self.assertIn(reason, reply["notes"][0])

    def test_a_picture_can_be_written(self):
        reply = self.ok("import plotly.express as px\npx.line(x=[1, 2], y=[1, 2]).write_image('line.png')")
        self.assertEqual(png_size(self.session.path("line.png"))[0], 1152)
        self.assertEqual(reply["same_as"], {"line.png": "out/figure-1-1.png"})

    def test_kinds_that_can_not_be_drawn_are_named(self):
        reply = self.ok("import plotly.graph_objects as go\ngo.Figure(go.Sankey())")
        self.assertIn("sankey", reply["notes"][0])
        self.assertEqual(reply["figures"], [])


if __name__ == "__main__":
    unittest.main()
