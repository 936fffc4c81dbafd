"""Pictures of partial dependence show its numbers, for the outputs that change most."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
from looking import assert_inside, assert_no_overlap, names_at

from polyleaf import PolyleafClassifier, PolyleafRegressor, plots

pytestmark = pytest.mark.cpu_only("pictures are drawn on the host")
SMALL = ["f2", "f3", "heating"]


def curves(axes: Any) -> list[Any]:
    return [line for line in axes.get_lines() if len(line.get_xdata()) > 12]


def test_a_line_for_each_of_the_outputs_that_change_most(
    many: PolyleafRegressor, table: pd.DataFrame
) -> None:
    axes = plots.plot_partial_dependence(many, table, "f2", top=9, grid_resolution=20)
    found = many.partial_dependence(table, "f2", grid_resolution=20)
    assert found.average is not None
    first = np.argsort(-np.ptp(found.average, axis=1), kind="stable")[:9]
    lines = curves(axes)
    assert len(lines) == 9
    for line, output in zip(lines, first.tolist(), strict=True):
        np.testing.assert_array_equal(line.get_xdata(), found.grid_values[0])
        np.testing.assert_allclose(line.get_ydata(), found.average[output], rtol=1e-9)
    texts = axes.get_legend().get_texts()
    assert [text.get_text() for text in texts] == [found.outputs[k] for k in first]
    assert len({(line.get_color(), line.get_linestyle()) for line in lines}) == 9
    assert axes.get_title() == "9 of 90 outputs"
    assert_no_overlap(texts)
    assert_inside(axes, texts)


def test_one_output_and_its_rows(few: PolyleafRegressor, table: pd.DataFrame) -> None:
    axes = plots.plot_partial_dependence(few, table[SMALL], "f2", "energy", kind="both")
    (line,) = curves(axes)
    found = few.partial_dependence(table[SMALL], "f2", outputs="energy", kind="both")
    assert found.individual is not None
    (thin,) = axes.collections
    assert len(thin.get_segments()) == 200  # of 240 rows
    np.testing.assert_array_equal(thin.get_segments()[-1][:, 1], found.individual[0, -1])
    assert axes.get_legend() is None
    assert axes.get_ylabel() == "energy: prediction"
    low, high = axes.get_ylim()
    assert low <= min(segment[:, 1].min() for segment in thin.get_segments())
    assert high >= max(segment[:, 1].max() for segment in thin.get_segments())
    centered = plots.plot_partial_dependence(
        few, table[SMALL], "f2", "energy", kind="individual", centered=True
    )
    assert curves(centered) == []
    starts = {segment[0, 1] for segment in centered.collections[0].get_segments()}
    assert starts == {0.0}
    assert centered.get_ylabel() == "energy: change of the prediction"
    assert line.get_color() != centered.get_facecolor()


def test_a_missing_value_stands_behind_the_numbers(many: PolyleafRegressor, table: pd.DataFrame) -> None:
    axes = plots.plot_partial_dependence(many, table, "f1", [3], kind="both")
    found = many.partial_dependence(table, "f1", outputs=[3])
    assert found.average is not None
    assert np.isnan(found.grid_values[0][-1])
    assert names_at(axes, "x")[-1] == "missing"
    (mark,) = (line for line in axes.get_lines() if len(line.get_xdata()) == 1 and line.get_marker() == "o")
    assert mark.get_xdata()[0] > np.nanmax(found.grid_values[0])
    np.testing.assert_allclose(mark.get_ydata(), found.average[0, -1:], rtol=1e-9)
    assert_no_overlap(axes.get_xticklabels())


def test_categories_are_points_with_names(few: PolyleafRegressor, table: pd.DataFrame) -> None:
    axes = plots.plot_partial_dependence(few, table[SMALL], "heating", kind="both")
    assert names_at(axes, "x") == ["gas", "oil", "pump"]
    found = few.partial_dependence(table[SMALL], "heating")
    assert found.average is not None
    points = [line for line in axes.get_lines() if line.get_linestyle() == "None"]
    assert len(points) == 2
    values = np.array([line.get_ydata() for line in points])
    np.testing.assert_allclose(np.sort(values, axis=0), np.sort(found.average, axis=0), rtol=1e-9)
    assert (np.round([line.get_xdata() for line in points]) == np.arange(3)).all()
    assert len(axes.collections) == 6  # marks of rows: for each output and category


def test_a_map_for_each_output(few: PolyleafRegressor, table: pd.DataFrame) -> None:
    panels = plots.plot_partial_dependence(few, table[SMALL], ["f2", "heating"], grid_resolution=12)
    found = few.partial_dependence(table[SMALL], ["f2", "heating"], grid_resolution=12)
    assert found.average is not None
    assert {panel.get_title() for panel in panels} == {"price", "energy"}
    for panel in panels:
        output = found.outputs.index(panel.get_title())
        np.testing.assert_allclose(panel.images[0].get_array(), found.average[output].T, rtol=1e-9)
        assert names_at(panel, "y") == ["gas", "oil", "pump"]
        assert (panel.get_xlabel(), panel.get_ylabel()) == ("f2", "heating")
        assert_no_overlap(panel.get_xticklabels())
        assert_inside(panel, [*panel.get_xticklabels(), *panel.get_yticklabels()])


def test_one_map_on_the_axes_of_the_caller(many: PolyleafRegressor, table: pd.DataFrame) -> None:
    from matplotlib import pyplot

    _, own = pyplot.subplots(layout="constrained")
    axes = plots.plot_partial_dependence(many, table, ["f1", "f2"], 5, centered=True, ax=own)
    assert axes is own
    image = axes.images[0]
    assert image.norm.vmin == -image.norm.vmax
    assert names_at(axes, "x")[-1] == "missing"
    assert image.get_array()[0, 0] == 0
    # Ticks stand where the numbers are.
    grid = many.partial_dependence(table, "f1", outputs=5, grid_resolution=40).grid_values[0][:-1]
    places, labels = axes.get_xticks()[:-1], names_at(axes, "x")[:-1]
    numbers = [float(text.replace("−", "-")) for text in labels]
    np.testing.assert_allclose(np.interp(numbers, grid, np.arange(len(grid))), places, atol=1e-6)
    assert_no_overlap(axes.get_xticklabels())


def test_probabilities_of_classes(classes: PolyleafClassifier, table: pd.DataFrame) -> None:
    X = table[["f2", "f3", "f5"]]
    axes = plots.plot_partial_dependence(classes, X, "f2")
    assert axes.get_ylabel() == "probability"
    np.testing.assert_allclose(np.sum([line.get_ydata() for line in curves(axes)], axis=0), 1.0, rtol=1e-9)
    raw = plots.plot_partial_dependence(classes, X, "f2", response="raw")
    assert raw.get_ylabel() == "raw score"


def test_few_values_and_none() -> None:
    """A feature of one value, and one that is missing everywhere, are points."""
    rng = np.random.default_rng(0)
    X = np.column_stack([rng.normal(size=60), np.ones(60), np.full(60, np.nan)])
    model = PolyleafRegressor(n_estimators=2).fit(X, X[:, :2])
    assert len(plots.plot_partial_dependence(model, X, 1, 0).get_lines()[0].get_xdata()) == 1
    axes = plots.plot_partial_dependence(model, X, 2, 0, kind="both")
    assert names_at(axes, "x") == ["missing"]
    plots.plot_partial_dependence(model, X, [1, 2], 0)


@pytest.mark.parametrize(
    ("features", "options", "error", "message"),
    [
        ("area", {}, ValueError, "no feature 'area'"),
        (["f2", "f3", "heating"], {}, ValueError, "got 3"),
        ("f2", {"outputs": "cost"}, ValueError, "no output 'cost'"),
        ("f2", {"top": 0}, ValueError, "top"),
        ("f2", {"kind": "mean"}, ValueError, "kind"),
        ("f2", {"centered": "yes"}, TypeError, "centered"),
        ("f2", {"grid_resolution": 1}, ValueError, "grid_resolution"),
        ("f2", {"ax": 3}, TypeError, "ax must be Axes"),
        (["f2", "f3"], {"kind": "both"}, ValueError, "does not go with two features"),
    ],
)
def test_bad_input_is_an_error_and_no_figure(
    few: PolyleafRegressor,
    table: pd.DataFrame,
    features: Any,
    options: dict[str, Any],
    error: Any,
    message: str,
) -> None:
    from matplotlib import pyplot

    with pytest.raises(error, match=message):
        plots.plot_partial_dependence(few, table[SMALL], features, **options)
    assert pyplot.get_fignums() == []
