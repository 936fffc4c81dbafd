"""Which worker trains on which partition: the one that has it, unless that would be unfair to it."""

from __future__ import annotations

from bisect import bisect_right, insort
from collections.abc import Mapping, Sequence

# Partitions move when a worker has so much more than the mean.
_TOLERATED = 1.1


def assign(sizes: Sequence[int], holders: Sequence[Sequence[str]], threads: Mapping[str, int]) -> list[str]:
    """Return a worker for each partition.

    Parameters
    ----------
    sizes : sequence of int
        Rows of each partition.
    holders : sequence of sequences of str
        Workers that have it in memory; others are among them where they may not be used.
    threads : mapping of str to int
        The workers that may be used, and their threads: rows per thread are to be about equal.
    """
    workers = sorted(threads)
    rows = dict.fromkeys(workers, 0)
    mine: dict[str, list[tuple[int, int]]] = {worker: [] for worker in workers}  # size and number, ascending
    place = [""] * len(sizes)

    def load(worker: str) -> float:
        return rows[worker] / threads[worker]

    def put(number: int, worker: str) -> None:
        insort(mine[worker], (sizes[number], number))
        rows[worker] += sizes[number]
        place[number] = worker

    for number in sorted(range(len(sizes)), key=lambda number: (-sizes[number], number)):
        here = [worker for worker in workers if worker in holders[number]]
        put(number, min(here or workers, key=lambda worker: (rows[worker] + sizes[number]) / threads[worker]))
    tolerated = _TOLERATED * sum(rows.values()) / sum(threads.values())
    while True:
        fullest = max(workers, key=load)
        if load(fullest) <= tolerated:
            return place
        # Rows that a worker can take before it is as full.
        room = {worker: load(fullest) * threads[worker] - rows[worker] for worker in workers}
        emptiest = max(workers, key=room.__getitem__)
        # The largest that does not turn the tables, or the smallest that helps at all.
        at = max(bisect_right(mine[fullest], (int(room[emptiest] / 2), len(sizes))) - 1, 0)
        size, number = mine[fullest][at]
        if size >= room[emptiest]:
            return place
        del mine[fullest][at]
        rows[fullest] -= size
        put(number, emptiest)
