"""Shards read their rows as a plain fit reads all of them: names of rows, categories, seeds, metrics."""

import numpy as np
import pandas as pd
import pytest

from parts import file_of, fit_parts
from polyleaf import PolyleafClassifier, PolyleafRegressor
from polyleaf.data.eval_sets import EvalInput
from polyleaf.estimators.shards import Asked, prepare_shard
from polyleaf.peers.collectives import Collectives
from polyleaf.peers.local import run_local
from polyleaf.peers.pieces import Pieces

pytestmark = pytest.mark.cpu_only("shards are of the CPU")

N = 150
RNG = np.random.default_rng(0)
TABLE = RNG.normal(size=(N, 3))
Y = TABLE @ [1.0, -1.0, 0.5] + RNG.normal(size=N)
CLASSES = np.array(["high", "low", "mid"])[TABLE.argmax(axis=1)]


def changed(values, row, value):
    values = np.array(values, dtype=float)
    values[row] = value
    return values


NAN, INF = np.nan, np.inf
WRONG_ROWS = {
    "X": (PolyleafRegressor(), lambda X, y, w: (changed(X, (105, 1), INF), y, w), "X .*inf in"),
    "y": (PolyleafRegressor(), lambda X, y, w: (X, changed(y, 105, INF), w), "y .*inf"),
    "weight": (PolyleafRegressor(), lambda X, y, w: (X, y, changed(w, 105, -1)), "weight must .*-1.0 in"),
    "cells": (
        PolyleafRegressor(),
        lambda X, y, w: (X, np.c_[y, y], changed(np.c_[w, w], (105, 1), NAN)),
        "weight must .*nan in",
    ),
    "labels": (PolyleafClassifier(), lambda X, y, w: (X, changed(y > 0, 105, NAN), w), "y contains NaN"),
    "halves": (PolyleafClassifier(), lambda X, y, w: (X, changed(y > 0, 105, 0.5), w), "y holds 0.5 in"),
    "counts": (
        PolyleafRegressor(objective="poisson"),
        lambda X, y, w: (X, changed(np.abs(y), 105, -2), w),
        "y is -2.0",
    ),
}


@pytest.mark.parametrize("name", WRONG_ROWS)
def test_a_row_at_fault_is_named_by_its_number_among_all(name):
    """Rows without weight count, too: here the first ten have none."""
    estimator, make, words = WRONG_ROWS[name]
    weight = np.where(np.arange(N) < 10, 0.0, 1.0)
    whole = make(TABLE, Y, weight)
    with pytest.raises(ValueError, match=rf"{words}.*row 105\b"):
        estimator.fit(whole[0], whole[1], sample_weight=whole[2])
    parts = [np.split(one, [40, 100]) for one in whole]
    with pytest.raises(ValueError, match=rf"{words}.*row 105 \(row 5 of partition 2\)"):
        run_local(3, lambda exchange: fit_parts(exchange, estimator, *parts))


def test_numbers_of_several_types_are_the_categories_of_one_column(tmp_path):
    codes = RNG.integers(0, 4, N)
    other = np.where(codes == 3, 2.5, codes)  # floats, of which most are whole
    y = codes + 0.1 * Y
    kinds = {
        "int then float": [codes[:60], other[60:]],
        "float then int": [other[:60], codes[60:]],
        "floats": [codes[:60].astype(float), codes[60:].astype(np.float32)],
        "objects": [codes[:60].astype(object), codes[60:].astype(float).astype(object)],
    }
    model = PolyleafRegressor(n_estimators=2, categorical_features=["k"], min_samples_leaf=3)
    for name, parts in kinds.items():
        X = [pd.DataFrame({"k": one}) for one in parts]
        model.fit(pd.concat(X), y).save_model(tmp_path / "plain")
        found = run_local(2, lambda exchange, X=X: fit_parts(exchange, model, X, [y[:60], y[60:]]))
        for of_shard in found:
            assert file_of(tmp_path / "shard", of_shard) == (tmp_path / "plain").read_bytes(), name


def test_integers_that_another_part_would_round_are_refused():
    X = [pd.DataFrame({"k": [2**53 + 1, 1, 2]}), pd.DataFrame({"k": [0.5, 1.0, 2.0]})]
    model = PolyleafRegressor(n_estimators=1, categorical_features=["k"])
    with pytest.raises(
        ValueError, match=r"column 'k' holds the integer 9007199254740993.* floats in another"
    ):
        run_local(2, lambda exchange: fit_parts(exchange, model, X, [np.arange(3.0)] * 2))


def test_a_random_state_advances_once_for_all_shards(tmp_path):
    X, y = TABLE, Y
    params = {"n_estimators": 3, "subsample": 0.5, "min_samples_leaf": 3}
    plain = PolyleafRegressor(**params, random_state=np.random.RandomState(7))
    shared = PolyleafRegressor(**params, random_state=np.random.RandomState(7))
    parts = [np.split(one, [30, 80, 81]) for one in (X, y)]
    files = set()
    for _ in range(2):  # the second fit has the next seed
        plain.fit(X, y).save_model(tmp_path / "plain")
        for model in run_local(4, lambda exchange: fit_parts(exchange, shared, *parts)):
            assert file_of(tmp_path / "shard", model) == (tmp_path / "plain").read_bytes()
        files.add((tmp_path / "plain").read_bytes())
    assert len(files) == 2
    assert plain.random_state.randint(1 << 30) == shared.random_state.randint(1 << 30)


@pytest.mark.parametrize("which", ["valid", "training"])
def test_a_metric_of_too_many_rows_is_refused_on_all_shards_before_they_are_binned(monkeypatch, which):
    """Those made of sums go on."""
    monkeypatch.setattr("polyleaf.peers.gather.MOST_GATHERED_BYTES", 8 * 5 * N - 1)
    monkeypatch.setattr("polyleaf.estimators.shards.bin_data", lambda *_: pytest.fail("binned"))
    half = N // 2
    said = []

    def fit(exchange, metric):
        own, peers = exchange.rank, Collectives(exchange)
        rows = slice(half * own, half * own + half)
        pieces = Pieces(peers, (own,), (half,))
        given = EvalInput(which, TABLE[rows], CLASSES[rows], None, "X", "y", "w", pieces)
        model = PolyleafClassifier(n_estimators=1, eval_metric=metric)
        try:
            if which == "training":
                prepare_shard(Asked(model, measured=True), given, [], 1)
            else:
                prepare_shard(Asked(model), given, [given], 1)
        except ValueError as error:
            said.append(str(error))

    run_local(2, lambda exchange: fit(exchange, ["auc", "f1_macro"]))
    assert len(said) == 2
    assert len(set(said)) == 1
    assert f"the metric 'auc' on '{which}' (150 rows of 3 predictions)" in said[0]
    assert f"{8 * 5 * N:,} bytes, where at most {8 * 5 * N - 1:,}" in said[0]
    with pytest.raises(pytest.fail.Exception, match="binned"):
        run_local(2, lambda exchange: fit(exchange, "f1_macro"))
