"""Write the corpus of a version: a small model file of every kind, tables, and what is predicted for them.

``python tests/model/make_corpus.py`` writes ``tests/model/corpus/VERSION/`` once, when a version is released;
files that are there already stay as they are, as they are what that version wrote. Numbers are in JSON as
hexadecimal, so that no digit is lost and any language can read them.
"""

from __future__ import annotations

import json
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import scipy.sparse

import polyleaf
from polyleaf import PolyleafClassifier, PolyleafMixed, PolyleafRegressor, load_model
from polyleaf.callbacks import Checkpoint

FOLDER = Path(__file__).parent / "corpus"
N_ROWS = 60
N_PREDICTED = 10
SMALL = {"n_estimators": 3, "max_depth": 3, "learning_rate": 0.3, "min_samples_leaf": 2, "n_jobs": 1}


def squared(y: Any, raw: Any) -> Any:
    """An objective of one's own, which no file holds."""
    return raw - y, np.ones_like(raw)


def logistic(y: Any, raw: Any) -> Any:
    """The same for two classes."""
    p = 1 / (1 + np.exp(-raw))
    return p - y, p * (1 - p)


def tables() -> dict[str, Any]:
    """The tables that models are trained on: an array, and a frame with names and categories."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(N_ROWS, 4))
    X[::7, 1] = np.nan
    number = np.arange(N_ROWS)
    frame = pd.DataFrame(X, columns=["a", "b", 'c "quoted"', "日本"])
    frame["city"] = pd.Categorical(np.array(["oslo", "rome", "bern", "köln"])[number % 4])
    frame["code"] = pd.Categorical(number % 40 * 5)
    return {"array": X, "frame": frame}


def tables_to_predict() -> dict[str, Any]:
    """Rows with missing values, values far off, and categories that nobody has seen."""
    of_fit = tables()
    X = of_fit["array"][:N_PREDICTED].copy()
    X[1] = [np.nan, 1e300, -1e300, 0.0]
    frame = of_fit["frame"][:N_PREDICTED].copy()
    frame[frame.columns[:4]] = X
    frame["city"] = frame["city"].astype(object)
    frame.loc[2, "city"] = "unknown"
    frame.loc[3, "city"] = None
    frame["code"] = frame["code"].astype(int)
    frame.loc[4, "code"] = 77
    return {"array": X, "frame": frame}


def kinds() -> dict[str, tuple[str, Callable[[], Any]]]:
    """Every kind of model: the table it takes, and how it is made."""
    X, frame = tables().values()
    rng = np.random.default_rng(1)
    number = np.arange(N_ROWS)
    targets = np.stack([X[:, 0], X[:, 2] * 3, rng.normal(size=N_ROWS)], axis=1)
    labels = (rng.random((N_ROWS, 6)) < 0.3).astype(int)
    words = np.array(["low", "high", 'ä"\\'])[np.digitize(X[:, 0], [-0.5, 0.5])]
    mixed = pd.DataFrame({"price": targets[:, 1], "grade": words, "passed": X[:, 2] > 0})
    mixed["height"] = targets[:, 0]
    mixed[["red", "blue"]] = labels[:, :2]
    groups = {
        "grade": "multiclass",
        "passed": "binary",
        "height": "regression",
        "price": {"objective": "quantile", "quantile_levels": [0.1, 0.9]},
        "colours": {"kind": "multilabel", "columns": ["red", "blue"]},
    }

    def of(cls: Any, y: Any, table: Any = X, **params: Any) -> tuple[str, Callable[[], Any]]:
        return "array" if table is X else "frame", lambda: cls(**(SMALL | params)).fit(table, y)

    def stopped() -> Any:
        model = PolyleafRegressor(
            **(SMALL | {"n_estimators": 12, "early_stopping_rounds": 3, "refit": False})
        )
        return model.fit(X, targets, eval_set=[(X[::-1], targets)])

    def checkpoint() -> Any:
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "checkpoint"
            PolyleafClassifier(**SMALL, callbacks=[Checkpoint(path, every=2)], random_state=1).fit(X, words)
            return path.read_bytes()

    return {
        "one_target": of(PolyleafRegressor, targets[:, 0]),
        "one_column": of(PolyleafRegressor, targets[:, :1]),
        "targets": of(PolyleafRegressor, targets),
        "one_output_per_tree": of(PolyleafRegressor, targets, multi_strategy="one_output_per_tree"),
        "names": of(PolyleafRegressor, pd.DataFrame(targets, columns=["u", "v", "w"]), frame),
        "large_targets": of(PolyleafRegressor, targets * [1e200, 1.0, 1e-200]),
        "quantiles": of(
            PolyleafRegressor, targets[:, :2], objective="quantile", quantile_levels=[0.1, 0.5, 0.9]
        ),
        "absolute_error": of(PolyleafRegressor, targets, objective="absolute_error"),
        "huber": of(PolyleafRegressor, targets, objective="huber"),
        "poisson": of(PolyleafRegressor, labels[:, :2], objective="poisson"),
        "gamma": of(PolyleafRegressor, np.exp(targets[:, 0]), objective="gamma"),
        "tweedie": of(PolyleafRegressor, labels[:, :2], objective="tweedie"),
        "custom": of(PolyleafRegressor, targets, objective=squared),
        "constant": of(PolyleafRegressor, np.full(N_ROWS, 0.1)),
        "no_rounds": ("array", lambda: PolyleafRegressor(**SMALL).fit(X, targets)[:0]),
        "stopped": ("array", stopped),
        "bags": of(PolyleafRegressor, targets, n_bags=3, random_state=0),
        "categories": of(PolyleafRegressor, targets[:, 1] * (1 + number % 4), frame),
        "two_classes": of(PolyleafClassifier, X[:, 0] > 0),
        "two_classes_softmax": of(PolyleafClassifier, number % 2, objective="cross_entropy"),
        "two_classes_custom": of(PolyleafClassifier, X[:, 2] > 0, objective=logistic),
        "classes": of(PolyleafClassifier, words),
        "classes_of_objects": of(PolyleafClassifier, words.astype(object), frame),
        "classes_of_floats": of(PolyleafClassifier, np.array([-1.0, 1e300, 2.0**60])[number % 3]),
        "many_classes": of(PolyleafClassifier, (number % 20).astype(np.uint8), max_depth=2),
        "labels": of(PolyleafClassifier, labels),
        "named_labels": of(PolyleafClassifier, pd.DataFrame(labels[:, :3], columns=["x", "y", "z"]), frame),
        "sparse_leaves": of(PolyleafClassifier, labels, sparse_leaves=2),
        "sparse_labels": of(
            PolyleafClassifier,
            scipy.sparse.csr_array(labels),
            sparse_leaves=2,
            objective="clipped_squared_error",
        ),
        "mixed": of(PolyleafMixed, mixed, targets=groups),
        "checkpoint": ("array", checkpoint),
    }


# --- as JSON -----------------------------------------------------------------------------------------------


def written(values: Any) -> dict[str, Any]:
    """An array as JSON: its dtype, shape and cells, floats as hexadecimal."""
    array = np.asarray(values)
    cells = array.ravel().tolist()
    if array.dtype.kind == "f":
        cells = [float(cell).hex() for cell in cells]
    dtype = {"U": "str", "O": "object"}.get(array.dtype.kind, array.dtype.name)
    return {"dtype": dtype, "shape": list(array.shape), "cells": cells}


def read(entry: dict[str, Any]) -> Any:
    """The array that `written` wrote."""
    cells = entry["cells"]
    if entry["dtype"].startswith("float"):
        cells = [float.fromhex(cell) for cell in cells]
    return np.array(cells, dtype=entry["dtype"]).reshape(entry["shape"])


def arrays_of(found: Any) -> dict[str, Any]:
    """Predictions as arrays by name; what is one array has the name "all"."""
    if scipy.sparse.issparse(found):
        found = found.toarray()
    if isinstance(found, pd.DataFrame):
        return {column: found[column].to_numpy() for column in found}
    return dict(found) if isinstance(found, dict) else {"all": found}


def predictions_of(model: Any, table: Any) -> dict[str, Any]:
    """All that a fitted model says of a table."""
    found = {"raw": {"all": model._raw(table, None)}, "predict": arrays_of(model.predict(table))}
    if hasattr(model, "predict_proba"):
        found["predict_proba"] = arrays_of(model.predict_proba(table))
    return found


def main() -> None:
    """Write what is not there yet."""
    folder = FOLDER / polyleaf.__version__
    folder.mkdir(parents=True, exist_ok=True)
    to_predict = tables_to_predict()
    described = {
        "array": {"columns": [written(column) for column in to_predict["array"].T]},
        "frame": {
            "names": list(to_predict["frame"].columns),
            "columns": [written(column.to_numpy()) for _, column in to_predict["frame"].items()],
        },
    }
    _write(folder / "tables.json", described)
    for name, (table, make) in kinds().items():
        path = folder / f"{name}.polyleaf"
        if path.exists():
            continue
        made = make()
        path.write_bytes(made) if isinstance(made, bytes) else made.save_model(path)
        found = predictions_of(load_model(path), to_predict[table])
        said = {method: {key: written(one) for key, one in of.items()} for method, of in found.items()}
        _write(path.with_suffix(".json"), {"table": table, **said})


def _write(path: Path, content: Any) -> None:
    if not path.exists():
        path.write_text(json.dumps(content, ensure_ascii=False) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
