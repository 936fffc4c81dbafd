"""Data frames of pandas, polars and pyarrow: the same bits as arrays, names that are kept and checked."""

import datetime
import pickle
import subprocess
import sys
import warnings
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
import scipy.sparse
from sklearn.base import BaseEstimator, clone

from polyleaf import PolyleafClassifier, PolyleafRegressor, load_model
from polyleaf.data.inputs import check_features, read_table, table_numbers
from polyleaf.data.tables import frame_kind, series_kind
from polyleaf.data.target_frames import read_target_input

pl = pytest.importorskip("polars")
pa = pytest.importorskip("pyarrow")

RNG = np.random.default_rng(3)
N = 120
NAMES = ["age", "height", "weight", "shoe size"]
X = RNG.normal(size=(N, 4))
X[RNG.random(X.shape) < 0.05] = np.nan
Y = np.column_stack([np.nan_to_num(X[:, 0]), np.nan_to_num(X[:, 1] * 2)])
CLASSES = np.array(["low", "mid", "top"])[np.digitize(Y[:, 0], [-0.4, 0.4])]
LABELS = (np.column_stack([Y[:, 0], Y[:, 1], Y[:, 0] + Y[:, 1]]) > 0).astype(int)
KINDS = ["pandas", "polars", "pyarrow"]


def to_frame(kind, columns):
    """A frame from a dict of columns."""
    return {"pandas": pd.DataFrame, "polars": pl.DataFrame, "pyarrow": pa.table}[kind](columns)


def frame_of(kind, table=X, names=NAMES):
    return to_frame(kind, {name: np.ascontiguousarray(table[:, j]) for j, name in enumerate(names)})


def cells(frame):
    """The cells of any frame, as pandas reads them."""
    return frame if isinstance(frame, pd.DataFrame) else frame.to_pandas()


def small(cls=PolyleafRegressor, **params):
    return cls(**{"n_estimators": 6, "min_samples_leaf": 3, **params})


class Host(BaseEstimator):
    """Takes n_features_in_ and feature_names_in_, as an estimator does."""


def read(table):
    return check_features(Host(), table, reset=True)


def assert_same_forest(a, b):
    first, second = a._forest.to_arrays(), b._forest.to_arrays()
    for name, values in first.items():
        np.testing.assert_array_equal(values, second[name], err_msg=name)


# --- frame = array -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", KINDS)
def test_a_frame_gives_the_bits_of_its_array(kind):
    """In fit, evaluation, and every way of predicting."""
    frame, arrays = frame_of(kind), small(early_stopping_rounds=2).fit(X, Y, eval_set=(X[::2], Y[::2]))
    held_out = frame_of(kind, X[::2])
    model = small(early_stopping_rounds=2).fit(frame, Y, eval_set=(held_out, Y[::2]))
    assert_same_forest(model, arrays)
    assert model.evals_result_ == arrays.evals_result_
    assert model.feature_names_in_.tolist() == NAMES
    np.testing.assert_array_equal(model.predict(frame), arrays.predict(X))
    np.testing.assert_array_equal(model.apply(frame), arrays.apply(X))
    for one, other in zip(model.staged_predict(frame), arrays.staged_predict(X), strict=True):
        np.testing.assert_array_equal(one, other)
    assert isinstance(model.feature_importances_, np.ndarray)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("y", [CLASSES, LABELS], ids=["classes", "labels"])
def test_classifier_on_frames(kind, y):
    frame, arrays = frame_of(kind), small(PolyleafClassifier).fit(X, y)
    model = small(PolyleafClassifier).fit(frame, y)
    assert_same_forest(model, arrays)
    np.testing.assert_array_equal(model.predict(frame), arrays.predict(X))
    np.testing.assert_array_equal(model.predict_proba(frame), arrays.predict_proba(X))
    np.testing.assert_array_equal(model.decision_function(frame), arrays.decision_function(X))
    np.testing.assert_array_equal(model.predict(frame, top_k=2), arrays.predict(X, top_k=2))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("other", KINDS)
def test_the_library_may_change_between_fit_and_predict(kind, other):
    model = small().fit(frame_of(kind), Y)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        np.testing.assert_array_equal(model.predict(frame_of(other)), model.predict(frame_of(kind)))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    "dtype", [np.float64, np.float32, np.float16, np.int64, np.int8, np.uint16, np.uint64, np.bool_]
)
def test_dtypes_of_one_kind_are_kept(kind, dtype):
    table = np.arange(12).reshape(4, 3).astype(dtype)
    read_back = read(frame_of(kind, table, ["a", "b", "c"]))
    assert read_back.dtype == (np.float32 if dtype == np.float16 else dtype)
    np.testing.assert_array_equal(read_back, table)


@pytest.mark.parametrize("order", ["C", "F"])
def test_a_pandas_frame_of_one_array_is_not_copied(order):
    table = np.asarray(X, order=order)
    frame = pd.DataFrame(table, columns=NAMES, copy=False)
    assert np.shares_memory(read(frame), table)


def test_a_polars_frame_of_one_array_is_not_copied():
    frame = pl.from_numpy(np.asfortranarray(X), schema=NAMES)
    assert np.shares_memory(read(frame), frame["age"].to_numpy())
    np.testing.assert_array_equal(read(frame), X)


@pytest.mark.parametrize("kind", KINDS)
def test_one_column(kind):
    model = small().fit(frame_of(kind, X[:, :1], ["a"]), Y)
    np.testing.assert_array_equal(
        model.predict(frame_of(kind, X[:, :1], ["a"])), small().fit(X[:, :1], Y).predict(X[:, :1])
    )


@pytest.mark.parametrize("kind", KINDS)
def test_mixed_columns_take_their_common_dtype(kind):
    columns = {"a": np.array([1, 2, 3], dtype=np.int8), "b": np.array([True, False, True])}
    assert read(to_frame(kind, columns)).dtype == np.int8
    columns["c"] = np.array([0.5, np.nan, 2], dtype=np.float32)
    table = read(to_frame(kind, columns))
    assert table.dtype == np.float32
    np.testing.assert_array_equal(table, [[1, 1, 0.5], [2, 0, np.nan], [3, 1, 2]])


# --- nulls and odd columns ---------------------------------------------------------------------------------

NULLABLE = {
    "pandas Int64": pd.DataFrame({"a": pd.array([1, None, 3], dtype="Int64")}),
    "pandas Float32": pd.DataFrame({"a": pd.array([1, None, 3], dtype="Float32")}),
    "pandas UInt8": pd.DataFrame({"a": pd.array([1, None, 3], dtype="UInt8")}),
    "pandas arrow": pd.DataFrame({"a": pd.array([1, None, 3], dtype="int64[pyarrow]")}),
    "pandas object": pd.DataFrame({"a": [1, None, 3.0]}, dtype=object),
    "pandas object with NA": pd.DataFrame({"a": [1, pd.NA, np.float32(3)]}, dtype=object),
    "polars integers": pl.DataFrame({"a": [1, None, 3]}),
    "polars floats": pl.DataFrame({"a": [1.0, None, 3.0]}, schema={"a": pl.Float32}),
    "polars decimals": pl.DataFrame({"a": pl.Series([1.0, None, 3.0]).cast(pl.Decimal(10, 2))}),
    "polars 128 bits": pl.DataFrame({"a": [1, None, 3]}, schema={"a": pl.Int128}),
    "pyarrow integers": pa.table({"a": pa.array([1, None, 3], pa.int16())}),
    "pyarrow floats": pa.table({"a": pa.array([1, None, 3], pa.float64())}),
    "pyarrow decimals": pa.table({"a": pa.array([1, None, 3]).cast(pa.decimal128(21, 2))}),
    "pyarrow chunks": pa.table({"a": pa.chunked_array([[1, None], [3]])}),
    "pyarrow batch": pa.record_batch({"a": pa.array([1, None, 3])}),
}


@pytest.mark.parametrize("case", NULLABLE)
@pytest.mark.parametrize("alone", [True, False])
def test_nulls_are_missing(case, alone):
    frame = NULLABLE[case]
    if not alone and case != "pyarrow batch":
        extra = [4, 5, 6]
        if isinstance(frame, pa.Table):
            frame = frame.append_column("b", pa.array(extra))
        elif isinstance(frame, pl.DataFrame):
            frame = frame.with_columns(b=pl.Series(extra))
        else:
            frame = frame.assign(b=extra)
    table = read(frame)
    assert table.dtype.kind == "f"
    np.testing.assert_array_equal(table[:, 0], [1, np.nan, 3])


@pytest.mark.parametrize(
    "frame",
    [
        pd.DataFrame({"a": pd.array([True, None, False], dtype="boolean")}),
        pd.DataFrame({"a": pd.array([True, None, False], dtype="bool[pyarrow]")}),
        pd.DataFrame({"a": [True, None, False]}, dtype=object),
        pl.DataFrame({"a": [True, None, False]}),
        pa.table({"a": [True, None, False]}),
    ],
)
def test_nulls_among_booleans(frame):
    np.testing.assert_array_equal(read(frame), [[1], [np.nan], [0]])


@pytest.mark.parametrize(
    "frame",
    [
        pd.DataFrame({"a": [None, None]}, dtype=object),
        pl.DataFrame({"a": [None, None]}),
        pa.table({"a": pa.nulls(2)}),
    ],
)
def test_a_column_of_nulls_is_missing_throughout(frame):
    np.testing.assert_array_equal(read(frame), [[np.nan], [np.nan]])


LARGE = [2**53 + 1, -(2**62) - 1, 2**63 - 1]
LARGE_IN_TABLES = {
    "array": lambda value: np.array([[1, 2], [value, 3]]),
    "column order": lambda value: np.asfortranarray([[1, 2], [value, 3]]),
    "objects": lambda value: np.array([[1, 0.5], [value, None]], dtype=object),
    "list": lambda value: [[1, 2], [value, 3]],
    "csr": lambda value: scipy.sparse.csr_array(np.array([[0, 2], [value, 3]])),
    "csc": lambda value: scipy.sparse.csc_array(np.array([[0, 2], [value, 3]])),
    "pandas": lambda value: pd.DataFrame([[1, 2], [value, 3]]),
    "pandas beside floats": lambda value: pd.DataFrame({0: [1, value], 1: [0.5, 1.5]}),
    "pandas nullable": lambda value: pd.DataFrame({0: pd.array([None, value], dtype="Int64"), 1: [1, 2]}),
    "pandas objects": lambda value: pd.DataFrame({0: np.array([None, value], dtype=object)}),
    "polars": lambda value: pl.DataFrame({"0": [1, value], "1": [0.5, 1.5]}),
    "polars nulls": lambda value: pl.DataFrame({"0": [None, value]}),
    "polars wide": lambda value: pl.DataFrame({"0": [1, value]}, schema={"0": pl.Int128}),
    "pyarrow": lambda value: pa.table({"0": pa.array([value, 1]), "1": pa.array([0.5, 1.5])}),
    "pyarrow nulls": lambda value: pa.table({"0": pa.array([value, None])}),
}


@pytest.mark.parametrize("value", LARGE)
@pytest.mark.parametrize("kind", LARGE_IN_TABLES)
def test_integers_that_float64_would_round_are_refused_by_name(kind, value):
    words = rf"X: column '?0'? holds the integer {value}, beyond 2\*\*53.*categorical_features"
    with pytest.raises(ValueError, match=words):
        read(LARGE_IN_TABLES[kind](value))


@pytest.mark.parametrize("value", [2**53, -(2**53), 2**53 + 2, -(2**63), 2**62, 3 * 2**60])
@pytest.mark.parametrize("kind", LARGE_IN_TABLES)
def test_large_integers_that_float64_holds_are_used(kind, value):
    numbers = read(LARGE_IN_TABLES[kind](value))
    cells = numbers.toarray() if scipy.sparse.issparse(numbers) else numbers
    assert float(value) in cells[:, 0].astype(np.float64)


def test_large_unsigned_integers_are_looked_at_too():
    np.testing.assert_array_equal(read(np.array([[2**63]], dtype=np.uint64)), [[2**63]])
    with pytest.raises(ValueError, match="column 0 holds the integer 18446744073709551615"):
        read(np.array([[2**64 - 1]], dtype=np.uint64))


@pytest.mark.parametrize("value", LARGE)
def test_predict_refuses_what_fit_refuses(value):
    model = PolyleafRegressor(n_estimators=1).fit(np.arange(60).reshape(30, 2), np.arange(30.0))
    with pytest.raises(ValueError, match=f"X: column 1 holds the integer {value}"):
        model.predict(np.array([[3, value]]))


@pytest.mark.parametrize("value", LARGE)
def test_targets_that_float64_would_round_are_refused_by_name(value):
    table, model = np.zeros((3, 1)), PolyleafRegressor()
    odd = {
        "y": [[1, 2, value], np.array([1, None, value], dtype=object), pd.Series([1, 2, value])],
        "y: column 't'": [
            pd.DataFrame({"a": [0.5, 1, 2], "t": [1, 2, value]}),
            pl.DataFrame({"t": [1, None, value]}),
        ],
    }
    for where, targets in odd.items():
        for y in targets:
            with pytest.raises(ValueError, match=f"{where} holds the integer {value}.*subtract an offset"):
                model.fit(table, y)


def test_classes_may_be_large_integers():
    labels = np.array([2**53, 2**53 + 1] * 20)
    model = PolyleafClassifier(n_estimators=1).fit(labels[:, np.newaxis] % 2, pd.Series(labels))
    assert model.classes_.tolist() == [2**53, 2**53 + 1]


DAY = np.array(["2020-01-01", "2020-01-02"], dtype="M8[ns]")
ODD_COLUMNS = [
    (pd.DataFrame({"a": [1, 2], "day": DAY}), r"X: column 'day' has dtype datetime64\[ns\]; turn dates"),
    (pl.DataFrame({"a": [1, 2], "day": DAY}), "X: column 'day' has dtype Datetime.*; turn dates"),
    (pa.table({"a": [1, 2], "day": DAY}), "X: column 'day' has dtype timestamp.*; turn dates"),
    (pd.DataFrame({"day": DAY - DAY[0]}), "X: column 'day' has dtype timedelta64.*; turn dates"),
    (pd.DataFrame({"day": pd.period_range("2020", periods=2)}), "X: column 'day' has dtype period"),
    (
        pd.DataFrame({"day": [datetime.date(2020, 1, 1), None]}),
        "X: column 'day' holds .*turn dates",
    ),
    (pd.DataFrame({"l": [None, datetime.timedelta(1)]}, dtype=object), "X: column 'l' holds .*turn dates"),
    (pl.DataFrame({"l": [[1], [2]]}), "X: column 'l' has dtype List"),
    (pd.DataFrame({"c": [1j, 2]}), "X: column 'c' has dtype complex128"),
    (
        pd.DataFrame({"a": [1, 2], "b": ["red", "blue"]}),
        "X: column 'b' holds no numbers but text such as 'red'",
    ),
    (pd.DataFrame({"b": [1.5, "2.5"]}), "X: column 'b' holds no numbers but text such as '2.5'"),
    (pl.DataFrame({"b": [None, "blue"]}), "X: column 'b' holds no numbers but text such as 'blue'"),
    (pa.table({"b": ["red", "blue"]}), "X: column 'b' holds no numbers but text such as 'red'"),
    (pd.DataFrame({"b": [1, {}]}), "X: column 'b' holds no numbers: .*dict"),
    (pd.DataFrame({"b": [1, 10**400]}), "X: column 'b' holds no numbers"),
    (pl.DataFrame({"b": pl.Series([1, {}], dtype=pl.Object)}), "X: column 'b' holds no numbers: .*dict"),
]
CATEGORICAL = [
    pd.DataFrame({"n": [1, 2], "c": pd.Categorical(["red", "blue"])}),
    pd.DataFrame({"n": [1, 2], "c": pd.Categorical(["red", "blue"], ordered=True)}),
    pl.DataFrame({"n": [1, 2], "c": ["red", "blue"]}, schema_overrides={"c": pl.Categorical}),
    pl.DataFrame({"n": [1, 2], "c": ["red", "blue"]}, schema_overrides={"c": pl.Enum(["blue", "red"])}),
    pa.table({"n": [1, 2], "c": pa.array(["red", "blue"]).dictionary_encode()}),
    pd.DataFrame(
        {
            "n": [1, 2],
            "c": pd.Series(pd.arrays.ArrowExtensionArray(pa.array(["red", "x"]).dictionary_encode())),
        }
    ),
]


@pytest.mark.parametrize(("frame", "words"), ODD_COLUMNS)
def test_columns_without_numbers_are_refused_by_name(frame, words):
    with pytest.raises((ValueError, TypeError), match=words):
        read(frame)


@pytest.mark.parametrize("frame", CATEGORICAL)
def test_categorical_columns_are_not_taken_for_their_codes(frame):
    with pytest.raises(ValueError, match="X: column 'c' holds no numbers but categories such as 'red'"):
        read(frame)


def test_categorical_numbers_are_not_taken_for_numbers():
    frame = pd.DataFrame({"c": pd.Categorical([3, 1])})
    with pytest.raises(ValueError, match="X: column 'c' holds no numbers but categories such as 3"):
        read(frame)


@pytest.mark.parametrize("kind", KINDS)
def test_infinity_names_the_column(kind):
    table = X.copy()
    table[7, 2] = np.inf
    with pytest.raises(ValueError, match=r"X contains infinity.*row 7, column 'weight'"):
        small().fit(frame_of(kind, table), Y)
    model = small().fit(frame_of(kind), Y)
    with pytest.raises(ValueError, match=r"X contains infinity.*row 7, column 'weight'"):
        model.predict(frame_of(kind, table))


# --- odd frames --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", KINDS)
def test_empty_frames_are_refused(kind):
    with pytest.raises(ValueError, match=r"X: Found array with 0 sample\(s\)"):
        read(frame_of(kind, X[:0]))
    without_columns = {
        "pandas": pd.DataFrame(index=range(3)),
        "polars": pl.DataFrame(),
        "pyarrow": pa.table({}),
    }
    with pytest.raises(ValueError, match=r"X: Found array with 0 (sample|feature)"):
        read(without_columns[kind])


def test_columns_of_several_levels_are_refused():
    columns = pd.MultiIndex.from_tuples([("a", "x"), ("a", "y")])
    with pytest.raises(ValueError, match="X: its columns are a MultiIndex of 2 levels"):
        read(pd.DataFrame(X[:, :2], columns=columns))


@pytest.mark.parametrize(
    "frame",
    [
        pd.DataFrame(X[:, :3], columns=["a", "b", "a"]),
        pa.table([X[:, 0], X[:, 1], X[:, 2]], names=["a", "b", "a"]),
    ],
)
def test_duplicate_names_are_refused(frame):
    with pytest.raises(ValueError, match="X: column 'a' is there more than once"):
        read(frame)


def test_lazy_frames_are_refused():
    with pytest.raises(TypeError, match=r"LazyFrame.*collect"):
        read(frame_of("polars").lazy())


def test_names_that_are_no_str():
    """None of them: no names, as in scikit-learn. Some of them: an error."""
    model = small().fit(pd.DataFrame(X), Y)
    assert not hasattr(model, "feature_names_in_")
    np.testing.assert_array_equal(model.predict(pd.DataFrame(X)), small().fit(X, Y).predict(X))
    with pytest.raises(
        TypeError, match=r"only supported if all input features have string names.*'int', 'str'"
    ):
        small().fit(pd.DataFrame(X[:, :2], columns=["a", 1]), Y)


def test_a_frame_is_left_as_it_is():
    frame = pd.DataFrame({"a": [1.5, 2.5], "b": [1, 2]})
    before = frame.copy()
    read(frame)
    pd.testing.assert_frame_equal(frame, before)


# --- names at predict --------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    ("names", "words"),
    [
        (
            ["height", "age", "weight", "shoe size"],
            "same order.*\n.*Column 0 was 'age'.*columns_by_name.*\n.*feature_names_in_",
        ),
        (["age", "height", "weight", "hat"], "unseen at fit time:\n- hat\n.*yet now missing:\n- shoe size"),
        (["age", "height", "weight"], "seen at fit time, yet now missing:\n- shoe size"),
        ([*NAMES, "hat"], "unseen at fit time:\n- hat\n.*columns_by_name.*\n.*feature_names_in_"),
    ],
)
def test_other_names_are_an_error_that_says_what_differs(kind, names, words):
    model = small().fit(frame_of(kind), Y)
    other = frame_of(kind, np.zeros((3, len(names))), names)
    for use in (model.predict, model.apply, lambda table: list(model.staged_predict(table))):
        with pytest.raises(ValueError, match=r"(?s)X: The feature names should match.*" + words):
            use(other)
    with pytest.raises(ValueError, match=r"(?s)X of eval_set\[0\]: The feature names should match.*" + words):
        small().fit(frame_of(kind), Y, eval_set=(other, Y[:3]))


@pytest.mark.parametrize("kind", KINDS)
def test_names_on_one_side_only_are_worth_a_warning(kind):
    model = small().fit(frame_of(kind), Y)
    with pytest.warns(
        UserWarning, match="X does not have valid feature names, but PolyleafRegressor was fitted"
    ):
        model.predict(X)
    model = small().fit(X, Y)
    with pytest.warns(UserWarning, match="X has feature names, but PolyleafRegressor was fitted without"):
        model.predict(frame_of(kind))


def test_names_go_when_a_fit_has_none():
    model = small().fit(frame_of("polars"), frame_of("polars", Y, ["p", "q"]))
    assert model.feature_names_in_.tolist() == NAMES
    model.fit(X, Y)
    assert not hasattr(model, "feature_names_in_")
    assert not hasattr(model, "target_names_")


# --- y as a frame ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", KINDS)
def test_targets_from_a_frame(kind):
    """The bits of the array, and the names."""
    target = frame_of(kind, Y, ["price", "cost"])
    model, arrays = small().fit(X, target, eval_set=(X, target)), small().fit(X, Y, eval_set=(X, Y))
    assert_same_forest(model, arrays)
    assert model.evals_result_ == arrays.evals_result_
    assert model.target_names_.tolist() == ["price", "cost"]
    assert not hasattr(arrays, "target_names_")
    assert model.predict(X).shape == (N, 2)


def test_targets_from_a_series():
    for series, names in [
        (pd.Series(Y[:, 0], name="price"), ["price"]),
        (pl.Series("price", Y[:, 0]), ["price"]),
        (pd.Series(Y[:, 0]), None),
        (pl.Series(Y[:, 0]), None),
        (pa.chunked_array([Y[:, 0]]), None),
        (pa.array(Y[:, 0]), None),
    ]:
        model = small().fit(X, series)
        assert_same_forest(model, small().fit(X, Y[:, 0]))
        assert getattr(model, "target_names_", np.array(None)).tolist() == names
        assert model.predict(X).shape == (N,)


def test_a_frame_of_one_column_keeps_two_dimensions():
    model = small().fit(X, pl.DataFrame({"price": Y[:, 0]}))
    assert model.predict(X).shape == (N, 1)
    assert model.target_names_.tolist() == ["price"]


@pytest.mark.parametrize(
    "labels",
    [
        pd.Series(CLASSES, name="rank"),
        pd.Series(CLASSES, name="rank", dtype=object),
        pd.Series(CLASSES, name="rank", dtype="category"),
        pl.Series("rank", CLASSES),
        pl.Series("rank", CLASSES, dtype=pl.Categorical),
        pl.Series("rank", CLASSES, dtype=pl.Enum(["top", "low", "mid"])),
        pa.chunked_array([pa.array(CLASSES)]),
        pa.chunked_array([pa.array(CLASSES).dictionary_encode()]),
        pa.array(CLASSES),
    ],
    ids=lambda labels: f"{type(labels).__module__.split('.')[0]} {getattr(labels, 'dtype', None)}",
)
def test_classes_from_a_series(labels):
    model = small(PolyleafClassifier).fit(X, labels)
    assert model.classes_.tolist() == ["low", "mid", "top"]
    assert_same_forest(model, small(PolyleafClassifier).fit(X, CLASSES))
    if not isinstance(labels, pa.ChunkedArray | pa.Array):
        assert model.target_names_.tolist() == ["rank"]


@pytest.mark.parametrize("kind", KINDS)
def test_labels_from_a_frame(kind):
    target = frame_of(kind, LABELS, ["red", "blue", "round"])
    model = small(PolyleafClassifier).fit(X, target)
    assert_same_forest(model, small(PolyleafClassifier).fit(X, LABELS))
    assert model.target_names_.tolist() == ["red", "blue", "round"]


def test_nullable_targets():
    """Without a null they are plain numbers; a null is a missing value, whatever the library calls it."""
    labels = pd.Series(LABELS[:, 0], dtype="Int64")
    model = small(PolyleafClassifier).fit(X, labels)
    assert model.classes_.dtype == np.int64
    labels[4] = pd.NA
    with pytest.raises(ValueError, match="missing class label in row 4"):
        model.fit(X, labels)
    for target in (pd.Series([1, None, 3], dtype="Int64"), pl.Series([1, None, 3]), pa.array([1, None, 3])):
        np.testing.assert_array_equal(read_target_input(target, "y").values, [1, np.nan, 3])
    with pytest.raises(ValueError, match="missing class label"):
        model.fit(X, pl.Series([None, *CLASSES[1:]]))


@pytest.mark.parametrize(
    ("target", "words"),
    [
        (pd.DataFrame({"a": Y[:, 0], "b": CLASSES}), "y: column 'b' holds no numbers but text"),
        (pd.DataFrame(Y, columns=["a", "a"]), "y: column 'a' is there more than once"),
        (pd.DataFrame(Y, columns=pd.MultiIndex.from_tuples([(1, 2), (3, 4)])), "y: .*MultiIndex"),
        (pl.DataFrame(), "y has no columns"),
        (frame_of("polars", Y[:5], ["a", "b"]), r"y has 5 row\(s\)"),
        (frame_of("pyarrow", Y[:0], ["a", "b"]), r"y has 0 row\(s\)"),
    ],
)
def test_bad_targets_are_refused(target, words):
    with pytest.raises(ValueError, match=words):
        small().fit(X, target)


def test_evaluation_targets_must_have_the_same_columns():
    target, turned = frame_of("polars", Y, ["a", "b"]), frame_of("pandas", Y[:, ::-1], ["b", "a"])
    with pytest.raises(ValueError, match=r"y of eval_set\[0\] has the columns 'b', 'a', but y had 'a', 'b'"):
        small().fit(X, target, eval_set=(X, turned))


# --- as_frame ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", KINDS)
def test_regression_as_a_frame(kind):
    frame = frame_of(kind)
    model = small().fit(frame, frame_of("pandas", Y, ["price", "cost"]))
    prediction = model.predict(frame, as_frame=True)
    assert type(prediction) is type(frame)
    assert list(cells(prediction).columns) == ["price", "cost"]
    np.testing.assert_array_equal(cells(prediction).to_numpy(), model.predict(frame))
    assert isinstance(model.predict(frame), np.ndarray)
    one = small().fit(frame, Y[:, 0])
    column = one.predict(frame, as_frame=True)
    assert list(cells(column).columns) == ["target"]
    np.testing.assert_array_equal(cells(column)["target"], one.predict(frame))
    unnamed = small().fit(frame, Y).predict(frame, as_frame=True, n_rounds=2)
    assert list(cells(unnamed).columns) == ["target_0", "target_1"]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("classes", [CLASSES, CLASSES.astype(object), LABELS[:, 0], LABELS[:, 0] == 1])
def test_classes_as_a_frame(kind, classes):
    frame = frame_of(kind)
    model = small(PolyleafClassifier).fit(frame, classes)
    prediction = cells(model.predict(frame, as_frame=True))
    assert list(prediction.columns) == ["class"]
    assert prediction["class"].tolist() == model.predict(frame).tolist()
    probability = model.predict_proba(frame, as_frame=True)
    assert type(probability) is type(frame)
    assert list(cells(probability).columns) == [str(label) for label in model.classes_.tolist()]
    np.testing.assert_array_equal(cells(probability).to_numpy(), model.predict_proba(frame))
    named = small(PolyleafClassifier).fit(frame, pd.Series(classes, name="rank"))
    assert list(cells(named.predict(frame, as_frame=True)).columns) == ["rank"]


@pytest.mark.parametrize("kind", KINDS)
def test_labels_as_a_frame(kind):
    frame, names = frame_of(kind), ["red", "blue", "round"]
    model = small(PolyleafClassifier).fit(frame, frame_of(kind, LABELS, names))
    for predict in (model.predict, model.predict_proba):
        assert list(cells(predict(frame, as_frame=True)).columns) == names
        np.testing.assert_array_equal(cells(predict(frame, as_frame=True)).to_numpy(), predict(frame))
    best = cells(model.predict(frame, top_k=2, as_frame=True))
    assert list(best.columns) == ["top_1", "top_2"]
    np.testing.assert_array_equal(best.to_numpy(), model.predict(frame, top_k=2))
    unnamed = small(PolyleafClassifier).fit(frame, LABELS)
    assert list(cells(unnamed.predict(frame, as_frame=True)).columns) == ["label_0", "label_1", "label_2"]


def test_sparse_labels_as_a_frame():
    labels = scipy.sparse.csr_array(LABELS)
    model = small(PolyleafClassifier, objective="clipped_squared_error", sparse_leaves=2, sketch=None).fit(
        frame_of("pandas"), labels
    )
    frame = model.predict(frame_of("pandas"), as_frame=True)
    np.testing.assert_array_equal(frame.to_numpy(), model.predict(frame_of("pandas")).toarray())
    with pytest.raises(ValueError, match="sparse=True and as_frame=True exclude each other"):
        model.predict(frame_of("pandas"), as_frame=True, sparse=True)


def test_pandas_frames_keep_their_index():
    index = [f"row {i}" for i in range(N)]
    frame = pd.DataFrame(X, columns=NAMES, index=index)
    model = small().fit(frame, Y)
    assert model.predict(frame[::-1], as_frame=True).index.tolist() == index[::-1]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("table", [X, scipy.sparse.csr_array(X)], ids=["array", "sparse"])
def test_arrays_give_the_kind_of_frame_that_y_was(kind, table):
    model = small().fit(table, frame_of(kind, Y, ["a", "b"]))
    frame = model.predict(table, as_frame=True)
    assert frame_kind(frame) == kind
    np.testing.assert_array_equal(cells(frame).to_numpy(), model.predict(table))


def test_as_frame_without_any_frame_is_refused():
    model = small().fit(X, Y)
    with pytest.raises(ValueError, match="as_frame=True needs a frame to go by"):
        model.predict(X, as_frame=True)
    with pytest.raises(TypeError, match="as_frame must be True or False; got 'pandas'"):
        model.predict(X, as_frame="pandas")


# --- models that travel ------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", KINDS)
def test_names_are_saved(kind, tmp_path):
    frame, target = frame_of(kind), frame_of(kind, LABELS, ["red", "blue", "round"])
    model = small(PolyleafClassifier).fit(frame, target)
    model.save_model(tmp_path / "m")
    for other in (load_model(tmp_path / "m"), pickle.loads(pickle.dumps(model))):
        assert other.feature_names_in_.tolist() == NAMES
        assert other.target_names_.tolist() == ["red", "blue", "round"]
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)  # X has no names
            assert frame_kind(other.predict_proba(X, as_frame=True)) == kind
        with pytest.raises(ValueError, match="must be in the same order"):
            other.predict(frame_of(kind, X, NAMES[::-1]))
    assert not hasattr(clone(model), "target_names_")


def test_files_without_target_names_still_load(tmp_path, monkeypatch):
    """Those that were written before there were any."""
    from polyleaf.model import file as model_file

    describe = model_file.describe

    def as_before(model):
        page = describe(model)
        for name in ("names", "frame"):
            del page["target"][name]
        return page

    monkeypatch.setattr(model_file, "describe", as_before)
    model = small().fit(X, frame_of("polars", Y, ["a", "b"]))
    model.save_model(tmp_path / "m")
    loaded = load_model(tmp_path / "m")
    assert not hasattr(loaded, "target_names_")
    np.testing.assert_array_equal(loaded.predict(X), model.predict(X))


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"names": ("a",)}, "target names are not 2 distinct words"),
        ({"names": ("a", "a")}, "target names are not 2 distinct words"),
        ({"names": ("a", 1)}, "target names are not 2 distinct words"),
        ({"frame": "os"}, "frame of 'os', which is unknown"),
        ({"frame": ["pandas"]}, "which is unknown"),
    ],
)
def test_hostile_target_names_are_refused(change, words, tmp_path):
    model = small().fit(X, frame_of("polars", Y, ["a", "b"]))
    model._coding = replace(model._coding, **change)
    with pytest.raises(ValueError, match=words):  # by the checks of the reader
        model.save_model(tmp_path / "m")
    assert not (tmp_path / "m").exists()


def test_no_library_of_frames_is_imported():
    """None but those that scikit-learn imports by itself."""
    code = """
import sys, numpy, sklearn.utils.validation
def there(): return [name for name in ("pandas", "polars", "pyarrow") if name in sys.modules]
before = there()
import polyleaf
polyleaf.PolyleafRegressor(n_estimators=1).fit(numpy.eye(5), numpy.ones(5)).predict(numpy.eye(5))
sys.exit(there() != before)
"""
    assert subprocess.run([sys.executable, "-c", code]).returncode == 0


# --- tables as the categories will read them ---------------------------------------------------------------


@pytest.mark.parametrize("frame", CATEGORICAL)
def test_a_table_tells_its_categorical_columns(frame):
    table = read_table(Host(), frame, reset=True)
    assert table.kind == frame_kind(frame)
    assert table.shape == (2, 2)
    assert table.names == ("n", "c")
    assert table.categorical.tolist() == [False, True]
    assert series_kind(table.column(1)) == table.kind
    numbers = table_numbers(table, {1: np.array([1.0, np.nan])})
    np.testing.assert_array_equal(numbers, [[1, 1], [2, np.nan]])


def test_columns_of_arrays_can_be_recoded():
    table = read_table(Host(), np.array([[1, "red"], [2, "blue"]], dtype=object), reset=True)
    assert (table.kind, table.names) == ("array", None)
    np.testing.assert_array_equal(table_numbers(table, {1: np.array([1.0, 0.0])}), [[1, 1], [2, 0]])
    assert table.column(1).tolist() == ["red", "blue"]


def test_columns_of_sparse_tables_cannot_be_recoded():
    table = read_table(Host(), scipy.sparse.csr_array(np.eye(3)), reset=True)
    assert table.kind == "sparse"
    np.testing.assert_array_equal(table.column(1), [0, 1, 0])
    with pytest.raises(ValueError, match="X is sparse; its columns cannot be categories"):
        table_numbers(table, {1: np.zeros(3)})


@pytest.mark.parametrize("kind", KINDS)
def test_the_advice_for_another_order_is_right(kind):
    model = small().fit(frame_of(kind), Y)
    mixed_up = frame_of(kind, X[:, ::-1], [*NAMES[::-1]])
    with pytest.raises(ValueError, match="feature_names_in_") as refused:
        model.predict(mixed_up)
    advice = str(refused.value).splitlines()[-1]
    in_order = eval(advice, {"X": mixed_up, "model": model, "list": list})
    np.testing.assert_array_equal(model.predict(in_order), model.predict(frame_of(kind)))


def test_infinite_targets_are_named():
    y = pd.DataFrame({"p": np.zeros(N), "q": np.full(N, np.inf)})
    with pytest.raises(ValueError, match=r"y contains infinity.* in row 0, column 'q'"):
        small().fit(X, y)
    with pytest.raises(ValueError, match=r"y contains infinity.* in row 0, column 1"):
        small().fit(X, y.to_numpy())


# --- columns by their names --------------------------------------------------------------------------------


@pytest.mark.parametrize("library", ["pandas", "polars", "pyarrow"])
def test_columns_by_name(library):
    """In any order, with others beside them; in evaluation sets as well, and from a file."""
    names = ["a", "b", "c", "d"][: X.shape[1]]
    shuffled = [*reversed(names), "more"]
    other = frame_of(library, np.column_stack([X[:, ::-1], np.zeros(len(X))]), shuffled)
    plain = small().fit(frame_of(library, X, names), Y, eval_set=(frame_of(library, X, names), Y))
    with pytest.raises(ValueError, match="columns_by_name=True"):
        plain.predict(other)
    model = small(columns_by_name=True).fit(frame_of(library, X, names), Y, eval_set=(other, Y))
    np.testing.assert_array_equal(model.predict(other), plain.predict(frame_of(library, X, names)))
    assert model.evals_result_ == plain.evals_result_
    with pytest.raises(ValueError, match="yet now missing"):
        model.predict(frame_of(library, X[:, 1:], names[1:]))


def test_columns_by_name_of_a_file(tmp_path):
    names = ["a", "b", "c", "d"][: X.shape[1]]
    model = small(columns_by_name=True).fit(pd.DataFrame(X, columns=names), Y)
    model.save_model(tmp_path / "m")
    turned = pd.DataFrame(X[:, ::-1], columns=names[::-1])
    np.testing.assert_array_equal(load_model(tmp_path / "m").predict(turned), model.predict(turned))


def test_columns_by_name_without_names_is_by_place():
    """As a table without names always is."""
    model = small(columns_by_name=True).fit(X, Y)
    np.testing.assert_array_equal(model.predict(X), small().fit(X, Y).predict(X))
