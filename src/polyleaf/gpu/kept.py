"""Small arrays of the host that kernels read round after round."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from polyleaf.gpu.runtime import cupy


class Kept:
    """The device's copy of an array, made anew only when its numbers are others: a copy holds up the host."""

    def __init__(self) -> None:
        self._host: npt.NDArray[Any] | None = None
        self._device: Any = None

    def on_device(self, array: npt.NDArray[Any]) -> Any:
        """Return the numbers on the device, not to be changed there."""
        if self._host is None or not np.array_equal(self._host, array):
            self._host = array.copy()
            self._device = cupy().asarray(array)
        return self._device
