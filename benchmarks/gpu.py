"""Run polyleaf beside XGBoost and Py-Boost on one NVIDIA GPU; print what a round costs, and prediction.

    python benchmarks/gpu.py --out benchmarks/gpu.md
    python benchmarks/gpu.py --only d100 prediction --quick

Each library that can be imported trains the same works in this process, one after the other; what fails is
noted and the rest goes on. The report is written anew after every measurement; benchmarks/README.md explains
its columns.
"""

from __future__ import annotations

import argparse
import importlib
import math
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median
from time import perf_counter
from typing import Any

import numpy as np

from gpu_systems import GPU_SYSTEMS, GpuSystem, PolyleafGpuShared, cupy, release_memory, wait_for_device
from report import describe_run
from speed import log, positive, ratio, table_row, write
from works import GPU_WORKS, Split, Work

WARM_UP = 1
PREDICTION = "prediction"
PREDICTED_WORK = "d10"
PREDICTING_SYSTEM = PolyleafGpuShared
QUICK_ROWS = 20_000
NOT_INSTALLED = "not installed"
PACKAGES = ("cupy-cuda13x", "cupy-cuda12x", "cupy", "xgboost", "py_boost")

TITLES = {
    "polyleaf_diagonal": "polyleaf, diagonal Hessian",
    "polyleaf_shared": "polyleaf, shared Hessian",
    "polyleaf_sketch": "polyleaf, sketch k=5",
    "xgboost_multi": "XGBoost multi_output_tree",
    "xgboost": "XGBoost one per output",
    "py_boost": "Py-Boost full",
    "py_boost_sketch": "Py-Boost, sketch k=5",
}
# What is to be compared with what: the title, theirs, ours.
RATIOS = (
    ("XGBoost multi / polyleaf diagonal", "xgboost_multi", "polyleaf_diagonal"),
    ("XGBoost multi / polyleaf shared", "xgboost_multi", "polyleaf_shared"),
    ("Py-Boost k=5 / polyleaf k=5", "py_boost_sketch", "polyleaf_sketch"),
)


@dataclass(frozen=True)
class Options:
    works: list[str]
    systems: list[str]
    rounds: int
    repeats: int
    long: float
    rows: int | None  # of training; None: all
    predicted_rows: int
    predicted_rounds: int
    threads: int
    out: Path | None


@dataclass
class Measured:
    """What one system reached on one work: a figure per repeat, or the reason why there is none."""

    round_seconds: list[float] = field(default_factory=list)
    setup_seconds: list[float] = field(default_factory=list)
    test_loss: float = math.nan
    failure: str | None = None
    note: str | None = None

    @property
    def per_round(self) -> float | None:
        """Median seconds."""
        return median(self.round_seconds) if self.round_seconds else None


@dataclass
class WorkResult:
    work: Work
    shape: tuple[int, int, int]  # training rows, test rows, features
    systems: dict[str, Measured] = field(default_factory=dict)

    @property
    def title(self) -> str:
        squared = ", squared" if self.work.loss == "squared" else ""
        return f"{self.shape[0]:,} x {self.shape[2]} -> {self.work.n_outputs}{squared}"


@dataclass
class PredictionResult:
    """Seconds of each way to predict the same rows with the same forest."""

    shape: tuple[int, int, int]  # rows, features, outputs
    seconds: dict[str, list[float]] = field(default_factory=dict)
    differences: list[float] = field(default_factory=list)  # from the CPU's probabilities, the largest
    failures: dict[str, str] = field(default_factory=dict)


@dataclass
class Report:
    options: Options
    run: list[str]
    works: list[WorkResult] = field(default_factory=list)
    prediction: PredictionResult | None = None
    notes: list[str] = field(default_factory=list)

    def save(self) -> None:
        write(self.text(), self.options.out)

    def text(self) -> str:
        options = self.options
        lines = [
            "# Speed on a GPU",
            "",
            *self.run,
            f"- {options.rounds} rounds timed after {WARM_UP} that is not, binned data on the device; median "
            f"of {options.repeats} repeats, a single one where the rounds take more than {options.long:g} s",
            "- Depth 6, 256 bins, lambda 1, learning rate 0.1, at least 20 rows in a leaf",
        ]
        if options.rows is not None:
            lines.append(f"- Only the first {options.rows:,} training rows: not comparable with full runs")
        lines += [f"- {note}" for note in self.notes]
        if self.works:
            lines += ["", *summary(options, self.works)]
        for result in self.works:
            lines += ["", *details(options, result)]
        if self.prediction is not None:
            lines += ["", *prediction_table(options, self.prediction)]
        return "\n".join(lines) + "\n"


class DeviceLostError(RuntimeError):
    """The device answers no more: what follows in this process would fail too."""


def main() -> int:
    options = parse_arguments()
    try:
        gpu = describe_gpu()
    except Exception as error:
        sys.exit(f"benchmarks/gpu.py needs CuPy and an NVIDIA GPU (pip install polyleaf[gpu]): {error}")
    report = Report(options, [*describe_run(PACKAGES), gpu])
    lost = False
    try:
        for name in options.works:
            if name == PREDICTION:
                run_prediction(report)
            else:
                run_work(GPU_WORKS[name], report)
            report.save()
    except DeviceLostError as error:
        lost = True
        report.notes.append(f"{error}; what was to follow was not measured (--only, --systems)")
        log(report.notes[-1])
    report.save()
    print(report.text(), flush=True)
    return int(lost)


# --- training ----------------------------------------------------------------------------------------------


def run_work(work: Work, report: Report) -> None:
    """Measure every system on one work, and save the report after each."""
    options = report.options
    split = work.make(Path())
    if options.rows is not None:
        split = split.head(options.rows)
    result = WorkResult(work, (len(split.X_train), len(split.X_test), split.X_train.shape[1]))
    report.works.append(result)
    for name in options.systems:
        if not GPU_SYSTEMS[name].applies(work):
            continue
        measured = measure(GPU_SYSTEMS[name], work, split, options)
        result.systems[name] = measured
        log(f"{work.name}, {TITLES[name]}: {in_a_line(measured)}")
        report.save()
        clear_device(f"{TITLES[name]} on {work.name}")


def measure(system: type[GpuSystem], work: Work, split: Split, options: Options) -> Measured:
    """Train as often as asked for; test what the first training gave."""
    try:
        importlib.import_module(system.package)
    except ModuleNotFoundError as error:
        missing = error.name == system.package
        return Measured(failure=NOT_INSTALLED if missing else f"cannot be imported: {error}")
    except Exception as error:
        return Measured(failure=f"cannot be imported: {in_one_line(error)}")
    measured = Measured()
    for repeat in range(options.repeats):
        if repeat > 0 and options.rounds * measured.round_seconds[0] > options.long:
            break
        try:
            train_once(system, work, split, options, measured)
            release_memory()
        except Exception as error:
            measured.failure = in_one_line(error)
            break
    return measured


def train_once(
    system: type[GpuSystem], work: Work, split: Split, options: Options, measured: Measured
) -> None:
    """Train, and note the times; in a function of its own, so that nothing holds the model afterwards."""
    trained = system(work, options.threads)
    training = trained.train(split.X_train, split.y_train, WARM_UP, options.rounds)
    measured.round_seconds.append(training.per_round)
    measured.setup_seconds.append(training.setup)
    if len(measured.round_seconds) > 1:
        return
    try:
        measured.test_loss = work.test_loss(split.y_test, trained.predict(split.X_test))
    except Exception as error:  # the times are good all the same
        measured.note = f"the test rows were not predicted: {in_one_line(error)}"


def clear_device(after: str) -> None:
    """Free what the last measurement left, also one that failed.

    Some errors stay with the process: every call that follows fails with them, whoever makes it.
    """
    try:
        release_memory()
        wait_for_device()
    except Exception as error:
        raise DeviceLostError(f"the device was lost by {after}: {in_one_line(error)}") from error


# --- prediction --------------------------------------------------------------------------------------------


def run_prediction(report: Report) -> None:
    """Predict the same rows with one forest: on the device from its memory or the host's, and on the host."""
    options = report.options
    work = GPU_WORKS[PREDICTED_WORK]
    split = work.make(Path())
    if options.rows is not None:
        split = split.head(options.rows)
    rng = np.random.default_rng(1)
    X = rng.standard_normal((options.predicted_rows, split.X_train.shape[1]), dtype=np.float32)
    report.prediction = PredictionResult((*X.shape, work.n_outputs))
    try:
        predict_each_way(report.prediction, work, split, X, options)
    except Exception as error:
        report.prediction.failures["training or loading the forest"] = in_one_line(error)
    for what, failure in report.prediction.failures.items():
        log(f"prediction, {what}: {failure}")
    clear_device("prediction")


def predict_each_way(result: PredictionResult, work: Work, split: Split, X: Any, options: Options) -> None:
    trained = PREDICTING_SYSTEM(work, options.threads)
    trained.train(split.X_train, split.y_train, WARM_UP, options.predicted_rounds - WARM_UP)
    model = trained.model
    on_host = loaded_on_host(model, options.threads)
    on_device = cupy().asarray(X)
    ways: dict[str, Callable[[], Any]] = {
        "GPU, X a CuPy array": lambda: model.predict_proba(on_device),
        "GPU, X a NumPy array": lambda: model.predict_proba(X),
        f"CPU, {options.threads} threads": lambda: on_host.predict_proba(X),
    }
    reference = on_host.predict_proba(X)
    for way, predict in ways.items():
        try:
            first = cupy().asnumpy(predict())  # what is prepared once is not a prediction
            result.differences.append(float(np.abs(first - reference).max()))
            result.seconds[way] = [seconds(predict) for _ in range(options.repeats)]
        except Exception as error:
            result.failures[way] = in_one_line(error)
            continue
        log(f"prediction, {way}: {len(X) / median(result.seconds[way]):,.0f} rows / s")


def loaded_on_host(model: Any, threads: int) -> Any:
    """Return the forest as a machine without a GPU would use it."""
    polyleaf = importlib.import_module("polyleaf")
    with tempfile.TemporaryDirectory(prefix="polyleaf-bench-") as folder:
        model.save_model(Path(folder) / "model.polyleaf")
        loaded = polyleaf.load_model(Path(folder) / "model.polyleaf")
    return loaded.set_params(device="cpu", n_jobs=threads)


def seconds(call: Callable[[], Any]) -> float:
    wait_for_device()
    start = perf_counter()
    kept = call()
    wait_for_device()
    taken = perf_counter() - start
    del kept
    return taken


# --- what is printed ---------------------------------------------------------------------------------------


def summary(options: Options, results: list[WorkResult]) -> list[str]:
    """Seconds of all rounds of every system on every work."""
    systems = options.systems
    ratios = [one for one in RATIOS if one[1] in systems and one[2] in systems]
    lines = [
        f"## Seconds for {options.rounds} rounds",
        "",
        table_row(["rows x features -> outputs", *(TITLES[s] for s in systems), *(one[0] for one in ratios)]),
        table_row(["---"] + ["---:"] * (len(systems) + len(ratios))),
    ]
    for result in results:
        cells = [result.title]
        for system in systems:
            measured = result.systems.get(system)
            cells.append("-" if measured is None else shown_seconds(measured, options.rounds))
        for _, theirs, ours in ratios:
            found = [result.systems.get(name, Measured()).per_round for name in (theirs, ours)]
            cells.append(ratio(found[0], found[1]) if found[0] is not None else "-")
        lines.append(table_row(cells))
    return lines


def shown_seconds(measured: Measured, rounds: int) -> str:
    if measured.per_round is not None:
        return f"{rounds * measured.per_round:.3g}"
    return NOT_INSTALLED if measured.failure == NOT_INSTALLED else "failed"


def details(options: Options, result: WorkResult) -> list[str]:
    """Everything measured on one work; `x` is that system's time / that of polyleaf's full trees."""
    work = result.work
    loss = "cross entropy" if work.loss == "softmax" else "RMSE"
    header = ["system", "ms / round", "x", "spread", "repeats", "setup s", f"test {loss}"]
    lines = [
        f"## {work.name}",
        "",
        f"{result.title}; {result.shape[1]:,} test rows, predicted after {WARM_UP + options.rounds} rounds.",
        "",
        table_row(header),
        table_row(["---"] + ["---:"] * (len(header) - 1)),
    ]
    ours = result.systems.get("polyleaf_diagonal", Measured()).per_round
    notes = []
    for system, measured in result.systems.items():
        title = "polyleaf" if system == "polyleaf_diagonal" and work.loss == "squared" else TITLES[system]
        said = (measured.failure, measured.note)
        notes += [f"- {title}: {text}" for text in said if text not in (None, NOT_INSTALLED)]
        if measured.per_round is None:
            lines.append(table_row([title, shown_seconds(measured, 0), *(["-"] * (len(header) - 2))]))
            continue
        spread = (max(measured.round_seconds) - min(measured.round_seconds)) / measured.per_round
        cells = [title, f"{1000 * measured.per_round:.3g}"]
        cells.append("-" if system == "polyleaf_diagonal" else ratio(measured.per_round, ours))
        cells += [f"{100 * spread:.0f} %", str(len(measured.round_seconds))]
        cells.append(f"{median(measured.setup_seconds):.3g}")
        cells.append("-" if math.isnan(measured.test_loss) else f"{measured.test_loss:.4f}")
        lines.append(table_row(cells))
    return [*lines, "", *notes] if notes else lines


def prediction_table(options: Options, result: PredictionResult) -> list[str]:
    """One line per way; `x` is its rows per second / those of the CPU."""
    rows, features, outputs = result.shape
    lines = [
        "## Prediction",
        "",
        f"Probabilities of {rows:,} rows x {features} -> {outputs} by polyleaf's forest of "
        f"{options.predicted_rounds} rounds, depth 6; `x`: rows per second / those of the CPU.",
        "",
        table_row(["way", "rows / s", "ms", "x"]),
        table_row(["---", "---:", "---:", "---:"]),
    ]
    on_cpu = next((median(taken) for way, taken in result.seconds.items() if way.startswith("CPU")), None)
    for way, taken in result.seconds.items():
        each = median(taken)
        times = "-" if on_cpu is None or way.startswith("CPU") else ratio(on_cpu, each)
        lines.append(table_row([way, f"{rows / each:,.0f}", f"{1000 * each:.3g}", times]))
    notes = [f"- {what}: {failure}" for what, failure in result.failures.items()]
    if result.differences:
        notes.insert(0, f"- Largest difference from the CPU's probabilities: {max(result.differences):.2g}")
    return [*lines, "", *notes] if notes else lines


def in_a_line(measured: Measured) -> str:
    """What the log says of a measurement."""
    if measured.per_round is None:
        return str(measured.failure)
    said = f"{1000 * measured.per_round:.3g} ms per round, test loss {measured.test_loss:.4f}"
    return said if measured.failure is None else f"{said}, then {measured.failure}"


def in_one_line(error: BaseException) -> str:
    """The first line of an error that says something, without what would break a Markdown list."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    text = f"{type(error).__name__}: {lines[0]}" if lines else type(error).__name__
    return text if len(text) <= 300 else text[:297] + "..."


def describe_gpu() -> str:
    """The line on the device, its driver and CUDA."""
    runtime = cupy().cuda.runtime
    device = runtime.getDeviceProperties(runtime.getDevice())
    driver = "unknown"
    try:
        asked = ["nvidia-smi", "--query-gpu=driver_version", "--format=csv,noheader"]
        driver = subprocess.run(asked, capture_output=True, text=True, check=True).stdout.split()[0]
    except (OSError, subprocess.CalledProcessError, IndexError):
        pass
    return (
        f"- GPU: {device['name'].decode()}, {device['totalGlobalMem'] / 2**30:.0f} GiB; driver {driver} "
        f"(CUDA {cuda_version(runtime.driverGetVersion())}), CuPy's runtime CUDA "
        f"{cuda_version(runtime.runtimeGetVersion())}"
    )


def cuda_version(number: int) -> str:
    """12080 is CUDA 12.8."""
    return f"{number // 1000}.{number % 1000 // 10}"


def parse_arguments(arguments: list[str] | None = None) -> Options:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    add = parser.add_argument
    works, systems = [*GPU_WORKS, PREDICTION], list(GPU_SYSTEMS)
    add("--only", nargs="+", choices=works, default=works, metavar="WORK", help=", ".join(works))
    add("--systems", nargs="+", choices=systems, default=systems, metavar="NAME", help=", ".join(systems))
    add("--rounds", type=positive, default=50, help="boosting rounds timed (default 50)")
    add("--repeats", type=positive, default=3, help="trainings per work and system (default 3)")
    add("--long", type=float, default=5.0, help="seconds of rounds from which none is repeated (default 5)")
    add("--threads", type=positive, default=os.cpu_count() or 1, help="of the host (default: all cores)")
    add("--quick", action="store_true", help=f"a check: 5 rounds of the first {QUICK_ROWS:,} rows, once")
    add("--out", type=Path, default=None, help="also write the Markdown to this file")
    given = parser.parse_args(arguments)
    return Options(
        works=given.only,
        systems=given.systems,
        rounds=5 if given.quick else given.rounds,
        repeats=1 if given.quick else given.repeats,
        long=given.long,
        rows=QUICK_ROWS if given.quick else None,
        predicted_rows=100_000 if given.quick else 1_000_000,
        predicted_rounds=10 if given.quick else 100,
        threads=given.threads,
        out=given.out,
    )


if __name__ == "__main__":
    sys.exit(main())
