"""The parameters of losses that have any; metrics of the same name share them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np


@dataclass(frozen=True)
class LossDetails:
    """What a loss or metric needs to know beside its name.

    Attributes
    ----------
    huber_delta : float
        Where Huber's loss turns from a parabola into a line.
    quantile_levels : tuple of float
        Ascending, between 0 and 1.
    tweedie_power : float
        Between 1 and 2.
    """

    huber_delta: float = 1.0
    quantile_levels: tuple[float, ...] = (0.5,)
    tweedie_power: float = 1.5

    @classmethod
    def from_params(cls, params: Mapping[str, Any]) -> LossDetails:
        """Return those among checked parameters; what is not there has its default."""
        default = cls()
        levels = params.get("quantile_levels", default.quantile_levels)
        return cls(
            huber_delta=float(params.get("huber_delta", default.huber_delta)),
            quantile_levels=tuple(float(level) for level in np.atleast_1d(levels)),
            tweedie_power=float(params.get("tweedie_power", default.tweedie_power)),
        )
