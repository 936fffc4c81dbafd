"""Binning: cut points follow a column's weighted distribution, and every value finds the same bin again."""

import numpy as np
import pytest

from polyleaf.data.binning import bin_table

pytestmark = pytest.mark.cpu_only("the bins of the core")

hypothesis = pytest.importorskip("hypothesis")
st = pytest.importorskip("hypothesis.strategies")

TINY = 5e-324  # the smallest number above 0
INTEGERS = (np.int8, np.int16, np.int32, np.int64, np.uint8, np.uint16, np.uint32, np.uint64)


def cuts_of(column, max_bins=255, weight=None, n_threads=1):
    """The cut points of one column."""
    return bin_table(np.asarray(column)[:, np.newaxis], weight, max_bins, n_threads).cuts(0)


def expected_codes(table, matrix):
    """The definition: the number of cuts below a value; the code after the last bin where it is missing."""
    values = np.asarray(table, dtype=np.float64)
    codes = np.empty(values.shape, dtype=np.int64)
    for feature, column in enumerate(values.T):
        cuts = matrix.cuts(feature)
        codes[:, feature] = np.where(
            np.isnan(column), len(cuts) + 1, np.searchsorted(cuts, column, side="left")
        )
    return codes


def assert_cuts_separate(column, cuts, max_bins):
    """At most max_bins bins, none of them empty: each cut has a value at or below it and one above."""
    column = np.asarray(column, dtype=np.float64)
    distinct = np.unique(column[~np.isnan(column)])
    assert len(cuts) <= max_bins - 1
    assert len(cuts) == max(len(distinct) - 1, 0) or len(distinct) > max_bins
    above = np.searchsorted(distinct, cuts, side="right")  # of each cut, the next observed value
    assert (above > 0).all()
    assert (above < len(distinct)).all()
    assert (distinct[above - 1] <= cuts).all()
    assert (cuts < distinct[above]).all()
    assert (np.diff(above) > 0).all()


# --- cut points --------------------------------------------------------------------------------------------


def test_few_values_are_cut_at_their_midpoints():
    """A column with at most max_bins distinct values has a bin for each, bounded halfway in between."""
    column = np.array([3.0, -1.0, 3.0, 0.5, 10.0, np.nan, -1.0])
    for max_bins in (4, 5, 255, 65534):
        np.testing.assert_array_equal(cuts_of(column, max_bins), [-0.25, 1.75, 6.5])


@pytest.mark.parametrize("n_distinct", [255, 256, 257, 1024, 1025, 5000])
def test_as_many_bins_as_values_where_they_are_allowed(n_distinct):
    """The number of values, the width of a code and the way of counting them make no difference."""
    values = np.sort(np.random.default_rng(n_distinct).normal(size=n_distinct))
    column = np.random.default_rng(0).permutation(np.concatenate([values, values, [np.nan]]))
    for max_bins in (n_distinct, n_distinct + 1, 65534):
        matrix = bin_table(column[:, np.newaxis], None, max_bins, 1)
        np.testing.assert_array_equal(matrix.cuts(0), values[:-1] / 2 + values[1:] / 2)
        np.testing.assert_array_equal(
            matrix.codes()[:, 0], expected_codes(column[:, np.newaxis], matrix)[:, 0]
        )
    assert len(cuts_of(column, n_distinct - 1)) == n_distinct - 2


def random_column(rng, n):
    """Continuous, skewed, integer or clumped; some with missing values, or with heavy ones."""
    kind = rng.integers(5)
    column = rng.normal(size=n)
    if kind == 1:
        column = np.exp(5 * column)
    elif kind == 2:
        column = np.floor(rng.exponential(20, size=n))
    elif kind == 3:
        column = column.astype(np.float32).astype(np.float64)
    elif kind == 4:
        column = rng.choice(column, size=max(2, n // 3))[rng.integers(0, max(2, n // 3), size=n)]
    for _ in range(rng.integers(4)):  # heavy values
        column[rng.random(n) < rng.random() * 0.5] = rng.choice(column)
    if rng.random() < 0.4:
        column[rng.random(n) < 0.3] = np.nan
    return column


def random_weight(rng, n):
    return [None, rng.integers(1, 6, size=n).astype(np.float64), np.exp(3 * rng.normal(size=n))][
        rng.integers(3)
    ]


@pytest.mark.parametrize("seed", range(10))
def test_random_columns_get_at_most_max_bins_that_separate_values(seed):
    """No distribution, weight or limit gives a bin too many, an empty one, or a cut outside of the values."""
    rng = np.random.default_rng(seed)
    for _ in range(30):
        n = int(rng.choice([1, 2, 10, 300, 3000]))
        column, weight = random_column(rng, n), random_weight(rng, n)
        max_bins = int(rng.choice([2, 3, 7, 64, 255, 256, 1000, 65534]))
        matrix = bin_table(column[:, np.newaxis], weight, max_bins, 1)
        assert_cuts_separate(column, matrix.cuts(0), max_bins)
        assert matrix.has_missing(0) == np.isnan(column).any()
        np.testing.assert_array_equal(matrix.codes(), expected_codes(column[:, np.newaxis], matrix))


@hypothesis.settings(max_examples=300, deadline=None, derandomize=True, database=None)
@hypothesis.given(
    st.lists(st.floats(allow_infinity=False) | st.sampled_from([0.0, -0.0, 1.0, TINY, 1.7e308]), min_size=1),
    st.integers(2, 12),
)
def test_any_floats_are_separated(values, max_bins):
    """Whatever the numbers, adjacent, denormal or huge, cuts separate them and codes can be had again."""
    table = np.array(values)[:, np.newaxis]
    matrix = bin_table(table, None, max_bins, 1)
    assert_cuts_separate(table[:, 0], matrix.cuts(0), max_bins)
    np.testing.assert_array_equal(matrix.codes(), expected_codes(table, matrix))
    np.testing.assert_array_equal(matrix.encode(table, 1), matrix.codes())


def test_two_bins_are_halves():
    """The smallest limit cuts a column at its median, or beside a value that is more than half of it."""
    assert cuts_of(np.arange(1000.0), 2).tolist() == [499.5]
    heavy = np.concatenate([np.zeros(900), np.arange(1.0, 101.0)])
    assert cuts_of(heavy, 2).tolist() == [0.5]
    assert len(cuts_of(-heavy, 2)) == 1


def test_largest_limit_fills_sixteen_bits():
    """65,534 bins and the missing one have different codes, and more values than that are shared out."""
    column = np.random.default_rng(0).permutation(np.append(np.arange(70_000.0), np.nan))[:, np.newaxis]
    matrix = bin_table(column, None, 65534, 2)
    assert len(matrix.cuts(0)) == 65533
    codes = matrix.codes()
    np.testing.assert_array_equal(codes, expected_codes(column, matrix))
    assert np.unique(codes).tolist() == list(range(65535))
    np.testing.assert_array_equal(matrix.encode(column, 2), codes)


def bin_weights(column, weight, cuts):
    """Per bin: its weight and the largest weight of one value in it."""
    weight = np.ones(len(column)) if weight is None else weight
    kept = ~np.isnan(column)
    distinct, which = np.unique(column[kept], return_inverse=True)
    per_value = np.bincount(which, weights=weight[kept])
    bins = np.searchsorted(cuts, distinct, side="left")
    largest = np.zeros(len(cuts) + 1)
    np.maximum.at(largest, bins, per_value)
    return np.bincount(bins, weights=per_value, minlength=len(cuts) + 1), largest


def assert_balanced(column, weight, max_bins):
    """No bin of light values weighs more than twice its share and a value, with or without a heavy one."""
    cuts = cuts_of(column, max_bins, weight)
    total, largest = bin_weights(column, weight, cuts)
    share = total.sum() / max_bins
    light = largest < share
    assert (total[light] <= 2 * share + largest[light].max(initial=0)).all()
    assert (total[~light] - largest[~light] <= 2 * share).all()


@pytest.mark.parametrize("max_bins", [2, 5, 16, 64, 255])
def test_bins_weigh_about_the_same(max_bins):
    """Where values must share bins, none but the heavy values has much more than its share."""
    for seed in range(40):
        rng = np.random.default_rng([seed, max_bins])
        column = random_column(rng, 4000)
        weight = random_weight(rng, 4000)
        if len(np.unique(column[~np.isnan(column)])) > max_bins:
            assert_balanced(column, weight, max_bins)


def test_a_comb_of_heavy_values_leaves_balanced_bins():
    """Runs of light values between heavy ones, each half a bin, do not push the rest into a few huge bins."""
    max_bins, n_heavy, share = 255, 127, 200
    rng = np.random.default_rng(0)
    light_rows, light_bins = max_bins * share - n_heavy * (share + 2), max_bins - n_heavy
    column = [np.repeat(np.arange(float(n_heavy)), share + 2)]
    for below in range(n_heavy):
        run = int(0.51 * light_rows / light_bins) + 1
        column.append(below - 0.9 * rng.random(run))
        light_rows, light_bins = light_rows - run, light_bins - 1
    column.append(n_heavy + rng.random(light_rows))
    assert_balanced(np.concatenate(column), None, max_bins)


def test_continuous_columns_use_all_bins():
    """Distinct values of equal weight fill every bin evenly."""
    column = np.random.default_rng(0).normal(size=25_500)
    total, _ = bin_weights(column, None, cuts_of(column, 255))
    assert len(total) == 255
    assert total.min() >= 99
    assert total.max() <= 101


def test_a_heavy_value_has_a_bin_of_its_own():
    """Half of the rows being 0 does not cost the others their bins."""
    rng = np.random.default_rng(1)
    column = np.where(rng.random(20_000) < 0.5, 0.0, rng.normal(size=20_000))
    cuts = cuts_of(column, 33)
    assert len(cuts) == 32
    codes = np.searchsorted(cuts, column, side="left")
    (zero,) = set(codes[column == 0])
    assert (column[codes == zero] == 0).mean() > 0.99


def test_an_integer_weight_is_that_many_rows():
    """Cut points come from the weighted distribution."""
    for seed in range(30):
        rng = np.random.default_rng(seed)
        n, max_bins = int(rng.choice([50, 3000])), int(rng.choice([2, 8, 31, 255]))
        column, weight = random_column(rng, n), rng.integers(1, 6, size=n)
        weighted = cuts_of(column, max_bins, weight.astype(np.float64))
        repeated = cuts_of(np.repeat(column, weight), max_bins)
        np.testing.assert_array_equal(weighted, repeated)


def test_weights_move_the_cuts():
    """The heavier half of a column gets more of the bins."""
    column = np.arange(1000.0)
    weight = np.where(column < 500, 9.0, 1.0)
    cuts = cuts_of(column, 20, weight)
    assert (cuts < 500).sum() in (17, 18)


# --- special columns ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("value", [0.0, -0.0, -3.5, TINY, 1.7e308])
def test_constant_column_has_one_bin(value):
    matrix = bin_table(np.full((9, 1), value), None, 255, 1)
    assert matrix.cuts(0).size == 0
    assert not matrix.has_missing(0)
    assert not matrix.codes().any()


def test_missing_values_have_the_code_after_the_last_bin():
    """Also in a column that had none, or nothing else, when it was cut."""
    nan = np.nan
    table = np.array([[nan, 1.0, nan], [nan, 2.0, 5.0], [nan, 3.0, 5.0]])
    matrix = bin_table(table, None, 255, 1)
    assert [matrix.cuts(k).tolist() for k in range(3)] == [[], [1.5, 2.5], []]
    assert [matrix.has_missing(k) for k in range(3)] == [True, False, True]
    assert matrix.codes().tolist() == [[1, 0, 1], [1, 1, 0], [1, 2, 0]]
    assert matrix.encode(np.array([[7.0, nan, 7.0], [nan, nan, nan]]), 1).tolist() == [[0, 3, 0], [1, 3, 1]]


@pytest.mark.parametrize("n_zeros", [2, 2000])
def test_both_zeros_are_one_value(n_zeros):
    """-0.0 equals 0.0, in a column of few values and in one of many."""
    others = np.random.default_rng(0).permutation(np.arange(1.0, n_zeros + 1))
    column = np.concatenate([np.tile([0.0, -0.0], n_zeros), others, -others])
    matrix = bin_table(column[:, np.newaxis], None, 65534, 1)
    assert_cuts_separate(column, matrix.cuts(0), 65534)
    assert len(set(matrix.codes()[column == 0, 0])) == 1


@pytest.mark.parametrize("start", [1.0, -1.0, TINY, -2 * TINY, 1.7e308, 2.0**53, 1e-308])
def test_adjacent_floats_are_told_apart(start):
    """Even where there is no number in between."""
    values = [start]
    for _ in range(3):
        values.append(np.nextafter(values[-1], np.inf))
    table = np.array(values)[::-1, np.newaxis]
    matrix = bin_table(table, None, 255, 1)
    assert_cuts_separate(table[:, 0], matrix.cuts(0), 255)
    assert matrix.codes()[:, 0].tolist() == [3, 2, 1, 0]


def test_the_largest_numbers_do_not_overflow():
    column = np.array([-1.7e308, -1e308, 0.0, 1e308, 1.7e308])
    cuts = cuts_of(column)
    assert np.isfinite(cuts).all()
    assert_cuts_separate(column, cuts, 255)
    np.testing.assert_allclose(cuts, [-1.35e308, -5e307, 5e307, 1.35e308])


def test_integers_beyond_float64_are_read_as_float64():
    """Neighbours that float64 cannot tell apart share a bin; those it can have their own."""
    column = np.array([2**53, 2**53 + 1, 2**53 + 2, 2**62, -(2**63), 2**63 - 1], dtype=np.int64)[
        :, np.newaxis
    ]
    matrix = bin_table(column, None, 255, 1)
    assert_cuts_separate(column[:, 0], matrix.cuts(0), 255)
    np.testing.assert_array_equal(matrix.codes(), expected_codes(column, matrix))
    assert len(set(matrix.codes()[:, 0])) == len(np.unique(column.astype(np.float64)))
    large = np.array([0, 2**63, 2**64 - 1], dtype=np.uint64)[:, np.newaxis]
    assert bin_table(large, None, 255, 1).codes()[:, 0].tolist() == [0, 1, 2]


# --- arrays of every kind ----------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", [np.bool_, *INTEGERS, np.float32, np.float64])
def test_every_dtype_is_binned_as_its_values(dtype):
    """The type a number is stored in does not matter."""
    rng = np.random.default_rng(0)
    whole = rng.integers(0, 2 if dtype is np.bool_ else 120, size=(500, 4))
    whole[:, 3] = whole[:, 3] > 60
    table, reference = whole.astype(dtype), whole.astype(np.float64)
    for max_bins in (2, 16, 255):
        expected = bin_table(reference, None, max_bins, 1)
        matrix = bin_table(table, None, max_bins, 1)
        for feature in range(4):
            np.testing.assert_array_equal(matrix.cuts(feature), expected.cuts(feature))
        np.testing.assert_array_equal(matrix.codes(), expected.codes())
        np.testing.assert_array_equal(matrix.encode(table, 1), expected.codes())
        np.testing.assert_array_equal(expected.encode(table, 1), expected.codes())


@pytest.mark.parametrize("dtype", [np.int8, np.int16, np.int32, np.int64])
def test_extremes_of_signed_integers(dtype):
    limits = np.iinfo(dtype)
    table = np.array([limits.min, -1, 0, 1, limits.max], dtype=dtype)[:, np.newaxis]
    assert bin_table(table, None, 255, 1).codes()[:, 0].tolist() == [0, 1, 2, 3, 4]


def test_float32_values_keep_their_bins_as_float64():
    """A table may be trained in one precision and read in the other, as long as the numbers are the same."""
    single = np.random.default_rng(0).normal(size=(3000, 2)).astype(np.float32)
    single[::7, 1] = np.nan
    matrix = bin_table(single, None, 64, 1)
    np.testing.assert_array_equal(matrix.encode(single.astype(np.float64), 1), matrix.codes())


def read_only(table):
    table = table.copy()
    table.flags.writeable = False
    return table


def unaligned(table):
    memory = np.empty(table.nbytes + 1, dtype=np.uint8)
    shifted = memory[1:].view(table.dtype).reshape(table.shape)
    shifted[:] = table
    assert not shifted.flags.aligned
    return shifted


def between_others(table):
    wide = np.zeros((2 * len(table), 3 * table.shape[1] + 1), dtype=table.dtype)
    view = wide[1::2, 1::3]
    view[:] = table
    return view


def backwards(table):
    return table[::-1, ::-1].copy()[::-1, ::-1]


LAYOUTS = {
    "fortran": np.asfortranarray,
    "read-only": read_only,
    "unaligned": unaligned,
    "strided": between_others,
    "negative strides": backwards,
    "transposed": lambda table: table.T.copy().T,
}


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.int16])
def test_every_memory_layout_is_read_in_place(layout, dtype):
    """Order, gaps, direction, alignment and permissions of the memory change nothing."""
    rng = np.random.default_rng(0)
    table = (100 * rng.normal(size=(1500, 5))).astype(dtype)
    if dtype is not np.int16:
        table[rng.random(table.shape) < 0.1] = np.nan
    expected = bin_table(table, None, 31, 1)
    other = LAYOUTS[layout](table)
    matrix = bin_table(other, None, 31, 2)
    for feature in range(5):
        np.testing.assert_array_equal(matrix.cuts(feature), expected.cuts(feature))
    np.testing.assert_array_equal(matrix.codes(), expected.codes())
    np.testing.assert_array_equal(expected.encode(other, 1), expected.codes())


def test_repeated_memory_is_read_in_place():
    """A stride of 0 is a table like any other."""
    column = np.random.default_rng(0).normal(size=(200, 1))
    matrix = bin_table(np.broadcast_to(column, (200, 3)), None, 16, 1)
    alone = bin_table(column, None, 16, 1)
    np.testing.assert_array_equal(matrix.codes(), np.repeat(alone.codes(), 3, axis=1))


def test_a_file_is_read_without_being_loaded(tmp_path):
    """A read-only memory map, whole or strided, is binned as it lies."""
    table = np.random.default_rng(0).normal(size=(5000, 6)).astype(np.float32)
    table.tofile(tmp_path / "table")
    mapped = np.memmap(tmp_path / "table", dtype=np.float32, mode="r", shape=table.shape)
    for view, same in ((mapped, table), (mapped[::3, 1::2], table[::3, 1::2])):
        matrix = bin_table(view, None, 64, 2)
        np.testing.assert_array_equal(matrix.codes(), bin_table(same, None, 64, 1).codes())
        np.testing.assert_array_equal(matrix.encode(view, 2), matrix.codes())


# --- codes -------------------------------------------------------------------------------------------------


def mixed_table(n):
    """Continuous, integer, mostly-zero, constant, missing and many-valued columns beside each other."""
    rng = np.random.default_rng(n)
    table = rng.normal(size=(n, 12))
    table[:, 1] = rng.integers(0, 5, size=n)
    table[:, 2] *= rng.random(n) < 0.1
    table[:, 3] = 7.0
    table[:, 4] = np.nan
    table[rng.random(n) < 0.8, 5] = np.nan
    table[:, 6] = rng.integers(0, 100_000, size=n)
    table[:, 7] = rng.random(n) < 0.5
    return table


@pytest.mark.parametrize("max_bins", [2, 31, 255, 300, 65534])
def test_new_rows_are_binned_as_the_training_rows(max_bins):
    """Training codes, codes of the same rows and of others all follow the cut points, to the bit."""
    table, other = mixed_table(3000), mixed_table(999)
    matrix = bin_table(table, None, max_bins, 1)
    codes = matrix.codes()
    assert codes.dtype == np.uint16
    assert codes.shape == (matrix.n_rows, matrix.n_features) == table.shape
    np.testing.assert_array_equal(codes, expected_codes(table, matrix))
    np.testing.assert_array_equal(matrix.encode(table, 1), codes)
    np.testing.assert_array_equal(matrix.encode(other, 1), expected_codes(other, matrix))
    # On a cut, and beside it: a cut belongs to the bin below.
    cuts = matrix.cuts(0)
    at = np.zeros((len(cuts), 12))
    for shift, code in ((-np.inf, 0), (0.0, 0), (np.inf, 1)):
        at[:, 0] = np.nextafter(cuts, shift) if shift else cuts
        np.testing.assert_array_equal(matrix.encode(at, 1)[:, 0], np.arange(len(cuts)) + code)


@pytest.mark.parametrize("weighted", [False, True])
def test_threads_change_nothing(weighted):
    table = mixed_table(10_000)
    weight = np.exp(np.random.default_rng(0).normal(size=len(table))) if weighted else None
    one, four = (bin_table(table, weight, 300, n_threads) for n_threads in (1, 4))
    for feature in range(table.shape[1]):
        np.testing.assert_array_equal(one.cuts(feature), four.cuts(feature))
        assert one.has_missing(feature) == four.has_missing(feature)
    np.testing.assert_array_equal(one.codes(), four.codes())
    np.testing.assert_array_equal(one.encode(table, 4), one.codes())


@pytest.mark.parametrize(
    ("table", "weight", "max_bins"),
    [
        (np.zeros((3, 2)), None, 1),
        (np.zeros((3, 2)), None, 65535),
        (np.zeros((3, 2)), np.ones(2), 255),
        (np.zeros((0, 2)), None, 255),
        (np.zeros((3, 0)), None, 255),
        (np.zeros(3), None, 255),
        (np.zeros((3, 2), dtype=np.complex128), None, 255),
    ],
)
def test_the_core_refuses_what_it_cannot_read(table, weight, max_bins):
    """Arguments that would lead astray are refused even where the estimators' checks are bypassed."""
    with pytest.raises((ValueError, TypeError)):
        bin_table(table, weight, max_bins, 1)


def test_other_rows_need_the_same_columns():
    matrix = bin_table(np.zeros((3, 2)), None, 255, 1)
    with pytest.raises(ValueError, match="number of columns"):
        matrix.encode(np.zeros((3, 3)), 1)
    with pytest.raises(ValueError, match="feature"):
        matrix.cuts(2)


# --- combinations of features -------------------------------------------------------------------------


def few_values(n=20_000, n_features=6, n_values=8, share_of_zero=0.0, alike=False):
    """With `alike` the same rows are 0 in all columns, else each column has its own."""
    rng = np.random.default_rng(0)
    X = rng.integers(0, n_values, (n, n_features)).astype(np.float32)
    X[np.broadcast_to(rng.random((n, 1 if alike else n_features)) < share_of_zero, X.shape)] = 0
    return X


@pytest.mark.parametrize("share_of_zero", [0.0, 0.8])
def test_neighbours_of_few_bins_are_combined(share_of_zero):
    X = few_values(share_of_zero=share_of_zero, alike=True)
    assert bin_table(X, None, 255, 1).feature_combinations().tolist() == [0, 0, 1, 1, 2, 2]


def test_as_many_features_are_combined_as_have_256_combinations_of_bins():
    assert np.bincount(
        bin_table(few_values(n_values=2, n_features=20), None, 255, 1).feature_combinations()
    ).tolist() == [
        8,
        8,
        4,
    ]


def test_a_feature_of_many_bins_is_combined_with_none():
    X = few_values()
    X[:, 2] = np.random.default_rng(1).normal(size=len(X))
    assert bin_table(X, None, 255, 1).feature_combinations().tolist() == [0, 0, 1, 2, 2, 3]


@pytest.mark.parametrize(
    "X",
    [few_values(n=200), few_values(share_of_zero=0.97), few_values(n_values=100)],
    ids=["few rows", "rare", "many"],
)
def test_combinations_that_save_nothing_are_none(X):
    assert (bin_table(X, None, 255, 1).feature_combinations() == -1).all()


def test_combinations_depend_neither_on_threads_nor_on_the_rows_taken():
    X = few_values(share_of_zero=0.5, alike=True)
    matrix = bin_table(X, None, 255, 1)
    two = bin_table(X, None, 255, 2)
    np.testing.assert_array_equal(two.feature_combinations(), matrix.feature_combinations())
    taken = matrix.take(np.arange(0, 300, dtype=np.uint32), 1)
    np.testing.assert_array_equal(taken.feature_combinations(), matrix.feature_combinations())
