"""A small table with targets, classes and labels, and what a search of it is compared by."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from polyleaf import PolyleafRegressor, TuneResult

RNG = np.random.default_rng(3)
N = 400
X = RNG.normal(size=(N, 5)).round(3)
Y = np.column_stack([X[:, 0] * X[:, 1], np.sin(3 * X[:, 2]), X[:, 3]]) + 0.2 * RNG.normal(size=(N, 3))
CLASSES = np.array(["a", "b", "c"])[np.digitize(Y[:, 0] + Y[:, 1], [-0.5, 0.5])]
LABELS = (Y > 0).astype(int)
SMALL = {"n_estimators": 12, "learning_rate": 0.3, "n_jobs": 1}
PAIR = [(np.arange(300), np.arange(300, N))]  # less work than folds
SPACE = {"max_depth": (1, 6), "min_samples_leaf": (1, 40, "log"), "reg_lambda": (0.1, 10.0, "log")}


def regressor(**params: Any) -> PolyleafRegressor:
    return PolyleafRegressor(**SMALL | params)


def saved(model: Any, path: Path) -> bytes:
    model.save_model(path)
    return path.read_bytes()


def table_of(result: TuneResult) -> list[tuple[Any, ...]]:
    return [(one.params, one.status, one.score, one.n_rounds, one.curve.tolist()) for one in result.trials]
