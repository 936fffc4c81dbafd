"""What is shown of a training goes to standard error, and only when asked for."""

import logging

import numpy as np
import pytest

from polyleaf import PolyleafRegressor
from polyleaf.callbacks import EvaluationLog, ProgressBar, TrainingState

X = np.random.default_rng(0).normal(size=(60, 3))
Y = X[:, 0] + X[:, 1] ** 2


def state(n_rounds, values=(), training_metric=None):
    history = {"validation_0": {"rmse": list(values)}} if values else {}
    return TrainingState(
        n_rounds=n_rounds,
        n_done=0,
        learning_rate=0.1,
        evals_result=history,
        greater_is_better={"rmse": False},
        training_metric=training_metric,
    )


def go_through(callback, of_state, n_rounds):
    callback.before_training(of_state)
    for number in range(n_rounds):
        of_state.n_done = number + 1
        callback.after_round(of_state)
    callback.after_training(of_state)


def test_silent(capsys):
    PolyleafRegressor(n_estimators=3, verbose=0).fit(X, Y)
    assert capsys.readouterr() == ("", "")


def test_bar_shows_the_watched_metric(capsys):
    go_through(ProgressBar(), state(2, [2.0, 1.25]), 2)
    out, err = capsys.readouterr()
    assert out == ""
    assert "2/2" in err
    assert "validation_0 rmse=1.25" in err


def test_training_metric_is_shown_without_evaluation_sets(capsys):
    """It is computed once a round, however many ask for it."""
    asked = []

    def measure():
        asked.append(1)
        return {"training rmse": 0.5}

    of_state = state(2, training_metric=measure)
    bar, log = ProgressBar(), EvaluationLog()
    bar.before_training(of_state)
    for number in range(2):
        of_state.n_done = number + 1
        bar.after_round(of_state)
        log.after_round(of_state)
    bar.after_training(of_state)
    assert len(asked) == 2
    err = capsys.readouterr().err
    assert "training rmse=0.5" in err
    assert "[1/2]  training rmse=0.5" in err


def test_evaluation_sets_spare_the_training_metric():
    of_state = state(1, [1.0], training_metric=lambda: pytest.fail("not needed"))
    assert of_state.latest() == {"validation_0 rmse": 1.0}


@pytest.mark.parametrize("by_parameter", [True, False])
def test_lines_every_n_rounds(capsys, by_parameter):
    """verbose=2 is a bar and a line every second round, and after the last one."""
    shown = {"verbose": 2} if by_parameter else {"callbacks": [EvaluationLog(2)]}
    model = PolyleafRegressor(n_estimators=5, **shown).fit(X, Y, eval_set=(X, Y))
    values = model.evals_result_["validation_0"]["rmse"]
    err = capsys.readouterr().err
    for done in (2, 4, 5):
        assert f"[{done}/5]  validation_0 rmse={values[done - 1]:.6g}" in err
    assert "[1/5]" not in err
    assert "[3/5]" not in err
    assert ("polyleaf:" in err) == by_parameter


def test_close_twice_is_harmless(capsys):
    bar, of_state = ProgressBar(), state(5, [1.0])
    bar.after_training(of_state)
    bar.before_training(of_state)
    bar.after_training(of_state)
    bar.after_training(of_state)
    bar.after_round(of_state)
    assert "1/5" not in capsys.readouterr().err


def test_what_is_shown_is_logged_too(caplog, capsys):
    with caplog.at_level(logging.INFO, logger="polyleaf"):
        PolyleafRegressor(n_estimators=4, verbose=2).fit(np.arange(60.0)[:, np.newaxis], np.arange(60.0))
    shown = capsys.readouterr().err
    lines = [record.getMessage() for record in caplog.records]
    assert [record.levelname for record in caplog.records] == ["INFO"] * 3
    assert [line.split("]")[0] for line in lines] == ["[2/4", "[4/4", "trained [4/4"]
    assert all("rmse=" in line for line in lines)
    assert lines[0] in shown
    caplog.clear()
    with caplog.at_level(logging.DEBUG, logger="polyleaf"):
        PolyleafRegressor(n_estimators=4).fit(np.arange(60.0)[:, np.newaxis], np.arange(60.0))
    assert not caplog.records


def test_the_log_is_silent_by_itself():
    logger = logging.getLogger("polyleaf")
    assert any(isinstance(handler, logging.NullHandler) for handler in logger.handlers)
    assert logger.level == logging.NOTSET
