"""SciPy sparse tables: the forest and the predictions of the dense table, bit for bit, without making it."""

import pickle
import tracemalloc
import warnings

import numpy as np
import pandas as pd
import pytest
import scipy.sparse
from sklearn.base import clone

from polyleaf import PolyleafClassifier, PolyleafRegressor, _core, load_model
from polyleaf.data import sparse_tables
from polyleaf.data.binning import bin_table
from polyleaf.data.inputs import check_features

RNG = np.random.default_rng(5)
N, M = 400, 90
FORMATS = [scipy.sparse.csr_array, scipy.sparse.csc_array, scipy.sparse.csr_matrix, scipy.sparse.csc_matrix]


def make_table(dtype=np.float64, missing=True):
    """Columns of all kinds: nearly empty, half full, full, of many values and of few, with gaps, constant."""
    X = RNG.normal(size=(N, M)) * 20
    X[RNG.random(X.shape) >= np.linspace(0.01, 1, M)] = 0
    X[:, ::3] = np.round(X[:, ::3] / 15)
    X[:, 10] = 0
    X = X.astype(dtype)
    if missing and X.dtype.kind == "f":
        X[RNG.random(X.shape) < 0.03] = np.nan
    return X


X = make_table()
Y = np.column_stack([np.nan_to_num(X[:, 40]) + X[:, 60] ** 2 * 0.01, np.nan_to_num(X[:, 80])])
Y = np.nan_to_num(Y)
LABELS = (Y[:, 0] > np.median(Y[:, 0])).astype(int) + (Y[:, 1] > 5)


@pytest.fixture
def small_blocks(monkeypatch):
    """Several blocks of columns in training and of rows in prediction."""
    monkeypatch.setattr(sparse_tables, "_BLOCK_CELLS", 7 * N)


def assert_same_forest(a, b):
    first, second = a._forest.to_arrays(), b._forest.to_arrays()
    for name, values in first.items():
        np.testing.assert_array_equal(values, second[name], err_msg=name)


# --- binning -----------------------------------------------------------------------------------------------


@pytest.mark.usefixtures("small_blocks")
@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.int64, np.int16, np.uint8, np.bool_])
@pytest.mark.parametrize("max_bins", [255, 4, 400, None])
def test_bins_are_those_of_the_dense_table(dtype, max_bins):
    table = make_table(dtype)
    weight = RNG.uniform(0.5, 2, size=N)
    dense = bin_table(table, weight, max_bins, 2)
    sparse = bin_table(scipy.sparse.csc_array(table), weight, max_bins, 2)
    assert (sparse.n_rows, sparse.n_features) == (N, M)
    np.testing.assert_array_equal(sparse.codes(), dense.codes())
    for feature in range(M):
        np.testing.assert_array_equal(sparse.cuts(feature), dense.cuts(feature))
        assert sparse.has_missing(feature) == dense.has_missing(feature)


def test_parts_of_different_rows_are_not_joined():
    parts = [_core.bin_table(X[:n], None, 255, 1) for n in (10, 11)]
    with pytest.raises(ValueError, match="different rows"):
        _core.join_columns(parts, 1)
    with pytest.raises(ValueError, match="nothing to join"):
        _core.join_columns([], 1)


@pytest.mark.usefixtures("small_blocks")
def test_too_many_distinct_values_name_the_column_of_the_whole_table():
    table = scipy.sparse.lil_array((70_000, 20))
    table[:, 17] = np.arange(70_000).reshape(-1, 1)
    with pytest.raises(ValueError, match="column 17 has 70000"):
        PolyleafRegressor(max_bins=None).fit(table, np.zeros(70_000))


# --- the same bits -----------------------------------------------------------------------------------------

REGRESSORS = [
    {},
    {"multi_strategy": "one_output_per_tree"},
    {"subsample": 0.5, "colsample_bytree": 0.5, "colsample_bynode": 0.5},
    {"max_bins": None, "max_leaves": 5},
    {"sparse_leaves": 1, "sketch": None},
    {"sketch": "random_projection", "sketch_size": 1},
]


@pytest.mark.usefixtures("small_blocks")
@pytest.mark.parametrize("params", REGRESSORS)
@pytest.mark.parametrize("container", FORMATS)
def test_forest_and_predictions_are_those_of_the_dense_table(params, container):
    params = {"n_estimators": 8, "min_samples_leaf": 3, "random_state": 1, **params}
    dense = PolyleafRegressor(**params).fit(X, Y)
    sparse = PolyleafRegressor(**params).fit(container(X), Y)
    assert_same_forest(dense, sparse)
    for given in (container(X), X):
        np.testing.assert_array_equal(sparse.predict(given), dense.predict(X))
    np.testing.assert_array_equal(sparse.apply(container(X)), dense.apply(X))
    stages = zip(sparse.staged_predict(container(X)), dense.staged_predict(X), strict=True)
    for one, other in stages:
        np.testing.assert_array_equal(one, other)


@pytest.mark.usefixtures("small_blocks")
@pytest.mark.parametrize("container", FORMATS)
def test_classifier_on_sparse_tables(container):
    params = {"n_estimators": 8, "min_samples_leaf": 3}
    dense = PolyleafClassifier(**params).fit(X, LABELS)
    sparse = PolyleafClassifier(**params).fit(container(X), LABELS)
    assert_same_forest(dense, sparse)
    np.testing.assert_array_equal(sparse.predict(container(X)), dense.predict(X))
    np.testing.assert_array_equal(sparse.predict_proba(container(X)), dense.predict_proba(X))
    np.testing.assert_array_equal(sparse.decision_function(container(X)), dense.decision_function(X))
    np.testing.assert_array_equal(sparse.predict(container(X), top_k=2), dense.predict(X, top_k=2))
    for one, other in zip(
        sparse.staged_predict_proba(container(X)), dense.staged_predict_proba(X), strict=True
    ):
        np.testing.assert_array_equal(one, other)


@pytest.mark.usefixtures("small_blocks")
@pytest.mark.parametrize("n_jobs", [2, 4])
def test_any_number_of_threads_gives_the_same_bits(n_jobs):
    table = scipy.sparse.csr_array(X)
    one = PolyleafRegressor(n_estimators=5, min_samples_leaf=3, n_jobs=1).fit(table, Y)
    several = PolyleafRegressor(n_estimators=5, min_samples_leaf=3, n_jobs=n_jobs).fit(table, Y)
    assert_same_forest(one, several)
    np.testing.assert_array_equal(one.predict(table), several.predict(table))


@pytest.mark.parametrize("dtype", [np.float32, np.int32, np.int8, np.bool_, np.longdouble])
def test_dtypes(dtype):
    table = make_table(dtype)
    params = {"n_estimators": 5, "min_samples_leaf": 3}
    dense = PolyleafRegressor(**params).fit(table, Y)
    sparse = PolyleafRegressor(**params).fit(scipy.sparse.csr_array(table), Y)
    assert_same_forest(dense, sparse)
    np.testing.assert_array_equal(sparse.predict(scipy.sparse.csr_array(table)), dense.predict(table))


@pytest.mark.usefixtures("small_blocks")
@pytest.mark.parametrize("container", FORMATS)
def test_evaluation_sets_and_weights(container):
    """Early stopping, too: the same metrics to the last bit. Rows of weight 0 are dropped."""
    weight = RNG.integers(0, 3, size=N).astype(float)
    params = {"n_estimators": 30, "min_samples_leaf": 3, "early_stopping_rounds": 3}
    held_out = make_table()
    dense = PolyleafRegressor(**params).fit(
        X, Y, sample_weight=weight, eval_set=(held_out, Y), eval_sample_weight=weight
    )
    sparse = PolyleafRegressor(**params).fit(
        container(X), Y, sample_weight=weight, eval_set=(container(held_out), Y), eval_sample_weight=weight
    )
    assert_same_forest(dense, sparse)
    assert sparse.evals_result_ == dense.evals_result_
    assert sparse.best_iteration_ == dense.best_iteration_


def test_dense_and_sparse_sets_side_by_side():
    params = {"n_estimators": 5, "min_samples_leaf": 3}
    sparse = scipy.sparse.csr_array(X)
    for table, evals in [(X, [(X, Y), (sparse, Y)]), (sparse, [(sparse, Y), (X, Y)])]:
        result = PolyleafRegressor(**params).fit(table, Y, eval_set=evals).evals_result_
        assert result["validation_0"] == result["validation_1"]


def test_sparse_labels_on_a_sparse_table():
    labels = scipy.sparse.csr_array((RNG.random((N, 6)) < 0.3).astype(int))
    params = {
        "n_estimators": 4,
        "min_samples_leaf": 3,
        "objective": "clipped_squared_error",
        "sparse_leaves": 2,
        "sketch": None,
    }
    dense = PolyleafClassifier(**params).fit(X, labels)
    sparse = PolyleafClassifier(**params).fit(scipy.sparse.csr_array(X), labels)
    assert_same_forest(dense, sparse)
    found = sparse.predict(scipy.sparse.csc_array(X))
    assert scipy.sparse.issparse(found)
    np.testing.assert_array_equal(found.toarray(), dense.predict(X).toarray())


def test_saved_pickled_and_cloned(tmp_path):
    table = scipy.sparse.csr_array(X)
    model = PolyleafRegressor(n_estimators=3).fit(table, Y)
    expected = model.predict(table)
    model.save_model(tmp_path / "m")
    np.testing.assert_array_equal(load_model(tmp_path / "m").predict(table), expected)
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(model)).predict(table), expected)
    np.testing.assert_array_equal(clone(model).fit(table, Y).predict(table), expected)


def test_trees_without_splits():
    table = scipy.sparse.csr_array(X)
    model = PolyleafRegressor(n_estimators=2, min_samples_leaf=N).fit(table, Y)
    assert (model._forest.left < 0).all()
    np.testing.assert_array_equal(model.predict(table), model.predict(X))
    np.testing.assert_array_equal(model.apply(table), np.zeros((N, 2)))


# --- odd matrices ------------------------------------------------------------------------------------------


def odd_matrices():
    canonical = scipy.sparse.csr_array(X)
    wide = scipy.sparse.csr_array(canonical)
    wide.indices, wide.indptr = wide.indices.astype(np.int64), wide.indptr.astype(np.int64)
    yield "64-bit indices", wide
    unsorted = canonical.copy()
    for row in range(N):
        part = slice(unsorted.indptr[row], unsorted.indptr[row + 1])
        unsorted.indices[part] = unsorted.indices[part][::-1]
        unsorted.data[part] = unsorted.data[part][::-1]
    unsorted.has_sorted_indices = False
    yield "unsorted", unsorted
    row, column = canonical.nonzero()
    half = canonical.data / 2
    yield (
        "duplicates",
        scipy.sparse.coo_array((np.r_[half, half], (np.r_[row, row], np.r_[column, column])), shape=X.shape),
    )
    twice = scipy.sparse.csr_array(
        (np.repeat(half, 2), np.repeat(canonical.indices, 2), canonical.indptr * 2), shape=X.shape
    )
    yield "duplicates in CSR", twice
    with_zeros = canonical.copy()
    with_zeros.data[::2] = 0
    yield "explicit zeros", with_zeros
    for form in ("coo", "lil", "dok", "bsr"):
        yield form, canonical.asformat(form)


@pytest.mark.parametrize("case", list(odd_matrices()), ids=lambda case: case[0])
def test_odd_matrices(case):
    """They count as the dense table they stand for, and are left as they are."""
    _, matrix = case
    dense = matrix.toarray()
    before = {name: np.array(part) for name, part in vars(matrix).items() if isinstance(part, np.ndarray)}
    params = {"n_estimators": 4, "min_samples_leaf": 3}
    expected = PolyleafRegressor(**params).fit(dense, Y)
    model = PolyleafRegressor(**params).fit(matrix, Y)
    assert_same_forest(expected, model)
    np.testing.assert_array_equal(model.predict(matrix), expected.predict(dense))
    for name, part in before.items():
        np.testing.assert_array_equal(getattr(matrix, name), part)
        assert getattr(matrix, name).dtype == part.dtype


def broken_matrix():
    matrix = scipy.sparse.csr_array(X)
    matrix.indices = matrix.indices.copy()
    matrix.indices[5] = 10**6
    return matrix


@pytest.mark.parametrize(
    ("matrix", "words"),
    [
        (scipy.sparse.csr_array((0, 3)), r"X: Found array with 0 sample\(s\)"),
        (scipy.sparse.csr_array((3, 0)), r"X: Found array with 0 feature\(s\)"),
        (scipy.sparse.csr_array(np.eye(3) * 1j), "X: Complex data not supported"),
        (scipy.sparse.coo_array(np.ones(3)), "X: Expected 2D array"),
        (broken_matrix(), "X is not a sound sparse matrix"),
    ],
)
def test_bad_matrices_are_refused(matrix, words):
    with pytest.raises(ValueError, match=words):
        PolyleafRegressor().fit(matrix, np.zeros(matrix.shape[0]))


@pytest.mark.parametrize("container", [*FORMATS, scipy.sparse.coo_array])
def test_infinity_is_refused_with_its_place(container):
    table = np.zeros((30, 8))
    table[::2, 3] = np.nan
    table[17, 5] = -np.inf
    words = r"X contains infinity.*-inf in row 17, column 5"
    with pytest.raises(ValueError, match=words):
        PolyleafRegressor().fit(container(table), np.zeros(30))
    model = PolyleafRegressor(n_estimators=1).fit(np.ones((30, 8)), np.arange(30.0))
    with pytest.raises(ValueError, match=words):
        model.predict(container(table))


def test_duplicates_that_sum_to_infinity_are_refused():
    huge = np.full(2, np.finfo(np.float64).max)
    matrix = scipy.sparse.coo_array((huge, ([1, 1], [2, 2])), shape=(4, 3))
    with pytest.raises(ValueError, match=r"infinity.*row 1, column 2"):
        PolyleafRegressor().fit(matrix, np.zeros(4))


def test_number_of_features_and_names_are_checked():
    model = PolyleafRegressor(n_estimators=1).fit(scipy.sparse.csr_array(X), Y)
    assert model.n_features_in_ == M
    with pytest.raises(ValueError, match=r"X has 5 features, but PolyleafRegressor is expecting 90"):
        model.predict(scipy.sparse.csr_array(X[:, :5]))
    with pytest.raises(ValueError, match=r"X of eval_set\[0\] has 5 features"):
        model.fit(X, Y, eval_set=(scipy.sparse.csr_array(X[:, :5]), Y))
    names = [f"x{j}" for j in range(M)]
    model.fit(pd.DataFrame(X, columns=names), Y)
    with pytest.warns(UserWarning, match="X does not have valid feature names, but PolyleafRegressor"):
        model.predict(scipy.sparse.csr_array(X))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model.fit(scipy.sparse.csr_array(X), Y).predict(scipy.sparse.csr_array(X))
    assert not hasattr(model, "feature_names_in_")


def test_pandas_frame_of_sparse_columns_stays_sparse():
    table = np.nan_to_num(X)
    columns = {f"x{j}": pd.arrays.SparseArray(table[:, j], fill_value=0.0) for j in range(M)}
    frame = pd.DataFrame(columns)
    host = PolyleafRegressor(n_estimators=3)
    assert scipy.sparse.issparse(check_features(host, frame, reset=True))
    model = host.fit(frame, Y)
    assert list(model.feature_names_in_) == list(frame.columns)
    plain = PolyleafRegressor(n_estimators=3).fit(table, Y)
    assert_same_forest(model, plain)
    np.testing.assert_array_equal(model.predict(frame), plain.predict(table))


# --- memory ------------------------------------------------------------------------------------------------


def test_the_table_is_never_dense():
    """NumPy holds a small part of what rows x features of float64 would take, in fit and in prediction."""
    n_rows, n_features = 3000, 20_000
    rng = np.random.default_rng(0)
    table = scipy.sparse.random_array((n_rows, n_features), density=0.005, format="csr", rng=rng)
    y = np.asarray(table[:, :50].sum(axis=1)).ravel()
    labels = (y > np.median(y)).astype(int)
    model = PolyleafClassifier(n_estimators=3, min_samples_leaf=5)
    tracemalloc.start()
    try:
        model.fit(table, labels, eval_set=(table, labels))
        model.predict(table)
        list(model.staged_predict_proba(table))
        model.apply(table)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert model.evals_result_["validation_0"]["binary_cross_entropy"][0] < np.log(2)
    assert peak < 0.3 * n_rows * n_features * 8
