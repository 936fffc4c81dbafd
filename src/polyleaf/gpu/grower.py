"""One tree from one round's gradients, on the device."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from polyleaf import _core
from polyleaf.data.inputs import FloatArray
from polyleaf.gpu.levels import WORK, LevelGrower
from polyleaf.gpu.matrix import DeviceMatrix
from polyleaf.gpu.memory import LEAF_PIECE, Layout, Shape, plan_histograms
from polyleaf.gpu.quantize import GradientGrids, Quantizer, check_problems, layout_of
from polyleaf.gpu.runtime import blocks, cupy, free_memory, kernel, launch
from polyleaf.gpu.sums import constant_grids, row_stride
from polyleaf.growth.contract import LeafGradients, Task
from polyleaf.growth.tree import Tree

_THREADS = 256
_ADD_PARTS = 16  # of a piece of a leaf, to which its values are added at a time


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
        self._levels: tuple[Layout, LevelGrower] | None = None
        self._weight: tuple[FloatArray | None, Any] = (None, None)
        self._weight_grid = constant_grids(1.0, matrix.n_rows, 1)
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
        grids = self._grids(gradients, task.weight)
        same = splits.gradient is gradients.gradient and splits.hessian is gradients.hessian_array
        of_splits = (
            grids
            if same and sample.weight is None
            else GradientGrids.of(splits.gradient, splits.hessian, split_weight)
        )
        payload = self._quantizer.make(
            splits, layout, task.split_weight, split_weight, levels.problems, of_splits
        )
        found = levels.visit(payload, self._alpha(splits.unit, payload), task.features.mask)
        check_problems(found.problems)
        visited = _core.VisitedTree(self._matrix.table, found.nodes, self._settings.max_leaves)
        leaves = _Leaves(self._matrix, visited, found.rows, visited.leaf_rows())
        if sample.weight is not None:
            leaves = leaves.of_all_rows()
        of_leaves = GradientGrids.zeros(gradients.gradient.shape[1]) if self._plain_sums else grids
        values, totals, together = self._values(leaves, gradients, weight, task.learning_rate, of_leaves)
        outside = sample.rows is not None and sample.weight is None  # rows that no leaf holds yet
        if raw is not None and not outside:
            leaves.add_to(raw, values, gradients.unit)  # while the host finishes the tree
        fetched = together.get()
        on_host = fetched[: totals.nbytes].view(np.float64).reshape(totals.shape)
        values_on_host = fetched[totals.nbytes :].view(np.float32).reshape(values.shape)
        arrays = visited.finish(
            values=values_on_host,
            cover=np.ascontiguousarray(on_host[:, -1]),
            all_rows=leaves.counts if sample.weight is not None else None,
            leaf_sums=on_host if task.shares_gains else None,
            own_hessian=gradients.has_own_hessian,
            unit=gradients.unit,
            settings=self._settings,
        )
        tree = Tree(**arrays)
        if raw is not None and outside:
            leaves.of_tree(arrays).add_to(raw, values, gradients.unit)
        return tree

    def _weight_on_device(self, weight: FloatArray | None) -> Any:
        """Return the weights of the rows, which are the same in every round, on the device."""
        if self._weight[0] is not weight:
            self._weight = (weight, None if weight is None else cupy().asarray(weight))
            largest = 1.0 if weight is None else float(weight.max())
            self._plain_sums = weight is not None and _core.span_widely(weight)
            self._weight_grid = constant_grids(largest, self._matrix.n_rows, 1)
            if self._plain_sums:
                self._weight_grid.fill(0)
        return self._weight[1]

    def _grids(self, gradients: LeafGradients, weight: FloatArray | None) -> GradientGrids:
        """Return the grids of a leaf's sums, as the CPU chooses them (quantize/bounds.hpp)."""
        if gradients.hessian_rule == "itself":
            on_device = self._weight_on_device(weight)
            return GradientGrids.of(gradients.gradient, gradients.hessian_array, on_device)
        n_rows, n_outputs = gradients.gradient.shape
        constant = constant_grids(1.0 if weight is None else float(weight.max()), n_rows, n_outputs)
        return GradientGrids(constant, constant)

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
        return cupy().asarray(self._settings.reg_alpha / unit) / payload.gradient_unit

    def _values(
        self,
        leaves: _Leaves,
        gradients: LeafGradients,
        weight: Any,
        learning_rate: float,
        grids: GradientGrids,
    ) -> tuple[Any, Any, Any]:
        """Return values of the leaves, the sums they are made of, and the bytes of both."""
        gradient, hessian = gradients.gradient, gradients.hessian_array
        cp = cupy()
        d = gradient.shape[1]
        threads = min(128, blocks(d, 32) * 32)
        sums = cp.empty((leaves.n_works, 2, 2 * d + 1))
        launch(
            kernel("leaves.cuh", "sum_leaves"),
            (leaves.n_works, blocks(d, threads)),
            threads,
            leaves.works,
            leaves.rows,
            gradient,
            row_stride(gradient),
            hessian,
            np.uint64(0) if hessian is None else row_stride(hessian),
            weight,
            _core.TERMS[gradients.hessian_rule],
            d,
            grids.gradient,
            grids.hessian,
            self._weight_grid,
            sums,
        )
        n_totals = leaves.n_leaves * (2 * d + 1)
        together = cp.empty(n_totals * 8 + leaves.n_leaves * d * 4, dtype=cp.uint8)  # fetched at once
        totals = together[: n_totals * 8].view(cp.float64).reshape(leaves.n_leaves, 2 * d + 1)
        values = together[n_totals * 8 :].view(cp.float32).reshape(leaves.n_leaves, d)
        alpha = (
            None if self._settings.reg_alpha == 0 else cp.asarray(self._settings.reg_alpha / gradients.unit)
        )
        launch(
            kernel("leaves.cuh", "value_leaves"),
            (leaves.n_leaves, blocks(d, threads)),
            threads,
            leaves.first_work,
            sums,
            d,
            gradients.has_own_hessian,
            float(self._settings.reg_lambda),
            alpha,
            float(learning_rate),
            values,
            totals,
        )
        return values, totals, together


class _Leaves:
    """The rows of each leaf.

    Parameters
    ----------
    matrix : DeviceMatrix
        The table.
    visited : VisitedTree
        Whose leaves these are.
    rows : uint32 CuPy array
        Row numbers, those of a leaf side by side.
    places : uint32 ndarray of shape (leaves, 2)
        First and last place of each leaf.
    """

    def __init__(
        self,
        matrix: DeviceMatrix,
        visited: _core.VisitedTree,
        rows: Any,
        places: npt.NDArray[np.uint32],
    ) -> None:
        self._matrix = matrix
        self._visited = visited
        self.rows = rows
        self.counts: npt.NDArray[np.int64] = places[:, 1].astype(np.int64) - places[:, 0]
        n_pieces = -(-self.counts // LEAF_PIECE)
        leaf = np.repeat(np.arange(len(places)), n_pieces)
        first = np.cumsum(n_pieces) - n_pieces
        piece = np.arange(len(leaf)) - first[leaf]
        works = np.zeros(len(leaf), WORK)
        works["target"] = leaf
        works["begin"] = places[leaf, 0] + piece * LEAF_PIECE
        works["end"] = np.minimum(works["begin"].astype(np.int64) + LEAF_PIECE, places[leaf, 1])
        self.n_works = len(works)
        self.n_leaves = len(places)
        first_work = np.append(first, len(leaf)).astype(np.int32)
        both = cupy().asarray(np.concatenate([works.view(np.uint8), first_work.view(np.uint8)]))
        self.works, self.first_work = both[: works.nbytes], both[works.nbytes :]

    def of_all_rows(self) -> _Leaves:
        """Return the leaves with all rows of the table in them, those of a leaf ascending."""
        return self.of_tree(self._visited.routes())

    def of_tree(self, arrays: dict[str, npt.NDArray[Any]]) -> _Leaves:
        """Return the leaves with all rows, as a tree with these arrays sends them."""
        cp = cupy()
        n_rows = self._matrix.n_rows
        leaf = cp.empty(n_rows, dtype=cp.int32)
        names = ("left", "feature", "bin", "missing_left", "leaf")
        launch(
            kernel("leaves.cuh", "route_rows"),
            (blocks(n_rows, _THREADS),),
            _THREADS,
            *(cp.asarray(arrays[name]) for name in names),
            self._matrix.codes,
            self._matrix.value_bins,
            np.uint64(n_rows),
            leaf,
        )
        order = cp.argsort(leaf, kind="stable").astype(cp.uint32)
        end = np.cumsum(cp.bincount(leaf, minlength=self.n_leaves).get())
        begin = np.append(0, end[:-1])
        places = np.stack([begin, end], axis=1).astype(np.uint32)
        return _Leaves(self._matrix, self._visited, order, places)

    def add_to(self, raw: Any, values: Any, unit: FloatArray) -> None:
        """Add the values of the leaves to the scores of their rows."""
        launch(
            kernel("leaves.cuh", "add_leaves"),
            (self.n_works, _ADD_PARTS),
            _THREADS,
            self.works,
            self.rows,
            values,
            cupy().asarray(unit),
            values.shape[1],
            row_stride(raw),
            raw,
        )
