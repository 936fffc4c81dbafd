"""How y is read and coded: kinds of problems, label types, and what is refused with its place."""

import time

import numpy as np
import pandas as pd
import pytest
import scipy.sparse
from sklearn.exceptions import DataConversionWarning

from polyleaf import PolyleafClassifier, PolyleafMixed, PolyleafRegressor
from polyleaf.data.tables import is_missing
from polyleaf.data.targets import (
    classification_coding,
    missing_labels,
    read_labels,
    read_targets,
    regression_coding,
)

pytestmark = pytest.mark.cpu_only("no model is trained")


def coded(y, **options):
    labels = read_labels(y, len(y))
    coding = classification_coding(labels, **options)
    return coding, coding.encode(labels)


# --- regression --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("y", "width", "ndim"),
    [
        ([1, 2, 3], 1, 1),
        ([[1], [2], [3]], 1, 2),
        ([[1, 2], [3, 4], [5, 6]], 2, 2),
        (np.array([True, False, True]), 1, 1),
        (np.array([1, 2.5, 3], dtype=object), 1, 1),
        (np.arange(6, dtype=">f4").reshape(3, 2, order="F"), 2, 2),
        (pd.Series([1, 2, 3], dtype="Int64"), 1, 1),
        (pd.DataFrame({"a": [1, 2, 3], "b": [0.5, 1, 2]}), 2, 2),
    ],
)
def test_regression_targets_become_a_float64_matrix(y, width, ndim):
    targets = read_targets(y, 3)
    coding = regression_coding(targets)
    encoded = coding.encode(targets)
    assert (coding.kind, coding.width, coding.n_outputs, coding.ndim) == ("regression", width, width, ndim)
    assert encoded.dtype == np.float64
    assert encoded.shape == (3, width)
    assert encoded.flags.c_contiguous
    np.testing.assert_array_equal(encoded, np.asarray(y, dtype=float).reshape(3, width))


def test_float64_targets_are_not_copied():
    y = np.ones((5, 3))
    targets = read_targets(y, 5)
    assert np.shares_memory(regression_coding(targets).encode(targets), y)


@pytest.mark.parametrize(
    ("y", "words"),
    [
        ([1.0, -np.inf, 2.0], "y contains infinity.* in row 1"),
        ([np.inf, -np.inf, 2.0], "y contains infinity.* in row 0"),
        ([np.longdouble(10) ** 400] * 3, "y contains infinity"),
        ([1.0, 2.0], r"y has 2 row\(s\), but its X has 3"),
        ([], r"y has 0 row\(s\)"),
        (5.0, "y has 0 dimensions"),
        (np.zeros((3, 2, 2)), "y has 3 dimensions"),
        (np.zeros((3, 0)), "y has no columns"),
        (["a", "b", "c"], "y holds no numbers but text such as 'a'; classes are for PolyleafClassifier"),
        (np.array([1, "b", 2], dtype=object), "y holds no numbers but text such as 'b'; .*PolyleafMixed"),
        (np.array(["1", "2", "3"], dtype=object), "y holds no numbers but text such as '1'"),
        (np.zeros(3, dtype="M8[D]"), "y has dtype datetime64.*turn dates and times into numbers"),
        ([1j, 1, 1], "Complex data not supported: y"),
        ([[1], [2, 3], [4]], "y must hold numbers"),
        (np.ma.masked_array([1, 2, 3], mask=[0, 1, 0]), "y is a masked array"),
        (None, "requires y to be passed, but the target y is None"),
    ],
)
def test_bad_regression_targets_are_refused(y, words):
    with pytest.raises(ValueError, match=words):
        read_targets(y, 3)


def test_size_of_targets_is_bounded():
    """So that the sums over rows stay finite."""
    read_targets(np.full(3, -1e300), 3)
    with pytest.raises(ValueError, match=r"y contains infinity or a value too large \(2e\+300\) in row 1"):
        read_targets([0, 2e300, 1], 3)


def test_sparse_targets_are_refused():
    with pytest.raises(TypeError, match="y is sparse"):
        read_targets(scipy.sparse.csr_array(np.eye(3)), 3)


def test_sparse_labels_stay_sparse():
    labels = read_labels(scipy.sparse.coo_array(np.eye(3)), 3)
    assert labels.format == "csr"
    assert classification_coding(labels).sparse
    np.testing.assert_array_equal(labels.toarray(), np.eye(3))


def test_evaluation_targets_need_the_same_number_of_columns():
    coding = regression_coding(np.zeros((3, 2)))
    with pytest.raises(ValueError, match=r"y of eval_set\[0\] has 3 column\(s\), but y had 2 in fit"):
        coding.encode(np.zeros((3, 3)), "y of eval_set[0]")


# --- classes -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("y", "classes"),
    [
        (["b", "a", "c", "a"], np.array(["a", "b", "c"])),
        (np.array(["b", "a", "c", "a"], dtype="<U20"), np.array(["a", "b", "c"])),
        (np.array(["b", "a", "c", "a"], dtype=object), np.array(["a", "b", "c"], dtype=object)),
        (pd.Series(["b", "a", "c", "a"]), np.array(["a", "b", "c"], dtype=object)),
        (pd.Series(["b", "a", "c", "a"], dtype="category"), np.array(["a", "b", "c"], dtype=object)),
        ([3, -7, 2**40, -7], np.array([-7, 3, 2**40])),
        (np.array([3, 0, 5, 0], dtype=np.uint8), np.array([0, 3, 5], dtype=np.uint8)),
        (np.array([3, 0, 5, 0], dtype=">i2"), np.array([0, 3, 5], dtype=np.int16)),
        (np.array([3, 0, 5, 0], dtype=object), np.array([0, 3, 5])),
        (pd.Series([3, 0, 5, 0], dtype="Int32").astype(object), np.array([0, 3, 5])),
        ([3.0, -0.0, 5e300, 0.0], np.array([0.0, 3.0, 5e300])),
        (np.array([3.0, 0, 5, 0], dtype=np.float32), np.array([0, 3, 5], dtype=np.float32)),
        (np.array([3.0, 0, 5, 0], dtype=np.longdouble), np.array([0.0, 3, 5])),
        (np.array([3.0, 0.0, 5.0, 0.0], dtype=object), np.array([0.0, 3.0, 5.0])),
    ],
)
def test_three_classes_are_sorted_and_coded(y, classes):
    """Codes are int32 positions in the sorted classes, which keep the type of the labels."""
    coding, codes = coded(y)
    assert (coding.kind, coding.width, coding.n_outputs, coding.ndim) == ("multiclass", 3, 3, 1)
    np.testing.assert_array_equal(coding.classes, classes)
    assert coding.classes.dtype == classes.dtype
    assert codes.dtype == np.int32
    assert codes.shape == (4,)
    np.testing.assert_array_equal(coding.decode(codes), np.asarray(y))


@pytest.mark.parametrize(
    "y", [[True, False, True], np.array([True, False, True], dtype=object), ["no", "yes", "no"], [1, -1, 1]]
)
def test_two_classes_are_binary(y):
    coding, encoded = coded(y)
    assert (coding.kind, coding.width, coding.n_outputs) == ("binary", 2, 1)
    assert encoded.dtype == np.float64
    assert encoded.shape == (3, 1)
    np.testing.assert_array_equal(coding.decode(encoded[:, 0].astype(int)), np.asarray(y))


def test_two_classes_as_softmax():
    coding, codes = coded(["no", "yes", "no"], softmax=True)
    assert (coding.kind, coding.width, coding.n_outputs) == ("multiclass", 2, 2)
    np.testing.assert_array_equal(codes, [0, 1, 0])


@pytest.mark.parametrize("label", ["only", 3, 2.0, True])
def test_one_class_is_refused_by_name(label):
    with pytest.raises(ValueError, match=f"y holds one class only, .*{label}"):
        coded([label] * 4)


def test_column_vector_is_read_with_a_warning():
    y = np.array([[1], [2], [3]])
    with pytest.warns(DataConversionWarning, match="column-vector y"):
        labels = read_labels(y, 3, warn=True)
    np.testing.assert_array_equal(labels, [1, 2, 3])


@pytest.mark.parametrize(
    ("y", "words"),
    [
        ([1.0, np.nan, 2.0], "y contains NaN: a missing class label in row 1"),
        ([1.0, np.inf, 2.0], "Unknown label type: continuous.*inf in row 1"),
        ([1.0, 2.5, 2.0], "Unknown label type: continuous. y holds 2.5 in row 1"),
        (["a", None, "b"], "y has a missing class label, None, in row 1"),
        (["a", np.nan, "b"], "y has a missing class label, nan, in row 1"),
        (np.array(["a", np.nan, "b"], dtype=object), "y has a missing class label, nan, in row 1"),
        (pd.Series(["a", None, "b"]), "y has a missing class label, .*, in row 1"),
        (pd.Series([1, None, 2], dtype="Int64"), "y .*missing class label.* in row 1"),
        (pd.Series([pd.NaT, None, 2], dtype=object), "y has a missing class label, NaT, in row 0"),
        (["a", 1, "b"], "y mixes labels of type int and str"),
        (np.array(["a", 1, "b"], dtype=object), "y mixes labels of type int and str"),
        (np.array([True, 1, 0], dtype=object), "y mixes labels of type bool and int"),
        (np.array([1, 2.0, 3], dtype=object), "y mixes labels of type float and int"),
        ([b"a", b"b", b"c"], "Unknown label type: y holds bytes"),
        (np.array([b"a", b"b", b"c"]), r"Unknown label type: y has dtype \|S1"),
        (np.array([{}, {}, {}], dtype=object), "Unknown label type: y holds dict"),
        (np.zeros(3, dtype="M8[D]"), "Unknown label type: y has dtype datetime64"),
        (np.array([1, 2**70, 3], dtype=object), "y holds an integer label beyond 64 bits"),
        ([1j, 2, 3], "Complex data not supported: y"),
        ([1, 2], r"y has 2 row\(s\), but its X has 3"),
        ("abc", "y has 0 dimensions"),
        ([[1], [2, 3], [4]], "y must be an array of labels"),
        (np.ma.masked_array([1, 2, 3], mask=[0, 1, 0]), "y is a masked array"),
        (None, "requires y to be passed, but the target y is None"),
    ],
)
def test_bad_labels_are_refused(y, words):
    with pytest.raises(ValueError, match=words):
        read_labels(y, 3)


@pytest.mark.parametrize(
    ("y", "later", "words"),
    [
        (
            ["a", "b", "c"],
            ["a", "d", "e"],
            r"y of eval_set\[0\] holds labels .* not seen in training: 'd', 'e'",
        ),
        ([1, 2, 3], [0, 1, 9], "not seen in training: 0, 9"),
        ([1, 2, 3], list(range(20)), "not seen in training: 0, 4, 5, 6, 7 and 12 more"),
        ([1, 2, 3], ["1", "2", "3"], "holds labels of dtype <U1, but those of y in fit had dtype int64"),
        (["1", "2", "3"], [1, 2, 3], "holds labels of dtype int64, but those of y in fit had dtype <U1"),
        ([1, 2, 3], [[0, 1], [1, 0]], "must be 1-D, as y was in fit"),
    ],
)
def test_unseen_labels_are_refused_by_name(y, later, words):
    coding, _ = coded(y)
    with pytest.raises(ValueError, match=words):
        coding.encode(read_labels(later, len(later)), "y of eval_set[0]")


@pytest.mark.parametrize(
    ("y", "later"),
    [
        (["a", "b", "c"], np.array(["c", "a"], dtype=object)),
        (np.array(["a", "b", "c"], dtype=object), np.array(["c", "a"])),
        (np.array(["a", "b", "c"]), np.array(["c", "a"], dtype="<U9")),
        ([1, 2, 3], np.array([3.0, 1.0])),
        ([1.0, 2.0, 3.0], np.array([3, 1], dtype=np.uint8)),
    ],
)
def test_equal_labels_of_another_dtype_are_known(y, later):
    coding, _ = coded(y)
    np.testing.assert_array_equal(coding.encode(read_labels(later, 2)), [2, 0])


# --- labels ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", [np.int64, np.uint8, np.bool_, np.float32, object, ">i4"])
def test_matrix_of_zeros_and_ones_is_multilabel(dtype):
    """A label that is never or always set is as legal as any other."""
    y = np.array([[0, 1, 0], [0, 1, 1]]).astype(dtype)
    coding, encoded = coded(y)
    assert (coding.kind, coding.width, coding.n_outputs, coding.ndim) == ("multilabel", 3, 3, 2)
    np.testing.assert_array_equal(coding.classes, [0, 1, 2])
    assert encoded.dtype == np.float64
    assert encoded.flags.c_contiguous
    np.testing.assert_array_equal(encoded, [[0, 1, 0], [0, 1, 1]])


@pytest.mark.parametrize(
    ("y", "words"),
    [
        ([[0, 1], [2, 0]], "y has 2 columns, .*0 and 1.*got .*2.* in row 1, column 0"),
        ([[0, 1], [0, -1]], "got .*-1.* in row 1, column 1"),
        (np.array([["a", "b"], ["b", "a"]]), "y has 2 columns of dtype"),
        (np.array([["a", 0], [1, 0]], dtype=object), "y must hold numbers"),
        (np.zeros((2, 2, 2)), "y has 3 dimensions"),
        (np.zeros((2, 0)), "y has no columns"),
    ],
)
def test_bad_matrices_are_refused(y, words):
    with pytest.raises(ValueError, match=words):
        read_labels(y, 2)


def test_wide_matrix_is_read_in_a_moment():
    y = np.random.default_rng(0).integers(0, 2, (160_000, 81), dtype=np.int8)
    start = time.perf_counter()
    labels = read_labels(y, len(y))
    encoded = classification_coding(labels).encode(labels)
    assert time.perf_counter() - start < 5
    assert encoded.shape == y.shape


# --- columns by their names --------------------------------------------------------------------------------

TABLE = np.random.default_rng(0).normal(size=(40, 3))


@pytest.mark.parametrize(("columns", "said"), [(list("pqr"), "column 'q'"), ([4, 5, 6], "column 5")])
def test_wrong_labels_are_called_by_their_column(columns, said):
    labels = np.zeros((40, 3))
    labels[2, 1] = 2
    with pytest.raises(ValueError, match=rf"got 2\.0 in row 2, {said}\."):
        PolyleafClassifier().fit(TABLE, pd.DataFrame(labels, columns=columns))
    with pytest.raises(ValueError, match=r"got 2\.0 in row 2, column 1\."):
        PolyleafClassifier().fit(TABLE, labels)


def test_large_integers_are_called_by_their_column():
    y = pd.DataFrame({"a": [1] * 40, "b": [2**60 + 1] * 40})
    with pytest.raises(ValueError, match="y: column 'b' holds the integer 1152921504606846977"):
        PolyleafRegressor().fit(TABLE, y)
    with pytest.raises(ValueError, match="y: column 1 holds the integer"):
        PolyleafRegressor().fit(TABLE, y.to_numpy())
    with pytest.raises(ValueError, match="y holds the integer"):
        PolyleafRegressor().fit(TABLE, y["b"].to_numpy())


@pytest.mark.parametrize(
    ("kind", "wrong", "said"),
    [
        ("regression", 2**60 + 1, "column 'b' of y holds the integer"),
        ("regression", np.inf, "column 'b' of y contains infinity .* in row 0"),
        ("multilabel", 2, "'both' of y has 2 columns.* got 2.0 in row 0, column 'b'"),
    ],
)
def test_targets_of_a_group_are_called_by_their_column(kind, wrong, said):
    y = pd.DataFrame({"a": [0.0, 1.0] * 20, "b": [wrong] * 40})
    model = PolyleafMixed({"both": {"kind": kind, "columns": ["a", "b"]}})
    with pytest.raises(ValueError, match=said):
        model.fit(TABLE, y)


def test_missing_labels_and_cells_are_the_same():
    missing = [None, np.nan, np.float32("nan"), pd.NA, pd.NaT]
    assert all(map(is_missing, missing))
    assert missing_labels(np.array([*missing, "a", 0], dtype=object)).tolist() == [True] * 5 + [False] * 2
