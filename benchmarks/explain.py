"""Shapley values of polyleaf beside XGBoost, LightGBM and shap: milliseconds of a row, one thread each.

    python benchmarks/explain.py --out benchmarks/explain.md
    python benchmarks/explain.py --outputs 10 --rows 200 --systems polyleaf xgboost

Each system trains a model of the same rounds, depth and leaves on generated targets; XGBoost has leaves with
all outputs, LightGBM a tree for each output; shap explains the very forest of polyleaf. The repeats go round
all systems. A system that takes long explains fewer rows. All values are path-dependent.
"""

from __future__ import annotations

import argparse
import importlib
import importlib.util
from collections.abc import Callable
from pathlib import Path
from statistics import median
from time import perf_counter
from typing import Any

import numpy as np
from numpy.typing import NDArray

from report import describe_run
from speed import log, positive, ratio, table_row, write
from works import LEARNING_RATE, REG_LAMBDA, synthetic

DEPTH, LEAVES, BINS, LEAF_ROWS = 6, 64, 255, 20
TITLES = {
    "polyleaf": "polyleaf",
    "xgboost": "XGBoost pred_contribs",
    "shap": "shap TreeExplainer",
    "lightgbm": "LightGBM pred_contrib",
}
Array = NDArray[Any]
# Explains rows; what it returns is of no use here.
Explain = Callable[[Array], Any]


def polyleaf(X: Array, y: Array, rounds: int) -> Explain:
    """Return polyleaf's explanations."""
    return _polyleaf_model(X, y, rounds).set_params(n_jobs=1).shap_values  # type: ignore[no-any-return]


def _polyleaf_model(X: Array, y: Array, rounds: int) -> Any:
    from polyleaf import PolyleafRegressor

    return PolyleafRegressor(
        n_estimators=rounds,
        max_depth=DEPTH,
        max_leaves=LEAVES,
        max_bins=BINS,
        min_samples_leaf=LEAF_ROWS,
        colsample_bytree=1.0,
        learning_rate=LEARNING_RATE,
        reg_lambda=REG_LAMBDA,
        sketch=None,
        random_state=0,
    ).fit(X, y)


def shap_of_forest(X: Array, y: Array, rounds: int) -> Explain:
    """Return the explanations that shap's own extension gives of polyleaf's forest."""
    shap: Any = importlib.import_module("shap")
    described = [
        _described(tree["nodes"], y.shape[1]) for tree in _polyleaf_model(X, y, rounds).to_dict()["trees"]
    ]
    explainer = shap.TreeExplainer({"trees": described}, feature_perturbation="tree_path_dependent")
    return lambda rows: explainer.shap_values(rows, check_additivity=False)


def _described(nodes: list[dict[str, Any]], n_outputs: int) -> dict[str, Array]:
    """Return a tree as shap takes it."""

    def column(name: str, none: float, dtype: type) -> Array:
        return np.array([node.get(name, none) for node in nodes], dtype=dtype)

    left, right = column("left", -1, np.int32), column("right", -1, np.int32)
    goes_left = np.array([node.get("missing") == "left" for node in nodes])
    return {
        "children_left": left,
        "children_right": right,
        "children_default": np.where(goes_left, left, right),
        "features": column("feature", -2, np.int32),
        "thresholds": column("threshold", 0.0, np.float64),
        "values": np.array([node.get("values", [0.0] * n_outputs) for node in nodes]),
        "node_sample_weight": column("cover", 0.0, np.float64),
    }


def xgboost(X: Array, y: Array, rounds: int) -> Explain:
    """Return XGBoost's explanations."""
    xgb: Any = importlib.import_module("xgboost")
    settings = {
        "tree_method": "hist",
        "multi_strategy": "multi_output_tree",
        "max_depth": DEPTH,
        "max_leaves": LEAVES,
        "grow_policy": "lossguide",
        "max_bin": BINS,
        "min_child_weight": LEAF_ROWS,
        "eta": LEARNING_RATE,
        "lambda": REG_LAMBDA,
    }
    booster = xgb.train(settings, xgb.DMatrix(X, y), num_boost_round=rounds)
    booster.set_param({"nthread": 1})
    return lambda rows: booster.predict(xgb.DMatrix(rows, nthread=1), pred_contribs=True)


def lightgbm(X: Array, y: Array, rounds: int) -> Explain:
    """Return the explanations of a LightGBM for each output."""
    lgb: Any = importlib.import_module("lightgbm")
    settings = {
        "objective": "regression",
        "max_depth": DEPTH,
        "num_leaves": LEAVES,
        "max_bin": BINS,
        "min_data_in_leaf": LEAF_ROWS,
        "learning_rate": LEARNING_RATE,
        "lambda_l2": REG_LAMBDA,
        "verbosity": -1,
    }
    data = lgb.Dataset(X, y[:, 0], params=settings, free_raw_data=False).construct()
    boosters = []
    for j in range(y.shape[1]):
        data.set_label(y[:, j])
        boosters.append(lgb.train(settings, data, num_boost_round=rounds))
    return lambda rows: [one.predict(rows, pred_contrib=True, num_threads=1) for one in boosters]


SYSTEMS: dict[str, Callable[[Array, Array, int], Explain]] = {
    "polyleaf": polyleaf,
    "xgboost": xgboost,
    "shap": shap_of_forest,
    "lightgbm": lightgbm,
}


def measure(n_outputs: int, systems: list[str], options: argparse.Namespace) -> list[str]:
    """Return the section on so many outputs."""
    split = synthetic("targets", options.training_rows, options.features, n_outputs, test_rows=options.rows)(
        Path()
    )
    X, rows = split.X_train, np.ascontiguousarray(split.X_test)
    explain, n_rows = {}, {}
    for name in systems:
        log(f"{n_outputs} outputs: {TITLES[name]} trains")
        explain[name] = SYSTEMS[name](X, split.y_train, options.rounds)
        start = perf_counter()
        explain[name](rows[:10])
        fitting = options.seconds / max((perf_counter() - start) / 10, 1e-9)
        n_rows[name] = int(min(len(rows), max(10, fitting)))
    times: dict[str, list[float]] = {name: [] for name in systems}
    for _ in range(options.repeats):
        for name in systems:
            start = perf_counter()
            explain[name](rows[: n_rows[name]])
            times[name].append((perf_counter() - start) / n_rows[name])
    ours = median(times["polyleaf"]) if "polyleaf" in times else None
    lines = [f"## {n_outputs} outputs", ""]
    lines += [table_row(["system", "ms / row", "x", "rows"]), table_row(["---", "---:", "---:", "---:"])]
    for name in systems:
        took = median(times[name])
        cells = [TITLES[name], f"{1000 * took:.3g}", ratio(took, ours), f"{n_rows[name]:,}"]
        lines.append(table_row(cells))
        log(lines[-1])
    return lines


def main() -> None:
    options = parse_arguments()
    run = describe_run(options.systems)
    missing = [name for name in options.systems if importlib.util.find_spec(name) is None]
    systems = [name for name in options.systems if name not in missing]
    lines = [
        "# Explanations",
        "",
        *run,
        f"- {options.training_rows:,} x {options.features} targets, {options.rounds} rounds, depth {DEPTH}, "
        f"{LEAVES} leaves; one thread each, median of {options.repeats}",
        "- x: milliseconds of a row / those of polyleaf",
        *(f"- {TITLES[name]}: not installed" for name in missing),
    ]
    for n_outputs in options.outputs:
        lines += ["", *measure(n_outputs, systems, options)]
        write("\n".join(lines) + "\n", options.out)
    print("\n".join(lines))


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    add = parser.add_argument
    add("--outputs", nargs="+", type=positive, default=[1, 10, 100], help="targets (1 10 100)")
    add("--systems", nargs="+", choices=list(SYSTEMS), default=list(SYSTEMS), help=", ".join(SYSTEMS))
    add("--training-rows", type=positive, default=20_000, help="rows of the training (20000)")
    add("--features", type=positive, default=50, help="columns, at least 21 (50)")
    add("--rows", type=positive, default=2000, help="rows to explain at most (2000)")
    add("--rounds", type=positive, default=100, help="rounds of each model (100)")
    add("--repeats", type=positive, default=3, help="of each measurement (3)")
    add("--seconds", type=float, default=5.0, help="a system explains what it can within these (5)")
    add("--out", type=Path, default=None, help="also write the Markdown to this file")
    options = parser.parse_args()
    if options.features < 21:
        parser.error(f"--features {options.features}: the targets hang on 21 columns")
    return options


if __name__ == "__main__":
    main()
