"""What the tests of imported models share: tables, the files that are kept, and what must be the same."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

FILES = Path(__file__).parent / "files"
KNOWN: dict[str, Any] = json.loads((FILES / "known.json").read_text())


def table(n_rows: int, seed: int = 0) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]:
    """A table with gaps, and three targets."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n_rows, 4))
    X[rng.random(X.shape) < 0.1] = np.nan
    Z = np.nan_to_num(X)
    Y = np.column_stack([Z[:, 0] + Z[:, 1] * Z[:, 2], Z[:, 1] - Z[:, 3] ** 2, np.sin(Z[:, 2])])
    return X, Y


def known_rows(name: str) -> Any:
    """The rows of a kept model whose predictions are known: an array, or a frame where there are words."""
    rows = KNOWN[name]["rows"]
    if any(isinstance(cell, str) for row in rows for cell in row):
        import pandas as pd

        frame = pd.DataFrame(rows, columns=["word", "number", "plain"])
        return frame.astype({"word": "category", "number": "category"})
    if name == "vector":
        import pandas as pd

        return pd.DataFrame(rows, columns=["a", "b", "c", "d"], dtype=float)
    return np.array(rows, dtype=float)


def assert_same_leaves(theirs: Any, ours: Any) -> None:
    """Rows are together in a leaf there where they are here, in every tree; leaves may have other numbers."""
    theirs, ours = (np.asarray(one).reshape(len(one), -1) for one in (theirs, ours))
    assert theirs.shape == ours.shape
    for tree in range(theirs.shape[1]):
        pairs = set(zip(theirs[:, tree].tolist(), ours[:, tree].tolist(), strict=True))
        assert len({one for one, _ in pairs}) == len(pairs) == len({one for _, one in pairs}), tree


def contributions(model: Any, X: Any) -> tuple[Any, Any]:
    """Shapley values of shape (rows, outputs, features), and the expected raw scores."""
    values = np.asarray(model.shap_values(X))
    values = values.reshape(len(values), model.n_features_in_, -1)
    return values.transpose(0, 2, 1), np.atleast_1d(model.expected_value_)


def raw_scores(model: Any, X: Any) -> Any:
    """Raw scores of shape (rows, outputs): the sum of what explains them."""
    values, expected = contributions(model, X)
    return values.sum(axis=2) + expected


def rounding(model: Any) -> float:
    """What sums in float32 may differ by: half a unit of the last place for each addition.

    Every partial sum is at most the sum of the largest values of the trees.
    """
    forest = model._forest
    nodes = zip(forest.node_begin[:-1], forest.node_begin[1:], strict=True)
    largest = np.abs(forest.base_score).max()
    for (begin, end), width in zip(nodes, forest.tree_width, strict=True):
        first = forest.value_begin[begin:end]
        leaves = [forest.values[at : at + width] for at in first[first >= 0]]
        largest += float(np.abs(leaves).max())
    return float((forest.n_trees + 2) * largest * 2.0**-24)
