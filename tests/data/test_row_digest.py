"""The digest of rows is the same wherever they lie, and another one when anything of them changes."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from polyleaf.data.row_digest import add_rows

pytestmark = pytest.mark.python_only("digests are taken by NumPy")

RANDOM = np.random.default_rng(0)
TABLE = RANDOM.normal(size=(300, 4))
WHOLE = add_rows(0, TABLE)


@given(st.lists(st.integers(0, 300), max_size=5), st.randoms(use_true_random=False))
def test_rows_may_lie_anywhere(cuts, random):
    order = list(range(300))
    random.shuffle(order)
    numbers = np.array(order)
    parts = np.split(numbers, sorted(cuts))
    assert sum(add_rows(0, TABLE[part], part) for part in parts) % 2**64 == WHOLE
    total = 0
    for first, last in zip([0, *sorted(cuts)], [*sorted(cuts), 300], strict=True):
        total = add_rows(total, TABLE[first:last], first=first)
    assert total == WHOLE


def swapped(table, one, other):
    table = table.copy()
    table[one], table[other] = table[other].copy(), table[one].copy()
    return table


def negated(table, *cells):
    table = table.copy()
    for cell in cells:
        table[cell] *= -1
    return table


OTHERS = {
    "two rows are swapped": swapped(TABLE, 3, 200),
    "two columns are swapped": TABLE[:, [1, 0, 2, 3]],
    "two numbers of a row are swapped": swapped(TABLE, (7, 0), (7, 3)),
    "two numbers of a column are swapped": swapped(TABLE, (7, 0), (8, 0)),
    "a sign": negated(TABLE, (5, 1)),
    "two signs of a row": negated(TABLE, (5, 1), (5, 2)),
    "two signs of a column": negated(TABLE, (5, 1), (6, 1)),
    "all signs": -TABLE,
    "the last digit": np.where(np.arange(1200).reshape(300, 4) == 5, np.nextafter(TABLE, 9), TABLE),
    "one row less": TABLE[:-1],
    "one row more": np.vstack([TABLE, np.zeros(4)]),
    "another shape": TABLE.reshape(150, 8),
}


@pytest.mark.parametrize("what", OTHERS)
def test_what_changes_is_noticed(what):
    assert add_rows(0, OTHERS[what]) != WHOLE


@pytest.mark.parametrize("dtype", ["f2", "f4", "f8", "longdouble", "i1", "u2", "i4", "i8", "?"])
def test_all_dtypes_and_layouts(dtype):
    table = np.abs(TABLE * 9).astype(dtype)
    digest = add_rows(0, table)
    assert add_rows(0, np.asfortranarray(table)) == digest
    assert add_rows(0, table[:, 0]) == add_rows(0, table[:, :1])
    table[120, 2] = not table[120, 2]
    assert add_rows(0, table) != digest


def test_no_rows_and_no_columns():
    assert add_rows(5, TABLE[:0]) == add_rows(5, TABLE[:0, 0]) == 5
    assert add_rows(0, TABLE[:, :0]) == add_rows(0, TABLE[:, :0])


def test_no_digest_repeats():
    """Tables of few different numbers, as of codes, all have their own."""
    tables = RANDOM.integers(0, 2, size=(20_000, 4, 8))
    different = {table.tobytes() for table in tables}
    assert len({add_rows(0, table) for table in tables}) == len(different)
