"""Rows of a table that is binned already, in the place of their numbers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from polyleaf import _core


class BinnedRows:
    """Codes that trees are grown on, and scored by where they split at its cut points.

    Parameters
    ----------
    matrix : BinnedMatrix
        The codes and cut points.
    digest : callable () -> str
        Tells what they come from, where somebody asks for it.
    """

    def __init__(self, matrix: _core.BinnedMatrix, digest: Callable[[], str]) -> None:
        self.matrix = matrix
        self.digest = digest

    @property
    def shape(self) -> tuple[int, int]:
        """Number of rows and of features."""
        return self.matrix.n_rows, self.matrix.n_features

    def take(self, rows: npt.NDArray[np.integer[Any]], n_threads: int = 1) -> BinnedRows:
        """Return some rows, in this order."""
        return BinnedRows(self.matrix.take(rows.astype(np.uint32), n_threads), self.digest)

    def followed_by(self, other: BinnedRows, n_threads: int = 1) -> BinnedRows:
        """Return these rows and others below them, which are binned alike."""
        above, below = _core.parts_of_table(self.matrix), _core.parts_of_table(other.matrix)
        for name in above.keys() - {"n_rows", "codes"}:
            if not np.array_equal(above[name], below[name]):
                raise ValueError(f"rows with other {name} cannot be put together")
        codes = [np.concatenate(both) for both in zip(above["codes"], below["codes"], strict=True)]
        n_rows = above["n_rows"] + below["n_rows"]
        matrix = _core.table_from_parts(above | {"n_rows": n_rows, "codes": codes}, n_threads)
        return BinnedRows(matrix, self.digest)
