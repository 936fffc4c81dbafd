"""A polars LazyFrame as a source: its query is run once, streamed to a temporary Parquet file.

All columns are then read from that file: a query that is run again may have its rows in another order.
"""

from __future__ import annotations

import inspect
import re
import tempfile
import warnings
from pathlib import Path
from typing import Any

from polyleaf.data.parquet_files import import_pyarrow_dataset
from polyleaf.data.parquet_source import ParquetSource
from polyleaf.data.wanted_columns import Wanted

_ROW_GROUP_ROWS = 1 << 17
# What pandas calls an index without a name in a Parquet file.
_INDEX_OF_PANDAS = re.compile(r"__index_level_\d+__")


def open_lazy_frame(frame: Any, wanted: Wanted, name: str) -> ParquetSource:
    """Return the rows of a LazyFrame; its temporary file lasts until the source is closed.

    Parameters
    ----------
    frame : polars.LazyFrame
        The query.
    wanted : Wanted
        Which of its columns are used, and what for.
    name : str
        What errors call it.
    """
    ds = import_pyarrow_dataset("a polars LazyFrame, which is written to a temporary Parquet file,")
    schema = frame.collect_schema()
    present = [column for column in schema.names() if not _INDEX_OF_PANDAS.fullmatch(column)]
    wanted.columns(present, set(), name)  # before the query is run
    _refuse_what_parquet_cannot_hold(schema, name)
    if len(present) < len(schema):
        frame = frame.select(present)
    if wanted.features is not None and set(wanted.features) <= set(present):
        needed = {*wanted.features, *wanted.targets(present), wanted.weight}
        frame = frame.select([column for column in present if column in needed])
    _warn_of_fallback(frame, name)
    folder = tempfile.TemporaryDirectory(prefix="polyleaf-")
    try:
        path = Path(folder.name) / "rows.parquet"
        # Earlier versions of polars stream always.
        known = inspect.signature(frame.sink_parquet).parameters
        engine = {"engine": "streaming"} if "engine" in known else {}
        frame.sink_parquet(
            path, compression="lz4", row_group_size=_ROW_GROUP_ROWS, maintain_order=True, **engine
        )
        return ParquetSource(ds.dataset(path, format="parquet"), wanted, name, "polars", folder.cleanup)
    except BaseException:
        folder.cleanup()
        raise


def _refuse_what_parquet_cannot_hold(schema: Any, name: str) -> None:
    for column, dtype in schema.items():
        if str(dtype) in ("Object", "Int128", "UInt128"):
            raise ValueError(
                f"{name}: column {column!r} has dtype {dtype}, which a Parquet file does not hold; drop or "
                "cast it in the query."
            )


def _warn_of_fallback(frame: Any, name: str) -> None:
    """Warn where polars says that steps of a query hold all rows: its plan marks these by a colour."""
    try:
        plan = frame.show_graph(engine="streaming", plan_stage="physical", raw_output=True, show=False)
    except Exception:  # of a version that draws no such plan; the query runs all the same
        return
    legend = re.search(r'COLOR="([^"]+)">[^<]*</FONT> in-memory engine fallback', plan or "")
    if legend is None:
        return
    nodes = re.findall(rf'\[label="([^"\\]+)[^\n]*fillcolor="{re.escape(legend.group(1))}"\]', plan)
    if nodes:
        steps = ", ".join(dict.fromkeys(nodes))
        warnings.warn(
            f"{name}: polars cannot stream all of the query: it holds all rows in memory for {steps}.",
            UserWarning,
            stacklevel=2,
        )
