"""What the estimators say about how predictions change with a feature."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from polyleaf.data.binned_table import check_has_values
from polyleaf.data.inputs import FloatArray
from polyleaf.data.row_weights import check_weights
from polyleaf.explain.features import chosen_features
from polyleaf.explain.grids import (
    Grid,
    check_range,
    column_of,
    custom_grids,
    grid_of_column,
    grid_of_values,
)
from polyleaf.explain.outputs import chosen_outputs
from polyleaf.explain.partial_dependence import KINDS, METHODS, RESPONSES, Dependence, PartialDependence
from polyleaf.inspect.named_trees import NamedTrees
from polyleaf.model.fitted import FittedModel
from polyleaf.model.output_predictions import output_predictions, predicts_raw_scores
from polyleaf.params.combinations import check
from polyleaf.params.rules import Choice
from polyleaf.params.situation import Situation


class Depending:
    """The part of the estimators that shows how predictions change with one or two features."""

    if TYPE_CHECKING:  # of the estimators
        best_iteration_: int

        def _check_is_fitted(self) -> None: ...
        def _fitted(self) -> FittedModel: ...
        def _tables(self, X: Any) -> Iterator[tuple[Any, int]]: ...

    def partial_dependence(
        self,
        X: Any,
        features: Any,
        *,
        outputs: Any = None,
        kind: str = "average",
        response: str = "prediction",
        method: str = "auto",
        grid_resolution: int = 100,
        percentiles: tuple[float, float] = (0.05, 0.95),
        custom_values: Mapping[Any, Any] | None = None,
        sample_weight: Any = None,
    ) -> PartialDependence:
        """Return what all outputs are where one or two features have other values, up to the best round.

        For each value of a grid, the feature of all rows is set to it, and the mean over the rows is taken;
        or that of each row is kept (ICE: individual conditional expectation).

        Parameters
        ----------
        X : array-like, data frame, sparse matrix or source
            The rows, as in `predict`. The grid comes from their values, too. What is read from files or
            batches is held in memory, as numbers.
        features : int, str, or sequence of one or two of these
            Which features, by number or by name. Two: all combinations of their values.
        outputs : int, str, or sequence of these, default=None
            Which outputs, by number or by name, as in `shap_values`; None: all.
        kind : {"average", "individual", "both"}, default="average"
            Means over the rows, the numbers of each row, or both.
        response : {"prediction", "raw"}, default="prediction"
            What the numbers are: what `predict` returns, or `predict_proba` of classes and labels; or raw
            scores, before the link of the objective.
        method : {"auto", "brute", "paths", "recursion"}, default="auto"
            How means are found. "brute": every row is predicted with every value. "paths": the rows go down
            each tree once, both ways at splits on the features; the same means up to rounding, of raw scores
            alone. "auto": the faster of both, which is "paths", where that is possible, for more than 16
            points that splits tell apart. "recursion": as "paths", but with the shares of the training rows
            that each tree keeps, at every split, in the place of the rows of `X`: these are other numbers,
            the same only where the other features are independent of these, or below no split on them, and
            `X` has the training rows.
        grid_resolution : int, default=100
            Number of values at equal distances between the percentiles. A feature with fewer distinct values
            has a point for each of them, and so have categories.
        percentiles : (float, float), default=(0.05, 0.95)
            The ends of the grid, as shares of the rows.
        custom_values : dict, default=None
            Values by feature (number or name), in the place of the grid: numbers, or categories by name. NaN
            or None is a missing value.
        sample_weight : array-like of shape (n_rows,), default=None
            Weights of the rows in the means. The grid does not depend on them.

        Returns
        -------
        PartialDependence
            `grid_values`, `average` of shape (n_outputs, n_values[, n_values of the second feature]) and
            `individual` of shape (n_outputs, n_rows, n_values[, ...]); `to_frame()` has names. Where a
            feature has missing values in `X`, that is the last point of its grid.

        Raises
        ------
        TypeError, ValueError
            For a feature, output or category that does not exist, more than two features, no row, or options
            that do not go together.
        MemoryError
            When the result takes more memory than there is; the error has the numbers.
        """
        self._check_is_fitted()
        fitted = self._fitted()
        names = NamedTrees(fitted)
        chosen = chosen_features(features, names.features)
        wanted = chosen_outputs(outputs, names.outputs)
        Choice(KINDS).check("kind", kind)
        Choice(RESPONSES).check("response", response)
        Choice(METHODS).check("method", method)
        resolution, ends = check_range(grid_resolution, percentiles)
        given = custom_grids(custom_values, chosen, names.features)
        linked = response == "prediction" and not predicts_raw_scores(fitted.coding, fitted.loss)
        asked = {
            f"{method} method": True,
            "single rows": kind != "average",
            "single rows alone": kind == "individual",
            "link": linked,
            "weights of means": sample_weight is not None,
        }
        check(Situation(asked=frozenset(name for name, is_asked in asked.items() if is_asked)))
        check_has_values("X", X)

        read = list(self._tables(X))
        tables, n_threads = [table for table, _ in read], read[0][1]
        n_rows = sum(table.shape[0] for table in tables)
        if n_rows == 0:
            raise ValueError("X has no row to take the mean of.")
        weight = check_weights(sample_weight, n_rows)

        def grid_of(feature: int) -> Grid:
            categories = fitted.categories.get(feature)
            if feature in given:
                return grid_of_values(feature, given[feature], categories, names.features[feature])
            return grid_of_column(feature, column_of(tables, feature), categories, resolution, ends)

        dependence = Dependence(
            forest=fitted.forest,
            n_rounds=self.best_iteration_ + 1,
            outputs=fitted.coding.in_order_of_y(np.arange(fitted.forest.n_outputs, dtype=np.intp))[wanted],
            grids=[grid_of(feature) for feature in chosen],
            respond=partial(output_predictions, fitted.coding, fitted.loss) if linked else None,
            n_threads=n_threads,
        )
        rows_wanted = None if kind == "average" else n_rows
        dependence.refuse_too_large(rows_wanted)
        by = method
        if method == "auto":
            by = dependence.faster_method if kind == "average" else "brute"
        individual: FloatArray | None = None
        if by == "brute":
            average, individual = dependence.by_brute_force(tables, weight, rows_wanted)
        else:
            average = dependence.by_paths(None if by == "recursion" else tables, weight)
        return PartialDependence(
            features=tuple(names.features[feature] for feature in chosen),
            outputs=tuple(names.outputs[output] for output in wanted.tolist()),
            grid_values=tuple(grid.values for grid in dependence.grids),
            average=None if kind == "individual" else average,
            individual=individual,
            response=response,
            method=by,
        )
