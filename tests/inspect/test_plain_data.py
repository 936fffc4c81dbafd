"""``to_dict`` holds all that raw scores are made of: the documented walk over it gives them, bit for bit."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.exceptions import NotFittedError
from walking import walk_of_the_docs

from polyleaf import PolyleafMixed, PolyleafRegressor
from training_cases import CASES, X

raw_scores = walk_of_the_docs()


def walked(model: Any, rows: list[list[Any]], **options: Any) -> Any:
    """Raw scores by the walk of the docs, over data that have been through strict JSON."""
    data = json.loads(json.dumps(model.to_dict(**options), allow_nan=False))
    return np.array([raw_scores(data, row) for row in rows])


def in_order_of_y(model: Any, table: Any, n_rounds: int | None = None) -> Any:
    return model._coding.in_order_of_y(model._raw(table, n_rounds))


@pytest.mark.parametrize("name", CASES)
def test_a_walk_over_plain_data_gives_the_raw_scores(name: str) -> None:
    case = CASES[name]
    model = case.make(n_estimators=4).fit(X, case.y, case.weight)
    np.testing.assert_array_equal(walked(model, X.tolist()), in_order_of_y(model, X))
    np.testing.assert_array_equal(walked(model, X.tolist(), n_rounds=2), in_order_of_y(model, X, 2))


def mixed_table(n: int = 300) -> tuple[Any, Any]:
    rng = np.random.default_rng(3)
    table = pd.DataFrame(
        {
            "number": rng.normal(size=n),
            "colour": rng.choice(["red", "green", "blue", "grey"], size=n).astype(object),
            "code": rng.choice([3.0, 7.0, 11.5], size=n),
        }
    )
    table.loc[rng.random(n) < 0.2, "number"] = np.nan
    table.loc[rng.random(n) < 0.2, "colour"] = None
    bright = (table["colour"] == "red") | table["colour"].isna()
    targets = pd.DataFrame(
        {
            "size": table["code"] * 2 + 3 * bright,
            "kind": np.where(table["number"].isna(), "none", np.where(table["number"] > 0, "up", "down")),
            "late": (bright ^ (table["code"] > 5)).astype(int),
            "span": rng.normal(size=n) + bright,
        }
    )
    return table, targets


@pytest.mark.parametrize("strategy", ["multi_output_tree", "one_output_per_tree"])
def test_categories_missing_values_and_mixed_targets(strategy: str) -> None:
    table, targets = mixed_table()
    groups = {"size": "regression", "kind": "multiclass", "late": "binary", "span": "regression"}
    model = PolyleafMixed(
        groups,
        n_estimators=6,
        max_depth=4,
        min_samples_leaf=3,
        multi_strategy=strategy,
        categorical_features=["colour", "code"],
    ).fit(table, targets)
    data = model.to_dict()
    assert data["outputs"] == ["size", "kind=down", "kind=none", "kind=up", "late", "span"]
    assert data["features"][1]["categories"] == ["blue", "green", "grey", "red"]
    splits = [node for tree in data["trees"] for node in tree["nodes"] if "left" in node]
    assert {"left", "right"} == {node["missing"] for node in splits if "categories" in node}
    new = pd.concat(
        [table, pd.DataFrame({"number": [0.5, None], "colour": ["pink", "red"], "code": [7, 8.25]})],
        ignore_index=True,
    )
    rows = new.astype(object).where(new.notna(), None).to_numpy().tolist()
    np.testing.assert_array_equal(walked(model, rows), in_order_of_y(model, new))


def test_a_split_of_missing_values_from_all_others_is_json() -> None:
    x = np.array([[1.0], [2.0], [np.nan], [np.nan]] * 10)
    model = PolyleafRegressor(n_estimators=2, min_samples_leaf=1).fit(x, np.isnan(x[:, 0]).astype(float))
    assert model.to_dict()["trees"][0]["nodes"][0]["threshold"] == "inf"
    np.testing.assert_array_equal(walked(model, x.tolist())[:, 0], model.predict(x))


def test_rounds_after_the_best_one_are_left_out() -> None:
    case = CASES["regression"]
    model = case.make(n_estimators=30, early_stopping_rounds=3, learning_rate=0.9)
    model.fit(X[:80], case.y[:80], eval_set=(X[80:], case.y[80:]))
    assert model.best_iteration_ + 1 < model.n_estimators_
    assert len(model.to_dict()["trees"]) == model.best_iteration_ + 1
    assert len(model.to_dict(n_rounds=model.n_estimators_)["trees"]) == model.n_estimators_
    np.testing.assert_array_equal(walked(model, X.tolist()), model.predict(X))


def test_forests_of_roots_and_of_no_trees() -> None:
    x = np.zeros((30, 1))
    roots = PolyleafRegressor(n_estimators=3).fit(x, np.arange(30.0))
    assert [len(tree["nodes"]) for tree in roots.to_dict()["trees"]] == [1, 1, 1]
    np.testing.assert_array_equal(walked(roots, x.tolist())[:, 0], roots.predict(x))
    none = roots[:0].to_dict()
    assert none["trees"] == []
    assert raw_scores(none, [0.0]) == none["base_score"]


def test_bad_input_is_named() -> None:
    with pytest.raises(NotFittedError):
        PolyleafRegressor().to_dict()
    model = PolyleafRegressor(n_estimators=2).fit(np.zeros((30, 1)), np.arange(30.0))
    with pytest.raises(ValueError, match="n_rounds"):
        model.to_dict(n_rounds=3)
