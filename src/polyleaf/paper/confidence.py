"""How sure it is that one method beats another, from paired results on random splits."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from scipy.stats import t


def superiority(differences: Sequence[float]) -> float:
    """Return the paper's confidence that the differences are positive.

    The difference X of two methods on a split is taken as Student's t around its mean with its own standard
    deviation, and the confidence is P(X > 0): ``t.cdf(mean / sd, n - 1)``. This is about the next split, not
    about the mean, which is why it does not approach 1 with more splits.

    Parameters
    ----------
    differences : sequence of float
        Ours minus the other's where greater is better, the other's minus ours otherwise; two at least.
    """
    values = np.asarray(differences, dtype=np.float64)
    if values.ndim != 1 or len(values) < 2:
        raise ValueError(f"a confidence needs the differences of two splits or more; got {len(values)}.")
    mean, deviation = float(values.mean()), float(values.std(ddof=1))
    if deviation == 0:
        return 0.5 if mean == 0 else float(mean > 0)
    return float(t.cdf(mean / deviation, len(values) - 1))
