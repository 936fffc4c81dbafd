"""Scores are those of scikit-learn and of polyleaf's metrics; intervals are as wide as they should be."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from reported import FEATURES, TARGETS, fitted, report_of, rows
from sklearn import metrics

from polyleaf.data.inputs import FloatArray
from polyleaf.inspect.output_scores import output_scores
from polyleaf.report.calibration import reliability, reliability_sums
from polyleaf.report.intervals import Resampling, with_interval
from polyleaf.report.outputs import Output, OutputRows
from polyleaf.report.scores import score_terms

pytestmark = pytest.mark.cpu_only("scores of the host")

TEST = rows(1)
WEIGHT = np.random.default_rng(5).integers(1, 4, len(TEST)).astype(np.float64)


def values_of(data: dict[str, Any]) -> dict[str, dict[str, float]]:
    """Scores by output and name."""
    return {
        one["name"]: {
            name: score[0]
            for name, score in zip(data["groups"][one["group"]]["columns"], one["scores"], strict=True)
        }
        for one in data["outputs"]
    }


@pytest.mark.parametrize("weight", [None, WEIGHT], ids=["plain", "weighted"])
def test_numbers(weight: FloatArray | None) -> None:
    model = fitted("numbers")
    found = values_of(report_of(model, "numbers", sample_weight=weight))
    predicted = model.predict(TEST[FEATURES])
    for k, name in enumerate(["power", "cost"]):
        both = TEST[name], predicted[:, k]
        assert found[name]["R²"] == pytest.approx(metrics.r2_score(*both, sample_weight=weight), rel=1e-4)
        assert found[name]["RMSE"] == pytest.approx(
            metrics.root_mean_squared_error(*both, sample_weight=weight), rel=1e-4
        )
        assert found[name]["MAE"] == pytest.approx(
            metrics.mean_absolute_error(*both, sample_weight=weight), rel=1e-4
        )


@pytest.mark.parametrize("weight", [None, WEIGHT], ids=["plain", "weighted"])
def test_labels(weight: FloatArray | None) -> None:
    model = fitted("labels")
    data = report_of(model, "labels", sample_weight=weight)
    found, p = values_of(data), model.predict_proba(TEST[FEATURES])
    for k, name in enumerate(["fast", "late", "warm"]):
        truth, decided = TEST[name], p[:, k] > 0.5
        expected = {
            "AUC": metrics.roc_auc_score(truth, p[:, k], sample_weight=weight),
            "R²": metrics.r2_score(truth, p[:, k], sample_weight=weight),
            "log loss": metrics.log_loss(truth, p[:, k], sample_weight=weight),
            "precision": metrics.precision_score(truth, decided, sample_weight=weight),
            "recall": metrics.recall_score(truth, decided, sample_weight=weight),
            "F1": metrics.f1_score(truth, decided, sample_weight=weight),
        }
        assert found[name] == pytest.approx(expected, rel=1e-4)
    (group,) = data["groups"]
    name, value, low, high = group["scores"][0]
    assert name == "rows with all labels right"
    expected_share = model.score(TEST[FEATURES], TEST[TARGETS["labels"]], weight)
    assert value == pytest.approx(expected_share, rel=1e-4)
    assert low < value < high


@pytest.mark.parametrize("kind", ["two classes", "classes"])
def test_accuracy_is_that_of_score(kind: str) -> None:
    model = fitted(kind)
    (group,) = report_of(model, kind, sample_weight=WEIGHT)["groups"]
    name, value, *_ = group["scores"][0]
    assert name == "accuracy"
    assert value == pytest.approx(model.score(TEST[FEATURES], TEST[TARGETS[kind]], WEIGHT), rel=1e-4)


@pytest.mark.parametrize("kind", ["numbers", "quantiles", "two classes", "classes", "labels", "mixed"])
def test_shares_of_a_constants_loss_are_those_of_importance(kind: str) -> None:
    """R² and D² are what `importance("permutation", per_output=True)` scores outputs by."""
    model = fitted(kind)
    found = values_of(report_of(model, kind, sample_weight=WEIGHT))
    y, weight = model._observed(TEST[TARGETS[kind]], WEIGHT, len(TEST))
    raw = model._raw(TEST[FEATURES], None)
    scores = model._coding.in_order_of_y(output_scores(model._coding, model._loss_name, raw, y, weight))
    for name, score in zip(model._coding.columns_of_outputs(), scores, strict=True):
        assert found[name].get("R²", found[name].get("D²")) == pytest.approx(score, rel=1e-4)


def test_intervals_are_as_wide_as_the_mean_is_uncertain() -> None:
    rng = np.random.default_rng(0)
    for n in (400, 5000):  # rows, and groups of rows
        values = rng.normal(size=n)
        resampling = Resampling(n, 0)
        sums = resampling.sums(np.arange(n), np.stack([np.ones(n), values]))
        _, low, high = with_interval(sums[:, 1] / sums[:, 0])
        assert (high - low) / 2 == pytest.approx(1.96 * values.std() / np.sqrt(n), rel=0.15)


def test_the_interval_of_an_area_is_that_of_rows_drawn_again() -> None:
    """What is drawn is linear in the rows; the real thing computes the area of every draw."""
    rng = np.random.default_rng(1)
    truth = (rng.random(400) < 0.3).astype(np.float64)
    score = np.clip(0.3 * truth + 0.4 * rng.random(400), 0, 1).round(2)  # with ties
    observed = OutputRows(np.arange(400), truth, score, np.ones(400))
    terms, scores = score_terms(Output(0, "a", "label", 0, 0, 0), observed, score > 0.5)
    drawn = scores(Resampling(400, 0).sums(observed.rows, terms))["AUC"]
    _, low, high = with_interval(drawn)
    again = []
    for _ in range(400):
        rows_drawn = rng.integers(0, 400, 400)
        again.append(metrics.roc_auc_score(truth[rows_drawn], score[rows_drawn]))
    assert drawn[0] == pytest.approx(metrics.roc_auc_score(truth, score))
    assert [low, high] == pytest.approx(np.quantile(again, [0.025, 0.975]).tolist(), abs=0.012)


@pytest.mark.parametrize("unit", [2.0**900, 2.0**-900])
def test_numbers_of_any_size_have_scores(unit: float) -> None:
    """Squares of very large numbers overflow, those of very small ones vanish."""
    rng = np.random.default_rng(3)
    truth, prediction = rng.normal(size=(2, 100))

    def scores_of(scale: float) -> dict[str, FloatArray]:
        observed = OutputRows(np.arange(100), truth * scale, prediction * scale, np.ones(100))
        terms, scores = score_terms(Output(0, "a", "number", 0, 0, 0), observed, truth > 9)
        return scores(Resampling(100, 0).sums(observed.rows, terms))

    plain, scaled = scores_of(1.0), scores_of(unit)
    np.testing.assert_array_equal(scaled["R²"], plain["R²"])
    np.testing.assert_array_equal(scaled["RMSE"], unit * plain["RMSE"])
    np.testing.assert_array_equal(scaled["MAE"], unit * plain["MAE"])


def test_reliability_adds_up() -> None:
    rng = np.random.default_rng(2)
    p = np.r_[rng.random(500), 0.0, 1.0]
    truth = (rng.random(502) < p).astype(np.float64)
    weight = rng.integers(1, 3, 502).astype(np.float64)
    found = reliability(reliability_sums(OutputRows(np.arange(502), truth, p, weight)))
    assert sum(found["rows"]) == 502
    place = np.minimum((p * 10).astype(int), 9)
    for k in range(10):
        assert found["share"][k] == pytest.approx(np.average(truth[place == k], weights=weight[place == k]))
    assert 0 < found["error"] < 0.1
