"""The objectives of LightGBM whose predictions follow from raw scores as those of a polyleaf model do."""

from __future__ import annotations

import math
from collections.abc import Mapping

from polyleaf.importing.fields import number_list
from polyleaf.importing.foreign_model import Task
from polyleaf.params.rules import Levels

# By name: polyleaf's loss; "custom" is none of polyleaf's, and predicts raw scores.
_REGRESSIONS = {
    "regression": "squared_error",
    "regression_l1": "absolute_error",
    "huber": "huber",
    "quantile": "quantile",
    "poisson": "poisson",
    "gamma": "gamma",
    "tweedie": "tweedie",
    "fair": "custom",
    "mape": "custom",
    "lambdarank": "custom",
    "rank_xendcg": "custom",
}
_TWO_CLASSES = ("binary", "cross_entropy")
_CLASSES = ("multiclass",)


def read_task(objective: str | None, n_outputs: int, parameters: Mapping[str, str]) -> tuple[Task, float]:
    """Return what a model predicts, and the factor of its raw scores.

    Parameters
    ----------
    objective : str or None
        The line of the file: a name, and options; None: a function of the user's.
    n_outputs : int
        Trees that a round adds.
    parameters : mapping
        Those that the model was trained with, as far as the file tells.

    Raises
    ------
    ValueError
        When the objective is none of those that can be imported, or does not suit the outputs.
    """
    if objective is None or objective == "custom":
        return Task("regression", "custom"), 1.0
    name, *options = objective.split()
    known = (*_REGRESSIONS, *_TWO_CLASSES, *_CLASSES)
    if name not in known or "sqrt" in options:
        raise ValueError(
            f"its objective is {objective!r:.80}, whose predictions a polyleaf model cannot make; those of "
            f"{', '.join(sorted(known))} can be imported."
        )
    if (n_outputs > 1) != (name in _CLASSES):
        raise ValueError(f"its objective is {name!r}, but a round has {n_outputs} trees.")
    if name in _CLASSES:
        return Task("multiclass", "cross_entropy"), 1.0
    if name in _TWO_CLASSES:
        return Task("binary", "binary_cross_entropy"), _sigmoid(options)
    if name == "quantile":
        return _quantile(parameters), 1.0
    return Task("regression", _REGRESSIONS[name]), 1.0


def _sigmoid(options: list[str]) -> float:
    """Return what LightGBM multiplies raw scores by before it takes their logistic function."""
    given = [option.removeprefix("sigmoid:") for option in options if option.startswith("sigmoid:")]
    factor = number_list(given[0], "sigmoid")[0] if given else 1.0
    if not (math.isfinite(factor) and 1e-30 < factor < 1e30):
        raise ValueError(f"its sigmoid is {factor}; a positive number belongs there.")
    return factor


def _quantile(parameters: Mapping[str, str]) -> Task:
    """Return the task of a quantile, whose level is among the parameters, if anywhere."""
    if "alpha" not in parameters:
        return Task("regression", "custom")
    levels = number_list(parameters["alpha"], "alpha")
    Levels().check("its alpha", levels)
    return Task("regression", "quantile", tuple(levels))
