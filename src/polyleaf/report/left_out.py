"""What a report does not look at, and what the model does not use: said, not hidden."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import scipy.sparse

from polyleaf.data.inputs import FloatArray, Mask
from polyleaf.report.outputs import ObservedOutputs
from polyleaf.report.subject import Subject

_MOST_NAMED = 200
_BLOCK_CELLS = 1 << 22


def column_facts(subject: Subject) -> tuple[FloatArray, Mask]:
    """Return how many cells of each feature are missing, and which features have one value in all rows."""
    table: Any = subject.table
    n_rows, n_features = table.shape
    missing, constant = np.zeros(n_features), np.zeros(n_features, dtype=bool)
    sparse = scipy.sparse.csc_array(table) if scipy.sparse.issparse(table) else None
    step = max(1, _BLOCK_CELLS // max(1, n_rows))
    for begin in range(0, n_features, step):
        columns = slice(begin, begin + step)
        block = table[:, columns] if sparse is None else sparse[:, columns].toarray()
        gaps = np.isnan(block)
        missing[columns] = gaps.sum(axis=0)
        same = (block == block[:1]) | (gaps & gaps[:1])
        constant[columns] = same.all(axis=0)
    return missing, constant


def unobserved(outputs: ObservedOutputs, names: Sequence[str]) -> list[list[Any]]:
    """Return name and number of the rows that do not count, of the columns of y that have any."""
    found = []
    for column, name in enumerate(names):
        rows, _ = outputs.weighted_rows(column)
        if len(rows) < outputs.n_rows:
            found.append([name, outputs.n_rows - len(rows)])
    return found


def named(what: str, names: Sequence[str], of: int) -> dict[str, Any]:
    """Return a line that says how many of so many there are, and the names of the first."""
    return {"what": what, "count": len(names), "of": of, "names": list(names[:_MOST_NAMED])}
