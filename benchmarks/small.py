"""How long the defaults take on small tables, beside those of LightGBM, with one model per target or label.

    python benchmarks/small.py [--out FILE] [--rows N ...] [--works NAME ...] [--repeats N] [--threads N]

Tables are generated. Shown are seconds of the processor for training and predicting the training rows, the
least of several repeats, in which the systems take turns; and how many rounds held-out rows asked for.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from time import process_time

import numpy as np

from default_sets import Kind
from default_systems import SYSTEMS, Array
from polyleaf import PolyleafClassifier, PolyleafRegressor
from report import describe_run

COMPARED = ("polyleaf", "polyleaf_bags", "lightgbm")


@dataclass(frozen=True)
class SmallWork:
    """A kind of table, of any number of rows.

    Attributes
    ----------
    kind : {"targets", "classes", "labels"}
        What is predicted.
    n_features, n_outputs : int
        Columns of the table; targets, classes or labels.
    """

    kind: Kind
    n_features: int
    n_outputs: int

    def make(self, n_rows: int) -> tuple[Array, Array]:
        """Return a table and its targets: a few features count, and there is noise."""
        rng = np.random.default_rng([n_rows, self.n_features, self.n_outputs])
        X = rng.normal(size=(n_rows, self.n_features))
        hidden = np.tanh(X[:, :5] @ rng.normal(size=(5, 4)))
        scores = hidden @ rng.normal(size=(4, self.n_outputs)) + X[:, [0]] * X[:, [1]]
        scores += 0.5 * rng.normal(size=scores.shape)
        if self.kind == "targets":
            return X, scores
        return X, scores.argmax(axis=1) if self.kind == "classes" else (scores > 0.5).astype(np.int64)


WORKS = {
    "one target": SmallWork("targets", 10, 1),
    "3 targets": SmallWork("targets", 10, 3),
    "12 targets": SmallWork("targets", 20, 12),
    "6 classes": SmallWork("classes", 10, 6),
    "10 labels": SmallWork("labels", 40, 10),
}


def seconds(run: Callable[[], object]) -> float:
    """Return the processor's seconds of a run."""
    start = process_time()
    run()
    return process_time() - start


def measure(work: SmallWork, n_rows: int, repeats: int, threads: int) -> tuple[dict[str, float], int]:
    """Return the least seconds of each system, and the rounds that polyleaf did."""
    X, y = work.make(n_rows)
    times: dict[str, list[float]] = {name: [] for name in COMPARED}
    for _ in range(repeats):
        for name in COMPARED:
            predict = SYSTEMS[name][2]
            times[name].append(seconds(partial(predict, work.kind, X, y, work.n_outputs, X, 0, threads)))
    estimator = PolyleafRegressor if work.kind == "targets" else PolyleafClassifier
    model = estimator(random_state=0, n_jobs=threads).fit(X, y)
    return {name: min(found) for name, found in times.items()}, model.best_iteration_ + 1


def row(name: str, work: SmallWork, n_rows: int, times: dict[str, float], n_rounds: int) -> str:
    """Return a line of the table."""
    cells = [f"{times[one]:.3g}" for one in COMPARED]
    ratio = times["lightgbm"] / times["polyleaf"]
    table = f"{n_rows:,} x {work.n_features}"
    return f"| {name} | {table} | {n_rounds} | {' | '.join(cells)} | {ratio:.2g} |"


def main() -> None:
    """Run the comparison and print its report."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--out", type=Path, help="also write the report to this file")
    parser.add_argument("--rows", type=int, nargs="+", default=[50, 300, 1500], metavar="N")
    parser.add_argument("--works", nargs="+", choices=WORKS, default=list(WORKS), metavar="NAME")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--threads", type=int, default=1)
    options = parser.parse_args()
    titles = [SYSTEMS[name][0] for name in COMPARED]
    lines = ["# Small tables with nothing tuned", "", *describe_run(["lightgbm"])]
    lines += [
        f"- seconds of the processor, training and prediction, the least of {options.repeats}; "
        f"{options.threads} thread(s)",
        "- repeats of polyleaf after the first find what each round draws remembered: about a twentieth of "
        "a fit",
        "- rounds: those of polyleaf in the end; five folds of some more look for them. LightGBM does 100 "
        "for each target, class or label",
        "",
        "| work | table | rounds | " + " | ".join(titles) + " | LightGBM / polyleaf |",
        "| --- | --- | ---: |" + " ---: |" * (len(titles) + 1),
    ]
    for name in options.works:
        for n_rows in options.rows:
            work = WORKS[name]
            times, n_rounds = measure(work, n_rows, options.repeats, options.threads)
            lines.append(row(name, work, n_rows, times, n_rounds))
            print(lines[-1], flush=True)
    text = "\n".join([*lines, ""])
    print(text)
    if options.out is not None:
        options.out.write_text(text)


if __name__ == "__main__":
    main()
