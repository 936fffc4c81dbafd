"""Training an estimator whose rows are in several shards, each of which runs this with its own rows."""

from __future__ import annotations

import os
import pickle
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from polyleaf.data.eval_sets import EvalInput
from polyleaf.estimators.held_out import (
    Refit,
    held_out_of,
    noted_refit,
    refitted,
    refitting,
    runs_to_watch,
    watched,
    watching,
)
from polyleaf.estimators.leaf_trial import prefers_larger_leaves, with_leaves
from polyleaf.estimators.problem import Problem
from polyleaf.estimators.shards import Asked, PreparedShard, check_weights, prepare_shard
from polyleaf.model.checkpoint import CheckpointNote
from polyleaf.model.file import write_model
from polyleaf.model.fitted import SavedModel
from polyleaf.model.forest import Forest
from polyleaf.peers.collectives import Collectives
from polyleaf.peers.current import summed_over
from polyleaf.peers.gather import any_shard, gather_notes
from polyleaf.training.forest_maker import RoundsDone
from polyleaf.training.loop import Beginning, Run, TrainingResult, train
from polyleaf.training.monitor import check_measurable
from polyleaf.training.shared_callbacks import SharedCallbacks
from polyleaf.training.state import EvalsResult

if TYPE_CHECKING:
    from polyleaf.estimators.base import BasePolyleaf

Extent = tuple[int, int]  # trainings that are over, and rounds of the next one


@dataclass
class Progress:
    """How far a training is, as a shard knows it.

    Where rows are held out, there are two trainings, one after the other: held-out rows are watched, and then
    all rows are trained on.

    Attributes
    ----------
    refit : Refit or None
        What held-out rows asked for, once that is known: the rounds done are those of all rows. None: rows
        are watched, or none are held out.
    n_runs : int
        Runs that advance together.
    done : list
        Rounds done, each with the trees of all runs, one after the other.
    history : dict
        The metrics of these rounds, as far as they are known, where none are held out.
    larger_leaves : bool or None
        Whether held-out rows prefer larger leaves to the usual ones; None: they were not asked yet.
        All shards find the same.
    """

    refit: Refit | None = None
    n_runs: int = 1
    done: RoundsDone = field(default_factory=list)
    history: EvalsResult = field(default_factory=dict)
    larger_leaves: bool | None = None

    @property
    def extent(self) -> Extent:
        """What is more, the further the training is."""
        return int(self.refit is not None), len(self.done)

    def go_on_to(self, refit: Refit) -> None:
        """Begin with the training on all rows."""
        self.done.clear()
        self.history.clear()
        self.refit, self.n_runs = refit, 1

    def take(self, other: Progress) -> None:
        """Go on from what somebody else knows."""
        self.refit, self.n_runs = other.refit, other.n_runs
        self.done[:] = other.done
        self.history.clear()
        self.history.update(other.history)

    def choose_leaves(self, prepared: PreparedShard, problem: Problem) -> None:
        """Ask held-out rows for the size of leaves, unless a shard knows it from before."""
        if prepared.stopping is None:
            self.larger_leaves = False
            return
        known = [one for one in gather_notes(self.larger_leaves) if one is not None]
        self.larger_leaves = known[0] if known else prefers_larger_leaves(problem, prepared.stopping)

    def agree(self, peers: Collectives) -> None:
        """Have all shards go on from what the one knows that knows most."""
        extents = gather_notes(self.extent)
        if max(extents) > min(extents):
            knows = extents.index(max(extents)) == peers.rank
            said = peers.all_gather(pickle.dumps(self) if knows else b"")
            self.take(pickle.loads(next(text for text in said if len(text) > 0)))


def initial_of(prepared: PreparedShard, progress: Progress) -> Forest | None:
    """Return the trees of another run that the present training goes on from."""
    start = prepared.start
    if start is None:
        return None
    is_second = prepared.stopping is not None and progress.refit is not None
    return None if is_second and start.note.stopped_at is None else start.forest


def note_at(prepared: PreparedShard, progress: Progress) -> CheckpointNote | None:
    """Return what a checkpoint says beside the model; None: none is written."""
    note, refit = prepared.note, progress.refit
    if note is None or prepared.stopping is None:
        return note
    return replace(note, holds_out=True, stopped_at=None if refit is None else refit.n_rounds)


def train_shard(
    prepared: PreparedShard,
    peers: Collectives,
    progress: Progress,
    is_paused: Callable[[], bool] = lambda: False,
) -> SavedModel:
    """Train on the rows of all shards; return the model, the same for each of them.

    Saved to a file, it is the model of a plain ``fit`` on all rows, byte for byte.

    Parameters
    ----------
    prepared : PreparedShard
        The rows of this shard.
    peers : Collectives
        What connects the shards.
    progress : Progress
        What this shard knows to be done; the shards go on from what the one knows that knows most. Rounds
        are added as they are done.
    is_paused : callable () -> bool
        Whether a callback of this shard ended the training only for now: where held-out rows are watched,
        nothing follows then.
    """
    with summed_over(peers):
        problem = replace(prepared.problem, data=prepared.problem.data.connected(peers))
        if prepared.stopping is not None and progress.refit is None:
            progress.refit = noted_refit(prepared.start)
        progress.agree(peers)
        progress.choose_leaves(prepared, problem)
        problem = with_leaves(problem, bool(progress.larger_leaves))
        training = _Training(prepared, problem, peers, progress)
        result = training.plain() if prepared.stopping is None else training.stopped(is_paused)
        return SavedModel(problem.kind, problem.params, problem.fitted(result))


@dataclass(frozen=True)
class _Training:
    """The trainings of a shard, each on all rows of `problem` or some of them."""

    prepared: PreparedShard
    problem: Problem
    peers: Collectives
    progress: Progress

    def plain(self) -> TrainingResult:
        """Train on all rows; none are held out."""
        problem = self.problem
        result = train(
            problem.data,
            [data.connected(self.peers) for data in self.prepared.evals],
            problem.loss,
            problem.metrics,
            problem.settings,
            self._shared(self.prepared.callbacks),
            self._begin(),
            save=self._save,
        )
        return _whole(result)

    def stopped(self, is_paused: Callable[[], bool]) -> TrainingResult:
        """Watch held-out rows, unless that is over, and train on all rows."""
        stopping, progress = self.prepared.stopping, self.progress
        assert stopping is not None
        found = self.watched() if progress.refit is None else None
        if found is None:
            return self.refitted()
        if not stopping.refit or any_shard(is_paused()):
            return found
        progress.go_on_to(Refit(found.best_iteration + 1, found.evals_result))
        return self.refitted()

    def watched(self) -> TrainingResult | None:
        """Train on all but held-out rows; None where there are none, and all rows are trained on at once."""
        prepared, problem, progress = self.prepared, self.problem, self.progress
        assert prepared.stopping is not None
        held_out = held_out_of(problem, prepared.stopping)
        initial = initial_of(prepared, progress)
        runs, refit = runs_to_watch(held_out, prepared.stopping, initial, progress.done)
        if refit is not None:
            progress.go_on_to(refit)
            return None
        self._check(runs)
        progress.n_runs = len(runs)
        callbacks = self._shared(watching(prepared.callbacks, len(runs)))
        return _whole(watched(problem, runs, callbacks, self._save, progress.done))

    def refitted(self) -> TrainingResult:
        """Train on all rows for as many rounds as held-out rows asked for."""
        refit = self.progress.refit
        assert refit is not None
        callbacks = self._shared(refitting(self.prepared.callbacks))
        return _whole(refitted(self.problem, refit, callbacks, self._begin(), self._save))

    def _check(self, runs: Sequence[Run]) -> None:
        """Raise where parts of the rows cannot be trained on, or measured, as a plain fit would."""
        for run in runs:
            check_weights(run.data)
            check_measurable(self.problem.metrics, run.evals, self.problem.loss.n_outputs)

    def _shared(self, callbacks: Sequence[Any]) -> list[Any]:
        n_done, measured = len(self.progress.done), self.prepared.measured
        return [SharedCallbacks(self.peers, callbacks, n_done, measured)]

    def _begin(self) -> Beginning:
        prepared, progress = self.prepared, self.progress
        initial = initial_of(prepared, progress)
        return Beginning(initial, prepared.matrix, progress.done, progress.history, prepared.scores)

    def _save(
        self, path: str | os.PathLike[str], result: TrainingResult, stopped_at: int | None = None
    ) -> None:
        problem, note = self.problem, note_at(self.prepared, self.progress)
        write_model(path, SavedModel(problem.kind, problem.params, problem.fitted(result), note))


def _whole(result: TrainingResult) -> TrainingResult:
    """Return a result, or raise what ended the training early."""
    if result.error is not None:
        raise result.error
    return result


def fit_shard(
    estimator: BasePolyleaf, given: EvalInput, evals: Sequence[EvalInput], n_threads: int
) -> SavedModel:
    """Do `prepare_shard` and `train_shard`; with `warm_start`, after the trees that the estimator has."""
    assert given.pieces is not None
    peers, progress = given.pieces.peers, Progress()
    asked = Asked(estimator, start=estimator._start(None, None))
    model = train_shard(prepare_shard(asked, given, evals, n_threads), peers, progress)
    if progress.refit is not None and progress.refit.warning and peers.rank == 0:
        warnings.warn(progress.refit.warning, UserWarning, stacklevel=2)
    return model
