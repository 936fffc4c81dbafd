"""From a table to predictions: its numbers, raw scores, and what these say about the targets."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import scipy.sparse

from polyleaf.data.category_values import Categories, category_codes
from polyleaf.data.device_arrays import array_module, is_device_array, looked_up, on_host
from polyleaf.data.inputs import Array, FloatArray, check_features, read_table, table_numbers
from polyleaf.data.sparse_formats import SparseTable
from polyleaf.data.targets import TargetCoding
from polyleaf.estimators.targets import Targets
from polyleaf.losses import Loss
from polyleaf.metrics import make_metrics
from polyleaf.model.forest import Forest
from polyleaf.params.objectives import link_of

# Raw scores computed together where not all of them are kept.
_BLOCK_CELLS = 1 << 19


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


def raw_blocks(
    forest: Forest, table: Array | SparseTable, n_rounds: int, n_threads: int
) -> Iterator[FloatArray]:
    """Yield the raw scores of some rows at a time, once where there is no row."""
    table = scipy.sparse.csr_array(table) if scipy.sparse.issparse(table) else on_host(table)
    step = max(1, _BLOCK_CELLS // forest.n_outputs)
    for begin in range(0, max(1, table.shape[0]), step):
        yield forest.predict_raw(table[begin : begin + step], n_rounds=n_rounds, n_threads=n_threads)


# --- what scores say about the targets ---------------------------------------------------------------------


def decided(coding: TargetCoding, loss: str, raw: FloatArray) -> Array:
    """Return the class of each row, or its labels as 0 and 1, by the raw scores."""
    if coding.kind == "multilabel":
        # Without a link, scores are on the scale of the labels themselves.
        middle = 0.5 if link_of(loss, "multilabel") == "identity" else 0.0
        return (raw > middle).astype(np.int64)
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


def best_columns(raw: FloatArray, k: int) -> Array:
    """Return the columns of the k largest scores of each row, best first."""
    largest = np.sort(np.argpartition(-raw, k - 1, axis=1)[:, :k], axis=1)
    order = np.argsort(-np.take_along_axis(raw, largest, axis=1), axis=1, kind="stable")
    return np.take_along_axis(largest, order, axis=1)


def score_of(
    metric: str, prediction: FloatArray, y: Any, sample_weight: Any, targets: Targets, coding: TargetCoding
) -> float:
    """Measure predictions of shape (rows, outputs) where targets were observed."""
    values = targets.read(targets.take_apart(y, "y").values, len(prediction), "y", warn=False)
    values, weight = targets.weighed(values, sample_weight, "sample_weight")
    (measured,) = make_metrics(metric, default=metric, kind=coding.kind)
    return measured.function(coding.encode(values), prediction, weight)
