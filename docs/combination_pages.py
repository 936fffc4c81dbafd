"""Writes the table of combinations into the pages that show it: ``python docs/combination_pages.py``.

What stands between two comments of a page is written here; the rest of the page is left as it is.
"""

from __future__ import annotations

import re
import textwrap
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path

from polyleaf.params import options
from polyleaf.params.combinations import COMBINATIONS, Exclusion

BEGIN = "<!-- written by docs/combination_pages.py -->"
END = "<!-- to here -->"


@dataclass
class Line:
    """Rows of the table with the same reason, of one option or against one option."""

    options: list[str]
    others: list[str]
    why: str

    def takes(self, row: Exclusion) -> bool:
        """Add a row that has the same reason and shares an option; return whether it does."""
        if row.why != self.why:
            return False
        if self.options == [row.option.docs]:
            self.others.append(row.other.docs)
            return True
        if self.others == [row.other.docs]:
            self.options.append(row.option.docs)
            return True
        return False


def lines(rows: Iterable[Exclusion]) -> list[Line]:
    """Return rows joined to lines, where they follow each other."""
    found: list[Line] = []
    for row in rows:
        if not found or not found[-1].takes(row):
            found.append(Line([row.option.docs], [row.other.docs], row.why))
    return found


def table() -> str:
    """Return all rows, as a table."""
    text = ["| option | does not go with | why |", "| --- | --- | --- |"]
    above = ""
    for line in lines(COMBINATIONS):
        option = ", ".join(line.options)
        text.append(f"{'|' if option == above else f'| {option}'} | {', '.join(line.others)} | {line.why} |")
        above = option
    return "\n".join(text)


def refused_on_gpu() -> str:
    """Return what does not go with a GPU, as a list."""
    rows = [row for row in COMBINATIONS if row.option is options.CUDA]
    items = (f"- {', '.join(line.others)}: {line.why}" for line in lines(rows))
    return "\n".join(
        textwrap.fill(item, 120, subsequent_indent="  ", break_on_hyphens=False) for item in items
    )


PAGES: dict[str, Callable[[], str]] = {
    "what-does-not-go-together.md": table,
    "gpu.md": refused_on_gpu,
}


def written(page: str, text: str) -> str:
    """Return a page with what the table says of it in its place."""
    if page.count(BEGIN) != 1 or page.count(END) != 1:
        raise ValueError(f"the page must have {BEGIN!r} and {END!r}, once each")
    return re.sub(
        f"{re.escape(BEGIN)}.*{re.escape(END)}",
        lambda _: f"{BEGIN}\n\n{text}\n\n{END}",
        page,
        flags=re.DOTALL,
    )


if __name__ == "__main__":
    for name, text in PAGES.items():
        path = Path(__file__).parent / name
        path.write_text(written(path.read_text(encoding="utf-8"), text()), encoding="utf-8")
