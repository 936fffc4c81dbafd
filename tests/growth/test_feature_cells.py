"""Cells listed feature by feature, where rows have few of them: trees are those of the dense table."""

import numpy as np
import pytest
import scipy.sparse

from polyleaf import PolyleafClassifier, PolyleafRegressor, _core
from polyleaf.data.binning import bin_sparse
from same_forest import assert_same_bits

N, M = 600, 700
MOST = 8  # cells of a row, on average, that are listed feature by feature: four in each of two tiles
COMMON = {"n_estimators": 4, "max_depth": 6, "learning_rate": 0.5, "random_state": 3, "min_samples_leaf": 2}


def make_table(cells_of_row, seed, full_columns=0):
    """So many cells a row, of numbers, counts and missing values; some features have none, some all."""
    rng = np.random.default_rng(seed)
    X = np.zeros((N, M), dtype=np.float32)
    places = rng.choice(N * (M - 50), size=int(cells_of_row * N), replace=False)
    numbers, counts = rng.normal(size=len(places)), rng.integers(1, 4, len(places))
    values = np.where(rng.random(len(places)) < 0.5, numbers, counts)
    X[:, : M - 50].flat[places] = np.where(rng.random(len(places)) < 0.03, np.nan, values)
    X[:, M - 50 : M - 50 + full_columns] = rng.normal(size=(N, full_columns))
    return X


def table_of(X):
    return bin_sparse(scipy.sparse.csr_array(X), None, 255, 1, keeps_codes=False)


def targets_of(X, n_outputs, seed):
    """With a few rows that matter far more than others, so that trees cut these off."""
    rng = np.random.default_rng(seed)
    y = np.nan_to_num(X) @ rng.normal(size=(M, n_outputs)) + 0.3 * rng.normal(size=(N, n_outputs))
    return np.where(rng.random((N, 1)) < 0.05, 9 * y, y)


def assert_same_trees(make, X, y, **fit):
    assert_same_bits(make().fit(scipy.sparse.csr_array(X), y, **fit), make().fit(X, y, **fit))


@pytest.mark.parametrize("cells_of_row", [0.2, 1, MOST - 1, MOST + 1, 20])
def test_features_list_their_cells_where_rows_have_few(cells_of_row):
    table = table_of(make_table(cells_of_row, 1, full_columns=3))
    assert table.n_listing_cells == (M - 3 if cells_of_row <= MOST else 0)


@pytest.mark.parametrize("cells_of_row", [0.2, 1, MOST - 1, MOST + 1, 20])
@pytest.mark.parametrize("n_outputs", [1, 3, 20])
def test_trees_of_few_and_of_many_cells(cells_of_row, n_outputs):
    X = make_table(cells_of_row, 2, full_columns=2)
    assert_same_trees(lambda: PolyleafRegressor(**COMMON), X, targets_of(X, n_outputs, 3))
    y = targets_of(X, n_outputs + 1, 4).argmax(axis=1)
    assert_same_trees(lambda: PolyleafClassifier(**COMMON), X, y)


# A sample of less than a quarter of the rows is visited row by row.
@pytest.mark.parametrize("subsample", [0.9, 0.3, 0.2, 0.05])
@pytest.mark.parametrize("n_jobs", [1, 3])
def test_trees_of_sampled_rows(subsample, n_jobs):
    X = make_table(3, 5)
    params = COMMON | {"subsample": subsample, "n_jobs": n_jobs}
    assert_same_trees(lambda: PolyleafRegressor(**params), X, targets_of(X, 2, 6))
    weight = np.random.default_rng(7).exponential(size=N)
    assert_same_trees(lambda: PolyleafRegressor(**params), X, targets_of(X, 1, 8), sample_weight=weight)
    y = targets_of(X, 12, 9).argmax(axis=1)
    packed = params | {"histogram_precision": "packed"}
    assert_same_trees(lambda: PolyleafClassifier(**packed), X, y)


@pytest.mark.parametrize("share", [0.05, 0.5])
@pytest.mark.parametrize("level", [{}, {"colsample_bylevel": 0.5}])
def test_trees_of_sampled_features(share, level):
    X = make_table(3, 10, full_columns=2)
    params = COMMON | {"colsample_bytree": share} | level
    assert_same_trees(lambda: PolyleafRegressor(**params), X, targets_of(X, 3, 11))


@pytest.mark.parametrize("isa", ["baseline", "avx2", "avx512"])
def test_trees_of_each_instruction_set(isa):
    before = _core.kernels()
    if not _core.select_kernels(isa):
        pytest.skip(f"this processor does not have {isa}")
    try:
        X = make_table(2, 12)
        for n_outputs in (1, 2, 5, 13, 25):
            assert_same_trees(lambda: PolyleafRegressor(**COMMON), X, targets_of(X, n_outputs, 13))
    finally:
        assert _core.select_kernels(before)


def test_rows_that_are_taken_list_their_cells_anew():
    X = make_table(3, 14)
    table = table_of(X)
    rows = np.random.default_rng(15).permutation(N)[: N // 2].astype(np.uint32)
    taken = table.take(rows, 2)
    assert taken.n_listing_cells == table.n_listing_cells == M
    np.testing.assert_array_equal(taken.codes(), table.codes()[rows])
    params = COMMON | {"n_estimators": 30, "early_stopping_rounds": 3}
    assert_same_trees(lambda: PolyleafRegressor(**params), X, targets_of(X, 2, 16))
