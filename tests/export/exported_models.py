"""Small models of every kind, rows to ask them about, and what polyleaf answers."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
import pandas as pd
import scipy.sparse

from polyleaf import PolyleafClassifier, PolyleafMixed, PolyleafRegressor
from polyleaf.estimators.prediction import read_features
from polyleaf.export.served_model import served_model

SMALL: dict[str, Any] = {
    "n_estimators": 6,
    "max_depth": 3,
    "min_samples_leaf": 3,
    "n_jobs": 1,
    "random_state": 0,
}
COLOURS = ("blue", "green", "grün", "red", "white")


def rows(n: int = 160, seed: int = 0) -> np.ndarray:
    """Numbers with gaps, zeros of both signs, and values that come again."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 5))
    X[:, 1] = rng.integers(-3, 4, n)
    X[rng.random(n) < 0.1, 1] = -0.0
    X[:, 4] = rng.integers(0, 6, n)
    X[rng.random(X.shape) < 0.15] = np.nan
    return X


X = rows()
SUM = np.nan_to_num(X[:, 0]) + np.where(np.isnan(X[:, 2]), 2.0, X[:, 2]) + 0.3 * np.nan_to_num(X[:, 4])
TARGETS = np.column_stack([SUM, SUM**2, np.nan_to_num(X[:, 1]) - SUM])
CLASSES = np.digitize(SUM, [-0.5, 1.0, 2.5])
LABELS = (np.median(TARGETS, axis=0) < TARGETS).astype(int)
COUNTS = np.exp(np.clip(SUM, -2, 3)).round()


def coloured(n: int = 160, seed: int = 1) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    colour = rng.choice(COLOURS, n).astype(object)
    colour[rng.random(n) < 0.1] = None
    return pd.DataFrame(
        {
            "size": rng.normal(size=n),
            "colour": colour,
            "shop": rng.choice([3, 7, 11, 40], n),
            "weight": np.where(rng.random(n) < 0.2, np.nan, rng.normal(size=n)),
        }
    )


FRAME = coloured()
BY_COLOUR = (
    FRAME["colour"].map({name: i**2 for i, name in enumerate(COLOURS)}).fillna(7).to_numpy(dtype=float)
)
OF_FRAME = BY_COLOUR + 3 * (FRAME["shop"].to_numpy() == 7) + FRAME["size"].to_numpy()


def gradients(y: Any, raw: Any) -> tuple[Any, Any]:
    codes = y if y.ndim == 2 else np.eye(raw.shape[1])[y]
    return raw - codes, np.ones_like(raw)


def _mixed(**params: Any) -> Any:
    targets = {
        "z last": {"kind": "regression", "columns": ["price", "cost"]},
        "grade": "multiclass",
        "sold": "binary",
        "a": {"objective": "quantile", "columns": ["days"], "quantile_levels": [0.2, 0.5, 0.8]},
        "count": "poisson",
        "tags": {"kind": "multilabel", "columns": ["t0", "t1"]},
    }
    y = {
        "price": TARGETS[:, 0],
        "sold": np.where(SUM > 1, "yes", "no"),
        "cost": TARGETS[:, 2],
        "grade": np.array(["a", "b", "c", "d"])[CLASSES],
        "days": TARGETS[:, 1],
        "count": COUNTS,
        "t0": LABELS[:, 0],
        "t1": LABELS[:, 1],
    }
    return PolyleafMixed(targets, **SMALL | params).fit(X, y)


def _regressor(y: Any = TARGETS, **params: Any) -> Any:
    return PolyleafRegressor(**SMALL | params).fit(X, y)


def _classifier(y: Any, **params: Any) -> Any:
    return PolyleafClassifier(**SMALL | params).fit(X, y)


CASES: dict[str, Callable[[], Any]] = {
    "one target": lambda: _regressor(SUM),
    "one column": lambda: _regressor(SUM[:, np.newaxis]),
    "targets": _regressor,
    "targets of extreme size": lambda: _regressor(TARGETS * [1e200, 1.0, 1e-200]),
    "targets of extreme size, one output per tree": lambda: _regressor(
        TARGETS * [1e200, 1.0, 1e-200], multi_strategy="one_output_per_tree"
    ),
    "targets of extreme size, sparse leaves": lambda: _regressor(
        TARGETS * [1e200, 1.0, 1e-200], sparse_leaves=2
    ),
    "targets, one output per tree": lambda: _regressor(multi_strategy="one_output_per_tree"),
    "targets, sparse leaves": lambda: _regressor(sparse_leaves=2),
    "targets, bags": lambda: _regressor(n_bags=3),
    "absolute error": lambda: _regressor(objective="absolute_error"),
    "huber": lambda: _regressor(objective="huber"),
    "poisson": lambda: _regressor(COUNTS, objective="poisson"),
    "gamma": lambda: _regressor(COUNTS + 0.5, objective="gamma"),
    "tweedie, two targets": lambda: _regressor(np.column_stack([COUNTS, COUNTS + 3]), objective="tweedie"),
    "one quantile": lambda: _regressor(SUM, objective="quantile", quantile_levels=0.9),
    "quantiles": lambda: _regressor(
        TARGETS[:, :2], objective="quantile", quantile_levels=[0.45, 0.5, 0.55], learning_rate=1.0
    ),
    "two classes": lambda: _classifier(SUM > 1),
    "two classes, softmax": lambda: _classifier((SUM > 1).astype(int), objective="cross_entropy"),
    "classes": lambda: _classifier(np.array(["a", "b", "c", "d"])[CLASSES]),
    "classes, one output per tree": lambda: _classifier(CLASSES, multi_strategy="one_output_per_tree"),
    "classes, sparse leaves": lambda: _classifier(CLASSES, sparse_leaves=2),
    "classes, own objective": lambda: _classifier(CLASSES, objective=gradients),
    "labels": lambda: _classifier(LABELS),
    "labels, one output per tree": lambda: _classifier(LABELS, multi_strategy="one_output_per_tree"),
    "labels of squared error": lambda: _classifier(
        LABELS, objective="clipped_squared_error", learning_rate=1.0
    ),
    "sparse labels": lambda: _classifier(
        scipy.sparse.csr_array(LABELS), objective="clipped_squared_error", sparse_leaves=2
    ),
    "mixed": _mixed,
    "mixed, sparse leaves": lambda: _mixed(sparse_leaves=3),
    "mixed, one output per tree": lambda: _mixed(multi_strategy="one_output_per_tree"),
    "text categories": lambda: PolyleafRegressor(**SMALL, categorical_features="auto").fit(
        FRAME, np.column_stack([OF_FRAME, -OF_FRAME])
    ),
    "number categories": lambda: PolyleafClassifier(**SMALL, categorical_features=["shop", "colour"]).fit(
        FRAME, OF_FRAME > 5
    ),
    "many categories": lambda: PolyleafRegressor(**SMALL, categorical_features=[0]).fit(
        np.column_stack([np.arange(160) % 70, X[:, 0]]), np.sin(np.arange(160) % 70)
    ),
    "cut": lambda: _classifier(CLASSES)[:2],
    "no round": lambda: _regressor()[:0],
    "no round of two classes": lambda: _classifier(SUM > 1)[:0],
    "stopped early": lambda: PolyleafRegressor(**SMALL | {"n_estimators": 60}, early_stopping_rounds=2).fit(
        X, TARGETS, eval_set=(rows(seed=9), TARGETS)
    ),
    "no split": lambda: _regressor(np.ones(160)),
}


@cache
def fitted(case: str) -> Any:
    """Return the model of a case."""
    return CASES[case]()


def table_of(model: Any) -> np.ndarray:
    """Return rows that the model was fitted on as numbers, and next to them what may break a walk."""
    if model._categories and "colour" in getattr(model, "feature_names_in_", ()):
        numbers = read_features(model, FRAME, model._categories, 1)
    elif model._categories:
        numbers = np.column_stack([np.arange(160.0) % 70, X[:, 0]])
    else:
        numbers = X
    return np.ascontiguousarray(np.vstack([numbers, hard_rows(model, numbers)]), dtype=np.float64)


def hard_rows(model: Any, numbers: np.ndarray) -> np.ndarray:
    """Return rows with values at thresholds and beside them, infinities, zeros, and codes that are none."""
    forest = model._forest
    rng = np.random.default_rng(3)
    found = []
    for j in range(forest.n_features):
        own = (forest.feature == j) & (forest.left >= 0) & (np.diff(forest.category_begin) == 0)
        at = np.unique(forest.threshold[own])[:40]
        hard = [np.nan, 0.0, -0.0, np.inf, -np.inf, 1.5, -1.0, -0.5, 31.0, 32.0, 63.5, 1e10, 2.0**32, 5e-324]
        values = np.concatenate([at, np.nextafter(at, np.inf), np.nextafter(at, -np.inf), hard])
        block = numbers[rng.integers(0, len(numbers), len(values))].copy()
        block[:, j] = values
        found.append(block)
    return np.vstack(found)


def raw_of(model: Any, table: np.ndarray) -> np.ndarray:
    """Return the raw scores of polyleaf, also for infinities and codes that ``predict`` would not let by."""
    raw: np.ndarray = model._forest.predict_raw(table, n_rounds=model.best_iteration_ + 1)
    return raw


def predicted_of(model: Any, table: np.ndarray) -> np.ndarray:
    """Return the columns of ``predict_proba`` or ``predict``; of a mixed model, group after group."""
    raw = raw_of(model, table)
    if not isinstance(model, PolyleafMixed):
        linked = model._link().predict(raw)
        if isinstance(model, PolyleafRegressor):
            return np.asarray(linked)
        return np.asarray(model._probabilities(linked))
    numbers = model._predictions(table, raw)
    groups = [
        np.column_stack([numbers[column] for column in group.columns])
        if group.kind == "regression"
        else _probabilities(model, raw)[group.name]
        for group in served_model(model).groups
    ]
    return np.hstack(groups)


def _probabilities(model: Any, raw: np.ndarray) -> dict[str, np.ndarray]:
    from polyleaf.estimators.mixed import _probabilities_of

    return {group.name: _probabilities_of(group, scores) for group, scores in model._of_groups(raw)}
