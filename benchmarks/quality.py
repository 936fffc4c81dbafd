"""Seconds to quality: how long until a model is as good as the best one LightGBM finds.

    python benchmarks/quality.py --data-dir DIR [--out FILE] [--repeats N] [WORK ...]

LightGBM trains with the paper's hyper-parameters until its test score has not improved for 25 rounds (targets
one by one); what it reached by then is the mark. The time of each system runs from raw arrays to the end of
the round in which it first reaches the mark, scores on the test rows after each round included. polyleaf goes
on until its test loss has not improved for 25 rounds.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from time import perf_counter
from typing import Any

import lightgbm
import numpy as np
from numpy.typing import NDArray

from polyleaf import PolyleafClassifier, PolyleafRegressor
from polyleaf.paper.settings import GBDT_MO, LIGHTGBM, REG_LAMBDA, Growth, growth
from works import WORKS, Split

Array = NDArray[Any]
PATIENCE = 25
INTRODUCTION = f"""\
# Seconds to quality

The mark is the best test score that LightGBM has, with the paper's hyper-parameters, when {PATIENCE} rounds
have brought no better one. Seconds run from raw arrays to the round in which a system first reaches the mark,
scores of the test rows included. Scores are accuracies, of mnist_inpaint RMSEs.

"""
MOST_ROUNDS = 3_000
PAPER_NAME = {"mnist": "mnist", "caltech101": "caltech101", "mnist_inpaint": "mnist_inpainting"}

_FAST = {"softmax_curvature": "abs(p-y)", "learning_rate": 0.3}
SETTINGS: dict[str, dict[str, dict[str, Any]]] = {
    "mnist": {
        "abs(p-y), rate 0.3, 10 % of the rows by gradient, depth 8": {
            **_FAST,
            "sampling_method": "gradient_based",
            "subsample": 0.1,
            "max_depth": 8,
            "max_leaves": 192,
            "max_bins": 8,
            "min_samples_leaf": 5,
        },
    },
    "caltech101": {
        "abs(p-y), rate 0.3, projection to 5, depth 5": {
            **_FAST,
            "sketch": "random_projection",
            "max_depth": 5,
            "max_leaves": 24,
            "max_bins": 32,
            "min_samples_leaf": 16,
        },
    },
    "mnist_inpaint": {},
}


@dataclass(frozen=True)
class Reached:
    """Best score, and seconds until it (or until the mark) was reached; None: it was not."""

    score: float
    seconds: float | None
    rounds: int


def is_better(work: str, score: float, mark: float) -> bool:
    """Whether a score is at least as good as the mark."""
    return score <= mark if WORKS[work].loss == "squared" else score >= mark


def lightgbm_reaches(work: str, split: Split, threads: int) -> Reached:
    """Train LightGBM by the paper's rule."""
    settings = growth(LIGHTGBM, PAPER_NAME[work])
    assert settings is not None
    parameters: dict[str, Any] = {
        "learning_rate": settings.learning_rate,
        "max_depth": settings.max_depth,
        "num_leaves": settings.max_leaves,
        "min_data_in_leaf": settings.min_samples_leaf,
        "max_bin": settings.max_bins,
        "min_gain_to_split": 2 * settings.min_split_gain,
        "lambda_l2": REG_LAMBDA,
        "feature_pre_filter": False,
        "num_threads": threads,
        "verbosity": -1,
    }
    if WORKS[work].loss == "softmax":
        parameters |= {
            "objective": "multiclass",
            "num_class": WORKS[work].n_outputs,
            "metric": "multi_error",
        }
        targets = [(split.y_train, split.y_test)]
    else:
        parameters |= {"objective": "regression", "metric": "rmse"}
        targets = [(split.y_train[:, j], split.y_test[:, j]) for j in range(split.y_train.shape[1])]
    begin = perf_counter()
    data = lightgbm.Dataset(split.X_train, label=targets[0][0], params=parameters, free_raw_data=False)
    test = lightgbm.Dataset(split.X_test, label=targets[0][1], reference=data, free_raw_data=False)
    seconds, rounds, predictions = 0.0, 0, []
    for y_train, y_test in targets:
        data.set_label(np.ascontiguousarray(y_train))
        test.set_label(np.ascontiguousarray(y_test))
        ends: list[float] = []
        model = lightgbm.train(
            parameters,
            data,
            MOST_ROUNDS,
            valid_sets=[test],
            callbacks=[
                lightgbm.early_stopping(PATIENCE, verbose=False),
                lambda _env, ends=ends: ends.append(perf_counter()),
            ],
        )
        # The rounds after the best one are the price of knowing it; they are not counted.
        seconds += ends[model.best_iteration - 1] - begin
        rounds += model.best_iteration
        predictions.append(model.predict(split.X_test, num_threads=threads))
        begin = perf_counter()
    if WORKS[work].loss == "softmax":
        score = float(np.mean(predictions[0].argmax(axis=1) == split.y_test))
    else:
        score = float(np.sqrt(np.mean((np.column_stack(predictions) - split.y_test) ** 2)))
    return Reached(score, seconds, rounds)


def paper_settings(settings: Growth, classes: bool) -> dict[str, Any]:
    """Return the paper's settings of GBDT-MO as polyleaf takes them."""
    of_kind = {"hessian": "diagonal"} if classes else {"scale_targets": False}
    return {
        **of_kind,
        "sketch": None,
        "learning_rate": settings.learning_rate,
        "max_depth": settings.max_depth,
        "max_leaves": settings.max_leaves,
        "min_samples_leaf": settings.min_samples_leaf,
        "colsample_bytree": 1.0,
        "max_bins": settings.max_bins,
        "min_split_gain": settings.min_split_gain,
        "base_score": 0.0,
    }


def polyleaf_reaches(work: str, split: Split, settings: dict[str, Any], mark: float, threads: int) -> Reached:
    """Train polyleaf and see when it reaches the mark."""
    classes = WORKS[work].loss == "softmax"
    metric = "accuracy" if classes else "rmse"
    kind: Callable[..., Any] = PolyleafClassifier if classes else PolyleafRegressor
    ends: list[float] = []

    def clock(_y: Array, _prediction: Array) -> float:
        ends.append(perf_counter())
        return 0.0

    model = kind(
        n_estimators=MOST_ROUNDS,
        early_stopping_rounds=PATIENCE,
        eval_metric=[clock, metric, *(["cross_entropy"] if classes else [])],
        random_state=0,
        n_jobs=threads,
        **settings,
    )
    begin = perf_counter()
    model.fit(split.X_train, split.y_train, eval_set=[(split.X_test, split.y_test)])
    scores = model.evals_result_["validation_0"][metric]
    best = max(scores) if classes else min(scores)
    first = next((i for i, score in enumerate(scores) if is_better(work, score, mark)), None)
    return Reached(
        best, None if first is None else ends[first] - begin, (len(scores) if first is None else first + 1)
    )


def compare(work: str, folder: Path, threads: int, repeats: int) -> list[str]:
    """Return the lines of one work's table."""
    file = WORKS[work].file
    assert file is not None
    split = WORKS[work].make(folder / file)
    settings = growth(GBDT_MO, PAPER_NAME[work])
    assert settings is not None
    variants = {
        "the paper's GBDT-MO": paper_settings(settings, WORKS[work].loss == "softmax"),
        **SETTINGS[work],
    }
    lines = [f"## {work}", "", "| system | best score | seconds to the mark | rounds | LightGBM / polyleaf |"]
    lines.append("| --- | ---: | ---: | ---: | ---: |")
    theirs = [lightgbm_reaches(work, split, threads) for _ in range(repeats)]
    mark = theirs[0].score
    their_seconds = median(one.seconds or 0.0 for one in theirs)
    lines.append(
        f"| LightGBM, the paper's settings | {mark:.5f} | {their_seconds:.1f} | {theirs[0].rounds} | |"
    )
    for name, chosen in variants.items():
        runs = [polyleaf_reaches(work, split, chosen, mark, threads) for _ in range(repeats)]
        times = [one.seconds for one in runs if one.seconds is not None]
        reached = f"{median(times):.1f}" if times else "not reached"
        ratio = f"{their_seconds / median(times):.1f}x" if times else ""
        lines.append(f"| polyleaf: {name} | {runs[0].score:.5f} | {reached} | {runs[0].rounds} | {ratio} |")
    return lines


def main() -> None:
    """Run what is asked for and print the tables."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("works", metavar="WORK", nargs="*", choices=[*PAPER_NAME, []], help="default: all")
    parser.add_argument("--data-dir", type=Path, required=True)
    parser.add_argument("--out", type=Path)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--repeats", type=int, default=1)
    options = parser.parse_args()
    text = INTRODUCTION
    for work in options.works or PAPER_NAME:
        lines = compare(work, options.data_dir, options.threads, options.repeats)
        print("\n".join(lines) + "\n", flush=True)
        text += "\n".join(lines) + "\n\n"
        if options.out:
            options.out.write_text(text)


if __name__ == "__main__":
    main()
