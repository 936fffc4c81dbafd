"""Which columns are categorical, and whether they hold categories."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from polyleaf.data.inputs import Array

# Categories are the whole numbers below this (kMostCategories of the core).
MOST_CATEGORIES = 10_000

Mask = npt.NDArray[np.uint8]


def categorical_mask(value: object, n_features: int) -> Mask | None:
    """Return which columns are categorical.

    Parameters
    ----------
    value : None, array-like of column indices, or boolean mask of shape (n_features,)
        The parameter `categorical_features`, its types already checked.
    n_features : int
        Number of columns.

    Returns
    -------
    uint8 ndarray of shape (n_features,) or None
        1 where a column is categorical; None: none is.

    Raises
    ------
    ValueError
        For a column that does not exist, or a mask of the wrong length.
    """
    entries = np.asarray([] if value is None else value)
    if entries.size == 0:
        return None
    mask = np.zeros(n_features, dtype=np.uint8)
    if entries.dtype == np.bool_:
        if entries.shape != (n_features,):
            raise ValueError(
                f"categorical_features is a mask of {entries.size} values, but X has {n_features} columns."
            )
        mask[entries] = 1
    else:
        outside = entries[(entries < 0) | (entries >= n_features)]
        if outside.size > 0:
            raise ValueError(
                f"categorical_features names column {outside[0]}, but the columns of X are 0 to "
                f"{n_features - 1}."
            )
        mask[entries.astype(np.intp)] = 1
    return mask if mask.any() else None


def check_categories(X: Array, mask: Mask | None, labels: Sequence[object] | None = None) -> None:
    """Raise ValueError, naming the column, unless the categorical columns hold categories or NaN.

    Parameters
    ----------
    X : ndarray of shape (rows, features)
        The table of ``fit``.
    mask : uint8 ndarray of shape (features,) or None
        Which columns are categorical.
    labels : sequence or None
        Names of the columns; None: their numbers.
    """
    for column in np.flatnonzero(mask).tolist() if mask is not None else ():
        values = X[:, column]
        wrong = ~((values >= 0) & (values < MOST_CATEGORIES))
        if values.dtype.kind == "f":
            wrong |= values != np.floor(values)
            wrong &= ~np.isnan(values)
        if wrong.any():
            row = int(np.argmax(wrong))
            label = column if labels is None else labels[column]
            raise ValueError(
                f"X: the categorical column {label!r} holds {values[row]} in row {row}; categories are whole "
                f"numbers from 0 to {MOST_CATEGORIES - 1}, or NaN (missing)."
            )
