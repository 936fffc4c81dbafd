"""Where each row lies among all in an order of chance, which hangs on what rows hold alone."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from polyleaf.data.bit_mixing import STEP, Words, mix
from polyleaf.data.inputs import FloatArray


def drawn_keys(hashes: Words, seed: int) -> Words:
    """Return other keys for the rows, equal where they were equal: an order for each seed."""
    with np.errstate(over="ignore"):
        keys: Words = hashes + np.uint64(seed + 1) * STEP
    mix(keys)
    return keys


def row_shares(
    keys: Words,
    weight: FloatArray | None = None,
    strata: npt.NDArray[np.integer] | None = None,
    least: int = 2,
    n_parts: int = 1,
) -> FloatArray:
    """Return for each row the share of the weight that comes before it in the order of the keys, in (0, 1).

    The rows of a share below .2 are a fifth of the weight, or nearly so: rows of equal keys have the same
    share, that of the middle of them. Neither the order of the rows matters, nor whether a row of weight 2 is
    two rows.

    Parameters
    ----------
    keys : uint64 ndarray of shape (rows,)
        As good as drawn by chance.
    weight : float64 ndarray of shape (rows,) or None
        Of each row, above 0; None: all are 1.
    strata : int ndarray of shape (rows,) or None
        What the order is one within each of, as classes are. Rows of equal keys are together where most of
        their weight is, in the lowest of several.
    least : int
        Keys that a stratum must have; rows of one with fewer have no share (NaN).
    n_parts : int
        How many parts are cut by the shares. Rows of equal keys that are more than such a part of all weight
        have no share, and are not counted. Where a part would have no rows of a stratum of enough keys, all
        keys of that stratum count as much.

    Examples
    --------
    >>> keys = np.array([30, 10, 20, 10], dtype=np.uint64)
    >>> row_shares(keys).tolist()
    [0.875, 0.25, 0.625, 0.25]
    """
    _, first, unit = np.unique(keys, return_index=True, return_inverse=True)
    own = np.ones(len(keys)) if weight is None else weight
    # Weights of a unit are added in one order, whatever that of the rows is.
    in_order = np.lexsort((own, unit))
    weights: FloatArray = np.add.reduceat(own[in_order], np.searchsorted(unit[in_order], range(len(first))))
    if strata is None:
        groups = np.zeros(len(first), dtype=np.intp)
    else:
        groups = _where_most_are(unit, np.asarray(strata), own)
    light = np.flatnonzero(weights <= weights.sum() / n_parts)
    # By group, and by key within it.
    order = light[np.argsort(groups[light], kind="stable")]
    _, begin, counts = np.unique(groups[order], return_index=True, return_counts=True)
    shares = np.full(len(first), np.nan)
    for start, count in zip(begin.tolist(), counts.tolist(), strict=True):
        if count >= least:
            members = order[start : start + count]
            shares[members] = _middles(weights[members], n_parts)
    return shares[unit]


def _middles(weights: FloatArray, n_parts: int) -> FloatArray:
    """Return the share of the weight up to the middle of each; of their number, if a part would be empty."""
    ends = np.cumsum(weights)
    middles: FloatArray = (ends - weights / 2) / ends[-1]
    if len(weights) >= n_parts and len(np.unique((middles * n_parts).astype(np.intp))) < n_parts:
        return (np.arange(len(weights)) + 0.5) / len(weights)
    return middles


def _where_most_are(
    unit: npt.NDArray[np.intp], strata: npt.NDArray[np.integer], weight: FloatArray
) -> npt.NDArray[np.intp]:
    """Return for each unit the stratum with most of its weight."""
    order = np.lexsort((strata, unit))
    units, groups = unit[order], strata[order]
    begins = np.flatnonzero(np.r_[True, (units[1:] != units[:-1]) | (groups[1:] != groups[:-1])])
    sums = np.add.reduceat(weight[order], begins)
    # The last of each unit in this order is the heaviest; of equal ones the lowest.
    ranked = np.lexsort((-groups[begins], sums, units[begins]))
    units, groups = units[begins][ranked], groups[begins][ranked]
    last = np.flatnonzero(np.r_[units[1:] != units[:-1], True])
    return groups[last].astype(np.intp)
