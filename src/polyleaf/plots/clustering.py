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
    """Return the order of the rows by average linkage; what counts is the shape of a row, not its size.

    The branch whose rows are larger comes first. More than 5,000 rows are ordered by their sums alone.
    """
    sizes = np.abs(values).sum(axis=1)
    by_size = np.argsort(-sizes, kind="stable")
    if len(values) < 3 or len(values) > _MOST or values.shape[1] < 2:
        return by_size
    norms = np.linalg.norm(values, axis=1, keepdims=True)
    shapes = np.divide(values, norms, out=np.zeros_like(values), where=norms > 0)
    found = linkage(shapes, method="average", optimal_ordering=len(values) <= _MOST_TO_TURN)
    order = leaves_list(found).astype(np.intp)
    half = len(order) // 2
    return order if sizes[order[:half]].sum() >= sizes[order[-half:]].sum() else order[::-1]
