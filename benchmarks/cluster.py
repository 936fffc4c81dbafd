"""Training on a Dask cluster: seconds and bytes of a round, beside the peers and beside plain fits.

    python benchmarks/cluster.py --out benchmarks/cluster.md
    python benchmarks/cluster.py --rows 4000 --features 25 --outputs 10 --workers 1 2 --systems polyleaf

Each system trains classes (softmax) on a `LocalCluster` of its own, whose workers are processes that share
the threads out. Plain fits of polyleaf at several numbers of threads run in processes of their own. What is
not installed is named and left out. (Not called dask.py: the peers would import it in place of Dask.)
"""

from __future__ import annotations

import argparse
import importlib.util
import os
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from cluster_plan import Pieces, count_tiles, plan_table
from cluster_systems import (
    BINS,
    DEPTH,
    LEAF_ROWS,
    LEAVES,
    PACKAGES,
    TITLES,
    WARM_UP,
    Figures,
    on_cluster,
    plain_fit,
)
from report import describe_run
from speed import log, positive, ratio, table_row, write
from works import synthetic


def attempt(where: str, measure: Callable[[], Any], notes: list[str]) -> Any:
    """Return what is measured; None, and a note, where it fails."""
    try:
        found = measure()
    except Exception as error:  # a peer's failure is a line of the report
        said = (str(error).strip() or "no message").splitlines()[-1]
        notes.append(f"{where}: {type(error).__name__}: {said}")
        log(notes[-1])
        return None
    log(f"{where}: {found}")
    return found


def measure_outputs(n_outputs: int, systems: list[str], options: argparse.Namespace) -> list[str]:
    """Return the section on so many outputs."""
    split = synthetic("classes", options.rows, options.features, n_outputs, test_rows=0)(Path())
    X, y = split.X_train, split.y_train
    y[:n_outputs] = np.arange(n_outputs)  # each class has a row
    notes: list[str] = []
    rows: list[tuple[str, str, Figures, bool]] = []  # title, where, figures, whether it is plain
    pieces: dict[int, Pieces] = {}
    for threads in options.plain_threads:
        found = attempt(
            f"{n_outputs} outputs, plain fit, {threads} threads",
            partial(plain_fit, X, y, threads, options.rounds),
            notes,
        )
        if found is not None:
            rows.append(("polyleaf, plain fit", f"{threads} threads", found, True))
    for n_workers in options.workers:
        share = max(1, options.threads // n_workers)
        for name in systems:
            found = attempt(
                f"{n_outputs} outputs, {TITLES[name]}, {n_workers} workers",
                partial(on_cluster, name, X, y, n_outputs, n_workers, share, options.rounds),
                notes,
            )
            if found is None:
                continue
            figures, exchanges = found
            where = f"{n_workers} x {share} threads"
            rows.append((TITLES[name], where, figures, False))
            if exchanges:
                compute = figures.seconds - figures.waiting
                pieces[n_workers] = Pieces(compute, figures.bytes_sent, figures.exchanges, exchanges[8])
    best = min((figures.seconds for _, _, figures, plain in rows if plain), default=None)
    lines = [f"## {n_outputs} outputs", ""]
    lines += [
        table_row(["system", "workers", "s / round", "x", "MB sent", "exchanges", "s in exchanges"]),
        table_row(["---", "---", *["---:"] * 5]),
    ]
    for title, where, one, _ in rows:
        cells = [title, where, f"{one.seconds:.3g}", ratio(one.seconds, best)]
        sent = [f"{one.bytes_sent / 1e6:.3g}", f"{one.exchanges:.0f}", f"{one.waiting:.3g}"]
        lines.append(table_row(cells + (sent if one.exchanges else ["-"] * 3)))
    lines += ["", *(f"- {note}" for note in notes)] if notes else []
    return lines + plan_table(pieces, count_tiles(options.features, BINS))


def main() -> None:
    options = parse_arguments()
    run = describe_run([*PACKAGES.values(), "dask", "distributed"])
    missing = [name for name in options.systems if importlib.util.find_spec(PACKAGES[name]) is None]
    systems = [name for name in options.systems if name not in missing]
    lines = [
        "# On a Dask cluster",
        "",
        *run,
        f"- {options.rows:,} x {options.features} classes, softmax, depth {DEPTH}, {LEAVES} leaves, "
        f"{BINS} bins, at least {LEAF_ROWS} rows in a leaf; median of {options.rounds} rounds after "
        f"{WARM_UP} not timed",
        f"- {options.threads} threads, shared out to the workers of a LocalCluster",
        "- x: seconds of a round / those of the fastest plain fit; MB sent, exchanges: of the first worker "
        "in a round; s in exchanges: of a round, waiting for other workers included",
        "- no shared memory: as between machines, every histogram goes through a socket",
        *(f"- {TITLES[name]}: not installed" for name in missing),
    ]
    for n_outputs in options.outputs:
        lines += ["", *measure_outputs(n_outputs, systems, options)]
        write("\n".join(lines) + "\n", options.out)
    print("\n".join(lines))


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    add = parser.add_argument
    names, cores = list(TITLES), os.cpu_count() or 1
    add("--outputs", nargs="+", type=positive, default=[10, 100, 500], help="classes (10 100 500)")
    add("--workers", nargs="+", type=positive, default=[1, 2, 4], help="workers of the cluster (1 2 4)")
    add("--systems", nargs="+", choices=names, default=names, metavar="NAME", help=", ".join(names))
    add("--rows", type=positive, default=200_000, help="training rows (default 200000)")
    add("--features", type=positive, default=100, help="columns, at least 21 (default 100)")
    add("--rounds", type=positive, default=10, help="rounds timed (default 10)")
    add(
        "--threads",
        type=positive,
        default=cores,
        help=f"of all workers together (default {cores}, all cores)",
    )
    add(
        "--plain-threads", nargs="+", type=positive, help="of the plain fits (default 1, 2, 4, ... --threads)"
    )
    add("--out", type=Path, default=None, help="also write the Markdown to this file")
    options = parser.parse_args()
    if options.features < 21:
        parser.error(f"--features {options.features}: the classes hang on 21 columns")
    if options.plain_threads is None:
        options.plain_threads = [2**k for k in range(options.threads.bit_length())]
    return options


if __name__ == "__main__":
    main()
