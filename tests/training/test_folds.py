"""Runs that advance together, at the same time and one after the other."""

from __future__ import annotations

from concurrent.futures import wait
from threading import Lock
from typing import Any

import numpy as np
import pytest

from polyleaf import PolyleafClassifier, PolyleafRegressor
from polyleaf.callbacks import EarlyStopping
from polyleaf.estimators import held_out
from polyleaf.estimators.held_out import runs_at_once
from polyleaf.estimators.problem import read_problem, training_rows
from polyleaf.training import folds, side_by_side
from polyleaf.training.folds import _ROUNDS_AHEAD, Folds
from polyleaf.training.loop import Run

pytestmark = pytest.mark.cpu_only("one device advances one run at a time")

RNG = np.random.default_rng(5)
X = RNG.normal(size=(600, 6))
Y = np.column_stack([X[:, 0] * X[:, 1], np.sin(2 * X[:, 2])]) + 0.4 * RNG.normal(size=(600, 2))
CLASSES = (X[:, 0] > 0).astype(int) + (X[:, 1] > 0)


def fitted(n_jobs: int, **params: Any) -> PolyleafRegressor:
    return PolyleafRegressor(max_depth=3, n_jobs=n_jobs, **params).fit(X, Y)


def same_models(one: Any, other: Any) -> None:
    assert one.evals_result_ == other.evals_result_
    for name, array in one._forest.to_arrays().items():
        np.testing.assert_array_equal(other._forest.to_arrays()[name], array, err_msg=name)


def at_once(monkeypatch: pytest.MonkeyPatch) -> set[int]:
    """Return a set that gets how many runs each later training advances at the same time."""
    seen: set[int] = set()
    begin = Folds.__init__

    def noted(self: Folds, *args: Any, **kwargs: Any) -> None:
        begin(self, *args, **kwargs)
        seen.add(self._n_at_once)

    monkeypatch.setattr(Folds, "__init__", noted)
    return seen


@pytest.mark.parametrize("n_jobs", [2, 3, 16])
@pytest.mark.parametrize(
    "params",
    [
        {},
        {"early_stopping_rounds": 1},
        {"early_stopping_rounds": _ROUNDS_AHEAD, "learning_rate": 0.5},
        {"n_estimators": _ROUNDS_AHEAD - 1, "early_stopping_rounds": 50},
        {"n_estimators": _ROUNDS_AHEAD + 1, "early_stopping_rounds": 50},
        {"callbacks": [EarlyStopping(5)], "eval_metric": ["rmse", "mae"]},
    ],
)
def test_folds_at_the_same_time_are_those_one_by_one(
    n_jobs: int, params: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    seen = at_once(monkeypatch)
    one = fitted(1, **params)
    assert seen == {1}
    seen.clear()
    same_models(fitted(n_jobs, **params), one)
    assert seen == {min(n_jobs, 5)}


def test_classes_at_the_same_time() -> None:
    one, several = (PolyleafClassifier(max_depth=3, n_jobs=n).fit(X, CLASSES) for n in (1, 4))
    same_models(several, one)


@pytest.mark.parametrize(
    "params",
    [
        {"callbacks": [lambda state: None]},
        {"objective": lambda y, raw: (raw - y, np.ones_like(raw))},
        {"eval_metric": lambda y, p: float(((y - p) ** 2).mean())},
        {"verbose": 1},
    ],
    ids=["callback", "objective", "metric", "bar"],
)
def test_what_a_user_wrote_is_called_round_by_round(
    params: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    seen = at_once(monkeypatch)
    # Small leaves that are given leave no trial to make, in which nothing of a user's is called.
    fitted(3, min_samples_leaf=3, n_estimators=4, early_stopping_rounds=2, **params)
    assert seen == {1}


def test_little_work_and_large_tables_are_done_one_by_one(monkeypatch: pytest.MonkeyPatch) -> None:
    model = PolyleafRegressor(n_jobs=4)
    problem = read_problem(model, model.get_params(), training_rows(X, Y, None))
    assert runs_at_once(problem, [], 5) == 4
    for name, limit, expected in (
        ("_LEAST_NUMBERS_AT_ONCE", 600 * 8, 4),
        ("_LEAST_NUMBERS_AT_ONCE", 600 * 8 + 1, 1),
        ("_MOST_BYTES_AT_ONCE", held_out._bytes_of_run(problem) * 3, 3),
        ("_MOST_BYTES_AT_ONCE", held_out._bytes_of_run(problem) * 3 - 1, 2),
    ):
        with monkeypatch.context() as patch:
            patch.setattr(held_out, name, limit)
            assert runs_at_once(problem, [], 5) == expected


def failing_at(number: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Have a run fail in a round, once it has done those before."""
    step = Run.step

    def failing(self: Run, learning_rate: float) -> None:
        if self.n_rounds == number:
            raise ValueError(f"round {number}")
        step(self, learning_rate)

    monkeypatch.setattr(Run, "step", failing)


@pytest.mark.parametrize("n_jobs", [1, 3])
def test_an_error_of_a_round_that_nobody_asks_for_is_none(
    n_jobs: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    params: dict[str, Any] = {"learning_rate": 0.5, "early_stopping_rounds": 3, "refit": False}
    monkeypatch.setattr(held_out, "is_in_turn", lambda *of: True)
    model = fitted(1, **params)
    n_done = len(model.evals_result_["held_out"]["rrmse"])
    failing_at(n_done, monkeypatch)
    same_models(fitted(n_jobs, **params), model)
    failing_at(n_done - 1, monkeypatch)
    with pytest.raises(ValueError, match=f"^round {n_done - 1}$"):
        fitted(n_jobs, **params)


def test_ctrl_c_keeps_the_rounds_that_all_have_done(monkeypatch: pytest.MonkeyPatch) -> None:
    """It comes while some are ahead, and no run does more than the round that it is in."""
    step, n_steps, interrupting = Run.step, [0], [False]
    both = Lock()

    def counted(self: Run, learning_rate: float) -> None:
        with both:
            n_steps[0] += 1
            interrupting[0] = interrupting[0] or n_steps[0] >= 5 * (_ROUNDS_AHEAD + 9)
        step(self, learning_rate)

    def interrupted(*args: Any, **kwargs: Any) -> Any:
        while not interrupting[0]:
            done, waiting = wait(*args, **{**kwargs, "timeout": 0.001})
            if not waiting:
                return done, waiting
        raise KeyboardInterrupt

    monkeypatch.setattr(Run, "step", counted)
    monkeypatch.setattr(side_by_side, "wait", interrupted)
    params: dict[str, Any] = {"min_samples_leaf": 3, "n_estimators": 400, "early_stopping_rounds": 400}
    model = PolyleafRegressor(max_depth=3, n_jobs=2, **params)
    with pytest.raises(KeyboardInterrupt):
        model.fit(X, Y)
    n_rounds = len(model.evals_result_["held_out"]["rrmse"])
    assert _ROUNDS_AHEAD + 4 <= n_rounds == model.n_estimators_ < 400
    assert np.isfinite(model.predict(X)).all()


def test_no_thread_can_be_started(monkeypatch: pytest.MonkeyPatch) -> None:
    """As after the end of the main thread, or where there are too many."""
    one = fitted(1)

    def refused(*args: Any, **kwargs: Any) -> Any:
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(folds.ThreadPoolExecutor, "submit", refused)
    same_models(fitted(3), one)
