"""A trial: trees of one setting, on rows of which others are left to measure them by."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from polyleaf._core import BinnedMatrix
from polyleaf.estimators.parts import Indices, run_of_part
from polyleaf.estimators.problem import Problem
from polyleaf.training.callbacks import CallbackError, EarlyStopping, NoBestRound
from polyleaf.training.folds import Folds
from polyleaf.training.loop import boost
from polyleaf.training.state import TrainingState
from polyleaf.tuning.clock import Clock, Limit
from polyleaf.tuning.course import Course, Watch
from polyleaf.tuning.search import Candidate
from polyleaf.tuning.trials import Status, Trial

_SET_NAME = "validation"


@dataclass(frozen=True)
class Tried:
    """A trial, and what later ones have to know of it.

    Attributes
    ----------
    trial : Trial
        What is told of it.
    candidate : Candidate
        The setting.
    course : Course
        How its score went.
    greater_is_better : bool
        Of the score.
    interrupt : KeyboardInterrupt or None
        What cut it off.
    """

    trial: Trial
    candidate: Candidate
    course: Course
    greater_is_better: bool
    interrupt: KeyboardInterrupt | None = None

    def is_better_than(self, best: Tried) -> bool:
        """Whether it takes the place of the best one."""
        if self.trial.status in ("pruned", "failed"):
            return False
        if self.trial.status == "cut off" and not self.course.keeps_best:  # it had rounds to go
            return False
        return self.loss < best.loss

    @property
    def loss(self) -> float:
        """The score, of which lower is better; infinite where there is none."""
        value = -self.trial.score if self.greater_is_better else self.trial.score
        return float("inf") if np.isnan(value) else value


@dataclass(frozen=True)
class Validation:
    """What all trials have in common.

    Attributes
    ----------
    matrix : BinnedMatrix
        All rows as bins.
    folds : sequence of (ndarray, ndarray)
        Rows to train on, and rows to measure; the mean over the folds counts.
    callbacks : sequence
        Of the estimator; an `EarlyStopping` comes first.
    metric : str
        Name of what is watched.
    clock : Clock
        Ends a trial where time is up.
    """

    matrix: BinnedMatrix
    folds: Sequence[tuple[Indices, Indices]]
    callbacks: Sequence[Any]
    metric: str
    clock: Clock

    @property
    def stops(self) -> bool:
        """Whether a trial ends by itself, and its best round counts."""
        return any(isinstance(one, EarlyStopping) for one in self.callbacks)

    def tried(self, number: int, candidate: Candidate, names: Sequence[str], best: Tried | None) -> Tried:
        """Train with a setting, and measure; give up where it cannot become the best.

        Raises
        ------
        NoBestRound
            When no round has a score.
        CallbackError
            With what another callback has raised, but for KeyboardInterrupt, which cuts off.
        """
        problem, course = candidate.problem, Course(self.stops)
        watch = Watch(course, _SET_NAME, self.metric, None if best is None else best.course)
        together = Folds(
            lambda: [
                run_of_part(
                    problem, self.matrix, train, test, _SET_NAME, "y of the rows that are not held out"
                )
                for train, test in self.folds
            ],
            _SET_NAME,
            problem.metrics,
        )
        state = TrainingState(
            n_rounds=problem.settings.n_estimators,
            n_done=0,
            learning_rate=problem.settings.learning_rate,
            evals_result=together.history,
            greater_is_better={metric.name: metric.greater_is_better for metric in problem.metrics},
        )
        began = time.monotonic()
        reserved = None if best is None else self.seconds_of_refit(problem, best.trial)
        limit = Limit(self.clock, self._share_of_all(problem), reserved, self.stops)
        error = boost(together, state, [*self.callbacks, watch, limit])
        interrupt = error if isinstance(error, KeyboardInterrupt) else None
        if isinstance(error, NoBestRound):
            raise error
        if error is not None and interrupt is None:
            raise CallbackError(error)  # which is no failure of the trial
        status: Status = "pruned" if watch.pruned else "done"
        if interrupt is not None or (limit.is_up and status == "done" and state.n_done < state.n_rounds):
            status = "cut off"
        curve = np.array(together.history[_SET_NAME][self.metric][: state.n_done])
        if interrupt is None and not np.isfinite(curve).any():
            raise NoBestRound.of("tune()", self.metric, _SET_NAME, len(curve))
        n_rounds = state.best_round + 1
        trial = Trial(
            number,
            {name: problem.params[name] for name in names},
            status,
            float(curve[n_rounds - 1]) if n_rounds > 0 else float("nan"),
            n_rounds,
            curve,
            time.monotonic() - began,
        )
        return Tried(trial, candidate, course, state.greater_is_better[self.metric], interrupt)

    def is_up(self, best: Tried) -> bool:
        """Whether there is time for no other trial."""
        return self.clock.is_up(self.seconds_of_refit(best.candidate.problem, best.trial))

    def seconds_of_refit(self, problem: Problem, trial: Trial) -> float:
        """Return how long training on all rows will take, by what a trial took."""
        if len(trial.curve) == 0:
            return 0.0
        n_rounds = trial.n_rounds if self.stops else problem.settings.n_estimators
        return trial.seconds / len(trial.curve) * n_rounds * self._share_of_all(problem)

    def _share_of_all(self, problem: Problem) -> float:
        """Return all rows as a share of those that a round of all folds is trained on."""
        return problem.data.n_rows / sum(len(train) for train, _ in self.folds)
