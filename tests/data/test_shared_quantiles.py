"""Quantiles and minima of numbers in several shards are those of all numbers in one place, bit by bit."""

from functools import partial

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from polyleaf.data.sums import column_quantiles
from polyleaf.losses.huber_minimum import huber_minimum
from polyleaf.losses.values import huber_values
from polyleaf.peers.collectives import Collectives
from polyleaf.peers.current import summed_over
from polyleaf.peers.local import run_local

pytestmark = pytest.mark.cpu_only("shards are of the CPU")

KINDS = ("normal", "ties", "wide", "heavy")


def numbers_of(kind, rng, shape):
    if kind == "ties":  # few values, one of them half of all
        return np.where(rng.random(shape) < 0.5, 0.0, rng.integers(-3, 4, shape) * 0.1)
    values = rng.normal(size=shape)
    return values * 10.0 ** rng.integers(-200, 200, shape) if kind == "wide" else values


def weights_of(kind, weighted, rng, shape):
    if weighted is None:
        return None
    shape = shape[:1] if weighted == "rows" else shape
    weight = rng.integers(0, 4, shape) * 0.1
    if kind == "heavy":  # a few rows are most of the weight
        weight *= np.where(rng.random(shape) < 0.01, 2.0**25, 1.0)
    return weight


def over_shards(function, y, weight, owner, n_shards):
    """What each shard finds, and how many exchanges that took."""

    def one(exchange):
        peers, rows = Collectives(exchange), owner == exchange.rank
        with summed_over(peers):
            found = function(y[rows], None if weight is None else weight[rows])
        return found, peers.n_exchanges

    return run_local(n_shards, one)


@settings(max_examples=40, deadline=None)
@given(
    kind=st.sampled_from(KINDS),
    weighted=st.sampled_from([None, "rows", "cells"]),
    n_rows=st.sampled_from([0, 1, 2, 63, 64, 200, 3000]),
    n_shards=st.integers(1, 5),
    cut=st.sampled_from(["anyhow", "ascending", "one has all"]),
    seed=st.integers(0, 2**16),
)
def test_quantiles_of_shards_are_those_of_all_numbers(kind, weighted, n_rows, n_shards, cut, seed):
    rng = np.random.default_rng(seed)
    y = numbers_of(kind, rng, (n_rows, 4))
    weight = weights_of(kind, weighted, rng, y.shape)
    owner = rng.integers(0, n_shards, n_rows)
    if cut == "ascending":  # the shards' numbers do not overlap
        y.sort(axis=0)
        owner.sort()
    if cut == "one has all":
        owner[:] = n_shards - 1
    levels = np.array([0.5, 0.0, 0.9, rng.random()])
    expected = column_quantiles(y, weight, levels)
    for found, _ in over_shards(lambda y, w: column_quantiles(y, w, levels), y, weight, owner, n_shards):
        np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("weighted", [None, "cells"])
def test_exchanges_do_not_grow_with_the_columns(weighted):
    rng = np.random.default_rng(0)
    y = rng.normal(size=(20_000, 60))
    weight = weights_of("normal", weighted, rng, y.shape)
    owner = rng.integers(0, 3, len(y))

    def exchanges(n):
        some = None if weight is None else weight[:, :n]
        levels = np.linspace(0.1, 0.9, n)
        shards = over_shards(lambda y, w: column_quantiles(y, w, levels), y[:, :n], some, owner, 3)
        return shards[0][1]

    # Of 20,000 numbers 64 are reached in two or three steps; each is a report and a verdict.
    assert exchanges(60) <= exchanges(1) + 2 <= 12


def test_columns_that_are_too_many_go_in_blocks():
    """Of 700,000 numbers each, nine columns make a block."""
    y = np.random.default_rng(2).integers(0, 1 << 20, (700_000, 10)).astype(float)
    levels, owner = np.full(10, 0.5), np.zeros(len(y), dtype=int)
    owner[:1000] = 1
    one, two = (
        over_shards(partial(column_quantiles, levels=levels[:n]), y[:, :n], None, owner, 2)[0]
        for n in (9, 10)
    )
    np.testing.assert_array_equal(two[0], column_quantiles(y, None, levels))
    assert one[1] < two[1]


@settings(max_examples=25, deadline=None)
@given(
    kind=st.sampled_from(("normal", "ties", "heavy")),
    weighted=st.sampled_from([None, "rows", "cells"]),
    n_rows=st.sampled_from([1, 2, 5, 300]),
    delta=st.sampled_from([1e-12, 0.01, 0.3, 1.0, 50.0]),
    seed=st.integers(0, 2**16),
)
def test_the_least_huber_loss_of_shards(kind, weighted, n_rows, delta, seed):
    """The same bits, and no constant nearby has a lower loss."""
    rng = np.random.default_rng(seed)
    y = numbers_of(kind, rng, (n_rows, 3))
    weight = weights_of(kind, weighted, rng, y.shape)
    if weight is not None:
        weight = weight + 0.1
    found = huber_minimum(y, weight, delta)
    owner = rng.integers(0, 3, n_rows)
    for of_shard, _ in over_shards(lambda y, w: huber_minimum(y, w, delta), y, weight, owner, 3):
        np.testing.assert_array_equal(of_shard, found)

    def loss(score):
        values = huber_values(y, np.broadcast_to(score, y.shape), delta)
        return np.average(values, axis=0, weights=weight)

    for step in (1e-3, 0.1, 1.0):
        for sign in (-1, 1):
            assert (loss(found) <= loss(found + sign * step) * (1 + 1e-12) + 1e-300).all()


def test_minima_of_many_targets_take_the_exchanges_of_one():
    rng = np.random.default_rng(1)
    y = rng.standard_cauchy(size=(2000, 20))
    owner = rng.integers(0, 2, len(y))
    counts = [
        over_shards(lambda y, w: huber_minimum(y, w, 1.0), y[:, :n], None, owner, 2)[0][1] for n in (1, 20)
    ]
    assert counts[1] <= 2 * counts[0]
