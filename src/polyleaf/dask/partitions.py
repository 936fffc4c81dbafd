"""Tables of a Dask cluster as partitions of rows: aligned with each other, in memory, each on a worker."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate, pairwise
from typing import Any

import numpy as np
from dask.array import Array
from dask.base import is_dask_collection
from distributed import Client, Future, wait

from polyleaf.dask.balance import assign


@dataclass(frozen=True)
class Part:
    """Some neighbouring rows of all tables.

    Attributes
    ----------
    number : int
        Of the partition of the first table, from 0; those without rows are counted and left out.
    n_rows : int
        How many there are.
    tables : dict of str to Future
        These rows of each table.
    """

    number: int
    n_rows: int
    tables: dict[str, Future]


@dataclass(frozen=True)
class Plan:
    """Which worker has which rows.

    Attributes
    ----------
    n_rows : int
        Of all partitions.
    parts : dict of str to list of Part
        By the address of the worker, in the order of rows. Workers are in the order of their first rows.
    """

    n_rows: int
    parts: dict[str, list[Part]]

    def shards(self) -> dict[str, list[dict[str, Any]]]:
        """Return what `Run.launch` is given: functions get the fields of parts, with tables for futures."""
        return {
            address: [{"number": one.number, "n_rows": one.n_rows, "tables": one.tables} for one in parts]
            for address, parts in self.parts.items()
        }


def place(client: Client, tables: Mapping[str, Any], workers: Sequence[str] | None = None) -> Plan:
    """Bring tables into the memory of workers, and say which worker trains on which rows.

    Partitions are those of the first table; rows of the others are cut to match, by position. Partitions stay
    where Dask computes them, unless some worker would have much more rows per thread than others.

    What data frames share is computed once, and so is what arrays share; what an array shares with a data
    frame is computed for both. A frame that is random is to be persisted before an array is made of it.

    Parameters
    ----------
    client : distributed.Client
        Of the cluster.
    tables : mapping of str to Dask array, data frame or series
        By the name that errors use. Arrays have one or two dimensions; columns in several chunks are joined.
    workers : sequence of str, optional
        Addresses that may be used; by default all.

    Raises
    ------
    TypeError, ValueError
        A table is not one of Dask, has other dimensions, or another number of rows than the first.
    """
    threads = client.nthreads()
    if workers is not None:
        missing = sorted(set(workers) - set(threads))
        if missing:
            raise ValueError(f"not in the cluster: {', '.join(missing)}")
        threads = {address: threads[address] for address in workers}
    if not threads:
        raise ValueError("the cluster has no workers")
    lazy = {name: by_rows(name, table) for name, table in tables.items()}
    kept: dict[str, Any] = {}
    for is_array in (True, False):  # Dask does not compute arrays and data frames together
        group = {name: table for name, table in lazy.items() if isinstance(table, Array) == is_array}
        if group:
            kept |= zip(group, client.persist(list(group.values()), workers=list(threads)), strict=True)
    futures = {name: _partitions(client, name, table) for name, table in kept.items()}
    lengths = _lengths(client, kept, futures)
    first, *others = tables
    n_rows = sum(lengths[first])
    for name in others:
        if sum(lengths[name]) != n_rows:
            raise ValueError(f"{first} has {n_rows} rows, {name} {sum(lengths[name])}")
    if n_rows == 0:
        raise ValueError(f"{first} has no rows")
    starts = [0, *accumulate(lengths[first])]
    numbers = [number for number, length in enumerate(lengths[first]) if length]
    who_has = client.who_has(futures[first])
    holders = [who_has[futures[first][number].key] for number in numbers]
    addresses = assign([lengths[first][number] for number in numbers], holders, threads)
    parts: dict[str, list[Part]] = {}
    for number, address in zip(numbers, addresses, strict=True):
        start, stop = starts[number], starts[number + 1]
        of_tables = {first: futures[first][number]}
        for name in others:
            of_tables[name] = _rows(client, futures[name], lengths[name], start, stop, address)
        parts.setdefault(address, []).append(Part(number, stop - start, of_tables))
    return Plan(n_rows, parts)


def by_rows(name: str, table: Any) -> Any:
    """Return a table whose partitions hold all columns; raise where it is none."""
    if isinstance(table, Array):
        if table.ndim not in (1, 2):
            raise ValueError(f"{name} has {table.ndim} dimensions; rows and columns are expected")
        return table.rechunk({1: -1}) if table.ndim == 2 and table.numblocks[1] > 1 else table
    if is_dask_collection(table) and hasattr(table, "divisions"):
        return table
    raise TypeError(
        f"{name} is a {type(table).__name__}, not an array, a data frame or a series of Dask: "
        "dask.array.from_array and dask.dataframe.from_pandas make one"
    )


def _partitions(client: Client, name: str, table: Any) -> list[Future]:
    """Return the partitions in the order of rows, computed; raise the error of one that cannot be."""
    delayed = np.asarray(table.to_delayed(optimize_graph=False), dtype=object).ravel()
    futures: list[Future] = client.compute(list(delayed))
    wait(futures)
    for number, future in enumerate(futures):
        if future.status != "finished":
            error = future.exception()
            error.add_note(f"(partition {number} of {name})")
            raise error
    return futures


def _lengths(
    client: Client, tables: dict[str, Any], futures: dict[str, list[Future]]
) -> dict[str, list[int]]:
    """Return the rows of each partition of each table; those that Dask does not know are counted."""
    lengths: dict[str, Any] = {}
    for name, table in tables.items():
        known = table.chunks[0] if isinstance(table, Array) else (math.nan,)
        if any(math.isnan(length) for length in known):
            lengths[name] = client.map(_n_rows, futures[name], pure=False)
        else:
            lengths[name] = list(known)
    return client.gather(lengths)  # type: ignore[no-any-return]


def _rows(
    client: Client, futures: Sequence[Future], lengths: Sequence[int], start: int, stop: int, address: str
) -> Future:
    """Return rows of a table whose partitions lie elsewhere."""
    cuts = [
        (number, max(start, low) - low, min(stop, high) - low)
        for number, (low, high) in enumerate(pairwise([0, *accumulate(lengths)]))
        if low < stop and high > start and high > low
    ]
    number, low, high = cuts[0]
    if len(cuts) == 1 and high - low == lengths[number]:
        return futures[number]
    return client.submit(
        _joined,
        [futures[number] for number, _, _ in cuts],
        [(low, high) for _, low, high in cuts],
        workers=[address],
        pure=False,
    )


def _n_rows(part: Any) -> int:
    return int(part.shape[0])


def _joined(parts: Sequence[Any], bounds: Sequence[tuple[int, int]]) -> Any:
    """Return these rows of parts, one below the other."""
    return joined(
        [
            part.iloc[low:high] if hasattr(part, "iloc") else part[low:high]
            for part, (low, high) in zip(parts, bounds, strict=True)
        ]
    )


def joined(parts: Sequence[Any]) -> Any:
    """Return parts of a table, one below the other; categories are those of all of them."""
    if len(parts) == 1:
        return parts[0]
    if hasattr(parts[0], "iloc"):
        from dask.dataframe.dispatch import concat

        return concat(list(parts))
    return np.concatenate(parts)
