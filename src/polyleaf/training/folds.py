"""Several runs that advance together, as the folds of a cross-validation do."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

import numpy as np

from polyleaf.metrics import Metric
from polyleaf.training.forest_maker import RoundsDone
from polyleaf.training.loop import Run
from polyleaf.training.state import EvalsResult


class Folds:
    """Runs that advance together; their history is the mean over them.

    Parameters
    ----------
    make_runs : callable () -> iterable of Run
        Called once, before the first round. Each run has one evaluation set.
    set_name : str
        What all runs call their evaluation set.
    metrics : sequence of Metric
        What they measure.
    done : list or None
        Gets the trees of each round to come: those of all runs, one after the other.

    Attributes
    ----------
    runs : list of Run
        None before the training begins.
    history : dict
        ``{set_name: {metric: [mean after each round]}}``.
    """

    def __init__(
        self,
        make_runs: Callable[[], Iterable[Run]],
        set_name: str,
        metrics: Sequence[Metric],
        done: RoundsDone | None = None,
    ) -> None:
        self._make_runs = make_runs
        self._n_rounds = 0
        self._done = done
        self.runs: list[Run] = []
        self.history: EvalsResult = {set_name: {metric.name: [] for metric in metrics}}

    @property
    def n_rounds(self) -> int:
        """Rounds that all runs have done."""
        return self._n_rounds

    def begin(self) -> None:
        """Make the runs, and measure the rounds that they begin with."""
        self.runs = list(self._make_runs())
        for run in self.runs:
            run.begin()
        self._n_rounds = min(run.n_rounds for run in self.runs)
        for name, of_set in self.history.items():
            for metric, means in of_set.items():
                values = [run.history[name][metric][: self._n_rounds] for run in self.runs]
                means.extend(np.mean(values, axis=0).tolist())

    def step(self, learning_rate: float) -> None:
        """Do one round of each run."""
        for run in self.runs:
            run.step(learning_rate)
        for name, of_set in self.history.items():
            for metric, means in of_set.items():
                latest = [run.history[name][metric][-1] for run in self.runs]
                means.append(float(np.add.reduce(latest) / len(latest)))  # as `mean` does
        if self._done is not None:
            self._done.append([tree for run in self.runs for tree in run.last_round()])
        self._n_rounds += 1
