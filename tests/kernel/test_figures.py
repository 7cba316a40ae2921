"""Every figure of a cell arrives, once, in order, normalised."""

import os
import struct
import unittest
import zlib

from driver import KernelTest


def chunks(path: str) -> list[bytes]:
    """Kinds of chunks of a PNG, with their checksums checked."""
    with open(path, "rb") as file:
        data = file.read()
    assert data[:8] == b"\x89PNG\r\n\x1a\n"
    kinds, at = [], 8
    while at < len(data):
        length, kind = struct.unpack_from(">I4s", data, at)
        body = data[at + 8 : at + 8 + length]
        assert zlib.crc32(kind + body) == struct.unpack_from(">I", data, at + 8 + length)[0]
        kinds.append(kind)
        at += 12 + length
    return kinds


class FigureTest(KernelTest):
    def setUp(self):
        super().setUp()
        self.ok("import matplotlib.pyplot as plt, numpy as np")

    def titles(self, code: str, status: str = "ok") -> list[str]:
        reply = self.run_cell(code)
        self.assertEqual(reply["status"], status, reply)
        number = self.session.number
        self.assertEqual(reply.paths, [f"out/figure-{number}-{i}.png" for i in range(1, len(reply.paths) + 1)])
        for figure in reply["figures"]:
            self.assertEqual(set(chunks(self.session.path(figure["path"]))), {b"IHDR", b"IDAT", b"IEND"})
            self.assertLessEqual(max(figure["width"], figure["height"]), 2000)
        self.reply = reply
        return [figure["title"] for figure in reply["figures"]]


class WhichFigures(FigureTest):
    def test_each_way_of_ending_a_chart_delivers_it_once(self):
        plot = "plt.plot([1, 2]); plt.title('t')\n"
        for code in (
            plot,
            plot + "plt.show()",
            plot + "plt.show(); plt.show()",
            plot + "plt.savefig('a.png')",
            plot + "plt.savefig('a.png'); plt.close()",
            plot + "plt.savefig('a.png'); plt.show()",
            plot + "plt.savefig('a.png'); plt.close('all')",
            plot + "plt.savefig('a.png'); plt.clf()",
            plot + "plt.show(); plt.savefig('a.png')",
            plot + "plt.savefig('a.png'); plt.savefig('b.png', dpi=50); plt.savefig('c.jpg')",
            plot + "plt.savefig('a'); plt.close()",
            plot + "plt.savefig('a.pdf'); plt.close()",
            plot + "plt.savefig('a.svg')",
            plot + "plt.savefig('/tmp/a.png'); plt.close()",
            plot + "plt.gcf()",
            plot + "display(plt.gcf())",
            plot + "display(plt.gcf()); display(plt.gcf())",
            plot + "plt.gcf().show()",
            plot + "plt.draw(); plt.pause(0.1)",
            "plt.ion()\n" + plot + "plt.show(block=True)\nplt.ioff() and None",
            "fig, ax = plt.subplots(); ax.plot([1]); ax.set_title('t')\nfig",
            "from matplotlib.figure import Figure\n"
            "f = Figure(); f.subplots().set_title('t'); f.axes[0].plot([1])\nf.savefig('x.png')",
            "f = Figure(); f.subplots().set_title('t'); f.axes[0].plot([1])\nf",
            "plt.figure(); plt.figure()\n" + plot,
            "plt.switch_backend('TkAgg'); import matplotlib; matplotlib.use('QtAgg')\n" + plot,
            plot + "plt.gca()",
        ):
            with self.subTest(code):
                self.assertEqual(self.titles(code), ["t"])
                self.assertEqual(self.value("plt.get_fignums()"), "[]")

    def test_nothing_drawn_is_nothing_delivered(self):
        for code in (
            "plt.figure() and None",
            "plt.subplots(2, 2) and None",
            "plt.show()",
            "plt.plot([1]); plt.close()",
            "plt.plot([1]); plt.clf()",
            "fig = plt.figure()\nfig",
            "plt.plot([1]); import io; plt.savefig(io.BytesIO()); plt.close()",
        ):
            with self.subTest(code):
                self.assertEqual(self.titles(code), [])

    def test_several_figures_come_in_order(self):
        for code, titles in [
            ("for i in range(3):\n    plt.figure(); plt.plot([i]); plt.title(i)", ["0", "1", "2"]),
            ("for i in range(3):\n    plt.plot([i]); plt.title(i); plt.show()", ["0", "1", "2"]),
            (
                "for i in range(3):\n    plt.plot([i]); plt.title(i); plt.savefig(f'{i}.png'); plt.close()",
                ["0", "1", "2"],
            ),
            (
                "for i in range(3):\n    plt.plot([i]); plt.title(i); plt.savefig(f'{i}.png'); plt.clf()",
                ["0", "1", "2"],
            ),
            (
                "for i in range(3):\n    plt.plot([i]); plt.title(i); plt.savefig('same.png'); plt.close()",
                ["0", "1", "2"],
            ),
            ("plt.plot([1]); plt.title('t'); plt.savefig('a.png'); plt.close()\n!rm a.png", ["t"]),
            ("for i in (2, 1):\n    plt.figure(i); plt.plot([1]); plt.title(i)\nplt.figure(2)", ["1", "2"]),
            (
                "plt.figure(5); plt.plot([1]); plt.title('5')\n"
                "plt.figure(); plt.plot([1]); plt.title('6')\nplt.figure(5) and None",
                ["5", "6"],
            ),
            ("plt.plot([1]); plt.title('shown'); plt.show()\nplt.plot([2]); plt.title('left')", ["shown", "left"]),
        ]:
            with self.subTest(code):
                self.assertEqual(self.titles(code), titles)

    def test_a_figure_changed_after_it_was_saved_is_two_pictures(self):
        code = "plt.plot([1]); plt.title('before'); plt.savefig('a.png')\nplt.title('after'); plt.savefig('b.png')"
        self.assertEqual(self.titles(code), ["before", "after"])
        self.assertEqual(self.reply["same_as"], {"a.png": "out/figure-2-1.png", "b.png": "out/figure-2-2.png"})

    def test_figures_of_a_failing_cell_arrive(self):
        self.assertEqual(self.titles("plt.plot([1]); plt.title('t')\n1/0", "error"), ["t"])

    def test_a_figure_can_be_shown_again_in_a_later_cell(self):
        self.assertEqual(self.titles("fig, ax = plt.subplots(); ax.plot([1]); ax.set_title('one') and None"), ["one"])
        self.assertEqual(self.titles("1"), [])
        self.assertEqual(self.titles("fig"), ["one"])
        self.assertEqual(self.titles("ax.set_title('two')\nfig"), ["two"])
        self.assertEqual(self.titles("display(fig)"), ["two"])

    def test_a_figure_changed_in_a_later_cell_arrives_unasked(self):
        self.titles("fig, ax = plt.subplots()")
        self.assertEqual(self.titles("ax.plot([1]); ax.set_title('built later') and None"), ["built later"])
        self.assertEqual(self.titles("x = 1"), [])

    def test_looking_at_an_earlier_figure_does_not_show_it_again(self):
        self.titles("fig, ax = plt.subplots(); ax.plot([1, 2]); ax.set_title('t') and None")
        self.assertEqual(self.titles("[t.get_text() for t in ax.get_xticklabels()], ax.get_ylim(), fig.axes"), [])
        self.assertEqual(self.titles("ax.set_ylim(0, 5) and None"), ["t"])

    def test_a_cell_starts_with_no_figure(self):
        self.titles("plt.plot([1]); plt.title('old') and None")
        self.assertEqual(self.titles("plt.plot([2]) and None"), [""])
        self.assertIn("1 line", self.reply["figures"][0]["summary"])

    def test_chart_parts_are_no_result(self):
        for code in ("plt.plot([1])", "plt.gca()", "plt.hist([1, 2])", "plt.subplots()", "plt.title('x')",
                     "plt.bar([1], [2])",
                     "import pandas as pd; pd.Series([1, 2]).plot()", "pd.DataFrame({'a': [1], 'b': [2]}).hist()",
                     "import seaborn as sns; sns.histplot([1, 2])", "sns.displot([1, 2])", "plt.pie([1, 2])",
                     "plt.subplots(2, 2)[1]", "plt.boxplot([1, 2, 3])"):  # fmt: skip
            with self.subTest(code):
                self.assertIsNone(self.ok(code)["result"])

    def test_numbers_are_a_result_also_beside_charts(self):
        self.assertEqual(self.value("plt.plot([1]); np.array([1, 2])"), "array([1, 2])")
        self.assertEqual(self.value("{'a': 1.5}"), "{'a': 1.5}")

    def test_too_many_figures_are_cut_and_said(self):
        self.assertEqual(len(self.titles("for i in range(103):\n    plt.figure(figsize=(1, 1)); plt.plot([1])")), 100)
        self.assertIn("3 more pictures were left out", self.reply["notes"][0])


class SavedFiles(FigureTest):
    def test_a_saved_picture_is_named_as_the_same(self):
        for code, same in [
            ("plt.plot([1]); plt.savefig('a.png')", {"a.png"}),
            ("plt.plot([1]); plt.savefig('a.png'); plt.close()", {"a.png"}),
            ("plt.plot([1]); plt.savefig('out/b.png'); plt.savefig('b.pdf')", {"out/b.png"}),
            ("plt.plot([1]); plt.show(); plt.savefig('c.png')", {"c.png"}),
            ("plt.plot([1]); plt.savefig('/tmp/c.png')", set()),
            ("import os; plt.plot([1]); plt.savefig(os.path.abspath('ä b.png'), format='png')", {"ä b.png"}),
        ]:
            with self.subTest(code):
                self.titles(code)
                expected = {name: f"out/figure-{self.session.number}-1.png" for name in same}
                self.assertEqual(self.reply["same_as"], expected)
                self.assertTrue(all(self.session.exists(name) for name in same))

    def test_the_persons_own_file_is_not_altered(self):
        self.titles(
            "plt.plot([1]); plt.savefig('a.png', metadata={'Author': 'me'}); before = open('a.png', 'rb').read()\n"
            "plt.close()"
        )
        self.assertEqual(self.value("open('a.png', 'rb').read() == before, b'Author' in before"), "(True, True)")

    def test_a_file_that_was_overwritten_is_the_same_as_the_last(self):
        code = "for i in (4, 8):\n    plt.figure(figsize=(i, 2)); plt.plot([1]); plt.savefig('a.png'); plt.close()"
        self.titles(code)
        widths = [figure["width"] for figure in self.reply["figures"]]
        self.assertEqual((widths, self.reply["same_as"]), ([576, 1152], {"a.png": "out/figure-2-2.png"}))

    def test_settings_of_savefig_are_obeyed(self):
        self.titles("plt.figure(figsize=(3, 2)); plt.plot([1]); plt.savefig('a.png', dpi=50)")
        self.assertEqual(self.value("from PIL import Image; Image.open('a.png').size"), "(150, 100)")


class Drawing(FigureTest):
    def test_what_it_shows_is_said_in_words(self):
        cases = [
            (
                "plt.plot([0, 1, 2], [5, 7, 6]); plt.xlabel('day'); plt.ylabel('€')",
                ["x 'day'", "y '€'", "1 line", "3 points", "x 0…2", "y 5…7"],
            ),
            ("plt.bar(['a', 'b', 'c'], [1, 2, 3]) and None", ["3 bars", "x a…c (3 labels)"]),
            ("plt.scatter([1, 2], [3, 4]) and None", ["1 scatter", "2 points"]),
            (
                "import pandas as pd; plt.plot(pd.date_range('2024-01-01', periods=3), [1, 2, 3])",
                ["x 2024-01-01…2024-01-03"],
            ),
            ("plt.imshow([[1, 2], [3, 4]]); plt.colorbar() and None", ["1 image"]),
            ("plt.pie([1, 2]) and None", ["2 wedges"]),
            ("fig, a = plt.subplots(2, 2); [x.plot([1]) for x in a.flat] and None", ["4 panels", "1 line"]),
            ("plt.hist(np.arange(100), bins=5) and None", ["5 bars"]),
            ("plt.gca().table([['a', 'b']]) and None", ["1 table"]),
            ("plt.figure().add_subplot(projection='3d').scatter([1], [2], [3]) and None", [""]),
            ("plt.figure().add_subplot(projection='polar').plot([1, 2]) and None", ["1 line"]),
        ]
        for code, words in cases:
            with self.subTest(code):
                self.titles(code)
                summary = self.reply["figures"][0]["summary"]
                for word in words:
                    self.assertIn(word, summary)
                self.assertEqual(self.reply["notes"], [])

    def test_titles_come_from_the_whole_or_its_panels(self):
        self.assertEqual(
            self.titles("fig, a = plt.subplots(1, 2)\nfor i, x in enumerate(a): x.plot([1]); x.set_title(f'p{i}')"),
            ["p0 | p1"],
        )
        self.assertEqual(
            self.titles("fig, a = plt.subplots(1, 2)\na[0].plot([1]); fig.suptitle('all') and None"), ["all"]
        )

    def test_sizes_are_kept_within_bounds(self):
        for code, low, high in [
            ("plt.figure(figsize=(30, 5)); plt.plot([1])", 1500, 2000),
            ("plt.figure(figsize=(4, 60)); plt.plot([1])", 1500, 2000),
            ("plt.figure(figsize=(1, 1)); plt.plot([1])", 100, 400),
            ("plt.figure(dpi=400); plt.plot([1])", 600, 1300),
            ("plt.plot([1]); plt.text(50, 50, 'far away')", 500, 2000),
            ("plt.plot([1]); plt.text(1e9, 1e9, 'too far')", 500, 2000),
        ]:
            with self.subTest(code):
                self.titles(code)
                figure = self.reply["figures"][0]
                self.assertTrue(low <= max(figure["width"], figure["height"]) <= high, figure)

    def test_large_ones_have_a_small_one_beside_them(self):
        self.titles("for size in (4, 3), (30, 5), (5, 20):\n    plt.figure(figsize=size); plt.plot([1])")
        for figure in self.reply["figures"]:
            small = self.session.path(figure["path"].removesuffix(".png") + ".small.png")
            large = figure["width"] > 800 or figure["height"] > 600
            self.assertEqual(os.path.exists(small), large)
            if large:
                self.assertEqual(set(chunks(small)), {b"IHDR", b"IDAT", b"IEND"})
                with open(small, "rb") as file:
                    width, height = struct.unpack(">II", file.read(24)[16:])
                self.assertTrue(width <= 800 and height <= 600 and (width > 790 or height > 590), (width, height))
                self.assertAlmostEqual(width / height, figure["width"] / figure["height"], delta=0.2)

    def test_text_that_breaks_matplotlib_is_drawn_plainly(self):
        for code in (
            "plt.plot([1]); plt.title('$bad{math$')",
            r"plt.plot([1]); plt.xlabel('$\\nosuchcommand$')",
            "plt.rcParams['text.usetex'] = True\nplt.plot([1]); plt.title('tex')\nplt.gcf() and None",
        ):
            with self.subTest(code):
                self.assertEqual(len(self.titles(code)), 1)
                self.assertEqual(self.reply.stderr, "")

    def test_dollars_are_money_unless_they_hold_a_formula(self):
        money = ["$5 to $10", "revenue ($) and cost ($)", "A: $1,000, B: $2,000"]
        formulas = ["$x$", "$x^2$ and $y$", r"$\alpha$", "5 $", "$n = 3$"]
        self.titles(f"texts = [plt.figtext(0, i / 10, t) for i, t in enumerate({money + formulas!r})]")
        self.assertEqual(
            self.value("[t.get_parse_math() for t in texts]"), str([False] * len(money) + [True] * len(formulas))
        )

    def test_axes_without_data_arrive_when_they_have_words(self):
        self.assertEqual(self.titles("fig, a = plt.subplots(1, 2); a[0].set_title('no rows'); plt.show()"), ["no rows"])
        self.assertEqual(self.titles("fig, a = plt.subplots(); a.set_xlabel('year')"), [""])
        self.assertEqual(self.titles("plt.suptitle('only this') and None"), ["only this"])
        self.assertEqual(self.titles("plt.figure(); plt.subplots(2, 2) and None"), [])

    def test_a_figure_that_can_not_be_drawn_is_said(self):
        code = (
            "from matplotlib.lines import Line2D\nclass Bad(Line2D):\n"
            "    def draw(self, r): raise ValueError('broken artist')\n"
            "plt.gca().add_line(Bad([0, 1], [0, 1]))\nplt.figure(); plt.plot([1]); plt.title('good')"
        )
        self.assertEqual(self.titles(code), ["good"])
        self.assertIn("broken artist", self.reply["notes"][0])

    @unittest.skipUnless(os.path.exists("/usr/share/sandbook/mpl"), "needs the fonts of the box image")
    def test_the_first_chart_leaves_stderr_empty(self):
        self.titles("plt.plot([-1, 1]); plt.title('月度销售额'); plt.show()")
        self.assertEqual((self.reply.stderr, self.reply.stdout, self.reply["notes"]), ("", "", []))

    def test_libraries_on_top_of_matplotlib_work(self):
        for code, title in [
            ("import pandas as pd\npd.DataFrame({'a': [1, 2]}).plot(title='pandas')", "pandas"),
            ("import seaborn as sns\nsns.barplot(x=['a'], y=[1]).set_title('seaborn')", "seaborn"),
            (
                "g = sns.FacetGrid(pd.DataFrame({'x': [1, 2], 'c': ['a', 'b']}), col='c'); g.map(plt.hist, 'x')",
                "c = a | c = b",
            ),
            ("sns.heatmap([[1, 2], [3, 4]]).set_title('heat')", "heat"),
            ("sns.set_theme(style='whitegrid'); sns.pairplot(pd.DataFrame({'x': [1, 2, 3], 'y': [3, 1, 2]}))", ""),
            ("import seaborn.objects as so\nso.Plot(x=[1, 2], y=[1, 2]).add(so.Dot())", ""),
            ("plt.style.use('ggplot'); plt.plot([1]); plt.title('styled') and None", "styled"),
            ("import networkx as nx; nx.draw(nx.path_graph(3))", ""),
            ("from sklearn.metrics import ConfusionMatrixDisplay as C\nC.from_predictions([0, 1], [0, 1])", ""),
        ]:
            with self.subTest(code):
                self.assertEqual(self.titles(code), [title])

    def test_an_animation_gives_its_last_picture(self):
        code = (
            "from matplotlib.animation import FuncAnimation, PillowWriter\n"
            "fig, ax = plt.subplots(); l, = ax.plot([1, 2])\n"
            "a = FuncAnimation(fig, lambda i: l.set_ydata([i, i]), frames=3)\na.save('a.gif', writer=PillowWriter())"
        )
        self.assertEqual(len(self.titles(code)), 1)
        self.assertTrue(self.session.exists("a.gif"))

    def test_without_a_helper_pictures_come_and_it_is_said(self):
        self.ok("import kernel.results.gallery; kernel.results.gallery.HELPER = '/nonexistent'")
        self.run_cell("plt.plot([1])")
        reply = self.run_cell("plt.plot([1])")
        self.assertEqual(len(reply["figures"]), 1)
        self.assertIn("helper is missing", reply["notes"][0])

    def test_a_cell_that_waits_for_all_children_or_for_none_harms_no_figure(self):
        self.ok("import signal; signal.signal(signal.SIGCHLD, signal.SIG_IGN)")
        self.assertEqual(self.titles("plt.plot([1]); plt.title('t')"), ["t"])
        self.ok("signal.signal(signal.SIGCHLD, lambda *a: None)")
        self.assertEqual(self.titles("plt.plot([1]); plt.title('t')"), ["t"])

    def test_a_removed_out_folder_comes_back(self):
        self.ok("import shutil; shutil.rmtree('out'); shutil.rmtree('/tmp/pictures-x', ignore_errors=True)")
        self.assertEqual(self.titles("plt.plot([1]); plt.title('t')"), ["t"])


if __name__ == "__main__":
    unittest.main()
