"""Scores with nothing tuned: polyleaf and its peers with defaults, and with early stopping, on real tables.

    python benchmarks/defaults.py --data-dir DIR --out benchmarks/defaults.md
    python benchmarks/defaults.py --data-dir DIR --sets enb jura --systems polyleaf lightgbm --seeds 2
    python benchmarks/defaults.py --data-dir . --sets meats concrete --seeds 3  # of package_sets.py

A fifth of the rows are test rows, another fifth for each seed. Early stopping of the peers watches a fifth of
the training rows (2,000 rounds at most, patience 50). Times are those of the processor, all threads
together, so that other work on the machine does not count. Each result is appended to a file beside the
report as soon as it is there; what is in it already is not done again.
"""

from __future__ import annotations

import argparse
import importlib
import importlib.util
import json
import math
from functools import partial
from pathlib import Path
from time import process_time
from typing import Any

import numpy as np

from apart import done_apart
from default_sets import KINDS, SCORES, SETS, load
from default_systems import SYSTEMS
from report import describe_run
from speed import log, positive, table_row, write

_MODULES = {"scikit-learn": "sklearn"}
Results = dict[tuple[str, str, int], dict[str, Any]]


def module_of(system: str) -> str:
    """Return what is imported for a system."""
    package = SYSTEMS[system][1]
    return _MODULES.get(package, package)


def read(path: Path) -> Results:
    """Return the results there are, by set, system and seed."""
    if not path.exists():
        return {}
    lines = map(json.loads, path.read_text(encoding="utf-8").splitlines())
    return {(one["set"], one["system"], one["seed"]): one for one in lines}


def measured(task: tuple[str, str, int], folder: Path, threads: int) -> dict[str, Any]:
    """Return the score of a system on a set with one seed, and the time it took."""
    name, system, seed = task
    table = load(name, folder)
    n_classes = int(table.y.max()) + 1 if table.kind == "classes" else 0
    train, test = table.split(seed)
    given = (table.kind, table.X[train], table.y[train], n_classes, table.X[test])
    importlib.import_module(module_of(system))  # takes longer than a small training
    began = process_time()
    try:
        score, why = table.score(train, test, SYSTEMS[system][2](*given, seed, threads)), None
    except Exception as error:  # a peer's failure is a line of the report
        score, why = None, f"{type(error).__name__}: {str(error).strip().splitlines()[-1:]}"
    return {"score": score, "seconds": process_time() - began, "error": why}


def measure(options: argparse.Namespace, store: Path) -> Results:
    """Train what is not done yet, and return all results."""
    found = read(store)
    seeds = range(options.seeds)
    every = [(name, one, seed) for name in options.sets for seed in seeds for one in options.systems]
    work = partial(measured, folder=options.data_dir, threads=options.threads)
    missing = [] if options.only_report else [task for task in every if task not in found]
    for (name, system, seed), result in done_apart(work, missing, options.jobs, options.limit):
        result = result or {"score": None, "seconds": None, "error": f"no result in {options.limit:g} s"}
        one = {"set": name, "system": system, "seed": seed, **result}
        found[name, system, seed] = one
        with store.open("a", encoding="utf-8") as file:
            file.write(json.dumps(one) + "\n")
        log(f"{name}, {SYSTEMS[system][0]}, seed {seed}: {one['error'] or format(one['score'], '.5g')}")
    return found


def means(results: Results, options: argparse.Namespace, what: str) -> dict[tuple[str, str], float]:
    """Return the mean over the seeds of a figure, by set and system, where all of them are there."""
    out = {}
    for name in options.sets:
        for system in options.systems:
            values = [results.get((name, system, seed), {}).get(what) for seed in range(options.seeds)]
            if all(value is not None for value in values):
                out[name, system] = float(np.mean(values))
    return out


def sign_test(wins: int, losses: int) -> float:
    """Return how likely so many wins, or more, are by chance."""
    n = wins + losses
    return sum(math.comb(n, k) for k in range(wins, n + 1)) / 2**n


def score_table(
    kind: str, sets: list[str], scores: dict[tuple[str, str], float], systems: list[str]
) -> list[str]:
    """Return the scores of some sets; the best of each is bold."""
    lines = ["", f"## {SCORES[kind]}, {kind}", ""]
    lines += [
        table_row(["set", *(SYSTEMS[one][0] for one in systems)]),
        table_row(["---", *["---:"] * len(systems)]),
    ]
    for name in sets:
        own = {one: scores[name, one] for one in systems if (name, one) in scores}
        best = min(own.values(), default=math.nan)
        cells = [
            "-" if one not in own else f"**{own[one]:.4g}**" if own[one] == best else f"{own[one]:.4g}"
            for one in systems
        ]
        lines.append(table_row([name, *cells]))
    return lines


def summary(
    sets: list[str], scores: dict[tuple[str, str], float], systems: list[str], ours: str
) -> list[str]:
    """Return the ranks of all systems, and how one of ours does against each other."""
    whole = [name for name in sets if all((name, one) in scores for one in systems)]
    ranks = {
        one: float(
            np.mean([sum(scores[name, other] < scores[name, one] for other in systems) + 1 for name in whole])
        )
        for one in systems
    }
    lines = [
        "",
        f"## {SYSTEMS[ours][0]} against each",
        "",
        f"Mean rank over the {len(whole)} sets that all systems have a score of; a win is a lower mean over "
        "the seeds; p: of so many wins by chance; behind: the most that ours is behind, in percent of "
        "the other's score.",
        "",
        table_row(["system", "mean rank", "wins of ours", "p", "behind"]),
        table_row(["---", *["---:"] * 4]),
    ]
    for one in systems:
        both = [name for name in sets if (name, ours) in scores and (name, one) in scores]
        if one == ours or not both:
            lines.append(table_row([SYSTEMS[one][0], f"{ranks[one]:.2f}", "-", "-", "-"]))
            continue
        relative = [scores[name, ours] / scores[name, one] for name in both]
        wins, losses = sum(r < 1 for r in relative), sum(r > 1 for r in relative)
        behind = max(0.0, max(relative) - 1)
        cells = [
            f"{ranks[one]:.2f}",
            f"{wins} of {len(both)}",
            f"{sign_test(wins, losses):.2g}",
            f"{behind:.1%}",
        ]
        lines.append(table_row([SYSTEMS[one][0], *cells]))
    return lines


def time_table(sets: list[str], seconds: dict[tuple[str, str], float], systems: list[str]) -> list[str]:
    """Return the times of the systems that have some."""
    timed = [one for one in systems if any((name, one) in seconds for name in sets)]
    lines = ["", "## Processor seconds, training and prediction, mean over the seeds", ""]
    lines += [
        table_row(["set", *(SYSTEMS[one][0] for one in timed)]),
        table_row(["---", *["---:"] * len(timed)]),
    ]
    for name in sets:
        cells = [f"{seconds[name, one]:.3g}" if (name, one) in seconds else "-" for one in timed]
        lines.append(table_row([name, *cells]))
    return lines


def main() -> None:
    options = parse_arguments()
    run = describe_run(["lightgbm", "xgboost", "xgboost-cpu", "catboost", "scikit-learn"])
    missing = [name for name in options.systems if importlib.util.find_spec(module_of(name)) is None]
    options.systems = [name for name in options.systems if name not in missing]
    store = options.out.with_suffix(".jsonl") if options.out else Path("defaults.jsonl")
    results = measure(options, store)
    scores, seconds = means(results, options, "score"), means(results, options, "seconds")
    lines = [
        "# Scores with nothing tuned",
        "",
        *run,
        f"- {options.seeds} seeds, each with a fifth of the rows to test on; {options.threads} thread(s); "
        f"means over the seeds; a training that takes longer than {options.limit:,} s has no score",
        *(f"- {SYSTEMS[name][0]}: not installed" for name in missing),
    ]
    for kind in SCORES:
        sets = [name for name in options.sets if KINDS[name] == kind]
        if sets:
            lines += score_table(kind, sets, scores, options.systems)
    for ours in options.systems:
        if ours.startswith("polyleaf"):
            lines += summary(options.sets, scores, options.systems, ours)
    lines += time_table(options.sets, seconds, options.systems)
    write("\n".join(lines) + "\n", options.out)
    print("\n".join(lines))


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    add = parser.add_argument
    add("--data-dir", type=Path, required=True, help="folder of the .npz files")
    add("--sets", nargs="+", choices=KINDS, default=list(SETS), metavar="SET", help=", ".join(KINDS))
    add(
        "--systems",
        nargs="+",
        choices=list(SYSTEMS),
        default=list(SYSTEMS),
        metavar="NAME",
        help=", ".join(SYSTEMS),
    )
    add("--seeds", type=positive, default=5, help="splits (default 5)")
    add("--jobs", type=positive, default=1, help="processes at a time (default 1)")
    add("--limit", type=positive, default=3600, help="most seconds of one training (default 3600)")
    add("--threads", type=positive, default=1, help="of each system (default 1)")
    add("--only-report", action="store_true", help="train nothing: report what is in the file of results")
    add("--out", type=Path, default=None, help="also write the Markdown to this file")
    return parser.parse_args()


if __name__ == "__main__":
    main()
