"""The real tables that defaults are compared on, and what a score is there."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
import scipy.sparse
from numpy.typing import NDArray

from package_sets import PACKAGE_CLASSES, PACKAGE_LABELS, PACKAGE_SETS, PACKAGE_TARGETS

Array = NDArray[Any]
Kind = Literal["targets", "classes", "labels"]

TARGETS = ("andro", "edm", "slump", "sf1", "atp1d", "jura", "enb", "wq", "osales", "rf1", "student_por")
CLASSES = ("yeast", "caltech101", "mnist")
LABELS = ("emotions", "scene", "cal500", "enron", "corel5k", "delicious")
SETS = (*TARGETS, *CLASSES, *LABELS)
KINDS: dict[str, Kind] = {
    **dict.fromkeys((*TARGETS, *PACKAGE_TARGETS), "targets"),
    **dict.fromkeys((*CLASSES, *PACKAGE_CLASSES), "classes"),
    **dict.fromkeys((*LABELS, *PACKAGE_LABELS), "labels"),
}
SCORES = {"targets": "aRRMSE", "classes": "cross entropy", "labels": "mean binary cross entropy"}
_LEAST = 1e-15  # probability that a loss is computed of


@dataclass(frozen=True)
class RealTable:
    """A table with its targets.

    Attributes
    ----------
    kind : {"targets", "classes", "labels"}
        What is predicted.
    X, y : ndarray
        Rows x features; targets or labels in columns, or class codes.
    """

    kind: Kind
    X: Array
    y: Array

    def split(self, seed: int) -> tuple[Array, Array]:
        """Return the numbers of the training rows and of the test rows, a fifth of all."""
        order = np.random.default_rng(1000 + seed).permutation(len(self.X))
        n_test = round(0.2 * len(order))
        return order[n_test:], order[:n_test]

    def score(self, train: Array, test: Array, prediction: Array) -> float:
        """Return what test rows say about values or probabilities; lower is better."""
        y = self.y[test]
        if self.kind == "targets":
            constant = np.sqrt(((y - self.y[train].mean(axis=0)) ** 2).mean(axis=0))
            errors = np.sqrt(((y - prediction) ** 2).mean(axis=0))
            return float((errors / np.where(constant > 0, constant, 1)).mean())
        p = np.clip(prediction, _LEAST, 1 - _LEAST)
        if self.kind == "classes":
            p = p / p.sum(axis=1, keepdims=True)
            return float(-np.log(p[np.arange(len(y)), y]).mean())
        return float(-np.where(y == 1, np.log(p), np.log1p(-p)).mean())


def load(name: str, folder: Path) -> RealTable:
    """Return a table by name.

    Raises
    ------
    FileNotFoundError
        When its file is not in the folder, or its package not installed.
    """
    if name in PACKAGE_SETS:
        _, X, y = PACKAGE_SETS[name]()
        return RealTable(KINDS[name], X, y)
    if name in TARGETS[:-1]:
        data = np.load(folder / "mtr.npz")
        return RealTable("targets", data[f"{name}_X"], data[f"{name}_Y"].astype(np.float64))
    if name == "student_por":
        data = np.load(folder / "student_por.npz")
        return RealTable("targets", data["x"].astype(np.float32), data["y"].astype(np.float64))
    if name == "mnist":
        data = np.load(folder / "mnist.npz")
        X = np.concatenate([data["x_train"], data["x_test"]]).astype(np.float32)
        return RealTable("classes", X, np.concatenate([data["y_train"], data["y_test"]]).astype(np.int64))
    if name in CLASSES:
        data = np.load(folder / ("yeast.npz" if name == "yeast" else "caltech101_hog.npz"))
        return RealTable("classes", data["x"], data["y"].astype(np.int64))
    data = np.load(folder / f"ml_{name}.npz")
    if name == "cal500":
        return RealTable("labels", data["x"], data["y"].astype(np.int64))
    if name in ("emotions", "scene"):
        X, y = (np.concatenate([data[f"{what}_train"], data[f"{what}_test"]]) for what in "xy")
        return RealTable("labels", X, y.astype(np.int64))
    X, y = (np.concatenate([_dense(data, what, part) for part in ("train", "test")]) for what in "xy")
    return RealTable("labels", X, y.astype(np.int64))


def _dense(data: Any, what: str, part: str) -> Array:
    """Return a matrix of 0 and 1 whose rows are stored as the numbers of its ones."""
    columns = data[f"{what}_{part}_indices"].astype(np.int32)
    parts = (np.ones(len(columns), dtype=np.float32), columns, data[f"{what}_{part}_indptr"])
    matrix: Array = scipy.sparse.csr_array(parts, shape=tuple(data[f"{what}_{part}_shape"])).toarray()
    return matrix
