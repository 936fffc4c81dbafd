"""What binning on a GPU does with arrays, run with NumPy in the place of CuPy."""

import numpy as np
import pytest

from polyleaf import _core
from polyleaf.data.infinities import search_infinity
from polyleaf.gpu.binning import check_table, column_parts, distinct_values, real_type

pytestmark = pytest.mark.cpu_only("what it tests has NumPy arrays")

REALS = (np.float32, np.float64)


def expected_values(column, weight):
    """Distinct values and the weight of each together with those before it, as NumPy finds them."""
    kept = column == column
    values, place = np.unique(column[kept] + 0.0, return_inverse=True)
    return values, np.cumsum(np.bincount(place, weight[kept], minlength=len(values)))


def clumped_columns(rng, n):
    table = np.round(rng.normal(size=(n, 8)), 1)
    table[:, 1] = rng.normal(size=n)
    table[:, 2] = rng.choice([0.0, -0.0, 1.0], size=n)
    table[:, 3] = np.nan
    table[rng.random(n) < 0.5, 4] = np.nan
    table[:, 5] = np.where(rng.random(n) < 0.5, -np.nan, table[:, 5])
    table[:, 6] = 7.0
    return table


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("real", REALS)
@pytest.mark.parametrize("n", [1, 2, 5, 1000])
@pytest.mark.parametrize("order", ["C", "F"])
def test_distinct_values(order, n, real, weighted):
    """Each column's, one after the other; missing ones are left out, and the table is left as it was."""
    rng = np.random.default_rng(n)
    table = np.asarray(clumped_columns(rng, n), dtype=real, order=order)
    before = table.copy()
    units = rng.integers(1, 2**40, size=n) if weighted else None
    found = distinct_values(table, real, units, np)
    np.testing.assert_array_equal(table, before)
    assert found.value.dtype == real
    assert found.through.dtype == found.first.dtype == np.int64
    assert found.first[0] == 0
    assert found.first[-1] == len(found.value) == len(found.through)
    for j, column in enumerate(table.T):
        part = slice(found.first[j], found.first[j + 1])
        values, through = expected_values(column, np.ones(n) if units is None else units)
        assert found.value[part].tobytes() == values.astype(real).tobytes()  # zeros are positive
        np.testing.assert_array_equal(found.through[part], through)
        assert found.has_missing[j] == np.isnan(column).any()


@pytest.mark.parametrize("dtype", [np.bool_, np.int8, np.uint16, np.int32, np.uint64, np.float16])
def test_other_numbers_are_converted(dtype):
    """To what the core reads them as: cuts of bins for each value are the same."""
    table = (np.random.default_rng(0).random((300, 2)) * 100).astype(dtype)
    real = real_type(table.dtype)
    found = distinct_values(table, real, None, np)
    matrix = _core.bin_table(table.astype(real), None, 65534, 1)
    for j in range(2):
        values = found.value[found.first[j] : found.first[j + 1]].astype(np.float64)
        np.testing.assert_array_equal(matrix.cuts(j), values[:-1] / 2 + values[1:] / 2)


def test_the_smallest_type_that_holds_the_numbers():
    """As core/base/matrix_view.hpp has it."""
    narrow = (np.bool_, np.int8, np.uint8, np.int16, np.uint16, np.float16, np.float32)
    wide = (np.int32, np.uint32, np.int64, np.uint64, np.float64)
    assert all(real_type(np.dtype(dtype)) is np.float32 for dtype in narrow)
    assert all(real_type(np.dtype(dtype)) is np.float64 for dtype in wide)


@pytest.mark.parametrize("multiple", [1, 4])
@pytest.mark.parametrize("n_columns", [1, 4, 5, 37])
@pytest.mark.parametrize("memory_bytes", [0, 1, 8 * 10 * 6, 8 * 10 * 1000])
def test_parts_fit_the_memory(memory_bytes, n_columns, multiple):
    """They follow each other, fit unless one multiple does not, and begin with one."""
    parts = column_parts((10, n_columns), 8, memory_bytes, multiple)
    columns = [list(range(n_columns))[part] for part in parts]
    assert [column for here in columns for column in here] == list(range(n_columns))
    for part, here in zip(parts, columns, strict=True):
        assert here
        assert part.start % multiple == 0
        assert len(here) * 80 <= max(memory_bytes, 80 * multiple)


@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("block_cells", [1, 10, 1000])
def test_the_first_infinity_is_named(block_cells, order):
    table = np.zeros((20, 4), dtype=np.float32, order=order)
    search_infinity(table, None, "X", np, block_cells)
    table[7, 3] = np.inf
    table[8, 1] = -np.inf
    row, column, value = (7, 3, "inf") if order == "C" else (8, 1, "-inf")
    expected = (
        f"^X contains infinity or a value too large for float32: {value} in row {row}, column {column}. "
    )
    with pytest.raises(ValueError, match=expected):
        search_infinity(table, None, "X", np, block_cells)


def test_tables_that_cannot_be_binned():
    table = np.zeros((5, 2))
    check_table(table, np.ones(5), 255, "X")
    for wrong, weight, max_bins, message in (
        (table, None, 256, "max_bins"),
        (table, np.ones((5, 1)), 255, "weights"),
        (table[:0], None, 255, "shape"),
        (table.astype(str), None, 255, "dtype"),
    ):
        with pytest.raises(ValueError, match=message):
            check_table(wrong, weight, max_bins, "X")
