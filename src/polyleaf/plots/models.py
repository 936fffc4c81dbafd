"""The fitted estimator that a picture is of, and its names."""

from __future__ import annotations

from typing import Any

from polyleaf.inspect.named_trees import NamedTrees
from polyleaf.model.rounds import some_rounds


def names_of(model: Any) -> NamedTrees:
    """Return the trees of an estimator up to its best round, with names.

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
    return NamedTrees(some_rounds(model._fitted(), 0, model.best_iteration_ + 1))
