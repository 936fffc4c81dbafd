"""Shapley values as the shap package takes them, for its plots."""

from __future__ import annotations

from collections.abc import Sequence
from importlib import import_module
from typing import Any

import numpy as np
import numpy.typing as npt

from polyleaf.data.category_values import Categories
from polyleaf.data.inputs import Array, FloatArray
from polyleaf.data.memory import available, in_words
from polyleaf.data.sparse_formats import SparseTable

# A cell of an array of objects: a pointer, and the number it points to.
_OBJECT_BYTES = 32


def need_shap() -> Any:
    """Return the shap package.

    Raises
    ------
    ImportError
        When it is not installed.
    """
    try:
        return import_module("shap")
    except ImportError as error:
        raise ImportError(
            f"explanation() returns a shap.Explanation, and shap cannot be imported ({error}): pip install "
            "shap. shap_values() needs no other package."
        ) from error


def readable_cells(table: Array | SparseTable, categories: Categories) -> npt.NDArray[Any]:
    """Return the cells of a table as a person reads them: numbers, and categories by their values.

    Parameters
    ----------
    table : ndarray or sparse array of shape (rows, features)
        As the model reads it: categories are codes, NaN is missing or not known.
    categories : mapping of int to CategoryValues
        Of the categorical columns.

    Returns
    -------
    ndarray of shape (rows, features)
        Of float64; of objects where there are categories.

    Raises
    ------
    MemoryError
        When they take more than there is; before any work is done.
    """
    _refuse_too_large(table, _OBJECT_BYTES if categories else 8)
    dense: Any = table if isinstance(table, np.ndarray) else table.toarray()
    numbers = np.asarray(dense, dtype=np.float64)
    if not categories:
        return numbers
    cells = numbers.astype(object)
    for column, known in categories.items():
        values = np.array([*known.values, np.nan], dtype=object)
        codes = numbers[:, column]
        cells[:, column] = values[np.where(np.isnan(codes), len(known.values), codes).astype(np.intp)]
    return cells


def _refuse_too_large(table: Array | SparseTable, cell_bytes: int) -> None:
    needed = int(table.shape[0]) * int(table.shape[1]) * cell_bytes
    free = available()
    if free is not None and needed > free:
        raise MemoryError(
            f"the data of an explanation take {in_words(needed)} ({table.shape[0]:,} rows x "
            f"{table.shape[1]:,} features), and {in_words(free)} are available. Take fewer rows."
        )


def as_explanation(
    values: npt.NDArray[Any],
    expected: FloatArray,
    data: npt.NDArray[Any] | None,
    features: Sequence[str],
    outputs: Sequence[str],
) -> Any:
    """Return a shap.Explanation.

    Parameters
    ----------
    values : ndarray of shape (rows, features, outputs)
        Shapley values. Of one output, the last dimension is left out: most plots of shap are of one.
    expected : float64 ndarray of shape (outputs,)
        What they are added to.
    data : ndarray of shape (rows, features), or None
        The cells.
    features, outputs : sequence of str
        Their names.
    """
    base = np.tile(expected, (len(values), 1))
    one = len(outputs) == 1
    return need_shap().Explanation(
        values=values[..., 0] if one else values,
        base_values=base[:, 0] if one else base,
        data=data,
        feature_names=list(features),
        output_names=outputs[0] if one else list(outputs),
    )
