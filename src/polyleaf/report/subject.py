"""What a report is about: a fitted model, and the rows that it is judged by."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from polyleaf.data.inputs import Array, FloatArray
from polyleaf.data.sparse_formats import SparseTable
from polyleaf.explain.shap import ForestShap
from polyleaf.inspect.named_trees import NamedTrees
from polyleaf.model.fitted import FittedModel
from polyleaf.params.table import EstimatorKind

Places: TypeAlias = "npt.NDArray[np.intp]"


@dataclass(frozen=True)
class Wishes:
    """What somebody wants of a report.

    Attributes
    ----------
    title : str
        Its heading.
    max_rows : int
        Rows that are explained at most.
    max_outputs : int
        Outputs that it has at most.
    seed : int
        Of the rows drawn, and of the resampling behind intervals.
    """

    title: str
    max_rows: int
    max_outputs: int
    seed: int


@dataclass(frozen=True)
class Subject:
    """A fitted model, and rows with what was observed of them.

    Attributes
    ----------
    kind : {"regressor", "classifier", "mixed"}
        The estimator.
    params : dict
        Its parameters.
    fitted : FittedModel
        What it predicts with.
    table : ndarray or sparse array of shape (rows, features)
        The features as the trees read them: numbers, and codes of categories; NaN is missing.
    raw : float64 ndarray of shape (rows, outputs)
        Raw scores, in the order of the forest.
    y : ndarray, or sparse matrix of labels
        Coded targets.
    weight : float64 ndarray of shape (rows,) or (rows, columns of y), or None
        0 where nothing was observed.
    is_weighted : bool
        Whether weights were given.
    shap : callable
        From places of outputs, in the order of y, to what explains them.
    threads : int
        How many to use.
    """

    kind: EstimatorKind
    params: dict[str, Any]
    fitted: FittedModel
    table: Array | SparseTable
    raw: FloatArray
    y: Any
    weight: FloatArray | None
    is_weighted: bool
    shap: Callable[[Places], ForestShap]
    threads: int

    @cached_property
    def names(self) -> NamedTrees:
        """The model with names of features and outputs."""
        return NamedTrees(self.fitted)

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return int(self.table.shape[0])

    def rows(self, which: Places) -> FloatArray:
        """Return the features of some rows, dense."""
        some: Any = self.table[which]
        return np.ascontiguousarray(some if isinstance(some, np.ndarray) else some.toarray())

    def cell(self, row: FloatArray, feature: int) -> float | str | None:
        """Return a value as people read it: a number, the name of a category; None is missing or unseen."""
        value = float(row[feature])
        if np.isnan(value):
            return None
        categories = self.fitted.categories.get(feature)
        return value if categories is None else str(categories.values[int(value)])
