"""Valid files of many kinds of model, checkpoints and binned tables, for the mutations to begin with."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pandas as pd
import scipy.sparse

from polyleaf import BinnedTable, PolyleafClassifier, PolyleafMixed, PolyleafRegressor
from polyleaf.callbacks import Checkpoint

N_ROWS = 60
SMALL = {"n_estimators": 3, "max_depth": 3, "min_samples_leaf": 2, "n_jobs": 1}
MANY = SMALL | {"n_estimators": 12}  # enough trees to be predicted by codes


@dataclass(frozen=True)
class Seed:
    """A valid file, and a fit that goes on from such a file.

    Attributes
    ----------
    name : str
        Of the kind of model or table.
    content : bytes
        The file: a checkpoint, which is a model as well, or a table.
    go_on : callable or None
        Takes the name of an argument of ``fit`` ("resume" or "init_model") and a path. None: the file is a
        table.
    """

    name: str
    content: bytes
    go_on: Callable[[str, Path], Any] | None

    @property
    def kind(self) -> Literal["model", "table"]:
        """What the file holds."""
        return "table" if self.go_on is None else "model"


def make_seeds(folder: Path) -> list[Seed]:
    """Return all of them; the same ones every time."""
    models = [_seed(name, make, X, y, folder) for name, (make, X, y) in _kinds().items()]
    return [*models, *(_table_seed(name, make(), folder) for name, make in _tables().items())]


def _kinds() -> dict[str, tuple[Callable[[], Any], Any, Any]]:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(N_ROWS, 4))
    X[::7, 1] = np.nan
    targets = np.stack([X[:, 0], X[:, 2] * 3, rng.normal(size=N_ROWS)], axis=1)
    number = np.arange(N_ROWS)
    labels = (rng.random((N_ROWS, 6)) < 0.3).astype(int)
    words = np.array(["low", "high", 'ä"\\'])[np.digitize(X[:, 0], [-0.5, 0.5])]
    mixed = {"grade": words, "passed": X[:, 2] > 0, "height": targets[:, 0], "price": targets[:, 1]}
    groups = {
        "grade": "multiclass",
        "passed": "binary",
        "height": "regression",
        "price": {"objective": "quantile", "quantile_levels": [0.1, 0.9]},
    }
    frame = pd.DataFrame(X, columns=["a", "b", "c", "d"])
    frame["city"] = pd.Categorical(np.array(["oslo", "rome", "bern"])[number % 3])
    frame["code"] = pd.Categorical(number % 40 * 5)
    by_frame = pd.DataFrame(targets, columns=["u", "v", "w"])

    def kind(cls: Any, X: Any, y: Any, **params: Any) -> tuple[Callable[[], Any], Any, Any]:
        return lambda: cls(**(SMALL | params)), X, y

    return {
        "one target": kind(PolyleafRegressor, X, targets[:, 0]),
        "targets": kind(PolyleafRegressor, X, targets, **MANY),
        "names": kind(PolyleafRegressor, frame[["a", "b", "c", "d"]], by_frame),
        "one output per tree": kind(PolyleafRegressor, X, targets, multi_strategy="one_output_per_tree"),
        "large targets": kind(PolyleafRegressor, X, targets * 1e200),
        "quantiles": kind(
            PolyleafRegressor, X, targets[:, :2], objective="quantile", quantile_levels=[0.1, 0.9]
        ),
        "counts": kind(PolyleafRegressor, X, labels[:, :2], objective="poisson"),
        "no split": kind(PolyleafRegressor, X, np.ones(N_ROWS)),
        "categories": kind(PolyleafRegressor, frame, targets[:, 1] * (1 + number % 3)),
        "two classes": kind(PolyleafClassifier, X, X[:, 0] > 0, **MANY),
        "classes": kind(PolyleafClassifier, X, words),
        "classes of numbers": kind(PolyleafClassifier, frame, (number % 4).astype(np.float32)),
        "labels": kind(PolyleafClassifier, X, labels),
        "sparse leaves": kind(PolyleafClassifier, X, labels, sparse_leaves=2),
        "sparse labels": kind(
            PolyleafClassifier,
            X,
            scipy.sparse.csr_array(labels),
            sparse_leaves=2,
            objective="clipped_squared_error",
        ),
        "mixed": kind(PolyleafMixed, X, mixed, targets=groups),
    }


def _seed(name: str, make: Callable[[], Any], X: Any, y: Any, folder: Path) -> Seed:
    path = folder / "checkpoint"
    make().set_params(callbacks=[Checkpoint(path, every=1)]).fit(X, y)

    def go_on(argument: str, path: Path) -> Any:
        model = make()
        return model.set_params(n_estimators=model.n_estimators + 1).fit(X, y, **{argument: path})

    return Seed(name, path.read_bytes(), go_on)


def _tables() -> dict[str, Callable[[], BinnedTable]]:
    kinds = _kinds()
    (_, X, targets), (_, frame, _), (_, _, words) = kinds["targets"], kinds["categories"], kinds["classes"]
    weight = np.random.default_rng(1).gamma(1.0, size=targets.shape)
    gaps = np.where(np.arange(N_ROWS)[:, np.newaxis] % [60, 5, 7] == 1, np.nan, targets)
    frequent = np.where(np.arange(N_ROWS)[:, np.newaxis] % 6 > 0, 0.0, X)
    labels = kinds["sparse labels"][2]
    return {
        "table alone": lambda: BinnedTable.make(X),
        "table with targets": lambda: BinnedTable.make(X, gaps, weight, max_bins=9),
        "table of categories": lambda: BinnedTable.make(frame, words, weight[:, 0]),
        "table of frequent values": lambda: BinnedTable.make(frequent, kinds["names"][2], max_bins=None),
        "table of many bins": lambda: BinnedTable.make(np.arange(600.0)[:, np.newaxis] % 400, max_bins=500),
        "table with sparse labels": lambda: BinnedTable.make(X, labels),
    }


def _table_seed(name: str, table: BinnedTable, folder: Path) -> Seed:
    table.save_binned(folder / "table")
    return Seed(name, (folder / "table").read_bytes(), None)
