"""Trees that keep their splits and get leaf values from other rows.

On the rows that a tree was grown on, its leaf values are those it had: to the last bit, whatever the loss and
the leaves.
"""

from __future__ import annotations

import pickle
from dataclasses import fields, replace
from typing import Any

import numpy as np
import pytest

from polyleaf import PolyleafClassifier, PolyleafRegressor, _core
from polyleaf.data.binning import bin_data
from polyleaf.estimators.problem import Problem, read_problem, training_rows
from polyleaf.growth.contract import LeafGradients, RowSample, Task, settings_of
from polyleaf.growth.dense import DenseGrower
from polyleaf.growth.tree import GrownTree, Tree
from polyleaf.training.forest_maker import RoundsDone
from polyleaf.training.loop import Beginning, Run
from polyleaf.training.replay import Replay

pytestmark = pytest.mark.cpu_only("trees are refilled on the CPU")

N = 300
RNG = np.random.default_rng(8)
X = RNG.normal(size=(N, 4))
GAPS = np.where(RNG.random((N, 4)) < 0.1, np.nan, X)
GAPS[:, 3] = RNG.integers(0, 6, N)
TARGETS = np.column_stack([X[:, 0] * X[:, 1], np.sin(2 * X[:, 2]), X[:, 3]]) + 0.3 * RNG.normal(size=(N, 3))
TARGETS[7, 1] = 40.0  # a row whose influence is bounded
MANY = TARGETS @ RNG.normal(size=(3, 40))
CLASSES = (X[:, 0] > 0).astype(int) + (X[:, 1] > 0)
WEIGHT = RNG.integers(1, 4, N).astype(float)
SMALL = {"n_estimators": 4, "max_depth": 4, "min_samples_leaf": 3, "learning_rate": 0.3}
CELLS = np.where(RNG.random(TARGETS.shape) < 0.2, np.nan, TARGETS)


def regressor(**params: Any) -> PolyleafRegressor:
    return PolyleafRegressor(**{**SMALL, **params})


def classifier(**params: Any) -> PolyleafClassifier:
    return PolyleafClassifier(**{**SMALL, **params})


CASES: dict[str, tuple[Any, Any, Any, Any]] = {
    "targets": (regressor(), X, TARGETS, None),
    "one target": (regressor(), X, TARGETS[:, 0], None),
    "targets, weights": (regressor(), X, TARGETS, WEIGHT),
    "weights far apart": (regressor(), X, TARGETS, 10.0 ** RNG.integers(-12, 3, N)),
    "all outputs in splits": (regressor(sketch=None), X, TARGETS, None),
    "unbounded influence": (regressor(bounded_influence=False), X, TARGETS, None),
    "some targets missing": (regressor(), X, CELLS, None),
    "more outputs than a tile": (regressor(), X, MANY, None),
    "missing values and categories": (regressor(categorical_features=[3]), GAPS, TARGETS, None),
    "base score": (regressor(base_score=0.0), X, TARGETS, None),
    "units far apart": (regressor(), X, TARGETS * [1e-80, 1.0, 1e80], None),
    "packed": (regressor(histogram_precision="packed"), X, TARGETS, None),
    "one output per tree": (regressor(multi_strategy="one_output_per_tree"), X, TARGETS, None),
    "sparse leaves": (regressor(sparse_leaves=2), X, TARGETS, None),
    "sparse leaves, unrestricted": (regressor(sparse_leaves=1, sparse_mode="unrestricted"), X, TARGETS, None),
    "absolute error": (regressor(objective="absolute_error"), X, TARGETS, WEIGHT),
    "huber": (regressor(objective="huber"), X, TARGETS, None),
    "poisson": (regressor(objective="poisson"), X, np.abs(TARGETS), None),
    "L1": (regressor(reg_alpha=0.5), X, TARGETS, None),
    "columns": (regressor(colsample_bytree=0.5, colsample_bynode=0.5), X, TARGETS, None),
    "classes": (classifier(), X, CLASSES, None),
    "classes, diagonal": (classifier(hessian="diagonal", softmax_curvature="p(1-p)"), X, CLASSES, WEIGHT),
    "classes, exact leaves": (classifier(hessian="exact_leaf"), X, CLASSES, None),
    "classes, exact": (classifier(hessian="exact"), X, CLASSES, None),
    "two classes": (classifier(), X, CLASSES > 0, None),
    "labels": (classifier(), X, (TARGETS > 0).astype(int), None),
}


def problem_of(case: str) -> Problem:
    model, table, y, weight = CASES[case]
    return read_problem(model, model.get_params(), training_rows(table, y, weight))


def loss_of(problem: Problem) -> Any:
    return problem.reader.targets.make_loss(problem.coding)


def grown(problem: Problem, matrix: Any) -> tuple[Run, RoundsDone]:
    """Return a run of some rounds, each with a learning rate of its own."""
    done: RoundsDone = []
    begin = Beginning(matrix=matrix, done=done)
    run = Run(problem.data, [], loss_of(problem), problem.metrics, problem.settings, begin)
    run.begin()
    for number in range(SMALL["n_estimators"]):
        run.step(0.3 / (1 + number))
    return run, done


def replayed(problem: Problem, matrix: Any, rounds: RoundsDone, rates: list[float]) -> Any:
    replay = Replay(problem.data, loss_of(problem), problem.settings, matrix, rounds, rates)
    replay.begin()
    for _ in rounds:
        replay.step(99.0)  # not what it goes by
    return replay.forest()


@pytest.mark.parametrize("case", CASES)
def test_the_same_rows_give_the_same_leaves(case: str) -> None:
    problem = problem_of(case)
    matrix = bin_data(problem.data, problem.settings)
    run, rounds = grown(problem, matrix)
    once_more = replayed(problem, matrix, rounds, run.rates)
    arrays = run.forest().to_arrays()
    assert len(arrays["feature"]) > 4 * SMALL["n_estimators"]
    for name, array in once_more.to_arrays().items():
        np.testing.assert_array_equal(array, arrays[name], err_msg=name)


@pytest.mark.parametrize("case", ["targets", "missing values and categories", "one output per tree"])
def test_trees_of_another_device(case: str) -> None:
    """They come as arrays, not in the memory of the core."""
    problem = problem_of(case)
    matrix = bin_data(problem.data, problem.settings)
    run, rounds = grown(problem, matrix)
    plain = pickle.loads(pickle.dumps(rounds))
    assert not any(isinstance(tree, GrownTree) for of_round in plain for tree, _ in of_round)
    forest, expected = replayed(problem, matrix, plain, run.rates), run.forest()
    for name in ("feature", "threshold", "missing_left", "values", "cover", "count"):
        np.testing.assert_array_equal(getattr(forest, name), getattr(expected, name), err_msg=name)


def test_other_rows_give_the_means_of_their_residuals() -> None:
    """In plain NumPy: a round of the squared error, all rows, a tree of some of them."""
    some = np.arange(N) % 3 > 0
    model = regressor(n_estimators=1, bounded_influence=False, scale_targets=False, max_bins=None)
    problem = read_problem(model, model.get_params(), training_rows(X, TARGETS, WEIGHT))
    matrix = bin_data(problem.data, problem.settings)
    part = read_problem(model, model.get_params(), training_rows(X[some], TARGETS[some], WEIGHT[some]))
    begin = Beginning(matrix=matrix.take(np.flatnonzero(some).astype(np.uint32), 1))
    run = Run(part.data, [], part.loss, part.metrics, part.settings, begin)
    run.begin()
    run.step(0.5)
    forest = replayed(problem, matrix, [run.trees_of(0)], run.rates)
    base = np.average(TARGETS, axis=0, weights=WEIGHT)
    leaves = forest.apply(X)[:, 0]
    for leaf in np.unique(leaves):
        of_leaf = leaves == leaf
        pull = (WEIGHT[of_leaf, np.newaxis] * (TARGETS[of_leaf] - base)).sum(axis=0)
        expected = base + 0.5 * pull / (WEIGHT[of_leaf].sum() + model.reg_lambda)
        np.testing.assert_allclose(forest.predict_raw(X[of_leaf])[0], expected, rtol=1e-6, atol=1e-6)
    assert forest.count[0] == N
    assert run.forest().count[0] == some.sum()


GRADIENT = RNG.normal(size=(N, 2)).astype(np.float32)
MATRIX = bin_data(problem_of("one target").data, problem_of("one target").settings)
LEAVES = Task(LeafGradients(GRADIENT, None, np.ones(2)))
STUMP: dict[str, Any] = {
    "feature": np.array([1, -1, -1], np.int32),
    "bin": np.array([5, -1, -1], np.int32),
    "threshold": np.zeros(3),
    "missing_left": np.zeros(3, np.uint8),
    "category_begin": np.zeros(4, np.int64),
    "category_bits": np.zeros(0, np.uint32),
    "left": np.array([1, -1, -1], np.int32),
    "gain": np.zeros(3),
    "cover": np.zeros(3),
    "count": np.zeros(3, np.int64),
    "leaf": np.array([-1, 0, 1], np.int32),
    "values": np.zeros((2, 2), np.float32),
    "outputs": np.zeros((0, 2), np.int32),
}


def refilled(**changes: Any) -> Tree:
    tree = Tree(*(({**STUMP, **changes}).get(one.name) for one in fields(Tree)))
    settings = settings_of(problem_of("unbounded influence").settings)
    return DenseGrower(MATRIX, settings).refill(LEAVES, tree)


def test_a_stump_is_filled() -> None:
    tree = refilled()
    left = np.searchsorted(np.sort(X[:, 1]), X[:, 1]) < tree.count[1]
    assert 0 < tree.count[1] < tree.count[0] == N
    for leaf, of_leaf in enumerate((left, ~left)):
        expected = -GRADIENT[of_leaf].astype(np.float64).sum(axis=0) / (of_leaf.sum() + 1)
        np.testing.assert_allclose(tree.values[leaf], expected, rtol=1e-6)


@pytest.mark.parametrize(
    "changes",
    [
        {"feature": np.array([4, -1, -1], np.int32)},
        {"feature": np.array([-1, -1, -1], np.int32)},
        {"bin": np.array([-1, -1, -1], np.int32)},
        {"left": np.array([0, -1, -1], np.int32)},
        {"left": np.array([2, -1, -1], np.int32)},
        {"leaf": np.array([-1, 1, 0], np.int32)},
        {"leaf": np.array([-1, 0, 7], np.int32)},
        {"values": np.zeros((2, 3), np.float32)},
        {"category_begin": np.array([0, 1, 1, 1]), "category_bits": np.ones(1, np.uint32)},
    ],
)
def test_a_tree_that_does_not_fit_is_refused(changes: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="not of this table and these outputs"):
        refilled(**changes)


@pytest.mark.parametrize(
    ("changes", "match"),
    [
        ({"bin": np.zeros(2, np.int32)}, "arrays of nodes differ in size"),
        ({"category_begin": np.zeros(3, np.int64)}, "arrays of nodes differ in size"),
        ({"left": np.zeros((3, 1), np.int32)}, "left: missing, or no array of this kind"),
        ({"category_begin": np.array([0, 2, 1, 2]), "category_bits": np.zeros(2, np.uint32)}, "does not fit"),
        ({"category_begin": np.array([0, 0, 0, 9])}, "does not fit"),
    ],
)
def test_arrays_that_do_not_fit_are_refused(changes: dict[str, Any], match: str) -> None:
    with pytest.raises(ValueError, match=match):
        refilled(**changes)


def test_gradients_of_leaves_are_needed() -> None:
    settings, stump = settings_of(problem_of("one target").settings), refilled()
    assert isinstance(stump, GrownTree)
    with pytest.raises(ValueError, match="those of leaves are needed"):
        _core.DenseGrower().refill(_core.GrowTask(MATRIX, None), settings, stump.core)


def test_a_tree_without_leaves_is_not_added() -> None:
    tree = _core.KeptTree.splits_of(STUMP, 2)
    with pytest.raises(ValueError, match="leaves are not filled"):
        tree.add(X, 0, np.zeros((N, 2)), 1)


def test_a_sample_is_refused() -> None:
    tree = Tree(*(STUMP.get(one.name) for one in fields(Tree)))
    settings = settings_of(problem_of("unbounded influence").settings)
    of_five = replace(LEAVES, sample=RowSample(np.arange(5, dtype=np.uint32)))
    with pytest.raises(ValueError, match="not with a sample"):
        DenseGrower(MATRIX, settings).refill(of_five, tree)
