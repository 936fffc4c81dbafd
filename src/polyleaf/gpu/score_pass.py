"""The score pass of a GPU: scores and gradients stay on the device."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from polyleaf.data.inputs import Array, FloatArray
from polyleaf.gpu.runtime import blocks, cupy, kernel, launch
from polyleaf.growth.contract import Destination
from polyleaf.growth.score_pass import PassPlan, RoundGradients, weighted_by_cells
from polyleaf.growth.tree import Tree
from polyleaf.losses import Loss
from polyleaf.losses.formula import DeviceFormula, Formula

_THREADS = 256

# Fills CuPy arrays: with gradient and Hessian (None: not wanted) at scores that are on the device.
FillGradients = Callable[[Any, Any, Any], None]


class GpuScorePass:
    """The score pass of a GPU; see :class:`polyleaf.growth.score_pass.ScorePass`.

    Losses without a kernel compute on the host, to which the scores travel and from which the gradients come
    back.

    Parameters
    ----------
    loss : Loss
        Whose `scales` have been asked for.
    y : ndarray
        Coded targets.
    scores : float64 CuPy array of shape (rows, outputs)
        At the start; changed in place from now on.
    plan : PassPlan
        What gradients are to be.
    n_threads : int
        Of what is computed on the host.
    """

    def __init__(self, loss: Loss, y: Array, scores: Any, plan: PassPlan, n_threads: int) -> None:
        cp = cupy()
        of_device = loss.device_formula()
        if of_device is None:
            self._fill = _on_host(loss.formula(y), n_threads)
        else:
            self._fill = _by_kernel(of_device, y)
        self._scores = scores
        self._plan = plan
        self._cell_weight = None if plan.cell_weight is None else cp.asarray(plan.cell_weight)
        self._gradient = cp.empty(scores.shape, dtype=np.float32)
        stored = plan.hessian_rule is None and not loss.unit_hessian
        self._hessian = cp.empty(scores.shape, dtype=np.float32) if stored else None

    def gradients(self, number: int) -> RoundGradients:
        """Return the gradients of round `number`, as CuPy arrays."""
        self._fill(self._scores, self._gradient, self._hessian)
        if self._plan.hessian_rule is not None:
            return RoundGradients(self._gradient, self._plan.hessian_rule)
        return weighted_by_cells(self._gradient, self._hessian, self._cell_weight)

    def destination(self, outputs: slice) -> Destination:
        """Return the scores, to which the grower adds the tree."""
        return Destination(raw=self._scores[:, outputs])

    def add(self, tree: Tree) -> None:
        """Do nothing: the grower has added it."""

    def scores(self) -> FloatArray:
        """Return the raw scores on the host."""
        return np.asarray(self._scores.get())


def _by_kernel(formula: DeviceFormula, y: Array) -> FillGradients:
    cp = cupy()
    function = kernel(f"{formula.kernel}.cuh", formula.kernel)
    targets = cp.asarray(y)
    arguments = [cp.asarray(one) if isinstance(one, np.ndarray) else one for one in formula.arguments]

    def fill(raw: Any, gradient: Any, hessian: Any) -> None:
        n_rows, n_outputs = raw.shape
        n_blocks = blocks(n_rows, _THREADS // 32) if formula.rows_by_warps else blocks(raw.size, _THREADS)
        launch(
            function,
            (n_blocks,),
            _THREADS,
            raw,
            targets,
            np.uint64(n_rows),
            n_outputs,
            gradient,
            hessian,
            *arguments,
        )

    return fill


def _on_host(formula: Formula, n_threads: int) -> FillGradients:
    def fill(raw: Any, gradient: Any, hessian: Any) -> None:
        scores = raw.get()
        first = np.empty(scores.shape, dtype=np.float32)
        second = None if hessian is None else np.empty(scores.shape, dtype=np.float32)
        formula.gradients(scores, first, second, n_threads)
        gradient.set(first)
        if hessian is not None:
            hessian.set(second)

    return fill
