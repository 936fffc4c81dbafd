"""From the trees of a run to its forest."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from polyleaf.data.inputs import FloatArray
from polyleaf.growth.tree import Tree
from polyleaf.model.forest import Forest

RoundsDone = list[list[tuple[Tree, int]]]  # the trees of each round, with their first outputs


@dataclass(frozen=True)
class ForestMaker:
    """What the forests of a run have in common; it travels to where trees are put together.

    Attributes
    ----------
    n_features, trees_per_round : int
        Of the run.
    base_score, unit : float64 ndarray of shape (outputs,)
        Scores before the first round; what leaf values are multiples of.
    gain_weight : float64 ndarray of shape (outputs,)
        Of an output's gain in the split score.
    """

    n_features: int
    trees_per_round: int
    base_score: FloatArray
    unit: FloatArray
    gain_weight: FloatArray

    def forest_of(self, trees: Sequence[tuple[Tree, int]]) -> Forest:
        """Return the forest of some trees of this run."""
        return Forest.from_trees(
            trees,
            n_features=self.n_features,
            trees_per_round=self.trees_per_round,
            base_score=self.base_score,
            unit=self.unit,
        )

    def whole(self, initial: Forest | None, rounds: RoundsDone, best: int | None = None) -> Forest:
        """Return the trees of all rounds, with each output's share of the gains up to round `best`.

        The shares are left out where the forest began with trees of another run.
        """
        trees = [tree for trees_of_round in rounds for tree in trees_of_round]
        grown = self.forest_of(trees)
        if initial is not None:
            return initial.followed_by(grown)
        n_rounds = grown.n_rounds if best is None else best + 1
        self._share_gains(grown, trees[: n_rounds * grown.trees_per_round])
        return grown

    def _share_gains(self, forest: Forest, trees: Sequence[tuple[Tree, int]]) -> None:
        """Tell the forest what each output gains by each feature in these trees, where they know it."""
        features = [tree.gain_feature for tree, _ in trees if tree.gain_feature is not None]
        gains = [tree.output_gain for tree, _ in trees if tree.output_gain is not None]
        if len(features) < len(trees) or not trees:
            return
        used, row = np.unique(np.concatenate(features), return_inverse=True)
        total = np.zeros((len(used), len(self.base_score)))
        if self.trees_per_round == 1:
            np.add.at(total, row, np.concatenate(gains))
        else:
            output = np.repeat([first for _, first in trees], [len(of_tree) for of_tree in features])
            np.add.at(total, (row, output), np.concatenate(gains)[:, 0])
        largest = np.finfo(np.float32).max
        total = np.clip(np.nan_to_num(total * self.gain_weight), -largest, largest)
        forest.gain_feature = used
        forest.output_gain = total.astype(np.float32).ravel()
