"""Fitting an estimator whose rows are in several shards, each of which runs this with its own rows."""

from __future__ import annotations

import pickle
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from polyleaf._core import BinnedMatrix
from polyleaf.data.binning import bin_data
from polyleaf.data.dataset import Dataset
from polyleaf.data.inputs import EvalInput
from polyleaf.estimators.fit import callbacks_of, evaluations
from polyleaf.estimators.problem import Problem, read_problem
from polyleaf.model.fitted import SavedModel
from polyleaf.params.combinations import check
from polyleaf.params.situation import Situation
from polyleaf.params.validation import validate_params
from polyleaf.peers.collectives import Collectives
from polyleaf.peers.current import summed_over
from polyleaf.peers.gather import gather_notes
from polyleaf.training.callbacks import Checkpoint
from polyleaf.training.loop import Beginning, RoundsDone, train
from polyleaf.training.shared_callbacks import SharedCallbacks

if TYPE_CHECKING:
    from polyleaf.estimators.base import BasePolyleaf


@dataclass
class PreparedShard:
    """The rows of a shard, read, checked and binned.

    Attributes
    ----------
    problem : Problem
        What there is to train on.
    evals : list of Dataset
        The rows of the evaluation sets that are here.
    matrix : BinnedMatrix
        The training rows as bins.
    """

    problem: Problem
    evals: list[Dataset]
    matrix: BinnedMatrix
    callbacks: list[Any] = field(default_factory=list)


def prepare_shard(
    estimator: BasePolyleaf, given: EvalInput, evals: Sequence[EvalInput], n_threads: int
) -> PreparedShard:
    """Read the rows of a shard and bin them by the cut points of all rows.

    Parameters
    ----------
    estimator : BasePolyleaf
        The same for all shards; it is not changed.
    given : EvalInput
        The training rows that are here, with their `pieces`.
    evals : sequence of EvalInput
        The rows of each evaluation set that are here, with their `pieces`.
    n_threads : int
        Of this shard; affects the time only.

    Raises
    ------
    ValueError
        When an option does not go with shards, or the shards have different columns.
    """
    assert given.pieces is not None
    params = estimator.get_params(deep=False)
    validate_params(params, estimator._kind)
    callbacks = callbacks_of(params, evals)
    saves = any(isinstance(callback, Checkpoint) for callback in callbacks)
    check(Situation(params, device=params["device"], shards=True, checkpoint=saves))
    with summed_over(given.pieces.peers):
        problem = read_problem(estimator, params, given)
        _check_columns(problem)
        problem = replace(problem, settings=replace(problem.settings, n_threads=n_threads))
        measured = evaluations(problem, evals)
        return PreparedShard(problem, measured, bin_data(problem.data, problem.settings), callbacks)


def train_shard(prepared: PreparedShard, peers: Collectives, done: RoundsDone) -> SavedModel:
    """Train on the rows of all shards; return the model, the same for each of them.

    Saved to a file, it is the model of a plain ``fit`` on all rows, byte for byte.

    Parameters
    ----------
    prepared : PreparedShard
        The rows of this shard.
    peers : Collectives
        What connects the shards.
    done : list
        Rounds that this shard knows to be done; the shards go on from those of the one that knows most.
        Rounds are added as they are done.
    """
    problem = prepared.problem
    with summed_over(peers):
        counts = gather_notes(len(done))
        if max(counts) > min(counts):
            said = peers.all_gather(pickle.dumps(done) if len(done) == max(counts) else b"")
            done[:] = pickle.loads(next(text for text in said if len(text) > 0))
        shared = SharedCallbacks(peers, prepared.callbacks)
        result = train(
            _connected(problem.data, peers),
            [_connected(data, peers) for data in prepared.evals],
            problem.loss,
            problem.metrics,
            problem.settings,
            [shared],
            Beginning(matrix=prepared.matrix, done=done),
        )
        if result.error is not None:
            raise result.error
        return SavedModel(problem.kind, problem.params, problem.fitted(result))


def _connected(data: Dataset, peers: Collectives) -> Dataset:
    """Return the rows of a shard, connected with the others by `peers` from now on."""
    assert data.shard is not None
    return replace(data, shard=replace(data.shard, peers=peers))


def fit_shard(
    estimator: BasePolyleaf, given: EvalInput, evals: Sequence[EvalInput], n_threads: int
) -> SavedModel:
    """Do `prepare_shard` and `train_shard`."""
    assert given.pieces is not None
    return train_shard(prepare_shard(estimator, given, evals, n_threads), given.pieces.peers, [])


def _check_columns(problem: Problem) -> None:
    """Raise ValueError where shards have tables of different columns."""
    features = problem.reader.features()
    own = [features.count, features.names, problem.coding.width, problem.coding.names]
    of_shards = zip(*gather_notes(own), strict=True)
    names = ("number of features", "feature names", "number of targets", "target names")
    for what, values in zip(names, of_shards, strict=True):
        other = next((one for one in values if one != values[0]), values[0])
        if other != values[0]:
            raise ValueError(f"parts of the table differ in the {what}: {values[0]} and {other}.")
