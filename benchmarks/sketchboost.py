"""The protocol of the SketchBoost paper on RF1 and Delicious, whose figures for other systems are published.

    python benchmarks/sketchboost.py --data-dir DIR --sets rf1 --out benchmarks/sketchboost.md
    python benchmarks/sketchboost.py --data-dir DIR --sets rf1 --params '{"max_depth": 8}'

Rows to test on: a fifth of RF1 by `train_test_split` with seed 42, the official test rows of Delicious. The
rest is cut by `KFold(5, shuffle=True, random_state=42)`; each of five models is stopped by its fifth
(learning rate 0.015, at most 20,000 rounds, patience 500), and the figure is the mean of their scores on the
test rows: of RF1 the RMSE over all cells in the targets' own units, of Delicious the binary cross entropy.
"""

from __future__ import annotations

import argparse
import json
from functools import partial
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np
from numpy.typing import NDArray

from apart import done_apart
from default_sets import load
from report import describe_run
from speed import log, positive, table_row, write

Array = NDArray[Any]

PROTOCOL = {"learning_rate": 0.015, "n_estimators": 20_000, "early_stopping_rounds": 500}
N_FOLDS, SEED = 5, 42
# What is not the default: chosen by the folds' own rows, never by the test rows.
PARAMS: dict[str, dict[str, Any]] = {"rf1": {}, "delicious": {}}
PUBLISHED = {
    "rf1": {
        "CatBoost": 0.8975,
        "XGBoost": 0.925,
        "Py-Boost, all outputs": 1.169,
        "Py-Boost, best sketch": 0.9056,
    },
    "delicious": {"CatBoost": 0.0614},
}
METRICS = {"rf1": "rmse", "delicious": "binary_cross_entropy"}


def parts(name: str, folder: Path) -> tuple[Any, Array, Array]:
    """Return a table, and the numbers of the rows to learn from and to test on."""
    from sklearn.model_selection import train_test_split

    table = load(name, folder)
    rows = np.arange(len(table.X))
    if name == "rf1":
        train, test = train_test_split(rows, test_size=0.2, random_state=SEED)
        return table, train, test
    n_train = int(np.load(folder / f"ml_{name}.npz")["x_train_shape"][0])
    return table, rows[:n_train], rows[n_train:]


def measured(task: tuple[str, int], folder: Path, params: dict[str, Any], threads: int) -> dict[str, Any]:
    """Return the score of the model of one fold."""
    from sklearn.model_selection import KFold

    from polyleaf import PolyleafClassifier, PolyleafRegressor

    name, fold = task
    table, train, test = parts(name, folder)
    inner, out = list(KFold(N_FOLDS, shuffle=True, random_state=SEED).split(train))[fold]
    inner, out = train[inner], train[out]
    make: Any = PolyleafRegressor if table.kind == "targets" else PolyleafClassifier
    model = make(**PROTOCOL, **{"eval_metric": METRICS[name], **PARAMS[name], **params}, n_jobs=threads)
    began = perf_counter()
    model.fit(table.X[inner], table.y[inner], eval_X=table.X[out], eval_y=table.y[out])
    seconds = perf_counter() - began
    if table.kind == "targets":
        score = float(np.sqrt(((np.asarray(model.predict(table.X[test])) - table.y[test]) ** 2).mean()))
    else:
        score = table.score(train, test, np.asarray(model.predict_proba(table.X[test])))
    return {
        "score": score,
        "watched": model.best_score_,
        "rounds": model.best_iteration_ + 1,
        "seconds": seconds,
    }


def main() -> None:
    options = parse_arguments()
    lines = ["# The protocol of the SketchBoost paper", "", *describe_run(["scikit-learn"]), ""]
    params = json.loads(options.params)
    work = partial(measured, folder=options.data_dir, params=params, threads=options.threads)
    for name in options.sets:
        tasks = [(name, fold) for fold in range(N_FOLDS)]
        found = {}
        for task, result in done_apart(work, tasks, options.jobs, options.limit):
            found[task] = result
            log(f"{name}, fold {task[1]}: {result}")
        rows = [found[task] for task in tasks]
        done = [row for row in rows if row is not None]
        score = float(np.mean([row["score"] for row in done])) if len(done) == len(rows) else None
        given = json.dumps({**PARAMS[name], **params})
        lines += [
            f"## {name}",
            "",
            f"Learning rate, rounds and patience of the protocol, and {given}; all else by default.",
            "",
            table_row(["system", "score", "rounds", "seconds a fold"]),
            table_row(["---", "---:", "---:", "---:"]),
            table_row(
                [
                    "polyleaf",
                    f"{score:.4f}" if score is not None else "no result in time",
                    ", ".join(str(row["rounds"]) for row in done),
                    ", ".join(f"{row['seconds']:.0f}" for row in done),
                ]
            ),
            *(
                table_row([f"{system} (published)", f"{value}", "", ""])
                for system, value in PUBLISHED[name].items()
            ),
            "",
        ]
    write("\n".join(lines), options.out)
    print("\n".join(lines))


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    add = parser.add_argument
    add("--data-dir", type=Path, required=True, help="folder of the .npz files")
    add("--sets", nargs="+", choices=list(PARAMS), default=list(PARAMS), help="(default all)")
    add("--params", default="{}", help="JSON: other parameters than those of the table here")
    add("--jobs", type=positive, default=1, help="folds at a time (default 1)")
    add("--threads", type=positive, default=1, help="of each model (default 1)")
    add("--limit", type=positive, default=7200, help="most seconds of one model (default 7200)")
    add("--out", type=Path, default=None, help="also write the Markdown to this file")
    return parser.parse_args()


if __name__ == "__main__":
    main()
