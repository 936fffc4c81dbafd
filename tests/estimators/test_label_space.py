"""Hashed labels: as good as all labels in every split, the same bits however it is done, never dense."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse

from parts import fit_parts
from polyleaf import BinnedTable, PolyleafClassifier, PolyleafRegressor, cv, load_model, portable
from polyleaf.callbacks import Checkpoint
from polyleaf.data import memory
from polyleaf.growth.round_draws import _LARGE, _groups
from polyleaf.metrics import label_propensities, ndcg_at_k, precision_at_k, psp_at_k, top1_accuracy
from polyleaf.model.forest import Forest
from polyleaf.peers.local import run_local

N_LABELS = 120


def planted(n_rows: int, seed: int = 0) -> tuple[Any, Any]:
    """Return rows of 12 topics, with labels of their own of which the first ones are frequent."""
    rng = np.random.default_rng(seed)
    centres = np.random.default_rng(99).normal(size=(12, 6))
    topic = rng.integers(0, 12, size=n_rows)
    X = centres[topic] + 0.2 * rng.normal(size=(n_rows, 6))
    keys = -np.log(np.arange(1, 11)) + rng.gumbel(size=(n_rows, 10))
    label = topic[:, np.newaxis] * 10 + np.argsort(-keys, axis=1)[:, :3]
    cells = (np.repeat(np.arange(n_rows), 3), label.ravel())
    return X, scipy.sparse.csr_array((np.ones(3 * n_rows, np.int8), cells), shape=(n_rows, N_LABELS))


def hashed(**params: Any) -> PolyleafClassifier:
    return PolyleafClassifier(
        **{"label_space": "hashed", "n_estimators": 12, "learning_rate": 0.3, "n_jobs": 1, **params}
    )


X, Y = planted(300)
X_NEW, Y_NEW = planted(200, seed=1)


@pytest.fixture(scope="module")
def model() -> PolyleafClassifier:
    return hashed().fit(X, Y)


def test_ranks_labels_as_well_as_trees_that_see_all_of_them(model: PolyleafClassifier) -> None:
    whole = PolyleafClassifier(n_estimators=30, n_jobs=1).fit(X, Y.toarray())
    for k in (1, 5):
        of_hashed, of_whole = (
            precision_at_k(Y_NEW, one.decision_function(X_NEW), k) for one in (model, whole)
        )
        assert of_hashed >= 0.95 * of_whole


def test_labels_may_be_dense_and_predictions_are_as_they_were(model: PolyleafClassifier) -> None:
    dense = hashed().fit(X, Y.toarray())
    np.testing.assert_array_equal(dense.decision_function(X_NEW), model.decision_function(X_NEW))
    assert isinstance(dense.predict(X_NEW), np.ndarray)
    assert scipy.sparse.issparse(model.predict(X_NEW))
    np.testing.assert_array_equal(dense.predict(X_NEW), model.predict(X_NEW).toarray())
    assert dense.score(X_NEW, Y_NEW.toarray()) == model.score(X_NEW, Y_NEW)


@pytest.mark.parametrize("dtype", ["float16", ">f8", "bool"])
def test_dense_labels_may_be_of_a_type_that_scipy_does_not_know(
    model: PolyleafClassifier, dtype: str
) -> None:
    other = hashed().fit(X, Y.toarray().astype(dtype))
    np.testing.assert_array_equal(other.predict(X_NEW, top_k=3), model.predict(X_NEW, top_k=3))


def test_features_may_be_sparse(model: PolyleafClassifier) -> None:
    of_sparse = hashed().fit(scipy.sparse.csr_array(X), Y)
    np.testing.assert_array_equal(
        of_sparse.predict(scipy.sparse.csr_array(X_NEW), top_k=5), model.predict(X_NEW, top_k=5)
    )


def test_same_bits_for_any_threads_and_order_of_rows(model: PolyleafClassifier) -> None:
    order = np.random.default_rng(3).permutation(len(X))
    for other in (hashed(n_jobs=2).fit(X, Y), hashed().fit(X[order], Y[order])):
        np.testing.assert_array_equal(other.decision_function(X_NEW), model.decision_function(X_NEW))


def test_a_row_of_weight_2_is_the_row_twice_and_one_of_weight_0_is_not_there() -> None:
    weight = np.random.default_rng(4).integers(0, 3, size=len(X)).astype(float)
    weighed = hashed(min_samples_leaf=1, max_depth=3).fit(X, Y, sample_weight=weight)
    rows = np.repeat(np.arange(len(X)), weight.astype(int))
    repeated = hashed(min_samples_leaf=1, max_depth=3).fit(X[rows], Y[rows])
    np.testing.assert_array_equal(weighed.decision_function(X_NEW), repeated.decision_function(X_NEW))


def test_another_seed_hashes_otherwise(model: PolyleafClassifier) -> None:
    other = hashed(random_state=1).fit(X, Y)
    assert not np.array_equal(other.decision_function(X_NEW), model.decision_function(X_NEW))


def test_file_and_portable_reader_have_the_bits(model: PolyleafClassifier, tmp_path: Path) -> None:
    model.save_model(tmp_path / "model")
    loaded, reader = load_model(tmp_path / "model"), portable.load(tmp_path / "model")
    raw = model.decision_function(X_NEW)
    np.testing.assert_array_equal(loaded.decision_function(X_NEW), raw)
    np.testing.assert_array_equal(reader.raw(X_NEW), raw)
    np.testing.assert_array_equal(loaded.predict(X_NEW, top_k=3), model.predict(X_NEW, top_k=3))
    assert loaded.label_space == "hashed"
    assert loaded.chosen_params_ == model.chosen_params_


# --- leaves ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("weighted", [False, True])
def test_leaf_values_are_those_of_the_gradients_of_all_labels(weighted: bool) -> None:
    """The first two rounds, in plain NumPy: the labels with the largest sums, eq. 15, and no others."""
    weight = np.random.default_rng(5).uniform(0.5, 2.0, len(X)) if weighted else np.ones(len(X))
    most = 7
    model = hashed(n_estimators=2, sparse_leaves=most, reg_alpha=0.25, reg_lambda=2.0).fit(X, Y, weight)
    y, score = Y.toarray(), np.zeros(Y.shape)
    for tree, leaf_of_row in enumerate(model.apply(X).T):
        gradient = np.where(y == 1, -np.maximum(1 - score, 0), np.maximum(score, 0))
        for leaf in np.unique(leaf_of_row):
            rows = leaf_of_row == leaf
            total = weight[rows] @ gradient[rows]
            total = np.sign(total) * np.maximum(np.abs(total) - 0.25, 0)
            value = -0.3 * total / (weight[rows].sum() + 2.0)
            kept = np.argsort(-np.abs(total), kind="stable")[:most]
            expected = np.zeros(N_LABELS)
            expected[kept] = value[kept]
            score[rows] += expected
        np.testing.assert_allclose(model.decision_function(X, n_rounds=tree + 1), score, rtol=1e-5, atol=1e-7)


@pytest.mark.parametrize("most", [1, 30, N_LABELS])
def test_a_leaf_holds_at_most_so_many_labels_and_no_more_than_its_rows_have(most: int) -> None:
    forest = hashed(n_estimators=1, sparse_leaves=most).fit(X, Y)._forest
    label = Y.toarray()
    leaf_of_row = forest.apply(X)[:, 0]
    in_a_leaf = max(label[leaf_of_row == leaf].any(axis=0).sum() for leaf in np.unique(leaf_of_row))
    assert forest.tree_width.tolist() == [min(most, in_a_leaf)]


def test_more_labels_in_a_leaf_than_there_are_is_refused() -> None:
    with pytest.raises(ValueError, match="more than the number of outputs, 120"):
        hashed(sparse_leaves=N_LABELS + 1).fit(X, Y)


def test_unused_labels_are_ranked_last() -> None:
    wide = scipy.sparse.csr_array(
        scipy.sparse.hstack([Y, scipy.sparse.csr_array((len(X), 50), dtype=np.int8)])
    )
    model = hashed().fit(X, wide)
    assert model.predict(X_NEW, top_k=5).max() < N_LABELS
    assert not model.decision_function(X_NEW)[:, N_LABELS:].any()


def test_no_label_at_all_predicts_none() -> None:
    model = hashed(n_estimators=2).fit(X, scipy.sparse.csr_array(Y.shape, dtype=np.int8))
    assert model.predict(X_NEW).nnz == 0
    np.testing.assert_array_equal(model.predict(X_NEW, top_k=2), np.tile([0, 1], (len(X_NEW), 1)))


@pytest.mark.parametrize("size", [1, N_LABELS, 3 * N_LABELS])
def test_labels_are_hashed_into_any_number_of_groups(size: int) -> None:
    model = hashed(sketch_size=size).fit(X, Y)
    assert precision_at_k(Y_NEW, model.decision_function(X_NEW), 1) > 0.6


# --- predictions -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("top_k", [1, 5, N_LABELS])
def test_best_labels_are_those_of_the_scores_and_of_equal_ones_the_first(
    model: PolyleafClassifier, top_k: int
) -> None:
    score = model.decision_function(X_NEW)
    expected = np.argsort(-score, axis=1, kind="stable")[:, :top_k]
    for n_jobs in (1, 2):
        np.testing.assert_array_equal(model.set_params(n_jobs=n_jobs).predict(X_NEW, top_k=top_k), expected)
    assert (np.sort(score, axis=1)[:, 0] == 0).any() or (score < 0).any()  # some of all kinds are ranked


def test_more_of_the_best_than_there_are_labels_is_an_error(model: PolyleafClassifier) -> None:
    with pytest.raises(ValueError, match="top_k"):
        model.predict(X_NEW, top_k=N_LABELS + 1)


def test_predicted_labels_are_those_above_one_half(model: PolyleafClassifier) -> None:
    expected = model.decision_function(X_NEW) > 0.5
    assert expected.any()
    np.testing.assert_array_equal(model.predict(X_NEW).toarray(), expected)
    assert model.predict(X_NEW).dtype == np.int64
    np.testing.assert_array_equal(model.predict_proba(X_NEW), np.clip(model.decision_function(X_NEW), 0, 1))


def test_best_and_predicted_labels_need_no_table_of_all_scores(
    model: PolyleafClassifier, monkeypatch: pytest.MonkeyPatch
) -> None:
    def never(*args: Any, **kwargs: Any) -> None:
        raise AssertionError("all scores were asked for")

    monkeypatch.setattr(Forest, "predict_raw", never)
    model.predict(X_NEW, top_k=3)
    model.predict(X_NEW, top_k=3, n_rounds=1)
    model.predict(X_NEW[:0], top_k=3)
    model.predict(X_NEW)


@pytest.mark.parametrize("spare", [-1, 0])
@pytest.mark.parametrize(
    ("predicted", "bytes_a_cell"),
    [
        (lambda model: model.decision_function(X_NEW), 8),
        (lambda model: model.predict_proba(X_NEW), 16),
        (lambda model: model.predict(X_NEW, sparse=False), 17),
        (lambda model: next(model.staged_predict_proba(X_NEW)), 16),
    ],
)
def test_scores_of_all_labels_are_refused_where_there_is_no_room(
    model: PolyleafClassifier, monkeypatch: pytest.MonkeyPatch, spare: int, predicted: Any, bytes_a_cell: int
) -> None:
    size = bytes_a_cell * len(X_NEW) * N_LABELS
    monkeypatch.setattr("polyleaf.estimators.prediction._LEAST_TO_ASK", size)
    monkeypatch.setattr(memory, "available", lambda: size + spare)
    if spare < 0:
        with pytest.raises(MemoryError, match=r"200 rows and 120 outputs .* top_k"):
            predicted(model)
    else:
        predicted(model)
    model.predict(X_NEW, top_k=3)


def test_the_spread_of_members_is_refused_where_there_is_no_room(monkeypatch: pytest.MonkeyPatch) -> None:
    model = hashed(n_estimators=2, n_bags=2).fit(X, Y)
    size = 8 * 4 * len(X_NEW) * N_LABELS
    monkeypatch.setattr("polyleaf.estimators.prediction._LEAST_TO_ASK", size)
    monkeypatch.setattr(memory, "available", lambda: size - 1)
    with pytest.raises(MemoryError, match="200 rows"):
        model.predict_spread(X_NEW)
    monkeypatch.setattr(memory, "available", lambda: size)
    model.predict_spread(X_NEW)


def test_nothing_large_is_remembered_after_a_fit() -> None:
    kept = (_groups._small, _groups._large)
    before = [one.cache_info() for one in kept]
    n_labels = _LARGE // (8 * (16 + 1)) + 1  # a group and its sign for each label
    cells = (np.arange(40), np.linspace(0, n_labels - 1, 40).astype(int))
    wide = scipy.sparse.csr_array((np.ones(40), cells), shape=(40, n_labels))
    hashed(n_estimators=2, min_samples_leaf=1, sketch_size=16).fit(X[:40], wide)
    assert [one.cache_info() for one in kept] == before


# --- around training ---------------------------------------------------------------------------------------


def test_metrics_of_the_best_labels_are_watched() -> None:
    names = ["top1_accuracy", "ndcg@3", "psp@3", "precision@5"]
    model = hashed(eval_metric=names, early_stopping_rounds=5, n_estimators=40)
    model.fit(X, Y, eval_set=[(X_NEW, Y_NEW)])
    score, best = model.decision_function(X_NEW), model.best_score_["validation_0"]
    expected = {
        "top1_accuracy": top1_accuracy(Y_NEW, score),
        "ndcg@3": ndcg_at_k(Y_NEW, score, 3),
        "psp@3": psp_at_k(Y_NEW, score, 3, label_propensities(Y)),
        "precision@5": precision_at_k(Y_NEW, score, 5),
    }
    assert best == pytest.approx(expected, abs=1e-12)
    assert model.best_iteration_ < model.n_estimators_


def test_rounds_are_found_by_held_out_rows() -> None:
    model = hashed(n_estimators="auto").fit(X, Y)
    assert 1 <= model.n_estimators_ < 2000


def test_going_on_gives_the_bits_of_one_run(model: PolyleafClassifier) -> None:
    first = hashed(n_estimators=5).fit(X, Y)
    both = hashed(n_estimators=7).fit(X, Y, init_model=first)
    np.testing.assert_array_equal(both.decision_function(X_NEW), model.decision_function(X_NEW))


def test_a_checkpoint_goes_on_with_the_bits_of_one_run(model: PolyleafClassifier, tmp_path: Path) -> None:
    file = tmp_path / "checkpoint"
    hashed(n_estimators=5, callbacks=[Checkpoint(file, every=2)]).fit(X, Y)
    resumed = hashed().fit(X, Y, resume=file)
    np.testing.assert_array_equal(resumed.decision_function(X_NEW), model.decision_function(X_NEW))


def test_batches_and_binned_tables_have_the_bits_of_the_table(model: PolyleafClassifier) -> None:
    y = Y.toarray()
    table = BinnedTable.make(X, y)
    of_batches = hashed().fit([(X[:100], y[:100]), (X[100:], y[100:])])
    of_bins = hashed().fit(table)
    for one in (of_batches, of_bins):
        np.testing.assert_array_equal(one.decision_function(X_NEW), model.decision_function(X_NEW))
    np.testing.assert_array_equal(of_bins.predict(table, top_k=3), model.predict(X, top_k=3))
    np.testing.assert_array_equal(model.predict([X[:100], X[100:]], top_k=3), model.predict(X, top_k=3))


def test_shapley_values_of_some_labels_add_up_to_their_scores(model: PolyleafClassifier) -> None:
    labels = [0, 17, 119]
    values = model.shap_values(X_NEW[:20], outputs=labels)
    total = values.sum(axis=1) + model.expected_value_[labels]
    np.testing.assert_allclose(total, model.decision_function(X_NEW[:20])[:, labels], atol=1e-9)


def test_rows_may_be_sampled() -> None:
    model = hashed(subsample=0.5).fit(X, Y)
    assert precision_at_k(Y_NEW, model.decision_function(X_NEW), 1) > 0.6


def test_bags_slices_and_folds() -> None:
    bags = hashed(n_bags=2, n_estimators=4).fit(X, Y)
    assert bags.predict(X_NEW, top_k=2).shape == (200, 2)
    np.testing.assert_array_equal(
        bags.predict(X_NEW, top_k=2), np.argsort(-bags.decision_function(X_NEW), axis=1, kind="stable")[:, :2]
    )
    model = hashed(n_estimators=4).fit(X, Y)
    np.testing.assert_array_equal(
        model[:2].predict(X_NEW, top_k=2), model.predict(X_NEW, top_k=2, n_rounds=2)
    )
    assert cv(hashed(n_estimators=3), X, Y, cv=2) is not None


# --- what is refused ---------------------------------------------------------------------------------------


def test_other_names_are_refused_and_others_have_no_such_parameter() -> None:
    with pytest.raises(ValueError, match=r'label_space must be \{"hashed"\} or None; got .hashd.'):
        hashed(label_space="hashd").fit(X, Y)
    with pytest.raises(TypeError, match="label_space"):
        PolyleafRegressor(label_space="hashed")  # type: ignore[call-arg]


@pytest.mark.parametrize(
    ("params", "y", "words"),
    [
        ({}, Y.toarray().argmax(axis=1), "several labels.*multiclass"),
        ({}, Y.toarray()[:, 0], "several labels.*binary"),
        ({"objective": "binary_cross_entropy"}, Y, "clipped_squared_error"),
        ({"sketch": "top_outputs"}, Y, "sketch"),
        ({"sketch": None}, Y, "sketch"),
        ({"eval_metric": "auc"}, Y, "precision@k"),
        ({"eval_metric": lambda y, p: 0.0}, Y, "precision@k"),
        ({"multi_strategy": "one_output_per_tree"}, Y, "one_output_per_tree"),
        ({"monotone_constraints": [1, 0, 0, 0, 0, 0]}, Y, "monotone"),
        ({"class_weight": "balanced"}, Y, "class_weight"),
        ({"base_score": 0.5}, Y, "base_score"),
    ],
)
def test_what_does_not_go_with_it_is_refused_by_name(params: dict[str, Any], y: Any, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        hashed(**params).fit(X, y)


def test_shards_are_refused_whatever_y_is() -> None:
    for y in (Y, Y.toarray()):
        with pytest.raises(ValueError, match=r"shards.*label_space"):
            run_local(2, partial(fit_parts, estimator=hashed(), X=[X[:150], X[150:]], y=[y[:150], y[150:]]))


def test_labels_must_be_observed_and_weighed_by_rows() -> None:
    missing = Y.toarray().astype(float)
    missing[0, 0] = np.nan
    with pytest.raises(ValueError, match=r"label_space.*does not go with missing targets"):
        hashed().fit(X, missing)
    with pytest.raises(ValueError, match=r"label_space.*weights"):
        hashed().fit(X, Y.toarray(), sample_weight=np.full(Y.shape, 0.5))
