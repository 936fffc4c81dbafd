"""What more threads buy: a round, and the parts of a training, with 1, 2, 4, ... threads.

    python benchmarks/threads.py --data-dir DIR --threads 1 2 4 8 16 --out benchmarks/threads.md
    python benchmarks/threads.py --works synth_d10 --systems polyleaf_diagonal lightgbm
    python benchmarks/threads.py --instructions avx2    # polyleaf as without AVX-512, others as they are

A round is that of benchmarks/speed.py. Parts are those of the first system, which is polyleaf's: binning
(from the raw array), the score pass (the last tree added, gradients, Hessian), growth (the rest of a tree),
and prediction and Shapley values of training rows by the trees just grown. Shown is the fastest of the
repeats, in which the thread counts take turns.
"""

from __future__ import annotations

import argparse
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import wraps
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np

# polyleaf comes first: its choice that waiting threads sleep then holds for the others too.
from polyleaf._core import select_kernels
from polyleaf.growth.dense import DenseGrower
from polyleaf.growth.score_pass import CpuScorePass
from report import describe_run
from setup import polyleaf as bin_rows
from speed import TITLES, log, positive, ratio, table_row, write
from systems import SYSTEMS, Polyleaf, version
from works import THREAD_WORKS, Split, Work

SYSTEMS_BY_DEFAULT = ["polyleaf_diagonal", "lightgbm", "xgboost"]
WARM_UP = 2
PREDICTED_ROWS, EXPLAINED_ROWS = 100_000, 2_000
PARTS = {
    "binning": "binning, from the raw array",
    "score pass": "score pass, a round",
    "growth": "growth, a round",
    "prediction": f"prediction, up to {PREDICTED_ROWS:,} rows",
    "shap": f"Shapley values, {EXPLAINED_ROWS:,} rows",
}

Times = dict[tuple[str, int], float]  # (system or part, threads) -> seconds


@dataclass(frozen=True)
class Options:
    works: list[str]
    systems: list[str]
    threads: list[int]
    rounds: int
    repeats: int
    instructions: str | None
    data_dir: Path
    out: Path | None


def main() -> None:
    options = parse_arguments()
    if options.instructions is not None and not select_kernels(options.instructions):
        raise SystemExit(f"this processor does not have {options.instructions}")
    lines = ["# Threads", ""]
    lines += describe_run(SYSTEMS[system].package for system in options.systems)
    lines += [
        f"- Milliseconds; {options.rounds} rounds, the fastest of {options.repeats} repeats; x: the fastest "
        "system of another library over polyleaf's first one, at as many threads",
        *([f"- polyleaf with the kernels for {options.instructions}"] if options.instructions else []),
        "",
    ]
    for name in options.works:
        work = THREAD_WORKS[name]
        file = options.data_dir / work.file if work.file else options.data_dir
        if work.file and not file.is_file():
            lines += [f"{name}: skipped, {work.file} is not in the data folder (--data-dir)", ""]
            continue
        lines += work_report(work, work.make(file), options)
        write("\n".join(lines), options.out)
    print("\n".join(lines))


def work_report(work: Work, split: Split, options: Options) -> list[str]:
    """Rows of a table for each system, and for each part of a training."""
    systems = [name for name in options.systems if version(name) is not None]
    times: Times = defaultdict(lambda: float("inf"))
    for _ in range(options.repeats):
        for system in systems:
            for threads in options.threads:
                for key, seconds in measured(
                    work, system, split, threads, options.rounds, system == systems[0]
                ):
                    times[key, threads] = min(times[key, threads], seconds)
                log(f"{work.name} {system} {threads}: {1000 * times[system, threads]:.1f} ms a round")
    shape = f"{len(split.X_train):,} x {split.X_train.shape[1]} -> {work.n_outputs}"
    head = [table_row([f"{work.name}, {shape}", *map(str, options.threads), "speed-up"])]
    head.append(table_row(["---", *["---:"] * (len(options.threads) + 1)]))
    rows = [row(TITLES[system], system, times, options.threads) for system in systems]
    rows += [
        row(title, part, times, options.threads)
        for part, title in PARTS.items()
        if (part, options.threads[0]) in times
    ]
    peers = [name for name in systems if not name.startswith("polyleaf")]
    if peers and systems[0].startswith("polyleaf"):
        best = [min(times[peer, n] for peer in peers) for n in options.threads]
        ours = [times[systems[0], n] for n in options.threads]
        rows.append(table_row(["x", *[ratio(b, o) for b, o in zip(best, ours, strict=True)], ""]))
    return [*head, *rows, ""]


def row(title: str, key: str, times: Times, threads: list[int]) -> str:
    of_threads = [1000 * times[key, n] for n in threads]
    shown = [f"{ms:,.0f}" if ms >= 100 else f"{ms:.3g}" for ms in of_threads]
    return table_row([title, *shown, ratio(of_threads[0], of_threads[-1])])


def measured(
    work: Work, system: str, split: Split, threads: int, rounds: int, parts: bool
) -> Iterator[tuple[str, float]]:
    """What a system took, and the parts of its training."""
    one = SYSTEMS[system](work, threads)
    if not parts or not isinstance(one, Polyleaf):
        yield system, one.train(split.X_train, split.y_train, WARM_UP, rounds).per_round
        return
    start = perf_counter()
    bin_rows(split.X_train, work.max_bins, threads)
    yield "binning", perf_counter() - start
    with clock(CpuScorePass, "gradients") as passes, clock(DenseGrower, "grow") as trees:
        yield system, one.train(split.X_train, split.y_train, WARM_UP, rounds).per_round
    yield "score pass", min(passes)
    yield "growth", float(np.mean(trees[-rounds:]))
    start = perf_counter()
    one.predict(split.X_train[:PREDICTED_ROWS])
    yield "prediction", perf_counter() - start
    start = perf_counter()
    one.model.shap_values(split.X_train[:EXPLAINED_ROWS])
    yield "shap", perf_counter() - start


@contextmanager
def clock(owner: type, name: str) -> Iterator[list[float]]:
    """Seconds of each call of a method."""
    method: Callable[..., Any] = getattr(owner, name)
    seconds: list[float] = []

    @wraps(method)
    def timed(*arguments: Any, **named: Any) -> Any:
        start = perf_counter()
        result = method(*arguments, **named)
        seconds.append(perf_counter() - start)
        return result

    setattr(owner, name, timed)
    try:
        yield seconds
    finally:
        setattr(owner, name, method)


def parse_arguments() -> Options:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--works", nargs="+", choices=THREAD_WORKS, default=list(THREAD_WORKS))
    parser.add_argument(
        "--systems", nargs="+", choices=SYSTEMS, default=["polyleaf_diagonal", "lightgbm", "xgboost"]
    )
    parser.add_argument("--threads", nargs="+", type=positive, default=[1, 2])
    parser.add_argument("--rounds", type=positive, default=10)
    parser.add_argument("--repeats", type=positive, default=2)
    parser.add_argument("--instructions", choices=("baseline", "avx2", "avx512"), help="of polyleaf")
    parser.add_argument("--data-dir", type=Path, default=Path(__file__).resolve().parent / "data")
    parser.add_argument("--out", type=Path)
    return Options(**vars(parser.parse_args()))


if __name__ == "__main__":
    main()
