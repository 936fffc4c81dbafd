"""Tables of a Dask cluster as partitions of rows: aligned with each other, in memory, each on a worker."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate, pairwise
from typing import Any

import numpy as np
from dask.array import Array
from dask.base import is_dask_collection
from distributed import CancelledError, Client, Future

from polyleaf.dask.balance import assign
from polyleaf.dask.comms import at_client, await_all, failed_at, threads_of_workers
from polyleaf.peers.exchange import Stopped

# Seconds after which somebody who waits for partitions looks up.
_BETWEEN = 5.0


class LostRows(RuntimeError):
    """Rows that went with the workers that had them, and that Dask does not know how to compute.

    Parameters
    ----------
    name : str
        Of the table.
    numbers : list of int
        Of its partitions.
    """

    def __init__(self, name: str, numbers: list[int]) -> None:
        super().__init__(name, numbers)
        self.name = name
        self.numbers = numbers

    def __str__(self) -> str:
        shown = [str(number) for number in self.numbers[:10]]
        more = f" and {len(self.numbers) - 10} more" if len(self.numbers) > 10 else ""
        what = "partition" if len(shown) == 1 else "partitions"
        return (
            f"{what} {', '.join(shown)}{more} of {self.name}: Dask cannot compute these rows again; the "
            "worker that had them is gone, or their tasks were cancelled. That is so of what client.scatter "
            "put on one worker: scatter it with broadcast=True, or let Dask read or make the rows."
        )


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
    lengths : dict of str to list of int
        Rows of each partition of each table, by its name.
    """

    n_rows: int
    parts: dict[str, list[Part]]
    lengths: dict[str, list[int]]

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
    threads = threads_of_workers(client)
    if workers is not None:
        missing = sorted(set(workers) - set(threads))
        if missing:
            raise ValueError(f"not in the cluster: {', '.join(missing)}")
        threads = {address: threads[address] for address in workers}
    if not threads:
        raise ValueError("the cluster has no workers")
    kept = _persisted(client, {name: by_rows(name, table) for name, table in tables.items()}, list(threads))
    futures = {name: _partitions(client, name, table, list(threads)) for name, table in kept.items()}
    found = _lengths(client, kept, futures)
    lengths = {name: list(found[name]) for name in tables}
    first, *others = tables
    n_rows = sum(lengths[first])
    for name in others:
        if sum(lengths[name]) != n_rows:
            raise ValueError(f"{first} has {n_rows} rows, {name} {sum(lengths[name])}")
    if n_rows == 0:
        raise ValueError(f"{first} has no rows")
    numbers = [number for number, length in enumerate(lengths[first]) if length]
    who_has = client.who_has(futures[first])
    holders = [who_has[futures[first][number].key] for number in numbers]
    addresses = assign([lengths[first][number] for number in numbers], holders, threads)
    by_number = {name: dict(enumerate(of_table)) for name, of_table in futures.items()}
    where = dict(zip(numbers, addresses, strict=True))
    return Plan(n_rows, _parts(client, by_number, lengths, where), lengths)


def place_again(
    client: Client,
    tables: Mapping[str, Any],
    lengths: Mapping[str, Sequence[int]],
    where: Mapping[int, str],
    workers: Sequence[str],
    meanwhile: Callable[[], None],
) -> Plan:
    """Bring some partitions of tables into the memory of workers once more, and nothing else.

    Parameters
    ----------
    client, tables
        As of `place`.
    lengths : mapping of str to sequence of int
        Rows of each partition, from `place`.
    where : mapping of int to str
        Which worker trains on which partition of the first table: those that are wanted.
    workers : sequence of str
        Addresses of those that may compute.
    meanwhile : callable
        Called every few seconds.

    Raises
    ------
    LostRows
        When Dask cannot compute a partition again.
    """
    needed: dict[str, list[int]] = {}
    starts = [0, *accumulate(lengths[next(iter(tables))])]
    for name, of_table in lengths.items():
        found = {
            number for part in where for number, _, _ in _overlaps(of_table, starts[part], starts[part + 1])
        }
        needed[name] = sorted(found)
    lazy = {name: _some(by_rows(name, table), needed[name]) for name, table in tables.items()}
    futures: dict[str, dict[int, Future]] = {}
    for name, table in _persisted(client, lazy, list(workers)).items():
        some = _partitions(client, name, table, workers, needed[name], meanwhile)
        futures[name] = dict(zip(needed[name], some, strict=True))
    parts = _parts(client, futures, lengths, dict(sorted(where.items())))
    return Plan(starts[-1], parts, {name: list(of_table) for name, of_table in lengths.items()})


def _some(table: Any, numbers: list[int]) -> Any:
    """Return some partitions of a table."""
    return table.blocks[numbers] if isinstance(table, Array) else table.partitions[numbers]


def _persisted(client: Client, tables: Mapping[str, Any], workers: list[str]) -> dict[str, Any]:
    """Return tables that are computed on workers, or will be."""
    kept: dict[str, Any] = {}
    for is_array in (True, False):  # Dask does not compute arrays and data frames together
        group = {name: table for name, table in tables.items() if isinstance(table, Array) == is_array}
        if group:
            kept |= zip(group, client.persist(list(group.values()), workers=workers), strict=True)
    return kept


def _parts(
    client: Client,
    futures: Mapping[str, Mapping[int, Future]],
    lengths: Mapping[str, Sequence[int]],
    where: Mapping[int, str],
) -> dict[str, list[Part]]:
    """Return partitions of the first table with the rows of the others, by worker; `where` is in order."""
    first, *others = lengths
    starts = [0, *accumulate(lengths[first])]
    parts: dict[str, list[Part]] = {}
    for number, address in where.items():
        start, stop = starts[number], starts[number + 1]
        of_tables = {first: futures[first][number]}
        for name in others:
            of_tables[name] = _rows(client, futures[name], lengths[name], start, stop, address)
        parts.setdefault(address, []).append(Part(number, stop - start, of_tables))
    return parts


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


def _partitions(
    client: Client,
    name: str,
    table: Any,
    workers: Sequence[str],
    numbers: Sequence[int] | None = None,
    meanwhile: Callable[[], None] = lambda: None,
) -> list[Future]:
    """Return the partitions in the order of rows, computed; raise the error of one that cannot be.

    `workers` are those that may compute them. `numbers` are those of the partitions, for errors; None: from
    0. `meanwhile` is called while they are computed.
    """
    delayed = np.asarray(table.to_delayed(optimize_graph=False), dtype=object).ravel()
    futures: list[Future] = client.compute(list(delayed))
    numbers = range(len(futures)) if numbers is None else numbers
    while True:
        try:
            await_all(client, futures, _BETWEEN)
        except TimeoutError:
            if not set(workers) & set(threads_of_workers(client)):  # Dask would wait for them to come back
                raise Stopped(f"all workers that were to compute {name} are gone") from None
            meanwhile()
            continue
        except CancelledError:
            pass  # it says which below
        break
    lost = [number for number, future in zip(numbers, futures, strict=True) if future.cancelled()]
    if lost:
        raise LostRows(name, lost)
    for number, future in zip(numbers, futures, strict=True):
        if future.status != "finished":
            error = at_client(client, future.exception)
            where = "".join(f", on the worker at {address}" for address in failed_at(client, future.key))
            error.add_note(f"(partition {number} of {name}{where})")
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
    return at_client(client, client.gather, lengths)


def _rows(
    client: Client,
    futures: Mapping[int, Future],
    lengths: Sequence[int],
    start: int,
    stop: int,
    address: str,
) -> Future:
    """Return rows of a table whose partitions lie elsewhere."""
    cuts = _overlaps(lengths, start, stop)
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


def _overlaps(lengths: Sequence[int], start: int, stop: int) -> list[tuple[int, int, int]]:
    """Return the partitions of which some rows are wanted, and which of theirs these are."""
    return [
        (number, max(start, low) - low, min(stop, high) - low)
        for number, (low, high) in enumerate(pairwise([0, *accumulate(lengths)]))
        if low < stop and high > start and high > low
    ]


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
