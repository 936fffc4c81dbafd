"""From a problem that was read to its trees: callbacks, evaluation sets, the loop, checkpoints on the way."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any

from polyleaf.data.dataset import Dataset
from polyleaf.data.eval_sets import EvalInput
from polyleaf.estimators.problem import Problem, check_measured
from polyleaf.model.checkpoint import CheckpointNote, describe_data, describe_params
from polyleaf.model.file import write_model
from polyleaf.model.fitted import SavedModel
from polyleaf.params.combinations import check
from polyleaf.params.situation import Situation
from polyleaf.training.callbacks import all_callbacks
from polyleaf.training.continuation import Start
from polyleaf.training.loop import Beginning, TrainingResult, train


def callbacks_of(params: Mapping[str, Any], n_eval_sets: int) -> list[Any]:
    """Return the callbacks of a fit: those given, and those that the parameters stand for.

    Raises
    ------
    ValueError
        When parameters exclude each other, or early stopping has no evaluation set to watch.
    """
    check(Situation(params, n_eval_sets=n_eval_sets))
    return all_callbacks(params["callbacks"], params["early_stopping_rounds"], int(params["verbose"]))


def train_on(
    problem: Problem, evals: Sequence[EvalInput], callbacks: Sequence[Any], start: Start | None
) -> TrainingResult:
    """Boost trees on a problem, measuring its metrics on the evaluation sets.

    Parameters
    ----------
    problem : Problem
        What to train on.
    evals : sequence of EvalInput
        Evaluation sets as the user gave them.
    callbacks : sequence
        See :mod:`polyleaf.callbacks`.
    start : Start or None
        What training goes on from.

    Returns
    -------
    TrainingResult
        Also of a run that Ctrl-C or a callback ended, with the error.
    """
    measured = evaluations(problem, evals)

    @cache
    def note() -> CheckpointNote:
        return note_of(problem, start)

    def save(path: str | os.PathLike[str], result: TrainingResult) -> None:
        write_model(path, SavedModel(problem.kind, problem.params, problem.fitted(result), note()))

    return train(
        problem.data,
        measured,
        problem.loss,
        problem.metrics,
        problem.settings,
        callbacks,
        Beginning(None if start is None else start.forest),
        save=save,
    )


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
