"""Rows of all shards in one place, where nothing less will do."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import numpy.typing as npt

from polyleaf.peers.current import current_peers

# Of rows that are brought together on every shard.
MOST_GATHERED_BYTES = 1 << 30


def check_gathered(n_bytes: int, what: str) -> None:
    """Raise ValueError where the rows that `what` needs in one place are too many; for all shards at once."""
    if n_bytes > MOST_GATHERED_BYTES:
        raise ValueError(
            f"{what} needs the rows of all shards in one place: {n_bytes:,} bytes, where at most "
            f"{MOST_GATHERED_BYTES:,} are brought together."
        )


def gather_rows(values: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Return the rows that all shards have, those of the first shard first; an only shard has them all.

    Parameters
    ----------
    values : ndarray
        The rows here; dtype and all axes but the first are those of every shard.
    """
    peers = current_peers()
    if peers is None:
        return values
    parts = peers.all_gather(np.ascontiguousarray(values))
    rows = [np.frombuffer(part, dtype=values.dtype).reshape(-1, *values.shape[1:]) for part in parts]
    return np.concatenate(rows)


def any_shard(is_so: bool) -> bool:
    """Return whether something is so in any shard."""
    return any(gather_notes(is_so))


def gather_notes(own: Any) -> list[Any]:
    """Return what each shard has to say, in the words of JSON; those of the first one first."""
    peers = current_peers()
    if peers is None:
        return [own]
    return [json.loads(bytes(text)) for text in peers.all_gather(json.dumps(own).encode())]
