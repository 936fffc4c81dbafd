"""The growth contract: what is to be grown, by which settings, and what grows it.

A :class:`Task` is one tree to be grown, ``polyleaf._core.GrowSettings`` is how every tree of a training is
grown, and a :class:`Grower` makes trees of tasks. There are three of them: `polyleaf.growth.dense`,
`polyleaf.growth.label_sparse` and `polyleaf.gpu.grower`. The core has the same contract in C++
(``core/growth/contract.hpp``).

Nobody changes a task or what it holds. They are not frozen: one of each is made for each tree, and freezing
them takes a twentieth of a round of a small table.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from polyleaf._core import GrowSettings, MadeGradients
from polyleaf.data.inputs import FloatArray
from polyleaf.growth.arrays import FloatMatrix
from polyleaf.growth.sampling import ALL_FEATURES, ALL_ROWS, FeatureSample, RowSample
from polyleaf.growth.tree import Tree
from polyleaf.params.constraints import SignMatrix
from polyleaf.params.settings import Settings
from polyleaf.peers.shard import Shard

# With more outputs, the table of what each gains by each feature would take too much memory.
MOST_OUTPUT_GAINS = 1024

# As an array, or as what makes it from the scores, some rows at a time.
Gradient = FloatMatrix | MadeGradients
# The same, or the name of the rule that makes it from the gradient (`Loss.hessian_rule`), or None: 1.
Hessian = Gradient | str | None


@dataclass(frozen=True)
class Renewal:
    """Leaf values that are quantiles of the residuals y - raw, once the splits of a tree stand.

    Attributes
    ----------
    level : float64 ndarray of shape (outputs,)
        Which quantile; NaN: the output's values stay those of the gradients.
    y : float64 ndarray of shape (rows, columns)
        Targets of all rows.
    column : int32 ndarray of shape (outputs,)
        The column of `y` that each output predicts.
    cell_weight : float64 ndarray of shape (rows, outputs) or None
        Weights of the residuals; None: those of the rows.
    """

    level: FloatArray
    y: FloatArray
    column: npt.NDArray[np.int32]
    cell_weight: FloatArray | None = None

    def of_outputs(self, part: slice) -> Renewal | None:
        """Return the renewal of some outputs; None where none of them is renewed."""
        level = self.level[part]
        if np.isnan(level).all():
            return None
        weight = None if self.cell_weight is None else self.cell_weight[:, part]
        return Renewal(level, self.y, self.column[part], weight)


@dataclass(eq=False, slots=True)
class LeafGradients:
    """What leaf values are made of.

    Attributes
    ----------
    gradient : float32 array of shape (rows, outputs) or MadeGradients
        Of the loss, unweighted, in multiples of `unit`; or what makes it.
    hessian : float32 array of the same shape, MadeGradients, str or None
        Also in multiples; or what makes it along with the gradient; the name of the rule that makes it from
        the gradient; None: 1 everywhere.
    unit : float64 ndarray of shape (outputs,)
        Power of two that gradients and leaf values are multiples of.
    label : int32 ndarray of shape (rows,) or None
        Class codes, which an exact Hessian needs.
    renewal : Renewal or None
        Outputs whose values are quantiles of the residuals instead.
    """

    gradient: Gradient
    hessian: Hessian
    unit: FloatArray
    label: npt.NDArray[np.int32] | None = None
    renewal: Renewal | None = None

    @property
    def hessian_array(self) -> FloatMatrix | None:
        """The Hessian, where it is stored."""
        return None if isinstance(self.hessian, str | MadeGradients) else self.hessian

    @property
    def hessian_rule(self) -> str:
        """The rule that makes the Hessian from the gradient; "itself": there is none."""
        return self.hessian if isinstance(self.hessian, str) else "itself"

    @property
    def has_own_hessian(self) -> bool:
        """Whether each output has its own Hessian, instead of the row's weight."""
        return self.hessian is not None


@dataclass(eq=False, slots=True)
class SplitGradients:
    """What splits are found on: all outputs, or a sketch of them. Leaf values never come from here.

    Attributes
    ----------
    gradient : float32 array of shape (rows, k)
        Of all outputs, of some, or of mixtures of them.
    hessian : float32 array of shape (rows, k) or None
        Diagonal Hessian of these.
    curvature : float32 array of shape (rows,) or None
        Without `hessian`: one number for all outputs of a row; None: 1.
    gain_weight : float64 ndarray of shape (k,)
        Share of each in the split score.
    unit : float64 ndarray of shape (k,)
        What the gradients are multiples of; infinite where L1 regularisation has no meaning.
    """

    gradient: FloatMatrix
    hessian: FloatMatrix | None
    curvature: npt.NDArray[np.float32] | None
    gain_weight: FloatArray
    unit: FloatArray


@dataclass(eq=False, slots=True)
class Destination:
    """What becomes of a tree: either, both or none.

    Attributes
    ----------
    raw : float64 array of shape (rows, outputs) or None
        Scores of the training rows, to which the tree is added.
    leaf_of_row : uint32 ndarray of shape (rows,) or None
        Set to the leaf of each training row.
    """

    raw: Any = None
    leaf_of_row: npt.NDArray[np.uint32] | None = None


NOWHERE = Destination()


@dataclass(eq=False, slots=True)
class Task:
    """One tree to be grown, and what becomes of it.

    Arrays of gradients and scores are where the grower works: NumPy or CuPy arrays. All others are NumPy
    arrays.

    Attributes
    ----------
    leaf_gradients : LeafGradients or None
        What leaf values are made of; None: the grower has gradients of its own.
    split_gradients : SplitGradients or None
        What splits are found on; None as above.
    weight : float64 ndarray of shape (rows,) or None
        Weight of each row.
    sample : RowSample
        The rows to grow from. With weights of its own, leaf values come from all rows.
    features : FeatureSample
        Which features may be used.
    monotone : int8 ndarray of shape (features, outputs) or None
        Whether a value may only rise (1) or fall (-1) with a feature. Needs splits found on all outputs.
    learning_rate : float
        Factor of the leaf values.
    destination : Destination
        What becomes of the tree.
    shard : Shard or None
        Which part of the rows all of this is of; None: all.
    """

    leaf_gradients: LeafGradients | None = None
    split_gradients: SplitGradients | None = None
    weight: FloatArray | None = None
    sample: RowSample = ALL_ROWS
    features: FeatureSample = ALL_FEATURES
    monotone: SignMatrix | None = None
    learning_rate: float = 1.0
    destination: Destination = NOWHERE
    shard: Shard | None = None

    @property
    def split_weight(self) -> FloatArray | None:
        """Weights of the rows while splits are found."""
        return self.weight if self.sample.weight is None else self.sample.weight

    @property
    def shares_gains(self) -> bool:
        """Whether gains are shared out to the outputs."""
        return self.leaf_gradients is not None and self.leaf_gradients.gradient.shape[1] <= MOST_OUTPUT_GAINS


class Grower(Protocol):
    """Grows trees on one table, by settings that are the same for all of them."""

    def grow(self, task: Task) -> Tree:
        """Return the tree of a task."""


def settings_of(run: Settings) -> GrowSettings:
    """Return those settings of a run that growers know, under the same names."""
    settings = GrowSettings()
    for one in fields(run):
        if hasattr(settings, one.name):
            setattr(settings, one.name, getattr(run, one.name))
    return settings
