"""What rows hold, as one number for each: equal rows are drawn together, and held out together."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.sparse import csr_array, issparse

from polyleaf._core import BinnedMatrix
from polyleaf.data.bit_mixing import STEP, Words, mix
from polyleaf.data.inputs import FloatArray
from polyleaf.data.row_shares import begins_of_ranks, begins_of_runs
from polyleaf.data.sums import largest
from polyleaf.peers.current import current_peers

# What equal rows have in common, and how many they are.
_ENTRY = np.dtype(
    [("features", np.uint64), ("targets", np.uint64), ("weight", np.float64), ("count", np.int64)]
)
# Of equal rows: whether their features have other targets, too, and their first number, if each has its own.
_PLACE = np.dtype([("beside_others", bool), ("first", np.int64)])
_TOGETHER = -1
# So many equal rows are no copies of one row, but what a table of few kinds of rows has.
_MANY = 10
# Of a block that stays in the cache while it is mixed.
_BLOCK_CELLS = 1 << 16
# Instead of a number, which is below 1.
_MISSING = 2.0

Entries = npt.NDArray[np.void]


def row_hashes(matrix: BinnedMatrix, y: Any, weight: FloatArray | None, n_threads: int) -> Words:
    """Return a number for each row, the same for rows that hold the same unless these are many.

    Rows are told apart by their features and, where some of the same features have other targets, by their
    targets as well; ten equal rows and more have numbers of their own. Whole kinds of rows would be drawn or
    held out else, where a table has few.

    Parameters
    ----------
    matrix : BinnedMatrix
        The features, with all columns.
    y : ndarray or sparse array of shape (rows,) or (rows, targets)
        The targets; sparse ones are labels. Powers of two that a column is multiplied by change nothing.
    weight : ndarray of shape (rows,) or (rows, targets), or None
        Of the rows; None: all are 1.
    n_threads : int
        That work on the features.
    """
    hashes: Words = matrix.row_hashes(n_threads)
    rows = _rows_in_question(hashes)
    targets = _hashes_of_targets(y, rows)
    # Rows whose cells have weights stay together, many or not.
    by_cell = weight is not None and weight.ndim == 2
    of_rows = np.ones(len(rows)) if weight is None or weight.ndim == 2 else weight[rows]
    order = np.lexsort((of_rows, targets, hashes[rows]))
    rows = rows[order]
    entries = np.empty(len(rows), dtype=_ENTRY)
    entries["features"], entries["targets"] = hashes[rows], targets[order]
    entries["weight"], entries["count"] = of_rows[order], 1
    begins = begins_of_runs(entries, "features", "targets", "weight")
    counts = np.diff(begins, append=len(rows))
    different = entries[begins]
    different["count"] = counts
    places = np.repeat(_places_among_all(different), counts)

    keys = hashes[rows]
    apart = places["beside_others"]
    keys[apart] = _mixed(keys[apart], entries["targets"][apart])
    single = (places["first"] != _TOGETHER) & (not by_cell)
    number = places["first"] + np.arange(len(rows)) - np.repeat(begins, counts)
    keys[single] = _mixed(keys[single], number[single].astype(np.uint64) + np.uint64(1))
    hashes[rows] = keys
    return hashes


def _rows_in_question(hashes: Words) -> npt.NDArray[np.intp]:
    """Return the rows whose features others may have as well: those of other shards are not known here."""
    if current_peers() is not None:
        return np.arange(len(hashes))
    _, kinds, counts = np.unique(hashes, return_inverse=True, return_counts=True)
    return np.flatnonzero(counts[kinds] > 1)


def _places_among_all(entries: Entries) -> npt.NDArray[np.void]:
    """Return what becomes of the rows of each entry, of which those of all shards are looked at."""
    peers = current_peers()
    if peers is None:
        return _places(entries)
    received = peers.all_to_all(np.split(entries, begins_of_ranks(entries["features"], peers.size)))
    of_ranks = [np.frombuffer(part, dtype=_ENTRY) for part in received]
    here = np.concatenate(of_ranks)
    order = np.lexsort((here["weight"], here["targets"], here["features"]))
    found = np.empty(len(here), dtype=_PLACE)
    found[order] = _places(here[order])
    answers = peers.all_to_all(np.split(found, np.cumsum([len(one) for one in of_ranks])[:-1]))
    return np.concatenate([np.frombuffer(part, dtype=_PLACE) for part in answers])


def _places(entries: Entries) -> npt.NDArray[np.void]:
    """Return the same of entries in the order of their fields, which have all rows of their features."""
    found = np.empty(len(entries), dtype=_PLACE)
    begins = begins_of_runs(entries, "features", "targets")
    kind = np.repeat(np.arange(len(begins)), np.diff(begins, append=len(entries)))
    features = entries["features"][begins]
    same = features[1:] == features[:-1]
    beside_others = np.zeros(len(begins), dtype=bool)
    beside_others[1:] |= same
    beside_others[:-1] |= same
    found["beside_others"] = beside_others[kind]
    before = np.cumsum(entries["count"]) - entries["count"]
    n_rows = np.bincount(kind, weights=entries["count"], minlength=len(begins))
    found["first"] = np.where(n_rows[kind] >= _MANY, before - before[begins][kind], _TOGETHER)
    return found


def _mixed(keys: Words, with_others: Words) -> Words:
    found = keys + with_others * STEP
    mix(found)
    return found


def _hashes_of_targets(y: Any, rows: npt.NDArray[np.intp]) -> Words:
    """Return a number for the targets of each of some rows."""
    if issparse(y):
        return _hashes_of_labels(csr_array(y)[rows])  # type: ignore[call-overload]
    table = y if y.ndim == 2 else y[:, np.newaxis]
    exponents = _exponents(table)
    hashes = np.empty(len(rows), dtype=np.uint64)
    step = max(1, _BLOCK_CELLS // max(1, table.shape[1]))
    columns = np.arange(1, table.shape[1] + 1, dtype=np.uint64) * STEP
    for begin in range(0, len(rows), step):
        cells = np.ldexp(table[rows[begin : begin + step]].astype(np.float64), -exponents)
        cells += 0.0  # there is one zero
        cells[np.isnan(cells)] = _MISSING
        words = cells.view(np.uint64) + columns
        mix(words)
        hashes[begin : begin + step] = words.sum(axis=1, dtype=np.uint64)
    return hashes


def _exponents(table: npt.NDArray[Any]) -> npt.NDArray[np.int64]:
    """Return the power of two that bounds each column, of all shards."""
    most = np.zeros(table.shape[1])
    for begin in range(0, len(table), _BLOCK_CELLS):
        block = np.abs(table[begin : begin + _BLOCK_CELLS].astype(np.float64))
        most = np.fmax(most, np.fmax.reduce(block, axis=0))
    return np.frexp(largest(most[np.newaxis]))[1].astype(np.int64)


def _hashes_of_labels(y: Any) -> Words:
    """Return the same of compressed rows of labels, whatever zeros are stored."""
    words = y.indices.astype(np.uint64) * STEP + STEP
    mix(words)
    words[y.data == 0] = 0
    sums = np.concatenate([np.zeros(1, dtype=np.uint64), np.cumsum(words, dtype=np.uint64)])
    hashes: Words = sums[y.indptr[1:]] - sums[y.indptr[:-1]]
    return hashes
