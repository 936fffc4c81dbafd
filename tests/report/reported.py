"""Reports of small models of every kind, and the data within a page."""

from __future__ import annotations

import json
import re
from typing import Any

import numpy as np
import pandas as pd

from polyleaf import PolyleafClassifier, PolyleafMixed, PolyleafRegressor

N_ROWS = 260
EVIL = "</script><script>alert(1)</script>"
KINDS = ("number", "numbers", "quantiles", "two classes", "classes", "labels", "mixed")


def rows(seed: int = 0, n: int = N_ROWS) -> pd.DataFrame:
    """Features with gaps, a category and a constant, and targets of all kinds."""
    rng = np.random.default_rng(seed)
    table = pd.DataFrame(rng.normal(size=(n, 4)), columns=["speed", "load", "heat", "wind"])
    table.loc[::13, "load"] = np.nan
    table["site"] = rng.choice(["north", "south", "east"], n)
    table["same"] = 1.5
    noise = rng.normal(size=(n, 2)) / 4
    table["power"] = 2 * table["speed"] + (table["site"] == "north") + noise[:, 0]
    table["cost"] = 100 + table["load"].fillna(0) ** 2 + table["speed"] + noise[:, 1]
    table["grade"] = np.select([table["speed"] > 0.6, table["cost"] > 101], ["a", "b"], "c")
    table["safe"] = np.where(table["power"] + noise[:, 1] > 0.5, "yes", "no")
    table["fast"] = (table["speed"] + noise[:, 0] > 0).astype(int)
    table["late"] = (table["cost"] > 101).astype(int)
    table["warm"] = (table["heat"] > 0.5).astype(int)
    return table


FEATURES = ["speed", "load", "heat", "wind", "site", "same"]
TARGETS: dict[str, Any] = {
    "number": "power",
    "numbers": ["power", "cost"],
    "quantiles": ["power", "cost"],
    "two classes": "safe",
    "classes": "grade",
    "labels": ["fast", "late", "warm"],
    "mixed": ["power", "grade", "safe"],
}


def unfitted(kind: str, **settings: Any) -> Any:
    """An estimator for the targets of a kind."""
    usual = {"n_estimators": 12, "max_depth": 3, "min_samples_leaf": 5, "categorical_features": "auto"}
    if kind in ("number", "numbers"):
        return PolyleafRegressor(**usual | settings)
    if kind == "quantiles":
        return PolyleafRegressor(objective="quantile", quantile_levels=[0.1, 0.5, 0.9], **usual | settings)
    if kind == "mixed":
        groups = {"power": "regression", "grade": "multiclass", "safe": "binary"}
        return PolyleafMixed(groups, **usual | settings)
    return PolyleafClassifier(**usual | settings)


def fitted(kind: str, **settings: Any) -> Any:
    """A model, trained on rows of its own."""
    table = rows()
    return unfitted(kind, **settings).fit(table[FEATURES], table[TARGETS[kind]])


def data_of(page: str) -> dict[str, Any]:
    """The data within a page."""
    (text,) = re.findall(r'<script type="application/json" id="data">(.*?)</script>', page, flags=re.DOTALL)
    found: dict[str, Any] = json.loads(text)
    return found


def report_of(model: Any, kind: str, table: pd.DataFrame | None = None, **options: Any) -> dict[str, Any]:
    """What a report on other rows says."""
    table = rows(1) if table is None else table
    return data_of(model.report(table[FEATURES], table[TARGETS[kind]], **options))
