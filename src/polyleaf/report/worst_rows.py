"""The rows that a model is most wrong about."""

from __future__ import annotations

import numpy as np

from polyleaf.report.outputs import Output, OutputRows
from polyleaf.report.scores import losses_of_rows

N_WORST = 20
N_WORST_OF_OUTPUT = 5


class WorstRows:
    """Losses of rows added up over outputs, and which output each row is most wrong about.

    Parameters
    ----------
    n_rows : int
        How many rows there are.
    """

    def __init__(self, n_rows: int) -> None:
        self._loss = np.zeros(n_rows)
        self._most = np.full(n_rows, -1.0)
        self._culprit = np.full(n_rows, -1, dtype=np.intp)
        self._of_output: dict[int, list[tuple[int, float, float]]] = {}

    def add(self, output: Output, observed: OutputRows) -> None:
        """Count an output."""
        losses = losses_of_rows(output, observed)
        rows = observed.rows
        self._loss[rows] += losses
        worse = losses > self._most[rows]
        self._most[rows[worse]] = losses[worse]
        self._culprit[rows[worse]] = output.place
        order = np.argsort(-losses, kind="stable")[:N_WORST_OF_OUTPUT]
        columns = (rows, observed.truth, observed.prediction)
        first = (column[order[losses[order] > 0]].tolist() for column in columns)
        self._of_output[output.place] = list(zip(*first, strict=True))

    def of_output(self, output: Output) -> list[tuple[int, float, float]]:
        """Return row, what was observed and what was predicted of an output, the worst row first."""
        return self._of_output.get(output.place, [])

    def overall(self) -> list[tuple[int, int, float]]:
        """Return row, worst output and loss over all outputs, the worst first."""
        order = np.argsort(-self._loss, kind="stable")[:N_WORST]
        return [
            (int(row), int(self._culprit[row]), float(self._loss[row]))
            for row in order
            if self._loss[row] > 0
        ]
