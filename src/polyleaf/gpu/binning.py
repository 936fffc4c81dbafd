"""Binning of a table in the memory of a GPU: the cut points and codes that the CPU gives, bit for bit.

Columns are sorted some at a time, so that the memory this takes is bounded. Rules that the core compiles too
(``rules/cut_choice.hpp``) decide what becomes of the values, in the kernels of ``cuda/bins.cuh``.
Only cut points, and the weights of rows where there are any, travel between the two memories.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from polyleaf import _core
from polyleaf.data.device_arrays import on_host
from polyleaf.data.infinities import search_infinity
from polyleaf.gpu.memory import QUAD
from polyleaf.gpu.runtime import cupy, kernel, launch
from polyleaf.gpu.structs import Record, constant, table_record

# Arrays of the GPU, or of NumPy where `xp` is numpy.
DeviceArray = Any

# Most bins of a feature: the codes are bytes, and one is that of missing values.
MOST_BINS = 255

_MEMORY_BYTES = 1 << 30
# What a cell takes at most while its column is sorted and its distinct values are listed; more with weights.
_CELL_BYTES = 72
_WEIGHT_BYTES = 16
# What a cell takes where an infinity is named.
_SEARCH_BYTES = 16
# Threads of a block, and what a block encodes.
_CUT_THREADS = 512
_ENCODE_THREADS = 256
_ENCODE_ROWS = 2048
_ENCODE_FEATURES = constant("kEncodeFeatures")
_MOST_ROW_BLOCKS = 65535  # CUDA's limit; a block then takes more rows


@dataclass(frozen=True)
class DistinctValues:
    """The distinct values of some columns, ascending, missing values left out.

    Attributes
    ----------
    value : float32 or float64 array
        Of the first column, then of the second, ...
    through : int64 array
        Of each value: its weight and that of the smaller ones in its column.
    first : int64 array of shape (columns + 1,)
        Where each column's values begin.
    has_missing : bool array of shape (columns,)
        Whether the column has missing values.
    """

    value: DeviceArray
    through: DeviceArray
    first: DeviceArray
    has_missing: DeviceArray


def bin_on_device(
    X: DeviceArray,
    weight: DeviceArray | None,
    max_bins: int,
    *,
    name: str = "X",
    labels: Sequence[object] | None = None,
    memory_bytes: int = _MEMORY_BYTES,
) -> tuple[DeviceArray, _core.BinnedMatrix]:
    """Return a table's codes on the GPU, and a table of no rows that knows the cut points.

    Parameters
    ----------
    X : cupy.ndarray of shape (rows, features)
        bool, integers or floats, in any order of memory; NaN is missing. It is not changed.
    weight : float64 vector of CuPy or NumPy, or None
        Weight of each row in the distribution of a column.
    max_bins : int
        2 to 255, the missing bin not counted.
    name : str, default="X"
        What errors call the table.
    labels : sequence, default=None
        What errors call its columns; None: by their numbers.
    memory_bytes : int, default=1 GiB
        Memory of the GPU to work in, besides the codes. At least a column is sorted at a time, whatever it
        takes, and the codes of four columns are found together.

    Returns
    -------
    codes : uint8 cupy.ndarray of shape (quads, rows, 4)
        Four neighbouring features of a row side by side; zeros where the last quad has fewer. A missing
        value has the code after the last bin.
    table : BinnedMatrix
        As `polyleaf.data.binning.bin_table` gives it, without the rows.

    Raises
    ------
    ValueError
        If the table is empty, holds no numbers, or an infinity.
    """
    xp = cupy()
    check_table(X, weight, max_bins, name)
    if X.dtype.kind == "f":
        search_infinity(X, labels, name, xp, memory_bytes // _SEARCH_BYTES)
    real = real_type(X.dtype)
    units = None if weight is None else xp.asarray(_core.weight_units(on_host(weight)))
    n_features = X.shape[1]
    cuts = xp.empty((n_features, max_bins - 1), dtype=np.float64)
    n_cuts = xp.empty(n_features, dtype=np.int32)
    has_missing = xp.empty(n_features, dtype=np.uint8)
    for part in column_parts(X.shape, _CELL_BYTES + (0 if units is None else _WEIGHT_BYTES), memory_bytes):
        distinct = distinct_values(X[:, part], real, units, xp)
        _choose_cuts(distinct, max_bins, cuts[part], n_cuts[part])
        has_missing[part] = distinct.has_missing
    codes = _encode(X, real, cuts, n_cuts, memory_bytes, xp)
    cut_lists = [row[:count] for row, count in zip(on_host(cuts), on_host(n_cuts), strict=True)]
    return codes, _core.table_of_cuts(cut_lists, on_host(has_missing))


def check_table(X: DeviceArray, weight: DeviceArray | None, max_bins: int, name: str) -> None:
    """Raise ValueError for what cannot be binned."""
    if X.ndim != 2 or 0 in X.shape:
        raise ValueError(f"{name} has shape {X.shape}; it must have rows and columns.")
    if X.dtype.kind not in "biuf":
        raise ValueError(f"{name} has dtype {X.dtype}; it must hold numbers (bool, integer or float).")
    if weight is not None and weight.shape != X.shape[:1]:
        raise ValueError(f"the weights have shape {weight.shape}; {name} has {X.shape[0]} rows.")
    if not 2 <= max_bins <= MOST_BINS:
        raise ValueError(f"max_bins must lie in 2..{MOST_BINS} on a GPU; got {max_bins}.")


def real_type(dtype: np.dtype[Any]) -> type[np.float32] | type[np.float64]:
    """Return the floating-point type that the core reads numbers of this type as."""
    return np.float32 if dtype.itemsize < 4 or dtype == np.float32 else np.float64


def column_parts(
    shape: tuple[int, int], cell_bytes: int, memory_bytes: int, multiple: int = 1
) -> list[slice]:
    """Return slices of neighbouring columns, a multiple of `multiple` each, whose cells fit the memory.

    Where not even the smallest do, they are returned all the same.
    """
    n_rows, n_columns = shape
    step = max(1, memory_bytes // (cell_bytes * n_rows * multiple)) * multiple
    return [slice(start, min(start + step, n_columns)) for start in range(0, n_columns, step)]


def distinct_values(X: DeviceArray, real: type[Any], units: DeviceArray | None, xp: Any) -> DistinctValues:
    """Return the distinct values of columns; ``-0.0`` is ``0.0``.

    Parameters
    ----------
    X : array of shape (rows, columns)
        Numbers; not changed.
    real : type
        float32 or float64: what they are read as.
    units : int64 array of shape (rows,) or None
        Weights of the rows, from `_core.weight_units`; None: each weighs 1.
    xp : module
        numpy or cupy.
    """
    n_rows = X.shape[0]
    # Numbers as integers of the same order: CuPy's functions take the smallest float32 numbers for 0.
    unsigned = np.uint32 if real is np.float32 else np.uint64
    bits = unsigned(8 * unsigned(0).itemsize - 1)
    sign, missing = unsigned(1) << bits, unsigned(np.iinfo(unsigned).max)
    columns = X.T.astype(real, order="C", copy=True)
    is_missing = (columns != columns).astype(unsigned)
    keys = columns.view(unsigned)
    keys ^= (keys == sign).astype(unsigned) * sign  # -0.0 becomes 0.0
    keys ^= (keys >> bits) * (missing ^ sign) ^ sign
    keys |= is_missing * missing
    if units is None:
        cumulative = None
        for column in keys:
            column.sort()
    else:
        cumulative = xp.empty(keys.shape, dtype=np.int64)
        for column, through in zip(keys, cumulative, strict=True):
            order = xp.argsort(column)
            column[...] = column[order]
            through[...] = xp.cumsum(units[order])
    last = keys != missing  # of the cells that hold the same value
    last[:, :-1] &= keys[:, :-1] != keys[:, 1:]
    first = xp.zeros(len(keys) + 1, dtype=np.int64)
    first[1:] = xp.cumsum(last.sum(axis=1))
    place = xp.flatnonzero(last)
    found = keys.ravel()[place]
    found ^= ((found >> bits) ^ unsigned(1)) * (missing ^ sign) ^ sign
    return DistinctValues(
        value=found.view(real),
        through=place % n_rows + 1 if cumulative is None else cumulative.ravel()[place],
        first=first,
        has_missing=keys[:, -1] == missing,
    )


def _choose_cuts(distinct: DistinctValues, max_bins: int, cuts: DeviceArray, n_cuts: DeviceArray) -> None:
    """Write the cut points of columns, padded with infinity, and their numbers."""
    launch(
        kernel("bins.cuh", f"choose_cuts_of_{distinct.value.dtype.name}"),
        (len(n_cuts),),
        _CUT_THREADS,
        distinct.value,
        distinct.through,
        distinct.first,
        np.int32(max_bins),
        cuts,
        n_cuts,
    )


def _encode(
    X: DeviceArray, real: type[Any], cuts: DeviceArray, n_cuts: DeviceArray, memory_bytes: int, xp: Any
) -> DeviceArray:
    """Return the codes of all cells; numbers the kernels cannot read are converted some columns at a time."""
    n_rows, n_features = X.shape
    codes = xp.empty((-(-n_features // QUAD), n_rows, QUAD), dtype=np.uint8)
    encode = kernel("bins.cuh", "encode_float" if real is np.float32 else "encode_double")
    n_row_blocks = min(-(-n_rows // _ENCODE_ROWS), _MOST_ROW_BLOCKS)
    whole = [slice(0, n_features)]
    converted = column_parts(X.shape, np.dtype(real).itemsize, memory_bytes, QUAD)
    for part in whole if X.dtype == real else converted:
        table = X[:, part].astype(real, copy=False)
        of_part = Record("Cuts", cuts=cuts[part], n_cuts=n_cuts[part], most_cuts=cuts.shape[1])
        grid = (-(-table.shape[1] // _ENCODE_FEATURES), n_row_blocks)
        launch(encode, grid, _ENCODE_THREADS, table_record(table), of_part, codes[part.start // QUAD :])
    return codes
