"""Time from the raw array to binned data: polyleaf beside LightGBM's Dataset and XGBoost's QuantileDMatrix.

    python benchmarks/setup.py --data-dir DIR
    python benchmarks/setup.py --tables million --repeats 3

The systems take turns in one process, so that a slow minute of the machine touches each of them. polyleaf's
time is that of the checks of the table that `fit` makes, the cut points, the codes and the lists of entries.
"""

from __future__ import annotations

import argparse
import gc
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from time import perf_counter
from typing import Any

import numpy as np
from numpy.typing import NDArray

# polyleaf comes first: its choice that waiting threads sleep then holds for the others too, if they share an
# OpenMP library.
from polyleaf import PolyleafRegressor
from polyleaf.data.binning import bin_table
from polyleaf.data.inputs import check_features
from report import describe_run
from speed import HERE, log, positive, ratio, table_row
from systems import version
from works import WORKS

Table = NDArray[np.float32]
Times = dict[str, list[float]]
OURS = "polyleaf"


@dataclass(frozen=True)
class Setup:
    """One line of the comparison: a table and the most bins of a column."""

    make: Callable[[Path], Table]
    max_bins: int
    file: str | None = None  # in the data folder; None: the rows are generated


def of_work(name: str, max_bins: int | None = None) -> Setup:
    """The training rows of a work of the speed comparison."""
    work = WORKS[name]
    return Setup(lambda file: work.make(file).X_train, max_bins or work.max_bins, work.file)


def million(_: Path) -> Table:
    return np.random.default_rng(0).standard_normal((1_000_000, 50), dtype=np.float32)


SETUPS: dict[str, Setup] = {
    "mnist": of_work("mnist"),
    "mnist_255": of_work("mnist", 255),
    "mnist_inpaint": of_work("mnist_inpaint"),
    "caltech101": of_work("caltech101"),
    "nuswide_like": of_work("nuswide_like"),
    "synth_d10": of_work("synth_d10"),
    "million": Setup(million, 255),
}


def polyleaf(X: Table, max_bins: int, threads: int) -> object:
    return bin_table(check_features(PolyleafRegressor(), X, reset=True), None, max_bins, threads)


def lightgbm(X: Table, max_bins: int, threads: int) -> object:
    import lightgbm

    settings = {"max_bin": max_bins, "num_threads": threads, "verbosity": -1}
    return lightgbm.Dataset(X, params=settings).construct()


def xgboost(X: Table, max_bins: int, threads: int) -> object:
    import xgboost

    return xgboost.QuantileDMatrix(X, max_bin=max_bins, nthread=threads)


BINNERS: dict[str, Callable[[Table, int, int], object]] = {
    OURS: polyleaf,
    "lightgbm": lightgbm,
    "xgboost": xgboost,
}
TITLES = {OURS: "polyleaf", "lightgbm": "LightGBM Dataset", "xgboost": "XGBoost QuantileDMatrix"}


def measure(X: Table, max_bins: int, systems: list[str], repeats: int, threads: int) -> Times:
    """Seconds of each repeat, after a small table that is not timed (a library's first use)."""
    small = X[:1000]
    for system in systems:
        BINNERS[system](small, max_bins, threads)
    seconds: Times = {system: [] for system in systems}
    for _ in range(repeats):
        for system in systems:
            gc.collect()
            start = perf_counter()
            data = BINNERS[system](X, max_bins, threads)
            seconds[system].append(perf_counter() - start)
            del data
    return seconds


def row(name: str, X: Table, max_bins: int, seconds: Times) -> str:
    """Medians of the seconds, and of the ratios of each turn: neighbours in time saw the same machine."""
    cells = [name, f"{X.shape[0]:,} x {X.shape[1]}", str(max_bins)]
    for system, times in seconds.items():
        cells.append(f"{median(times):.3f}")
        if system != OURS:
            ratios = [theirs / ours for theirs, ours in zip(times, seconds[OURS], strict=True)]
            cells += [ratio(median(ratios), 1.0), ratio(min(times), min(seconds[OURS]))]
    return table_row(cells)


def main() -> None:
    options = parse_arguments()
    systems = [system for system in BINNERS if version(system) is not None]
    header = ["table", "rows x features", "bins"]
    for system in systems:
        header += [f"{TITLES[system]} s"] + ([] if system == OURS else ["x", "x of the fastest"])
    lines = [
        "# Set-up",
        "",
        *describe_run(systems),
        f"- {options.threads} threads each; median of {options.repeats} turns",
        "- x: seconds of that system / seconds of polyleaf (above 1: polyleaf is faster)",
        "",
        table_row(header),
        table_row(["---"] + ["---:"] * (len(header) - 1)),
    ]
    for name in options.tables:
        setup = SETUPS[name]
        file = options.data_dir / (setup.file or "")
        if setup.file is not None and not file.is_file():
            log(f"{name}: skipped, {setup.file} is not in the data folder (--data-dir)")
            continue
        X = setup.make(file)
        seconds = measure(X, setup.max_bins, systems, options.repeats, options.threads)
        lines.append(row(name, X, setup.max_bins, seconds))
        log(lines[-1])
    text = "\n".join(lines) + "\n"
    if options.out is not None:
        options.out.write_text(text)
    print(text)


def parse_arguments() -> Any:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    add = parser.add_argument
    tables = list(SETUPS)
    add("--tables", nargs="+", choices=tables, default=tables, metavar="TABLE", help=", ".join(tables))
    add("--repeats", type=positive, default=5, help="turns of the systems on a table (default 5)")
    add("--threads", type=positive, default=2, help="threads of each system (default 2)")
    add("--data-dir", type=Path, default=HERE / "data", help="of the .npz files (default benchmarks/data)")
    add("--out", type=Path, default=None, help="also write the Markdown to this file")
    return parser.parse_args()


if __name__ == "__main__":
    main()
