"""A binned table in the place of X: what ``fit``, ``cv``, ``predict`` and ``score`` take of it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from polyleaf.data.binned_rows import BinnedRows
from polyleaf.data.binned_table import BinnedTable
from polyleaf.data.category_values import Categories
from polyleaf.data.eval_sets import EvalInput
from polyleaf.data.inputs import FloatArray, Mask
from polyleaf.data.sources import source_kind
from polyleaf.data.tables import Table, take_or_check_names
from polyleaf.model.forest import Forest
from polyleaf.model.scores import check_cut_points
from polyleaf.params.combinations import refused
from polyleaf.params.situation import Situation
from polyleaf.training.continuation import Start


def with_own_targets(given: EvalInput, *, needed: bool = True) -> EvalInput:
    """Return rows with y and weights, which a binned table is asked for where they are its own.

    Rows of other tables are returned as they are.

    Raises
    ------
    ValueError
        When something is given twice, or y not at all.
    """
    table = given.X
    if not isinstance(table, BinnedTable):
        return given
    own = ((given.y_name, given.y, table.target), (given.weight_name, given.weight, table.sample_weight))
    for name, here, kept in own:
        if here is not None and kept is not None:
            raise ValueError(
                f"{name} is given twice: {given.X_name} is a BinnedTable that brings it along; leave it out, "
                "or make the table without it."
            )
    if needed and given.y is None and table.target is None:
        raise ValueError(f"{given.y_name} is missing: the BinnedTable was made without it; pass it here.")
    y: Any = given.y if table.target is None else table.target.given()
    return replace(given, y=y, weight=table.sample_weight if given.weight is None else given.weight)


def brings_targets(X: Any) -> bool:
    """Whether an evaluation set may be given without y, as it brings its own along."""
    return isinstance(X, BinnedTable) or source_kind(X) == "batches"


def columns_to_evaluate(
    estimator: object, table: BinnedTable, training: BinnedTable | None, name: str
) -> Table:
    """Return a binned evaluation set in the place of one that is still to be read.

    Parameters
    ----------
    estimator : object
        Knows the names of the features.
    table : BinnedTable
        The evaluation set.
    training : BinnedTable or None
        The training rows, None where these are not binned yet.
    name : str
        What errors call the set.

    Raises
    ------
    TypeError, ValueError
        Where its codes say nothing about the trees to come.
    """
    if training is None:
        raise TypeError(f"{name} is a BinnedTable, but X is none; pass its rows, or train on a BinnedTable.")
    columns = table.columns(name)
    take_or_check_names(estimator, columns, reset=False)
    if not table.has_bins_of(training):
        raise ValueError(
            f"{name} is a BinnedTable with other bins than X; pass its rows, or make it of these by "
            "BinnedTable.make(..., like=...) with the table that is X."
        )
    return columns


def categories_to_train(table: BinnedTable, estimator: Any, start: Start | None) -> Categories:
    """Return the categories of a table of ``fit``, whose bins are those that the estimator asks for."""
    if table.is_like:
        raise ValueError(
            "X is a BinnedTable with the cut points of another one, for evaluation and prediction; train on "
            "one that is made without like."
        )
    table.check_settings(estimator.max_bins, estimator.categorical_features)
    if start is not None:
        start.check_categorical(sorted(table.categories))
        _check_categories(table, start.fitted.categories, f"{start.source}: ")
        if start.source != "resume":  # which needs the same table
            check_cut_points(start.forest, table.rows(), f"{start.source}: X is a BinnedTable, and ")
    return table.categories


def check_weights_of_cuts(table: BinnedTable, weight: FloatArray | None, kept: Mask | None) -> None:
    """Raise ValueError where ``fit`` would choose other cut points, as its rows have other weights.

    Parameters
    ----------
    table : BinnedTable
        The training rows.
    weight : float64 ndarray of shape (rows kept,) or None
        Weights of rows by which ``fit`` would choose them.
    kept : bool ndarray or None
        Which rows of the table have any weight.
    """
    if kept is not None or not table.has_cuts_of(weight):
        raise refused(Situation(table="binned", other_weights=True))


def rows_to_score(
    estimator: object, table: BinnedTable, forest: Forest, categories: Categories
) -> BinnedRows:
    """Return the rows of a table, checked against the features that the estimator was fitted on."""
    take_or_check_names(estimator, table.columns(), reset=False)
    _check_categories(table, categories, "")
    rows = table.rows()
    check_cut_points(forest, rows, "X is a BinnedTable, and ", "; pass the rows themselves")
    return rows


def _check_categories(table: BinnedTable, categories: Categories, opening: str) -> None:
    """Raise ValueError unless the categorical features have the values that a model knows, in its order."""
    for feature in sorted({*categories, *table.categories}):
        if categories.get(feature) != table.categories.get(feature):
            name = feature if table.feature_names is None else table.feature_names[feature]
            raise ValueError(
                f"{opening}X is a BinnedTable in which the categorical feature {name!r} has other values "
                "than in the model; pass the rows themselves."
            )
