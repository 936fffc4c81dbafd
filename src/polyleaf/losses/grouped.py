"""Several losses side by side, each of its own outputs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from polyleaf.data.inputs import Array, FloatArray
from polyleaf.losses.base import Loss
from polyleaf.losses.formula import FloatMatrix, Formula
from polyleaf.params.wording import TargetWords


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
        if self.loss.class_codes:
            return part[:, 0].astype(np.int32)
        return np.ascontiguousarray(part)

    def weights(self, weight: FloatArray | None) -> FloatArray | None:
        """Return the group's weights, of rows or of cells; the classes of a row have one."""
        if weight is None or weight.ndim == 1:
            return weight
        return weight[:, self.outputs.start] if self.loss.class_codes else weight[:, self.outputs]


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
        self.unit_hessian = all(group.loss.unit_hessian for group in groups)
        self.compiled = only is not None and only.compiled
        self.hessian_rule = None if only is None else only.hessian_rule
        levels = [
            np.full(group.loss.n_outputs, np.nan)
            if group.loss.leaf_levels is None
            else group.loss.leaf_levels
            for group in groups
        ]
        together = np.concatenate(levels)
        self.leaf_levels: FloatArray | None = None if np.isnan(together).all() else together
        self._coded: tuple[Any, list[Array]] | None = None

    def target_columns(self) -> npt.NDArray[np.int32]:
        """Return the column of y of each output; the classes of a group share one."""
        columns = [
            group.columns.start
            + np.minimum(group.loss.target_columns(), group.columns.stop - group.columns.start - 1)
            for group in self.groups
        ]
        return np.concatenate(columns).astype(np.int32)

    def check_targets(
        self, y: Array, weight: FloatArray | None, words: TargetWords, *, training: bool
    ) -> None:
        """Check the targets of each group."""
        for group, part in zip(self.groups, self._targets(y), strict=True):
            group.loss.check_targets(
                part, group.weights(weight), words.group(group.name, group.columns), training=training
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

    def formula(self, y: Array) -> Formula:
        """Return the formulas of the groups side by side."""
        formulas = [
            group.loss.formula(part) for group, part in zip(self.groups, self._targets(y), strict=True)
        ]
        if len(formulas) == 1:
            return formulas[0]
        return _GroupedFormula(formulas, [group.outputs for group in self.groups])

    def predict(self, raw: FloatArray, n_threads: int = 1) -> FloatArray:
        """Return the predictions of the groups side by side."""
        return np.hstack([group.loss.predict(raw[:, group.outputs], n_threads) for group in self.groups])

    def _targets(self, y: Array) -> list[Array]:
        """Return the targets of each group, cut out once for all rounds."""
        if self._coded is None or self._coded[0] is not y:
            self._coded = (y, [group.targets(y) for group in self.groups])
        return self._coded[1]


class _GroupedFormula:
    """Formulas of different outputs; a Hessian of 1 is written down where other groups have one."""

    def __init__(self, formulas: Sequence[Formula], outputs: Sequence[slice]) -> None:
        self._parts = [_Part(formula, own) for formula, own in zip(formulas, outputs, strict=True)]
        self.has_hessian = any(formula.has_hessian for formula in formulas)

    def gradients(
        self, raw: FloatArray, gradient: FloatMatrix, hessian: FloatMatrix | None, n_threads: int
    ) -> None:
        """Fill the arrays, group by group."""
        for part in self._parts:
            part.gradients(raw, gradient, hessian, n_threads)


class _Part:
    """The formula of one group, with arrays of its own outputs that are the same ones in every round."""

    def __init__(self, formula: Formula, outputs: slice) -> None:
        self._formula = formula
        self._outputs = outputs
        self._gradient = self._hessian = np.empty((0, 0), dtype=np.float32)

    def gradients(
        self, raw: FloatArray, gradient: FloatMatrix, hessian: FloatMatrix | None, n_threads: int
    ) -> None:
        own = np.ascontiguousarray(raw[:, self._outputs])
        if self._gradient.shape != own.shape:
            self._gradient = np.empty(own.shape, dtype=np.float32)
            self._hessian = np.ones_like(self._gradient)
        wanted = hessian is not None and self._formula.has_hessian
        self._formula.gradients(own, self._gradient, self._hessian if wanted else None, n_threads)
        gradient[:, self._outputs] = self._gradient
        if hessian is not None:
            hessian[:, self._outputs] = self._hessian
