"""Shapley values on the device: the ways to the leaves copied there, rows some at a time."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
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
_ENOUGH_THREADS = 2**18  # with fewer rows, these share the outputs, too
_MOST_PARTS = 2**16 - 1  # blocks of a grid along y
_MOST_BYTES = 2**31  # of device memory that rows take together
_TO_THE_RIGHT, _MISSING_RIGHT = constant("kToTheRight"), constant("kMissingRight")


class GpuShap(ForestShap):
    """Shapley values of dense tables by the GPU; of other tables, and of pairs of features, by the CPU."""

    def values(self, table: Any, dtype: np.dtype[Any], n_threads: int) -> npt.NDArray[Any]:
        """Return the values of all rows on the host, of shape (rows, features, outputs)."""
        if not self._is_for_device(table):
            return super().values(on_host(table), dtype, n_threads)
        shape = (table.shape[0], *self._shape)
        self._refuse_too_large(shape, dtype, 0, n_threads)
        out = np.zeros(shape, dtype)
        features, n_outputs = self._core.features, len(self._outputs)
        for rows, sums in self._sums(table, dtype.itemsize):
            found = cupy().empty((sums.shape[2], len(features), n_outputs), dtype=dtype)
            target = Record(
                "WayTarget",
                column_of_output=cupy().asarray(self._columns),
                unit=cupy().asarray(self._unit),
                n_rows=sums.shape[2],
                n_columns=len(features),
                n_outputs=n_outputs,
            )
            write = kernel("explain.cuh", f"write_values{8 * dtype.itemsize}")
            launch(write, (blocks(found.size, _THREADS),), _THREADS, sums, target, found)
            out[rows][:, features] = found.get()
        return out

    def absolute_sums(self, table: Any, n_threads: int, weight: FloatArray | None = None) -> FloatArray:
        """Return the absolute values summed over the rows, float64 of shape (features, outputs)."""
        if not self._is_for_device(table):
            return super().absolute_sums(on_host(table), n_threads, weight)
        cp = cupy()
        self._refuse_too_large(self._shape, np.dtype(np.float64), 0, n_threads)
        features = self._core.features
        found = cp.zeros((len(features), len(self._outputs)))
        for rows, sums in self._sums(table, 8):
            sizes = cp.abs(sums)
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

    def _sums(self, table: Any, result_bytes: int) -> Iterator[tuple[slice, Any]]:
        """Yield some rows, and their values in units, of shape (features used, outputs, rows)."""
        cp = cupy()
        ways = _packed(self._forest, self._core)
        n_columns, n_outputs = len(self._core.features), len(self._outputs)
        cell_bytes = 2 * 8 + result_bytes  # of sums, and of what is made of them
        row_bytes = 2 * 8 * table.shape[1] + n_columns * n_outputs * cell_bytes
        plan = _plan(table.shape[0], n_outputs, row_bytes, ways.thread_bytes)
        columns = cp.asarray(self._core.features)
        for begin in range(0, table.shape[0], plan.n_rows):
            rows = slice(begin, min(begin + plan.n_rows, table.shape[0]))
            n_rows = rows.stop - rows.start
            given = device_table(table[rows])
            # Neighbours in memory are rows: those of a warp are read together.
            cells = cp.ascontiguousarray(given[:, columns].T).T
            sums = cp.zeros((n_columns, n_outputs, n_rows))
            n_threads = plan.n_parts * n_rows
            to = Record(
                "WaySums",
                product=cp.empty(ways.n_products * n_threads),
                level=cp.empty(ways.n_depths * n_threads, dtype=np.uint32),
                sums=sums,
                outputs=plan.outputs,
            )
            explain = kernel("explain.cuh", f"explain_rows{8 * cells.itemsize}")
            grid = (blocks(n_rows, _THREADS), plan.n_parts)
            launch(explain, grid, _THREADS, table_record(cells), ways.record, to)
            yield rows, sums


@dataclass(frozen=True)
class _Plan:
    """Rows that are on the device together, and how many threads share the outputs of a row."""

    n_rows: int
    n_parts: int
    outputs: int  # of a part


def _plan(n_rows: int, n_outputs: int, row_bytes: int, thread_bytes: int) -> _Plan:
    """Return how many rows fit the memory, and are worth sharing out.

    Raises
    ------
    MemoryError
        When not even one does.
    """
    free = free_memory()
    room = min(free // 2, _MOST_BYTES)
    step = min(n_rows, room // (row_bytes + thread_bytes))
    if step == 0:
        raise MemoryError(
            f"device='cuda': Shapley values of a row take {in_words(row_bytes + thread_bytes)} of device "
            f"memory; {in_words(free)} are free, and {in_words(room)} may be used. Choose fewer outputs, "
            "or use device='cpu'."
        )
    fitting = (room // step - row_bytes) // thread_bytes
    n_parts = min(n_outputs, fitting, max(1, _ENOUGH_THREADS // step), _MOST_PARTS)
    outputs = blocks(n_outputs, n_parts)
    return _Plan(step, blocks(n_outputs, outputs), outputs)


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
        trees, steps = layout["trees"], layout["steps"]
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
        tree_fields = list(struct_type("WayTree").names or ())
        batch_fields = list(struct_type("WayBatch").names or ())
        # A tree's levels, and for each of them its points.
        self.n_depths = int(trees[:, 5].max(initial=1))
        self.n_products = int((trees[:, 4] * trees[:, 5]).max(initial=1))
        self.thread_bytes = 8 * self.n_products + 4 * self.n_depths
        # One more: where no leaf has an output that is asked for, leaves are sparse all the same.
        of_values = np.append(layout["value_output"], np.uint32(0))
        self.record = Record(
            "Ways",
            trees=_structs("WayTree", dict(zip(tree_fields, trees.T, strict=True))),
            batches=_structs("WayBatch", dict(zip(batch_fields, layout["batches"].T, strict=True))),
            steps=_structs("WayStep", of_steps),
            element_depth=cp.asarray(layout["element_depth"]),
            tables=cp.asarray(layout["tables"]),
            unfulfilled=cp.asarray(layout["unfulfilled"]),
            value_begin=cp.asarray(layout["value_begin"]),
            values=cp.asarray(layout["values"]),
            value_output=cp.asarray(of_values) if len(forest.value_output) else None,
            category_bits=cp.asarray(forest.category_bits) if len(forest.category_bits) else None,
            n_trees=len(trees),
            n_outputs=len(explainer.expected),
            outputs_together=layout["outputs_together"],
        )


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
