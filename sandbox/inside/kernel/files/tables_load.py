"""The expression that reads a file: written for people and models, and run by the profile itself."""

from __future__ import annotations

import warnings
from dataclasses import dataclass, field, replace
from typing import Any

import pandas as pd


@dataclass(frozen=True)
class Load:
    """`before` path `options` `after`, e.g. pd.read_csv('a.csv', sep=';')."""

    before: str = "pd.read_csv("
    options: dict[str, Any] = field(default_factory=dict)
    after: str = ")"

    def expr(self, path: str, **more: Any) -> str:
        """One Python expression; the path is a literal, whatever is in its name."""
        options = {**self.options, **more}
        return self.before + repr(path) + "".join(f", {k}={v!r}" for k, v in options.items()) + self.after

    def with_options(self, **more: Any) -> Load:
        """The same with further options."""
        return replace(self, options={**self.options, **more})

    def read(self, path: str, **more: Any) -> pd.DataFrame:
        """Runs the very expression; `more` only bounds it (nrows)."""
        return evaluate(self.expr(path, **more))


def evaluate(expression: str, **names: Any) -> Any:
    """An expression of ours (never of the file's: all that comes from it enters as a literal)."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return eval(expression, {"pd": pd, **names})
