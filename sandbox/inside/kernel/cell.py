"""What belongs to the one cell that runs: its notes, its result, where it lies.

The hooks in matplotlib, subprocess and IPython are set once for the whole process and find the cell that
they work for through `current`.
"""

from dataclasses import dataclass, field

NOTES_MAX = 20
NOTE_MAX = 2000


@dataclass
class Cell:
    number: int = 0
    code: str = ""
    data_dir: str = "/mnt/data"
    notes: list[str] = field(default_factory=list)
    result: dict | None = None

    @property
    def name(self) -> str:
        """The file name of the cell's code in tracebacks."""
        return name_of(self.number)

    def note(self, text: str) -> None:
        text = text if len(text) <= NOTE_MAX else text[: NOTE_MAX - 1] + "…"
        if text not in self.notes and len(self.notes) < NOTES_MAX:
            self.notes.append(text)


def name_of(number: int) -> str:
    return f"<cell {number}>"


class Current:
    """The running cell; between cells, one whose notes nobody reads."""

    def __init__(self) -> None:
        self.cell = Cell()

    def note(self, text: str) -> None:
        self.cell.note(text)


current = Current()
