"""What a larger cluster would do, from pieces that were measured on a small one."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

WORKERS = (16, 64)
BYTES_A_SECOND = 1.25e9  # 10 GbE, each way
TILE_BINS = 2048  # kTileSlots of core/table/tile_layout.hpp


@dataclass(frozen=True)
class Pieces:
    """What was measured with so many workers.

    Attributes
    ----------
    compute : float
        Seconds of a round outside of exchanges.
    bytes_sent : float
        By a worker in a round.
    exchanges : float
        In a round; they hang on the depth, not on the workers.
    latency : float
        Seconds of an exchange of eight bytes.
    """

    compute: float
    bytes_sent: float
    exchanges: float
    latency: float


@dataclass(frozen=True)
class Plan:
    """A round of a larger cluster: seconds, and bytes that a worker sends and the busiest one receives."""

    sent: float
    received: float
    latency: float
    compute: float

    @property
    def wire(self) -> float:
        """Seconds in which the busiest worker sends or receives."""
        return max(self.sent, self.received) / BYTES_A_SECOND

    @property
    def efficiency(self) -> float:
        """The share of a round that is not spent on exchanges."""
        return self.compute / (self.compute + self.wire + self.latency)


def count_tiles(n_features: int, n_bins: int) -> int:
    """Return in how many tiles the features are; a tile has one owner."""
    return math.ceil(n_features / max(1, TILE_BINS // n_bins))


def plan(pieces: Mapping[int, Pieces], n_workers: int, n_tiles: int) -> Plan:
    """Return a round of `n_workers` that have as many rows and threads each as those of the most measured.

    A worker sends its histograms but for the tiles that it owns, and gets the tiles that it owns from all
    others. An exchange takes longer by the same for each further worker. Wires and computing do not overlap.
    """
    few, most = min(pieces), max(pieces)
    one = pieces[most]
    histograms = one.bytes_sent * most / (most - 1)
    slope = max(0.0, (one.latency - pieces[few].latency) / (most - few))
    latency = one.latency + slope * (n_workers - most)
    owned = math.ceil(n_tiles / n_workers) / n_tiles
    kept = n_tiles // n_workers / n_tiles  # of the worker that owns the fewest, which may be none
    sent = histograms * (1 - kept)
    return Plan(sent, histograms * owned * (n_workers - 1), one.exchanges * latency, one.compute)


def plan_table(pieces: Mapping[int, Pieces], n_tiles: int) -> list[str]:
    """Return the section of a report; nothing where fewer than two numbers of workers were measured."""
    if len(pieces) < 2:
        return []
    most = max(pieces)
    measured = ", ".join(f"{1000 * one.latency:.2f} ms with {n}" for n, one in sorted(pieces.items()))
    lines = [
        "",
        f"From these pieces, a cluster on 10 GbE whose workers have as many rows and threads each as those "
        f"of the {most} above (an exchange of 8 bytes took {measured} workers, all on this machine; "
        f"received: by the busiest owner of one of the {n_tiles} tiles of features):",
        "",
        "| workers | MB sent | MB received | s on the wire | s of latency | s of computing | efficiency |",
        "| ---: | ---: | ---: | ---: | ---: | ---: | ---: |",
    ]
    for n_workers in WORKERS:
        one = plan(pieces, n_workers, n_tiles)
        moved = [f"{n_bytes / 1e6:.3g}" for n_bytes in (one.sent, one.received)]
        seconds = [f"{value:.3g}" for value in (one.wire, one.latency, one.compute)]
        cells = [str(n_workers), *moved, *seconds, f"{one.efficiency:.2f}"]
        lines.append("| " + " | ".join(cells) + " |")
    return lines
