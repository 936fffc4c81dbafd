"""Losses whose gradients the core makes in one pass over the scores; it does more on its way."""

from __future__ import annotations

from abc import abstractmethod

import numpy as np
import numpy.typing as npt

from polyleaf.data.inputs import Array, FloatArray
from polyleaf.losses.base import Gradients, Loss, OnTheWay, Workspace

_NOTHING = OnTheWay(None, None)


class OnePassLoss(Loss):
    """A loss that says in `_pass` what the core computes; its arrays are the same ones in every round."""

    def __init__(self, n_outputs: int) -> None:
        super().__init__(n_outputs)
        self._workspace = Workspace()

    @abstractmethod
    def _pass(
        self, y: Array, raw: FloatArray, n_threads: int, also: OnTheWay, with_hessian: bool
    ) -> Gradients:
        """Add the tree to the scores, if there is one; return their gradient, and the Hessian if wanted.

        Mixtures of the gradients are made where they are asked for.
        """

    def gradients(self, y: Array, raw: FloatArray, n_threads: int) -> Gradients:
        """Return gradient and Hessian."""
        return self._pass(y, raw, n_threads, _NOTHING, with_hessian=True)

    def gradient(self, y: Array, raw: FloatArray, n_threads: int) -> npt.NDArray[np.float32]:
        """Return the gradient alone."""
        return self._pass(y, raw, n_threads, _NOTHING, with_hessian=False)[0]

    def gradients_with(
        self, also: OnTheWay, y: Array, raw: FloatArray, n_threads: int, *, with_hessian: bool
    ) -> Gradients:
        """Return gradients, in one pass that does the rest on its way."""
        return self._pass(y, raw, n_threads, also, with_hessian)
