"""The nodes of a tree, level by level, searched and split on the device."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from polyleaf import _core
from polyleaf.gpu.histograms import Held, Histograms, Rows
from polyleaf.gpu.matrix import DeviceMatrix
from polyleaf.gpu.memory import HistogramPlan, Shape
from polyleaf.gpu.quantize import Payload
from polyleaf.gpu.row_places import RowPlaces
from polyleaf.gpu.runtime import blocks, cupy, recorded
from polyleaf.gpu.split_search import Features, SplitSearch
from polyleaf.gpu.structs import Record
from polyleaf.gpu.tree_state import TreeState, rules_of

_SMALL_LEVEL = 256  # the host asks how many nodes a level has where it could have more


@dataclass(frozen=True)
class _Counts:
    """What a level holds, or the most that it can."""

    n_nodes: int
    n_chunks: int
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
    settings : GrowSettings
        The same for every tree.
    """

    def __init__(
        self, matrix: DeviceMatrix, shape: Shape, plan: HistogramPlan, settings: _core.GrowSettings
    ) -> None:
        self._shape = shape
        self._rules = rules_of(settings)
        self._histograms = Histograms(matrix, shape, plan)
        self._search = SplitSearch(matrix, shape, plan, self._histograms)
        self._state = TreeState(shape, self._histograms.chunk_rows, self._rules)
        self._places = RowPlaces(matrix)
        self._alpha = cupy().empty(shape.layout.n_outputs)
        self._graph: tuple[Any, Any] = (None, None)

    @property
    def problems(self) -> Any:
        """What is wrong with the gradients, as bits on the device."""
        return self._state.problems

    def begin(self, rows: Any) -> None:
        """Begin a tree on these rows (a uint32 CuPy array, ascending), or on all; no problem is known yet."""
        self._on_all_rows = rows is None
        self._places.begin(rows)
        self._state.begin(self._places.n_places, keep=rows is None)

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
        scoring = Record(
            "Scoring",
            rules=self._rules,
            channels=payload.layout.record,
            factor=payload.factor,
            hessian_unit=payload.hessian_unit,
            alpha=alpha,
            weight_unit=payload.weight_unit,
        )
        features = self._search.features(mask)
        depth = self._shape.depth
        always_the_same = mask is None and self._on_all_rows and depth > 0 and not self._host_asks(depth)
        if not always_the_same:
            return self._visited(self._visit_levels(payload, scoring, features))
        # The second tree is recorded, and from then on launched as a whole: launches cost the host most.
        arrays, graph = self._graph
        if arrays != payload.arrays():
            self._graph = (payload.arrays(), None)
            self._visit_levels(payload, scoring, features)
        else:
            if graph is None:
                graph = recorded(lambda: self._visit_levels(payload, scoring, features))
                self._graph = (arrays, graph)
            graph.launch()
        return self._visited(depth)

    def _host_asks(self, depth: int) -> bool:
        """Whether the host needs to know how many nodes a level has."""
        return self._shape.leaves_are_scarce or 2**depth > _SMALL_LEVEL

    def _visit_levels(self, payload: Payload, scoring: Record, features: Features) -> int:
        """Search and split the nodes of all levels; return how many levels there are."""
        shape, state, histograms = self._shape, self._state, self._histograms
        counts: _Counts | None = _Counts(1, state.n_root_chunks, 0)
        bar = _core.PruningBar(shape.max_leaves) if shape.max_leaves and shape.leaves_are_scarce else None
        n_searched, n_known = 0, 1  # nodes, where the host asks for them
        held: Held | None = None
        whole, subtract = histograms.fit(1), False
        depth = 0
        while depth < shape.depth:
            most = self._most(depth, subtract) if counts is None else counts
            n_quads = len(features.quads)
            parents = held if subtract else None
            held = histograms.hold(depth, most.n_nodes, n_quads, parents) if whole else None
            rows = self._rows_at(depth, most, payload)
            self._search.search(rows, most.n_nodes, held, features, scoring, state.nodes(depth))
            height = -np.inf
            if bar is not None:
                height = bar.raised_by(state.read_nodes(n_searched, n_known))
                n_searched = n_known
            children = min(2 * most.n_nodes, shape.nodes_at(depth + 1))
            subtract = whole and histograms.fit(children + most.n_nodes)
            whole = histograms.fit(children)
            may_go_on = depth + 1 < shape.depth
            state.plan_next(depth, most.n_nodes, height, may_go_on=may_go_on, subtract=subtract)
            self._places.split(depth, state)
            depth += 1
            counts = None
            if self._host_asks(depth):
                *of_level, n_known = state.counts(depth)
                counts = _Counts(*of_level)
                if counts.n_nodes == 0:
                    break
        return depth

    def _rows_at(self, depth: int, most: _Counts, payload: Payload) -> Rows:
        """Return what the histograms of a level are built from."""
        return Rows(
            level=self._state.level(depth),
            chunks=self._state.chunks(depth),
            n_chunks=most.n_chunks,
            n_pairs=most.n_pairs,
            rows=self._places.rows(depth),
            pairs=self._state.pairs,
            payload=payload.data,
        )

    def _visited(self, depth: int) -> Visited:
        """Wait for the device, and return what it has found down to a depth."""
        nodes, problems = self._state.finish(depth)
        return Visited(nodes, self._places.rows(depth), problems)

    def _most(self, depth: int, subtract: bool) -> _Counts:
        """Return the most that a level can hold."""
        n_nodes, n_places = self._shape.nodes_at(depth), self._places.n_places
        built = n_places // 2 if subtract else n_places
        return _Counts(n_nodes, blocks(built, self._histograms.chunk_rows) + n_nodes, n_nodes // 2)
