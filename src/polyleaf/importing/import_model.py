"""From a model of another library to a fitted estimator."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

from polyleaf.data.inputs import Array
from polyleaf.estimators.classifier import PolyleafClassifier
from polyleaf.estimators.regressor import PolyleafRegressor
from polyleaf.importing.foreign_model import ForeignModel, fitted_model, parameters
from polyleaf.importing.json_text import read_json
from polyleaf.importing.lightgbm_model import read_lightgbm
from polyleaf.importing.lightgbm_text import read_text
from polyleaf.importing.sources import ModelBytes, model_bytes
from polyleaf.importing.ubjson import read_ubjson
from polyleaf.importing.xgboost_model import read_xgboost


def import_model(
    source: str | os.PathLike[str] | bytes | Any, *, classes: Sequence[Any] | Array | None = None
) -> PolyleafRegressor | PolyleafClassifier:
    """Return a model of XGBoost or LightGBM as a fitted estimator of polyleaf.

    It sends every row to the leaves it has in the other library, whatever its numbers, and adds up the same
    leaf values: those of XGBoost exactly, those of LightGBM, which are float64, rounded to float32. Sums are
    float64, where XGBoost's are float32. What cannot be the same is refused, and the error names it. Files
    may come from strangers: they are checked, and nothing in them is executed.

    Parameters
    ----------
    source : str, os.PathLike, file, bytes, or a fitted model of XGBoost or LightGBM
        A path, or what lies there: JSON or UBJSON of XGBoost, the text of LightGBM. Or a ``Booster`` or
        estimator of either library.
    classes : array-like, default=None
        The labels of classes 0, 1, 2, ... of a classifier, in this order; None: those that an estimator of
        LightGBM knows, or these numbers.

    Returns
    -------
    PolyleafRegressor or PolyleafClassifier
        A fitted estimator: it predicts, explains and is saved like any other.

    Raises
    ------
    FileNotFoundError
        When there is no such file.
    TypeError
        When `source` is nothing of that kind.
    ValueError
        When it is damaged, or a model that polyleaf cannot be the same as, such as one of another objective
        or booster, of linear trees, or of dropout.

    Examples
    --------
    >>> import lightgbm
    >>> import polyleaf
    >>> X, y = [[i] for i in range(100)], range(100)
    >>> theirs = lightgbm.LGBMRegressor(n_estimators=10, verbose=-1).fit(X, y)
    >>> polyleaf.import_model(theirs).n_estimators_
    10
    """
    given = model_bytes(source)
    try:
        model = _read(given)
        labels = given.classes if model.task.has_classes else None
        fitted = fitted_model(model, labels if classes is None else classes)
    except ValueError as error:
        raise ValueError(f"{given.name} cannot be imported: {error}") from None
    kind = PolyleafRegressor if fitted.coding.kind == "regression" else PolyleafClassifier
    estimator = kind(**parameters(fitted))
    estimator._take(fitted)
    estimator._loaded = True
    return estimator


def _read(given: ModelBytes) -> ForeignModel:
    """Return the model of bytes, whose first ones tell the format."""
    content = given.content
    begin = b"".join(content[:64].split())
    if begin[:1] == b"{":
        # A key follows: of JSON in quotes, of UBJSON as a length.
        is_text = begin[1:2] in (b'"', b"}", b"")
        return read_xgboost(read_json(content, "the document") if is_text else read_ubjson(content))
    if content[:5].rstrip() == b"tree":
        try:
            text = content.decode("utf-8")
        except UnicodeDecodeError as error:
            raise ValueError(f"it is no UTF-8 text: {error.reason} at byte {error.start:,}.") from None
        return read_lightgbm(read_text(text), given.best_iteration)
    raise ValueError(
        "it begins neither as JSON or UBJSON of XGBoost (1.0 and later) nor as the text of LightGBM; the old "
        "binary format of XGBoost and pickles are not read."
    )
