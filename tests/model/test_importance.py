"""How much each feature matters: gain, cover and splits, for all outputs and for each."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.sparse
from sklearn.inspection import permutation_importance

from polyleaf import PolyleafClassifier, PolyleafRegressor, load_model
from polyleaf.model.forest import Forest

KINDS = ("gain", "cover", "split")


def table(n: int = 500, n_outputs: int = 3, seed: int = 0) -> tuple[Any, Any]:
    """Output j depends on feature j and a little on feature 0; the last feature is noise."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, n_outputs + 1))
    Y = np.sin(2 * X[:, :n_outputs]) + 0.2 * X[:, :1] + 0.1 * rng.normal(size=(n, n_outputs))
    return X, Y


def splits(model: Any) -> Any:
    """The nodes that are split in the rounds up to the best."""
    forest = model._forest
    last = forest.node_begin[(model.best_iteration_ + 1) * forest.trees_per_round]
    return np.flatnonzero(forest.left[:last] >= 0)


@pytest.mark.parametrize("kind", KINDS)
def test_importance_adds_up_what_splits_have(kind: str) -> None:
    X, Y = table()
    weight = np.random.default_rng(1).exponential(size=len(X))
    model = PolyleafRegressor(n_estimators=10, importance_type=kind).fit(X, Y, weight)
    forest, expected = model._forest, np.zeros(4)
    for node in splits(model):
        expected[forest.feature[node]] += {"gain": forest.gain, "cover": forest.cover}.get(
            kind, np.ones(len(forest.gain))
        )[node]
    np.testing.assert_allclose(model.get_importance(kind), expected)
    np.testing.assert_allclose(model.get_importance(kind, normalize=True), expected / expected.sum())
    np.testing.assert_array_equal(model.feature_importances_, model.get_importance(kind, normalize=True))
    assert model.get_importance(kind).argmin() == 3


CASES: dict[str, tuple[str, dict[str, Any]]] = {
    "regression": ("regression", {}),
    "not scaled": ("regression", {"scale_targets": False}),
    "L1": ("regression", {"reg_alpha": 0.5}),
    "rows": ("regression", {"subsample": 0.5, "random_state": 0}),
    "one output per tree": ("regression", {"multi_strategy": "one_output_per_tree"}),
    "sparse leaves": ("regression", {"sparse_leaves": 2}),
    "unrestricted": ("regression", {"sparse_leaves": 1, "sparse_mode": "unrestricted"}),
    "monotone": ("regression", {"monotone_constraints": [1, 1, 0, -1]}),
    "labels": ("labels", {"hessian": "diagonal"}),
    "classes": ("classes", {"hessian": "diagonal"}),
    "exact leaves": ("classes", {"hessian": "exact_leaf"}),
    "two classes": ("two classes", {}),
}


def fitted(name: str, weighted: bool = False, **more: Any) -> tuple[Any, Any, Any]:
    problem, settings = CASES[name]
    X, Y = table()
    y = {
        "regression": Y * [1.0, 1e-9, 1e5],
        "labels": (Y > 0).astype(int),
        "classes": Y.argmax(axis=1),
        "two classes": Y[:, 1] > 0,
    }[problem]
    weight = np.random.default_rng(1).exponential(size=len(X)) if weighted else None
    kind = PolyleafRegressor if problem == "regression" else PolyleafClassifier
    return kind(**({"n_estimators": 8, "sketch": None} | settings | more)).fit(X, y, weight), X, y


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("weighted", [False, True])
def test_the_outputs_shares_add_up_to_the_gain(name: str, weighted: bool) -> None:
    model, _, _ = fitted(name, weighted)
    shares = model.get_importance("gain", per_output=True)
    assert shares.shape == (4, model.n_outputs_)
    total = model.get_importance("gain")
    np.testing.assert_allclose(shares.sum(axis=1), total, rtol=1e-3, atol=1e-3 * total.max())
    assert model.get_importance("gain", per_output=True, normalize=True).sum() == pytest.approx(1)


def test_an_output_gains_by_its_own_features() -> None:
    X, Y = table()
    for settings in (
        {},
        {"multi_strategy": "one_output_per_tree"},
        {"sketch": "top_outputs", "sketch_size": 2},
    ):
        shares = PolyleafRegressor(n_estimators=20, **settings).fit(X, Y).get_importance(per_output=True)
        assert shares.argmax(axis=0).tolist() == [0, 1, 2]
        np.testing.assert_array_less(shares[3], 0.05 * shares.max(axis=0))


def test_a_shared_hessian_gives_shares_too() -> None:
    X, Y = table()
    model = PolyleafClassifier(n_estimators=5, hessian="shared").fit(X, (Y > 0).astype(int))
    assert model.get_importance(per_output=True).argmax(axis=0).tolist() == [0, 1, 2]


def test_cover_and_splits_count_for_the_outputs_of_their_tree() -> None:
    X, Y = table()
    joint = PolyleafRegressor(n_estimators=5).fit(X, Y)
    single = PolyleafRegressor(n_estimators=5, multi_strategy="one_output_per_tree").fit(X, Y)
    for kind in ("cover", "split"):
        for output in range(3):
            np.testing.assert_array_equal(
                joint.get_importance(kind, per_output=True)[:, output], joint.get_importance(kind)
            )
        shares = single.get_importance(kind, per_output=True)
        np.testing.assert_allclose(shares.sum(axis=1), single.get_importance(kind))
        assert shares.argmax(axis=0).tolist() == [0, 1, 2]


def test_importance_ends_with_the_best_round() -> None:
    X, Y = table()
    rng = np.random.default_rng(5)
    model = PolyleafRegressor(n_estimators=60, learning_rate=1.0, early_stopping_rounds=5)
    model.fit(X[:250], Y[:250], eval_set=(X[250:], Y[250:] + rng.normal(size=(250, 3))))
    assert model.best_iteration_ + 1 < model.n_estimators_
    short = PolyleafRegressor(n_estimators=model.best_iteration_ + 1, learning_rate=1.0)
    short.fit(X[:250], Y[:250])
    for kind in KINDS:
        for per_output in (False, True):
            np.testing.assert_array_equal(
                model.get_importance(kind, per_output), short.get_importance(kind, per_output)
            )


@pytest.mark.parametrize("n_jobs", [2, 4])
def test_threads_change_no_bit(n_jobs: int) -> None:
    one, _, _ = fitted("labels", n_jobs=1)
    other, _, _ = fitted("labels", n_jobs=n_jobs)
    np.testing.assert_array_equal(one.get_importance(per_output=True), other.get_importance(per_output=True))


def test_a_saved_model_keeps_its_importances(tmp_path: Any) -> None:
    for name in ("regression", "one output per tree", "classes"):
        model, _, _ = fitted(name)
        model.save_model(tmp_path / "model")
        loaded = load_model(tmp_path / "model")
        for kind in KINDS:
            for per_output in (False, True):
                np.testing.assert_array_equal(
                    model.get_importance(kind, per_output), loaded.get_importance(kind, per_output)
                )


def test_a_file_without_shares_is_read_and_says_so(tmp_path: Any) -> None:
    """As older versions wrote it."""
    model, X, _ = fitted("regression")
    model._forest.gain_feature = model._forest.output_gain = None
    model.save_model(tmp_path / "model")
    loaded = load_model(tmp_path / "model")
    np.testing.assert_array_equal(loaded.predict(X), model.predict(X))
    assert loaded.get_importance().any()
    assert loaded.get_importance("split", per_output=True).any()
    with pytest.raises(ValueError, match="gain per output is not known"):
        loaded.get_importance(per_output=True)


def test_shares_that_are_not_kept() -> None:
    X, Y = table()
    exact = PolyleafClassifier(n_estimators=3, hessian="exact").fit(X, Y.argmax(axis=1))
    sparse = PolyleafClassifier(n_estimators=3, objective="clipped_squared_error", sparse_leaves=2)
    sparse.fit(X, scipy.sparse.csr_array((Y > 0).astype(int)))
    many = PolyleafRegressor(n_estimators=1, max_depth=2).fit(X, np.repeat(Y, 400, axis=1))
    for model in (exact, sparse, many):
        assert model.get_importance().any()
        assert model.get_importance("cover", per_output=True).any()
        with pytest.raises(ValueError, match="gain per output is not known"):
            model.get_importance(per_output=True)


def test_shares_that_hashed_labels_do_not_have_are_refused_by_name() -> None:
    X, Y = table()
    hashed = PolyleafClassifier(n_estimators=1, label_space="hashed").fit(X, (Y > 0).astype(int))
    with pytest.raises(ValueError, match="a label_space"):
        hashed.get_importance(per_output=True)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"gain_feature": None}, "expected the arrays"),
        ({"output_gain": None}, "expected the arrays"),
        ({"gain_feature": np.array([0, 1, 2, 4], np.int32)}, "feature that does not exist"),
        ({"gain_feature": np.array([-1, 1, 2, 3], np.int32)}, "feature that does not exist"),
        ({"gain_feature": np.array([0, 2, 1, 3], np.int32)}, "do not ascend"),
        ({"gain_feature": np.array([0, 0, 1, 3], np.int32)}, "do not ascend"),
        ({"gain_feature": np.array([0, 1], np.int32)}, "output_gain has 12 values, expected 6"),
        ({"gain_feature": np.array([0, 1, 2, 3])}, "gain_feature must be a vector of int32"),
        ({"output_gain": np.full(12, np.nan, np.float32)}, "not finite"),
        ({"output_gain": np.zeros((4, 3), np.float32)}, "output_gain must be a vector"),
    ],
)
def test_hostile_shares_are_refused(change: dict[str, Any], message: str) -> None:
    model, _, _ = fitted("regression", min_samples_leaf=2)
    arrays = model._forest.to_arrays()
    assert arrays["gain_feature"].tolist() == [0, 1, 2, 3]
    arrays = {name: array for name, array in (arrays | change).items() if array is not None}
    with pytest.raises(ValueError, match=message):
        Forest.from_arrays(arrays)


def test_a_forest_without_splits() -> None:
    model = PolyleafRegressor(n_estimators=2).fit(np.zeros((50, 2)), np.arange(100.0).reshape(50, 2))
    for kind in KINDS:
        np.testing.assert_array_equal(
            model.get_importance(kind, per_output=True, normalize=True), np.zeros((2, 2))
        )
        np.testing.assert_array_equal(model.get_importance(kind, normalize=True), np.zeros(2))


def test_bad_arguments_are_named() -> None:
    model, _, _ = fitted("regression")
    with pytest.raises(ValueError, match=r"kind must be .*cover.*; got 'weight'"):
        model.get_importance("weight")
    with pytest.raises(TypeError, match="kind must be"):
        model.get_importance(None)
    with pytest.raises(TypeError, match="per_output must be bool"):
        model.get_importance("gain", "yes")
    with pytest.raises(TypeError, match="normalize must be bool"):
        model.get_importance("gain", normalize=1)


@pytest.mark.parametrize("name", ["regression", "classes", "labels", "two classes"])
def test_permutation_importance_of_scikit_learn(name: str) -> None:
    model, X, y = fitted(name)
    found = permutation_importance(model, X, y, n_repeats=3, random_state=0, n_jobs=1)
    assert found.importances.shape == (4, 3)
    assert abs(found.importances_mean[3]) < 0.05 * found.importances_mean.max()
    if name == "two classes":
        assert found.importances_mean.argmax() == 1
