"""Gradients of a loss at given scores."""

from __future__ import annotations

from typing import Any

import numpy as np

from polyleaf.losses import Loss


def gradients_of(loss: Loss, y: Any, raw: Any, n_threads: int = 1) -> tuple[Any, Any]:
    """Return gradient and Hessian, float32 arrays of the shape of `raw`; a Hessian of None is 1."""
    formula = loss.formula(y)
    gradient = np.full(raw.shape, np.nan, dtype=np.float32)
    hessian = np.full_like(gradient, np.nan) if formula.has_hessian else None
    formula.gradients(raw, gradient, hessian, n_threads)
    return gradient, hessian
