"""The rows of an estimator in several shards, each of which runs this with its own rows."""

from __future__ import annotations

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
from polyleaf.estimators.fit import Fit, evaluations, fit_of, note_of
from polyleaf.estimators.held_out import Stopping
from polyleaf.estimators.problem import Problem, read_problem
from polyleaf.estimators.shard_facts import ShardFacts
from polyleaf.model.checkpoint import CheckpointNote
from polyleaf.params.combinations import check
from polyleaf.params.settings import seed_of
from polyleaf.params.situation import Situation
from polyleaf.params.validation import validate_params
from polyleaf.peers.answers import Answers, Noted, Remembered
from polyleaf.peers.current import summed_over
from polyleaf.peers.gather import gather_notes
from polyleaf.training.callbacks import may_save
from polyleaf.training.continuation import Start
from polyleaf.training.kept_scores import KeptScores
from polyleaf.training.monitor import check_measurable

if TYPE_CHECKING:
    from polyleaf.estimators.base import BasePolyleaf


@dataclass(frozen=True)
class Asked:
    """What is to be trained.

    Attributes
    ----------
    estimator : BasePolyleaf
        It is not changed.
    seed : int or None
        Of the run, where whoever began it has drawn one. None: the first shard draws it for all, so that a
        RandomState that they share advances once, as in a plain ``fit``.
    start : Start or None
        What training goes on from.
    noted : bool
        Whether a checkpoint may be written, also where no callback of the estimator does it.
    measured : bool
        Whether the training rows are measured after each round, for callbacks that show how they fare.
    fit : Fit or None
        The course of the training, where callbacks of it are elsewhere; None: the estimator says it.
    """

    estimator: BasePolyleaf
    seed: int | None = None
    start: Start | None = None
    noted: bool = False
    measured: bool = False
    fit: Fit | None = None


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
    stopping : Stopping or None
        What to hold out of the training rows to stop by; None: nothing.
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
    stopping: Stopping | None = None
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
        own_weight = self.problem.own_weight
        if left is not data and own_weight is not None:
            assert data.shard is not None
            own_weight = own_weight[data.shard.of_pieces(wanted[0])[1]]
        evals = [one.of_pieces(some) for one, some in zip(self.evals, wanted[1:], strict=True)]
        problem = replace(self.problem, data=left, own_weight=own_weight)
        return replace(self, problem=problem, evals=evals, scores=scores)

    def followed_by(self, other: PreparedShard) -> PreparedShard:
        """Return these rows and those of other pieces, which were read by the same facts."""
        data = self.problem.data.followed_by(other.problem.data, self.problem.settings.n_threads)
        evals = [one.followed_by(more) for one, more in zip(self.evals, other.evals, strict=True)]
        above, below = self.problem.own_weight, other.problem.own_weight
        own_weight = None if above is None or below is None else np.concatenate([above, below])
        return replace(self, problem=replace(self.problem, data=data, own_weight=own_weight), evals=evals)


def check_shards(estimator: BasePolyleaf, n_eval_sets: int, start: Start | None = None) -> Fit:
    """Return the course of a fit, or raise where parameters do not go with each other or with shards.

    What hangs on the data is found when they are read.
    """
    params = estimator.get_params(deep=False)
    validate_params(params, estimator._kind)
    going_on = () if start is None else (start.source,)
    fit = fit_of(params, n_eval_sets, shards=True, going_on=going_on)
    check(Situation(params, device=params["device"], shards=True))
    if start is not None and start.source == "resume":
        start.note.check_holds_out(fit.stopping is not None)
    return fit


def prepare_shard(
    asked: Asked,
    given: EvalInput,
    evals: Sequence[EvalInput],
    n_threads: int,
    facts: ShardFacts | None = None,
) -> PreparedShard:
    """Read the rows of a shard and bin them by the cut points of all rows.

    Parameters
    ----------
    asked : Asked
        What is to be trained; the same for all shards.
    given : EvalInput
        The training rows that are here, with their `pieces`.
    evals : sequence of EvalInput
        The rows of each evaluation set that are here, with their `pieces`.
    n_threads : int
        Of this shard; affects the time only.
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
    estimator, start, seed = asked.estimator, asked.start, asked.seed
    fit = check_shards(estimator, len(evals), start) if asked.fit is None else asked.fit
    params = estimator.get_params(deep=False)
    answers = Answers(peers.size)
    others = Noted(peers, answers) if facts is None else Remembered(facts.answers)
    given, *evals = (one.connected(others) for one in (given, *evals))
    with summed_over(others):
        for one in (given, *evals):
            _check_alike(one)
        if seed is None:
            drawn = seed_of(params["random_state"]) if others.rank == 0 else None
            seed = int(gather_notes(drawn)[0])
        problem = read_problem(estimator, params, given, start, seed=seed, holds_out=fit.stopping is not None)
        _check_columns(problem)
        check_weights(problem.data)
        problem = replace(problem, settings=replace(problem.settings, n_threads=n_threads))
        measured = [data.connected(peers) for data in evaluations(problem, evals)]
        check_measurable(problem.metrics, measured, problem.loss.n_outputs)
        if asked.measured:
            check_measurable(problem.metrics[:1], [problem.data], problem.loss.n_outputs)
        note = note_of(problem, start) if asked.noted or may_save(fit.callbacks) else None
    data = problem.data.connected(peers)
    if facts is None:
        matrix = bin_data(data, problem.settings)
        facts = ShardFacts(answers, matrix.take(np.empty(0, dtype=np.uint32), 1))
    else:
        assert isinstance(data.X, np.ndarray)
        matrix = facts.table.bin_like(data.X, n_threads)
    # The numbers themselves are needed no more, nor is what weights were before, unless parts are weighed.
    coded = replace(data, X=BinnedRows(matrix, lambda: ""))
    own_weight = None if fit.stopping is None else problem.own_weight
    problem = replace(problem, data=coded, kept=None, own_weight=own_weight)
    return PreparedShard(problem, measured, facts, fit.callbacks, fit.stopping, start, note, asked.measured)


def _check_alike(given: EvalInput) -> None:
    """Raise ValueError where some shards have weights, or targets of two dimensions, and others have not."""
    y, weight = cast(Any, given.y), cast(Any, given.weight)
    said = gather_notes([np.ndim(y), None if weight is None else np.ndim(weight)])
    for what, values in zip((given.y_name, given.weight_name), zip(*said, strict=True), strict=True):
        if len(set(values)) > 1:
            raise ValueError(f"parts of {what} have different dimensions, or some are missing.")


def check_weights(data: Dataset) -> None:
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
