"""Metrics on the evaluation sets, round by round."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Any

import numpy as np

from polyleaf.data.dataset import Dataset
from polyleaf.data.inputs import Array, FloatArray
from polyleaf.losses import Loss
from polyleaf.metrics import Metric
from polyleaf.metrics.average import dense
from polyleaf.metrics.metric import Measure
from polyleaf.model.forest import Forest
from polyleaf.model.scores import Scores, Trees
from polyleaf.peers.current import summed_over
from polyleaf.peers.gather import check_gathered, gather_rows
from polyleaf.peers.shard import Shard


def measure_of(metric: Metric, data: Dataset, weight: FloatArray | None) -> Measure:
    """Return a metric of the rows of a data set, those of all shards where there are several.

    `weight` is that of rows or cells.
    """
    if data.shard is None or metric.merges:
        return metric.measure(data.y, weight)
    shard = data.shard
    return lambda prediction: _measured_together(metric, data.y, prediction, weight, shard)


def _measured_together(
    metric: Metric, y: Array, prediction: FloatArray, weight: FloatArray | None, shard: Shard
) -> float:
    """Return a metric that is no mean of what rows have by themselves: it gets all rows in their order."""
    order = np.argsort(gather_rows(shard.numbers(len(prediction))))
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
        self._scores = [self.make_scores(data) for data in self.evals]
        self._of_sets: list[list[Measure]] | None = None
        for data in self.evals:
            of_data = self.history.setdefault(data.name, {})
            for metric in self.metrics:
                of_data.setdefault(metric.name, [])

    @property
    def _measures(self) -> list[list[Measure]]:
        """The metrics of each set, made in the first round that is measured: shards make them together.

        (Python 3.11 lets one thread at a time make a `cached_property`, and shards may be threads.)
        """
        if self._of_sets is None:
            self._of_sets = [
                [measure_of(metric, data, data.weights.whole()) for metric in self.metrics]
                for data in self.evals
            ]
        return self._of_sets

    def measure(self, trees: Trees, forest: Callable[[], Forest]) -> None:
        """Add the trees of the latest round, which `forest` makes a forest of, and measure."""
        if len(self._scores) > 1:
            forest = cache(forest)  # which is made once, if at all
        for data, measures, score in zip(self.evals, self._measures, self._scores, strict=True):
            self._measure(data, measures, score.add_grown(trees, forest))

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
            for data, measures, score in zip(self.evals, self._measures, self._scores, strict=True):
                scores = score.add_round(forest, number)
                if number >= n_known:
                    self._measure(data, measures, scores)

    def _measure(self, data: Dataset, measures: Sequence[Measure], scores: Any) -> None:
        if isinstance(scores, np.ndarray):
            prediction: Any = self.loss.predict(scores * self.unit, self.n_threads)
        else:  # those of sparse labels are in units of 1, and their predictions
            prediction = scores
        of_data = self.history[data.name]
        for metric, measure in zip(self.metrics, measures, strict=True):
            of_data[metric.name].append(measure(prediction if metric.takes_sparse else dense(prediction)))

    def result(self, n_rounds: int) -> dict[str, dict[str, list[float]]]:
        """Return the metrics of the first rounds."""
        return {
            name: {metric: values[:n_rounds] for metric, values in by_metric.items()}
            for name, by_metric in self.history.items()
        }
