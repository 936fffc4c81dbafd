"""A drawn tree says what `to_dict` says: conditions by name, and the values of its leaves as colours."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from looking import assert_inside, assert_no_overlap, names_at

from polyleaf import PolyleafClassifier, PolyleafRegressor, plots

pytestmark = pytest.mark.cpu_only("pictures are drawn on the host")
N_TRAINED = 120


def leaves_from_the_left(nodes: list[dict[str, Any]], node: int = 0) -> list[dict[str, Any]]:
    one = nodes[node]
    if "left" not in one:
        return [one]
    return leaves_from_the_left(nodes, one["left"]) + leaves_from_the_left(nodes, one["right"])


@pytest.mark.parametrize("tree", [0, 2])
def test_boxes_and_strips_are_those_of_the_tree(few: PolyleafRegressor, tree: int) -> None:
    axes = plots.plot_tree(few, tree)
    data = few.to_dict()
    nodes = data["trees"][tree]["nodes"]
    leaves = leaves_from_the_left(nodes)
    values = np.asarray(axes.images[0].get_array())
    np.testing.assert_array_equal(values, np.column_stack([leaf["values"] for leaf in leaves]))
    assert names_at(axes, "y") == data["outputs"]
    boxes = [text.get_text() for text in axes.texts if "\n" in text.get_text()]
    splits = [node for node in nodes if "left" in node]
    assert sorted(box.split("\n")[0] for box in boxes) == sorted(
        data["features"][node["feature"]]["name"] for node in splits
    )
    assert sorted(box.split("\n")[2] for box in boxes) == sorted(
        f"n {node['count']}, {'← missing' if node['missing'] == 'left' else 'missing →'}" for node in splits
    )
    counts = [text.get_text() for text in axes.texts if "\n" not in text.get_text()]
    assert counts == [str(leaf["count"]) for leaf in leaves]


def test_categories_have_their_names(many: PolyleafRegressor) -> None:
    axes = plots.plot_tree(many, 0, max_depth=1)
    (split,) = [text.get_text() for text in axes.texts if "missing" in text.get_text()]
    assert split.split("\n")[:2] in (["heating", "in pump"], ["heating", "not in pump"])


@pytest.mark.parametrize("max_depth", [0, 1, 4])
@pytest.mark.parametrize("cluster_outputs", [False, True])
def test_nothing_overlaps_with_many_outputs(
    many: PolyleafRegressor, max_depth: int, cluster_outputs: bool
) -> None:
    axes = plots.plot_tree(many, max_depth=max_depth, cluster_outputs=cluster_outputs)
    assert_no_overlap(axes.texts)
    assert_no_overlap(axes.get_yticklabels())
    assert_inside(axes, [*axes.texts, *axes.get_yticklabels(), axes.title])
    n_outputs, n_strips = axes.images[0].get_array().shape
    assert n_outputs == many.n_outputs_
    assert n_strips <= 2**max_depth


def test_a_deep_tree_and_small_axes_have_smaller_letters(
    many: PolyleafRegressor, few: PolyleafRegressor
) -> None:
    from matplotlib import pyplot

    assert_no_overlap(plots.plot_tree(many, max_depth=None).texts)
    _, own = pyplot.subplots(figsize=(3, 2.5), layout="constrained")
    assert_no_overlap(plots.plot_tree(few, ax=own).texts)


def test_what_is_below_the_last_level_is_a_mean_by_cover(many: PolyleafRegressor) -> None:
    axes = plots.plot_tree(many, max_depth=0)
    leaves = leaves_from_the_left(many.to_dict()["trees"][0]["nodes"])
    cover = np.array([leaf["cover"] for leaf in leaves])
    mean = cover @ np.array([leaf["values"] for leaf in leaves]) / cover.sum()
    np.testing.assert_allclose(np.asarray(axes.images[0].get_array())[:, 0], mean, rtol=1e-9, atol=1e-12)
    assert [text.get_text() for text in axes.texts] == [f"{N_TRAINED}\n{len(leaves)} leaves"]


def test_sparse_leaves_have_gaps_and_unused_outputs_are_left_out(table: Any, targets: Any) -> None:
    X = table[["f2", "f3"]]
    model = PolyleafRegressor(n_estimators=1, max_depth=2, sparse_leaves=1).fit(X, targets[:, :6])
    values = plots.plot_tree(model).images[0].get_array()
    assert (np.isfinite(np.ma.filled(values, np.nan)).sum(axis=0) == 1).all()
    assert np.isfinite(np.ma.filled(values, np.nan)).any(axis=1).all()
    per_output = PolyleafRegressor(n_estimators=2, max_depth=2, multi_strategy="one_output_per_tree")
    axes = plots.plot_tree(per_output.fit(X, targets[:, :3]), 4)
    assert names_at(axes, "y") == ["target_1"]
    assert axes.get_title() == "tree 4 (round 1)"


def test_a_tree_without_a_split_is_one_strip() -> None:
    model = PolyleafRegressor(n_estimators=1).fit(np.zeros((30, 1)), np.arange(60.0).reshape(30, 2))
    axes = plots.plot_tree(model)
    assert axes.images[0].get_array().shape == (2, 1)
    assert [text.get_text() for text in axes.texts] == ["30"]


def test_values_above_and_below_0_have_colours_of_their_own(classes: PolyleafClassifier) -> None:
    image = plots.plot_tree(classes).images[0]
    assert image.norm.vmin == -image.norm.vmax
    red, blue = image.cmap(1.0), image.cmap(0.0)
    assert red[0] > red[2]
    assert blue[2] > blue[0]


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"tree": 5}, ValueError, "there is no tree 5: the model has 5"),
        ({"tree": -1}, ValueError, "tree"),
        ({"tree": "0"}, TypeError, "tree"),
        ({"max_depth": -1}, ValueError, "max_depth"),
        ({"cluster_outputs": 1}, TypeError, "cluster_outputs"),
    ],
)
def test_bad_input_is_an_error_and_no_figure(
    few: PolyleafRegressor, options: dict[str, Any], error: type[Exception], message: str
) -> None:
    from matplotlib import pyplot

    with pytest.raises(error, match=message):
        plots.plot_tree(few, **options)
    assert pyplot.get_fignums() == []
