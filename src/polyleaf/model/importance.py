"""How much the trees of a forest use each feature."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from polyleaf.data.inputs import FloatArray
from polyleaf.model.forest import Forest
from polyleaf.params.combinations import refused
from polyleaf.params.situation import Situation


def importance(forest: Forest, kind: str, n_rounds: int | None = None) -> FloatArray:
    """Return, per feature, the sum of the gains or covers of its splits, or their number.

    Parameters
    ----------
    forest : Forest
        The trees.
    kind : {"gain", "cover", "split"}
        What is added up.
    n_rounds : int or None, default=None
        Rounds that count; None: all.

    Returns
    -------
    float64 ndarray of shape (features,)
    """
    inner = _splits(forest, n_rounds)
    return _summed(forest.feature[inner], _weights(forest, kind, inner), forest.n_features)


def output_importance(forest: Forest, kind: str, n_rounds: int | None = None) -> FloatArray:
    """Return the same per feature and output; "gain" is that of the rounds up to the best one.

    Every split of a tree of all outputs counts for each of them with its whole cover, or as one split.

    Raises
    ------
    ValueError
        When the outputs' shares of the gain are not known.
    """
    shape = (forest.n_features, forest.n_outputs)
    if kind == "gain":
        if forest.gain_feature is None or forest.output_gain is None:
            raise refused(Situation(asked=frozenset({"gain per output"}), output_gains=False))
        gains = np.zeros(shape)
        gains[forest.gain_feature] = forest.output_gain.reshape(-1, forest.n_outputs)
        return gains
    if forest.trees_per_round == 1:
        return np.repeat(importance(forest, kind, n_rounds)[:, np.newaxis], forest.n_outputs, axis=1)
    inner = _splits(forest, n_rounds)
    output = np.repeat(forest.tree_output, np.diff(forest.node_begin))[inner]
    cell = forest.feature[inner].astype(np.int64) * forest.n_outputs + output
    return _summed(cell, _weights(forest, kind, inner), shape[0] * shape[1]).reshape(shape)


def _splits(forest: Forest, n_rounds: int | None) -> npt.NDArray[np.bool_]:
    """Return which nodes are splits of the first rounds."""
    inner: npt.NDArray[np.bool_] = forest.left >= 0
    inner[forest.node_begin[forest.trees_up_to(n_rounds)] :] = False
    return inner


def _weights(forest: Forest, kind: str, nodes: npt.NDArray[np.bool_]) -> FloatArray | None:
    """Return what each of these nodes counts for; None: one."""
    return None if kind == "split" else {"gain": forest.gain, "cover": forest.cover}[kind][nodes]


def _summed(places: npt.NDArray[np.integer], weights: FloatArray | None, n_places: int) -> FloatArray:
    return np.bincount(places, weights=weights, minlength=n_places).astype(np.float64)
