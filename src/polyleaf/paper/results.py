"""Kept runs as the report looks them up."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from polyleaf.paper.store import Record


@dataclass(frozen=True)
class Summary:
    """Mean, standard deviation (0 for a single value) and number of some values."""

    mean: float
    deviation: float
    count: int


def summarise(values: Iterable[float]) -> Summary | None:
    """Return mean, deviation and number; None where there is no value."""
    array = np.array(list(values), dtype=np.float64)
    if len(array) == 0:
        return None
    deviation = float(array.std(ddof=1)) if len(array) > 1 else 0.0
    return Summary(float(array.mean()), deviation, len(array))


class Results:
    """The newest record of each (experiment, data set, method, seed) of one scale."""

    def __init__(self, records: Iterable[Record], scale: str) -> None:
        self.scale = scale
        self.records = [record for record in records if record.run.scale == scale]
        self._by_place: dict[tuple[str, str, str], dict[int, Record]] = {}
        for record in self.records:
            run = record.run
            self._by_place.setdefault((run.experiment, run.data, run.method), {})[run.seed] = record

    def of(self, experiment: str, data: str, method: str) -> dict[int, Record]:
        """Return the records by seed."""
        return dict(sorted(self._by_place.get((experiment, data, method), {}).items()))

    def values(self, experiment: str, data: str, method: str, field: str) -> dict[int, float]:
        """Return one number of each record that has it, by seed."""
        numbers = {seed: one.result[field] for seed, one in self.of(experiment, data, method).items()}
        return {seed: float(number) for seed, number in numbers.items() if number is not None}

    def summary(self, experiment: str, data: str, method: str, field: str) -> Summary | None:
        """Return mean and deviation of that number over the seeds."""
        return summarise(self.values(experiment, data, method, field).values())

    def data(self, experiment: str) -> set[str]:
        """Return the data sets an experiment has records of."""
        return {data for one, data, _ in self._by_place if one == experiment}
