"""The real data sets from NumPy files (``numpy.savez``, no pickle) or, for Student-por, from its CSV file."""

from __future__ import annotations

import csv
import zipfile
from pathlib import Path

import numpy as np

from polyleaf.paper.data_tables import (
    STUDENT_GRADES,
    STUDENT_NOMINAL,
    STUDENT_NUMBERS,
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


def read_mnist(folder: Path) -> ImageTable:
    """Read mnist.npz: x_train, y_train, x_test, y_test, images as rows of 784 pixels 0..255."""
    path = folder / "mnist.npz"
    arrays = _arrays(path, "x_train", "y_train", "x_test", "y_test")
    for part in ("train", "test"):
        images, digits = arrays[f"x_{part}"], arrays[f"y_{part}"]
        where = f"{path}, x_{part}"
        check_matrix(images, 784, where)
        expect(images.min() >= 0 and images.max() > 1, where, "expected pixels from 0 to 255")
        check_codes(digits, len(images), 10, f"{path}, y_{part}")
    return ImageTable(
        arrays["x_train"], arrays["y_train"], arrays["x_test"], arrays["y_test"], source="mnist.npz"
    )


def read_yeast(folder: Path) -> LabelledTable:
    """Read yeast.npz: x of 8 columns, y with classes 0..9."""
    return _labelled(folder / "yeast.npz", 8, 10, "yeast.npz")


def read_caltech101(folder: Path) -> LabelledTable:
    """Read the 324 HOG features of Caltech101 with their 101 classes: the paper's file, or our own."""
    theirs = folder / "Caltech101.npz"
    if theirs.is_file():
        return _labelled(theirs, 324, 101, "Caltech101.npz (the paper's features)")
    source = "caltech101_hog.npz (HOG features of our own, not the paper's file)"
    return _labelled(folder / "caltech101_hog.npz", 324, 101, source)


def _labelled(path: Path, n_columns: int, n_classes: int, source: str) -> LabelledTable:
    arrays = _arrays(path, "x", "y")
    check_matrix(arrays["x"], n_columns, f"{path}, x")
    check_codes(arrays["y"], len(arrays["x"]), n_classes, f"{path}, y")
    return LabelledTable(arrays["x"].astype(np.float32), arrays["y"].astype(np.int32), source)


def read_student_por(folder: Path) -> StudentTable:
    """Read student_por.npz (x of 30 columns with feature_names, y with G1, G2, G3) or student-por.csv."""
    path = folder / "student_por.npz"
    if not path.is_file():
        return student_table(_csv_columns(folder / "student-por.csv"), "student-por.csv")
    arrays = _arrays(path, "x", "y", "feature_names")
    inputs = len(STUDENT_NUMBERS) + len(STUDENT_NOMINAL)
    check_matrix(arrays["x"], inputs, f"{path}, x")
    check_matrix(arrays["y"], len(STUDENT_GRADES), f"{path}, y")
    expect(len(arrays["x"]) == len(arrays["y"]), str(path), "x and y differ in their number of rows")
    names = [str(name) for name in arrays["feature_names"].ravel()]
    expect(len(names) == inputs, f"{path}, feature_names", f"expected {inputs} names, got {len(names)}")
    columns = dict(zip([*names, *STUDENT_GRADES], np.hstack([arrays["x"], arrays["y"]]).T, strict=True))
    return student_table(columns, "student_por.npz")


def _csv_columns(path: Path) -> dict[str, Array]:
    with path.open(encoding="utf-8", newline="") as file:
        rows = list(csv.reader(file, delimiter=";"))
    expect(len(rows) > 1, str(path), "has no rows")
    for number, row in enumerate(rows, 1):
        expect(
            len(row) == len(rows[0]),
            f"{path}, line {number}",
            f"expected {len(rows[0])} values separated by semicolons, got {len(row)}",
        )
    return {name: np.array(values) for name, values in zip(rows[0], zip(*rows[1:], strict=True), strict=True)}


def _arrays(path: Path, *names: str) -> dict[str, Array]:
    try:
        # Without pickle: opening a stranger's file must not run it.
        with np.load(path, allow_pickle=False) as file:
            missing = [name for name in names if name not in file.files]
            expect(not missing, str(path), f"lacks the arrays {', '.join(missing)}")
            return {name: file[name] for name in names}
    except (OSError, ValueError, EOFError, AttributeError, zipfile.BadZipFile) as error:
        raise DataError(f"{path}: is not a file of numpy.savez ({error})") from error
