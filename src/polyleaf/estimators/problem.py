"""What there is to train on, from what users pass to ``fit``: tables, targets, weights, evaluation sets."""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse

from polyleaf.data import memory
from polyleaf.data.binned_table import BinnedTable
from polyleaf.data.category_values import Categories, learn_categories, resolve_categorical
from polyleaf.data.dataset import Dataset, FeatureTable
from polyleaf.data.eval_sets import EvalInput
from polyleaf.data.inputs import FloatArray, Mask, read_table
from polyleaf.data.memory import NOTHING_SAVED, Needs, Savings, least_savings, needs, refuse_too_large
from polyleaf.data.row_names import RowNames
from polyleaf.data.row_numbers import row_numbers
from polyleaf.data.source import Source
from polyleaf.data.sources import opened, rows_of
from polyleaf.data.streamed_table import StreamedTable
from polyleaf.data.sums import total
from polyleaf.data.tables import Table, take_or_check_names
from polyleaf.data.target_frames import TargetInput
from polyleaf.data.targets import TargetCoding
from polyleaf.data.weights import Weights, apply_class_weight, refuse_unobserved, rows_with_weight
from polyleaf.estimators.binned_input import (
    categories_to_train,
    check_weights_of_cuts,
    columns_to_evaluate,
    with_own_targets,
)
from polyleaf.estimators.features import Features
from polyleaf.estimators.settings import make_settings
from polyleaf.estimators.targets import Targets
from polyleaf.losses import Loss
from polyleaf.metrics import Metric
from polyleaf.model.fitted import FittedModel
from polyleaf.model.forest_checks import check_extent
from polyleaf.params.automatic import chosen_of
from polyleaf.params.combinations import check, refused
from polyleaf.params.constraints import SignMatrix, interaction_groups
from polyleaf.params.settings import Settings
from polyleaf.params.situation import Situation
from polyleaf.params.table import EstimatorKind
from polyleaf.params.wording import TargetWords, shown
from polyleaf.training.continuation import Start
from polyleaf.training.loop import TrainingResult
from polyleaf.training.run_memory import needs_of, possible_savings

if TYPE_CHECKING:
    from polyleaf.estimators.base import BasePolyleaf


@dataclass(frozen=True)
class Rows:
    """The rows of a table that have any weight.

    Attributes
    ----------
    X : ndarray, csc_array, StreamedTable or BinnedRows of shape (rows, features)
        Numbers or bins; categories are codes.
    y : Any
        Checked targets, not coded yet, without missing values.
    weight : float64 ndarray of shape (rows,) or (rows, columns of y), or None
        Weights of rows or cells.
    kept : bool ndarray or None
        Which of the rows given these are. None: all.
    names : RowNames
        What errors call these rows.
    """

    X: FeatureTable
    y: Any
    weight: FloatArray | None
    kept: Mask | None
    names: RowNames


class RowReader:
    """Reads the rows of ``fit``, and then others in the way of these.

    Parameters
    ----------
    estimator : BasePolyleaf
        It is not changed.
    targets : Targets
        How it reads y.

    Attributes
    ----------
    targets : Targets
        The same.
    categories : mapping of int to CategoryValues
        Of the categorical columns, once the rows of ``fit`` are read.
    """

    categories: Categories

    def __init__(self, estimator: BasePolyleaf, targets: Targets) -> None:
        # Takes the number and the names of the features, where scikit-learn's checks look for them.
        self._estimator = copy.copy(estimator)
        self.targets = targets
        self._binned: BinnedTable | None = None  # the training rows, where they are one

    def read(self, given: EvalInput, target: TargetInput, *, reset: bool, start: Start | None = None) -> Rows:
        """Read some rows; `reset`: those of ``fit``, which may go on from a model."""
        targets = self.targets
        columns = targets.columns(target)
        names = RowNames.of(given.pieces)
        with names.used():
            table = self._read_table(given, reset=reset)
            y = targets.read(target.values, table.shape[0], given.y_name, warn=reset)
            y, weight = targets.weighed(y, given.weight, given.weight_name, columns)
            kept = rows_with_weight(weight)
            if reset:
                self.categories = self._learn_categories(table, kept, start)
            X = row_numbers(table, self.categories, kept)
        if isinstance(X, StreamedTable) and not reset:
            X = X.columns(range(table.shape[1]))
        if kept is not None:
            y, weight = y[kept], None if weight is None else weight[kept]
        refuse_unobserved(X.shape[0], weight if reset else None, given.y_name, columns)
        return Rows(X, y, weight, kept, names.of_kept(kept))

    def _read_table(self, given: EvalInput, *, reset: bool) -> Table:
        """Return X with its names, which the estimator takes, or which are held against those it has."""
        if not isinstance(given.X, BinnedTable):
            least = 1 if given.pieces is None else 0  # other shards may have some
            return read_table(self._estimator, given.X, reset=reset, name=given.X_name, min_rows=least)
        if not reset:
            return columns_to_evaluate(self._estimator, given.X, self._binned, given.X_name)
        self._binned = given.X
        table = given.X.columns()
        take_or_check_names(self._estimator, table, reset=True)
        return table

    def features(self) -> Features:
        """Return what there is to know about the features, once the rows of ``fit`` are read."""
        names = getattr(self._estimator, "feature_names_in_", None)
        count = self._estimator.n_features_in_
        return Features(count, None if names is None else tuple(names), self.categories)

    def with_params(self, params: Mapping[str, Any]) -> RowReader:
        """Return a reader of the same rows for an estimator with other parameters."""
        other = copy.copy(self)
        other.targets = type(self.targets)(params)
        return other

    def _learn_categories(self, table: Table, kept: Mask | None, start: Start | None) -> Categories:
        """Return the categories of the table of ``fit``, or those of the model to go on from."""
        if table.kind == "binned":
            return categories_to_train(table.source, self._estimator, start)
        mask = resolve_categorical(self._estimator.categorical_features, table)
        if table.kind == "stream":
            table.source.check_first_rows(mask)
        if start is None:
            return learn_categories(table, mask, kept)
        start.check_categorical(np.flatnonzero(mask).tolist())
        return start.fitted.categories


@dataclass(frozen=True)
class Problem:
    """What there is to train on, read and checked.

    Attributes
    ----------
    kind : {"regressor", "classifier", "mixed"}
        Which estimator is trained.
    params : dict
        Its parameters.
    reader : RowReader
        Knows features and targets, to read evaluation sets with.
    data, coding, loss, metrics, settings
        Everything the boosting loop needs.
    kept : bool ndarray or None
        Which of the rows given are in `data`: those with any weight. None: all.
    names : RowNames
        What errors call the rows of `data`.
    own_weight : float64 ndarray of shape (rows,) or (rows, columns of y), or None
        Weights of the rows or cells of `data` without those of their classes.
    holds_out : bool
        Whether some of the rows are held out.
    """

    kind: EstimatorKind
    params: dict[str, Any]
    reader: RowReader
    data: Dataset
    coding: TargetCoding
    loss: Loss
    metrics: list[Metric]
    settings: Settings
    kept: Mask | None
    names: RowNames
    own_weight: FloatArray | None
    holds_out: bool = False

    def evaluation(self, given: EvalInput) -> Dataset:
        """Return an evaluation set, read as the training rows were, on which the metrics can be measured."""
        reader = self.reader
        given = reader.targets.naming_columns(given)
        with opened(given, sorted(reader.categories), reader.features().names) as given:
            given = with_own_targets(rows_of(given))
            target = self.coding.named(reader.targets.take_apart(given.y, given.y_name), given.y_name)
            rows = reader.read(given, target, reset=False)
        shard = None if given.pieces is None else given.pieces.shard(rows.kept)
        words = self.coding.words(given.y_name)
        with rows.names.used():
            weights = Weights.of(self.loss.output_weights(rows.weight))
            data = Dataset(given.name, rows.X, self.coding.encode(rows.y, given.y_name), weights, shard)
            self.loss.check_targets(data.y, weights.whole(), words, training=False)
            check_measured(self.metrics, data, words)
        return data

    def with_params(self, params: dict[str, Any]) -> Problem:
        """Return the same rows with other parameters: nothing is read again, and the seed stays the same.

        What rows are read, coded, weighed and binned by must be as it was, and so must the objective.

        Parameters
        ----------
        params : dict
            All parameters, checked one by one already.

        Raises
        ------
        ValueError
            When they do not go together, or not with the rows.
        """
        reader, data = self.reader.with_params(params), self.data
        shards = data.shard is not None
        loss, settings = _settled(params, reader, self.coding, self.settings.seed, data.X, data.y, shards)
        settings = _with_weights(settings, params, data)
        metrics = reader.targets.make_metrics(self.coding, loss, data, holds_out=self.holds_out)
        return replace(self, params=params, reader=reader, loss=loss, metrics=metrics, settings=settings)

    def fitted(self, result: TrainingResult) -> FittedModel:
        """Return the model that the rounds of a run are."""
        features = self.reader.features()
        return FittedModel(
            result.forest,
            self.coding,
            self.reader.targets.saved_loss(self.loss),
            features.names,
            features.categories,
            result.best_iteration,
            result.evals_result,
            result.bags,
            chosen_of(self.params, self.settings),
        )


def training_rows(X: Any, y: Any, sample_weight: Any) -> EvalInput:
    """Return the training rows as the user gave them, with the names that errors call them by."""
    return EvalInput("training", X, y, sample_weight, "X", "y", "sample_weight")


def read_problem(
    estimator: BasePolyleaf,
    params: dict[str, Any],
    given: EvalInput,
    start: Start | None = None,
    seed: int | None = None,
    *,
    holds_out: bool = False,
) -> Problem:
    """Read and check what there is to train on.

    Parameters
    ----------
    estimator : BasePolyleaf
        It is not changed.
    params : dict
        Its parameters, checked one by one already.
    given : EvalInput
        The training rows as the user gave them.
    start : Start or None
        What training goes on from.
    seed : int or None
        Of the run, where it was drawn already; None: `random_state` says it.
    holds_out : bool
        Whether some of the rows are to be held out.
    """
    targets = estimator._targets(params)
    reader = RowReader(estimator, targets)
    if isinstance(given.X, Source):
        refuse_too_large(_least_needs(given.X, params), given.X_name)
        given = rows_of(given)
    given = with_own_targets(given)
    target = targets.take_apart(given.y, given.y_name)
    rows = reader.read(given, target, reset=True, start=start)
    coding = _coding(targets, target, rows, start)
    shards = given.pieces is not None
    loss, settings = _settled(params, reader, coding, seed, rows.X, rows.y, shards)
    codes = coding.encode(rows.y)
    weight = apply_class_weight(params.get("class_weight"), codes, coding, rows.weight)
    shard = None if given.pieces is None else given.pieces.shard(rows.kept)
    with rows.names.used():
        data = Dataset(given.name, rows.X, codes, Weights.of(loss.output_weights(weight)), shard)
        loss.check_targets(data.y, data.weights.whole(), coding.words(given.y_name), training=True)
    settings = _with_weights(settings, params, data)
    if isinstance(given.X, BinnedTable):
        check_weights_of_cuts(given.X, data.weights.row, rows.kept)
    metrics = targets.make_metrics(coding, loss, data, holds_out=holds_out)
    if holds_out:  # some of them are measured, with the weights they have without their classes
        with rows.names.used():
            own = replace(data, weights=Weights.of(loss.output_weights(rows.weight)))
            check_measured(metrics, own, coding.words(given.y_name))
    if isinstance(data.X, StreamedTable):
        _plan_memory(data.X, data, loss, settings, given.X_name, holds_out)
    if start is not None:
        start.check_run(data, targets.saved_loss(loss), params, settings, reader.features().names)
        settings = start.continued(settings)
    return Problem(
        kind=estimator._kind,
        params=params,
        reader=reader,
        data=data,
        coding=coding,
        loss=loss,
        metrics=metrics,
        settings=settings,
        kept=rows.kept,
        names=rows.names,
        own_weight=rows.weight,
        holds_out=holds_out,
    )


def _settled(
    params: dict[str, Any],
    reader: RowReader,
    coding: TargetCoding,
    seed: int | None,
    X: FeatureTable,
    y: Any,
    shards: bool,
) -> tuple[Loss, Settings]:
    """Return the loss and the settings of parameters that go together, and with the rows."""
    targets, features = reader.targets, reader.features()
    loss = targets.make_loss(coding)
    check_extent(features.count, coding.n_outputs)
    interaction = interaction_groups(params["interaction_constraints"], features.count, features.names)
    check(
        Situation(
            params,
            device=params["device"],
            kind=coding.kind,
            loss=loss.name,
            n_outputs=coding.n_outputs,
            leaf_quantiles=loss.leaf_levels is not None,
            sparse_labels=scipy.sparse.issparse(y),
            categorical=bool(features.categories),
            interaction=interaction is not None,
            shards=shards,
            table="sparse" if shards and scipy.sparse.issparse(X) else None,
        )
    )
    n_rows = round(total(np.array([float(X.shape[0])])))
    settings = make_settings(params, coding, loss.name, features, interaction, n_rows, seed)
    targets.check_signs(settings.monotone, loss)
    _check_signs_of_categories(settings.monotone, features, params)
    return loss, settings


def _with_weights(settings: Settings, params: dict[str, Any], data: Dataset) -> Settings:
    """Return the settings as they go with the weights of the rows."""
    if data.weights.cell is None:
        return settings
    check(Situation(params, cell_weights=True))
    return replace(settings, bounded_influence=False)


def _coding(targets: Targets, target: TargetInput, rows: Rows, start: Start | None) -> TargetCoding:
    """Return what there is to know about y, or what the model to go on from knows."""
    if start is None:
        return replace(targets.learn_coding(rows.y), names=target.names, frame=target.frame)
    coding = start.fitted.coding
    coding.named(target, "y")
    targets.check_continues(coding, start.source)
    return coding


def _least_needs(source: Source, params: Mapping[str, Any]) -> Needs:
    """Return what training takes at least, before it is known how many outputs there are."""
    return needs(*source.shape, 1, max_bins=params["max_bins"], cell_bytes=source.cell_bytes)


def _plan_memory(
    table: StreamedTable, data: Dataset, loss: Loss, settings: Settings, name: str, holds_out: bool
) -> None:
    """Refuse what does not fit into memory; panels may take what the rounds will need later."""

    def needed(savings: Savings) -> Needs:
        return needs_of(data, loss, settings, savings, table.cell_bytes, holds_out=holds_out)

    there = needed(NOTHING_SAVED).throughout
    present = there["targets"] + there["weights"]
    savings = least_savings(
        possible_savings(data, loss, settings),
        lambda savings: needed(savings).peak - present,
        memory.available(),
    )
    refuse_too_large(needed(savings), name, present)
    table.panel_bytes = sum(needed(savings).rounds.values())


def check_measured(
    metrics: Sequence[Metric], data: Dataset, words: TargetWords, *, weighted: bool = True
) -> None:
    """Raise ValueError where a metric cannot measure some rows: their targets, or their weights."""
    weight = data.weights.whole()
    for metric in metrics:
        if metric.check_targets is not None:
            metric.check_targets(data.y, weight, words)
        if weighted and metric.check_weights is not None and weight is not None:
            metric.check_weights(weight, words.name)
        if weighted and not metric.takes_weight and not data.weights.are_ones:
            raise refused(Situation(blind_metric=metric.name, weighted=True, words={"y": words.name}))


def _check_signs_of_categories(
    signs: SignMatrix | None, features: Features, params: Mapping[str, Any]
) -> None:
    """Raise ValueError for a sign on a categorical feature."""
    if signs is None:
        return
    for feature in features.categories:
        if signs[feature].any():
            name = feature if features.names is None else features.names[feature]
            raise refused(Situation(params, ordered_category=shown(name)))
