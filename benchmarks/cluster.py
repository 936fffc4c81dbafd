"""Training on a Dask cluster: seconds and bytes of a round, beside the peers and beside plain fits.

    python benchmarks/cluster.py --out benchmarks/cluster.md
    python benchmarks/cluster.py --rows 4000 --features 25 --outputs 10 --workers 1 2 --systems polyleaf

Each system trains classes (softmax) on a `LocalCluster` of its own, whose workers are processes that share
the threads out. Plain fits of polyleaf at several numbers of threads run in processes of their own. What is
not installed is named and left out. (Not called dask.py: the peers would import it in place of Dask.)
"""

from __future__ import annotations

import argparse
import gc
import importlib
import importlib.util
import json
import multiprocessing
import os
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from time import perf_counter
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cluster_plan import Pieces, plan_table
from report import describe_run
from speed import log, positive, ratio, table_row, write
from works import LEARNING_RATE, REG_LAMBDA, synthetic

WARM_UP = 2
DEPTH, LEAVES, BINS, LEAF_ROWS = 6, 64, 255, 20
PARTS_A_WORKER = 2
TITLES = {
    "polyleaf": "polyleaf",
    "polyleaf_sketch": "polyleaf, sketch",
    "xgboost_multi": "XGBoost multi_output_tree",
    "xgboost": "XGBoost one per output",
    "lightgbm": "LightGBM",
}
PACKAGES = {name: name.split("_")[0] for name in TITLES}
Array = NDArray[Any]


@dataclass(frozen=True)
class Figures:
    """What one training of one system took; the last three of polyleaf only.

    Attributes
    ----------
    seconds : float
        Of a round, the median.
    bytes_sent : float
        By a worker in a round.
    exchanges : float
        In a round.
    waiting : float
        Seconds of a round spent in exchanges, waiting included.
    """

    seconds: float
    bytes_sent: float = 0.0
    exchanges: float = 0.0
    waiting: float = 0.0


class RoundClock:
    """A callback that notes the end of each round in a file; each worker that calls it has one.

    Parameters
    ----------
    folder : str
        Of the files.
    """

    def __init__(self, folder: str) -> None:
        self.folder = folder

    def __call__(self, _: Any) -> None:
        """Note the time and, of polyleaf, what was exchanged so far."""
        from polyleaf.peers.current import current_peers

        peers = current_peers()
        sent = [] if peers is None else [peers.bytes_sent, peers.n_exchanges, peers.seconds]
        with open(os.path.join(self.folder, f"{os.getpid()}.jsonl"), "a") as file:
            file.write(json.dumps([perf_counter(), *sent]) + "\n")


def read_clock(folder: str, rounds: int) -> Figures:
    """Return the figures of the slowest worker, and empty the folder."""
    found = []
    for path in sorted(Path(folder).iterdir()):
        lines = np.array([json.loads(line) for line in path.read_text().splitlines()], dtype=np.float64)
        path.unlink()
        if len(lines) != WARM_UP + rounds:
            raise RuntimeError(f"{len(lines)} rounds were done, not {WARM_UP + rounds}")
        timed = lines[WARM_UP - 1 :]
        steps = (timed[-1] - timed[0]) / rounds
        found.append(Figures(median(np.diff(timed[:, 0]).tolist()), *steps[1:].tolist()))
    return max(found, key=lambda one: one.seconds)


# --- systems -----------------------------------------------------------------------------------------------


def settings_of(name: str) -> dict[str, Any]:
    """Return the settings of a system, matched as benchmarks/README.md says."""
    if PACKAGES[name] == "polyleaf":
        return {
            "learning_rate": LEARNING_RATE,
            "max_depth": DEPTH,
            "max_leaves": LEAVES,
            "max_bins": BINS,
            "min_samples_leaf": LEAF_ROWS,
            "reg_lambda": REG_LAMBDA,
            "sketch": "random_projection" if name == "polyleaf_sketch" else None,
        }
    if name == "lightgbm":
        return {
            "learning_rate": LEARNING_RATE,
            "max_depth": DEPTH,
            "num_leaves": LEAVES,
            "max_bin": BINS,
            "min_child_samples": LEAF_ROWS,
            "reg_lambda": REG_LAMBDA,
            "feature_pre_filter": False,
            "verbosity": -1,
        }
    return {
        "objective": "multi:softprob",
        "tree_method": "hist",
        "grow_policy": "lossguide",
        "multi_strategy": "multi_output_tree" if name == "xgboost_multi" else "one_output_per_tree",
        "eta": LEARNING_RATE,
        "max_depth": DEPTH,
        "max_leaves": LEAVES,
        "max_bin": BINS,
        "lambda": REG_LAMBDA,
        "verbosity": 0,
    }


def train(name: str, client: Any, X: Any, y: Any, n_outputs: int, rounds: int, clock: RoundClock) -> None:
    """Train a system on a cluster; `clock` is called after each round."""
    settings = settings_of(name)
    if PACKAGES[name] == "polyleaf":
        from polyleaf.dask import DaskPolyleafClassifier

        DaskPolyleafClassifier(n_estimators=rounds, callbacks=[clock], **settings).fit(X, y, client=client)
    elif name == "lightgbm":
        lightgbm: Any = importlib.import_module("lightgbm")
        model = lightgbm.DaskLGBMClassifier(n_estimators=rounds, client=client, **settings)
        model.fit(X, y, callbacks=[clock])
    else:
        xgboost: Any = importlib.import_module("xgboost")
        dask: Any = importlib.import_module("xgboost.dask")

        class Clock(xgboost.callback.TrainingCallback):  # type: ignore[misc, name-defined]
            def after_iteration(self, model: Any, epoch: int, evals_log: Any) -> bool:
                clock(None)
                return False

        # Of so many rows at equal probabilities: it bounds a leaf by the Hessian, 2p(1-p) of a class.
        weight = LEAF_ROWS * 2 * (1 - 1 / n_outputs) / n_outputs
        settings |= {"num_class": n_outputs, "min_child_weight": weight}
        data = dask.DaskQuantileDMatrix(client, X, y, max_bin=BINS)
        dask.train(client, settings, data, num_boost_round=rounds, callbacks=[Clock()])


def on_cluster(
    name: str, X: Array, y: Array, n_outputs: int, n_workers: int, options: argparse.Namespace
) -> tuple[Figures, dict[int, float]]:
    """Train a system on a new cluster; return its figures, and seconds of exchanges of so many bytes."""
    import dask.array as da
    from distributed import Client, LocalCluster, wait

    threads = max(1, options.threads // n_workers)
    with (
        tempfile.TemporaryDirectory() as folder,
        LocalCluster(
            n_workers, threads_per_worker=threads, memory_limit=0, dashboard_address=None
        ) as cluster,
        Client(cluster) as client,
    ):
        step = -(-len(X) // (PARTS_A_WORKER * n_workers))
        tables = client.persist([da.from_array(X, chunks=(step, -1)), da.from_array(y, chunks=step)])
        wait(tables)
        train(name, client, *tables, n_outputs, WARM_UP + options.rounds, RoundClock(folder))
        exchanges = exchange_seconds(client) if name == "polyleaf" and n_workers > 1 else {}
        return read_clock(folder, options.rounds), exchanges


def exchange_seconds(client: Any) -> dict[int, float]:
    """Return how long an exchange between all workers takes where each part has so many bytes."""
    from polyleaf.dask.launch import launch

    def timed(rank: Any, _: Any) -> dict[int, float]:
        seconds = {}
        for n_bytes, repeats in ((8, 200), (1 << 20, 20)):
            parts = [bytes(n_bytes)] * rank.exchange.size
            rank.exchange.exchange(parts)  # connections are made
            times = []
            for _ in range(repeats):
                start = perf_counter()
                rank.exchange.exchange(parts)
                times.append(perf_counter() - start)
            seconds[n_bytes] = median(times)
        return seconds

    found: dict[int, float] = launch(client, timed, dict.fromkeys(client.nthreads()))
    return found


def plain_fit(X: Array, y: Array, threads: int, rounds: int) -> Figures:
    """Train the plain estimator in a process of its own."""
    with tempfile.TemporaryDirectory() as folder:
        np.save(Path(folder) / "X.npy", X)
        np.save(Path(folder) / "y.npy", y)
        clock = Path(folder) / "clock"
        clock.mkdir()
        process = multiprocessing.get_context("spawn").Process(
            target=_plain_fit, args=(folder, str(clock), threads, rounds)
        )
        process.start()
        process.join()
        if process.exitcode != 0:
            raise RuntimeError(f"the process ended with {process.exitcode}")
        return read_clock(str(clock), rounds)


def _plain_fit(folder: str, clock: str, threads: int, rounds: int) -> None:
    from polyleaf import PolyleafClassifier

    X, y = np.load(Path(folder) / "X.npy"), np.load(Path(folder) / "y.npy")
    model = PolyleafClassifier(
        n_estimators=WARM_UP + rounds,
        n_jobs=threads,
        callbacks=[RoundClock(clock)],
        **settings_of("polyleaf"),
    )
    gc.collect()
    model.fit(X, y)


# --- the run -----------------------------------------------------------------------------------------------


def attempt(where: str, measure: Callable[[], Any], notes: list[str]) -> Any:
    """Return what is measured; None, and a note, where it fails."""
    try:
        found = measure()
    except Exception as error:  # a peer's failure is a line of the report
        notes.append(f"{where}: {type(error).__name__}: {str(error).strip().splitlines()[-1:]}")
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
            lambda n=threads: plain_fit(X, y, n, options.rounds),
            notes,
        )
        if found is not None:
            rows.append(("polyleaf, plain fit", f"{threads} threads", found, True))
    for n_workers in options.workers:
        for name in systems:
            found = attempt(
                f"{n_outputs} outputs, {TITLES[name]}, {n_workers} workers",
                lambda name=name, n=n_workers: on_cluster(name, X, y, n_outputs, n, options),
                notes,
            )
            if found is None:
                continue
            figures, exchanges = found
            where = f"{n_workers} x {max(1, options.threads // n_workers)} threads"
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
    return lines + plan_table(pieces)


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
