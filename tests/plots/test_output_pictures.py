"""Pictures of outputs: which go together, how well each is predicted, what it gains by company."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
from looking import assert_inside, assert_no_overlap, names_at
from sklearn.base import clone
from sklearn.metrics import r2_score

from polyleaf import PolyleafClassifier, PolyleafMixed, PolyleafRegressor, plots
from polyleaf.explain.output_correlations import leaf_correlations, residual_correlations
from polyleaf.inspect.observed_outputs import ObservedOutput

pytestmark = pytest.mark.cpu_only("pictures are drawn on the host")
SMALL = ["f2", "f3", "heating"]
OF_CLASSES = ["f2", "f3", "f5"]


def halves(axes: Any, n: int) -> tuple[Any, Any]:
    values = np.ma.filled(axes.images[0].get_array(), np.nan)
    return values[:, :n], values[:, -n:]


def weighted_correlations(values: Any, weight: Any) -> Any:
    covariance = np.cov(values.T, aweights=np.asarray(weight, dtype=float))
    deviation = np.sqrt(np.diag(covariance))
    return covariance / np.outer(deviation, deviation)


def test_both_maps_are_correlations_in_one_order(
    many: PolyleafRegressor, table: pd.DataFrame, targets: Any
) -> None:
    axes = plots.plot_output_map(many, table[120:], targets[120:], outputs=range(12))
    order = [int(name.split("_")[1]) for name in names_at(axes, "y")]
    assert sorted(order) == list(range(12))
    assert [name for name in names_at(axes, "x") if name] == names_at(axes, "y") * 2
    leaves, residuals = halves(axes, 12)
    expected = np.corrcoef((targets - many.predict(table))[120:, order].T)
    np.testing.assert_allclose(residuals, expected, atol=1e-9)
    trees = many.to_frame(values="list")
    held = trees[trees["values"].notna()]
    values = np.array(held["values"].tolist())[:, order]
    expected = weighted_correlations(values, held["cover"])
    np.testing.assert_allclose(leaves, expected, atol=1e-9)
    assert [text.get_text() for text in axes.texts] == ["leaf values", "residuals"]
    assert axes.get_title() == ""


def test_many_outputs_are_readable(many: PolyleafRegressor, table: pd.DataFrame, targets: Any) -> None:
    for top in (12, 60):
        axes = plots.plot_output_map(many, table[120:], targets[120:], top=top)
        leaves, _ = halves(axes, top)
        assert leaves.shape == (top, top)
        for side in (axes.get_xticklabels(), axes.get_yticklabels(), [*axes.texts, axes.title]):
            assert_no_overlap(side)
            assert_inside(axes, side)
        assert axes.get_title() == (f"{top} of 90 outputs")
    # Neighbours are alike.
    here = np.abs(np.diff(np.nan_to_num(leaves), axis=0)).mean()
    shuffled = leaves[np.random.default_rng(0).permutation(60)]
    assert here < 0.8 * np.abs(np.diff(np.nan_to_num(shuffled), axis=0)).mean()


def test_pairs_count_where_both_were_observed() -> None:
    rng = np.random.default_rng(0)
    truth, prediction = rng.normal(size=(2, 50, 3)) @ rng.normal(size=(3, 3)) + 100
    seen = rng.random((50, 3)) < 0.7
    outputs = [
        ObservedOutput("a", truth[:, [j]], prediction[:, [j]], seen[:, j].astype(float), None)
        for j in range(3)
    ]
    expected = pd.DataFrame(np.where(seen, truth - prediction, np.nan)).corr().to_numpy()
    np.testing.assert_allclose(residual_correlations(outputs), expected, rtol=1e-9)


def test_what_never_varies_has_no_correlation(table: pd.DataFrame, targets: Any) -> None:
    y = np.column_stack([targets[:, :2], np.ones(len(targets))])
    model = PolyleafRegressor(n_estimators=3, max_depth=2).fit(table[["f2", "f3"]], y)
    found = leaf_correlations(model._forest, np.arange(3))
    assert np.isnan(found[2]).all()
    assert np.isnan(found[:, 2]).all()
    assert np.isfinite(found[:2, :2]).all()
    plots.plot_output_map(model, table[["f2", "f3"]], y)


def test_sparse_leaves_add_zeros(table: pd.DataFrame, targets: Any) -> None:
    model = PolyleafRegressor(n_estimators=4, max_depth=3, sparse_leaves=2)
    model.fit(table[["f2", "f3"]], targets[:, :4])
    nodes = model.to_frame(values="columns")
    leaves = nodes[nodes["feature"].isna()]
    values = leaves[[f"value_target_{k}" for k in range(4)]].fillna(0.0).to_numpy(dtype=float)
    expected = weighted_correlations(values, leaves["cover"])
    np.testing.assert_allclose(leaf_correlations(model._forest, np.arange(4)), expected, atol=1e-9)


def test_maps_and_scores_of_classes_labels_and_mixed_targets(
    classes: PolyleafClassifier, table: pd.DataFrame, targets: Any
) -> None:
    X = table[OF_CLASSES]
    y = classes.predict(X)
    y[::7] = "ash"
    _, residuals = halves(axes := plots.plot_output_map(classes, X, y), 3)
    order = [classes.classes_.tolist().index(name) for name in names_at(axes, "y")]
    left = (y[:, None] == classes.classes_).astype(float) - classes.predict_proba(X)
    np.testing.assert_allclose(residuals, np.corrcoef(left[:, order].T), atol=1e-9)
    bars = plots.plot_output_gain(classes, X, y)
    assert bars.get_xlabel() == "R2 of the probability"
    labels = (targets[:, :3] > 0).astype(float)
    labels[::5, 1] = np.nan
    model = PolyleafClassifier(n_estimators=3, max_depth=2).fit(X, labels)
    plots.plot_output_map(model, X, labels)
    mixed = pd.DataFrame({"n": targets[:, 0], "grade": y, "m": targets[:, 1]})
    kinds = {"grade": "multiclass", "n": "regression", "m": "regression"}
    together = PolyleafMixed(kinds, n_estimators=3, max_depth=2).fit(X, mixed)
    axes = plots.plot_output_map(together, X, mixed)
    assert sorted(names_at(axes, "y")) == ["grade=ash", "grade=birch", "grade=cedar", "m", "n"]
    axes = plots.plot_output_gain(together, X, mixed)
    scores = dict(zip(names_at(axes, "y"), [bar.get_width() for bar in axes.patches], strict=True))
    assert scores["m"] == pytest.approx(r2_score(mixed["m"], together.predict(X)["m"]))


# --- gains -----------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def apart(many: PolyleafRegressor, table: pd.DataFrame, targets: Any) -> PolyleafRegressor:
    model = clone(many).set_params(
        multi_strategy="one_output_per_tree", early_stopping_rounds=None, n_estimators=4, eval_metric=None
    )
    return model.fit(table[:120], targets[:120])


def test_scores_alone_are_bars(few: PolyleafRegressor, table: pd.DataFrame, targets: Any) -> None:
    y = pd.DataFrame(targets[:, :2], columns=["price", "energy"])
    axes = plots.plot_output_gain(few, table[SMALL], y)
    found = r2_score(y, few.predict(table[SMALL]), multioutput="raw_values")
    order = np.argsort(-found)
    np.testing.assert_allclose([bar.get_width() for bar in axes.patches], found[order])
    assert names_at(axes, "y") == [y.columns[k] for k in order]
    assert axes.get_xlabel() == "R2"


def test_gains_are_differences_of_scores(
    many: PolyleafRegressor, apart: PolyleafRegressor, table: pd.DataFrame, targets: Any
) -> None:
    X, y = table[120:], targets[120:]
    axes = plots.plot_output_gain(many, X, y, apart, top=11)
    together, alone = (r2_score(y, model.predict(X), multioutput="raw_values") for model in (many, apart))
    order = np.argsort(-(together - alone), kind="stable")
    shown = [*order[:6], *order[-5:]]
    hollow, filled = axes.collections[1].get_offsets(), axes.collections[2].get_offsets()
    np.testing.assert_allclose(filled[:, 0], together[shown], atol=1e-9)
    np.testing.assert_allclose(hollow[:, 0], alone[shown], atol=1e-9)
    assert names_at(axes, "y") == [f"target_{k}" for k in shown]
    colours = axes.collections[2].get_facecolors()
    gains = (together - alone)[shown]
    assert len({tuple(colour) for colour in colours}) == len({bool(gain > 0) for gain in gains})
    first, second = axes.get_title().split("\n")
    assert first.startswith(f"{np.count_nonzero(together > alone)} of 90 outputs gain")
    assert second == "11 of 90 outputs: the first and the last"
    assert_no_overlap([*axes.texts, *axes.get_yticklabels()])
    assert_inside(axes, [*axes.texts, *axes.get_yticklabels(), axes.title])


@pytest.mark.parametrize(
    ("draw", "error", "message"),
    [
        (lambda m, X, y: plots.plot_output_map(m, X, y, outputs=[1]), ValueError, "at least two; there is 1"),
        (lambda m, X, y: plots.plot_output_map(m, X, y, top=1), ValueError, "top"),
        (lambda m, X, y: plots.plot_output_map(m, X[:0], y[:0]), ValueError, "row"),
        (lambda m, X, y: plots.plot_output_map(m, X, y[:5]), ValueError, "y has 5 row"),
        (lambda m, X, y: plots.plot_output_map(m, X), TypeError, "needs y"),
        (lambda m, X, y: plots.plot_output_gain(m, X), TypeError, "needs y"),
        (lambda m, X, y: plots.plot_output_gain(m, X, y, "other"), TypeError, "got str"),
        (lambda m, X, y: plots.plot_output_gain(m, X, y, outputs="cost"), ValueError, "no output 'cost'"),
        (lambda m, X, y: plots.plot_output_gain(m, X, y, top=0), ValueError, "top"),
        (lambda m, X, y: plots.plot_output_gain(m, X, y * np.nan), ValueError, "no observation of 'price'"),
    ],
)
def test_bad_input_is_an_error_and_no_figure(
    few: PolyleafRegressor, table: pd.DataFrame, targets: Any, draw: Any, error: Any, message: str
) -> None:
    from matplotlib import pyplot

    with pytest.raises(error, match=message):
        draw(few, table[SMALL], targets[:, :2])
    assert pyplot.get_fignums() == []


def test_another_models_outputs_are_refused(
    few: PolyleafRegressor, many: PolyleafRegressor, table: pd.DataFrame, targets: Any
) -> None:
    with pytest.raises(ValueError, match="separate has the outputs 'target_0'"):
        plots.plot_output_gain(few, table[SMALL], targets[:, :2], many)
