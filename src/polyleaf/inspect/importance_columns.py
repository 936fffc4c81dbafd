"""Importances with names, in the order in which a person reads them."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from polyleaf.data.inputs import FloatArray
from polyleaf.inspect.frames import Column, TextColumn


def importance_columns(
    found: FloatArray,
    features: Sequence[str],
    outputs: Sequence[str] | None,
    *,
    normalize: bool,
    with_std: bool,
) -> dict[str, Column]:
    """Return the columns of a frame of importances: features by their sum over outputs, the largest first.

    Parameters
    ----------
    found : float64 ndarray of shape (features, repeats, outputs)
        Importances, which are means over the repeats.
    features : sequence of str
        Their names.
    outputs : sequence of str or None
        Names of the outputs; None: there is one number for all of them.
    normalize : bool
        Whether to divide by the sum of all.
    with_std : bool
        Whether to add their standard deviations over the repeats.
    """
    mean, deviation = found.mean(axis=1), found.std(axis=1)
    total = mean.sum()
    if normalize and total > 0:
        mean, deviation = mean / total, deviation / total
    order = np.argsort(-mean.sum(axis=1), kind="stable")
    n_outputs = mean.shape[1]
    columns: dict[str, Column] = {
        "feature": TextColumn(features[j] for j in order.tolist() for _ in range(n_outputs))
    }
    if outputs is not None:
        columns["output"] = TextColumn(list(outputs) * len(order))
    columns["importance"] = mean[order].ravel()
    if with_std:
        columns["std"] = deviation[order].ravel()
    return columns
