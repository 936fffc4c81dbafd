"""Sparse leaves and exact Hessians through the estimators."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.datasets import load_digits, make_classification
from sklearn.model_selection import train_test_split

from polyleaf import PolyleafClassifier, PolyleafRegressor, load_model

X, Y = load_digits(return_X_y=True)
X_TRAIN, X_TEST, Y_TRAIN, Y_TEST = train_test_split(X, Y, random_state=0)


@pytest.mark.parametrize("sparse_mode", ["restricted", "unrestricted"])
def test_a_leaf_holds_k_outputs(sparse_mode, tmp_path):
    model = PolyleafClassifier(n_estimators=40, sparse_leaves=3, sparse_mode=sparse_mode).fit(
        X_TRAIN, Y_TRAIN
    )
    forest = model._forest
    n_leaves = (forest.left < 0).sum()
    assert len(forest.values) == len(forest.value_output) == 3 * n_leaves
    assert model.score(X_TEST, Y_TEST) > 0.9
    model.save_model(tmp_path / "model")
    np.testing.assert_array_equal(
        load_model(tmp_path / "model").predict_proba(X_TEST), model.predict_proba(X_TEST)
    )


def test_siblings_share_their_outputs_when_restricted():
    forest = PolyleafClassifier(n_estimators=3, sparse_leaves=3, max_depth=1).fit(X, Y)._forest
    held = forest.value_output.reshape(-1, 2, 3)
    np.testing.assert_array_equal(held[:, 0], held[:, 1])


@pytest.mark.parametrize("sparse_mode", ["restricted", "unrestricted"])
@pytest.mark.parametrize("problem", ["regression", "multiclass"])
def test_leaves_of_all_outputs_predict_what_dense_ones_do(sparse_mode, problem):
    target = np.eye(10)[Y] if problem == "regression" else Y
    kind = PolyleafRegressor if problem == "regression" else PolyleafClassifier
    dense = kind(n_estimators=5, sketch=None).fit(X, target)
    sparse = kind(n_estimators=5, sparse_leaves=10, sparse_mode=sparse_mode).fit(X, target)
    np.testing.assert_array_equal(dense._forest.predict_raw(X), sparse._forest.predict_raw(X))


@pytest.mark.parametrize("sparse_mode", ["restricted", "unrestricted"])
@pytest.mark.parametrize("depth", [3, 10])
def test_bounds_before_selections_change_no_split(sparse_mode, depth):
    """Candidates are bounded unless a least weight is asked for, be it one that all children have."""
    rng = np.random.default_rng(depth)
    labels = rng.integers(40, size=1200)
    table = rng.normal(size=(1200, 12)) + (labels[:, None] * np.arange(12) % 7)
    table[rng.random(table.shape) < 0.1] = np.nan
    settings = {"n_estimators": 3, "sparse_leaves": 4, "sparse_mode": sparse_mode, "max_depth": depth}
    settings |= {"hessian": "diagonal", "min_samples_leaf": 3}
    bounded = PolyleafClassifier(**settings).fit(table, labels)._forest
    scored = PolyleafClassifier(**settings, min_child_weight=1e-300).fit(table, labels)._forest
    for name in ("feature", "threshold", "gain", "value_output", "values"):
        np.testing.assert_array_equal(getattr(bounded, name), getattr(scored, name))


def test_gains_of_sparse_trees_are_realised():
    """The sum of a tree's gains is what its leaves take off the objective, beyond the root as a leaf."""
    rng = np.random.default_rng(0)
    target = np.column_stack([X[:, i] * rng.normal() + rng.normal(size=len(X)) for i in (10, 20, 30, 40, 50)])
    settings = {"n_estimators": 1, "learning_rate": 1.0, "scale_targets": False, "base_score": 0.0}
    for sparse_mode in ("restricted", "unrestricted"):
        model = PolyleafRegressor(sparse_leaves=2, sparse_mode=sparse_mode, **settings).fit(X, target)
        f, lam = model.predict(X), 1.0
        leaf = model.apply(X)[:, 0]
        objective = 0.5 * ((target - f) ** 2).sum() - 0.5 * (target**2).sum()
        objective += 0.5 * lam * sum((f[leaf == node][0] ** 2).sum() for node in np.unique(leaf))
        own = np.sort(target.sum(axis=0) ** 2 / (len(X) + lam))[-2:].sum()  # the root's two best outputs
        assert -objective - 0.5 * own == pytest.approx(model._forest.gain.sum(), rel=1e-5)


@pytest.mark.parametrize("hessian", ["exact", "exact_leaf"])
def test_exact_hessians_learn_digits(hessian):
    settings = {"n_estimators": 15, "max_depth": 4, "max_bins": 16}
    exact = PolyleafClassifier(hessian=hessian, **settings).fit(X_TRAIN, Y_TRAIN)
    diagonal = PolyleafClassifier(**settings).fit(X_TRAIN, Y_TRAIN)
    assert exact.score(X_TEST, Y_TEST) > diagonal.score(X_TEST, Y_TEST) - 0.02
    # The Newton step of a softmax that is regularised but by lambda leaves the mean score where it was.
    np.testing.assert_allclose(
        exact.decision_function(X_TEST).mean(axis=1), exact._forest.base_score.mean(), atol=1e-4
    )


def test_exact_leaves_of_many_classes():
    rng = np.random.default_rng(0)
    labels = np.repeat(np.arange(101), 6)
    table = rng.normal(size=(606, 5)) + labels[:, None] / 20
    model = PolyleafClassifier(hessian="exact_leaf", n_estimators=3, learning_rate=0.3).fit(table, labels)
    assert np.isfinite(model.predict_proba(table)).all()
    with pytest.raises(ValueError, match=r"hessian='exact': at most 32 outputs are possible, here are 101"):
        PolyleafClassifier(hessian="exact").fit(table, labels)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"reg_lambda": 0.0}, "reg_lambda"),
        ({"reg_alpha": 0.1}, "reg_alpha"),
        ({"sparse_leaves": 2}, "sparse_leaves"),
        ({"multi_strategy": "one_output_per_tree"}, "multi_strategy"),
        ({"objective": lambda y, raw: (raw, np.ones_like(raw))}, "softmax cross entropy"),
    ],
)
@pytest.mark.parametrize("hessian", ["exact", "exact_leaf"])
def test_what_exact_hessians_cannot_take_is_refused_by_name(hessian, settings, message):
    with pytest.raises(ValueError, match=message):
        PolyleafClassifier(hessian=hessian, **settings).fit(X, Y)


def test_exact_hessian_of_two_classes_or_labels():
    table, labels = make_classification(n_samples=200, random_state=0)
    with pytest.raises(ValueError, match="softmax cross entropy"):
        PolyleafClassifier(hessian="exact").fit(table, labels)
    model = PolyleafClassifier(hessian="exact", objective="cross_entropy", n_estimators=20).fit(table, labels)
    assert model.score(table, labels) > 0.9


@pytest.mark.parametrize(
    ("k", "error"), [(0, ValueError), (-1, ValueError), (11, ValueError), (2.0, TypeError)]
)
def test_k_must_be_a_number_of_outputs(k, error):
    with pytest.raises(error, match="sparse_leaves"):
        PolyleafClassifier(sparse_leaves=k).fit(X, Y)
