"""Whether probabilities and quantiles are what they say."""

from __future__ import annotations

from typing import Any

import numpy as np

from polyleaf.data.inputs import FloatArray
from polyleaf.report.intervals import Resampling, with_interval
from polyleaf.report.outputs import ObservedOutputs, Output, OutputRows

N_BINS = 10


def reliability_sums(observed: OutputRows) -> FloatArray:
    """Return sums over ten equal ranges of probability, of shape (4, ranges).

    These are the weight, the weighted probabilities, the weighted truth, and the number of rows.
    """
    place = np.minimum((observed.prediction * N_BINS).astype(np.intp), N_BINS - 1)
    columns = (
        observed.weight,
        observed.weight * observed.prediction,
        observed.weight * observed.truth,
        np.ones(len(place)),
    )
    return np.stack([np.bincount(place, one, N_BINS) for one in columns])


def reliability(sums: FloatArray) -> dict[str, Any]:
    """Return what such sums say: probability, share that came true and rows of each range that has any.

    "error" is the expected calibration error: the mean distance of the two, by weight.
    """
    sums = sums[:, sums[0] > 0]
    weight, predicted, true, rows = sums
    error = np.abs(predicted - true).sum() / weight.sum() if len(weight) > 0 else np.nan
    return {"p": predicted / weight, "share": true / weight, "rows": rows.astype(int), "error": float(error)}


def coverage(outputs: ObservedOutputs, group: int, resampling: Resampling) -> list[dict[str, Any]]:
    """Return, of each target whose quantiles are predicted, how often it is below each, and between the ends.

    "levels" has level, observed share and its interval; "between" the same of the lowest and highest level.
    """
    by_column: dict[int, list[Output]] = {}
    for output in outputs.of_group(group):
        by_column.setdefault(output.column, []).append(output)
    found = []
    coded, first = outputs.groups[group].coded, outputs.groups[group].columns.start
    for column, levels in by_column.items():
        parts = [outputs.observed(output) for output in levels]
        if len(parts[0].rows) == 0:
            continue
        rows, weight, truth = parts[0].rows, parts[0].weight, parts[0].truth
        below = [weight * (truth <= part.prediction) for part in parts]
        between = weight * ((truth >= parts[0].prediction) & (truth <= parts[-1].prediction))
        width = weight * (parts[-1].prediction - parts[0].prediction)
        sums = resampling.sums(rows, np.stack([weight, *below, between, width]))
        shares = sums[:, 1:] / np.where(sums[:, :1] > 0, sums[:, :1], np.nan)
        of_target: dict[str, Any] = {
            "target": coded.columns[column - first],
            "levels": [
                [output.level, *with_interval(shares[:, number])] for number, output in enumerate(levels)
            ],
        }
        if len(levels) > 1:
            nominal = (levels[-1].level or 0.0) - (levels[0].level or 0.0)
            of_target["between"] = [nominal, *with_interval(shares[:, len(levels)])]
            of_target["width"] = float(shares[0, -1])
        found.append(of_target)
    return found
