"""The real data sets that OpenML has, through scikit-learn's loader and its cache."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
from sklearn.datasets import fetch_openml

from polyleaf.paper.data_tables import (
    Array,
    DataError,
    ImageTable,
    LabelledTable,
    StudentTable,
    check_codes,
    check_matrix,
    expect,
    student_table,
)


@cache
def fetch_mnist() -> ImageTable:
    """Fetch MNIST; the first 60,000 of its 70,000 rows are the training images."""
    bunch = _fetch("mnist_784", target_column="class")
    where = "OpenML's mnist_784"
    images, digits = np.asarray(bunch.data), _codes(bunch.target, where)
    check_matrix(images, 784, where)
    check_codes(digits, 70_000, 10, where)
    images = images.astype(np.uint8)
    return ImageTable(images[:60_000], digits[:60_000], images[60_000:], digits[60_000:], where)


def fetch_yeast() -> LabelledTable:
    """Fetch Yeast; classes are numbered alphabetically."""
    bunch = _fetch("yeast", target_column="class_protein_localization")
    where = "OpenML's yeast"
    x, y = np.asarray(bunch.data).astype(np.float32), _codes(bunch.target, where)
    check_matrix(x, 8, where)
    check_codes(y, len(x), 10, where)
    return LabelledTable(x, y, where)


def fetch_student_por() -> StudentTable:
    """Fetch Student-por with its three grades."""
    bunch = _fetch("UCI-student-performance-por", target_column=None)
    columns: dict[str, Array] = {}
    for name, values in zip(bunch.feature_names, np.asarray(bunch.data).T, strict=True):
        categories = (bunch.categories or {}).get(name)
        # Nominal columns come as positions in the list of their values.
        columns[name] = values if categories is None else np.array(categories)[values.astype(np.intp)]
    return student_table(columns, "OpenML's UCI-student-performance-por")


def _fetch(name: str, *, target_column: str | None) -> Any:
    try:
        return fetch_openml(name, version=1, target_column=target_column, as_frame=False, parser="liac-arff")
    except (OSError, ValueError, KeyError) as error:
        raise DataError(
            f"{name} could not be fetched from OpenML ({error}); "
            "pass --data-dir with a folder that holds the data as NumPy files."
        ) from error


def _codes(target: Any, where: str) -> Array:
    labels = np.asarray(target)
    expect(labels.ndim == 1, where, "expected one class a row")
    codes: Array = np.unique(labels, return_inverse=True)[1].astype(np.int32)
    return codes
