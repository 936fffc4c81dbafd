"""What the first rank says to the client of a training, round by round, and what the client answers."""

from __future__ import annotations

import pickle
import time
from collections.abc import Mapping
from dataclasses import astuple, dataclass

from polyleaf.dask.line import ClientLine
from polyleaf.estimators.held_out import Refit
from polyleaf.estimators.leaf_trial import with_leaves
from polyleaf.estimators.shard_training import Progress, initial_of, note_at
from polyleaf.estimators.shards import PreparedShard
from polyleaf.model.checkpoint import CheckpointNote
from polyleaf.model.fitted import FittedModel
from polyleaf.peers.collectives import Collectives
from polyleaf.training.callbacks import EarlyStopping
from polyleaf.training.forest_maker import ForestMaker
from polyleaf.training.loop import TrainingResult
from polyleaf.training.state import EvalsResult, TrainingState


@dataclass(frozen=True)
class Outset:
    """What is known before the first round of a training.

    Attributes
    ----------
    refit : Refit or None
        What held-out rows asked for: the training is that of all rows, after these were watched. None: they
        are watched in this one, or none are held out.
    n_runs : int
        Runs that advance together.
    n_rounds, n_begun : int
        Rounds the forest will have, and those it begins with.
    goes_on : bool
        Whether it begins with the trees that the fit goes on from.
    learning_rate, greater_is_better
        As of `TrainingState`.
    metrics : dict
        Names of the metrics of each evaluation set.
    maker : ForestMaker
        Makes a forest of the trees to come.
    model : FittedModel
        The model, still without trees.
    note : CheckpointNote or None
        What a checkpoint says beside the model.
    seed : int
        Of the run.
    """

    refit: Refit | None
    n_runs: int
    n_rounds: int
    n_begun: int
    goes_on: bool
    learning_rate: float
    greater_is_better: Mapping[str, bool]
    metrics: dict[str, list[str]]
    maker: ForestMaker
    model: FittedModel
    note: CheckpointNote | None
    seed: int


@dataclass(frozen=True)
class Spent:
    """What rounds took.

    Attributes
    ----------
    seconds, exchange_seconds : float
        Time, and that of the exchanges in it.
    n_exchanges, bytes_sent : int
        How often all ranks sent something, and what this rank sent.
    """

    seconds: float = 0.0
    exchange_seconds: float = 0.0
    n_exchanges: int = 0
    bytes_sent: int = 0

    def and_more(self, more: Spent) -> Spent:
        """Return this and more."""
        return Spent(*(a + b for a, b in zip(astuple(self), astuple(more), strict=True)))

    def since(self, before: Spent) -> Spent:
        """Return what was spent since then."""
        return Spent(*(a - b for a, b in zip(astuple(self), astuple(before), strict=True)))


@dataclass(frozen=True)
class Report:
    """What is new since the client was last told.

    Attributes
    ----------
    rounds : list of bytes
        The trees of each new round, of all runs, as pickles.
    evals : dict
        The metrics after each round that was not measured before.
    training : dict
        The metrics of the training rows after the last round, where they are measured.
    best_iteration : int or None
        As of `TrainingState`.
    ends : bool
        Whether early stopping ends the training here.
    is_last : bool
        Whether the training is over.
    spent : Spent
        What it took.
    """

    rounds: list[bytes]
    evals: EvalsResult
    training: dict[str, float]
    best_iteration: int | None
    ends: bool
    is_last: bool
    spent: Spent


@dataclass(frozen=True)
class Answer:
    """What the client says.

    Attributes
    ----------
    n_rounds, n_measured : int
        Rounds of this run, and measurements, that it knows.
    ends : bool
        Whether the training ends here.
    learning_rate, best_iteration
        Of the next round, and so far.
    """

    n_rounds: int
    n_measured: int
    ends: bool
    learning_rate: float
    best_iteration: int | None


class Reporter:
    """A callback of the first rank that stands for those at the client.

    Early stopping is done here, as it looks at nothing but metrics: no round waits for the client because of
    it.

    Parameters
    ----------
    line : ClientLine
        To the client.
    prepared : PreparedShard
        The rows of this rank; its callbacks are those of the rank itself.
    peers : Collectives
        What connects the ranks.
    progress : Progress
        The rounds done, to which those to come are added.
    waits : bool
        Whether rounds wait for what callbacks at the client say.
    """

    def __init__(
        self, line: ClientLine, prepared: PreparedShard, peers: Collectives, progress: Progress, waits: bool
    ) -> None:
        self._line = line
        self._prepared = prepared
        self._early: list[EarlyStopping] = []  # those of the present training
        self._peers = peers
        self._progress = progress
        self._waits = waits
        self._n_told = self._n_measured = 0
        self._heard: tuple[int, Answer] | None = None  # after so many rounds
        self._before = Spent()

    def before_training(self, state: TrainingState) -> None:
        """Let the client know what there will be."""
        self._early = [] if self._progress.refit is not None else list(self._prepared.callbacks)
        self._heard = None
        for early in self._early:
            early.before_training(state)
        known = self._ask(self._outset(state))
        self._n_told, self._n_measured = known.n_rounds, known.n_measured

    def before_round(self, state: TrainingState) -> bool:
        """Take over learning rate and best round; return whether the training ends before this one."""
        ends = True in [bool(early.before_round(state)) for early in self._early]
        if self._heard is None or self._heard[0] != state.n_done:
            ends = self._report(state, ends)
        if self._waits and self._heard is not None:
            state.learning_rate = self._heard[1].learning_rate
        return ends

    def after_round(self, state: TrainingState) -> bool:
        """Tell of a round; return whether the training ends after it, or before the next one."""
        ends = True in [bool(early.after_round(state)) for early in self._early]
        return self._report(state, ends)

    def after_training(self, state: TrainingState) -> None:
        """Wait until the client has heard everything."""
        for early in self._early:
            early.after_training(state)
        self._ask(self._news(state, ends=True, is_last=True))

    def _report(self, state: TrainingState, ends: bool) -> bool:
        news = self._news(state, ends, is_last=False)
        if not self._waits:
            self._line.tell(pickle.dumps(news))
            self._heard = state.n_done, Answer(0, 0, ends, state.learning_rate, state.best_iteration)
            return ends
        answer = self._ask(news)
        self._heard = state.n_done, answer
        state.best_iteration = answer.best_iteration
        return answer.ends

    def _ask(self, message: Outset | Report) -> Answer:
        answer: Answer = pickle.loads(self._line.ask(pickle.dumps(message)))
        self._before = self._spent()  # what the client did is no part of the next round
        return answer

    def _outset(self, state: TrainingState) -> Outset:
        progress, maker = self._progress, state.maker
        problem = with_leaves(self._prepared.problem, bool(progress.larger_leaves))
        assert maker is not None
        return Outset(
            refit=progress.refit,
            n_runs=progress.n_runs,
            n_rounds=state.n_rounds,
            n_begun=state.n_done - len(progress.done),
            goes_on=initial_of(self._prepared, progress) is not None,
            learning_rate=problem.settings.learning_rate,
            greater_is_better=state.greater_is_better,
            metrics={name: list(by_metric) for name, by_metric in state.evals_result.items()},
            maker=maker,
            model=problem.fitted(TrainingResult(maker.forest_of([]), {}, -1)),
            note=note_at(self._prepared, progress),
            seed=problem.settings.seed,
        )

    def _news(self, state: TrainingState, ends: bool, is_last: bool) -> Report:
        done = self._progress.done
        rounds = [pickle.dumps(trees) for trees in done[self._n_told :]]
        evals = {
            name: {metric: values[self._n_measured : state.n_done] for metric, values in by_metric.items()}
            for name, by_metric in state.evals_result.items()
        }
        self._n_told, self._n_measured = len(done), state.n_done
        before, self._before = self._before, self._spent()
        training = {} if evals else state.latest()
        spent = self._before.since(before)
        return Report(rounds, evals, training, state.best_iteration, ends, is_last, spent)

    def _spent(self) -> Spent:
        peers = self._peers
        return Spent(time.monotonic(), peers.seconds, peers.n_exchanges, peers.bytes_sent)
