"""Histograms of the nodes of a level, in the memory that is planned for them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from polyleaf.gpu.matrix import DeviceMatrix
from polyleaf.gpu.memory import MOST_NODES, QUAD, HistogramPlan, Shape
from polyleaf.gpu.runtime import blocks, cupy, kernel, launch
from polyleaf.gpu.structs import Record

_THREADS = 256
_BUILD_THREADS = 1024
_MOST_BLOCKS = 60000  # of a grid in its second and third direction
_LARGEST_CHUNK, _SMALLEST_CHUNK = 8192, 2048  # rows that one block adds up: a multiple of its threads
_TURNS = 5  # blocks that each processor gets of the root, or more


@dataclass(frozen=True)
class Rows:
    """What the histograms of a level are built from.

    Attributes
    ----------
    level, chunks : uint8 CuPy array
        The level, and the rows of its nodes that are added up, chunk by chunk.
    n_chunks, n_pairs : int
        Chunks, and siblings of which one is a difference; or the most that there can be.
    rows : uint32 CuPy array
        Row numbers, those of a node side by side.
    pairs : int32 CuPy array
        The siblings.
    payload : int32 CuPy array
        What is summed.
    """

    level: Any
    chunks: Any
    n_chunks: int
    n_pairs: int
    rows: Any
    pairs: Any
    payload: Any


@dataclass(frozen=True)
class Held:
    """Histograms of all nodes of a level, and of their parents where the larger children are differences."""

    own: Any
    parents: Any


@dataclass(frozen=True)
class Slice:
    """Some nodes and quads of features of a level whose histograms are in memory together."""

    first_node: int
    n_nodes: int
    quads: Any
    record: Record

    @property
    def n_quads(self) -> int:
        """How many quads of features."""
        return len(self.quads)


class Histograms:
    """Memory of histograms, and the kernels that fill it.

    Parameters
    ----------
    matrix : DeviceMatrix
        The table.
    shape, plan
        Of the problem, and how histograms are kept.

    Attributes
    ----------
    chunk_rows : int
        Rows that one block adds up.
    """

    def __init__(self, matrix: DeviceMatrix, shape: Shape, plan: HistogramPlan) -> None:
        self._matrix = matrix
        self._shape = shape
        self._plan = plan
        self._memory = cupy().empty(plan.n_bytes // 4, dtype=cupy().int32)
        lanes = shape.layout.lanes
        per_block = features_per_block(shape.n_bins * lanes * 4)
        self._shared_bytes = per_block * shape.n_bins * lanes * 4
        self._parts = QUAD // per_block
        self.chunk_rows = _chunk_rows(shape, self._parts)
        macros = {"POLYLEAF_FEATURES_PER_BLOCK": per_block, "POLYLEAF_LANES": lanes}
        self._kernels = {
            name: kernel("histogram.cuh", f"{name}_histograms", **macros)
            for name in ("clear", "build", "subtract")
        }
        self._kernels["build"].max_dynamic_shared_size_bytes = self._shared_bytes
        self._sum_nodes = kernel("histogram.cuh", "sum_nodes", **macros)

    def fit(self, n_nodes: int) -> bool:
        """Whether the histograms of this many nodes are in memory together."""
        n_bytes = n_nodes * self._shape.n_quads * self._shape.quad_bytes
        return n_bytes <= self._plan.n_bytes and n_nodes <= MOST_NODES

    def hold(self, depth: int, n_nodes: int, n_quads: int, parents: Held | None) -> Held:
        """Return memory for a level: at the front for even ones, at the end for odd ones."""
        size = n_nodes * n_quads * self._shape.quad_bytes // 4
        own = self._memory[:size] if depth % 2 == 0 else self._memory[len(self._memory) - size :]
        return Held(own, None if parents is None else parents.own)

    def slices(self, n_nodes: int, quads: Any, held: Held | None) -> list[list[Slice]]:
        """Return some nodes at a time, and of these some quads of features at a time.

        Where all histograms of a level are `held`, its nodes are one slice.
        """
        step = n_nodes if held is not None else self._plan.slice_nodes
        memory = self._memory if held is None else held.own
        n_quads = min(len(quads), self._plan.slice_quads)
        return [
            [
                self._slice(memory, first, min(step, n_nodes - first), quads[quad : quad + n_quads])
                for quad in range(0, len(quads), n_quads)
            ]
            for first in range(0, n_nodes, step)
        ]

    def build(self, some: Slice, of: Rows, held: Held | None) -> None:
        """Fill the histograms of a slice."""
        shape = self._shape
        for first in range(0, of.n_chunks, _MOST_BLOCKS):
            n_chunks = min(_MOST_BLOCKS, of.n_chunks - first)
            which = (of.level, of.chunks, first, some.record)
            launch(self._kernels["clear"], (64, n_chunks), _THREADS, *which)
            launch(
                self._kernels["build"],
                (some.n_quads * self._parts, shape.layout.n_channels // shape.layout.lanes, n_chunks),
                _BUILD_THREADS,
                *which,
                self._matrix.on_device,
                of.rows,
                of.payload,
                shared=self._shared_bytes,
            )
        if held is not None and held.parents is not None:
            n_blocks = some.n_quads * shape.quad_bytes // 16 // _THREADS
            launch(
                self._kernels["subtract"],
                (max(1, min(256, n_blocks)), max(1, of.n_pairs)),
                _THREADS,
                of.level,
                of.pairs,
                held.parents,
                some.record,
            )

    def sum_nodes(self, some: Slice, level: Any, totals: Any) -> None:
        """Write the sums of all rows of each node of a slice."""
        grid = (some.n_nodes, blocks(self._shape.layout.n_channels, 32))
        launch(self._sum_nodes, grid, _THREADS, level, some.record, totals)

    def _slice(self, memory: Any, first_node: int, n_nodes: int, quads: Any) -> Slice:
        record = Record(
            "HistogramSlice",
            histograms=memory,
            quads=quads,
            n_quads=len(quads),
            first_node=first_node,
            n_nodes=n_nodes,
            n_bins=self._shape.n_bins,
            n_channels=self._shape.layout.n_channels,
        )
        return Slice(first_node, n_nodes, quads, record)


def features_per_block(feature_bytes: int) -> int:
    """Return how many features' histograms of a tile fit the shared memory of a block."""
    room = cupy().cuda.Device().attributes["MaxSharedMemoryPerBlockOptin"]
    return next((n for n in (4, 2) if n * feature_bytes <= room), 1)


def _chunk_rows(shape: Shape, parts: int) -> int:
    """Return how many rows a block adds up: few enough for all processors to have much the same to do."""
    n_processors = cupy().cuda.Device().attributes["MultiProcessorCount"]
    n_tiles = shape.layout.n_channels // shape.layout.lanes
    rows = shape.n_rows * shape.n_quads * parts * n_tiles // (n_processors * _TURNS)
    return min(max(blocks(rows, 1024) * 1024, _SMALLEST_CHUNK), _LARGEST_CHUNK)
