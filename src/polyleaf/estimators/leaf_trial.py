"""Small leaves or larger ones: unless rows are many, those that are held out tell in a short trial."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import numpy.typing as npt

from polyleaf.estimators.held_out import (
    HELD_OUT,
    Stopping,
    held_out_of,
    is_in_turn,
    runs_at_once,
    runs_to_watch,
    watched,
)
from polyleaf.estimators.problem import Problem
from polyleaf.params.automatic import with_larger_leaves
from polyleaf.params.settings import Settings
from polyleaf.params.table import AUTO_FEW_ROUNDS_ROWS, AUTO_PATIENCE
from polyleaf.training.callbacks import EarlyStopping

# Of few rows, each of which is held out once, and of more. docs/defaults.md has the measurements.
_ROUNDS_OF_FEW_ROWS, _ROUNDS = 50, 200
_CLEARLY_BETTER = 0.95


def prefers_larger_leaves(
    problem: Problem, stopping: Stopping | None, groups: npt.NDArray[np.intp] | None = None
) -> bool:
    """Return whether larger leaves have a clearly lower loss on rows that are not trained on.

    That is asked where the parameters leave it open, and a trial costs little beside the training that
    comes, in which all rows are trained on in the end. It hangs on the rows, the seed and the parameters
    alone: a run that goes on gets the same answer.

    Parameters
    ----------
    problem : Problem
        All rows, with the usual leaves.
    stopping : Stopping or None
        What is held out to stop by; None: nothing.
    groups : ndarray of int or None
        Which rows are to stay together.

    Raises
    ------
    KeyboardInterrupt
        Within the trial, in which no round of the model is done.
    """
    if stopping is None or not stopping.refit or problem.data.n_rows >= AUTO_FEW_ROUNDS_ROWS:
        return False
    larger = with_larger_leaves(problem.params, problem.settings, problem.loss.name)
    if larger is None:
        return False
    # Of more rows the larger leaves begin better than they end.
    n_rounds = _ROUNDS_OF_FEW_ROWS if is_in_turn(problem, stopping) else _ROUNDS
    losses = [_held_out_loss(problem, one, n_rounds, stopping, groups) for one in (problem.settings, larger)]
    return losses[1] < _CLEARLY_BETTER * losses[0]


def with_leaves(problem: Problem, larger: bool) -> Problem:
    """Return the problem with larger leaves, or with the usual ones."""
    settings = with_larger_leaves(problem.params, problem.settings, problem.loss.name) if larger else None
    return problem if settings is None else replace(problem, settings=settings)


def _held_out_loss(
    problem: Problem,
    settings: Settings,
    n_rounds: int,
    stopping: Stopping,
    groups: npt.NDArray[np.intp] | None,
) -> float:
    """Return the lowest loss of a few rounds on held-out rows, by the default metric; inf: there are none."""
    # A metric of the user's measures, and says when to stop; what trees there are is not for it to say.
    reader = problem.reader.with_params({**problem.params, "eval_metric": None})
    metrics = reader.targets.make_metrics(problem.coding, problem.loss, problem.data, holds_out=True)
    settings = replace(settings, n_estimators=min(n_rounds, settings.n_estimators))
    short = replace(problem, reader=reader, metrics=metrics, settings=settings)
    stopping = replace(stopping, is_asked=False)
    held_out, callbacks = held_out_of(short, stopping, groups), (EarlyStopping(AUTO_PATIENCE),)
    n_at_once = runs_at_once(short, callbacks, held_out.n_runs)
    runs, _ = runs_to_watch(held_out, stopping, n_at_once=n_at_once)
    if not runs:
        return float("inf")
    found = watched(short, runs, callbacks, refits=True, n_at_once=n_at_once)
    if found.error is not None:
        raise found.error
    return min(found.evals_result[HELD_OUT][metrics[-1].name], default=float("inf"))
