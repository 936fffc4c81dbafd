"""A loss of the user's own."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from polyleaf.data.float_arrays import read_only
from polyleaf.data.inputs import Array, FloatArray
from polyleaf.losses.base import Loss
from polyleaf.losses.formula import Formula, NumpyFormula


class CustomLoss(Loss):
    """Gradients from a callable, base score and predictions as the built-in loss of the same kind of problem.

    The callable gets the coded targets (classes: int32 codes of shape (rows,); otherwise float64 of shape
    (rows, outputs)) and the raw scores, float64 of shape (rows, outputs), and returns gradient and Hessian of
    that shape, of the loss to be minimised and without sample weights, which are applied afterwards. The
    whole contract stands in docs/custom-objectives.md.
    """

    name = "custom"

    def __init__(self, function: Callable[[Array, FloatArray], tuple[Array, Array]], like: Loss) -> None:
        super().__init__(like.n_outputs)
        self._function = function
        self._called = f"objective: {getattr(function, '__name__', type(function).__name__)}"
        self._like = like
        self.default_metric = like.default_metric

    def base_score(self, y: Array, weight: FloatArray | None) -> FloatArray:
        """Return what the built-in loss of this kind starts from."""
        return self._like.base_score(y, weight)

    def scales(
        self, y: Array, weight: FloatArray | None, base: FloatArray, scale_targets: bool
    ) -> tuple[FloatArray, FloatArray]:
        """Return the gain weights of the built-in loss of this kind; gradients are taken as they come."""
        unit, gain_weight = self._like.scales(y, weight, base, scale_targets)
        return np.ones(self.n_outputs), np.clip(gain_weight / unit / unit, 1e-200, 1e200) * (gain_weight > 0)

    def formula(self, y: Array) -> Formula:
        """Return what the callable says, checked."""
        return NumpyFormula(lambda raw: self._called_with(y, raw))

    def _called_with(self, y: Array, raw: FloatArray) -> tuple[Array, Array]:
        # The callable may keep or change the scores it gets; the targets may be the user's own array.
        returned = self._function(read_only(y), raw.copy())
        if not isinstance(returned, tuple | list) or len(returned) != 2:
            raise ValueError(f"{self._called}: a callable must return a pair (gradient, hessian)")
        gradient, hessian = (
            self._checked(f"{self._called}: the {name}", values, raw.shape)
            for name, values in zip(("gradient", "hessian"), returned, strict=True)
        )
        return gradient, hessian

    def predict(self, raw: FloatArray, n_threads: int = 1) -> FloatArray:
        """Return predictions as the built-in loss of this kind."""
        return self._like.predict(raw, n_threads)

    @staticmethod
    def _checked(name: str, values: Array, shape: tuple[int, ...]) -> npt.NDArray[np.float32]:
        array = np.asarray(values)
        if array.shape != shape and not (shape[1] == 1 and array.shape == shape[:1]):
            raise ValueError(f"{name} has shape {array.shape}, expected {shape}")
        if array.dtype.kind == "c":
            raise ValueError(f"{name} holds complex numbers ({array.dtype}); expected real ones")
        try:
            with np.errstate(over="ignore"):
                single = np.ascontiguousarray(array.reshape(shape), dtype=np.float32)
        except (TypeError, ValueError) as error:
            raise ValueError(f"{name} does not hold numbers ({array.dtype})") from error
        if not np.isfinite(single).all():
            row, output = np.argwhere(~np.isfinite(single))[0]
            raise ValueError(
                f"{name} of row {row}, output {output} is {array.reshape(shape)[row, output]}; expected a "
                "finite number that float32 can hold"
            )
        return single
