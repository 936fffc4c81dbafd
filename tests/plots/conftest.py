"""Small models of few and of many outputs, and figures that no window shows."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pandas as pd
import pytest

from polyleaf import PolyleafClassifier, PolyleafRegressor

N_ROWS = 240
N_MANY = 90


@pytest.fixture(autouse=True)
def no_window() -> Iterator[None]:
    """Draw to memory, and close all figures after a test."""
    matplotlib = pytest.importorskip("matplotlib", reason="pictures are drawn by matplotlib")
    matplotlib.use("Agg")
    from matplotlib import pyplot

    yield
    pyplot.close("all")


@pytest.fixture(scope="session")
def table() -> pd.DataFrame:
    """Forty columns: numbers with gaps, long names, and one of categories."""
    rng = np.random.default_rng(3)
    names = [f"a_name_that_is_far_too_long_to_be_written_{j}" if j % 4 == 0 else f"f{j}" for j in range(39)]
    found = pd.DataFrame(rng.normal(size=(N_ROWS, 39)), columns=names)
    found.iloc[::5, 1] = np.nan
    found["heating"] = rng.choice(["gas", "oil", "pump"], size=N_ROWS)
    return found


@pytest.fixture(scope="session")
def targets(table: pd.DataFrame) -> Any:
    rng = np.random.default_rng(4)
    numbers = np.nan_to_num(table.iloc[:, :39].to_numpy(dtype=np.float64))
    pump = (table["heating"] == "pump").to_numpy()[:, None]
    noise = rng.normal(scale=9, size=(N_ROWS, N_MANY))
    return noise + numbers @ rng.normal(size=(39, N_MANY)) + 9 * pump * rng.normal(size=N_MANY)


@pytest.fixture(scope="session")
def many(table: pd.DataFrame, targets: Any) -> PolyleafRegressor:
    """Ninety outputs, forty features, deep trees, two evaluation sets."""
    half = N_ROWS // 2
    return PolyleafRegressor(
        n_estimators=30,
        learning_rate=0.5,
        max_depth=6,
        min_samples_leaf=4,
        colsample_bytree=1.0,
        sketch=None,
        categorical_features="auto",
        eval_metric=["mae", "rmse"],
        early_stopping_rounds=2,
    ).fit(
        table[:half],
        targets[:half],
        eval_set={"train": (table[:half], targets[:half]), "$held_out$": (table[half:], targets[half:])},
    )


@pytest.fixture(scope="session")
def few(table: pd.DataFrame, targets: Any) -> PolyleafRegressor:
    """Two outputs, three features, of which one is categorical."""
    y = pd.DataFrame({"price": targets[:, 0] + 5 * table["f2"], "energy": targets[:, 1] + 2 * table["f3"]})
    model = PolyleafRegressor(
        n_estimators=5, max_depth=2, learning_rate=0.1, min_samples_leaf=20, categorical_features="auto"
    )
    return model.fit(table[["f2", "f3", "heating"]], y)


@pytest.fixture(scope="session")
def classes(table: pd.DataFrame) -> PolyleafClassifier:
    y = np.array(["ash", "birch", "cedar"])[(table["f2"] > 0).to_numpy() + (table["f3"] > 0.5).to_numpy(int)]
    return PolyleafClassifier(n_estimators=5, max_depth=3).fit(table[["f2", "f3", "f5"]], y)
