"""The visited nodes of a tree on the device, and the plan of its levels."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from polyleaf import _core
from polyleaf.gpu.memory import Shape
from polyleaf.gpu.runtime import blocks, cupy, kernel, launch
from polyleaf.gpu.structs import Record, struct_type

_NODE, _LEVEL, CHUNK = struct_type("VisitedNode"), struct_type("Level"), struct_type("RowChunk")
_HEAD = 64  # bytes of the state before the nodes: two levels, and the problems of the gradients
_PROBLEMS = 2 * _LEVEL.itemsize
_AT_ONCE = 2**16  # bytes of the state that are fetched together


class TreeState:
    """Nodes and levels, of which the host knows only what it asks for.

    A level and the next one take turns in memory: the level at depth d has turn d % 2.

    Parameters
    ----------
    shape : Shape
        Of the problem.
    chunk_rows : int
        Rows whose histograms one block adds up.
    rules : Record
        Of the tree.

    Attributes
    ----------
    problems : int32 CuPy array of one number
        What is wrong with the gradients, as bits; see `polyleaf.gpu.quantize.check_problems`.
    pairs : int32 CuPy array
        Siblings of a level whose larger one is to be subtracted.
    """

    def __init__(self, shape: Shape, chunk_rows: int, rules: Record) -> None:
        cp = cupy()
        most = shape.nodes_at(max(shape.depth - 1, 0))
        self._rules = rules
        self._chunk_rows = chunk_rows
        self._state = cp.empty(_HEAD + shape.most_nodes * _NODE.itemsize, dtype=cp.uint8)
        self._levels = [
            self._state[turn * _LEVEL.itemsize : (turn + 1) * _LEVEL.itemsize] for turn in range(2)
        ]
        self.problems = self._state[_PROBLEMS : _PROBLEMS + 4].view(cp.int32)
        self._node_of = [cp.zeros(most + 2, dtype=cp.int32) for _ in range(2)]
        n_chunks = blocks(shape.n_rows, chunk_rows) + most + 2
        self._chunks = cp.empty(n_chunks * CHUNK.itemsize, dtype=cp.uint8)
        self.pairs = cp.empty(3 * most + 3, dtype=cp.int32)
        n_left = cp.empty(most + 2, dtype=cp.int32)
        nodes = self._state[_HEAD:]
        self._nodes = [
            Record("LevelNodes", nodes=nodes, node_of=some, n_left=n_left) for some in self._node_of
        ]
        child, lefts_before = cp.empty(2 * most + 2, dtype=cp.int32), cp.empty(most + 2, dtype=cp.int32)
        self._next = [
            Record(
                "NextLevel",
                level=self._levels[1 - turn],
                node_of=self._node_of[1 - turn],
                child=child,
                lefts_before=lefts_before,
                pairs=self.pairs,
                chunks=self._chunks,
            )
            for turn in range(2)
        ]
        self._roots: dict[int, tuple[Any, Any]] = {}

    def begin(self, n_places: int, *, keep: bool) -> None:
        """Begin a tree that is a root of this many rows; no problem is known yet.

        `keep`: others of as many rows will follow.
        """
        found = self._roots.get(n_places) or self._root_of(n_places)
        if keep:
            self._roots[n_places] = found
        root, self._root_chunks = found
        self.n_root_chunks = len(self._root_chunks) // CHUNK.itemsize
        self._state[: len(root)] = root
        self._node_of[0][:1] = 0

    def level(self, depth: int) -> Any:
        """Return the level at a depth, for kernels."""
        return self._levels[depth % 2]

    def nodes(self, depth: int) -> Record:
        """Return the nodes of that level, for kernels."""
        return self._nodes[depth % 2]

    def following(self, depth: int) -> Record:
        """Return the level after it, for kernels."""
        return self._next[depth % 2]

    def chunks(self, depth: int) -> Any:
        """Return the rows whose histograms are built at a depth."""
        return self._root_chunks if depth == 0 else self._chunks

    def plan_next(self, depth: int, n_nodes: int, bar: float, *, may_go_on: bool, subtract: bool) -> None:
        """Split the nodes of a level, of which there are at most `n_nodes`; their children are the next one.

        `bar`: the path minimum that a node must reach. `subtract`: of two children only one is built.
        """
        rules = Record(
            "LevelRules",
            rules=self._rules,
            bar=bar,
            may_go_on=may_go_on,
            subtract=subtract,
            chunk_rows=self._chunk_rows,
        )
        launch(
            kernel("plan.cuh", "plan_level"),
            (1,),
            min(1024, blocks(n_nodes, 32) * 32),
            self.level(depth),
            self.nodes(depth),
            rules,
            self.following(depth),
        )

    def counts(self, depth: int) -> tuple[int, int, int, int]:
        """Return nodes, chunks of rows and pairs of a level, and all nodes so far. Waits for the device."""
        n_nodes, n_chunks, n_pairs, n_known = (int(n) for n in self.level(depth).get().view(np.int32))
        return n_nodes, n_chunks, n_pairs, n_known

    def read_nodes(self, begin: int, end: int) -> npt.NDArray[np.uint8]:
        """Return some visited nodes, as the core reads them. Waits for the device."""
        first, last = (_HEAD + node * _NODE.itemsize for node in (begin, end))
        return np.asarray(self._state[first:last].get())

    def finish(self, depth: int) -> tuple[npt.NDArray[np.uint8], int]:
        """Wait for the device; return all nodes, and what is wrong with the gradients.

        `depth`: of the last level.
        """
        at_once = min(len(self._state), _AT_ONCE)
        state = np.asarray(self._state[:at_once].get())
        level = state[: 2 * _LEVEL.itemsize].view(_LEVEL)[depth % 2]
        end = _HEAD + int(level["next_node"]) * _NODE.itemsize
        if end > at_once:
            state = np.concatenate([state, self._state[at_once:end].get()])
        return state[_HEAD:end], int(state[_PROBLEMS : _PROBLEMS + 4].view(np.int32)[0])

    def _root_of(self, n_places: int) -> tuple[Any, Any]:
        """Return the state of a tree that is a root of this many rows, and the chunks of its rows."""
        begin = np.arange(0, n_places, self._chunk_rows)
        chunks = np.zeros(len(begin), CHUNK)
        chunks["begin"], chunks["end"] = begin, np.minimum(begin + self._chunk_rows, n_places)
        chunks["alone"] = len(begin) == 1
        root = np.zeros(1, _NODE)
        root["path_minimum"], root["end"] = np.inf, n_places
        for name in ("left", "feature", "bin"):
            root[name] = -1
        head = np.zeros(_HEAD, np.uint8)
        first = head[: _LEVEL.itemsize].view(_LEVEL)
        first["n_nodes"], first["n_chunks"], first["next_node"] = 1, len(begin), 1
        cp = cupy()
        return cp.asarray(np.concatenate([head, root.view(np.uint8)])), cp.asarray(chunks.view(np.uint8))


def rules_of(settings: _core.GrowSettings) -> Record:
    """Return the rules of trees, for kernels."""
    return Record.of_bytes("Rules", _core.rules_of(settings))
