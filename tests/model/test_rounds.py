"""A slice of a model is a model: it predicts what the whole does after its last round."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.exceptions import NotFittedError

from polyleaf import PolyleafMixed, PolyleafRegressor, load_model
from training_cases import CASES, X


def fitted(name: str, **params: Any) -> Any:
    case = CASES[name]
    return case.make(**{"n_estimators": 6} | params).fit(X, case.y, case.weight)


@pytest.mark.parametrize("name", CASES)
def test_a_slice_predicts_the_stage(name: str, tmp_path: Path) -> None:
    model = fitted(name)
    for k, stage in enumerate(model._staged_raw(X, None), start=1):
        part = model[:k]
        assert (part.n_estimators_, part.best_iteration_) == (k, k - 1)
        np.testing.assert_array_equal(part._raw(X, None), stage)
        np.testing.assert_array_equal(part.apply(X), model.apply(X, n_rounds=k))
    middle = model[2:5]
    np.testing.assert_array_equal(
        middle.apply(X), model.apply(X)[:, model._forest.trees_up_to(2) : model._forest.trees_up_to(5)]
    )
    base = model[:0]._raw(X, None)
    whole = model[:2]._raw(X, None) - base + middle._raw(X, None)
    np.testing.assert_allclose(whole, model[:5]._raw(X, None), rtol=1e-12, atol=1e-12)
    # Its arrays are those of a forest: a file of it is believed.
    for part in (middle, model[:3], model[:0]):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            part.save_model(tmp_path / "part.polyleaf")
        np.testing.assert_array_equal(
            load_model(tmp_path / "part.polyleaf")._raw(X, None), part._raw(X, None)
        )


def test_categories_and_mixed_targets() -> None:
    rng = np.random.default_rng(0)
    table = np.column_stack([rng.integers(0, 40, size=200), rng.normal(size=200)]).astype(float)
    y = {"a": (table[:, 0] % 3) * 2.0, "b": np.where(table[:, 1] > 0, "up", "down")}
    model = PolyleafMixed(
        {"a": "regression", "b": "binary"}, n_estimators=5, min_samples_leaf=5, categorical_features=[0]
    ).fit(table, y)
    assert len(model._forest.category_bits) > 0
    for k, stage in enumerate(model.staged_predict(table), start=1):
        predicted = model[:k].predict(table)
        np.testing.assert_array_equal(predicted["a"], stage["a"])
        np.testing.assert_array_equal(predicted["b"], stage["b"])
    np.testing.assert_array_equal(model[3:].apply(table), model.apply(table)[:, 3:])


def test_ends_are_those_of_a_list() -> None:
    model = fitted("regression")
    rounds = list(range(6))
    for ends in [
        (None, None),
        (None, -2),
        (-3, None),
        (1, 4),
        (-4, -1),
        (0, 99),
        (4, 2),
        (9, None),
        (None, 0),
    ]:
        assert model[slice(*ends)].n_estimators_ == len(rounds[slice(*ends)]), ends
    assert model[: np.int64(2) : 1].n_estimators_ == 2


@pytest.mark.parametrize(
    ("key", "error", "words"),
    [
        (0, TypeError, r"slices of rounds, such as model\[:100\]; got 0 of type int"),
        ("area", TypeError, "'area' of type str"),
        ((slice(2), 0), TypeError, "tuple"),
        (slice(0.5), TypeError, "0.5 of type float"),
        (slice(None, True), TypeError, "True"),
        (slice(None, None, 2), ValueError, "step 1; got 2"),
        (slice(None, None, -1), ValueError, "step 1; got -1"),
    ],
)
def test_other_keys_are_refused(key: Any, error: type[Exception], words: str) -> None:
    with pytest.raises(error, match=words):
        fitted("one target")[key]


def test_an_estimator_is_no_list() -> None:
    with pytest.raises(TypeError, match="slices of rounds"):
        list(fitted("one target"))
    with pytest.raises(NotFittedError):
        PolyleafRegressor()[:3]


def early_stopped() -> Any:
    case = CASES["regression"]
    model = case.make(n_estimators=40, early_stopping_rounds=4, learning_rate=0.9)
    return model.fit(X[:80], case.y[:80], eval_set=(X[80:], case.y[80:]))


def test_the_best_round_and_what_was_measured_are_cut() -> None:
    model = early_stopped()
    best, n = model.best_iteration_, model.n_estimators_
    assert 0 < best < n - 1
    values = model.evals_result_["validation_0"]["rmse"]
    for k in range(1, n + 1):
        part = model[:k]
        assert part.best_iteration_ == min(best, k - 1)
        assert part.evals_result_ == {"validation_0": {"rmse": values[:k]}}
        assert part.best_score_["validation_0"]["rmse"] == values[min(best, k - 1)]
    np.testing.assert_array_equal(model[:].predict(X), model.predict(X))
    assert model[1:].best_iteration_ == best - 1
    assert model[best + 1 :].best_iteration_ == n - best - 2
    assert model[1:].evals_result_ == {}
    assert model[:0].best_score_ == {"validation_0": {}}
    assert len(values) == n  # and the model is as it was


def test_gains_per_output_are_known_with_the_best_round_alone() -> None:
    model = early_stopped()
    gains = model.get_importance(per_output=True)
    for part in (model[:], model[: model.best_iteration_ + 1]):
        np.testing.assert_array_equal(part.get_importance(per_output=True), gains)
    for part in (model[: model.best_iteration_], model[1:]):
        with pytest.raises(ValueError, match="a slice without the best round"):
            part.get_importance(per_output=True)
        assert part.get_importance("split", per_output=True).sum() > 0
    forest = model._forest
    split = np.zeros(forest.n_features)
    for tree in range(2):
        nodes = slice(forest.node_begin[tree], forest.node_begin[tree + 1])
        np.add.at(split, forest.feature[nodes][forest.left[nodes] >= 0], 1)
    np.testing.assert_array_equal(model[:2].get_importance("split"), split)


@pytest.mark.parametrize("name", ["regression", "sampled", "one output a tree", "sparse leaves"])
def test_training_goes_on_from_a_slice(name: str) -> None:
    """The trees to come are those that were cut off."""
    case = CASES[name]
    whole = fitted(name)
    again = case.make(n_estimators=3).fit(X, case.y, case.weight, init_model=whole[:3])
    np.testing.assert_array_equal(again._raw(X, None), whole._raw(X, None))


def test_a_slice_is_a_copy() -> None:
    model = fitted("regression")
    before = model.predict(X)
    part = model[:3].set_params(n_jobs=2)
    part._forest.values[:] = 0
    part._forest.threshold[:] = 0
    np.testing.assert_array_equal(model.predict(X), before)
    assert model.n_jobs == 1
