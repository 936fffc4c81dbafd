"""A table in Parquet files: what training takes of memory and time, each system in a process of its own.

    python benchmarks/large.py --rows 2000000 --out benchmarks/large.md
    python benchmarks/large.py --folder FOLDER --systems polyleaf lightgbm

The rows (20,000,000 x 50 -> 5 float32 numbers unless told otherwise) are written once, to FOLDER or to a
temporary one. polyleaf reads the folder, and, as "polyleaf, in memory", an array that was read before;
LightGBM reads it by `Sequence`s, XGBoost by a `DataIter` of a `QuantileDMatrix`. Peak memory is that of the
whole process. Set-up is all until the first round begins.
"""

from __future__ import annotations

import argparse
import importlib
import importlib.util
import json
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np
from numpy.typing import NDArray

from measure import peak_resident
from report import describe_run
from speed import HERE, log, positive, table_row, write

FILE_ROWS = 1_000_000
GROUP_ROWS = 1 << 17
DEPTH, LEAVES, BINS, LEAF_ROWS = 6, 64, 255, 20
LEARNING_RATE, REG_LAMBDA = 0.1, 1.0

Array = NDArray[np.float32]
Times = tuple[float, float]


def make_rows(n_rows: int, n_features: int, n_targets: int, seed: int) -> tuple[Array, Array]:
    """Return features, and targets that depend on some of them and on their products."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n_rows, n_features), dtype=np.float32)
    way = np.random.default_rng(0).standard_normal((n_features, n_targets), dtype=np.float32)
    y = np.tanh(X @ way / 4) + X[:, :1] * X[:, 1 : 1 + n_targets]
    return X, (y + 0.1 * rng.standard_normal(y.shape, dtype=np.float32)).astype(np.float32)


def write_rows(folder: Path, n_rows: int, n_features: int, n_targets: int) -> None:
    """Write the table, a file of a million rows at a time."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    for number, begin in enumerate(range(0, n_rows, FILE_ROWS)):
        X, y = make_rows(min(FILE_ROWS, n_rows - begin), n_features, n_targets, number + 1)
        columns = {f"x{j}": X[:, j] for j in range(n_features)} | {f"y{j}": y[:, j] for j in range(n_targets)}
        path = folder / f"part-{number:04d}.parquet"
        pq.write_table(
            pa.table(columns), path, row_group_size=GROUP_ROWS, compression="lz4", use_dictionary=False
        )


def files_of(folder: Path) -> list[Path]:
    return sorted(folder.glob("*.parquet"))


def read_file(path: Path) -> tuple[Array, Array]:
    """Return the features and targets of one file."""
    import pyarrow.parquet as pq

    table = pq.read_table(path)
    names = [name for name in table.column_names if name.startswith("x")]
    X = np.empty((table.num_rows, len(names)), np.float32)
    for j, name in enumerate(names):
        X[:, j] = table[name].to_numpy()
    return X, np.column_stack([table[n].to_numpy() for n in table.column_names if n.startswith("y")])


def read_all(folder: Path) -> tuple[Array, Array]:
    """Return all rows, copied once."""
    import pyarrow.parquet as pq

    n_rows = sum(pq.read_metadata(path).num_rows for path in files_of(folder))
    X = y = np.empty((0, 0), np.float32)
    at = 0
    for path in files_of(folder):
        own_X, own_y = read_file(path)
        if at == 0:
            X = np.empty((n_rows, own_X.shape[1]), np.float32)
            y = np.empty((n_rows, own_y.shape[1]), np.float32)
        X[at : at + len(own_X)], y[at : at + len(own_X)] = own_X, own_y
        at += len(own_X)
    return X, y


# --- systems -----------------------------------------------------------------------------------------------


def train_polyleaf(folder: Path, rounds: int, threads: int, *, in_memory: bool = False) -> Times:
    from polyleaf import PolyleafRegressor

    ends: list[float] = []
    model = PolyleafRegressor(
        n_estimators=rounds + 1,
        max_depth=DEPTH,
        max_bins=BINS,
        min_samples_leaf=LEAF_ROWS,
        colsample_bytree=1.0,
        sketch=None,
        learning_rate=LEARNING_RATE,
        reg_lambda=REG_LAMBDA,
        n_jobs=threads,
        callbacks=[lambda state: ends.append(perf_counter())],
    )
    start = perf_counter()
    if in_memory:
        model.fit(*read_all(folder))
    else:
        import pyarrow.parquet as pq

        names = pq.read_schema(files_of(folder)[0]).names
        model.fit(folder, [name for name in names if name.startswith("y")])
    # The first round is prepared by the set-up, and takes what the others take.
    per_round = (ends[-1] - ends[0]) / rounds
    return ends[0] - start - per_round, per_round


def train_in_memory(folder: Path, rounds: int, threads: int) -> Times:
    return train_polyleaf(folder, rounds, threads, in_memory=True)


def train_lightgbm(folder: Path, rounds: int, threads: int) -> Times:
    """One booster a target on one `Dataset`; each file is read once for the sample and once for all rows."""
    lgb: Any = importlib.import_module("lightgbm")
    import pyarrow.parquet as pq

    class Rows(lgb.Sequence):  # type: ignore[misc, name-defined]
        batch_size = GROUP_ROWS
        held: tuple[Path | None, Array] = (None, np.empty((0, 0), np.float32))

        def __init__(self, path: Path) -> None:
            self.path, self.n_rows = path, pq.read_metadata(path).num_rows

        def __getitem__(self, rows: Any) -> NDArray[np.float64]:
            if Rows.held[0] != self.path:
                Rows.held = (None, np.empty((0, 0), np.float32))
                Rows.held = (self.path, read_file(self.path)[0])
            return Rows.held[1][rows].astype(np.float64)  # the sample must be

        def __len__(self) -> int:
            return self.n_rows

    start = perf_counter()
    y = np.concatenate([_targets(path) for path in files_of(folder)])
    settings = {
        "objective": "regression",
        "max_depth": DEPTH,
        "num_leaves": LEAVES,
        "max_bin": BINS,
        "min_data_in_leaf": LEAF_ROWS,
        "learning_rate": LEARNING_RATE,
        "lambda_l2": REG_LAMBDA,
        "num_threads": threads,
        "verbosity": -1,
    }
    data = lgb.Dataset([Rows(path) for path in files_of(folder)], label=y[:, 0], params=settings)
    data.construct()
    Rows.held = (None, np.empty((0, 0), np.float32))
    set_up = perf_counter() - start
    start = perf_counter()
    for j in range(y.shape[1]):
        data.set_label(y[:, j])
        booster = lgb.Booster(settings, data)
        for _ in range(rounds):
            booster.update()
    return set_up, (perf_counter() - start) / rounds


def train_xgboost(folder: Path, rounds: int, threads: int) -> Times:
    """One tree for all targets."""
    xgb: Any = importlib.import_module("xgboost")

    class Files(xgb.DataIter):  # type: ignore[misc, name-defined]
        def __init__(self) -> None:
            super().__init__()
            self.left: Iterator[Path] = iter(())

        def reset(self) -> None:
            self.left = iter(files_of(folder))

        def next(self, input_data: Callable[..., Any]) -> int:
            path = next(self.left, None)
            if path is None:
                return 0
            X, y = read_file(path)
            input_data(data=X, label=y)
            return 1

    start = perf_counter()
    data = xgb.QuantileDMatrix(Files(), max_bin=BINS, nthread=threads)
    settings = {
        "tree_method": "hist",
        "multi_strategy": "multi_output_tree",
        "max_depth": DEPTH,
        "max_leaves": LEAVES,
        "grow_policy": "lossguide",
        "max_bin": BINS,
        "min_child_weight": LEAF_ROWS,
        "eta": LEARNING_RATE,
        "lambda": REG_LAMBDA,
        "nthread": threads,
    }
    booster = xgb.Booster(settings, [data])
    set_up = perf_counter() - start
    start = perf_counter()
    for number in range(rounds):
        booster.update(data, number)
    return set_up, (perf_counter() - start) / rounds


def _targets(path: Path) -> Array:
    import pyarrow.parquet as pq

    names = [name for name in pq.read_schema(path).names if name.startswith("y")]
    table = pq.read_table(path, columns=names)
    return np.column_stack([table[name].to_numpy() for name in names])


SYSTEMS: dict[str, tuple[str, Callable[[Path, int, int], Times]]] = {
    "polyleaf": ("polyleaf", train_polyleaf),
    "polyleaf, in memory": ("polyleaf", train_in_memory),
    "lightgbm": ("lightgbm", train_lightgbm),
    "xgboost": ("xgboost", train_xgboost),
}


# --- the run -----------------------------------------------------------------------------------------------


def measure(system: str, folder: Path, rounds: int, threads: int) -> None:
    """Train in this process and print the figures as JSON."""
    set_up, per_round = SYSTEMS[system][1](folder, rounds, threads)
    print(json.dumps({"set_up": set_up, "per_round": per_round, "peak": peak_resident()}))


def run_process(system: str, folder: Path, options: argparse.Namespace) -> dict[str, float] | str:
    """Measure a system in a process of its own; return its figures, or why there are none."""
    if importlib.util.find_spec(SYSTEMS[system][0]) is None:
        return "not installed"
    command = [sys.executable, str(HERE / "large.py"), "--measure", system, "--folder", str(folder)]
    command += ["--rounds", str(options.rounds), "--threads", str(options.threads)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        lines = done.stderr.strip().splitlines()
        return f"failed ({done.returncode}): {lines[-1] if lines else ''}"
    figures: dict[str, float] = json.loads(done.stdout.strip().splitlines()[-1])
    return figures


def report(options: argparse.Namespace, folder: Path, run: list[str]) -> str:
    size = sum(path.stat().st_size for path in files_of(folder)) / 2**30
    title = f"{options.rows:,} x {options.features} -> {options.targets}"
    lines = [
        "# Tables larger than memory",
        "",
        f"`python benchmarks/large.py --rows {options.rows} --features {options.features} --targets "
        f"{options.targets} --rounds {options.rounds} --threads {options.threads}`: {title} of float32, "
        f"{size:.1f} GiB of Parquet. Depth {DEPTH}, {LEAVES} leaves, {BINS} bins, squared error.",
        "",
        *run,
        "",
        table_row(["system", "peak GiB", "set-up s", "s / round"]),
        table_row(["---", "---", "---", "---"]),
    ]
    for system in options.systems:
        figures = run_process(system, folder, options)
        log(f"{system}: {figures}")
        if isinstance(figures, str):
            lines.append(table_row([system, figures, "", ""]))
            continue
        cells = [f"{figures['peak'] / 2**10:.2f}", f"{figures['set_up']:.1f}", f"{figures['per_round']:.2f}"]
        lines.append(table_row([system, *cells]))
    return "\n".join(lines) + "\n"


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rows", type=positive, default=20_000_000)
    parser.add_argument("--features", type=positive, default=50)
    parser.add_argument("--targets", type=positive, default=5)
    parser.add_argument("--rounds", type=positive, default=5)
    parser.add_argument("--threads", type=positive, default=2)
    parser.add_argument("--systems", nargs="+", choices=list(SYSTEMS), default=list(SYSTEMS))
    parser.add_argument("--folder", type=Path, help="where the rows are, or are written to if it is empty")
    parser.add_argument("--out", type=Path, help="where the report goes; otherwise it is printed")
    parser.add_argument("--measure", choices=list(SYSTEMS), help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.measure is not None:
        measure(options.measure, options.folder, options.rounds, options.threads)
        return
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary) if options.folder is None else options.folder
        folder.mkdir(parents=True, exist_ok=True)
        if not files_of(folder):
            log(f"writing {options.rows:,} rows to {folder}")
            write_rows(folder, options.rows, options.features, options.targets)
        run = describe_run(package for package, _ in SYSTEMS.values())
        text = report(options, folder, run)
        print(text)
        write(text, options.out)


if __name__ == "__main__":
    main()
