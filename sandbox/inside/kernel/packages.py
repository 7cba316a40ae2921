"""What to say to somebody who wants a package that isn't here.

There is no network in a box, so an installer can only fail, slowly and with pages of noise. Every form of
asking (`%pip`, `!pip`, a bare `pip install x`, `subprocess`, `os.system`, a failed import) gets the same
short answer instead: what is installed, and what does the job of the thing that is not.
"""

import difflib
import functools
import importlib.metadata
import re
import shlex
import sys

# Asked for -> what does the job here. Import names and distribution names, lower case.
STAND_INS = {
    "altair": "matplotlib, seaborn or plotly",
    "bokeh": "plotly or matplotlib",
    "camelot": "pypdf for text; tables by splitting its lines",
    "cv2": "pillow and numpy",
    "dask": "polars or duckdb",
    "docx": "python-docx (import docx)",
    "docx2txt": "python-docx (import docx)",
    "fbprophet": "statsmodels.tsa (ExponentialSmoothing, SARIMAX)",
    "fitz": "pypdf",
    "fpdf": "reportlab",
    "fpdf2": "reportlab",
    "imageio": "pillow",
    "jieba": "plain str methods and re",
    "kaleido": "matplotlib for pictures; plotly figures are delivered as HTML",
    "keras": "scikit-learn (MLPClassifier, MLPRegressor)",
    "lightgbm": "scikit-learn (HistGradientBoostingClassifier, HistGradientBoostingRegressor)",
    "catboost": "scikit-learn (HistGradientBoostingClassifier, HistGradientBoostingRegressor)",
    "xgboost": "scikit-learn (HistGradientBoostingClassifier, HistGradientBoostingRegressor)",
    "missingno": "seaborn.heatmap(df.isna())",
    "modin": "polars or duckdb",
    "nltk": "re, collections.Counter and scikit-learn's text tools",
    "opencv-python": "pillow and numpy",
    "openai": "nothing: there is no network in the box",
    "pandas-profiling": "df.describe(include='all'), df.isna().sum(), df.corr(numeric_only=True)",
    "pandasql": "duckdb.sql('select ... from df')",
    "pdfplumber": "pypdf",
    "plotnine": "seaborn",
    "prophet": "statsmodels.tsa (ExponentialSmoothing, SARIMAX)",
    "pyecharts": "plotly or matplotlib",
    "pygal": "matplotlib",
    "pymupdf": "pypdf",
    "pypdf2": "pypdf",
    "pyspark": "polars or duckdb",
    "python-pptx": "python-docx for documents, reportlab for PDF",
    "pptx": "python-docx for documents, reportlab for PDF",
    "requests": "nothing: there is no network in the box",
    "httpx": "nothing: there is no network in the box",
    "yfinance": "nothing: there is no network in the box",
    "skimage": "pillow, numpy and scipy.ndimage",
    "scikit-image": "pillow, numpy and scipy.ndimage",
    "spacy": "re and scikit-learn's text tools",
    "squarify": "matplotlib.patches.Rectangle",
    "tabula": "pypdf",
    "tensorflow": "scikit-learn (MLPClassifier, MLPRegressor)",
    "torch": "scikit-learn (MLPClassifier, MLPRegressor)",
    "wordcloud": "collections.Counter and a bar chart",
    "ydata-profiling": "df.describe(include='all'), df.isna().sum(), df.corr(numeric_only=True)",
}
# Import names that differ from the distribution's.
IMPORT_NAMES = {
    "bs4": "beautifulsoup4",
    "pil": "pillow",
    "sklearn": "scikit-learn",
    "dateutil": "python-dateutil",
    "docx": "python-docx",
    "odf": "odfpy",
    "yaml": "pyyaml",
}
# What people ask for by name; the rest are its parts.
MAIN = (
    "numpy pandas polars pyarrow duckdb scipy scikit-learn statsmodels sympy networkx matplotlib seaborn plotly"
    " pillow openpyxl xlsxwriter python-calamine xlrd odfpy python-docx pypdf reportlab beautifulsoup4 lxml"
    " html5lib jinja2 tabulate charset-normalizer ipython nbformat cloudpickle tqdm"
).split()

_PYTHON = r"(?:\S*/)?(?:python[\d.]*|py)"
_INSTALLER = re.compile(
    r"(?:^|[;&|(`]\s*|\bsudo\s+(?:-\S+\s+)*)\s*"
    rf"(?:(?:{_PYTHON}\s+(?:-[A-LN-Za-ln-z]\S*\s+)*-m\s+)?(?:\S*/)?(?:pip[\d.]*|conda|mamba)"
    r"|uv\s+pip|uv\s+add|poetry\s+add|apt|apt-get)(?=\s|$)"
)
_VALUE_OPTIONS = set("-r --requirement -c --constraint -i --index-url --extra-index-url -t --target -n --name".split())
_VERBS = set("install add download uninstall remove upgrade update show create list freeze check".split())


def canonical(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


@functools.cache
def installed() -> dict[str, str]:
    found = {}
    for dist in importlib.metadata.distributions():
        name = dist.metadata["Name"]
        if name:
            found.setdefault(canonical(name), dist.version)
    return found


def listing() -> str:
    have = installed()
    main = [f"{name} {have[canonical(name)]}" for name in MAIN if canonical(name) in have]
    return ", ".join(main) or ", ".join(f"{n} {v}" for n, v in sorted(have.items()))


def about(name: str) -> str:
    """One sentence about one package, by its distribution's or its import name."""
    asked, have = canonical(name), installed()
    dist = asked if asked in have else canonical(IMPORT_NAMES.get(asked, asked))
    if dist in have:
        return f"{dist} {have[dist]} is installed already."
    stand_in = STAND_INS.get(asked)
    if stand_in is None:
        near = difflib.get_close_matches(asked, [*have, *IMPORT_NAMES], 1, 0.8)
        stand_in = IMPORT_NAMES.get(near[0], near[0]) if near else None
    return f"{name} is not installed." + (f" Nearest here: {stand_in}." if stand_in else "")


def is_installer(command: str) -> bool:
    return _INSTALLER.search(command) is not None


def _named(words: list[str]) -> list[str]:
    """Packages named in an installer's arguments: no options, no option values, no versions."""
    names, skip = [], False
    for word in words:
        if skip or word in _VALUE_OPTIONS or word.startswith("-"):
            skip = not skip and word in _VALUE_OPTIONS
            continue
        name = re.match(r"[A-Za-z0-9][\w.-]*", word)
        if name and word not in _VERBS:
            names.append(name[0])
    return names


def requested(command: str) -> list[str]:
    """What a command line wants to have installed."""
    names: list[str] = []
    for match in _INSTALLER.finditer(command):
        clause = re.split(r"[;&|\n)`]", command[match.end() :], maxsplit=1)[0]
        try:
            words = shlex.split(clause, comments=True)
        except ValueError:
            words = clause.split()
        names += [n for n in _named(words) if n not in names]
    return names


def answer(command: str) -> str:
    """The answer to an installer's command line."""
    if re.search(r"\b(?:list|freeze)\b", command) and not re.search(r"\binstall\b", command):
        return "\n".join(f"{name}=={version}" for name, version in sorted(installed().items()))
    said = [about(name) for name in requested(command)]
    return " ".join([*said, "Nothing can be installed: the box has no network.", f"Installed are: {listing()}."])


def short(command: str) -> str:
    """The same for the notes: one line, without the list when all is there."""
    names = requested(command)
    have = [about(name) for name in names]
    if names and all(said.endswith("already.") for said in have):
        return " ".join(have)
    return answer(command) if "list" not in command.split() else "pip list was answered from the installed packages."


def missing_module(name: str) -> str:
    """For an import that failed."""
    top = name.partition(".")[0]
    return f"{about(top)} Nothing can be installed: the box has no network. Installed are: {listing()}."


def is_standard(name: str) -> bool:
    return name.partition(".")[0] in sys.stdlib_module_names
