"""Every way the core has of finding cuts and bins gives what NumPy's sort and searchsorted give."""

import numpy as np
import pytest

from polyleaf import _core
from polyleaf.data.binning import bin_table

pytestmark = pytest.mark.cpu_only("the bins of the core")

INSTRUCTIONS = ("baseline", "avx2", "avx512")
# Numbers of bins around the limits of the ways to search: cut by cut, two groups of 16, more than 16 groups.
N_BINS = (2, 3, 16, 17, 19, 20, 21, 31, 33, 64, 255, 256, 257, 272, 300, 5000)
FLOATS = (np.float32, np.float64)
DTYPES = (np.bool_, np.int8, np.int16, np.int32, np.int64, np.uint8, np.uint16, np.uint32, np.uint64, *FLOATS)


@pytest.fixture(params=INSTRUCTIONS)
def instructions(request):
    """Run the test with the kernels of one instruction set."""
    before = _core.kernels()
    if not _core.select_kernels(request.param):
        pytest.skip(f"this machine has no {request.param}")
    yield request.param
    assert _core.select_kernels(before)


def expected_codes(table, matrix):
    """The number of cuts below a value; the code after the last bin where it is missing."""
    values = np.asarray(table, dtype=np.float64)
    codes = np.empty(values.shape, dtype=np.int64)
    for feature, column in enumerate(values.T):
        cuts = matrix.cuts(feature)
        below = np.searchsorted(cuts, column, side="left")
        codes[:, feature] = np.where(np.isnan(column), len(cuts) + 1, below)
    return codes


def hard_values(dtype, n=3000):
    """Columns at the edges of a type: limits, neighbours, zeros of both signs, denormals, many magnitudes."""
    rng = np.random.default_rng(0)
    if dtype is np.bool_:
        return rng.random((n, 3)) < (0.5, 0.01, 1.0)
    if np.issubdtype(dtype, np.integer):
        limits = np.iinfo(dtype)
        anything = rng.integers(limits.min, limits.max, size=n, dtype=dtype, endpoint=True)
        table = np.stack([anything, anything % 100, anything // 7], axis=1).astype(dtype)
        table[:2, 0] = limits.min, limits.max
        return table
    limits = np.finfo(dtype)
    tiny = limits.smallest_subnormal
    wide = np.exp(rng.normal(size=n) * np.log(limits.max) / 4)
    wide = np.clip(wide, 0, limits.max) * rng.choice([-1, 1], size=n)
    columns = [
        rng.normal(size=n),
        wide,
        tiny * rng.integers(-2000, 2000, size=n).astype(dtype),
        np.where(rng.random(n) < 0.5, 0.0, -0.0) + (rng.random(n) < 0.3) * rng.normal(size=n),
        1 + limits.eps * rng.integers(0, 3000, size=n),
        rng.choice([-limits.max, limits.min, -tiny, -0.0, 0.0, tiny, limits.tiny, 1.0, limits.max], size=n),
        np.round(rng.normal(size=n), 1),
        np.full(n, limits.max),
    ]
    table = np.stack(columns, axis=1).astype(dtype)
    missing = rng.random(table.shape) < 0.03
    missing[:, 0] = False
    table[missing] = np.nan
    return np.column_stack([table, np.full(n, np.nan, dtype=dtype)])


# --- codes -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", DTYPES)
def test_codes_count_the_cuts_below(dtype, instructions):
    """For training rows and for rows encoded later, whatever the number of cuts."""
    table = hard_values(dtype)
    for max_bins in N_BINS:
        matrix = bin_table(table, None, max_bins, 2)
        expected = expected_codes(table, matrix)
        np.testing.assert_array_equal(matrix.codes(), expected)
        np.testing.assert_array_equal(matrix.encode(table, 2), expected)


@pytest.mark.parametrize("trained", FLOATS)
@pytest.mark.parametrize("read", FLOATS)
def test_cuts_of_one_precision_bin_values_of_the_other(trained, read, instructions):
    """Cuts are float64; a float32 value on, below or above one (or infinite) is compared as float64."""
    for max_bins in (8, 255, 300):
        matrix = bin_table(hard_values(trained), None, max_bins, 1)
        columns = []
        for feature in range(matrix.n_features):
            cuts = matrix.cuts(feature)
            with np.errstate(over="ignore", under="ignore"):
                near = cuts.astype(read)
            with np.errstate(over="ignore"):
                around = [near, np.nextafter(near, read(np.inf)), np.nextafter(near, read(-np.inf))]
            column = np.concatenate([*around, np.array([np.inf, -np.inf, np.nan, 0.0, -0.0], dtype=read)])
            columns.append(np.resize(column, 1000))
        table = np.stack(columns, axis=1)
        assert table.dtype == read
        np.testing.assert_array_equal(matrix.encode(table, 1), expected_codes(table, matrix))


@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.int32, np.uint16])
def test_the_largest_number_of_bins(dtype, instructions):
    """65,535 values and the missing bin: the last code there is."""
    values = np.random.default_rng(0).permutation(65535).astype(dtype)
    for max_bins in (65534, None):
        matrix = bin_table(values[:, np.newaxis], None, max_bins, 2)
        np.testing.assert_array_equal(matrix.codes(), expected_codes(values[:, np.newaxis], matrix))
        other = np.array([[np.nan], [-1.0], [np.inf], [65533.5]])
        np.testing.assert_array_equal(matrix.encode(other, 1), expected_codes(other, matrix))


# --- memory ------------------------------------------------------------------------------------------------


def padded(table, width):
    """The same numbers, the rows `width` elements apart."""
    memory = np.zeros((len(table), width), dtype=table.dtype)
    memory[:, : table.shape[1]] = table
    return memory[:, : table.shape[1]]


LAYOUTS = {
    "rows": np.ascontiguousarray,
    "columns": np.asfortranarray,
    "rows a page apart": lambda table: padded(table, 4096 // table.itemsize),
    "every other column": lambda table: np.repeat(table, 2, axis=1)[:, ::2],
    "every other row": lambda table: np.repeat(table, 2, axis=0)[::2],
    "columns, every other row": lambda table: np.asfortranarray(np.repeat(table, 2, axis=0))[::2],
    "backwards": lambda table: table[::-1, ::-1].copy()[::-1, ::-1],
}


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.uint8, np.int64])
@pytest.mark.parametrize("shape", [(1, 1), (15, 17), (16, 16), (17, 33), (257, 5), (1000, 100), (4100, 3)])
def test_tables_of_every_shape_and_layout(shape, dtype, layout):
    """Blocks that do not fill are read as the others are."""
    table = np.random.default_rng(0).normal(60, 20, size=shape).astype(dtype)
    other = LAYOUTS[layout](table)
    np.testing.assert_array_equal(other, table)
    for max_bins in (16, 255):
        matrix = bin_table(other, None, max_bins, 2)
        for feature in range(shape[1]):
            alone = bin_table(table[:, [feature]].copy(), None, max_bins, 1)
            np.testing.assert_array_equal(matrix.cuts(feature), alone.cuts(0))
        np.testing.assert_array_equal(matrix.codes(), expected_codes(table, matrix))
        np.testing.assert_array_equal(matrix.encode(other, 2), matrix.codes())


@pytest.mark.parametrize("n_threads", [1, 2, 3, 8])
def test_a_wide_table_is_binned_column_by_column(n_threads):
    """How columns are dealt out to threads changes nothing."""
    rng = np.random.default_rng(0)
    table = rng.normal(size=(700, 2100)).astype(np.float32)
    table[:, ::3] = np.round(table[:, ::3])
    table[rng.random(table.shape) < 0.01] = np.nan
    matrix = bin_table(table, None, 32, n_threads)
    for feature in range(0, table.shape[1], 50):
        alone = bin_table(table[:, [feature]], None, 32, 1)
        np.testing.assert_array_equal(matrix.cuts(feature), alone.cuts(0))
        assert matrix.has_missing(feature) == alone.has_missing(0)
    np.testing.assert_array_equal(matrix.codes(), expected_codes(table, matrix))


# --- cuts --------------------------------------------------------------------------------------------------


def quantile_cuts(values, weight, max_bins):
    """Cuts of a column without heavy values: each bin is closed where that comes nearest to its share."""
    distinct, place = np.unique(values, return_inverse=True)
    weights = np.bincount(place, weight)
    assert weights.max() < weights.sum() / max_bins
    cuts = []
    left, filled = weights.sum(), 0.0
    for i in range(len(distinct) - 1):
        if len(cuts) == max_bins - 1:
            break
        filled += weights[i]
        target = left / (max_bins - len(cuts))
        if filled >= target or filled + weights[i + 1] / 2 > target:
            cuts.append(distinct[i] / 2 + distinct[i + 1] / 2)
            left -= filled
            filled = 0.0
    return cuts


@pytest.mark.parametrize("n", [1500, 70_000])
@pytest.mark.parametrize("weighted", [False, True])
def test_sorted_columns_are_cut_at_their_quantiles(n, weighted):
    """Sorting 32-bit keys, 64-bit keys, and float64 that holds float32 values, with and without NaN."""
    rng = np.random.default_rng(n)
    wide = rng.normal(size=n) * np.exp(rng.normal(size=n) * 3)
    narrow = wide.astype(np.float32)
    weight = rng.integers(1, 4, size=n).astype(np.float64) if weighted else None
    for values in (wide, narrow.astype(np.float64), narrow, rng.permutation(n).astype(np.int32)):
        expected = quantile_cuts(values.astype(np.float64), weight, 100)
        np.testing.assert_array_equal(bin_table(values[:, np.newaxis], weight, 100, 1).cuts(0), expected)
        if values.dtype.kind != "f":
            continue
        with_missing = np.insert(values, rng.integers(0, n, size=50), np.nan)
        all_weights = None
        if weight is not None:
            all_weights = np.full(len(with_missing), 7.0)
            all_weights[~np.isnan(with_missing)] = weight
        matrix = bin_table(with_missing[:, np.newaxis], all_weights, 100, 1)
        np.testing.assert_array_equal(matrix.cuts(0), expected)
        assert matrix.has_missing(0)
