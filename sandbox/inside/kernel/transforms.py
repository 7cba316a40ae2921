"""Cell text to Python, beyond what IPython does.

Two differences: lines keep their numbers (IPython drops empty lines at the top, and then every traceback
points too high), and a bare `pip install x`, which is a shell's line and no Python, is answered like %pip
wherever it stands in a cell.

Most cells are Python and nothing else. IPython finds that out with a tokenizer written in Python, which takes longer than many
a cell; one search finds the same.
"""

import builtins
import re
import tokenize

from IPython.core.inputtransformer2 import TokenTransformBase, TransformerManager, leading_empty_lines, leading_indent

__builtins__ = dict(vars(builtins))

# Whatever a transformer might take for its own, and more; also what the clean-ups change: a first line that is indented or empty,
# lines of nothing but blanks.
_SPECIAL = re.compile(r"""
    \A\s | ^[ \t]+$ | ^\s*[,;/] | (?:^|=)\s*(?:%|!(?!=)) | \? | >>> | ^\s*\.\.\. | In\ \[ | \b(?:pip3?|conda|mamba)\b
""", re.VERBOSE | re.MULTILINE)  # fmt: skip
_special = _SPECIAL.search
_INSTALLERS = {"pip", "pip3", "conda", "mamba"}
_VERBS = {"install", "uninstall", "list", "freeze", "show", "download"}


def _first_line(lines: list[str]) -> int:
    return next((i for i, line in enumerate(lines) if line.strip()), 0)


def tidy(lines: list[str]) -> list[str]:
    """Instead of IPython's two clean-ups. A cell magic has to be the first line, so there the top goes."""
    first = _first_line(lines)
    if lines and lines[first].lstrip().startswith("%%"):
        return leading_indent(lines[first:])
    return ["\n"] * first + leading_indent(lines[first:])


class BareInstaller(TokenTransformBase):
    """`pip install x` as a line of its own."""

    @classmethod
    def find(cls, tokens_by_line):
        for line in tokens_by_line:
            words = [t for t in line if t.type not in (tokenize.INDENT, tokenize.DEDENT)]
            if len(words) > 2 and words[0].string in _INSTALLERS and words[1].string in _VERBS:
                return cls(words[0].start)
        return None

    def transform(self, lines: list[str]) -> list[str]:
        line = lines[self.start_line]
        command = line[self.start_col :].rstrip("\n")
        call = f"get_ipython().run_line_magic('pip', {command.split(None, 1)[1]!r})\n"
        return [*lines[: self.start_line], line[: self.start_col] + call, *lines[self.start_line + 1 :]]


class Transformers(TransformerManager):
    """IPython's, with ours among them."""

    def __init__(self) -> None:
        super().__init__()
        own = [t for t in self.cleanup_transforms if t not in (leading_empty_lines, leading_indent)]
        self.cleanup_transforms = [tidy, *own]
        self.token_transformers = [BareInstaller, *self.token_transformers]
        self._known = [*self.cleanup_transforms, *self.line_transforms, *self.token_transformers]

    def transform_cell(self, cell: str) -> str:
        if _special(cell) or self._known != [*self.cleanup_transforms, *self.line_transforms, *self.token_transformers]:
            return super().transform_cell(cell)
        return cell if cell.endswith("\n") else cell + "\n"
