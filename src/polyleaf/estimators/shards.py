"""Fitting an estimator whose rows are in several shards, each of which runs this with its own rows."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from polyleaf.data.inputs import EvalInput
from polyleaf.estimators.fit import callbacks_of, train_on
from polyleaf.estimators.problem import Problem, read_problem
from polyleaf.model.fitted import SavedModel
from polyleaf.params.combinations import check
from polyleaf.params.situation import Situation
from polyleaf.params.table import validate_params
from polyleaf.peers.collectives import Collectives
from polyleaf.peers.current import summed_over
from polyleaf.training.shared_callbacks import SharedCallbacks

if TYPE_CHECKING:
    from polyleaf.estimators.base import BasePolyleaf


def fit_shard(
    estimator: BasePolyleaf, given: EvalInput, evals: Sequence[EvalInput], n_threads: int
) -> SavedModel:
    """Train on the rows of all shards; return the model, the same for each of them.

    Saved to a file, it is the model of a plain ``fit`` on all rows, byte for byte.

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
    peers = given.pieces.peers
    params = estimator.get_params(deep=False)
    validate_params(params, estimator._kind)
    check(Situation(params, device=params["device"], shards=True))
    callbacks = callbacks_of(params, evals)
    with summed_over(peers):
        problem = read_problem(estimator, params, given)
        _check_columns(problem, peers)
        problem = replace(problem, settings=replace(problem.settings, n_threads=n_threads))
        result = train_on(problem, evals, [SharedCallbacks(peers, callbacks)], None)
        if result.error is not None:
            raise result.error
        return SavedModel(problem.kind, params, problem.fitted(result))


def _check_columns(problem: Problem, peers: Collectives) -> None:
    """Raise ValueError where shards have tables of different columns."""
    features = problem.reader.features()
    own: list[Any] = [features.count, features.names, problem.coding.width, problem.coding.names]
    said = [json.loads(bytes(text)) for text in peers.all_gather(json.dumps(own).encode())]
    for what, of_shards in zip(
        ("number of features", "feature names", "number of targets", "target names"),
        zip(*said, strict=True),
        strict=True,
    ):
        other = next((one for one in of_shards if one != of_shards[0]), of_shards[0])
        if other != of_shards[0]:
            raise ValueError(f"parts of the table differ in the {what}: {of_shards[0]} and {other}.")
