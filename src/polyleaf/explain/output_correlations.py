"""Which outputs go together: in the leaves of the trees, and in what the trees miss."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from polyleaf.data.inputs import FloatArray
from polyleaf.explain.path_means import leaf_values
from polyleaf.inspect.observed_outputs import ObservedOutput
from polyleaf.model.forest import Forest


def leaf_correlations(forest: Forest, outputs: npt.NDArray[np.intp]) -> FloatArray:
    """Return the correlations of leaf values over all leaves, by their cover; NaN where an output has none.

    What a sparse leaf does not hold is 0, which is what it adds.
    """
    n_outputs = len(outputs)
    total, sums, products = 0.0, np.zeros(n_outputs), np.zeros((n_outputs, n_outputs))
    for tree in range(forest.n_trees):
        nodes = np.arange(forest.node_begin[tree], forest.node_begin[tree + 1])
        leaves = nodes[forest.left[nodes] < 0]
        columns, held = leaf_values(forest, tree, leaves, outputs)
        values = np.zeros((len(leaves), n_outputs))
        values[:, columns] = held if isinstance(held, np.ndarray) else held.toarray()
        cover = forest.cover[leaves].astype(np.float64)
        total += float(cover.sum())
        sums += cover @ values
        products += values.T @ (values * cover[:, np.newaxis])
    if total == 0:
        return np.full((n_outputs, n_outputs), np.nan)
    means = sums / total
    covariance = products / total - np.outer(means, means)
    variance = np.diag(covariance)
    return _correlations(covariance, variance[:, np.newaxis] * np.ones(n_outputs), np.diag(products) / total)


def residual_correlations(outputs: Sequence[ObservedOutput]) -> FloatArray:
    """Return the correlations of residuals, each pair over the rows in which both were observed."""
    residual = np.column_stack([one.truth - one.prediction for one in outputs])
    seen = np.column_stack(
        [np.ones(len(residual)) if one.weight is None else (one.weight > 0).astype(float) for one in outputs]
    )
    residual = np.where(seen > 0, residual, 0.0)
    # Nearly as large as they are, sums of squares would leave no digits to the differences between them.
    residual -= seen * (residual.sum(axis=0) / np.maximum(seen.sum(axis=0), 1.0))
    pairs = np.maximum(seen.T @ seen, 1.0)
    means = (residual.T @ seen) / pairs
    squares = (residual**2).T @ seen / pairs
    covariance = residual.T @ residual / pairs - means * means.T
    return _correlations(covariance, squares - means**2, np.diag(squares))


def _correlations(covariance: FloatArray, variance: FloatArray, squares: FloatArray) -> FloatArray:
    """Return covariances over deviations, each variance as seen in the rows of a pair; NaN where one is 0."""
    varies = variance > 1e-12 * squares[:, np.newaxis]
    both = varies & varies.T
    scale = np.sqrt(np.where(both, variance * variance.T, 1.0))
    return np.where(both, np.clip(covariance / scale, -1.0, 1.0), np.nan)
