"""Powers of two that keep gradients and leaf values of targets of any size within float32."""

from __future__ import annotations

import numpy as np

from polyleaf.data.inputs import FloatArray

# Residuals within these powers of two are kept as they are; far larger or smaller ones are expressed in a
# power of two, so that float32 gradients and leaf values hold them.
_ORDINARY_EXPONENT = 40


def units_of_residuals(least: FloatArray, most: FloatArray, base: FloatArray) -> FloatArray:
    """Return a unit near the largest residual of targets between two bounds; 1 for ordinary targets."""
    half = np.maximum(np.abs(most / 2 - base / 2), np.abs(least / 2 - base / 2))
    exponent = np.frexp(half)[1] + 1
    ordinary = (np.abs(exponent) <= _ORDINARY_EXPONENT) | (half == 0)
    return np.where(ordinary, 1.0, np.ldexp(1.0, np.clip(exponent, -1000, 1000)))


def squares_of_units(unit: FloatArray) -> FloatArray:
    """Return the gain weights of gradients in these units: their squares, as far as float64 reaches."""
    largest = unit.max()
    return np.asarray((unit / largest) ** 2 * np.clip(largest, 2.0**-300, 2.0**300) ** 2)
