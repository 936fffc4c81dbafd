"""Damaged models of other libraries: the error names the field, and nothing else happens."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from foreign_models import FILES

from polyleaf import import_model

pytestmark = pytest.mark.cpu_only("reads files")


def changed(name: str, change: Callable[[Any, Any], object]) -> bytes:
    """The JSON of a model, after a change of its learner or its first tree."""
    document = json.loads((FILES / f"{name}.json").read_text())
    learner = document["learner"]
    change(learner, learner["gradient_booster"]["model"]["trees"][0])
    return json.dumps(document).encode()


def put(place: Any, *keys: Any) -> None:
    """Set a cell: the last key is the value."""
    *path, last, value = keys
    for key in path:
        place = place[key]
    place[last] = value


SHAPE = "learner_model_param"


@pytest.mark.parametrize(
    ("name", "change", "words"),
    [
        ("vector", lambda a, t: a.pop("objective"), "objective of learner is missing"),
        ("vector", lambda a, t: put(a, "objective", "name", "reg:mine"), "objective is 'reg:mine'"),
        ("vector", lambda a, t: put(a, SHAPE, "num_feature", "0"), "num_feature of .* is 0"),
        ("vector", lambda a, t: put(a, SHAPE, "num_feature", "9" * 12), "num_feature of .* is 99999"),
        ("vector", lambda a, t: put(a, SHAPE, "num_target", "2"), "size_leaf_vector of tree 0 is 3"),
        ("vector", lambda a, t: put(a, SHAPE, "num_class", "3"), "3 classes of 3 targets"),
        ("vector", lambda a, t: put(a, SHAPE, "base_score", "[1,2]"), "base_score has 2 values for 3"),
        ("vector", lambda a, t: put(a, SHAPE, "base_score", "[1,2,nan]"), "finite numbers belong"),
        ("vector", lambda a, t: put(a, SHAPE, "base_score", "[1,2,1e39]"), "base_score is beyond float32"),
        ("counts", lambda a, t: put(a, SHAPE, "base_score", "[-1]"), "which its objective cannot predict"),
        ("vector", lambda a, t: put(a, "feature_names", ["a", "a", "b", "c"]), "4 distinct words"),
        ("vector", lambda a, t: put(a, "feature_names", ["a"]), "4 distinct words"),
        ("vector", lambda a, t: put(t, "left_children", 0, 99), "left_children of tree 0 holds a number"),
        ("vector", lambda a, t: put(t, "left_children", 0, 0), "no tree: node 0 is reached twice"),
        ("vector", lambda a, t: put(t, "right_children", 0, 1), "no tree: node 1 is reached twice"),
        ("binary", lambda a, t: put(t, "right_children", 0, -1), "tree 0 has a child -1"),
        ("vector", lambda a, t: put(t, "split_indices", 0, 4), "feature beyond the 4 there are"),
        (
            "vector",
            lambda a, t: put(t, "split_conditions", 0, float("nan")),
            "split_conditions .* not finite",
        ),
        ("vector", lambda a, t: put(t, "split_conditions", 0, 1e39), "split_conditions .* beyond float32"),
        ("vector", lambda a, t: put(t, "split_conditions", 0, "1"), "something else than numbers"),
        ("vector", lambda a, t: put(t, "default_left", 0, 2), "default_left of tree 0"),
        ("vector", lambda a, t: put(t, "left_children", 0, 10**30), "left_children .* out of range"),
        ("vector", lambda a, t: t["sum_hessian"].pop(), "sum_hessian of tree 0 has 6 values; 7 belong"),
        ("binary", lambda a, t: t.pop("sum_hessian"), "sum_hessian of tree 0 is missing"),
        ("vector", lambda a, t: t["leaf_weights"].pop(), "no multiple of 3"),
        ("vector", lambda a, t: put(t, "leaf_weights", t["leaf_weights"][3:]), "a leaf without weights"),
        ("vector", lambda a, t: put(t, "leaf_weights", 0, float("inf")), "leaf_weights .* not finite"),
        (
            "vector",
            lambda a, t: put(t, "tree_param", "num_nodes", "1000000000"),
            "has 7 values; 1,000,000,000",
        ),
        ("vector", lambda a, t: put(t, "tree_param", "size_leaf_vector", "16777216"), "size_leaf_vector"),
        ("codes", lambda a, t: put(t, "categories_sizes", 0, 99), "categories_sizes of tree 0"),
        ("codes", lambda a, t: put(t, "categories_nodes", 0, 0), "not the nodes of split_type 1"),
        ("codes", lambda a, t: put(t, "categories", 0, 20_000), "categories must be below 10,000"),
        ("codes", lambda a, t: put(t, "split_type", t["categories_nodes"][0], 0), "categories_nodes"),
        ("stopped", lambda a, t: put(a, "attributes", "best_iteration", "x"), "best_iteration of attributes"),
        ("quantiles", lambda a, t: put(a, SHAPE, "num_target", "1"), "3 levels for 1 outputs"),
    ],
)
def test_xgboost(name: str, change: Callable[[Any, Any], object], words: str) -> None:
    with pytest.raises(ValueError, match=f"^the model cannot be imported: .*{words}"):
        import_model(changed(name, change))


def model_of(learner: Any) -> Any:
    return learner["gradient_booster"]["model"]


@pytest.mark.parametrize(
    ("name", "change", "words"),
    [
        ("classes", lambda m: m["trees"].pop(), "tree_info .* has 9 values; 8 belong"),
        ("classes", lambda m: put(m, "tree_info", 0, 1), "trees 0 to 2 out of order"),
        ("classes", lambda m: put(m, "tree_info", 0, 3), "tree_info .* not within"),
        ("vector", lambda m: put(m, "tree_info", 0, 1), "for one output, but its leaves have all"),
        ("vector", lambda m: put(m, "trees", []), "tree_info"),
        ("vector_categories", lambda m: m["cats"]["enc"].pop(), "cats has 2 columns, but the model has 3"),
        ("vector_categories", lambda m: m["cats"]["enc"][0]["values"].pop(), "offsets of cats of column 0"),
        (
            "vector_categories",
            lambda m: put(m, "cats", "enc", 1, "values", [3, 3]),
            "not ascending and distinct",
        ),
        ("vector_categories", lambda m: put(m, "cats", "enc", 2, m["cats"]["enc"][1]), "compares feature 2"),
    ],
)
def test_xgboost_trees_together(name: str, change: Callable[[Any], object], words: str) -> None:
    with pytest.raises(ValueError, match=words):
        import_model(changed(name, lambda learner, tree: change(model_of(learner))))


@pytest.mark.parametrize("ending", ["json", "ubj"])
def test_boosters_without_plain_trees(ending: str) -> None:
    with pytest.raises(ValueError, match=r"weight_drop.*dropout"):
        import_model(FILES / f"dropout.{ending}")
    with pytest.raises(ValueError, match="booster is 'gblinear'"):
        import_model(FILES / f"linear.{ending}")


def test_keys_twice_and_depth() -> None:
    with pytest.raises(ValueError, match="'learner' twice"):
        import_model(b'{"learner": 1, "learner": 2}')
    with pytest.raises(ValueError, match="too deep"):
        import_model(b'{"learner": ' + b"[" * 200_000)


def edited(name: str, field: str, value: str, tree: int = 0) -> bytes:
    """A text of LightGBM with another value of a field of a tree; -1: of the head."""
    lines = (FILES / f"{name}.txt").read_text().split("\n")
    first = 0 if tree < 0 else lines.index(f"Tree={tree}")
    at = next(number for number in range(first, len(lines)) if lines[number].startswith(f"{field}="))
    lines[at] = f"{field}={value}"
    return "\n".join(lines).encode()


@pytest.mark.parametrize(
    ("name", "field", "value", "words"),
    [
        ("numbers", "num_leaves", "1000000000", "leaf_value of tree 0 has 5 values; 1,000,000,000"),
        ("numbers", "num_leaves", "x", "num_leaves of tree 0"),
        ("numbers", "leaf_value", "1 2 3 4 nan", "leaf_value of tree 0 .* not finite"),
        ("numbers", "leaf_value", "1 2 3 4 5 6", "leaf_value of tree 0 has 6 values; 5 belong"),
        ("numbers", "leaf_value", "1 2 3 4 five", "leaf_value of tree 0 holds something else"),
        ("numbers", "threshold", "nan 1 2 3", "threshold of tree 0 .* not finite"),
        ("numbers", "left_child", "1 0 -1 -2", "node 0 is reached twice"),
        ("numbers", "left_child", "9 1 1 1", "left_child of tree 0"),
        ("numbers", "split_feature", "0 1 2 4", "split_feature of tree 0"),
        ("numbers", "decision_type", "12 8 8 8", "kind of missing values that does not exist"),
        ("numbers", "decision_type", "16 8 8 8", "decision_type of tree 0"),
        ("numbers", "decision_type", "1 8 8 8", "num_cat of tree 0"),
        ("numbers", "leaf_count", "-1 1 1 1 1", "leaf_count of tree 0"),
        ("numbers", "is_linear", "1", "linear_tree"),
        ("frame", "cat_boundaries", "0 7", "cat_boundaries of tree"),
        ("frame", "cat_threshold", "4294967295", "category 6 of feature 0, which is unknown"),
    ],
)
def test_lightgbm_trees(name: str, field: str, value: str, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        import_model(edited(name, field, value))


@pytest.mark.parametrize(
    ("name", "field", "value", "words"),
    [
        ("numbers", "max_feature_idx", "-1", "max_feature_idx is -1"),
        ("numbers", "objective", "mine", "objective is 'mine'"),
        ("numbers", "objective", "multiclass num_class:3", "a round has 1 trees"),
        ("classes", "objective", "binary sigmoid:1", "a round has 3 trees"),
        ("classes", "num_tree_per_iteration", "4", "9 trees do not fill rounds of 4"),
        ("frame", "objective", "binary sigmoid:0", "sigmoid is 0.0"),
        ("frame", "feature_names", "word word", "2 distinct words"),
    ],
)
def test_lightgbm_head(name: str, field: str, value: str, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        import_model(edited(name, field, value, tree=-1))


def test_lightgbm_text_that_is_cut() -> None:
    text = (FILES / "numbers.txt").read_text()
    with pytest.raises(ValueError, match="'end of trees' is missing"):
        import_model(text[: text.index("end of trees")].encode())
    with pytest.raises(ValueError, match=r"'Tree=2' where 'Tree=1' belongs"):
        import_model(text.replace("Tree=1", "Tree=2").encode())
    with pytest.raises(ValueError, match="tree 0 has 'num_leaves' twice"):
        import_model(text.replace("Tree=0\n", "Tree=0\nnum_leaves=5\n").encode())
    with pytest.raises(ValueError, match="no UTF-8 text"):
        import_model(text.encode() + b"\xff")
    with pytest.raises(ValueError, match="pandas_categorical is cut, or no JSON"):
        import_model(text.encode() + b"\npandas_categorical:[[")


@pytest.mark.parametrize("content", [b"", b"x", b"binf", b"\x80\x04K\x01."])
def test_what_begins_as_neither(content: bytes) -> None:
    with pytest.raises(ValueError, match="begins neither as JSON or UBJSON of XGBoost"):
        import_model(content)


def test_sources(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        import_model(tmp_path / "none")
    with pytest.raises(ValueError, match="is a device"):
        import_model("/dev/zero")
    with pytest.raises(TypeError, match="source must be a path, a file, bytes"):
        import_model(3)
    with pytest.raises(TypeError, match="gave list; bytes or text are needed"):
        import_model(type("File", (), {"read": lambda self, n: []})())


@pytest.mark.parametrize(
    ("name", "classes", "words"),
    [
        ("vector", ["a", "b", "c"], "of kind 'regression', without classes"),
        ("classes", ["a", "b"], "the model has 3 classes"),
        ("classes", [["a", "b", "c"]], "the model has 3 classes"),
        ("classes", ["a", "b", "a"], "a label twice"),
        ("classes", "abc", "the model has 3 classes"),
        ("classes", np.array(["a", 1, None], dtype=object), "missing class label, None"),
        ("classes", ["a", 1, 2], "mixes labels of type int and str"),
        ("classes", [1.0, np.nan, 2.0], "classes contains NaN"),
        ("classes", [0.5, 1.0, 2.0], "float class labels must be whole numbers"),
        ("classes", [2**70, 1, 2], "beyond 64 bits"),
        ("classes", [b"a", b"b", b"c"], "class labels are str, int, float or bool"),
        ("classes", np.array([1, 2, 3], "M8[D]"), "class labels are str, int, float or bool"),
    ],
)
def test_labels_that_are_not_those_of_classes(name: str, classes: Any, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        import_model(FILES / f"{name}.json", classes=classes)
