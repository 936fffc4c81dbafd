"""What "auto" stands for: by the loss, the rows, the features and the outputs; a number is obeyed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from parts import fit_parts
from polyleaf import PolyleafClassifier, PolyleafMixed, PolyleafRegressor, load_model
from polyleaf.params.automatic import resolved
from polyleaf.params.table import AUTO_FEATURES, AUTO_FEW_ROUNDS_ROWS, AUTO_SKETCH_OUTPUTS, parameters_of
from polyleaf.peers.local import run_local

REGRESSOR = {name: row.default for name, row in parameters_of("regressor").items()}
CLASSIFIER = {name: row.default for name, row in parameters_of("classifier").items()}
NAMES = ("n_estimators", "learning_rate", "min_samples_leaf", "subsample", "colsample_bytree")


@pytest.mark.parametrize(
    ("loss", "outputs", "rows", "sketch_size"),
    [
        ("squared_error", 1, 3, None),
        ("squared_error", 2, 3, None),
        ("squared_error", 3, 3, 2),
        ("squared_error", 500, 3, 2),
        ("huber", 3, 20, None),
        ("absolute_error", 3, 20, None),
        ("custom", 3, 20, None),
        ("cross_entropy", 4, 5, None),
        ("cross_entropy", 5, 5, 2),
        ("cross_entropy", AUTO_SKETCH_OUTPUTS - 1, 5, 2),
        ("cross_entropy", AUTO_SKETCH_OUTPUTS, 5, 5),
        ("binary_cross_entropy", 1, 20, None),
        ("binary_cross_entropy", 4, 20, None),
        ("binary_cross_entropy", 5, 20, 2),
        ("binary_cross_entropy", AUTO_SKETCH_OUTPUTS - 1, 20, 2),
        ("binary_cross_entropy", AUTO_SKETCH_OUTPUTS, 20, 5),
    ],
)
def test_leaves_and_sketch_by_the_loss(loss: str, outputs: int, rows: int, sketch_size: int | None) -> None:
    params = REGRESSOR if loss in ("squared_error", "huber", "absolute_error") else CLASSIFIER
    used = resolved(params, loss, outputs, 1000, 10)
    assert used["min_samples_leaf"] == rows
    assert used["sketch"] == (None if sketch_size is None else "random_projection")
    assert sketch_size is None or used["sketch_size"] == sketch_size


def test_rate_and_columns_on_both_sides_of_their_bounds() -> None:
    def used(n_rows: int, n_features: int) -> Any:
        return resolved(REGRESSOR, "squared_error", 1, n_rows, n_features)

    assert used(AUTO_FEW_ROUNDS_ROWS - 1, 9)["learning_rate"] == 0.05
    assert used(AUTO_FEW_ROUNDS_ROWS, 9)["learning_rate"] == 0.1
    for n_features in (1, AUTO_FEATURES - 1, AUTO_FEATURES):
        assert used(9, n_features)["colsample_bytree"] == 1
    assert round(used(9, AUTO_FEATURES + 1)["colsample_bytree"] * (AUTO_FEATURES + 1)) == AUTO_FEATURES
    assert used(9, 2 * AUTO_FEATURES)["colsample_bytree"] == 0.5
    assert used(9, 1000)["colsample_bytree"] == 0.5


@pytest.mark.parametrize(
    ("loss", "outputs", "share"),
    [
        ("squared_error", 1, 0.7),
        ("squared_error", 2, 1.0),
        ("huber", 1, 1.0),
        ("cross_entropy", 4, 1.0),
        ("binary_cross_entropy", 1, 0.7),
        ("binary_cross_entropy", 2, 1.0),
    ],
)
def test_the_share_of_the_rows(loss: str, outputs: int, share: float) -> None:
    params = CLASSIFIER if "entropy" in loss else REGRESSOR

    def used(n_rows: int, **given: Any) -> float:
        found: float = resolved(params | given, loss, outputs, n_rows, 10)["subsample"]
        return found

    assert used(AUTO_FEW_ROUNDS_ROWS - 1) == share
    assert used(AUTO_FEW_ROUNDS_ROWS) == 1.0
    assert used(100, sampling_method="gradient_based") == 1.0
    assert used(100, n_estimators=50) == 1.0
    assert used(AUTO_FEW_ROUNDS_ROWS, n_estimators=50, subsample=0.5) == 0.5


@pytest.mark.parametrize(
    "given",
    [
        {"sparse_leaves": 2},
        {"multi_strategy": "one_output_per_tree"},
        {"monotone_constraints": [1, 0]},
        {"sketch": None},
    ],
)
def test_no_sketch_where_there_can_be_none(given: dict[str, Any]) -> None:
    assert resolved(REGRESSOR | given, "squared_error", 9, 100, 2)["sketch"] is None


def test_numbers_are_obeyed() -> None:
    given = {"n_estimators": 7, "learning_rate": 0.3, "min_samples_leaf": 11, "colsample_bytree": 0.7}
    given |= {"bounded_influence": False, "subsample": 0.9}
    used = resolved(REGRESSOR | given | {"sketch": "top_outputs"}, "squared_error", 9, 100, 50)
    assert {name: used[name] for name in given} == given
    assert (used["sketch"], used["sketch_size"]) == ("top_outputs", 5)
    X = np.random.default_rng(0).normal(size=(120, 9))
    model = PolyleafRegressor(**given).fit(X, X[:, :2])
    assert model.n_estimators_ == 7
    assert model.chosen_params_ == {"sketch": None}


def test_what_was_chosen_is_told_and_saved(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(150, 9))
    Y = X[:, :3] + rng.normal(size=(150, 3))
    model = PolyleafRegressor(learning_rate=0.3).fit(X, Y)
    chosen = model.chosen_params_
    by_table = PolyleafRegressor(n_estimators=3, learning_rate=0.3).fit(X, Y).chosen_params_
    assert by_table["min_samples_leaf"] == 3
    assert by_table["colsample_bytree"] == AUTO_FEATURES / 9
    assert chosen == {
        "min_samples_leaf": 20,  # held-out rows prefer these
        "subsample": 1.0,
        "colsample_bytree": 1.0,
        "sketch": "random_projection",
        "sketch_size": 2,
        "bounded_influence": True,
    }
    model.save_model(tmp_path / "model")
    assert load_model(tmp_path / "model").chosen_params_ == chosen
    # The same parameters, given, are the same model.
    again = PolyleafRegressor(n_estimators=model.n_estimators_, learning_rate=0.3, **chosen).fit(X, Y)
    np.testing.assert_array_equal(again.predict(X), model.predict(X))


def test_every_estimator_tells() -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(90, 4))
    classes = PolyleafClassifier().fit(X, np.digitize(X[:, 0], [-0.5, 0.5]))
    assert set(classes.chosen_params_) == {*NAMES[1:], "max_depth", "sketch", "hessian"}
    assert classes.chosen_params_["min_samples_leaf"] == 5
    mixed = PolyleafMixed({"a": "regression", "b": "binary"}, n_estimators=5)
    mixed.fit(X, {"a": X[:, 0], "b": X[:, 1] > 0})
    assert mixed.chosen_params_["min_samples_leaf"] == 20


def test_few_rows_are_no_constant() -> None:
    """Thirty rows tell something, and nothing is said about it."""
    rng = np.random.default_rng(1)
    X = rng.normal(size=(30, 5))
    Y = np.column_stack([np.sign(X[:, 0]), X[:, 1]]) + 0.1 * rng.normal(size=(30, 2))
    model = PolyleafRegressor().fit(X, Y)
    assert (model.predict(X).std(axis=0) > 0.3).all()


def test_rows_of_all_shards_count(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("polyleaf.params.automatic.AUTO_FEW_ROUNDS_ROWS", 60)
    rng = np.random.default_rng(2)
    X = rng.normal(size=(80, 4))
    y = X[:, 0] + rng.normal(size=80)
    plain = PolyleafRegressor(n_estimators=3).fit(X, y)
    assert plain.chosen_params_["learning_rate"] == 0.1
    sharded = PolyleafRegressor(n_estimators=3)
    for model in run_local(2, lambda exchange: fit_parts(exchange, sharded, np.split(X, 2), np.split(y, 2))):
        np.testing.assert_array_equal(model.fitted.forest.predict_raw(X)[:, 0], plain.predict(X))


@pytest.mark.parametrize("name", NAMES)
def test_other_words_are_refused_by_name(name: str) -> None:
    X = np.zeros((9, 1))
    with pytest.raises(TypeError, match=rf'{name} must be .* or "auto"'):
        PolyleafRegressor(**{name: "automatic"}).fit(X, X)


@pytest.mark.parametrize("chosen", [3, {"min_samples_leaf": "auto"}, {"min_samples_leaf": -1}, {"leaves": 3}])
def test_a_file_that_says_otherwise_is_refused(chosen: Any, tmp_path: Path) -> None:
    from polyleaf.model.page import _chosen

    with pytest.raises((TypeError, ValueError)):
        _chosen({"chosen": chosen}, "regressor")
