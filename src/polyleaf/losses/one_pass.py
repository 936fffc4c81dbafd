"""Losses whose gradients the core makes in one pass over the scores, which adds the last tree on its way."""

from __future__ import annotations

from abc import abstractmethod

import numpy as np
import numpy.typing as npt

from polyleaf._core import TreeOfRows
from polyleaf.data.inputs import Array, FloatArray
from polyleaf.losses.base import Gradients, Loss, Workspace


class OnePassLoss(Loss):
    """A loss that says in `_pass` what the core computes; its arrays are the same ones in every round."""

    def __init__(self, n_outputs: int) -> None:
        super().__init__(n_outputs)
        self._workspace = Workspace()

    @abstractmethod
    def _pass(
        self, y: Array, raw: FloatArray, n_threads: int, tree: TreeOfRows | None, with_hessian: bool
    ) -> Gradients:
        """Add the tree to the scores, if there is one; return their gradient, and the Hessian if wanted."""

    def gradients(self, y: Array, raw: FloatArray, n_threads: int) -> Gradients:
        """Return gradient and Hessian."""
        return self._pass(y, raw, n_threads, None, with_hessian=True)

    def gradient(self, y: Array, raw: FloatArray, n_threads: int) -> npt.NDArray[np.float32]:
        """Return the gradient alone."""
        return self._pass(y, raw, n_threads, None, with_hessian=False)[0]

    def gradients_after(
        self, tree: TreeOfRows, y: Array, raw: FloatArray, n_threads: int, *, with_hessian: bool
    ) -> Gradients:
        """Add a tree to the scores and return their gradients, in one pass."""
        return self._pass(y, raw, n_threads, tree, with_hessian)
