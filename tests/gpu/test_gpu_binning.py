"""A table that is binned on the GPU has the cut points and codes that the CPU gives it, bit for bit."""

import numpy as np
import pytest

from polyleaf import _core
from polyleaf.gpu.binning import bin_on_device

pytestmark = pytest.mark.usefixtures("cupy")

DTYPES = (np.bool_, np.int8, np.int16, np.int32, np.int64, np.uint8, np.uint16, np.uint32, np.uint64)
FLOATS = (np.float32, np.float64)
# NaN with the sign set, as x86 makes it of 0 / 0.
NEGATIVE_NAN = np.copysign(np.nan, -1.0)


def assert_as_on_the_cpu(cupy, table, weight=None, max_bins=255, **options):
    """Bin on both and compare cuts, missing bins, and codes; the table is left as it was."""
    X = cupy.asarray(table)
    codes, matrix = bin_on_device(X, weight, max_bins, **options)
    expected = _core.bin_table(table, None if weight is None else np.asarray(weight), max_bins, 2)
    n_rows, n_features = table.shape
    assert (matrix.n_rows, matrix.n_features) == (0, n_features)
    for feature in range(n_features):
        assert matrix.cuts(feature).tobytes() == expected.cuts(feature).tobytes()
        assert matrix.has_missing(feature) == expected.has_missing(feature)
    assert codes.shape == (-(-n_features // 4), n_rows, 4)
    assert codes.dtype == np.uint8
    np.testing.assert_array_equal(cupy.asnumpy(codes), _core.interleaved_codes(expected, 4, 2))
    np.testing.assert_array_equal(cupy.asnumpy(X), table)
    return codes, matrix


def clumped_table(rng, n, m, dtype=np.float64):
    """Columns of all kinds: continuous, skewed, whole numbers, few values, heavy ones, constant, missing."""
    table = rng.normal(size=(n, m))
    for feature in range(m):
        kind = rng.integers(7)
        if kind == 1:
            table[:, feature] = np.exp(5 * table[:, feature])
        elif kind == 2:
            table[:, feature] = np.floor(rng.exponential(20, size=n))
        elif kind == 3:
            table[:, feature] = rng.choice(table[:, feature], size=n)
        elif kind == 4:
            table[:, feature] = np.round(table[:, feature], rng.integers(3))
        elif kind == 5:
            table[:, feature] = rng.normal()
        for _ in range(rng.integers(5)):
            table[rng.random(n) < rng.random() * 0.4, feature] = rng.choice(table[:, feature])
        if rng.random() < 0.4:
            table[rng.random(n) < rng.random(), feature] = rng.choice([np.nan, NEGATIVE_NAN])
    return table.astype(dtype)


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("max_bins", [2, 3, 16, 64, 254, 255])
@pytest.mark.parametrize("seed", range(3))
def test_random_tables(cupy, seed, max_bins, dtype):
    """Ties, heavy values, few values and missing ones."""
    rng = np.random.default_rng(seed)
    for n, m in ((1, 3), (2, 1), (30, 5), (300, 4), (3000, 21), (20_000, 6)):
        assert_as_on_the_cpu(cupy, clumped_table(rng, n, m, dtype), max_bins=max_bins)


@pytest.mark.parametrize("n_features", [1, 3, 4, 5, 15, 16, 17, 33])
def test_quads_that_do_not_fill(cupy, n_features):
    """The last quad has zeros where it has no feature, and blocks of features may be cut short."""
    table = np.random.default_rng(n_features).normal(size=(700, n_features)).astype(np.float32)
    codes, _ = assert_as_on_the_cpu(cupy, table)
    assert not codes[-1, :, (n_features - 1) % 4 + 1 :].any()


@pytest.mark.parametrize("dtype", FLOATS)
def test_odd_columns(cupy, dtype):
    """Constant, all missing, zeros of both signs, limits of the type, neighbouring and denormal numbers."""
    rng = np.random.default_rng(0)
    n = 3000
    limits = np.finfo(dtype)
    columns = [
        np.full(n, 3.5),
        np.full(n, np.nan),
        np.full(n, NEGATIVE_NAN),
        np.where(rng.random(n) < 0.5, NEGATIVE_NAN, np.nan),
        np.where(np.arange(n) == 7, 1.0, np.nan),
        rng.choice([0.0, -0.0], size=n),
        np.where(rng.random(n) < 0.5, 0.0, -0.0) + (rng.random(n) < 0.3) * rng.normal(size=n),
        rng.choice([-limits.smallest_subnormal, 0.0, -0.0, limits.smallest_subnormal], size=n),
        1 + limits.eps * rng.integers(0, 3000, size=n),
        limits.smallest_subnormal * rng.integers(-2000, 2000, size=n),
        rng.choice([-limits.max, limits.min, -1.0, 0.0, limits.tiny, limits.max], size=n),
        np.where(rng.random(n) < 0.5, NEGATIVE_NAN, rng.normal(size=n)),
    ]
    table = np.stack(columns, axis=1).astype(dtype)
    for max_bins in (2, 17, 255):
        assert_as_on_the_cpu(cupy, table, max_bins=max_bins)


@pytest.mark.parametrize("dtype", DTYPES)
def test_integers_and_bool(cupy, dtype):
    """They are read as the CPU reads them, also where float64 does not hold them exactly."""
    rng = np.random.default_rng(0)
    if dtype is np.bool_:
        table = rng.random((2000, 6)) < (0.5, 0.01, 1.0, 0.0, 0.9, 0.3)
    else:
        limits = np.iinfo(dtype)
        anything = rng.integers(limits.min, limits.max, size=(2000, 6), dtype=dtype, endpoint=True)
        table = anything // np.array([1, 3, 7, 50, 100, 1], dtype=dtype)
        table[:2, 0] = limits.min, limits.max
    for options in ({}, {"memory_bytes": 1}):
        assert_as_on_the_cpu(cupy, table, **options)
        assert_as_on_the_cpu(cupy, np.asfortranarray(table), max_bins=20, **options)


def test_half_precision_is_read_as_float32(cupy):
    table = np.random.default_rng(0).normal(size=(500, 3)).astype(np.float16)
    codes, matrix = bin_on_device(cupy.asarray(table), None, 100)
    expected = _core.bin_table(table.astype(np.float32), None, 100, 1)
    assert all(matrix.cuts(j).tobytes() == expected.cuts(j).tobytes() for j in range(3))
    np.testing.assert_array_equal(cupy.asnumpy(codes), _core.interleaved_codes(expected, 4, 1))


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.uint8])
def test_every_order_of_memory(cupy, dtype):
    """Rows or columns side by side, or parts of a larger table, from either end."""
    table = np.random.default_rng(0).normal(100, 20, size=(2500, 19)).astype(dtype)
    expected, _ = assert_as_on_the_cpu(cupy, table)
    assert_as_on_the_cpu(cupy, np.asfortranarray(table))
    wide = cupy.zeros((5000, 40), dtype=dtype)
    for view in (wide[::2, 1:20], wide[:2500, ::-2][:, :19], wide[4999:2499:-1, :19], wide.T[:19, :2500].T):
        view[...] = cupy.asarray(table)
        codes, _ = bin_on_device(view, None, 255)
        assert (codes == expected).all()
        np.testing.assert_array_equal(cupy.asnumpy(view), table)


@pytest.mark.parametrize("memory_bytes", [1, 100_000, 1_000_000, 1 << 34])
def test_memory_changes_nothing(cupy, memory_bytes):
    """How many columns are sorted at a time is no matter."""
    table = clumped_table(np.random.default_rng(5), 1000, 37, np.float32)
    assert_as_on_the_cpu(cupy, table, memory_bytes=memory_bytes)
    weight = np.random.default_rng(6).random(1000)
    assert_as_on_the_cpu(cupy, table, weight, memory_bytes=memory_bytes)


def test_many_distinct_values(cupy):
    rng = np.random.default_rng(0)
    table = rng.normal(size=(300_000, 9))
    table[:, 1::3] = np.round(table[:, 1::3], 3)
    assert_as_on_the_cpu(cupy, table.astype(np.float32))
    assert_as_on_the_cpu(cupy, np.asfortranarray(table))


@pytest.mark.parametrize("seed", range(3))
def test_weights(cupy, seed):
    """Of NumPy or CuPy; very different ones; whole ones; all the same."""
    rng = np.random.default_rng(seed)
    table = clumped_table(rng, 2000, 9)
    for weight in (
        rng.random(2000),
        np.exp(20 * rng.normal(size=2000)),
        rng.integers(1, 5, size=2000).astype(np.float64),
        np.full(2000, 0.1),
    ):
        for max_bins in (2, 31, 255):
            codes, _ = assert_as_on_the_cpu(cupy, table, weight, max_bins)
            again, _ = bin_on_device(cupy.asarray(table), cupy.asarray(weight), max_bins)
            assert (codes == again).all()


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("order", ["C", "F"])
def test_infinities_are_refused(cupy, dtype, order):
    """With the words of the CPU, and the first one named."""
    table = np.zeros((50, 7), dtype=dtype, order=order)
    table[30, 5] = -np.inf
    table[40, 2] = np.inf
    row, column, value = (30, 5, "-inf") if order == "C" else (40, 2, "inf")
    kind = np.dtype(dtype).name
    message = f"^X contains infinity or a value too large for {kind}: {value} in row {row}, column {column}. "
    for memory_bytes in (1, 1 << 30):
        with pytest.raises(ValueError, match=message):
            bin_on_device(cupy.asarray(table), None, 255, memory_bytes=memory_bytes)
    with pytest.raises(ValueError, match=rf"eval.*row {row}, column 'c{column}'"):
        bin_on_device(cupy.asarray(table), None, 255, name="eval", labels=[f"c{j}" for j in range(7)])


def test_what_cannot_be_binned_is_refused(cupy):
    table = cupy.zeros((5, 2))
    for wrong, weight, max_bins, message in (
        (table, None, 1, "max_bins"),
        (table, None, 256, "max_bins"),
        (table, np.ones(4), 255, "weights"),
        (table[:0], None, 255, "shape"),
        (table[:, :0], None, 255, "shape"),
        (table[:, 0], None, 255, "shape"),
        (table.astype(np.complex64), None, 255, "complex64"),
    ):
        with pytest.raises(ValueError, match=message):
            bin_on_device(wrong, weight, max_bins)
