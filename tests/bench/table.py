"""Figures, and the table that is printed of them."""
import statistics
from dataclasses import dataclass, field


@dataclass
class Row:
    """One thing that was measured. target: the most (or, with `least`, the least) that is right; None: no promise is made."""

    what: str
    values: list = field(default_factory=list)
    unit: str = "ms"
    target: float | None = None
    peer: str = ""
    peer_values: list = field(default_factory=list)
    least: float | None = None  # of how many times better than the peer
    note: str = ""

    @property
    def median(self) -> float:
        return statistics.median(self.values)

    @property
    def p99(self) -> float:
        ordered = sorted(self.values)
        return ordered[min(len(ordered) - 1, int(len(ordered) * 0.99))]

    @property
    def ratio(self) -> float | None:
        """How many times what the peer takes is what we take."""
        return statistics.median(self.peer_values) / self.median if self.peer_values and self.values and self.median > 0 else None

    @property
    def missed(self) -> bool:
        if not self.values:
            return False
        late = self.target is not None and self.median > self.target
        return late or (self.least is not None and self.ratio is not None and self.ratio < self.least)

    def plain(self) -> dict:
        return {"what": self.what, "unit": self.unit, "median": self.median if self.values else None, "p99": self.p99 if self.values else None,
                "n": len(self.values), "target": self.target, "peer": self.peer, "ratio": self.ratio, "missed": self.missed, "note": self.note}


def number(value: float) -> str:
    return f"{value:.2f}" if value < 10 else f"{value:.1f}" if value < 100 else f"{value:,.0f}"


def promise(row: Row) -> str:
    parts = [] if row.target is None else [f"{number(row.target)} {row.unit}"]
    parts += [] if row.least is None else [f"{row.least:g}x"]
    return ", ".join(parts) or "-"


def line(row: Row) -> list[str]:
    if not row.values:
        return [row.what, promise(row), "-", "-", "0", "", row.note or "not measured"]
    said = "" if row.target is None and row.least is None else "missed" if row.missed else "ok"
    against = f"{row.ratio:.1f}x {row.peer}" if row.ratio else ""
    return [row.what, promise(row), f"{number(row.median)} {row.unit}", number(row.p99), str(len(row.values)), against, f"{said} {row.note}".strip()]


def text(rows: list[Row]) -> str:
    """Markdown, columns in line."""
    lines = [["what", "target", "median", "p99", "n", "beside", ""], *map(line, rows)]
    widths = [max(len(x[i]) for x in lines) for i in range(len(lines[0]))]
    drawn = ["| " + " | ".join(cell.ljust(w) for cell, w in zip(x, widths)) + " |" for x in lines]
    return "\n".join([drawn[0], "|" + "|".join("-" * (w + 2) for w in widths) + "|", *drawn[1:]])
