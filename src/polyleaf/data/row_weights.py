"""Weights of rows: one for each, finite, not all of them 0, and with a sum within range."""

from __future__ import annotations

import numpy as np

from polyleaf.data.float_arrays import as_float64
from polyleaf.data.row_names import row_name
from polyleaf.data.tables import FloatArray
from polyleaf.peers.gather import any_shard, gather_notes

# Squares of sums of weighted gradients stay within float64.
_LARGEST_TOTAL = 1e140


def check_weights(weight: object, n_rows: int, name: str = "sample_weight") -> FloatArray | None:
    """Return row weights as float64 of shape (n_rows,).

    Raises
    ------
    ValueError
        For a wrong shape, a negative or non-finite weight, only zeros, or a sum that overflows.
    """
    if weight is None:
        return None
    weights = as_float64(weight, name)
    if weights.shape != (n_rows,):
        raise ValueError(
            f"{name} has shape {weights.shape}; it must hold one weight per row, shape ({n_rows},)."
        )
    return check_weight_values(weights, name)


def check_weight_values(weights: FloatArray, name: str) -> FloatArray:
    """Return weights of rows or cells, or raise ValueError as `check_weights` does."""
    wrong = ~(np.isfinite(weights) & (weights >= 0))
    if wrong.any():
        place = np.argwhere(wrong)[0]
        column = f", column {place[1]}" if weights.ndim == 2 else ""
        raise ValueError(
            f"{name} must be finite and >= 0; got {weights[tuple(place)]} in {row_name(place[0])}{column}."
        )
    if not any_shard(bool(weights.any())):
        raise ValueError(f"{name} is zero in all rows; at least one weight must be greater than 0.")
    return check_total(weights, name)


def check_total(weights: FloatArray, name: str) -> FloatArray:
    """Return weights whose sum is within range, or raise ValueError."""
    with np.errstate(over="ignore"):
        total = sum(gather_notes(float(weights.sum())))
    if not 1 / _LARGEST_TOTAL <= total <= _LARGEST_TOTAL:
        raise ValueError(
            f"{name} is too large or too small: the weights sum to {total}, allowed is "
            f"{1 / _LARGEST_TOTAL:g} to {_LARGEST_TOTAL:g}."
        )
    return weights
