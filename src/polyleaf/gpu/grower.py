"""One tree from one round's gradients, on the device."""

from __future__ import annotations

from typing import Any

import numpy as np

from polyleaf import _core
from polyleaf.data.inputs import FloatArray
from polyleaf.gpu.kept import Kept
from polyleaf.gpu.leaves import LeafFiller, Leaves
from polyleaf.gpu.levels import LevelGrower
from polyleaf.gpu.matrix import DeviceMatrix
from polyleaf.gpu.memory import Layout, Shape, plan_histograms
from polyleaf.gpu.quantize import Quantizer, check_problems, layout_of
from polyleaf.gpu.runtime import cupy, free_memory
from polyleaf.gpu.structs import Record
from polyleaf.gpu.sums import WeightedRows, constant_grids
from polyleaf.growth.contract import Task
from polyleaf.growth.tree import Tree


def shape_of(
    matrix_shape: tuple[int, int, int], n_outputs: int, layout: Layout, settings: _core.GrowSettings
) -> Shape:
    """Return the size of the problem of trees of some outputs; of the table: rows, features and bins."""
    return Shape(
        *matrix_shape,
        n_outputs=n_outputs,
        layout=layout,
        max_depth=settings.max_depth,
        max_leaves=settings.max_leaves,
        min_samples_leaf=settings.min_samples_leaf,
    )


class GpuGrower:
    """Grows trees on one binned table, from gradients of all rows and outputs on the device.

    Parameters
    ----------
    matrix : DeviceMatrix
        The table.
    settings : GrowSettings
        The same for every tree.
    memory_bytes : int or None
        Device memory to plan with; None: what is free.
    """

    def __init__(
        self, matrix: DeviceMatrix, settings: _core.GrowSettings, memory_bytes: int | None = None
    ) -> None:
        self._matrix = matrix
        self._settings = settings
        self._memory_bytes = memory_bytes
        self._quantizer = Quantizer(settings.histogram_precision == "packed")
        self._filler = LeafFiller(settings)
        self._unit, self._alpha_units, self._constant_grids = Kept(), Kept(), Kept()
        self._levels: tuple[Layout, LevelGrower] | None = None
        self._weight: tuple[FloatArray | None, Any] = (None, None)
        self._weight_grid = cupy().asarray(constant_grids(1.0, matrix.n_rows, 1))
        self._least_weight = 1.0  # of a row
        self._plain_sums = False  # of leaves, where weights differ too much (quantize/bounds.hpp)

    def grow(self, task: Task) -> Tree:
        """Return the tree of a task, and add it to the scores where the task names them.

        Gradients and scores are CuPy arrays. What the device cannot do was refused before.
        """
        gradients, splits, sample = task.leaf_gradients, task.split_gradients, task.sample
        assert gradients is not None
        assert splits is not None
        raw, leaf_of_row = task.destination.raw, task.destination.leaf_of_row
        assert (gradients.label, gradients.renewal, task.monotone, leaf_of_row) == (None,) * 4
        assert (task.features.level_share, task.features.node_share, task.features.groups) == (1, 1, None)
        weight = self._weight_on_device(task.weight)
        split_weight = weight if sample.weight is None else cupy().asarray(sample.weight)
        layout = layout_of(splits, task.split_weight, self._settings.min_child_weight)
        levels = self._level_grower(layout, gradients.gradient.shape[1])
        levels.begin(None if sample.rows is None else cupy().asarray(sample.rows))
        rows = WeightedRows(gradients.gradient, gradients.hessian_array, weight)
        grids = self._grids(rows, gradients.hessian_rule, task.weight)
        of_splits = (rows, grids)
        same = splits.gradient is rows.gradient and splits.hessian is rows.hessian
        if not same or split_weight is not rows.weight:
            sketched = WeightedRows(splits.gradient, splits.hessian, split_weight)
            of_splits = (sketched, sketched.grids())
        payload = self._quantizer.make(*of_splits, splits, layout, task.split_weight, levels.problems)
        found = levels.visit(payload, self._alpha(splits.unit, payload), task.features.mask)
        check_problems(found.problems)
        visited = _core.VisitedTree(self._matrix.table, found.nodes, self._settings.max_leaves)
        leaves = Leaves(self._matrix, visited, found.rows, visited.leaf_rows())
        if sample.weight is not None:
            leaves = leaves.of_all_rows()
        filled = self._filler.fill(
            leaves,
            rows,
            gradients,
            task.learning_rate,
            self._leaf_grids(grids),
            plain=self._plain_sums,
            least_weight=self._least_weight,
        )
        outside = sample.rows is not None and sample.weight is None  # rows that no leaf holds yet
        if raw is not None and not outside:
            leaves.add_to(
                raw, filled.values, self._unit.on_device(gradients.unit)
            )  # while the host finishes the tree
        totals, values = filled.fetch()
        arrays = visited.finish(
            values=values,
            cover=np.ascontiguousarray(totals[:, -1]),
            all_rows=leaves.counts if sample.weight is not None else None,
            leaf_sums=totals if task.shares_gains else None,
            own_hessian=gradients.has_own_hessian,
            unit=gradients.unit,
            settings=self._settings,
        )
        tree = Tree(**arrays)
        if raw is not None and outside:
            leaves.of_tree(arrays).add_to(raw, filled.values, self._unit.on_device(gradients.unit))
        return tree

    def _weight_on_device(self, weight: FloatArray | None) -> Any:
        """Return the weights of the rows, which are the same in every round, on the device."""
        if self._weight[0] is not weight:
            self._weight = (weight, None if weight is None else cupy().asarray(weight))
            largest = 1.0 if weight is None else float(weight.max())
            self._least_weight = 1.0 if weight is None else float(weight[weight > 0].min())
            self._plain_sums = weight is not None and _core.span_widely(weight)
            grid = constant_grids(largest, self._matrix.n_rows, 1)
            self._weight_grid = cupy().asarray(0 * grid if self._plain_sums else grid)
        return self._weight[1]

    def _grids(self, rows: WeightedRows, hessian_rule: str, weight: FloatArray | None) -> Any:
        """Return the grids of a leaf's sums, (kinds, 2, outputs), as the CPU does (quantize/bounds.hpp)."""
        if hessian_rule == "itself":
            return rows.grids()
        largest = 1.0 if weight is None else float(weight.max())
        constant = constant_grids(largest, *rows.gradient.shape)
        return self._constant_grids.on_device(np.stack([constant, constant]))

    def _leaf_grids(self, grids: Any) -> Record:
        """Return the grids of the sums of leaves; those that round nothing away where sums are plain."""
        used = cupy().zeros_like(grids) if self._plain_sums else grids
        # Without Hessians: of the gradients' magnitudes.
        hessian = used[1] if len(used) > 1 else used[0]
        return Record("LeafGrids", gradient=used[0], hessian=hessian, weight=self._weight_grid)

    def _level_grower(self, layout: Layout, n_outputs: int) -> LevelGrower:
        if self._levels is None or self._levels[0] != layout:
            self._levels = None  # its memory is needed
            matrix = self._matrix
            size = (matrix.n_rows, matrix.n_features, matrix.n_bins)
            shape = shape_of(size, n_outputs, layout, self._settings)
            free = free_memory() if self._memory_bytes is None else self._memory_bytes
            plan = plan_histograms(shape, free, with_data=False)
            self._levels = (layout, LevelGrower(matrix, shape, plan, self._settings))
        return self._levels[1]

    def _alpha(self, unit: FloatArray, payload: Any) -> Any:
        """Return the L1 regularisation in the integers of the gradients; None: there is none."""
        if self._settings.reg_alpha == 0:
            return None
        return self._alpha_units.on_device(self._settings.reg_alpha / unit) / payload.gradient_unit
