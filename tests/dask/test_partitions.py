"""Every row is in one part, on one worker, with its target and weight, wherever chunks begin."""

from __future__ import annotations

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given, settings

pytest.importorskip("distributed", reason='Dask is not installed: pip install "polyleaf[dask]"')

import dask.array as da
import dask.dataframe as dd
import pandas as pd

import dask
from cluster import QUICK
from polyleaf.dask.balance import assign
from polyleaf.dask.launch import launch
from polyleaf.dask.partitions import place, place_again

pytestmark = [
    pytest.mark.cpu_only("places of partitions"),
    pytest.mark.python_only("places of partitions"),
]
N_ROWS = 100


@pytest.fixture(scope="module")
def wholes():
    random = np.random.default_rng(0)
    X = random.normal(size=(N_ROWS, 4))
    return {"X": X, "y": X[:, :2] * 2, "weight": X[:, 0] + 10}


def frame_in_parts(values, cuts):
    """A Dask data frame with these partitions, whose lengths Dask does not know."""
    frame = pd.DataFrame(values) if values.ndim == 2 else pd.Series(values, name="w")
    pieces = [frame.iloc[a:b] for a, b in zip([0, *cuts], [*cuts, len(frame)], strict=True)]
    return dd.from_delayed([dask.delayed(piece) for piece in pieces], meta=frame.iloc[:0])


def check(plan, wholes, client):
    seen = np.zeros(N_ROWS, dtype=int)
    assert plan.n_rows == N_ROWS
    in_order = sorted((part for parts in plan.parts.values() for part in parts), key=lambda part: part.number)
    ends = np.cumsum([part.n_rows for part in in_order])
    end_of = {part.number: end for part, end in zip(in_order, ends, strict=True)}
    for address, parts in plan.parts.items():
        assert [part.number for part in parts] == sorted(part.number for part in parts)
        for part in parts:
            rows = slice(end_of[part.number] - part.n_rows, end_of[part.number])
            seen[rows] += 1
            assert part.n_rows > 0
            assert set(part.tables) == set(wholes)
            for name, whole in wholes.items():
                np.testing.assert_array_equal(np.asarray(part.tables[name].result()), whole[rows])
        assert address in client.nthreads()
    assert (seen == 1).all()


def arrays(wholes, chunks):
    return {
        name: da.from_array(whole, chunks=(chunks[name],) + (-1,) * (whole.ndim - 1))
        for name, whole in wholes.items()
    }


def test_chunks_may_differ(cluster, wholes):
    tables = arrays(wholes, {"X": 30, "y": 30, "weight": 17})
    plan = place(cluster.client, tables)
    check(plan, wholes, cluster.client)
    numbers = sorted(part.number for parts in plan.parts.values() for part in parts)
    assert numbers == [0, 1, 2, 3]


def test_columns_in_several_chunks_are_joined(cluster, wholes):
    tables = arrays(wholes, {"X": 30, "y": 50, "weight": 100})
    tables["X"] = tables["X"].rechunk({1: 3})
    check(place(cluster.client, tables), wholes, cluster.client)


def test_chunks_of_unknown_length_are_counted(cluster, wholes):
    tables = arrays(wholes, {"X": 30, "y": 25, "weight": 40})
    chosen = wholes["weight"] > -1e9  # all of them, which Dask does not know
    tables["X"] = tables["X"][da.from_array(chosen, chunks=30)]
    assert np.isnan(tables["X"].chunks[0][0])
    check(place(cluster.client, tables), wholes, cluster.client)


def test_frames_with_empty_partitions(cluster, wholes):
    tables = {
        "X": frame_in_parts(wholes["X"], [0, 20, 20, 90, 100]),
        "y": frame_in_parts(wholes["y"], [50, 50]),
        "weight": frame_in_parts(wholes["weight"], [20, 90]),
    }
    plan = place(cluster.client, tables)
    check(plan, wholes, cluster.client)
    assert sorted(part.number for parts in plan.parts.values() for part in parts) == [1, 3, 4]
    names = {part.number: part.tables["y"].result() for parts in plan.parts.values() for part in parts}
    assert all(isinstance(one, pd.DataFrame) for one in names.values())


@pytest.mark.parametrize("kind", ["arrays", "frames"])
def test_some_partitions_once_more(cluster, wholes, kind):
    """With the rows of the other tables beside them, and nothing else."""
    if kind == "arrays":
        tables = arrays(wholes, {"X": 30, "y": 25, "weight": 40})
    else:
        tables = {
            "X": frame_in_parts(wholes["X"], [0, 30, 60, 60, 90]),
            "y": frame_in_parts(wholes["y"], [25, 50, 75]),
            "weight": arrays(wholes, {"X": 9, "y": 9, "weight": 40})["weight"],
        }
    client, addresses = cluster.client, cluster.grow_to(2)
    lengths = place(client, tables).lengths
    wanted = [number for number, length in enumerate(lengths["X"]) if length][1::2]
    where = dict(zip(wanted, addresses, strict=False))
    plan = place_again(client, tables, lengths, where, addresses, lambda: None)
    assert {part.number: address for address, parts in plan.parts.items() for part in parts} == where
    for part in [part for parts in plan.parts.values() for part in parts]:
        first = sum(lengths["X"][: part.number])
        rows = slice(first, first + part.n_rows)
        for name, whole in wholes.items():
            np.testing.assert_array_equal(np.asarray(part.tables[name].result()), whole[rows])


def test_a_frame_and_arrays(cluster, wholes):
    tables = arrays(wholes, {"X": 30, "y": 25, "weight": 40})
    tables["X"] = frame_in_parts(wholes["X"], [10, 70])
    check(place(cluster.client, tables), wholes, cluster.client)


def at_random(n_rows):
    """Rows that are others each time they are computed."""
    import secrets

    return pd.DataFrame({"a": [secrets.randbits(30) for _ in range(n_rows)]})


@pytest.mark.parametrize("kind", ["frame", "array"])
def test_what_tables_share_is_computed_once(cluster, kind):
    X = dd.from_delayed([dask.delayed(at_random, pure=False)(n) for n in (30, 70)], meta=at_random(0))
    if kind == "array":
        X = X.to_dask_array(lengths=[30, 70])
    y = X[:, 0] * 2 if kind == "array" else X["a"] * 2
    plan = place(cluster.client, {"X": X, "y": y})
    for part in [part for parts in plan.parts.values() for part in parts]:
        tables = {name: np.asarray(future.result()) for name, future in part.tables.items()}
        np.testing.assert_array_equal(tables["y"], tables["X"][:, 0] * 2)


def test_other_workers_are_left_alone(cluster, wholes):
    (address,) = cluster.grow_to(1)
    plan = place(cluster.client, arrays(wholes, {"X": 10, "y": 10, "weight": 10}), workers=[address])
    assert list(plan.parts) == [address]
    check(plan, wholes, cluster.client)
    who_has = cluster.client.who_has([part.tables["X"] for part in plan.parts[address]])
    assert set(who_has.values()) == {(address,)}


def rows_and_sums(rank, shard):
    own = sum(float(part["tables"]["X"].sum() + part["tables"]["y"].sum()) for part in shard)
    text = f"{sum(part['n_rows'] for part in shard)} {own!r}"
    received = rank.exchange.exchange([text.encode()] * rank.exchange.size)
    return [bytes(one).decode().split() for one in received]


def test_a_plan_can_be_launched(cluster, wholes):
    tables = arrays(wholes, {"X": 10, "y": 7, "weight": 10})
    plan = place(cluster.client, tables, workers=cluster.grow_to(2))
    assert len(plan.parts) == 2
    received = launch(cluster.client, rows_and_sums, plan.shards(), QUICK)
    assert sum(int(n_rows) for n_rows, _ in received) == N_ROWS
    assert sum(float(total) for _, total in received) == pytest.approx(wholes["X"].sum() + wholes["y"].sum())


def test_bad_tables_are_refused_by_name(cluster, wholes):
    tables = arrays(wholes, {"X": 30, "y": 25, "weight": 40})
    client = cluster.client
    with pytest.raises(TypeError, match="y is a ndarray, not an array, a data frame or a series of Dask"):
        place(client, {**tables, "y": wholes["y"]})
    with pytest.raises(ValueError, match="X has 100 rows, y 90"):
        place(client, {**tables, "y": tables["y"][:90]})
    with pytest.raises(ValueError, match="X has 3 dimensions"):
        place(client, {"X": da.zeros((3, 3, 3))})
    with pytest.raises(ValueError, match="X has no rows"):
        place(client, {"X": da.zeros((0, 3))})
    with pytest.raises(ValueError, match="not in the cluster: tcp://nowhere:1"):
        place(client, tables, workers=["tcp://nowhere:1"])

    def broken(block):
        raise LookupError("no such file")

    with pytest.raises(LookupError, match="no such file") as caught:
        place(client, {**tables, "y": tables["y"].map_blocks(broken, dtype=float, meta=np.zeros((0, 0)))})
    (note,) = caught.value.__notes__
    words, _, address = note.strip("()").partition(", on the worker at ")
    assert words == "partition 0 of y"
    assert address in client.nthreads()


@settings(max_examples=100, deadline=None)
@given(data=st.data())
def test_partitions_stay_where_they_are_unless_that_is_unfair(data):
    threads = data.draw(st.dictionaries(st.sampled_from("abcdef"), st.integers(1, 4), min_size=1))
    sizes = data.draw(st.lists(st.integers(1, 50), max_size=30))
    holders = [data.draw(st.lists(st.sampled_from("abcdefgh"), max_size=3)) for _ in sizes]
    places = assign(sizes, holders, threads)
    load = dict.fromkeys(threads, 0.0)
    for size, place_ in zip(sizes, places, strict=True):
        load[place_] += size / threads[place_]
    most = max(load.values())
    mean = sum(sizes) / sum(threads.values())
    # To move any one elsewhere from one of the fullest would make the other as full as this is now.
    assert most <= 1.1 * mean + 1e-9 or any(
        all(
            load[other] + size / threads[other] >= most - 1e-9
            for size, place_ in zip(sizes, places, strict=True)
            if place_ == fullest
            for other in threads
            if other != fullest
        )
        for fullest in threads
        if load[fullest] >= most - 1e-9
    )


def test_fair_partitions_do_not_move():
    holders = [["a"], ["b"], ["c"], ["a", "b"], ["c"], ["b"]]
    assert assign([10] * 6, holders, {"a": 1, "b": 1, "c": 1}) == ["a", "b", "c", "a", "c", "b"]
