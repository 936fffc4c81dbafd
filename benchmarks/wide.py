"""Train polyleaf and LightGBM on wide sparse tables: seconds of processor time and peak memory.

    python benchmarks/wide.py --out benchmarks/wide.md
    python benchmarks/wide.py --works wide --repeats 1

Each fit has a process of its own, and one thread. Columns of most works have as many cells each; those of
`text` have as many as words have, a few of them most.
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from time import process_time
from typing import Any

import numpy as np
import scipy.sparse
from numpy.typing import NDArray

from report import describe_run
from speed import log, positive, ratio, table_row, write


@dataclass(frozen=True)
class WideWork:
    """A table of normal numbers at random places, and a target of its first columns."""

    rows: int
    columns: int
    density: float
    classes: int = 1  # 1: the target is a number
    like_words: bool = False

    def make(self) -> tuple[Any, NDArray[Any]]:
        """Return X and y."""
        rng = np.random.default_rng(0)
        n_cells = int(self.rows * self.columns * self.density)
        column = rng.integers(self.columns, size=n_cells)
        if self.like_words:  # the k-th word has one k-th of the cells of the first
            column = ((self.columns + 1.0) ** rng.random(n_cells)).astype(np.int64) - 1
        cells = rng.normal(size=n_cells).astype(np.float32), (rng.integers(self.rows, size=n_cells), column)
        X = scipy.sparse.csr_array(cells, shape=(self.rows, self.columns))
        effect = np.zeros(self.columns)
        effect[: self.columns // 50] = rng.normal(size=self.columns // 50)
        score = X @ effect + 0.1 * rng.normal(size=self.rows)
        if self.classes == 1:
            return X, score
        return X, np.digitize(score, np.quantile(score, np.arange(1, self.classes) / self.classes))


WORKS = {
    "wide": WideWork(10_000, 20_000, 0.001),
    "wide_classes": WideWork(10_000, 20_000, 0.001, classes=3),
    "fuller": WideWork(10_000, 5_000, 0.01),
    "widest": WideWork(100_000, 200_000, 1e-4),
    "text": WideWork(100_000, 200_000, 1e-4, classes=3, like_words=True),
}
SYSTEMS = ("polyleaf", "lightgbm")


def estimator(system: str, work: WideWork, rounds: int, least_rows: int) -> Any:
    """Return what is fitted, with so many rows in a leaf at least; 0: as the system has it."""
    options: dict[str, Any] = {"n_estimators": rounds, "n_jobs": 1}
    if system == "polyleaf":
        import polyleaf

        options |= {"min_samples_leaf": least_rows} if least_rows else {}
        number, classes = polyleaf.PolyleafRegressor, polyleaf.PolyleafClassifier
        return (number if work.classes == 1 else classes)(**options)
    import lightgbm

    options |= {"verbose": -1} | ({"min_child_samples": least_rows} if least_rows else {})
    return (lightgbm.LGBMRegressor if work.classes == 1 else lightgbm.LGBMClassifier)(**options)


def measure(options: argparse.Namespace) -> dict[str, float]:
    """Return the figures of one fit in this process, whose peak memory it is."""
    work = WORKS[options.works[0]]
    fitted = estimator(options.systems[0], work, options.rounds, options.least_rows[0])
    X, y = work.make()
    before, start = peak_mib(), process_time()
    fitted.fit(X, y)
    seconds = process_time() - start
    return {"seconds": seconds, "peak": peak_mib(), "above": peak_mib() - before}


def peak_mib() -> float:
    """Return the peak of the resident memory so far."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def measured_apart(
    work: str, system: str, least_rows: int, options: argparse.Namespace
) -> Mapping[str, float] | None:
    """Return the medians of several processes; None where one took too long."""
    command = [sys.executable, __file__, "--here", "--works", work, "--systems", system]
    command += ["--rounds", str(options.rounds), "--least-rows", str(least_rows)]
    found = []
    for _ in range(options.repeats):
        try:
            done = subprocess.run(
                command, stdout=subprocess.PIPE, text=True, check=True, timeout=options.limit
            )
        except subprocess.TimeoutExpired:
            return None
        found.append(json.loads(done.stdout))
    return {name: median(one[name] for one in found) for name in found[0]}


def row_of(name: str, least_rows: int, options: argparse.Namespace) -> str:
    """Return the line of one work."""
    work = WORKS[name]
    cells = [name, f"{work.rows:,} x {work.columns:,}", f"{work.density:g}"]
    all_found = {}
    for system in options.systems:
        found = all_found[system] = measured_apart(name, system, least_rows, options)
        if found is None:
            cells += [f"> {options.limit:g}", "-"]
        else:
            cells += [f"{found['seconds']:.2f}", f"{found['peak']:.0f} ({found['above']:.0f})"]
        log(f"{name} {system}: {' '.join(cells[-2:])}")
    ours, theirs = all_found.get("polyleaf"), all_found.get("lightgbm")
    if ours is None or theirs is None:
        return table_row([*cells, "-"])
    return table_row([*cells, ratio(theirs["seconds"], ours["seconds"])])


def section(least_rows: int, options: argparse.Namespace) -> list[str]:
    """Return the table of all works, with so many rows in a leaf of both systems; 0: as each has it."""
    figures = [f"{system}, {what}" for system in options.systems for what in ("s", "MiB")]
    return [
        "",
        f"## Leaves of {least_rows} rows at least" if least_rows else "## Each with its own default",
        "",
        table_row(["work", "size", "density", *figures, "x"]),
        table_row(["---", "---", "---:", *["---:"] * (len(figures) + 1)]),
        *(row_of(name, least_rows, options) for name in options.works),
    ]


def main() -> None:
    options = parse_arguments()
    if options.here:
        print(json.dumps(measure(options)))
        return
    lines = [
        "# Wide sparse tables",
        "",
        *describe_run(["scipy", "lightgbm"]),
        f"- {options.rounds} rounds, one thread; seconds of processor time of `fit`",
        "- MiB: peak of the process (above its peak before `fit`)",
    ]
    for least_rows in options.least_rows:
        lines += section(least_rows, options)
    text = "\n".join(lines) + "\n"
    print(text)
    write(text, options.out)


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    add = parser.add_argument
    add("--works", nargs="+", choices=list(WORKS), default=list(WORKS), metavar="WORK", help=", ".join(WORKS))
    add(
        "--systems",
        nargs="+",
        choices=SYSTEMS,
        default=list(SYSTEMS),
        metavar="NAME",
        help=", ".join(SYSTEMS),
    )
    add("--rounds", type=positive, default=20, help="boosting rounds (default 20)")
    add("--repeats", type=positive, default=3, help="processes per work and system (default 3)")
    least = "rows in a leaf, of both; 0: each has its own default (default 20 0)"
    add("--least-rows", nargs="+", type=int, default=[20, 0], metavar="ROWS", help=least)
    add("--limit", type=float, default=120.0, help="seconds a process may take (default 120)")
    add("--out", type=Path, help="file for the report")
    add("--here", action="store_true", help=argparse.SUPPRESS)
    return parser.parse_args()


if __name__ == "__main__":
    main()
