"""The split search of sparse labels: bounds, bins that are not visited and dense sums change no bit.

The labels of these problems are so few that their gradients stay sparse; the grower for dense labels, which
the oracle is the judge of, has to find the same forests.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
import scipy.sparse

from polyleaf import PolyleafClassifier, _core
from same_forest import assert_same_bits

pytestmark = pytest.mark.cpu_only("the growers of the CPU")

N, M, D = 500, 7, 700
SETTINGS: dict[str, Any] = {
    "objective": "clipped_squared_error",
    "sparse_leaves": 5,
    "min_samples_leaf": 5,
    "max_depth": 4,
    "n_estimators": 3,
    "learning_rate": 0.5,
}
PER_GRADIENT = 24  # outputs to a gradient that is not 0, below which dense sums are taken
MOST_CELLS = 2**25  # that are made dense

Floats = npt.NDArray[np.float64]


def problem(seed: int = 0) -> tuple[Floats, npt.NDArray[np.int64]]:
    """Groups of rows with labels of their own, some of which many rows have."""
    rng = np.random.default_rng(seed)
    group = rng.integers(60, size=N)
    X = rng.normal(size=(60, M))[group] + 0.5 * rng.normal(size=(N, M))
    Y = np.zeros((N, D), dtype=np.int64)
    for row, one in enumerate(group):
        Y[row, one * 10 + rng.integers(10, size=2)] = 1
        Y[row, 600 + rng.geometric(0.1, size=2) % 100] = 1
    return X, Y


def assert_same_as_dense(X: Any, Y: Any, weight: Any = None, **settings: Any) -> PolyleafClassifier:
    settings = SETTINGS | settings
    dense = PolyleafClassifier(**settings).fit(X, Y, weight)
    sparse = PolyleafClassifier(**settings).fit(X, scipy.sparse.csr_array(Y), weight)
    arrays, expected = sparse._forest.to_arrays(), dense._forest.to_arrays()
    assert len(arrays["feature"]) > 3 * settings["n_estimators"]
    for name, array in arrays.items():
        tolerance = 1e-5 if name == "gain" and "categorical_features" in settings else 0.0
        np.testing.assert_allclose(array, expected[name], rtol=tolerance, atol=0, err_msg=name)
    return sparse


def missing(X: Floats) -> Floats:
    return np.where(np.random.default_rng(1).random(X.shape) < 0.2, np.nan, X)


def mostly_missing(X: Floats) -> Floats:
    return np.where(np.random.default_rng(1).random(X.shape) < 0.9, np.nan, X)


def one_hot(X: Floats) -> Floats:
    """Columns of which most rows are in one bin, the first, one in the middle, or the last."""
    wide = np.repeat(X, 4, axis=1)
    sign = np.random.default_rng(1).choice([-1, 0, 1], size=wide.shape[1])
    return np.where(np.abs(wide) > 1.3, np.round(wide), 0) + np.where(np.abs(wide) > 2, sign, 0)


def with_categories(X: Floats) -> Floats:
    table = missing(X)
    table[:, 0] = np.digitize(X[:, 0], np.linspace(-1.5, 1.5, 12))
    table[:, 1] = np.where(np.isnan(table[:, 1]), np.nan, X[:, 1] > 0)  # of one, there may be the missing
    table[:, 2] = np.where(np.isnan(table[:, 2]), np.nan, np.digitize(X[:, 2], [-0.5, 0.0, 0.5]))
    return table


TABLES = {"numbers": None, "missing": missing, "mostly missing": mostly_missing, "one bin": one_hot}
OPTIONS: dict[str, dict[str, Any]] = {
    "as they are": {},
    "one output": {"sparse_leaves": 1},
    "many outputs": {"sparse_leaves": 12, "n_estimators": 2},
    "L1": {"reg_alpha": 0.4},
    "no L2": {"reg_lambda": 0.0, "min_samples_leaf": 1},
    "few bins": {"max_bins": 4},
    "heavy children": {"min_child_weight": 40.0},
    "best first": {"max_leaves": 7, "max_depth": None},
    "samples": {"subsample": 0.7, "colsample_bynode": 0.5, "colsample_bylevel": 0.8, "random_state": 3},
    "constraints": {"interaction_constraints": [[0, 1, 2], [2, 3, 4]]},
}


@pytest.mark.parametrize("sparse_mode", ["restricted", "unrestricted"])
@pytest.mark.parametrize("change", TABLES.values(), ids=TABLES.keys())
@pytest.mark.parametrize("seed", [0, 1])
def test_tables(change: Any, sparse_mode: str, seed: int) -> None:
    X, Y = problem(seed)
    table = X if change is None else change(X)
    for weight in (None, np.random.default_rng(2).integers(1, 4, N).astype(float)):
        assert_same_as_dense(table, Y, weight, sparse_mode=sparse_mode)
    assert_same_as_dense(scipy.sparse.csr_array(np.nan_to_num(table)), Y, sparse_mode=sparse_mode)


@pytest.mark.parametrize("sparse_mode", ["restricted", "unrestricted"])
@pytest.mark.parametrize("options", OPTIONS.values(), ids=OPTIONS.keys())
def test_options(options: dict[str, Any], sparse_mode: str) -> None:
    X, Y = problem(3)
    weight = np.random.default_rng(2).random(N) + 0.1
    for table in (X, missing(X)):
        assert_same_as_dense(table, Y, sparse_mode=sparse_mode, **options)
        assert_same_as_dense(table, Y, weight, sparse_mode=sparse_mode, **options)


@pytest.mark.parametrize("sparse_mode", ["restricted", "unrestricted"])
def test_categories(sparse_mode: str) -> None:
    """Few of them, each against the rest, and many, in their order."""
    categorical = {"categorical_features": [0, 1, 2], "sparse_mode": sparse_mode, "max_depth": 6}
    for seed in range(4, 8):
        X, Y = problem(seed)
        model = assert_same_as_dense(with_categories(X), Y, **categorical)
        assert len(model._forest.category_bits) > 0
        weight = np.random.default_rng(2).integers(1, 4, N).astype(float)
        assert_same_as_dense(with_categories(X), Y, weight, **categorical)


def test_gradients_of_very_different_size() -> None:
    """Weights spread the gradients' units; float32 bounds must not lose the small ones."""
    X, Y = problem(5)
    weight = np.exp2(np.random.default_rng(2).integers(-14, 14, N).astype(float))
    for sparse_mode in ("restricted", "unrestricted"):
        assert_same_as_dense(X, Y, weight, sparse_mode=sparse_mode, reg_lambda=1e-6)


def test_terms_that_are_equal_go_to_the_lower_label() -> None:
    """Copies of a label have the same terms: which of them a leaf holds is a rule, and not the search's."""
    X, Y = problem(6)
    copied = np.repeat(Y[:, ::5], 5, axis=1)[:, :D]
    for sparse_mode in ("restricted", "unrestricted"):
        assert_same_as_dense(X, copied, sparse_mode=sparse_mode, n_estimators=2)


@pytest.fixture
def instruction_sets() -> Iterator[list[str]]:
    before = _core.kernels()
    yield [name for name in ("baseline", "avx2", "avx512") if _core.select_kernels(name)]
    assert _core.select_kernels(before)


@pytest.mark.parametrize("sparse_mode", ["restricted", "unrestricted"])
def test_threads_and_instruction_sets_change_no_bit(instruction_sets: list[str], sparse_mode: str) -> None:
    X, Y = problem(7)
    labels = scipy.sparse.csr_array(Y)
    # Enough work for several threads.
    settings = SETTINGS | {"sparse_mode": sparse_mode, "n_estimators": 2}
    table = np.tile(missing(X), (8, 6)) + np.random.default_rng(3).normal(size=(8 * N, 6 * M)) / 4
    labels = scipy.sparse.vstack([labels] * 8).tocsr()
    models = []
    for name in instruction_sets:
        assert _core.select_kernels(name)
        models += [PolyleafClassifier(n_jobs=n, **settings).fit(table, labels) for n in (1, 3)]
    for model in models[1:]:
        assert_same_bits(model, models[0])


def of_gradients(n_gradients: int, n_rows: int, n_labels: int) -> Any:
    """Labels of which so many are set, about as many in each row."""
    cell = np.arange(n_gradients)
    row, label = cell % n_rows, (7 * (cell // n_rows) + cell % n_rows % 5) % n_labels
    return scipy.sparse.csr_array((np.ones(n_gradients), (row, label)), shape=(n_rows, n_labels))


@pytest.mark.parametrize("k", [3, 48])
@pytest.mark.parametrize("fewer", [0, 1])
def test_dense_sums_from_a_share_of_gradients_on(fewer: int, k: int) -> None:
    """On both sides of the share at which all outputs are summed; leaves of all outputs never are."""
    n_labels = 48
    X = np.random.default_rng(0).normal(size=(240, 4))
    labels = of_gradients(240 * n_labels // PER_GRADIENT - fewer, 240, n_labels)
    assert labels.max() == 1
    settings = SETTINGS | {"sparse_leaves": k, "n_estimators": 1}
    sparse = PolyleafClassifier(**settings).fit(X, labels)
    dense = PolyleafClassifier(**settings).fit(X, labels.toarray().astype(np.int64))
    for name in ("feature", "threshold", "gain", "count", "cover"):
        # Scores of all outputs are summed in another order by the grower for dense labels.
        tolerance = 1e-12 if name == "gain" and k == n_labels else 0.0
        own, other = getattr(sparse._forest, name), getattr(dense._forest, name)
        np.testing.assert_allclose(own, other, rtol=tolerance, atol=0, err_msg=name)
    np.testing.assert_array_equal(sparse.decision_function(X), dense.decision_function(X))


def test_labels_beyond_what_is_made_dense() -> None:
    """Labels that no row has change no tree, though with them the cells are too many to be made dense."""
    n_rows, n_labels = 300, MOST_CELLS // 300
    X = np.random.default_rng(0).normal(size=(n_rows, 2))
    labels = of_gradients(n_rows * n_labels // PER_GRADIENT + n_rows, n_rows, n_labels)
    settings = SETTINGS | {"n_estimators": 1, "max_depth": 1, "max_bins": 4}
    some = PolyleafClassifier(**settings).fit(X, labels)
    labels.resize(n_rows, n_labels + 200)
    more = PolyleafClassifier(**settings).fit(X, labels)
    for name in ("feature", "threshold", "gain", "values", "value_output"):
        np.testing.assert_array_equal(getattr(more._forest, name), getattr(some._forest, name), err_msg=name)


def test_weights_of_very_different_size_stay_with_sparse_sums() -> None:
    """Some are more than 2^30 times others: sums of leaves then depend on their order, which is kept."""
    X = np.random.default_rng(0).normal(size=(240, 4))
    labels = of_gradients(1000, 240, 48)
    weight = np.where(np.arange(240) % 2 == 0, 1.0, 2.0**-40)
    one, three = (
        PolyleafClassifier(n_jobs=n, **SETTINGS | {"n_estimators": 2}).fit(X, labels, weight) for n in (1, 3)
    )
    assert_same_bits(one, three)
