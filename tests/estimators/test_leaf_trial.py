"""Small leaves or larger ones: rows that are held out choose, and nothing else changes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from polyleaf import PolyleafClassifier, PolyleafRegressor
from polyleaf.callbacks import Checkpoint
from polyleaf.estimators import held_out, leaf_trial
from polyleaf.params import automatic

pytestmark = pytest.mark.cpu_only("the rows are chosen on the host; the GPU's own suite fits with them")

RNG = np.random.default_rng(3)
N = 240
# A smooth function of few features, and noise: leaves of three rows learn the noise.
X = RNG.normal(size=(N, 30))
SMOOTH = (X[:, :6].sum(axis=1) + RNG.normal(size=N)).reshape(-1, 1)
# Rows in near copies: leaves of twenty rows mix what has nothing to do with each other.
PLACES = np.repeat(RNG.normal(size=(N // 4, 8)), 4, axis=0)
COPIES = np.repeat(RNG.normal(size=(N // 4, 2)), 4, axis=0)
NEAR = PLACES + 1e-3 * RNG.normal(size=PLACES.shape)
FAST = {"learning_rate": 0.2, "early_stopping_rounds": 5, "n_jobs": 1}
LARGER = {"min_samples_leaf": 20, "colsample_bytree": 1.0}


def fitted(X: Any = X, y: Any = SMOOTH, /, fit: Any = None, **params: Any) -> PolyleafRegressor:
    return PolyleafRegressor(**{**FAST, **params}).fit(X, y, **(fit or {}))


def leaves(model: Any) -> Any:
    return model.chosen_params_["min_samples_leaf"], model.chosen_params_["colsample_bytree"]


@pytest.mark.parametrize("n_bags", [1, 2])
def test_a_smooth_function_gets_larger_leaves_and_all_features(n_bags: int) -> None:
    model, asked = fitted(n_bags=n_bags), fitted(**LARGER, n_bags=n_bags)
    assert leaves(model) == (20, 1.0)
    assert model.n_estimators_ == asked.n_estimators_
    np.testing.assert_array_equal(model.predict(X), asked.predict(X))
    assert model.evals_result_ == asked.evals_result_


def test_rows_in_near_copies_keep_small_leaves() -> None:
    model = fitted(NEAR, COPIES)
    asked = fitted(NEAR, COPIES, min_samples_leaf=3, colsample_bytree=0.75)
    assert leaves(model) == (3, 0.75)
    np.testing.assert_array_equal(model.predict(NEAR), asked.predict(NEAR))


def test_what_is_given_is_obeyed() -> None:
    assert "min_samples_leaf" not in fitted(min_samples_leaf=3).chosen_params_
    assert fitted(colsample_bytree=0.5).chosen_params_["min_samples_leaf"] == 20
    assert "colsample_bytree" not in fitted(colsample_bytree=0.5).chosen_params_


@pytest.mark.parametrize(
    "course",
    [
        {"n_estimators": 5, "early_stopping_rounds": None},
        {"refit": False},
        {"fit": {"eval_set": (X[:50], SMOOTH[:50])}},
    ],
    ids=["a number of rounds", "no refit", "an evaluation set"],
)
def test_nobody_is_asked_where_held_out_rows_do_not_lead_to_a_training_on_all(course: dict[str, Any]) -> None:
    assert leaves(fitted(**course)) == (3, 0.5)


@pytest.mark.parametrize(("many", "larger"), [(N, False), (N + 1, True)])
def test_many_rows_are_not_asked(monkeypatch: pytest.MonkeyPatch, many: int, larger: bool) -> None:
    monkeypatch.setattr(leaf_trial, "AUTO_FEW_ROUNDS_ROWS", many)
    assert leaves(fitted()) == ((20, 1.0) if larger else (3, 0.5))


@pytest.mark.parametrize(("few", "n_runs", "n_rounds"), [(N, 1, 200), (N + 1, 5, 50)])
def test_rows_that_are_held_out_once_and_no_more_are_asked_for_longer(
    monkeypatch: pytest.MonkeyPatch, few: int, n_runs: int, n_rounds: int
) -> None:
    monkeypatch.setattr(held_out, "AUTO_FEW_ROWS", few)
    monkeypatch.setattr(leaf_trial, "AUTO_PATIENCE", 500)
    trials, watched = [], leaf_trial.watched

    def spied(problem: Any, runs: Any, *others: Any, **named: Any) -> Any:
        found = watched(problem, runs, *others, **named)
        trials.append((len(runs), len(found.evals_result["held_out"]["rmse"])))
        return found

    monkeypatch.setattr(leaf_trial, "watched", spied)
    assert leaves(fitted()) == (20, 1.0)
    assert trials == 2 * [(n_runs, n_rounds)]


def test_a_trial_ends_where_the_loss_no_longer_falls(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(held_out, "AUTO_FEW_ROWS", N)
    trials, watched = [], leaf_trial.watched

    def spied(*given: Any, **named: Any) -> Any:
        found = watched(*given, **named)
        trials.append((found.best_iteration, len(found.evals_result["held_out"]["rmse"])))
        return found

    monkeypatch.setattr(leaf_trial, "watched", spied)
    fitted()
    assert [done for _, done in trials] == [min(200, best + 51) for best, _ in trials]
    assert min(done for _, done in trials) < 200


def test_a_run_with_one_set_of_held_out_rows_goes_on_with_its_leaves(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(held_out, "AUTO_FEW_ROWS", N)
    path = tmp_path / "checkpoint"

    def stop(state: Any) -> None:
        if state.round == 3:
            raise RuntimeError("enough")

    whole = fitted()
    with pytest.raises(RuntimeError, match="enough"):
        fitted(callbacks=[Checkpoint(path, every=1), stop])
    resumed = fitted(fit={"resume": path})
    assert leaves(resumed) == leaves(whole) == (20, 1.0)
    np.testing.assert_array_equal(resumed.predict(X), whole.predict(X))


def test_only_losses_with_small_leaves_have_something_to_choose() -> None:
    assert leaves(fitted(objective="huber")) == (20, 0.5)
    classes = PolyleafClassifier(**FAST).fit(X, np.digitize(SMOOTH[:, 0], [-1.0, 1.0]))
    assert leaves(classes) == (5, 0.5)
    assert all(one.larger_leaf is None for name, one in automatic._SIZES.items() if name != "squared_error")


def test_metrics_of_the_user_do_not_choose() -> None:
    def worst(y: Any, prediction: Any) -> float:
        calls.append(1)
        return float(len(calls))

    calls: list[int] = []
    assert leaves(fitted(eval_metric=worst)) == (20, 1.0)
    assert leaves(fitted(eval_metric=["r2"])) == (20, 1.0)


def test_neither_order_nor_threads_nor_a_unit_count() -> None:
    order = np.random.default_rng(0).permutation(N)
    model = fitted()
    np.testing.assert_array_equal(fitted(X[order], SMOOTH[order]).predict(X), model.predict(X))
    np.testing.assert_array_equal(fitted(n_jobs=2).predict(X), model.predict(X))
    np.testing.assert_array_equal(fitted(X, 1024 * SMOOTH).predict(X), 1024 * model.predict(X))


def test_groups_stay_together_in_the_trial(monkeypatch: pytest.MonkeyPatch) -> None:
    """A small leaf predicts copies of its own rows well; what is held out must not have any."""
    rows = np.repeat(np.arange(N // 4), 4)
    seen = []
    asked = leaf_trial.held_out_of

    def spied(problem: Any, stopping: Any, groups: Any) -> Any:
        parts = asked(problem, stopping, groups)
        seen.extend(set(rows[train]) & set(rows[test]) for train, test in parts.folds())
        return parts

    monkeypatch.setattr(leaf_trial, "held_out_of", spied)
    fitted(NEAR, COPIES, fit={"groups": rows})
    assert len(seen) == 10
    assert not any(seen)


def test_callbacks_see_the_model_alone_and_runs_go_on(tmp_path: Path) -> None:
    path, seen = tmp_path / "checkpoint", []

    def stop(state: Any) -> None:
        seen.append(state.round)
        if len(seen) == model_rounds + 10:  # some rounds into the training on all rows
            raise RuntimeError("enough")

    whole = fitted()
    model_rounds = len(whole.evals_result_["held_out"]["rmse"])
    with pytest.raises(RuntimeError, match="enough"):
        fitted(callbacks=[Checkpoint(path, every=1), stop])
    assert seen == [*range(model_rounds), *range(10)]
    resumed = fitted(fit={"resume": path})
    np.testing.assert_array_equal(resumed.predict(X), whole.predict(X))
    assert leaves(resumed) == (20, 1.0)


def test_too_few_rows_to_hold_out_are_not_asked() -> None:
    with pytest.warns(UserWarning, match="no rows can be held out"):
        model = PolyleafRegressor(max_depth=2).fit(np.zeros((9, 1)), np.ones(9))
    assert leaves(model) == (3, 1.0)
