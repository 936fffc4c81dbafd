"""The same metric of each target or label by itself."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from polyleaf.data.inputs import FloatArray
from polyleaf.data.sums import any_of_columns
from polyleaf.metrics.average import MetricFunction
from polyleaf.metrics.metric import Metric


@dataclass(frozen=True)
class PerTarget:
    """Metrics of single columns of y, under "<target>/<metric>".

    Attributes
    ----------
    name : str
        Of the metric.
    function : MetricFunction
        It, of any number of columns.
    """

    name: str
    function: MetricFunction

    def metrics(self, whole: Metric, targets: Sequence[str]) -> list[Metric]:
        """Return the metric of each target; `whole` is that of all of them."""
        return [
            Metric(
                f"{target}/{self.name}", whole.greater_is_better, self._of_column(column), merges=whole.merges
            )
            for column, target in enumerate(targets)
        ]

    def _of_column(self, column: int) -> MetricFunction:
        def measured(y: Any, prediction: Any, weight: FloatArray | None) -> float:
            own = [column]
            if weight is not None and weight.ndim == 2:
                weight = np.ascontiguousarray(weight[:, own])
                if not any_of_columns(weight > 0)[0]:  # a target may have no observation in an evaluation set
                    return float("nan")
            return self.function(y[:, own], prediction[:, own], weight)

        return measured
