"""What an estimator makes of y: how it is read and coded, and the loss and the metrics that go with it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import scipy.sparse

from polyleaf.data.dataset import Dataset
from polyleaf.data.eval_sets import EvalInput
from polyleaf.data.inputs import Array, FloatArray
from polyleaf.data.target_frames import TargetInput, read_target_input
from polyleaf.data.targets import (
    TargetCoding,
    classification_coding,
    read_labels,
    read_targets,
    regression_coding,
)
from polyleaf.data.weights import check_cell_weights, set_unobserved_aside, weights_by_name
from polyleaf.losses import Loss, LossDetails, make_loss
from polyleaf.metrics import KnownTargets, Metric, make_metrics
from polyleaf.params.combinations import check
from polyleaf.params.constraints import SignMatrix
from polyleaf.params.objectives import default_objective
from polyleaf.params.situation import Situation

Objective = Callable[[Array, FloatArray], tuple[Array, Array]]
EvalMetric = str | Callable[..., float]


class Targets(ABC):
    """How an estimator with these parameters reads y, and what it trains for.

    Parameters
    ----------
    params : mapping
        Of the estimator.
    """

    def __init__(self, params: Mapping[str, Any]) -> None:
        self._params = params
        self._columns: tuple[Any, ...] | None = None  # of the y taken apart last, for errors

    def naming_columns(self, given: EvalInput) -> EvalInput:
        """Return rows whose y may name columns of a source, in the form that the estimator needs."""
        return given

    def take_apart(self, y: object, name: str) -> TargetInput:
        """Return y taken apart: its values, and what its columns are called."""
        target = read_target_input(y, name)
        self._columns = target.labels
        return target

    def columns(self, target: TargetInput) -> Sequence[Any] | None:
        """Return what errors call the columns of y; None: their numbers."""
        return target.labels if target.names is None else target.names

    @abstractmethod
    def read(self, y: object, n_rows: int, name: str, *, warn: bool) -> Any:
        """Return y checked, as an array, before rows without weight are dropped."""

    def weighed(
        self, y: Any, weight: object, name: str, columns: Sequence[Any] | None
    ) -> tuple[Any, FloatArray | None]:
        """Return y without missing values, and the weights of rows or cells, which errors call by `name`.

        Weights with names are matched with those of the columns of y.
        """
        if columns is None:
            columns = range(1 if y.ndim == 1 else y.shape[1])
        return set_unobserved_aside(y, check_cell_weights(weights_by_name(weight, columns, name), y, name))

    @abstractmethod
    def learn_coding(self, y: Any) -> TargetCoding:
        """Return what there is to know about a checked y."""

    def check_continues(self, coding: TargetCoding, source: str) -> None:
        """Raise ValueError where the outputs of the model to go on from mean something else than ours."""
        levels = self._levels()
        if levels != coding.levels:
            raise ValueError(
                f"{source}: quantile_levels are {levels}, but those of the model are {coding.levels}."
            )

    def make_loss(self, coding: TargetCoding) -> Loss:
        """Return the loss of a coded y."""
        objective = self._params["objective"]
        return make_loss(
            self._usual_objective(coding) if objective is None else objective,
            n_outputs=coding.n_outputs,
            kind=coding.kind,
            parameters=self._params,
        )

    def _usual_objective(self, coding: TargetCoding) -> str:
        """Return what None stands for."""
        return default_objective(coding.kind)

    def check_signs(self, signs: SignMatrix | None, loss: Loss) -> None:
        """Raise ValueError for monotone constraints, features x outputs, on outputs without an order."""
        return

    def saved_loss(self, loss: Loss) -> str:
        """Return what a model file calls the loss."""
        return loss.name

    def make_metrics(
        self, coding: TargetCoding, loss: Loss, data: Dataset, *, holds_out: bool = False
    ) -> list[Metric]:
        """Return what is measured after each round; the last one says when to stop.

        Parameters
        ----------
        coding, loss
            What y is, and how it is learnt.
        data : Dataset
            The training rows.
        holds_out : bool
            Whether rows of these are measured, which nobody chose.
        """
        default = [loss.default_metric]
        # As in splits, no target counts more because of its unit.
        relative = self._params.get("scale_targets", False) and coding.width > 1
        if holds_out and relative and loss.relative_metric is not None:
            default.append(loss.relative_metric)
        return make_metrics(
            self._params["eval_metric"],
            default=default,
            kind=coding.kind,
            n_labels=coding.width,
            details=self._details(),
            known=KnownTargets.of(coding, data.y),
        )

    def _details(self) -> LossDetails:
        return LossDetails.from_params(self._params)

    def _levels(self) -> tuple[float, ...] | None:
        """Return the quantiles that are predicted, if any are."""
        return self._details().quantile_levels if self._params["objective"] == "quantile" else None


class RegressionTargets(Targets):
    """One or many numbers."""

    def read(self, y: object, n_rows: int, name: str, *, warn: bool) -> Array:
        """Return y as float64."""
        return read_targets(y, n_rows, name, self._columns)

    def learn_coding(self, y: Array) -> TargetCoding:
        """Return how many targets there are, and which quantiles of each."""
        return regression_coding(y, self._levels())


class ClassTargets(Targets):
    """Classes, two or many, or several labels at once."""

    def read(self, y: object, n_rows: int, name: str, *, warn: bool) -> Array:
        """Return y as labels of one type, or as a matrix of 0 and 1."""
        self._sparse = scipy.sparse.issparse(y)
        return read_labels(y, n_rows, name, self._columns, warn=warn)

    def weighed(
        self, y: Any, weight: object, name: str, columns: Sequence[Any] | None
    ) -> tuple[Any, FloatArray | None]:
        """Return y and the weights; with a label space, labels in compressed rows."""
        y, weights = super().weighed(y, weight, name, columns)
        if self._params["label_space"] is None or y.ndim == 1 or scipy.sparse.issparse(y):
            return y, weights
        check(Situation(self._params, cell_weights=weights is not None and weights.ndim == 2))
        return scipy.sparse.csr_array((y == 1).view(np.uint8)), weights  # SciPy does not know all types of y

    def learn_coding(self, y: Array) -> TargetCoding:
        """Return the classes, or how many labels there are."""
        coding = classification_coding(y, softmax=self._params["objective"] == "cross_entropy")
        return replace(coding, sparse=self._sparse)

    def _usual_objective(self, coding: TargetCoding) -> str:
        if self._params["label_space"] is not None and coding.kind == "multilabel":
            return "clipped_squared_error"
        return super()._usual_objective(coding)
