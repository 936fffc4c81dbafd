"""Predictions of Dask tables, made when they are asked for."""

from __future__ import annotations

from typing import Any

import numpy as np
from dask.array import Array
from dask.base import is_dask_collection


def lazy_prediction(model: Any, method: str, X: Any, options: dict[str, Any]) -> Any:
    """Return what a method of a fitted estimator makes of each partition of a table.

    Parameters
    ----------
    model : estimator
        A plain one.
    method : str
        Its name.
    X : dask.array.Array or dask.dataframe.DataFrame
        The table.
    options : dict
        Arguments of the method.

    Returns
    -------
    dask.array.Array, or a data frame with the index of X
    """
    if isinstance(X, Array):
        if X.ndim != 2:
            raise ValueError(f"X has {X.ndim} dimension(s); it must have rows and columns")
        rows = X.rechunk({1: -1}) if X.numblocks[1] > 1 else X
        none = _of_array(np.empty((0, X.shape[1]), dtype=X.dtype), model, method, options)
        return rows.map_blocks(
            _of_array,
            model,
            method,
            options,
            drop_axis=[1] if none.ndim == 1 else None,
            chunks=(rows.chunks[0], *((n_columns,) for n_columns in none.shape[1:])),
            dtype=none.dtype,
            meta=none,
        )
    if is_dask_collection(X) and hasattr(X, "map_partitions"):
        meta = _of_frame(X._meta, model, method, options)
        return X.map_partitions(_of_frame, model, method, options, meta=meta)
    raise TypeError(
        f"X is a {type(X).__name__}, not an array or a data frame of Dask; to_local() gives an estimator for "
        "tables in memory"
    )


def _of_array(rows: Any, model: Any, method: str, options: dict[str, Any]) -> Any:
    return getattr(model, method)(rows, **options)


def _of_frame(frame: Any, model: Any, method: str, options: dict[str, Any]) -> Any:
    return getattr(model, method)(frame, as_frame=True, **options)
