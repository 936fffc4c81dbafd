"""The columns of a table that a model takes."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from polyleaf.cli.failures import Failure
from polyleaf.cli.input_tables import InputTable


def text_features(model: Any) -> list[str]:
    """Return the features whose categories are text, also where a file has those that look like numbers."""
    names = getattr(model, "feature_names_in_", None)
    if names is None:
        return []
    return [
        str(names[column])
        for column, categories in model._categories.items()
        if any(isinstance(value, str) for value in categories.values)
    ]


def feature_columns(model: Any, table: InputTable, others: Collection[str], path: str) -> list[str]:
    """Return the columns that a model takes, in its order.

    Parameters
    ----------
    model : estimator
        A fitted one.
    table : InputTable
        Where the columns are.
    others : collection of str
        Columns that are no features, where the model knows none by name.
    path : str
        Of the model, for errors.
    """
    names = getattr(model, "feature_names_in_", None)
    if names is not None:
        table.require(list(names), f"which {path} was trained with")
        return list(names)
    found = [column for column in table.columns if column not in others]
    if len(found) != model.n_features_in_:
        raise Failure(
            f"{table.name}: {path} has {model.n_features_in_} features without names, and there are "
            f"{len(found)} columns beside those named otherwise"
        )
    return found
