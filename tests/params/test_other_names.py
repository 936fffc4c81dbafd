"""Names of other libraries and misspelt ones get the parameter that is meant, wherever they are given."""

import inspect

import pytest
from sklearn.base import clone
from sklearn.pipeline import make_pipeline

from polyleaf import PolyleafClassifier, PolyleafMixed, PolyleafRegressor
from polyleaf.params.other_names import _OTHERS, meant_by
from polyleaf.params.table import PARAMETERS, parameters_of

pytestmark = pytest.mark.python_only("names of parameters")

MEANT = {
    "num_leaves": "max_leaves",
    "lambda_l2": "reg_lambda",
    "lambda": "reg_lambda",
    "eta": "learning_rate",
    "n_rounds": "n_estimators",
    "iterations": "n_estimators",
    "num_boost_round": "n_estimators",
    "max_iter": "n_estimators",
    "depth": "max_depth",
    "l2_leaf_reg": "reg_lambda",
    "min_child_samples": "min_samples_leaf",
    "feature_fraction": "colsample_bytree",
    "bagging_fraction": "subsample",
    "colsample": "colsample_bytree",
    "max_bin": "max_bins",
    "cat_features": "categorical_features",
    "learning_rte": "learning_rate",
    "Max_Depth": "max_depth",
    "num_leavs": "max_leaves",
}


@pytest.mark.parametrize("cls", [PolyleafRegressor, PolyleafClassifier, PolyleafMixed])
@pytest.mark.parametrize(("name", "meant"), MEANT.items())
def test_unknown_names_say_what_is_meant(cls, name, meant):
    words = f"{cls.__name__}.*{name!r} is not a parameter of .*; did you mean `{meant}`\\?"
    with pytest.raises(TypeError, match=words):
        cls(**{name: 1})
    model = cls()
    with pytest.raises(ValueError, match=words):
        model.set_params(max_depth=3, **{name: 1})
    assert model.max_depth == cls().max_depth
    with pytest.raises(ValueError, match=words):
        make_pipeline(model).set_params(**{f"{cls.__name__.lower()}__{name}": 1})


def test_names_that_mean_nothing_get_the_list():
    with pytest.raises(TypeError, match=r"'foo' is not a parameter of .*; allowed are n_est"):
        PolyleafRegressor(foo=1)
    with pytest.raises(ValueError, match="'foo' is not a parameter of the mixed; allowed are "):
        PolyleafMixed().set_params(foo=1)
    with pytest.raises(ValueError, match="'foo__bar'"):
        PolyleafMixed().set_params(foo__bar=1)


def test_parameters_of_another_estimator_say_whose_they_are():
    with pytest.raises(TypeError, match="not a parameter of the regressor, but of the classifier"):
        PolyleafRegressor(class_weight="balanced")
    with pytest.raises(ValueError, match=r"but of the classifier and PolyleafMixed\.$"):
        PolyleafRegressor().set_params(class_weight="balanced")
    with pytest.raises(TypeError, match=r"but of the regressor and PolyleafMixed\.$"):
        PolyleafClassifier(scale_targets=False)


def test_parameters_of_a_loss_are_for_the_groups_of_a_mixed_model():
    with pytest.raises(
        TypeError, match=r"each group of targets: .* targets=\{'price': \{'objective': \.\.\.\}\}"
    ):
        PolyleafMixed(objective="huber")
    with pytest.raises(
        ValueError, match=r"targets=\{'price': \{'objective': \.\.\., 'huber_delta': \.\.\.\}\}"
    ):
        PolyleafMixed().set_params(huber_delta=2.0)


def test_the_list_of_other_names_is_sound():
    own = {row.name for row in PARAMETERS}
    others = [other for names in _OTHERS.values() for other in names.split()]
    assert set(_OTHERS) <= own
    assert len(set(others)) == len(others)
    assert own.isdisjoint(others)
    assert meant_by("class_weights", parameters_of("regressor")) is None


def test_the_constructor_keeps_its_signature():
    model = PolyleafRegressor(7, max_depth=3)
    assert list(inspect.signature(PolyleafRegressor).parameters) == list(parameters_of("regressor"))
    assert clone(model).get_params() == model.get_params()
    assert model.set_params(n_estimators=8) is model
    assert model.n_estimators == 8
