"""A table that is binned once and trained on often, with y and weights beside it if there are any."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from polyleaf import _core
from polyleaf.data.binned_file import (
    BINNED_FILE,
    arrays_of,
    page_of,
    read_is_like,
    read_matrix,
    read_max_bins,
    read_names,
    read_values,
    read_weight,
)
from polyleaf.data.binned_rows import BinnedRows
from polyleaf.data.binning import are_same_for_cuts, bin_like, bin_table
from polyleaf.data.category_values import Categories, resolve_categorical
from polyleaf.data.eval_sets import EvalInput
from polyleaf.data.inputs import Array, FloatArray
from polyleaf.data.kept_targets import KeptTarget
from polyleaf.data.rows_to_bin import KnownColumns, read_rows_to_bin, weights_of
from polyleaf.data.sources import opened
from polyleaf.data.tables import Table
from polyleaf.data.weights import (
    Weights,
)
from polyleaf.files.sealed_file import read_sealed, write_sealed
from polyleaf.params.table import parameters_of
from polyleaf.params.threads import effective_threads


@dataclass(frozen=True, eq=False, repr=False)
class BinnedTable:
    """A table as bin codes, one or two bytes a cell, which is all that training needs of it.

    Made by `BinnedTable.make` or `load_binned`, not by its constructor.

    Attributes
    ----------
    matrix : BinnedMatrix
        The codes and cut points, as the compiled core has them. Rows without weight are not in it.
    max_bins : int or None
        Most bins per feature that were asked for.
    feature_names : tuple of str or None
        Names of the features, when X had any.
    categories : mapping of int to CategoryValues
        The values of the categorical features.
    target : KeptTarget or None
        y, if it was given.
    sample_weight : float64 ndarray of shape (rows,) or (rows, columns of y), or None
        Weights of rows or cells, if they were given.
    is_like : bool
        Whether the cut points are those of another table.
    """

    matrix: _core.BinnedMatrix = field(repr=False)
    max_bins: int | None
    feature_names: tuple[str, ...] | None
    categories: Categories
    target: KeptTarget | None
    sample_weight: FloatArray | None
    is_like: bool = False

    @classmethod
    def make(
        cls,
        X: Any,
        y: Any = None,
        sample_weight: Any = None,
        *,
        max_bins: int | None = 255,
        categorical_features: Any = None,
        n_jobs: int | None = None,
        like: BinnedTable | None = None,
    ) -> BinnedTable:
        """Bin a table, with the cut points that ``fit`` would choose for it, or with those of another one.

        Parameters
        ----------
        X : array-like, data frame or sparse matrix of shape (n_rows, n_features)
            As for ``fit``, what is read from files or batches among it: some columns at a time, so that only
            the codes stay in memory.
        y : str, list of str, array-like, data frame or sparse matrix, default=None
            The targets or labels, which are kept as they are. A row of which no target is observed (NaN) does
            not count. Names of columns and batches as for ``fit``.
        sample_weight : str or array-like of shape (n_rows,) or (n_rows, n_columns of y), default=None
            Weights of rows or cells, >= 0: cut points are those of weighted rows. A row of weight 0 is left
            out.
        max_bins : int or None, default=255
            Most bins per feature, as for the estimators.
        categorical_features : None, "from_dtype", "auto", or array-like of str, int or bool, default=None
            Columns whose values are categories, as for the estimators.
        n_jobs : int or None, default=None
            Number of threads, as for the estimators.
        like : BinnedTable, default=None
            A table of other rows, whose cut points and categories these rows get: as an evaluation set beside
            it, or to predict with models that were trained on it. Missing values have a bin in every feature,
            and categories that it does not have are missing. `max_bins` and `categorical_features` are its
            own; in files and LazyFrames its features are found by name.

        Returns
        -------
        BinnedTable

        Raises
        ------
        TypeError, ValueError
            For what ``fit`` would not take, either.
        """
        rules = parameters_of("regressor")
        settings = {"max_bins": max_bins, "categorical_features": categorical_features, "n_jobs": n_jobs}
        for name, value in settings.items():
            rules[name].rule.check(name, value)
        if isinstance(X, cls):
            raise TypeError("X is a BinnedTable already; pass the rows that it was made of.")
        given = EvalInput("training", X, y, sample_weight, "X", "y", "sample_weight")
        n_threads = effective_threads(n_jobs)
        if like is not None:
            return cls._made_like(like, given, max_bins, categorical_features, n_threads)
        with opened(given, categorical_features, y_needed=False) as given:
            rows = read_rows_to_bin(given, max_bins, categorical_features, n_threads)
            matrix = bin_table(rows.numbers, rows.row_weight, max_bins, n_threads, rows.categorical)
        return cls(matrix, max_bins, rows.names, rows.categories, rows.target, rows.weight)

    @classmethod
    def _made_like(
        cls, like: BinnedTable, given: EvalInput, max_bins: Any, categorical_features: Any, n_threads: int
    ) -> BinnedTable:
        """Bin rows with the cut points of another table."""
        if not isinstance(like, cls):
            raise TypeError(f"like must be a BinnedTable; got {type(like).__name__}.")
        is_default = max_bins == parameters_of("regressor")["max_bins"].default
        like.check_settings(like.max_bins if is_default else max_bins, categorical_features)
        known = KnownColumns(like.shape[1], like.feature_names, like.categories)
        categorical = sorted(like.categories)
        with opened(given, categorical, like.feature_names, y_needed=False) as given:
            rows = read_rows_to_bin(given, like.max_bins, categorical, n_threads, known)
            matrix = bin_like(rows.numbers, like.matrix, n_threads)
        return cls(matrix, like.max_bins, like.feature_names, like.categories, rows.target, rows.weight, True)

    @property
    def shape(self) -> tuple[int, int]:
        """Number of rows, those without weight not among them, and of features."""
        return self.matrix.n_rows, self.matrix.n_features

    @property
    def n_bins(self) -> int:
        """Bins of all features together, those of missing values among them."""
        parts = _core.parts_of_table(self.matrix)
        return int(len(parts["cuts"]) + self.matrix.n_features + parts["has_missing"].sum())

    @property
    def nbytes(self) -> int:
        """What the codes take of memory."""
        return sum(codes.nbytes for codes in _core.parts_of_table(self.matrix)["codes"])

    @property
    def y(self) -> Any:
        """y of the rows that are in the table: an array, or a CSR array of 0 and 1; None: there is none."""
        return None if self.target is None else self.target.values()

    @cached_property
    def digest(self) -> str:
        """SHA-256 over all that it holds: two tables with the same digest train the same models."""
        digest = hashlib.sha256(json.dumps(self._page(), sort_keys=True).encode())
        arrays = self._arrays()
        for name in sorted(arrays):
            array = np.ascontiguousarray(arrays[name])
            digest.update(f"{name} {array.dtype.str} {array.shape}".encode())
            digest.update(array.reshape(-1).view(np.uint8).data)
        return digest.hexdigest()

    def check_settings(self, max_bins: int | None, categorical_features: Any) -> None:
        """Raise ValueError where an estimator asks for other bins than these."""
        if max_bins != self.max_bins:
            raise ValueError(
                f"max_bins is {max_bins}, but the table was binned with max_bins={self.max_bins}; set the "
                "one, or bin the table again."
            )
        if categorical_features is None or isinstance(categorical_features, str):
            return  # what the dtypes of the table said
        wanted = np.flatnonzero(resolve_categorical(categorical_features, self.columns())).tolist()
        if wanted != sorted(self.categories):
            raise ValueError(
                f"categorical_features are the columns {wanted}, but the table was binned with "
                f"{sorted(self.categories)}; set the one, or bin the table again."
            )

    def columns(self, name: str = "X") -> Table:
        """Return the table in the place of one whose cells are still to be read; errors call it by `name`."""
        labels = range(self.shape[1]) if self.feature_names is None else self.feature_names
        return Table(name, "binned", self, labels, self.feature_names, np.zeros(self.shape[1], dtype=bool))

    def rows(self) -> BinnedRows:
        """Return the rows in the place of numbers."""
        return BinnedRows(self.matrix, lambda: self.digest)

    def has_cuts_of(self, weight: FloatArray | None) -> bool:
        """Whether its cut points are those of rows with these weights, None: equal ones."""
        if self.max_bins is None:
            return True  # one between any two values
        own = Weights.of(weights_of(self.sample_weight, self.target, self.shape[0])[1]).row
        return are_same_for_cuts(own, weight)

    def has_bins_of(self, other: BinnedTable) -> bool:
        """Whether a value has the same bin in both tables."""
        if self.categories != other.categories or self.shape[1] != other.shape[1]:
            return False
        own, others = _core.parts_of_table(self.matrix), _core.parts_of_table(other.matrix)
        names = ("cut_begin", "cuts", "categorical", "category_begin", "categories")
        return all(np.array_equal(own[name], others[name]) for name in names)

    def save_binned(self, path: str | os.PathLike[str]) -> None:
        """Save the table to one file (safetensors, no pickle); `polyleaf.load_binned` reads it.

        The file appears under its name only when it is complete.

        Parameters
        ----------
        path : str or os.PathLike
            Where to. An existing file is replaced, and hands on its mode.

        Raises
        ------
        ValueError
            When the path is that of a device, a FIFO or the like, or names and words are beyond a limit.
        """

        def check(page: dict[str, Any], arrays: Mapping[str, Array]) -> None:
            read_names(page, self.matrix)
            read_values(page, self.matrix)

        write_sealed(path, BINNED_FILE, self._page(), self._arrays(), check)

    def _page(self) -> dict[str, Any]:
        return page_of(
            self.matrix,
            self.max_bins,
            self.feature_names,
            self.categories,
            self.target,
            self.sample_weight,
            self.is_like,
        )

    def _arrays(self) -> dict[str, Array]:
        return arrays_of(self.matrix, self.target, self.sample_weight)

    def __reduce__(self) -> tuple[Any, ...]:
        return _made_from, (self._page(), {name: np.array(one) for name, one in self._arrays().items()})

    def __repr__(self) -> str:
        rows, features = self.shape
        beside = [] if self.target is None else ["y"]
        beside += [] if self.sample_weight is None else ["sample_weight"]
        more = f", with {' and '.join(beside)}" if beside else ""
        return (
            f"BinnedTable({rows:,} rows, {features:,} features, {self.n_bins:,} bins, {self.nbytes:,} bytes"
            f"{more})"
        )


def load_binned(path: str | os.PathLike[str], *, n_jobs: int | None = None) -> BinnedTable:
    """Load a table that ``save_binned`` wrote. The file is checked; nothing in it is executed.

    It may come from a stranger: `docs/security.md` says what is checked, and which limits there are.

    Parameters
    ----------
    path : str or os.PathLike
        The file.
    n_jobs : int or None, default=None
        Number of threads that check it, as for the estimators.

    Returns
    -------
    BinnedTable
        On which the same trees grow as on the one that was saved.

    Raises
    ------
    FileNotFoundError
        When there is no such file.
    ValueError
        When the file is not a binned table, was truncated or altered, is from a newer version of polyleaf,
        or is beyond a limit; and for a device, a FIFO or the like.
    """
    parameters_of("regressor")["n_jobs"].rule.check("n_jobs", n_jobs)
    n_threads = effective_threads(n_jobs)
    return read_sealed(path, BINNED_FILE, lambda page, arrays: _made_from(page, arrays, n_threads))


def _made_from(page: Mapping[str, Any], arrays: Mapping[str, Array], n_threads: int = 1) -> BinnedTable:
    """Return the table of a page and its arrays, trusting neither."""
    matrix = read_matrix(page, arrays, n_threads)
    target = page.get("target")
    kept = None if target is None else KeptTarget.read(target, arrays, matrix.n_rows)
    return BinnedTable(
        matrix,
        read_max_bins(page),
        read_names(page, matrix),
        read_values(page, matrix),
        kept,
        read_weight(page, arrays, matrix.n_rows, kept),
        read_is_like(page),
    )


def check_has_values(name: str, X: object) -> None:
    """Check that a table has values to show.

    Raises
    ------
    TypeError
        For a BinnedTable, which has the codes of bins.
    """
    if isinstance(X, BinnedTable):
        raise TypeError(
            f"{name} must have the values of features; a BinnedTable has the codes of bins alone."
        )
