"""Real numbers of any array-like as a float64 array, and views that cannot be written to."""

from __future__ import annotations

import numpy as np
import scipy.sparse

from polyleaf.data.device_arrays import on_host
from polyleaf.data.tables import Array, FloatArray


def as_float64(values: object, name: str) -> FloatArray:
    """Return any array-like of real numbers as a float64 array, or raise naming it."""
    if scipy.sparse.issparse(values):
        raise TypeError(f"{name} is sparse; it must be a dense array.")
    values = on_host(values)
    if np.ma.is_masked(values):
        raise ValueError(f"{name} is a masked array with masked (missing) entries, which are not allowed.")
    try:
        array = np.asarray(values)
        if array.dtype.kind in "biufO":
            with np.errstate(over="ignore"):
                return array.astype(np.float64, copy=False)
    except (TypeError, ValueError, OverflowError) as error:
        raise ValueError(f"{name} must hold numbers: {error}") from error
    if array.dtype.kind == "c":
        raise ValueError(f"Complex data not supported: {name} has dtype {array.dtype}.")
    raise ValueError(f"{name} has dtype {array.dtype}; it must hold numbers.")


def read_only(values: Array) -> Array:
    """Return a view that cannot be written to, for functions that are not ours."""
    view = values.view()
    view.flags.writeable = False
    return view
