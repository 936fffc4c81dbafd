"""An order of rows in which those that are alike are neighbours."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from scipy.cluster.hierarchy import leaves_list, linkage

from polyleaf.data.inputs import FloatArray

# Up to so many rows the branches are turned so that neighbours are most alike, which takes cubic time.
_MOST_TO_TURN = 400
# Beyond it, distances of all pairs take too much memory.
_MOST = 5000


def clustered(values: FloatArray) -> npt.NDArray[np.intp]:
    """Return the order of the rows by average linkage: what counts is their shape, and less so their size.

    The side whose rows are larger comes first, rows of zeros come last. More than 5,000 rows are ordered by
    their sums alone.
    """
    sizes = np.abs(values).sum(axis=1)
    by_size = np.argsort(-sizes, kind="stable")
    some = np.flatnonzero(sizes > 0)
    if len(some) < 3 or len(some) > _MOST or values.shape[1] < 2:
        return by_size
    # Halfway between rows as they are, and rows of length 1: small ones are near each other, too.
    shapes = values[some] / np.sqrt(np.linalg.norm(values[some], axis=1, keepdims=True))
    found = linkage(shapes, method="average", optimal_ordering=len(some) <= _MOST_TO_TURN)
    order = some[leaves_list(found)]
    half = len(order) // 2
    if sizes[order[:half]].sum() < sizes[order[-half:]].sum():
        order = order[::-1]
    return np.concatenate([order, np.flatnonzero(sizes == 0)])
