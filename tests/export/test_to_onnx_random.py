"""Random small models of every kind, with random options: onnxruntime agrees with each of them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest

from polyleaf import PolyleafClassifier, PolyleafRegressor

pytest.importorskip("onnx", reason="onnx is not installed")
pytest.importorskip("onnxruntime", reason="onnxruntime is not installed")

from onnx_runs import assert_same

pytestmark = [
    pytest.mark.other_threads("onnxruntime has threads of its own"),
    pytest.mark.cpu_only("an export does not depend on the device"),
]

# Numbers of categories around the words and bits that sets of them are held in.
SIZES = [2, 5, 31, 32, 33, 63, 64, 65, 130, 300]


def random_frame(
    rng: np.random.Generator, n: int, n_numbers: int, kinds: list[tuple[str, int]]
) -> pd.DataFrame:
    """Columns of numbers "n0", ... with ties and gaps, and of categories "c0", ..."""
    columns: dict[str, Any] = {}
    for j in range(n_numbers):
        values = np.round(rng.normal(size=n) * 10.0 ** (j - 1), int(rng.integers(0, 4)))
        values[rng.random(n) < 0.1] = np.nan
        columns[f"n{j}"] = values
    for j, (kind, size) in enumerate(kinds):
        codes = rng.zipf(1.3, n) % size if rng.random() < 0.5 else rng.integers(0, size, n)
        made = {
            "text": np.array([f"v{code}" for code in codes], dtype=object),
            "whole": codes * 3 - 5.0,
            "fraction": codes * 0.1 - 1,
            "flag": (codes % 2).astype(float),
        }
        columns[f"c{j}"] = pd.Series(made[kind]).mask(rng.random(n) < 0.05)
    return pd.DataFrame(columns)


def random_model(rng: np.random.Generator, frame: pd.DataFrame) -> Any:
    """A model fitted on the frame."""
    named = [name for name in frame if name[0] == "c"]
    score = frame.drop(columns=named).sum(axis=1).to_numpy() + rng.normal(size=len(frame))
    for name in named:
        score = score + pd.factorize(frame[name])[0] % 5
    width = int(rng.choice([1, 2, 3, 7, 40]))
    y = score[:, np.newaxis] * rng.normal(size=width) + rng.normal(size=(len(frame), width))
    params: dict[str, Any] = {
        "n_estimators": int(rng.integers(1, 15)),
        "max_depth": int(rng.integers(1, 7)),
        "min_samples_leaf": int(rng.integers(1, 15)),
        "categorical_features": named or None,
        "n_jobs": 1,
        "random_state": 0,
    }
    task = rng.choice(["numbers", "quantiles", "counts", "two", "classes", "labels"])
    if width > 2 and task in ("numbers", "labels"):
        params |= [{}, {"multi_strategy": "one_output_per_tree"}, {"sparse_leaves": 2}][rng.integers(3)]
    if task == "quantiles":
        return PolyleafRegressor(objective="quantile", quantile_levels=[0.1, 0.5, 0.8], **params).fit(
            frame, y
        )
    if task == "counts":
        return PolyleafRegressor(objective="poisson", **params).fit(frame, np.abs(y))
    if task == "two":
        return PolyleafClassifier(**params).fit(frame, y[:, 0] > np.median(y[:, 0]))
    if task == "classes":
        codes = np.digitize(y[:, 0], np.quantile(y[:, 0], [0.3, 0.6]))
        return PolyleafClassifier(**params).fit(frame, codes.astype(str(rng.choice(["int", "float", "str"]))))
    if task == "labels" and width > 1:
        return PolyleafClassifier(**params).fit(frame, (y > np.median(y, axis=0)).astype(int))
    size = 10.0 ** rng.choice([0, 0, 30, -30])
    return PolyleafRegressor(**params).fit(frame, (y if width > 1 else y[:, 0]) * size)


@pytest.mark.parametrize("seed", range(12))
def test_random_models(seed: int) -> None:
    rng = np.random.default_rng(seed)
    for _ in range(20):
        kinds = [
            (str(rng.choice(["text", "whole", "fraction", "flag"])), int(rng.choice(SIZES)))
            for _ in range(rng.integers(0, 3))
        ]
        n_numbers = int(rng.integers(0 if kinds else 1, 4))
        frame = random_frame(rng, int(rng.integers(60, 400)), n_numbers, kinds)
        model = random_model(rng, frame)
        rows = random_frame(rng, 200, n_numbers, kinds)
        options: dict[str, Any] = {}
        if rng.random() < 0.3:
            options["input_type"] = "float32"
            numeric = rows.select_dtypes("float").columns
            rows[numeric] = rows[numeric].astype(np.float32)
        if rng.random() < 0.3 and not model._forest.categorical_features():
            options["ml_opset"] = 3
        exact = not options
        assert_same(
            model, rows, raw_error=1e-12 if exact else 1e-6, error=1e-10 if exact else 1e-5, **options
        )
