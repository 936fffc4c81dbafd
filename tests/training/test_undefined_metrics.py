"""A metric without a value on some rows, as rows of one class have no area under a curve."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pytest
from sklearn.model_selection import KFold

from polyleaf import PolyleafClassifier, PolyleafMixed, PolyleafRegressor, cv, tune
from polyleaf.callbacks import EarlyStopping
from polyleaf.estimators import bagging
from polyleaf.training.callbacks import NoBestRound

pytestmark = pytest.mark.cpu_only("the metrics are those of the host")

RNG = np.random.default_rng(0)
N = 300
X = RNG.normal(size=(N, 4))
RARE = np.zeros(N, dtype=int)
RARE[:3] = 1
ONE_CLASS = (X[3:60], RARE[3:60])
NO_VALUE = "the metric 'auc' on {} was no finite number after any of"


def classifier(**params: Any) -> PolyleafClassifier:
    given = {"eval_metric": "auc", "learning_rate": 0.3, "max_depth": 2, "min_samples_leaf": 1, "n_jobs": 1}
    return PolyleafClassifier(**given | params)


@pytest.mark.parametrize("metric", ["auc", "average_precision"])
def test_held_out_rows_of_one_class_are_left_out_of_the_mean(metric: str) -> None:
    """Three rows of a class are in three of five parts at most."""
    model = classifier(eval_metric=metric).fit(X, RARE)
    curve = model.evals_result_["held_out"][metric]
    assert np.isfinite(curve).all()
    assert model.best_iteration_ == int(np.argmax(curve))


def test_folds_without_a_value_are_left_out_of_the_mean() -> None:
    folds = list(KFold(3).split(X))  # all rows of the rare class are test rows of the first
    y = RARE.copy()
    y[150] = 1  # and one of the second
    result = cv(classifier(n_estimators=3), X, y, cv=folds)
    assert np.isnan(result.folds["auc"][2]).all()
    assert np.array_equal(result.mean["auc"], result.folds["auc"][:2].mean(axis=0))
    assert np.array_equal(result.std["auc"], result.folds["auc"][:2].std(axis=0))


def test_a_value_lost_on_the_way_is_not_left_out() -> None:
    """As where predictions overflow: from there on there is no mean."""
    calls = iter(range(100))

    def lost(y: Any, prediction: Any) -> float:
        number = next(calls)  # two folds a round
        return float("nan") if number == 3 else 10.0 - number

    result = cv(PolyleafRegressor(n_estimators=3, eval_metric=lost), X, X[:, 0], cv=2)
    assert np.isnan(result.mean["lost"]).tolist() == [False, True, False]
    assert result.best_round == 2


def test_early_stopping_by_a_metric_without_a_value_is_an_error() -> None:
    model = classifier(n_estimators=20, early_stopping_rounds=2)
    with pytest.raises(ValueError, match=NO_VALUE.format("'validation_0'") + r" 3 round"):
        model.fit(X, RARE, eval_set=[ONE_CLASS])
    short = classifier(n_estimators=2, early_stopping_rounds=20)
    with pytest.raises(ValueError, match=NO_VALUE.format("'validation_0'") + r" 2 round"):
        short.fit(X, RARE, eval_set=[ONE_CLASS])
    late = classifier(n_estimators=3, callbacks=[EarlyStopping(2, metric="log_loss")])
    late.set_params(eval_metric=["auc", "log_loss"]).fit(X, RARE, eval_set=[ONE_CLASS])
    assert np.isnan(late.evals_result_["validation_0"]["auc"]).all()


def test_held_out_rows_without_any_value_are_an_error() -> None:
    def nothing(y: Any, prediction: Any) -> float:
        return float("nan")

    with pytest.raises(ValueError, match="'nothing' on 'held_out'"):
        PolyleafRegressor(n_estimators=3, early_stopping_rounds=1, eval_metric=nothing).fit(X, X[:, 0])
    watched = EarlyStopping(1, metric="a/auc")  # by itself it would watch the loss
    mixed = PolyleafMixed({"a": "binary"}, n_estimators=3, callbacks=[watched], eval_metric={"a": "auc"})
    y = {"a": np.where(np.arange(N) < 1, "yes", "no")}
    with pytest.raises(ValueError, match="'a/auc' on 'validation_0'"):
        mixed.fit(X, y, eval_set=[(X[3:60], {"a": y["a"][3:60]})])


@pytest.mark.parametrize("n_jobs", [1, 2])  # members one by one, and side by side
def test_a_bag_without_a_value_is_an_error(n_jobs: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where each is stopped by its own rows; where all stop together, the others have a value."""
    model = classifier(n_bags=5, early_stopping_rounds=2, n_estimators=5, n_jobs=n_jobs)
    assert len(model.fit(X, RARE)._bags) == 5
    assert any(np.isnan(of["auc"]).all() for of in model.evals_result_.values())
    monkeypatch.setattr(bagging, "AUTO_FEW_ROWS", N)
    with pytest.raises(ValueError, match=NO_VALUE.format("'held_out'")):
        model.fit(X, RARE)


def test_cv_warns_where_no_round_has_a_value() -> None:
    folds = [(np.arange(100), np.arange(100, N))]
    with pytest.warns(UserWarning, match="'auc' is NaN after all rounds"):
        assert cv(classifier(n_estimators=3), X, RARE, cv=folds).best_round == 2
    with pytest.raises(ValueError, match=NO_VALUE.format("'validation'")):
        cv(classifier(n_estimators=9, early_stopping_rounds=2), X, RARE, cv=folds)


@pytest.mark.parametrize("params", [{"n_estimators": 2}, {"n_estimators": 9, "early_stopping_rounds": 2}])
def test_tune_by_a_metric_without_a_value_is_an_error(params: dict[str, int]) -> None:
    folds = [(np.arange(100), np.arange(100, N))]
    with pytest.raises(ValueError, match=NO_VALUE.format("'validation'")):
        tune(classifier(**params), X, RARE, n_trials=2, cv=folds, space={"max_depth": [1, 2]})


def test_the_error_travels_between_processes() -> None:
    error = NoBestRound.of("early stopping", "auc", "held_out", 3)
    assert str(pickle.loads(pickle.dumps(error))) == str(error)
