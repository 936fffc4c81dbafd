"""A search for parameters within a budget, on a table that is binned once."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.base import clone

from polyleaf._core import BinnedMatrix
from polyleaf.data.binned_table import BinnedTable
from polyleaf.data.binning import bin_data
from polyleaf.data.device_arrays import on_host
from polyleaf.data.row_groups import group_numbers
from polyleaf.data.sources import opened, source_kind
from polyleaf.estimators.base import BasePolyleaf
from polyleaf.estimators.cross_validation import folds_of
from polyleaf.estimators.fit import patience_of
from polyleaf.estimators.held_out import HeldOut
from polyleaf.estimators.parts import Indices
from polyleaf.estimators.problem import Problem, read_problem, training_rows
from polyleaf.params.combinations import check
from polyleaf.params.rules import Integer, Real, Seed, Verbosity
from polyleaf.params.settings import seed_of
from polyleaf.params.situation import Situation
from polyleaf.params.table import AUTO_FEW_ROWS, parameters_of
from polyleaf.params.validation import validate_params
from polyleaf.params.wording import shown
from polyleaf.training.callbacks import CallbackError, Checkpoint, EarlyStopping, all_callbacks
from polyleaf.training.optuna_pruning import OptunaPruning
from polyleaf.tuning.clock import Clock
from polyleaf.tuning.dimensions import Dimension
from polyleaf.tuning.progress import SearchProgress
from polyleaf.tuning.search import Search
from polyleaf.tuning.space import asked_space, usual_space
from polyleaf.tuning.trial_loop import End, Found, searched
from polyleaf.tuning.trials import Trial, Trials, TuneResult
from polyleaf.tuning.validation import Validation


def tune(
    estimator: BasePolyleaf,
    X: Any,
    y: Any = None,
    *,
    n_trials: int | None = None,
    seconds: float | None = None,
    space: Any = None,
    sample_weight: Any = None,
    groups: Any = None,
    cv: Any = None,
    metric: Any = None,
    random_state: int | np.random.RandomState | None = None,
    verbose: int = 0,
) -> TuneResult:
    """Search for better parameters within a budget, and train on all rows with the best.

    The first trial is the estimator as it is given, so that the result is never worse on the rows that are
    measured. Six others draw all that is searched; then most trials change some parameters of the best one so
    far, and one in three goes on drawing.
    The table is binned once. A trial that falls far behind the best one, at the same sum of learning rates,
    is given up.

    With ``n_estimators="auto"`` or early stopping each trial finds its own number of rounds, and the result
    has that of the best one. A number of rounds without early stopping is obeyed: all trials do as many.

    Ctrl-C ends the search as if its budget were used up: the best setting so far is trained on all rows and
    returned. Pressed once more, during that, it leaves this out: the result then has all but a fitted
    estimator (`refitted` is False). Only where no round of any trial is done, KeyboardInterrupt is raised.

    With the same data, parameters and `random_state` the trials are the same, for any number of threads;
    `seconds` decides how many of them are done.

    Parameters
    ----------
    estimator : PolyleafRegressor, PolyleafClassifier or PolyleafMixed
        Where the search begins; it is not changed, and need not be fitted. Its callbacks are called in all
        trials.
    X, y, sample_weight
        As in ``fit``.
    n_trials : int, default=None
        Most trials, the first one included.
    seconds : float, default=None
        Most time, as far as that can be foreseen: time to train on all rows in the end is set aside, and a
        trial is cut off. One of the two must be given; with both, the first to be used up ends the search.
    space : dict, default=None
        What is searched: for each parameter a list of values, a range ``(low, high)`` or ``(low, high,
        "log")`` with both ends included, or a distribution of `scipy.stats` with its parameters set. None:
        `min_samples_leaf`, `max_depth`, `learning_rate`, `reg_lambda`, `subsample`, `colsample_bynode` and,
        of several outputs, how these share a tree (`sketch`, `sketch_size`, `multi_strategy`), of classes
        `softmax_curvature`; but none that the estimator has another value of than the default.
    groups : array-like of shape (n_rows,), default=None
        Rows of a group are trained on, or measured, together.
    cv : int, scikit-learn splitter, or iterable of (train, test) indices, default=None
        What is measured: folds, as of `polyleaf.cv`, of which there may be one, ``[(train, test)]``. None:
        rows that are held out as ``n_estimators="auto"`` does, `validation_fraction` of them; below 2,000
        rows each in turn.
    metric : str or callable, default=None
        What is to be improved, as `eval_metric` of the estimator (of a list, the last); of a mixed model the
        name of one that it measures, as in `evals_result_`. None: that which early stopping would watch.
    random_state : int, RandomState or None, default=None
        Seed of what is tried. None is the seed 0.
    verbose : int, default=0
        0: silent. 1: a bar of the trials. 2 and more: a line for each trial as well.

    Returns
    -------
    TuneResult

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from polyleaf import PolyleafClassifier, tune
    >>> X, y = load_iris(return_X_y=True)
    >>> result = tune(PolyleafClassifier(n_estimators=20), X, y, n_trials=5)
    >>> len(result.trials), result.best_score <= result.trials[0].score
    (5, True)
    """
    clock = Clock(seconds)
    if not isinstance(estimator, BasePolyleaf):
        raise TypeError(
            "estimator must be a PolyleafRegressor, PolyleafClassifier or PolyleafMixed; got "
            f"{type(estimator).__name__}."
        )
    _check_budget(n_trials, seconds)
    Seed().check("random_state", random_state)
    Verbosity().check("verbose", verbose)
    params = _params(estimator, metric)
    dimensions = None if space is None else asked_space(space, estimator._kind)
    streamed = source_kind(X) is not None
    callbacks = params["callbacks"] or ()
    check(
        Situation(
            params,
            device=params["device"],
            table="stream" if streamed else None,
            cross_validation=cv is not None,
            tuning=True,
            checkpoint=any(isinstance(one, Checkpoint) for one in callbacks),
            pruning=any(isinstance(one, OptunaPruning) for one in callbacks),
        )
    )
    if params["device"] == "cuda":
        from polyleaf.gpu.runtime import require_gpu

        require_gpu()
    X, y, sample_weight = on_host(X), on_host(y), on_host(sample_weight)
    if y is None and not isinstance(X, BinnedTable) and source_kind(X) != "batches":
        raise TypeError("tune() needs y: only a BinnedTable and batches bring it along.")
    rows = _Rows(X, y, sample_weight, groups, cv)
    asked = _Asked(dimensions, metric, n_trials, seed_of(random_state), int(verbose))
    outcome = _searched(estimator, params, rows, asked, clock)
    if outcome.end == "interrupt":
        warnings.warn(
            f"tune() was interrupted: the best of {len(outcome.trials)} trials is trained on all rows "
            "(Ctrl-C once more: it is not).",
            UserWarning,
            stacklevel=2,
        )
    # Nothing is kept of the rows that were read: this is a fit as any other.
    best_estimator = clone(estimator).set_params(**outcome.best_params)
    try:
        best_estimator.fit(X, y, sample_weight)
        refitted = True
    except KeyboardInterrupt:
        best_estimator, refitted = clone(best_estimator), False
    return TuneResult(
        best_estimator,
        outcome.best_params,
        outcome.best.score,
        outcome.metric,
        outcome.trials,
        outcome.best.number,
        clock.elapsed,
        outcome.end,
        refitted,
        outcome.left_out,
    )


@dataclass(frozen=True)
class _Rows:
    """The rows as the user gave them, and how they are taken apart."""

    X: Any
    y: Any
    sample_weight: Any
    groups: Any
    cv: Any


@dataclass(frozen=True)
class _Asked:
    """What is to be searched (None: the usual), by which metric, how often, how drawn, how loud."""

    space: list[Dimension] | None
    metric: Any
    n_trials: int | None
    seed: int
    verbose: int


@dataclass(frozen=True)
class _Outcome:
    """What a search leaves behind."""

    trials: Trials
    best: Trial
    best_params: dict[str, Any]
    metric: str
    end: End
    left_out: dict[str, int]


def _searched(
    estimator: BasePolyleaf, params: dict[str, Any], rows: _Rows, asked: _Asked, clock: Clock
) -> _Outcome:
    """Read and bin the rows, and try one setting after the other."""
    given_callbacks = params["callbacks"] or ()
    n_stopping = sum(isinstance(one, EarlyStopping) for one in given_callbacks)
    patience = patience_of(params, n_stopping)
    callbacks = all_callbacks(given_callbacks, patience, 0)
    given = training_rows(rows.X, rows.y, rows.sample_weight)
    with opened(estimator._targets(params).naming_columns(given), params["categorical_features"]) as given:
        problem = read_problem(estimator, params, given, holds_out=True)
        problem = _measured_alike(problem)
        watched = _watched(problem, asked.metric)
        if patience is not None:
            callbacks[0] = EarlyStopping(patience, metric=watched)
        space = usual_space(problem) if asked.space is None else asked.space
        search = Search(problem, space, asked.seed)
        search.check()
        matrix, folds = _binned(problem, rows)
        validation = Validation(matrix, folds, callbacks, watched, clock)
        progress = SearchProgress(asked.verbose, asked.n_trials, watched)
        try:
            found = searched(search, validation, asked.n_trials, progress)
        except CallbackError as failed:
            raise failed.error from None
        finally:
            progress.close()
    best_params = _best_params(found, validation, estimator, params)
    return _Outcome(found.trials(watched), found.best.trial, best_params, watched, found.end, search.left_out)


def _binned(problem: Problem, rows: _Rows) -> tuple[BinnedMatrix, list[tuple[Indices, Indices]]]:
    """Return all rows as bins, and which of them are trained on and measured."""
    if rows.cv is not None:
        folds = folds_of(problem, rows.cv, rows.X, rows.y, rows.groups)
        return bin_data(problem.data, problem.settings), folds
    groups = rows.groups
    numbers = None if groups is None else group_numbers(groups, problem.kept, problem.data.n_rows)
    few = problem.data.n_rows < AUTO_FEW_ROWS
    held_out = HeldOut(problem, numbers, float(problem.params["validation_fraction"]), in_turn=few)
    folds = held_out.folds()
    if not folds:
        raise ValueError(f"no rows can be held out to measure: {held_out.why_none}; pass cv.")
    return held_out.matrix, folds


def _check_budget(n_trials: object, seconds: object) -> None:
    if n_trials is None and seconds is None:
        raise ValueError("tune() needs a budget: give n_trials, seconds, or both.")
    if n_trials is not None:
        Integer(1).check("n_trials", n_trials)
    if seconds is not None:
        Real(0, open_low=True).check("seconds", seconds)


def _params(estimator: BasePolyleaf, metric: Any) -> dict[str, Any]:
    """Return the parameters that the search begins with, checked one by one."""
    params: dict[str, Any] = estimator.get_params(deep=False)
    if metric is not None and estimator._kind != "mixed":
        parameters_of(estimator._kind)["eval_metric"].rule.check("metric", metric)
        params["eval_metric"] = metric
    validate_params(params, estimator._kind)
    if isinstance(params["random_state"], np.random.RandomState):  # which would give each trial another seed
        params["random_state"] = int(params["random_state"].randint(np.iinfo(np.int32).max))
    return params


def _measured_alike(problem: Problem) -> Problem:
    """Return the same problem with metrics by name: usual ones hang on parameters that may be searched."""
    if problem.kind == "mixed" or problem.params["eval_metric"] is not None:
        return problem
    return problem.with_params(problem.params | {"eval_metric": [one.name for one in problem.metrics]})


def _watched(problem: Problem, metric: Any) -> str:
    """Return the name of the metric that is to be improved."""
    names = [one.name for one in problem.metrics]
    if problem.kind == "mixed" and metric is not None:
        if metric not in names:
            raise ValueError(
                f"metric must be one that is measured, {', '.join(map(repr, names))}; got {shown(metric)}."
            )
        return str(metric)
    return names[-1]


def _best_params(
    found: Found, validation: Validation, estimator: BasePolyleaf, params: dict[str, Any]
) -> dict[str, Any]:
    """Return all parameters in which the best estimator differs from the one given."""
    best = dict(found.best.candidate.params)
    if isinstance(estimator.random_state, np.random.RandomState):
        best["random_state"] = params["random_state"]
    if validation.stops:
        best["n_estimators"] = found.best.trial.n_rounds
        if params["early_stopping_rounds"] is not None:
            best["early_stopping_rounds"] = None
        given = params["callbacks"] or ()
        if any(isinstance(one, EarlyStopping) for one in given):
            best["callbacks"] = [one for one in given if not isinstance(one, EarlyStopping)]
    return best
