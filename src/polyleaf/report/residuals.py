"""What is left of numbers when their prediction is taken away."""

from __future__ import annotations

from typing import Any

import numpy as np

from polyleaf.data.inputs import FloatArray
from polyleaf.report.embedded import coded
from polyleaf.report.outputs import OutputRows

_N_BINS = 24


def residuals(observed: OutputRows, n_points: int, seed: int) -> dict[str, Any]:
    """Return a histogram of observed minus predicted, and some rows as points (predicted, residual).

    Parameters
    ----------
    observed : OutputRows
        Of a number.
    n_points : int
        How many points at most.
    seed : int
        For those drawn.
    """
    left = observed.truth - observed.prediction
    low, high = _ends(left)
    counts, _ = np.histogram(np.clip(left, low, high), _N_BINS, (low, high))
    rows = np.arange(len(left))
    if len(rows) > n_points:
        rows = np.sort(np.random.default_rng([seed, 2]).choice(len(rows), n_points, replace=False))
    return {
        "low": low,
        "high": high,
        "counts": counts,
        "points": [coded(observed.prediction[rows]), coded(left[rows])],
    }


def _ends(left: FloatArray) -> tuple[float, float]:
    """Return the ends of a histogram: all but a few in a thousand, which are counted at the ends."""
    low, high = np.quantile(left, [0.002, 0.998])
    if high <= low:
        low, high = float(left.min()), float(left.max())
    if high <= low:  # all the same
        wide = max(abs(float(low)), 1.0) / 2
        low, high = low - wide, high + wide
    return float(low), float(high)
