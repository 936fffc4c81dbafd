"""Several runs that advance together, as the folds of a cross-validation do."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from threading import Event

import numpy as np

from polyleaf.data.inputs import FloatArray
from polyleaf.metrics import Metric
from polyleaf.training.forest_maker import RoundsDone
from polyleaf.training.loop import Run
from polyleaf.training.side_by_side import until_done
from polyleaf.training.state import EvalsResult

# Runs in threads of their own meet after so many rounds: meeting takes as long as a short round does.
_ROUNDS_AHEAD = 16
# A thread takes the next run after so many, so that no two of them are left with one that has all to do yet.
_ROUNDS_OF_TURN = 4


class Folds:
    """Runs that advance together; their history is the mean over them.

    A run counts from its first value of a metric on: on rows of one class, for instance, there is no area
    under a curve, and that of the other runs' rows is as good without it.

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
    n_at_once : int
        How many runs may advance at the same time. Above 1 they may be some rounds ahead of those that are
        done: the learning rate must be that of the runs, and nothing of a user's may be called in a round.

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
        n_at_once: int = 1,
    ) -> None:
        self._make_runs = make_runs
        self._n_rounds = 0
        self._done = done
        self._n_at_once = n_at_once
        self._failed: BaseException | None = None
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
                for number in range(self._n_rounds):
                    means.append(self._mean(name, metric, number))

    def step(self, learning_rate: float) -> None:
        """Do one round of each run."""
        if min(run.n_rounds for run in self.runs) == self._n_rounds:
            try:
                if self._n_at_once > 1:
                    self._go_ahead(learning_rate)
                else:
                    for run in self.runs:
                        run.step(learning_rate)
            except KeyboardInterrupt:
                self._count(min(run.n_rounds for run in self.runs))
                raise
        self._count(self._n_rounds + 1)

    def _count(self, n_rounds: int) -> None:
        """Take rounds that all runs have done as done."""
        while self._n_rounds < n_rounds:
            for name, of_set in self.history.items():
                for metric, means in of_set.items():
                    means.append(self._mean(name, metric, self._n_rounds))
            if self._done is not None:
                self._done.append([tree for run in self.runs for tree in run.trees_of(self._n_rounds)])
            self._n_rounds += 1

    def _go_ahead(self, learning_rate: float) -> None:
        """Do some rounds of each run; an error is raised once its round is the next one."""
        if self._failed is None:
            most = min(self._n_rounds + _ROUNDS_AHEAD, self.runs[0].most_rounds)
            waiting, interrupted = deque(range(len(self.runs))), Event()
            failed: list[tuple[int, int, BaseException]] = []

            def go() -> None:
                while waiting and not interrupted.is_set():
                    try:
                        number = waiting.popleft()
                    except IndexError:  # another thread was faster
                        return
                    run = self.runs[number]
                    try:
                        for _ in range(min(_ROUNDS_OF_TURN, most - run.n_rounds)):
                            if not interrupted.is_set():
                                run.step(learning_rate)
                    except BaseException as error:
                        failed.append((run.n_rounds, number, error))
                        continue
                    if run.n_rounds < most:
                        waiting.append(number)

            with ThreadPoolExecutor(self._n_at_once, thread_name_prefix="polyleaf") as pool:
                try:
                    until_done([pool.submit(copy_context().run, go) for _ in range(self._n_at_once)])
                except KeyboardInterrupt:  # they end after the rounds that they are in
                    interrupted.set()
                    raise
                except RuntimeError:  # no thread can be started, as after the end of the main one
                    go()
            self._failed = min(failed)[-1] if failed else None
        if self._failed is not None and min(run.n_rounds for run in self.runs) == self._n_rounds:
            raise self._failed

    def _mean(self, name: str, metric: str, number: int) -> float:
        """Return the mean over those runs that have had a value by this round."""
        curves = [run.history[name][metric] for run in self.runs]
        values = [curve[number] for curve in curves]
        mean = float(np.add.reduce(values) / len(values))  # as `mean` does, in less time
        if not np.isnan(mean):
            return mean
        seen = [
            value
            for value, curve in zip(values, curves, strict=True)
            if not np.isnan(curve[: number + 1]).all()
        ]
        return float(np.mean(seen)) if seen else float("nan")

    def deviations(self, metric: str) -> FloatArray:
        """Return the standard deviation over the runs after each round, of those that the mean is of."""
        (name,) = self.history
        values = np.array([run.history[name][metric] for run in self.runs])
        seen = np.logical_or.accumulate(~np.isnan(values), axis=1)
        return np.array(
            [
                of_round[there].std() if there.any() else np.nan
                for of_round, there in zip(values.T, seen.T, strict=True)
            ]
        )
