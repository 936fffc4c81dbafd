"""Bins of rows that are in several shards: the cut points of all rows, and one layout for all shards."""

from __future__ import annotations

import io
from threading import Lock
from typing import Any

import numpy as np
import numpy.typing as npt

from polyleaf import _core
from polyleaf.data.column_summaries import ColumnSummary, laid_out, summarise_columns
from polyleaf.data.inputs import Array, FloatArray
from polyleaf.data.sums import total
from polyleaf.peers.current import summed_over
from polyleaf.peers.shard import Shard

# Distinct values and weights of the columns that are exchanged at once, where all values of a column differ.
_PANEL_BYTES = 1 << 28
# The head of an array is Python source, and CPython 3.11 counts the depth of the syntax trees of all threads
# in one place.
_PARSES_ALONE = Lock()


def bin_shard(
    X: Array,
    weight: FloatArray | None,
    max_bins: int | None,
    n_threads: int,
    categorical: npt.NDArray[np.uint8] | None,
    shard: Shard,
) -> _core.BinnedMatrix:
    """Return the rows of a shard as bin codes; the parameters are those of `bin_table`.

    The columns are shared out: a shard merges the distinct values that all shards have of its own columns,
    a panel of columns at a time, and tells the others its cut points.
    """
    peers = shard.peers
    units = None
    if weight is not None:
        with summed_over(peers):
            units = _core.weight_units(weight, total(weight))
    n_features = X.shape[1]
    step = max(peers.size, _PANEL_BYTES // (16 * max(1, shard.n_rows)))
    cuts: list[Any] = []
    categories: list[Any] = []
    has_missing: list[bool] = []
    for first in range(0, n_features, step):
        columns = range(first, min(first + step, n_features))
        own = summarise_columns(X[:, columns.start : columns.stop], units, n_threads)
        said = peers.all_to_all(
            [_written(own[rank :: peers.size]) for rank in range(peers.size)]  # every so many columns
        )
        parts = [_read(text) for text in said]
        merged = [ColumnSummary.merged(of_column) for of_column in zip(*parts, strict=True)]
        numbers = columns[peers.rank :: peers.size]
        found: dict[str, Any] = {}
        for number, summary in zip(numbers, merged, strict=True):
            is_categorical = categorical is not None and bool(categorical[number])
            of_column = _core.cuts_of_values(
                summary.values, summary.weights, max_bins, is_categorical, number
            )
            found |= {f"cuts {number}": of_column[0], f"categories {number}": of_column[1]}
            found[f"missing {number}"] = np.array([summary.has_missing])
        everywhere: dict[str, Any] = {}
        for text in peers.all_gather(_bytes_of(found)):
            everywhere |= _arrays_of(text)
        for number in columns:
            is_categorical = categorical is not None and bool(categorical[number])
            cuts.append(everywhere[f"cuts {number}"])
            categories.append(everywhere[f"categories {number}"] if is_categorical else None)
            has_missing.append(bool(everywhere[f"missing {number}"][0]))
    table = _core.table_of_cuts(cuts, np.array(has_missing, dtype=np.uint8), categories)
    counts = table.sample_counts(X, n_threads)
    peers.add(counts)
    most = np.array([X.shape[0], n_threads], dtype=np.float64)
    peers.largest(most)
    return laid_out(table, counts, int(most[0]), int(most[1])).bin_like(X, n_threads)


def _written(columns: list[ColumnSummary]) -> bytes:
    arrays: dict[str, Any] = {"missing": np.array([column.has_missing for column in columns], dtype=bool)}
    for number, column in enumerate(columns):
        arrays |= {f"values {number}": column.values, f"weights {number}": column.weights}
    return _bytes_of(arrays)


def _read(text: bytes | memoryview) -> list[ColumnSummary]:
    arrays = _arrays_of(text)
    return [
        ColumnSummary(arrays[f"values {number}"], arrays[f"weights {number}"], bool(missing))
        for number, missing in enumerate(arrays["missing"])
    ]


def _bytes_of(arrays: dict[str, Any]) -> bytes:
    text = io.BytesIO()
    np.savez(text, **arrays)
    return text.getvalue()


def _arrays_of(text: bytes | memoryview) -> dict[str, Any]:
    with _PARSES_ALONE, np.load(io.BytesIO(text), allow_pickle=False) as arrays:
        return dict(arrays)
