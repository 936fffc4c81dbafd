"""Targets of several kinds: groups of columns of y, each with a loss and a metric of its own."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from polyleaf.data.dataset import Dataset
from polyleaf.data.eval_sets import EvalInput
from polyleaf.data.inputs import FloatArray
from polyleaf.data.mixed_targets import (
    CodedGroup,
    MixedCoding,
    TargetColumns,
    columns_of,
    mixed_coding,
    read_target_columns,
)
from polyleaf.data.sources import source_kind
from polyleaf.data.tables import frame_kind
from polyleaf.data.target_frames import TargetInput
from polyleaf.data.targets import TargetCoding
from polyleaf.data.weights import check_cell_weights, set_unobserved_aside, weights_by_name
from polyleaf.estimators.targets import Targets
from polyleaf.losses import Loss, LossDetails, make_loss
from polyleaf.losses.grouped import GroupedLoss, LossGroup
from polyleaf.metrics import KnownTargets, Metric, make_metrics
from polyleaf.params.combinations import check, refused
from polyleaf.params.constraints import SignMatrix
from polyleaf.params.situation import Situation
from polyleaf.params.target_specs import TargetSpec, read_specs
from polyleaf.params.wording import TargetWords
from polyleaf.peers.gather import any_shard


class GroupedTargets(Targets):
    """The groups that the parameter `targets` names."""

    def naming_columns(self, given: EvalInput) -> EvalInput:
        """Return rows whose y is a table of columns: those of all groups where none are named."""
        kind = source_kind(given.X)
        if isinstance(given.y, str) and kind is not None:
            return replace(given, y=[given.y])
        if given.y is None and kind not in (None, "batches"):
            return replace(given, y=frozenset(column for spec in self._specs() for column in spec.columns))
        return given

    def take_apart(self, y: object, name: str) -> TargetInput:
        """Return y as it is, since its columns are taken by their names, and which of them are of use."""
        if isinstance(y, TargetInput):
            raise TypeError(
                f"{name} of a mixed model has columns of several types, which a BinnedTable does not keep; "
                "make the table without y, and pass it here."
            )
        return TargetInput(y, columns_of(y, self._specs(), name), frame_kind(y))

    def columns(self, target: TargetInput) -> Sequence[str]:
        """Return the columns of all groups, in the order of the coded y."""
        return [column for spec in self._specs() for column in spec.columns]

    def read(self, y: object, n_rows: int, name: str, *, warn: bool) -> TargetColumns:
        """Return the checked columns of each group."""
        return read_target_columns(y, self._specs(), n_rows, name, warn=warn)

    def weighed(
        self, y: TargetColumns, weight: object, name: str, columns: Sequence[Any] | None
    ) -> tuple[TargetColumns, FloatArray | None]:
        """Return the columns without missing values, and the weights of rows or cells.

        Weights of cells are matched by name; without names they are in the order of y.
        """
        assert columns is not None
        numbers = y.numbers()
        by_name = weights_by_name(weight, columns, name, y.present)
        numbers, weights = set_unobserved_aside(numbers, check_cell_weights(by_name, numbers, name))
        return y.settled(numbers, weights), weights

    def learn_coding(self, y: TargetColumns) -> TargetCoding:
        """Return the coding of each group."""
        specs = self._specs()
        return mixed_coding(y, specs, {spec.name: _levels(spec) for spec in specs})

    def check_continues(self, coding: TargetCoding, source: str) -> None:
        """Raise ValueError unless the groups are those of the model to go on from."""
        assert isinstance(coding, MixedCoding)
        ours = [(spec.name, spec.objective, spec.columns, _levels(spec)) for spec in self._specs()]
        theirs = [
            (group.name, group.objective, tuple(group.columns), group.coding.levels)
            for group in coding.groups
        ]
        for own, other in zip(ours, theirs, strict=False):
            if own != other:
                raise ValueError(
                    f"{source}: targets has the group {own!r} where that of the model is {other!r}; names, "
                    "objectives, columns and quantile levels must be the same."
                )
        if len(ours) != len(theirs):
            raise ValueError(f"{source}: targets has {len(ours)} groups, but the model has {len(theirs)}.")

    def make_loss(self, coding: TargetCoding) -> Loss:
        """Return the losses of all groups as one."""
        assert isinstance(coding, MixedCoding)
        weights = self._group_weights(coding)
        details = {spec.name: spec.details for spec in self._specs()}
        curvature = {"softmax_curvature": self._params["softmax_curvature"]}
        return GroupedLoss(
            [
                LossGroup(
                    group.name,
                    make_loss(
                        group.objective,
                        n_outputs=group.coding.n_outputs,
                        kind=group.coding.kind,
                        parameters=curvature | details[group.name],
                    ),
                    columns,
                    outputs,
                    weights[group.name],
                )
                for group, columns, outputs in coding.slices()
            ]
        )

    def check_signs(self, signs: SignMatrix | None, loss: Loss) -> None:
        """Raise ValueError for signs on outputs of a softmax, or of quantiles of residuals."""
        assert isinstance(loss, GroupedLoss)
        if signs is None:
            return
        for part in loss.groups:
            if not signs[:, part.outputs].any():
                continue
            if part.loss.class_codes:
                raise refused(Situation(self._params, bound_softmax=part.name))
            if part.loss.leaf_levels is not None:
                raise refused(Situation(self._params, bound_quantiles=part.name))

    def saved_loss(self, loss: Loss) -> str:
        """Return one name for all: each group has its own in the coding."""
        return "grouped"

    def make_metrics(
        self, coding: TargetCoding, loss: Loss, data: Dataset, *, holds_out: bool = False
    ) -> list[Metric]:
        """Return the metric of each group, and the loss that early stopping watches."""
        assert isinstance(coding, MixedCoding)
        assert isinstance(loss, GroupedLoss)
        wanted = self._params["eval_metric"] or {}
        check_group_names("eval_metric", wanted, [group.name for group in coding.groups])
        details = self._details_of_groups()
        weight = data.weights.whole()
        metrics, asked = [], {}
        for group, part in zip(coding.groups, loss.groups, strict=True):
            make = partial(_metrics_of_group, group, part, details[part.name])
            known = _known_of_group(group, part, data.y, weight)
            (usual,) = make(known, None)
            metrics.append(usual)
            asked[group.name] = make(known, wanted.get(group.name))
        constant = np.tile(loss.predict(loss.base_score(data.y, weight)[np.newaxis]), (len(data.y), 1))
        shares = np.array([part.weight for part in loss.groups])
        at_first = np.array([metric.function(data.y, constant, weight) for metric in metrics])
        # A target that does not vary has a loss of 0 from the start.
        shares = shares / shares.sum() / np.where(at_first > 0, at_first, 1.0)

        def watched(y: Any, prediction: Any, weight: FloatArray | None) -> float:
            values = np.array([metric.function(y, prediction, weight) for metric in metrics])
            seen = ~np.isnan(values)  # a group may have no observation among these rows
            if not seen.any():
                return float("nan")
            return float(shares[seen] @ values[seen] * (shares.sum() / shares[seen].sum()))

        in_order = [metric for name in self._params["targets"] for metric in asked[name]]
        return [*in_order, Metric("loss", False, watched)]

    def _specs(self) -> tuple[TargetSpec, ...]:
        """Return the groups in the order of their names, in which `MixedCoding` has them."""
        return tuple(sorted(read_specs(self._params["targets"]), key=lambda spec: spec.name))

    def _details_of_groups(self) -> dict[str, LossDetails]:
        return {spec.name: LossDetails.from_params(spec.details) for spec in self._specs()}

    def _group_weights(self, coding: MixedCoding) -> dict[str, float]:
        names = [group.name for group in coding.groups]
        given = self._params["loss_weight"] or {}
        check_group_names("loss_weight", given, names)
        return {name: float(given.get(name, 1.0)) for name in names}


def _levels(spec: TargetSpec) -> tuple[float, ...] | None:
    return LossDetails.from_params(spec.details).quantile_levels if spec.objective == "quantile" else None


def check_group_names(parameter: str, given: Iterable[str], names: Sequence[str]) -> None:
    """Raise ValueError where a parameter is for a group that is not there."""
    for name in given:
        if name not in names:
            raise ValueError(f"{parameter} has {name!r}, but the groups of targets are {', '.join(names)}.")


def _known_of_group(
    group: CodedGroup, part: LossGroup, y: FloatArray, weight: FloatArray | None
) -> KnownTargets:
    """Return what metrics have to know of a group's targets, of the training rows that have some of them."""
    training, own = part.targets(y), part.weights(weight)
    if own is not None:
        training = training[(own if own.ndim == 2 else own[:, np.newaxis]).any(axis=1)]
    return KnownTargets.of(replace(group.coding, names=group.columns), training)


def _metrics_of_group(
    group: CodedGroup, part: LossGroup, details: LossDetails, known: KnownTargets, wanted: Any
) -> list[Metric]:
    """Return metrics of a group's targets, None: that of its loss, as functions of all targets."""
    levels = {} if group.coding.levels is None else {"quantile_levels": group.coding.levels}
    try:
        check(Situation({"eval_metric": wanted} | levels, kind=group.coding.kind, loss=group.objective))
        metrics = make_metrics(
            wanted,
            default=part.loss.default_metric,
            kind=group.coding.kind,
            n_labels=group.coding.width,
            details=details,
            known=known,
        )
    except ValueError as error:
        error.args = (f"eval_metric of the group {group.name!r}: {error}",)
        raise
    return [_of_all(metric, group.name, part) for metric in metrics]


def _of_all(metric: Metric, name: str, part: LossGroup) -> Metric:
    """Return a metric of a group's targets as one of the targets and predictions of all groups."""

    def measured(y: Any, prediction: Any, weight: FloatArray | None) -> float:
        own = np.ascontiguousarray(prediction[:, part.outputs])
        own_weight = part.weights(weight)
        if own_weight is not None and not any_shard(bool(own_weight.any())):
            return float("nan")
        return metric.function(part.targets(y), own, own_weight)

    def check_targets(y: Any, weight: FloatArray | None, words: TargetWords) -> None:
        assert metric.check_targets is not None
        metric.check_targets(part.targets(y), part.weights(weight), words.group(name, part.columns))

    def check_weights(weight: FloatArray, y_name: str) -> None:
        own_weight = part.weights(weight)
        assert metric.check_weights is not None
        assert own_weight is not None
        metric.check_weights(own_weight, f"{name!r} of {y_name}")

    return Metric(
        f"{name}/{metric.name}",
        metric.greater_is_better,
        measured,
        metric.takes_weight,
        None if metric.check_targets is None else check_targets,
        None if metric.check_weights is None else check_weights,
        merges=metric.merges,
    )
