"""Numbers whose every bit hangs on all bits of another, for hashes of rows."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

Words = npt.NDArray[np.uint64]

# 2^64 over the golden ratio: multiples of it are far apart.
STEP = np.uint64(0x9E3779B97F4A7C15)
# Odd numbers with about as many ones as zeros.
_FACTORS = np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB)


def mix(words: Words, shifts: tuple[int, int, int] = (30, 27, 31)) -> None:
    """Let each bit of a word change about half of its bits, in place; the usual shifts are the core's."""
    for shift, factor in zip(shifts, _FACTORS, strict=False):
        words ^= words >> np.uint64(shift)
        words *= factor
    words ^= words >> np.uint64(shifts[2])
