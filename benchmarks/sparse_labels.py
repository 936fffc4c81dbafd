"""Train on labels as a SciPy sparse matrix and as a dense one: time of a round, and peak memory.

    python benchmarks/sparse_labels.py --data-dir DIR --out benchmarks/sparse_labels.md
    python benchmarks/sparse_labels.py --works labels_10000 --repeats 1

Both forms have `objective="clipped_squared_error"` and `sparse_leaves`, and give the same trees. Each form
of a work has a process of its own. Works whose file is not in the folder are left out.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter, process_time
from typing import Any

import numpy as np
import scipy.sparse

from extreme_labels import Labelled, load
from measure import peak_resident
from report import describe_run
from speed import log, positive, ratio, table_row, write

FEATURES = 50
ROWS_OF_A_GROUP = 10


@dataclass(frozen=True)
class LabelWork:
    """Groups of rows around centres, each with some labels of its own, of which a row has a few."""

    rows: int
    labels: int
    of_row: int

    def make(self) -> Labelled:
        """Return numbers as they are measured, and labels."""
        rng = np.random.default_rng(0)
        n_groups = self.rows // ROWS_OF_A_GROUP
        group = rng.integers(n_groups, size=self.rows)
        centre = rng.normal(size=(n_groups, FEATURES))
        X = (centre[group] + rng.normal(size=(self.rows, FEATURES))).astype(np.float32)
        own = rng.integers(self.labels, size=(n_groups, 2 * self.of_row))
        chosen = rng.permuted(np.tile(np.arange(2 * self.of_row), (self.rows, 1)), axis=1)[:, : self.of_row]
        label = np.take_along_axis(own[group], chosen, axis=1)
        cells = np.repeat(np.arange(self.rows), self.of_row), label.ravel()
        y = scipy.sparse.csr_array((np.ones(label.size), cells), shape=(self.rows, self.labels))
        y.data[:] = 1
        return Labelled(X, y)


SYNTHETIC = {
    "labels_1000": LabelWork(20_000, 1_000, 5),
    "labels_10000": LabelWork(20_000, 10_000, 5),
    "labels_10000_of_2": LabelWork(20_000, 10_000, 2),
    "labels_10000_of_20": LabelWork(20_000, 10_000, 20),
    "labels_50000": LabelWork(50_000, 50_000, 5),
}
FILES = ("corel5k", "enron", "delicious")
WORKS = (*FILES, *SYNTHETIC)
FORMS = ("sparse", "dense")
MOST_DENSE_CELLS = 30_000_000


def make(work: str, folder: Path) -> Labelled:
    """Return the rows of a work."""
    if work in SYNTHETIC:
        return SYNTHETIC[work].make()
    train = load(work, "train", folder)
    return Labelled(train.X.toarray(), train.y)


def measure(options: argparse.Namespace) -> dict[str, Any]:
    """Return the figures of one form of a work in this process, whose peak memory it is."""
    from polyleaf import PolyleafClassifier

    data = make(options.works[0], options.data_dir)
    rows, labels = data.y.shape
    size = {"size": f"{rows:,} x {data.X.shape[1]:,}", "labels": labels, "of_row": data.y.nnz / rows}
    if options.forms[0] == "dense" and rows * labels > MOST_DENSE_CELLS:
        return size
    y = data.y if options.forms[0] == "sparse" else data.y.toarray()
    before = peak_resident()

    def fit(rounds: int) -> tuple[float, float, Any]:
        model = PolyleafClassifier(
            objective="clipped_squared_error",
            sparse_leaves=options.k,
            learning_rate=0.1,
            min_samples_leaf=20,
            n_estimators=rounds,
            n_jobs=options.threads,
        )
        start = process_time(), perf_counter()
        model.fit(data.X, y)
        return process_time() - start[0], perf_counter() - start[1], model

    fit(1)  # what a process does once
    processor, wall, model = fit(options.rounds)
    raw = model.predict(data.X[:500], top_k=10).tobytes()
    return size | {
        "processor": processor / options.rounds,
        "wall": wall / options.rounds,
        "above": peak_resident() - before,
        "answers": hashlib.sha256(raw).hexdigest(),
    }


def measured_apart(work: str, form: str, options: argparse.Namespace) -> Mapping[str, Any]:
    """Return the figures of several processes: the least of each, as the machine may have other work."""
    command = [sys.executable, __file__, "--here", "--works", work, "--forms", form, "--k", str(options.k)]
    command += ["--rounds", str(options.rounds), "--threads", str(options.threads)]
    command += ["--data-dir", str(options.data_dir)]
    found = [
        json.loads(subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True).stdout)
        for _ in range(options.repeats)
    ]
    figures = {
        name: min(one[name] for one in found) for name in ("processor", "wall", "above") if name in found[0]
    }
    log(f"{work} {form}: {figures}")
    return found[0] | figures


def row_of(work: str, options: argparse.Namespace) -> str:
    """Return the line of one work."""
    found = {form: measured_apart(work, form, options) for form in options.forms}
    any_form = next(iter(found.values()))
    cells = [work, any_form["size"], f"{any_form['labels']:,}", f"{any_form['of_row']:.1f}"]
    for one in found.values():
        if "wall" not in one:
            cells += ["-", "-", "-"]
            continue
        cells += [f"{1000 * one['processor']:.1f}", f"{1000 * one['wall']:.1f}", f"{one['above']:.0f}"]
    if any("wall" not in one for one in found.values()) or len(found) < 2:
        return table_row([*cells, "-"])
    if found["sparse"]["answers"] != found["dense"]["answers"]:
        raise RuntimeError(f"{work}: the two forms do not give the same model")
    return table_row([*cells, ratio(found["dense"]["processor"], found["sparse"]["processor"])])


def main() -> None:
    options = parse_arguments()
    if options.here:
        print(json.dumps(measure(options)))
        return
    works = [
        one for one in options.works if one in SYNTHETIC or (options.data_dir / f"ml_{one}.npz").exists()
    ]
    figures = [f"{form}, {what}" for form in options.forms for what in ("ms", "ms by the clock", "MiB")]
    lines = [
        "# Labels as a sparse and as a dense matrix",
        "",
        *describe_run(["scipy"]),
        f"- threads: {options.threads}; sparse_leaves={options.k}; 20 rows in a leaf",
        f"- ms: processor time of `fit` with {options.rounds} rounds, for a round, with its share of the "
        f"binning; the least of {options.repeats} processes",
        "- MiB: peak of the process above that before `fit`",
        "- x: processor time with a dense matrix over that with a sparse one; the models are the same",
        "",
        table_row(["work", "rows x features", "labels", "of a row", *figures, "x"]),
        table_row(["---", "---", "---:", "---:", *["---:"] * (len(figures) + 1)]),
        *(row_of(work, options) for work in works),
    ]
    text = "\n".join(lines) + "\n"
    print(text)
    write(text, options.out)


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    add = parser.add_argument
    add("--works", nargs="+", choices=WORKS, default=list(WORKS), metavar="WORK", help=", ".join(WORKS))
    add("--forms", nargs="+", choices=FORMS, default=list(FORMS), metavar="FORM", help=", ".join(FORMS))
    add("--data-dir", type=Path, default=Path("data"), help="folder of the files of data")
    add("--rounds", type=positive, default=5, help="boosting rounds (default 5)")
    add("--k", type=positive, default=20, help="sparse_leaves (default 20)")
    add("--threads", type=positive, default=1, help="threads (default 1)")
    add("--repeats", type=positive, default=3, help="processes per work and form (default 3)")
    add("--out", type=Path, help="file for the report")
    add("--here", action="store_true", help=argparse.SUPPRESS)
    return parser.parse_args()


if __name__ == "__main__":
    main()
