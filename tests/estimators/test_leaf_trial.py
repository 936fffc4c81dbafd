"""Small leaves or larger ones: of few rows, those that are held out choose, and nothing else changes."""

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
def test_nobody_is_asked_where_rows_are_not_held_out_in_turn(course: dict[str, Any]) -> None:
    assert leaves(fitted(**course)) == (3, 0.5)


@pytest.mark.parametrize(("few", "larger"), [(N, False), (N + 1, True)])
def test_many_rows_are_not_asked(monkeypatch: pytest.MonkeyPatch, few: int, larger: bool) -> None:
    monkeypatch.setattr(held_out, "AUTO_FEW_ROWS", few)
    assert leaves(fitted()) == ((20, 1.0) if larger else (3, 0.5))


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
        model = PolyleafRegressor(max_depth=2).fit(np.zeros((30, 1)), np.arange(30.0))
    assert leaves(model) == (3, 1.0)
