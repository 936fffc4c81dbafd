"""Arrays in the memory of a GPU, told from others without importing CuPy."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np
import numpy.typing as npt


def is_device_array(values: object) -> bool:
    """Whether these are CuPy's."""
    return type(values).__module__.partition(".")[0] == "cupy" and hasattr(values, "get")


def array_module(values: object) -> Any:
    """Return cupy or numpy, whose array this is."""
    return sys.modules["cupy"] if is_device_array(values) else np


def on_host(values: Any) -> Any:
    """Return a CuPy array as one of NumPy, anything else as it is."""
    return values.get() if is_device_array(values) else values


def chosen_rows(table: Any, mask: npt.NDArray[np.bool_]) -> Any:
    """Return some rows of a table of either memory."""
    return table[array_module(table).asarray(mask)] if is_device_array(table) else table[mask]


def looked_up(labels: npt.NDArray[Any], codes: Any) -> npt.NDArray[Any]:
    """Return the labels of codes, where the codes are if the labels are numbers."""
    if labels.dtype.kind in "biuf":
        found: npt.NDArray[Any] = array_module(codes).asarray(labels)[codes]
        return found
    return np.asarray(labels[on_host(codes)])
