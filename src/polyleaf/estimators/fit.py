"""From a problem that was read to its trees: callbacks, evaluation sets, the loop, checkpoints on the way."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

from polyleaf.data.dataset import Dataset
from polyleaf.data.eval_sets import EvalInput
from polyleaf.data.row_groups import group_numbers
from polyleaf.estimators.bagging import train_bags
from polyleaf.estimators.held_out import Stopping, train_held_out
from polyleaf.estimators.leaf_trial import prefers_larger_leaves, with_leaves
from polyleaf.estimators.problem import Problem, check_measured
from polyleaf.model.checkpoint import CheckpointNote, describe_data, describe_groups, describe_params
from polyleaf.model.file import write_model
from polyleaf.model.fitted import FittedModel, SavedModel
from polyleaf.params.combinations import check
from polyleaf.params.situation import Situation
from polyleaf.params.table import AUTO_PATIENCE
from polyleaf.training.callbacks import Checkpoint, EarlyStopping, all_callbacks
from polyleaf.training.continuation import Start
from polyleaf.training.loop import Beginning, TrainingResult, train
from polyleaf.training.optuna_pruning import OptunaPruning


@dataclass(frozen=True)
class Fit:
    """What the parameters of an estimator say about the course of its training.

    Attributes
    ----------
    callbacks : list
        Those given, and those that the parameters stand for.
    stopping : Stopping or None
        What to hold out of the training rows to stop by; None: nothing.
    n_bags : int
        Number of models to average, each of which holds out rows of its own.
    """

    callbacks: list[Any]
    stopping: Stopping | None
    n_bags: int = 1


def fit_of(params: Mapping[str, Any], n_eval_sets: int, **situation: Any) -> Fit:
    """Return what parameters say about the course of the training.

    Parameters
    ----------
    params : mapping
        Checked one by one already.
    n_eval_sets : int
        Evaluation sets that were given.
    **situation : dict
        What else is known (see `Situation`).

    Raises
    ------
    ValueError
        When parameters exclude each other.
    """
    given = params["callbacks"] or ()
    n_early_stopping = sum(isinstance(one, EarlyStopping) for one in given)
    patience = patience_of(params, n_early_stopping)
    n_bags = int(params["n_bags"])
    holds_out = n_eval_sets == 0 and (patience is not None or n_early_stopping > 0 or n_bags > 1)
    checkpoint = n_bags > 1 and any(isinstance(one, Checkpoint) for one in given)
    check(
        Situation(
            params,
            n_eval_sets=n_eval_sets,
            n_early_stopping=n_early_stopping,
            holds_out=holds_out,
            checkpoint=checkpoint,
            pruning=any(isinstance(one, OptunaPruning) for one in given),
            **situation,
        )
    )
    callbacks = all_callbacks(given, patience, int(params["verbose"]))
    asked = params["early_stopping_rounds"] is not None or n_early_stopping > 0
    stopping = Stopping(float(params["validation_fraction"]), bool(params["refit"]), asked)
    return Fit(callbacks, stopping if holds_out else None, n_bags)


def patience_of(params: Mapping[str, Any], n_early_stopping: int) -> int | None:
    """Return after how many rounds without an improvement to stop; None: no parameter says so."""
    asked: int | None = params["early_stopping_rounds"]
    auto = params["n_estimators"] == "auto" and n_early_stopping == 0
    return AUTO_PATIENCE if asked is None and auto else asked


def train_on(
    problem: Problem,
    evals: Sequence[EvalInput],
    fit: Fit,
    start: Start | None,
    groups: Any = None,
) -> tuple[FittedModel, BaseException | None]:
    """Boost trees on a problem, measuring its metrics on the evaluation sets.

    Parameters
    ----------
    problem : Problem
        What to train on.
    evals : sequence of EvalInput
        Evaluation sets as the user gave them.
    fit : Fit
        The course of the training.
    start : Start or None
        What training goes on from.
    groups : array-like or None
        Rows that are held out together, as the user gave them.

    Returns
    -------
    model : FittedModel
        Of the rounds done, also those of a run that ended early.
    error : BaseException or None
        What ended the run: KeyboardInterrupt, or whatever a callback raised.
    """
    measured = evaluations(problem, evals)
    numbers = None if groups is None else group_numbers(groups, problem.kept, problem.data.n_rows)
    if start is not None and start.source == "resume":
        start.note.check_holds_out(fit.stopping is not None)
        start.note.check_groups(numbers)

    @cache
    def note() -> CheckpointNote:
        return replace(note_of(problem, start), groups=describe_groups(numbers))

    def save(path: str | os.PathLike[str], result: TrainingResult, stopped_at: int | None = None) -> None:
        page = replace(note(), holds_out=fit.stopping is not None, stopped_at=stopped_at)
        write_model(path, SavedModel(problem.kind, problem.params, problem.fitted(result), page))

    problem = with_leaves(problem, prefers_larger_leaves(problem, fit.stopping, numbers))
    if fit.stopping is None:
        result = train(
            problem.data,
            measured,
            problem.loss,
            problem.metrics,
            problem.settings,
            fit.callbacks,
            Beginning(None if start is None else start.forest),
            save=save,
        )
    elif fit.n_bags > 1:
        result = train_bags(problem, fit.n_bags, fit.stopping.refit, fit.callbacks, numbers)
    else:
        result = train_held_out(problem, fit.stopping, fit.callbacks, numbers, start, save)
    return problem.fitted(result), result.error


def note_of(problem: Problem, start: Start | None) -> CheckpointNote:
    """Return what a checkpoint says beside the model; where there are several shards, all call it."""
    return CheckpointNote(
        seed=problem.settings.seed,
        init_rounds=0 if start is None else start.init_rounds,
        params=describe_params(problem.params),
        data=describe_data(problem.data.arrays(), problem.data.shard),
    )


def evaluations(problem: Problem, evals: Sequence[EvalInput]) -> list[Dataset]:
    """Return the evaluation sets, on which all metrics can be measured."""
    if not evals:
        with problem.names.used():
            check_measured(problem.metrics, problem.data, problem.coding.words("y"), weighted=False)
    return [problem.evaluation(given) for given in evals]
