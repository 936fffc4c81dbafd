"""One small table with all that columns can be, and the sources it can come from."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

pl = pytest.importorskip("polars")

N = 300
SMALL = {"n_estimators": 3, "min_samples_leaf": 3, "max_depth": 3, "random_state": 0, "n_jobs": 2}
NUMBERS, CATEGORIES = ["a", "b", "c", "i", "n", "yes"], ["word", "kind"]
FEATURES = [*NUMBERS, *CATEGORIES]


def make_table() -> pd.DataFrame:
    rng = np.random.default_rng(7)
    table = pd.DataFrame(rng.normal(size=(N, 3)), columns=["a", "b", "c"])
    table["b"] = table["b"].astype(np.float32)
    table["c"] = table["c"].mask(rng.random(N) < 0.2)
    table["i"] = rng.integers(-40, 40, N).astype(np.int16)
    table["n"] = pd.array(np.where(np.arange(N) < N // 2, rng.integers(0, 9, N), -1), dtype="Int32")
    table.loc[N // 2 :, "n"] = table.loc[N // 2 :, "n"].mask(rng.random(N - N // 2) < 0.3)
    table["yes"] = rng.random(N) < 0.3
    words = rng.choice(["red", "blue", "green", "grey"], N).astype(object)
    table["word"] = pd.Series(words, dtype="str").mask(rng.random(N) < 0.1)
    table["kind"] = pd.Categorical(rng.choice(["u", "v", "w"], N), categories=["w", "v", "u", "never"])
    table["price"] = table["a"] * 3 + (table["word"] == "red") + rng.normal(size=N) * 0.1
    table["cost"] = (table["b"].astype(float) ** 2 + table["yes"]).mask(rng.random(N) < 0.1)
    table["grade"] = pd.Series(np.where(table["a"] > 0.5, "good", np.where(table["b"] > 0, "fair", "bad")))
    table["hit"] = (table["a"] > 0).astype(int)
    table["hot"] = (table["b"] > 0.3).astype(int)
    table["w"] = rng.integers(0, 3, N).astype(float)
    return table


TABLE = make_table()
ARROW = pa.Table.from_pandas(TABLE)


def write(folder: Path, table: pa.Table = ARROW, files: int = 3, row_group_size: int = 37) -> Path:
    """Write a table as several files of several row groups each."""
    step = -(-table.num_rows // files)
    for number in range(files):
        part = table.slice(number * step, step)
        pq.write_table(part, folder / f"part-{number}.parquet", row_group_size=row_group_size)
    return folder


class Batches:
    """What can be gone through as often as one likes."""

    def __init__(self, make: Callable[[], Iterator[Any]]) -> None:
        self._make = make

    def __iter__(self) -> Iterator[Any]:
        return self._make()


def cut(parts: Sequence[Any], at: Sequence[int], n_rows: int = N) -> Batches:
    """Return tables and columns in batches that end at these rows."""
    ends = [*sorted(at), n_rows]

    def taken(values: Any, begin: int, end: int) -> Any:
        if isinstance(values, dict):
            return {name: one[begin:end] for name, one in values.items()}
        is_arrow = isinstance(values, pa.Table | pa.ChunkedArray)
        return values.slice(begin, end - begin) if is_arrow else values[begin:end]

    def make() -> Iterator[Any]:
        for begin, end in zip([0, *ends[:-1]], ends, strict=True):
            yield tuple(taken(values, begin, end) for values in parts)

    return Batches(make)


def as_library(table: pd.DataFrame, library: str) -> Any:
    if library == "pandas":
        return table
    arrow = pa.Table.from_pandas(table, preserve_index=False)
    return arrow if library == "pyarrow" else pl.from_arrow(arrow)


def file_of(model: Any, folder: Path) -> bytes:
    """Return the bytes of a model's file."""
    model.save_model(folder / "model")
    return (folder / "model").read_bytes()
