"""Small nodes of wide sparse tables: trees are those of the dense table, though few bins are looked at."""

import numpy as np
import pytest
import scipy.sparse

from polyleaf import PolyleafClassifier, PolyleafRegressor, _core
from same_forest import assert_same_bits

N, M = 400, 1500
COMMON = {"n_estimators": 4, "max_bins": 40, "max_depth": 7, "learning_rate": 0.5, "random_state": 3}


@pytest.fixture(params=["baseline", "avx2", "avx512"])
def kernels(request):
    before = _core.kernels()
    if not _core.select_kernels(request.param):
        pytest.skip(f"this processor does not have {request.param}")
    yield
    assert _core.select_kernels(before)


def make_table(seed):
    """Columns of 3 to 30 cells, of both signs, with gaps, some of the same rows, and a few full columns."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(N, M)).astype(np.float32)
    X[:, ::3] = np.round(2 * X[:, ::3])
    X[rng.random(X.shape) > rng.uniform(0.005, 0.06, size=M)] = 0
    X[:5, :600] = rng.normal(size=(5, 600))  # rows with many more cells than others
    X[rng.random(X.shape) < 0.001] = np.nan
    X[:, 7::500] = rng.normal(size=(N, 3))
    return X


def scores_of(X, n_outputs, seed):
    """Of a few rows far more than of others, so that trees cut these off first."""
    rng = np.random.default_rng(seed)
    scores = np.nan_to_num(X) @ rng.normal(size=(M, n_outputs)) / 4 + rng.normal(size=(N, n_outputs))
    return np.where(rng.random((N, 1)) < 0.1, 20 * scores, scores)


def assert_same_trees(make, X, y, **fit):
    assert_same_bits(make().fit(scipy.sparse.csr_array(X), y, **fit), make().fit(X, y, **fit))


REGRESSIONS = {
    "plain": {},
    "leaves of one row": {"min_samples_leaf": 1},
    "features of a level": {"colsample_bytree": 0.5, "colsample_bylevel": 0.5},
    "features of a node": {"colsample_bynode": 0.3},
    "features of a tree": {"colsample_bytree": 0.4},
    "best first": {"max_leaves": 9, "max_depth": 20},
    "groups": {"interaction_constraints": [list(range(500)), list(range(400, M))]},
    "heavy children": {"min_child_weight": 6.0},
    "sampled rows": {"subsample": 0.7},
    "light penalty": {"reg_lambda": 1e-3},
    "l1": {"reg_alpha": 0.5},
    "monotone": {"monotone_constraints": [1] * 40 + [0] * (M - 40)},
    "four threads": {"n_jobs": 4},
}


CLASSIFICATIONS = [{}, {"hessian": "shared"}, {"histogram_precision": "packed"}, {"sparse_leaves": 4}]


@pytest.mark.parametrize("name", REGRESSIONS)
@pytest.mark.parametrize("n_outputs", [1, 6, 40])
def test_trees_of_numbers(name, n_outputs):
    params = COMMON | REGRESSIONS[name]
    X = make_table(1)
    assert_same_trees(lambda: PolyleafRegressor(**params), X, scores_of(X, n_outputs, 2))


@pytest.mark.parametrize("n_outputs", [1, 3, 8])
def test_trees_of_weighted_rows(n_outputs):
    X = make_table(5)
    weight = np.random.default_rng(6).exponential(size=N)
    assert_same_trees(
        lambda: PolyleafRegressor(**COMMON), X, scores_of(X, n_outputs, 7), sample_weight=weight
    )


@pytest.mark.parametrize("n_classes", [2, 3, 12, 40])
@pytest.mark.parametrize("params", CLASSIFICATIONS)
def test_trees_of_classes(n_classes, params):
    X = make_table(8)
    y = scores_of(X, n_classes, 9).argmax(axis=1)
    if "sparse_leaves" in params and n_classes <= 4:
        return  # there is no such leaf
    assert_same_trees(lambda: PolyleafClassifier(**COMMON, **params), X, y)


@pytest.mark.usefixtures("kernels")
@pytest.mark.parametrize("n_outputs", [1, 3, 20])
def test_trees_of_each_instruction_set(n_outputs):
    X = make_table(10)
    assert_same_trees(lambda: PolyleafRegressor(**COMMON), X, scores_of(X, n_outputs, 11))
    y = scores_of(X, n_outputs + 1, 12).argmax(axis=1)
    assert_same_trees(lambda: PolyleafClassifier(**COMMON), X, y)
