"""Rows in several shards give the model file of a plain fit, byte for byte."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from parts import file_of, fit_parts
from polyleaf import PolyleafClassifier, PolyleafMixed, PolyleafRegressor
from polyleaf.callbacks import LearningRateSchedule
from polyleaf.data.eval_sets import EvalInput
from polyleaf.estimators.shard_training import Progress, fit_shard, train_shard
from polyleaf.estimators.shards import Asked, prepare_shard
from polyleaf.metrics import rmse_per_output
from polyleaf.peers.collectives import Collectives
from polyleaf.peers.local import run_local
from polyleaf.peers.pieces import Pieces

pytestmark = [
    pytest.mark.cpu_only("shards are of the CPU"),
    pytest.mark.other_threads("text of frames is in memory that Arrow shares out to threads"),
]

N = 150
RNG = np.random.default_rng(0)
TABLE = pd.DataFrame(
    {
        "a": RNG.normal(size=N),
        "b": RNG.integers(0, 4, N).astype(float),
        "town": RNG.choice(["Ulm", "Bonn", "Jena", "Kiel", "rare"], N, p=[0.4, 0.3, 0.2, 0.09, 0.01]),
        "c": np.where(RNG.random(N) < 0.2, np.nan, RNG.normal(size=N)),
    }
)
Y = np.column_stack([TABLE["a"] + (TABLE["town"] == "Ulm"), TABLE["b"] ** 2, RNG.normal(size=N)])
TARGETS = pd.DataFrame(Y, columns=["u", "v", "w"])
GAPS = TARGETS.where(RNG.random(Y.shape) > 0.3)
CLASSES = pd.Series(np.array(["low", "mid", "high"])[Y.argmax(axis=1)], name="level")
WEIGHT = RNG.integers(0, 3, N).astype(float)
COMMON = {"n_estimators": 3, "min_samples_leaf": 3, "categorical_features": ["town"], "n_jobs": 1}

CASES = {
    "targets": (PolyleafRegressor(), TARGETS, None),
    "weights": (PolyleafRegressor(), TARGETS, WEIGHT),
    "gaps": (PolyleafRegressor(), GAPS, None),
    "gaps and weights": (PolyleafRegressor(eval_metric="mae"), GAPS, WEIGHT),
    "cells": (PolyleafRegressor(), TARGETS, np.column_stack([WEIGHT, WEIGHT + 1, np.ones(N)])),
    "median": (PolyleafRegressor(objective="absolute_error"), GAPS, None),
    "quantiles": (PolyleafRegressor(objective="quantile", quantile_levels=[0.1, 0.5]), TARGETS, WEIGHT),
    "huber": (PolyleafRegressor(objective="huber"), TARGETS, WEIGHT),
    "classes": (PolyleafClassifier(eval_metric=["auc", "log_loss"]), CLASSES, None),
    "balanced": (PolyleafClassifier(class_weight="balanced"), CLASSES, WEIGHT),
    "two classes": (PolyleafClassifier(), CLASSES == "mid", None),
    "labels": (
        PolyleafClassifier(eval_metric=["psp@2", "f1_macro", "log_loss_per_target"]),
        (TARGETS > 0.5).astype(int),
        None,
    ),
    "observed labels": (
        PolyleafClassifier(eval_metric=["f1_micro", "auc_per_target"]),
        (TARGETS > 0.5).astype(float).where(RNG.random(Y.shape) > 0.3),
        None,
    ),
    "f1 of classes": (PolyleafClassifier(eval_metric=["f1_macro", "f1_micro", "psp@1"]), CLASSES, WEIGHT),
    "each target": (PolyleafRegressor(eval_metric=["mae_per_target", "r2_per_target"]), GAPS, None),
    "sample": (PolyleafRegressor(subsample=0.5, colsample_bytree=0.7, random_state=3), TARGETS, WEIGHT),
    "sketch": (PolyleafClassifier(sketch="top_outputs", sketch_size=2), CLASSES, None),
    "monotone": (PolyleafRegressor(monotone_constraints={"a": 1}), TARGETS, None),
    "interaction": (PolyleafRegressor(interaction_constraints=[["a", "town"], ["b", "c"]]), TARGETS, None),
    "few bins": (PolyleafRegressor(max_bins=4), TARGETS, WEIGHT),
    "all values": (PolyleafRegressor(max_bins=None), TARGETS, None),
    "mixed": (
        PolyleafMixed({"u": "regression", "level": "multiclass"}),
        TARGETS[["u"]].assign(level=CLASSES),
        None,
    ),
}


def taken(values, rows):
    if values is None:
        return None
    return values.iloc[rows] if hasattr(values, "iloc") else values[rows]


def assert_same_file(folder, name, cuts, owner, n_shards, **changes):
    """Compare the files of a plain fit and of shards, which have the pieces between the cuts."""
    estimator, y, weight = CASES[name]
    estimator.set_params(**COMMON | changes)
    unseen = np.arange(0, N, 4)
    evals = (TABLE.iloc[unseen], taken(y, unseen))
    plain = estimator.fit(TABLE, y, sample_weight=weight, eval_set=[evals])
    plain.save_model(folder / "plain")
    expected = (folder / "plain").read_bytes()
    pieces = np.split(np.arange(N), cuts)

    def fitted(exchange):
        peers = Collectives(exchange)

        def part(X, y, weight, pieces, name):
            own = [k for k in range(len(pieces)) if owner[k] == exchange.rank]
            rows = np.concatenate([np.empty(0, dtype=int), *(pieces[k] for k in own)])
            return EvalInput(
                name,
                X.iloc[rows],
                taken(y, rows),
                taken(weight, rows),
                "X",
                "y",
                "sample_weight",
                Pieces(peers, tuple(own), tuple(len(pieces[k]) for k in own)),
            )

        places = np.split(np.arange(len(unseen)), np.searchsorted(unseen, cuts))
        training = part(TABLE, y, weight, pieces, "training")
        watched = part(*evals, None, places, "validation_0")
        return fit_shard(estimator, training, [watched], 1)

    for rank, model in enumerate(run_local(n_shards, fitted)):
        assert file_of(folder / f"rank {rank}", model) == expected


@pytest.mark.parametrize("name", CASES)
def test_shards_give_the_file_of_a_plain_fit(name, tmp_path):
    assert_same_file(tmp_path, name, [40, 41, 90, 90], [1, 0, 2, 1, 0], 3)


@settings(max_examples=15, deadline=None)
@given(
    name=st.sampled_from(list(CASES)),
    cuts=st.lists(st.integers(0, N), min_size=2, max_size=8),
    n_shards=st.integers(1, 7),
    seed=st.integers(0, 99),
)
def test_any_cut_gives_the_file_of_a_plain_fit(tmp_path_factory, name, cuts, n_shards, seed):
    """Also where shards have no rows, or none of any weight."""
    cuts = sorted(cuts)
    owner = np.random.default_rng(seed).integers(0, n_shards, len(cuts) + 1)
    assert_same_file(tmp_path_factory.mktemp("files"), name, cuts, owner, n_shards)


def test_callbacks_are_called_once_and_heard_by_all(tmp_path):
    seen = []

    def note(state):
        seen.append(state.round)
        return state.round == 3

    schedule = LearningRateSchedule(lambda number: 0.5 / (number + 1))
    for changes in (
        {"callbacks": [schedule, note], "n_estimators": 9},
        {"callbacks": None, "early_stopping_rounds": 1, "n_estimators": 40, "learning_rate": 1.0},
    ):
        seen.clear()
        assert_same_file(tmp_path, "targets", [70], [0, 1], 2, **changes)
        assert seen == ([0, 1, 2, 3] * 2 if changes["callbacks"] else [])
    CASES["targets"][0].set_params(early_stopping_rounds=None, learning_rate=0.1)


def test_an_error_of_a_callback_ends_all_shards(tmp_path):
    def broken(state):
        if state.round == 1:
            raise RuntimeError("enough")

    with pytest.raises(RuntimeError, match="enough"):
        assert_same_file(tmp_path, "targets", [70], [0, 1], 2, callbacks=[broken])
    CASES["targets"][0].set_params(callbacks=None)


def test_errors_name_what_is_wrong_wherever_it_is():
    def fit(exchange, X, y, **params):
        return fit_parts(exchange, PolyleafRegressor(n_estimators=1, **params), X, y)

    one, y = TABLE[["a", "b"]], Y[:, 0]
    cases = (
        ([one, one.rename(columns={"b": "z"})], [y, y], {}, "feature names.*'b'.*'z'"),
        ([one, one[["a"]]], [y, y], {}, r"number of features: 2 \(partition 0\) and 1 \(partition 1\)"),
        ([one, one], [y, Y], {}, "parts of y have different dimensions"),
        ([one, one.assign(b="text")], [y, y], {}, "column 'b' holds no numbers"),
        ([one, one], [y, np.where(np.arange(N) == 5, np.inf, y)], {}, "infinity|inf"),
        ([one, one], [np.full(N, np.nan)] * 2, {}, "holds no observation"),
        ([one, one], [np.zeros(N), np.zeros(N)], {"objective": "poisson"}, "0 in all rows"),
    )
    for X, targets, params, words in cases:
        with pytest.raises(ValueError, match=words):
            run_local(2, lambda exchange, X=X, y=targets, params=params: fit(exchange, X, y, **params))


@pytest.mark.parametrize("name", CASES)
def test_a_shard_without_rows_takes_part(name, tmp_path):
    """It has none to train on, or none of the evaluation set."""
    assert_same_file(tmp_path, name, [1, 4], [0, 2, 0], 3)


def test_callbacks_may_compute_what_they_like(tmp_path):
    """Sums of theirs are their own, not those of all shards."""

    def measures(state):
        assert rmse_per_output(Y, Y).sum() == 0
        PolyleafRegressor(n_estimators=1).fit(Y[:20], Y[:20, 0])

    assert_same_file(tmp_path, "targets", [70], [0, 1], 2, callbacks=[measures])
    CASES["targets"][0].set_params(callbacks=None)


@pytest.mark.parametrize("labels", ["object", "category"])
def test_text_of_any_dtype_in_a_shard_without_rows(labels, tmp_path):
    CASES[labels] = (PolyleafClassifier(), CLASSES.astype(labels), None)
    try:
        assert_same_file(tmp_path, labels, [0, 90], [0, 1, 1], 2)
    finally:
        del CASES[labels]


def test_targets_of_a_mixed_model_that_one_shard_has_not_seen(tmp_path):
    y = TARGETS[["u"]].assign(level=CLASSES.where(np.arange(N) >= 60, None))
    model = PolyleafMixed({"u": "regression", "level": "multiclass"}, class_weight="balanced")
    CASES["late"] = (model, y, None)
    try:
        assert_same_file(tmp_path, "late", [60, 100], [0, 1, 1], 2)
    finally:
        del CASES["late"]


def test_a_round_that_was_done_before_is_heard_of(tmp_path):
    """A callback that ends the training after it does so when the run goes on, too."""

    def trained(exchange, known):
        peers, half = Collectives(exchange), N // 2
        rows = slice(half * exchange.rank, half * (exchange.rank + 1))
        pieces = Pieces(peers, (exchange.rank,), (half,))
        given = EvalInput("t", TABLE[["a", "b"]][rows], Y[rows], None, "X", "y", "w", pieces)
        stop = lambda state: state.round == 2  # noqa: E731
        shard = prepare_shard(Asked(PolyleafRegressor(n_estimators=6, callbacks=[stop])), given, [], 1)
        progress = Progress(done=list(known) if exchange.rank else [])  # one shard has lost its memory
        return train_shard(shard, peers, progress), progress.done

    whole, known = run_local(2, lambda exchange: trained(exchange, []))[0]
    assert len(known) == 3
    for model, _ in run_local(2, lambda exchange: trained(exchange, known)):
        assert file_of(tmp_path / "again", model) == file_of(tmp_path / "whole", whole)
