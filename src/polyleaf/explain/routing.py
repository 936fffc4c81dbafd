"""Which way values go at a split."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from polyleaf.data.inputs import FloatArray
from polyleaf.model.forest import Forest


def goes_left(forest: Forest, node: int, values: FloatArray) -> npt.NDArray[np.bool_]:
    """Return which values of its feature, numbers or codes of categories, a node sends to the left."""
    missing_left = bool(forest.missing_left[node])
    begin, end = int(forest.category_begin[node]), int(forest.category_begin[node + 1])
    if begin == end:
        left: npt.NDArray[np.bool_] = values <= forest.threshold[node]
        return left | np.isnan(values) if missing_left else left
    words = forest.category_bits[begin:end].astype("<u4").view(np.uint8)
    bits = np.unpackbits(words, bitorder="little").astype(bool)
    known = (values >= 0) & (values < len(bits))  # not NaN
    inside = np.zeros(len(values), dtype=bool)
    inside[known] = bits[values[known].astype(np.intp)]
    # The set goes where missing values do not.
    return ~inside if missing_left else inside
