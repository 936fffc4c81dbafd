"""A training whose rows are in several shards gives the forest and the metrics of one with all rows here."""

import numpy as np
import pytest

from polyleaf import PolyleafClassifier, PolyleafMixed, PolyleafRegressor
from polyleaf.data import memory
from polyleaf.data.binning import bin_data
from polyleaf.data.dataset import Dataset
from polyleaf.data.eval_sets import EvalInput
from polyleaf.data.memory import Savings
from polyleaf.data.weights import Weights
from polyleaf.estimators.problem import read_problem, training_rows
from polyleaf.peers.collectives import Collectives
from polyleaf.peers.local import run_local
from polyleaf.peers.shard import Shard
from polyleaf.training import device
from polyleaf.training.loop import Beginning, Run, TrainingState, boost

pytestmark = pytest.mark.cpu_only("shards are of the CPU")

N = 240
RNG = np.random.default_rng(0)
X = RNG.normal(size=(N, 6))
X[RNG.random(X.shape) < 0.1] = np.nan
Y = np.column_stack([np.nan_to_num(X[:, 0]) * 3, np.nan_to_num(X[:, 1]) ** 2, RNG.normal(size=N)])
CLASSES = Y.argmax(axis=1)
LABELS = (Y > 0.5).astype(int)
GAPS = np.where((RNG.random(Y.shape) < 0.2) & (np.arange(3) != np.arange(N)[:, np.newaxis] % 3), np.nan, Y)
WEIGHT = RNG.integers(1, 5, N).astype(float)
WRONG = Y + 300.0 * (np.arange(N) % 97 == 5)[:, None]


def part_of(data, rows, peers):
    """Some rows of a data set as one of several shards."""
    starts = np.flatnonzero(np.diff(rows, prepend=-2) != 1)
    runs = np.column_stack([starts, rows[starts]]).astype(np.int64)
    weights = Weights(*(None if one is None else one[rows] for one in (data.weights.row, data.weights.cell)))
    shard = Shard(peers, data.X.shape[0], runs)
    return Dataset(data.name, data.X[rows], np.ascontiguousarray(data.y[rows]), weights, shard)


def trained(data, evals, problem, matrix, n_rounds=4):
    loss = problem.reader.targets.make_loss(problem.coding)
    run = Run(data, evals, loss, problem.metrics, problem.settings, Beginning(matrix=matrix))
    state = TrainingState(
        n_rounds=n_rounds,
        n_done=0,
        learning_rate=0.3,
        evals_result=run.history,
        greater_is_better={},
        training_metric=run.training_metric,
    )
    boost(run, state, [])
    return run.forest(), run.evals_result(), run.training_metric()


CASES = {
    "targets": (PolyleafRegressor(), Y, None),
    "one target": (PolyleafRegressor(eval_metric=["mae", "r2"]), Y[:, 0], None),
    "weights": (PolyleafRegressor(), Y, WEIGHT),
    "gaps": (PolyleafRegressor(eval_metric=["rmse", "rmse_per_target"]), GAPS, None),
    "gaps and weights": (PolyleafRegressor(), GAPS, WEIGHT),
    "median": (PolyleafRegressor(objective="absolute_error"), Y, None),
    "quantiles": (PolyleafRegressor(objective="quantile", quantile_levels=[0.1, 0.5]), Y, WEIGHT),
    "quantiles of gaps": (PolyleafRegressor(objective="quantile", quantile_levels=[0.3]), GAPS, None),
    "huber": (PolyleafRegressor(objective="huber", huber_delta=0.5), Y, WEIGHT),
    "poisson": (PolyleafRegressor(objective="poisson"), np.abs(Y).round(), None),
    "gamma": (PolyleafRegressor(objective="gamma"), np.abs(Y) + 0.1, WEIGHT),
    "tweedie": (PolyleafRegressor(objective="tweedie"), np.abs(Y).round(), None),
    "wrong targets": (PolyleafRegressor(sketch="random_projection", sketch_size=2), WRONG, None),
    "wrong targets and weights": (PolyleafRegressor(), WRONG, WEIGHT),
    "unscaled": (PolyleafRegressor(scale_targets=False), Y * 1e-30, None),
    "classes": (PolyleafClassifier(eval_metric=["accuracy", "log_loss"]), CLASSES, None),
    "areas": (PolyleafClassifier(eval_metric=["auc", "f1_macro", "average_precision"]), CLASSES, WEIGHT),
    "balanced": (PolyleafClassifier(class_weight="balanced"), CLASSES, None),
    "shared": (PolyleafClassifier(hessian="shared"), CLASSES, None),
    "curvature": (PolyleafClassifier(softmax_curvature="abs(p-y)", hessian="shared"), CLASSES, WEIGHT),
    "two classes": (PolyleafClassifier(eval_metric="auc"), CLASSES == 1, None),
    "labels": (PolyleafClassifier(eval_metric=["ndcg@2", "error"]), LABELS, None),
    "projection": (PolyleafRegressor(sketch="random_projection", sketch_size=2), Y, None),
    "projection of classes": (
        PolyleafClassifier(sketch="random_projection", sketch_size=2, hessian="shared"),
        CLASSES,
        WEIGHT,
    ),
    "projection of gaps": (PolyleafRegressor(sketch="random_projection", sketch_size=2), GAPS, WEIGHT),
    "top outputs": (PolyleafRegressor(sketch="top_outputs", sketch_size=2), Y, WEIGHT),
    "sampled outputs": (PolyleafClassifier(sketch="random_sampling", sketch_size=2), CLASSES, None),
    "row sample": (PolyleafRegressor(subsample=0.4, colsample_bynode=0.5), Y, None),
    "packed": (PolyleafClassifier(histogram_precision="packed", hessian="diagonal"), np.arange(N) % 9, None),
    "one tree each": (PolyleafRegressor(multi_strategy="one_output_per_tree"), Y, None),
    "sparse leaves": (PolyleafRegressor(sparse_leaves=1), Y, WEIGHT),
    "few leaves": (PolyleafRegressor(max_leaves=5, max_depth=None), Y, None),
    "callable metric": (
        PolyleafRegressor(eval_metric=lambda y, p: float(np.abs(y - p).mean() + y[0, 0])),
        Y,
        None,
    ),
    "mixed": (
        PolyleafMixed({"a": {"kind": "regression"}, "b": {"kind": "multiclass"}}),
        {"a": Y[:, 0], "b": CLASSES},
        None,
    ),
}


@pytest.mark.parametrize(
    "name", ["projection", "projection of classes", "projection of gaps", "wrong targets"]
)
def test_a_shard_may_do_without_stored_gradients(name, monkeypatch):
    """Whatever the others do: each has its own memory."""

    def possible(data, loss, settings):
        return Savings(made_gradients=data.shard is not None and data.X.shape[0] > N / 3)

    monkeypatch.setattr(memory, "available", lambda: 0)
    monkeypatch.setattr(device, "possible_savings", possible)
    test_shards_give_the_same_forest_and_metrics(name)


@pytest.mark.parametrize("name", CASES)
def test_shards_give_the_same_forest_and_metrics(name):
    estimator, y, weight = CASES[name]
    estimator.set_params(min_samples_leaf=5, n_jobs=1)
    params = estimator.get_params(deep=False)
    problem = read_problem(estimator, params, training_rows(X, y, weight))
    some = slice(0, N, 3)
    small = {k: v[some] for k, v in y.items()} if isinstance(y, dict) else y[some]
    given = EvalInput("valid", X[some], small, None if weight is None else weight[some], "X", "y", "weight")
    valid = problem.evaluation(given)
    matrix = bin_data(problem.data, problem.settings)
    expected, history, training = trained(problem.data, [valid], problem, matrix)
    for n_shards in (1, 3):
        owner = np.random.default_rng(n_shards).integers(0, n_shards, N)
        owner[owner == 2] = 0  # the last of three has nothing

        def one(exchange, owner=owner):
            peers = Collectives(exchange)
            rows = np.flatnonzero(owner == exchange.rank)
            unseen = np.flatnonzero(owner[some] == exchange.rank)
            return trained(
                part_of(problem.data, rows, peers),
                [part_of(valid, unseen, peers)],
                problem,
                None,
            )

        for forest, measured, at_last in run_local(n_shards, one):
            for array, other in zip(vars(forest).items(), vars(expected).items(), strict=True):
                np.testing.assert_array_equal(array[1], other[1], err_msg=array[0])
            assert measured == history
            assert at_last == training
