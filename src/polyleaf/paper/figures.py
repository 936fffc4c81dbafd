"""The report's figures: training curves and seconds per round."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import numpy.typing as npt
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, MaxNLocator

from polyleaf.paper.results import Results
from polyleaf.paper.settings import (
    CURVE_DATA,
    GBDT_MO,
    GBDT_SO,
    METHODS,
    SYNTHETIC_DATA,
    TIMED_DATA,
    TITLES,
)
from polyleaf.paper.store import Record

# Told apart by those who do not tell red from green, and in grey.
COLOURS = {
    "XGBoost": "#7f7f7f",
    "LightGBM": "#56b4e9",
    "GBDT-sparse": "#cc79a7",
    "GBDT-SO": "#e69f00",
    "GBDT-MO": "#0072b2",
}
_CURVE_METHODS = (GBDT_SO, GBDT_MO)


def synthetic_curves(results: Results, path: Path) -> bool:
    """Draw RMSE over rounds on the synthetic problems: training rows solid, test rows dashed."""
    shown = [data for data in SYNTHETIC_DATA if _curves(results, "curves", data)]
    if not shown:
        return False
    figure = Figure(figsize=(5.2 * len(shown), 4), layout="constrained")
    for axes, data in zip(_row_of_axes(figure, len(shown)), shown, strict=True):
        curves = _curves(results, "curves", data)
        for method, record in curves.items():
            colour = COLOURS[method]
            _line(axes, record.result["train_curve"], f"{method}, training", colour, dashed=False)
            _line(axes, record.result["test_curve"], f"{method}, test", colour, dashed=True)
        details = next(iter(curves.values())).run.details
        axes.set_title(f"{TITLES[data]} (depth {details['max_depth']}, rate {details['learning_rate']})")
        axes.set_yscale("log")
        axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
        axes.yaxis.set_minor_formatter(FuncFormatter(_sparse_labels))
        _count_rounds(axes)
        axes.set_ylabel("RMSE (log scale)")
        axes.grid(alpha=0.3, which="both")
        axes.legend()
    figure.savefig(path, dpi=150)
    return True


def real_curves(results: Results, path: Path) -> bool:
    """Draw training cross entropy (solid) and test accuracy (dashed) over rounds on MNIST and Caltech101."""
    shown = [data for data in CURVE_DATA if _curves(results, "performance", data)]
    if not shown:
        return False
    figure = Figure(figsize=(5.8 * len(shown), 4.8), layout="constrained")
    for axes, data in zip(_row_of_axes(figure, len(shown)), shown, strict=True):
        right = axes.twinx()
        accuracies = []
        for method, record in _curves(results, "performance", data).items():
            details, colour = record.run.details, COLOURS[method]
            name = f"{method} (depth {details['max_depth']}, rate {details['learning_rate']})"
            accuracies.append(100 * np.asarray(record.result["test_curve"]))
            _line(axes, record.result["train_curve"], f"{name}, cross entropy", colour, dashed=False)
            _line(right, accuracies[-1], f"{name}, accuracy", colour, dashed=True)
        # The first rounds would leave no room for the differences at the end.
        low = min(np.quantile(values, 0.1) for values in accuracies)
        high = max(values.max() for values in accuracies)
        room = 0.05 * max(high - low, 1e-3)
        right.set_ylim(low - room, high + room)
        axes.set_title(TITLES[data])
        _count_rounds(axes)
        axes.set_ylabel("training cross entropy (solid)")
        right.set_ylabel("test accuracy, % (dashed)")
        axes.grid(alpha=0.3)
        lines = [*axes.get_lines(), *right.get_lines()]
        labels = [str(line.get_label()) for line in lines]
        axes.legend(lines, labels, loc="upper center", bbox_to_anchor=(0.5, -0.14), fontsize="small")
    figure.savefig(path, dpi=150)
    return True


def time_bars(results: Results, path: Path) -> bool:
    """Draw seconds per training round as bars on a log scale."""
    shown = [data for data in TIMED_DATA if results.of("time", data, GBDT_MO)]
    if not shown:
        return False
    figure = Figure(figsize=(2.2 + 2.2 * len(shown), 4.4), layout="constrained")
    axes = figure.subplots()
    width = 0.8 / len(METHODS)
    for number, method in enumerate(METHODS):
        means = [results.summary("time", data, method, "train_seconds") for data in shown]
        places = [i + (number - (len(METHODS) - 1) / 2) * width for i, one in enumerate(means) if one]
        heights = [one.mean for one in means if one]
        errors = [one.deviation for one in means if one]
        bars = axes.bar(places, heights, width, yerr=errors, label=method, color=COLOURS[method], capsize=2)
        axes.bar_label(bars, [f"{height:.2g}" for height in heights], fontsize=7, padding=2)
    axes.set_yscale("log")
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    axes.margins(y=0.12)
    axes.set_xticks(range(len(shown)), [TITLES[data].replace(" (", "\n(") for data in shown])
    axes.set_ylabel("seconds per boosting round (log scale)")
    axes.grid(alpha=0.3, axis="y")
    axes.set_axisbelow(True)
    axes.legend(ncols=len(METHODS), loc="upper center", bbox_to_anchor=(0.5, 1.12), fontsize="small")
    figure.savefig(path, dpi=150)
    return True


def _curves(results: Results, experiment: str, data: str) -> dict[str, Record]:
    """Return the record of the first seed of each method that kept its curves."""
    first = {method: results.of(experiment, data, method).get(0) for method in _CURVE_METHODS}
    return {
        method: record
        for method, record in first.items()
        if record is not None and len(record.result["test_curve"]) > 0
    }


def _row_of_axes(figure: Figure, count: int) -> list[Axes]:
    return list(figure.subplots(1, count, squeeze=False)[0])


def _count_rounds(axes: Axes) -> None:
    axes.set_xlabel("boosting round")
    axes.xaxis.set_major_locator(MaxNLocator(integer=True))


def _line(axes: Axes, values: npt.ArrayLike, label: str, colour: str, *, dashed: bool) -> None:
    heights = np.asarray(values)
    rounds = np.arange(1, len(heights) + 1)
    axes.plot(rounds, heights, color=colour, linestyle="--" if dashed else "-", label=label, linewidth=1.4)


def _sparse_labels(value: float, _position: object) -> str:
    """Label 2 and 5 between the powers of ten; all nine would run into each other."""
    digit = round(value / 10 ** np.floor(np.log10(value) + 1e-9))
    return f"{value:g}" if digit in (2, 5) else ""
