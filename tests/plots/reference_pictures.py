"""Small pictures of every kind, as they should look: ``python tests/plots/reference_pictures.py`` draws them.

Look at what has changed before it is committed.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from sklearn.base import clone

from polyleaf import PolyleafClassifier, PolyleafRegressor, plots

FOLDER = Path(__file__).parent / "references"
NOTE = FOLDER / "drawn_with.json"
DOTS_PER_INCH = 50
HALF = 150


@cache
def houses() -> tuple[pd.DataFrame, pd.DataFrame]:
    """Numbers with gaps, categories, and six targets, of which neighbours are alike."""
    rng = np.random.default_rng(5)
    n = 2 * HALF
    X = pd.DataFrame(
        {
            "area": np.round(rng.uniform(30, 200, n)),
            "year": rng.integers(1950, 2020, n).astype(float),
            "heating": rng.choice(["gas", "oil", "pump"], n),
            "noise": np.round(rng.normal(size=n), 2),
        }
    )
    size, age, pump = X["area"] / 100, (2020 - X["year"]) / 70, (X["heating"] == "pump").astype(float)
    X.loc[::8, "area"] = np.nan
    errors = rng.normal(scale=0.2, size=(n, 3))
    y = {
        "price": 3 * size - age,
        "rent": 2 * size - age + 0.3 * pump,
        "energy": size + 2 * age * (1 - pump),
        "carbon": 0.5 * size + 3 * age * (1 - pump),
        "repairs": np.sin(5 * age) + 1,
        "tax": np.cos(3 * size),
    }
    return X, pd.DataFrame({name: column + errors[:, k // 2] for k, (name, column) in enumerate(y.items())})


@cache
def regressor() -> PolyleafRegressor:
    X, y = houses()
    model = PolyleafRegressor(
        n_estimators=12,
        learning_rate=0.4,
        max_depth=3,
        min_samples_leaf=20,
        sketch=None,
        categorical_features="auto",
        eval_metric="rmse",
    )
    sets = {"train": (X[:HALF], y[:HALF]), "test": (X[HALF:], y[HALF:])}
    return model.fit(X[:HALF], y[:HALF], eval_set=sets)


@cache
def apart() -> PolyleafRegressor:
    X, y = houses()
    model = clone(regressor()).set_params(multi_strategy="one_output_per_tree", n_estimators=5)
    return model.fit(X[:HALF], y[:HALF])


@cache
def classifier() -> PolyleafClassifier:
    X, _ = houses()
    kinds = np.where(X["year"] > 1995, "new", np.where(X["area"] > 110, "large", "small"))
    return PolyleafClassifier(n_estimators=8, max_depth=2, learning_rate=0.1, min_samples_leaf=20).fit(
        X[["area", "year", "noise"]], kinds
    )


def _test_rows() -> tuple[pd.DataFrame, pd.DataFrame]:
    X, y = houses()
    return X[HALF:], y[HALF:]


PICTURES: dict[str, Callable[[], Any]] = {
    "metric": lambda: plots.plot_metric(regressor()),
    "importance": lambda: plots.plot_importance(regressor()),
    "importance_per_output": lambda: plots.plot_importance(regressor(), per_output=True),
    "tree": lambda: plots.plot_tree(regressor(), max_depth=2),
    "shap_heatmap": lambda: plots.plot_shap_heatmap(regressor(), houses()[0]),
    "shap_beeswarm": lambda: plots.plot_shap_beeswarm(regressor(), _test_rows()[0], "energy"),
    "row": lambda: plots.plot_row(regressor(), houses()[0][3:4]),
    "row_versus": lambda: plots.plot_row(
        classifier(), houses()[0][["area", "year", "noise"]][3:4], versus=("new", "large")
    ),
    "dependence": lambda: plots.plot_partial_dependence(regressor(), houses()[0], "area", top=4),
    "dependence_rows": lambda: plots.plot_partial_dependence(
        regressor(), houses()[0][:40], "year", ["energy", "price"], kind="both", centered=True
    ),
    "dependence_categories": lambda: plots.plot_partial_dependence(
        regressor(), houses()[0][:40], "heating", kind="both"
    ),
    "dependence_map": lambda: plots.plot_partial_dependence(
        regressor(), houses()[0], ["area", "heating"], ["price", "energy"], grid_resolution=15
    )[0],
    "output_map": lambda: plots.plot_output_map(regressor(), *_test_rows()),
    "output_gain": lambda: plots.plot_output_gain(regressor(), *_test_rows(), apart()),
    "output_scores": lambda: plots.plot_output_gain(regressor(), *_test_rows()),
}


def drawn_with() -> dict[str, str]:
    """What decides how letters look."""
    import matplotlib
    from matplotlib import ft2font

    return {"matplotlib": matplotlib.__version__, "freetype": ft2font.__freetype_version__}


def draw(name: str, path: Path) -> None:
    """Draw a picture with matplotlib's own settings."""
    import matplotlib
    from matplotlib import pyplot

    with matplotlib.rc_context():
        matplotlib.rcdefaults()
        matplotlib.use("Agg")
        figure = PICTURES[name]().get_figure(root=True)
        figure.savefig(path, dpi=DOTS_PER_INCH, metadata={"Software": None})
        pyplot.close(figure)


def main() -> None:
    FOLDER.mkdir(exist_ok=True)
    for old in FOLDER.glob("*.png"):
        old.unlink()
    for name in PICTURES:
        draw(name, FOLDER / f"{name}.png")
    NOTE.write_text(json.dumps(drawn_with(), indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
