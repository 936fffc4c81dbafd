"""How the cost of a boosting round grows: seconds per round against rows, features, outputs and bins.

    python benchmarks/scaling.py
    python benchmarks/scaling.py --quick --repeats 1 --threads 1 --out-dir /tmp

Each of the four is doubled five times while the others stay. A metric that looks at the clock after each
round times them, so that binning is left out. The repeats of a quantity go round all its sizes, so that a
slow minute of the machine touches each of them. Then what outputs cost when splits are found on a sketch of
them. Writes scaling.md and scaling.png.
"""

from __future__ import annotations

import argparse
import gc
import os
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path
from statistics import median
from time import perf_counter
from typing import Any

import numpy as np
from matplotlib.figure import Figure
from matplotlib.ticker import FixedLocator, FuncFormatter, LogLocator, NullFormatter, NullLocator
from numpy.typing import NDArray

from measure import WARM_UP, Watch
from polyleaf import PolyleafClassifier
from report import describe_run
from speed import DISTURBED, HERE, log, positive, ratio, table_row
from works import LEARNING_RATE, synthetic

MAX_DEPTH = 6
MIN_SAMPLES_LEAF = 20
DOUBLINGS = 5
QUICK_DOUBLINGS = 2
SKETCH_SIZE = 5
SKETCHED_ROWS = (20_000, 50_000, 100_000)
SKETCHED_OUTPUTS = (10, 100, 500)


@dataclass(frozen=True)
class Size:
    """What one fit trains on: random features, one output for each class."""

    rows: int = 20_000
    features: int = 50
    outputs: int = 10
    bins: int = 255

    def __str__(self) -> str:
        return f"{self.rows:,} x {self.features} -> {self.outputs}, {self.bins} bins"


# The same work for any number of outputs.
ALL_OUTPUTS = {"hessian": "diagonal", "sketch": None}
SKETCHED = {"sketch": "random_projection", "sketch_size": SKETCH_SIZE}

# Where the doubling of each quantity starts. The classes depend on the first 21 features: with 24 there are
# enough of them, and the trees stay alike while features are added.
STARTS = {"rows": 6_250, "features": 24, "outputs": 4, "bins": 8}


@dataclass
class Growth:
    """The sizes of one quantity and what was measured at each of them."""

    quantity: str
    sizes: list[Size]
    repeats: list[list[float]]  # for each size, seconds per round of each fit

    @property
    def values(self) -> list[int]:
        return [getattr(size, self.quantity) for size in self.sizes]

    @property
    def seconds(self) -> list[float]:
        return [median(fits) for fits in self.repeats]

    @property
    def largest_ratio(self) -> float:
        """The most that one doubling multiplied the seconds per round by."""
        seconds = self.seconds
        return max(after / before for before, after in pairwise(seconds))


def main() -> None:
    options = parse_arguments()
    run = describe_run(())
    watch = Watch()
    doublings = QUICK_DOUBLINGS if options.quick else DOUBLINGS
    growths = [
        measure_growth(quantity, doublings, options.rounds, options.repeats, options.threads)
        for quantity in STARTS
    ]
    rows = SKETCHED_ROWS[:1] if options.quick else SKETCHED_ROWS
    sketches = [measure_sketches(n, options.rounds, options.repeats, options.threads) for n in rows]
    text = report(options, run, watch.others(), growths, sketches)
    options.out_dir.mkdir(parents=True, exist_ok=True)
    (options.out_dir / "scaling.md").write_text(text)
    draw(growths, options.out_dir / "scaling.png")
    print(text)


def measure_growth(quantity: str, doublings: int, rounds: int, repeats: int, threads: int) -> Growth:
    """Double one quantity again and again; the others stay as `Size` has them."""
    values = [STARTS[quantity] * 2**doubling for doubling in range(doublings + 1)]
    sizes = [replace(Size(), **{quantity: value}) for value in values]
    return measure(quantity, sizes, rounds, repeats, threads, ALL_OUTPUTS)


def measure_sketches(rows: int, rounds: int, repeats: int, threads: int) -> Growth:
    """Train with a sketch of as many mixtures, whatever the number of outputs."""
    sizes = [Size(rows, 100, outputs) for outputs in SKETCHED_OUTPUTS]
    return measure("outputs", sizes, rounds, repeats, threads, SKETCHED)


def measure(
    quantity: str, sizes: list[Size], rounds: int, repeats: int, threads: int, params: dict[str, Any]
) -> Growth:
    growth = Growth(quantity, sizes, [[] for _ in sizes])
    for repeat in range(repeats):
        for size, fits in zip(sizes, growth.repeats, strict=True):
            fits.append(round_seconds(size, rounds, threads, params))
            log(f"{quantity}, repeat {repeat + 1} of {repeats}: {size}: {fits[-1]:.3g} s per round")
    return growth


def round_seconds(size: Size, rounds: int, threads: int, params: dict[str, Any]) -> float:
    """Train once and return the median seconds of the timed rounds.

    Parameters
    ----------
    size : Size
        What is trained on; the data are the same in each call with the same size.
    rounds : int
        Timed rounds, after `WARM_UP` that are not.
    threads : int
        Threads of polyleaf.
    params : dict
        What the outputs are to the splits.
    """
    split = synthetic("classes", size.rows, size.features, size.outputs, test_rows=0)(Path())
    unseen = np.setdiff1d(np.arange(size.outputs), split.y_train)
    split.y_train[: len(unseen)] = unseen  # a class in a thousand rows may have none
    ends: list[float] = []

    def clock(_y: NDArray[Any], _prediction: NDArray[Any]) -> float:
        ends.append(perf_counter())
        return 0.0

    model = PolyleafClassifier(
        n_estimators=WARM_UP + rounds,
        learning_rate=LEARNING_RATE,
        max_depth=MAX_DEPTH,
        min_samples_leaf=MIN_SAMPLES_LEAF,
        colsample_bytree=1.0,
        max_bins=size.bins,
        **params,
        eval_metric=clock,
        n_jobs=threads,
    )
    gc.collect()
    model.fit(split.X_train, split.y_train, eval_set=[(split.X_train[:1], split.y_train[:1])])
    # The first timed round begins where the last untimed one ends.
    return median(np.diff(ends[WARM_UP - 1 :]).tolist())


def report(options: Any, run: list[str], others: float, growths: list[Growth], sketches: list[Growth]) -> str:
    worst = max(growths, key=lambda growth: growth.largest_ratio)
    lines = [
        "# Growth of cost",
        "",
        *run,
        f"- {options.threads} threads; of a fit the median of {options.rounds} rounds timed after {WARM_UP} "
        f"that are not; median of {options.repeats} fits",
        f"- Softmax, diagonal Hessian, all outputs, depth {MAX_DEPTH}, learning rate {LEARNING_RATE}, "
        f"at least {MIN_SAMPLES_LEAF} rows in a leaf; where a quantity is not the one that grows: {Size()}",
    ]
    if options.quick:
        lines.append("- Only the first sizes (--quick)")
    if others + options.threads > (os.cpu_count() or 1) + DISTURBED:
        lines.append(f"- Disturbed: other processes used {others:.1f} cores meanwhile")
    lines += [
        "",
        f"The largest ratio of all: {ratio(worst.largest_ratio, 1.0)}, for {worst.quantity}. A cost that "
        "grows in proportion has ratio 2.",
        "",
        "![Seconds per round against rows, features, outputs and bins](scaling.png)",
    ]
    for growth in growths:
        lines += ["", *table(growth)]
    lines += ["", *sketch_table(sketches)]
    return "\n".join(lines) + "\n"


def table(growth: Growth) -> list[str]:
    """Seconds per round at each size, and how many times those of half the size they are."""
    lines = [
        f"## {growth.quantity.capitalize()}",
        "",
        table_row([growth.quantity, "seconds per round", "ratio to the one before"]),
        table_row(["---:"] * 3),
    ]
    before = None
    for value, seconds in zip(growth.values, growth.seconds, strict=True):
        lines.append(table_row([f"{value:,}", f"{seconds:.3g}", ratio(seconds, before)]))
        before = seconds
    lines += ["", f"Largest ratio: {ratio(growth.largest_ratio, 1.0)}."]
    return lines


def sketch_table(sketches: list[Growth]) -> list[str]:
    """Milliseconds per round of each number of rows and outputs, and how much the most outputs cost."""
    fewest, most = SKETCHED_OUTPUTS[0], SKETCHED_OUTPUTS[-1]
    columns = [f"{outputs} outputs, ms" for outputs in SKETCHED_OUTPUTS]
    lines = [
        "## Outputs of a sketch",
        "",
        f"Splits are found on {SKETCH_SIZE} random projections of the gradients; 100 features, all other "
        "parameters by default. Leaf values are those of all outputs.",
        "",
        table_row(["rows", *columns, f"{most} against {fewest}"]),
        table_row(["---:"] * (len(columns) + 2)),
    ]
    for growth in sketches:
        seconds = growth.seconds
        cells = [f"{1000 * value:.3g}" for value in seconds]
        lines.append(table_row([f"{growth.sizes[0].rows:,}", *cells, ratio(seconds[-1], seconds[0])]))
    return lines


def draw(growths: list[Growth], path: Path) -> None:
    """Draw a panel for each quantity, all with the same axis of seconds."""
    figure = Figure(figsize=(7, 5.4), layout="constrained")
    panels = figure.subplots(2, 2, sharey=True)
    for axes, growth in zip(panels.flat, growths, strict=True):
        values, seconds = np.array(growth.values), np.array(growth.seconds)
        proportional = seconds[0] * values / values[0]
        axes.plot(values, proportional, "--", color="#7f7f7f", label="doubles with each doubling")
        axes.plot(values, seconds, "o-", color="#0072b2", markersize=5, label="polyleaf, measured")
        axes.set_xscale("log", base=2)
        axes.set_yscale("log")
        axes.xaxis.set_major_locator(FixedLocator(values.tolist()))
        axes.xaxis.set_minor_locator(NullLocator())
        axes.xaxis.set_major_formatter(FuncFormatter(_short))
        axes.yaxis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
        axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
        axes.yaxis.set_minor_formatter(NullFormatter())
        axes.set_xlabel(growth.quantity)
        axes.grid(alpha=0.3)
        axes.spines[["top", "right"]].set_visible(False)
    for axes in panels[:, 0]:
        axes.set_ylabel("seconds per round")
    handles, labels = panels.flat[0].get_legend_handles_labels()
    figure.legend(handles[::-1], labels[::-1], loc="outside upper center", ncols=2, frameon=False)
    figure.savefig(path, dpi=150)


def _short(value: float, _position: object) -> str:
    """Write thousands as k: 6.25k, 200k."""
    return f"{value / 1000:g}k" if value >= 1000 else f"{value:g}"


def parse_arguments() -> Any:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    add = parser.add_argument
    add("--rounds", type=positive, default=5, help="boosting rounds timed in a fit (default 5)")
    add("--repeats", type=positive, default=3, help="fits at each size (default 3)")
    add("--threads", type=positive, default=2, help="threads of polyleaf (default 2)")
    add("--out-dir", type=Path, default=HERE, help="of scaling.md and scaling.png (default benchmarks)")
    add("--quick", action="store_true", help=f"{QUICK_DOUBLINGS} doublings instead of {DOUBLINGS}")
    return parser.parse_args()


if __name__ == "__main__":
    main()
