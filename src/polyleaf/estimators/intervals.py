"""Intervals that hold their level on rows the model has not seen: split-conformal prediction."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from polyleaf.data.inputs import FloatArray
from polyleaf.data.sources import source_kind
from polyleaf.estimators.regressor import PolyleafRegressor

_SCALE_SHARE = 5  # one row in so many sets the scales of a box
_ROUNDING = 1e-9  # of numbers of rows: 0.9 of 10 are 9


class ConformalIntervals:
    """Intervals around the predictions of a fitted regressor, calibrated on rows it was not trained on.

    If those rows and the new ones come from the same distribution in no particular order, an interval holds
    the target of a new row with a probability of at least `level`, whatever the model is worth. A model of
    several quantiles is widened (or narrowed) at its lowest and highest one, so that the width follows the
    row; any other gets intervals of one width per target.

    Parameters
    ----------
    model : PolyleafRegressor
        Fitted, with one quantile level or none at all, or with several.
    level : float, default=0.9
        Probability that an interval holds its target; with `joint`, that a box holds all targets of a row.
    joint : bool, default=False
        Whether the intervals of a row are a box that is to hold all its targets at once.
    random_state : int, default=0
        Chooses the fifth of the rows that sets how wide the sides of a box are to one another.

    Attributes
    ----------
    margin_ : float64 ndarray of shape (targets,)
        What lies between the prediction, or the outer quantiles, and the ends of the intervals.

    Examples
    --------
    >>> intervals = ConformalIntervals(model, level=0.9).calibrate(X_calibration, y_calibration)
    >>> lower, upper = intervals.predict(X_new)
    """

    def __init__(
        self, model: PolyleafRegressor, *, level: float = 0.9, joint: bool = False, random_state: int = 0
    ) -> None:
        if not isinstance(model, PolyleafRegressor):
            raise TypeError(f"model must be a fitted PolyleafRegressor; got {type(model).__name__}.")
        if not 0 < level < 1:
            raise ValueError(f"level must lie between 0 and 1; got {level!r}.")
        model._check_is_fitted()
        self.model = model
        self.level = float(level)
        self.joint = bool(joint)
        self.random_state = random_state

    def calibrate(self, X: Any, y: Any = None) -> ConformalIntervals:
        """Find out how wide the intervals must be.

        Parameters
        ----------
        X : array-like, data frame or sparse matrix of shape (n_rows, n_features)
            Rows that the model was not trained on; also a source or a `polyleaf.BinnedTable`, as in
            `PolyleafRegressor.score`. Weights that it brings along do not count.
        y : str, list of str, array-like or data frame of shape (n_rows,) or (n_rows, n_targets)
            Their targets, or names of columns of a source; left out where batches or a BinnedTable have them.
            Missing ones (NaN) do not count: a box then holds those that are there.

        Returns
        -------
        ConformalIntervals
            Itself.

        Raises
        ------
        ValueError
            There are too few rows for the level.
        """
        prediction, y, _ = self.model._beside_targets(X, y, None, self.model._means)
        lower, upper = self._outer(prediction)
        targets, weight = self.model._observed(y, None, len(lower))
        misses = np.maximum(lower - targets, targets - upper)
        if weight is not None:  # 0 where nothing was observed
            misses = np.where(weight.reshape(len(weight), -1) > 0, misses, np.nan)
        self.margin_ = self._box(misses) if self.joint else self._sides(misses)
        return self

    def predict(self, X: Any) -> tuple[FloatArray, FloatArray]:
        """Return the lower and the upper ends of the intervals, each with the dimension of y in ``fit``."""
        if not hasattr(self, "margin_"):
            raise ValueError("the intervals are not calibrated yet: call `calibrate` first.")
        model = self.model
        streamed = source_kind(X) is not None
        prediction = model._by_parts(X, model._means, (), None) if streamed else model._means(X)
        lower, upper = self._outer(prediction)
        # A negative margin must not turn an interval around.
        middle = 0.5 * (lower + upper)
        lower, upper = np.minimum(lower - self.margin_, middle), np.maximum(upper + self.margin_, middle)
        return self.model._shaped(lower), self.model._shaped(upper)

    def _outer(self, prediction: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return lowest and highest quantile of each target, or twice what is predicted."""
        n_levels = len(self.model._coding.levels or (None,))
        return prediction[:, ::n_levels], prediction[:, n_levels - 1 :: n_levels]

    def _sides(self, misses: FloatArray) -> FloatArray:
        """Return the margin of each target by itself; NaN: it was not observed."""
        margins = []
        for j, of_target in enumerate(misses.T):
            seen = of_target[~np.isnan(of_target)]
            margins.append(self._margin(seen, f"rows in which {self._name_of(j)} was observed"))
        return np.array(margins)

    def _box(self, misses: FloatArray) -> FloatArray:
        """Return margins of all targets together: multiples of scales that other rows have set."""
        chosen = np.random.default_rng(self.random_state).permutation(len(misses))
        n_scale = max(1, len(misses) // _SCALE_SHARE)
        scale = self._scales(misses[chosen[:n_scale]])
        rest = misses[chosen[n_scale:]] / scale
        largest = np.max(rest, axis=1, where=~np.isnan(rest), initial=-np.inf)
        return scale * self._margin(largest[largest > -np.inf], "rows beside those that set the scales")

    def _scales(self, misses: FloatArray) -> FloatArray:
        """Return how large misses of each target are; 1 where all are 0."""
        for j, of_target in enumerate(misses.T):
            if np.isnan(of_target).all():
                raise ValueError(
                    f"{self._name_of(j)} was observed in none of the {len(misses)} rows that set the scales "
                    "of a box; calibrate on more rows of it, or without joint."
                )
        scale = np.nanmean(np.abs(misses), axis=0)
        return np.where(scale > 0, scale, 1.0)

    def _name_of(self, target: int) -> str:
        return self.model._coding.words("y").column(target)

    def _margin(self, misses: FloatArray, which: str) -> float:
        """Return the smallest margin that covers enough of these rows for a new one to be covered."""
        n = len(misses)
        place = math.ceil((n + 1) * self.level - _ROUNDING)
        if place > n:
            least = math.ceil(self.level / (1 - self.level) - _ROUNDING)
            raise ValueError(f"level={self.level!r} takes at least {least} {which}; there are {n}.")
        return float(np.partition(misses, place - 1)[place - 1])
