"""Models that XGBoost trains now: what its objects bring, and rows that only rounding tells apart."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest
from foreign_models import assert_same_leaves, raw_scores, rounding, table

from polyleaf import import_model

xgb = pytest.importorskip("xgboost", minversion="3.4", reason="its models are imported")
pytestmark = pytest.mark.other_threads("XGBoost is compiled code with threads")

OPTIONS = {"max_depth": 4, "nthread": 1}
OBJECTIVES = {
    "reg:squarederror": "squared_error",
    "reg:absoluteerror": "absolute_error",
    "reg:pseudohubererror": "custom",
    "reg:squaredlogerror": "custom",
    "reg:quantileerror": "quantile",
    "reg:expectileerror": "custom",
    "count:poisson": "poisson",
    "reg:gamma": "gamma",
    "reg:tweedie": "tweedie",
    "rank:ndcg": "custom",
    "rank:pairwise": "custom",
    "rank:map": "custom",
    "binary:logistic": "binary_cross_entropy",
    "reg:logistic": "binary_cross_entropy",
}


def trained(X: Any, y: Any, n_rounds: int = 6, **options: Any) -> Any:
    data = xgb.DMatrix(X, y)
    if options.get("objective", "").startswith("rank:"):
        data.set_group([100, len(X) - 100])
    return xgb.train(OPTIONS | options, data, n_rounds)


@pytest.mark.parametrize("objective", OBJECTIVES)
def test_objectives(objective: str) -> None:
    X, Y = table(300)
    is_label = objective.startswith(("binary", "rank", "reg:logistic"))
    levels = {"quantile_alpha": 0.3} if "quantile" in objective else {}
    levels |= {"expectile_alpha": 0.3} if "expectile" in objective else {}
    booster = trained(X, Y[:, 0] > 0 if is_label else np.exp(Y[:, 0] / 4), objective=objective, **levels)
    model = import_model(booster)
    assert model._loss_name == OBJECTIVES[objective]
    rows = xgb.DMatrix(X)
    margin = booster.predict(rows, output_margin=True)
    np.testing.assert_allclose(raw_scores(model, X)[:, 0], margin, rtol=0, atol=rounding(model))
    is_classifier = hasattr(model, "predict_proba")
    ours = model.predict_proba(X)[:, 1] if is_classifier else model.predict(X)
    np.testing.assert_allclose(ours, booster.predict(rows), rtol=1e-5, atol=1e-6)


def test_doubles_that_rounding_tells_apart_go_the_same_way() -> None:
    """XGBoost rounds a table to float32: thresholds are where that changes, and rows are next to them."""
    X, Y = table(500)
    booster = trained(X, Y[:, 0], 10)
    model = import_model(booster)
    forest = model._forest
    used = forest.threshold[forest.left >= 0]
    single = used.astype(np.float32)
    above = np.nextafter(single, np.float32(np.inf))
    near = [used, np.nextafter(used, np.inf), np.nextafter(used, -np.inf), single, above]
    rows = np.random.default_rng(0).choice(np.concatenate(near).astype(float), (3000, X.shape[1]))
    assert_same_leaves(booster.predict(xgb.DMatrix(rows), pred_leaf=True), model.apply(rows))


def test_estimators() -> None:
    X, Y = table(400)
    theirs = xgb.XGBClassifier(n_estimators=100, early_stopping_rounds=3, n_jobs=1)
    theirs.fit(X[:250], Y[:250, 0] > 0, eval_set=[(X[250:], Y[250:, 0] > 0)], verbose=False)
    model = import_model(theirs)
    assert model.best_iteration_ == theirs.best_iteration < model.n_estimators_ - 1
    np.testing.assert_allclose(model.predict_proba(X), theirs.predict_proba(X), atol=1e-6)
    vectors = xgb.XGBRegressor(n_estimators=4, multi_strategy="multi_output_tree", n_jobs=1).fit(X, Y)
    np.testing.assert_allclose(import_model(vectors).predict(X), vectors.predict(X), atol=1e-5)


def test_another_missing_value_is_refused() -> None:
    X, Y = table(300)
    theirs = xgb.XGBRegressor(n_estimators=2, missing=-1.0, n_jobs=1).fit(np.nan_to_num(X), Y[:, 0])
    with pytest.raises(ValueError, match=r"takes -1.0 for a missing value"):
        import_model(theirs)
    assert import_model(theirs.get_booster()).n_estimators_ == 2


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"objective": "binary:hinge"}, "objective is 'binary:hinge'"),
        ({"objective": "binary:logitraw"}, "objective is 'binary:logitraw'"),
        ({"objective": "survival:cox"}, "objective is 'survival:cox'"),
        ({"objective": "reg:expectileerror", "expectile_alpha": [0.2, 0.8]}, "with 2 levels"),
        ({"rate_drop": 0.5}, "weight_drop"),
        ({"booster": "gblinear", "max_depth": None}, "booster is 'gblinear'"),
    ],
)
def test_what_cannot_be_the_same_is_refused(options: dict[str, Any], words: str) -> None:
    X, Y = table(300)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of XGBoost, on boosters of old
        booster = trained(X, Y[:, 0] > 0, 3, **options)
        with pytest.raises(ValueError, match=words):
            import_model(booster)


def test_objects_that_are_no_models() -> None:
    X, _ = table(300)
    with pytest.raises(TypeError, match=r"source must be .* of type DMatrix"):
        import_model(xgb.DMatrix(X))
