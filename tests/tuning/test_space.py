"""What is searched: places stand for values, values for places, and a wrong space is refused by name."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.stats

from polyleaf import PolyleafClassifier, PolyleafRegressor, tune
from polyleaf.params.combinations import Refused
from polyleaf.tuning.dimensions import Drawn, Range, Values
from polyleaf.tuning.space import asked_space

pytestmark = pytest.mark.cpu_only("what is tried is chosen on the host")

X = np.random.default_rng(0).normal(size=(60, 3))
Y = X[:, :2] + 1
SMALL = {"n_estimators": 2, "min_samples_leaf": 2, "n_jobs": 1}
PLACES = np.linspace(0, 1, 201)[:-1]


@pytest.mark.parametrize(
    "dimension",
    [
        Range("reg_lambda", 0.01, 30.0, log=True),
        Range("subsample", 0.5, 1.0),
        Range("max_depth", 2, 9, whole=True),
        Range("min_samples_leaf", 1, 100, log=True, whole=True),
        Drawn("learning_rate", scipy.stats.loguniform(0.01, 0.5)),
        Values(("sketch",), tuple({"sketch": one} for one in (None, "auto", "top_outputs"))),
    ],
    ids=lambda one: one.names[0],
)
def test_a_place_of_a_value_is_a_place_of_this_value(dimension: Any) -> None:
    (name,) = dimension.names
    values = [dimension.at(float(place))[name] for place in PLACES]
    if dimension.ordered:
        assert values == sorted(values)
    for value in values:
        place = dimension.place_of({name: value})
        assert place is not None
        assert 0 <= place < 1
        there = dimension.at(place)[name]
        assert there == (pytest.approx(value, rel=0.01) if isinstance(value, float) else value)


def test_both_ends_of_a_range_are_reached() -> None:
    last = float(np.nextafter(1, 0))
    for dimension in (
        Range("max_depth", 2, 9, whole=True),
        Range("min_samples_leaf", 1, 100, log=True, whole=True),
        Range("subsample", 0.5, 1.0),
    ):
        assert dimension.at(0.0)[dimension.name] == dimension.low
        assert dimension.at(last)[dimension.name] == dimension.high
    shares = [Range("max_depth", 2, 4, whole=True).at(float(place))["max_depth"] for place in PLACES]
    assert min(shares.count(depth) for depth in (2, 3, 4)) >= 60


def test_what_is_not_in_a_range_has_no_place() -> None:
    for value in (None, "auto", 1, 10, True):
        assert Range("max_depth", 2, 9, whole=True).place_of({"max_depth": value}) is None
    assert Drawn("reg_lambda", scipy.stats.uniform(1, 2)).place_of({"reg_lambda": 5.0}) is None
    assert Values(("sketch",), ({"sketch": None},)).place_of({"sketch": "auto"}) is None


def test_lists_ranges_and_distributions() -> None:
    space = {
        "max_depth": (2, 5),
        "learning_rate": (0.05, 0.5, "log"),
        "min_samples_leaf": scipy.stats.randint(1, 10),
        "reg_lambda": scipy.stats.loguniform(0.1, 10),
        "subsample": [0.5, 1.0],
        "output_weight": [None, [1.0, 2.0]],
        "colsample_bynode": np.array([0.5, 1.0]),
    }
    result = tune(PolyleafRegressor(**SMALL), X, Y, n_trials=12, space=space)
    for trial in result.trials[1:]:
        params = trial.params
        assert type(params["max_depth"]) is type(params["min_samples_leaf"]) is int
        assert 0.05 <= params["learning_rate"] <= 0.5
    assert len({repr(one.params) for one in result.trials}) == 12
    assert {repr(one.params["output_weight"]) for one in result.trials} == {"None", "[1.0, 2.0]"}


@pytest.mark.parametrize(
    ("space", "error", "words"),
    [
        ({}, ValueError, "space is empty"),
        ([("max_depth", [3])], TypeError, "space must be a dict"),
        (
            {"num_leaves": [3]},
            ValueError,
            "space: 'num_leaves' is not a parameter .* did you mean `max_leaves`",
        ),
        ({"max_dept": [3]}, ValueError, "did you mean `max_depth`"),
        ({3: [3]}, ValueError, "space: '3' is not a parameter"),
        ({"softmax_curvature": ["abs(p-y)"]}, ValueError, "not a parameter of the regressor, but of"),
        (
            {"max_bins": [15, 255]},
            ValueError,
            "'max_bins' is not searched: all trials share one binned table",
        ),
        ({"n_estimators": (10, 100)}, ValueError, "'n_estimators' is not searched: tune.. finds the number"),
        ({"objective": ["huber"]}, ValueError, "'objective' is not searched: scores would not be comparable"),
        ({"n_bags": [1, 3]}, ValueError, "'n_bags' is not searched: trials measure single models"),
        ({"random_state": [1, 2]}, ValueError, "'random_state' is not searched: it makes no model better"),
        ({"max_depth": []}, ValueError, r"space\['max_depth'\] is empty"),
        ({"max_depth": [3, 0]}, ValueError, r"space\['max_depth'\]\[1\] must be"),
        ({"max_depth": [3, 2.5]}, TypeError, r"space\['max_depth'\]\[1\] must be int"),
        ({"max_depth": 3}, TypeError, r"space\['max_depth'\] must be a list of values, a range .* got 3"),
        ({"sketch": ("auto", None)}, TypeError, r"space\['sketch'\] must be a list of values"),
        ({"max_depth": (3, 2)}, ValueError, "low must be below high; got 3 and 2"),
        ({"max_depth": (3, 3)}, ValueError, "low must be below high"),
        ({"max_depth": (2.0, 5.0)}, TypeError, r"space\['max_depth'\]\[0\] must be int"),
        ({"subsample": (0.5, 1.5)}, ValueError, r"space\['subsample'\]\[1\] must be"),
        ({"reg_lambda": (0.0, 1.0, "log")}, ValueError, "low must be above 0 for 'log'"),
        ({"reg_lambda": (0.1, 1.0, "linear")}, ValueError, "can only be 'log'; got 'linear'"),
        ({"reg_lambda": (0.1, float("inf"))}, ValueError, r"space\['reg_lambda'\]\[1\] must be a finite"),
        ({"subsample": scipy.stats.norm(0.5, 1)}, ValueError, r"space\['subsample'\] at its quantile 0.001"),
        ({"max_depth": scipy.stats.uniform(1, 5)}, TypeError, r"space\['max_depth'\] at its quantile"),
    ],
)
def test_a_wrong_space_is_refused_before_any_work(space: Any, error: type[Exception], words: str) -> None:
    called = []
    model = PolyleafRegressor(**SMALL, callbacks=[called.append])
    with pytest.raises(error, match=words):
        tune(model, X, Y, n_trials=3, space=space)
    assert not called


def test_the_space_of_labels_is_not_searched() -> None:
    with pytest.raises(ValueError, match="'label_space' is not searched: scores would not be comparable"):
        tune(PolyleafClassifier(), X, Y > 0, n_trials=3, space={"label_space": [None, "hashed"]})


def test_a_space_in_which_nothing_goes_together_is_refused_before_any_work() -> None:
    called: list[Any] = []
    model = PolyleafClassifier(**SMALL, hessian="exact", callbacks=[called.append])
    with pytest.raises(Refused, match="sketch='top_outputs' does not go with hessian='exact'"):
        tune(model, X, X.argmax(axis=1), n_trials=3, space={"sketch": ["top_outputs"]})
    assert not called


def test_settings_that_do_not_go_together_are_left_out() -> None:
    space = {"sketch": [None, "top_outputs"], "multi_strategy": ["multi_output_tree", "one_output_per_tree"]}
    result = tune(PolyleafRegressor(**SMALL), X, Y, n_trials=50, space=space)
    tried = {tuple(one.params.values()) for one in result.trials[1:]}
    ((why, n_left_out),) = result.left_out.items()
    assert n_left_out == 1
    assert f"1 setting was left out: {why}\n" in str(result)
    assert "sketch='top_outputs' does not go with" in why
    assert tried == {
        (None, "multi_output_tree"),
        (None, "one_output_per_tree"),
        ("top_outputs", "multi_output_tree"),
    }
    space = {"max_depth": [None], "max_leaves": [4, 8]}  # neither goes alone with the estimator's own
    assert len(tune(PolyleafRegressor(**SMALL), X, Y, n_trials=50, space=space).trials) == 3


def test_integers_are_told_by_what_the_parameter_takes() -> None:
    (depth, leaf, rate) = asked_space(
        {"max_depth": (1, 2), "min_samples_leaf": scipy.stats.randint(1, 5), "learning_rate": (1, 2)},
        "regressor",
    )
    assert depth.at(0.9) == {"max_depth": 2}
    assert isinstance(leaf.at(0.5)["min_samples_leaf"], int)
    assert rate.at(0.25) == {"learning_rate": 1.25}
