"""The losses of regression beside the squared error: derivatives, best constants, ranges, scales, quality."""

import numpy as np
import pandas as pd
import pytest
from scipy.optimize import minimize_scalar
from sklearn.base import clone
from sklearn.metrics import (
    mean_absolute_error,
    mean_gamma_deviance,
    mean_pinball_loss,
    mean_poisson_deviance,
    mean_tweedie_deviance,
)

import oracle
from gradients_of import gradients_of
from polyleaf import PolyleafMixed, PolyleafRegressor, load_model
from polyleaf.losses import LossDetails, make_loss
from polyleaf.losses.values import deviance_values, huber_values, pinball_values
from polyleaf.metrics import make_metrics

DETAILS = LossDetails(huber_delta=0.7, quantile_levels=(0.2, 0.9), tweedie_power=1.3)
PARAMS = {
    "absolute_error": {},
    "huber": {"huber_delta": 0.7},
    "quantile": {"quantile_levels": [0.2, 0.9]},
    "poisson": {},
    "gamma": {},
    "tweedie": {"tweedie_power": 1.3},
}
OBJECTIVES = tuple(PARAMS)
LOG_LINK = ("poisson", "gamma", "tweedie")
POWERS = {"poisson": 1, "gamma": 2, "tweedie": 1.3}


def loss_of(objective, n_targets):
    n_outputs = n_targets * (2 if objective == "quantile" else 1)
    return make_loss(objective, n_outputs=n_outputs, kind="regression", parameters=vars(DETAILS))


def targets(objective, shape, rng):
    if objective == "gamma":
        return rng.gamma(2.0, size=shape)
    if objective in LOG_LINK:
        return rng.poisson(0.8, size=shape).astype(np.float64)
    return 2 * rng.standard_t(2, size=shape)


def values(objective, y, raw):
    """The loss of each cell, up to a constant."""
    if objective == "absolute_error":
        return np.abs(y - raw)
    if objective == "huber":
        return huber_values(y, raw, DETAILS.huber_delta)
    if objective == "quantile":
        return pinball_values(y, raw, DETAILS.quantile_levels)
    return 0.5 * deviance_values(y, np.exp(raw), POWERS[objective])


def regressor(objective, **params):
    return PolyleafRegressor(objective=objective, **PARAMS[objective] | {"n_jobs": 1} | params)


def table(n, rng, d=2):
    X = rng.normal(size=(n, 5))
    signal = np.sin(2 * X[:, 0]) + 0.5 * X[:, 1] * X[:, 2]
    return X, signal[:, np.newaxis] * np.linspace(0.5, 1, d)


def problem(objective, n=600, d=2, seed=0, strength=1):
    """A table and targets of this objective that depend on it."""
    rng = np.random.default_rng(seed)
    X, signal = table(n, rng, d)
    signal *= strength
    mean = np.exp(signal)
    if objective == "gamma":
        return X, rng.gamma(2.0, mean / 2)
    if objective == "poisson":
        return X, rng.poisson(mean).astype(np.float64)
    if objective == "tweedie":
        return X, rng.poisson(mean) * rng.gamma(2.0, 0.5, size=mean.shape)
    return X, 2 * signal + 0.5 * rng.standard_t(2.5, size=signal.shape)


# --- derivatives and best constants ------------------------------------------------------------------------


@pytest.mark.parametrize("objective", OBJECTIVES)
def test_gradients_are_the_derivatives_of_the_loss(objective):
    rng = np.random.default_rng(1)
    y = targets(objective, (80, 3), rng)
    loss = loss_of(objective, 3)
    raw = rng.normal(size=(80, loss.n_outputs))
    gradient, hessian = gradients_of(loss, y, raw)
    step = 1e-5
    slope = (values(objective, y, raw + step) - values(objective, y, raw - step)) / (2 * step)
    np.testing.assert_allclose(gradient, slope, rtol=1e-5, atol=1e-6)
    assert gradient.dtype == np.float32
    assert hessian is None or (hessian >= 0).all()


@pytest.mark.parametrize("objective", ["huber", *LOG_LINK])
@pytest.mark.parametrize("size", [0.1, 1.0, 8.0])
def test_gradients_and_hessians_equal_the_oracles(objective, size):
    """Once scales are known, too: the loss is divided by its curvature at the base score."""
    rng = np.random.default_rng(2)
    y = targets(objective, (200, 2), rng) * [1, 30]
    weight = rng.random(200) + 0.5
    loss = loss_of(objective, 2)
    base = loss.base_score(y, weight)
    loss.scales(y, weight, base, True)
    if objective == "huber":
        distance = np.maximum(0.7, np.abs(base - y)) / 0.7
        middle = [oracle.weighted_quantile(column, weight, 0.5) for column in distance.T]
        expected = oracle.huber(0.7, np.array(middle))
    else:
        expected = oracle.deviance(POWERS[objective], np.average(y, axis=0, weights=weight))
    raw = base + size * rng.normal(size=y.shape)
    for found, right in zip(gradients_of(loss, y, raw), expected.derivatives(y, raw), strict=True):
        np.testing.assert_allclose(found, right, rtol=1e-5, atol=1e-12)


@pytest.mark.parametrize("objective", LOG_LINK)
def test_no_row_asks_for_a_step_past_its_target(objective):
    rng = np.random.default_rng(3)
    y = targets(objective, (500, 1), rng) + (objective != "gamma") * 1e-3
    raw = 6 * rng.normal(size=y.shape)
    gradient, hessian = (one.astype(np.float64) for one in gradients_of(loss_of(objective, 1), y, raw))
    step, missed = -gradient / hessian, np.log(y) - raw
    assert (np.sign(step) == np.sign(missed)).all()
    assert (np.abs(step) <= np.abs(missed) * (1 + 1e-5)).all()


def test_a_step_of_huber_never_raises_the_loss():
    """The parabola touches the loss from above: its minimum over any set of rows is no worse."""
    rng = np.random.default_rng(4)
    for delta in (0.01, 0.5, 3.0):
        loss = make_loss("huber", n_outputs=1, kind="regression", parameters={"huber_delta": delta})
        y = rng.standard_t(1.5, size=(50, 1))
        raw = np.full((50, 1), rng.normal())
        for _ in range(20):
            gradient, hessian = gradients_of(loss, y, raw)
            step = -gradient.sum(dtype=np.float64) / hessian.sum(dtype=np.float64)
            before = huber_values(y, raw, delta).sum()
            raw = raw + step
            assert huber_values(y, raw, delta).sum() <= before * (1 + 1e-6)


@pytest.mark.parametrize("objective", OBJECTIVES)
@pytest.mark.parametrize("form", ["none", "rows", "cells"])
def test_base_score_is_the_best_constant(objective, form):
    """For every form of weights; cells without weight do not count, whatever they hold."""
    rng = np.random.default_rng(5)
    y = targets(objective, (101, 2), rng)
    loss = loss_of(objective, 2)
    d = loss.n_outputs
    y_of = np.repeat(y, d // 2, axis=1)
    weight = {"none": None, "rows": rng.random(101), "cells": rng.random((101, d))}[form]
    if form == "cells":
        weight[:20] = 0
        y[:20] = 1e6
        y_of = np.repeat(y, d // 2, axis=1)
    base = loss.base_score(y, weight)
    assert base.shape == (d,)
    for j in range(d):
        cell = np.ones(101) if weight is None else weight if weight.ndim == 1 else weight[:, j]

        def total(score, j=j, cell=cell):
            raw = np.tile(base, (101, 1))
            raw[:, j] = score
            return (values(objective, y, raw)[:, j] * cell).sum()

        low, high = (np.log(y_of[y_of > 0].min()), np.log(y_of.max())) if objective in LOG_LINK else (-9, 9)
        best = minimize_scalar(total, bounds=(low - 3, high), method="bounded", options={"xatol": 1e-10})
        assert total(base[j]) <= best.fun * (1 + 1e-9) + 1e-12


@pytest.mark.parametrize("objective", OBJECTIVES)
def test_scales_take_every_form_of_weights(objective):
    rng = np.random.default_rng(6)
    y = targets(objective, (60, 2), rng)
    rows = rng.integers(1, 4, size=60).astype(np.float64)
    found = []
    for form in ("rows", "cells"):
        loss = loss_of(objective, 2)
        weight = rows if form == "rows" else np.tile(rows[:, None], loss.n_outputs)
        base = loss.base_score(y, weight)
        found.append(np.concatenate([base, *loss.scales(y, weight, base, True)]))
        found.append(np.concatenate([base, *loss.scales(y, weight, base, False)]))
    np.testing.assert_allclose(found[0], found[2], rtol=1e-12)
    np.testing.assert_allclose(found[1], found[3], rtol=1e-12)


# --- targets of any size -----------------------------------------------------------------------------------


@pytest.mark.parametrize("objective", OBJECTIVES)
@pytest.mark.parametrize("factor", [1e-300, 1e-30, 1e12, 1e290])
def test_any_size_of_target_is_fitted(objective, factor):
    """Each loss but Huber's, whose delta is absolute, finds the same trees; all of them find some."""
    X, y = problem(objective, n=300)
    params = {"n_estimators": 20, "min_samples_leaf": 5}
    plain = regressor(objective, **params).fit(X, y).predict(X)
    scaled = regressor(objective, **params).fit(X, y * factor).predict(X) / factor
    assert np.isfinite(scaled).all()
    if objective != "huber":
        np.testing.assert_allclose(scaled, plain, rtol=1e-4, atol=1e-4)
    y_of = np.repeat(y, scaled.shape[1] // 2, axis=1)
    assert np.abs(scaled - y_of).mean() < 0.95 * np.abs(y_of - best_constant(objective, y)).mean()


@pytest.mark.parametrize("objective", [one for one in OBJECTIVES if one != "huber"])
def test_a_target_in_other_units_does_not_drown_the_others(objective):
    """The splits are those of targets in the same unit (Huber's delta is in the unit of the target)."""
    X, y = problem(objective, n=300)
    params = {"n_estimators": 5, "min_samples_leaf": 5}
    plain, scaled = (regressor(objective, **params).fit(X, y * [1, factor]) for factor in (1, 2.0**20))
    np.testing.assert_array_equal(plain._forest.feature, scaled._forest.feature)


@pytest.mark.parametrize("objective", OBJECTIVES)
def test_constant_targets_are_predicted(objective):
    X, y = problem(objective, n=100)
    y[:, 1] = 3.5
    prediction = regressor(objective, n_estimators=10).fit(X, y).predict(X)
    np.testing.assert_allclose(prediction.reshape(100, 2, -1)[:, 1], 3.5, rtol=1e-12)
    alone = regressor(objective, n_estimators=3).fit(X, np.full(100, 2.0)).predict(X)
    np.testing.assert_allclose(alone, 2.0, rtol=1e-12)


@pytest.mark.parametrize("objective", LOG_LINK)
def test_log_link_never_overflows(objective):
    """Even where the base score and the learning rate are absurd."""
    X, y = problem(objective, n=200, d=1)
    for base in (-5000.0, 5000.0):
        model = regressor(objective, n_estimators=5, base_score=base, learning_rate=50.0).fit(X, y)
        prediction = model.predict(X)
        assert np.isfinite(prediction).all()
        assert (prediction > 0).all()


# --- refusals ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("objective", "bad", "message"),
    [
        ("poisson", -1.0, r"y is -1.0 in row 7 of target 1; 'poisson' needs targets at least 0"),
        ("tweedie", -1e-9, r"row 7 of target 1"),
        ("gamma", 0.0, r"y is 0.0 in row 7 of target 1; 'gamma' needs targets greater than 0"),
    ],
)
def test_targets_out_of_range_are_named(objective, bad, message):
    X, y = problem(objective, n=50)
    wrong = y.copy()
    wrong[7, 1] = bad
    with pytest.raises(ValueError, match=message):
        regressor(objective).fit(X, wrong)
    with pytest.raises(ValueError, match=r"y of eval_set\[0\] is"):
        regressor(objective).fit(X, y, eval_set=[(X, wrong)])
    weight = np.ones(50)
    weight[7] = 0
    regressor(objective, n_estimators=1).fit(X, wrong, sample_weight=weight)


@pytest.mark.parametrize("objective", ["poisson", "tweedie"])
def test_a_target_without_any_event_is_refused(objective):
    X, y = problem(objective, n=50)
    y[:, 1] = 0
    with pytest.raises(ValueError, match=r"0 in all rows of target 1.*positive sum"):
        regressor(objective).fit(X, y)
    with pytest.raises(ValueError, match=r"0 in all rows of target 'b'"):
        regressor(objective).fit(X, pd.DataFrame(y[:, :2], columns=["a", "b"]))


def test_targets_out_of_range_are_called_by_their_names():
    X, y = problem("poisson", n=50)
    frame = pd.DataFrame(y[:, :2], columns=["visits", "sales"])
    wrong = frame.copy()
    wrong.loc[7, "sales"] = -1.0
    with pytest.raises(ValueError, match=r"y is -1.0 in row 7 of target 'sales'; 'poisson' needs"):
        regressor("poisson").fit(X, wrong)
    with pytest.raises(ValueError, match=r"y of eval_set\[0\] is -1.0 in row 7 of target 'sales'"):
        regressor("poisson").fit(X, frame, eval_set=[(X, wrong)])
    with pytest.raises(ValueError, match=r"row \d+ of target '\w+'; 'gamma'"):
        regressor("poisson", eval_metric="gamma").fit(X, frame, eval_set=[(X, wrong.abs() * 0)])
    mixed = PolyleafMixed(
        {"counts": {"columns": ["sales", "visits"], "objective": "poisson"}}, n_estimators=1
    )
    with pytest.raises(ValueError, match=r"'counts' of y is -1.0 in row 7 of target 'sales'"):
        mixed.fit(X, wrong)


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"huber_delta": 2.0}, "huber_delta=2.0 is of no use"),
        ({"objective": "huber", "quantile_levels": [0.1, 0.9]}, "quantile_levels"),
        ({"objective": "poisson", "tweedie_power": 1.2}, "tweedie_power"),
        ({"eval_metric": "poisson"}, "needs positive predictions"),
        ({"objective": "quantile", "quantile_levels": [0.1, 0.9], "eval_metric": "mae"}, "2 prediction"),
        ({"eval_metric": "quantile", "quantile_levels": [0.1, 0.9]}, "1 prediction"),
        ({"objective": "quantile", "quantile_levels": [0.9, 0.1]}, "ascending"),
        ({"objective": "quantile", "quantile_levels": [0.1, 0.1]}, "ascending"),
        ({"objective": "quantile", "quantile_levels": 1.0}, r"\(0, 1\)"),
        ({"objective": "quantile", "quantile_levels": []}, r"\(0, 1\)"),
        ({"objective": "huber", "huber_delta": 0.0}, "> 0"),
        ({"objective": "tweedie", "tweedie_power": 2.0}, r"\(1, 2\)"),
        ({"objective": "tweedie", "tweedie_power": 1}, r"\(1, 2\)"),
    ],
)
def test_parameters_that_do_not_fit_are_refused(params, message):
    X, y = problem("huber", n=50)
    with pytest.raises(ValueError, match=message):
        PolyleafRegressor(**params).fit(X, y, eval_set=(X, y))


def test_a_metric_of_another_deviance_checks_its_targets():
    X, y = problem("poisson", n=50)
    assert (y == 0).any()
    with pytest.raises(ValueError, match="'gamma' needs targets greater than 0"):
        PolyleafRegressor(objective="poisson", eval_metric="gamma").fit(X, y, eval_set=(X, y))


# --- quantiles ---------------------------------------------------------------------------------------------


def test_outputs_of_quantiles_are_target_major_and_never_cross():
    X, y = problem("quantile", n=800, d=3)
    levels = [0.05, 0.3, 0.5, 0.9]
    model = PolyleafRegressor(
        objective="quantile", quantile_levels=levels, n_estimators=60, learning_rate=0.3, min_samples_leaf=3
    ).fit(X, y)
    assert model.n_outputs_ == 12
    prediction = model.predict(X)
    assert prediction.shape == (800, 12)
    blocks = prediction.reshape(800, 3, 4)
    assert (np.diff(blocks, axis=2) >= 0).all()
    crossed = np.diff(model._raw(X, None).reshape(800, 3, 4), axis=2) < 0
    assert crossed.any()  # there was something to do
    share = (y[:, :, np.newaxis] <= blocks).mean(axis=0)
    assert (np.diff(share, axis=1) > 0.05).all()
    np.testing.assert_array_equal(list(model.staged_predict(X))[-1], prediction)
    # Sorting lowers the loss of every row, or leaves it.
    loss = [pinball_values(y, one, tuple(levels)).sum(axis=1) for one in (prediction, model._raw(X, None))]
    assert (loss[0] <= loss[1] + 1e-9).all()


def test_shape_of_quantile_predictions():
    X, y = problem("quantile", n=100, d=1)

    def shape(levels, target):
        model = PolyleafRegressor(objective="quantile", quantile_levels=levels, n_estimators=2)
        return model.fit(X, target).predict(X).shape

    assert shape(0.3, y[:, 0]) == (100,)
    assert shape([0.3], y[:, 0]) == (100,)
    assert shape([0.3], y) == (100, 1)
    assert shape((0.3, 0.6), y[:, 0]) == (100, 2)
    assert shape(np.array([0.3, 0.6, 0.7]), np.hstack([y, y])) == (100, 6)


def test_quantiles_cover_held_out_rows():
    X, y = problem("quantile", n=8000, d=2)
    levels = [0.1, 0.5, 0.9]
    model = PolyleafRegressor(
        objective="quantile", quantile_levels=levels, n_estimators=100, max_depth=4, n_jobs=2
    ).fit(X[:4000], y[:4000])
    share = (y[4000:, :, np.newaxis] <= model.predict(X[4000:]).reshape(4000, 2, 3)).mean(axis=0)
    np.testing.assert_allclose(share, [levels, levels], atol=0.04)


def test_the_median_is_the_absolute_error():
    """Half the loss, the same splits and leaves."""
    X, y = problem("huber", n=400)
    np.testing.assert_array_equal(
        PolyleafRegressor(objective="quantile", n_estimators=10, reg_lambda=0.5).fit(X, y).predict(X),
        PolyleafRegressor(objective="absolute_error", n_estimators=10, reg_lambda=0.5).fit(X, y).predict(X),
    )


def test_a_large_delta_is_the_squared_error():
    X, y = problem("huber", n=400)
    common = {"n_estimators": 10, "min_samples_leaf": 20, "sketch": None}
    huber = PolyleafRegressor(objective="huber", huber_delta=1e6, **common).fit(X, y)
    squared = PolyleafRegressor(bounded_influence=False, **common).fit(X, y)
    np.testing.assert_allclose(huber.predict(X), squared.predict(X), rtol=1e-5, atol=1e-6)


# --- metrics -----------------------------------------------------------------------------------------------


def measured(name, y, prediction, weight=None):
    (metric,) = make_metrics(name, default="rmse", kind="regression", details=DETAILS)
    assert not metric.greater_is_better
    return metric.function(y, prediction, weight)


@pytest.mark.parametrize("weighted", [False, True])
def test_metrics_are_scikit_learns(weighted):
    rng = np.random.default_rng(7)
    y, prediction = rng.gamma(2.0, size=(90, 2)), rng.gamma(2.0, size=(90, 2))
    weight = rng.random(90) if weighted else None
    counts = rng.poisson(1.0, size=(90, 2)).astype(np.float64)

    def mean_of(function, truth, **keywords):
        return np.mean(
            [function(truth[:, j], prediction[:, j], sample_weight=weight, **keywords) for j in range(2)]
        )

    assert measured("gamma", y, prediction, weight) == pytest.approx(mean_of(mean_gamma_deviance, y))
    assert measured("poisson", counts, prediction, weight) == pytest.approx(
        mean_of(mean_poisson_deviance, counts)
    )
    assert measured("tweedie", counts, prediction, weight) == pytest.approx(
        mean_of(mean_tweedie_deviance, counts, power=1.3)
    )
    expected = [mean_pinball_loss(y[:, 0], prediction[:, j], alpha=a, sample_weight=weight) for j, a in
                enumerate((0.2, 0.9))]  # fmt: skip
    assert measured("quantile", y[:, :1], prediction, weight) == pytest.approx(np.mean(expected))
    error = np.abs(y - prediction)
    huber = np.where(error <= 0.7, error**2 / 2, 0.7 * (error - 0.35)).mean(axis=1)
    assert measured("huber", y, prediction, weight) == pytest.approx(np.average(huber, weights=weight))


def test_deviances_are_finite_where_a_target_was_not_observed():
    """Such a cell holds 0 and has no weight; the deviance of the gamma distribution is not defined there."""
    for power in (1, 1.5, 2):
        assert np.isfinite(deviance_values(np.zeros((1, 1)), np.full((1, 1), 2.0), power)).all()


@pytest.mark.parametrize("objective", OBJECTIVES)
def test_default_metric_is_the_loss_and_early_stopping_watches_it(objective):
    X, y = problem(objective, n=800)
    model = regressor(objective, n_estimators=400, learning_rate=0.5, early_stopping_rounds=5)
    model.fit(X[:400], y[:400], eval_set=(X[400:], y[400:]))
    ((name, history),) = model.evals_result_["validation_0"].items()
    assert name == ("mae" if objective == "absolute_error" else objective)
    assert model.n_estimators_ < 400
    assert model.best_iteration_ == np.argmin(history)
    expected = mean_absolute_error if name == "mae" else lambda y, p: measured(name, y, p)
    assert history[model.best_iteration_] == pytest.approx(
        expected(y[400:], model.predict(X[400:])), rel=1e-9
    )


# --- with everything else ----------------------------------------------------------------------------------

PARTNERS = {
    "one_output_per_tree": {"multi_strategy": "one_output_per_tree"},
    "sparse_leaves": {"sparse_leaves": 1},
    "unrestricted": {"sparse_leaves": 2, "sparse_mode": "unrestricted"},
    "projection": {"sketch": "random_projection", "sketch_size": 1},
    "sampling": {"sketch": "random_sampling", "sketch_size": 1},
    "subsample": {"subsample": 0.5},
    "gradient_based": {"subsample": 0.5, "sampling_method": "gradient_based"},
    "columns": {"colsample_bytree": 0.6, "colsample_bylevel": 0.8, "colsample_bynode": 0.8},
    "unscaled": {"scale_targets": False},
    "exact bins": {"max_bins": None},
    "penalties": {"reg_alpha": 0.5, "reg_lambda": 3.0, "min_child_weight": 1.0},
    "base": {"base_score": 0.1},
}


@pytest.mark.parametrize("objective", OBJECTIVES)
@pytest.mark.parametrize("partner", PARTNERS)
def test_every_option_goes_with_every_loss(objective, partner):
    """The model learns, the threads change no bit, and a saved model predicts the same bits."""
    X, y = problem(objective, n=600)
    X[::7, 0] = np.nan
    weight = np.random.default_rng(0).random(600) + 0.5
    params = {"n_estimators": 30, "random_state": 3} | PARTNERS[partner]
    model = regressor(objective, **params).fit(X, y, sample_weight=weight)
    prediction = model.predict(X)
    y_of = np.repeat(y, prediction.shape[1] // 2, axis=1)
    assert measured_loss(objective, y, prediction) < 0.95 * measured_loss(
        objective, y, np.tile(best_constant(objective, y), (600, 1))
    )
    assert prediction.shape == y_of.shape
    more = regressor(objective, **params | {"n_jobs": 2}).fit(X, y, sample_weight=weight)
    np.testing.assert_array_equal(more.predict(X), prediction)


def measured_loss(objective, y, prediction):
    return measured("mae" if objective == "absolute_error" else objective, y, prediction)


def best_constant(objective, y):
    loss = loss_of(objective, 2)
    return loss.predict(loss.base_score(y, None)[np.newaxis])[0]


@pytest.mark.parametrize("objective", OBJECTIVES)
def test_saved_models_predict_the_same_bits(objective, tmp_path):
    X, y = problem(objective, n=200)
    model = regressor(objective, n_estimators=5).fit(X, y)
    model.save_model(tmp_path / "model")
    loaded = load_model(tmp_path / "model")
    np.testing.assert_array_equal(loaded.predict(X), model.predict(X))
    # Parameters that are set later do not change what was fitted.
    again = loaded.set_params(objective="squared_error", quantile_levels=0.3).predict(X)
    np.testing.assert_array_equal(again, model.predict(X))
    refitted = clone(load_model(tmp_path / "model")).fit(X, y).predict(X)
    np.testing.assert_allclose(refitted, model.predict(X))


def test_rates_with_exposure_as_weight():
    """Counts over exposure, weighted by exposure, have the sum of the counts as their sum."""
    rng = np.random.default_rng(11)
    X, signal = table(3000, rng, 1)
    exposure = rng.random(3000) + 0.1
    counts = rng.poisson(np.exp(signal[:, 0]) * exposure)
    model = PolyleafRegressor(objective="poisson", n_estimators=100, n_jobs=1)
    rate = model.fit(X, counts / exposure, sample_weight=exposure).predict(X)
    assert (rate * exposure).sum() == pytest.approx(counts.sum(), rel=0.02)


# --- against LightGBM --------------------------------------------------------------------------------------

PEERS = {
    "absolute_error": {"objective": "l1"},
    "huber": {"objective": "huber", "alpha": 1.0},
    "quantile": {"objective": "quantile", "alpha": 0.9},
    "poisson": {"objective": "poisson"},
    "gamma": {"objective": "gamma"},
    "tweedie": {"objective": "tweedie", "tweedie_variance_power": 1.5},
}


@pytest.mark.other_threads("trains LightGBM")
@pytest.mark.parametrize("objective", OBJECTIVES)
def test_held_out_loss_is_that_of_lightgbm(objective):
    """Within 3 % of it, of a problem that leaves both far from a constant."""
    lightgbm = pytest.importorskip("lightgbm")
    X, y = problem(objective, n=6000, d=1, seed=5, strength=3)
    y = y[:, 0]
    train, test = slice(0, 3000), slice(3000, None)
    ours = PolyleafRegressor(
        objective=objective,
        quantile_levels=0.9 if objective == "quantile" else 0.5,
        n_estimators=100,
        learning_rate=0.1,
        max_depth=None,
        max_leaves=31,
        min_samples_leaf=20,
        colsample_bytree=1.0,
        n_jobs=2,
    )
    peer = lightgbm.LGBMRegressor(n_estimators=100, num_leaves=31, verbose=-1, n_jobs=2, **PEERS[objective])
    (metric,) = make_metrics(
        "mae" if objective == "absolute_error" else objective,
        default="rmse",
        kind="regression",
        details=LossDetails(quantile_levels=(0.9,)),
    )

    def loss(prediction):
        return metric.function(y[test, np.newaxis], np.reshape(prediction, (-1, 1)), None)

    found = loss(ours.fit(X[train], y[train]).predict(X[test]))
    assert found < 1.03 * loss(peer.fit(X[train], y[train]).predict(X[test]))
    constant = np.quantile(y[train], 0.9) if objective == "quantile" else y[train].mean()
    assert found < 0.8 * loss(np.full(3000, constant))


@pytest.mark.parametrize("outlier", [1e6, 1e9, 1e20])
def test_one_outlier_does_not_move_the_others(outlier):
    rng = np.random.default_rng(5)
    X = rng.normal(size=(400, 4))
    y = X[:, 0] + np.sin(2 * X[:, 1])
    spoilt = np.where(np.arange(400) == 0, outlier, y)
    model = PolyleafRegressor(n_estimators=60, max_depth=3, min_samples_leaf=5, objective="huber")
    error = (model.fit(X, spoilt).predict(X) - y)[1:]
    assert np.mean(error**2) < 0.1 * y.var()
