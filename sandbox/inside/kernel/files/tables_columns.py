"""The description of each column of a table that `load` has read."""

from __future__ import annotations

import math
import re
from typing import Any

import pandas as pd

from .tables_load import evaluate
from .tables_names import aliases
from .tables_plan import ColumnPlan

EXAMPLES_MAX = 12
EXAMPLE_CHARS = 40
GROUP_MAX = 60  # distinct values up to which text is a category

_ID = re.compile(
    r"(^|[^a-z])(id|uuid|guid|key|index|code|no|nr|ticket)$|[a-z _-]number$|[a-z](Id|ID|No)$|"
    r"编号|序号|学号|身份证|代码",
    re.I,
)
_YEAR = re.compile(r"(^|[^a-z])(year|yr|jahr|année|annee|año|fy)([^a-z]|$)|^year|year$|Year|年", re.I)
_FLAGS = frozenset(("yes", "no", "y", "n", "true", "false", "t", "f", "0", "1", "是", "否", "ja", "nein", "oui", "non"))


def column_values(df: pd.DataFrame, name: str, plan: ColumnPlan | None) -> pd.Series:
    """The column as `load` and `convert` make it; a convert that fails is dropped for good."""
    if plan is None or not plan.convert:
        return df[name]
    try:
        values = evaluate(plan.convert, df=df)
    except Exception:
        values = None
    if not isinstance(values, pd.Series) or values.notna().sum() < 0.7 * df[name].notna().sum():
        plan.convert = None
        return df[name]
    return values


def _dtype(values: pd.Series, distinct: int, filled: int) -> str:
    """One of int float bool date datetime text category."""
    if pd.api.types.is_bool_dtype(values):
        return "bool"
    if pd.api.types.is_integer_dtype(values):
        return "int"
    if pd.api.types.is_numeric_dtype(values):
        return "int" if _whole(values) else "float"
    if pd.api.types.is_datetime64_any_dtype(values):
        return "date" if _midnight(values) else "datetime"
    return "category" if _is_category(values, distinct, filled) else "text"


def _whole(values: pd.Series) -> bool:
    """Floats only because some are missing: a count stays a count."""
    known = values.dropna()
    return bool(len(known) < len(values) and len(known) and (known % 1 == 0).all())


def _midnight(values: pd.Series) -> bool:
    known = values.dropna()
    return bool(len(known) == 0 or (known.dt.normalize() == known).all())


def _is_category(values: pd.Series, distinct: int, filled: int) -> bool:
    """Text that groups: few different values, or a short table whose short texts label the rows."""
    if not distinct or distinct > GROUP_MAX:
        return False
    if distinct <= filled / 2:
        return True
    lengths = values.dropna().astype("str").str.len()
    return filled <= GROUP_MAX and bool(lengths.max() <= EXAMPLE_CHARS)


def _plain(value: Any) -> Any:
    """A value as JSON takes it: number, bool, ISO text; None for what is none."""
    if value is None or value is pd.NaT or (isinstance(value, float) and math.isnan(value)):
        return None
    if isinstance(value, pd.Timestamp):
        text = value.isoformat()
        return text.removesuffix("T00:00:00")
    if hasattr(value, "item"):
        value = value.item()
    if isinstance(value, float):
        return value if math.isfinite(value) else str(value)
    if isinstance(value, bool | int):
        return value
    return _cut(str(value))


def _cut(text: str) -> str:
    return text if len(text) <= EXAMPLE_CHARS else text[: EXAMPLE_CHARS - 1] + "…"


def _short(value: float) -> float | None:
    """Twelve significant digits: the rest is noise of the arithmetic. JSON has no infinity."""
    return float(f"{value:.12g}") if math.isfinite(value) else None


def _examples(raw: pd.Series, dtype: str, distinct: int) -> list[Any]:
    """The most frequent values where they group, else three values as they stand."""
    known = raw.dropna()
    if dtype in ("category", "bool") or (dtype == "int" and distinct <= 20):
        counts = known.value_counts()
        values = list(counts.index[:EXAMPLES_MAX])
    else:
        values = list(known.drop_duplicates().iloc[:3]) if len(known) else []
    plain = [_plain(value) for value in values]
    return [int(v) if dtype == "int" and isinstance(v, float) and v.is_integer() else v for v in plain]


def _role(name: str, values: pd.Series, dtype: str, distinct: int, plan: ColumnPlan | None) -> str:
    """What the column is good for: a hint."""
    if dtype in ("date", "datetime"):
        return "date"
    if dtype == "bool" or _is_flag(values, distinct):
        return "flag"
    if plan and plan.kind == "code":
        return "id" if distinct > 0.5 * len(values) or distinct > GROUP_MAX else "group"
    if dtype in ("int", "float"):
        return _number_role(name, values, dtype, distinct)
    filled = int(values.notna().sum())
    if distinct == filled > 1 and (_ID.search(name) or _coded(values)):
        return "id"
    return "group" if dtype == "category" else "text"


def _is_flag(values: pd.Series, distinct: int) -> bool:
    if distinct != 2:
        return False
    return {str(value).lower().removesuffix(".0") for value in values.dropna().unique()} <= _FLAGS


def _coded(values: pd.Series) -> bool:
    """Short texts with digits and no blanks, like A-0012."""
    texts = values.dropna().astype("str").head(200)
    return bool(texts.str.fullmatch(r"(?=.*\d)[\w./-]{1,40}").all())


def _number_role(name: str, values: pd.Series, dtype: str, distinct: int) -> str:
    known = values.dropna()
    if dtype == "int" and len(known) and is_year(name, known):
        return "year"
    if dtype == "int" and distinct == len(known):
        counts_rows = len(known) > 20 and bool((known.diff().iloc[1:] == 1).all())
        if _ID.search(name) or (counts_rows and known.iloc[0] in (0, 1)):
            return "id"
    if _ID.search(name) and dtype == "int" and distinct > GROUP_MAX:
        return "id"
    return "group" if dtype == "int" and distinct <= 10 and len(known) >= 2 * distinct else "measure"


def is_year(name: str, known: pd.Series) -> bool:
    """Whole numbers that are years: by name, or by nothing else than years in a row."""
    low, high = known.min(), known.max()
    if not (low >= 1000 and high <= 2200):
        return False
    return bool(_YEAR.search(name)) and "years" not in name.lower()


def describe_column(df: pd.DataFrame, name: str, plan: ColumnPlan | None) -> dict[str, Any]:
    """One entry of `columns`."""
    raw = df[name]
    values = column_values(df, name, plan)
    values = values if _hashable(values) else values.map(str, na_action="ignore")
    raw = raw if _hashable(raw) else values
    filled, distinct = int(values.notna().sum()), int(values.nunique())
    dtype = _dtype(values, distinct, filled)
    low, high, mean = _range(values, dtype)
    return {
        "name": name,
        "dtype": dtype,
        "nulls": len(values) - filled,
        "distinct": distinct,
        "min": low,
        "max": high,
        "mean": mean,
        "examples": _examples(raw if plan and plan.convert else values, dtype, distinct),
        "role": _role(name, values, dtype, distinct, plan),
        "alias": aliases(name, map(str, values.dropna().unique()[:20])) if dtype == "category" else [],
        "convert": plan.convert if plan else None,
        "date_format": _date_format(plan),
        "ambiguous_date": bool(plan and plan.rule and plan.rule.ambiguous),
    }


def _hashable(values: pd.Series) -> bool:
    """False for lists and dicts in cells (nested JSON)."""
    if values.dtype != object:
        return True
    return not values.map(lambda cell: isinstance(cell, list | dict | set)).any()


def _range(values: pd.Series, dtype: str) -> tuple[Any, Any, float | None]:
    """(min, max, mean); for text the shortest answer is none."""
    known = values.dropna()
    if not len(known) or dtype in ("text", "category"):
        return None, None, None
    low, high = _plain(known.min()), _plain(known.max())
    if dtype == "int":
        low, high = int(low), int(high)
    mean = _short(float(known.mean())) if dtype in ("int", "float", "bool") else None
    return low, high, mean


def _date_format(plan: ColumnPlan | None) -> str | None:
    if plan is None or plan.rule is None:
        return None
    if not plan.rule.formats:
        return "quarter"
    return plan.rule.formats[0] if len(plan.rule.formats) == 1 else "mixed"
