"""What a data set is before it becomes a problem, and the checks that every way of loading it shares."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]


class DataError(Exception):
    """Data are missing, or are not what they should be."""


@dataclass(frozen=True)
class ImageTable:
    """MNIST: pixels 0..255, (rows, 784), and digits."""

    train_images: Array
    train_digits: Array
    test_images: Array
    test_digits: Array
    source: str


@dataclass(frozen=True)
class LabelledTable:
    """Features (float32) and class codes (int32)."""

    x: Array
    y: Array
    source: str


@dataclass(frozen=True)
class StudentTable:
    """Student-por: the columns by name, in the order of the file, and the grades 0..20, (rows, 3)."""

    columns: Mapping[str, Array]
    nominal: frozenset[str]
    grades: Array
    source: str


# fmt: off
STUDENT_NUMBERS = (
    "age", "Medu", "Fedu", "traveltime", "studytime", "failures", "famrel", "freetime", "goout", "Dalc",
    "Walc", "health", "absences",
)
STUDENT_NOMINAL = (
    "school", "sex", "address", "famsize", "Pstatus", "Mjob", "Fjob", "reason", "guardian", "schoolsup",
    "famsup", "paid", "activities", "nursery", "higher", "internet", "romantic",
)
# fmt: on
STUDENT_GRADES = ("G1", "G2", "G3")


def expect(condition: object, where: str, problem: str) -> None:
    """Raise DataError unless the condition holds."""
    if not condition:
        raise DataError(f"{where}: {problem}")


def check_matrix(array: Array, n_columns: int, where: str) -> None:
    """Check a table of finite numbers."""
    expect(array.ndim == 2, where, f"expected a table, got an array of {array.ndim} dimensions")
    expect(array.shape[1] == n_columns, where, f"expected {n_columns} columns, got {array.shape[1]}")
    expect(len(array) > 0, where, "has no rows")
    expect(np.issubdtype(array.dtype, np.number), where, f"expected numbers, got {array.dtype}")
    expect(np.isfinite(array).all(), where, "has values that are not finite")


def check_codes(array: Array, n_rows: int, n_classes: int, where: str) -> None:
    """Check class codes."""
    expect(array.shape == (n_rows,), where, f"expected {n_rows} classes, got the shape {array.shape}")
    expect(np.issubdtype(array.dtype, np.integer), where, f"expected integers, got {array.dtype}")
    inside = array.min() >= 0 and array.max() < n_classes
    expect(inside, where, f"expected classes 0..{n_classes - 1}, got {array.min()}..{array.max()}")


def student_table(columns: Mapping[str, Array], source: str) -> StudentTable:
    """Return Student-por from its 33 named columns: nominal ones of any type, numbers also as text."""
    wanted = [*STUDENT_NUMBERS, *STUDENT_NOMINAL, *STUDENT_GRADES]
    missing = [name for name in wanted if name not in columns]
    expect(not missing, source, f"lacks the columns {', '.join(missing)}")
    numbers: dict[str, Array] = {}
    for name in (*STUDENT_NUMBERS, *STUDENT_GRADES):
        try:
            numbers[name] = columns[name].astype(np.float64)
        except ValueError as error:
            raise DataError(f"{source}: column {name} must hold numbers ({error})") from error
        expect(np.isfinite(numbers[name]).all(), source, f"column {name} has values that are not finite")
    grades = np.column_stack([numbers[name] for name in STUDENT_GRADES])
    expect(len(grades) > 0, source, "has no rows")
    expect(grades.min() >= 0 and grades.max() <= 20, source, "grades must be between 0 and 20")
    inputs = {name: numbers.get(name, values) for name, values in columns.items() if name in wanted[:30]}
    return StudentTable(inputs, frozenset(STUDENT_NOMINAL), grades, source)
