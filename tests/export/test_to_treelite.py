"""A model of treelite: its inference gives the raw scores of polyleaf to 1e-12, and has the same links."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from exported_models import CASES, CLASSES, SMALL, X, fitted, predicted_of, raw_of, table_of
from hypothesis import given, settings
from hypothesis import strategies as st
from random_models import random_model
from sklearn.exceptions import NotFittedError

from polyleaf import PolyleafClassifier, PolyleafRegressor
from polyleaf.export import to_treelite
from polyleaf.export.served_model import served_model
from polyleaf.params.combinations import Refused

# Earlier versions take models as well, but do not keep counts and gains of nodes.
treelite = pytest.importorskip("treelite", minversion="4.8")

pytestmark = [
    pytest.mark.cpu_only("what is exported is the same on any device"),
    pytest.mark.python_only("what is compiled here is not the core"),
]

MIXED = ("mixed", "mixed, sparse leaves", "mixed, one output per tree")
# What treelite has no link for.
RAW_ONLY = (*MIXED, "quantiles", "labels of squared error", "sparse labels")


def rows_of(model: Any) -> np.ndarray:
    """Return rows without infinities and with whole numbers for codes: treelite takes 1.5 for 1."""
    table = table_of(model)
    codes = table[:, sorted(model._categories)]
    whole = (np.isnan(codes) | (codes == np.floor(codes))).all(axis=1)
    return table[whole & ~np.isinf(table).any(axis=1)]


def raw_scores(model: Any, table: np.ndarray) -> np.ndarray:
    """Return the raw scores of a treelite model, (rows, outputs)."""
    return np.asarray(treelite.gtil.predict(model, table, nthread=1, pred_margin=True)).reshape(
        len(table), -1
    )


def predictions(model: Any, table: np.ndarray) -> np.ndarray:
    return np.asarray(treelite.gtil.predict(model, table, nthread=1)).reshape(len(table), -1)


def assert_close(found: np.ndarray, expected: np.ndarray) -> None:
    """To 1e-12 of the largest number of each column: sums may begin at another end."""
    assert found.shape == expected.shape
    scale = np.maximum(np.abs(expected).max(axis=0), np.finfo(float).tiny)
    np.testing.assert_allclose(found / scale, expected / scale, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("case", [case for case in CASES if case not in RAW_ONLY])
def test_treelite_says_what_polyleaf_says(case: str) -> None:
    model = fitted(case)
    exported, table = to_treelite(model), rows_of(model)
    assert_close(raw_scores(exported, table), raw_of(model, table))
    expected = predicted_of(model, table)
    if served_model(model).groups[0].kind == "binary":
        expected = expected[:, 1:]
    if served_model(model).groups[0].kind == "multiclass":
        # Treelite's softmax computes in single precision.
        np.testing.assert_allclose(predictions(exported, table), expected, rtol=1e-5, atol=1e-6)
    else:
        assert_close(predictions(exported, table), expected)


@pytest.mark.parametrize("case", CASES)
def test_raw_scores_of_any_model(case: str) -> None:
    model = fitted(case)
    exported, table = to_treelite(model, raw=True), rows_of(model)
    assert_close(predictions(exported, table), raw_of(model, table))
    assert exported.num_feature == table.shape[1]


@pytest.mark.parametrize("case", MIXED)
def test_groups_of_a_mixed_model_one_by_one(case: str) -> None:
    model, table = fitted(case), rows_of(fitted(case))
    raw = raw_of(model, table)
    for group in served_model(model).groups:
        scores = raw[:, group.first : group.first + group.n_outputs]
        as_it_is = to_treelite(model, group=group.name, raw=True)
        assert_close(predictions(as_it_is, table), scores)
        if group.link == "quantiles":
            with pytest.raises(Refused, match="several quantile_levels"):
                to_treelite(model, group=group.name)
            continue
        exported = to_treelite(model, group=group.name)
        assert_close(raw_scores(exported, table), scores)
        found = predictions(exported, table)
        if group.link == "logistic":
            np.testing.assert_allclose(found, 1 / (1 + np.exp(-scores)), rtol=1e-12)
        elif group.link == "exponential":
            np.testing.assert_allclose(found, np.exp(scores), rtol=1e-12)
        elif group.link == "softmax":
            np.testing.assert_allclose(found.sum(axis=1), 1, rtol=1e-5)
            np.testing.assert_array_equal(found.argmax(axis=1), scores.argmax(axis=1))


@given(st.integers(0, 2**32 - 1))
@settings(max_examples=40, deadline=None, derandomize=True)
def test_any_small_model(seed: int) -> None:
    model = random_model(np.random.default_rng(seed))
    table = rows_of(model)
    assert_close(raw_scores(to_treelite(model), table), raw_of(model, table))


def described(model: Any) -> dict[str, Any]:
    """Return a treelite model as the JSON that it writes of itself."""
    found: dict[str, Any] = json.loads(model.dump_as_json())
    return found


@pytest.mark.parametrize(
    ("case", "shape", "task", "postprocessor"),
    [
        ("one target", [1, 1], "kRegressor", "identity"),
        ("targets", [3, 1], "kRegressor", "identity"),
        ("targets, sparse leaves", [3, 1], "kRegressor", "identity"),
        ("targets, one output per tree", [1, 1], "kRegressor", "identity"),
        ("poisson", [1, 1], "kRegressor", "exponential"),
        ("two classes", [1, 1], "kBinaryClf", "sigmoid"),
        ("classes", [1, 4], "kMultiClf", "softmax"),
        ("classes, one output per tree", [1, 1], "kMultiClf", "softmax"),
        ("labels", [3, 1], "kBinaryClf", "sigmoid"),
    ],
)
def test_what_treelite_is_told(case: str, shape: list[int], task: str, postprocessor: str) -> None:
    model = fitted(case)
    exported = to_treelite(model)
    told = described(exported)
    assert told["leaf_vector_shape"] == shape
    assert told["task_type"] == task
    assert told["postprocessor"] == postprocessor
    assert (told["threshold_type"], told["leaf_output_type"]) == ("float64", "float64")
    assert len(told["trees"]) == model._forest.n_trees
    np.testing.assert_allclose(np.ravel(told["base_scores"]), model._forest.base_score, rtol=1e-15)
    assert told["trees"][0]["nodes"][0]["comparison_op"] == "<="
    tree, forest = exported.get_tree_accessor(0), model._forest
    own = slice(0, forest.node_begin[1])
    # Treelite numbers nodes in an order of its own; those of the root and all in all are the same.
    for name, expected in (("data_count", forest.count), ("gain", forest.gain), ("sum_hess", forest.cover)):
        found = tree.get_field(name)
        assert found[0] == pytest.approx(expected[0])
        np.testing.assert_allclose(np.sort(found), np.sort(expected[own]))


def test_codes_and_names_go_along() -> None:
    """With them a server can code a table as polyleaf does."""
    model = fitted("text categories")
    told = json.loads(described(to_treelite(model))["attributes"])["polyleaf"]
    assert told["feature_names"] == list(model.feature_names_in_)
    assert told["categories"] == {"1": list(model._categories[1].values)}
    mixed = json.loads(described(to_treelite(fitted("mixed"), group="grade"))["attributes"])["polyleaf"]
    (group,) = mixed["groups"]
    assert group == {
        "name": "grade",
        "kind": "multiclass",
        "link": "softmax",
        "first_output": 0,
        "n_outputs": 4,
        "columns": ["a", "b", "c", "d"],
    }


def test_hostile_names_and_categories() -> None:
    rng = np.random.default_rng(0)
    table = pd.DataFrame(
        {'"}, {': rng.normal(size=80), "\n\\ 日本 😀 \x00": rng.choice(['"]', "\\", "\u202e"], 80)}
    )
    classes = np.where(table.iloc[:, 1] == "\\", "}{", np.where(table.iloc[:, 0] > 0, "\x00", "ü"))
    model = PolyleafClassifier(**SMALL, categorical_features=[1]).fit(table, classes)
    told = json.loads(described(to_treelite(model))["attributes"])["polyleaf"]
    assert told["feature_names"] == list(table.columns)
    assert told["categories"] == {"1": sorted(['"]', "\\", "\u202e"])}
    assert told["groups"][0]["columns"] == list(model.classes_)


def test_codes_that_are_none_go_with_missing_values() -> None:
    """But for fractions, which treelite cuts off and polyleaf does not have in any set: pages say so."""
    model = fitted("text categories")
    exported = to_treelite(model)
    table = np.tile(table_of(model)[:40], (6, 1))
    table[:, 1] = np.repeat([np.nan, -1.0, -0.5, 5.0, 1e10, 2.0**40], 40)
    missing = raw_scores(exported, table[:40])
    for begin in range(40, 240, 40):
        np.testing.assert_array_equal(raw_scores(exported, table[begin : begin + 40]), missing)
    half = table[:40].copy()
    half[:, 1] = 3.5
    assert_close(raw_of(model, half), missing)
    half[:, 1] = 3.0
    assert (raw_of(model, half) != missing).any()
    whole = raw_scores(exported, half)
    half[:, 1] = 3.5
    np.testing.assert_array_equal(raw_scores(exported, half), whole)


def test_a_file_of_treelite_holds_it(tmp_path: Path) -> None:
    model = fitted("classes")
    to_treelite(model).serialize(str(tmp_path / "model.tl"))
    loaded = treelite.Model.deserialize(str(tmp_path / "model.tl"))
    assert_close(raw_scores(loaded, X), raw_of(model, X))


# --- bad input ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("case", "words"),
    [
        ("quantiles", "does not go with several quantile_levels: treelite cannot put .* raw=True"),
        ("sparse labels", "labels with objective='clipped_squared_error': treelite cannot cut off"),
        ("mixed", r"several groups of targets, here 'a', 'count', 'grade', .*group names one.*raw=True"),
    ],
)
def test_what_treelite_cannot_say_is_refused(case: str, words: str) -> None:
    with pytest.raises(Refused, match=words):
        to_treelite(fitted(case))


@pytest.mark.parametrize(
    ("model", "options", "error", "words"),
    [
        (PolyleafRegressor(), {}, NotFittedError, "not fitted"),
        (PolyleafClassifier, {}, TypeError, "the class PolyleafClassifier"),
        (None, {}, TypeError, "got NoneType"),
        ("mixed", {"group": "nothing"}, ValueError, r"no group 'nothing'; it has 'a', 'count', 'grade'"),
        ("mixed", {"group": 3}, ValueError, "no group 3"),
        ("classes", {"raw": "yes"}, TypeError, "raw must be"),
    ],
)
def test_bad_input(model: Any, options: dict[str, Any], error: type[Exception], words: str) -> None:
    with pytest.raises(error, match=words):
        to_treelite(fitted(model) if isinstance(model, str) else model, **options)


def test_without_treelite_the_error_names_what_brings_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "treelite.model_builder", None)
    with pytest.raises(ImportError, match=r'pip install "polyleaf\[treelite\]"'):
        to_treelite(PolyleafClassifier(**SMALL).fit(X, CLASSES))
