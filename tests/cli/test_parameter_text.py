"""Parameters as text come back as what Python would have been given, for every row of the table."""

from __future__ import annotations

from typing import Any, get_args

import pytest

from polyleaf.cli.failures import UsageError
from polyleaf.cli.parameter_text import read_parameters, read_value, split_assignments
from polyleaf.params.rules import Callbacks
from polyleaf.params.table import PARAMETERS, EstimatorKind, Parameter, parameters_of

pytestmark = [
    pytest.mark.cpu_only("reads text"),
    pytest.mark.python_only("reads text"),
]


@pytest.mark.parametrize("row", PARAMETERS, ids=lambda row: row.name)
def test_defaults_are_read_back(row: Parameter) -> None:
    read = read_value(row, str(row.default))
    assert read == row.default
    assert type(read) is type(row.default)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("learning_rate=1", 1),
        ("learning_rate=1e-2", 0.01),
        ("max_depth=NONE", None),
        ("warm_start=True", True),
        ("verbose=true", True),
        ("objective=quantile", "quantile"),
        ("quantile_levels=0.1, 0.9", [0.1, 0.9]),
        ("quantile_levels=[0.1]", [0.1]),
        ("base_score=2.5", 2.5),
        ("eval_metric=rmse,mae", ["rmse", "mae"]),
        ("eval_metric=rmse", "rmse"),
        ('monotone_constraints={"age": -1}', {"age": -1}),
        ("monotone_constraints=1,0,-1", [1, 0, -1]),
        ('interaction_constraints=[["a", "b"], ["c"]]', [["a", "b"], ["c"]]),
        ("categorical_features=auto", "auto"),
        ("categorical_features=a,b", ["a", "b"]),
        ("n_jobs=-1", -1),
    ],
)
def test_values(text: str, value: Any) -> None:
    found = read_parameters(split_assignments([text]), "regressor")
    (read,) = found.values()
    assert read == value
    assert type(read) is type(value)


@pytest.mark.parametrize("kind", get_args(EstimatorKind))
def test_wrong_values_name_the_parameter_and_what_is_allowed(kind: EstimatorKind) -> None:
    for name, row in parameters_of(kind).items():
        if isinstance(row.rule, Callbacks):
            continue
        with pytest.raises(UsageError, match=name):
            read_parameters({name: "no such value"}, kind)


def test_values_of_a_file_are_taken_as_they_are() -> None:
    assert read_parameters({"max_depth": 3, "eval_metric": ["mae"]}, "regressor") == {
        "max_depth": 3,
        "eval_metric": ["mae"],
    }
    with pytest.raises(UsageError, match="max_depth must be int"):
        read_parameters({"max_depth": 3.5}, "regressor")


def test_names_are_given_once() -> None:
    with pytest.raises(UsageError, match="max_depth is given twice"):
        split_assignments(["max_depth=1", " max_depth=2"])
