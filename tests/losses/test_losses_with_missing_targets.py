"""Missing targets and weights of cells with every loss of regression, and with groups of targets."""

import numpy as np
import pytest
from test_regression_losses import OBJECTIVES, problem, regressor

from mixed_table import mixed, table
from polyleaf import PolyleafMixed, PolyleafRegressor


@pytest.mark.parametrize("objective", OBJECTIVES)
@pytest.mark.parametrize("strategy", ["multi_output_tree", "one_output_per_tree"])
def test_a_missing_target_is_a_cell_of_weight_0(objective, strategy):
    X, y = problem(objective, n=400)
    rng = np.random.default_rng(0)
    missing = rng.random(y.shape) < 0.3
    gaps, absurd = np.where(missing, np.nan, y), np.where(missing, 1e5, y)
    weight = rng.random(y.shape) + 0.5
    params = {"n_estimators": 15, "multi_strategy": strategy}
    one = regressor(objective, **params).fit(X, gaps, sample_weight=weight)
    two = regressor(objective, **params).fit(X, absurd, sample_weight=np.where(missing, 0.0, weight))
    np.testing.assert_array_equal(one.predict(X), two.predict(X))
    threads = regressor(objective, **params | {"n_jobs": 2}).fit(X, gaps, sample_weight=weight)
    np.testing.assert_array_equal(one.predict(X), threads.predict(X))


@pytest.mark.parametrize("objective", OBJECTIVES)
def test_single_targets_with_gaps_equal_the_rows_observed(objective):
    """With a tree per output, a target with gaps is the model of its rows alone, up to the bins."""
    X, y = problem(objective, n=400)
    X = np.rint(2 * X)  # the same bins for fewer rows
    gaps = y.copy()
    gaps[::3, 1] = np.nan
    params = {"n_estimators": 8, "min_samples_leaf": 1, "max_bins": None}
    params["multi_strategy"] = "one_output_per_tree"
    joint = regressor(objective, **params).fit(X, gaps).predict(X)
    kept = ~np.isnan(gaps[:, 1])
    alone = regressor(objective, **params).fit(X[kept], y[kept, 1]).predict(X)
    of_second = joint[:, joint.shape[1] // 2 :]
    assert np.mean(np.abs(of_second - alone.reshape(400, -1)) < 1e-4) > 0.9


@pytest.mark.parametrize("objective", OBJECTIVES)
def test_metrics_skip_missing_targets(objective):
    X, y = problem(objective, n=300)
    gaps = y.copy()
    gaps[::4, 0] = np.nan
    model = regressor(objective, n_estimators=5)
    model.fit(X, y, eval_set=[(X, gaps), (X[:, :], np.where(np.isnan(gaps), 7.0, gaps))],
              eval_sample_weight=[None, (~np.isnan(gaps)).astype(float)])  # fmt: skip
    ((name, first),) = model.evals_result_["validation_0"].items()
    assert model.evals_result_["validation_1"][name] == pytest.approx(first, rel=1e-12)


def test_groups_with_missing_targets():
    X, y = table()
    gaps = {name: values.copy() for name, values in y.items()}
    rng = np.random.default_rng(1)
    for name in ("height", "price", "n1", "visits", "t2"):
        gaps[name] = gaps[name].astype(float)
        gaps[name][rng.random(len(X)) < 0.3] = np.nan
    model = mixed().fit(X, gaps, eval_set=(X, gaps))
    columns = ["grade", "passed", "height", "visits", "t1", "t2", "t3", "price", "n1", "n2"]
    missing = np.column_stack(
        [gaps[c] != gaps[c] if gaps[c].dtype.kind == "f" else np.zeros(len(X), bool) for c in columns]
    )
    absurd = {
        name: np.where(values != values, 1.0, values) if values.dtype.kind == "f" else values
        for name, values in gaps.items()
    }
    other = mixed().fit(X, absurd, sample_weight=(~missing).astype(float))
    np.testing.assert_array_equal(model._raw(X, None), other._raw(X, None))
    assert np.isfinite(model.evals_result_["validation_0"]["loss"]).all()
    gaps["price"][:] = np.nan
    with pytest.raises(ValueError, match="column 'price' of y has no observation"):
        mixed().fit(X, gaps)


@pytest.mark.parametrize("objective", ["squared_error", *OBJECTIVES])
def test_a_single_group_with_gaps_is_the_plain_estimator(objective):
    X, y = problem("gamma", n=300)
    y[::3, 1] = np.nan
    spec = {"objective": objective, "columns": ["a", "b"]}
    one = PolyleafMixed({"g": spec}, n_estimators=6, n_jobs=1).fit(X, {"a": y[:, 0], "b": y[:, 1]})
    two = PolyleafRegressor(objective=objective, n_estimators=6, n_jobs=1).fit(X, y)
    np.testing.assert_array_equal(one._raw(X, None), two._raw(X, None))
