"""The callbacks that polyleaf brings along, and the list of a run; public as `polyleaf.callbacks`."""

from __future__ import annotations

import math
import os
from collections.abc import Sequence
from typing import Any

from polyleaf.files.written_file import checked_target, path_text
from polyleaf.params.combinations import check, refused
from polyleaf.params.rules import CALLBACK_METHODS, Integer, Real
from polyleaf.params.situation import Situation
from polyleaf.training.progress import EvaluationLog, ProgressBar
from polyleaf.training.state import Callback, TrainingState
from polyleaf.training.watched import known_name


class NoBestRound(ValueError):
    """No round can be the best one: the metric that is to say so has no value."""

    @classmethod
    def of(cls, watcher: str, metric: str, data: str, n_rounds: int) -> NoBestRound:
        """Return the error of who watches a metric of a data set."""
        return cls(
            f"{watcher}: the metric {metric!r} on {data!r} was no finite number after any of {n_rounds} "
            "round(s), so that none is the best. Either these rows have no such value, as rows of one class "
            "have no area under a curve, or predictions are beyond all bounds. Take another eval_metric, or "
            "other rows to measure."
        )


class EarlyStopping(Callback):
    """End the training when a metric has not improved for some rounds.

    `best_iteration_` becomes the best round, which predictions then go up to. ``early_stopping_rounds`` of
    the estimators is this callback with its defaults. There can be only one.

    Parameters
    ----------
    rounds : int
        Rounds without an improvement.
    metric : str, default=None
        Name of the metric, as in ``evals_result_``. None: the last one.
    data : str, default=None
        Name of the evaluation set. None: the last one.
    min_delta : float, default=0.0
        An improvement is larger than this.

    Raises
    ------
    ValueError
        When it is to end the training, or the training is over, and the metric was NaN or infinite after all
        rounds.
    """

    def __init__(
        self, rounds: int, metric: str | None = None, data: str | None = None, min_delta: float = 0.0
    ) -> None:
        Integer(1).check("rounds", rounds)
        Real(0).check("min_delta", min_delta)
        self.rounds = rounds
        self.metric = metric
        self.data = data
        self.min_delta = min_delta

    def before_training(self, state: TrainingState) -> None:
        """Find what is to be watched."""
        data = known_name("EarlyStopping", "data", self.data, state.evals_result)
        metric = known_name("EarlyStopping", "metric", self.metric, state.greater_is_better)
        self._watched = metric, data
        self._sign = -1.0 if state.greater_is_better[metric] else 1.0
        self._values = state.evals_result[data][metric]
        self._seen = self._best_round = 0
        self._best = math.inf

    def before_round(self, state: TrainingState) -> bool | None:
        """Stop at once if the rounds the training began with had stopped already."""
        return self._look(state)

    def after_round(self, state: TrainingState) -> bool | None:
        """Stop after `rounds` rounds without an improvement."""
        return self._look(state)

    def after_training(self, state: TrainingState) -> None:
        """Take account of rounds that were there before, if no other was done."""
        try:
            self._look(state, at_end=True)
        finally:
            self._values = []

    def _look(self, state: TrainingState, *, at_end: bool = False) -> bool:
        """Read the rounds not seen yet; a value of NaN is no improvement."""
        for number in range(self._seen, min(len(self._values), state.n_done)):
            value = self._sign * self._values[number]
            if value < self._best - self.min_delta:
                self._best, self._best_round = value, number
            self._seen = number + 1
        if self._seen == 0:
            return False
        stops = self._seen - 1 - self._best_round >= self.rounds
        if math.isfinite(self._best):
            state.best_iteration = self._best_round
        elif stops or at_end:
            raise NoBestRound.of("early stopping", *self._watched, self._seen)
        return stops


class LearningRateSchedule(Callback):
    """Give each round a learning rate of its own.

    Parameters
    ----------
    schedule : callable or sequence of float
        A function of the round's number, from 0, that returns its learning rate; or one number a round.
    """

    def __init__(self, schedule: Any) -> None:
        is_sequence = hasattr(schedule, "__getitem__") and hasattr(schedule, "__len__")
        if not callable(schedule) and (isinstance(schedule, str | dict) or not is_sequence):
            raise TypeError(
                f"schedule must be callable or a sequence of float; got {schedule!r} of type "
                f"{type(schedule).__name__}."
            )
        self.schedule = schedule

    def before_training(self, state: TrainingState) -> None:
        """Check that the sequence is long enough, and its numbers."""
        if callable(self.schedule):
            return
        if len(self.schedule) < state.n_rounds:
            raise ValueError(
                f"LearningRateSchedule has {len(self.schedule)} learning rates, but there are "
                f"{state.n_rounds} rounds to come."
            )
        for number in range(state.n_done, state.n_rounds):
            Real(0, open_low=True).check(f"the learning rate of round {number}", self.schedule[number])

    def before_round(self, state: TrainingState) -> bool | None:
        """Set the rate of this round."""
        schedule = self.schedule
        rate = schedule(state.round) if callable(schedule) else schedule[state.round]
        Real(0, open_low=True).check(f"the learning rate of round {state.round}", rate)
        state.learning_rate = rate
        return None


class TimeLimit(Callback):
    """End the training after the round in which a number of seconds has passed.

    Parameters
    ----------
    seconds : float
        Time since the training began. At least one round is done.
    """

    def __init__(self, seconds: float) -> None:
        Real(0, open_low=True).check("seconds", seconds)
        self.seconds = seconds

    def after_round(self, state: TrainingState) -> bool | None:
        """Stop when the time is up."""
        return state.elapsed >= self.seconds


class Checkpoint(Callback):
    """Save the rounds done every few rounds and at the end, for ``fit(..., resume=path)``.

    The file is replaced as a whole: there is a complete one at any moment, whatever happens to the process.
    It is a model file, which ``load_model`` reads too.

    Parameters
    ----------
    path : str or os.PathLike
        The file.
    every : int, default=10
        Rounds between two checkpoints.
    """

    def __init__(self, path: str | os.PathLike[str], every: int = 10) -> None:
        Integer(1).check("every", every)
        path_text(path)
        self.path = path
        self.every = every

    def before_training(self, state: TrainingState) -> None:
        """Check that the file could be written."""
        if not state.can_save:
            raise refused(Situation(checkpoint=True, cross_validation=True))
        self.check_path()
        self._saved = state.n_done

    def check_path(self) -> None:
        """Raise where no file could be written."""
        checked_target(self.path)

    def after_round(self, state: TrainingState) -> bool | None:
        """Write the file if its round has come."""
        if state.n_done % self.every == 0:
            self._write(state)
        return None

    def after_training(self, state: TrainingState) -> None:
        """Write the rounds since the last checkpoint."""
        if state.n_done > self._saved:
            self._write(state)

    def _write(self, state: TrainingState) -> None:
        state.save_checkpoint(self.path)
        self._saved = state.n_done


# --- calling them ------------------------------------------------------------------------------------------


class CallbackError(Exception):
    """Carries what a callback raised out of the boosting loop."""

    def __init__(self, error: BaseException) -> None:
        super().__init__(error)
        self.error = error


def all_callbacks(given: Sequence[Any] | None, early_stopping_rounds: int | None, verbose: int) -> list[Any]:
    """Return the callbacks of a fit: those given, and those that the parameters stand for.

    EarlyStopping comes first, so that the others see its verdict; what is shown comes last.
    """
    callbacks = list(given or ())
    stopping = [one for one in callbacks if isinstance(one, EarlyStopping)]
    check(Situation({"early_stopping_rounds": early_stopping_rounds}, n_early_stopping=len(stopping)))
    if early_stopping_rounds is not None:
        stopping = [EarlyStopping(early_stopping_rounds)]
    shown: list[Any] = []
    if verbose >= 1:
        shown.append(ProgressBar())
    if verbose >= 2:
        shown.append(EvaluationLog(verbose))
    return [*stopping, *(one for one in callbacks if not isinstance(one, EarlyStopping)), *shown]


def may_save(callbacks: Sequence[Any]) -> bool:
    """Return whether one of them could write a checkpoint; of those of users it is not known."""
    known = (EarlyStopping, LearningRateSchedule, TimeLimit, ProgressBar, EvaluationLog)
    return any(type(one) not in known for one in callbacks)


class CallbackList:
    """Calls the methods that each callback has.

    Raises
    ------
    CallbackError
        From a callback's error, whatever it is.
    """

    def __init__(self, callbacks: Sequence[Any]) -> None:
        self._callbacks = list(callbacks)
        self._begun: list[Any] = []

    def before_training(self, state: TrainingState) -> None:
        """Call all; on an error, those that have begun get their ``after_training`` first."""
        for callback in self._callbacks:
            self._begun.append(callback)
            try:
                _call(callback, "before_training", state)
            except CallbackError:
                self._begun.pop()
                self.after_training(state)
                raise

    def before_round(self, state: TrainingState) -> bool:
        """Return whether the training ends before this round."""
        return True in [_call(one, "before_round", state) for one in self._callbacks]

    def after_round(self, state: TrainingState) -> bool:
        """Return whether the training ends after this round."""
        return True in [_call(one, "after_round", state) for one in self._callbacks]

    def after_training(self, state: TrainingState) -> CallbackError | None:
        """Call all that have begun; return the first error."""
        first = None
        for callback in self._begun:
            try:
                _call(callback, "after_training", state)
            except CallbackError as error:
                first = first or error
        self._begun = []
        return first


def _call(callback: object, method: str, state: TrainingState) -> bool:
    function: Any = getattr(callback, method, None)
    if function is None and method == "after_round" and _is_function(callback):
        function = callback
    if function is None:
        return False
    try:
        said = function(state)
        return said is not None and bool(said)
    except BaseException as error:
        raise CallbackError(error) from error


def _is_function(callback: object) -> bool:
    return not any(hasattr(callback, method) for method in CALLBACK_METHODS)
