"""Systems on a Dask cluster, and how long their rounds take; `cluster.py` asks them."""

from __future__ import annotations

import gc
import importlib
import json
import logging
import multiprocessing
import os
import tempfile
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from time import perf_counter
from typing import Any

import numpy as np
from numpy.typing import NDArray

from works import LEARNING_RATE, REG_LAMBDA

WARM_UP = 2
DEPTH, LEAVES, BINS, LEAF_ROWS = 6, 64, 255, 20
PARTS_A_WORKER = 2
TITLES = {
    "polyleaf": "polyleaf",
    "polyleaf_sent": "polyleaf, no shared memory",
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
        """Note the time."""
        with open(os.path.join(self.folder, f"{os.getpid()}.jsonl"), "a") as file:
            file.write(json.dumps(perf_counter()) + "\n")


def read_clock(folder: str, rounds: int) -> Figures:
    """Return the figures of the slowest worker, and empty the folder."""
    found = []
    for path in sorted(Path(folder).iterdir()):
        ends = [float(line) for line in path.read_text().splitlines()]
        path.unlink()
        if len(ends) != WARM_UP + rounds:
            raise RuntimeError(f"{len(ends)} rounds were done, not {WARM_UP + rounds}")
        found.append(Figures(median(np.diff(ends[WARM_UP - 1 :]).tolist())))
    return max(found, key=lambda one: one.seconds)


class RoundLog(logging.Handler):
    """Hears what polyleaf logs of each round at the client; no round waits for that."""

    def __init__(self) -> None:
        super().__init__()
        self._said: list[tuple[Any, ...]] = []
        self._log = logging.getLogger("polyleaf.dask.rounds")

    def __enter__(self) -> RoundLog:
        self._log.addHandler(self)
        self._log.setLevel(logging.INFO)
        return self

    def __exit__(self, *_: Any) -> None:
        self._log.removeHandler(self)
        self._log.setLevel(logging.NOTSET)

    def emit(self, record: logging.LogRecord) -> None:
        """Keep the numbers of a line on rounds."""
        if isinstance(record.args, tuple) and str(record.msg).startswith("round "):
            self._said.append(record.args)

    def figures(self) -> Figures:
        """Return those of the rounds after the first ones. A line may be on several rounds."""
        seconds, rest, before = [], np.zeros(3), 0
        for n_done, _, spent, waiting, n_exchanges, n_bytes in self._said:
            if before >= WARM_UP:
                seconds += [spent / (n_done - before)] * (n_done - before)
                rest += [n_bytes, n_exchanges, waiting]
            before = n_done
        return Figures(median(seconds), *(rest / len(seconds)).tolist())


def settings_of(name: str) -> dict[str, Any]:
    """Return the settings of a system, matched as benchmarks/README.md says."""
    if PACKAGES[name] == "polyleaf":
        return {
            "learning_rate": LEARNING_RATE,
            "max_depth": DEPTH,
            "max_leaves": LEAVES,
            "max_bins": BINS,
            "min_samples_leaf": LEAF_ROWS,
            "colsample_bytree": 1.0,
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


def train_polyleaf(name: str, client: Any, X: Any, y: Any, rounds: int) -> Figures:
    """Train polyleaf on a cluster."""
    import dask
    from polyleaf.dask import DaskPolyleafClassifier

    shares = name != "polyleaf_sent"
    with RoundLog() as log, dask.config.set({"polyleaf.shared-memory": shares}):
        DaskPolyleafClassifier(n_estimators=rounds, **settings_of(name)).fit(X, y, client=client)
    return log.figures()


def train_peer(
    name: str, client: Any, X: Any, y: Any, n_outputs: int, rounds: int, clock: RoundClock
) -> None:
    """Train a peer on a cluster; `clock` is called after each round, on each worker."""
    settings = settings_of(name)
    if name == "lightgbm":
        lightgbm: Any = importlib.import_module("lightgbm")
        model = lightgbm.DaskLGBMClassifier(n_estimators=rounds, client=client, **settings)
        model.fit(X, y, callbacks=[clock])
    else:
        xgboost: Any = importlib.import_module("xgboost")
        dask: Any = importlib.import_module("xgboost.dask")

        class Clock(xgboost.callback.TrainingCallback):  # type: ignore[misc]
            def after_iteration(self, model: Any, epoch: int, evals_log: Any) -> bool:
                clock(None)
                return False

        # Of so many rows at equal probabilities: it bounds a leaf by the Hessian, 2p(1-p) of a class.
        weight = LEAF_ROWS * 2 * (1 - 1 / n_outputs) / n_outputs
        settings |= {"num_class": n_outputs, "min_child_weight": weight}
        data = dask.DaskQuantileDMatrix(client, X, y, max_bin=BINS)
        dask.train(client, settings, data, num_boost_round=rounds, callbacks=[Clock()])


def on_cluster(
    name: str, X: Array, y: Array, n_outputs: int, n_workers: int, n_threads: int, rounds: int
) -> tuple[Figures, dict[int, float]]:
    """Train a system on a new cluster; return its figures, and seconds of exchanges of so many bytes.

    Parameters
    ----------
    name : str
        Of the system.
    X, y : ndarray
        Rows and classes.
    n_outputs : int
        How many classes there are.
    n_workers, n_threads : int
        Of the cluster; threads of each worker.
    rounds : int
        Timed rounds, after `WARM_UP` that are not.
    """
    from distributed import Client, LocalCluster

    cluster_options = {"n_workers": n_workers, "threads_per_worker": n_threads, "memory_limit": 0}
    with (
        tempfile.TemporaryDirectory() as folder,
        LocalCluster(**cluster_options, dashboard_address=":0") as cluster,
        Client(cluster) as client,
    ):
        client.wait_for_workers(n_workers)
        of_cluster = placed(client, X), placed(client, y)
        if PACKAGES[name] == "polyleaf":
            figures = train_polyleaf(name, client, *of_cluster, WARM_UP + rounds)
        else:
            train_peer(name, client, *of_cluster, n_outputs, WARM_UP + rounds, RoundClock(folder))
            figures = read_clock(folder, rounds)
        return figures, exchange_seconds(client) if name == "polyleaf_sent" and n_workers > 1 else {}


def placed(client: Any, array: Array) -> Any:
    """Return rows as an array of Dask, each worker having as many of them."""
    import dask.array as da
    from dask.delayed import delayed

    workers = sorted(client.nthreads())
    parts = []
    for number, part in enumerate(np.array_split(array, PARTS_A_WORKER * len(workers))):
        future = client.scatter(part, workers=[workers[number // PARTS_A_WORKER]], hash=False)
        parts.append(da.from_delayed(delayed(future), part.shape, part.dtype))
    return da.concatenate(parts)


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
