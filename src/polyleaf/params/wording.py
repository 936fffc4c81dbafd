"""Values as errors show them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

_HOW_MANY_TO_NAME = 5


@dataclass(frozen=True)
class TargetWords:
    """What errors call y and the columns of the coded y.

    Attributes
    ----------
    name : str
        Of y: "y", "y of eval_set[0]".
    columns : tuple of str or None
        None: they have no names.
    """

    name: str
    columns: tuple[str, ...] | None = None

    def column(self, j: int) -> str:
        """Return what a column is called: by its name, or by its number."""
        return f"target {j}" if self.columns is None else f"target {self.columns[j]!r}"

    def group(self, name: str, columns: slice) -> TargetWords:
        """Return what a group of the columns is called."""
        own = None if self.columns is None else self.columns[columns]
        return TargetWords(f"{name!r} of {self.name}", own)


def shown(value: object) -> str:
    """Return a value as people write it: a number of NumPy is a number, its text is text."""
    return repr(value.item() if isinstance(value, np.generic) else value)


def some_of(values: Sequence[object]) -> str:
    """Return the first few values, and dots where there are more."""
    more = ", ..." if len(values) > _HOW_MANY_TO_NAME else ""
    return ", ".join(map(shown, values[:_HOW_MANY_TO_NAME])) + more
