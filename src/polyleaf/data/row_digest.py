"""A digest of rows, wherever they lie: each is hashed with its number, and the hashes are added."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from polyleaf.data.inputs import Array

_Words = npt.NDArray[np.uint64]
# Of a block that stays in the cache while it is mixed.
_BLOCK_CELLS = 1 << 16
# Odd numbers with about as many ones as zeros; the first is 2^64 over the golden ratio.
_STEP = np.uint64(0x9E3779B97F4A7C15)
_FACTORS = np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB)


def add_rows(digest: int, values: Array, numbers: npt.NDArray[np.int64] | None = None, first: int = 0) -> int:
    """Return the digest of some rows and of these, modulo 2^64.

    Rows may come in any order and from anywhere: those of two digests are together in their sum.

    Parameters
    ----------
    digest : int
        Of the others; 0: there are none.
    values : ndarray of shape (rows,) or (rows, columns)
        Numbers of one dtype, which is that of all rows.
    numbers : int64 ndarray of shape (rows,) or None
        Of these rows among all; None: they follow each other.
    first : int
        The number of the first one, where they do.
    """
    n_rows = len(values)
    table = values.reshape(n_rows, -1) if n_rows else values.reshape(0, 1)
    step = max(1, _BLOCK_CELLS // max(1, table.shape[1]))
    total = np.uint64(digest)
    for begin in range(0, n_rows, step):
        words = _as_words(table[begin : begin + step])
        keys = np.arange(1, words.shape[1] + 1, dtype=np.uint64) * _STEP
        words += keys
        _mix(words)
        rows = words.sum(axis=1, dtype=np.uint64)
        end = begin + len(rows)
        which = np.arange(first + begin, first + end) if numbers is None else numbers[begin:end]
        rows += (which.astype(np.uint64) + np.uint64(1)) * _STEP
        _mix(rows)
        with np.errstate(over="ignore"):
            total += rows.sum(dtype=np.uint64)
    return int(total)


def _as_words(block: Array) -> _Words:
    """Return a copy of the numbers' bits, one word each, or several of longer ones."""
    size = min(block.dtype.itemsize, 8)
    bits: Any = np.ascontiguousarray(block).view(f"u{size}")
    return bits.astype(np.uint64)  # type: ignore[no-any-return]


def _mix(words: _Words) -> None:
    """Let each bit of a word change about half of its bits, in place."""
    for shift, factor in zip((32, 29), _FACTORS, strict=True):
        words ^= words >> np.uint64(shift)
        words *= factor
    words ^= words >> np.uint64(32)
