"""A search ends by its budget, by Ctrl-C or by an error; a trial, where it is hopeless or time is up."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from searching import PAIR, SMALL, SPACE, X, Y, regressor, saved
from sklearn.utils.validation import check_is_fitted

from polyleaf import TuneResult, tune
from polyleaf.callbacks import Callback, LearningRateSchedule, TimeLimit

pytestmark = pytest.mark.cpu_only("what is tried is chosen on the host; the GPU's own suite has a search")


# --- budgets -----------------------------------------------------------------------------------------------


def test_no_time_is_time_for_one_round() -> None:
    result = tune(regressor(early_stopping_rounds=5), X, Y, seconds=1e-9)
    assert result.ended_by == "seconds"
    assert len(result.trials) == 1
    assert result.trials[0].status == "cut off"
    assert result.best_estimator.n_estimators_ == 1


def test_a_number_of_rounds_is_obeyed_also_where_time_is_up() -> None:
    result = tune(regressor(), X, Y, seconds=1e-9)
    assert len(result.trials[0].curve) == 1
    assert "n_estimators" not in result.best_params
    assert result.best_estimator.n_estimators_ == SMALL["n_estimators"]


def test_a_trial_that_is_cut_off_is_not_the_best_where_rounds_are_a_number(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """It has not done them; where the best round counts, it may well be the best."""
    from polyleaf.tuning import clock

    for params, may_win in (({}, False), ({"early_stopping_rounds": 50}, True)):
        rounds = []

        def is_up(self: Any, reserved: float, rounds: list[float] = rounds) -> bool:
            assert reserved >= 0
            rounds.append(reserved)
            return len(rounds) > 20  # the first trial has 12, and is asked after once more

        monkeypatch.setattr(clock.Clock, "is_up", is_up)
        space = {"learning_rate": [1.0]}  # far ahead at once
        result = tune(regressor(learning_rate=0.01, **params), X, Y, n_trials=2, space=space)
        assert [one.status for one in result.trials] == ["done", "cut off"]
        assert 0 < len(result.trials[1].curve) < 12
        assert result.trials[1].score < result.trials[0].score
        assert result.best_trial == int(may_win)


def test_seconds_and_trials_whichever_ends_first() -> None:
    assert tune(regressor(), X, Y, n_trials=2, seconds=1e6).ended_by == "n_trials"
    result = tune(regressor(n_estimators=1), X, Y, n_trials=10**6, seconds=0.3)
    assert result.ended_by == "seconds"
    assert 1 <= len(result.trials) < 10**6


def test_a_small_space_is_gone_through() -> None:
    space = {"max_depth": [2, 4], "subsample": [0.5, 1.0]}
    result = tune(regressor(), X, Y, n_trials=100, space=space)
    assert result.ended_by == "space"
    tried = {tuple(one.params.values()) for one in result.trials[1:]}
    assert tried == {(2, 0.5), (2, 1.0), (4, 0.5), (4, 1.0)}
    assert len(result.trials) == 5  # none twice


# --- pruning -----------------------------------------------------------------------------------------------


def test_hopeless_trials_are_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    from polyleaf.tuning.course import Course

    space = {"max_depth": (1, 6), "reg_lambda": (0.1, 10000.0, "log"), "min_samples_leaf": (1, 150, "log")}

    def search() -> TuneResult:
        return tune(regressor(n_estimators=60), X, Y, n_trials=15, space=space, cv=PAIR)

    result = search()
    pruned = [one for one in result.trials if one.status == "pruned"]
    assert len(pruned) >= 4
    assert all(5 <= len(one.curve) < 60 for one in pruned)
    assert all(len(one.curve) == 60 for one in result.trials if one.status == "done")
    assert result.trials[result.best_trial].status == "done"
    monkeypatch.setattr(Course, "is_hopeless", lambda self, best: False)
    assert all(one.status == "done" and len(one.curve) == 60 for one in search().trials)


# --- callbacks and Ctrl-C ----------------------------------------------------------------------------------


class InterruptAfter(Callback):
    """Ctrl-C after some rounds, counted over all trials."""

    def __init__(self, *rounds: int) -> None:
        self.rounds = rounds
        self.n = 0

    def __deepcopy__(self, memo: Any) -> InterruptAfter:
        return self

    def after_round(self, state: Any) -> bool | None:
        self.n += 1
        if self.n in self.rounds:
            raise KeyboardInterrupt
        return None


def test_ctrl_c_keeps_the_best_so_far(tmp_path: Path) -> None:
    whole = tune(regressor(), X, Y, n_trials=3, space=SPACE)
    n_rounds = sum(len(one.curve) for one in whole.trials[:2])
    estimator = regressor(callbacks=[InterruptAfter(n_rounds + 3)])
    with pytest.warns(UserWarning, match="interrupted: the best of 3 trials is trained on all rows"):
        result = tune(estimator, X, Y, n_trials=50, space=SPACE)
    assert result.interrupted
    assert result.ended_by == "interrupt"
    assert [one.status for one in result.trials] == [
        whole.trials[0].status,
        whole.trials[1].status,
        "cut off",
    ]
    assert result.refitted
    plain = regressor().set_params(**result.best_params).fit(X, Y)
    assert saved(plain, tmp_path / "a") == saved(
        result.best_estimator.set_params(callbacks=None), tmp_path / "b"
    )


def test_ctrl_c_in_the_first_trial_keeps_its_rounds() -> None:
    estimator = regressor(early_stopping_rounds=5, callbacks=[InterruptAfter(4)])
    with pytest.warns(UserWarning, match="the best of 1 trials"):
        result = tune(estimator, X, Y, n_trials=50)
    assert 1 <= result.best_estimator.n_estimators_ <= 4


def test_ctrl_c_once_more_leaves_out_the_training_on_all_rows() -> None:
    estimator = regressor(callbacks=[InterruptAfter(20, 25)])
    with pytest.warns(UserWarning, match="once more"):
        result = tune(estimator, X, Y, n_trials=50, space=SPACE)
    assert not result.refitted
    assert result.interrupted
    assert not hasattr(result.best_estimator, "n_features_in_")
    with pytest.raises(Exception, match="not fitted"):
        check_is_fitted(result.best_estimator)
    assert result.best_estimator.set_params(callbacks=None).fit(X, Y).n_estimators_ == SMALL["n_estimators"]


def test_ctrl_c_between_trials(monkeypatch: pytest.MonkeyPatch) -> None:
    from polyleaf.tuning.search import Search

    def interrupted(*arguments: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(Search, "next", interrupted)
    with pytest.warns(UserWarning, match="the best of 1 trials"):
        assert tune(regressor(), X, Y, n_trials=5).best_trial == 0


def test_ctrl_c_before_anything_is_done_is_raised() -> None:
    class AtOnce(Callback):
        def before_round(self, state: Any) -> bool | None:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        tune(regressor(callbacks=[AtOnce()]), X, Y, n_trials=5)


def test_an_error_of_a_callback_comes_through() -> None:
    calls = []

    def fail(state: Any) -> None:
        calls.append(1)
        if len(calls) == 15:  # not in the first trial
            raise ValueError("mine")

    with pytest.raises(ValueError, match=r"^mine$"):
        tune(regressor(callbacks=[fail]), X, Y, n_trials=5, space=SPACE)


def test_a_setting_that_cannot_be_trained_with_is_a_failed_trial() -> None:
    with pytest.warns(UserWarning, match="trial 1 failed: round"):
        result = tune(regressor(n_estimators=60), X, Y, n_trials=3, space={"learning_rate": [1e30, 0.2]})
    assert [one.status for one in result.trials].count("failed") == 1
    failed = next(one for one in result.trials if one.status == "failed")
    assert "learning_rate" in failed.error
    assert np.isnan(failed.score)
    assert result.trials.to_frame()["status"].tolist().count("failed") == 1


def test_callbacks_of_the_estimator_are_called_in_all_trials() -> None:
    schedule = LearningRateSchedule(lambda number: 0.5 if number < 6 else 0.1)
    result = tune(regressor(callbacks=[schedule]), X, Y, n_trials=3, space=SPACE)
    plain = regressor(callbacks=[schedule]).set_params(**result.best_params).fit(X, Y)
    assert np.array_equal(result.best_estimator.predict(X), plain.predict(X))
    limited = tune(regressor(callbacks=[TimeLimit(1e-9)]), X, Y, n_trials=3, space=SPACE)
    assert [len(one.curve) for one in limited.trials] == [1, 1, 1]
