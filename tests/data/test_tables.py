"""Data frames of pandas, polars and pyarrow: the same bits as arrays, names that are kept and checked."""

import datetime
import subprocess
import sys
import warnings

import numpy as np
import pandas as pd
import pytest
import scipy.sparse
from sklearn.base import BaseEstimator

from frames import CLASSES, KINDS, LABELS, NAMES, X, Y, assert_same_forest, frame_of, small, to_frame
from polyleaf import PolyleafClassifier, PolyleafRegressor, load_model
from polyleaf.data.inputs import check_features, read_table, table_numbers
from polyleaf.data.tables import frame_kind, series_kind

pl = pytest.importorskip("polars")
pa = pytest.importorskip("pyarrow")


class Host(BaseEstimator):
    """Takes n_features_in_ and feature_names_in_, as an estimator does."""


def read(table):
    return check_features(Host(), table, reset=True)


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
    # One cell that spoils a column of numbers is the one to name.
    (pd.DataFrame({"b": ["1.5", "2,5", "3"]}), "X: column 'b' holds no numbers but text such as '2,5'"),
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
