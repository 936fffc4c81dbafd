"""Leaves on the device: their rows, what they say, and what that adds to the scores."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from polyleaf import _core
from polyleaf.data.inputs import FloatArray
from polyleaf.gpu.kept import Kept
from polyleaf.gpu.matrix import DeviceMatrix
from polyleaf.gpu.memory import LEAF_CHUNK
from polyleaf.gpu.runtime import blocks, cupy, kernel, launch
from polyleaf.gpu.structs import Record, fields_of
from polyleaf.gpu.sums import WeightedRows, row_stride
from polyleaf.gpu.tree_state import CHUNK
from polyleaf.growth.contract import LeafGradients

_THREADS = 256
_ADD_PARTS = 16  # of a chunk of a leaf, to which its values are added at a time
_TEAMS = 8  # of threads, that share the rows of a chunk
_SUMS_BYTES = 48  # of a thread: both parts of three sums


class Leaves:
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
        n_chunks = -(-self.counts // LEAF_CHUNK)
        leaf = np.repeat(np.arange(len(places)), n_chunks)
        first = np.cumsum(n_chunks) - n_chunks
        of_leaf = np.arange(len(leaf)) - first[leaf]
        chunks = np.zeros(len(leaf), CHUNK)
        chunks["target"] = leaf
        chunks["begin"] = places[leaf, 0] + of_leaf * LEAF_CHUNK
        chunks["end"] = np.minimum(chunks["begin"].astype(np.int64) + LEAF_CHUNK, places[leaf, 1])
        self.n_chunks = len(chunks)
        self.n_leaves = len(places)
        first_chunk = np.append(first, len(leaf)).astype(np.int32)
        both = cupy().asarray(np.concatenate([chunks.view(np.uint8), first_chunk.view(np.uint8)]))
        self.chunks, self.first_chunk = both[: chunks.nbytes], both[chunks.nbytes :].view(np.int32)

    def of_all_rows(self) -> Leaves:
        """Return the leaves with all rows of the table in them, those of a leaf ascending."""
        return self.of_tree(self._visited.routes())

    def of_tree(self, arrays: dict[str, npt.NDArray[Any]]) -> Leaves:
        """Return the leaves with all rows, as a tree with these arrays sends them."""
        cp = cupy()
        n_rows = self._matrix.n_rows
        leaf = cp.empty(n_rows, dtype=cp.int32)
        routes = Record("Routes", **{name: cp.asarray(arrays[name]) for name in fields_of("Routes")})
        route = kernel("leaves.cuh", "route_rows")
        launch(route, (blocks(n_rows, _THREADS),), _THREADS, routes, self._matrix.on_device, leaf)
        order = cp.argsort(leaf, kind="stable").astype(cp.uint32)
        end = np.cumsum(cp.bincount(leaf, minlength=self.n_leaves).get())
        begin = np.append(0, end[:-1])
        places = np.stack([begin, end], axis=1).astype(np.uint32)
        return Leaves(self._matrix, self._visited, order, places)

    def add_to(self, raw: Any, values: Any, unit: Any) -> None:
        """Add the values of the leaves, in these units (a CuPy array), to the scores of their rows."""
        launch(
            kernel("leaves.cuh", "add_leaves"),
            (self.n_chunks, _ADD_PARTS),
            _THREADS,
            self.chunks,
            self.rows,
            values,
            unit,
            values.shape[1],
            np.uint64(row_stride(raw)),
            raw,
        )


class LeafFiller:
    """Values of leaves, from the gradients of their rows as they are.

    Parameters
    ----------
    settings : GrowSettings
        The same for every tree.
    """

    def __init__(self, settings: _core.GrowSettings) -> None:
        self._settings = settings
        self._alpha = Kept()

    def fill(
        self,
        leaves: Leaves,
        rows: WeightedRows,
        gradients: LeafGradients,
        learning_rate: float,
        grids: Record,
        *,
        plain: bool,
        least_weight: float,
    ) -> Filled:
        """Return values of the leaves and the sums they are made of.

        Parameters
        ----------
        leaves : Leaves
            Whose rows are summed.
        rows : WeightedRows
            Gradients, Hessians and weights of all rows.
        gradients : LeafGradients
            The same gradients, and what else belongs to them.
        learning_rate : float
            Factor of the values.
        grids : Record
            Of the sums.
        plain : bool
            Whether these round nothing away: rows are then added one after the other.
        least_weight : float
            Of any row.
        """
        d = rows.gradient.shape[1]
        width = min(128, blocks(d, 32) * 32)
        bounded = self._settings.bounded_influence and not gradients.has_own_hessian
        term = "abs(p-y)" if bounded else gradients.hessian_rule  # magnitudes, for their limits

        def sums_within(limits: Any) -> Any:
            threads = width if plain else _TEAMS * width
            sums = cupy().empty((leaves.n_chunks, 2, 2 * d + 1))
            launch(
                kernel("leaves.cuh", "sum_leaves"),
                (leaves.n_chunks, blocks(d, width)),
                threads,
                leaves.chunks,
                leaves.rows,
                rows.record,
                _core.TERMS[term],
                width,
                grids,
                limits,
                sums,
                shared=0 if plain else threads * _SUMS_BYTES,
            )
            return sums

        sums = sums_within(None)
        filled = Filled(leaves.n_leaves, d)
        reg_alpha = self._settings.reg_alpha
        rules = Record(
            "LeafRules",
            alpha=None if reg_alpha == 0 else self._alpha.on_device(reg_alpha / gradients.unit),
            reg_lambda=self._settings.reg_lambda,
            learning_rate=learning_rate,
            own_hessian=gradients.has_own_hessian,
        )
        launch(
            kernel("leaves.cuh", "value_leaves"),
            (leaves.n_leaves, blocks(d, width)),
            width,
            leaves.first_chunk,
            sums,
            d,
            rules,
            filled.values,
            filled.totals,
        )
        if bounded:
            limits = self._limits(leaves, rows, filled.totals, width, least_weight)
            launch(
                kernel("leaves.cuh", "value_bounded_leaves"),
                (blocks(d, width),),
                width,
                leaves.first_chunk,
                leaves.n_leaves,
                sums_within(limits),
                filled.totals,
                limits,
                d,
                rules,
                filled.values,
            )
        return filled

    def _limits(
        self, leaves: Leaves, rows: WeightedRows, totals: Any, width: int, least_weight: float
    ) -> Any:
        """Return what a row may say in each leaf, of shape (leaves, outputs); see rules/influence.hpp."""
        cp, d = cupy(), rows.gradient.shape[1]
        largest, limits = cp.empty((leaves.n_chunks, d)), cp.empty((leaves.n_leaves, d))
        launch(
            kernel("leaves.cuh", "largest_in_leaves"),
            (leaves.n_chunks, blocks(d, width)),
            _TEAMS * width,
            leaves.chunks,
            leaves.rows,
            rows.record,
            width,
            largest,
            shared=_TEAMS * width * 8,
        )
        launch(
            kernel("leaves.cuh", "limit_leaves"),
            (blocks(d, width),),
            width,
            leaves.first_chunk,
            leaves.n_leaves,
            least_weight,
            totals,
            largest,
            d,
            limits,
        )
        return limits


class Filled:
    """What leaves say, and the sums that it is made of, side by side in memory: they are fetched at once.

    Attributes
    ----------
    totals : float64 CuPy array of shape (leaves, 2 * outputs + 1)
        Of gradients, Hessians and weight.
    values : float32 CuPy array of shape (leaves, outputs)
        In units.
    """

    def __init__(self, n_leaves: int, n_outputs: int) -> None:
        cp = cupy()
        n_totals = n_leaves * (2 * n_outputs + 1)
        self._bytes = cp.empty(n_totals * 8 + n_leaves * n_outputs * 4, dtype=cp.uint8)
        self.totals, self.values = self._parts(self._bytes, n_leaves, n_outputs)

    @staticmethod
    def _parts(both: Any, n_leaves: int, n_outputs: int) -> tuple[Any, Any]:
        end = n_leaves * (2 * n_outputs + 1) * 8
        totals = both[:end].view(np.float64).reshape(n_leaves, 2 * n_outputs + 1)
        return totals, both[end:].view(np.float32).reshape(n_leaves, n_outputs)

    def fetch(self) -> tuple[FloatArray, npt.NDArray[np.float32]]:
        """Return totals and values on the host. Waits for the device."""
        return self._parts(self._bytes.get(), *self.values.shape)
