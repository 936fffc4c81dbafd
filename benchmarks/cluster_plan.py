"""What a larger cluster would do, from pieces that were measured on a small one."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

WORKERS = (16, 64)
BYTES_A_SECOND = 1.25e9  # 10 GbE


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
    """A round of a larger cluster, in seconds; `bytes_sent` by a worker."""

    bytes_sent: float
    wire: float
    latency: float
    compute: float

    @property
    def efficiency(self) -> float:
        """The share of a round that is not spent on exchanges."""
        return self.compute / (self.compute + self.wire + self.latency)


def plan(pieces: Mapping[int, Pieces], n_workers: int) -> Plan:
    """Return a round of `n_workers` that have as many rows and threads each as those of the most measured.

    A worker sends the others their tiles of its histograms, ``(n - 1) / n`` of them, and everybody its sums
    and splits, ``n - 1`` times: the two amounts follow from the fewest and the most workers measured. An
    exchange takes longer by the same for each further worker. Wires and computing do not overlap.
    """
    few, most = min(pieces), max(pieces)
    shares = {n: ((n - 1) / n, n - 1) for n in (few, most)}
    (a, b), (c, d) = shares[few], shares[most]
    sent = pieces[few].bytes_sent, pieces[most].bytes_sent
    to_all = max(0.0, (a * sent[1] - c * sent[0]) / (a * d - b * c))
    histograms = (sent[1] - d * to_all) / c
    slope = max(0.0, (pieces[most].latency - pieces[few].latency) / (most - few))
    latency = pieces[most].latency + slope * (n_workers - most)
    n_bytes = histograms * (n_workers - 1) / n_workers + to_all * (n_workers - 1)
    one = pieces[most]
    return Plan(n_bytes, n_bytes / BYTES_A_SECOND, one.exchanges * latency, one.compute)


def plan_table(pieces: Mapping[int, Pieces]) -> list[str]:
    """Return the section of a report; nothing where fewer than two numbers of workers were measured."""
    if len(pieces) < 2:
        return []
    most = max(pieces)
    measured = ", ".join(f"{1000 * one.latency:.2f} ms with {n}" for n, one in sorted(pieces.items()))
    lines = [
        "",
        f"From these pieces, a cluster on 10 GbE whose workers have as many rows and threads each as those "
        f"of the {most} above (an exchange of 8 bytes took {measured} workers, all on this machine):",
        "",
        "| workers | MB sent | s on the wire | s of latency | s of computing | efficiency |",
        "| ---: | ---: | ---: | ---: | ---: | ---: |",
    ]
    for n_workers in WORKERS:
        one = plan(pieces, n_workers)
        lines.append(
            f"| {n_workers} | {one.bytes_sent / 1e6:.3g} | {one.wire:.3g} | {one.latency:.3g} | "
            f"{one.compute:.3g} | {one.efficiency:.2f} |"
        )
    return lines
