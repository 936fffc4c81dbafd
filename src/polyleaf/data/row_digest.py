"""A digest of rows, wherever they lie: each is hashed with its number, and the hashes are added."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from polyleaf.data.bit_mixing import STEP, Words, mix
from polyleaf.data.inputs import Array

# Of a block that stays in the cache while it is mixed.
_BLOCK_CELLS = 1 << 16
# What digests in files were made with.
_SHIFTS = (32, 29, 32)


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
        keys = np.arange(1, words.shape[1] + 1, dtype=np.uint64) * STEP
        words += keys
        mix(words, _SHIFTS)
        rows = words.sum(axis=1, dtype=np.uint64)
        end = begin + len(rows)
        which = np.arange(first + begin, first + end) if numbers is None else numbers[begin:end]
        rows += (which.astype(np.uint64) + np.uint64(1)) * STEP
        mix(rows, _SHIFTS)
        with np.errstate(over="ignore"):
            total += rows.sum(dtype=np.uint64)
    return int(total)


def _as_words(block: Array) -> Words:
    """Return a copy of the numbers' bits, one word each, or several of longer ones."""
    size = min(block.dtype.itemsize, 8)
    bits: Any = np.ascontiguousarray(block).view(f"u{size}")
    return bits.astype(np.uint64)  # type: ignore[no-any-return]
