"""The fitted estimator that a picture is of, its names, and what it says of rows."""

from __future__ import annotations

from typing import Any

from polyleaf.data.device_arrays import on_host
from polyleaf.data.inputs import FloatArray
from polyleaf.inspect.named_trees import NamedTrees
from polyleaf.model.fitted import fitted_of
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
    fitted = fitted_of(model)
    return NamedTrees(some_rounds(fitted, 0, fitted.best_iteration + 1))


def rows_beside_targets(
    model: Any, X: Any, y: Any, sample_weight: Any = None
) -> tuple[FloatArray, Any, FloatArray | None]:
    """Return raw scores of rows, coded targets, and weights that are 0 where one was not observed."""
    raw, y, sample_weight = model._beside_targets(
        on_host(X), y, sample_weight, lambda part: on_host(model._raw(part, None))
    )
    coded, weight = model._observed(y, sample_weight, len(raw))
    return raw, coded, weight
