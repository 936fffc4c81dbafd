"""Several models of parts of the rows, each stopped by the rows that it has not seen, averaged in one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from polyleaf.estimators.held_out import HELD_OUT, HeldOut, watched
from polyleaf.estimators.problem import Problem
from polyleaf.model.bags import joined
from polyleaf.model.forest import Forest
from polyleaf.model.tree_ranges import trees_of_rounds
from polyleaf.training.loop import TrainingResult
from polyleaf.training.state import EvalsResult


def train_bags(
    problem: Problem,
    n_bags: int,
    callbacks: Sequence[Any],
    groups: npt.NDArray[np.intp] | None,
) -> TrainingResult:
    """Train one model for each of so many parts of the rows, on all rows but these.

    Each is stopped by the rows of its part, where callbacks stop early; the others are not asked. All are
    trained on one binned table.

    Parameters
    ----------
    problem : Problem
        All rows.
    n_bags : int
        Number of parts and models.
    callbacks : sequence
        Of each training.
    groups : ndarray of int or None
        Which rows are to stay together.

    Returns
    -------
    TrainingResult
        Of the forest that is their mean. After Ctrl-C, of the members that are done and what there is of the
        one that was being trained.

    Raises
    ------
    ValueError
        When the rows cannot be shared out, or a part leaves nothing to learn from.
    """
    parts = HeldOut(problem, groups, 1 / n_bags, in_turn=True)
    n_parts = len(parts.folds())
    if n_parts < n_bags:
        raise ValueError(
            f"n_bags={n_bags}, but the rows make {n_parts} part(s): different rows of X, or groups, are too "
            "few."
        )
    forests: list[Forest] = []
    measured: EvalsResult = {}
    error: BaseException | None = None
    for number, run in enumerate(parts.runs()):
        found = watched(problem, [run], callbacks)
        del run  # before the next one gets its table
        error = found.error
        if found.forest.n_rounds > 0 or not forests:
            forests.append(trees_of_rounds(found.forest, 0, found.best_iteration + 1))
            measured[f"{HELD_OUT}_{number}"] = found.evals_result[HELD_OUT]
        if error is not None:
            break
    whole, bags = joined(forests)
    return TrainingResult(whole, measured, whole.n_rounds - 1, error, bags if len(bags) > 1 else ())
