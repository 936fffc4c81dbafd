"""How well outputs are predicted, as functions of sums over rows."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TypeAlias

import numpy as np
from scipy.special import xlogy

from polyleaf.data.inputs import FloatArray, Mask
from polyleaf.losses.quantile import Quantile
from polyleaf.losses.values import pinball_values
from polyleaf.report.outputs import Output, OutputRows

# From sums, of shape (draws, terms), to scores by name, each of shape (draws,). The first is the main one.
Scores: TypeAlias = "Callable[[FloatArray], dict[str, FloatArray]]"

COLUMNS = {
    "number": ("R²", "RMSE", "MAE"),
    "quantile": ("D²", "pinball loss", "share below"),
    "class": ("AUC", "R²", "log loss", "precision", "recall", "F1"),
    "label": ("AUC", "R²", "log loss", "precision", "recall", "F1"),
}


def score_terms(output: Output, observed: OutputRows, decided: Mask) -> tuple[FloatArray, Scores]:
    """Return what is to be summed over rows, of shape (terms, rows), and what sums say.

    Parameters
    ----------
    output : Output
        Which one.
    observed : OutputRows
        Its rows.
    decided : bool ndarray
        Of a class or label: of which of these rows it is predicted.
    """
    if output.kind == "number":
        unit = _unit(observed)
        return _number_terms(observed, unit), partial(_number_scores, unit=unit)
    if output.kind == "quantile":
        assert output.level is not None
        return _quantile_terms(observed, output.level), _quantile_scores
    return _class_terms(observed, decided), _class_scores


def losses_of_rows(output: Output, observed: OutputRows) -> FloatArray:
    """Return how wrong each row is, on a scale that all outputs share: 1 is what a constant has on average.

    It is the squared error as a share of the variance, of a quantile the pinball loss as a share of that of
    the best constant. Of the probability of a class or label it is the squared error itself.
    """
    if output.kind in ("class", "label"):
        return np.asarray((observed.truth - observed.prediction) ** 2)
    if output.kind == "number":
        weight, error, _, _, spread = _number_terms(observed, _unit(observed))
        error = error / weight
        usual = float(spread.sum() / weight.sum())
    else:
        assert output.level is not None
        terms = _quantile_terms(observed, output.level)
        error = terms[1] / observed.weight
        usual = float(terms[2].sum() / observed.weight.sum())
    return np.asarray(error / usual if usual > 0 else (error > 0).astype(np.float64))


def _unit(observed: OutputRows) -> float:
    """Return a power of 2 in whose units the square of no number overflows or vanishes."""
    largest = max(float(np.abs(values).max()) for values in (observed.truth, observed.prediction))
    return float(2.0 ** np.floor(np.log2(largest))) if np.isfinite(largest) and largest > 0 else 1.0


def _number_terms(observed: OutputRows, unit: float) -> FloatArray:
    weight, truth = observed.weight, observed.truth / unit
    error = truth - observed.prediction / unit
    # About the mean, so that no digits are lost where targets are far from 0.
    centred = truth - np.average(truth, weights=weight)
    return np.stack(
        [weight, weight * error**2, weight * np.abs(error), weight * centred, weight * centred**2]
    )


def _number_scores(sums: FloatArray, unit: float) -> dict[str, FloatArray]:
    weight, squared, absolute, first, second = sums.T
    spread = second - _ratio(first**2, weight)
    return {
        "R²": _saved(squared, spread),
        "RMSE": unit * np.sqrt(_ratio(squared, weight)),
        "MAE": unit * _ratio(absolute, weight),
    }


def _quantile_terms(observed: OutputRows, level: float) -> FloatArray:
    truth, weight = observed.truth[:, np.newaxis], observed.weight
    best = Quantile(1, (level,)).base_score(truth, weight)
    own = pinball_values(truth, observed.prediction[:, np.newaxis], (level,))[:, 0]
    of_constant = pinball_values(truth, np.broadcast_to(best, truth.shape), (level,))[:, 0]
    below = (observed.truth <= observed.prediction).astype(np.float64)
    return np.stack([weight, weight * own, weight * of_constant, weight * below])


def _quantile_scores(sums: FloatArray) -> dict[str, FloatArray]:
    weight, own, of_constant, below = sums.T
    return {
        "D²": _saved(own, of_constant),
        "pinball loss": _ratio(own, weight),
        "share below": _ratio(below, weight),
    }


def _class_terms(observed: OutputRows, decided: Mask) -> FloatArray:
    weight, truth, share = observed.weight, observed.truth, observed.prediction
    tiny = np.finfo(np.float64).eps
    safe = np.clip(share, tiny, 1 - tiny)
    log_loss = -(xlogy(truth, safe) + xlogy(1 - truth, 1 - safe))
    positive, negative = weight * truth, weight * (1 - truth)
    below, above = _placements(share, positive, negative)
    return np.stack(
        [
            weight,
            positive,
            weight * (truth - share) ** 2,
            weight * log_loss,
            positive * decided,
            weight * decided,
            positive * below,
            negative * above,
        ]
    )


def _placements(
    score: FloatArray, positive: FloatArray, negative: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Return, of each row, which share of the negative rows is below it, and of the positive ones above it.

    Ties count half. The mean of either over the rows of the other kind is the area under the ROC curve, and
    what rows add to both is how it changes when rows are drawn (the projection of Hájek).
    """
    _, place = np.unique(score, return_inverse=True)
    of_negative, of_positive = np.bincount(place, negative), np.bincount(place, positive)
    below = of_negative.cumsum() - of_negative / 2
    above = of_positive.sum() - of_positive.cumsum() + of_positive / 2
    return _ratio(below, negative.sum())[place], _ratio(above, positive.sum())[place]


def _class_scores(sums: FloatArray) -> dict[str, FloatArray]:
    weight, positive, squared, log_loss, hits, decided, below, above = sums.T
    negative = weight - positive
    area = _ratio(below, positive)
    # Of what was drawn: the area of all rows, and how far the means of both kinds of rows are from it.
    linear = area + _ratio(above, negative) - area[0]
    return {
        "AUC": np.where(np.isfinite(linear), np.clip(linear, 0, 1), np.nan),
        "R²": _saved(squared, positive * _ratio(negative, weight)),
        "log loss": _ratio(log_loss, weight),
        "precision": _ratio(hits, decided),
        "recall": _ratio(hits, positive),
        "F1": _ratio(2 * hits, decided + positive),
    }


def _ratio(a: FloatArray, b: FloatArray | float) -> FloatArray:
    """Return a / b, NaN where b is 0."""
    whole = np.broadcast_to(np.asarray(b, dtype=np.float64), np.shape(a))
    return np.asarray(np.divide(a, whole, out=np.full(np.shape(a), np.nan), where=whole > 0))


def _saved(left: FloatArray, of_constant: FloatArray) -> FloatArray:
    """Return the share of a constant's loss that is gone; 1 or 0 where a constant has none."""
    constant = of_constant <= 0
    return np.where(constant, left == 0, 1 - left / np.where(constant, 1, of_constant))
