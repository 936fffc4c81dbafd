"""What errors call a row: its number among all rows that the user gave.

Checks see rows by their place in an array. Others may come before them, in other shards, and rows without any
weight are left out early on. Within ``names.used()``, `row_name` knows what the rows of a place are called.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, replace
from itertools import accumulate

import numpy as np
import numpy.typing as npt

from polyleaf.peers.pieces import Pieces


@dataclass(frozen=True)
class RowNames:
    """The names of the rows of an array.

    Attributes
    ----------
    pieces : Pieces or None
        Which parts of a table the rows are, where others are elsewhere.
    first : tuple of int
        The number of the first row of each piece among all rows.
    kept : bool ndarray or None
        Which rows are in the array. None: all.
    """

    pieces: Pieces | None = None
    first: tuple[int, ...] = ()
    kept: npt.NDArray[np.bool_] | None = None

    @classmethod
    def of(cls, pieces: Pieces | None) -> RowNames:
        """Return the names of rows as they were given; all shards ask for them together."""
        return cls() if pieces is None else cls(pieces, pieces.first_rows())

    def of_kept(self, kept: npt.NDArray[np.bool_] | None) -> RowNames:
        """Return the names of those rows that are kept; None: all are."""
        return replace(self, kept=kept)

    def name(self, row: int) -> str:
        """Return what to call the row in this place."""
        if self.kept is not None:
            row = int(np.flatnonzero(self.kept)[row])
        if self.pieces is None:
            return f"row {row}"
        ends = list(accumulate(self.pieces.n_rows))
        piece = int(np.searchsorted(ends, row, side="right"))
        within = row - (ends[piece] - self.pieces.n_rows[piece])
        return f"row {self.first[piece] + within} (row {within} of partition {self.pieces.number[piece]})"

    @contextmanager
    def used(self) -> Iterator[None]:
        """Call rows by these names, in this thread."""
        token = _NAMES.set(self)
        try:
            yield
        finally:
            _NAMES.reset(token)


_NAMES: ContextVar[RowNames] = ContextVar("row names", default=RowNames())  # noqa: B039 (it is frozen)


def row_name(row: int) -> str:
    """Return what errors call a row: "row 17"; of a table in partitions also by its place in its own."""
    return _NAMES.get().name(int(row))
