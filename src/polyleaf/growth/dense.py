"""The grower by histograms over all outputs, on the CPU."""

from __future__ import annotations

from polyleaf import _core
from polyleaf.growth.contract import Task
from polyleaf.growth.core_task import core_task
from polyleaf.growth.tree import GrownTree, Tree


class DenseGrower:
    """Grows trees on one binned table, from gradients of all rows and outputs.

    Parameters
    ----------
    matrix : BinnedMatrix
        The table.
    settings : GrowSettings
        The same for every tree. Threads and memory affect the time only, never a bit of the result.
    """

    def __init__(self, matrix: _core.BinnedMatrix, settings: _core.GrowSettings) -> None:
        self._matrix = matrix
        self._settings = settings
        self._core = _core.DenseGrower()

    def grow(self, task: Task) -> Tree:
        """Return the tree of a task, and add it to the scores where the task names them."""
        of_core = core_task(self._matrix, task)
        # The score of a full Hessian is no sum over outputs.
        of_core.set_output_gains(task.shares_gains and self._settings.hessian != "exact")
        return GrownTree(self._core.grow(of_core, self._settings))

    def refill(self, task: Task, tree: Tree) -> Tree:
        """Return a tree of the same splits, with leaf values from the gradients of all rows of a task.

        It is added to the scores where the task names them. The task must have no sample; constraints are not
        asked for.
        """
        kept = tree.core if isinstance(tree, GrownTree) else _splits_of(tree)
        return GrownTree(self._core.refill(core_task(self._matrix, task), self._settings, kept))


def _splits_of(tree: Tree) -> _core.KeptTree:
    """Return the splits of a tree that another device has grown."""
    return _core.KeptTree.splits_of(vars(tree), tree.values.shape[1])
