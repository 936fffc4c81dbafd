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
from polyleaf.gpu.sums import Columns, float_rows
from polyleaf.growth.contract import SplitGradients

_THREADS = 256


def layout_of(splits: SplitGradients, weight: FloatArray | None, min_child_weight: float) -> Layout:
    """Return the channels that these gradients need."""
    diagonal = splits.hessian is not None
    shared = not diagonal and (splits.curvature is not None or weight is not None)
    return Layout(splits.gradient.shape[1], diagonal, shared or (diagonal and min_child_weight > 0))


@dataclass(frozen=True)
class GradientGrids:
    """Grids of the sums of gradients and Hessians, of shape (2, outputs); None: there are no Hessians."""

    gradient: Any
    hessian: Any

    @classmethod
    def zeros(cls, n_outputs: int) -> GradientGrids:
        """Return grids that round nothing away: plain sums."""
        grids = cupy().zeros((2, n_outputs))
        return cls(grids, grids)

    @classmethod
    def of(cls, gradient: Any, hessian: Any, weight: Any) -> GradientGrids:
        """Return those of the largest terms."""
        of_hessian = None if hessian is None else Columns(hessian, weight).grids()
        return cls(Columns(gradient, weight).grids(), of_hessian)


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


def gradients_record(gradient: Any, hessian: Any, weight: Any) -> Record:
    """Return gradients, Hessians and weights of rows as kernels take them."""
    n_rows, n_outputs = gradient.shape
    return Record(
        "Gradients",
        gradient=float_rows(gradient),
        hessian=float_rows(hessian),
        weight=weight,
        n_rows=n_rows,
        n_outputs=n_outputs,
    )


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
        splits: SplitGradients,
        layout: Layout,
        weight: FloatArray | None,
        weight_on_device: Any,
        problems: Any,
        grids: GradientGrids,
    ) -> Payload:
        """Return the payload of what splits are found on.

        Parameters
        ----------
        splits : SplitGradients
            Of CuPy arrays.
        layout : Layout
            Its channels.
        weight, weight_on_device : float64 ndarray and CuPy array of shape (rows,), or None
            Weights of the rows, in both places.
        problems : int32 CuPy array of one number
            Bits are set where something is wrong with the gradients; see `check_problems`.
        grids : GradientGrids
            Of these gradients and Hessians.
        """
        cp = cupy()
        gradient = splits.gradient
        n_rows, k = gradient.shape
        limit, weight_grid, unit_of_weights, at_random = self._weight_grid(splits, weight)
        factor = self._buffer("factor", k)
        gain_weight = self._gain_weight.on_device(splits.gain_weight)
        rules = Record("UnitRules", limit=limit, weight_unit=weight_grid, gain_weight=gain_weight)

        def units(what: str, values: Any, grids: Any, **options: Any) -> tuple[Any, Any]:
            columns = Columns(values, weight_on_device)
            return self._units(what, columns, grids, rules, problems, **options)

        gradient_unit, gradient_scale = units("gradients", gradient, grids.gradient, factor=factor)
        hessian_unit, hessian_scale = gradient_unit, None  # of which there are none
        if splits.hessian is not None:
            hessian_unit, hessian_scale = units("Hessians", splits.hessian, grids.hessian)
        weight_unit = weight_scale = self._one
        curvature: Any = splits.curvature
        if layout.weighted and layout.diagonal:  # for min_child_weight
            curvature = GpuArrays().row_sums(splits.hessian, np.full(k, 1 / k), "itself")
            curvature = curvature.astype(cp.float32)
        if curvature is not None:
            # Only what stands for the Hessian must not be negative.
            column = curvature[:, np.newaxis]
            of_column = Columns(column, weight_on_device).grids()
            weight_unit, weight_scale = units("weights", column, of_column, positive=not layout.diagonal)
        elif layout.weighted:
            weight_unit = self._buffer("unit of weights", 1)
            weight_scale = self._buffer("scale of weights", 1)
            weight_unit.fill(unit_of_weights)
            weight_scale.fill(weight_grid / unit_of_weights)
        scales = Record(
            "Scales",
            gradient=gradient_scale,
            hessian=hessian_scale,
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
            gradients_record(gradient, splits.hessian, weight_on_device),
            curvature,
            scales,
            layout.record,
            at_random,
            self._data,
        )
        return Payload(layout, self._data, gradient_unit, factor, hessian_unit, weight_unit)

    def _units(
        self,
        what: str,
        columns: Columns,
        grids: Any,
        rules: Record,
        problems: Any,
        *,
        factor: Any = None,
        positive: bool = False,
    ) -> tuple[Any, Any]:
        """Return unit and scale of each column; see `make`.

        `factor`: where the weights of squares in the score are written. `positive`: a number below 0 is a
        problem.
        """
        cp = cupy()
        n = columns.values.shape[1]
        least = cp.empty((columns.n_parts, n), dtype=cp.float32) if positive else None
        parts = columns.sums(grids, least)
        unit, scale = self._buffer(f"unit of {what}", n), self._buffer(f"scale of {what}", n)
        launch(
            kernel("gradients.cuh", "choose_units"),
            (n,),
            32,
            parts,
            least,
            len(parts),
            n,
            rules,
            Record("Units", unit=unit, scale=scale, factor=factor),
            problems,
        )
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
