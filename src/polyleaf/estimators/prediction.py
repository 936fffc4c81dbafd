"""From a table to predictions: its numbers, raw scores, and what these say about the targets."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, TypeAlias

import numpy as np
import scipy.sparse

from polyleaf.data import memory
from polyleaf.data.binned_rows import BinnedRows
from polyleaf.data.category_values import Categories, category_codes
from polyleaf.data.device_arrays import array_module, is_device_array, looked_up, on_host
from polyleaf.data.inputs import Array, FloatArray, check_features, read_table, table_numbers
from polyleaf.data.mixed_targets import CodedGroup
from polyleaf.data.sparse_formats import SparseTable
from polyleaf.data.targets import TargetCoding
from polyleaf.estimators.targets import Targets
from polyleaf.losses import Loss, make_link
from polyleaf.metrics import make_metrics
from polyleaf.metrics.quantiles import d2_pinball
from polyleaf.model.forest import Forest
from polyleaf.params.objectives import link_of

TableToPredict: TypeAlias = "Array | SparseTable | BinnedRows"

# Raw scores computed together where not all of them are kept.
_BLOCK_CELLS = 1 << 19
# Bytes of scores from which on it is asked whether there is room for them.
_LEAST_TO_ASK = 1 << 28


def read_features(
    estimator: object, X: object, categories: Categories, n_threads: int
) -> Array | SparseTable:
    """Return a table to predict as numbers, checked against the features that the estimator was fitted on."""
    if not categories:
        return check_features(estimator, X, reset=False, n_threads=n_threads)
    table = read_table(estimator, X, reset=False, min_rows=0)
    return table_numbers(table, category_codes(table, categories), n_threads)


# --- scores ------------------------------------------------------------------------------------------------


def predicted_by_gpu(
    forest: Forest, table: Array | SparseTable, n_rounds: int, n_threads: int, link: Loss | None
) -> FloatArray:
    """Return what `link` makes of the raw scores, None: these themselves, as the GPU computes them."""
    from polyleaf.gpu.predictor import linked, predict_raw  # which need CuPy

    if table.shape[0] == 0:  # no row, no kernel
        raw = forest.predict_raw(on_host(table), n_rounds=n_rounds, n_threads=n_threads)
        nothing: FloatArray = array_module(table).asarray(raw if link is None else link.predict(raw))
        return nothing
    raw = predict_raw(forest, table, n_rounds, n_threads=n_threads)
    predictions: FloatArray = linked(link, raw, n_threads)
    return predictions


def check_room(n_rows: int, n_outputs: int, bytes_a_cell: int) -> None:
    """Raise MemoryError where the machine does not have the room for all scores of some rows.

    `bytes_a_cell` is what the scores take, 8, and what is made of them while they are there.
    """
    size = bytes_a_cell * n_rows * n_outputs
    if size < _LEAST_TO_ASK:  # asking takes longer than predicting a row
        return
    free = memory.available()
    if free is not None and size > free:
        raise MemoryError(
            f"scores of {n_rows:,} rows and {n_outputs:,} outputs take {memory.in_words(size)}, and "
            f"{memory.in_words(free)} are available: ask for some rows at a time, or, of classes and labels, "
            "for the best few with predict(X, top_k=...)."
        )


def raw_blocks(forest: Forest, table: TableToPredict, n_rounds: int, n_threads: int) -> Iterator[FloatArray]:
    """Yield the raw scores of some rows at a time, once where there is no row."""
    table = scipy.sparse.csr_array(table) if scipy.sparse.issparse(table) else on_host(table)
    step = max(1, _BLOCK_CELLS // forest.n_outputs)
    n_rows = table.shape[0]
    for begin in range(0, max(1, n_rows), step):
        if isinstance(table, BinnedRows):
            rows: TableToPredict = table.take(np.arange(begin, min(begin + step, n_rows)), n_threads)
        else:
            rows = table[begin : begin + step]
        yield forest.predict_raw(rows, n_rounds=n_rounds, n_threads=n_threads)


# --- what scores say about the targets ---------------------------------------------------------------------


def middle_of(loss: str) -> float:
    """Return the score above which a label is predicted."""
    # Without a link, scores are on the scale of the labels themselves.
    return 0.5 if link_of(loss, "multilabel") == "identity" else 0.0


def decided(coding: TargetCoding, loss: str, raw: FloatArray) -> Array:
    """Return the class of each row, or its labels as 0 and 1, by the raw scores."""
    if coding.kind == "multilabel":
        return (raw > middle_of(loss)).astype(np.int64)
    codes = (raw[:, 0] > 0).astype(np.intp) if coding.kind == "binary" else raw.argmax(axis=1)
    if is_device_array(codes):
        return looked_up(coding.decode(np.arange(coding.width)), codes)
    return coding.decode(codes)


def probabilities(coding: TargetCoding, loss: str, prediction: FloatArray) -> FloatArray:
    """Return the probability of each class or label, by what the loss predicts."""
    if coding.kind == "binary":
        return np.hstack([1 - prediction, prediction])
    # Scores on the scale of the labels are not bound to it.
    return np.clip(prediction, 0.0, 1.0) if link_of(loss, coding.kind) == "identity" else prediction


def observed(
    y: Any, sample_weight: Any, n_rows: int, targets: Targets, coding: TargetCoding
) -> tuple[Any, FloatArray | None]:
    """Return coded targets, and weights that are 0 where a target was not observed."""
    values, weight = read_observed(y, sample_weight, n_rows, targets, coding)
    return coding.encode(values), weight


def read_observed(
    y: Any, sample_weight: Any, n_rows: int, targets: Targets, coding: TargetCoding
) -> tuple[Any, FloatArray | None]:
    """Return the same before targets are coded: there may be classes that were not seen in ``fit``."""
    target = coding.named(targets.take_apart(y, "y"), "y")
    values = targets.read(target.values, n_rows, "y", warn=False)
    return targets.weighed(values, sample_weight, "sample_weight", targets.columns(target))


def score_of_group(
    group: CodedGroup, raw: FloatArray, y: FloatArray, weight: FloatArray | None
) -> float | None:
    """Return what the plain estimator of a group's targets would call its score; of quantiles, D2.

    Parameters
    ----------
    group : CodedGroup
        What the targets are.
    raw : float64 ndarray of shape (rows, outputs)
        Scores of the group.
    y : float64 ndarray of shape (rows, columns)
        Coded targets of the group.
    weight : float64 ndarray of shape (rows,) or (rows, columns), or None
        0 where nothing was observed.

    Returns
    -------
    float or None
        None: nothing was observed.
    """
    if weight is not None and not weight.any():
        return None
    coding, link = group.coding, make_link(group.objective, group.coding)
    prediction = link.predict(np.ascontiguousarray(raw))
    codes: Array = y
    if coding.kind == "multiclass":
        codes = y[:, 0].astype(np.int32)
        own_weight = weight if weight is None or weight.ndim == 1 else weight[:, 0]
    else:
        own_weight = link.output_weights(weight)
    if coding.levels is not None:
        return d2_pinball(y, prediction, weight, coding.levels)
    name = "r2" if coding.kind == "regression" else "accuracy"
    (measured,) = make_metrics(name, default=name, kind=coding.kind)
    return float(measured.function(codes, prediction, own_weight))
