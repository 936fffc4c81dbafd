"""Predictions of a source, some rows at a time: joined in memory, beside y, or written to a Parquet file."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from importlib import import_module
from typing import Any

import numpy as np

from polyleaf.data.device_arrays import on_host
from polyleaf.data.eval_sets import EvalInput
from polyleaf.data.joined_parts import joined
from polyleaf.data.parquet_files import import_pyarrow_dataset
from polyleaf.data.parquet_source import ParquetSource
from polyleaf.data.sources import (
    WERE_THERE_ANY,
    frames_to_predict,
    no_target,
    opened,
    rows_of,
    source_kind,
    table_of_batch,
    targets_of_batches,
)
from polyleaf.data.tables import frame_kind
from polyleaf.files.written_file import checked_target, file_in_place_of

Predict = Callable[[Any], Any]
Path = str | os.PathLike[str]
# Names that say that a file is something else than Parquet.
_OTHER_TABLES = (".csv", ".tsv", ".txt", ".json", ".jsonl", ".xls", ".xlsx", ".feather", ".arrow", ".orc")
_OTHER_FORMATS = frozenset((*_OTHER_TABLES, ".npy", ".npz", ".pkl", ".gz", ".bz2", ".xz", ".zst", ".zip"))


def predict_by_parts(
    X: Any, features: Sequence[str] | None, predict: Predict, columns: Sequence[str], out: Path | None
) -> Any:
    """Return the predictions of all rows of a source; None where they are written to a file instead.

    Parameters
    ----------
    X : Any
        A source, or a table in memory, which is one part.
    features : sequence of str or None
        Names of the features of ``fit``.
    predict : callable
        Returns the predictions of a table.
    columns : sequence of str
        Names of the columns of the file, where predictions are arrays.
    out : str, os.PathLike or None
        The file. It appears when it is complete, and replaces one of the same name.
    """
    if out is not None:
        import_pyarrow_dataset("out=..., which writes a Parquet file,")
        return _written(map(predict, parts_to_predict(X, features)), columns, out)
    return joined([predict(part) for part in parts_to_predict(X, features)], "the prediction")


def predict_beside_targets(
    given: EvalInput, features: Sequence[str] | None, predict: Predict
) -> tuple[Any, Any, Any]:
    """Return the predictions of all rows of a source, y and weights; batches are gone through once.

    Parameters
    ----------
    given : EvalInput
        X is the source; y and the weights may be names of its columns, or come with its batches.
    features : sequence of str or None
        Names of the features of ``fit``.
    predict : callable
        Returns the predictions of a table.
    """
    if source_kind(given.X) == "batches":
        return _predict_batches(given, predict)
    with opened(given, None, features) as rows:
        rows = rows_of(rows)
        source = rows.X
        assert isinstance(source, ParquetSource)
        predictions = [predict(part) for part in source.frames()]
    return joined(predictions, "the prediction"), rows.y, rows.weight


def _predict_batches(given: EvalInput, predict: Predict) -> tuple[Any, Any, Any]:
    targets = targets_of_batches(given)
    predictions = []
    batches: Any = given.X
    for number, batch in enumerate(batches):
        place = f"batch {number}"
        parts = targets.taken_apart(batch, place)
        predictions.append(predict(table_of_batch(parts[0], place, given.X_name)))
        targets.keep(parts, predictions[-1].shape[0], place)
    if not predictions:
        raise ValueError(f"{given.X_name}: there are no batches{WERE_THERE_ANY}.")
    y, weight = targets.joined()
    y = given.y if y is None else y
    if y is None:
        raise no_target(given)
    return joined(predictions, "the prediction"), y, given.weight if weight is None else weight


def parts_to_predict(X: Any, features: Sequence[str] | None) -> Iterator[Any]:
    """Return the parts of a source, or a table in memory as one part; parameters as in `predict_by_parts`."""
    return iter([X]) if source_kind(X) is None else frames_to_predict(X, features)


def _written(predictions: Iterator[Any], columns: Sequence[str], out: Path) -> None:
    target = checked_target(out, "the predictions")
    if os.path.splitext(os.fspath(out))[1].lower() in _OTHER_FORMATS:
        raise ValueError(
            f"out={os.fspath(out)!r}: what is written is a Parquet file; end its name in .parquet."
        )
    parquet = import_module("pyarrow.parquet")
    with file_in_place_of(target) as file:
        writer = table = None
        try:
            for prediction in predictions:
                table = _arrow_table(prediction, columns)
                if table.num_rows == 0:  # which need not know its types
                    continue
                if writer is None:
                    writer = parquet.ParquetWriter(file, table.schema)
                writer.write_table(table)
            if writer is None and table is not None:
                parquet.write_table(table, file)
        finally:
            if writer is not None:
                writer.close()


def _arrow_table(prediction: Any, columns: Sequence[str]) -> Any:
    """Return predictions as a table of pyarrow."""
    pa = import_module("pyarrow")
    kind = frame_kind(prediction)
    if kind == "pyarrow":
        return prediction
    if kind is not None:  # of a mixed model
        return (
            pa.Table.from_pandas(prediction, preserve_index=False)
            if kind == "pandas"
            else prediction.to_arrow()
        )
    if isinstance(prediction, Mapping):
        by_name = {name: np.asarray(values) for name, values in prediction.items()}
    else:
        values = on_host(prediction)
        by_name = dict(zip(columns, values.reshape(len(values), len(columns)).T, strict=True))
    return pa.table({name: _arrow_column(values) for name, values in by_name.items()})


def _arrow_column(values: Any) -> Any:
    pa = import_module("pyarrow")
    if values.dtype.kind in "UT":
        return pa.array(values.tolist(), pa.string())
    return pa.array(values.tolist() if values.dtype.kind == "O" else np.ascontiguousarray(values))
