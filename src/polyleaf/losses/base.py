"""What every loss offers."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import ClassVar

import numpy as np
import numpy.typing as npt

from polyleaf.data.inputs import Array, FloatArray
from polyleaf.losses.formula import DeviceFormula, Formula
from polyleaf.params.objectives import Objective
from polyleaf.params.wording import TargetWords

# A label that no row has (or every row) would otherwise have an infinite base score.
RAREST_SHARE = 1e-9


class Loss(Objective, ABC):
    """A loss of coded targets `y` and raw scores of shape (rows, outputs).

    A new loss is a class like this in a file of its own, and a line in :mod:`polyleaf.losses.registry`. Its
    constructor takes the number of outputs, and those of its `parameters` by name.

    Attributes
    ----------
    name, meaning, kinds, link, parameters, in_groups, hessian_rule
        What it says of itself; see :class:`polyleaf.params.objectives.Objective`.
    n_outputs : int
        Raw scores a row.
    default_metric : str
        What is measured where nothing else is asked for.
    relative_metric : str or None
        What is measured beside it, and watched, where several targets in units of their own have rows held
        out; None: nothing.
    class_codes : bool
        Whether targets are codes of classes, one for all outputs of a row.
    unit_hessian : bool
        Whether the Hessian is 1 everywhere.
    compiled : bool
        Whether its formula is one of the core, which can be asked for some rows at a time.
    leaf_levels : float64 ndarray of shape (outputs,) or None
        Where leaf values are quantiles of the residuals: which ones; NaN for outputs of which they are not.
    """

    default_metric: str
    relative_metric: ClassVar[str | None] = None
    class_codes: ClassVar[bool] = False
    unit_hessian: bool = False
    compiled: bool = False
    leaf_levels: FloatArray | None = None

    def __init__(self, n_outputs: int) -> None:
        self.n_outputs = n_outputs

    def target_columns(self) -> npt.NDArray[np.int32]:
        """Return, per output, the column of y that it predicts; for losses with `leaf_levels`."""
        return np.arange(self.n_outputs, dtype=np.int32)

    def output_weights(self, weight: FloatArray | None) -> FloatArray | None:
        """Return weights of rows as they are, those of the columns of y as weights of the outputs."""
        if weight is None or weight.ndim == 1:
            return weight
        return np.ascontiguousarray(weight[:, self.target_columns()])

    def check_targets(
        self, y: Array, weight: FloatArray | None, words: TargetWords, *, training: bool
    ) -> None:
        """Raise ValueError, naming the place, where coded targets are none for this loss.

        `words` is what errors call y; some conditions hold for the rows of `training` only.
        """
        return

    @abstractmethod
    def base_score(self, y: Array, weight: FloatArray | None) -> FloatArray:
        """Return the best constant of each output.

        Here and below `weight` is that of rows, of shape (rows,), or of cells, of shape (rows, outputs); y
        holds some allowed value in a cell of weight 0.
        """

    @abstractmethod
    def formula(self, y: Array) -> Formula:
        """Return gradient and Hessian for rows of these targets, unweighted, in multiples of the units.

        Where there are units, `scales` has been called before.
        """

    def device_formula(self) -> DeviceFormula | None:
        """Return the same for a GPU; None: it has no kernel for this loss, and the host computes."""
        return None

    @abstractmethod
    def predict(self, raw: FloatArray, n_threads: int = 1) -> FloatArray:
        """Return predictions (values, or probabilities) from raw scores; threads may share the work."""

    def scales(
        self, y: Array, weight: FloatArray | None, base: FloatArray, scale_targets: bool
    ) -> tuple[FloatArray, FloatArray]:
        """Return, per output, the unit of gradients and leaf values, and the gain weight of gradients in it.

        A unit is a power of two, so that it changes no bit of a result. With `scale_targets` the gain weights
        put targets of different scale on a par.
        """
        return np.ones(self.n_outputs), np.ones(self.n_outputs)
