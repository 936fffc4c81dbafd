"""Training curves with as many points as a screen can show."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

_MOST_POINTS = 300
_MOST_METRICS = 12


def curves(
    evals_result: Mapping[str, Mapping[str, Sequence[float]]], best: Mapping[str, int]
) -> tuple[list[dict[str, Any]], int]:
    """Return metrics, each with the curves of its data sets, and how many metrics are left out.

    A curve is a name, rounds from 1 on, and values; the first, best and last round are always in it.
    """
    by_metric: dict[str, list[dict[str, Any]]] = {}
    for name, metrics in evals_result.items():
        for metric, values in metrics.items():
            if len(values) > 0:
                by_metric.setdefault(metric, []).append(_curve(name, values, best.get(name, -1)))
    first = list(by_metric)[:_MOST_METRICS]
    found = [{"metric": metric, "sets": by_metric[metric]} for metric in first]
    return found, len(by_metric) - len(first)


def _curve(name: str, values: Sequence[float], best: int) -> dict[str, Any]:
    last = len(values) - 1
    rounds = np.unique(np.linspace(0, last, min(_MOST_POINTS, len(values))).round().astype(int))
    if 0 <= best <= last:
        rounds = np.union1d(rounds, [best])
    return {"name": name, "rounds": rounds + 1, "values": np.asarray(values, dtype=np.float64)[rounds]}
