"""Training curves and importances show the numbers of the model, in order and readable."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import numpy as np
import pytest
from looking import assert_inside, assert_no_overlap, names_at
from sklearn.exceptions import NotFittedError

from polyleaf import PolyleafRegressor, plots
from polyleaf.estimators import bagging

pytestmark = pytest.mark.cpu_only("pictures are drawn on the host")


def test_a_curve_for_each_set_and_the_best_round(many: PolyleafRegressor) -> None:
    axes = plots.plot_metric(many)
    curves = [line for line in axes.get_lines() if len(line.get_xdata()) > 2]
    assert len(curves) == 2
    for line, name in zip(curves, ("train", "$held_out$"), strict=True):
        assert line.get_ydata().tolist() == many.evals_result_[name]["rmse"]  # the last metric
    assert curves[0].get_color() != curves[1].get_color()
    best = many.best_iteration_
    assert 0 < best < many.n_estimators_ - 1
    marks = [line for line in axes.get_lines() if list(line.get_xdata()) == [best]]
    assert [line.get_ydata()[0] for line in marks] == [
        many.evals_result_[name]["rmse"][best] for name in ("train", "$held_out$")
    ]
    legend = axes.get_legend()
    assert legend.get_title().get_text() == f"best round: {best}"
    assert [text.get_text().split(":")[0] for text in legend.get_texts()] == ["train", "$held_out$"]
    assert axes.get_ylabel() == "rmse"


def test_a_metric_and_sets_of_choice_from_a_dict(many: PolyleafRegressor) -> None:
    axes = plots.plot_metric(many.evals_result_, metric="mae", sets="train")
    (line,) = axes.get_lines()  # a dict has no best round
    assert line.get_ydata().tolist() == many.evals_result_["train"]["mae"]


@pytest.mark.parametrize("together", [True, False])
def test_last_rounds_of_members_of_a_bagged_model(together: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """Which all of few rows have in common."""
    if not together:
        monkeypatch.setattr(bagging, "AUTO_FEW_ROWS", 90)
    X = np.random.default_rng(0).normal(size=(90, 3))
    model = PolyleafRegressor(n_estimators=60, early_stopping_rounds=5, n_bags=3, min_samples_leaf=3)
    model.fit(X, X[:, 0] + np.random.default_rng(1).normal(size=90))
    axes = plots.plot_metric(model)
    bests = [bag.n_rounds - 1 for bag in model._bags]
    assert (len(set(bests)) == 1) == together
    marks = [line for line in axes.get_lines() if len(line.get_xdata()) == 1]
    assert [(line.get_xdata()[0], line.get_ydata()[0]) for line in marks] == [
        (best, curves["rmse"][best]) for best, curves in zip(bests, model.evals_result_.values(), strict=True)
    ]
    legend = axes.get_legend()
    assert legend.get_title().get_text() == (f"best round: {bests[0]}" if together else "")
    rounds = [text.get_text().partition("(")[2] for text in legend.get_texts()]
    assert rounds == ([""] * 3 if together else [f"round {k})" for k in bests])


def test_many_sets_are_told_apart() -> None:
    curves = {f"_set {number}": {"rmse": [3.0, 2.0, 1.0 + number]} for number in range(20)}
    axes = plots.plot_metric(curves)
    looks = {(line.get_color(), line.get_linestyle()) for line in axes.get_lines()}
    assert len(looks) == 20
    assert [text.get_text() for text in axes.get_legend().get_texts()] == list(curves)


def test_bars_are_the_importances_in_order(many: PolyleafRegressor) -> None:
    axes = plots.plot_importance(many, "split", top=7)
    found = many.get_importance("split")
    assert [bar.get_width() for bar in axes.patches] == sorted(found, reverse=True)[:7]
    assert len(names_at(axes, "y")) == 7
    assert max(map(len, names_at(axes, "y"))) <= 32
    assert axes.get_title() == "7 of 40 features"
    assert_no_overlap([*axes.get_yticklabels(), *axes.texts])
    assert_inside(axes, [*axes.get_yticklabels(), *axes.texts])


def test_few_features_are_named_in_full(few: PolyleafRegressor) -> None:
    axes = plots.plot_importance(few, "cover")
    order = np.argsort(-few.get_importance("cover"), kind="stable")
    assert names_at(axes, "y") == [few.feature_names_in_[j] for j in order]
    assert axes.get_title() == ""


def test_importance_of_each_output_is_an_image(many: PolyleafRegressor, few: PolyleafRegressor) -> None:
    for model, n_features in ((many, 20), (few, 3)):
        axes = plots.plot_importance(model, per_output=True)
        values = np.asarray(axes.images[0].get_array())
        found = model.get_importance(per_output=True)
        first = np.argsort(-found.sum(axis=1), kind="stable")[:n_features]
        assert values.shape == (n_features, model.n_outputs_)
        # The outputs are in another order, which is all.
        np.testing.assert_array_equal(np.sort(values, axis=1), np.sort(found[first], axis=1))
        assert_no_overlap(axes.get_xticklabels())
        assert_no_overlap(axes.get_yticklabels())
        assert_inside(axes, [*axes.get_xticklabels(), *axes.get_yticklabels()])


def test_importance_by_rows(few: PolyleafRegressor, table: Any, targets: Any) -> None:
    """What `importance` says, as bars and as an image: Shapley values, and what shuffling costs."""
    X, y = table[["f2", "f3", "heating"]], targets[:, :2]
    rows: dict[str, Any]
    for kind, rows in {"shap": {"X": X}, "permutation": {"X": X, "y": y, "random_state": 0}}.items():
        axes = plots.plot_importance(few, kind, **rows)
        found = few.importance(kind, **rows)
        np.testing.assert_allclose([bar.get_width() for bar in axes.patches], found["importance"])
        assert names_at(axes, "y") == found["feature"].tolist()
        assert all("±" in text.get_text() for text in axes.texts) == (kind == "permutation")
        assert_no_overlap([*axes.get_yticklabels(), *axes.texts])
        assert_inside(axes, [*axes.get_yticklabels(), *axes.texts])
        image = np.asarray(plots.plot_importance(few, kind, per_output=True, **rows).images[0].get_array())
        by_output = few.importance(kind, True, **rows)["importance"].to_numpy().reshape(3, 2)
        np.testing.assert_allclose(np.sort(image, axis=1), np.sort(by_output, axis=1))


def test_axes_of_the_caller_are_drawn_on(few: PolyleafRegressor) -> None:
    from matplotlib import pyplot

    _, own = pyplot.subplots()
    assert plots.plot_importance(few, ax=own) is own
    assert pyplot.get_fignums() == [1]


@pytest.mark.parametrize(
    ("draw", "error", "message"),
    [
        (lambda m: plots.plot_metric(m), ValueError, "fitted without eval_set"),
        (lambda m: plots.plot_metric({"a": {"rmse": [1.0]}}, "mae"), ValueError, "no metric 'mae'"),
        (lambda m: plots.plot_metric({"a": {"rmse": [1.0]}}, sets=["b"]), ValueError, "no set 'b'"),
        (lambda m: plots.plot_metric({"a": {"rmse": []}}), ValueError, "no value of any round"),
        (lambda m: plots.plot_metric({"a": [1.0]}), TypeError, "like evals_result_"),
        (lambda m: plots.plot_metric(3), TypeError, "got int"),
        (lambda m: plots.plot_metric(PolyleafRegressor()), NotFittedError, "not fitted"),
        (lambda m: plots.plot_importance(PolyleafRegressor()), NotFittedError, "not fitted"),
        (lambda m: plots.plot_importance(PolyleafRegressor), TypeError, "the class PolyleafRegressor"),
        (lambda m: plots.plot_importance(m, "weight"), ValueError, "kind"),
        (lambda m: plots.plot_importance(m, top=0), ValueError, "top"),
        (lambda m: plots.plot_importance(m, "shap"), TypeError, "needs X"),
        (lambda m: plots.plot_importance(m, "permutation"), TypeError, "needs X and y"),
        (lambda m: plots.plot_importance(m, "gain", X=[[1.0]]), TypeError, "X belongs to"),
        (lambda m: plots.plot_importance(m, ax="here"), TypeError, "ax must be Axes"),
    ],
)
def test_bad_input_is_an_error_and_no_figure(
    few: PolyleafRegressor, draw: Any, error: type[Exception], message: str
) -> None:
    from matplotlib import pyplot

    with pytest.raises(error, match=message):
        draw(few)
    assert pyplot.get_fignums() == []


def test_matplotlib_is_imported_when_a_picture_is_drawn() -> None:
    """And where it is missing, the error says what to install."""
    script = """
import sys
import polyleaf, polyleaf.plots
assert "matplotlib" not in sys.modules
sys.modules["matplotlib"] = None
try:
    polyleaf.plots.plot_metric({"a": {"rmse": [1.0]}})
except ImportError as error:
    print(error)
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert 'pip install "polyleaf[plot]"' in done.stdout
