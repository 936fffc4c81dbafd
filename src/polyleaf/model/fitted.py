"""What a fit leaves behind, and what a file holds of it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from polyleaf.data.category_values import Categories
from polyleaf.data.targets import TargetCoding
from polyleaf.model.bags import Bag
from polyleaf.model.checkpoint import CheckpointNote
from polyleaf.model.forest import Forest
from polyleaf.params.table import EstimatorKind


@dataclass(frozen=True)
class FittedModel:
    """All that is needed to predict.

    Attributes
    ----------
    forest : Forest
        The trees of all rounds.
    coding : TargetCoding
        What y was.
    loss : str
        The name of the loss: "custom" for a callable objective, "grouped" for targets of several kinds.
    feature_names : tuple of str or None
        Of the table.
    categories : mapping of int to CategoryValues
        Of the categorical columns.
    best_iteration : int
        The round, from 0, that predictions go up to; -1: there is no round.
    evals_result : dict
        ``{data set: {metric: [value after each round]}}``.
    bags : tuple of Bag
        The members that the forest is the mean of; none: it is one model.
    chosen : dict
        What was taken for parameters that were "auto", by name.
    """

    forest: Forest
    coding: TargetCoding
    loss: str
    feature_names: tuple[str, ...] | None
    categories: Categories
    best_iteration: int
    evals_result: dict[str, dict[str, list[float]]]
    bags: tuple[Bag, ...] = ()
    chosen: dict[str, Any] = field(default_factory=dict)

    @property
    def best_rounds(self) -> dict[str, int]:
        """The best round of each evaluation set, from 0: of a bagged model, that of the member it stopped."""
        if not self.bags:
            return dict.fromkeys(self.evals_result, self.best_iteration)
        return {name: bag.n_rounds - 1 for name, bag in zip(self.evals_result, self.bags, strict=False)}


def fitted_of(model: Any) -> FittedModel:
    """Return what an estimator predicts with.

    Raises
    ------
    TypeError
        For anything but an estimator of polyleaf.
    NotFittedError
        When it is not fitted.
    """
    if isinstance(model, type) or not hasattr(model, "_check_is_fitted"):
        said = f"the class {model.__name__}" if isinstance(model, type) else type(model).__name__
        raise TypeError(f"model must be a fitted estimator of polyleaf; got {said}.")
    model._check_is_fitted()
    fitted: FittedModel = model._fitted()
    return fitted


@dataclass(frozen=True)
class SavedModel:
    """What a model file holds.

    Attributes
    ----------
    estimator : {"regressor", "classifier", "mixed"}
        Which estimator it is.
    params : dict
        Its parameters.
    fitted : FittedModel
        What it predicts with.
    checkpoint : CheckpointNote or None
        Of a run that can go on: what it was trained with, and on what.
    """

    estimator: EstimatorKind
    params: dict[str, Any]
    fitted: FittedModel
    checkpoint: CheckpointNote | None = None
