"""From a table and a first load call to the final one, the columns and their warnings."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pandas as pd

from .profile_base import COLUMNS_MAX, ROWS_MAX, Profile
from .tables_columns import describe_column
from .tables_load import Load
from .tables_plan import ColumnPlan, TablePlan, plan_column, settle_text
from .tables_time import time_hint


def bounded(load: Load, limit: int = ROWS_MAX) -> int:
    """The number of rows to read for the figures."""
    return min(int(load.options.get("nrows", limit)), limit)


def finish_table(
    profile: Profile, load: Load, path: str, plan: TablePlan, original: dict[str, str] | None = None
) -> pd.DataFrame:
    """Runs the load call that the plan asks for, and describes what it returns."""
    load, frame = _agreed(load, plan, path, original or {})
    profile.set(load=load.expr(profile.fields["path"]), decimal=plan.decimal, thousands=plan.thousands or None)
    describe_frame(profile, frame, plan.columns)
    return frame


def _agreed(load: Load, plan: TablePlan, path: str, original: dict[str, str]) -> tuple[Load, pd.DataFrame]:
    """The load call that does what the plan says: what pandas does not take over becomes a convert."""
    for _ in range(3):
        full = load.with_options(**plan.options(original))
        frame = full.read(path, nrows=bounded(load))
        if not plan.demote(frame):
            break
    return full, frame


def finish_frame(profile: Profile, frame: pd.DataFrame, load: Load) -> None:
    """The same for a table whose cells have types already: `load` stays as it is."""
    frame = frame.iloc[:ROWS_MAX]
    plans: dict[Any, ColumnPlan] = {}
    for name in frame.columns[:COLUMNS_MAX]:
        if _all_text(frame[name]):
            cells = frame[name].fillna("").astype("str")
            plans[name] = plan_column(name, cells)
            settle_text(plans[name], cells)
    profile.set(load=load.expr(profile.fields["path"]))
    describe_frame(profile, frame, plans)


def plain_names(frame: pd.DataFrame, load: Load) -> tuple[pd.DataFrame, Load]:
    """Column names that are numbers, dates or pairs become text, in the frame and by the call alike."""
    if all(isinstance(name, str) for name in frame.columns):
        return frame, load
    after = ".pipe(lambda d: d.set_axis([str(name) for name in d.columns], axis=1))"
    return frame.set_axis([str(name) for name in frame.columns], axis=1), replace(load, after=load.after + after)


def _all_text(values: pd.Series) -> bool:
    """True for a column of text and missing cells only."""
    if isinstance(values.dtype, pd.StringDtype):
        return bool(values.notna().any())
    known = values.dropna()
    return values.dtype == object and len(known) > 0 and bool(known.map(lambda cell: isinstance(cell, str)).all())


def describe_frame(profile: Profile, frame: pd.DataFrame, plans: dict[Any, ColumnPlan] | None = None) -> None:
    """Columns, the time hint and the warnings of single columns."""
    plans = plans or {}
    names = list(frame.columns)
    if len(names) > COLUMNS_MAX:
        profile.warn("too_many_columns", f"{len(names)} columns; only the first {COLUMNS_MAX} are described")
    columns = [describe_column(frame, name, plans.get(name)) for name in names[:COLUMNS_MAX]]
    for plan in plans.values():
        for code, text in plan.notes.items():
            profile.warn(code, text)
    profile.set(rows=len(frame), columns=columns, time=time_hint(columns))
