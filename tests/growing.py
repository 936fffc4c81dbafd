"""Settings and tasks of growers, as tests write them."""

from __future__ import annotations

from typing import Any

import numpy as np

from polyleaf._core import GrowSettings
from polyleaf.growth.contract import Destination, Hessian, LeafGradients, Renewal, SplitGradients, Task
from polyleaf.params.table import PARAMETERS

# What growers can be told.
NAMES = tuple(name for name in dir(GrowSettings) if not name.startswith("_"))
_DEFAULTS = {one.name: one.default for one in PARAMETERS if one.name in NAMES}
_DEFAULTS |= {"hessian": "diagonal", "max_depth": 6, "min_samples_leaf": 20, "bounded_influence": False}


def settings(**changes: Any) -> GrowSettings:
    """The defaults of the parameters, with depth 6 and 20 rows in a leaf, but for some."""
    of_grower = GrowSettings()
    for name, value in (_DEFAULTS | changes).items():
        setattr(of_grower, name, value)
    return of_grower


def varied(of_grower: GrowSettings, **changes: Any) -> GrowSettings:
    """The same settings, but for some."""
    return settings(**{name: getattr(of_grower, name) for name in NAMES} | changes)


def task(
    gradient: Any,
    hessian: Hessian = None,
    weight: Any = None,
    *,
    gain_weight: Any = None,
    unit: Any = None,
    label: Any = None,
    renewal: Renewal | None = None,
    raw: Any = None,
    leaf_of_row: Any = None,
    **rest: Any,
) -> Task:
    """A tree for these gradients, on which its splits are found, too, unless `rest` has others."""
    ones = np.ones(gradient.shape[1])
    gain_weight, unit = (ones if one is None else one for one in (gain_weight, unit))
    leaves = LeafGradients(gradient, hessian, unit, label, renewal)
    splits = SplitGradients(gradient, leaves.hessian_array, None, gain_weight, unit)
    destination = Destination(raw, leaf_of_row)
    return Task(leaves, weight=weight, destination=destination, **{"split_gradients": splits} | rest)
