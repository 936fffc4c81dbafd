"""Fitting an estimator whose rows are in several shards, each of which runs this with its own rows."""

from __future__ import annotations

import os
import pickle
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from polyleaf._core import BinnedMatrix
from polyleaf.data.binned_rows import BinnedRows
from polyleaf.data.binning import bin_data
from polyleaf.data.dataset import Dataset
from polyleaf.data.eval_sets import EvalInput
from polyleaf.data.sums import largest
from polyleaf.estimators.fit import evaluations, fit_of, note_of
from polyleaf.estimators.problem import Problem, read_problem
from polyleaf.estimators.shard_facts import ShardFacts
from polyleaf.model.checkpoint import CheckpointNote
from polyleaf.model.file import write_model
from polyleaf.model.fitted import SavedModel
from polyleaf.params.combinations import check
from polyleaf.params.settings import seed_of
from polyleaf.params.situation import Situation
from polyleaf.params.validation import validate_params
from polyleaf.peers.answers import Answers, Noted, Remembered
from polyleaf.peers.collectives import Collectives
from polyleaf.peers.current import summed_over
from polyleaf.peers.gather import gather_notes
from polyleaf.training.callbacks import may_save
from polyleaf.training.continuation import Start
from polyleaf.training.forest_maker import RoundsDone
from polyleaf.training.kept_scores import KeptScores
from polyleaf.training.loop import Beginning, TrainingResult, train
from polyleaf.training.monitor import check_measurable
from polyleaf.training.shared_callbacks import SharedCallbacks
from polyleaf.training.state import EvalsResult

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
    facts : ShardFacts
        What was found of all rows, to read some of them again by.
    callbacks : list
        Those of the estimator.
    start : Start or None
        What training goes on from.
    note : CheckpointNote or None
        What a checkpoint says beside the model; None: none is written.
    measured : bool
        Whether the training rows are measured after each round.
    scores : KeptScores
        Of the training rows, left behind by a training.
    """

    problem: Problem
    evals: list[Dataset]
    facts: ShardFacts
    callbacks: list[Any] = field(default_factory=list)
    start: Start | None = None
    note: CheckpointNote | None = None
    measured: bool = False
    scores: KeptScores = field(default_factory=KeptScores)

    @property
    def matrix(self) -> BinnedMatrix:
        """The training rows as bins."""
        assert isinstance(self.problem.data.X, BinnedRows)
        return self.problem.data.X.matrix

    @property
    def pieces(self) -> list[list[int]]:
        """The numbers of the pieces here: of the training rows, then of each evaluation set."""
        shards = [data.shard for data in (self.problem.data, *self.evals)]
        return [[] if one is None else one.pieces[:, 0].tolist() for one in shards]

    def of_pieces(self, wanted: Sequence[Collection[int]]) -> PreparedShard:
        """Return the rows of some of the pieces: of the training rows, then of each evaluation set."""
        data, n_threads = self.problem.data, self.problem.settings.n_threads
        left = data.of_pieces(wanted[0], n_threads)
        scores = self.scores
        if left is not data and scores.values is not None:
            assert data.shard is not None
            scores = replace(scores, values=scores.values[data.shard.of_pieces(wanted[0])[1]])
        evals = [one.of_pieces(some) for one, some in zip(self.evals, wanted[1:], strict=True)]
        return replace(self, problem=replace(self.problem, data=left), evals=evals, scores=scores)

    def followed_by(self, other: PreparedShard) -> PreparedShard:
        """Return these rows and those of other pieces, which were read by the same facts."""
        data = self.problem.data.followed_by(other.problem.data, self.problem.settings.n_threads)
        evals = [one.followed_by(more) for one, more in zip(self.evals, other.evals, strict=True)]
        return replace(self, problem=replace(self.problem, data=data), evals=evals)


def check_shards(estimator: BasePolyleaf, n_eval_sets: int) -> list[Any]:
    """Return the callbacks of a fit, or raise where parameters do not go with each other or with shards.

    What hangs on the data is found when they are read.
    """
    params = estimator.get_params(deep=False)
    validate_params(params, estimator._kind)
    fit = fit_of(params, n_eval_sets, shards=True)
    check(Situation(params, device=params["device"], shards=True))
    return fit.callbacks


def prepare_shard(
    estimator: BasePolyleaf,
    given: EvalInput,
    evals: Sequence[EvalInput],
    n_threads: int,
    *,
    seed: int | None = None,
    start: Start | None = None,
    noted: bool = False,
    measured: bool = False,
    facts: ShardFacts | None = None,
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
    seed : int, default=None
        Of the run, where whoever began it has drawn one. None: the first shard draws it for all, so that a
        RandomState that they share advances once, as in a plain ``fit``.
    start : Start or None
        What training goes on from; the same for all shards.
    noted : bool
        Whether a checkpoint may be written, also where no callback of the estimator does it.
    measured : bool
        Whether the training rows are measured after each round, for callbacks that show how they fare.
    facts : ShardFacts, default=None
        What was found of all rows when they were read before: some of them are read again, and become what
        they were. The other shards are not asked. None: all shards read their rows.

    Raises
    ------
    ValueError
        When an option does not go with shards, the shards have different columns, or a metric needs more rows
        in one place than are brought together.
    """
    assert given.pieces is not None
    peers = given.pieces.peers
    callbacks = check_shards(estimator, len(evals))
    params = estimator.get_params(deep=False)
    answers = Answers(peers.size)
    asked = Noted(peers, answers) if facts is None else Remembered(facts.answers)
    given, *evals = (one.connected(asked) for one in (given, *evals))
    with summed_over(asked):
        for one in (given, *evals):
            _check_alike(one)
        if seed is None:
            drawn = seed_of(params["random_state"]) if asked.rank == 0 else None
            seed = int(gather_notes(drawn)[0])
        problem = read_problem(estimator, params, given, start, seed=seed)
        _check_columns(problem)
        _check_weights(problem.data)
        problem = replace(problem, settings=replace(problem.settings, n_threads=n_threads))
        others = [data.connected(peers) for data in evaluations(problem, evals)]
        check_measurable(problem.metrics, others, problem.loss.n_outputs)
        if measured:
            check_measurable(problem.metrics[:1], [problem.data], problem.loss.n_outputs)
        note = note_of(problem, start) if noted or may_save(callbacks) else None
    data = problem.data.connected(peers)
    if facts is None:
        matrix = bin_data(data, problem.settings)
        facts = ShardFacts(answers, matrix.take(np.empty(0, dtype=np.uint32), 1))
    else:
        assert isinstance(data.X, np.ndarray)
        matrix = facts.table.bin_like(data.X, n_threads)
    # The numbers themselves are needed no more, nor is what weights were before.
    coded = replace(data, X=BinnedRows(matrix, lambda: ""))
    problem = replace(problem, data=coded, kept=None, own_weight=None)
    return PreparedShard(problem, others, facts, callbacks, start, note, measured)


def train_shard(
    prepared: PreparedShard, peers: Collectives, done: RoundsDone, history: EvalsResult | None = None
) -> SavedModel:
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
    history : dict, default=None
        The metrics of these rounds, to which others are added.
    """
    history = {} if history is None else history
    problem, start = prepared.problem, prepared.start

    def save(path: str | os.PathLike[str], result: TrainingResult) -> None:
        write_model(path, SavedModel(problem.kind, problem.params, problem.fitted(result), prepared.note))

    with summed_over(peers):
        counts = gather_notes(len(done))
        if max(counts) > min(counts):
            knows = counts.index(max(counts)) == peers.rank
            said = peers.all_gather(pickle.dumps((done, history)) if knows else b"")
            done[:], known = pickle.loads(next(text for text in said if len(text) > 0))
            history.clear()
            history.update(known)
        shared = SharedCallbacks(peers, prepared.callbacks, len(done), prepared.measured)
        result = train(
            problem.data.connected(peers),
            [data.connected(peers) for data in prepared.evals],
            problem.loss,
            problem.metrics,
            problem.settings,
            [shared],
            Beginning(
                None if start is None else start.forest, prepared.matrix, done, history, prepared.scores
            ),
            save=save,
        )
        if result.error is not None:
            raise result.error
        return SavedModel(problem.kind, problem.params, problem.fitted(result))


def fit_shard(
    estimator: BasePolyleaf, given: EvalInput, evals: Sequence[EvalInput], n_threads: int
) -> SavedModel:
    """Do `prepare_shard` and `train_shard`; with `warm_start`, after the trees that the estimator has."""
    assert given.pieces is not None
    start = estimator._start(None, None)
    return train_shard(prepare_shard(estimator, given, evals, n_threads, start=start), given.pieces.peers, [])


def _check_alike(given: EvalInput) -> None:
    """Raise ValueError where some shards have weights, or targets of two dimensions, and others have not."""
    y, weight = cast(Any, given.y), cast(Any, given.weight)
    said = gather_notes([np.ndim(y), None if weight is None else np.ndim(weight)])
    for what, values in zip((given.y_name, given.weight_name), zip(*said, strict=True), strict=True):
        if len(set(values)) > 1:
            raise ValueError(f"parts of {what} have different dimensions, or some are missing.")


def _check_weights(data: Dataset) -> None:
    """Raise ValueError where weights differ too much for sums that no order changes."""
    weight = data.weights.row
    if weight is None:
        return
    most, least = largest(weight, None), -largest(-weight[weight > 0], None, -np.inf)
    check(Situation(shards=True, wide_weights=bool(most > 2.0**30 * least)))


def _check_columns(problem: Problem) -> None:
    """Raise ValueError where shards have tables of different columns."""
    features = problem.reader.features()
    own = [features.count, features.names, problem.coding.width, problem.coding.names]
    shard = problem.data.shard
    pieces = [] if shard is None else shard.pieces[:1, 0].tolist()
    *of_shards, firsts = zip(*gather_notes([*own, pieces]), strict=True)
    names = ("number of features", "feature names", "number of targets", "target names")
    for what, values in zip(names, of_shards, strict=True):
        other = next((shard for shard, one in enumerate(values) if one != values[0]), 0)
        if other:
            first, second = (
                f"{values[one]}" + "".join(f" (partition {number})" for number in firsts[one])
                for one in (0, other)
            )
            raise ValueError(f"parts of the table differ in the {what}: {first} and {second}.")
