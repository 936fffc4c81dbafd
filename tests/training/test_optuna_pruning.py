"""A study of Optuna prunes what it likes: rounds are reported, and its TrialPruned comes out of `fit`."""

from __future__ import annotations

import sys
import types
from typing import Any

import numpy as np
import pytest

from polyleaf import PolyleafClassifier, PolyleafRegressor, cv
from polyleaf.callbacks import OptunaPruning

X = np.random.default_rng(0).normal(size=(200, 4))
Y = X[:, :2] * X[:, 2:] + 0.1
SMALL = {"n_estimators": 6, "min_samples_leaf": 5, "n_jobs": 1}


class Pruned(Exception):
    """In the place of Optuna's."""


class Trial:
    """What the callback uses of a trial."""

    def __init__(self, prunes_after: int | None = None, direction: str | None = None) -> None:
        self.reports: list[tuple[float, int]] = []
        self.prunes_after = prunes_after
        if direction is not None:
            directions = [types.SimpleNamespace(name=direction)]
            self.study = types.SimpleNamespace(directions=directions)

    def report(self, value: float, step: int) -> None:
        self.reports.append((value, step))

    def should_prune(self) -> bool:
        return len(self.reports) == self.prunes_after


@pytest.fixture(autouse=True)
def optuna(monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> None:
    """A module with Optuna's exception, but in tests with the library itself."""
    if "real" not in request.node.name:
        module: Any = types.ModuleType("optuna")
        module.TrialPruned = Pruned
        monkeypatch.setitem(sys.modules, "optuna", module)


def fit(trial: Any, model: Any = None, **sets: Any) -> Any:
    model = PolyleafRegressor(**SMALL) if model is None else model
    return model.set_params(callbacks=[OptunaPruning(trial)]).fit(X, Y, **sets)


def test_rounds_are_reported_and_a_trial_is_pruned() -> None:
    trial = Trial()
    model = fit(trial, eval_set=(X, Y))
    assert trial.reports == [(v, i) for i, v in enumerate(model.evals_result_["validation_0"]["rmse"])]
    trial = Trial(prunes_after=3)
    with pytest.raises(Pruned, match="after round 2"):
        fit(trial, eval_set=(X, Y))
    assert len(trial.reports) == 3


def test_a_metric_and_a_set_by_name() -> None:
    trial = Trial()
    pruning = OptunaPruning(trial, metric="mae", data="a")
    model = PolyleafRegressor(**SMALL, eval_metric=["mae", "rmse"], callbacks=[pruning])
    model.fit(X, Y, eval_set={"a": (X, Y), "b": (X, -Y)})
    assert [value for value, _ in trial.reports] == model.evals_result_["a"]["mae"]
    for wrong in ({"metric": "auc"}, {"data": "c"}):
        model = PolyleafRegressor(**SMALL, callbacks=[OptunaPruning(trial, **wrong)])
        with pytest.raises(ValueError, match=r"OptunaPruning: .* is not among"):
            model.fit(X, Y, eval_set={"a": (X, Y)})


@pytest.mark.cpu_only("rows are held out on the host")
def test_rows_that_fit_holds_out_are_reported_once() -> None:
    """Not those of the training on all rows, which nothing is measured in."""
    trial = Trial()
    model = fit(trial, PolyleafRegressor(**SMALL, early_stopping_rounds=3))
    assert len(trial.reports) == len(model.evals_result_["held_out"]["rmse"])


def test_folds() -> None:
    trial = Trial()
    result = cv(PolyleafRegressor(**SMALL, callbacks=[OptunaPruning(trial)]), X, Y, cv=3)
    assert [value for value, _ in trial.reports] == result.mean["rmse"].tolist()
    with pytest.raises(Pruned):
        cv(PolyleafRegressor(**SMALL, callbacks=[OptunaPruning(Trial(2))]), X, Y, cv=3)


def test_the_study_must_go_the_way_of_the_metric() -> None:
    fit(Trial(direction="MINIMIZE"), eval_set=(X, Y))
    with pytest.raises(ValueError, match=r"is to maximize, but 'rmse' is better the smaller.*'minimize'"):
        fit(Trial(direction="MAXIMIZE"), eval_set=(X, Y))
    labels = PolyleafClassifier(
        **SMALL, eval_metric="accuracy", callbacks=[OptunaPruning(Trial(None, "MINIMIZE"))]
    )
    with pytest.raises(ValueError, match="'accuracy' is better the greater"):
        labels.fit(X, Y[:, 0] > 0, eval_set=(X, Y[:, 0] > 0))


def test_nothing_to_report() -> None:
    with pytest.raises(ValueError, match="nothing to report; pass eval_set"):
        fit(Trial())
    with pytest.raises(TypeError, match="trial must be a trial of Optuna; got int"):
        OptunaPruning(3)


def test_without_optuna(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "optuna", None)
    with pytest.raises(ImportError, match=r"needs Optuna, which is not installed \(pip install optuna\)"):
        OptunaPruning(Trial())


def test_a_real_study() -> None:
    optuna = pytest.importorskip("optuna")
    optuna.logging.set_verbosity(optuna.logging.WARNING)

    def objective(trial: Any) -> float:
        model = PolyleafRegressor(
            **SMALL | {"n_estimators": 20},
            max_depth=trial.suggest_int("max_depth", 1, 5),
            learning_rate=trial.suggest_float("learning_rate", 1e-3, 0.5, log=True),
            callbacks=[OptunaPruning(trial)],
        )
        model.fit(X[:120], Y[:120], eval_set=(X[120:], Y[120:]))
        return float(model.best_score_["validation_0"]["rmse"])

    study = optuna.create_study(
        sampler=optuna.samplers.RandomSampler(seed=0), pruner=optuna.pruners.MedianPruner(n_startup_trials=3)
    )
    study.optimize(objective, n_trials=15)
    states = [trial.state.name for trial in study.trials]
    assert set(states) == {"COMPLETE", "PRUNED"}
    pruned = [trial for trial in study.trials if trial.state.name == "PRUNED"]
    assert all(1 <= len(trial.intermediate_values) < 20 for trial in pruned)
    backwards = optuna.create_study(direction="maximize")
    with pytest.raises(ValueError, match="the study is to maximize"):
        backwards.optimize(objective, n_trials=1)
