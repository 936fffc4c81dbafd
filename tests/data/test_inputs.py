"""Features, weights and evaluation sets: what passes unchanged, what is converted, what is refused."""

import numpy as np
import pandas as pd
import pytest
import scipy.sparse
from sklearn.base import BaseEstimator

from polyleaf.data.eval_sets import read_eval_sets
from polyleaf.data.inputs import check_features, read_table, table_numbers
from polyleaf.data.row_weights import check_weights
from polyleaf.data.tables import text_columns

pytestmark = pytest.mark.cpu_only("no model is trained")


class Host(BaseEstimator):
    """Takes n_features_in_ and feature_names_in_, as an estimator does."""


def read(X, **options):
    return check_features(Host(), X, **{"reset": True, **options})


GRID = np.arange(24).reshape(6, 4)


@pytest.mark.parametrize(
    "dtype", [np.float32, np.float64, np.bool_, np.int8, np.int16, np.int32, np.int64, np.uint8, np.uint64]
)
@pytest.mark.parametrize("layout", ["c", "fortran", "strided", "reversed", "broadcast", "read-only"])
def test_numeric_arrays_are_not_copied(dtype, layout):
    """The very memory, dtype and strides of the caller reach the core."""
    X = GRID.astype(dtype)
    X = {
        "c": lambda: X,
        "fortran": lambda: np.asfortranarray(X),
        "strided": lambda: X[::2, 1::2],
        "reversed": lambda: X[::-1, ::-1],
        "broadcast": lambda: np.broadcast_to(X[:1], (5, 4)),
        "read-only": lambda: X,
    }[layout]()
    if layout == "read-only":
        X.flags.writeable = False
    table = read(X)
    assert table.dtype == X.dtype
    assert table.strides == X.strides
    assert table.__array_interface__["data"][0] == X.__array_interface__["data"][0]


@pytest.mark.parametrize(
    ("given", "kept"),
    [(np.float16, np.float32), (np.longdouble, np.float64), (">f8", np.float64), (">i4", np.int32)],
)
def test_foreign_dtypes_are_converted(given, kept):
    table = read(GRID.astype(given))
    assert table.dtype == np.dtype(kept)
    assert table.dtype.isnative
    np.testing.assert_array_equal(table, GRID)


def test_unaligned_memory_is_copied():
    packed = np.zeros(5, dtype=[("a", "i1"), ("b", "f8")])
    packed["b"] = np.arange(5)
    column = packed["b"].reshape(5, 1)
    assert not column.flags.aligned
    table = read(column)
    assert table.flags.aligned
    np.testing.assert_array_equal(table[:, 0], np.arange(5))


def test_nan_is_allowed_and_kept():
    X = np.array([[1.0, np.nan], [np.nan, 2.0]])
    assert read(X) is X or np.shares_memory(read(X), X)


def test_masked_entries_are_missing():
    table = read(np.ma.masked_array([[1, 2], [3, 4]], mask=[[0, 1], [0, 0]]))
    np.testing.assert_array_equal(table, [[1, np.nan], [3, 4]])


@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
@pytest.mark.parametrize("other", [0.0, np.nan, -np.inf])
def test_infinity_is_refused_with_its_place(order, dtype, other):
    X = np.zeros((700, 5), dtype=dtype, order=order)
    X[699, 4] = other
    X[613, 3] = np.inf
    with pytest.raises(ValueError, match=r"X contains infinity.*inf in row 613, column 3"):
        read(X)


def test_infinity_in_a_data_frame_names_the_column():
    frame = pd.DataFrame({"age": [1.0, 2.0], "height": [1.0, -np.inf]})
    with pytest.raises(ValueError, match=r"row 1, column 'height'"):
        read(frame)


def test_sum_that_overflows_is_no_infinity():
    X = np.full((10, 2), np.finfo(np.float64).max)
    assert read(X) is not None


def test_longdouble_beyond_float64_is_infinity():
    X = np.full((2, 1), np.longdouble(10) ** 400)
    with pytest.raises(ValueError, match="X contains infinity"):
        read(X)


@pytest.mark.parametrize(
    ("X", "words"),
    [
        (np.zeros(3), "X: Expected 2D array"),
        (np.float64(3), "X: Expected 2D array"),
        (np.zeros((2, 2, 2)), "X: .*dim 3"),
        (np.zeros((0, 3)), r"X: Found array with 0 sample\(s\)"),
        (np.zeros((3, 0)), r"X: Found array with 0 feature\(s\)"),
        (np.zeros((2, 2), dtype=complex), "X: Complex data not supported"),
        (np.zeros((2, 2), dtype="M8[D]"), r"X has dtype datetime64\[D\]"),
        (np.zeros((2, 2), dtype="m8[s]"), r"X has dtype timedelta64\[s\]"),
        (np.array([["a", "b"]]), "X has dtype <U1"),
        (np.array([[b"a"]]), r"X has dtype \|S1"),
        ([[1, 2], [3]], "X: "),
        ("table", "X: "),
        (None, "X: |got None"),
        (np.array([[1, 10**400]], dtype=object), "X: column 1 holds no numbers"),
        (np.array([[1.0, "red"], [2.0, "blue"]], dtype=object), "X: column 1 holds no numbers.*'red'"),
        (pd.DataFrame({"a": [1, 2], "b": ["red", "blue"]}), "X: column 'b' holds no numbers.*'red'"),
        (
            pd.DataFrame({"a": [1, 2], "b": pd.Categorical(["red", "blue"])}),
            "X: column 'b' holds no numbers.*'red'",
        ),
        (pd.DataFrame({"a": pd.to_datetime(["2020-01-01"])}), "X"),
    ],
)
def test_bad_tables_are_refused(X, words):
    with pytest.raises((ValueError, TypeError), match=words):
        read(X)


def test_object_that_is_no_number_is_a_type_error():
    with pytest.raises(TypeError, match=r"column 1 holds no numbers.*dict"):
        read(np.array([[1, {}]], dtype=object))


@pytest.mark.parametrize("container", [scipy.sparse.csr_array, scipy.sparse.coo_matrix])
def test_sparse_stays_sparse(container):
    table = read(container(np.eye(3)))
    assert isinstance(table, scipy.sparse.csr_array)
    np.testing.assert_array_equal(table.toarray(), np.eye(3))


def test_object_columns_of_numbers_become_float64():
    table = read(np.array([[1, 2.5], [None, True]], dtype=object))
    assert table.dtype == np.float64
    np.testing.assert_array_equal(table, [[1, 2.5], [np.nan, 1]])


@pytest.mark.parametrize(
    "frame",
    [
        pd.DataFrame({"a": [1, 2], "b": [0.5, np.nan], "c": [True, False]}),
        pd.DataFrame({"a": [1, 2], "b": [0.5, None], "c": [True, False]}, dtype=object),
        pd.DataFrame(
            {
                "a": pd.array([1, 2], dtype="Int64"),
                "b": pd.array([0.5, None], dtype="Float64"),
                "c": pd.array([True, False], dtype="boolean"),
            }
        ),
    ],
)
def test_data_frames_of_mixed_columns(frame):
    table = read(frame)
    assert table.dtype == np.float64
    np.testing.assert_array_equal(table, [[1, 0.5, 1], [2, np.nan, 0]])


def test_features_are_checked_against_those_of_fit():
    host = Host()
    check_features(host, pd.DataFrame({"a": [1.0], "b": [2.0]}), reset=True)
    assert host.n_features_in_ == 2
    assert list(host.feature_names_in_) == ["a", "b"]
    with pytest.raises(ValueError, match=r"^X of eval_set\[1\]: .*feature names"):
        check_features(host, pd.DataFrame({"b": [1.0], "a": [2.0]}), reset=False, name="X of eval_set[1]")
    with pytest.warns(UserWarning, match="feature names"):
        check_features(host, np.zeros((2, 2)), reset=False)
    host = Host()
    check_features(host, np.zeros((2, 2)), reset=True)
    with pytest.raises(ValueError, match="X has 3 features, but Host is expecting 2"):
        check_features(host, np.zeros((2, 3)), reset=False)


# --- weights -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("weight", "words"),
    [
        ([1, 1], r"sample_weight has shape \(2,\).*\(3,\)"),
        ([[1], [1], [1]], r"sample_weight has shape \(3, 1\)"),
        (2.0, r"sample_weight has shape \(\)"),
        ([1, -0.5, 1], r"sample_weight must be finite and >= 0; got -0.5 in row 1"),
        ([1, 1, np.nan], r"sample_weight must be finite.*nan in row 2"),
        ([np.inf, 1, 1], r"sample_weight must be finite.*inf in row 0"),
        ([1, None, 1], r"sample_weight must be finite.*nan in row 1"),
        ([0, 0, 0], "sample_weight is zero in all rows"),
        ([1e308, 1e308, 1e308], "sample_weight is too large"),
        (["a", "b", "c"], "sample_weight has dtype"),
        (np.array(["a", "b", "c"], dtype=object), "sample_weight must hold numbers"),
        ([1j, 1, 1], "sample_weight"),
        ([[1], [1, 2], [3]], "sample_weight must hold numbers"),
    ],
)
def test_bad_weights_are_refused(weight, words):
    with pytest.raises(ValueError, match=words):
        check_weights(weight, 3)


def test_weights_become_float64():
    weights = check_weights(pd.Series([1, 2, 0], dtype="int32"), 3)
    assert weights.dtype == np.float64
    assert check_weights(None, 3) is None


# --- evaluation sets ---------------------------------------------------------------------------------------

X, Y = np.zeros((3, 2)), np.zeros(3)


def test_forms_of_eval_set():
    assert read_eval_sets(None, None) == []
    assert read_eval_sets([], None) == []
    (one,) = read_eval_sets((X, Y), Y)
    assert (one.name, one.X, one.y, one.weight) == ("validation_0", X, Y, Y)
    first, second = read_eval_sets([(X, Y), [X, Y]], [None, Y])
    assert (first.name, second.name) == ("validation_0", "validation_1")
    assert first.weight is None
    assert second.weight is Y
    assert second.weight_name == "eval_sample_weight[1]"
    assert second.X_name == "X of eval_set[1]"


@pytest.mark.parametrize(
    ("eval_set", "weight", "words"),
    [
        (X, None, "eval_set must be a tuple"),
        ({"X": X}, None, r"eval_set\['X'\] must be a tuple"),
        ({1: (X, Y)}, None, "the names in eval_set must be str; got 1"),
        ({"new": (X, Y)}, Y, "eval_sample_weight must be a dict"),
        ({"new": (X, Y)}, {"old": Y}, "eval_sample_weight has 'old', but eval_set has only 'new'"),
        ([X, Y], None, r"eval_set\[0\] must be a tuple"),
        ([(X, Y), X], None, r"eval_set\[1\] must be a tuple"),
        ([(X, Y), (X,)], None, r"eval_set\[1\] must be a tuple \(X, y\); got 1 element"),
        ((X, Y, Y), None, r"eval_set\[0\] must be a tuple \(X, y\); got 3 element"),
        (None, Y, "eval_sample_weight was given without eval_set"),
        ([(X, Y)], Y, "eval_sample_weight must be a list"),
        ([(X, Y)], [Y, Y], "eval_sample_weight has 2 entries, but eval_set has 1"),
    ],
)
def test_bad_eval_sets_are_refused(eval_set, weight, words):
    with pytest.raises((ValueError, TypeError), match=words):
        read_eval_sets(eval_set, weight)


@pytest.mark.parametrize("container", [list, tuple])
def test_lists_with_text_keep_their_numbers(container):
    rows = container([["a", 1.5, 2], ["b", 2.5, 3], [float("nan"), 3.5, 4]])
    table = read_table(Host(), rows, reset=True)
    np.testing.assert_array_equal(text_columns(table), [True, False, False])
    numbers = table_numbers(table, {0: np.array([0.0, 1.0, np.nan])})
    np.testing.assert_array_equal(numbers, [[0, 1.5, 2], [1, 2.5, 3], [np.nan, 3.5, 4]])
    with pytest.raises(ValueError, match="X: column 0 holds no numbers but text such as 'a'"):
        read(rows)


def test_lists_that_are_no_tables_are_refused():
    with pytest.raises(ValueError, match="Expected 2D array"):
        read(["a", 1.5])
    with pytest.raises(ValueError, match="X"):
        read([["a", 1.5], ["b"]])
    np.testing.assert_array_equal(read([[1, 2.5], [3, 4]]), [[1, 2.5], [3, 4]])
