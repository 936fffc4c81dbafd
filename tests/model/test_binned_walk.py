"""Trees on rows that are bin codes already: the scores are, to the bit, those that the values lead to."""

import numpy as np
import pytest

from polyleaf import PolyleafClassifier, PolyleafRegressor
from polyleaf.data.binning import bin_table

pytestmark = pytest.mark.cpu_only("bins of the core")

RNG = np.random.default_rng(0)
N = 400
X = np.column_stack(
    [
        RNG.normal(size=N),
        np.where(RNG.random(N) < 0.2, np.nan, RNG.normal(size=N)),
        RNG.integers(0, 6, N),
        np.where(RNG.random(N) < 0.7, 0.0, RNG.normal(size=N)),
        RNG.permutation(N),
    ]
)
X[::11, 2] = np.nan
Y = np.column_stack([np.nansum(X[:, :4], axis=1), X[:, 0] * (X[:, 2] == 3), np.isnan(X[:, 1])])
SMALL = {"n_estimators": 6, "min_samples_leaf": 3, "n_jobs": 1}


def scores(model, table, matrix, n_threads, n_rounds=None):
    forest = model._forest
    by_values = forest.predict_raw(table, n_rounds, n_threads)
    by_codes = forest.predict_raw_binned(matrix, n_rounds, n_threads)
    assert by_values.any()
    return by_values, by_codes


@pytest.mark.parametrize("max_bins", [8, None])
@pytest.mark.parametrize("options", [{}, {"sparse_leaves": 1}, {"multi_strategy": "one_output_per_tree"}])
@pytest.mark.parametrize("categorical", [None, [2]])
def test_the_scores_are_the_same(max_bins, options, categorical):
    model = PolyleafRegressor(**SMALL, **options, max_bins=max_bins, categorical_features=categorical).fit(
        X, Y
    )
    mask = np.array([0, 0, 1, 0, 0], dtype=np.uint8) if categorical else None
    matrix = bin_table(X, None, max_bins, 1, mask)
    for n_threads in (1, 2):
        by_values, by_codes = scores(model, X, matrix, n_threads, n_threads + 1)
        assert by_codes.tobytes() == by_values.tobytes()


def test_of_classes():
    y = np.array(["a", "b", "c"])[RNG.integers(0, 3, N)]
    model = PolyleafClassifier(**SMALL).fit(X, y)
    by_values, by_codes = scores(model, X, bin_table(X, None, 255, 1), 1)
    assert by_codes.tobytes() == by_values.tobytes()


def test_what_does_not_follow_from_bins_is_refused():
    forest = PolyleafRegressor(**SMALL).fit(X, Y)._forest
    for matrix, message in (
        (bin_table(X, None, 4, 1), "no cut point"),
        (bin_table(X[:, :2], None, 255, 1), "does not have"),
        (bin_table(X, None, 255, 1, np.array([0, 0, 1, 0, 0], dtype=np.uint8)), "in the table alone"),
    ):
        with pytest.raises(ValueError, match=message):
            forest.predict_raw_binned(matrix)
    by_category = PolyleafRegressor(**SMALL, categorical_features=[2]).fit(X, Y)._forest
    with pytest.raises(ValueError, match="not in the table"):
        by_category.predict_raw_binned(bin_table(X, None, 255, 1))
    with pytest.raises(ValueError, match="out of range"):
        forest._predictor.add_binned(bin_table(X[:5], None, 255, 1), 0, 6, np.zeros((N, 3)), 1)
