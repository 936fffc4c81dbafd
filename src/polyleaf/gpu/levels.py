"""The nodes of a tree, level by level, searched and split on the device."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from polyleaf import _core
from polyleaf.gpu.matrix import DeviceMatrix
from polyleaf.gpu.memory import BEST_BYTES, GROUP, MOST_NODES, HistogramPlan, Shape
from polyleaf.gpu.quantize import Payload
from polyleaf.gpu.runtime import blocks, cupy, kernel, launch, recorded

_THREADS = 256
_MOST_BLOCKS = 60000  # of a grid in its second and third direction
_SMALL_LEVEL = 256  # the host asks how many nodes a level has where it could have more
_LARGEST_PIECE, _SMALLEST_PIECE = 8192, 2048  # rows that one block adds up: a multiple of its threads
_TURNS = 5  # blocks that each processor gets of the root, or more
_HEAD = 64  # bytes of the state before the nodes: two levels, and the problems of the gradients
_SMALL_STATE = 2**16  # bytes of the state that are fetched together

# As in cuda/common.cuh.
_OUTPUTS = np.dtype(
    [
        ("n_outputs", np.int32),
        ("hessian_channel", np.int32),
        ("weight_channel", np.int32),
        ("count_channel", np.int32),
        ("reg_lambda", np.float64),
        ("min_split_gain", np.float64),
        ("min_child_weight", np.float64),
        ("min_samples_leaf", np.int32),
        ("has_alpha", np.int32),
    ]
)
WORK = np.dtype([("target", np.int32), ("begin", np.uint32), ("end", np.uint32), ("alone", np.int32)])
_NODE = np.dtype(
    [
        ("gain", np.float64),
        ("score", np.float64),
        ("path_minimum", np.float64),
        ("begin", np.uint32),
        ("end", np.uint32),
        ("left", np.int32),
        ("feature", np.int32),
        ("bin", np.int32),
        ("flags", np.int32),
    ]
)
assert _NODE.itemsize == _core.VISITED_NODE_BYTES


@dataclass(frozen=True)
class _Counts:
    """What a level holds, or the most that it can."""

    n_nodes: int
    n_works: int
    n_pairs: int


@dataclass(frozen=True)
class Visited:
    """A tree as the device has visited it.

    Attributes
    ----------
    nodes : uint8 ndarray
        The nodes, as the core reads them.
    rows : uint32 CuPy array
        Row numbers, those of each node side by side.
    problems : int
        What is wrong with the gradients, as bits; see `polyleaf.gpu.quantize.check_problems`.
    """

    nodes: npt.NDArray[np.uint8]
    rows: Any
    problems: int


class LevelGrower:
    """Visits the nodes of trees on one table, and keeps its work space from tree to tree.

    Parameters
    ----------
    matrix : DeviceMatrix
        The table.
    shape, plan
        Of the problem, and how histograms are kept.
    rules : GrowSettings
        The same for every tree.
    """

    def __init__(
        self, matrix: DeviceMatrix, shape: Shape, plan: HistogramPlan, rules: _core.GrowSettings
    ) -> None:
        cp = cupy()
        self._matrix = matrix
        self._shape = shape
        self._plan = plan
        self._rules = rules
        n, most = shape.n_rows, shape.nodes_at(max(shape.depth - 1, 0))
        self._histograms = cp.empty(plan.n_bytes // 4, dtype=cp.int32)
        self._state = cp.empty(_HEAD + shape.most_nodes * _NODE.itemsize, dtype=cp.uint8)
        self._levels = self._state[:32].view(cp.int32).reshape(2, 4)
        self.problems = self._state[32:36].view(cp.int32)
        self._nodes = self._state[_HEAD:]
        self._all_groups = cp.arange(shape.n_groups, dtype=cp.int32)
        self._whole: tuple[Any, Any, int] | None = None
        self._rules_on_device: Any = None
        self._rows = [cp.empty(n, dtype=cp.uint32) for _ in range(2)]
        self._position = [cp.empty(n, dtype=cp.int32) for _ in range(2)]
        self._left = cp.empty(blocks(n, _THREADS) * _THREADS // 32, dtype=cp.uint32)
        self._block_lefts = cp.empty(blocks(n, _THREADS), dtype=cp.int32)
        self._node_of = [cp.zeros(most + 2, dtype=cp.int32) for _ in range(2)]
        self._child = cp.empty(2 * most + 2, dtype=cp.int32)
        self._n_left = cp.empty(most + 2, dtype=cp.int32)
        self._lefts_before = cp.empty(most + 2, dtype=cp.int32)
        self._pairs = cp.empty(3 * most + 3, dtype=cp.int32)
        self._found = cp.empty(plan.slice_nodes * shape.n_features * BEST_BYTES, dtype=cp.uint8)
        self._totals = cp.empty(plan.slice_nodes * shape.layout.n_channels, dtype=cp.int32)
        lanes = shape.layout.lanes
        per_block = _features_per_block(shape.n_bins * lanes * 4)
        self._shared_bytes = per_block * shape.n_bins * lanes * 4
        self._parts = GROUP // per_block
        self._piece = _piece(shape, self._parts)
        self._works = cp.empty((blocks(n, self._piece) + most + 2) * WORK.itemsize, dtype=cp.uint8)
        self._alpha = cp.empty(shape.layout.n_outputs)
        self._graph: tuple[Any, Any] = (None, None)
        macros = {"POLYLEAF_FEATURES_PER_BLOCK": per_block, "POLYLEAF_LANES": lanes}
        self._build = kernel("histogram.cuh", "build_histograms", **macros)
        self._build.max_dynamic_shared_size_bytes = self._shared_bytes
        self._others = {
            name: kernel("histogram.cuh", name, **macros)
            for name in ("clear_histograms", "subtract_histograms", "sum_nodes")
        }
        scan_lanes = _scan_lanes(shape.layout.n_outputs)
        self._scan = kernel("score.cuh", "scan", POLYLEAF_SCAN_LANES=scan_lanes)
        self._choose = kernel("score.cuh", "choose_splits", POLYLEAF_SCAN_LANES=scan_lanes)

    def begin(self, rows: Any) -> None:
        """Begin a tree on these rows (a uint32 CuPy array, ascending), or on all; no problem is known yet."""
        cp = cupy()
        self._on_all_rows = rows is None
        if rows is not None:
            self._root, self._root_works, self._n_root_works = self._root_of(len(rows))
            self._n_places = len(rows)
            self._rows[0][: len(rows)] = rows
        else:
            if self._whole is None:
                self._whole = self._root_of(self._shape.n_rows)
                self._all_rows = cp.arange(self._shape.n_rows, dtype=cp.uint32)
            self._root, self._root_works, self._n_root_works = self._whole
            self._n_places = self._shape.n_rows
            self._rows[0][:] = self._all_rows
        self._position[0][: self._n_places] = 0
        self._state[: len(self._root)] = self._root
        self._node_of[0][:1] = 0

    def visit(self, payload: Payload, alpha: Any, mask: npt.NDArray[np.uint8] | None) -> Visited:
        """Visit all nodes that the best-first tree may have, after `begin`.

        Parameters
        ----------
        payload : Payload
            What histograms sum.
        alpha : float64 CuPy array of shape (outputs,) or None
            L1 regularisation, in the integers of the gradients.
        mask : uint8 ndarray of shape (features,) or None
            1 where a feature may be used.
        """
        if alpha is not None:
            self._alpha[:] = alpha
            alpha = self._alpha
        search = _Search(payload, alpha, self._outputs(payload, alpha is not None), *self._features(mask))
        depth = self._shape.depth
        always_the_same = mask is None and self._on_all_rows and depth > 0 and not self._host_asks(depth)
        if not always_the_same:
            return self._visited(self._visit_levels(search) % 2)
        # The second tree is recorded, and from then on launched as a whole: launches cost the host most.
        arrays, graph = self._graph
        if arrays != payload.arrays():
            self._graph = (payload.arrays(), None)
            self._visit_levels(search)
        else:
            if graph is None:
                graph = recorded(lambda: self._visit_levels(search))
                self._graph = (arrays, graph)
            graph.launch()
        return self._visited(depth % 2)

    def _host_asks(self, depth: int) -> bool:
        """Whether the host needs to know how many nodes a level has."""
        return self._shape.leaves_are_scarce or 2**depth > _SMALL_LEVEL

    def _visit_levels(self, search: _Search) -> int:
        """Search and split the nodes of all levels; return how many levels there are."""
        shape, rules = self._shape, self._rules
        n_places = self._n_places
        levels, works = self._levels, self._root_works
        counts: _Counts | None = _Counts(1, self._n_root_works, 0)
        bar = _core.PruningBar(shape.max_leaves) if shape.max_leaves and shape.leaves_are_scarce else None
        n_searched, n_known = 0, 1  # nodes, where the host asks for them
        held: _Held | None = None
        whole, subtract = self._fits(1), False
        depth = 0
        while depth < shape.depth:
            level, following = levels[depth % 2], levels[(depth + 1) % 2]
            most = self._most(depth, n_places, subtract) if counts is None else counts
            search.turn = depth % 2
            parents = held.own if held is not None and subtract else None
            held = _Held(self._room(depth, most.n_nodes, search.n_groups), parents) if whole else None
            self._search(search, level, works, most, held)
            height = -np.inf
            if bar is not None:
                height = bar.raised_by(self._read_nodes(n_searched, n_known))
                n_searched = n_known
            children = min(2 * most.n_nodes, shape.nodes_at(depth + 1))
            subtract = whole and self._fits(children + most.n_nodes)
            whole = self._fits(children)
            launch(
                kernel("plan.cuh", "plan_level"),
                (1,),
                min(1024, blocks(most.n_nodes, 32) * 32),
                level,
                self._node_of[depth % 2],
                self._n_left,
                self._nodes,
                depth + 1 < shape.depth,
                float(height),
                rules.min_samples_leaf,
                subtract,
                np.uint32(self._piece),
                following,
                self._node_of[(depth + 1) % 2],
                self._child,
                self._lefts_before,
                self._pairs,
                self._works,
            )
            self._partition(depth, n_places)
            works = self._works
            depth += 1
            counts = None
            if self._host_asks(depth):
                n_nodes, n_works, n_pairs, n_known = (int(v) for v in following.get())
                counts = _Counts(n_nodes, n_works, n_pairs)
                if n_nodes == 0:
                    break
        return depth

    def _visited(self, turn: int) -> Visited:
        """Wait for the device, and return what it has found."""
        at_once = min(len(self._state), _SMALL_STATE)
        state = np.asarray(self._state[:at_once].get())
        head = state[:_HEAD].view(np.int32)
        end = _HEAD + int(head[4 * turn + 3]) * _NODE.itemsize
        if end > at_once:
            state = np.concatenate([state, self._state[at_once:end].get()])
        return Visited(state[_HEAD:end], self._rows[turn][: self._n_places], int(head[8]))

    def _root_of(self, n_places: int) -> tuple[Any, Any, int]:
        """Return the state of a tree that is a root of this many rows, and the works of its histogram."""
        begin = np.arange(0, n_places, self._piece)
        works = np.zeros(len(begin), WORK)
        works["begin"], works["end"] = begin, np.minimum(begin + self._piece, n_places)
        works["alone"] = len(begin) == 1
        root = np.zeros(1, _NODE)
        root["path_minimum"], root["end"] = np.inf, n_places
        for name in ("left", "feature", "bin"):
            root[name] = -1
        head = np.zeros(_HEAD, np.uint8)
        head[:16].view(np.int32)[:] = [1, len(begin), 0, 1]
        state = cupy().asarray(np.concatenate([head, root.view(np.uint8)]))
        return state, cupy().asarray(works.view(np.uint8)), len(works)

    def _outputs(self, payload: Payload, has_alpha: bool) -> Any:
        """Return what the rules need to know of the outputs, the same for every tree."""
        if self._rules_on_device is None:
            layout, rules = payload.layout, self._rules
            outputs = np.zeros(1, _OUTPUTS)
            outputs["n_outputs"] = layout.n_outputs
            outputs["hessian_channel"] = layout.hessian_channel
            outputs["weight_channel"] = layout.weight_channel
            outputs["count_channel"] = layout.count_channel
            outputs["reg_lambda"] = rules.reg_lambda
            outputs["min_split_gain"] = rules.min_split_gain
            outputs["min_child_weight"] = rules.min_child_weight
            outputs["min_samples_leaf"] = rules.min_samples_leaf
            outputs["has_alpha"] = has_alpha
            self._rules_on_device = cupy().asarray(outputs.view(np.uint8))
        return self._rules_on_device

    def _features(self, mask: npt.NDArray[np.uint8] | None) -> tuple[Any, Any, int]:
        """Return the groups with features that may be used, the mask, and the number of groups."""
        if mask is None:
            return self._all_groups, None, self._shape.n_groups
        groups = np.unique(np.flatnonzero(mask) // GROUP).astype(np.int32)
        return cupy().asarray(groups), cupy().asarray(mask), len(groups)

    def _most(self, depth: int, n_places: int, subtract: bool) -> _Counts:
        """Return the most that a level can hold."""
        n_nodes = self._shape.nodes_at(depth)
        built = n_places // 2 if subtract else n_places
        return _Counts(n_nodes, blocks(built, self._piece) + n_nodes, n_nodes // 2)

    def _fits(self, n_nodes: int) -> bool:
        """Whether the histograms of this many nodes are in memory together."""
        n_bytes = n_nodes * self._shape.n_groups * self._shape.group_bytes
        return n_bytes <= self._plan.n_bytes and n_nodes <= MOST_NODES

    def _room(self, depth: int, n_nodes: int, n_groups: int) -> Any:
        """Return memory for a level: at the front for even ones, at the end for odd ones."""
        size = n_nodes * n_groups * self._shape.group_bytes // 4
        return self._histograms[:size] if depth % 2 == 0 else self._histograms[len(self._histograms) - size :]

    def _search(self, search: _Search, level: Any, works: Any, most: _Counts, held: _Held | None) -> None:
        """Find the best split of each node of a level, of whose histograms all are `held` or none."""
        if held is not None:
            self._search_slice(search, level, works, most, 0, most.n_nodes, held.own, held.parents)
            return
        for first in range(0, most.n_nodes, self._plan.slice_nodes):
            n_nodes = min(self._plan.slice_nodes, most.n_nodes - first)
            self._search_slice(search, level, works, most, first, n_nodes, self._histograms, None)

    def _search_slice(
        self,
        search: _Search,
        level: Any,
        works: Any,
        most: _Counts,
        first: int,
        n_nodes: int,
        histograms: Any,
        parents: Any,
    ) -> None:
        shape, matrix, payload = self._shape, self._matrix, search.payload
        n_channels, n_bins = shape.layout.n_channels, shape.n_bins
        if search.mask is not None:
            self._found[: n_nodes * shape.n_features * BEST_BYTES].fill(255)  # NaN: not looked at
        step = min(search.n_groups, self._plan.slice_groups)
        scores = (search.outputs, payload.factor, payload.hessian_unit, search.alpha, payload.weight_unit)
        for first_group in range(0, search.n_groups, step):
            groups = search.groups[first_group : first_group + step]
            size = np.uint64(len(groups) * GROUP * n_bins * n_channels)
            for work in range(0, most.n_works, _MOST_BLOCKS):
                n_works = min(_MOST_BLOCKS, most.n_works - work)
                launch(
                    self._others["clear_histograms"],
                    (64, n_works),
                    _THREADS,
                    level,
                    works,
                    work,
                    first,
                    n_nodes,
                    size,
                    histograms,
                )
                launch(
                    self._build,
                    (len(groups) * self._parts, n_channels // shape.layout.lanes, n_works),
                    1024,
                    level,
                    works,
                    work,
                    first,
                    n_nodes,
                    len(groups),
                    groups,
                    self._rows[search.turn],
                    matrix.codes,
                    np.uint64(shape.n_rows),
                    payload.data,
                    n_channels,
                    n_bins,
                    histograms,
                    shared=self._shared_bytes,
                )
            if parents is not None:
                launch(
                    self._others["subtract_histograms"],
                    (max(1, min(256, int(size) // 4 // _THREADS)), max(1, most.n_pairs)),
                    _THREADS,
                    level,
                    self._pairs,
                    parents,
                    histograms,
                    size,
                )
            if first_group == 0:
                launch(
                    self._others["sum_nodes"],
                    (n_nodes, blocks(n_channels, 32)),
                    _THREADS,
                    level,
                    first,
                    len(groups),
                    histograms,
                    n_bins,
                    n_channels,
                    self._totals,
                )
            launch(
                self._scan,
                (len(groups) * GROUP, n_nodes),
                _THREADS,
                level,
                first,
                len(groups),
                groups,
                histograms,
                self._totals,
                shape.n_features,
                n_bins,
                n_channels,
                matrix.value_bins,
                matrix.has_missing,
                search.mask,
                *scores,
                self._found,
            )
        launch(
            self._choose,
            (n_nodes,),
            32,
            level,
            first,
            self._found,
            shape.n_features,
            self._totals,
            n_channels,
            *scores,
            self._node_of[search.turn],
            self._nodes,
            self._n_left,
        )

    def _partition(self, depth: int, n_places: int) -> None:
        """Move the rows of the nodes that are split to their children."""
        turn = depth % 2
        node_of, position, rows = self._node_of[turn], self._position[turn], self._rows[turn]
        grid = (blocks(n_places, _THREADS),)
        launch(
            kernel("plan.cuh", "take_sides"),
            grid,
            _THREADS,
            self._nodes,
            node_of,
            position,
            rows,
            self._matrix.codes,
            self._matrix.value_bins,
            np.uint32(n_places),
            np.uint64(self._shape.n_rows),
            self._left,
            self._block_lefts,
        )
        launch(kernel("plan.cuh", "sum_before"), (1,), 1024, self._block_lefts, grid[0])
        launch(
            kernel("plan.cuh", "move_rows"),
            grid,
            _THREADS,
            self._nodes,
            node_of,
            self._child,
            self._n_left,
            self._lefts_before,
            position,
            rows,
            self._left,
            self._block_lefts,
            np.uint32(n_places),
            self._position[1 - turn],
            self._rows[1 - turn],
        )

    def _read_nodes(self, begin: int, end: int) -> npt.NDArray[np.uint8]:
        """Return some visited nodes, as the core reads them. Waits for the device."""
        return np.asarray(self._nodes[begin * _NODE.itemsize : end * _NODE.itemsize].get())


@dataclass(frozen=True)
class _Held:
    """Histograms of all nodes of a level, and of their parents where the larger children are differences."""

    own: Any
    parents: Any


@dataclass
class _Search:
    """What the search of all levels of a tree has in common."""

    payload: Payload
    alpha: Any
    outputs: Any
    groups: Any
    mask: Any
    n_groups: int
    turn: int = 0


def _features_per_block(feature_bytes: int) -> int:
    """Return how many features' histograms of a tile fit the shared memory of a block."""
    room = cupy().cuda.Device().attributes["MaxSharedMemoryPerBlockOptin"]
    return next((n for n in (4, 2) if n * feature_bytes <= room), 1)


def _piece(shape: Shape, parts: int) -> int:
    """Return how many rows a block adds up: few enough for all processors to have much the same to do."""
    n_processors = cupy().cuda.Device().attributes["MultiProcessorCount"]
    n_tiles = shape.layout.n_channels // shape.layout.lanes
    rows = shape.n_rows * shape.n_groups * parts * n_tiles // (n_processors * _TURNS)
    return min(max(blocks(rows, 1024) * 1024, _SMALLEST_PIECE), _LARGEST_PIECE)


def _scan_lanes(n_outputs: int) -> int:
    """Return how many lanes share the outputs of a candidate."""
    return 4 if n_outputs <= 4 else 8
