"""Hashed labels beside all labels in every split: what is kept of P@k, and 200,000 labels.

    python benchmarks/label_space.py --data-dir DIR --out benchmarks/label_space.md
    python benchmarks/label_space.py --parts large --threads 2

Three parts. "kept": planted labels, 10,000 of them, with `label_space="hashed"` and without. "real": the test
rows of delicious and corel5k with hashed labels, a quarter of the labels in a leaf, beside the dense ones.
"large": 200,000 planted labels and as many rows. Each result is appended to a file beside the report as soon
as it is there; what is in it already is not done again.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
from collections.abc import Callable
from functools import partial
from pathlib import Path
from time import perf_counter, process_time
from typing import Any

import numpy as np
import scipy.sparse

from apart import done_apart
from extreme_labels import PLACES, Labelled, load
from label_systems import Array
from polyleaf import PolyleafClassifier
from report import describe_run
from speed import log, positive, table_row, write

PARTS = ("kept", "real", "large")
N_FEATURES, A_ROW, OF_A_TOPIC, NOISE = 50, 5, 20, 0.3
N_TEST = 10_000
Params = dict[str, Any]
HASHED: Params = {"label_space": "hashed"}


def planted(n_rows: int, n_labels: int, seed: int = 0) -> tuple[Labelled, Labelled, Array]:
    """Return rows to train on and to test on, and the best ranking there can be of the latter.

    A topic is a point in the space of the features, drawn from a normal distribution, and 20 labels of its
    own. A row is a topic's point with noise; its 5 labels are drawn without replacement, the r-th label of
    the topic in proportion to 1 / r. Who knows the topic of a row can do no better than to rank its labels by
    r: with 50 features and this noise that is what the features tell.
    """
    rng = np.random.default_rng(seed)
    n, n_topics = n_rows + N_TEST, n_labels // OF_A_TOPIC
    label_of = rng.permutation(n_labels)[: n_topics * OF_A_TOPIC].reshape(n_topics, OF_A_TOPIC)
    centre = rng.normal(size=(n_topics, N_FEATURES)).astype(np.float32)
    topic = rng.integers(0, n_topics, size=n)
    X = centre[topic] + np.float32(NOISE) * rng.normal(size=(n, N_FEATURES)).astype(np.float32)
    keys = rng.gumbel(size=(n, OF_A_TOPIC)) - np.log(np.arange(1, OF_A_TOPIC + 1))
    label = np.take_along_axis(label_of[topic], np.argsort(-keys, axis=1)[:, :A_ROW], axis=1)
    pieces = (np.ones(n * A_ROW, dtype=np.int8), label.ravel(), np.arange(0, n * A_ROW + 1, A_ROW))
    y = scipy.sparse.csr_array(pieces, shape=(n, n_labels))
    y.sort_indices()
    rows = Labelled(X, y)
    best = label_of[topic[n_rows:], : max(PLACES)]
    return rows.rows(np.arange(n_rows)), rows.rows(np.arange(n_rows, n)), best


def precision(best: Array, y: Any) -> dict[str, float]:
    """Return P@k, in percent, of columns that are predicted, best first."""
    rows = np.repeat(np.arange(len(best)), best.shape[1])
    hits = np.asarray(y[rows, best.ravel()]).reshape(best.shape) == 1
    return {f"P@{k}": 100 * float(hits[:, :k].mean()) for k in PLACES}


def measured(
    known: Labelled, asked: Labelled, params: Params, threads: int, y: Callable[[Any], Any]
) -> dict[str, Any]:
    """Return what a model scores, and what it took."""
    began, used = perf_counter(), process_time()
    model = PolyleafClassifier(n_jobs=threads, random_state=0, **params).fit(known.X, y(known.y))
    trained, used = perf_counter(), process_time() - used
    spent = process_time()
    best = model.predict(asked.X, top_k=max(PLACES))
    done, spent = perf_counter(), process_time() - spent
    forest = model._forest
    return {
        "fit": trained - began,
        "cpu": used,
        "rows a second": asked.X.shape[0] / (done - trained),
        "rows a CPU second": asked.X.shape[0] / spent,
        "rounds": model.n_estimators_,
        "leaves": float(np.count_nonzero(forest.left < 0) / forest.n_trees),
        "model MB": sum(array.nbytes for array in forest.to_arrays().values()) / 1e6,
        "GB": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6,
        **precision(best, asked.y),
    }


def as_given(y: Any) -> Any:
    return scipy.sparse.csr_array(y)


def dense(y: Any) -> Any:
    return y.toarray().astype(np.int8)


OF_10_000 = (20_000, 10_000)
# Of each part: what a line is called, on what, with which parameters, and what y is.
LINES: dict[str, dict[str, tuple[Any, Params, Callable[[Any], Any]]]] = {
    "kept": {
        "hashed, `n_estimators=30`": (OF_10_000, {"n_estimators": 30, **HASHED}, as_given),
        "dense `y`, `n_estimators=30`, `learning_rate=0.3`": (
            OF_10_000,
            {"n_estimators": 30, "learning_rate": 0.3},
            dense,
        ),
    },
    "real": {
        "delicious: hashed, `n_estimators=80`, `sparse_leaves=245`": (
            "delicious",
            {"n_estimators": 80, "sparse_leaves": 245, **HASHED},
            as_given,
        ),
        "corel5k: hashed, `n_estimators=60`, `sparse_leaves=93`": (
            "corel5k",
            {"n_estimators": 60, "sparse_leaves": 93, **HASHED},
            as_given,
        ),
    },
    "large": {
        "hashed, `n_estimators=25`, `sparse_leaves=50`": (
            (200_000, 200_000),
            {"n_estimators": 25, "sparse_leaves": 50, **HASHED},
            as_given,
        ),
    },
}
COLUMNS = [
    *(f"P@{k}" for k in PLACES),
    "training s",
    "CPU s",
    "GB",
    "rows predicted a second",
    "a CPU second",
    "model MB",
]


def done(task: tuple[str, str], folder: Path | None, threads: int) -> dict[str, Any]:
    """Return the result of a line; of planted rows, with what the best ranking scores."""
    on, params, y = LINES[task[0]][task[1]]
    if isinstance(on, str):
        assert folder is not None
        return measured(load(on, "train", folder), load(on, "test", folder), params, threads, y)
    known, asked, best = planted(*on)
    return {**measured(known, asked, params, threads, y), "best": precision(best, asked.y)}


def cells(one: dict[str, Any]) -> list[str]:
    """Return the figures of a result."""
    found = [f"{one[f'P@{k}']:.2f}" for k in PLACES]
    took = [f"{one['fit']:.0f}", f"{one['cpu']:.0f}", f"{one['GB']:.1f}"]
    speed = [f"{one[unit]:,.0f}" if unit in one else "" for unit in ("rows a second", "rows a CPU second")]
    return [*found, *took, *speed, f"{one['model MB']:.0f}"]


def lines_of(part: str, results: dict[tuple[str, str], dict[str, Any]]) -> list[str]:
    """Return the table of a part."""
    names = [name for name in LINES[part] if (part, name) in results]
    lines = ["", f"## {part}", "", table_row([part, *COLUMNS]), table_row(["---", *["---:"] * len(COLUMNS)])]
    for name in names:
        lines.append(table_row([name, *cells(results[part, name])]))
    if names and "best" in results[part, names[0]]:
        best = results[part, names[0]]["best"]
        shown = [f"{best[f'P@{k}']:.2f}" for k in PLACES]
        lines.append(table_row(["the best ranking there can be", *shown, *[""] * (len(COLUMNS) - 3)]))
    return lines


def main() -> None:
    options = parse_arguments()
    store = options.out.with_suffix(".jsonl") if options.out else Path("label_space.jsonl")
    results: dict[tuple[str, str], dict[str, Any]] = {}
    if store.exists():
        for one in map(json.loads, store.read_text(encoding="utf-8").splitlines()):
            results[one["part"], one["name"]] = one
    tasks = [(part, name) for part in options.parts for name in LINES[part] if (part, name) not in results]
    work = partial(done, folder=options.data_dir, threads=options.threads)
    for task, result in done_apart(work, tasks, 1, options.limit):
        if result is None:
            log(f"{task}: no result in {options.limit:g} s")
            continue
        results[task] = {"part": task[0], "name": task[1], **result}
        with store.open("a", encoding="utf-8") as file:
            file.write(json.dumps(results[task]) + "\n")
        log(f"{task}: {cells(result)}")
    lines = [
        "# Hashed labels",
        "",
        *describe_run([]),
        f"- {options.threads} thread(s); seconds by the clock of a machine that may do other things as well, "
        "and those of the processor; GB: the most memory of the process",
        f"- planted labels: 20,000 rows of 10,000 labels and 200,000 of 200,000, {N_FEATURES} features, "
        f"{A_ROW} labels a row, {N_TEST:,} test rows; real ones: the train/test split of Mulan's files",
        "- P@k in percent",
    ]
    for part in PARTS:
        if any(key[0] == part for key in results):
            lines += lines_of(part, results)
    write("\n".join(lines) + "\n", options.out)
    print("\n".join(lines))


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    add = parser.add_argument
    add("--data-dir", type=Path, default=None, help="folder of the .npz files, for the part real")
    add("--parts", nargs="+", choices=PARTS, default=list(PARTS), metavar="PART", help=", ".join(PARTS))
    add("--limit", type=positive, default=7200, help="most seconds of one training (default 7200)")
    add("--threads", type=positive, default=os.cpu_count() or 1, help="default: one for each core")
    add("--out", type=Path, default=None, help="also write the Markdown to this file")
    options = parser.parse_args()
    if "real" in options.parts and options.data_dir is None:
        parser.error("the part real needs --data-dir")
    return options


if __name__ == "__main__":
    main()
