"""Several losses side by side, each of its own outputs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from polyleaf.data.inputs import Array, FloatArray
from polyleaf.losses.base import Gradients, Loss, Workspace
from polyleaf.losses.cross_entropy import CrossEntropy


@dataclass(frozen=True)
class LossGroup:
    """One of the losses.

    Attributes
    ----------
    name : str
        Of the group.
    loss : Loss
        Of its outputs alone.
    columns, outputs : slice
        Its columns of the coded y, and its outputs.
    weight : float
        Share in the split score, relative to the other groups.
    """

    name: str
    loss: Loss
    columns: slice
    outputs: slice
    weight: float = 1.0

    def targets(self, y: FloatArray) -> Array:
        """Return the group's targets as its loss reads them."""
        part = y[:, self.columns]
        if isinstance(self.loss, CrossEntropy):
            return part[:, 0].astype(np.int32)
        return np.ascontiguousarray(part)

    def weights(self, weight: FloatArray | None) -> FloatArray | None:
        """Return the group's weights, of rows or of cells; the classes of a row have one."""
        if weight is None or weight.ndim == 1:
            return weight
        return (
            weight[:, self.outputs.start] if isinstance(self.loss, CrossEntropy) else weight[:, self.outputs]
        )


class GroupedLoss(Loss):
    """The sum of the losses of several groups. With a single group it is that group's loss, to the last bit.

    Each loss brings gain weights that put its outputs on a par (an output without any signal adds as much to
    a split's score whatever its loss). Groups are put on a par on top: the outputs of a group of d share what
    one group of average size has, so that a group of many classes does not drown a single number.
    """

    def __init__(self, groups: Sequence[LossGroup]) -> None:
        super().__init__(sum(group.loss.n_outputs for group in groups))
        self.groups = tuple(groups)
        only = groups[0].loss if len(groups) == 1 else None
        self.name = "grouped" if only is None else only.name
        self.default_metric = "loss" if only is None else only.default_metric
        self.hessian_rule = None if only is None else only.hessian_rule
        levels = [
            np.full(group.loss.n_outputs, np.nan)
            if group.loss.leaf_levels is None
            else group.loss.leaf_levels
            for group in groups
        ]
        together = np.concatenate(levels)
        self.leaf_levels: FloatArray | None = None if np.isnan(together).all() else together
        self._workspace = Workspace()
        self._coded: tuple[Any, list[Array]] | None = None

    def target_columns(self) -> npt.NDArray[np.int32]:
        """Return the column of y of each output; the classes of a group share one."""
        columns = [
            group.columns.start
            + np.minimum(group.loss.target_columns(), group.columns.stop - group.columns.start - 1)
            for group in self.groups
        ]
        return np.concatenate(columns).astype(np.int32)

    def check_targets(self, y: Array, weight: FloatArray | None, name: str, *, training: bool) -> None:
        """Check the targets of each group."""
        for group, part in zip(self.groups, self._targets(y), strict=True):
            group.loss.check_targets(
                part, group.weights(weight), f"{group.name!r} of {name}", training=training
            )

    def base_score(self, y: Array, weight: FloatArray | None) -> FloatArray:
        """Return the best constants of the groups."""
        parts = zip(self.groups, self._targets(y), strict=True)
        return np.concatenate([group.loss.base_score(part, group.weights(weight)) for group, part in parts])

    def scales(
        self, y: Array, weight: FloatArray | None, base: FloatArray, scale_targets: bool
    ) -> tuple[FloatArray, FloatArray]:
        """Return the units of the groups, and their gain weights on a par with each other."""
        unit, gain_weight = np.ones(self.n_outputs), np.ones(self.n_outputs)
        for group, part in zip(self.groups, self._targets(y), strict=True):
            unit[group.outputs], own = group.loss.scales(
                part, group.weights(weight), base[group.outputs], scale_targets
            )
            share = self.n_outputs / (len(self.groups) * group.loss.n_outputs)  # 1 for a single group
            gain_weight[group.outputs] = own * (share * group.weight)
        return unit, gain_weight

    def gradients(self, y: Array, raw: FloatArray, n_threads: int) -> Gradients:
        """Return the gradients of the groups side by side; a Hessian of None is 1 where others have one."""
        parts = self._targets(y)
        if len(self.groups) == 1:
            return self.groups[0].loss.gradients(parts[0], raw, n_threads)
        gradient = self._workspace("gradient", raw.shape)
        hessian = self._workspace("hessian", raw.shape)
        all_ones = True
        for group, part in zip(self.groups, parts, strict=True):
            own = np.ascontiguousarray(raw[:, group.outputs])
            gradient[:, group.outputs], of_group = group.loss.gradients(part, own, n_threads)
            hessian[:, group.outputs] = 1.0 if of_group is None else of_group
            all_ones = all_ones and of_group is None
        return gradient, None if all_ones else hessian

    def gradient(self, y: Array, raw: FloatArray, n_threads: int) -> npt.NDArray[np.float32]:
        """Return the gradient alone, of a single group."""
        if len(self.groups) > 1:
            return super().gradient(y, raw, n_threads)
        return self.groups[0].loss.gradient(self._targets(y)[0], raw, n_threads)

    def predict(self, raw: FloatArray, n_threads: int = 1) -> FloatArray:
        """Return the predictions of the groups side by side."""
        return np.hstack([group.loss.predict(raw[:, group.outputs], n_threads) for group in self.groups])

    def _targets(self, y: Array) -> list[Array]:
        """Return the targets of each group, cut out once for all rounds."""
        if self._coded is None or self._coded[0] is not y:
            self._coded = (y, [group.targets(y) for group in self.groups])
        return self._coded[1]
