"""Exported models run by onnxruntime, beside polyleaf itself: single rows and batches, one thread each.

    python benchmarks/export.py --out benchmarks/export.md
    python benchmarks/export.py --outputs 10 --batches 1 1000

A model is trained on generated targets and exported with both operators of trees that ONNX has. All of them
get the same rows of float64; the repeats go round all forms. What they say must agree.
"""

from __future__ import annotations

import argparse
import importlib
import io
from collections.abc import Callable
from pathlib import Path
from statistics import median
from time import perf_counter
from typing import Any

import numpy as np
from numpy.typing import NDArray

from report import describe_run
from speed import log, positive, ratio, table_row, write
from works import LEARNING_RATE, synthetic

Array = NDArray[Any]
Predict = Callable[[Array], Array]
FORMS: dict[str, int | None] = {
    "polyleaf": None,
    "onnxruntime, TreeEnsemble": 5,
    "onnxruntime, TreeEnsembleRegressor": 3,
}


def exported(model: Any, ml_opset: int) -> tuple[Predict, int]:
    """Return what predicts, and the bytes of its file."""
    from polyleaf.export import to_onnx

    runtime: Any = importlib.import_module("onnxruntime")
    file = io.BytesIO()
    to_onnx(model, file, ml_opset=ml_opset)
    settings = runtime.SessionOptions()
    settings.intra_op_num_threads = 1
    session = runtime.InferenceSession(file.getvalue(), settings, providers=["CPUExecutionProvider"])
    return lambda rows: session.run(None, {"X": rows})[0], len(file.getvalue())  # type: ignore[no-any-return]


def measure(n_outputs: int, options: argparse.Namespace) -> list[str]:
    """Return the section on so many outputs."""
    from polyleaf import PolyleafRegressor

    n_rows = max(1000, *options.batches)
    make = synthetic("targets", options.training_rows, options.features, n_outputs, test_rows=n_rows)
    split = make(Path())
    rows = np.ascontiguousarray(split.X_test, dtype=np.float64)
    log(f"{n_outputs} outputs: training")
    y = split.y_train if n_outputs > 1 else split.y_train.reshape(len(split.y_train))
    model = PolyleafRegressor(
        n_estimators=options.rounds, max_depth=6, learning_rate=LEARNING_RATE, sketch=None, random_state=0
    ).fit(split.X_train, y)
    model.set_params(n_jobs=1)
    predict: dict[str, Predict] = {}
    size = {}
    for name, ml_opset in FORMS.items():
        predict[name], size[name] = (model.predict, 0) if ml_opset is None else exported(model, ml_opset)
        np.testing.assert_allclose(predict[name](rows), model.predict(rows), rtol=1e-6, atol=1e-9)
    times: dict[tuple[str, int], list[float]] = {(name, n): [] for name in FORMS for n in options.batches}
    for _ in range(options.repeats):
        for n in options.batches:
            parts = [rows[begin : begin + n] for begin in range(0, len(rows) - n + 1, n)][: options.calls]
            for name in FORMS:
                start = perf_counter()
                for part in parts:
                    predict[name](part)
                times[name, n].append((perf_counter() - start) / (n * len(parts)))
    lines = [f"## {n_outputs} outputs", ""]
    heads = [head for n in options.batches for head in (f"{n:,} row{'s' * (n > 1)}", "x")]
    lines.append(table_row(["form", *heads, "file, MB"]))
    lines.append(table_row(["---", *["---:"] * len(heads), "---:"]))
    for name in FORMS:
        cells = [name]
        for n in options.batches:
            took = median(times[name, n])
            cells += [f"{1e6 * took:.3g}", ratio(took, median(times["polyleaf", n]))]
        lines.append(table_row([*cells, f"{size[name] / 1e6:.2f}" if size[name] else "-"]))
        log(lines[-1])
    return lines


def main() -> None:
    options = parse_arguments()
    lines = [
        "# Exported models",
        "",
        *describe_run(["onnx", "onnxruntime"]),
        f"- {options.training_rows:,} x {options.features} targets, {options.rounds} rounds, depth 6; one "
        f"thread each, median of {options.repeats} times up to {options.calls} calls",
        "- Microseconds of a row, in calls with so many rows; x: time / that of polyleaf",
    ]
    for n_outputs in options.outputs:
        lines += ["", *measure(n_outputs, options)]
        write("\n".join(lines) + "\n", options.out)
    print("\n".join(lines))


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    add = parser.add_argument
    add("--outputs", nargs="+", type=positive, default=[1, 10, 100], help="targets (1 10 100)")
    add("--training-rows", type=positive, default=10_000, help="rows of the training (10000)")
    add("--features", type=positive, default=50, help="columns, at least 21 (50)")
    add("--batches", nargs="+", type=positive, default=[1, 100, 10_000], help="rows of a call (1 100 10000)")
    add("--calls", type=positive, default=500, help="of each measurement at most (500)")
    add("--rounds", type=positive, default=100, help="of the model (100)")
    add("--repeats", type=positive, default=5, help="of each measurement (5)")
    add("--out", type=Path, default=None, help="also write the Markdown to this file")
    options = parser.parse_args()
    if options.features < 21:
        parser.error(f"--features {options.features}: the targets hang on 21 columns")
    return options


if __name__ == "__main__":
    main()
