"""Metrics on the evaluation sets, round by round."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np

from polyleaf.data.dataset import Dataset
from polyleaf.data.inputs import FloatArray
from polyleaf.losses import Loss
from polyleaf.metrics import Metric
from polyleaf.model.forest import Forest
from polyleaf.model.scores import Scores
from polyleaf.peers.current import summed_over
from polyleaf.peers.gather import check_gathered, gather_rows


def measured(metric: Metric, data: Dataset, prediction: FloatArray, weight: FloatArray | None) -> float:
    """Return a metric of the rows of a data set, those of all shards where there are several.

    `weight` is that of rows or cells. A metric that is no mean of what rows have by themselves gets all rows
    in one place, in their order.
    """
    y = data.y
    if data.shard is None or metric.merges:
        return metric.function(y, prediction, weight)
    order = np.argsort(gather_rows(data.shard.numbers(len(prediction))))
    y, prediction = gather_rows(y)[order], gather_rows(prediction)[order]
    if weight is not None:
        weight = gather_rows(weight)[order]
    with summed_over(None):
        return metric.function(y, prediction, weight)


def check_measurable(metrics: Sequence[Metric], evals: Sequence[Dataset], n_outputs: int) -> None:
    """Raise ValueError where a metric needs more rows in one place than are brought together."""
    for data in evals:
        if data.shard is None:
            continue
        given = [one for one in (data.y, data.weights.whole()) if one is not None]
        width = sum(math.prod(one.shape[1:]) for one in given) + n_outputs + 1  # and the number of the row
        size = 8 * width * data.shard.n_rows
        for metric in metrics:
            if not metric.merges:
                rows = f"{data.shard.n_rows:,} rows of {n_outputs} predictions"
                check_gathered(size, f"the metric {metric.name!r} on {data.name!r} ({rows})")


@dataclass
class Monitor:
    """Metrics on the evaluation sets.

    Attributes
    ----------
    history : dict
        ``{data set: {metric: [value after each round]}}``. It may come with values of rounds that are to be
        replayed, which are then not measured again.
    """

    evals: Sequence[Dataset]
    loss: Loss
    metrics: Sequence[Metric]
    unit: FloatArray
    make_scores: Callable[[Dataset], Scores]
    n_threads: int
    history: dict[str, dict[str, list[float]]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._weights = [data.weights.whole() for data in self.evals]
        self._scores = [self.make_scores(data) for data in self.evals]
        for data in self.evals:
            of_data = self.history.setdefault(data.name, {})
            for metric in self.metrics:
                of_data.setdefault(metric.name, [])

    def measure(self, latest_round: Forest) -> None:
        """Add the only round of a forest, and measure."""
        self._add(latest_round, 0)

    def replay(self, forest: Forest | None) -> None:
        """Add all rounds of a forest (None: there are none), measuring where the metrics are not known."""
        n_rounds = 0 if forest is None else forest.n_rounds
        lists = [values for by_metric in self.history.values() for values in by_metric.values()]
        n_known = min([n_rounds, *map(len, lists)])
        for values in lists:
            del values[n_known:]
        if forest is None or not self.evals:
            return
        for number in range(n_rounds):
            self._add(forest, number, is_known=number < n_known)

    def _add(self, forest: Forest, number: int, is_known: bool = False) -> None:
        for data, weight, score in zip(self.evals, self._weights, self._scores, strict=True):
            scores = score.add_round(forest, number)
            if is_known:
                continue
            prediction = self.loss.predict(scores * self.unit, self.n_threads)
            for metric in self.metrics:
                value = measured(metric, data, prediction, weight)
                self.history[data.name][metric.name].append(value)

    def result(self, n_rounds: int) -> dict[str, dict[str, list[float]]]:
        """Return the metrics of the first rounds."""
        return {
            name: {metric: values[:n_rounds] for metric, values in by_metric.items()}
            for name, by_metric in self.history.items()
        }
