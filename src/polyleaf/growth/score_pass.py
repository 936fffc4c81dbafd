"""The score pass: training scores, the tree not yet added to them, gradients, and the sketch of these."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from polyleaf import _core
from polyleaf.data.inputs import FloatArray
from polyleaf.growth.arrays import FloatMatrix, Sketch
from polyleaf.growth.contract import Destination, Gradient, Hessian
from polyleaf.growth.split_gradients import SplitPlan
from polyleaf.growth.tree import Tree
from polyleaf.losses.formula import Formula


@dataclass(eq=False, slots=True)
class RoundGradients:
    """The gradients of a round.

    Attributes
    ----------
    gradient : float32 array of shape (rows, outputs) or MadeGradients
        Weighted by cells; rows are weighted where trees grow. The same memory in every round; or no memory,
        but what makes them.
    hessian : float32 array of that shape, MadeGradients, str or None
        As an array, as what makes it along with the gradient, as the name of the rule that makes it from the
        gradient, or None: 1.
    sketch : Sketch or None
        What was made of the gradients on the way.
    """

    gradient: Gradient
    hessian: Hessian
    sketch: Sketch | None = None

    @property
    def stored(self) -> FloatMatrix | None:
        """The gradient, where it is an array."""
        return None if isinstance(self.gradient, _core.MadeGradients) else self.gradient

    def of_outputs(self, part: slice) -> RoundGradients:
        """Return those of some outputs; where they are made, a tree is of all of them."""
        hessian = self.hessian
        if isinstance(self.gradient, _core.MadeGradients) or isinstance(hessian, _core.MadeGradients):
            return self
        if hessian is not None and not isinstance(hessian, str):
            hessian = hessian[:, part]
        return RoundGradients(self.gradient[:, part], hessian, self.sketch)


@dataclass(frozen=True)
class PassPlan:
    """What the gradients of each round are to be, and how trees are added to the scores.

    Attributes
    ----------
    unit, gain_weight : float64 ndarray of shape (outputs,)
        What leaf values are multiples of, and the share of each output in the split score.
    splits : SplitPlan
        Which sketch there is to be filled.
    hessian_rule : str or None
        How the Hessian follows from the gradient, where that is enough: then it is not stored.
    cell_weight : float32 ndarray of shape (rows, outputs) or None
        Weights of cells; None: 1.
    whole_trees : bool
        Whether a round is one tree with values of all outputs in each leaf, and no leaf value needs the
        scores: such a tree may be added later, by the sweep that makes the next gradients.
    row_weight : float64 ndarray of shape (rows,) or None
        Weights of rows; None: 1.
    stores_gradients : bool
        Whether gradients are kept in memory from the sweep to the leaves. If not, they are made again.
    """

    unit: FloatArray
    gain_weight: FloatArray
    splits: SplitPlan
    hessian_rule: str | None
    cell_weight: FloatMatrix | None
    whole_trees: bool
    row_weight: FloatArray | None = None
    stores_gradients: bool = True

    def sketch(self, number: int, n_rows: int) -> Sketch | None:
        """Return the sketch of round `number`, to be filled; None: there is nothing to sketch on the way."""
        if self.hessian_rule is None:
            return None
        return self.splits.sketch_of_round(number, n_rows, self.gain_weight, self.hessian_rule)


def weighted_by_cells(gradient: Any, hessian: Any, weight: Any) -> RoundGradients:
    """Return a gradient and a stored Hessian times the weights of cells, all on one device; None: 1."""
    if weight is None:
        return RoundGradients(gradient, hessian)
    return RoundGradients(gradient * weight, weight if hessian is None else hessian * weight)


class ScorePass(Protocol):
    """Gives the gradients of each round and takes its trees.

    That adding a tree, making gradients and sketching them may share one sweep over memory is its secret.
    """

    def gradients(self, number: int) -> RoundGradients | None:
        """Return the gradients of round `number`, at the scores of all trees so far.

        None: the grower has them itself.
        """

    def destination(self, outputs: slice) -> Destination:
        """Return where a grower puts what the pass needs of a tree of some outputs."""

    def add(self, tree: Tree) -> None:
        """Take a tree that was grown with such a destination."""

    def scores(self) -> FloatArray | None:
        """Return the raw scores of all trees so far, on the host; nobody may change them.

        None: they are too many, and predictions of all of them would be as many.
        """


class CpuScorePass:
    """The score pass of the CPU.

    Parameters
    ----------
    formula : Formula
        Of the loss, for the training rows.
    scores : float64 ndarray of shape (rows, outputs)
        At the start; changed in place from now on.
    plan : PassPlan
        What gradients are to be.
    n_threads : int
        Affects the time only.
    """

    def __init__(self, formula: Formula, scores: FloatArray, plan: PassPlan, n_threads: int) -> None:
        self._formula = formula
        self._scores = scores
        self._plan = plan
        self._n_threads = n_threads
        self._core = _core.ScorePass(scores, n_threads)
        own_hessian = plan.hessian_rule is None and formula.has_hessian
        self._made: _core.GradientsOfScores | None = None
        if not plan.stores_gradients:
            assert isinstance(formula, _core.Formula)
            self._made = _core.GradientsOfScores(formula, scores, plan.cell_weight, own_hessian)
        kept = scores.shape if plan.stores_gradients else (0, scores.shape[1])
        self._gradient = np.empty(kept, dtype=np.float32)
        self._hessian = np.empty(kept, dtype=np.float32) if own_hessian else None
        self._leaf_of_row = np.empty(len(scores), dtype=np.uint32) if plan.whole_trees else None

    def gradients(self, number: int) -> RoundGradients:
        """Return the gradients of round `number`."""
        plan = self._plan
        if self._made is not None:
            return self._made_gradients(self._made, number)
        sketch = plan.sketch(number, len(self._scores))
        self._sweep(None if sketch is None else sketch.core)
        if plan.hessian_rule is not None:
            return RoundGradients(self._gradient, plan.hessian_rule, sketch)
        return weighted_by_cells(self._gradient, self._hessian, plan.cell_weight)

    def _made_gradients(self, made: _core.GradientsOfScores, number: int) -> RoundGradients:
        """Return gradients that are made when they are asked for, and their sketch, which is made now."""
        plan, rule = self._plan, self._plan.hessian_rule
        sketch = plan.splits.whole_sketch(number, len(self._scores), plan.gain_weight, rule, made.has_hessian)
        of_hessian = None if sketch.hessian is None else sketch.hessian.core
        # A gradient whose Hessian follows by a rule is within 1: nobody asks how large it is.
        self._core.sweep_made(made, sketch.core, of_hessian, plan.row_weight, rule is None)
        return RoundGradients(made, made if made.has_hessian else rule, sketch)

    def _sweep(self, sketch: _core.Sketch | None) -> None:
        if isinstance(self._formula, _core.Formula):
            self._core.sweep(self._formula, self._gradient, self._hessian, sketch)
            return
        self._core.settle()
        self._formula.gradients(self._scores, self._gradient, self._hessian, self._n_threads)
        if sketch is not None:
            sketch.fill(self._gradient, self._n_threads)

    def destination(self, outputs: slice) -> Destination:
        """Return the leaf of each row, to be filled, or the scores that the grower adds the tree to."""
        if self._leaf_of_row is not None:
            return Destination(leaf_of_row=self._leaf_of_row)
        return Destination(raw=self._scores[:, outputs])

    def add(self, tree: Tree) -> None:
        """Take a tree; one that the grower has not added is added by the next sweep."""
        if self._leaf_of_row is not None:
            self._core.add(self._leaf_of_row, tree.values, self._plan.unit)

    def scores(self) -> FloatArray | None:
        """Return the raw scores of all trees so far; None where memory does not hold them."""
        if isinstance(self._scores, np.memmap):
            return None
        self._core.settle()
        return self._scores
