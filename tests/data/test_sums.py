"""Sums over rows: exact but for one rounding, and the same bits in whatever order the rows are."""

import math

import numpy as np
import pytest

from polyleaf import _core
from polyleaf.data.sums import column_sums, group_sums, total, weighted_mean


def numbers(kind, rng, shape):
    x = rng.normal(size=shape)
    if kind == "wide":
        return x * np.exp(rng.uniform(-20, 20, size=shape))
    if kind == "cancelling":
        x.flat[::2] = -x.flat[1::2]
        return x * 1e8 + rng.normal(size=shape)
    return x.astype(np.float32) if kind == "float32" else x


@pytest.mark.parametrize("kind", ["plain", "wide", "cancelling", "float32"])
@pytest.mark.parametrize("weights", [None, "rows", "cells"])
@pytest.mark.parametrize("squares", [False, True])
@pytest.mark.parametrize("n", [2, 1000, 70_000])
def test_sums_are_those_of_exact_arithmetic_in_any_order(kind, weights, squares, n):
    rng = np.random.default_rng(0)
    x = numbers(kind, rng, (n, 3))
    weight = None if weights is None else rng.uniform(0, 3, size=(n,) if weights == "rows" else (n, 3))
    if weight is not None:
        weight[::7] = 0
    sums = column_sums(x, weight, squares=squares)
    terms = x.astype(np.float64) ** 2 if squares else x.astype(np.float64)
    if weight is not None:
        terms = terms * (weight if weight.ndim == 2 else weight[:, np.newaxis])
    for j in range(3):
        exact = math.fsum(terms[:, j])
        # What lies far below the largest term is lost: 2^-65 of it for a million terms.
        assert abs(sums[j] - exact) <= np.spacing(abs(exact)) + n * 2.0**-62 * np.abs(terms[:, j]).max()
    order = rng.permutation(n)
    again = column_sums(x[order], None if weight is None else weight[order], squares=squares, n_threads=3)
    np.testing.assert_array_equal(sums, again)


def test_a_row_of_weight_two_is_the_row_twice():
    rng = np.random.default_rng(1)
    x, weight = rng.normal(size=500), rng.integers(1, 4, size=500)
    repeated = np.repeat(x, weight)
    # Grids depend on the number of rows; the sums themselves are exact here.
    x, repeated = np.round(x, 3) * 1024, np.round(repeated, 3) * 1024
    assert column_sums(x, weight.astype(float))[0] == column_sums(repeated)[0]


def test_totals_of_groups():
    rng = np.random.default_rng(2)
    group = rng.integers(0, 5, size=3000).astype(np.int32)
    weight = rng.exponential(size=3000)
    sums = group_sums(weight, group, 6)
    for g in range(6):
        assert sums[g] == pytest.approx(math.fsum(weight[group == g]), rel=1e-15)
    order = rng.permutation(3000)
    np.testing.assert_array_equal(sums, group_sums(weight[order], group[order], 6))
    np.testing.assert_array_equal(group_sums(None, group, 6), np.bincount(group, minlength=6))
    with pytest.raises(ValueError, match="out of range"):
        _core.group_sums(None, group, 3)


@pytest.mark.parametrize("value", [np.inf, -np.inf, np.nan])
def test_what_is_not_finite_stays_so(value):
    x = np.ones((100, 2))
    x[17, 1] = value
    sums = column_sums(x)
    assert sums[0] == 100
    np.testing.assert_equal(sums[1], x[:, 1].sum())


@pytest.mark.parametrize("size", [1e-300, 1.0, 1e300])
@pytest.mark.parametrize("heavy", [1e-200, 1.0, 1e200])
def test_means_of_any_size(size, heavy):
    rng = np.random.default_rng(3)
    x, weight = rng.normal(size=(400, 2)), rng.uniform(0, 2, size=400)
    mean = weighted_mean(x * size, weight * heavy)
    np.testing.assert_allclose(mean, np.average(x, axis=0, weights=weight) * size, rtol=1e-12)
    np.testing.assert_allclose(weighted_mean(x[:, 0] * size, None), x[:, 0].mean() * size, rtol=1e-11)


def test_a_column_without_weight_has_the_mean_0():
    weight = np.array([[1.0, 0.0], [2.0, 0.0]])
    np.testing.assert_array_equal(weighted_mean(np.array([[3.0, 5.0], [6.0, 7.0]]), weight), [5.0, 0.0])


def test_the_total_of_an_array():
    x = np.random.default_rng(4).normal(size=(50, 4))
    assert total(x) == pytest.approx(math.fsum(x.ravel()), rel=1e-15)


@pytest.mark.parametrize("weights", [None, "rows", "cells"])
def test_means_of_many_columns_are_those_of_each(weights):
    """A few are copied at a time, and the rest of the memory is left alone."""
    rng = np.random.default_rng(0)
    values = rng.normal(size=(500, 75)) * 10.0 ** rng.integers(-9, 9, 75)
    shape = (500, 75) if weights == "cells" else (500,)
    weight = None if weights is None else rng.random(shape) * 10.0 ** rng.integers(-9, 9, shape)
    for j, mean in enumerate(weighted_mean(values, weight)):
        own = weight[:, j] if weights == "cells" else weight
        assert mean == weighted_mean(values[:, j], own)
