"""Digests of partitions: rows that come back different after a loss are noticed."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from polyleaf.peers.collectives import Collectives

Digests = dict[str, str]  # by table and number of the partition, in words


def digests_of(name: str, parts: Sequence[Mapping[str, Any]]) -> Digests:
    """Return the digests of partitions of a table, with the targets and weights beside it."""
    return {f"partition {part['number']} of {name}": _digest([*part["tables"].values()]) for part in parts}


def agreed(own: Digests, known: Digests, peers: Collectives) -> Digests:
    """Return the digests of all partitions that any rank has, or knows from before.

    Raises
    ------
    ValueError
        When a partition is not what it was.
    """
    said = [json.loads(bytes(text)) for text in peers.all_gather(json.dumps([known, own]).encode())]
    found: Digests = {}
    for of_rank in (one for pair in zip(*said, strict=True) for one in pair):
        for name in sorted(of_rank):
            if found.setdefault(name, of_rank[name]) != of_rank[name]:
                raise ValueError(
                    f"{name} was computed again after workers were lost or came, and holds other rows now: "
                    "its graph gives something else each time. Persist what is random before fit, or give it "
                    "a seed."
                )
    return found


def _digest(tables: Sequence[Any]) -> str:
    digest = hashlib.blake2b(digest_size=16)
    for table in tables:
        if hasattr(table, "iloc"):
            import pandas

            values: Any = pandas.util.hash_pandas_object(table, index=False).to_numpy()
        else:
            values = np.ascontiguousarray(table)
        digest.update(str((values.shape, values.dtype)).encode())
        if values.dtype.kind == "O":
            digest.update(repr(values.tolist()).encode())
        elif values.size:
            digest.update(values.view(np.uint8).data)
    return digest.hexdigest()
