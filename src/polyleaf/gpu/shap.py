"""Shapley values on the device: the ways to the leaves copied there, rows some at a time."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse

from polyleaf import _core
from polyleaf.data.binned_rows import BinnedRows
from polyleaf.data.device_arrays import on_host
from polyleaf.data.inputs import FloatArray
from polyleaf.data.memory import in_words
from polyleaf.explain.shap import ForestShap
from polyleaf.gpu.predictor import device_table
from polyleaf.gpu.runtime import blocks, cupy, free_memory, kernel, launch
from polyleaf.gpu.structs import Record, constant, struct_type, table_record
from polyleaf.model.forest import Forest

_THREADS = 128
_MOST_ALONG_Y = 2**16 - 1  # blocks of a grid
_ENOUGH_ROWS = 2**15  # with more, the device has no more to do at once; trees together save more
_MOST_BYTES = 2**31  # of device memory that rows take together
_TO_THE_RIGHT, _MISSING_RIGHT = constant("kToTheRight"), constant("kMissingRight")
_OUTPUTS_AT_ONCE = constant("kOutputsAtOnce")


class GpuShap(ForestShap):
    """Shapley values of dense tables by the GPU; of other tables, and of pairs of features, by the CPU."""

    def values(self, table: Any, dtype: np.dtype[Any], n_threads: int) -> npt.NDArray[Any]:
        """Return the values of all rows on the host, of shape (rows, features, outputs)."""
        if not self._is_for_device(table):
            return super().values(on_host(table), dtype, n_threads)
        shape = (table.shape[0], *self._shape)
        self._refuse_too_large(shape, dtype, 0, n_threads)
        out = np.empty(shape, dtype)
        write = kernel("explain.cuh", f"write_values{8 * dtype.itemsize}")
        target = self._target()
        row_bytes = dtype.itemsize * int(np.prod(self._shape))
        for rows, sums in self._sums(table, row_bytes):
            of_rows = out[rows]
            found = cupy().empty(of_rows.shape, dtype=dtype)
            record = Record("WayTarget", **target, n_rows=len(of_rows))
            launch(write, (blocks(found.size, _THREADS),), _THREADS, sums, record, found)
            found.get(out=of_rows)
        return out

    def absolute_sums(self, table: Any, n_threads: int, weight: FloatArray | None = None) -> FloatArray:
        """Return the absolute values summed over the rows, float64 of shape (features, outputs)."""
        if not self._is_for_device(table):
            return super().absolute_sums(on_host(table), n_threads, weight)
        cp = cupy()
        self._refuse_too_large(self._shape, np.dtype(np.float64), 0, n_threads)
        features = self._core.features
        found = cp.zeros((len(features), len(self._outputs)))
        for rows, sums in self._sums(table, 0):
            sizes = cp.abs(sums, out=sums)
            if weight is not None:
                sizes *= cp.asarray(weight[rows])
            found += sizes.sum(axis=2)
        out = np.zeros(self._shape)
        placed = np.empty(found.shape)
        placed[:, self._columns] = found.get() * self._unit
        out[features] = placed
        return out

    def _is_for_device(self, table: Any) -> bool:
        """Whether the device has something to do, and can."""
        other = isinstance(table, BinnedRows) or scipy.sparse.issparse(table) or self._interactions
        return not other and table.shape[0] > 0 and len(self._core.features) > 0

    def _target(self) -> dict[str, Any]:
        """Return where the results stand: the fields of a WayTarget that all rows share."""
        cp = cupy()
        n_features, n_outputs = self._shape
        columns = np.full(n_features, -1, np.int32)
        columns[self._core.features] = np.arange(len(self._core.features))
        return {
            "column_of_feature": cp.asarray(columns),
            "column_of_output": cp.asarray(self._columns),
            "unit": cp.asarray(self._unit),
            "n_features": n_features,
            "n_outputs": n_outputs,
        }

    def _sums(self, table: Any, result_bytes: int) -> Iterator[tuple[slice, Any]]:
        """Yield some rows, and their values in units, of shape (features used, outputs, rows).

        `result_bytes`: of what the caller makes of a row on the device.
        """
        cp = cupy()
        ways = _packed(self._forest, self._core)
        columns = cp.asarray(self._core.features)
        sum_bytes = 8 * len(columns) * len(self._outputs)
        plan = _plan(table.shape[0], 2 * 8 * table.shape[1] + sum_bytes + result_bytes, ways.tree_bytes)
        groups = ways.groups(plan.first_trees)
        for begin in range(0, table.shape[0], plan.n_rows):
            rows = slice(begin, min(begin + plan.n_rows, table.shape[0]))
            given = device_table(table[rows])
            # Neighbours in memory are rows: those of a warp are read together.
            cells = cp.ascontiguousarray(given[:, columns].T).T
            yield rows, ways.sums(cells, groups)


@dataclass(frozen=True)
class _Plan:
    """Rows that are on the device together, and trees whose weights are."""

    n_rows: int
    first_trees: list[int]  # of each group; behind these, the number of trees


def _plan(n_rows: int, row_bytes: int, tree_bytes: npt.NDArray[np.int64]) -> _Plan:
    """Return how many rows fit the memory, and how many trees beside them.

    Raises
    ------
    MemoryError
        When not even one row and one tree do.
    """
    free = free_memory()
    room = min(free // 2, _MOST_BYTES)
    largest = int(tree_bytes.max(initial=0))
    if row_bytes + largest > room:
        raise MemoryError(
            f"device='cuda': Shapley values of a row take {in_words(row_bytes + largest)} of device "
            f"memory; {in_words(free)} are free, and {in_words(room)} may be used. Choose fewer outputs, "
            "or use device='cpu'."
        )
    # The sums are read and written once for each group: as many trees as take the memory of all else.
    beside = min(int(tree_bytes.sum()), max(largest, row_bytes))
    step = min(n_rows, _ENOUGH_ROWS, max(1, room // (row_bytes + beside)))
    first_trees, end = [0], np.cumsum(tree_bytes)
    while first_trees[-1] < len(tree_bytes):
        before = end[first_trees[-1]] - tree_bytes[first_trees[-1]]
        first_trees.append(int(np.searchsorted(end, before + room // step - row_bytes, side="right")))
    return _Plan(step, first_trees)


@dataclass(frozen=True)
class _Group:
    """Some trees, whose weights are on the device together."""

    record: Record
    n_trees: int
    n_slots: int


class _Ways:
    """The ways to the leaves, on the device.

    Parameters
    ----------
    forest : Forest
        The trees.
    explainer : _core.ForestExplainer
        Has laid them out.
    """

    def __init__(self, forest: Forest, explainer: _core.ForestExplainer) -> None:
        cp = cupy()
        layout = explainer.layout()
        trees, batches, steps = layout["trees"], layout["batches"], layout["steps"]
        of_steps = {
            "threshold": layout["threshold"],
            "column": steps[:, 0],
            "depth": steps[:, 1],
            "above": steps[:, 2],
            "n_elements": steps[:, 3],
            "sides": steps[:, 4] * _TO_THE_RIGHT + steps[:, 5] * _MISSING_RIGHT,
            "words_begin": steps[:, 6],
            "n_words": steps[:, 7],
        }
        slots = _Slots(layout)
        self._run_column, runs = slots.runs(trees, batches)
        self._run_slot = runs["slot_begin"]
        self._first_slot = np.append(batches[trees[:, 0], 2], len(slots.leaf))
        self._n_columns, self._n_outputs = len(explainer.features), len(explainer.expected)
        # A tree's levels, and for each of them its points.
        self._n_depths = int(trees[:, 5].max(initial=1))
        self._n_products = int((trees[:, 4] * trees[:, 5]).max(initial=1))
        # Of a row: weights, and the way down.
        self.tree_bytes = 8 * np.diff(self._first_slot) + 8 * self._n_products + 4 * self._n_depths
        self._is_sparse = len(forest.value_output) > 0
        # One more: where no leaf has an output that is asked for, leaves are sparse all the same.
        of_values = np.append(layout["value_output"], np.uint32(0))
        self._record = Record(
            "Ways",
            trees=_structs("WayTree", _first_columns("WayTree", trees)),
            batches=_structs("WayBatch", _first_columns("WayBatch", batches)),
            steps=_structs("WayStep", of_steps),
            elements=_structs("WayElement", {"depth": layout["element_depth"], "slot": slots.of_element}),
            runs=_structs("WayRun", runs),
            leaf_of_slot=cp.asarray(slots.leaf),
            tables=cp.asarray(layout["tables"]),
            unfulfilled=cp.asarray(layout["unfulfilled"]),
            value_begin=cp.asarray(layout["value_begin"]),
            values=cp.asarray(layout["values"]),
            value_output=cp.asarray(of_values) if self._is_sparse else None,
            category_bits=cp.asarray(forest.category_bits) if len(forest.category_bits) else None,
            n_columns=self._n_columns,
            n_outputs=self._n_outputs,
            outputs_together=layout["outputs_together"],
        )

    def groups(self, first_trees: list[int]) -> list[_Group]:
        """Return groups of trees, which begin with these; the last number is that of all trees."""
        slots = self._first_slot[first_trees]
        # The first run of each column from a slot on, by one number for both.
        n_slots = self._first_slot[-1] + 1
        places = np.arange(self._n_columns) * n_slots + slots[:, None]
        first_run = cupy().asarray(np.searchsorted(self._run_column * n_slots + self._run_slot, places))
        found = []
        for g, (begin, end) in enumerate(pairwise(first_trees)):
            record = Record(
                "WayGroup", first_run=first_run[g:], first_slot=slots[g], tree_begin=begin, tree_end=end
            )
            found.append(_Group(record, end - begin, int(slots[g + 1] - slots[g])))
        return found

    def sums(self, cells: Any, groups: list[_Group]) -> Any:
        """Return the values of some rows in units, of shape (features used, outputs, rows)."""
        sums = cupy().zeros((self._n_columns, self._n_outputs, len(cells)))
        for group in groups:
            self._add(cells, group, sums)
        return sums

    def _add(self, cells: Any, group: _Group, sums: Any) -> None:
        """Weigh the leaves of some trees for all rows, and add up what they give to each feature."""
        cp = cupy()
        n_rows = len(cells)
        n_threads = n_rows * group.n_trees
        to = Record(
            "WaySums",
            product=cp.empty(self._n_products * n_threads),
            level=cp.empty(self._n_depths * n_threads, dtype=np.uint32),
            weights=cp.empty(group.n_slots * n_rows),
            sums=sums,
            n_rows=n_rows,
        )
        weigh = kernel("explain.cuh", f"weigh_leaves{8 * cells.itemsize}")
        grid = blocks(n_rows, _THREADS), min(group.n_trees, _MOST_ALONG_Y)
        launch(weigh, grid, _THREADS, table_record(cells), self._record, group.record, to)
        add = kernel("explain.cuh", "add_sparse" if self._is_sparse else "add_dense")
        n_pieces = 1 if self._is_sparse else blocks(self._n_outputs, _OUTPUTS_AT_ONCE)
        grid = grid[0], min(self._n_columns * n_pieces, _MOST_ALONG_Y)
        launch(add, grid, _THREADS, self._record, group.record, to)


class _Slots:
    """Where the weights of the elements go: those of a feature in a batch side by side, as in the core.

    Parameters
    ----------
    layout : dict
        Of the explainer.

    Attributes
    ----------
    of_element : ndarray of int
        The slot of each element, counted within its batch.
    leaf : uint32 ndarray
        The leaf of each slot, counted within its batch.
    """

    def __init__(self, layout: dict[str, Any]) -> None:
        batches, steps, depth = layout["batches"], layout["steps"], layout["element_depth"]
        step = np.repeat(np.arange(len(steps)), steps[:, 3])  # to the leaf of each element
        step_of_depth = np.empty_like(step)  # that leads to the element's depth: the last one there
        for one in np.unique(depth):
            here, of_depth = depth == one, np.flatnonzero(steps[:, 1] == one)
            step_of_depth[here] = of_depth[np.searchsorted(of_depth, step[here], side="right") - 1]
        column = steps[step_of_depth, 0]
        batch = np.searchsorted(batches[:, 0], step, side="right") - 1
        n_leaves = np.append(0, np.cumsum(steps[:, 3] > 0))  # before each step
        order = np.lexsort((column, batch))
        self._column, self._batch = column[order], batch[order]
        self.leaf = (n_leaves[step] - n_leaves[batches[batch, 0]])[order].astype(np.uint32)
        self.of_element = np.empty_like(order)
        self.of_element[order] = np.arange(len(order)) - batches[self._batch, 2]

    def runs(
        self, trees: npt.NDArray[np.int64], batches: npt.NDArray[np.int64]
    ) -> tuple[npt.NDArray[Any], dict[str, npt.NDArray[Any]]]:
        """Return runs of slots of a feature in a batch, column after column: columns, fields of a WayRun."""
        column, batch = self._column, self._batch
        is_first = np.append(True, (np.diff(column) != 0) | (np.diff(batch) != 0))[: len(column)]
        begin = np.flatnonzero(is_first)
        end = np.append(begin[1:], len(column))[: len(begin)]
        order = np.argsort(column[begin], kind="stable")
        begin, end = begin[order], end[order]
        batch = batch[begin]
        tree = trees[np.searchsorted(trees[:, 0], batch, side="right") - 1]
        fields = {
            "slot_begin": begin,
            "slot_end": end,
            "first_leaf": batches[batch, 3],
            "n_leaves": batches[batch, 4],
            "first_output": tree[:, 6],
            "n_outputs": tree[:, 7],
        }
        return column[begin], fields


def _first_columns(name: str, rows: npt.NDArray[Any]) -> dict[str, npt.NDArray[Any]]:
    """Return the fields of structs, with which the rows of a layout begin."""
    return dict(zip(struct_type(name).names or (), rows.T, strict=False))


def _structs(name: str, fields: dict[str, npt.NDArray[Any]]) -> Any:
    """Return structs, whose fields are given as columns, as bytes on the device."""
    found = np.zeros(len(next(iter(fields.values()))), struct_type(name))
    for field, values in fields.items():
        found[field] = values
    return cupy().asarray(found.view(np.uint8))


def _packed(forest: Forest, explainer: _core.ForestExplainer) -> _Ways:
    """Return the ways on the present device; those of the last explainer of the forest are kept."""
    place = "shap", int(cupy().cuda.Device().id)
    kept = forest.on_gpu.get(place)
    if kept is None or kept[0] is not explainer:
        kept = forest.on_gpu[place] = explainer, _Ways(forest, explainer)
    ways: _Ways = kept[1]
    return ways
