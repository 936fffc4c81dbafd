"""The training table on the device."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from polyleaf import _core
from polyleaf.gpu.memory import QUAD
from polyleaf.gpu.runtime import cupy
from polyleaf.gpu.structs import Record


@dataclass(frozen=True)
class DeviceMatrix:
    """Bin codes on the device.

    Attributes
    ----------
    codes : uint8 CuPy array of shape (quads, rows, QUAD)
        The codes of the features, a quad of them side by side.
    table : BinnedMatrix
        Cut points of the features; it need not have any rows.
    value_bins, has_missing : int32 and uint8 CuPy array of shape (features,)
        Bins of values, and whether there is one of missing values after them.
    n_bins : int
        The most bins a feature has.
    """

    codes: Any
    table: _core.BinnedMatrix
    value_bins: Any
    has_missing: Any
    n_bins: int

    @classmethod
    def of(cls, codes: Any, table: _core.BinnedMatrix) -> DeviceMatrix:
        """Return the matrix of these codes."""
        cp = cupy()
        features = range(table.n_features)
        value_bins = np.array([len(table.cuts(f)) + 1 for f in features], dtype=np.int32)
        has_missing = np.array([table.has_missing(f) for f in features], dtype=np.uint8)
        n_bins = int((value_bins + has_missing).max())
        return cls(codes, table, cp.asarray(value_bins), cp.asarray(has_missing), n_bins)

    @classmethod
    def of_table(cls, table: _core.BinnedMatrix, n_threads: int) -> DeviceMatrix:
        """Return a copy of a table that the CPU has binned."""
        return cls.of(cupy().asarray(_core.interleaved_codes(table, QUAD, n_threads)), table)

    @property
    def n_rows(self) -> int:
        """Rows of the table."""
        return int(self.codes.shape[1])

    @property
    def n_features(self) -> int:
        """Columns of the table."""
        return len(self.value_bins)

    @cached_property
    def on_device(self) -> Record:
        """The table as kernels take it."""
        return Record(
            "BinnedTable",
            codes=self.codes,
            value_bins=self.value_bins,
            has_missing=self.has_missing,
            n_rows=self.n_rows,
            n_features=self.n_features,
        )
