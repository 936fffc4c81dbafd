"""Rows that are about to be binned: numbers that have any weight, with y and weights beside them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator

from polyleaf.data.category_values import Categories, learn_categories, resolve_categorical
from polyleaf.data.dataset import FeatureTable
from polyleaf.data.eval_sets import EvalInput
from polyleaf.data.inputs import FloatArray, read_table
from polyleaf.data.kept_targets import KeptTarget
from polyleaf.data.memory import needs, refuse_too_large
from polyleaf.data.row_numbers import row_numbers
from polyleaf.data.row_weights import check_weights
from polyleaf.data.source import Source
from polyleaf.data.weights import (
    Weights,
    check_cell_weights,
    refuse_unobserved,
    rows_with_weight,
    set_unobserved_aside,
    weights_by_name,
)


class _Columns(BaseEstimator):  # type: ignore[misc]
    """Takes the number and the names of the features, where scikit-learn's checks look for them."""


_Columns.__name__ = "BinnedTable"  # which is what its errors call it


@dataclass(frozen=True)
class KnownColumns:
    """The features of a table that other rows are binned like.

    Attributes
    ----------
    count : int
        Their number.
    names : tuple of str or None
        Their names, if they have any.
    categories : mapping of int to CategoryValues
        The values of the categorical ones.
    """

    count: int
    names: tuple[str, ...] | None
    categories: Categories


@dataclass(frozen=True)
class RowsToBin:
    """The rows of a table that have any weight.

    Attributes
    ----------
    numbers : ndarray, csc_array or StreamedTable of shape (rows, features)
        Categories are codes.
    names : tuple of str or None
        Of the features.
    categories : mapping of int to CategoryValues
        The values of the categorical features.
    categorical : uint8 ndarray of shape (features,) or None
        1 where a column holds categories; None: no column does.
    target : KeptTarget or None
        y, if it was given.
    weight : float64 ndarray of shape (rows,) or (rows, columns of y), or None
        As it was given.
    row_weight : float64 ndarray of shape (rows,) or None
        By which cut points are chosen; targets that were not observed have none.
    """

    numbers: FeatureTable
    names: tuple[str, ...] | None
    categories: Categories
    categorical: npt.NDArray[np.uint8] | None
    target: KeptTarget | None
    weight: FloatArray | None
    row_weight: FloatArray | None


def read_rows_to_bin(
    given: EvalInput,
    max_bins: int | None,
    categorical_features: Any,
    n_threads: int,
    like: KnownColumns | None = None,
) -> RowsToBin:
    """Read and check the rows of a table, or of a source that is open.

    Parameters
    ----------
    given : EvalInput
        As the user gave them.
    max_bins : int or None
        Most bins per feature, for what the codes will take of memory.
    categorical_features : Any
        Columns whose values are categories, as the estimators take them.
    n_threads : int
        Threads that look for infinities.
    like : KnownColumns or None
        The columns that the table must have. None: those it has are learnt.
    """
    y, sample_weight = given.y, given.weight
    if isinstance(given.X, Source):
        source = given.X
        refuse_too_large(needs(*source.shape, 1, max_bins=max_bins, cell_bytes=source.cell_bytes), "X")
        y = source.take_target() if y is None else y
        sample_weight = source.take_weight() if sample_weight is None else sample_weight
    columns = _Columns()
    if like is not None:
        columns.n_features_in_ = like.count
        if like.names is not None:
            columns.feature_names_in_ = np.array(like.names, dtype=object)
    table = read_table(columns, given.X, reset=like is None)
    n_rows = table.shape[0]
    target = None if y is None else KeptTarget.take(y, n_rows)
    weight, counted = weights_of(sample_weight, target, n_rows)
    kept = rows_with_weight(counted)
    mask = resolve_categorical(categorical_features, table)
    if table.kind == "stream":
        table.source.check_first_rows(mask)
    categories = learn_categories(table, mask, kept) if like is None else like.categories
    numbers = row_numbers(table, categories, kept, n_threads)
    if kept is not None:
        target = None if target is None else target.rows(kept)
        weight = None if weight is None else weight[kept]
        counted = None if counted is None else counted[kept]
    # Other rows need not have all targets.
    observed = counted if like is None else None
    refuse_unobserved(numbers.shape[0], observed, "y", None if target is None else target.names)
    names = getattr(columns, "feature_names_in_", None)
    return RowsToBin(
        numbers,
        None if names is None else tuple(names),
        categories,
        mask.astype(np.uint8) if categories else None,
        target,
        weight,
        Weights.of(counted).row,
    )


def weights_of(
    weight: Any, target: KeptTarget | None, n_rows: int
) -> tuple[FloatArray | None, FloatArray | None]:
    """Return the weights as they were given, checked; and with 0 for each target that was not observed."""
    if target is None:
        checked = None if weight is None else check_weights(weight, n_rows)
        return checked, checked
    y = target.values() if target.form == "sparse" else target.arrays["y"]
    columns: Sequence[Any] = range(target.n_columns) if target.names is None else target.names
    given = check_cell_weights(weights_by_name(weight, columns, "sample_weight"), y, "sample_weight")
    return given, set_unobserved_aside(y, given)[1]
