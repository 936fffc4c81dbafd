"""One round's gradients as integers, on the grid that the CPU uses."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from polyleaf import _core
from polyleaf.data.inputs import FloatArray
from polyleaf.gpu.arrays import GpuArrays
from polyleaf.gpu.kept import Kept
from polyleaf.gpu.memory import Layout
from polyleaf.gpu.runtime import blocks, cupy, kernel, launch
from polyleaf.gpu.structs import Record, constant
from polyleaf.gpu.sums import WeightedRows
from polyleaf.growth.contract import SplitGradients

_THREADS = 256


def layout_of(splits: SplitGradients, weight: FloatArray | None, min_child_weight: float) -> Layout:
    """Return the channels that these gradients need."""
    diagonal = splits.hessian is not None
    shared = not diagonal and (splits.curvature is not None or weight is not None)
    return Layout(splits.gradient.shape[1], diagonal, shared or (diagonal and min_child_weight > 0))


@dataclass
class Payload:
    """What histograms sum: one vector of integers per row.

    Attributes
    ----------
    layout : Layout
        Its channels.
    data : int32 CuPy array of shape (tiles, rows, lanes)
        The integers.
    gradient_unit, hessian_unit : float64 CuPy array of shape (outputs,)
        What 1 of a channel means.
    factor : float64 CuPy array of shape (outputs,)
        Weight of squared integers in the score.
    weight_unit : float64 CuPy array of one number
        What 1 of the weight channel means.
    """

    layout: Layout
    data: Any
    gradient_unit: Any
    factor: Any
    hessian_unit: Any
    weight_unit: Any

    def arrays(self) -> tuple[int, ...]:
        """Return where the arrays are: a recorded search is of these."""
        arrays = (self.data, self.gradient_unit, self.factor, self.hessian_unit, self.weight_unit)
        return tuple(int(array.data.ptr) for array in arrays)


def check_problems(problems: int) -> None:
    """Raise what the CPU raises for such gradients."""
    if problems & constant("kNotFinite"):
        raise OverflowError("the gradients are not finite")
    if problems & constant("kNegative"):
        raise ValueError("the mean Hessian of a row is negative: it cannot stand for all outputs")


class Quantizer:
    """Makes payloads, and keeps their memory from round to round.

    Parameters
    ----------
    packed_sums : bool
        Whether numbers are rounded to the grid of packed sums where the CPU has these. They take no less
        memory here: it is for the same trees.
    """

    def __init__(self, packed_sums: bool) -> None:
        self._packed_sums = packed_sums
        self._data: Any = None
        self._one = cupy().ones(1)
        self._gain_weight = Kept()
        self._buffers: dict[str, Any] = {}
        self._grid: tuple[Any, tuple[Any, ...], tuple[float, float, float, bool]] | None = None

    def make(
        self,
        rows: WeightedRows,
        grids: Any,
        splits: SplitGradients,
        layout: Layout,
        weight: FloatArray | None,
        problems: Any,
    ) -> Payload:
        """Return the payload of what splits are found on.

        Parameters
        ----------
        rows : WeightedRows
            Gradients, Hessians and weights on the device.
        grids : float64 CuPy array of shape (kinds, 2, outputs)
            Of their sums.
        splits : SplitGradients
            The same gradients, and what else belongs to them.
        layout : Layout
            Its channels.
        weight : float64 ndarray of shape (rows,), or None
            The weights on the host.
        problems : int32 CuPy array of one number
            Bits are set where something is wrong with the gradients; see `check_problems`.
        """
        cp = cupy()
        n_rows, k = rows.gradient.shape
        limit, weight_grid, unit_of_weights, at_random = self._weight_grid(splits, weight)
        gain_weight = self._gain_weight.on_device(splits.gain_weight)
        rules = Record("UnitRules", limit=limit, weight_unit=weight_grid, gain_weight=gain_weight)
        factor = self._buffer("factor", k)
        parts = rows.sums(grids)
        unit, scale = self._units("gradients", parts, None, rules, factor, problems)
        weight_unit = weight_scale = self._one
        curvature: Any = splits.curvature
        if layout.weighted and layout.diagonal:  # for min_child_weight
            curvature = GpuArrays().row_sums(rows.hessian, np.full(k, 1 / k), "itself")
            curvature = curvature.astype(cp.float32)
        if curvature is not None:
            column = WeightedRows(curvature[:, np.newaxis], None, rows.weight)
            # Only what stands for the Hessian must not be negative.
            least = None if layout.diagonal else cp.empty((column.n_parts, 1), dtype=cp.float32)
            parts = column.sums(column.grids(), least)
            weight_unit, weight_scale = self._units("weights", parts, least, rules, None, problems)
        elif layout.weighted:
            weight_unit = self._buffer("unit of weights", 1)
            weight_scale = self._buffer("scale of weights", 1)
            weight_unit.fill(unit_of_weights)
            weight_scale.fill(weight_grid / unit_of_weights)
        scales = Record(
            "Scales",
            gradient=scale[:k],
            hessian=scale[k:],
            shared=weight_scale,
            weight=1.0 / weight_grid,
        )
        shape = (layout.n_channels // layout.lanes, n_rows, layout.lanes)
        if self._data is None or self._data.shape != shape:
            self._data = None  # before its successor is there
            self._data = cp.empty(shape, dtype=cp.int32)
        launch(
            kernel("gradients.cuh", "quantize"),
            (blocks(n_rows * layout.n_channels, _THREADS),),
            _THREADS,
            rows.record,
            curvature,
            scales,
            layout.record,
            at_random,
            self._data,
        )
        # Without Hessians nobody reads their units.
        hessian_unit = unit[:k] if rows.hessian is None else unit[k:]
        return Payload(layout, self._data, unit[:k], factor, hessian_unit, weight_unit)

    def _units(
        self, what: str, parts: Any, least: Any, rules: Record, factor: Any, problems: Any
    ) -> tuple[Any, Any]:
        """Return unit and scale of each column, from partial sums; of gradients, then of Hessians.

        `least`: smallest numbers, of which none may be negative. `factor`: where the weights of squares in
        the score are written.
        """
        n_kinds, n_parts, _, n = parts.shape
        unit, scale = (
            self._buffer(f"unit of {what}", n_kinds * n),
            self._buffer(f"scale of {what}", n_kinds * n),
        )
        units = Record("Units", unit=unit, scale=scale, factor=factor)
        choose = kernel("gradients.cuh", "choose_units")
        launch(choose, (n, n_kinds), 32, parts, least, n_parts, n, rules, units, problems)
        return unit, scale

    def _buffer(self, name: str, size: int) -> Any:
        """Return an array that is the same one in every round."""
        if name not in self._buffers or len(self._buffers[name]) != size:
            self._buffers[name] = cupy().empty(size)
        return self._buffers[name]

    def _weight_grid(
        self, splits: SplitGradients, weight: FloatArray | None
    ) -> tuple[float, float, float, bool]:
        """Return the grid of the CPU's payload of the same gradients; see `_core.fixed_point`."""
        diagonal = splits.hessian is not None
        shared = not diagonal and (splits.curvature is not None or weight is not None)
        n_rows, n_outputs = splits.gradient.shape
        kind = (n_rows, n_outputs, diagonal, shared, self._packed_sums)
        if self._grid is None or self._grid[0] is not weight or self._grid[1] != kind:
            self._grid = (weight, kind, _core.fixed_point(weight, *kind))
        return self._grid[2]
