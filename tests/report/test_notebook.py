"""A notebook shows a fitted estimator in a few lines, and scikit-learn's diagram before."""

from __future__ import annotations

import re

import numpy as np
import pandas as pd
import pytest
import sklearn
from reported import EVIL, KINDS, fitted, rows, unfitted

from polyleaf import PolyleafRegressor

pytestmark = pytest.mark.cpu_only("words of a fitted model")


@pytest.mark.parametrize("kind", KINDS)
def test_a_fitted_estimator_is_shown_in_a_few_lines(kind: str) -> None:
    model = fitted(kind)
    shown = model._repr_html_()
    assert shown == model._repr_mimebundle_()["text/html"]
    assert f"<b>{type(model).__name__}</b> (fitted)" in shown
    assert f"{model.n_outputs_} (" in shown
    assert "n_estimators=12" in shown
    top = re.findall(r'nowrap">(\w+)</span>', shown)
    best = np.argsort(-model.get_importance("gain"), kind="stable")[: len(top)]
    assert top == [model.feature_names_in_[j] for j in best]
    assert len(shown) < 5000


def test_best_round_and_scores_are_said() -> None:
    table, other = rows(), rows(2)
    model = unfitted("number", n_estimators=300, learning_rate=0.5, early_stopping_rounds=5)
    model.fit(
        table[["speed", "wind"]],
        table["power"],
        eval_set={"held": (other[["speed", "wind"]], other["power"])},
    )
    shown = model._repr_html_()
    assert f"the best of them {model.best_iteration_ + 1}" in shown
    assert f"rmse {model.best_score_['held']['rmse']:.5g}" in shown


def test_before_fit_and_as_text_it_is_scikit_learns() -> None:
    model = PolyleafRegressor(n_estimators=3)
    assert "sk-" in model._repr_html_()
    assert "sk-" in model._repr_mimebundle_()["text/html"]
    model.fit(np.zeros((5, 1)), np.arange(5))
    with sklearn.config_context(display="text"):
        assert not hasattr(model, "_repr_html_")
        assert list(model._repr_mimebundle_()) == ["text/plain"]


def test_names_are_text() -> None:
    table = rows()
    frame = pd.DataFrame({EVIL: table["speed"]})
    y = pd.DataFrame({EVIL: table["power"]})
    model = PolyleafRegressor(n_estimators=2).fit(frame, y, eval_set={EVIL: (frame, y)})
    shown = model._repr_html_()
    assert "<script" not in shown
    assert "&lt;/script&gt;" in shown
