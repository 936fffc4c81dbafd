"""What a metric is: a name, a function, and which way is up."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from polyleaf.data.inputs import Array, FloatArray
from polyleaf.metrics.average import MetricFunction
from polyleaf.params.wording import TargetWords

Measure = Callable[[Any], float]  # of the predictions for some rows


@dataclass(frozen=True)
class Metric:
    """A named function of coded targets, predictions (probabilities for a classifier) and weights.

    Targets and predictions of several labels may be SciPy CSR matrices.

    Attributes
    ----------
    name : str
        Its key in ``evals_result_``.
    greater_is_better : bool
        Which way early stopping looks.
    function : callable (y, prediction, weight) -> float
        `weight` is None, of shape (rows,), or of shape (rows, outputs): a cell of weight 0 was not observed.
    takes_weight : bool
        Whether it makes use of weights; a callable of the user's does if it has an argument `sample_weight`.
    check_targets : callable (y, weight, words) or None
        Raises ValueError, calling y by `words`, where the metric is not defined.
    merges : bool
        Whether it is made of sums of what rows have by themselves: rows may be in several shards.
    check_weights : callable (weight, name) or None
        Raises ValueError, calling y by `name`, where the metric cannot take these weights.
    takes_sparse : bool
        Whether predictions may be a CSR matrix; a callable of the user's gets an array.
    of_targets : callable (y, weight) -> Measure, or None
        Makes what `measure` returns, where part of the metric hangs on targets and weights alone.
    """

    name: str
    greater_is_better: bool
    function: MetricFunction
    takes_weight: bool = True
    check_targets: Callable[[Array, FloatArray | None, TargetWords], None] | None = None
    check_weights: Callable[[FloatArray, str], None] | None = None
    merges: bool = False
    takes_sparse: bool = True
    of_targets: Callable[[Any, FloatArray | None], Measure] | None = None

    def measure(self, y: Any, weight: FloatArray | None) -> Measure:
        """Return the metric of these targets and weights, for predictions of many rounds."""
        if self.of_targets is not None:
            return self.of_targets(y, weight)
        return lambda prediction: self.function(y, prediction, weight)
