"""Predict with polyleaf beside LightGBM, XGBoost and CatBoost; print rows per second and the time of one row.

    python benchmarks/prediction.py --data-dir DIR --rounds 500 20
    python benchmarks/prediction.py --works nuswide_like --systems polyleaf xgboost_multi --rounds 10

Every system trains a model of the same rounds, depth and leaves; then the repeats go round all systems,
so that a slow minute of the machine touches each of them. Training takes most of the time.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median
from time import perf_counter, sleep
from typing import Any

import numpy as np
from numpy.typing import NDArray

from report import describe_run
from speed import HERE, OURS, TITLES, log, positive, ratio, table_row, write
from systems import SYSTEMS, System, version
from works import WORKS, Work

WORKS_SHOWN = ("mnist", "nuswide_like")
SYSTEMS_SHOWN = ("polyleaf", "lightgbm", "xgboost_multi", "xgboost", "catboost")
SINGLE_ROWS = 200
SETTLE_SECONDS = 0.05  # until another library's threads have stopped spinning


@dataclass
class Times:
    """Seconds of one system: all test rows in each repeat, and single rows."""

    all_rows: list[float] = field(default_factory=list)
    one_row: list[float] = field(default_factory=list)


@dataclass(frozen=True)
class WorkResult:
    work: Work
    n_rows: int
    n_features: int
    rounds: int
    times: dict[str, Times]
    notes: list[str]


def main() -> None:
    options = parse_arguments()
    run = describe_run(SYSTEMS[system].package for system in options.systems)
    systems = [name for name in options.systems if version(name) is not None]
    notes = [f"{TITLES[name]}: not installed" for name in options.systems if name not in systems]
    results = []
    for name, rounds in zip(options.works, rounds_of(options), strict=True):
        work = WORKS[name]
        file = options.data_dir / work.file if work.file else options.data_dir
        if work.file and not file.is_file():
            notes.append(f"{name}: skipped, {work.file} is not in the data folder (--data-dir)")
            continue
        results.append(run_work(work, file, systems, rounds, options))
        write(report(options, run, results, notes), options.out)
    text = report(options, run, results, notes)
    write(text, options.out)
    print(text)


def rounds_of(options: argparse.Namespace) -> list[int]:
    """Return the rounds of each work; a single number is that of all."""
    given: list[int] = options.rounds
    return given * len(options.works) if len(given) == 1 else given


def run_work(
    work: Work, file: Path, systems: list[str], rounds: int, options: argparse.Namespace
) -> WorkResult:
    """Train every system, then let them predict in turn."""
    split = work.make(file)
    models: dict[str, System] = {}
    notes = []
    for name in systems:
        system = SYSTEMS[name](work, options.threads)
        try:
            system.train(split.X_train, split.y_train, 1, max(1, rounds - 1))
        except Exception as error:
            notes.append(f"{TITLES[name]}: {error}")
            continue
        models[name] = system
        log(f"{work.name}, {TITLES[name]}: trained")
    rows = np.ascontiguousarray(split.X_test)
    times = {name: Times() for name in models}
    for model in models.values():  # what is prepared once is not a prediction
        model.predict(rows)
    for repeat in range(options.repeats):
        for name, model in models.items():
            sleep(SETTLE_SECONDS)
            times[name].all_rows.append(seconds(model.predict, rows))
            times[name].one_row += [
                seconds(model.predict, rows[i : i + 1])
                for i in range(repeat * SINGLE_ROWS % len(rows), len(rows))[:SINGLE_ROWS]
            ]
    return WorkResult(work, len(rows), rows.shape[1], rounds, times, notes)


def seconds(call: Callable[[NDArray[Any]], object], rows: NDArray[Any]) -> float:
    start = perf_counter()
    call(rows)
    return perf_counter() - start


def report(options: argparse.Namespace, run: list[str], results: list[WorkResult], notes: list[str]) -> str:
    lines = [
        "# Prediction",
        "",
        *run,
        f"- {options.threads} threads; median of {options.repeats} repeats, {SINGLE_ROWS} rows one by one",
        *(f"- {note}" for note in notes),
    ]
    for result in results:
        lines += ["", *table(result)]
    return "\n".join(lines) + "\n"


def table(result: WorkResult) -> list[str]:
    """One line per system; each `x` is the figure before it, that system's time / polyleaf's."""
    work = result.work
    header = ["system", "rows / s", "ms / round", "x", "one row, us", "x"]
    lines = [
        f"## {work.name}",
        "",
        f"{result.n_rows:,} rows x {result.n_features} -> {work.n_outputs}; {result.rounds} rounds, depth "
        f"{work.max_depth}, {work.max_leaves} leaves, {work.max_bins} bins.",
        "",
        table_row(header),
        table_row(["---"] + ["---:"] * (len(header) - 1)),
    ]
    ours = result.times.get(OURS)
    for name, times in result.times.items():
        whole, single = median(times.all_rows), median(times.one_row)
        against = ours if name != OURS else None
        cells = [TITLES[name], f"{result.n_rows / whole:,.0f}", f"{1000 * whole / result.rounds:.3g}"]
        cells.append(ratio(whole, median(against.all_rows) if against else None))
        cells.append(f"{1e6 * single:.0f}")
        cells.append(ratio(single, median(against.one_row) if against else None))
        lines.append(table_row(cells))
    return [*lines, "", *(f"- {note}" for note in result.notes)] if result.notes else lines


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    add = parser.add_argument
    works, systems = list(WORKS), list(SYSTEMS)
    add("--works", nargs="+", choices=works, default=list(WORKS_SHOWN), metavar="WORK", help=", ".join(works))
    add(
        "--systems",
        nargs="+",
        choices=systems,
        default=list(SYSTEMS_SHOWN),
        metavar="NAME",
        help=", ".join(systems),
    )
    add("--rounds", type=positive, nargs="+", default=[50], help="of all works, or of each (default 50)")
    add("--repeats", type=positive, default=7, help="predictions of all test rows (default 7)")
    add("--threads", type=positive, default=2, help="threads of each system (default 2)")
    add("--data-dir", type=Path, default=HERE / "data", help="of the .npz files (default benchmarks/data)")
    add("--out", type=Path, default=None, help="also write the Markdown to this file")
    options = parser.parse_args()
    if len(options.rounds) not in (1, len(options.works)):
        parser.error("--rounds: one number, or one for each of --works")
    return options


if __name__ == "__main__":
    sys.exit(main())
