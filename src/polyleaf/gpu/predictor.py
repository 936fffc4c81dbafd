"""A forest on the device, and raw scores by it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from polyleaf.data.device_arrays import is_device_array
from polyleaf.data.inputs import FloatArray
from polyleaf.gpu.binning import real_type
from polyleaf.gpu.runtime import blocks, cupy, free_memory, kernel, launch
from polyleaf.gpu.structs import Record, constant, struct_type, table_record
from polyleaf.gpu.transfer import through_device
from polyleaf.losses import Loss
from polyleaf.model.forest import Forest
from polyleaf.model.scores import Trees

_THREADS = 256
_MANY_ROWS = 4096  # enough for one thread to take all trees of a row
_FEW_OUTPUTS = 64  # with more, the leaves are looked up once for all tiles of outputs
_ENOUGH_THREADS = 2**16
_LEAF_BYTES = 2**29  # leaves of rows x trees that are looked up together
_GOES_LEFT, _BY_CATEGORIES, _LEAF = (constant(name) for name in ("kGoesLeft", "kByCategories", "kLeaf"))


class GpuPredictor:
    """A forest packed for the device.

    Parameters
    ----------
    forest : Forest
        Its arrays are copied.
    """

    def __init__(self, forest: Forest) -> None:
        cp = cupy()
        inner = forest.left >= 0
        first_node = np.repeat(forest.node_begin[:-1], np.diff(forest.node_begin))
        n_words = np.diff(forest.category_begin)
        by_set = n_words > 0
        nodes = np.zeros(len(forest.feature), struct_type("PackedNode"))
        nodes["data"] = np.where(inner & ~by_set, forest.threshold, 0.0)
        as_integer = nodes["data"].view(np.int64)
        as_integer[by_set] = (forest.category_begin[:-1][by_set] << 16) | n_words[by_set]
        as_integer[~inner] = forest.value_begin[~inner]
        nodes["feature"] = np.where(
            inner, forest.feature + _GOES_LEFT * (forest.missing_left != 0) + _BY_CATEGORIES * by_set, 0
        )
        nodes["left"] = np.where(inner, first_node + forest.left, -1)
        self._nodes = cp.asarray(nodes.view(np.uint8))
        self._node_begin = cp.asarray(forest.node_begin)
        self._words = cp.asarray(forest.category_bits if by_set.any() else np.zeros(1, np.uint32))
        self._values = cp.asarray(forest.values)
        self._value_output = cp.asarray(forest.value_output) if len(forest.value_output) else None
        self._tree_output = cp.asarray(forest.tree_output)
        self._tree_width = cp.asarray(forest.tree_width)
        self._n_features = forest.n_features
        small = _small_nodes(forest) if self._value_output is None and not by_set.any() else None
        self._small = None if small is None else cp.asarray(small)

    def add(self, table: Any, begin: int, end: int, raw: Any) -> None:
        """Add trees [begin, end) to the scores of the rows of a table, in units.

        Parameters
        ----------
        table : float32 or float64 CuPy array of shape (rows, features)
            NaN is missing.
        begin, end : int
            Which trees.
        raw : float64 CuPy array of shape (rows, outputs)
            Changed in place.
        """
        n_rows, n_outputs = raw.shape
        if self._small is not None and table.dtype == np.float32 and n_rows >= _MANY_ROWS:
            lanes = next((lanes for lanes in (8, 16) if n_outputs <= lanes), 32)
            trees = Record(
                "SmallTrees",
                nodes=self._small,
                node_begin=self._node_begin,
                first=begin,
                n_trees=end - begin,
            )
            n_parts = blocks(n_outputs, lanes)
            self._launch(f"add_trees_by_{lanes}", table, n_parts, (trees, self._values, n_outputs, raw))
            return
        at_once = max(1, min(end - begin, _LEAF_BYTES // 8 // max(n_rows, 1)))
        for first in range(begin, end, at_once):
            n_trees = min(at_once, end - first)
            leaves = cupy().empty((n_trees, n_rows), dtype=np.int64)
            # Few rows: the trees are shared out, too.
            n_parts = min(n_trees, blocks(_ENOUGH_THREADS, n_rows))
            trees = Record(
                "Trees",
                nodes=self._nodes,
                node_begin=self._node_begin,
                category_bits=self._words,
                first=first,
                n_trees=n_trees,
            )
            self._launch(f"find_leaves{8 * table.itemsize}", table, n_parts, (trees, leaves))
            self._add_leaves(leaves, first, n_trees, raw)

    def _launch(self, name: str, table: Any, n_parts: int, arguments: tuple[Any, ...]) -> None:
        """Run a kernel over the rows of a table, in so many parts of trees or outputs."""
        function = kernel("predict.cuh", name)
        threads, shared = self._staging(self._n_features * table.itemsize)
        function.max_dynamic_shared_size_bytes = max(shared, 48 * 1024)
        launch(
            function,
            (blocks(len(table), threads), n_parts),
            threads,
            table_record(table, staged=shared > 0),
            *arguments,
            shared=shared,
        )

    @staticmethod
    def _staging(row_bytes: int) -> tuple[int, int]:
        """Return threads of a block, and the shared memory that holds the values of their rows; 0: none."""
        room = cupy().cuda.Device().attributes["MaxSharedMemoryPerBlockOptin"]
        for threads in (128, 64, 32):
            if threads * row_bytes <= room // 2:
                return threads, threads * row_bytes
        return _THREADS, 0

    def _add_leaves(self, leaves: Any, first: int, n_trees: int, raw: Any) -> None:
        n_rows, n_outputs = raw.shape
        values = Record(
            "TreeValues",
            values=self._values,
            value_output=self._value_output,
            tree_output=self._tree_output,
            tree_width=self._tree_width,
            first=first,
            n_trees=n_trees,
        )
        size = (np.uint64(n_rows), n_outputs)
        if self._value_output is None:
            lanes = _lanes_of(n_outputs)
            grid = (blocks(n_rows * lanes, _THREADS),)
            launch(kernel("predict.cuh", "add_values"), grid, _THREADS, leaves, values, *size, lanes, raw)
            return
        grid = (blocks(n_rows, _THREADS),)
        launch(kernel("predict.cuh", "add_sparse_values"), grid, _THREADS, leaves, values, *size, raw)


def _small_nodes(forest: Forest) -> npt.NDArray[np.uint8] | None:
    """Return the nodes of trees of all of a few outputs in 8 bytes each; None where they do not fit.

    Such nodes are for float32 tables: a number goes left if it is at most the largest float32 number that is
    not above the threshold.
    """
    fits = (
        forest.trees_per_round == 1
        and forest.n_outputs <= _FEW_OUTPUTS
        and forest.n_features < 2**15
        and len(forest.values) < 2**31
        and int(np.diff(forest.node_begin).max(initial=0)) < 2**16
    )
    if not fits:
        return None
    inner = forest.left >= 0
    with np.errstate(over="ignore"):
        below = forest.threshold.astype(np.float32)
    too_large = below.astype(np.float64) > forest.threshold
    below[too_large] = np.nextafter(below[too_large], np.float32(-np.inf))
    data = np.where(inner, below.view(np.uint32), forest.value_begin.astype(np.uint32))
    following = (
        forest.feature | (forest.missing_left.astype(np.int64) << 15) | (forest.left.astype(np.int64) << 16)
    )
    nodes = np.zeros(len(data), struct_type("SmallNode"))
    nodes["data"].view(np.uint32)[:] = data  # bits: those of leaves are no number
    nodes["next"] = np.where(inner, following, _LEAF).astype(np.uint32)
    return nodes.view(np.uint8)


def device_table(table: Any) -> Any:
    """Return a dense table as a float CuPy array that holds the same numbers."""
    return cupy().asarray(table).astype(real_type(table.dtype), copy=False)


def predict_raw(forest: Forest, table: Any, n_rounds: int | None = None, *, n_threads: int = 1) -> Any:
    """Return the raw scores of the rows of a table, float64 of shape (rows, outputs).

    Parameters
    ----------
    forest : Forest
        The model; packed for the device once.
    table : ndarray or CuPy array of shape (rows, features)
        Where the scores are to be returned, too. A NumPy table is copied some rows at a time.
    n_rounds : int or None
        Rounds to use; None: all.
    n_threads : int
        Of the host, to copy a NumPy table.
    """
    cp = cupy()
    predictor = _packed(forest)
    end = forest.n_trees if n_rounds is None else n_rounds * forest.trees_per_round
    start = cp.asarray(forest.base_score / forest.unit)
    unit = None if (forest.unit == 1).all() else cp.asarray(forest.unit)

    def scores(rows: Any) -> Any:
        raw = cp.empty((len(rows), forest.n_outputs))
        raw[:] = start
        predictor.add(device_table(rows), 0, end, raw)
        return raw if unit is None else raw * unit

    if isinstance(table, cp.ndarray):
        return scores(table)
    return through_device(table, forest.n_outputs, scores, n_threads)


def linked(loss: Loss | None, raw: Any, n_threads: int) -> Any:
    """Return what a loss predicts by raw scores, where these are; None: the scores themselves.

    The predictions of scores on the host have the bits of the CPU.
    """
    if loss is None:
        return raw
    if not is_device_array(raw):
        return loss.predict(raw, n_threads)
    if loss.link == "logistic":
        return 1 / (1 + cupy().exp(-raw))
    if loss.link == "softmax":
        return _softmax(raw)
    return loss.predict(raw)  # by NumPy's functions, which CuPy's arrays answer


def _softmax(raw: Any) -> Any:
    n_rows, n_outputs = raw.shape
    out = cupy().empty_like(raw)
    lanes = _lanes_of(n_outputs)
    launch(
        kernel("predict.cuh", "softmax_shares"),
        (blocks(n_rows * lanes, _THREADS),),
        _THREADS,
        raw,
        np.uint64(n_rows),
        n_outputs,
        lanes,
        out,
    )
    return out


def _lanes_of(n_outputs: int) -> int:
    """Return how many lanes of a warp share the outputs of a row."""
    return min(32, 1 << (n_outputs - 1).bit_length())


def _packed(forest: Forest) -> GpuPredictor:
    """Return the forest on the present device, to which it is copied once."""
    device = int(cupy().cuda.Device().id)
    if device not in forest.on_gpu:
        forest.on_gpu[device] = GpuPredictor(forest)
    packed: GpuPredictor = forest.on_gpu[device]
    return packed


class GpuScores:
    """Scores of an evaluation set, kept on the device; see :class:`polyleaf.model.scores.Scores`.

    Parameters
    ----------
    table : ndarray or CuPy array of shape (rows, features)
        Copied to the device once.
    start : float64 ndarray of shape (outputs,)
        Scores before the first round, in units.
    """

    def __init__(self, table: Any, start: FloatArray) -> None:
        cp = cupy()
        copied = 0 if is_device_array(table) else table.size * 8
        needed = copied + len(table) * len(start) * 8
        if needed > free_memory():
            raise MemoryError(
                f"device='cuda': an evaluation set of {len(table)} rows x {table.shape[1]} features needs "
                f"{needed / 2**30:.2f} GiB of device memory, but {free_memory() / 2**30:.2f} GiB are free."
            )
        self._table = device_table(table)
        self._scores = cp.empty((len(table), len(start)))
        self._scores[:] = cp.asarray(start)

    def add_round(self, forest: Forest, number: int) -> FloatArray:
        """Add the trees of one round; return the scores on the host."""
        begin = number * forest.trees_per_round
        _packed(forest).add(self._table, begin, begin + forest.trees_per_round, self._scores)
        return np.asarray(self._scores.get())

    def add_grown(self, trees: Trees, forest: Callable[[], Forest]) -> FloatArray:
        """Add trees that were just grown."""
        return self.add_round(forest(), 0)
