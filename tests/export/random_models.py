"""Small models with random targets, options and sizes."""

from __future__ import annotations

from typing import Any

import numpy as np
from exported_models import FRAME, OF_FRAME, SMALL, TARGETS, X

from polyleaf import PolyleafClassifier, PolyleafRegressor


def random_model(rng: np.random.Generator) -> Any:
    """Return a small model with random targets, options and sizes."""
    n = len(X)
    params: dict[str, Any] = SMALL | {
        "n_estimators": int(rng.integers(1, 6)),
        "max_depth": int(rng.integers(1, 6)),
        "learning_rate": float(rng.choice([0.1, 1.0])),
        "subsample": float(rng.choice([0.5, 1.0])),
        "max_bins": int(rng.choice([2, 16, 255])),
        "random_state": int(rng.integers(1000)),
    }
    width = int(rng.integers(1, 8))
    coloured = bool(rng.random() < 0.4)
    table: Any = FRAME if coloured else X
    if coloured:
        params["categorical_features"] = "auto"
    form = rng.choice(["whole", "trees", "sparse"])
    if form == "trees":
        params["multi_strategy"] = "one_output_per_tree"
    elif form == "sparse":
        params["sparse_leaves"] = 1
    targets = (
        rng.normal(size=(n, width)) * 10.0 ** rng.integers(-3, 4, width)
        + (OF_FRAME if coloured else TARGETS[:, 0])[:, np.newaxis]
    )
    kind = rng.choice(["regression", "classes", "labels"])
    if kind == "regression":
        return PolyleafRegressor(**params).fit(table, targets)
    if kind == "classes" or width == 1:
        return PolyleafClassifier(**params).fit(table, rng.integers(0, max(3, width), n))
    return PolyleafClassifier(**params).fit(table, (targets > np.median(targets, axis=0)).astype(int))
