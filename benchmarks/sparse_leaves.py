"""Train with sparse leaves beside leaves of all outputs: processor time of a round.

    python benchmarks/sparse_leaves.py --data-dir DIR --out benchmarks/sparse_leaves.md
    python benchmarks/sparse_leaves.py --works mnist classes_200 --k 8 --instructions avx2

The forms of a work take turns in one process, and of each round the fastest repeat counts. Works whose
file is not in the folder are left out.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from time import process_time
from typing import Any

import numpy as np
from numpy.typing import NDArray

from report import describe_run
from speed import log, positive, ratio, table_row, write
from works import LEARNING_RATE, REG_LAMBDA, WORKS, Work, synthetic

MODES = ("restricted", "unrestricted")
WARM_UP = 2  # rounds that do not count


def _many(loss: str, outputs: int) -> Work:
    """Many outputs, on rows and bins that are few beside them."""
    if loss == "softmax":
        make = synthetic("classes", 8_000, 100, outputs, 10)
        return Work(f"classes_{outputs}", "softmax", outputs, 6, 64, 64, 20, make)
    make = synthetic("targets", 20_000, 100, outputs, 10)
    return Work(f"targets_{outputs}", "squared", outputs, 6, 64, 255, 20, make)


ALL_WORKS = WORKS | {
    work.name: work
    for work in (_many("softmax", 200), _many("softmax", 400), _many("squared", 200), _many("squared", 400))
}


class Clock:
    """A callback that notes the processor time at the end of each round."""

    def __init__(self) -> None:
        self.times: list[float] = []

    def after_round(self, state: object) -> None:
        self.times.append(process_time())

    def rounds(self) -> NDArray[np.float64]:
        return np.diff(self.times)[WARM_UP - 1 :]


def fit_of(work: Work, X: Any, y: Any, options: argparse.Namespace) -> Callable[[dict[str, Any]], Any]:
    """Return what trains one form of a work, and gives the seconds of its rounds."""
    from polyleaf import PolyleafClassifier, PolyleafRegressor

    def fit(form: dict[str, Any]) -> NDArray[np.float64]:
        clock = Clock()
        settings: dict[str, Any] = {
            "n_estimators": WARM_UP + options.rounds,
            "learning_rate": LEARNING_RATE,
            "max_depth": work.max_depth,
            "max_leaves": work.max_leaves,
            "min_samples_leaf": work.min_samples_leaf,
            "colsample_bytree": 1.0,
            "max_bins": work.max_bins,
            "reg_lambda": REG_LAMBDA,
            "sketch": None,
            "n_jobs": options.threads,
            "callbacks": [clock],
        }
        if work.loss == "softmax":
            PolyleafClassifier(**settings, **form, hessian=options.hessian).fit(X, y)
        else:
            PolyleafRegressor(**settings, **form, scale_targets=False, bounded_influence=False).fit(X, y)
        return clock.rounds()

    return fit


def measure(options: argparse.Namespace) -> dict[str, float]:
    """Return milliseconds a round of each form, by its name; the dense one has none."""
    from polyleaf import _core

    if options.instructions is not None:
        _core.select_kernels(options.instructions)
    work = ALL_WORKS[options.works[0]]
    split = work.make(options.data_dir / work.file if work.file else options.data_dir)
    fit = fit_of(work, split.X_train, split.y_train, options)
    forms: dict[str, dict[str, Any]] = {"dense": {}} | {
        f"{mode} {k}": {"sparse_leaves": k, "sparse_mode": mode}
        for k in options.k
        if k < work.n_outputs
        for mode in MODES
    }
    least: dict[str, NDArray[np.float64]] = {}
    for _ in range(options.repeats):
        for name, form in forms.items():
            rounds = fit(form)
            least[name] = np.minimum(least.get(name, rounds), rounds)
    return {name: 1000 * float(rounds.mean()) for name, rounds in least.items()}


def measured_apart(work: str, options: argparse.Namespace) -> dict[str, float]:
    """Return the figures of a work from a process of its own."""
    command = [sys.executable, __file__, "--here", "--works", work, "--k", *map(str, options.k)]
    command += ["--rounds", str(options.rounds), "--threads", str(options.threads)]
    command += ["--repeats", str(options.repeats), "--hessian", options.hessian]
    command += ["--data-dir", str(options.data_dir)]
    if options.instructions is not None:
        command += ["--instructions", options.instructions]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
    figures: dict[str, float] = json.loads(done.stdout)
    log(f"{work}: {figures}")
    return figures


def row_of(name: str, options: argparse.Namespace) -> str:
    """Return the line of one work."""
    found = measured_apart(name, options)
    ratios = [
        ratio(found[form], found["dense"]) if form in found else "-"
        for k in options.k
        for form in (f"{mode} {k}" for mode in MODES)
    ]
    return table_row([name, str(ALL_WORKS[name].n_outputs), f"{found['dense']:.1f}", *ratios])


def main() -> None:
    options = parse_arguments()
    if options.here:
        print(json.dumps(measure(options)))
        return
    run = describe_run([])
    works = [ALL_WORKS[name] for name in options.works]
    there = [work for work in works if work.file is None or (options.data_dir / work.file).is_file()]
    columns = [f"{mode}, k = {k}" for k in options.k for mode in MODES]
    lines = [
        "# Sparse leaves beside leaves of all outputs",
        "",
        *run,
        f"- threads: {options.threads}; instruction set: {options.instructions or 'the best there is'}; "
        f'`hessian="{options.hessian}"`, no sketch',
        f"- dense: milliseconds of processor time for a round, the mean of {options.rounds} after {WARM_UP} "
        f"that do not count; of each round the fastest of {options.repeats} repeats, in turns",
        "- restricted and unrestricted: the time of a round with sparse leaves over that of a dense one",
        "",
        table_row(["work", "outputs", "dense, ms", *columns]),
        table_row(["---", *["---:"] * (len(columns) + 2)]),
        *(row_of(work.name, options) for work in there),
    ]
    text = "\n".join(lines) + "\n"
    print(text)
    write(text, options.out)


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    add = parser.add_argument
    add(
        "--works",
        nargs="+",
        choices=ALL_WORKS,
        default=list(ALL_WORKS),
        metavar="WORK",
        help=", ".join(ALL_WORKS),
    )
    add("--data-dir", type=Path, default=Path("data"), help="folder of the files of data")
    add("--k", nargs="+", type=positive, default=[4, 8, 16], help="sparse_leaves (default 4 8 16)")
    add("--rounds", type=positive, default=8, help="boosting rounds that count (default 8)")
    add("--repeats", type=positive, default=3, help="trainings of each form (default 3)")
    add("--threads", type=positive, default=1, help="threads (default 1)")
    add(
        "--hessian",
        choices=("diagonal", "shared"),
        default="diagonal",
        help="of all forms (default diagonal)",
    )
    add(
        "--instructions", choices=("baseline", "avx2", "avx512"), help="kernels (default: the best there are)"
    )
    add("--out", type=Path, help="file for the report")
    add("--here", action="store_true", help=argparse.SUPPRESS)
    return parser.parse_args()


if __name__ == "__main__":
    main()
