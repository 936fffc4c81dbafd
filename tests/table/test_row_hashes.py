"""Hashes of binned rows: equal for equal rows, and for nothing else."""

from __future__ import annotations

import numpy as np
import pytest

from polyleaf import _core

pytestmark = pytest.mark.cpu_only("a function of the core")


@pytest.mark.parametrize("shape", [(50, 3), (3000, 500)])  # on both sides of what is worth two threads
def test_hashes_are_those_of_the_codes(shape: tuple[int, int]) -> None:
    rng = np.random.default_rng(0)
    table = rng.integers(0, 3, size=shape).astype(float)
    table[rng.random(shape) < 0.1] = np.nan
    table[:, -1] = np.arange(shape[0]) % 400  # wide codes
    table[7] = table[3]
    matrix = _core.bin_table(table, None, None, 1)
    hashes = matrix.row_hashes(1)
    codes, numbers = np.unique(matrix.codes(), axis=0, return_inverse=True)
    assert len(np.unique(hashes)) == len(codes)
    assert len(np.unique(np.column_stack([numbers, hashes]), axis=0)) == len(codes)
    assert np.array_equal(hashes, matrix.row_hashes(2))
    order = rng.permutation(shape[0]).astype(np.uint32)
    assert np.array_equal(matrix.take(order, 1).row_hashes(1), hashes[order])


def test_bits_are_as_good_as_drawn() -> None:
    matrix = _core.bin_table(np.arange(4096.0)[:, None] * np.ones(2), None, None, 1)
    bits = np.unpackbits(matrix.row_hashes(1).view(np.uint8)).reshape(4096, 64)
    assert np.abs(bits.mean(axis=0) - 0.5).max() < 5 * 0.5 / 64  # five deviations of a mean of 4,096


def test_columns_that_change_places() -> None:
    rows = np.array([[0.0, 1.0], [1.0, 0.0]])
    first, second = _core.bin_table(rows, None, None, 1).row_hashes(1)
    assert first != second
