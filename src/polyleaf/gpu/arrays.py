"""Sums and mixtures of the arrays of a round, rows x outputs, on the device."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from polyleaf._core import TERMS
from polyleaf.data.inputs import FloatArray
from polyleaf.gpu.runtime import blocks, cupy, kernel, launch
from polyleaf.gpu.structs import Record
from polyleaf.gpu.sums import column_squares, float_rows

_THREADS = 256
_WARPS = _THREADS // 32


class GpuArrays:
    """CuPy arrays. Each number is the sum of its terms in an order that is always the same."""

    def project(self, values: Any, matrix: FloatArray) -> Any:
        """Return ``values @ matrix`` of a matrix whose rows hold few numbers that are not 0."""
        cp = cupy()
        members = [np.flatnonzero(column) for column in matrix.T]
        begin = np.cumsum([0] + [len(some) for some in members], dtype=np.int32)
        output = np.concatenate(members).astype(np.int32)
        share = np.concatenate([matrix[some, k] for k, some in enumerate(members)])
        mixtures = Record(
            "Mixtures",
            begin=cp.asarray(begin),
            output=cp.asarray(output),
            share=cp.asarray(share),
            n_mixtures=len(members),
        )
        out = cp.empty((len(values), matrix.shape[1]), dtype=cp.float32)
        launch(
            kernel("gradients.cuh", "mix_outputs"),
            (blocks(len(values), _WARPS),),
            _THREADS,
            float_rows(values),
            np.uint64(len(values)),
            mixtures,
            out,
        )
        return out

    def sketch(self, n_rows: int, matrix: FloatArray | None, share: FloatArray | None, term: str) -> None:
        """Return None: sketches are made of gradients that are there."""
        return

    def row_sums(self, values: Any, share: FloatArray, term: str) -> Any:
        """Return, per row, the sum of ``share * term(value)``."""
        cp = cupy()
        out = cp.empty(len(values))
        launch(
            kernel("gradients.cuh", "sum_rows"),
            (blocks(len(values), _WARPS),),
            _THREADS,
            float_rows(values),
            cp.asarray(share),
            np.uint64(len(values)),
            values.shape[1],
            TERMS[term],
            out,
        )
        return out

    def column_squares(self, values: Any, weight: Any) -> FloatArray:
        """Return, per output, the sum over the rows of weighted squares, on the host."""
        return column_squares(values, None if weight is None else cupy().asarray(weight))

    def take(self, values: Any, outputs: npt.NDArray[np.intp]) -> Any:
        """Return some outputs."""
        return cupy().take(values, cupy().asarray(outputs), axis=1)

    def to_host(self, values: Any) -> npt.NDArray[Any]:
        """Return a NumPy array."""
        return np.asarray(values.get())
