"""A model does not depend on the processor that trained it: every instruction set gives the same bits.

Kernels have a version for each width of a row, kind of Hessian and width of a code; the sizes here meet all
of them.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from pairs import FEATURES, KINDS, case_of, fitted
from polyleaf import PolyleafClassifier, PolyleafRegressor, _core
from same_forest import assert_same_bits

pytestmark = pytest.mark.cpu_only("the kernels of the CPU")

SMALL = {"n_estimators": 2, "max_depth": 4, "min_samples_leaf": 3, "random_state": 0, "n_jobs": 1}
# Outputs whose rows take 8, 16, 24 and 32 channels or several tiles, and whole or broken vectors.
WIDTHS = (1, 2, 3, 4, 5, 7, 8, 10, 14, 15, 16, 17, 23, 31, 32, 40)


@pytest.fixture
def instruction_sets() -> Iterator[list[str]]:
    """The names of the sets this machine has; the one in use comes back afterwards."""
    before = _core.kernels()
    yield [name for name in ("baseline", "avx2", "avx512") if _core.select_kernels(name)]
    assert _core.select_kernels(before)


def assert_same_models(instruction_sets: list[str], fit: Any) -> None:
    models = []
    for name in instruction_sets:
        assert _core.select_kernels(name)
        models.append(fit())
    for model in models[1:]:
        assert_same_bits(models[0], model)


@pytest.mark.parametrize(
    ("kind", "feature"),
    [(kind, None) for kind in KINDS] + [(kind, name) for name, one in FEATURES.items() for kind in one.kinds],
)
def test_whatever_is_asked_for(instruction_sets: list[str], kind: str, feature: str | None) -> None:
    case = case_of(kind, *([] if feature is None else [feature]))
    case.params["n_estimators"] = 4
    if not (kind == "classes" and feature == "monotone"):  # which is refused
        assert_same_models(instruction_sets, lambda: fitted(case))


def table(n_rows: int, n_values: int) -> Any:
    """Columns of `n_values` values, of few, of zeros for the most part, and with gaps."""
    rng = np.random.default_rng(n_rows)
    X = rng.integers(0, n_values, (n_rows, 6)).astype(np.float64)
    X[:, 1] %= 5
    X[:, 2] *= rng.random(n_rows) < 0.2
    X[rng.random(n_rows) < 0.3, 3] = np.nan
    return X


def scores_of(X: Any, n_outputs: int) -> Any:
    rng = np.random.default_rng(n_outputs)
    columns = np.nan_to_num(X / np.nanmax(X, axis=0))
    signal = np.sin(4 * columns @ rng.normal(size=(X.shape[1], n_outputs)))
    return signal + 0.1 * rng.normal(size=signal.shape)


LOSSES: dict[str, dict[str, Any]] = {
    "squared": {},
    "weighted": {},  # one Hessian for all outputs: the weight of a row
    "labels": {"hessian": "diagonal"},
    "shared labels": {"hessian": "shared"},
    "classes": {"hessian": "diagonal"},
    "shared classes": {"hessian": "shared"},
}


@pytest.mark.parametrize("wide", [False, True], ids=["codes of 8 bits", "codes of 16 bits"])
@pytest.mark.parametrize("loss", LOSSES)
def test_every_width_of_a_row(instruction_sets: list[str], loss: str, wide: bool) -> None:
    """All features at each node, and some of them."""
    X = table(500, 400 if wide else 30)
    weight = np.random.default_rng(0).uniform(0.5, 2.0, len(X)) if loss == "weighted" else None
    for n_outputs in WIDTHS:
        scores = scores_of(X, n_outputs)
        if loss in ("squared", "weighted"):
            make, y = PolyleafRegressor, scores
        elif "labels" in loss:
            make, y = PolyleafClassifier, np.squeeze(scores > 0).astype(int)
        else:
            make, y = PolyleafClassifier, np.c_[scores, -scores.sum(axis=1)].argmax(axis=1)
        for share in (1.0, 0.5):
            params = SMALL | LOSSES[loss] | {"max_bins": 400 if wide else 255, "colsample_bynode": share}
            assert_same_models(instruction_sets, lambda: make(**params).fit(X, y, weight))  # noqa: B023


@pytest.mark.parametrize("size", [1, 4, 5, 8, 9, 13, 18])
@pytest.mark.parametrize("sketch", ["random_projection", "random_sampling", "top_outputs"])
def test_every_size_of_a_sketch(instruction_sets: list[str], sketch: str, size: int) -> None:
    X = table(300, 30)
    scores = scores_of(X, 37)
    params = SMALL | {"sketch": sketch, "sketch_size": size}
    assert_same_models(instruction_sets, lambda: PolyleafRegressor(**params).fit(X, scores))
    assert_same_models(instruction_sets, lambda: PolyleafClassifier(**params).fit(X, scores.argmax(axis=1)))


@pytest.mark.parametrize("wide", [False, True], ids=["codes of 8 bits", "codes of 16 bits"])
@pytest.mark.parametrize("share", [1.0, 0.5], ids=["all features", "some features"])
def test_packed_sums(instruction_sets: list[str], share: float, wide: bool) -> None:
    """So many rows, and outputs that take so many channels, that three of them share a number."""
    X = table(8200, 400 if wide else 30)
    scores = scores_of(X, 10)
    params = SMALL | {"max_bins": 400 if wide else 255, "colsample_bynode": share}
    assert_same_models(instruction_sets, lambda: PolyleafClassifier(**params).fit(X, scores.argmax(axis=1)))
