"""The best few of hundreds of labels: polyleaf beside label trees and one linear model per label.

    python benchmarks/extreme_labels.py --data-dir DIR --out benchmarks/extreme_labels.md
    python benchmarks/extreme_labels.py --data-dir DIR --sets enron --systems polyleaf napkinxc

Rows for training and testing are those of Mulan's files. Where a system has settings to choose from, each
is trained on four fifths of the training rows; the one with the best mean of P@1, P@3 and P@5 on the other
fifth is trained again on all training rows. Test rows take no part in that. Each result is appended to a
file beside the report as soon as it is there; what is in it already is not done again.
"""

from __future__ import annotations

import argparse
import importlib.metadata
import json
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np
import scipy.sparse

from apart import done_apart
from label_systems import SYSTEMS, Array, System
from polyleaf.metrics import label_propensities, precision_at_k, psp_at_k
from report import describe_run
from speed import log, positive, table_row, write

SETS = ("delicious", "corel5k", "enron")
PLACES = (1, 3, 5)
MEASURES = [*(f"P@{k}" for k in PLACES), *(f"PSP@{k}" for k in PLACES)]
Task = tuple[str, str, int, bool]  # set, system, number of the setting, whether test rows are predicted
Results = dict[Task, dict[str, Any]]


@dataclass(frozen=True)
class Labelled:
    """Rows with their labels, as compressed rows of zeros and ones."""

    X: Any
    y: Any

    def rows(self, numbers: Array) -> Labelled:
        """Return some of the rows."""
        return Labelled(self.X[numbers], self.y[numbers])


def load(name: str, part: str, folder: Path) -> Labelled:
    """Return the training rows or the test rows of a set."""
    data = np.load(folder / f"ml_{name}.npz")

    def matrix(what: str) -> Any:
        columns = data[f"{what}_{part}_indices"].astype(np.int32)
        pieces = (np.ones(len(columns), dtype=np.float32), columns, data[f"{what}_{part}_indptr"])
        return scipy.sparse.csr_matrix(pieces, shape=tuple(data[f"{what}_{part}_shape"]))

    return Labelled(matrix("x"), matrix("y"))


def halves(name: str, tests: bool, folder: Path) -> tuple[Labelled, Labelled]:
    """Return the rows to train on and those to predict: test rows, or a fifth of the training rows."""
    train = load(name, "train", folder)
    if tests:
        return train, load(name, "test", folder)
    order = np.random.default_rng(0).permutation(train.X.shape[0])
    n_out = len(order) // 5
    return train.rows(order[n_out:]), train.rows(order[:n_out])


def scored(best: Array, y: Any, propensities: Array) -> dict[str, float]:
    """Return the measures, in percent, of columns that are predicted, best first."""
    truth = y.toarray()
    score = np.zeros(truth.shape)
    np.put_along_axis(score, best, np.arange(best.shape[1], 0, -1.0)[np.newaxis], axis=1)
    found = {f"P@{k}": precision_at_k(truth, score, k) for k in PLACES}
    found |= {f"PSP@{k}": psp_at_k(truth, score, k, propensities) for k in PLACES}
    return {name: 100 * value for name, value in found.items()}


def measured(task: Task, folder: Path, threads: int) -> dict[str, Any]:
    """Return what a system with one of its settings scores on a set, and the time it took."""
    name, system, number, tests = task
    known, asked = halves(name, tests, folder)
    one = SYSTEMS[system]
    began = perf_counter()
    try:
        predict = one.train(one.settings[number], known.X, known.y, threads)
        trained = perf_counter()
        best = predict(asked.X, max(PLACES))
        done = perf_counter()
    except Exception as error:  # a peer's failure is a line of the report
        return {"error": f"{type(error).__name__}: {str(error).strip().splitlines()[-1:]}"}
    scores = scored(best, asked.y, label_propensities(known.y))
    return {"error": None, "fit": trained - began, "predict": done - trained, **scores}


def merit(result: dict[str, Any]) -> float:
    """Return what settings are chosen by."""
    return -1.0 if result["error"] else float(np.mean([result[f"P@{k}"] for k in PLACES]))


def chosen(name: str, system: str, results: Results) -> int:
    """Return the number of the setting that is best on the rows held out."""
    n_settings = len(SYSTEMS[system].settings)
    if n_settings == 1:
        return 0
    return max(range(n_settings), key=lambda number: merit(results[name, system, number, False]))


def read(store: Path) -> Results:
    """Return the results there are."""
    if not store.exists():
        return {}
    lines = map(json.loads, store.read_text(encoding="utf-8").splitlines())
    return {(one["set"], one["system"], one["number"], one["tests"]): one for one in lines}


def do(tasks: list[Task], results: Results, options: argparse.Namespace, store: Path) -> None:
    """Do what is not done yet, one task at a time, and note what comes of it."""
    work = partial(measured, folder=options.data_dir, threads=options.threads)
    missing = [task for task in tasks if task not in results]
    for task, result in done_apart(work, missing, 1, options.limit):
        name, system, number, tests = task
        known = {"set": name, "system": system, "number": number, "tests": tests}
        one = {**known, **(result or {"error": f"no result in {options.limit:g} s"})}
        results[task] = one
        with store.open("a", encoding="utf-8") as file:
            file.write(json.dumps(one) + "\n")
        log(f"{name}, {system}, {number}, {'test' if tests else 'held out'}: {one['error'] or figures(one)}")


def figures(result: dict[str, Any]) -> list[str]:
    """Return the cells of a result."""
    if result["error"]:
        return [result["error"], *["-"] * (len(MEASURES) + 1)]
    seconds = [f"{result['fit']:.3g}", f"{result['predict']:.3g}"]
    return [*(f"{result[measure]:.2f}" for measure in MEASURES), *seconds]


def set_lines(name: str, options: argparse.Namespace, results: Results) -> list[str]:
    """Return the tables of a set: test rows, and below them what settings were chosen from."""
    train, test = (load(name, part, options.data_dir) for part in ("train", "test"))
    shape = (
        f"{train.X.shape[0]:,} training rows, {test.X.shape[0]:,} test rows, {train.X.shape[1]:,} features"
    )
    header = [*MEASURES, "training s", "prediction s"]
    lines = [
        "",
        f"## {name}",
        "",
        f"{shape}, {train.y.shape[1]:,} labels, {train.y.sum(axis=1).mean():.1f} a row.",
        "",
    ]
    lines += [table_row(["system", *header]), table_row(["---", *["---:"] * len(header)])]
    tried: list[str] = []
    for key in options.systems:
        system = SYSTEMS[key]
        number = chosen(name, key, results)
        lines.append(table_row([system.title, *figures(results[name, key, number, True])]))
        for i, setting in enumerate(system.settings if len(system.settings) > 1 else ()):
            mark = "**" if i == number else ""
            title = f"{mark}{system.title}: {words(setting)}{mark}"
            tried.append(table_row([title, *figures(results[name, key, i, False])]))
    if tried:
        lines += ["", "A fifth of the training rows, held out; what was chosen by them is bold:", ""]
        lines += [table_row(["setting", *header]), table_row(["---", *["---:"] * len(header)]), *tried]
    return lines


def words(setting: dict[str, Any]) -> str:
    """Return a setting as it is written in Python."""
    return ", ".join(f"`{name}={value!r}`" for name, value in setting.items()) or "defaults"


def main() -> None:
    options = parse_arguments()
    run = describe_run(["scikit-learn", "napkinxc"])
    missing = [key for key in options.systems if not installed(SYSTEMS[key])]
    options.systems = [key for key in options.systems if key not in missing]
    store = options.out.with_suffix(".jsonl") if options.out else Path("extreme_labels.jsonl")
    results = read(store)
    for name in options.sets:
        for key in options.systems:
            numbers = range(len(SYSTEMS[key].settings))
            do([(name, key, i, False) for i in numbers if len(numbers) > 1], results, options, store)
            do([(name, key, chosen(name, key, results), True)], results, options, store)
    lines = [
        "# The best few of hundreds of labels",
        "",
        *run,
        f"- {options.threads} thread(s); seconds by the clock of a machine that may do other things as well",
        "- the train/test split of Mulan's files; P@k and PSP@k in percent, by propensities of the rows that "
        "were trained on (A = 0.55, B = 1.5)",
        *(f"- {SYSTEMS[key].title}: not installed" for key in missing),
    ]
    for name in options.sets:
        lines += set_lines(name, options, results)
    write("\n".join(lines) + "\n", options.out)
    print("\n".join(lines))


def installed(system: System) -> bool:
    """Return whether the package of a system is there."""
    try:
        importlib.metadata.version(system.package)
    except importlib.metadata.PackageNotFoundError:
        return False
    return True


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    add = parser.add_argument
    systems = list(SYSTEMS)
    add("--data-dir", type=Path, required=True, help="folder of the .npz files")
    add("--sets", nargs="+", choices=SETS, default=list(SETS), metavar="SET", help=", ".join(SETS))
    add("--systems", nargs="+", choices=systems, default=systems, metavar="NAME", help=", ".join(systems))
    add("--limit", type=positive, default=3600, help="most seconds of one training (default 3600)")
    add("--threads", type=positive, default=1, help="of each system (default 1)")
    add("--out", type=Path, default=None, help="also write the Markdown to this file")
    return parser.parse_args()


if __name__ == "__main__":
    main()
