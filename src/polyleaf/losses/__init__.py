"""Losses: base score, gradient and Hessian of each round, and the way from raw scores to predictions."""

from __future__ import annotations

from collections.abc import Callable

from polyleaf.data.inputs import Array, FloatArray
from polyleaf.losses.absolute_error import AbsoluteError
from polyleaf.losses.base import Loss
from polyleaf.losses.binary_cross_entropy import BinaryCrossEntropy
from polyleaf.losses.clipped_squared_error import ClippedSquaredError
from polyleaf.losses.cross_entropy import SOFTMAX_CURVATURES, CrossEntropy
from polyleaf.losses.custom import CustomLoss
from polyleaf.losses.details import LossDetails
from polyleaf.losses.gamma import Gamma
from polyleaf.losses.huber import Huber
from polyleaf.losses.poisson import Poisson
from polyleaf.losses.quantile import Quantile
from polyleaf.losses.squared_error import SquaredError
from polyleaf.losses.tweedie import Tweedie
from polyleaf.params.target_specs import TargetKind

__all__ = ["LOG_LINK", "OBJECTIVES_OF", "SOFTMAX_CURVATURES", "Loss", "LossDetails", "make_loss"]

# Objectives whose predictions are the exponential of the raw score.
LOG_LINK = ("poisson", "gamma", "tweedie")

OBJECTIVES_OF: dict[TargetKind, tuple[str, ...]] = {
    "regression": ("squared_error", "absolute_error", "huber", "quantile", *LOG_LINK),
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
    details: LossDetails | None = None,
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
    details = details or LossDetails()
    makers: dict[str, Callable[[], Loss]] = {
        "squared_error": lambda: SquaredError(n_outputs),
        "absolute_error": lambda: AbsoluteError(n_outputs),
        "huber": lambda: Huber(n_outputs, details.huber_delta),
        "quantile": lambda: Quantile(n_outputs, details.quantile_levels),
        "poisson": lambda: Poisson(n_outputs),
        "gamma": lambda: Gamma(n_outputs),
        "tweedie": lambda: Tweedie(n_outputs, details.tweedie_power),
        "cross_entropy": lambda: CrossEntropy(n_outputs, softmax_curvature),
        "binary_cross_entropy": lambda: BinaryCrossEntropy(n_outputs),
        "clipped_squared_error": lambda: ClippedSquaredError(n_outputs),
    }
    return makers[objective]()
