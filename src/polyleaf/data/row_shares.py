"""Where each row lies among all in an order of chance, which hangs on what rows hold alone."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from polyleaf.data.bit_mixing import STEP, Words, mix
from polyleaf.data.inputs import FloatArray
from polyleaf.data.sums import largest, total
from polyleaf.peers.current import current_peers
from polyleaf.peers.gather import gather_rows

Integers = npt.NDArray[np.int64]
Entries = npt.NDArray[np.void]

# What rows that differ in nothing have in common, and how many they are.
_ENTRY = np.dtype([("key", np.uint64), ("stratum", np.int64), ("weight", np.float64), ("count", np.int64)])
# Weights are counted in units of which all weight has about 2 to this power.
_TOTAL_BITS = 60
_BELOW_ONE = np.nextafter(1.0, 0.0)


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
    received = peers.all_to_all(np.split(entries, begins_of_ranks(entries["key"], peers.size)))
    del entries  # before others are here, once and in their order
    of_ranks = [np.frombuffer(part, dtype=_ENTRY) for part in received]
    here, ends = np.concatenate(of_ranks), np.cumsum([len(one) for one in of_ranks])
    del received, of_ranks
    order = np.lexsort((here["weight"], here["stratum"], here["key"]))
    here = here[order]
    found = np.empty(len(here))
    found[order] = _shares(here, least, n_parts)
    answers = peers.all_to_all(np.split(found, ends[:-1]))
    return np.concatenate([np.frombuffer(part, dtype=np.float64) for part in answers])[entry_of_row]


def _entries(
    keys: Words, weight: FloatArray | None, strata: npt.NDArray[np.integer] | None
) -> tuple[Entries, npt.NDArray[np.intp]]:
    """Return what different rows there are, by key, stratum and weight, and which of these each row is."""
    order = np.lexsort([one for one in (weight, strata, keys) if one is not None])
    rows = np.empty(len(keys), dtype=_ENTRY)
    rows["key"] = keys[order]
    rows["stratum"] = 0 if strata is None else strata[order]
    rows["weight"] = 1.0 if weight is None else weight[order]
    begins = begins_of_runs(rows, "key", "stratum", "weight")
    lengths = np.diff(begins, append=len(keys))
    entries = _some(rows, begins)
    entries["count"] = lengths
    entry_of_row = np.empty(len(keys), dtype=np.intp)
    entry_of_row[order] = np.repeat(np.arange(len(begins)), lengths)
    return entries, entry_of_row


def begins_of_ranks(keys: Words, n_ranks: int) -> npt.NDArray[np.intp]:
    """Return where the keys of each rank but the first begin, in ascending ones."""
    firsts = [(2**64 * rank + n_ranks - 1) // n_ranks for rank in range(1, n_ranks)]
    return np.searchsorted(keys, np.array(firsts, dtype=np.uint64))


def _shares(entries: Entries, least: int, n_parts: int) -> FloatArray:
    """Return the share of each entry.

    They are in the order of keys, strata and weights. Those of a key are all here, and so are those of all
    keys between two of them.
    """
    weights, strata = _units(entries)
    # Integers have one sum, in whatever order and wherever they are added.
    whole = total(weights)
    sizes = np.rint(np.ldexp(weights, _TOTAL_BITS - int(np.frexp(whole)[1]))).astype(np.int64)
    np.maximum(sizes, 1, out=sizes)  # no stratum is of no size
    most = int(_before_and_in_all(sizes.sum(keepdims=True))[1][0]) // n_parts
    light = np.flatnonzero(sizes <= most)
    order = light[np.argsort(strata[light], kind="stable")]  # by stratum, and by key within it
    n_strata = 1 + int(largest(strata, None))
    shares = np.full(len(weights), np.nan)
    shares[order] = _middles(sizes[order], strata[order], n_strata, least, n_parts)
    return np.repeat(shares, np.diff(begins_of_runs(entries, "key"), append=len(entries)))


def _units(entries: Entries) -> tuple[FloatArray, Integers]:
    """Return the weight of each key, and the stratum with most of it; of equal ones, the lowest.

    Equal weights are counted, and others added in their order, wherever they come from.
    """
    same = begins_of_runs(entries, "key", "stratum", "weight")
    counts, entries = _sums(entries["count"], same), _some(entries, same)
    cells = begins_of_runs(entries, "key", "stratum")
    weights, entries = _sums(entries["weight"] * counts, cells), _some(entries, cells)
    units = begins_of_runs(entries, "key")
    unit = np.repeat(np.arange(len(units)), np.diff(units, append=len(entries)))
    heaviest = np.lexsort((-weights, unit))[units]
    return _sums(weights, units), entries["stratum"][heaviest]


def _middles(sizes: Integers, strata: Integers, n_strata: int, least: int, n_parts: int) -> FloatArray:
    """Return the share of the weight up to the middle of each; of their number, if a part would be empty."""
    counts = np.bincount(strata, minlength=n_strata)
    first = np.cumsum(counts) - counts
    sums = np.concatenate([[0], np.cumsum(sizes)])
    weight_before, weights = _before_and_in_all(sums[first + counts] - sums[first])
    number_before, numbers = _before_and_in_all(counts)
    ends = sums[1:] - sums[first][strata] + weight_before[strata]
    middles: FloatArray = (2 * ends - sizes) / (2 * weights[strata])
    np.minimum(middles, _BELOW_ONE, out=middles)
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
    begins = np.flatnonzero(np.diff(strata, prepend=-1))
    previous = np.concatenate([[-1], parts[:-1]])[: len(parts)]
    previous[begins] = before[strata[begins]]
    return _before_and_in_all(np.bincount(strata[parts != previous], minlength=n_strata))[1]


def begins_of_runs(entries: Entries, *names: str) -> npt.NDArray[np.intp]:
    """Return where entries begin that differ from those before them in some of their fields."""
    differ = np.zeros(len(entries), dtype=bool)
    differ[:1] = True
    for name in names:
        differ[1:] |= entries[name][1:] != entries[name][:-1]
    return np.flatnonzero(differ)


def _some(entries: Entries, places: npt.NDArray[np.intp]) -> Entries:
    """Return entries at some places, ascending; no copy of all."""
    return entries if len(places) == len(entries) else entries[places]


def _sums(values: npt.NDArray[Any], begins: npt.NDArray[np.intp]) -> npt.NDArray[Any]:
    """Return the sums of values from each place up to the next."""
    return np.add.reduceat(values, begins) if len(begins) > 0 else values


def _before_and_in_all(values: Integers) -> tuple[Integers, Integers]:
    """Return the sums over the ranks before this one, and over all."""
    of_ranks = gather_rows(values[np.newaxis])
    return of_ranks[: _rank()].sum(axis=0), of_ranks.sum(axis=0)


def _rank() -> int:
    peers = current_peers()
    return 0 if peers is None else peers.rank
