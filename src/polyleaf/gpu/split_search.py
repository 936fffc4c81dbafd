"""The best split of each node of a level, from its histograms."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from polyleaf.gpu.histograms import Held, Histograms, Rows, Slice
from polyleaf.gpu.matrix import DeviceMatrix
from polyleaf.gpu.memory import BEST_BYTES, QUAD, HistogramPlan, Shape
from polyleaf.gpu.runtime import cupy, kernel, launch
from polyleaf.gpu.structs import Record

_THREADS = 256
_NOT_A_NUMBER = 255  # a byte of it


@dataclass(frozen=True)
class Features:
    """Those that a tree may use: quads of them, and a mask where not all of a quad are.

    Attributes
    ----------
    quads : int32 CuPy array
        Numbers of the quads.
    mask : uint8 CuPy array of shape (features,) or None
        1 where a feature may be used.
    """

    quads: Any
    mask: Any


class SplitSearch:
    """Searches the nodes of levels, and keeps its work space from tree to tree.

    Parameters
    ----------
    matrix : DeviceMatrix
        The table.
    shape, plan
        Of the problem, and how histograms are kept.
    histograms : Histograms
        Where these are.
    """

    def __init__(
        self, matrix: DeviceMatrix, shape: Shape, plan: HistogramPlan, histograms: Histograms
    ) -> None:
        cp = cupy()
        self._matrix = matrix
        self._shape = shape
        self._histograms = histograms
        self._all = Features(cp.arange(shape.n_quads, dtype=cp.int32), None)
        self._found = cp.empty(plan.slice_nodes * shape.n_features * BEST_BYTES, dtype=cp.uint8)
        self._totals = cp.empty(plan.slice_nodes * shape.layout.n_channels, dtype=cp.int32)
        lanes = _scan_lanes(shape.layout.n_outputs)
        self._scan = kernel("score.cuh", "scan", POLYLEAF_SCAN_LANES=lanes)
        self._choose = kernel("score.cuh", "choose_splits", POLYLEAF_SCAN_LANES=lanes)

    def features(self, mask: npt.NDArray[np.uint8] | None) -> Features:
        """Return those with a 1 in the mask; None: all."""
        if mask is None:
            return self._all
        quads = np.unique(np.flatnonzero(mask) // QUAD).astype(np.int32)
        return Features(cupy().asarray(quads), cupy().asarray(mask))

    def search(
        self, rows: Rows, n_nodes: int, held: Held | None, features: Features, scoring: Record, nodes: Record
    ) -> None:
        """Find the best split of each node of a level.

        Parameters
        ----------
        rows : Rows
            What histograms are built from.
        n_nodes : int
            Nodes of the level, or the most that it can have.
        held : Held or None
            Where the histograms of all nodes are to be; None: some at a time.
        features : Features
            That may be used.
        scoring : Record
            What candidates are scored by.
        nodes : Record
            Where the splits are written.
        """
        for of_nodes in self._histograms.slices(n_nodes, features.quads, held):
            first = of_nodes[0]
            if features.mask is not None:  # some are not looked at
                n_found = first.n_nodes * self._shape.n_features
                self._found[: n_found * BEST_BYTES].fill(_NOT_A_NUMBER)
            for some in of_nodes:
                self._histograms.build(some, rows, held)
                if some is first:
                    self._histograms.sum_nodes(some, rows.level, self._totals)
                self._scan_slice(some, rows.level, features.mask, scoring)
            launch(
                self._choose,
                (first.n_nodes,),
                32,
                rows.level,
                first.first_node,
                self._found,
                self._shape.n_features,
                self._totals,
                scoring,
                nodes,
            )

    def _scan_slice(self, some: Slice, level: Any, mask: Any, scoring: Record) -> None:
        launch(
            self._scan,
            (some.n_quads * QUAD, some.n_nodes),
            _THREADS,
            level,
            some.record,
            self._totals,
            self._matrix.on_device,
            mask,
            scoring,
            self._found,
        )


def _scan_lanes(n_outputs: int) -> int:
    """Return how many lanes share the outputs of a candidate."""
    return 4 if n_outputs <= 4 else 8
