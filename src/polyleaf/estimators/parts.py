"""Some rows of a problem that was read, as a problem of their own: folds, and rows that are held out."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import numpy.typing as npt

from polyleaf._core import BinnedMatrix
from polyleaf.data.binned_rows import BinnedRows
from polyleaf.data.dataset import Dataset
from polyleaf.data.inputs import FloatArray
from polyleaf.data.weights import Weights, apply_class_weight, refuse_unobserved
from polyleaf.estimators.problem import Problem
from polyleaf.peers.pieces import shard_of_rows
from polyleaf.peers.shard import Shard
from polyleaf.training.loop import Beginning, Run

Indices = npt.NDArray[np.intp]


def run_of_part(
    problem: Problem,
    matrix: BinnedMatrix,
    train: Indices,
    test: Indices,
    name: str,
    called: str,
    begin: Beginning | None = None,
) -> Run:
    """Return a run on some rows of a problem, which is measured on others.

    Where the rows are in several shards, all of them call it, each for its own rows.

    Parameters
    ----------
    problem : Problem
        All rows.
    matrix : BinnedMatrix
        All rows as bins.
    train, test : ndarray of int
        The places of the rows; ascending, where there are shards.
    name : str
        Of the rows that are measured, in the history.
    called : str
        What errors call the rows that are trained on.
    begin : Beginning or None
        What there is of a run on these very rows; its matrix is made here.

    Raises
    ------
    ValueError
        When they cannot be trained on: a target has no value among them.
    """
    settings, targets = problem.settings, problem.reader.targets
    part = BinnedRows(matrix.take(train.astype(np.uint32), settings.n_threads), lambda: "")
    weights = weights_of(problem, _balanced(problem, train))
    training = Dataset(
        problem.data.name, part, problem.data.y[train], weights, _shard_of(problem.data.shard, train)
    )
    whole = weights.whole()
    refuse_unobserved(len(train), whole, called)
    problem.loss.check_targets(training.y, whole, problem.coding.words(called), training=True)
    unseen = Dataset(
        name,
        _rows_to_measure(problem, matrix, test),
        problem.data.y[test],
        weights_of(problem, _taken(problem.own_weight, test)),
        _shard_of(problem.data.shard, test),
    )
    loss = targets.make_loss(problem.coding)
    metrics = targets.make_metrics(problem.coding, loss, training, holds_out=problem.holds_out)
    begin = replace(Beginning() if begin is None else begin, matrix=part.matrix)
    return Run(training, [unseen], loss, metrics, settings, begin)


def weights_of(problem: Problem, weight: FloatArray | None) -> Weights:
    """Return weights of rows or of the columns of y as those of outputs."""
    return Weights.of(problem.loss.output_weights(weight))


def _rows_to_measure(problem: Problem, matrix: BinnedMatrix, rows: Indices) -> np.ndarray | BinnedRows:
    """Return the rows as numbers where a GPU walks the trees, which knows no codes; else as codes."""
    X = problem.data.X
    if problem.settings.device == "cuda" and isinstance(X, np.ndarray):
        return X[rows]
    return BinnedRows(matrix.take(rows.astype(np.uint32), problem.settings.n_threads), lambda: "")


def _shard_of(shard: Shard | None, rows: Indices) -> Shard | None:
    return None if shard is None else shard_of_rows(shard, rows)


def _taken(weight: FloatArray | None, rows: Indices) -> FloatArray | None:
    return None if weight is None else weight[rows]


def _balanced(problem: Problem, rows: Indices) -> FloatArray | None:
    """Return the weights of training rows times those of their classes, which are balanced among them."""
    weight = _taken(problem.own_weight, rows)
    class_weight = problem.params.get("class_weight")
    return apply_class_weight(class_weight, problem.data.y[rows], problem.coding, weight)
