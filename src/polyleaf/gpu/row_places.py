"""Row numbers on the device, those of a node side by side."""

from __future__ import annotations

from typing import Any

from polyleaf.gpu.matrix import DeviceMatrix
from polyleaf.gpu.runtime import blocks, cupy, kernel, launch
from polyleaf.gpu.structs import Record
from polyleaf.gpu.tree_state import TreeState

_THREADS = 256


class RowPlaces:
    """The rows of the nodes of a level; those of two levels take turns in memory.

    Parameters
    ----------
    matrix : DeviceMatrix
        Whose rows these are.

    Attributes
    ----------
    n_places : int
        Rows that the tree is grown from.
    """

    def __init__(self, matrix: DeviceMatrix) -> None:
        cp = cupy()
        n_rows = matrix.n_rows
        n_blocks = blocks(n_rows, _THREADS)
        self._matrix = matrix
        self._rows = [cp.empty(n_rows, dtype=cp.uint32) for _ in range(2)]
        self._position = [cp.empty(n_rows, dtype=cp.int32) for _ in range(2)]
        self._block_lefts = cp.empty(n_blocks, dtype=cp.int32)
        left = cp.empty(n_blocks * _THREADS // 32, dtype=cp.uint32)
        self._sides = Record("Sides", left=left, block_lefts=self._block_lefts)
        self._all_rows: Any = None
        self.n_places = 0

    def begin(self, rows: Any) -> None:
        """Begin with all these rows (a uint32 CuPy array, ascending; None: all of the table) in the root."""
        if rows is None and self._all_rows is None:
            self._all_rows = cupy().arange(self._matrix.n_rows, dtype=cupy().uint32)
        rows = self._all_rows if rows is None else rows
        n_before, self.n_places = self.n_places, len(rows)
        self._rows[0][: self.n_places] = rows
        self._position[0][: self.n_places] = 0
        if self.n_places != n_before:
            self._places = [
                Record("Places", position=position, rows=some, n_places=self.n_places)
                for position, some in zip(self._position, self._rows, strict=True)
            ]

    def rows(self, depth: int) -> Any:
        """Return the row numbers in the order of the level at a depth."""
        return self._rows[depth % 2][: self.n_places]

    def split(self, depth: int, state: TreeState) -> None:
        """Move the rows of the nodes of a level that are split to their children."""
        turn = depth % 2
        nodes, places = state.nodes(depth), self._places[turn]
        grid = (blocks(self.n_places, _THREADS),)
        table = self._matrix.on_device
        launch(kernel("plan.cuh", "take_sides"), grid, _THREADS, nodes, places, table, self._sides)
        launch(kernel("plan.cuh", "sum_before"), (1,), 1024, self._block_lefts, grid[0])
        to = self._places[1 - turn]
        following = state.following(depth)
        launch(kernel("plan.cuh", "move_rows"), grid, _THREADS, nodes, following, places, self._sides, to)
