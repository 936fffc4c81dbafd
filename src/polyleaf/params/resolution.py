"""Vectors with a value per output."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from polyleaf.params.rules import Shares, as_vector


def output_weight_vector(value: object, n_outputs: int) -> npt.NDArray[np.float64] | None:
    """Return `output_weight` with a mean of 1; None stays None."""
    if value is None:
        return None
    vector = as_vector("output_weight", value, Shares.allowed)
    if vector.shape != (n_outputs,):
        raise ValueError(
            f"output_weight has {vector.size} values, but the model has {n_outputs} output(s); it must have "
            "one for each."
        )
    relative = vector / vector.max()
    return np.asarray(relative / relative.mean(), dtype=np.float64)


def base_score_vector(value: object, n_outputs: int) -> npt.NDArray[np.float64] | None:
    """Spread `base_score` over the outputs; None stays None."""
    if value is None:
        return None
    vector = as_vector("base_score", value, f"float, {n_outputs} floats (one per output) or None")
    if vector.ndim == 0:
        return np.full(n_outputs, float(vector))
    if vector.shape != (n_outputs,):
        raise ValueError(
            f"base_score has {vector.size} values, but the model has {n_outputs} output(s); "
            "it must be a number or hold one value per output."
        )
    return vector
