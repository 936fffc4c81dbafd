"""What a loss gives to the score pass: gradient and Hessian at some scores, and nothing else."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from polyleaf.data.inputs import Array, FloatArray

FloatMatrix = npt.NDArray[np.float32]


class Formula(Protocol):
    """Gradient and Hessian of a loss, for rows with certain targets.

    Those of the core (``_core.Formula``) are computed some rows at a time, in the sweep that adds a tree to
    the scores and sketches the gradients. All others get the scores of all rows at once.
    """

    @property
    def has_hessian(self) -> bool:
        """Whether the Hessian is more than 1 everywhere."""

    def gradients(
        self, raw: FloatArray, gradient: FloatMatrix, hessian: FloatMatrix | None, n_threads: int
    ) -> None:
        """Fill the arrays of shape (rows, outputs); a Hessian of None is not wanted."""


class NumpyFormula:
    """A formula written in NumPy.

    Parameters
    ----------
    function : callable
        Takes the raw scores, of shape (rows, outputs), and returns gradient and Hessian of that shape.
    """

    has_hessian = True

    def __init__(self, function: Callable[[FloatArray], tuple[Array, Array]]) -> None:
        self._function = function

    def gradients(
        self, raw: FloatArray, gradient: FloatMatrix, hessian: FloatMatrix | None, n_threads: int
    ) -> None:
        """Fill the arrays with what the function returns."""
        first, second = self._function(raw)
        gradient[:] = first
        if hessian is not None:
            hessian[:] = second


@dataclass(frozen=True)
class DeviceFormula:
    """A formula that a GPU has a kernel for.

    Attributes
    ----------
    kernel : str
        The kernel of this name in ``gpu/cuda/<kernel>.cuh``. It is given raw scores, targets, the number of
        rows, the number of outputs, the gradient to be filled, the Hessian (null: not wanted), and then
        `arguments`.
    arguments : tuple
        Integers, floats, and arrays that are copied to the device.
    rows_by_warps : bool
        Whether a warp computes a row; otherwise a thread computes a cell.
    """

    kernel: str
    arguments: tuple[Any, ...] = ()
    rows_by_warps: bool = False
