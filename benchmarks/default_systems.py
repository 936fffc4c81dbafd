"""Systems with their defaults, and with early stopping: from training rows to predictions of others."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from default_sets import Kind

Array = NDArray[Any]
# (kind, X, y, number of classes, new rows, seed, threads) -> values or probabilities
Predict = Callable[[Kind, Array, Array, int, Array, int, int], Array]

MOST_ROUNDS, PATIENCE = 2000, 50


def held_out(n_rows: int, seed: int) -> tuple[Array, Array]:
    """Return four fifths of the rows, and the others, which training is stopped by."""
    order = np.random.default_rng(7 + seed).permutation(n_rows)
    n_out = max(1, n_rows // 5)
    return order[n_out:], order[:n_out]


def all_classes(probabilities: Array, classes: Any, n_classes: int) -> Array:
    """Return probabilities with a column for classes that were not seen."""
    out = np.zeros((len(probabilities), n_classes))
    out[:, np.asarray(classes, dtype=int)] = probabilities
    return out


def as_columns(values: Any) -> Array:
    """Return values of rows x targets; several systems give a single target without that axis."""
    array = np.asarray(values)
    return array if array.ndim == 2 else array[:, np.newaxis]


def polyleaf(
    params: dict[str, Any],
    kind: Kind,
    X: Array,
    y: Array,
    n_classes: int,
    new: Array,
    seed: int,
    threads: int,
) -> Array:
    """polyleaf with some parameters."""
    from polyleaf import PolyleafClassifier, PolyleafRegressor

    make: Any = PolyleafRegressor if kind == "targets" else PolyleafClassifier
    model = make(**params, random_state=seed, n_jobs=threads).fit(X, y)
    if kind == "targets":
        return as_columns(model.predict(new))
    p = np.asarray(model.predict_proba(new))
    return all_classes(p, model.classes_, n_classes) if kind == "classes" else p


def lightgbm(
    stops: bool, kind: Kind, X: Array, y: Array, n_classes: int, new: Array, seed: int, threads: int
) -> Array:
    """One LightGBM per target or label."""
    import lightgbm as lgb

    params: dict[str, Any] = {"random_state": seed, "n_jobs": threads, "verbose": -1}
    if stops:
        params["n_estimators"] = MOST_ROUNDS
    train, out = held_out(len(X), seed)

    def trained(model: Any, target: Array) -> Any:
        if not stops:
            return model.fit(X, target)
        known = np.isin(target[out], target[train]) if kind == "classes" else np.ones(len(out), dtype=bool)
        watched = [(X[out][known], target[out][known])]
        stopping = lgb.early_stopping(PATIENCE, verbose=False)
        return model.fit(X[train], target[train], eval_set=watched, callbacks=[stopping])

    if kind == "classes":
        model = trained(lgb.LGBMClassifier(**params), y)
        return all_classes(model.predict_proba(new), model.classes_, n_classes)
    columns = []
    for target in y.T:
        if len(np.unique(target[train] if stops else target)) < 2:
            columns.append(np.full(len(new), target.mean()))
        elif kind == "targets":
            columns.append(trained(lgb.LGBMRegressor(**params), target).predict(new))
        else:
            columns.append(trained(lgb.LGBMClassifier(**params), target).predict_proba(new)[:, 1])
    return np.column_stack(columns)


def xgboost(
    strategy: str,
    stops: bool,
    kind: Kind,
    X: Array,
    y: Array,
    n_classes: int,
    new: Array,
    seed: int,
    threads: int,
) -> Array:
    """XGBoost, with trees of all outputs or of one."""
    import xgboost as xgb

    params: dict[str, Any] = {"random_state": seed, "n_jobs": threads, "multi_strategy": strategy}
    if stops:
        params |= {"n_estimators": MOST_ROUNDS, "early_stopping_rounds": PATIENCE}
    train, out = held_out(len(X), seed)
    model: Any = (xgb.XGBRegressor if kind == "targets" else xgb.XGBClassifier)(**params)
    classes = np.unique(y[train] if stops else y) if kind == "classes" else None
    target = y
    if classes is not None:  # which must be numbered without gaps
        out = out[np.isin(y[out], classes)]
        target = np.searchsorted(classes, y)
    if stops:
        model.fit(X[train], target[train], eval_set=[(X[out], target[out])], verbose=False)
    else:
        model.fit(X, target)
    if kind == "targets":
        return as_columns(model.predict(new))
    p = np.asarray(model.predict_proba(new))
    return p if classes is None else all_classes(p, classes, n_classes)


def catboost(
    stops: bool, kind: Kind, X: Array, y: Array, n_classes: int, new: Array, seed: int, threads: int
) -> Array:
    """CatBoost, with trees of all outputs."""
    import catboost as cb

    params: dict[str, Any] = {
        "random_seed": seed,
        "thread_count": threads,
        "verbose": False,
        "allow_writing_files": False,
    }
    if stops:
        params |= {"iterations": MOST_ROUNDS, "early_stopping_rounds": PATIENCE}
    train, out = held_out(len(X), seed)
    if kind == "targets":
        model: Any = cb.CatBoostRegressor(loss_function="MultiRMSE", **params)
    else:
        model = cb.CatBoostClassifier(
            **params, **({"loss_function": "MultiLogloss"} if kind == "labels" else {})
        )
    if kind == "classes":
        out = out[np.isin(y[out], y[train])]
    model.fit(X[train], y[train], eval_set=(X[out], y[out])) if stops else model.fit(X, y)
    if kind == "targets":
        return as_columns(model.predict(new))
    p = np.asarray(model.predict_proba(new))
    return all_classes(p, model.classes_, n_classes) if kind == "classes" else p


def random_forest(
    kind: Kind, X: Array, y: Array, n_classes: int, new: Array, seed: int, threads: int
) -> Array:
    """The random forest of scikit-learn."""
    from sklearn.ensemble import RandomForestClassifier, RandomForestRegressor

    make: Any = RandomForestRegressor if kind == "targets" else RandomForestClassifier
    model = make(random_state=seed, n_jobs=threads).fit(X, y)
    if kind == "targets":
        return as_columns(model.predict(new))
    p: Any = model.predict_proba(new)
    if kind == "classes":
        return all_classes(p, model.classes_, n_classes)
    return np.column_stack(
        [
            of[:, list(seen).index(1)] if 1 in seen else np.zeros(len(new))
            for of, seen in zip(p, model.classes_, strict=True)
        ]
    )


SYSTEMS: dict[str, tuple[str, str, Predict]] = {
    # name: title, package, and what it does
    "polyleaf": ("polyleaf", "polyleaf", partial(polyleaf, {})),
    "polyleaf_bags": ("polyleaf, 5 bags", "polyleaf", partial(polyleaf, {"n_bags": 5})),
    "lightgbm": ("LightGBM", "lightgbm", partial(lightgbm, False)),
    "lightgbm_stops": ("LightGBM, early stopping", "lightgbm", partial(lightgbm, True)),
    "xgboost": ("XGBoost, per output", "xgboost", partial(xgboost, "one_output_per_tree", False)),
    "xgboost_stops": (
        "XGBoost, per output, early stopping",
        "xgboost",
        partial(xgboost, "one_output_per_tree", True),
    ),
    "xgboost_multi": ("XGBoost, vector leaf", "xgboost", partial(xgboost, "multi_output_tree", False)),
    "xgboost_multi_stops": (
        "XGBoost, vector leaf, early stopping",
        "xgboost",
        partial(xgboost, "multi_output_tree", True),
    ),
    "catboost": ("CatBoost", "catboost", partial(catboost, False)),
    "catboost_stops": ("CatBoost, early stopping", "catboost", partial(catboost, True)),
    "random_forest": ("random forest", "scikit-learn", random_forest),
}
