"""The objectives of XGBoost whose predictions follow from raw scores as those of a polyleaf model do."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from polyleaf.data.inputs import FloatArray
from polyleaf.importing.fields import Fields, number_list
from polyleaf.importing.foreign_model import Task
from polyleaf.params.rules import Levels

# How a raw score follows from the base score, which XGBoost keeps as a prediction.
Margin = Literal["identity", "log", "logit"]


@dataclass(frozen=True)
class _Known:
    """What an objective is here; a loss "custom" is none of polyleaf's, and predicts raw scores."""

    loss: str
    margin: Margin = "identity"


_REGRESSIONS = {
    "reg:squarederror": _Known("squared_error"),
    "reg:linear": _Known("squared_error"),  # its name before 1.0
    "reg:absoluteerror": _Known("absolute_error"),
    "reg:squaredlogerror": _Known("custom"),
    "reg:pseudohubererror": _Known("custom"),
    "reg:expectileerror": _Known("custom"),
    "reg:quantileerror": _Known("quantile"),
    "count:poisson": _Known("poisson", "log"),
    "reg:gamma": _Known("gamma", "log"),
    "reg:tweedie": _Known("tweedie", "log"),
    "rank:pairwise": _Known("custom"),
    "rank:ndcg": _Known("custom"),
    "rank:map": _Known("custom"),
}
_ORDERED_QUANTILES = (3, 4)
_LABELS = {
    "binary:logistic": _Known("binary_cross_entropy", "logit"),
    "reg:logistic": _Known("binary_cross_entropy", "logit"),
}
_CLASSES = {"multi:softprob": _Known("cross_entropy"), "multi:softmax": _Known("cross_entropy")}


def read_task(objective: Fields, n_outputs: int, version: tuple[int, ...]) -> tuple[Task, Margin]:
    """Return what a model predicts, and how its base score becomes one of raw scores.

    Parameters
    ----------
    objective : Fields
        What the file says of it.
    n_outputs : int
        Raw scores a row.
    version : tuple of int
        Of the XGBoost that wrote the file.

    Raises
    ------
    ValueError
        When the objective is none of those that can be imported, or does not suit the outputs.
    """
    name = objective.text("name")
    known = {**_REGRESSIONS, **_LABELS, **_CLASSES}
    if name not in known:
        raise ValueError(
            f"its objective is {name!r:.80}, whose predictions a polyleaf model cannot make; those of "
            f"{', '.join(sorted(known))} can be imported."
        )
    found = known[name]
    if name in _CLASSES:
        if n_outputs < 2:
            raise ValueError(f"its objective is {name!r}, but it has {n_outputs} class.")
        return Task("multiclass", found.loss), found.margin
    if name in _LABELS:
        return Task("binary" if n_outputs == 1 else "multilabel", found.loss), found.margin
    if name == "reg:expectileerror" and n_outputs > 1:
        raise ValueError(
            f"its objective is {name!r} with {n_outputs} levels, which XGBoost makes up of each other; with "
            "one level it can be imported."
        )
    if found.loss == "quantile":
        return _quantiles(objective, n_outputs, version), found.margin
    return Task("regression", found.loss), found.margin


def _quantiles(objective: Fields, n_outputs: int, version: tuple[int, ...]) -> Task:
    """Return the task of quantiles: several are put in order here, which XGBoost does since 3.4."""
    text = objective.inner("quantile_loss_param").text("quantile_alpha")
    levels = number_list(text, "quantile_alpha")
    if n_outputs != len(levels):
        raise ValueError(f"its quantile_alpha has {len(levels)} levels for {n_outputs} outputs.")
    if n_outputs > 1 and version < _ORDERED_QUANTILES:
        return Task("regression", "custom")
    Levels().check("its quantile_alpha", levels)
    return Task("regression", "quantile", tuple(levels))


def raw_base_score(base: FloatArray, margin: Margin) -> FloatArray:
    """Return the raw scores of base scores, in float32 as XGBoost computes them.

    Raises
    ------
    ValueError
        When one of them is no prediction of the objective.
    """
    score = base.astype(np.float32)
    if margin == "identity":
        return score.astype(np.float64)
    if not (score > 0).all() or (margin == "logit" and not (score < 1).all()):
        raise ValueError(f"its base_score is {base.tolist()!r:.80}, which its objective cannot predict.")
    one = np.float32(1)
    with np.errstate(over="ignore"):
        raw = np.log(score) if margin == "log" else -np.log(one / score - one)
    if not np.isfinite(raw).all():
        raise ValueError(f"its base_score is {base.tolist()!r:.80}, whose raw score is not finite.")
    return raw.astype(np.float64)
