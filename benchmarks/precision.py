"""What sums of 20 bits cost: the test loss with them and with 31 bits, on several draws of the training rows.

    python benchmarks/precision.py --data-dir DIR [--out FILE] [--draws N] [--rounds N] [--works NAME ...]

The two are `histogram_precision="packed"` and `"full"`. Every draw leaves out another 2 % of the rows.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from polyleaf import PolyleafClassifier
from report import describe_run
from works import WORKS, Split, Work

Losses = NDArray[np.float64]


PRECISIONS = {"20 bits": "packed", "31 bits": "full"}
WORKS_SHOWN = ("mnist", "synth_d10")


def losses(work: Work, split: Split, rows: NDArray[np.int64], rounds: int, precision: str) -> Losses:
    """Return the test loss after each round."""
    model = PolyleafClassifier(
        n_estimators=rounds,
        learning_rate=0.2,
        max_depth=work.max_depth,
        max_leaves=work.max_leaves,
        max_bins=work.max_bins,
        min_samples_leaf=work.min_samples_leaf,
        colsample_bytree=1.0,
        sketch=None,
        histogram_precision=precision,
    )
    model.fit(split.X_train[rows], split.y_train[rows], eval_set=[(split.X_test, split.y_test)])
    (history,) = model.evals_result_.values()
    return np.array(next(iter(history.values())))


def report(work: Work, split: Split, draws: int, rounds: int) -> list[str]:
    """Return the lines of one work."""
    found: dict[str, list[Losses]] = {name: [] for name in PRECISIONS}
    n_rows = len(split.X_train)
    for draw in range(draws):
        rows = np.sort(np.random.default_rng(draw).permutation(n_rows)[: int(0.98 * n_rows)])
        for name, precision in PRECISIONS.items():
            found[name].append(losses(work, split, rows, rounds, precision))
    after = sorted({min(rounds, r) for r in (10, 30, 100, rounds)})
    lines = [f"| {work.name} | " + " | ".join(f"round {r}" for r in after) + " |"]
    lines.append("| --- |" + " ---: |" * len(after))
    for name, history in found.items():
        each = np.array(history)[:, [r - 1 for r in after]]
        error = each.std(axis=0, ddof=1) / np.sqrt(draws)
        cells = (f"{m:.4f} ± {e:.4f}" for m, e in zip(each.mean(axis=0), error, strict=True))
        lines.append(f"| {name} | " + " | ".join(cells) + " |")
    mean = {name: np.mean(history, axis=0) for name, history in found.items()}
    ratio = mean["20 bits"] / mean["31 bits"] - 1
    lines.append("| difference | " + " | ".join(f"{100 * ratio[r - 1]:+.2f} %" for r in after) + " |")
    return [*lines, ""]


def main() -> None:
    """Run the comparison and print its report."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--data-dir", type=Path, default=Path("benchmarks/data"))
    parser.add_argument("--out", type=Path, help="also write the report to this file")
    parser.add_argument("--draws", type=int, default=8)
    parser.add_argument("--rounds", type=int, default=150)
    parser.add_argument("--works", nargs="+", choices=WORKS_SHOWN, default=WORKS_SHOWN, metavar="NAME")
    options = parser.parse_args()
    lines = ["# Sums of 20 and of 31 bits", "", *describe_run(())]
    lines += [f"- mean of {options.draws} draws of the training rows, and its standard error", ""]
    for name in options.works:
        work = WORKS[name]
        file = options.data_dir / (work.file or "")
        if work.file is not None and not file.exists():
            lines += [f"{name}: no {work.file}", ""]
            continue
        lines += report(work, work.make(file), options.draws, options.rounds)
    text = "\n".join(lines)
    print(text)
    if options.out is not None:
        options.out.write_text(text)


if __name__ == "__main__":
    main()
