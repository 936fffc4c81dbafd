"""Sums and mixtures of the arrays of a round, rows x outputs, on the CPU."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from polyleaf import _core
from polyleaf.data.inputs import FloatArray
from polyleaf.data.sums import column_sums

_VECTOR = 16  # the core multiplies by columns of whole vectors

FloatMatrix = npt.NDArray[np.float32]


@dataclass(frozen=True)
class Sketch:
    """Sums of each row's gradients, filled while these are computed.

    Attributes
    ----------
    core : _core.Sketch
        What fills the arrays.
    mixtures : float32 ndarray of shape (rows, k) or None
        What `Arrays.project` returns; None: not asked for.
    sums : float64 ndarray of shape (rows,) or None
        What `Arrays.row_sums` returns; None: not asked for.
    hessian : Sketch or None
        That of the Hessian, where it is computed along with the gradients and not stored.
    """

    core: _core.Sketch
    mixtures: FloatMatrix | None
    sums: FloatArray | None
    hessian: Sketch | None = None


class Arrays(Protocol):
    """What a device does with float32 arrays of shape (rows, outputs) that it holds."""

    def project(self, values: Any, matrix: FloatArray) -> Any:
        """Return ``values @ matrix``."""

    def row_sums(self, values: Any, share: FloatArray, term: str) -> Any:
        """Return, per row, the sum of ``share * term(value)`` in float64.

        `term` is "itself", "square", or the rule by which a Hessian follows from the gradient.
        """

    def sketch(
        self, n_rows: int, matrix: FloatArray | None, share: FloatArray | None, term: str
    ) -> Sketch | None:
        """Return what `project` and `row_sums` make of the next gradients, to be filled while these are
        computed; None where this device has nothing to gain by that. Of `matrix` and `share` one may be None.
        """

    def column_squares(self, values: Any, weight: FloatArray | None) -> FloatArray:
        """Return, per output, the sum over the rows of weighted squares."""

    def take(self, values: Any, outputs: npt.NDArray[np.intp]) -> Any:
        """Return some outputs."""

    def to_host(self, values: Any) -> npt.NDArray[Any]:
        """Return a NumPy array."""


@dataclass(frozen=True)
class CpuArrays:
    """NumPy arrays. The threads change no bit."""

    n_threads: int = 1

    def project(self, values: FloatMatrix, matrix: FloatArray) -> FloatMatrix:
        """Return ``values @ matrix``."""
        out = np.empty((len(values), matrix.shape[1]), dtype=np.float32)
        _core.Sketch(_padded_columns(matrix), out).fill(values, self.n_threads)
        return out

    def row_sums(self, values: FloatMatrix, share: FloatArray, term: str) -> FloatArray:
        """Return, per row, the sum of ``share * term(value)``."""
        sums = np.empty(len(values))
        _core.Sketch(None, None, share, term, sums).fill(values, self.n_threads)
        return sums

    def sketch(self, n_rows: int, matrix: FloatArray | None, share: FloatArray | None, term: str) -> Sketch:
        """Return what `project` and `row_sums` make of the next gradients, to be filled."""
        sums = None if share is None else np.empty(n_rows)
        mixtures = None if matrix is None else np.empty((n_rows, matrix.shape[1]), dtype=np.float32)
        columns = None if matrix is None else _padded_columns(matrix)
        return Sketch(_core.Sketch(columns, mixtures, share, term, sums), mixtures, sums)

    def column_squares(self, values: FloatMatrix, weight: FloatArray | None) -> FloatArray:
        """Return, per output, the sum over the rows of weighted squares."""
        return column_sums(values, weight, squares=True, n_threads=self.n_threads)

    def take(self, values: FloatMatrix, outputs: npt.NDArray[np.intp]) -> FloatMatrix:
        """Return some outputs."""
        return np.take(values, outputs, axis=1)

    def to_host(self, values: npt.NDArray[Any]) -> npt.NDArray[Any]:
        """Return the array itself."""
        return values


def _padded_columns(matrix: FloatArray) -> FloatMatrix:
    padded = -(-len(matrix) // _VECTOR) * _VECTOR
    columns = np.zeros((matrix.shape[1], padded), dtype=np.float32)
    columns[:, : len(matrix)] = matrix.T
    return columns
