"""The best outputs by sparse leaves are those of all raw scores; what does not fit is refused."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.sparse

from polyleaf import PolyleafClassifier
from polyleaf.model.forest import Forest

RNG = np.random.default_rng(0)
X = RNG.normal(size=(150, 4))
Y = scipy.sparse.csr_array((RNG.random((150, 25)) < 0.1).astype(np.int8))


@pytest.fixture(scope="module")
def forest() -> Forest:
    model = PolyleafClassifier(
        objective="clipped_squared_error", sparse_leaves=3, n_estimators=6, learning_rate=0.5, n_jobs=1
    )
    return model.fit(X, Y)._forest


@pytest.mark.parametrize("n_rounds", [0, 1, None])
@pytest.mark.parametrize("k", [1, 4, 25])
def test_best_outputs_are_those_of_raw_scores(forest: Forest, n_rounds: int | None, k: int) -> None:
    """With few rounds most outputs have a score of 0, and the first of them are next."""
    raw = forest.predict_raw(X, n_rounds)
    expected = np.argsort(-raw, axis=1, kind="stable")[:, :k]
    for table in (X, scipy.sparse.csr_array(X)):
        np.testing.assert_array_equal(forest.best_outputs(table, k, n_rounds), expected)


@pytest.mark.parametrize("threshold", [0.0, 0.1])
def test_outputs_above_a_threshold(forest: Forest, threshold: float) -> None:
    found = forest.outputs_above(X, threshold)
    np.testing.assert_array_equal(found.toarray(), forest.predict_raw(X) > threshold)
    assert forest.outputs_above(X[:0], threshold).shape == (0, 25)


def test_rows_in_several_blocks(forest: Forest, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = forest.best_outputs(X, 3), forest.outputs_above(X, 0.1).toarray()
    monkeypatch.setattr("polyleaf.model.forest._LEAVES_TOGETHER", 7 * forest.n_trees)
    np.testing.assert_array_equal(forest.best_outputs(X, 3), whole[0])
    np.testing.assert_array_equal(forest.outputs_above(X, 0.1).toarray(), whole[1])


def test_scores_with_a_base_or_of_dense_leaves_are_not_sparse(forest: Forest) -> None:
    assert forest.scores_are_sparse
    dense = {"n_estimators": 2, "learning_rate": 0.5, "n_jobs": 1}
    for params in ({"sparse_leaves": 3}, {}):
        model = PolyleafClassifier(**dense, **params).fit(X, Y.toarray())
        assert not model._forest.scores_are_sparse
        raw = model.decision_function(X)
        np.testing.assert_array_equal(
            model.predict(X, top_k=3), np.argsort(-raw, axis=1, kind="stable")[:, :3]
        )


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"leaves": np.zeros((2, 7), np.int32)}, "trees are out of range"),
        ({"begin": 1}, "trees are out of range"),
        ({"leaves": np.zeros((2, 6), np.int32)}, "leaf is out of range"),  # the root is no leaf
        ({"leaves": np.full((2, 6), 10_000, np.int32)}, "leaf is out of range"),
        ({"leaves": np.full((2, 6), -1, np.int32)}, "leaf is out of range"),
        ({"n_outputs": 3}, "output is out of range"),
        ({"k": 0}, "k is out of range"),
        ({"k": 26}, "k is out of range"),
    ],
)
def test_what_does_not_fit_is_refused(forest: Forest, changes: dict[str, Any], words: str) -> None:
    given = {"leaves": forest.apply(X[:2]), "begin": 0, "n_outputs": 25, "k": 2, "n_threads": 1}
    with pytest.raises(ValueError, match=words):
        forest._predictor.best_outputs(**{**given, **changes})
    with pytest.raises(ValueError, match="threshold"):
        forest._predictor.outputs_above(forest.apply(X[:2]), 0, 25, -1.0, 1)
