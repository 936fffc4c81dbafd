"""The model file of a command."""

from __future__ import annotations

import os
from typing import Any

from polyleaf.cli.failures import naming
from polyleaf.estimators.loading import load_model


def open_model(path: str) -> Any:
    """Return the fitted estimator of a file, or raise naming the file."""
    with naming(path):
        return load_model(path)


def feature_labels(model: Any) -> list[str]:
    """Return what the features of a model are called: by their names, or by their numbers."""
    return [str(name) for name in getattr(model, "feature_names_in_", range(model.n_features_in_))]


def file_size(path: str) -> str:
    """Return the size of a file in words."""
    return f"{max(1, round(os.path.getsize(path) / 1024)):,} KiB"
