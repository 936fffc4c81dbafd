"""What another device needs of the core: cut points alone, codes in groups, weights as whole numbers."""

import numpy as np
import pytest

from polyleaf import _core

pytestmark = pytest.mark.cpu_only("the bins of the core")


def mixed_table(n=2000, m=11):
    rng = np.random.default_rng(0)
    table = rng.normal(size=(n, m))
    table[:, ::3] = np.round(table[:, ::3])
    table[rng.random(n) < 0.6, 1] = 0.0
    table[rng.random((n, m)) < 0.05] = np.nan
    table[:, 2] = np.nan
    table[:, 4] = 1.0
    return table


def parts_of(matrix):
    """What `table_of_cuts` takes."""
    features = range(matrix.n_features)
    cuts = [matrix.cuts(feature) for feature in features]
    return cuts, np.array([matrix.has_missing(feature) for feature in features], dtype=np.uint8)


# --- cut points alone --------------------------------------------------------------------------------------


@pytest.mark.parametrize("max_bins", [2, 255, 65534])
def test_a_table_of_cuts_bins_other_rows(max_bins):
    """It has no rows, and gives the rows of any table the codes of the table the cuts were taken from."""
    table = mixed_table()
    matrix = _core.bin_table(table, None, max_bins, 1)
    empty = _core.table_of_cuts(*parts_of(matrix))
    assert (empty.n_rows, empty.n_features) == (0, matrix.n_features)
    assert empty.codes().shape == (0, matrix.n_features)
    for feature in range(matrix.n_features):
        assert empty.cuts(feature).tobytes() == matrix.cuts(feature).tobytes()
        assert empty.has_missing(feature) == matrix.has_missing(feature)
        assert len(empty.categories(feature)) == 0
    np.testing.assert_array_equal(empty.encode(table, 2), matrix.codes())


@pytest.mark.parametrize(
    ("cuts", "has_missing", "message"),
    [
        ([], [], "per feature"),
        ([[0.0]], [0, 1], "per feature"),
        ([[0.0], [1.0, 1.0]], [0, 0], "ascend"),
        ([[2.0, 1.0]], [0], "ascend"),
        ([[np.nan]], [0], "finite"),
        ([[np.inf]], [0], "finite"),
        ([np.arange(65535.0)], [0], "65,534"),
    ],
)
def test_cuts_that_are_none_are_refused(cuts, has_missing, message):
    with pytest.raises(ValueError, match=message):
        _core.table_of_cuts([np.array(c) for c in cuts], np.array(has_missing, dtype=np.uint8))


# --- codes in groups ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("size", [1, 3, 4, 16])
@pytest.mark.parametrize("n_features", [1, 4, 5, 11, 100])
@pytest.mark.parametrize("n_threads", [1, 2])
def test_interleaved_codes(n_threads, n_features, size):
    """Codes of neighbouring features of a row side by side, zeros behind the last feature."""
    table = np.resize(mixed_table(), (12_000, n_features))
    matrix = _core.bin_table(table, None, 255, 1)
    groups = _core.interleaved_codes(matrix, size, n_threads)
    n_groups = -(-n_features // size)
    expected = np.zeros((len(table), n_groups * size), dtype=np.uint8)
    expected[:, :n_features] = matrix.codes()
    assert groups.dtype == np.uint8
    np.testing.assert_array_equal(groups, expected.reshape(-1, n_groups, size).transpose(1, 0, 2))


def test_codes_of_no_rows():
    matrix = _core.table_of_cuts(*parts_of(_core.bin_table(mixed_table(), None, 255, 1)))
    assert _core.interleaved_codes(matrix, 4, 1).shape == (3, 0, 4)


def test_wide_codes_do_not_fit():
    """A byte tells 256 bins apart, the missing one counted; the feature that has more is named."""
    table = np.repeat(np.arange(256.0), 2)[:, np.newaxis].repeat(3, axis=1)
    _core.interleaved_codes(_core.bin_table(table, None, 256, 1), 4, 1)
    table[0, 1] = np.nan
    with pytest.raises(ValueError, match="feature 1 has 257 bins"):
        _core.interleaved_codes(_core.bin_table(table, None, 256, 1), 4, 1)
    with pytest.raises(ValueError, match="size"):
        _core.interleaved_codes(_core.bin_table(table, None, 2, 1), 0, 1)


# --- weights as whole numbers ------------------------------------------------------------------------------


def cuts_of(column, weight, max_bins):
    return _core.bin_table(column[:, np.newaxis], weight, max_bins, 1).cuts(0)


def test_units_are_a_power_of_two():
    """Whole weights stay in proportion exactly, and all together are less than 2^52 units."""
    rng = np.random.default_rng(0)
    for n in (1, 7, 5000):
        weight = rng.integers(1, 1000, size=n).astype(np.float64)
        units = _core.weight_units(weight)
        assert units.sum() < 2**52
        assert np.log2(units[0] / weight[0]) % 1 == 0
        np.testing.assert_array_equal(units / weight, units[0] / weight[0])


def test_every_weight_is_a_unit_at_least():
    """However far weights are apart, each counts, and large ones are as exact as float64 holds them."""
    units = _core.weight_units(np.array([1e120, 1.0, 5e-324, 0.0]))
    assert units[1:].tolist() == [1, 1, 1]
    assert 2**50 <= units[0] < 2**51
    assert _core.weight_units(np.zeros(3)).tolist() == [1, 1, 1]


@pytest.mark.parametrize("wrong", [[np.inf, 1.0], [1.7e308, 1.7e308]])
def test_weights_without_a_sum_are_refused(wrong):
    with pytest.raises(ValueError, match="sum of the weights"):
        _core.weight_units(np.array(wrong))
    with pytest.raises(ValueError, match="sum of the weights"):
        _core.bin_table(np.zeros((2, 1)), np.array(wrong), 255, 1)


@pytest.mark.parametrize("constant", [0.1, 1 / 3, 1e-30, 7e50])
def test_equal_weights_are_no_weights(constant):
    """Sums of equal weights are exact, so that ties are ties."""
    rng = np.random.default_rng(0)
    for n, max_bins in ((300, 7), (1000, 64), (3000, 255), (3000, 3000)):
        for column in (rng.normal(size=n), np.round(rng.normal(size=n), 1), rng.permutation(n).astype(float)):
            expected = cuts_of(column, None, max_bins)
            np.testing.assert_array_equal(cuts_of(column, np.full(n, constant), max_bins), expected)


def test_the_order_of_rows_is_no_matter():
    """Nor of their weights: sums are exact."""
    rng = np.random.default_rng(0)
    column, weight = np.round(rng.normal(size=5000), 2), rng.random(5000)
    expected = cuts_of(column, weight, 50)
    for _ in range(5):
        order = rng.permutation(5000)
        np.testing.assert_array_equal(cuts_of(column[order], weight[order], 50), expected)


def test_values_beside_an_enormous_weight_have_bins():
    """What is left of the bins is shared out by the other weights."""
    column = np.arange(1001.0)
    weight = np.ones(1001)
    weight[500] = 1e100
    cuts = cuts_of(column, weight, 21)
    assert len(cuts) == 20
    assert {499.5, 500.5} <= set(cuts)
