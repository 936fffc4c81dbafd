"""What the splits of a tree are found on: all outputs, or a sketch of them."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from polyleaf._core import MadeGradients
from polyleaf.data.inputs import FloatArray
from polyleaf.growth.arrays import Arrays, CpuArrays, FloatMatrix, Sketch
from polyleaf.growth.contract import Gradient, Hessian, SplitGradients
from polyleaf.growth.round_draws import drawn_groups, generator_of_round


@dataclass(eq=False, slots=True)
class Projection:
    """Mixtures of outputs with random signs, each of one of k random groups of outputs.

    The squares of a mixture's coefficients sum to 1: its Hessian, (P * P) h, is the mean over its group
    by gain weights. The expected score of the mixtures is that of all outputs with these Hessians.

    Attributes
    ----------
    matrix : float64 ndarray of shape (outputs, k)
        P, the coefficients.
    gain_weight : float64 ndarray of shape (k,)
        Share of each mixture in the split score.
    of_outputs : float64 ndarray of shape (outputs,)
        The gain weights of the outputs.
    """

    matrix: FloatArray
    gain_weight: FloatArray
    of_outputs: FloatArray

    @property
    def share(self) -> FloatArray:
        """Of the outputs in the mean Hessian of a row: float64 ndarray of shape (outputs,)."""
        everywhere = self.of_outputs if self.of_outputs.any() else np.ones(len(self.of_outputs))
        share: FloatArray = everywhere / everywhere.sum()
        return share

    @classmethod
    def draw(cls, gain_weight: FloatArray, size: int, seed: int, number: int) -> Projection:
        """Return the mixtures of round `number`, of `size` groups, for outputs of these gain weights."""
        group, signs = drawn_groups(len(gain_weight), size, seed, number)
        total = _sums_of_groups(group, gain_weight, size)
        of_group, share = total[group], gain_weight
        if 0 in total.tolist():
            # Targets without variance have no share in the score: any mixture of them will do.
            share = np.where(of_group > 0, gain_weight, 1.0)
            of_group = _sums_of_groups(group, share, size)[group]
        matrix = signs * np.sqrt(share / of_group)[:, np.newaxis]
        # A split's gain is averaged over the outputs involved: with these weights it is that of all outputs.
        return cls(matrix, total * (size / len(gain_weight)), gain_weight)


@dataclass(frozen=True)
class SplitPlan:
    """How what splits are found on is made from a round's gradients.

    Attributes
    ----------
    sketch : {"random_projection", "random_sampling", "top_outputs"} or None
        None: all outputs.
    size : int
        Outputs of the sketch. One that is not smaller than the problem is no sketch.
    shared : bool
        One curvature a row, the mean over the outputs, instead of a diagonal Hessian.
    seed : int
        Random choices are keyed by it and the round.
    arrays : Arrays
        What computes with the gradients, where they are.
    """

    sketch: str | None
    size: int
    shared: bool
    seed: int
    arrays: Arrays = field(default_factory=CpuArrays)
    _no_unit: FloatArray = field(init=False, repr=False)
    # The last projection, by its round: it is asked for before the gradients are there, and again with them.
    _drawn: dict[int, tuple[FloatArray, Projection]] = field(default_factory=dict, init=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_no_unit", np.full(self.size, np.inf))

    def sketch_of_round(self, number: int, n_rows: int, gain_weight: FloatArray, rule: str) -> Sketch | None:
        """Return the sketch of round `number`, to be filled while the gradients are computed.

        `rule` says how the Hessian follows from the gradient. None: `make` needs the gradients themselves.
        """
        if not self.shared:
            return None
        if self._takes_all(len(gain_weight)):
            return self.arrays.sketch(n_rows, None, _equal_shares(len(gain_weight)), rule)
        if self.sketch != "random_projection":
            return None
        projection = self.projection(gain_weight, number)
        return self.arrays.sketch(n_rows, projection.matrix, projection.share, rule)

    def needs_no_gradients(self, n_outputs: int) -> bool:
        """Whether `make` can do with a `whole_sketch` that was filled while gradients were computed."""
        return self.sketch == "random_projection" and not self._takes_all(n_outputs)

    def whole_sketch(
        self, number: int, n_rows: int, gain_weight: FloatArray, rule: str | None, own_hessian: bool
    ) -> Sketch:
        """Return the sketch of round `number`, to be filled with all that `make` needs.

        `rule` says how the Hessian follows from the gradient; `own_hessian`: it does not, and is no constant.
        """
        projection = self.projection(gain_weight, number)
        of_gradient = self.arrays.sketch(
            n_rows, projection.matrix, None if rule is None else projection.share, rule or "itself"
        )
        assert of_gradient is not None  # the device can
        if not own_hessian:
            return of_gradient
        squares, share = (None, projection.share) if self.shared else (projection.matrix**2, None)
        return replace(of_gradient, hessian=self.arrays.sketch(n_rows, squares, share, "itself"))

    def _takes_all(self, n_outputs: int) -> bool:
        """Whether splits are found on all outputs."""
        return self.sketch is None or self.size >= n_outputs

    def make(
        self,
        gradient: Gradient,
        hessian: Hessian,
        gain_weight: FloatArray,
        unit: FloatArray,
        number: int,
        weight: FloatArray | None = None,
        sketch: Sketch | None = None,
    ) -> SplitGradients:
        """Return what the splits of round `number` are found on; see `LeafGradients` for the arguments.

        A Hessian by a rule is enough where it is shared. `sketch` is that of this round, filled already: the
        whole one, where gradients are not stored.
        """
        if self.sketch == "random_projection" and not self._takes_all(gradient.shape[1]):
            return self._projected(gradient, hessian, self.projection(gain_weight, number), sketch)
        assert not isinstance(gradient, MadeGradients)
        assert not isinstance(hessian, MadeGradients)
        if self._takes_all(gradient.shape[1]):
            return self._of_some(gradient, hessian, gain_weight, unit, sketch)
        norms = gain_weight * self.arrays.column_squares(gradient, weight)
        if self.sketch == "top_outputs":
            chosen = np.argsort(-norms, kind="stable")[: self.size]
        else:
            chosen = _drawn(norms, self.size, generator_of_round(self.seed, number, 2))
        chosen = np.sort(chosen)
        return self._of_some(
            self.arrays.take(gradient, chosen),
            hessian if hessian is None or isinstance(hessian, str) else self.arrays.take(hessian, chosen),
            gain_weight[chosen],
            unit[chosen],
        )

    def _of_some(
        self,
        gradient: FloatMatrix,
        hessian: FloatMatrix | str | None,
        gain_weight: FloatArray,
        unit: FloatArray,
        sketch: Sketch | None = None,
    ) -> SplitGradients:
        if not self.shared or hessian is None:
            assert not isinstance(hessian, str)
            return SplitGradients(gradient, hessian, None, gain_weight, unit)
        curvature = self._mean_hessian(gradient, hessian, _equal_shares(gradient.shape[1]), sketch)
        return SplitGradients(gradient, None, curvature, gain_weight, unit)

    def projection(self, gain_weight: FloatArray, number: int) -> Projection:
        """Return the mixtures of round `number`, for outputs of these gain weights."""
        known = self._drawn.get(number)
        if known is not None and np.array_equal(known[0], gain_weight):
            return known[1]
        projection = Projection.draw(gain_weight, self.size, self.seed, number)
        self._drawn.clear()
        self._drawn[number] = gain_weight, projection
        return projection

    def _projected(
        self, gradient: Gradient, hessian: Hessian, projection: Projection, sketch: Sketch | None
    ) -> SplitGradients:
        unit = self._no_unit
        mixed = self._mixed(gradient, projection.matrix, sketch)
        if self.shared and hessian is not None:
            curvature = self._mean_hessian(gradient, hessian, projection.share, sketch)
            return SplitGradients(mixed, None, curvature, projection.gain_weight, unit)
        of_groups = None
        if hessian is not None:
            assert not isinstance(hessian, str)
            of_groups = self._mixed(hessian, projection.matrix**2, None if sketch is None else sketch.hessian)
        return SplitGradients(mixed, of_groups, None, projection.gain_weight, unit)

    def _mixed(self, values: Gradient, matrix: FloatArray, sketch: Sketch | None) -> FloatMatrix:
        """Return mixtures of the outputs, which a sketch has already."""
        if sketch is not None and sketch.mixtures is not None:
            return sketch.mixtures
        assert not isinstance(values, MadeGradients)
        mixtures: FloatMatrix = self.arrays.project(values, matrix)
        return mixtures

    def _mean_hessian(
        self, gradient: Gradient, hessian: Gradient | str, share: FloatArray, sketch: Sketch | None
    ) -> npt.NDArray[np.float32]:
        """Return each row's mean of the Hessian over the outputs, which a sketch has already."""
        if sketch is not None and sketch.hessian is not None:
            sketch = sketch.hessian
        values, term = (gradient, hessian) if isinstance(hessian, str) else (hessian, "itself")
        sums: Any = self.arrays.row_sums(values, share, term) if sketch is None else sketch.sums
        return sums.astype(np.float32)  # type: ignore[no-any-return]


def _equal_shares(n_outputs: int) -> FloatArray:
    return np.full(n_outputs, 1 / n_outputs)


def _sums_of_groups(group: npt.NDArray[np.intp], weight: FloatArray, size: int) -> FloatArray:
    return np.bincount(group, weight, size).astype(np.float64, copy=False)


def _drawn(norms: FloatArray, size: int, generator: np.random.Generator) -> npt.NDArray[np.intp]:
    """Return distinct outputs, drawn in proportion to their norms; those without a gradient come last."""
    # The largest of log(u) / p are a sample without replacement.
    with np.errstate(divide="ignore"):
        keys = np.log(generator.random(len(norms))) / norms
    keys[norms <= 0] = -np.inf
    return np.argsort(-keys, kind="stable")[:size]
