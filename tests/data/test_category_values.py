"""Category values: the same categories and codes whatever library, dtype or order they come in."""

import json

import numpy as np
import pandas as pd
import pytest
import scipy.sparse
from sklearn.base import BaseEstimator

from polyleaf.data.category_values import (
    MOST_CATEGORIES,
    CategoryValues,
    category_codes,
    learn_categories,
    resolve_categorical,
)
from polyleaf.data.inputs import read_table, table_numbers

pytestmark = pytest.mark.cpu_only("no model is trained")

pl = pytest.importorskip("polars")
pa = pytest.importorskip("pyarrow")

WORDS = ["red", None, "blue", "red", "green"]
CODES = [2, np.nan, 0, 2, 1]


def dictionary(values, chunks=1):
    """A pyarrow column whose chunks each have a dictionary of their own."""
    parts = np.array_split(np.array(values, dtype=object), chunks)
    return pa.chunked_array([pa.array(part.tolist(), pa.string()).dictionary_encode() for part in parts])


TEXT_COLUMNS = {
    "pandas categorical": pd.Series(WORDS, dtype="category"),
    "pandas categorical, other order": pd.Series(
        pd.Categorical(WORDS, categories=["zebra", "red", "green", "blue"])
    ),
    "pandas ordered": pd.Series(
        pd.Categorical(WORDS, categories=["red", "green", "blue", "x"], ordered=True)
    ),
    "pandas object": pd.Series(WORDS, dtype=object),
    "pandas object with NaN": pd.Series(["red", np.nan, "blue", "red", "green"], dtype=object),
    "pandas object with NA": pd.Series(["red", pd.NA, "blue", "red", "green"], dtype=object),
    "pandas str": pd.Series(WORDS, dtype="string"),
    "polars categorical": pl.Series(WORDS, dtype=pl.Categorical),
    "polars enum": pl.Series(WORDS, dtype=pl.Enum(["x", "red", "green", "blue"])),
    "polars str": pl.Series(WORDS),
    "polars object": pl.Series(WORDS, dtype=pl.Object),
    "pyarrow dictionary": dictionary(WORDS),
    "pyarrow dictionaries": dictionary(WORDS, chunks=3),
    "pyarrow small indices": pa.chunked_array(
        [
            pa.DictionaryArray.from_arrays(
                pa.array([2, None, 0, 2, 1], pa.uint8()), ["blue", "green", "red", "unused"]
            )
        ]
    ),
    "pyarrow null in the dictionary": pa.chunked_array(
        [pa.DictionaryArray.from_arrays(pa.array([3, 2, 0, 3, 1]), ["blue", "green", None, "red"])]
    ),
    "pyarrow str": pa.chunked_array([WORDS[:2], WORDS[2:]]),
    "array of objects": np.array(WORDS, dtype=object),
}


@pytest.mark.parametrize("case", TEXT_COLUMNS)
def test_text(case):
    """Categories that are declared but do not occur are none."""
    categories = CategoryValues.learn(TEXT_COLUMNS[case], "c")
    assert categories.values == ("blue", "green", "red")
    codes = categories.codes(TEXT_COLUMNS[case], "c")
    assert codes.dtype == np.float64
    np.testing.assert_array_equal(codes, CODES)


@pytest.mark.parametrize("case", TEXT_COLUMNS)
def test_codes_go_by_value_not_by_the_frame(case):
    """Learnt from one library, used with another, with values that were not seen."""
    categories = CategoryValues.learn(pd.Series(["zebra", "red", "blue"], dtype="category"), "c")
    np.testing.assert_array_equal(categories.codes(TEXT_COLUMNS[case], "c"), [1, np.nan, 0, 1, np.nan])


def test_fixed_width_text():
    column = np.array(["red", "blue", "red"])
    categories = CategoryValues.learn(column, "c")
    assert categories.values == ("blue", "red")
    np.testing.assert_array_equal(categories.codes(column, "c"), [1, 0, 1])


def test_polars_categoricals_that_share_their_numbering():
    first = pl.Series(["a", "b", "c", "d"], dtype=pl.Categorical)
    categories = CategoryValues.learn(first, "c")
    np.testing.assert_array_equal(
        categories.codes(pl.Series(["d", "zz", "a"], dtype=pl.Categorical), "c"), [3, np.nan, 0]
    )
    assert CategoryValues.learn(pl.Series(["d", "b"], dtype=pl.Categorical), "c").values == ("b", "d")


NUMBER_COLUMNS = {
    "pandas Int64": pd.Series([30, None, 10, 30, 20], dtype="Int64"),
    "pandas float": pd.Series([30, None, 10, 30, 20]),
    "pandas categorical": pd.Series([30, None, 10, 30, 20], dtype="category"),
    "pandas arrow": pd.Series([30, None, 10, 30, 20], dtype="int64[pyarrow]"),
    "pandas object": pd.Series([30, None, 10.0, 30, np.int8(20)], dtype=object),
    "polars": pl.Series([30, None, 10, 30, 20], dtype=pl.UInt8),
    "polars float": pl.Series([30.0, None, 10, float("nan"), 20]).fill_nan(30),
    "pyarrow": pa.chunked_array([[30, None, 10, 30, 20]]),
    "pyarrow float": pa.chunked_array([[30.0, float("nan"), 10, 30, 20]]),
    "array": np.array([30, np.nan, 10, 30, 20], dtype=np.float32),
}


@pytest.mark.parametrize("case", NUMBER_COLUMNS)
@pytest.mark.parametrize("other", ["pandas Int64", "array"])
def test_numbers_are_equal_across_dtypes(case, other):
    categories = CategoryValues.learn(NUMBER_COLUMNS[case], "c")
    assert categories.values == (10, 20, 30)
    np.testing.assert_array_equal(categories.codes(NUMBER_COLUMNS[case], "c"), CODES)
    np.testing.assert_array_equal(categories.codes(NUMBER_COLUMNS[other], "c"), CODES)


@pytest.mark.parametrize(
    "column",
    [
        np.array([True, False]),
        pd.Series([True, False]),
        pd.Series([True, False], dtype="boolean"),
        pd.Series([True, False], dtype=object),
        pl.Series([True, False]),
        pa.chunked_array([[True, False]]),
    ],
)
def test_booleans(column):
    categories = CategoryValues.learn(column, "c")
    assert categories.values == (False, True)
    assert all(type(value) is bool for value in categories.values)
    np.testing.assert_array_equal(categories.codes(column, "c"), [1, 0])
    np.testing.assert_array_equal(categories.codes(np.array([0, 1, 2]), "c"), [0, 1, np.nan])


@pytest.mark.parametrize(
    "column",
    [
        np.array([-128, 127, 5], dtype=np.int8),
        np.array([2**64 - 1, 2**64 - 2, 2**64 - 5], dtype=np.uint64),
        np.array([-(2**63), -(2**63) + 9, -(2**63)]),
        np.array([10**6, -(10**9), 7]),
    ],
)
def test_integers_near_and_far(column):
    categories = CategoryValues.learn(column, "c")
    assert categories.values == tuple(sorted(set(column.tolist())))
    codes = categories.codes(column, "c").astype(int)
    assert [categories.values[code] for code in codes] == column.tolist()


def test_integers_of_64_bits_are_kept_apart():
    column = pd.Series([2**62, 2**62 + 1, None], dtype="Int64")
    categories = CategoryValues.learn(column, "c")
    assert categories.values == (2**62, 2**62 + 1)
    np.testing.assert_array_equal(categories.codes(column, "c"), [0, 1, np.nan])


@pytest.mark.parametrize(
    "column",
    [
        pd.Series([None, None], dtype=object),
        pd.Series([None, None], dtype="category"),
        pl.Series([None, None]),
        pl.Series([None, None], dtype=pl.Categorical),
        pa.chunked_array([pa.nulls(2)]),
        dictionary([None, None]),
        np.array([np.nan, np.nan]),
    ],
)
def test_a_column_without_a_value(column):
    """Nothing is a category; later, everything is unseen."""
    categories = CategoryValues.learn(column, "c")
    assert categories.values == ()
    np.testing.assert_array_equal(categories.codes(pd.Series(["a", None]), "c"), [np.nan, np.nan])
    known = CategoryValues(("a", "b"))
    np.testing.assert_array_equal(known.codes(column, "c"), [np.nan, np.nan])


def test_only_some_rows_count():
    rows = np.array([True, True, False, False, True])
    for column in TEXT_COLUMNS.values():
        assert CategoryValues.learn(column, "c", rows=rows).values == ("green", "red")


# --- refusals ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("column", "words"),
    [
        (
            pd.Series(["a", 1], dtype=object),
            "X: column 'c' mixes values of type int and str, such as 'a' and 1",
        ),
        (pd.Series([True, 1], dtype=object), "X: column 'c' mixes values of type bool and int"),
        (pd.Series(pd.Categorical(["a", 2], categories=["a", 2])), "X: column 'c' mixes"),
        (np.array(["a", 1.5], dtype=object), "X: column 'c' mixes values of type float and str"),
        (pd.Series([1, {}], dtype=object), "X: column 'c' holds values that are neither text nor numbers"),
        (pd.Series([(1, 2)], dtype=object), "X: column 'c' holds .*tuple; categories are text"),
        (pd.Series(pd.to_datetime(["2020-01-01"])), "X: column 'c' holds .*Timestamp"),
        (pl.Series([[1], [2]]), "X: column 'c' holds "),
        (np.array([b"a"]), "X: column 'c' holds b'a', of type bytes"),
        (np.array([1.0, np.inf]), "X: column 'c' holds inf, of type float; .*finite"),
    ],
)
def test_columns_without_categories_are_refused_by_name(column, words):
    with pytest.raises(ValueError, match=words):
        CategoryValues.learn(column, "c")


@pytest.mark.parametrize(
    ("fitted", "later", "words"),
    [
        (["a", "b"], [1, 2], "X: column 'c' holds numbers, but its categories were text in fit"),
        ([1, 2], ["1", "2"], "X: column 'c' holds text, but its categories were numbers in fit"),
        ([True, False], pl.Series(["x"]), "X: column 'c' holds text"),
    ],
)
def test_another_type_than_in_fit_is_an_error(fitted, later, words):
    """All of it would be unseen, and nobody would know."""
    categories = CategoryValues.learn(pd.Series(fitted), "c")
    with pytest.raises(ValueError, match=words):
        categories.codes(later if isinstance(later, pl.Series) else pd.Series(later), "c")


@pytest.mark.parametrize("kind", ["array", "pandas", "pandas categorical", "polars", "pyarrow"])
def test_too_many_categories(kind):
    """10,000 are fine, one more is not; those that do not occur do not count."""
    values = [f"v{i:05}" for i in range(MOST_CATEGORIES + 1)]
    column = {
        "array": lambda: np.array(values),
        "pandas": lambda: pd.Series(values),
        "pandas categorical": lambda: pd.Series(values, dtype="category"),
        "polars": lambda: pl.Series(values, dtype=pl.Categorical),
        "pyarrow": lambda: dictionary(values),
    }[kind]()
    with pytest.raises(ValueError, match=r"table: column 'city' has 10,001 categories; at most 10,000"):
        CategoryValues.learn(column, "city", "table")
    categories = CategoryValues.learn(column[:MOST_CATEGORIES], "city")
    assert len(categories.values) == MOST_CATEGORIES
    np.testing.assert_array_equal(categories.codes(column, "city")[-2:], [MOST_CATEGORIES - 1, np.nan])


# --- lists -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("values", [("a", "b"), (1, 2), (0.5, 1.5), (False, True), (), (1, 2.5)])
def test_values_travel_as_json(values):
    text = json.dumps(list(values))
    restored = CategoryValues.from_list(json.loads(text))
    assert restored.values == values
    assert [type(value) for value in restored.values] == [type(value) for value in values]


@pytest.mark.parametrize(
    "values",
    [None, "ab", ["b", "a"], ["a", "a"], [1, "a"], [True, 2], [None], [[1]], [float("nan")], [1e999]],
)
def test_hostile_lists_are_refused(values):
    with pytest.raises(ValueError, match="categor"):
        CategoryValues.from_list(values)


def test_long_lists_are_refused():
    with pytest.raises(ValueError, match="at most 10,000"):
        CategoryValues.from_list(list(range(MOST_CATEGORIES + 1)))


# --- which columns -----------------------------------------------------------------------------------------


class Host(BaseEstimator):
    """Takes n_features_in_ and feature_names_in_, as an estimator does."""


FRAME = pd.DataFrame({"n": [1.5, 2.5], "c": pd.Categorical(["x", "y"]), "k": [3, 4]})
TABLE = read_table(Host(), FRAME, reset=True)
PLAIN = read_table(Host(), np.zeros((2, 3)), reset=True)
SPARSE = read_table(Host(), scipy.sparse.csr_array((2, 3)), reset=True)


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        (None, [1]),
        ("from_dtype", [1]),
        ("auto", [1]),
        (["k", "c"], [1, 2]),
        (("c",), [1]),
        (pd.Index(["k"]), [2]),
        ([0, 2], [0, 2]),
        (np.array([2, 2]), [2]),
        ([False, True, True], [1, 2]),
        (np.array([True, False, False]), [0]),
        ([], []),
    ],
)
def test_resolving(given, expected):
    mask = resolve_categorical(given, TABLE)
    assert mask.dtype == bool
    assert np.flatnonzero(mask).tolist() == expected


@pytest.mark.parametrize("table", [PLAIN, SPARSE], ids=["array", "sparse"])
def test_resolving_without_names(table):
    assert resolve_categorical("from_dtype", table).tolist() == [False, False, False]
    assert resolve_categorical([1], table).tolist() == [False, True, False]
    with pytest.raises(ValueError, match="names, such as 'c', but X has no column names"):
        resolve_categorical(["c"], table)


@pytest.mark.parametrize(
    ("given", "error", "words"),
    [
        ("city", ValueError, "from_dtype.*got 'city'"),
        (["c", "city"], ValueError, "holds 'city': no column of X has that name"),
        ([3], ValueError, "holds 3, but the columns of X are numbered 0 to 2"),
        ([-1], ValueError, "holds -1"),
        ([True, False], ValueError, "a mask of 2 columns, but X has 3"),
        ([True, 1, 2], TypeError, "one of these only"),
        (["c", 1], TypeError, "one of these only"),
        ([1.5], TypeError, "one of these only"),
        ([None], TypeError, "one of these only"),
        (1, TypeError, "must be a list"),
        ([[1]], TypeError, "must be a list"),
    ],
)
def test_bad_choices_are_refused(given, error, words):
    with pytest.raises(error, match=words):
        resolve_categorical(given, TABLE)


@pytest.mark.parametrize("kind", ["pandas", "polars", "pyarrow"])
def test_the_whole_way(kind):
    """From a frame to numbers, and a later frame with other categories in another order."""

    def frame(cities, numbers):
        columns = {"n": numbers, "city": pd.Categorical(cities)}
        if kind == "pandas":
            return pd.DataFrame(columns)
        if kind == "polars":
            return pl.DataFrame({"n": numbers, "city": pl.Series(cities, dtype=pl.Categorical)})
        return pa.table({"n": numbers, "city": pa.array(cities).dictionary_encode()})

    host = Host()
    table = read_table(host, frame(["Rome", "Oslo", "Rome"], [1, 2, 3]), reset=True)
    categories = learn_categories(table, resolve_categorical("from_dtype", table))
    assert {j: values.values for j, values in categories.items()} == {1: ("Oslo", "Rome")}
    numbers = table_numbers(table, category_codes(table, categories))
    np.testing.assert_array_equal(numbers, [[1, 1], [2, 0], [3, 1]])
    later = read_table(host, frame(["Lima", None, "Oslo", "Rome"], [1, 2, 3, 4]), reset=False)
    numbers = table_numbers(later, category_codes(later, categories))
    np.testing.assert_array_equal(numbers, [[1, np.nan], [2, np.nan], [3, 0], [4, 1]])


def test_auto_takes_text_of_every_kind():
    columns = {
        "n": [1.5, None, 2.0],
        "text": ["a", None, "b"],
        "same": pd.Categorical(["x", "y", "x"]),
        "k": [1, 2, 3],
        "flag": [True, False, True],
    }
    frame = pd.DataFrame(columns)
    odd = {
        "old": pd.Series(["a", None, "b"], dtype=object),
        "objects": pd.Series([1, None, 2.5], dtype=object),
    }
    for table in (frame, pl.from_pandas(frame), pa.Table.from_pandas(frame, preserve_index=False)):
        mask = resolve_categorical("auto", read_table(Host(), table, reset=True))
        assert mask.tolist() == [False, True, True, False, False]
    read = read_table(Host(), frame.assign(**odd), reset=True)
    assert resolve_categorical("auto", read).tolist() == [False, True, True, False, False, True, False]
    cells = read_table(Host(), np.array([["a", 1.5], ["b", None]], dtype=object), reset=True)
    assert resolve_categorical("auto", cells).tolist() == [True, False]
    for table in (PLAIN, SPARSE):
        assert not resolve_categorical("auto", table).any()


@pytest.mark.parametrize(
    "frame",
    [
        pd.DataFrame({"n": [1, 2], "size": pd.Categorical(["S", "L"], categories=["S", "L"], ordered=True)}),
        pa.table(
            {"n": [1, 2], "size": pa.DictionaryArray.from_arrays(pa.array([0, 1]), ["S", "L"], ordered=True)}
        ),
    ],
    ids=["pandas", "pyarrow"],
)
def test_categories_with_an_order_are_refused_unless_named(frame):
    table = read_table(Host(), frame, reset=True)
    for chosen in (None, "from_dtype", "auto"):
        with pytest.raises(ValueError, match=r"X: column 'size' holds categories with an order.*cat\.codes"):
            resolve_categorical(chosen, table)
    assert resolve_categorical(["size"], table).tolist() == [False, True]
    categories = learn_categories(table, np.array([False, True]))
    assert categories[1].values == ("L", "S")
