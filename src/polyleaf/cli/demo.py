"""The guided tour behind ``polyleaf demo``: two small problems, joint trees against one tree per output."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from time import perf_counter

import numpy as np
import numpy.typing as npt
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split

from polyleaf.estimators.classifier import PolyleafClassifier
from polyleaf.estimators.loading import load_model
from polyleaf.estimators.regressor import PolyleafRegressor
from polyleaf.paper.synthetic import friedman1

_STRATEGIES = {"multi_output_tree": "joint trees", "one_output_per_tree": "one tree per output"}
_PATIENCE = 25


@dataclass(frozen=True)
class Problem:
    """A table to learn, and how its test score is called."""

    title: str
    score_name: str
    data: Callable[[], list[npt.NDArray[np.generic]]]
    estimator: type[PolyleafClassifier] | type[PolyleafRegressor]
    score: Callable[[npt.NDArray[np.generic], npt.NDArray[np.generic]], float]


def _digits() -> list[npt.NDArray[np.generic]]:
    x, y = load_digits(return_X_y=True)
    return list(train_test_split(x, y, test_size=0.3, random_state=0, stratify=y))


def _friedman1() -> list[npt.NDArray[np.generic]]:
    (x_train, y_train), (x_test, y_test) = friedman1(10_000, seed=0), friedman1(10_000, seed=1)
    return [x_train, x_test, y_train, y_test]


def _accuracy(y: npt.NDArray[np.generic], prediction: npt.NDArray[np.generic]) -> float:
    return float(np.mean(y == prediction))


def _rmse(y: npt.NDArray[np.generic], prediction: npt.NDArray[np.generic]) -> float:
    difference = y.astype(np.float64) - prediction.astype(np.float64)
    return float(np.sqrt(np.mean(difference**2)))


PROBLEMS = (
    Problem("digits (10 classes)", "accuracy", _digits, PolyleafClassifier, _accuracy),
    Problem("friedman1 (5 targets)", "RMSE", _friedman1, PolyleafRegressor, _rmse),
)


def run(model_path: Path | None = None) -> None:
    """Train both problems both ways, print a table, and take one model through a file.

    Parameters
    ----------
    model_path : Path or None
        Where the classifier is saved; None: in a temporary folder.
    """
    if model_path is not None and not model_path.absolute().parent.is_dir():
        raise FileNotFoundError(f"there is no folder {model_path.absolute().parent} to save the model in")
    rows = [("problem", "trees", "test score", "rounds", "seconds")]
    fitted: list[tuple[PolyleafClassifier | PolyleafRegressor, npt.NDArray[np.generic]]] = []
    for problem in PROBLEMS:
        x_train, x_test, y_train, y_test = problem.data()
        # Early stopping looks at rows of its own, so that the test score stays honest.
        x_fit, x_stop, y_fit, y_stop = train_test_split(x_train, y_train, test_size=0.2, random_state=0)
        for strategy, name in _STRATEGIES.items():
            print(f"{problem.title}, {name}", flush=True)
            model = problem.estimator(
                n_estimators=400,
                max_depth=5,
                multi_strategy=strategy,
                early_stopping_rounds=_PATIENCE,
                verbose=1,
            )
            begin = perf_counter()
            model.fit(x_fit, y_fit, eval_set=[(x_stop, y_stop)])
            seconds = perf_counter() - begin
            score = problem.score(y_test, model.predict(x_test))
            rows.append(
                (
                    problem.title,
                    name,
                    f"{score:.4f} {problem.score_name}",
                    str(model.n_estimators_),
                    f"{seconds:.2f}",
                )
            )
            fitted.append((model, x_test))
    print()
    print(_table(rows))
    print()
    with TemporaryDirectory() as folder:
        _through_a_file(*fitted[0], model_path or Path(folder) / "digits.polyleaf")


def _through_a_file(
    model: PolyleafClassifier | PolyleafRegressor, x: npt.NDArray[np.generic], path: Path
) -> None:
    model.save_model(path)
    loaded = load_model(path)
    assert isinstance(loaded, PolyleafClassifier)
    same = np.array_equal(model.predict_proba(x), loaded.predict_proba(x))
    print(f"Saved the first model to {path.name} ({path.stat().st_size / 1024:.0f} KiB) and loaded it back:")
    print(f"  first five test rows: {loaded.predict(x[:5]).tolist()}")
    print(f"  probabilities of all {len(x)} test rows equal bit for bit: {same}")
    if not same:
        raise SystemExit("the loaded model predicts something else")


def _table(rows: Sequence[tuple[str, ...]]) -> str:
    """Return the rows in aligned columns, a rule under the first."""
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    lines = [
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows
    ]
    lines.insert(1, "  ".join("-" * width for width in widths))
    return "\n".join(lines)
