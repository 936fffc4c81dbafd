"""The losses there are: a line for each, and the loss that an objective names."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from polyleaf.data.inputs import Array, FloatArray
from polyleaf.data.targets import TargetCoding
from polyleaf.losses.absolute_error import AbsoluteError
from polyleaf.losses.base import Loss
from polyleaf.losses.binary_cross_entropy import BinaryCrossEntropy
from polyleaf.losses.clipped_squared_error import ClippedSquaredError
from polyleaf.losses.cross_entropy import CrossEntropy
from polyleaf.losses.custom import CustomLoss
from polyleaf.losses.gamma import Gamma
from polyleaf.losses.huber import Huber
from polyleaf.losses.poisson import Poisson
from polyleaf.losses.quantile import Quantile
from polyleaf.losses.squared_error import SquaredError
from polyleaf.losses.tweedie import Tweedie
from polyleaf.params.combinations import refused
from polyleaf.params.objectives import OBJECTIVES, TargetKind, default_objective, objectives_of
from polyleaf.params.situation import Situation

# The first one for a kind of target is what it has by default.
LOSSES: tuple[type[Loss], ...] = (
    SquaredError,
    AbsoluteError,
    Huber,
    Quantile,
    Poisson,
    Gamma,
    Tweedie,
    CrossEntropy,
    BinaryCrossEntropy,
    ClippedSquaredError,
)
OBJECTIVES.update((loss.name, loss) for loss in LOSSES)


def make_loss(
    objective: str | Callable[[Array, FloatArray], tuple[Array, Array]],
    *,
    n_outputs: int,
    kind: TargetKind,
    parameters: Mapping[str, Any] | None = None,
) -> Loss:
    """Return the loss that `objective` names, for `n_outputs` raw scores a row.

    Of `parameters` it takes its own; what is left out has its default.

    Raises
    ------
    ValueError
        The objective is unknown or does not fit the kind of problem.
    """
    if callable(objective):
        return CustomLoss(objective, make_loss(default_objective(kind), n_outputs=n_outputs, kind=kind))
    if objective not in objectives_of(kind):
        allowed = {"allowed": ", ".join(repr(name) for name in objectives_of(kind))}
        raise refused(Situation({"objective": objective}, kind=kind, unsuited="objective", words=allowed))
    given = parameters or {}
    chosen = OBJECTIVES[objective]
    loss = chosen(n_outputs, **{name: given[name] for name in chosen.parameters if name in given})
    assert isinstance(loss, Loss)
    return loss


def make_link(loss: str, coding: TargetCoding) -> Loss:
    """Return a loss that predicts as that of a model does, whose name and coding are all that is known of it.

    A function is in no file: its link is that of the usual objective for the kind of target.
    """
    objective = default_objective(coding.kind) if loss == "custom" else loss
    parameters = {} if coding.levels is None else {"quantile_levels": coding.levels}
    return make_loss(objective, n_outputs=coding.n_outputs, kind=coding.kind, parameters=parameters)
