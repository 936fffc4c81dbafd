"""A small problem, and its rows as tables of Dask."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import dask.array as da
import dask.dataframe as dd
import numpy as np
import pandas as pd

import dask

N = 120
_random = np.random.default_rng(0)
TABLE = pd.DataFrame(
    {
        "a": _random.normal(size=N),
        "b": _random.integers(0, 4, N).astype(float),
        "town": _random.choice(["Ulm", "Bonn", "Jena", "Kiel", "rare"], N, p=[0.4, 0.3, 0.2, 0.08, 0.02]),
        "c": np.where(_random.random(N) < 0.2, np.nan, _random.normal(size=N)),
    },
    index=pd.Index(np.arange(N) * 3 + 7, name="plot"),
)
X = TABLE[["a", "b", "c"]].to_numpy()
Y = np.column_stack([TABLE["a"] + (TABLE["town"] == "Ulm"), TABLE["b"] ** 2, _random.normal(size=N)])
TARGETS = pd.DataFrame(Y, columns=["u", "v", "w"], index=TABLE.index)
GAPS = TARGETS.where(_random.random(Y.shape) > 0.3)
CLASSES = pd.Series(np.array(["low", "mid", "high"])[Y.argmax(axis=1)], name="level", index=TABLE.index)
LABELS = (TARGETS > 0.5).astype(int)
WEIGHT = pd.Series(_random.integers(0, 3, N).astype(float), name="weight", index=TABLE.index)


def array(values: Any, chunks: int | Sequence[int]) -> Any:
    """Rows in chunks: of one size, or of these."""
    rows = chunks if isinstance(chunks, int) else tuple(chunks)
    return da.from_array(np.asarray(values), chunks=(rows,) + (-1,) * (np.ndim(values) - 1))


def frame(values: Any, cuts: Sequence[int]) -> Any:
    """A Dask data frame or series cut at these rows, of which Dask does not know how many there are."""
    bounds = zip([0, *cuts], [*cuts, len(values)], strict=True)
    pieces = [dask.delayed(values.iloc[low:high]) for low, high in bounds]
    return dd.from_delayed(pieces, meta=values.iloc[:0])


def watched(values: Any, folder: Any, chunks: int = 40) -> Any:
    """An array that leaves a file in `folder` when a chunk of it is computed."""

    def seen(block: Any, block_id: Any = None) -> Any:
        (folder / f"computed {block_id}").write_text("")
        return block

    return array(values, chunks).map_blocks(seen, dtype=np.asarray(values).dtype, meta=np.asarray(values)[:0])
