"""Summaries of parts of the rows, merged, give the very bins of all rows; parts share their tiles."""

import itertools

import hypothesis.extra.numpy as hnp
import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given, settings

from polyleaf import _core
from polyleaf.data.column_summaries import ColumnSummary, laid_out, summarise_columns, table_of_summaries

pytestmark = pytest.mark.cpu_only("the bins of the core")

VALUES = st.one_of(
    st.sampled_from([0.0, -0.0, 1.0, 2.0, np.nan, 0.1, 5e-324, -1e300]),
    st.floats(-1e6, 1e6, width=32),
    st.floats(allow_infinity=False),
)


@st.composite
def cut_tables(draw):
    """A table, its weights or None, which columns are categorical, and where the rows are cut."""
    n, m = draw(st.integers(1, 40)), draw(st.integers(1, 4))
    dtype = draw(st.sampled_from([np.float64, np.float32]))
    table = draw(hnp.arrays(np.float64, (n, m), elements=VALUES))
    with np.errstate(over="ignore"):
        table = table.astype(dtype)
    table[np.isinf(table)] = 0
    categorical = draw(hnp.arrays(np.uint8, m, elements=st.integers(0, 1)))
    codes = draw(hnp.arrays(np.int8, (n, m), elements=st.integers(-1, 5)))
    table = np.where(categorical == 1, np.where(codes < 0, np.nan, codes), table).astype(dtype)
    weight = draw(st.none() | hnp.arrays(np.float64, n, elements=st.floats(1e-3, 1e3)))
    cuts = sorted(draw(st.lists(st.integers(0, n), max_size=4)))
    return table, weight, categorical, [0, *cuts, n]


def parts_of(table, weight, cuts):
    for begin, end in itertools.pairwise(cuts):
        yield np.ascontiguousarray(table[begin:end]), None if weight is None else weight[begin:end]


def merged_table(table, weight, categorical, cuts, max_bins):
    total = None if weight is None else float(weight.sum())
    summaries = [
        summarise_columns(part, None if own is None else _core.weight_units(own, total), 2)
        for part, own in parts_of(table, weight, cuts)
    ]
    columns = [ColumnSummary.merged(one) for one in zip(*summaries, strict=True)]
    return table_of_summaries(columns, max_bins, categorical)


@settings(max_examples=150, deadline=None)
@given(cut_tables(), st.sampled_from([None, 2, 3, 7, 255]))
def test_merged_summaries_give_the_cuts_of_all_rows(drawn, max_bins):
    table, weight, categorical, cuts = drawn
    whole = _core.bin_table(table, weight, max_bins, 1, categorical=categorical)
    merged = merged_table(*drawn, max_bins)
    for feature in range(whole.n_features):
        assert merged.cuts(feature).tobytes() == whole.cuts(feature).tobytes()
        assert merged.has_missing(feature) == whole.has_missing(feature)
        np.testing.assert_array_equal(merged.categories(feature), whole.categories(feature))
    counts = sum(merged.sample_counts(part, 1) for part, _ in parts_of(table, weight, cuts))
    layout = laid_out(merged, counts, len(table), 1)
    shards = [layout.bin_like(part, 1) for part, _ in parts_of(table, weight, cuts)]
    np.testing.assert_array_equal(np.concatenate([shard.codes() for shard in shards]), whole.codes())
    for name in ("tile_begin", "tile_feature", "tile_skips", "tile_frequent"):
        np.testing.assert_array_equal(_core.parts_of_table(layout)[name], _core.parts_of_table(whole)[name])
        for shard in shards:
            np.testing.assert_array_equal(
                _core.parts_of_table(shard)[name], _core.parts_of_table(whole)[name]
            )


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("max_bins", [16, 255, 65534])
def test_of_many_values(weighted, max_bins):
    """Enough of them for the sort, beside the table of few values."""
    rng = np.random.default_rng(3)
    table = np.column_stack([rng.normal(size=6000), np.round(rng.normal(size=6000), 2)])
    table[::9, 0] = np.nan
    weight = rng.gamma(1.0, size=6000) if weighted else None
    none = np.zeros(2, dtype=np.uint8)
    merged = merged_table(table, weight, none, [0, 10, 3000, 6000], max_bins)
    whole = _core.bin_table(table, weight, max_bins, 1)
    for feature in range(2):
        assert merged.cuts(feature).tobytes() == whole.cuts(feature).tobytes()


def test_counts_of_values():
    table = np.array([[2.0, np.nan], [1.0, np.nan], [2.0, np.nan], [-0.0, np.nan]])
    first, second = summarise_columns(table, None, 1)
    assert (first.values.tolist(), first.weights.tolist(), first.has_missing) == (
        [0.0, 1.0, 2.0],
        [1, 1, 2],
        False,
    )
    assert (len(second.values), second.has_missing) == (0, True)


def test_bins_know_nothing_of_other_rows():
    cuts, missing = [np.array([0.5]), np.array([1.0])], np.zeros(2, dtype=np.uint8)
    table = _core.table_of_cuts(cuts, missing, [None, np.array([0, 2], dtype=np.uint32)])
    np.testing.assert_array_equal(
        table.bin_like(np.array([[9.0, 2.0], [-9.0, 0.0]]), 1).codes(), [[1, 1], [0, 0]]
    )
    with pytest.raises(ValueError, match="column 0 holds a missing value"):
        table.bin_like(np.array([[np.nan, 0.0]]), 1)
    with pytest.raises(ValueError, match="column 1 holds a missing value or a category"):
        table.bin_like(np.array([[0.0, 1.0]]), 1)
    with pytest.raises(ValueError, match="another number of columns"):
        table.bin_like(np.zeros((3, 1)), 1)
    assert table.bin_like(np.zeros((0, 2)), 1).n_rows == 0


@pytest.mark.parametrize(
    ("values", "weights", "max_bins", "message"),
    [
        ([1.0, 1.0], [1, 1], 255, "ascend"),
        ([np.nan], [1], 255, "finite"),
        ([1.0], [0], 255, "from 1 on"),
        ([1.0, 2.0], [2**51, 2**51], 255, "2\\^52"),
        ([1.0], [1, 1], 255, "one per value"),
        ([1.0], [1], 1, "max_bins"),
        (np.arange(65536.0), np.ones(65536), None, "column 7 has 65536"),
    ],
)
def test_values_that_are_none_are_refused(values, weights, max_bins, message):
    with pytest.raises(ValueError, match=message):
        _core.cuts_of_values(np.array(values), np.array(weights, dtype=np.int64), max_bins, False, 7)


def test_values_that_are_no_categories_are_refused():
    with pytest.raises(ValueError, match="no category"):
        _core.cuts_of_values(np.array([0.5]), np.array([1]), 255, True)


def test_a_total_is_that_of_all_weights():
    weight = np.array([1.0, 3.0])
    np.testing.assert_array_equal(_core.weight_units(weight, 4.0), _core.weight_units(weight))
    assert _core.weight_units(weight, 1e6)[1] < _core.weight_units(weight)[1]
    for total, message in ((1.0, "less than"), (np.inf, "not finite"), (np.nan, "less than")):
        with pytest.raises(ValueError, match=message):
            _core.weight_units(weight, total)
    with pytest.raises(ValueError, match="less than"):
        _core.weight_units(np.array([1e308, 1e308]), 1e308)


def test_counts_fit_the_bins():
    cuts, missing = [np.array([0.5])], np.zeros(1, dtype=np.uint8)
    with pytest.raises(ValueError, match="2 in all"):
        _core.table_of_cuts(cuts, missing, None, np.array([1]))
    with pytest.raises(ValueError, match="negative"):
        _core.table_of_cuts(cuts, missing, None, np.array([1, -1]))
    with pytest.raises(ValueError, match="per feature"):
        _core.table_of_cuts(cuts, missing, [])
