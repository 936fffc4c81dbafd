"""The boosting loop, of one forest or of several at once, and a forest in the making."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np

from polyleaf._core import BinnedMatrix
from polyleaf.data.dataset import Dataset
from polyleaf.data.inputs import FloatArray
from polyleaf.growth.tree import Tree
from polyleaf.losses import Loss
from polyleaf.metrics import Metric
from polyleaf.model.bags import Bag
from polyleaf.model.forest import Forest
from polyleaf.params.settings import Settings
from polyleaf.peers.current import summed_over
from polyleaf.training.callbacks import CallbackError, CallbackList
from polyleaf.training.forest_maker import ForestMaker, RoundsDone
from polyleaf.training.kept_scores import KeptScores
from polyleaf.training.monitor import Monitor
from polyleaf.training.state import EvalsResult, TrainingState
from polyleaf.training.trainer import Trainer


@dataclass
class TrainingResult:
    """What a run leaves behind.

    Attributes
    ----------
    forest : Forest
        All rounds done.
    evals_result : dict
        ``{data set: {metric: [value after each round]}}``.
    best_iteration : int
        Round (from 0) with the best watched value if there is early stopping, else the last; -1: no round.
    error : BaseException or None
        What ended the run: KeyboardInterrupt, or whatever a callback raised.
    bags : tuple of Bag
        The members that the forest is the mean of; none: it is one model.
    """

    forest: Forest
    evals_result: EvalsResult
    best_iteration: int
    error: BaseException | None = None
    bags: tuple[Bag, ...] = ()


@dataclass
class Beginning:
    """What a run begins with.

    Attributes
    ----------
    initial : Forest or None
        Trees of another run. ``settings.n_estimators`` counts their rounds, and the random choices go on from
        them: the rounds to come are those that a run of all rounds would do.
    matrix : BinnedMatrix or None
        The training rows as bins; None: they are made before the first round.
    done : list
        The rounds that this very run has done before; those to come are added, each once it is measured.
    history : dict
        The metrics of the rounds in `done`, as far as they are known; those to come are added. There may be
        one round more than in `done`, which does not count.
    scores : KeptScores or None
        Those of training rows after the rounds in `done`; it gets those that the run ends with, however it
        ends. None: nobody asks for them.
    """

    initial: Forest | None = None
    matrix: BinnedMatrix | None = None
    done: RoundsDone = field(default_factory=list)
    history: EvalsResult = field(default_factory=dict)
    scores: KeptScores | None = None


SaveCheckpoint = Callable[[str | os.PathLike[str], TrainingResult], None]


def train(
    data: Dataset,
    evals: Sequence[Dataset],
    loss: Loss,
    metrics: Sequence[Metric],
    settings: Settings,
    callbacks: Sequence[Any] = (),
    begin: Beginning | None = None,
    save: SaveCheckpoint | None = None,
) -> TrainingResult:
    """Boost trees on `data`, measuring `metrics` on `evals` after each round.

    An interrupt (Ctrl-C) or an error in a callback ends the run with the rounds done so far; the caller
    decides what becomes of it. Any other error comes through.

    Parameters
    ----------
    data, evals, loss, metrics, settings
        What to train on, and how.
    callbacks : sequence
        See :mod:`polyleaf.callbacks`.
    begin : Beginning or None
        What is there already; None: nothing.
    save : callable or None
        Writes a checkpoint.
    """
    run = Run(data, evals, loss, metrics, settings, begin)

    def result(state: TrainingState, error: BaseException | None = None) -> TrainingResult:
        best = state.best_round
        return TrainingResult(run.forest(best), run.evals_result(), best, error)

    # Nothing here refers to what refers to it: the table goes with the training, not with the next collection
    # of garbage.
    state = TrainingState(
        n_rounds=settings.n_estimators,
        n_done=run.n_rounds,
        learning_rate=settings.learning_rate,
        evals_result=run.history,
        greater_is_better={metric.name: metric.greater_is_better for metric in metrics},
        forest=run.forest,
        training_metric=run.training_metric,
        save=None if save is None else lambda path, state: save(path, result(state)),
    )
    state.maker = run.maker
    try:
        error = boost(run, state, callbacks)
    finally:
        run.leave_scores()
    return result(state, error)


class Rounds(Protocol):
    """What the loop advances: a forest in the making, or several that advance together.

    Attributes
    ----------
    history : dict
        ``{data set: {metric: [value after each round]}}``.
    """

    history: EvalsResult

    @property
    def n_rounds(self) -> int:
        """Rounds done, those it began with included."""

    def begin(self) -> None:
        """Get ready for the first round; callbacks have had their word."""

    def step(self, learning_rate: float) -> None:
        """Do one round."""


def boost(rounds: Rounds, state: TrainingState, callbacks: Sequence[Any]) -> BaseException | None:
    """Do round after round, until all are done or a callback ends the training.

    An error of a callback before the training begins is raised, and so is any error of the rounds themselves;
    all callbacks that have begun get their ``after_training`` before.

    Parameters
    ----------
    rounds : Rounds
        What to advance.
    state : TrainingState
        Its `evals_result` is the history of `rounds`.
    callbacks : sequence
        See :mod:`polyleaf.callbacks`.

    Returns
    -------
    BaseException or None
        What ended the training: KeyboardInterrupt, or whatever a callback raised. The rounds done are there.
    """
    calls, n_rounds = CallbackList(callbacks), state.n_rounds
    error: BaseException | None = None
    try:
        calls.before_training(state)
    except CallbackError as failed:
        error = failed.error
    if error is not None:  # here, so that it keeps the causes it has
        raise error
    try:
        rounds.begin()
        while rounds.n_rounds < n_rounds:
            state.begin_round()
            if calls.before_round(state):
                break
            rounds.step(state.learning_rate)
            state.n_done = rounds.n_rounds
            if calls.after_round(state):
                break
    except CallbackError as failed:
        error = failed.error
    except KeyboardInterrupt as interrupt:
        error = interrupt
    finally:
        state.n_done = rounds.n_rounds
        at_the_end = calls.after_training(state)
    if error is None and at_the_end is not None:
        error = at_the_end.error
    return error


class Run:
    """A forest in the making, and its metrics on the evaluation sets.

    Parameters
    ----------
    data, evals, loss, metrics, settings, begin
        As of :func:`train`.

    Attributes
    ----------
    data, evals
        What it was made of.
    history : dict
        ``{data set: {metric: [value after each round]}}``.
    rates : list of float
        The learning rates of the rounds done here.
    """

    def __init__(
        self,
        data: Dataset,
        evals: Sequence[Dataset],
        loss: Loss,
        metrics: Sequence[Metric],
        settings: Settings,
        begin: Beginning | None = None,
    ) -> None:
        begin = Beginning() if begin is None else begin
        initial = begin.initial
        self.data, self.evals = data, evals
        self._peers = data.peers
        with summed_over(self._peers):
            if initial is not None:
                base = initial.base_score
            elif settings.base_score is not None:
                base = settings.base_score
            else:
                base = loss.base_score(data.y, data.weights.whole())
            self._trainer = Trainer(data, loss, settings, base)
        if initial is not None and not np.array_equal(initial.unit, self._trainer.unit):
            raise ValueError(
                "the targets are of another size than those of the model to go on from: its leaf values are "
                f"in units of {initial.unit.max():g}, here they would be in {self._trainer.unit.max():g}."
            )
        trainer = self._trainer
        start = base / trainer.unit
        self._monitor = Monitor(
            evals,
            loss,
            metrics,
            trainer.unit,
            lambda rows: trainer.scores(rows, start),
            settings.n_threads,
            begin.history,
        )
        self._metrics = metrics
        self._settings = settings
        self._initial = initial
        self._matrix = begin.matrix
        self._prepared = False
        self._rounds = begin.done
        self._n_before = len(begin.done)
        self._kept = begin.scores
        self.history = self._monitor.history
        self.rates: list[float] = []

    @property
    def n_rounds(self) -> int:
        """Rounds the forest has."""
        return (0 if self._initial is None else self._initial.n_rounds) + len(self._rounds)

    @property
    def maker(self) -> ForestMaker:
        """Makes forests of the trees of this run."""
        return self._trainer.maker

    def begin(self) -> None:
        """Measure the rounds that the forest began with."""
        with summed_over(self._peers):
            self._monitor.replay(self._before())

    def _before(self) -> Forest | None:
        """Return the trees that the scores begin with."""
        done = [tree for trees_of_round in self._rounds for tree in trees_of_round]
        if not done:
            return self._initial
        forest = self._trainer.maker.forest_of(done)
        return forest if self._initial is None else self._initial.followed_by(forest)

    def step(self, learning_rate: float) -> None:
        """Do one round."""
        with summed_over(self._peers):
            if not self._prepared:
                self._trainer.prepare(
                    self._matrix, self._before(), self._taken()
                )  # gone before the first round
                self._prepared = True
            grown = self._trainer.round(self.n_rounds, learning_rate)
            if self.history:
                self._monitor.measure(grown, lambda: self._trainer.maker.forest_of(grown))
        self._rounds.append(grown)  # a round counts once it is measured
        self.rates.append(learning_rate)

    def _taken(self) -> FloatArray | None:
        """Return the scores of the run before, where they are those to go on from."""
        return None if self._kept is None else self._kept.taken(len(self._rounds))

    def leave_scores(self) -> None:
        """Hand over the scores after the last round done, where they are those."""
        n_here = self._trainer.n_grown // self._trainer.trees_per_round
        if self._kept is None or not self._prepared or self._n_before + n_here != len(self._rounds):
            return
        if self._trainer.n_grown % self._trainer.trees_per_round == 0:  # no part of a round that failed
            self._kept.values, self._kept.n_rounds = self._trainer.training_scores(), len(self._rounds)

    @property
    def most_rounds(self) -> int:
        """Rounds that the forest gets at most."""
        return self._settings.n_estimators

    def trees_of(self, number: int) -> list[tuple[Tree, int]]:
        """Return the trees of a round that was done here."""
        return self._rounds[number - (0 if self._initial is None else self._initial.n_rounds)]

    def forest(self, best: int | None = None) -> Forest:
        """Return the trees of all rounds done, with each output's share of the gains up to round `best`.

        The shares are left out where the forest began with trees of another run.
        """
        return self._trainer.maker.whole(self._initial, self._rounds, best)

    def evals_result(self) -> EvalsResult:
        """Return the metrics of the rounds done."""
        return self._monitor.result(self.n_rounds)

    def training_metric(self) -> dict[str, float]:
        """Return the first metric on the training rows; nothing before the first round."""
        with summed_over(self._peers):
            return self._trainer.measure(self._metrics) if self._prepared else {}
