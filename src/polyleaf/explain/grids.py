"""The values of a feature that predictions are looked at for."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from typing import Any

import numpy as np
import numpy.typing as npt

from polyleaf.data.category_values import CategoryValues
from polyleaf.data.float_arrays import as_float64
from polyleaf.data.inputs import Array, FloatArray
from polyleaf.data.tables import is_missing
from polyleaf.explain.features import number_of_feature
from polyleaf.model.forest import Forest
from polyleaf.params.rules import Integer, Real
from polyleaf.params.wording import shown, some_of


@dataclass(frozen=True)
class Grid:
    """Values of one feature.

    Attributes
    ----------
    feature : int
        Which one.
    values : ndarray
        As people have them: float64, or an object array of categories. A missing value is NaN, or None.
    codes : float64 ndarray
        As trees read them: numbers, or codes of categories; NaN is missing.
    """

    feature: int
    values: Array
    codes: FloatArray

    def __len__(self) -> int:
        return len(self.codes)


def check_range(grid_resolution: object, percentiles: object) -> tuple[int, tuple[float, float]]:
    """Return how many values a grid has, and the percentiles it lies between.

    Raises
    ------
    TypeError, ValueError
        For fewer than two values, or anything but two ascending shares.
    """
    Integer(2).check("grid_resolution", grid_resolution)
    ends: list[Any] = list(percentiles) if isinstance(percentiles, Iterable) else [percentiles]
    if isinstance(percentiles, str) or len(ends) != 2:
        raise TypeError(f"percentiles must be two numbers, (low, high); got {shown(percentiles):.80}.")
    for one in ends:
        Real(0.0, 1.0).check("percentiles", one)
    low, high = float(ends[0]), float(ends[1])
    if low >= high:
        raise ValueError(f"percentiles must ascend; got {low:g} and {high:g}.")
    return int(grid_resolution), (low, high)  # type: ignore[call-overload]


def custom_grids(custom_values: object, features: Sequence[int], names: Sequence[str]) -> dict[int, Any]:
    """Return the values that somebody gave for some of the features, by number.

    Raises
    ------
    TypeError, ValueError
        They are no mapping, or have something else than these features.
    """
    if custom_values is None:
        return {}
    if not isinstance(custom_values, Mapping):
        raise TypeError(
            "custom_values must be a dict of features (numbers or names) and their values; got "
            f"{shown(custom_values):.80}."
        )
    found = {number_of_feature(key, names, "custom_values"): one for key, one in custom_values.items()}
    for number in found:
        if number not in features:
            raise ValueError(f"custom_values has {names[number]!r:.80}, which features does not ask for.")
    return found


def grid_of_column(
    feature: int,
    column: FloatArray,
    categories: CategoryValues | None,
    resolution: int,
    percentiles: tuple[float, float],
) -> Grid:
    """Return the grid of a feature by its values in a table.

    Those are all of its distinct values, where they are fewer than `resolution` or categories; otherwise so
    many at equal distances between the percentiles (which scikit-learn computes in the same way), or between
    the least and the largest value where both percentiles are the same. Where a value is missing, that is the
    last point.
    """
    there = column[~np.isnan(column)]
    codes = np.unique(there)
    if categories is None and len(codes) >= resolution:
        mquantiles = import_module("scipy.stats.mstats").mquantiles
        low, high = (float(one) for one in mquantiles(there, prob=percentiles))
        if np.isclose(low, high):
            low, high = float(codes[0]), float(codes[-1])
        codes = np.linspace(low, high, resolution)
    if len(there) < len(column):
        codes = np.append(codes, np.nan)
    return Grid(feature, _shown_values(codes, categories), codes)


def grid_of_values(feature: int, values: Any, categories: CategoryValues | None, name: str) -> Grid:
    """Return the grid of values that somebody gave.

    Raises
    ------
    ValueError
        There is none, one is infinite, or no category of ``fit``.
    """
    where = f"custom_values of {name!r}"
    if categories is None:
        codes = as_float64(values, where)
    else:
        cells = np.array([*values, None], dtype=object)[:-1]
        codes = categories.codes(cells, name, "custom_values")
    if codes.ndim != 1 or len(codes) == 0:
        raise ValueError(f"{where} must be a list of at least one value; it has shape {codes.shape}.")
    if np.isinf(codes).any():
        raise ValueError(f"{where} must be finite numbers, or NaN for a missing value; got infinity.")
    if categories is not None:
        unseen = [
            cell for cell, gap in zip(cells, np.isnan(codes), strict=True) if gap and not is_missing(cell)
        ]
        if unseen:
            known = some_of(categories.values)
            raise ValueError(f"{where}: {unseen[0]!r:.80} is no category of fit; there are {known}.")
    return Grid(feature, _shown_values(codes, categories), codes)


def column_of(tables: Sequence[Any], feature: int) -> FloatArray:
    """Return a feature of all rows of some tables, dense or sparse, as numbers."""
    parts = [table[:, [feature]] for table in tables]
    dense = [part if isinstance(part, np.ndarray) else part.toarray() for part in parts]
    return np.concatenate([np.asarray(part, dtype=np.float64)[:, 0] for part in dense])


def told_apart(forest: Forest, n_trees: int, grid: Grid) -> tuple[FloatArray, npt.NDArray[np.intp]]:
    """Return codes of a grid that some split tells apart, and for each point the place of its like.

    Between the same two thresholds all trees do the same.
    """
    nodes = slice(0, int(forest.node_begin[n_trees]))
    asks = (forest.left[nodes] >= 0) & (forest.feature[nodes] == grid.feature)
    if not asks.any():
        return grid.codes[:1], np.zeros(len(grid), dtype=np.intp)
    by_category = np.diff(forest.category_begin)[nodes][asks] > 0
    marks = grid.codes
    if not by_category.any():
        thresholds = np.unique(forest.threshold[nodes][asks])
        marks = np.searchsorted(thresholds, grid.codes).astype(np.float64)
    marks = np.where(np.isnan(grid.codes), -1.0, marks)
    _, first, place = np.unique(marks, return_index=True, return_inverse=True)
    return grid.codes[first], place.astype(np.intp)


def _shown_values(codes: FloatArray, categories: CategoryValues | None) -> Array:
    if categories is None:
        return codes
    named = [None if np.isnan(code) else categories.values[int(code)] for code in codes.tolist()]
    return np.array([*named, None], dtype=object)[:-1]
