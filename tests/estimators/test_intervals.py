"""Intervals hold their level on rows that neither the model nor the calibration has seen."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from polyleaf import ConformalIntervals, PolyleafClassifier, PolyleafRegressor

LEVEL = 0.8
N_CALIBRATION, N_NEW, N_DRAWS = 99, 400, 60


def rows(n: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Two targets whose noise differs in size and grows with the first feature."""
    rng = np.random.default_rng(seed)
    X = rng.uniform(0, 1, (n, 4))
    noise = rng.standard_normal((n, 2)) * (0.1 + X[:, :1]) * [1, 10]
    return X, np.column_stack([X[:, 1], 5 * X[:, 2]]) + noise


def fitted(kind: str) -> PolyleafRegressor:
    options = {"plain": {}, "quantiles": {"objective": "quantile", "quantile_levels": [0.05, 0.5, 0.95]}}
    X, y = rows(600, 0)
    return PolyleafRegressor(n_estimators=20, max_depth=3, **options[kind]).fit(X, y)


@pytest.mark.parametrize("joint", [False, True])
@pytest.mark.parametrize("kind", ["plain", "quantiles"])
def test_the_level_is_reached_and_hardly_exceeded(kind: str, joint: bool) -> None:
    """The mean over calibrations is at least the level, and at most a share of 1 / (n + 1) above it."""
    model = fitted(kind)
    held = []
    for draw in range(N_DRAWS):
        intervals = ConformalIntervals(model, level=LEVEL, joint=joint)
        intervals.calibrate(*rows(N_CALIBRATION, 1 + 2 * draw))
        X, y = rows(N_NEW, 2 + 2 * draw)
        lower, upper = intervals.predict(X)
        inside = (lower <= y) & (y <= upper)
        held.append(inside.all(axis=1).mean() if joint else inside.mean(axis=0))
    mean, error = np.mean(held, axis=0), np.std(held, axis=0) / np.sqrt(N_DRAWS)
    used = N_CALIBRATION * 4 // 5 if joint else N_CALIBRATION
    assert (mean > LEVEL - 4 * error).all(), (mean, error)
    assert (mean < LEVEL + 1 / used + 4 * error).all(), (mean, error)


def test_intervals_by_hand() -> None:
    """Of 9 rows, a level of 0.8 takes the eighth smallest miss."""
    X = np.zeros((9, 1))
    model = PolyleafRegressor(n_estimators=1).fit(np.zeros((4, 1)), np.zeros(4))
    intervals = ConformalIntervals(model, level=0.8).calibrate(X, [1, -2, 3, -4, 5, -6, 7, -8, 9])
    assert intervals.margin_.tolist() == [8.0]
    lower, upper = intervals.predict(X[:2])
    assert (lower.tolist(), upper.tolist()) == ([-8.0, -8.0], [8.0, 8.0])


def test_wide_quantiles_are_narrowed_but_never_turned_around() -> None:
    X = np.zeros((40, 1))
    model = PolyleafRegressor(objective="quantile", quantile_levels=[0.1, 0.9], n_estimators=1)
    model.fit(X, np.linspace(-10, 10, 40))
    intervals = ConformalIntervals(model, level=0.5).calibrate(X, np.zeros(40))
    assert intervals.margin_[0] < 0
    lower, upper = intervals.predict(X[:1])
    assert (lower <= upper).all()


def test_missing_targets_do_not_count() -> None:
    model = fitted("plain")
    X, y = rows(200, 7)
    holes = np.random.default_rng(0).random(y.shape) < 0.3
    gaps = np.where(holes, np.nan, y)
    margin = ConformalIntervals(model).calibrate(X, gaps).margin_
    for j in range(2):
        there = ~holes[:, j]
        alone = ConformalIntervals(model).calibrate(X[there], y[there])
        assert margin[j] == alone.margin_[j]
    assert np.isfinite(ConformalIntervals(model, joint=True).calibrate(X, gaps).margin_).all()


def test_missing_values_of_one_target_do_not_count() -> None:
    """However y is shaped."""
    X, y = rows(300, 1)
    y = 100 + y[:, 0]
    model = PolyleafRegressor(n_estimators=20).fit(X, y)
    gaps = np.where(np.arange(len(y)) < 80, np.nan, y)
    margin = ConformalIntervals(model).calibrate(X[80:], y[80:]).margin_
    for given in (gaps, gaps[:, np.newaxis], pd.Series(gaps)):
        assert ConformalIntervals(model).calibrate(X, given).margin_ == margin
    with pytest.raises(ValueError, match="rows in which target 0 was observed; there are 5"):
        ConformalIntervals(model).calibrate(X, np.where(np.arange(len(y)) < 295, np.nan, y))


def test_a_target_that_was_never_observed_is_named() -> None:
    X, y = rows(300, 1)
    model = PolyleafRegressor(n_estimators=5).fit(X, pd.DataFrame(y, columns=["a", "b"]))
    gaps = np.column_stack([y[:, 0], np.full(len(y), np.nan)])
    for joint in (False, True):
        with pytest.raises(ValueError, match="target 'b'"):
            ConformalIntervals(model, joint=joint).calibrate(X, gaps)


def test_names_of_targets_decide() -> None:
    X, y = rows(300, 0)
    frame = pd.DataFrame(y, columns=["a", "b"])
    model = PolyleafRegressor(n_estimators=5).fit(X, frame)
    with pytest.raises(ValueError, match="b"):
        ConformalIntervals(model).calibrate(X, frame[["b", "a"]])


@pytest.mark.parametrize(("level", "n", "least"), [(0.9, 8, 9), (0.5, 0, 1), (0.99, 98, 99)])
def test_too_few_rows_are_an_error(level: float, n: int, least: int) -> None:
    model = fitted("plain")
    X, y = rows(max(n, 1), 3)
    y[n:] = np.nan
    with pytest.raises(ValueError, match=f"takes at least {least} rows .* there are {n}"):
        ConformalIntervals(model, level=level).calibrate(X, y)
    X, y = rows(least, 3)
    assert np.isfinite(ConformalIntervals(model, level=level).calibrate(X, y).margin_).all()


def test_what_cannot_be_calibrated_is_refused() -> None:
    model = fitted("plain")
    with pytest.raises(ValueError, match="level must lie between 0 and 1; got 90"):
        ConformalIntervals(model, level=90)
    with pytest.raises(TypeError, match="PolyleafRegressor; got PolyleafClassifier"):
        ConformalIntervals(PolyleafClassifier())
    with pytest.raises(ValueError, match="not fitted"):
        ConformalIntervals(PolyleafRegressor())
    with pytest.raises(ValueError, match="call `calibrate` first"):
        ConformalIntervals(model).predict(np.zeros((1, 4)))
