"""Models of XGBoost 3.4 in files: every row falls into the leaves it had there, and scores are the same.

XGBoost itself is not needed: what it said of some rows lies beside the files.
"""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from foreign_models import FILES, KNOWN, assert_same_leaves, contributions, known_rows, rounding

from polyleaf import PolyleafClassifier, PolyleafRegressor, import_model, load_model

NAMES = sorted(KNOWN)
CLASSIFIERS = ("vector_classes", "vector_labels", "classes", "binary")


@pytest.fixture(params=["json", "ubj"])
def ending(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def known(name: str, what: str) -> Any:
    return np.array(KNOWN[name][what], dtype=float)


@pytest.mark.parametrize("name", NAMES)
def test_rows_fall_into_the_same_leaves(name: str, ending: str) -> None:
    model = import_model(FILES / f"{name}.{ending}")
    theirs = known(name, "leaves").astype(int)
    if name == "targets_parallel":  # output after output there, and so each round here
        theirs = theirs.reshape(len(theirs), 2, 2, 2).transpose(0, 1, 3, 2).reshape(len(theirs), -1)
    n_rounds = model.n_estimators_
    assert_same_leaves(theirs, model.apply(known_rows(name), n_rounds=n_rounds))


@pytest.mark.parametrize("name", NAMES)
def test_raw_scores_are_the_same_to_the_rounding_of_their_sums(name: str, ending: str) -> None:
    model = import_model(FILES / f"{name}.{ending}")
    values, expected = contributions(model, known_rows(name))
    margin = known(name, "margin").reshape(len(values), -1)
    np.testing.assert_allclose(values.sum(axis=2) + expected, margin, rtol=0, atol=rounding(model))


@pytest.mark.parametrize("name", NAMES)
def test_contributions_are_the_same(name: str, ending: str) -> None:
    model = import_model(FILES / f"{name}.{ending}")
    values, expected = contributions(model, known_rows(name))
    theirs = known(name, "contributions").reshape(*values.shape[:2], -1)
    np.testing.assert_allclose(values, theirs[:, :, :-1], rtol=1e-5, atol=2e-6)
    np.testing.assert_allclose(np.broadcast_to(expected, theirs.shape[:2]), theirs[:, :, -1], atol=2e-6)


@pytest.mark.parametrize("name", NAMES)
def test_predictions_are_the_same(name: str) -> None:
    model = import_model(FILES / f"{name}.json")
    X, theirs = known_rows(name), known(name, "prediction")
    assert isinstance(model, PolyleafClassifier if name in CLASSIFIERS else PolyleafRegressor)
    if name == "classes":  # multi:softmax predicts classes
        assert model.predict(X).tolist() == theirs.tolist()
        return
    if name in CLASSIFIERS:
        ours = model.predict_proba(X)
        ours = ours[:, 1] if name == "binary" else ours
    else:
        ours = model.predict(X)
    assert ours.shape == theirs.shape
    np.testing.assert_allclose(ours, theirs, rtol=1e-6, atol=rounding(model))


@pytest.mark.parametrize("name", NAMES)
def test_both_formats_are_one_model(name: str, tmp_path: Path) -> None:
    """And so is what is saved and loaded again."""
    one, other = (import_model(FILES / f"{name}.{ending}") for ending in ("json", "ubj"))
    one.save_model(tmp_path / "model")
    again = load_model(tmp_path / "model")
    arrays = one._forest.to_arrays()
    for same in (other, again):
        assert all(np.array_equal(array, arrays[key]) for key, array in same._forest.to_arrays().items())
    X = known_rows(name)
    assert np.array_equal(one.predict(X), again.predict(X))


@pytest.mark.parametrize("name", ["vector", "classes", "vector_categories"])
def test_gain_is_what_xgboost_says(name: str) -> None:
    model = import_model(FILES / f"{name}.ubj")
    names = getattr(model, "feature_names_in_", [f"f{j}" for j in range(model.n_features_in_)])
    theirs = [KNOWN[name]["gain"].get(one, 0.0) for one in names]
    np.testing.assert_allclose(model.get_importance("gain"), theirs, rtol=1e-6)


def test_what_is_said_of_a_model() -> None:
    vector = import_model(FILES / "vector.json")
    assert vector.feature_names_in_.tolist() == ["a", "b", "c", "d"]
    assert (vector.n_estimators_, vector.n_outputs_, vector._forest.trees_per_round) == (3, 3, 1)
    assert vector[:2].n_estimators_ == 2
    assert len(vector.to_frame()) == len(vector._forest.left)
    classes = import_model(FILES / "classes.json")
    assert (classes.n_estimators_, classes._forest.trees_per_round) == (3, 3)
    assert classes.get_params()["multi_strategy"] == "one_output_per_tree"
    quantiles = import_model(FILES / "quantiles.json")
    assert quantiles.get_params()["quantile_levels"] == [0.1, 0.5, 0.9]
    assert np.all(np.diff(quantiles.predict(known_rows("quantiles")), axis=1) >= 0)


def test_early_stopping_is_taken_over() -> None:
    model = import_model(FILES / "stopped.json")
    assert (model.best_iteration_, model.n_estimators_) == (1, 3)


def test_parallel_trees_become_rounds() -> None:
    assert import_model(FILES / "vector_parallel.json").n_estimators_ == 4
    model = import_model(FILES / "targets_parallel.json")
    assert model._forest.tree_output.tolist() == [0, 1] * 4


def test_categories_of_a_frame_are_known_by_their_values() -> None:
    """In another order, or as words, they are the same; unseen ones go where missing ones do."""
    model = import_model(FILES / "vector_categories.ubj")
    X = known_rows("vector_categories")
    other = X.assign(word=X["word"].cat.reorder_categories(sorted(X["word"].cat.categories)[::-1]))
    assert np.array_equal(model.predict(X), model.predict(other))
    assert np.array_equal(model.predict(X), model.predict(X.astype({"word": object, "number": float})))
    unseen, missing = X.astype({"word": object}), X.astype({"word": object})
    unseen["word"], missing["word"] = "unseen", None
    assert np.array_equal(model.predict(unseen), model.predict(missing))


def test_codes_that_no_set_has_go_left_as_in_xgboost() -> None:
    """Missing values may go the other way, so that such codes must be categories, too."""
    document = json.loads((FILES / "codes.json").read_text())
    tree = document["learner"]["gradient_booster"]["model"]["trees"][0]
    node = tree["categories_nodes"][0]
    assert tree["default_left"][node] == 0
    model = import_model(FILES / "codes.json")
    before = np.nextafter(np.float32(tree["split_conditions"][0]), np.float32(-np.inf))
    X = np.array([[8.0, before], [9_999.0, before], [0.0, before], [np.nan, before]])
    if tree["split_indices"][0] != 1 or tree["left_children"][0] != node:
        pytest.fail("the file is not the one this test was written for")
    leaves = model.apply(X)[:, 0]
    assert leaves[0] == leaves[1] != leaves[2] == leaves[3]


@pytest.mark.parametrize(
    "content",
    [
        lambda path: str(path),
        lambda path: path.read_bytes(),
        lambda path: bytearray(path.read_bytes()),
        lambda path: io.BytesIO(path.read_bytes()),
    ],
    ids=["path", "bytes", "bytearray", "file"],
)
def test_what_a_model_can_be_given_as(content: Any, ending: str) -> None:
    path = FILES / f"vector.{ending}"
    X = known_rows("vector")
    assert np.array_equal(import_model(content(path)).predict(X), import_model(path).predict(X))


def test_a_file_of_text() -> None:
    with open(FILES / "vector.json", encoding="utf-8") as file:
        assert import_model(file).n_estimators_ == 3


def test_labels_of_classes() -> None:
    """They stand for 0, 1, 2; outputs are in their order, as in any classifier."""
    X = known_rows("classes")
    for name in ("classes", "vector_classes"):
        plain = import_model(FILES / f"{name}.json")
        model = import_model(FILES / f"{name}.json", classes=["one", "two", "three"])
        assert model.classes_.tolist() == ["one", "three", "two"]
        np.testing.assert_allclose(model.predict_proba(X), plain.predict_proba(X)[:, [0, 2, 1]], rtol=1e-12)
        assert model.predict(X).tolist() == [("one", "two", "three")[k] for k in plain.predict(X)]
    plain = import_model(FILES / "binary.json")
    model = import_model(FILES / "binary.json", classes=["yes", "no"])
    assert model.classes_.tolist() == ["no", "yes"]
    np.testing.assert_allclose(model.predict_proba(X), plain.predict_proba(X)[:, ::-1], rtol=1e-12)
    assert model.predict(X).tolist() == [("yes", "no")[int(k)] for k in plain.predict(X)]


def test_training_goes_on_from_an_imported_model() -> None:
    """Its trees stay, and new rounds follow."""
    rng = np.random.default_rng(3)
    X = rng.normal(size=(200, 4))
    Y = np.column_stack([X[:, 0], X[:, 1], X[:, 2]])
    start = import_model(FILES / "vector_parallel.json")
    model = PolyleafRegressor(n_estimators=6, n_jobs=1).fit(X, Y, init_model=start)
    assert model.n_estimators_ == 10
    np.testing.assert_array_equal(model[:4].predict(X), start.predict(X))


def test_models_of_xgboost_1_say_less() -> None:
    """What 3.4 wrote, written as 1.2 did: the same model."""
    document = json.loads((FILES / "binary.json").read_text())
    learner = document["learner"]
    model = learner["gradient_booster"]["model"]
    document["version"] = [1, 2, 0]
    learner["learner_model_param"]["base_score"] = learner["learner_model_param"]["base_score"].strip("[]")
    del learner["learner_model_param"]["num_target"], learner["learner_model_param"]["boost_from_average"]
    del learner["feature_names"], learner["feature_types"]
    del model["cats"], model["iteration_indptr"], model["gbtree_model_param"]["num_parallel_tree"]
    for tree in model["trees"]:
        for name in [*tree]:
            if name.startswith(("categories", "split_type")):
                del tree[name]
        tree["tree_param"]["size_leaf_vector"] = "0"
        tree["default_left"] = [bool(one) for one in tree["default_left"]]
    X = known_rows("binary")
    old, new = import_model(json.dumps(document).encode()), import_model(FILES / "binary.json")
    assert np.array_equal(old.predict_proba(X), new.predict_proba(X))


def test_models_of_xgboost_2_have_weights_in_all_nodes_and_one_base_score() -> None:
    """What 3.4 wrote, written as 2.1 did: the same model."""
    document = json.loads((FILES / "vector.json").read_text())
    learner = document["learner"]
    model = learner["gradient_booster"]["model"]
    base = np.array(json.loads(learner["learner_model_param"]["base_score"]), dtype=np.float32)
    learner["learner_model_param"]["base_score"] = "5E-1"
    for one in (document["version"], model, model["cats"]):
        assert one
    document["version"] = [2, 1, 4]
    del model["cats"], model["iteration_indptr"]
    for tree in model["trees"]:
        leaves = np.array(tree.pop("leaf_weights")).reshape(-1, 3)
        weights = np.zeros((len(tree["left_children"]), 3))
        for node, left in enumerate(tree["left_children"]):
            if left < 0:
                weights[node] = leaves[tree["right_children"][node]]
                tree["right_children"][node] = -1
                tree["split_conditions"][node] = float("nan")
        tree["base_weights"] = weights.ravel().tolist()
        del tree["loss_changes"], tree["sum_hessian"]
    X = known_rows("vector")
    old, new = import_model(json.dumps(document).encode()), import_model(FILES / "vector.json")
    np.testing.assert_allclose(old.predict(X) - 0.5, new.predict(X) - base, rtol=0, atol=1e-12)
    assert old.get_importance("gain").tolist() == [0.0] * 4
    values, expected = contributions(old, X)  # every child counts a half
    np.testing.assert_allclose(values.sum(axis=2) + expected, old.predict(X), rtol=0, atol=1e-6)


def test_splits_by_categories_had_no_number() -> None:
    """Up to 3.0 it was NaN."""
    document = json.loads((FILES / "codes.json").read_text())
    for tree in document["learner"]["gradient_booster"]["model"]["trees"]:
        for node in tree["categories_nodes"]:
            tree["split_conditions"][node] = float("nan")
    X = known_rows("codes")
    old, new = import_model(json.dumps(document).encode()), import_model(FILES / "codes.json")
    assert np.array_equal(old.predict(X), new.predict(X))
