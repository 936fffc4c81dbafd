"""Tables as people have them, with categories and gaps: polyleaf beside LightGBM with its native handling.

    python benchmarks/real_tables.py --data-dir DIR [--splits 10]

Random 70/30 splits; a fifth of the training rows decides when to stop. LightGBM trains one model per target,
polyleaf one for all. The score is the mean over targets of RMSE / RMSE of the training mean (smaller is
better). Writes benchmarks/real_tables.md.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from pathlib import Path
from typing import Any

import lightgbm
import numpy as np
import pandas as pd

from polyleaf import PolyleafRegressor
from report import describe_run

LEARNING_RATE, ROUNDS, PATIENCE, MIN_ROWS = 0.05, 2_000, 50, 5


def student_por(folder: Path) -> tuple[pd.DataFrame, np.ndarray]:
    """Return the raw CSV: 17 columns of text, 13 of numbers, 3 grades."""
    frame = pd.read_csv(folder / "student-por.csv", sep=";")
    grades = frame[["G1", "G2", "G3"]].to_numpy(dtype=np.float64)
    table = frame.drop(columns=["G1", "G2", "G3"])
    text = table.select_dtypes(exclude="number").columns
    return table.astype(dict.fromkeys(text, "category")), grades


def multi_target(name: str) -> Callable[[Path], tuple[pd.DataFrame, np.ndarray]]:
    """Return the loader of one of the multi-target sets, which have missing cells."""

    def load(folder: Path) -> tuple[pd.DataFrame, np.ndarray]:
        with np.load(folder / "mtr.npz") as data:
            X, y = data[f"{name}_X"], data[f"{name}_Y"].astype(np.float64)
        return pd.DataFrame(X, columns=[f"x{j}" for j in range(X.shape[1])]), y

    return load


DATA = {"student-por": student_por, "osales": multi_target("osales"), "rf1": multi_target("rf1")}


def fit_lightgbm(X: Any, y: Any, X_valid: Any, y_valid: Any, X_test: Any) -> np.ndarray:
    predictions = []
    for j in range(y.shape[1]):
        model = lightgbm.LGBMRegressor(
            n_estimators=ROUNDS,
            learning_rate=LEARNING_RATE,
            max_depth=6,
            min_child_samples=MIN_ROWS,
            reg_lambda=1.0,
            n_jobs=2,
            verbosity=-1,
        )
        stop = lightgbm.early_stopping(PATIENCE, verbose=False)
        model.fit(X, y[:, j], eval_set=[(X_valid, y_valid[:, j])], callbacks=[stop])
        predictions.append(model.predict(X_test))
    return np.column_stack(predictions)


def fit_polyleaf(X: Any, y: Any, X_valid: Any, y_valid: Any, X_test: Any) -> np.ndarray:
    has_categories = any(isinstance(dtype, pd.CategoricalDtype) for dtype in X.dtypes)
    options: dict[str, Any] = {"categorical_features": "from_dtype"} if has_categories else {}
    spread = y.std(axis=0)

    def scaled_error(truth: np.ndarray, prediction: np.ndarray) -> float:
        return float(np.mean(np.sqrt(np.mean((truth - prediction) ** 2, axis=0)) / spread))

    model = PolyleafRegressor(
        n_estimators=ROUNDS,
        learning_rate=LEARNING_RATE,
        max_depth=6,
        min_samples_leaf=MIN_ROWS,
        colsample_bytree=1.0,
        sketch=None,
        early_stopping_rounds=PATIENCE,
        eval_metric=scaled_error,
        n_jobs=2,
        random_state=0,
        **options,
    )
    return np.asarray(model.fit(X, y, eval_set=(X_valid, y_valid)).predict(X_test))


SYSTEMS = {"LightGBM": fit_lightgbm, "polyleaf": fit_polyleaf}


def score(y: np.ndarray, prediction: np.ndarray, mean: np.ndarray) -> float:
    error = np.sqrt(np.mean((y - prediction) ** 2, axis=0))
    return float(np.mean(error / np.sqrt(np.mean((y - mean) ** 2, axis=0))))


def run(name: str, folder: Path, n_splits: int) -> dict[str, np.ndarray]:
    """Return the scores of each system on the same splits."""
    X, y = DATA[name](folder)
    scores: dict[str, list[float]] = {system: [] for system in SYSTEMS}
    for seed in range(n_splits):
        order = np.random.default_rng(seed).permutation(len(X))
        n_train, n_test = round(0.56 * len(X)), round(0.3 * len(X))
        train, valid, test = order[:n_train], order[n_train:-n_test], order[-n_test:]
        mean = y[np.concatenate([train, valid])].mean(axis=0)
        for system, fit in SYSTEMS.items():
            prediction = fit(X.iloc[train], y[train], X.iloc[valid], y[valid], X.iloc[test])
            scores[system].append(score(y[test], prediction, mean))
        print(name, seed, {system: round(values[-1], 4) for system, values in scores.items()}, flush=True)
    return {system: np.array(values) for system, values in scores.items()}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data-dir", type=Path, required=True)
    parser.add_argument("--splits", type=int, default=10)
    parser.add_argument("--data", nargs="+", choices=list(DATA), default=list(DATA))
    options = parser.parse_args()
    rows = []
    for name in options.data:
        scores = run(name, options.data_dir, options.splits)
        difference = scores["polyleaf"] - scores["LightGBM"]
        error = difference.std(ddof=1) / np.sqrt(len(difference))
        cells = [f"{scores[system].mean():.4f} ± {scores[system].std(ddof=1):.4f}" for system in SYSTEMS]
        rows.append(f"| {name} | {' | '.join(cells)} | {difference.mean():+.4f} ± {error:.4f} |")
    lines = [
        "# Tables with categories and gaps",
        "",
        *describe_run(("lightgbm",)),
        f"- {options.splits} random splits; means and standard deviations, differences with standard errors",
        "",
        f"| data | {' | '.join(SYSTEMS)} | difference |",
        "| --- | ---: | ---: | ---: |",
        *rows,
        "",
        "Mean over targets of RMSE / RMSE of the training mean; smaller is better.",
    ]
    Path(__file__).with_suffix(".md").write_text("\n".join(lines) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
