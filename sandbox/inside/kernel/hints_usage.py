"""What the messages of pandas and its neighbours mean, for somebody who did not read their release notes.

One table: a pattern in the message, a pattern in the line that failed (None: any), what to write instead. The
messages are those of the installed versions; where one says by itself what to do, nothing is added.
"""

import builtins
import re
from collections.abc import Iterator

_TEXT_TO_NUMBERS = "pd.to_numeric(s.str.replace(',', ''), errors='coerce')"
_COMPARED = r"(==|!=|<|>).*[&|]|[&|].*(==|!=|<|>)"
_AND_OR = r"\b(and|or|not|if|while|elif|assert)\b"

_TABLE = [
    (r"\br?(and|or|xor)_'|for [&|^]: ", _COMPARED,
     "`&` and `|` bind more tightly than comparisons: put each comparison in parentheses, `df[(df['a'] == x) & (df['b'] > y)]`."),
    (r"truth value of an? .* is ambiguous", _AND_OR,
     "`and`, `or`, `not` and `if` take one value, not a column: write `&`, `|`, `~` with each comparison in parentheses, "
     "`(df['a'] > 1) & (df['b'] < 3)`; `if` takes `.any()` or `.all()` of a column."),
    (r"Unalignable boolean Series", None,
     "The filter comes from another table (or another index): compute it from the same table that it filters."),
    (r"could not convert string to float", r"\.(corr|cov)\(", "Text columns are among them: `df.corr(numeric_only=True)`."),
    (r"could not convert string|invalid literal for int|Unable to parse string", None,
     f"It is text that is no plain number. `{_TEXT_TO_NUMBERS}` makes what still is none missing; take currency, units and blanks out first, "
     "and look at what is left: `s[pd.to_numeric(s, errors='coerce').isna()].unique()`."),
    (r"Cannot perform reduction '\w+' with string|dtype 'str' does not support operation|[Aa]gg function failed.*(object|str)", None,
     "A text column is among them: name the number columns (`df.groupby('a')[['b', 'c']].mean()`) or pass `numeric_only=True`. "
     f"Numbers that are kept as text: `{_TEXT_TO_NUMBERS}`."),
    (r"No numeric types to aggregate|no numeric data to plot", None, f"All of it is text. Numbers that are kept as text: `{_TEXT_TO_NUMBERS}`."),
    (r"Invalid comparison between dtype=datetime", None, "Dates compare with dates: `df['d'] > '2024-01-31'`, or take a part, `df['d'].dt.year == 2024`."),
    (r"Invalid comparison between dtype=str|not supported for dtype 'str'|not supported between instances of '(str|int|float)' and '(str|int|float)'"
     r"|can only concatenate str|for [-+*/%]+=?: '(int|float|str)' and '(str|int|float)'", None,
     f"One side is text. Numbers that are kept as text: `{_TEXT_TO_NUMBERS}`; dates: `pd.to_datetime(s)`."),
    (r"non-finite values .* to integer|cannot convert (float )?NaN to integer", None,
     "Missing values are no integers: drop them (`s.dropna()`) or use `s.astype('Int64')`."),
    (r"Can only use \.dt accessor", None, "These are no dates yet: `df['d'] = pd.to_datetime(df['d'])`, with `dayfirst=True` if the day stands first."),
    (r"Can only use \.str accessor", None, "These are no text: `s.astype(str).str...`, or work on the numbers themselves."),
    (r"tz-naive and tz-aware|tz-aware and tz-naive", None,
     "One side has a time zone: `pd.to_datetime(s, utc=True)` on both, or `s.dt.tz_localize(None)`."),
    (r"time data .* doesn't match format|not likely a datetime|Unknown datetime string format|unconverted data remains", None,
     "Not all of it has one form of date: `pd.to_datetime(s, format='mixed', dayfirst=True)` if the day stands first; "
     "`errors='coerce'` makes what is no date missing."),
    (r"merge on \S+ and \S+ columns", None,
     "The keys have two types: make them one first, `a['k'] = a['k'].astype(str)` and the same for `b`, or `pd.to_numeric` on the one that is text."),
    (r"cannot reindex on an axis with duplicate labels", None,
     "Index labels occur twice: `reset_index(drop=True)` first, or group so that each occurs once."),
    (r"cannot assign without a target object", r"query\(|eval\(", "Inside `query`, `==` compares; a single `=` assigns."),
    (r"is not defined", r"\.query\(", "Inside `query`, variables of Python need an `@`, text needs quotes, and column names with blanks need backticks."),
    (r"Only valid with DatetimeIndex", None,
     "`resample` works on an index of dates: `df.set_index('date')['x'].resample('YE')`; where the year is a column, `df.groupby('year')['x']`."),
    (r"single positional indexer is out-of-bounds|out of bounds for axis 0 with size 0", None,
     "Nothing is left there: no row passed the filter. Print the different values of the column (`df['a'].unique()`) and compare their spelling."),
    (r"Expected a 2-dimensional container|Expected 2D array", None, "Features are a table, also when there is one: `df[['x']]`, with two brackets."),
    (r"[Ii]nput .{1,20} contains NaN", None, "Drop the rows with missing values first: `d = df[['x', 'y']].dropna()`."),
    (r"unexpected keyword argument '(method|pad|limit_direction)'", r"fillna\(", "`fillna(method=...)` is gone: `.ffill()` or `.bfill()`."),
    (r"'(method|function|builtin_function_or_method)' object is not subscriptable", None, "A method is called before its result is indexed: `s.value_counts()['x']`."),
    (r"'(DataFrame|Series)' object is not callable", None, "Columns stand in brackets, `df['a']`; parentheses call a function."),
    (r"Error tokenizing data|Expected \d+ fields in line", None,
     "The separator, the quotes or the first lines are others: load it with the call that its profile gives, or with `sep=None, engine='python'`."),
    (r"codec can't decode", r"read_|open\(", "The file is not UTF-8: load it with the call that its profile gives, or with `encoding='cp1252'`."),
]
_TABLE = [(re.compile(message), line and re.compile(line), advice) for message, line, advice in _TABLE]

# What pandas and numpy had once -> what does it now.
_GONE = {
    "append": "`pd.concat([a, b], ignore_index=True)`",
    "applymap": "`df.map(function)`",
    "as_matrix": "`df.to_numpy()`",
    "get_value": "`df.at[row, column]`",
    "iteritems": "`.items()`",
    "ix": "`.loc` for labels, `.iloc` for positions",
    "lookup": "`df.loc[row, column]`",
    "mad": "`(s - s.mean()).abs().mean()`",
    "reshape": "`s.to_numpy().reshape(...)`",
    "sort": "`df.sort_values('column')` or `.sort_index()`",
    "tshift": "`.shift(freq=...)`",
    "week": "`s.dt.isocalendar().week`",
    "weekofyear": "`s.dt.isocalendar().week`",
}
_OF_DATES = {"date", "day", "day_name", "dayofweek", "dayofyear", "hour", "isocalendar", "minute", "month", "month_name",
             "normalize", "quarter", "second", "strftime", "time", "to_period", "tz_convert", "weekday", "year"}  # fmt: skip
_OF_TEXT = {"capitalize", "contains", "endswith", "extract", "findall", "len", "lower", "lstrip", "match", "pad", "rstrip",
            "slice", "split", "startswith", "strip", "title", "upper", "zfill"}  # fmt: skip


def _attribute(error: AttributeError) -> Iterator[str]:
    owner, name = type(getattr(error, "obj", None)).__name__, getattr(error, "name", None)
    if owner not in ("DataFrame", "Series", "DatetimeProperties", "DatetimeIndex", "Index") or not isinstance(name, str):
        return
    if owner == "Series" and name in _OF_DATES:
        yield f"Of a column of dates: `s.dt.{name}`; of text first `pd.to_datetime(s)`."
    elif owner in ("Series", "Index") and name in _OF_TEXT:
        yield f"Of a column of text: `s.str.{name}`."
    elif name in _GONE:
        yield f"`{name}` is no longer there: {_GONE[name]}."


def _key(error: KeyError, value: str, line: str) -> Iterator[str]:
    key = error.args[0] if error.args else None
    if isinstance(key, tuple) and len(key) > 1 and all(isinstance(k, str) for k in key):
        yield f"Several columns are a list: `df[[{', '.join(map(repr, key))}]]`."
    elif "not found in axis" in value and "drop(" in line and "columns" not in line and "axis" not in line:
        yield "`drop` means rows: `df.drop(columns=[...])` drops columns."


def _hidden_builtin(value: str, line: str, namespace: dict) -> Iterator[str]:
    """`sum = 5` in one cell, `sum(x)` in another."""
    if not value.endswith("object is not callable"):
        return
    for name in re.findall(r"(?<![.\w])([A-Za-z_]\w*)\(", line):
        if name in namespace and hasattr(builtins, name) and not callable(namespace[name]):
            yield f"A variable `{name}` hides the function of that name: `del {name}` brings it back."


def for_error(error: BaseException, value: str, line: str, namespace: dict) -> Iterator[str]:
    """`line` is the source line of the cell that failed, or ''."""
    if isinstance(error, AttributeError):
        yield from _attribute(error)
    if isinstance(error, KeyError):
        yield from _key(error, value, line)
    yield from _hidden_builtin(value, line, namespace)
    found = (advice for message, where, advice in _TABLE if message.search(value) and (where is None or where.search(line)))
    yield from list(found)[:1]
