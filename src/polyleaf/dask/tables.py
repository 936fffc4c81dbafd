"""Tables of a cluster as a rank reads them: its partitions joined, or the same columns without rows."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from dask.array import Array
from distributed import Client

from polyleaf.dask.partitions import Plan, by_rows, joined, place, place_again
from polyleaf.data.eval_sets import EvalInput
from polyleaf.peers.collectives import Collectives
from polyleaf.peers.pieces import Pieces


@dataclass(frozen=True)
class ClusterRows:
    """Rows with targets and weights, as the user gave them.

    Attributes
    ----------
    name, X_name, y_name, weight_name : str
        What metrics and errors call them.
    tables : dict
        "X", "y" and, where there are some, "weight": arrays, data frames or series of Dask.

    Raises
    ------
    TypeError, ValueError
        A table is not one of Dask, or has other dimensions.
    """

    name: str
    X_name: str
    y_name: str
    weight_name: str
    tables: dict[str, Any]

    def __post_init__(self) -> None:
        for name, table in self._by_name().items():
            by_rows(name, table)

    def _by_name(self) -> dict[str, Any]:
        names = {"X": self.X_name, "y": self.y_name, "weight": self.weight_name}
        return {names[key]: table for key, table in self.tables.items()}

    def placed(self, client: Client, workers: Sequence[str]) -> Plan:
        """Return which of these workers has which partitions, which are computed."""
        return place(client, self._by_name(), workers)

    def placed_again(
        self,
        client: Client,
        lengths: Mapping[str, Sequence[int]],
        where: Mapping[int, str],
        workers: Sequence[str],
        meanwhile: Callable[[], None],
    ) -> dict[str, list[dict[str, Any]]]:
        """Return some partitions once more, as `Run.launch` takes them; see `place_again`."""
        if not where:
            return {}
        return place_again(client, self._by_name(), lengths, where, workers, meanwhile).shards()

    def empty(self) -> dict[str, Any]:
        """Return the tables without rows, for a worker that has none."""
        return {key: _without_rows(table) for key, table in self.tables.items()}

    def described(self) -> ClusterRows:
        """Return what workers need to know: all but the tables."""
        return ClusterRows(self.name, self.X_name, self.y_name, self.weight_name, {})

    def given(
        self, parts: Sequence[Mapping[str, Any]], empty: Mapping[str, Any], peers: Collectives
    ) -> EvalInput:
        """Return the rows of a rank, from its parts."""
        names = {"X": self.X_name, "y": self.y_name, "weight": self.weight_name}
        for part in parts:
            _check_rows(part, self.X_name)
            _check_columns(part, parts[0], self.X_name)
        here = {
            key: joined([part["tables"][names[key]] for part in parts]) if parts else table
            for key, table in empty.items()
        }
        return EvalInput(
            self.name,
            here["X"],
            here["y"],
            here.get("weight"),
            self.X_name,
            self.y_name,
            self.weight_name,
            Pieces(peers, tuple(p["number"] for p in parts), tuple(p["n_rows"] for p in parts)),
        )


def _check_rows(part: Mapping[str, Any], first: str) -> None:
    """Raise ValueError where Dask was wrong about the rows of a partition."""
    for name, table in part["tables"].items():
        if len(table) != part["n_rows"]:
            raise ValueError(
                f"partition {part['number']} of {first} has {part['n_rows']} rows, says Dask, and "
                f"{len(table)} rows of {name} were computed for it: map_blocks and the like need chunks=, or "
                "compute_chunk_sizes() afterwards."
            )


def _check_columns(part: Mapping[str, Any], first: Mapping[str, Any], of: str) -> None:
    """Raise ValueError where a partition has other columns than the first one here."""
    for name, table in part["tables"].items():
        own, those = _columns(table), _columns(first["tables"][name])
        if own == those:
            continue
        different = [pair for pair in zip(own, those, strict=False) if pair[0] != pair[1]]
        words = f"{len(own)} columns, and {len(those)} there"
        if len(own) == len(those):
            words = f"a column {different[0][0]!r} where {different[0][1]!r} is there"
        place, other = part["number"], first["number"]
        raise ValueError(f"partition {place} of {of} is not like partition {other}: {name} has {words}.")


def _columns(table: Any) -> list[Any]:
    """Return the names of the columns of a table, or their numbers where it has no names."""
    names = getattr(table, "columns", None)
    return list(range(math.prod(table.shape[1:]))) if names is None else list(names)


def _without_rows(table: Any) -> Any:
    if isinstance(table, Array):
        return np.empty((0, *table.shape[1:]), dtype=table.dtype)
    return table._meta
