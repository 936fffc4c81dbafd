"""NUS-WIDE with its 128 cVLAD+ features, from the two ARFF files of the Mulan collection."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from polyleaf.paper.data_tables import Array, DataError, expect
from polyleaf.paper.problems import Problem, Split, official

N_FEATURES, N_LABELS = 128, 81
FILES = ("nus-wide-full-cVLADplus-train.arff", "nus-wide-full-cVLADplus-test.arff")


def read_nuswide(folder: Path) -> Problem:
    """Read both files; the first value of a line may be the name of the picture."""
    paths = [folder / file for file in FILES]
    for path in paths:
        expect(path.is_file(), str(path), "is missing; NUS-WIDE needs its training and its test file")
    (x_train, y_train), (x_test, y_test) = map(_read_arff, paths)
    parts = Split(x_train, y_train, x_test, y_test)
    return official("nuswide", "multilabel", N_LABELS, "its ARFF files", parts)


def _read_arff(path: Path) -> tuple[Array, Array]:
    features: list[Array] = []
    labels: list[Array] = []
    with path.open(encoding="utf-8", errors="replace") as file:
        in_data = False
        for number, line in enumerate(file, 1):
            text = line.strip()
            if not in_data:
                in_data = text.lower() == "@data"
            elif text and not text.startswith("%"):
                x, y = _read_line(text, f"{path}, line {number}")
                features.append(x)
                labels.append(y)
    expect(features, str(path), "is not an ARFF file with rows after @data")
    return np.stack(features), np.stack(labels)


def _read_line(text: str, where: str) -> tuple[Array, Array]:
    values = text.split(",")
    n_numbers = N_FEATURES + N_LABELS
    expect(
        len(values) in (n_numbers, n_numbers + 1),
        where,
        f"expected {n_numbers} numbers, a name perhaps before them, got {len(values)} values",
    )
    try:
        numbers = np.array(values[-n_numbers:], dtype=np.float32)
    except ValueError as error:
        raise DataError(f"{where}: {error}") from error
    expect(np.isfinite(numbers).all(), where, "has values that are not finite")
    y = numbers[N_FEATURES:]
    expect(((y == 0) | (y == 1)).all(), where, "labels must be 0 or 1")
    return numbers[:N_FEATURES], y
