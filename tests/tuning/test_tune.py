"""tune() keeps to its budget, is never worse than the first trial, and trains on all rows with the best."""

from __future__ import annotations

import inspect
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import scipy.sparse
from searching import CLASSES, LABELS, PAIR, RNG, SMALL, SPACE, N, X, Y, regressor, saved, table_of
from sklearn.base import clone
from sklearn.linear_model import LinearRegression
from sklearn.model_selection import GroupKFold, KFold

from mixed_table import TARGETS as MIXED
from mixed_table import table as mixed_rows
from polyleaf import BinnedTable, PolyleafClassifier, PolyleafMixed, PolyleafRegressor, cv, tune
from polyleaf.callbacks import EarlyStopping
from polyleaf.params.combinations import Refused

pytestmark = pytest.mark.cpu_only("what is tried is chosen on the host; the GPU's own suite has a search")


# --- what comes of it --------------------------------------------------------------------------------------

PROBLEMS = {
    "targets": (regressor(), Y),
    "one target": (regressor(), Y[:, 0]),
    "classes": (PolyleafClassifier(**SMALL), CLASSES),
    "two classes": (PolyleafClassifier(**SMALL), CLASSES == "a"),
    "labels": (PolyleafClassifier(**SMALL), LABELS),
    "targets with gaps": (regressor(), np.where(RNG.random(Y.shape) < 0.1, np.nan, Y)),
    "stopped": (regressor(early_stopping_rounds=3), Y),
    "auto": (PolyleafRegressor(n_estimators="auto", learning_rate=0.8, max_depth=3, n_jobs=1), Y),
    "stopped by a callback": (regressor(callbacks=[EarlyStopping(3, min_delta=1e-3)]), Y),
    "a drawn seed": (regressor(subsample=0.7, random_state=np.random.RandomState(5)), Y),
    "sparse leaves": (regressor(sparse_leaves=2), Y),
    "sparse labels": (
        PolyleafClassifier(objective="clipped_squared_error", sparse_leaves=2, **SMALL),
        scipy.sparse.csr_array(LABELS),
    ),
    "exact Hessian": (PolyleafClassifier(hessian="exact", **SMALL), CLASSES),
    "signs": (regressor(monotone_constraints={3: 1}), Y),
    "quantiles": (regressor(objective="quantile", quantile_levels=[0.2, 0.8]), Y),
}


@pytest.mark.parametrize("name", PROBLEMS)
def test_the_best_is_the_fit_of_its_parameters_on_all_rows(name: str, tmp_path: Path) -> None:
    """To the last bit of the file; and what is searched by itself goes with what the estimator has."""
    estimator, y = PROBLEMS[name]
    result = tune(estimator, X, y, n_trials=5)
    assert [one.number for one in result.trials] == [0, 1, 2, 3, 4]
    assert result.ended_by == "n_trials"
    assert result.refitted
    assert not result.interrupted
    best = result.trials[result.best_trial]
    sign = -1 if "accuracy" in result.metric else 1
    assert best.score == result.best_score
    assert sign * best.score <= sign * result.trials[0].score
    assert best.n_rounds == result.best_estimator.n_estimators_
    plain = clone(estimator).set_params(**result.best_params).fit(X, y)
    assert saved(result.best_estimator, tmp_path / "a") == saved(plain, tmp_path / "b")


def test_mixed_targets() -> None:
    x, y = mixed_rows(n=300)
    estimator = PolyleafMixed(MIXED, **SMALL)
    result = tune(estimator, x, y, n_trials=2, cv=2)
    assert result.metric == "loss"
    assert "softmax_curvature" in result.trials[0].params
    named = tune(estimator, x, y, n_trials=4, metric="height/rmse", cv=2)
    assert named.metric == "height/rmse"
    assert named.best_score == min(one.score for one in named.trials if one.status == "done")
    with pytest.raises(
        ValueError, match=r"metric must be one that is measured, 'grade/cross_entropy'.*'rmse'"
    ):
        tune(estimator, x, y, n_trials=4, metric="rmse")


def test_every_kind_of_table_gives_the_same_trials() -> None:
    plain = tune(regressor(), X, Y, n_trials=3)
    frame = pd.DataFrame(X, columns=list("abcde"))
    half = N // 2
    batches = [(X[:half], Y[:half]), (X[half:], Y[half:])]
    tables = {
        "frame": (frame, pd.DataFrame(Y)),
        "sparse": (scipy.sparse.csr_array(X), Y),
        "binned": (BinnedTable.make(X, Y), None),
        "batches": (batches, None),
    }
    for name, (table, y) in tables.items():
        result = tune(regressor(), table, y, n_trials=3)
        assert table_of(result) == table_of(plain), name
        rows = frame if name == "frame" else X
        assert np.array_equal(result.best_estimator.predict(rows), plain.best_estimator.predict(X)), name


def test_categories() -> None:
    frame = pd.DataFrame({"c": pd.Categorical(CLASSES), "x": X[:, 0]})
    result = tune(regressor(), frame, Y, n_trials=3)
    assert np.isfinite(result.best_estimator.predict(frame)).all()


def test_the_estimator_is_left_as_it_is() -> None:
    estimator = regressor(early_stopping_rounds=3)
    before = dict(estimator.get_params())
    tune(estimator, X, Y, n_trials=3)
    assert estimator.get_params() == before
    assert not hasattr(estimator, "n_features_in_")


def test_what_the_user_has_set_stays() -> None:
    """But for what is in the space."""
    result = tune(regressor(max_depth=3), X, Y, n_trials=4)
    assert not {"max_depth", "learning_rate"} & set(result.trials[0].params)
    assert result.best_estimator.max_depth == 3
    result = tune(regressor(max_depth=3), X, Y, n_trials=4, space={"max_depth": [1, 2]})
    assert [one.params["max_depth"] for one in result.trials[:1]] == [3]
    assert {one.params["max_depth"] for one in result.trials} == {1, 2, 3}


# --- the same for all --------------------------------------------------------------------------------------


def test_trials_hang_on_the_seed_alone() -> None:
    estimator = regressor(early_stopping_rounds=4)
    one = tune(estimator, X, Y, cv=PAIR, n_trials=8)
    assert table_of(one) == table_of(tune(estimator, X, Y, cv=PAIR, n_trials=8, seconds=1e6))
    assert table_of(one) == table_of(tune(clone(estimator).set_params(n_jobs=2), X, Y, cv=PAIR, n_trials=8))
    assert table_of(one) != table_of(tune(estimator, X, Y, cv=PAIR, n_trials=8, random_state=1))
    assert table_of(tune(estimator, X, Y, cv=PAIR, n_trials=5)) == table_of(one)[:5]


def test_more_trials_are_never_worse() -> None:
    scores = [tune(regressor(), X, Y, n_trials=n, cv=PAIR).best_score for n in (1, 4, 12)]
    assert scores == sorted(scores, reverse=True)
    assert scores[-1] < scores[0]


def test_a_metric_to_be_maximised() -> None:
    result = tune(PolyleafClassifier(**SMALL), X, CLASSES, n_trials=6, metric="accuracy", space=SPACE)
    assert result.metric == "accuracy"
    assert result.best_score == max(one.score for one in result.trials if one.status == "done")


# --- folds, weights, groups --------------------------------------------------------------------------------


def test_scores_are_those_of_cross_validation() -> None:
    folds = list(KFold(3, shuffle=True, random_state=0).split(X))
    weight = RNG.uniform(0, 2, N)
    weight[:7] = 0
    result = tune(regressor(), X, Y, n_trials=3, cv=folds, sample_weight=weight, metric="mae")
    for trial in result.trials:
        model = regressor(**trial.params)
        there = cv(model, X, Y, cv=folds, sample_weight=weight, metrics="mae")
        assert trial.curve.tolist() == there.mean["mae"].tolist()[: len(trial.curve)]


def test_a_number_of_folds_and_groups() -> None:
    groups = np.arange(N) // 20
    by_number = tune(regressor(), X, Y, n_trials=2, cv=4, groups=groups)
    assert by_number.trials[0].score == pytest.approx(
        cv(regressor(), X, Y, cv=4, groups=groups, metrics="rrmse").mean["rrmse"][-1], rel=1e-15
    )
    splitter = tune(regressor(), X, Y, n_trials=2, cv=GroupKFold(3), groups=groups)
    assert splitter.trials[0].score != by_number.trials[0].score
    held_out = tune(regressor(early_stopping_rounds=5), X, Y, n_trials=1, groups=groups)
    fit = regressor(early_stopping_rounds=5).fit(X, Y, groups=groups)
    assert held_out.trials[0].curve.tolist() == fit.evals_result_["held_out"]["rrmse"]
    assert held_out.best_estimator.n_estimators_ == fit.n_estimators_


def test_one_pair_of_training_and_other_rows() -> None:
    result = tune(regressor(), X, Y, n_trials=2, cv=PAIR)
    model = regressor(eval_metric="rrmse").fit(X[:300], Y[:300], eval_set=(X[300:], Y[300:]))
    # Cut points are those of all rows.
    assert result.trials[0].score == pytest.approx(model.best_score_["validation_0"]["rrmse"], rel=0.1)
    folds = cv(regressor(), X, Y, cv=PAIR, metrics="rrmse")
    assert np.array_equal(result.trials[0].curve, folds.mean["rrmse"])


# --- what is shown -----------------------------------------------------------------------------------------


def test_the_result_prints_as_a_table() -> None:
    result = tune(regressor(), X, Y, n_trials=30, space=SPACE, cv=PAIR)
    head, columns, *rows = repr(result).splitlines()
    assert head.startswith("30 trials in ")
    assert columns.split() == ["trial", "rrmse", "rounds", "status", *SPACE]
    assert rows[0].startswith(f"{result.best_trial} *")
    assert sum("*" in row for row in rows) == 1
    assert rows[-1].startswith("... and ")
    assert any(row.startswith("0 ") for row in rows)
    assert len(result.trials[3:5]) == 2
    frame = result.trials.to_frame()
    assert frame.shape == (30, 5 + len(SPACE))
    assert frame["rrmse"].tolist() == [one.score for one in result.trials]
    assert frame.index.name == "trial"


def test_progress(capsys: pytest.CaptureFixture[str]) -> None:
    tune(regressor(), X, Y, n_trials=3)
    assert capsys.readouterr() == ("", "")
    tune(regressor(verbose=1), X, Y, n_trials=3)  # that of the estimator is for the training on all rows
    assert capsys.readouterr().err.count(" 0/12 ") == 1
    tune(regressor(), X, Y, n_trials=3, verbose=1)
    out, err = capsys.readouterr()
    assert out == ""
    assert "3/3" in err
    assert "best rrmse=" in err
    tune(regressor(), X, Y, n_trials=3, verbose=2, space=SPACE)
    lines = [line for line in capsys.readouterr().err.splitlines() if "trial 2: rrmse=" in line]
    assert len(lines) == 1
    assert "max_depth" in lines[0]


def test_without_pandas(monkeypatch: pytest.MonkeyPatch) -> None:
    result = tune(regressor(), X, Y, n_trials=1)
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(ImportError, match=r"to_frame.. needs pandas"):
        result.trials.to_frame()


# --- bad input ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("changed", "error", "words"),
    [
        ({"n_trials": None}, ValueError, "tune.. needs a budget: give n_trials, seconds, or both"),
        ({"n_trials": 0}, ValueError, "n_trials must be int >= 1; got 0"),
        ({"n_trials": 2.0}, TypeError, "n_trials must be int"),
        ({"seconds": 0}, ValueError, "seconds must be a finite float > 0"),
        ({"seconds": "1"}, TypeError, "seconds must be"),
        ({"estimator": LinearRegression()}, TypeError, "estimator must be .* got LinearRegression"),
        ({"estimator": PolyleafRegressor}, TypeError, "estimator must be .* got ABCMeta|type"),
        ({"estimator": PolyleafRegressor(max_depth=0)}, ValueError, "max_depth must be"),
        ({"random_state": -1}, ValueError, "random_state must be"),
        ({"verbose": "yes"}, TypeError, "verbose must be"),
        ({"metric": "nothing"}, ValueError, "^metric must be"),
        ({"y": None}, TypeError, "tune.. needs y"),
        ({"cv": 1}, ValueError, "cv must be at least 2 folds"),
        ({"groups": np.arange(3)}, ValueError, "groups has shape"),
        ({"X": np.ones((9, 5)), "y": np.ones(9)}, ValueError, "no rows can be held out to measure: X and y"),
        ({"groups": np.zeros(len(X))}, ValueError, "no rows can be held out to measure: groups has too few"),
    ],
)
def test_bad_input(changed: dict[str, Any], error: type[Exception], words: str) -> None:
    given = {"estimator": regressor(), "X": X, "y": Y, "n_trials": 2} | changed
    with pytest.raises(error, match=words):
        tune(**given)


def test_rows_of_files_have_no_folds() -> None:
    with pytest.raises(Refused, match="does not go with cv"):
        tune(regressor(), [(X, Y)], n_trials=1, cv=3)


def test_all_that_is_searched_may_be_set() -> None:
    given = {
        "min_samples_leaf": 3,
        "max_depth": 2,
        "reg_lambda": 2.0,
        "subsample": 0.9,
        "colsample_bynode": 0.9,
    }
    with pytest.raises(ValueError, match="no parameter is left to be searched"):
        tune(regressor(sketch=None, **given), X, Y, n_trials=2)


def test_arguments_are_those_of_the_docstring() -> None:
    assert tune.__doc__ is not None
    for name in inspect.signature(tune).parameters:
        assert name in tune.__doc__


@pytest.mark.parametrize("given", [False, True])
def test_all_trials_are_measured_alike_where_units_are_searched(given: bool) -> None:
    """The usual metric of held-out rows hangs on `scale_targets`; that of the first trial is that of all."""
    start = regressor(n_estimators=4, scale_targets=given)
    result = tune(start, X, Y * [1, 10, 1], n_trials=3, space={"scale_targets": [True, False]}, cv=PAIR)
    assert result.metric == ("rrmse" if given else "rmse")
    assert [one.params["scale_targets"] for one in result.trials] == [given, not given]
    assert "eval_metric" not in result.best_params
    scores = [
        tune(
            start.set_params(scale_targets=one), X, Y * [1, 10, 1], n_trials=1, cv=PAIR, metric=result.metric
        )
        for one in (given, not given)
    ]
    assert [one.score for one in result.trials] == [one.best_score for one in scores]
