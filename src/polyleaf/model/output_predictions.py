"""From raw scores to what they predict: values, and probabilities of classes and labels."""

from __future__ import annotations

import numpy as np

from polyleaf.data.inputs import FloatArray
from polyleaf.data.mixed_targets import MixedCoding
from polyleaf.data.targets import TargetCoding
from polyleaf.losses import make_link
from polyleaf.params.objectives import link_of


def output_predictions(coding: TargetCoding, loss: str, raw: FloatArray, n_threads: int = 1) -> FloatArray:
    """Return a number for each output, of the shape and in the order of the raw scores.

    It is what ``predict`` returns of a number or a quantile, and ``predict_proba`` of a class or label; of
    two classes, of the second.
    """
    if isinstance(coding, MixedCoding):
        found = np.empty_like(raw)
        for group, _, outputs in coding.slices():
            found[:, outputs] = output_predictions(group.coding, group.objective, raw[:, outputs], n_threads)
        return found
    prediction = make_link(loss, coding).predict(np.ascontiguousarray(raw), n_threads)
    if coding.kind != "regression" and link_of(loss, coding.kind) == "identity":
        return np.clip(prediction, 0.0, 1.0)  # scores on the scale of the labels are not bound to it
    return prediction


def predicts_raw_scores(coding: TargetCoding, loss: str) -> bool:
    """Whether predictions are the raw scores themselves."""
    if isinstance(coding, MixedCoding):
        return all(predicts_raw_scores(group.coding, group.objective) for group in coding.groups)
    if coding.kind != "regression":
        return False
    link = link_of(loss, coding.kind)
    return link == "identity" or (link == "quantiles" and len(coding.levels or ()) == 1)
