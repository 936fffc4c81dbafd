"""Sums over ranks: the same bits on every rank, and integers in few bits come back as they were."""

from __future__ import annotations

import os

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given, settings

from polyleaf.peers.collectives import Collectives
from polyleaf.peers.exchange import ExchangeError
from polyleaf.peers.local import run_local
from polyleaf.peers.packing import pack, unpack

pytestmark = [
    pytest.mark.cpu_only("messages between threads"),
    pytest.mark.python_only("messages between threads"),
]


@settings(max_examples=25, deadline=None)
@given(
    size=st.integers(1, 5),
    length=st.sampled_from([0, 1, 7, 40_000]),  # the last one goes by slices
    kind=st.sampled_from([np.int32, np.int64, np.float64]),
    seed=st.integers(0, 2**32 - 1),
)
def test_reductions_are_those_of_numpy_on_every_rank(size, length, kind, seed):
    given_ = np.random.default_rng(seed).integers(-(2**20), 2**20, (size, length)).astype(kind)

    def one(exchange):
        peers = Collectives(exchange)
        total, high = (given_[exchange.rank].copy() for _ in range(2))
        peers.add(total)
        peers.largest(high)
        return total, high

    for total, high in run_local(size, one):
        np.testing.assert_array_equal(total, given_.sum(axis=0))
        np.testing.assert_array_equal(high, given_.max(axis=0))


def test_sums_are_made_in_the_order_of_ranks():
    terms = [1e16, 1.0, -1e16]

    def one(exchange):
        total = np.full((2, 30_000), terms[exchange.rank])
        Collectives(exchange).add(total)
        return total

    for total in run_local(3, one):
        assert (total == (terms[0] + terms[1]) + terms[2]).all()


@settings(max_examples=25, deadline=None)
@given(size=st.integers(1, 4), bits=st.integers(0, 28), seed=st.integers(0, 2**32 - 1), shared=st.booleans())
def test_owners_get_the_parts_of_all_others(size, bits, seed, shared):
    random = np.random.default_rng(seed)
    shapes = [(int(random.integers(1, 4)), int(random.integers(0, 900))) for _ in range(size)]
    given_ = [
        [random.integers(-(2**bits), 2**bits, shape, dtype=np.int32) for shape in shapes] for _ in range(size)
    ]

    def one(exchange):
        peers = Collectives(exchange, shared)
        found = []
        for repeat in range(3):  # the memory is written again while others may be behind
            parts = placed(peers, [part + repeat for part in given_[exchange.rank]])
            found.append([part.copy() for part in peers.exchange_parts(parts, 2)])
        peers.all_gather(b"")  # all have read
        return found

    for owner, found in enumerate(run_local(size, one)):
        for repeat, parts in enumerate(found):
            others = [given_[rank][owner] + repeat for rank in range(size) if rank != owner]
            assert len(parts) == len(others)
            for part, other in zip(parts, others, strict=True):
                np.testing.assert_array_equal(part, other)


def placed(peers, arrays):
    """Return copies of arrays in the memory for parts."""
    memory = peers.memory(sum(array.size for array in arrays))
    assert memory.ctypes.data % 64 == 0  # whole vectors are written there
    parts, begin = [], 0
    for array in arrays:
        part = memory[begin : begin + array.size].reshape(array.shape)
        part[:] = array
        parts.append(part)
        begin += array.size
    return parts


@settings(max_examples=60, deadline=None)
@given(data=st.data())
def test_packed_integers_come_back(data):
    slices = data.draw(st.integers(0, 5))
    length = data.draw(st.sampled_from([0, 1, 31, 32, 33, 700, 2049]))
    array = np.zeros((slices, length), dtype=np.int32)
    random = np.random.default_rng(data.draw(st.integers(0, 2**32 - 1)))
    for one in array:
        bits = data.draw(st.integers(0, 31))
        one[:] = random.integers(-(2**bits), 2**bits, length)
        one[random.random(length) < 0.1] = data.draw(
            st.sampled_from([0, -(2**bits), 2**bits - 1, -(2**31), 2**31 - 1])
        )
    packed = pack(array)
    np.testing.assert_array_equal(unpack(packed, array.shape), array)
    assert len(packed) <= array.nbytes + slices + 3
    if slices == 1:
        np.testing.assert_array_equal(unpack(pack(array[0]), array[0].shape), array[0])


def test_a_slice_takes_the_bits_that_its_largest_number_needs():
    array = np.zeros((3, 3200), dtype=np.int32)
    array[1, 5] = -16  # the smallest of 5 bits
    array[2, 7] = 16  # the first of 6
    assert len(pack(array)) == 4 + 3200 * (0 + 5 + 6) // 8


def test_numbers_that_need_all_bits_are_sent_as_they_are():
    array = np.arange(4000, dtype=np.int32) << 19
    assert len(pack(array)) == 4 + array.nbytes


def test_other_shapes_and_types_are_refused():
    with pytest.raises(ValueError, match="no packed array of the shape"):
        unpack(pack(np.ones((2, 4000), dtype=np.int32)), (2, 4100))
    with pytest.raises(ValueError, match="no packed array of the shape"):
        unpack(b"", (9, 2))
    with pytest.raises(TypeError, match="int32"):
        pack(np.zeros(4))  # type: ignore[arg-type]

    def shapes_differ(exchange):
        Collectives(exchange).add(np.zeros(3 + exchange.rank))

    with pytest.raises(ExchangeError, match=r"rank \d sent \d+ bytes where \d+ were expected"):
        run_local(2, shapes_differ)
    with pytest.raises(TypeError, match="float32"):
        run_local(1, lambda exchange: Collectives(exchange).add(np.zeros(3, dtype=np.float32)))
    with pytest.raises(ValueError, match="contiguous"):
        run_local(1, lambda exchange: Collectives(exchange).add(np.zeros((3, 3))[:, 0]))


def test_what_is_sent_is_counted():
    def one(exchange):
        peers = Collectives(exchange)
        peers.all_gather(b"abcd")
        peers.add(np.zeros(3 * 10_000))
        return peers.n_exchanges, peers.bytes_sent

    assert set(run_local(3, one)) == {(3, 2 * 4 + 2 * 80_000 + 2 * 80_000)}


def test_parts_are_packed_for_who_cannot_read_them():
    def bytes_of(shared):
        def one(exchange):
            peers = Collectives(exchange, shared)
            parts = placed(peers, [np.full((1, 3200), 3, dtype=np.int32)] * 2)
            before = peers.bytes_sent
            peers.exchange_parts(parts, 1)
            sent = peers.bytes_sent - before
            peers.all_gather(b"")  # all have read
            return sent

        return run_local(2, one)

    assert bytes_of(shared=False) == [4 + 3200 * 3 // 8] * 2
    if hasattr(os, "memfd_create"):
        assert max(bytes_of(shared=True)) < 100
