"""``get_leaf`` gives the meaning of what ``apply`` returns."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest

from polyleaf import PolyleafMixed, PolyleafRegressor
from training_cases import CASES, X


def holds(condition: Any, value: Any) -> bool:
    """Whether a cell fulfils a condition, by its public fields."""
    if pd.isna(value):
        return bool(condition.missing)
    if condition.categories is not None:
        return value in condition.categories
    return bool((value <= condition.threshold) == (condition.side == "left"))


@pytest.mark.parametrize(("with_missing", "side"), [(0.0, "right"), (-2.0, "left")])
def test_rows_of_a_leaf_fulfil_its_path_and_no_others(with_missing: float, side: str) -> None:
    rng = np.random.default_rng(0)
    table = pd.DataFrame({"area": rng.normal(size=200), "heating": rng.choice(["gas", "oil", "pump"], 200)})
    table.loc[:30, "area"] = np.nan
    table.loc[150:170, "heating"] = None
    y = pd.DataFrame({"a": table["area"].fillna(2.0), "b": -2.0 * (table["heating"] == "oil")})
    y.loc[table["heating"].isna(), "b"] = with_missing
    model = PolyleafRegressor(
        n_estimators=3, max_depth=4, min_samples_leaf=4, categorical_features="auto"
    ).fit(table, y)
    reached = model.apply(table)
    met = set()
    for tree in range(3):
        for node in np.unique(reached[:, tree]):
            leaf = model.get_leaf(tree, node)
            inside = [all(holds(one, row[one.feature]) for one in leaf.path) for _, row in table.iterrows()]
            np.testing.assert_array_equal(inside, reached[:, tree] == node)
            assert (leaf.tree, leaf.round, leaf.node) == (tree, tree, node)
            assert leaf.count == sum(inside) == leaf.cover
            met |= {(one.feature, one.side, one.missing) for one in leaf.path}
    # Missing values on either side of splits by categories, and some splits by numbers.
    other = {"left": "right", "right": "left"}[side]
    assert met >= {("heating", side, True), ("heating", other, False)}
    assert {missing for feature, _, missing in met if feature == "area"} == {True, False}


@pytest.mark.parametrize(
    "name", ["regression", "one output a tree", "sparse leaves", "classes", "two classes", "sparse labels"]
)
def test_values_add_up_to_the_raw_score(name: str) -> None:
    case = CASES[name]
    model = case.make(n_estimators=4).fit(X, case.y, case.weight)
    names = model.to_dict()["outputs"]
    for row, leaves in enumerate(model.apply(X[:5])):
        sums = dict(zip(names, model._forest.base_score.tolist(), strict=True))
        for tree, node in enumerate(leaves):
            for output, value in model.get_leaf(tree, node).values.items():
                sums[output] += value
        np.testing.assert_array_equal([*sums.values()], model._raw(X[row : row + 1], None)[0])


def test_it_reads_as_a_line() -> None:
    x = np.array([[1.0], [2.0], [np.nan], [np.nan]] * 10)
    y = pd.Series(np.isnan(x[:, 0]).astype(float), name="gone")
    model = PolyleafRegressor(n_estimators=1, learning_rate=1.0, reg_lambda=0.0, min_samples_leaf=1).fit(x, y)
    there, gone = model.apply(np.array([[1.0], [np.nan]]))[:, 0]
    assert str(model.get_leaf(0, gone)) == f"tree 0, leaf {gone} (20 rows): x0 is missing -> gone: +0.5"
    assert str(model.get_leaf(0, there).path[0]) == "x0 is not missing"
    text = pd.DataFrame({"fuel": ["gas", None] * 20})
    by_category = PolyleafRegressor(n_estimators=1, min_samples_leaf=1, categorical_features="auto")
    by_category.fit(text, text["fuel"].isna().astype(float))
    conditions = {str(by_category.get_leaf(0, node).path[0]) for node in by_category.apply(text)[:2, 0]}
    assert conditions == {"fuel in {'gas'}", "fuel is missing"}
    root = PolyleafRegressor(n_estimators=1).fit(np.zeros((30, 1)), np.arange(30.0)).get_leaf(0, 0)
    assert root.path == ()
    assert "all rows" in str(root)


def test_conditions_are_plain_data() -> None:
    case = CASES["regression"]
    model = case.make(n_estimators=1).fit(X, case.y)
    path = model.get_leaf(0, model.apply(X)[0, 0]).path
    assert path
    assert [type(condition.missing) for condition in path] == [bool] * len(path)


def test_outputs_of_the_same_name_are_told_apart() -> None:
    x = np.linspace(0, 1, 90)[:, np.newaxis]
    y = {"kind": np.repeat(["a", "b", "c"], 30), "kind=b": x[:, 0]}
    model = PolyleafMixed({"kind": "multiclass", "kind=b": "regression"}, n_estimators=2).fit(x, y)
    names = ["kind=a", "kind=b (1)", "kind=c", "kind=b (3)"]
    assert list(model.get_leaf(0, model.apply(x)[0, 0]).values) == names
    assert model.to_dict()["outputs"] == names
    assert [name for name in model.to_frame().columns if "value" in name] == [f"value_{one}" for one in names]


@pytest.mark.parametrize(
    ("tree", "node", "error", "words"),
    [
        (2, 0, ValueError, "no tree 2: the model has 2"),
        (0, 99, ValueError, "no node 99 in tree 0"),
        (0, 0, ValueError, "node 0 of tree 0 is a split; its leaves are the nodes "),
        (-1, 0, ValueError, "tree"),
        (0, 1.0, TypeError, "node"),
        (True, 1, TypeError, "tree"),
        ("a", 1, TypeError, "tree"),
    ],
)
def test_bad_input_is_named(tree: Any, node: Any, error: type[Exception], words: str) -> None:
    case = CASES["regression"]
    model = case.make(n_estimators=2).fit(X, case.y)
    with pytest.raises(error, match=words):
        model.get_leaf(tree, node)
    with pytest.raises(ValueError, match="the model has 0"):
        model[:0].get_leaf(0, 0)
