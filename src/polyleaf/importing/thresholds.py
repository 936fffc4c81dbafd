"""A rule of float32 as one of float64: which doubles become, rounded to float32, less than a threshold."""

from __future__ import annotations

import numpy as np

from polyleaf.data.inputs import FloatArray

# Halfway from the largest float32 to the next power of two: from here on a double rounds to infinity.
_BEYOND = 2.0**128 - 2.0**103


def largest_below(threshold: FloatArray) -> FloatArray:
    """Return, for float32 thresholds t, the largest double x of which ``float32(x) < t`` holds.

    XGBoost rounds a table to float32, to the nearest and of two to the even one, and sends a cell left if it
    is then less than the threshold. Rounding keeps order, so that the doubles that go left are all up to some
    double: the middle between t and the float32 before it, or, where the middle itself rounds to t, the
    double before that. With this threshold the rule ``x <= threshold`` routes every double as XGBoost does.
    """
    t = threshold.astype(np.float32)
    with np.errstate(over="ignore"):
        before = np.nextafter(t, np.float32(-np.inf), dtype=np.float32).astype(np.float64)
        middle = np.where(np.isinf(before), -_BEYOND, before / 2 + threshold / 2)
        goes_left = middle.astype(np.float32) < t
    return np.where(goes_left, middle, np.nextafter(middle, -np.inf))
