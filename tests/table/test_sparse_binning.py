"""Sparse tables as bins: the codes of the dense table, however few of them are kept."""

import subprocess
import sys

import numpy as np
import pytest
import scipy.sparse

from polyleaf import PolyleafClassifier, PolyleafRegressor, _core
from polyleaf.data.binning import bin_sparse, bin_table

N, M = 700, 150


def make_table(seed, dtype=np.float64):
    """Columns from nearly empty to full: of many values and of few, with gaps, shifted, constant."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(N, M))
    X[:, ::3] = np.round(X[:, ::3] * 2)
    X[rng.random(X.shape) >= rng.choice([0.0, 0.005, 0.03, 0.2, 1.0], size=M)] = 0
    X[:, 5:M:20] += 1  # zeros are rare then
    if np.dtype(dtype).kind == "f":
        X[rng.random(X.shape) < 0.003] = np.nan
    return X.astype(dtype)


def cells_of(X):
    table = scipy.sparse.csc_array(X)
    return table.data.reshape(-1, 1), table.indices.astype(np.int32), table.indptr.astype(np.int64), len(X)


def assert_same_forest(a, b):
    first, second = a._forest.to_arrays(), b._forest.to_arrays()
    for name, values in first.items():
        np.testing.assert_array_equal(values, second[name], err_msg=name)


# --- what is kept ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.int16])
@pytest.mark.parametrize("max_bins", [255, 5, None])
@pytest.mark.parametrize("weighted", [False, True])
def test_cells_alone_say_what_codes_say(dtype, max_bins, weighted):
    X = make_table(1, dtype)
    weight = np.random.default_rng(2).uniform(0.1, 3, size=N) if weighted else None
    dense = bin_table(X, weight, max_bins, 2)
    sparse = bin_sparse(scipy.sparse.csr_array(X), weight, max_bins, 2, keeps_codes=False)
    assert dense.is_whole
    assert not sparse.is_whole
    assert sparse.n_in_tiles == M
    np.testing.assert_array_equal(sparse.codes(), dense.codes())
    for feature in range(M):
        np.testing.assert_array_equal(sparse.cuts(feature), dense.cuts(feature))
        assert sparse.has_missing(feature) == dense.has_missing(feature)


def test_what_is_made_of_codes_is_made_of_cells():
    X = make_table(3)
    dense = bin_table(X, None, 255, 1)
    sparse = bin_sparse(scipy.sparse.csr_array(X), None, 255, 1, keeps_codes=False)
    np.testing.assert_array_equal(sparse.row_hashes(2), dense.row_hashes(2))
    np.testing.assert_array_equal(_core.interleaved_codes(sparse, 4, 2), _core.interleaved_codes(dense, 4, 2))
    rows = np.array([5, 5, 699, 0, 31], dtype=np.uint32)
    np.testing.assert_array_equal(sparse.take(rows, 1).codes(), dense.codes()[rows])


@pytest.mark.parametrize("least", [1, 2, 7, 40, 400])
def test_what_no_split_leaves_enough_rows_of_is_left_out(least):
    X = make_table(4)
    dense = bin_table(X, None, 255, 1)
    codes = dense.codes()
    sparse = bin_sparse(scipy.sparse.csr_array(X), None, 255, 1, least_rows=least, keeps_codes=False)
    found = sparse.codes()
    n_kept = 0
    for feature in range(M):
        n_values = len(dense.cuts(feature)) + 1
        missing = np.sum(codes[:, feature] == n_values)
        sizes = [
            np.sum(codes[:, feature] <= last) + more for last in range(n_values) for more in (0, missing)
        ]
        kept = any(min(size, N - size) >= least for size in sizes)
        n_kept += kept
        np.testing.assert_array_equal(found[:, feature], codes[:, feature] if kept else 0)
        assert len(sparse.cuts(feature)) == (n_values - 1 if kept else 0)
    assert sparse.n_in_tiles == n_kept
    assert (0 < n_kept < M) == (least < N / 2)
    interleaved = _core.interleaved_codes(sparse, 1, 1)[:, :, 0].T
    np.testing.assert_array_equal(interleaved, found)


def test_a_table_without_all_codes_is_not_taken_apart():
    table = bin_sparse(scipy.sparse.csr_array(make_table(5)), None, 255, 1, keeps_codes=False)
    with pytest.raises(ValueError, match="does not have all codes"):
        _core.parts_of_table(table)
    with pytest.raises(ValueError, match="does not have all codes"):
        _core.join_columns([table], 1)


@pytest.mark.parametrize(
    ("part", "change", "words"),
    [
        (1, lambda rows: rows[::-1].copy(), "must ascend"),
        (1, lambda rows: rows + np.int32(N), "out of range"),
        (1, lambda rows: rows - np.int32(N), "must ascend"),
        (2, lambda begin: begin + 1, "from 0 on"),
        (2, lambda begin: np.concatenate([begin[:-1], begin[-1:] + 1]), "end with the cells"),
        (2, lambda begin: np.concatenate([begin[:3], [0], begin[3:]]), "must not fall"),
        (0, lambda values: values[:-1], "a row per cell"),
    ],
)
def test_cells_that_are_no_table_are_refused(part, change, words):
    parts = list(cells_of(make_table(6)))
    parts[part] = change(parts[part])
    with pytest.raises(ValueError, match=words):
        _core.SparseColumns(*parts)


# --- the same trees ----------------------------------------------------------------------------------------

PARAMS = [
    {"min_samples_leaf": 1},
    {"min_samples_leaf": 20},
    {"min_samples_leaf": 300},
    {"min_samples_leaf": 400},  # no split is allowed at all
    {"min_samples_leaf": 5, "subsample": 0.5, "colsample_bytree": 0.1, "colsample_bynode": 0.5},
    {"min_samples_leaf": 5, "max_leaves": 9, "max_bins": None, "n_jobs": 2},
    {"min_samples_leaf": 5, "sparse_leaves": 1, "sketch": None},
    {"min_samples_leaf": 5, "early_stopping_rounds": 3},
]


@pytest.mark.parametrize("params", PARAMS)
@pytest.mark.parametrize("weighted", [False, True])
def test_trees_are_those_of_the_dense_table(params, weighted):
    X = make_table(7)
    rng = np.random.default_rng(8)
    Y = np.nan_to_num(X) @ rng.normal(size=(M, 3)) + rng.normal(size=(N, 3))
    weight = rng.uniform(0.1, 3, size=N) if weighted else None
    params = {"n_estimators": 6, "random_state": 1, "n_jobs": 1, **params}
    dense = PolyleafRegressor(**params).fit(X, Y, sample_weight=weight)
    sparse = PolyleafRegressor(**params).fit(scipy.sparse.csr_array(X), Y, sample_weight=weight)
    assert_same_forest(dense, sparse)
    labels = Y.argmax(axis=1)
    params.pop("sparse_leaves", None)
    dense = PolyleafClassifier(**params).fit(X, labels, sample_weight=weight)
    sparse = PolyleafClassifier(**params).fit(scipy.sparse.csr_array(X), labels, sample_weight=weight)
    assert_same_forest(dense, sparse)


def test_a_model_goes_on_with_columns_that_its_next_trees_do_without():
    X = make_table(9)
    y = np.nan_to_num(X) @ np.random.default_rng(10).normal(size=M)
    first = PolyleafRegressor(n_estimators=3, min_samples_leaf=1, n_jobs=1).fit(X, y)
    both = [
        PolyleafRegressor(n_estimators=6, min_samples_leaf=60, n_jobs=1).fit(table, y, init_model=first)
        for table in (X, scipy.sparse.csr_array(X))
    ]
    assert_same_forest(*both)


TEXT = """
import resource
import numpy as np, scipy.sparse
from polyleaf import PolyleafClassifier
rng = np.random.default_rng(0)
n, m, cells = 30_000, 60_000, 300_000
X = scipy.sparse.csr_array(
    (rng.random(cells), (rng.integers(n, size=cells), rng.integers(m, size=cells))), shape=(n, m)
)
y = rng.integers(3, size=n)
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
PolyleafClassifier(n_estimators=2, n_jobs=1).fit(X, y)
print((resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) // 1024)
"""


@pytest.mark.python_only("a process of its own")
@pytest.mark.skipif(sys.platform != "linux", reason="memory is counted in other units elsewhere")
def test_a_wide_table_takes_the_memory_of_its_cells():
    """A byte for each cell would be 1,800 MiB."""
    done = subprocess.run([sys.executable, "-c", TEXT], capture_output=True, text=True, check=True)
    assert int(done.stdout) < 500
