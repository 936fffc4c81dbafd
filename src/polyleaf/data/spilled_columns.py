"""Numbers on disk: written some rows at a time, read some columns at a time."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import BinaryIO

import numpy as np

from polyleaf.data.tables import Array

# Rows of a segment that are read together.
_BLOCK_CELLS = 1 << 22


@dataclass(frozen=True)
class _Segment:
    """Rows that were written together: column after column, from `offset` on."""

    offset: int
    n_rows: int
    dtype: np.dtype[np.generic]


class SpilledColumns:
    """A table in a temporary file, which has no name and is gone when it is closed.

    Attributes
    ----------
    n_rows : int
        Rows written so far.
    cell_bytes : int
        Bytes of the widest number written so far.
    """

    def __init__(self) -> None:
        self._file: BinaryIO = tempfile.TemporaryFile(prefix="polyleaf-")  # noqa: SIM115 (closed by close())
        self._segments: list[_Segment] = []
        self._end = 0
        self.n_rows = 0
        self.cell_bytes = 1

    def append(self, rows: Array) -> None:
        """Write some rows, of shape (rows, columns), after those that are there."""
        if len(rows) == 0:
            return
        columns = np.ascontiguousarray(rows.T)
        self._segments.append(_Segment(self._end, len(rows), columns.dtype))
        self._file.seek(self._end)
        self._file.write(columns.view(np.uint8).data)
        self._end += columns.nbytes
        self.n_rows += len(rows)
        self.cell_bytes = max(self.cell_bytes, columns.dtype.itemsize)

    def blocks(self, columns: Sequence[int]) -> Iterator[Array]:
        """Yield all rows of some columns, some rows at a time, column by column in memory."""
        for segment in self._segments:
            step = max(1, _BLOCK_CELLS // max(1, len(columns)))
            for begin in range(0, segment.n_rows, step):
                yield self._read(segment, begin, min(begin + step, segment.n_rows), columns)

    def _read(self, segment: _Segment, begin: int, end: int, columns: Sequence[int]) -> Array:
        block = np.empty((len(columns), end - begin), dtype=segment.dtype)
        for row, j in enumerate(columns):
            self._file.seek(segment.offset + (j * segment.n_rows + begin) * segment.dtype.itemsize)
            wanted = memoryview(block[row].view(np.uint8))
            if self._file.readinto(wanted) != len(wanted):  # type: ignore[attr-defined]
                raise OSError("the temporary file with the rows of the batches has been cut short.")
        return block.T

    def close(self) -> None:
        """Remove the file."""
        self._file.close()
