"""``to_frame`` has a row for each node, and says of it what the forest's arrays say, with names."""

from __future__ import annotations

import importlib
from typing import Any

import numpy as np
import pandas as pd
import pytest

from polyleaf import PolyleafRegressor
from polyleaf.inspect import frames
from training_cases import CASES, X


@pytest.fixture(params=["pandas", "polars"])
def library(request: pytest.FixtureRequest) -> str:
    """The name of a library of frames that is installed."""
    name: str = request.param
    pytest.importorskip(name)
    return name


def fitted(name: str, **params: Any) -> Any:
    case = CASES[name]
    return case.make(n_estimators=4, **params).fit(X, case.y, case.weight)


@pytest.fixture(scope="module")
def houses() -> Any:
    rng = np.random.default_rng(0)
    table = pd.DataFrame(
        {"area": rng.normal(size=200), "heating": rng.choice(["gas", "oil", "pump"], size=200)}
    )
    table.loc[:20, "area"] = np.nan
    y = pd.DataFrame({"price": table["area"].fillna(3.0), "energy": (table["heating"] == "oil") * 2.0})
    return PolyleafRegressor(n_estimators=4, max_depth=3, categorical_features="auto").fit(table, y), table


@pytest.mark.parametrize("name", ["regression", "one output a tree", "sparse leaves", "classes", "weights"])
def test_nodes_are_those_of_the_forest(name: str, library: str) -> None:
    model = fitted(name)
    forest = model._forest
    frame = model.to_frame(library=library)
    assert len(frame) == len(forest.left)
    inner = forest.left >= 0
    for column in ("cover", "count"):
        np.testing.assert_array_equal(frame[column].to_numpy(), getattr(forest, column))
    for column, array in {"gain": forest.gain, "threshold": forest.threshold, "left": forest.left}.items():
        np.testing.assert_array_equal(frame[column].to_numpy()[inner].astype(float), array[inner])
    gaps = frame["feature"].isna() if library == "pandas" else frame["feature"].is_null()
    np.testing.assert_array_equal(gaps.to_numpy(), ~inner)
    asked = [f"x{feature}" for feature in forest.feature[inner]]
    assert [one for one in frame["feature"].to_list() if isinstance(one, str)] == asked
    assert frame["round"].to_list() == [int(t) // forest.trees_per_round for t in frame["tree"].to_list()]


@pytest.mark.parametrize(
    "name", ["regression", "one output a tree", "sparse leaves", "huge and tiny targets"]
)
def test_values_of_reached_leaves_add_up_to_the_raw_score(name: str) -> None:
    model = fitted(name)
    frame = model.to_frame().set_index(["tree", "node"])
    lists = model.to_frame(values="list").set_index(["tree", "node"])
    names = model.to_dict()["outputs"]
    for leaves, raw in zip(model.apply(X)[:10], model._raw(X[:10], None), strict=True):
        sums = model._forest.base_score.copy()
        from_lists = dict(zip(names, sums.tolist(), strict=True))
        for place in enumerate(leaves.tolist()):
            sums += frame.loc[place, [f"value_{one}" for one in names]].fillna(0).to_numpy(dtype=float)
            for output, value in zip(lists.loc[place, "outputs"], lists.loc[place, "values"], strict=True):
                from_lists[output] += value
        np.testing.assert_array_equal(sums, raw)
        np.testing.assert_array_equal(list(from_lists.values()), raw)


def test_parents_and_depths_agree_with_children(houses: Any) -> None:
    frame = houses[0].to_frame().set_index(["tree", "node"])
    roots = frame[frame["parent"].isna()]
    assert (roots["depth"] == 0).all()
    assert roots.index.get_level_values("node").tolist() == [0, 0, 0, 0]
    for (tree, node), row in frame[frame["left"].notna()].iterrows():
        for side in ("left", "right"):
            child = frame.loc[(tree, row[side])]
            assert (child["parent"], child["depth"]) == (node, row["depth"] + 1)
        assert (
            frame.loc[(tree, row["left"]), "count"] + frame.loc[(tree, row["right"]), "count"] == row["count"]
        )


def test_names_of_features_categories_and_outputs(houses: Any, library: str) -> None:
    model, table = houses
    frame = model.to_frame(library=library)
    frame = frame if library == "pandas" else pd.DataFrame(frame.to_dict(as_series=False))
    assert {*frame["feature"].dropna()} == {"area", "heating"}
    by_category = frame[frame["feature"] == "heating"]
    assert by_category["threshold"].isna().all()
    assert all({*one} < {"gas", "oil", "pump"} and len(one) > 0 for one in by_category["categories"])
    # What a root says of the sides of its rows is what its children count.
    for _, root in frame[frame["depth"] == 0].iterrows():
        column = table[root["feature"]]
        left = (
            column.isin(root["categories"]) if root["feature"] == "heating" else column <= root["threshold"]
        )
        left = left | (column.isna() & (root["missing"] == "left"))
        child = frame[(frame["tree"] == root["tree"]) & (frame["node"] == root["left"])]
        assert child["count"].item() == left.sum()
    assert [name for name in frame.columns if name.startswith("value_")] == ["value_price", "value_energy"]


def test_chosen_outputs(houses: Any) -> None:
    model = houses[0]
    whole = model.to_frame()
    assert model.to_frame(outputs=["energy"]).equals(whole.drop(columns="value_price"))
    assert model.to_frame(outputs="energy").equals(whole.drop(columns="value_price"))
    assert model.to_frame(outputs=[1, 0]).columns[-2:].tolist() == ["value_energy", "value_price"]
    lists = model.to_frame(values="list", outputs=["energy"]).dropna(subset="values")
    assert {tuple(one) for one in lists["outputs"]} == {("energy",)}
    np.testing.assert_array_equal(np.concatenate(lists["values"].tolist()), whole["value_energy"].dropna())


@pytest.mark.parametrize("values", ["columns", "list"])
def test_forests_of_roots_and_of_no_trees(library: str, values: str) -> None:
    model = PolyleafRegressor(n_estimators=3).fit(np.zeros((30, 2)), np.arange(30.0))
    frame = model.to_frame(library=library, values=values)
    assert frame["node"].to_list() == [0, 0, 0]
    none = model[:0].to_frame(library=library, values=values)
    assert len(none) == 0
    assert list(none.columns) == list(frame.columns)


@pytest.mark.parametrize(
    ("options", "error", "words"),
    [
        ({"library": "arrow"}, ValueError, "library"),
        ({"values": "wide"}, ValueError, "values"),
        ({"outputs": ["rent"]}, ValueError, "no output 'rent'; there are 'price', 'energy'"),
        ({"outputs": [2]}, ValueError, "no output 2; the model has 2"),
        ({"outputs": []}, ValueError, "empty"),
        ({"outputs": ["price", 0]}, ValueError, "twice for 'price'"),
        ({"outputs": [True]}, TypeError, "True"),
        ({"n_rounds": 9}, ValueError, "n_rounds"),
    ],
)
def test_bad_input_is_named(houses: Any, options: dict[str, Any], error: type[Exception], words: str) -> None:
    with pytest.raises(error, match=words):
        houses[0].to_frame(**options)


def test_a_library_that_is_not_installed(houses: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("polars")
    absent = {"pandas"}

    def imported(name: str) -> Any:
        if name in absent:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)
        return importlib.import_module(name)

    monkeypatch.setattr(frames, "import_module", imported)
    assert type(houses[0].to_frame()).__module__.startswith("polars")
    with pytest.raises(ImportError, match="needs pandas, which is not installed: pip install pandas"):
        houses[0].to_frame(library="pandas")
    absent.add("polars")
    with pytest.raises(ImportError, match="needs pandas or polars"):
        houses[0].importance()


def test_what_does_not_fit_is_refused_before_it_is_made(houses: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    model = houses[0]
    monkeypatch.setattr(frames, "available", lambda: 200)
    with pytest.raises(
        MemoryError, match=r"nodes with columns for 2 outputs would take .* take fewer outputs"
    ):
        model.to_frame()
    with pytest.raises(MemoryError, match="importance of 2 features for 2 outputs"):
        model.importance(per_output=True)
    assert len(model.to_frame(values="list")) == len(model._forest.left)
    monkeypatch.setattr(frames, "available", lambda: None)
    assert len(model.to_frame()) == len(model._forest.left)


def test_a_model_that_was_interrupted_in_its_first_round() -> None:
    class Interrupt:
        def before_round(self, state: Any) -> None:
            raise KeyboardInterrupt

    case = CASES["regression"]
    model = case.make(n_estimators=3, callbacks=[Interrupt()])
    with pytest.raises(KeyboardInterrupt):
        model.fit(X, case.y, eval_set=(X, case.y))
    assert len(model.to_frame()) == 0
    assert model.to_dict()["trees"] == []
    assert model[:].n_estimators_ == model[:5].n_estimators_ == 0
    assert model.importance()["importance"].tolist() == [0] * 6
    assert model.importance("permutation", True, X=X, y=case.y)["importance"].tolist() == [0] * 18
    np.testing.assert_array_equal(model[:].predict(X), model.predict(X))
    assert model.best_score_ == {"validation_0": {}}
