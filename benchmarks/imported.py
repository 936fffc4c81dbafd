"""Predict and explain with models of LightGBM and XGBoost, and with the same models imported into polyleaf.

    python benchmarks/imported.py --out benchmarks/imported.md
    python benchmarks/imported.py --rows 5000 --repeats 1

The trees are the same, so that the times tell the libraries apart and nothing else. One thread; the repeats
go round both, so that a slow minute of the machine touches each of them.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from time import perf_counter
from typing import Any

import numpy as np
from numpy.typing import NDArray

from polyleaf import import_model
from report import describe_run
from speed import log, positive, ratio, table_row, write

Array = NDArray[np.float64]
N_FEATURES, N_OUTPUTS, TRAINING_ROWS = 50, 10, 20_000
ONE_BY_ONE, EXPLAINED = 200, 200


@dataclass(frozen=True)
class Peer:
    """A model of another library: itself, and the calls that predict and explain."""

    model: Any
    predict: Callable[[Array], Any]
    explain: Callable[[Array], Any]


def lightgbm(X: Array, y: Array, rounds: int, **options: Any) -> Peer:
    """Return a model of LightGBM."""
    import lightgbm as lgb

    settings = {"num_leaves": 63, "verbose": -1, "num_threads": 1} | options
    booster = lgb.train(settings, lgb.Dataset(X, y), rounds)
    return Peer(booster, booster.predict, lambda rows: booster.predict(rows, pred_contrib=True))


def xgboost(X: Array, y: Array, rounds: int, **options: Any) -> Peer:
    """Return a model of XGBoost."""
    import xgboost as xgb

    settings = {"max_depth": 6, "nthread": 1} | options
    booster = xgb.train(settings, xgb.DMatrix(X, y, nthread=1), rounds)
    return Peer(
        booster,
        booster.inplace_predict,
        lambda rows: booster.predict(xgb.DMatrix(rows, nthread=1), pred_contribs=True),
    )


def peers(X: Array, Y: Array) -> dict[str, Callable[[], Peer]]:
    """Return what is measured, by its title."""
    classes = np.argmax(Y, axis=1)
    vectors = {"multi_strategy": "multi_output_tree"}
    of_classes = {"objective": "multiclass", "num_class": N_OUTPUTS}
    return {
        "LightGBM, regression, 300 trees": lambda: lightgbm(X, Y[:, 0], 300, objective="regression"),
        "LightGBM, 10 classes, 500 trees": lambda: lightgbm(X, classes, 50, **of_classes),
        "XGBoost, regression, 300 trees": lambda: xgboost(X, Y[:, 0], 300),
        "XGBoost, 10 targets, 500 trees": lambda: xgboost(X, Y, 50),
        "XGBoost, 10 targets, 100 trees of vector leaves": lambda: xgboost(X, Y, 100, **vectors),
    }


def seconds(call: Callable[[], object]) -> float:
    """Return how long a call takes."""
    start = perf_counter()
    call()
    return perf_counter() - start


def measure(peer: Peer, rows: Array, repeats: int) -> list[str]:
    """Return the cells of a table: theirs and ours of all rows, of one, and of explanations."""
    start = perf_counter()
    model: Any = import_model(peer.model).set_params(n_jobs=1)
    imported = perf_counter() - start
    few = rows[:EXPLAINED]
    # What LightGBM and XGBoost predict of classes are probabilities.
    predict = getattr(model, "predict_proba", model.predict)
    works: list[tuple[Callable[[], object], Callable[[], object], float]] = [
        (lambda: peer.predict(rows), lambda: predict(rows), 1e6 / len(rows)),
        (lambda: one_by_one(peer.predict, rows), lambda: one_by_one(predict, rows), 1e6 / ONE_BY_ONE),
        (lambda: peer.explain(few), lambda: model.shap_values(few), 1e3 / EXPLAINED),
    ]
    cells = []
    for theirs, ours, unit in works:
        times = [(seconds(theirs), seconds(ours)) for _ in range(repeats)]
        a, b = (median(one[side] for one in times) * unit for side in (0, 1))
        cells += [f"{a:.3g}", f"{b:.3g}", ratio(a, b)]
    return [*cells, f"{imported:.1f}"]


def one_by_one(predict: Callable[[Array], Any], rows: Array) -> None:
    """Predict rows one after the other."""
    for number in range(ONE_BY_ONE):
        predict(rows[number : number + 1])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--rows", type=positive, default=20_000, help="rows predicted together")
    parser.add_argument("--repeats", type=positive, default=3)
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    run = describe_run(("lightgbm", "xgboost", "xgboost-cpu"))
    rng = np.random.default_rng(0)
    X = rng.normal(size=(TRAINING_ROWS + options.rows, N_FEATURES))
    Y = (
        np.sin(X @ rng.normal(size=(N_FEATURES, N_OUTPUTS)) / 4)
        + X[:, :N_OUTPUTS] * X[:, N_OUTPUTS : 2 * N_OUTPUTS]
    )
    lines = [
        "# Imported models",
        "",
        *run,
        f"- 1 thread; median of {options.repeats} repeats; {options.rows:,} rows x {N_FEATURES} together, "
        f"{ONE_BY_ONE} one by one, {EXPLAINED} explained",
        "",
        "Of each pair the first is the library itself, the second polyleaf with the same trees, `x` how many "
        "times as long the library takes. Times of all rows and of one are microseconds for each row, those "
        "of Shapley values milliseconds; the last column has the seconds that `import_model` takes.",
        "",
        table_row(
            [
                "model",
                "all rows",
                "here",
                "x",
                "one row",
                "here",
                "x",
                "Shapley values",
                "here",
                "x",
                "import, s",
            ]
        ),
        table_row(["---", *["---:"] * 10]),
    ]
    for title, make in peers(X[:TRAINING_ROWS], Y[:TRAINING_ROWS]).items():
        log(title)
        lines.append(table_row([title, *measure(make(), X[TRAINING_ROWS:], options.repeats)]))
    text = "\n".join(lines) + "\n"
    print(text)
    write(text, options.out)


if __name__ == "__main__":
    main()
