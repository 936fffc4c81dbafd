"""Exported models run by onnxruntime, and what they must agree with."""

from __future__ import annotations

import io
from typing import Any

import numpy as np
import onnxruntime
import pandas as pd

from polyleaf.export import to_onnx


def exported(model: Any, **options: Any) -> bytes:
    """Return the file of a model."""
    file = io.BytesIO()
    to_onnx(model, file, **options)
    return file.getvalue()


def session(content: bytes, n_threads: int = 1) -> onnxruntime.InferenceSession:
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = n_threads
    options.log_severity_level = 3
    return onnxruntime.InferenceSession(content, options, providers=["CPUExecutionProvider"])


def fed(run: onnxruntime.InferenceSession, rows: Any) -> dict[str, Any]:
    """Return rows as the inputs take them: a matrix, or columns in the order of a frame."""
    given = run.get_inputs()
    if len(given) == 1 and given[0].name == "X":
        return {"X": np.asarray(rows, dtype=_dtype(given[0]))}
    assert isinstance(rows, pd.DataFrame)
    return {
        one.name: rows[[column]].astype(object).where(rows[[column]].notna(), "").to_numpy()
        if _dtype(one) is object
        else rows[[column]].astype(_dtype(one)).to_numpy()
        for one, column in zip(given, rows.columns, strict=True)
    }


def results(model: Any, rows: Any, **options: Any) -> dict[str, Any]:
    """Return what onnxruntime makes of rows, by the names of the outputs."""
    run = session(exported(model, **options))
    return outputs_of(run, fed(run, rows))


def outputs_of(run: onnxruntime.InferenceSession, feed: dict[str, Any]) -> dict[str, Any]:
    return dict(zip([one.name for one in run.get_outputs()], run.run(None, feed), strict=True))


def assert_same(model: Any, rows: Any, *, raw_error: float, error: float, **options: Any) -> None:
    """Check leaves, raw scores, and what predict and predict_proba return.

    `raw_error` and `error` are relative: of raw scores, and after links. Of sums in float64, which round in
    another order, a hundred roundings of the largest raw score are let pass.
    """
    found = results(model, rows, raw_scores=True, leaves=True, **options)
    raw = model._raw(rows, None)
    np.testing.assert_array_equal(found.pop("leaves"), model.apply(rows))
    exact = options.get("ml_opset", 5) == 5
    rounding = 100 * np.finfo(float).eps * np.abs(raw).max(initial=0) if exact else 0.0
    ordered = model._coding.in_order_of_y(raw)
    np.testing.assert_allclose(found.pop("raw_scores"), ordered, rtol=raw_error, atol=rounding)
    if "label" in found:
        labels, expected = found.pop("label"), model.predict(rows)
        expected = expected.toarray() if hasattr(expected, "toarray") else expected
        assert labels.dtype.kind == np.asarray(expected).dtype.kind or labels.dtype == object
        np.testing.assert_array_equal(labels, expected)
        np.testing.assert_allclose(found.pop("probabilities"), model.predict_proba(rows), rtol=error)
    elif len(found) == 1:
        predicted = model.predict(rows)
        ((_, values),) = found.items()
        assert values.shape == predicted.shape
        np.testing.assert_allclose(values, predicted, rtol=error, atol=rounding)
        found.clear()
    else:
        _assert_same_columns(found, model, rows, error, rounding)
    assert not found, "outputs that nobody asked for"


def _assert_same_columns(found: dict[str, Any], model: Any, rows: Any, error: float, rounding: float) -> None:
    """Check outputs by name, which they leave."""
    predicted = model.predict(rows)
    for name in list(predicted):
        values, expected = found.pop(name.replace(".", "_")), np.asarray(predicted[name])
        if expected.dtype.kind == "f":
            np.testing.assert_allclose(values, expected, rtol=error, atol=rounding)
        else:
            np.testing.assert_array_equal(values, expected)
    for name, expected in model.predict_proba(rows).items() if hasattr(model, "targets") else ():
        np.testing.assert_allclose(found.pop(f"{name}_probabilities"), expected, rtol=error)


def _dtype(given: Any) -> Any:
    return {"tensor(double)": np.float64, "tensor(float)": np.float32, "tensor(string)": object}[given.type]
