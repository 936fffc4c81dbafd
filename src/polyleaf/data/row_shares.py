"""Where each row lies among all in an order of chance, which hangs on what rows hold alone."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from polyleaf.data.bit_mixing import STEP, Words, mix
from polyleaf.data.inputs import FloatArray
from polyleaf.data.sums import largest, total
from polyleaf.peers.current import current_peers
from polyleaf.peers.gather import gather_rows

Integers = npt.NDArray[np.int64]

# What rows that differ in nothing have in common, and how many they are.
_ENTRY = np.dtype(
    [("key", np.uint64), ("stratum", np.int64), ("weight", np.float64), ("count", np.int64)]
)
# Weights are counted in units of which all weight has about 2 to this power.
_TOTAL_BITS = 60


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
    two rows, nor how rows are cut into shards: each shard has the keys of a range of its own from all others.

    Parameters
    ----------
    keys : uint64 ndarray of shape (rows,)
        As good as drawn by chance.
    weight : float64 ndarray of shape (rows,) or None
        Of each row, above 0; None: all are 1.
    strata : int ndarray of shape (rows,) or None
        What the order is one within each of, as classes are: numbers from 0. Rows of equal keys are together
        where most of their weight is, in the lowest of several.
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
    entries, entry_of_row = _entries(keys, weight, strata)
    peers = current_peers()
    if peers is None:
        return _shares(entries, least, n_parts)[entry_of_row]
    received = peers.all_to_all(np.split(entries, _bounds(entries["key"], peers.size)))
    of_ranks = [np.frombuffer(part, dtype=_ENTRY) for part in received]
    found = _shares(np.concatenate(of_ranks), least, n_parts)
    answers = peers.all_to_all(np.split(found, np.cumsum([len(one) for one in of_ranks])[:-1]))
    return np.concatenate([np.frombuffer(part, dtype=np.float64) for part in answers])[entry_of_row]


def _entries(
    keys: Words, weight: FloatArray | None, strata: npt.NDArray[np.integer] | None
) -> tuple[npt.NDArray[np.void], npt.NDArray[np.intp]]:
    """Return what different rows there are, in the order of the keys, and which of these each row is."""
    rows = np.empty(len(keys), dtype=_ENTRY)
    rows["key"], rows["count"] = keys, 1
    rows["weight"] = 1.0 if weight is None else weight
    rows["stratum"] = 0 if strata is None else strata
    order = np.lexsort((rows["weight"], rows["stratum"], rows["key"]))
    begins = _begins(*(rows[name][order] for name in ("key", "stratum", "weight")))
    entries = rows[order[begins]]
    lengths = np.diff(begins, append=len(keys))
    entries["count"] = lengths
    entry_of_row = np.empty(len(keys), dtype=np.intp)
    entry_of_row[order] = np.repeat(np.arange(len(begins)), lengths)
    return entries, entry_of_row


def _bounds(keys: Words, n_ranks: int) -> npt.NDArray[np.intp]:
    """Return where the keys of each rank but the first begin, in ascending ones."""
    firsts = [(2**64 * rank + n_ranks - 1) // n_ranks for rank in range(1, n_ranks)]
    return np.searchsorted(keys, np.array(firsts, dtype=np.uint64))


def _shares(entries: npt.NDArray[np.void], least: int, n_parts: int) -> FloatArray:
    """Return the share of each entry; those of a key are all here, and no keys between those here elsewhere."""
    keys, unit = np.unique(entries["key"], return_inverse=True)
    _, weights = _summed(entries, unit)
    strata = _where_most_are(entries, unit)
    # Integers have one sum, in whatever order and wherever they are added.
    whole = total(weights)
    sizes = np.rint(np.ldexp(weights, _TOTAL_BITS - int(np.frexp(whole)[1]))).astype(np.int64)
    most = int(_before_and_in_all(sizes.sum(keepdims=True))[1][0]) // n_parts
    light = np.flatnonzero(sizes <= most)
    order = light[np.argsort(strata[light], kind="stable")]  # by stratum, and by key within it
    n_strata = 1 + int(largest(strata, None))
    shares = np.full(len(keys), np.nan)
    shares[order] = _middles(sizes[order], strata[order], n_strata, least, n_parts)
    return shares[unit]


def _middles(sizes: Integers, strata: Integers, n_strata: int, least: int, n_parts: int) -> FloatArray:
    """Return the share of the weight up to the middle of each; of their number, if a part would be empty."""
    counts = np.bincount(strata, minlength=n_strata)
    first = np.cumsum(counts) - counts
    sums = np.concatenate([[0], np.cumsum(sizes)])
    weight_before, weights = _before_and_in_all(sums[first + counts] - sums[first])
    number_before, numbers = _before_and_in_all(counts)
    ends = sums[1:] - sums[first][strata] + weight_before[strata]
    middles: FloatArray = (2 * ends - sizes) / (2 * weights[strata])
    places = np.arange(len(sizes)) - first[strata] + number_before[strata]
    is_full = _parts_of_all(middles, strata, n_strata, n_parts) == n_parts
    evenly = (numbers >= n_parts) & ~is_full
    middles = np.where(evenly[strata], (places + 0.5) / numbers[strata], middles)
    middles[numbers[strata] < least] = np.nan
    return middles


def _parts_of_all(middles: FloatArray, strata: Integers, n_strata: int, n_parts: int) -> Integers:
    """Return how many parts have keys of each stratum, which are ascending, and so from rank to rank."""
    parts = (middles * n_parts).astype(np.int64)
    last = np.full(n_strata, -1)
    last[strata] = parts  # of several, the last one stays
    of_ranks = gather_rows(last[np.newaxis])
    before = of_ranks[: _rank()].max(axis=0, initial=-1)
    begins = _begins(strata)
    previous = np.concatenate([[-1], parts[:-1]])[: len(parts)]
    previous[begins] = before[strata[begins]]
    return _before_and_in_all(np.bincount(strata[parts != previous], minlength=n_strata))[1]


def _where_most_are(entries: npt.NDArray[np.void], unit: npt.NDArray[np.intp]) -> Integers:
    """Return for each unit the stratum with most of its weight."""
    first, sums = _summed(entries, unit, entries["stratum"])
    units, strata = unit[first], entries["stratum"][first]
    # The last of each unit in this order is the heaviest; of equal ones the lowest.
    ranked = np.lexsort((-strata, sums, units))
    last = np.append(_begins(units[ranked])[1:], len(ranked)) - 1
    found: Integers = strata[ranked[last[: len(ranked)]]]
    return found


def _summed(
    entries: npt.NDArray[np.void], *groups: npt.NDArray[np.integer]
) -> tuple[npt.NDArray[np.intp], FloatArray]:
    """Return an entry of each group, in their order, and the weight of all of them.

    Equal weights are counted, and others added in their order, wherever they come from.
    """
    weight = entries["weight"]
    order = np.lexsort((weight, *groups[::-1]))
    same = _begins(*(group[order] for group in groups), weight[order])
    counts = np.add.reduceat(entries["count"][order], same) if len(same) else np.empty(0)
    first = order[same]
    begins = _begins(*(group[first] for group in groups))
    sums = np.add.reduceat(weight[first] * counts, begins) if len(begins) else np.empty(0)
    return first[begins], sums


def _begins(*columns: npt.NDArray[np.generic]) -> npt.NDArray[np.intp]:
    """Return where rows of columns begin that differ from those before them."""
    differ = np.zeros(len(columns[0]), dtype=bool)
    differ[:1] = True
    for column in columns:
        differ[1:] |= column[1:] != column[:-1]
    return np.flatnonzero(differ)


def _before_and_in_all(values: Integers) -> tuple[Integers, Integers]:
    """Return the sums over the ranks before this one, and over all."""
    of_ranks = gather_rows(values[np.newaxis])
    return of_ranks[: _rank()].sum(axis=0), of_ranks.sum(axis=0)


def _rank() -> int:
    peers = current_peers()
    return 0 if peers is None else peers.rank
