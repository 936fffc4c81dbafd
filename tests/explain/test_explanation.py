"""`explanation` is what the shap package takes, and its own explainer finds the same values."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
import pytest
import scipy.sparse

from polyleaf import BinnedTable, PolyleafClassifier, PolyleafRegressor
from polyleaf.explain import explanation

Values = npt.NDArray[np.float64]
SMALL: dict[str, Any] = {"n_estimators": 8, "max_depth": 5, "random_state": 0}


def table(n: int = 300) -> tuple[Values, Values]:
    """Five features with gaps, three targets."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, 5))
    X[rng.random(X.shape) < 0.1] = np.nan
    Z = np.nan_to_num(X, nan=0.5)
    return X, np.column_stack([Z[:, 0] * Z[:, 1], Z[:, 2] + Z[:, 0], np.sin(Z[:, 3]) + Z[:, 4]])


@pytest.fixture(scope="module")
def shap() -> Any:
    return pytest.importorskip("shap", reason="the shap package is not installed")


@pytest.fixture(scope="module")
def houses() -> tuple[Any, pd.DataFrame]:
    """Numbers, words and whole numbers as categories, gaps in all of them, and a category never seen."""
    X, Y = table()
    frame = pd.DataFrame(X[:, :3], columns=["area", "age", "rooms"])
    frame["heating"] = np.array(["gas", "oil", "pump"], dtype=object)[np.nan_to_num(X[:, 3]).astype(int) % 3]
    frame["zone"] = pd.array((np.nan_to_num(X[:, 4]) * 2).round() % 4 + 7, dtype="Int64")
    frame.loc[::11, "heating"] = None
    frame.loc[::13, "zone"] = pd.NA
    y = pd.DataFrame(Y[:, :2], columns=["price", "energy"]) + frame[["heating"]].eq("oil").to_numpy()
    model = PolyleafRegressor(**SMALL, categorical_features=["heating", "zone"]).fit(frame, y)
    frame.loc[2, "heating"] = "coal"
    return model, frame


# --- what it holds -----------------------------------------------------------------------------------------


def test_all_outputs(shap: Any, houses: Any) -> None:
    model, frame = houses
    found = model.explanation(frame)
    assert isinstance(found, shap.Explanation)
    np.testing.assert_array_equal(found.values, model.shap_values(frame))
    np.testing.assert_array_equal(found.base_values, np.tile(model.expected_value_, (300, 1)))
    assert list(found.feature_names) == list(frame.columns)
    assert list(found.output_names) == ["price", "energy"]
    np.testing.assert_allclose(found.values.sum(axis=1) + found.base_values, model.predict(frame))
    one = found[:, :, 1]
    np.testing.assert_array_equal(one.values, found.values[:, :, 1])
    np.testing.assert_array_equal(found[:, :, "energy"].values, one.values)


def test_data_are_readable(shap: Any, houses: Any) -> None:
    model, frame = houses
    data = pd.DataFrame(model.explanation(frame).data, columns=frame.columns)
    seen = frame["heating"].where(frame["heating"] != "coal")  # what the model does not know
    assert data["heating"].isna().sum() == seen.isna().sum()
    assert data["heating"].dropna().tolist() == seen.dropna().tolist()
    assert data["zone"].dropna().tolist() == frame["zone"].dropna().tolist()
    assert {type(value) for value in data["zone"].dropna()} == {int}
    for name in ("area", "age", "rooms"):
        np.testing.assert_array_equal(data[name].astype(float), frame[name])


@pytest.mark.parametrize("outputs", ["energy", 1, ["energy"]])
def test_one_output_has_two_dimensions(shap: Any, houses: Any, outputs: Any) -> None:
    model, frame = houses
    found = model.explanation(frame, outputs, dtype="float32")
    assert found.values.dtype == np.float32
    np.testing.assert_array_equal(found.values, model.shap_values(frame, [1], dtype="float32")[..., 0])
    assert found.base_values.shape == (300,)
    assert found.output_names == "energy"
    few = model.explanation(frame, ["energy", "price"])
    np.testing.assert_array_equal(few.values, model.shap_values(frame)[..., [1, 0]])
    assert list(few.output_names) == ["energy", "price"]


def test_every_kind_of_table(shap: Any, tmp_path: Any) -> None:
    X, Y = table()
    model = PolyleafRegressor(**SMALL).fit(X, Y[:, 0])
    expected = model.shap_values(X)
    frame = pd.DataFrame(X, columns=list("abcde"))
    frame.to_parquet(tmp_path / "rows.parquet", row_group_size=100)
    named = PolyleafRegressor(**SMALL).fit(frame, Y[:, 0])
    batches = (frame.iloc[begin : begin + 100] for begin in (0, 100, 200))  # gone through once
    for given, of in (
        (X, model),
        (scipy.sparse.csr_array(X), model),
        (str(tmp_path / "rows.parquet"), named),
        (batches, named),
    ):
        found = of.explanation(given)
        np.testing.assert_array_equal(found.values, expected)
        np.testing.assert_array_equal(found.data, X)
        assert found.data.dtype == np.float64
    binned = BinnedTable.make(X)
    found = PolyleafRegressor(**SMALL).fit(binned, Y[:, 0]).explanation(binned)
    np.testing.assert_array_equal(found.values, expected)
    assert found.data is None
    assert model.explanation(X[:0]).values.shape == (0, 5)


def test_without_shap_the_error_says_what_to_install(houses: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    model, frame = houses
    monkeypatch.setitem(sys.modules, "shap", None)
    with pytest.raises(ImportError, match="pip install shap"):
        model.explanation(frame)


def test_bad_input(shap: Any, houses: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    model, frame = houses
    with pytest.raises(ValueError, match="no output 'rent'; there are 'price', 'energy'"):
        model.explanation(frame, "rent")
    with pytest.raises(ValueError, match="dtype must be"):
        model.explanation(frame, dtype="int8")
    with pytest.raises(AttributeError, match="not fitted"):
        PolyleafRegressor().explanation(frame)
    monkeypatch.setattr(explanation, "available", lambda: 40_000)
    with pytest.raises(MemoryError, match=r"46.9 KiB \(300 rows x 5 features\), and 39.1 KiB"):
        model.explanation(frame)


# --- plots of shap -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("plot", ["waterfall", "beeswarm", "bar", "bar of a row", "scatter"])
@pytest.mark.filterwarnings("ignore")  # of numba and matplotlib, about each other
def test_plots_of_shap_take_it(shap: Any, houses: Any, plot: str) -> None:
    matplotlib = pytest.importorskip("matplotlib", reason="shap draws with matplotlib")
    matplotlib.use("Agg")
    from matplotlib import pyplot

    model, frame = houses
    found = model.explanation(frame, "price")
    try:
        if plot == "waterfall":
            shap.plots.waterfall(found[0], show=False)
            written = [text.get_text() for text in pyplot.gca().get_yticklabels()]
            assert any("heating" in text for text in written)
        elif plot == "bar of a row":
            shap.plots.bar(model.explanation(frame)[3, :, 1], show=False)
        elif plot == "scatter":
            shap.plots.scatter(found[:, "area"], show=False)
        else:
            getattr(shap.plots, plot)(found, show=False)
            written = [text.get_text() for text in pyplot.gca().get_yticklabels()]
            assert {*frame.columns} <= {*written}
        pyplot.gcf().canvas.draw()
    finally:
        pyplot.close("all")


# --- the values of shap's own explainer --------------------------------------------------------------------


def as_shap_trees(model: Any) -> dict[str, Any]:
    """The forest as dicts of arrays, which shap reads. Values are float32; its own comparison is <=."""
    forest = model._forest
    trees = []
    for number in range(forest.trees_up_to(model.best_iteration_ + 1)):
        begin, end = forest.node_begin[number : number + 2]
        inner = forest.left[begin:end] >= 0
        left = np.where(inner, forest.left[begin:end], -1)
        first, width = forest.tree_output[number], forest.tree_width[number]
        values = np.zeros((end - begin, forest.n_outputs))
        for node in np.flatnonzero(~inner):
            at = forest.value_begin[begin + node]
            values[node, first : first + width] = forest.values[at : at + width]
        cover = forest.cover[begin:end]
        for node in np.flatnonzero(inner)[::-1]:  # children come after their parents
            sides = [left[node], left[node] + 1]
            values[node] = cover[sides] @ values[sides] / cover[sides].sum()
        trees.append(
            {
                "children_left": left,
                "children_right": np.where(inner, left + 1, -1),
                "children_default": np.where(inner, left + (forest.missing_left[begin:end] == 0), -1),
                "features": np.where(inner, forest.feature[begin:end], -2),
                "thresholds": np.where(inner, forest.threshold[begin:end], -2.0),
                "values": values * forest.unit,
                "node_sample_weight": cover,
            }
        )
    return {"trees": trees, "base_offset": model._forest.base_score}


NUMERIC: dict[str, tuple[type, dict[str, Any]]] = {
    "one target": (PolyleafRegressor, {}),
    "targets": (PolyleafRegressor, {}),
    "one output a tree": (PolyleafRegressor, {"multi_strategy": "one_output_per_tree"}),
    "weights": (PolyleafRegressor, {}),
    "classes": (PolyleafClassifier, {}),
    "two classes": (PolyleafClassifier, {}),
    "deep": (PolyleafRegressor, {"max_depth": 12, "min_samples_leaf": 1}),
}


@pytest.mark.parametrize("kind", NUMERIC)
@pytest.mark.parametrize("missing", [False, True], ids=["", "NaN"])
@pytest.mark.other_threads("numba, and shap's extension")
def test_values_are_those_of_shap(shap: Any, kind: str, missing: bool) -> None:
    X, Y = table()
    X = X.astype(np.float32).astype(np.float64)  # what shap compares with
    if not missing:
        X = np.nan_to_num(X, nan=0.25)
    estimator, options = NUMERIC[kind]
    y: Any = {
        "one target": Y[:, 0],
        "classes": np.digitize(Y[:, 0], [-0.5, 0, 0.5]),
        "two classes": Y[:, 0] > 0,
    }.get(kind, Y)
    weight = np.random.default_rng(1).exponential(size=len(X)) if kind == "weights" else None
    model = estimator(**{**SMALL, **options}).fit(X, y, weight)
    rows = X[:60]
    explainer = shap.TreeExplainer(as_shap_trees(model), feature_perturbation="tree_path_dependent")
    expected = np.asarray(explainer.shap_values(rows, check_additivity=False)).reshape(60, 5, -1)
    found = model.shap_values(rows).reshape(60, 5, -1)
    assert np.isnan(rows).any() == missing
    np.testing.assert_allclose(found, expected, rtol=1e-6, atol=1e-6 * np.abs(expected).max())
    assert np.abs(expected).max() > 0.01
    expected_base = np.ravel(explainer.expected_value)
    np.testing.assert_allclose(model.expected_value_, expected_base, rtol=1e-6, atol=1e-9)
