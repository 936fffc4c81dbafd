"""The one table of parameters: what it refuses, and that signatures and docstrings agree with it."""

import inspect
from fractions import Fraction

import numpy as np
import pytest

from polyleaf import PolyleafClassifier, PolyleafRegressor
from polyleaf.metrics.table import _METRICS
from polyleaf.params.documented import parameters_section
from polyleaf.params.resolution import base_score_vector
from polyleaf.params.table import METRICS, parameters_of
from polyleaf.params.validation import validate_params
from polyleaf.params.wording import shown

ESTIMATORS = {"regressor": PolyleafRegressor, "classifier": PolyleafClassifier}
KINDS = tuple(ESTIMATORS)


def quadratic(y, raw):
    return raw - y, np.ones_like(raw)


@pytest.mark.cpu_only("--device changes a default")
@pytest.mark.parametrize("kind", KINDS)
def test_signature_equals_table(kind):
    """The names, their order and the defaults of __init__ are those of the table."""
    signature = inspect.signature(ESTIMATORS[kind].__init__).parameters
    in_code = {name: parameter.default for name, parameter in signature.items() if name != "self"}
    in_table = {name: row.default for name, row in parameters_of(kind).items()}
    assert list(in_code) == list(in_table)
    assert in_code == in_table
    for name in in_code:
        assert type(in_code[name]) is type(in_table[name])


@pytest.mark.parametrize("kind", KINDS)
def test_defaults_are_valid(kind):
    validate_params(ESTIMATORS[kind]().get_params(), kind)


@pytest.mark.parametrize("kind", KINDS)
def test_docstring_documents_every_parameter(kind):
    """The docstring holds the section made from the table, each parameter with its range and default."""
    doc = inspect.getdoc(ESTIMATORS[kind])
    assert "{parameters}" not in doc
    assert parameters_section(kind) in doc
    for name, row in parameters_of(kind).items():
        assert f"\n{name} : {row.rule.allowed}, default=" in doc
        assert len(row.meaning) > 20


def test_metric_names_of_table_are_those_implemented():
    assert set(METRICS["regressor"]) == set(_METRICS["regression"])
    assert set(METRICS["classifier"]) == set().union(
        _METRICS["multiclass"], _METRICS["binary"], _METRICS["multilabel"]
    )


COUNTS = ["n_estimators", "min_samples_leaf", "max_bins", "max_depth", "max_leaves", "early_stopping_rounds"]
NON_NEGATIVE = ["reg_lambda", "reg_alpha", "min_split_gain", "min_child_weight"]
SHARES = ["subsample", "colsample_bytree"]

BAD = [
    *(
        (name, value, TypeError)
        for name in COUNTS
        for value in (True, np.True_, 3.0, "3", [3], np.array(3.0))
    ),
    *((name, value, ValueError) for name in COUNTS for value in (0, -1, np.int64(-3), 2**31, 10**30)),
    *((name, value, TypeError) for name in NON_NEGATIVE for value in (True, None, "1", [1.0], 1j)),
    *((name, value, ValueError) for name in NON_NEGATIVE for value in (-1e-9, np.nan, np.inf, 10**400)),
    *((name, value, TypeError) for name in SHARES for value in (True, None, "half")),
    *((name, value, ValueError) for name in SHARES for value in (0, 0.0, 1.0001, 2, -0.5, np.nan)),
    ("n_estimators", None, TypeError),
    ("min_samples_leaf", None, TypeError),
    ("max_bins", 1, ValueError),
    ("max_bins", 65535, ValueError),
    ("max_leaves", 1, ValueError),
    ("learning_rate", 0.0, ValueError),
    ("learning_rate", np.inf, ValueError),
    ("learning_rate", "fast", TypeError),
    ("objective", "squared-error", ValueError),
    ("objective", 3, TypeError),
    ("base_score", "zero", TypeError),
    ("base_score", np.nan, ValueError),
    ("base_score", [0.0, np.inf], ValueError),
    ("base_score", [[0.0], [1.0]], ValueError),
    ("base_score", [], ValueError),
    ("base_score", ["a"], TypeError),
    ("base_score", [0.0, True], TypeError),
    ("multi_strategy", "both", ValueError),
    ("multi_strategy", None, TypeError),
    ("eval_metric", "aucpr", ValueError),
    ("eval_metric", [], ValueError),
    ("eval_metric", [None], TypeError),
    ("eval_metric", 1, TypeError),
    ("histogram_precision", "half", ValueError),
    ("histogram_precision", None, TypeError),
    ("histogram_precision", 20, TypeError),
    ("importance_type", "weight", ValueError),
    ("importance_type", None, TypeError),
    ("n_jobs", 0, ValueError),
    ("n_jobs", 1.0, TypeError),
    ("n_jobs", True, TypeError),
    ("random_state", -1, ValueError),
    ("random_state", 2**32, ValueError),
    ("random_state", "seed", TypeError),
    ("verbose", -1, ValueError),
    ("verbose", 0.5, TypeError),
    ("verbose", None, TypeError),
]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(("name", "value", "error"), BAD)
def test_bad_value_is_named(kind, name, value, error):
    """The message has the parameter's name, the value, and what is allowed."""
    with pytest.raises(error) as caught:
        validate_params({**ESTIMATORS[kind]().get_params(), name: value}, kind)
    message = str(caught.value)
    assert name in message
    assert "must be" in message
    if not isinstance(value, list):
        assert shown(value) in message


@pytest.mark.parametrize(("name", "value"), [("softmax_curvature", "p"), ("softmax_curvature", None)])
def test_bad_value_of_the_classifier(name, value):
    with pytest.raises((TypeError, ValueError), match=name):
        validate_params({name: value}, "classifier")


@pytest.mark.parametrize("value", [1, None, "yes", np.array(True)])
def test_bad_scale_targets(value):
    with pytest.raises(TypeError, match="scale_targets"):
        validate_params({"scale_targets": value}, "regressor")


@pytest.mark.parametrize("value", [1, None, "yes", np.array(True)])
def test_bad_bounded_influence(value):
    with pytest.raises(TypeError, match='bounded_influence must be bool or "auto"'):
        validate_params({"bounded_influence": value}, "regressor")


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("n_estimators", np.int32(5)),
        ("n_estimators", np.uint8(5)),
        ("learning_rate", 1),
        ("learning_rate", np.float32(0.5)),
        ("reg_lambda", Fraction(1, 3)),
        ("max_depth", None),
        ("max_bins", 65534),
        ("subsample", 1),
        ("base_score", 0),
        ("base_score", (0.0, 1, np.float32(2))),
        ("base_score", np.arange(3)),
        ("objective", quadratic),
        ("eval_metric", quadratic),
        ("eval_metric", [quadratic]),
        ("n_jobs", -1),
        ("random_state", np.random.RandomState(0)),
        ("random_state", np.int64(3)),
        ("verbose", True),
        ("verbose", 10),
    ],
)
def test_good_value_passes(kind, name, value):
    params = {**ESTIMATORS[kind]().get_params(), "max_leaves": 31, name: value}
    validate_params(params, kind)


@pytest.mark.parametrize("kind", KINDS)
def test_unbounded_trees_are_refused(kind):
    with pytest.raises(ValueError, match="max_depth and max_leaves"):
        validate_params({"max_depth": None, "max_leaves": None}, kind)


def test_unknown_name_is_refused():
    with pytest.raises(ValueError, match="'n_trees' is not a parameter"):
        validate_params({"n_trees": 3}, "regressor")
    with pytest.raises(TypeError, match="n_trees"):
        PolyleafRegressor(n_trees=3)
    with pytest.raises(ValueError, match="n_trees"):
        PolyleafRegressor().set_params(n_trees=3)


def test_parameter_of_the_other_estimator_is_unknown():
    with pytest.raises(ValueError, match="scale_targets"):
        validate_params({"scale_targets": True}, "classifier")
    with pytest.raises(ValueError, match="softmax_curvature"):
        validate_params({"softmax_curvature": "p(1-p)"}, "regressor")


def test_base_score_is_spread_over_the_outputs():
    assert base_score_vector(None, 3) is None
    np.testing.assert_array_equal(base_score_vector(2, 3), [2.0, 2.0, 2.0])
    vector = base_score_vector([1, 2.5], 2)
    np.testing.assert_array_equal(vector, [1.0, 2.5])
    assert vector.dtype == np.float64
    with pytest.raises(ValueError, match=r"base_score has 2 values, but the model has 3 output"):
        base_score_vector([1, 2], 3)
