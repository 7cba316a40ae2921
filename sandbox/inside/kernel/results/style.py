"""How tables print and charts look by default. One place; all of it can be overridden by a cell.

Printed tables go to a model and into a chat: wide enough to be read, short enough not to flood either.
Charts get settings only, no code: `plt.style.use`, `sns.set_theme` and rcParams work as everywhere.
"""

import logging
import warnings

import matplotlib
import numpy
import pandas

# Okabe and Ito's colours, told apart with any colour vision; the yellow, too faint on white, is left out.
COLOURS = ["#0072B2", "#E69F00", "#009E73", "#D55E00", "#CC79A7", "#56B4E9", "#444444"]

CHART = {
    "figure.figsize": (8.0, 5.0),
    "figure.max_open_warning": 0,  # open figures are closed after each cell
    "savefig.dpi": 144,
    "axes.prop_cycle": matplotlib.cycler(color=COLOURS),
    "axes.grid": True,
    "axes.axisbelow": True,
    "axes.edgecolor": "#888888",
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.titlesize": 13,
    "axes.titlepad": 10,
    "axes.unicode_minus": True,
    "grid.color": "#E4E4E4",
    "grid.linewidth": 0.8,
    "lines.linewidth": 1.8,
    "legend.frameon": False,
    "date.autoformatter.month": "%Y-%m",
}

TABLE = {
    "display.max_rows": 20,
    "display.min_rows": 20,
    "display.max_columns": 20,
    "display.width": 160,
    "display.max_colwidth": 60,
    "display.large_repr": "truncate",
    "display.unicode.east_asian_width": True,  # columns of CJK text stay under their heads
    "styler.render.max_rows": 200,
    "styler.render.max_columns": 50,
}

# Said at every turn, and of no use to anybody here.
NOISE = (
    "To exit: use 'exit', 'quit', or Ctrl-D",
    "Animation was deleted without rendering anything",
    ".*non-interactive, and thus cannot be shown",
    ".*use of fork\\(\\) may lead to deadlocks",
)


def apply() -> None:
    matplotlib.use("Agg")
    matplotlib.rcParams.update(CHART)
    for name, value in TABLE.items():
        pandas.set_option(name, value)
    numpy.set_printoptions(threshold=200)
    logging.getLogger("matplotlib.font_manager").setLevel(logging.ERROR)  # SimHei and Arial are asked for daily
    for message in NOISE:
        warnings.filterwarnings("ignore", message)
