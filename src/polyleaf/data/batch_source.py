"""Batches of rows as a source: one pass over them writes the features to disk and keeps y and weights."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import scipy.sparse
from sklearn.base import BaseEstimator

from polyleaf.data.batch_targets import BatchTargets
from polyleaf.data.category_values import Categories, Factored, factored, resolve_categorical
from polyleaf.data.inputs import read_table, table_numbers
from polyleaf.data.source import Source
from polyleaf.data.sparse_tables import DenseRows
from polyleaf.data.spilled_columns import SpilledColumns
from polyleaf.data.tables import Array, FloatArray, Table


class _Columns(NamedTuple):
    """What the columns of the first batch are called."""

    labels: list[Any]
    names: tuple[str, ...] | None


class BatchSource(Source):
    """The rows of an iterable of batches, which is gone through once.

    Parameters
    ----------
    batches : iterable
        Of tuples (X, y) or (X, y, weight), or of frames. X is an array, a data frame or a sparse matrix; y
        and weight are what ``fit`` takes of these rows.
    categorical_features : Any
        The parameter of the estimator.
    name : str
        What errors call the table.
    targets : BatchTargets
        Takes y and weights.
    """

    def __init__(
        self,
        batches: Iterable[Any],
        categorical_features: Any,
        name: str,
        targets: BatchTargets,
    ) -> None:
        self.name = name
        self._categorical_features = categorical_features
        self._first: _Columns | None = None
        self._levels: dict[int, dict[Any, int]] = {}  # of categorical columns: values, and their codes
        self._spilled = SpilledColumns()
        try:
            first = self._read(batches, targets)
            self._y, self._weight = targets.joined()
        except BaseException:
            self._spilled.close()
            raise
        self.labels, self.names = first.labels, first.names
        self.shape = (self._spilled.n_rows, len(first.labels))
        self.categorical = np.zeros(len(first.labels), dtype=bool)
        self.categorical[list(self._levels)] = True
        self.text = self.categorical
        self.cell_bytes = self._spilled.cell_bytes

    def blocks(self, columns: Sequence[int], categories: Categories, n_threads: int = 1) -> Iterator[Array]:
        """Yield all rows of some columns as numbers, some rows at a time."""
        tables = {
            at: self._codes_of_levels(categories[j], j) for at, j in enumerate(columns) if j in categories
        }
        for block in self._spilled.blocks(columns):
            if tables:
                block = block.astype(np.float64, order="F")
                for at, table in tables.items():
                    block[:, at] = table[_positions(block[:, at])]
            yield block

    def column(self, j: int) -> Any:
        """Return a categorical column as a whole."""
        parts = [_positions(block[:, 0]) for block in self._spilled.blocks([j])]
        return Factored(self._values(j), np.concatenate(parts))

    def is_ordered(self, j: int) -> bool:
        """Whether categories have an order, which each batch was asked already."""
        return False

    def check_first_rows(self, categorical: npt.NDArray[np.bool_]) -> None:
        """All rows have been looked at."""
        return

    def take_target(self) -> object:
        """Return y of all batches."""
        y, self._y = self._y, None
        return y

    def take_weight(self) -> object:
        """Return the weights of all batches."""
        weight, self._weight = self._weight, None
        return weight

    def close(self) -> None:
        """Remove the file."""
        self._spilled.close()

    # --- one pass over the batches -------------------------------------------------------------------------

    def _read(self, batches: Iterable[Any], targets: BatchTargets) -> _Columns:
        """Write the features of all batches to disk; return what their columns are called."""
        for number, batch in enumerate(batches):
            place = f"batch {number}"
            parts = targets.taken_apart(batch, place)
            targets.keep(parts, self._take(parts[0], place), place)
        if self._first is None:
            raise ValueError(f"{self.name}: there are no batches (any more, if it was gone through before).")
        if self._spilled.n_rows == 0:
            raise ValueError(f"{self.name}: Found array with 0 sample(s) in all batches.")
        return self._first

    def _take(self, X: Any, place: str) -> int:
        """Write the features of one batch; return how many rows it has."""
        name = f"{self.name} of {place}"
        table = read_table(BaseEstimator(), X, reset=True, name=name, min_rows=0)
        if self._first is None:
            self._first = _Columns(list(table.labels), table.names)
        self._check_like(self._first, table)
        mask = resolve_categorical(self._categorical_features, table)
        if table.shape[0] == 0:
            return 0
        codes = self._codes(table, mask)
        numbers = table_numbers(table, codes)
        if scipy.sparse.issparse(numbers):
            for _, block in DenseRows(numbers, np.arange(table.shape[1])):
                self._spilled.append(block)
        else:
            assert isinstance(numbers, np.ndarray)
            self._check_kinds(numbers, mask, name)
            self._spilled.append(numbers)
        return table.shape[0]

    def _check_like(self, first: _Columns, table: Table) -> None:
        """Raise where a batch has other columns than the first one."""
        if table.shape[1] != len(first.labels):
            raise ValueError(
                f"{table.name} has {table.shape[1]} columns, but that of batch 0 has {len(first.labels)}."
            )
        if table.names == first.names:
            return
        if table.names is None or first.names is None:
            said = ("no", "some") if table.names is None else ("its", "none")
            raise ValueError(f"{table.name} has {said[0]} column names, and that of batch 0 has {said[1]}.")
        at = next(j for j, (a, b) in enumerate(zip(table.names, first.names, strict=True)) if a != b)
        raise ValueError(
            f"{table.name} has {table.names[at]!r} as column {at}, which is {first.names[at]!r} in batch 0; "
            "all batches must have the same columns, in the same order."
        )

    def _codes(self, table: Table, mask: npt.NDArray[np.bool_]) -> dict[int, FloatArray]:
        """Return the codes of categorical columns: the places of values in the order of their appearance."""
        codes = {}
        for j in np.flatnonzero(mask).tolist():
            if j not in self._levels:
                self._begin_categories(j, table)
            known = self._levels[j]
            levels, positions = factored(table.column(j), f"{table.name}: column {table.labels[j]!r}")
            own = np.full(len(levels) + 1, np.nan)  # the last one is that of position -1
            for level in np.unique(positions[positions >= 0]).tolist():
                value = levels[level]
                # True and 1 are equal, and yet a mixture of types.
                own[level] = known.setdefault((type(value), value), len(known))
            codes[j] = own[positions]
        return codes

    def _begin_categories(self, j: int, table: Table) -> None:
        """Make a column one of categories, unless numbers were seen in it."""
        for block in self._spilled.blocks([j]):
            if block.dtype.kind != "f" or not np.isnan(block).all():
                raise ValueError(
                    f"{table.name}: column {table.labels[j]!r} holds categories, but numbers in the batches "
                    "before; name it in categorical_features."
                )
        self._levels[j] = {}

    def _check_kinds(self, numbers: Array, mask: npt.NDArray[np.bool_], name: str) -> None:
        """Raise where a column that held categories holds numbers."""
        for j in self._levels:
            if not mask[j] and not (numbers.dtype.kind == "f" and np.isnan(numbers[:, j]).all()):
                assert self._first is not None
                raise ValueError(
                    f"{name}: column {self._first.labels[j]!r} holds numbers, but categories in the batches "
                    "before; name it in categorical_features."
                )

    def _values(self, j: int) -> list[Any]:
        return [value for _, value in self._levels[j]]

    def _codes_of_levels(self, values: Any, j: int) -> FloatArray:
        """Return the code of each value of a categorical column, and NaN for a missing one."""
        levels = self._values(j)
        every = Factored(levels, np.arange(-1, len(levels), dtype=np.intp))
        found: FloatArray = np.roll(values.codes(every, self.labels[j], self.name), -1)
        return found


def _positions(codes: Array) -> npt.NDArray[np.intp]:
    """Return codes as whole numbers, -1 for NaN."""
    return np.where(np.isnan(codes), -1, codes).astype(np.intp)
