"""How fast and how far variants of polyleaf converge: test loss, rounds and seconds on several data sets.

    python benchmarks/convergence.py --data-dir DIR [--out FILE] [DATA ...]

A fifth of the training rows is held out; the round with the least loss there counts (25 rounds without gain
end a run), and its test loss is shown. Every seed draws another held-out fifth and, where a data set has no
test rows of its own, other test rows (30 %).
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np
import scipy.sparse
from numpy.typing import NDArray

from polyleaf import PolyleafClassifier, PolyleafRegressor
from works import WORKS

Array = NDArray[Any]
PATIENCE = 25

GRADIENT_BASED = {"sampling_method": "gradient_based"}
PROJECTION = {"sketch": "random_projection"}
ABSOLUTE = {"softmax_curvature": "abs(p-y)"}
VARIANTS: dict[str, dict[str, dict[str, Any]]] = {
    "classes": {
        "p(1-p), rate 0.1 (the paper's)": {"learning_rate": 0.1},
        "the same, shared Hessian": {"learning_rate": 0.1, "hessian": "shared"},
        "p(1-p), rate 0.3": {"learning_rate": 0.3},
        "abs(p-y), rate 0.3": {"learning_rate": 0.3, **ABSOLUTE},
        "the same, shared Hessian ": {"learning_rate": 0.3, **ABSOLUTE, "hessian": "shared"},
        "abs(p-y), rate 0.3, 20 % of the rows by gradient": {
            "learning_rate": 0.3,
            **ABSOLUTE,
            **GRADIENT_BASED,
            "subsample": 0.2,
        },
        "abs(p-y), rate 0.3, projection to 5": {"learning_rate": 0.3, **ABSOLUTE, **PROJECTION},
        "the same, 30 % of the rows by gradient": {
            "learning_rate": 0.3,
            **ABSOLUTE,
            **PROJECTION,
            **GRADIENT_BASED,
            "subsample": 0.3,
        },
    },
    "labels": {
        "p(1-p), rate 0.1": {"learning_rate": 0.1},
        "the same, shared Hessian": {"learning_rate": 0.1, "hessian": "shared"},
        "half of the rows by gradient": {"learning_rate": 0.1, **GRADIENT_BASED, "subsample": 0.5},
        "half of the features": {"learning_rate": 0.1, "colsample_bytree": 0.5},
        "projection to 5": {"learning_rate": 0.1, **PROJECTION},
        "projection to 20": {"learning_rate": 0.1, **PROJECTION, "sketch_size": 20},
    },
    "targets": {
        "rate 0.1": {"learning_rate": 0.1},
        "targets not scaled (the paper's)": {"learning_rate": 0.1, "scale_targets": False},
        "half of the rows by gradient": {"learning_rate": 0.1, **GRADIENT_BASED, "subsample": 0.5},
        "projection to 5": {"learning_rate": 0.1, **PROJECTION},
    },
}
# What a variant does not say: the paper's objective on all outputs, nothing automatic.
PLAIN: dict[str, dict[str, Any]] = {
    "classes": {"hessian": "diagonal"},
    "labels": {"hessian": "diagonal"},
    "targets": {},
}
PLAIN = {
    kind: {"sketch": None, "colsample_bytree": 1.0, "min_samples_leaf": 20, **of}
    for kind, of in PLAIN.items()
}
METRIC = {"classes": "cross_entropy", "labels": "binary_cross_entropy", "targets": "rmse"}


@dataclass(frozen=True)
class Task:
    """A data set: its rows (without test rows of its own, they are drawn), settings, most rounds, seeds."""

    name: str
    kind: str
    x: Array
    y: Array
    test: tuple[Array, Array] | None
    settings: dict[str, Any]
    rounds: int
    seeds: int

    def split(self, seed: int) -> tuple[tuple[Array, Array], tuple[Array, Array], tuple[Array, Array]]:
        """Return training, held-out and test rows."""
        order = np.random.default_rng(seed).permutation(len(self.x))
        test = self.test
        if test is None:
            rows, order = np.split(order, [int(0.3 * len(order))])
            test = self.x[rows], self.y[rows]
        held_out, train = np.split(order, [len(order) // 5])
        return (self.x[train], self.y[train]), (self.x[held_out], self.y[held_out]), test


def tasks(folder: Path) -> Iterator[Task]:
    """Yield the data sets of a folder."""
    for name, rounds, seeds in (("mnist", 200, 2), ("caltech101", 200, 2)):
        work = WORKS[name]
        assert work.file is not None
        split = work.make(folder / work.file)
        settings = {"max_depth": 6, "max_leaves": 48, "max_bins": work.max_bins, "min_samples_leaf": 16}
        yield Task(
            name,
            "classes",
            split.X_train,
            split.y_train,
            (split.X_test, split.y_test),
            settings,
            rounds,
            seeds,
        )
    plain = {"max_depth": 6, "max_leaves": 48}
    with np.load(folder / "yeast.npz") as data:
        yield Task("yeast", "classes", data["x"], data["y"].astype(int), None, plain, 400, 5)
    for name, rounds, seeds in (
        ("emotions", 400, 5),
        ("scene", 400, 3),
        ("enron", 400, 2),
        ("cal500", 200, 3),
        ("corel5k", 100, 1),
        ("delicious", 60, 1),
    ):
        with np.load(folder / f"ml_{name}.npz") as data:
            parts = [_part(data, part) for part in ("x_train", "y_train", "x_test", "y_test", "x", "y")]
        if parts[4] is not None:
            yield Task(name, "labels", parts[4], parts[5], None, plain, rounds, seeds)
        else:
            yield Task(name, "labels", parts[0], parts[1], (parts[2], parts[3]), plain, rounds, seeds)
    with np.load(folder / "mtr.npz") as data:
        for name in sorted(key.removesuffix("_X") for key in data if key.endswith("_X")):
            y = data[f"{name}_Y"].astype(np.float64)
            y = (y - y.mean(axis=0)) / y.std(axis=0)
            yield Task(name, "targets", data[f"{name}_X"], y, None, plain | {"min_samples_leaf": 5}, 600, 5)


def _part(data: Any, name: str) -> Any:
    if name in data:
        return data[name]
    if f"{name}_indptr" not in data:
        return None
    indices, indptr = data[f"{name}_indices"], data[f"{name}_indptr"]
    values = data[f"{name}_data"] if f"{name}_data" in data else np.ones(len(indices), np.uint8)
    return scipy.sparse.csr_array((values, indices, indptr), shape=tuple(data[f"{name}_shape"])).toarray()


def run(task: Task, settings: dict[str, Any], seed: int, threads: int) -> dict[str, float]:
    """Train once; return test loss, rounds and seconds up to the best round."""
    train, held_out, test = task.split(seed)
    kind = PolyleafRegressor if task.kind == "targets" else PolyleafClassifier
    metric = METRIC[task.kind]
    ends = []

    def clock(_y: Array, _prediction: Array) -> float:
        ends.append(perf_counter())
        return 0.0

    model = kind(
        n_estimators=task.rounds,
        early_stopping_rounds=PATIENCE,
        eval_metric=[clock, metric],
        random_state=seed,
        n_jobs=threads,
        **{**PLAIN[task.kind], **task.settings, **settings},
    )
    begin = perf_counter()
    model.fit(*train, eval_set=[test, held_out])
    best = model.best_iteration_
    loss = model.evals_result_["validation_0"][metric][best]
    return {"loss": loss, "rounds": best + 1, "seconds": ends[2 * best] - begin}


def table(task: Task, rows: dict[str, list[dict[str, float]]]) -> str:
    """Return the Markdown table of one data set."""
    n, m = task.x.shape
    d = int(task.y.max()) + 1 if task.y.ndim == 1 else task.y.shape[1]
    lines = [
        f"### {task.name}: {n:,} x {m} -> {d} {task.kind}, {task.seeds} seed(s)",
        "",
        "| variant | test loss | against the first | rounds | seconds | against the first |",
        "| --- | ---: | ---: | ---: | ---: | ---: |",
    ]
    first = None
    for name, results in rows.items():
        mean = {key: float(np.mean([one[key] for one in results])) for key in results[0]}
        first = first or mean
        lines.append(
            f"| {name.strip()} | {mean['loss']:.4f} | {100 * (mean['loss'] / first['loss'] - 1):+.1f} % | "
            f"{mean['rounds']:.0f} | {mean['seconds']:.2f} | {mean['seconds'] / first['seconds']:.2f}x |"
        )
    return "\n".join(lines)


def main() -> None:
    """Run what is asked for and print the tables."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("data", metavar="DATA", nargs="*", help="which data sets (default: all)")
    parser.add_argument("--data-dir", type=Path, required=True)
    parser.add_argument("--out", type=Path, help="a JSON file that keeps results: a stopped run goes on")
    parser.add_argument("--threads", type=int, default=2)
    options = parser.parse_args()
    kept = json.loads(options.out.read_text()) if options.out and options.out.exists() else {}
    for task in tasks(options.data_dir):
        if options.data and task.name not in options.data:
            continue
        rows: dict[str, list[dict[str, float]]] = {}
        for name, settings in VARIANTS[task.kind].items():
            for seed in range(task.seeds):
                key = json.dumps(
                    [task.name, name, seed, settings, task.settings, task.rounds], sort_keys=True
                )
                if key not in kept:
                    kept[key] = run(task, settings, seed, options.threads)
                    if options.out:
                        options.out.write_text(json.dumps(kept, indent=0) + "\n")
                rows.setdefault(name, []).append(kept[key])
        print(table(task, rows) + "\n", flush=True)


if __name__ == "__main__":
    main()
