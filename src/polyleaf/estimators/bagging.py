"""Several models of parts of the rows, each stopped by the rows that it has not seen, averaged in one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from polyleaf.estimators.held_out import HELD_OUT, HeldOut
from polyleaf.estimators.problem import Problem
from polyleaf.model.bags import joined
from polyleaf.model.forest import Forest
from polyleaf.model.tree_ranges import trees_of_rounds
from polyleaf.training.folds import Folds
from polyleaf.training.loop import Run, TrainingResult, boost
from polyleaf.training.state import EvalsResult, TrainingState


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
    runs = parts.runs()
    if len(runs) < n_bags:
        raise ValueError(
            f"n_bags={n_bags}, but the rows make {len(runs)} part(s): different rows of X, or groups, are "
            "too few."
        )
    forests: list[Forest] = []
    measured: EvalsResult = {}
    error: BaseException | None = None
    for number, run in enumerate(runs):
        forest, history, error = _trained(problem, run, callbacks)
        if forest.n_rounds > 0 or not forests:
            forests.append(forest)
            measured[f"{HELD_OUT}_{number}"] = history
        if error is not None:
            break
    whole, bags = joined(forests)
    return TrainingResult(whole, measured, whole.n_rounds - 1, error, bags if len(bags) > 1 else ())


def _trained(
    problem: Problem, run: Run, callbacks: Sequence[Any]
) -> tuple[Forest, dict[str, list[float]], BaseException | None]:
    """Return the trees up to the best round, what was measured, and what ended the training."""
    alone = Folds(lambda: [run], HELD_OUT, problem.metrics)
    state = TrainingState(
        n_rounds=problem.settings.n_estimators,
        n_done=0,
        learning_rate=problem.settings.learning_rate,
        evals_result=alone.history,
        greater_is_better={metric.name: metric.greater_is_better for metric in problem.metrics},
        forest=run.forest,
    )
    error = boost(alone, state, callbacks)
    forest = run.forest(state.best_round)
    return trees_of_rounds(forest, 0, state.best_round + 1), alone.history[HELD_OUT], error
