"""Losses: base score, gradient and Hessian of each round, and the way from raw scores to predictions."""

from __future__ import annotations

from collections.abc import Callable

from polyleaf.data.inputs import Array, FloatArray
from polyleaf.data.targets import TargetKind
from polyleaf.losses.base import Loss
from polyleaf.losses.binary_cross_entropy import BinaryCrossEntropy
from polyleaf.losses.clipped_squared_error import ClippedSquaredError
from polyleaf.losses.cross_entropy import SOFTMAX_CURVATURES, CrossEntropy
from polyleaf.losses.custom import CustomLoss
from polyleaf.losses.squared_error import SquaredError

__all__ = ["OBJECTIVES_OF", "SOFTMAX_CURVATURES", "Loss", "make_loss"]

OBJECTIVES_OF: dict[TargetKind, tuple[str, ...]] = {
    "regression": ("squared_error",),
    "multiclass": ("cross_entropy",),
    "binary": ("binary_cross_entropy",),
    "multilabel": ("binary_cross_entropy", "clipped_squared_error"),
}


def make_loss(
    objective: str | Callable[[Array, FloatArray], tuple[Array, Array]],
    *,
    n_outputs: int,
    kind: TargetKind,
    softmax_curvature: str = "p(1-p)",
) -> Loss:
    """Return the loss that `objective` names, for `n_outputs` raw scores a row.

    Raises
    ------
    ValueError
        The objective is unknown or does not fit the kind of problem.
    """
    if callable(objective):
        return CustomLoss(objective, make_loss(OBJECTIVES_OF[kind][0], n_outputs=n_outputs, kind=kind))
    if objective not in OBJECTIVES_OF[kind]:
        allowed = ", ".join(repr(name) for name in OBJECTIVES_OF[kind])
        raise ValueError(
            f"objective={objective!r} is not available for a {kind} target; allowed: {allowed}, or a callable"
        )
    if objective == "squared_error":
        return SquaredError(n_outputs)
    if objective == "cross_entropy":
        return CrossEntropy(n_outputs, softmax_curvature)
    if objective == "clipped_squared_error":
        return ClippedSquaredError(n_outputs)
    return BinaryCrossEntropy(n_outputs)
