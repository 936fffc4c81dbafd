"""The grower of hashed labels: splits are found on mixtures of labels, leaves hold the labels themselves.

Each round hashes all labels into a few groups, anew, and splits are found on one number a row and group: the
cost of a split does not depend on the number of labels. Leaf values come from the gradients of the labels
that the rows of a leaf have to do with, and of these a leaf keeps those with the most to gain.
"""

from __future__ import annotations

from dataclasses import fields, replace

import numpy as np
import numpy.typing as npt

from polyleaf import _core
from polyleaf.data.inputs import FloatArray
from polyleaf.growth.contract import LeafGradients, SplitGradients, Task
from polyleaf.growth.dense import DenseGrower
from polyleaf.growth.label_sparse import LabelScorePass, SparseLabels
from polyleaf.growth.split_gradients import SplitPlan
from polyleaf.growth.tree import Tree
from polyleaf.params.settings import Settings


class LabelMixtures:
    """The gradients of labels, mixed: filled by the score pass of each round, read by its grower.

    Parameters
    ----------
    labels : SparseLabels
        With their scores.
    n_rows, size, n_threads : int
        Rows of the labels, mixtures a row; threads affect the time only.
    """

    def __init__(self, labels: SparseLabels, n_rows: int, size: int, n_threads: int) -> None:
        self._labels = labels
        self._n_threads = n_threads
        self.values = np.empty((n_rows, size), dtype=np.float32)
        self.gain_weight: FloatArray = np.ones(size)

    def fill(self, plan: SplitPlan, gain_weight: FloatArray, number: int) -> None:
        """Mix the gradients at the present scores by the hash of round `number`."""
        projection = plan.projection(gain_weight, number)
        group = projection.matrix.nonzero()[1].astype(np.int32)  # each label is in one group
        coefficient = projection.matrix.sum(axis=1)
        _core.mix_label_gradients(self._labels.core, group, coefficient, self.values, self._n_threads)
        self.gain_weight = projection.gain_weight


class HashedScorePass(LabelScorePass):
    """The score pass of hashed labels.

    Parameters
    ----------
    labels, n_rows, n_threads
        As of sparse labels.
    mixtures : LabelMixtures
        What splits are found on, filled here.
    plan : SplitPlan
        Draws the hash of each round.
    gain_weight : float64 ndarray of shape (labels,)
        Share of each label in the split score.
    """

    def __init__(
        self,
        labels: SparseLabels,
        n_rows: int,
        n_threads: int,
        mixtures: LabelMixtures,
        plan: SplitPlan,
        gain_weight: FloatArray,
    ) -> None:
        super().__init__(labels, n_rows, n_threads)
        self._mixtures = mixtures
        self._plan = plan
        self._gain_weight = gain_weight

    def gradients(self, number: int) -> None:
        """Fill the mixtures, where the grower finds them."""
        self._mixtures.fill(self._plan, self._gain_weight, number)


class LabelHashedGrower:
    """Grows trees on one binned table, from the mixtures of a round.

    Parameters
    ----------
    matrix : BinnedMatrix
        The table.
    labels : SparseLabels
        What leaf values come from.
    mixtures : LabelMixtures
        What splits are found on.
    splits : GrowSettings
        Of a tree with a value for each mixture.
    run : Settings
        Of leaves that hold labels.
    """

    def __init__(
        self,
        matrix: _core.BinnedMatrix,
        labels: SparseLabels,
        mixtures: LabelMixtures,
        splits: _core.GrowSettings,
        run: Settings,
    ) -> None:
        self._dense = DenseGrower(matrix, splits)
        self._labels = labels
        self._mixtures = mixtures
        self._run = run

    def grow(self, task: Task) -> Tree:
        """Return the tree of a task that has no gradients, but a place for the leaf of each row."""
        mixtures, run = self._mixtures, self._run
        size = mixtures.values.shape[1]
        tree = self._dense.grow(
            replace(
                task,
                leaf_gradients=LeafGradients(mixtures.values, None, np.ones(size)),
                split_gradients=SplitGradients(
                    mixtures.values, None, None, mixtures.gain_weight, np.full(size, np.inf)
                ),
            )
        )
        leaf_of_row = task.destination.leaf_of_row
        assert leaf_of_row is not None
        assert run.sparse_leaves is not None
        rule = _core.LabelLeafRule(run.sparse_leaves, run.reg_lambda, run.reg_alpha, task.learning_rate)
        values, outputs = self._fill(leaf_of_row, len(tree.values), task, rule)
        # What a mixture gains says nothing of an output.
        of_labels = {"values": values, "outputs": outputs, "gain_feature": None, "output_gain": None}
        return Tree(**{one.name: getattr(tree, one.name) for one in fields(Tree)} | of_labels)

    def _fill(
        self, leaf_of_row: npt.NDArray[np.uint32], n_leaves: int, task: Task, rule: _core.LabelLeafRule
    ) -> tuple[npt.NDArray[np.float32], npt.NDArray[np.int32]]:
        """Return the values of the leaves, and their labels."""
        return _core.fill_label_leaves(
            self._labels.core, leaf_of_row, n_leaves, task.sample.rows, task.weight, rule, self._run.n_threads
        )
