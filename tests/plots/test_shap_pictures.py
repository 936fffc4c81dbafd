"""Pictures of Shapley values show those of `shap_values`, and what is left out is added up or told."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
from looking import assert_inside, assert_no_overlap, names_at

from polyleaf import PolyleafClassifier, PolyleafRegressor, plots

pytestmark = pytest.mark.cpu_only("pictures are drawn on the host")
SMALL = ["f2", "f3", "heating"]
OF_CLASSES = ["f2", "f3", "f5"]


@pytest.mark.parametrize("normalize", [False, True])
def test_the_heat_map_is_clustered_and_whole(
    many: PolyleafRegressor, table: pd.DataFrame, normalize: bool
) -> None:
    axes = plots.plot_shap_heatmap(many, table, top=12, normalize=normalize)
    found = many.shap_values(table, reduce="mean_abs")
    found = found / found.sum(axis=0) if normalize else found
    first = np.argsort(-found.sum(axis=1), kind="stable")[:12]
    values = np.asarray(axes.images[0].get_array())
    assert values.shape == (12, many.n_outputs_)
    np.testing.assert_allclose(np.sort(values.sum(axis=1)), np.sort(found[first].sum(axis=1)))
    np.testing.assert_allclose(np.sort(values.sum(axis=0)), np.sort(found[first].sum(axis=0)))
    # Neighbours are more alike than in the order of y.
    assert roughness(values) < 0.9 * roughness(found[first])
    for side in (axes.get_xticklabels(), axes.get_yticklabels()):
        assert_no_overlap(side)
        assert_inside(axes, side)
    assert len(names_at(axes, "x")) < many.n_outputs_  # as many as fit


def roughness(values: Any) -> float:
    shapes = values / np.linalg.norm(values, axis=0)
    return float(np.linalg.norm(np.diff(shapes, axis=1), axis=0).sum())


def test_outputs_of_choice(few: PolyleafRegressor, table: pd.DataFrame) -> None:
    axes = plots.plot_shap_heatmap(few, table[SMALL], outputs=["energy"])
    assert names_at(axes, "x") == ["energy"]
    found = few.shap_values(table[SMALL], "energy", reduce="mean_abs")[:, 0]
    order = np.argsort(-found, kind="stable")
    np.testing.assert_array_equal(np.asarray(axes.images[0].get_array())[:, 0], found[order])
    assert names_at(axes, "y") == [SMALL[j] for j in order]


def test_a_swarm_has_a_point_for_each_row(few: PolyleafRegressor, table: pd.DataFrame) -> None:
    X = table[SMALL].copy()
    X.loc[::4, "f2"] = np.nan
    axes = plots.plot_shap_beeswarm(few, X, "price")
    shap = few.shap_values(X, "price")[:, :, 0]
    order = np.argsort(-np.abs(shap).mean(axis=0), kind="stable")
    assert names_at(axes, "y") == [SMALL[j] for j in order]
    for place, feature in enumerate(order.tolist()):
        grey, coloured = axes.collections[2 * place : 2 * place + 2]
        points = np.concatenate([grey.get_offsets(), coloured.get_offsets()])
        np.testing.assert_allclose(np.sort(points[:, 0]), np.sort(shap[:, feature]))
        assert np.abs(points[:, 1] - place).max() <= 0.4
        n_grey = len(X) if SMALL[feature] == "heating" else int(X[SMALL[feature]].isna().sum())
        assert len(grey.get_offsets()) == n_grey
        if n_grey < len(X):  # the highest value has the highest colour
            top = coloured.get_offsets()[np.argmax(coloured.get_array())][0]
            assert top == shap[int(X[SMALL[feature]].argmax()), feature]
    assert "grey" in axes.get_title()


def test_swarms_of_many_features_are_readable(many: PolyleafRegressor, table: pd.DataFrame) -> None:
    axes = plots.plot_shap_beeswarm(many, table, 7)
    assert len(axes.get_yticklabels()) == 20
    assert_no_overlap(axes.get_yticklabels())
    assert_inside(axes, [*axes.get_yticklabels(), axes.title, axes.figure.axes[1].yaxis.label])


def test_a_row_adds_up(classes: PolyleafClassifier, many: PolyleafRegressor, table: pd.DataFrame) -> None:
    for model, x in ((classes, table[OF_CLASSES].iloc[[3]]), (many, table.iloc[[3]])):
        axes = plots.plot_row(model, x, top=2)
        values = np.asarray(axes.images[0].get_array())
        assert values.shape == (3, model.n_outputs_)
        np.testing.assert_allclose(
            np.sort(values.sum(axis=0)), np.sort(model.shap_values(x)[0].sum(axis=0)), atol=1e-12
        )
        assert names_at(axes, "y")[-1].endswith(("1 other feature", "38 other features"))
        assert_no_overlap(axes.get_xticklabels())
        assert_inside(axes, [*axes.get_xticklabels(), *axes.get_yticklabels(), axes.title])
    assert len(axes.texts) == 0  # ninety outputs: colours alone


def test_few_outputs_have_numbers_and_values(few: PolyleafRegressor, table: pd.DataFrame) -> None:
    x = table[SMALL].iloc[[1]]
    axes = plots.plot_row(few, x)
    assert len(axes.texts) == 6
    assert f"heating = {x['heating'].iloc[0]}" in names_at(axes, "y")
    raw = few.predict(x)[0]
    said = [float(name.split(": ")[1].replace("\N{MINUS SIGN}", "-")) for name in names_at(axes, "x")]
    np.testing.assert_allclose(said, raw, rtol=0.01)
    gap = x.copy()
    gap["f2"] = np.nan
    assert "f2 = missing" in names_at(plots.plot_row(few, gap), "y")


def test_one_output_is_bars(few: PolyleafRegressor, table: pd.DataFrame) -> None:
    x = table[SMALL].iloc[[1]]
    axes = plots.plot_row(few, x, "price")
    found = few.shap_values(x, "price")[0, :, 0]
    order = np.argsort(-np.abs(found), kind="stable")
    np.testing.assert_array_equal([bar.get_width() for bar in axes.patches], found[order])
    colours = {bar.get_width() >= 0: bar.get_facecolor() for bar in axes.patches}
    assert len(set(colours.values())) == len(colours)


def test_why_a_and_not_b(classes: PolyleafClassifier, table: pd.DataFrame) -> None:
    x = table[OF_CLASSES].iloc[[3]]
    axes = plots.plot_row(classes, x, versus=("cedar", "ash"))
    raw = classes.expected_value_ + classes.shap_values(x)[0].sum(axis=0)
    assert sum(bar.get_width() for bar in axes.patches) == pytest.approx(raw[2] - raw[0])
    assert axes.get_title().startswith("why cedar (")
    assert names_at(axes, "y")[0] == "average row"
    back = plots.plot_row(classes, x, versus=("ash", "cedar"))
    assert [-bar.get_width() for bar in back.patches] == [bar.get_width() for bar in axes.patches]
    assert_no_overlap([*axes.texts, *axes.get_yticklabels()])


def test_a_row_is_an_array_too(table: pd.DataFrame, targets: Any) -> None:
    X = table[["f2", "f3"]].to_numpy()
    model = PolyleafRegressor(n_estimators=3, max_depth=2).fit(X, targets[:, 0])  # one output
    one, two = (plots.plot_row(model, x) for x in (X[4], X[4:5]))
    assert [bar.get_width() for bar in one.patches] == [bar.get_width() for bar in two.patches]
    assert {name.split(" = ")[0] for name in names_at(one, "y")} == {"x0", "x1"}
    assert len(plots.plot_shap_beeswarm(model, X).collections) == 4
    assert plots.plot_shap_heatmap(model, X).images[0].get_array().shape == (2, 1)


@pytest.mark.parametrize(
    ("draw", "error", "message"),
    [
        (lambda m, X: plots.plot_shap_heatmap(m, X, outputs="cost"), ValueError, "no output 'cost'"),
        (lambda m, X: plots.plot_shap_heatmap(m, X[:0]), ValueError, "has none"),
        (lambda m, X: plots.plot_shap_heatmap(m, X, top=0), ValueError, "top"),
        (lambda m, X: plots.plot_shap_beeswarm(m, X), TypeError, "output is needed"),
        (lambda m, X: plots.plot_shap_beeswarm(m, X, ["price", "energy"]), TypeError, "one output; got 2"),
        (lambda m, X: plots.plot_shap_beeswarm(m, X, 2), ValueError, "no output 2"),
        (lambda m, X: plots.plot_shap_beeswarm(m, X[:0], 0), ValueError, "no row"),
        (lambda m, X: plots.plot_row(m, X), ValueError, "must have one row; it has 240"),
        (lambda m, X: plots.plot_row(m, X.iloc[0]), TypeError, "X.iloc"),
        (lambda m, X: plots.plot_row(m, X[:1], versus=("price", "cost")), ValueError, "no output 'cost'"),
        (lambda m, X: plots.plot_row(m, X[:1], versus=("price", "price")), ValueError, "twice"),
        (lambda m, X: plots.plot_row(m, X[:1], versus="price"), TypeError, "versus must be two"),
        (lambda m, X: plots.plot_row(m, X[:1], 0, versus=(0, 1)), ValueError, "does not go with outputs"),
        (lambda m, X: plots.plot_row(m, X[["f2"]][:1]), ValueError, "feature"),
    ],
)
def test_bad_input_is_an_error_and_no_figure(
    few: PolyleafRegressor, table: pd.DataFrame, draw: Any, error: type[Exception], message: str
) -> None:
    from matplotlib import pyplot

    with pytest.raises(error, match=message):
        draw(few, table[SMALL])
    assert pyplot.get_fignums() == []
