"""Shares of rows: an order of chance within strata that neither orders of rows nor copies of them change."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from polyleaf.data.row_shares import drawn_keys, row_shares
from polyleaf.peers.collectives import Collectives
from polyleaf.peers.current import summed_over
from polyleaf.peers.local import run_local

pytestmark = pytest.mark.cpu_only("rows are chosen on the host")

ROWS = st.lists(st.tuples(st.integers(0, 30), st.integers(1, 4), st.integers(0, 2)), min_size=1, max_size=60)


@given(ROWS, st.randoms(use_true_random=False))
def test_neither_order_nor_copies_matter(rows: list[tuple[int, int, int]], random: object) -> None:
    keys = drawn_keys(np.array([row[0] for row in rows], dtype=np.uint64), 5)
    weight = np.array([float(row[1]) for row in rows])
    strata = np.array([row[2] for row in rows])
    shares = row_shares(keys, weight, strata, least=1)
    assert ((shares > 0) & (shares < 1)).all()
    order = list(range(len(rows)))
    random.shuffle(order)  # type: ignore[attr-defined]
    assert np.array_equal(row_shares(keys[order], weight[order], strata[order], least=1), shares[order])
    copies = np.repeat(np.arange(len(rows)), weight.astype(int))
    assert np.array_equal(row_shares(keys[copies], None, strata[copies], least=1), shares[copies])
    for key in np.unique(keys):
        assert len(np.unique(shares[keys == key])) == 1


@given(
    ROWS,
    st.lists(st.integers(0, 3), min_size=60, max_size=60),
    st.integers(1, 4),
    st.integers(1, 7),
    st.sampled_from([1.0, 0.1, 1e-200, 1e200]),
)
def test_no_cut_into_shards_matters(
    rows: list[tuple[int, int, int]], owners: list[int], n_shards: int, n_parts: int, unit: float
) -> None:
    """Also where weights have no exact sum, and where shards have no rows."""
    keys = drawn_keys(np.array([row[0] for row in rows], dtype=np.uint64), 5)
    weight = np.array([unit * row[1] for row in rows])
    strata = np.array([row[2] for row in rows])
    owner = np.array(owners[: len(rows)]) % n_shards

    def of_shard(exchange: object) -> object:
        peers = Collectives(exchange)  # type: ignore[arg-type]
        own = owner == peers.rank
        with summed_over(peers):
            return [
                row_shares(keys[own], weight[own], strata[own], 2, n_parts),
                row_shares(keys[own], None, None, n_parts, n_parts),
            ]

    expected = (row_shares(keys, weight, strata, 2, n_parts), row_shares(keys, None, None, n_parts, n_parts))
    for rank, found in enumerate(run_local(n_shards, of_shard)):
        for whole, part in zip(expected, found, strict=True):  # type: ignore[call-overload]
            assert np.array_equal(part, whole[owner == rank], equal_nan=True)


def test_shares_are_of_the_weight_of_a_stratum() -> None:
    rng = np.random.default_rng(1)
    keys = drawn_keys(np.arange(4000, dtype=np.uint64), 0)
    strata, weight = rng.integers(0, 3, 4000), rng.uniform(0.5, 2, 4000)
    shares = row_shares(keys, weight, strata)
    for stratum in range(3):
        own = strata == stratum
        assert weight[own & (shares < 0.2)].sum() == pytest.approx(0.2 * weight[own].sum(), rel=0.02)
    assert not np.array_equal(row_shares(drawn_keys(np.arange(4000, dtype=np.uint64), 1), weight), shares)


def test_equal_keys_are_where_most_of_their_weight_is() -> None:
    keys = np.array([1, 1, 1, 2, 3, 4], dtype=np.uint64)
    strata = np.array([1, 0, 1, 0, 0, 1])
    shares = row_shares(keys, None, strata)
    assert shares.tolist() == [3 / 8, 3 / 8, 3 / 8, 1 / 4, 3 / 4, 7 / 8]
    assert row_shares(keys, np.array([1.0, 5, 1, 1, 1, 1]), strata, least=1)[5] == 0.5


def test_small_strata_have_no_share() -> None:
    shares = row_shares(np.arange(7, dtype=np.uint64), None, np.array([0, 0, 0, 0, 0, 1, 1]), least=5)
    assert np.isnan(shares).tolist() == [False] * 5 + [True] * 2


def test_weights_of_any_size_have_a_share() -> None:
    """Also those that change no sum; a share is below 1."""
    weight = np.array([1.0, 1.0, 1.0, 1e-300, 1e-300, 1e-30])
    keys = np.arange(6, dtype=np.uint64)
    for strata in (None, np.array([0, 0, 0, 1, 1, 0])):
        shares = row_shares(keys, weight, strata)
        assert ((shares > 0) & (shares < 1)).all()


def test_no_part_is_empty() -> None:
    """Neither by rows that are most of the weight, which have no share, nor by a few that are much of it."""
    keys = np.repeat(np.arange(12, dtype=np.uint64), [500, *[20] * 4, *[3] * 7])
    for seed in range(20):
        shares = row_shares(drawn_keys(keys, seed), None, None, 5, 5)
        assert np.isnan(shares[:500]).all()
        assert np.unique((shares[500:] * 5).astype(int)).tolist() == [0, 1, 2, 3, 4]
