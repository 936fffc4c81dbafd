"""Rows that are held out of shards: the model file is that of a plain fit on all rows, byte for byte."""

from __future__ import annotations

import contextlib
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from test_kept_shards import Limited

from parts import file_of
from polyleaf import PolyleafClassifier, PolyleafMixed, PolyleafRegressor, load_model
from polyleaf.callbacks import Checkpoint, EarlyStopping, LearningRateSchedule
from polyleaf.data.eval_sets import EvalInput
from polyleaf.estimators import held_out
from polyleaf.estimators.shard_facts import ShardFacts
from polyleaf.estimators.shard_training import Progress, fit_shard, train_shard
from polyleaf.estimators.shards import Asked, prepare_shard
from polyleaf.params import automatic
from polyleaf.peers.collectives import Collectives
from polyleaf.peers.exchange import ExchangeError
from polyleaf.peers.gather import MOST_GATHERED_BYTES
from polyleaf.peers.local import run_local
from polyleaf.peers.pieces import Pieces

pytestmark = [
    pytest.mark.cpu_only("shards are of the CPU"),
    pytest.mark.other_threads("text of frames is in memory that Arrow shares out to threads"),
]

N = 160
RNG = np.random.default_rng(11)
TABLE = pd.DataFrame(
    {
        "a": RNG.normal(size=N).round(1),
        "town": RNG.choice(["Ulm", "Bonn", "Jena", "rare"], N, p=[0.5, 0.3, 0.18, 0.02]),
        "c": np.where(RNG.random(N) < 0.2, np.nan, RNG.normal(size=N)),
    }
)
TABLE.iloc[100:130] = TABLE.iloc[5]  # copies of a row
TABLE.iloc[140:] = TABLE.iloc[20:40].to_numpy()
Y = np.column_stack([TABLE["a"] + (TABLE["town"] == "Ulm"), RNG.normal(size=N)])
TARGETS = pd.DataFrame(Y, columns=["u", "v"])
GAPS = TARGETS.where(RNG.random(Y.shape) > 0.3)
CLASSES = pd.Series(np.array(["low", "mid", "high"])[RNG.integers(0, 3, N)], name="level")
CLASSES[TABLE["a"] > 0.5] = "high"
CLASSES[[3, 60]] = "seldom"
WEIGHT = RNG.choice([0.0, 0.1, 0.7, 2.0], N)
CELLS = np.column_stack([WEIGHT, RNG.random(N)])
COMMON = {"n_estimators": "auto", "max_depth": 2, "min_samples_leaf": 3, "learning_rate": 0.5, "n_jobs": 1}

CASES: dict[str, tuple[Any, Any, Any]] = {
    "targets": (PolyleafRegressor(), TARGETS, None),
    "one target": (PolyleafRegressor(), TARGETS["u"], None),
    "weights": (PolyleafRegressor(), TARGETS, WEIGHT),
    "gaps": (PolyleafRegressor(), GAPS, None),
    "cells": (PolyleafRegressor(), GAPS, CELLS),
    "medians": (PolyleafRegressor(objective="absolute_error", eval_metric=["rmse", "mae"]), TARGETS, WEIGHT),
    "a number": (PolyleafRegressor(n_estimators=7, early_stopping_rounds=3), TARGETS, None),
    "sample": (PolyleafRegressor(subsample=0.5, colsample_bytree=0.7, random_state=3), TARGETS, WEIGHT),
    "tree per output": (PolyleafRegressor(multi_strategy="one_output_per_tree"), GAPS, None),
    "a third": (PolyleafRegressor(validation_fraction=0.34, random_state=5), TARGETS, None),
    "counts": (PolyleafRegressor(objective="poisson"), TARGETS.abs().round(), None),
    "classes": (PolyleafClassifier(), CLASSES, None),
    "classes in one place": (PolyleafClassifier(eval_metric="auc"), CLASSES, WEIGHT),
    "balanced": (PolyleafClassifier(class_weight="balanced"), CLASSES, WEIGHT),
    "two classes": (PolyleafClassifier(), CLASSES == "mid", None),
    "labels": (PolyleafClassifier(), (TARGETS > 0.5).astype(int), None),
    "observed labels": (PolyleafClassifier(class_weight="balanced"), (GAPS > 0.5).where(GAPS.notna()), None),
    "mixed": (
        PolyleafMixed({"u": "regression", "level": "multiclass"}),
        GAPS[["u"]].assign(level=CLASSES),
        WEIGHT,
    ),
}
# Few rows: each is held out once, in one of several runs. Many: some are, and the model is that of all rows,
# or of the others.
COURSES = {"in turn": (N + 1, True), "refit": (0, True), "no refit": (0, False)}


def rows_of(name: str, cuts: list[int], own: list[int], peers: Collectives) -> EvalInput:
    _, y, weight = CASES[name]
    pieces = np.split(np.arange(N), cuts)
    rows = np.concatenate([np.empty(0, dtype=int), *(pieces[k] for k in own)])
    of_pieces = Pieces(peers, tuple(own), tuple(len(pieces[k]) for k in own))
    weights = None if weight is None else weight[rows]
    return EvalInput("training", TABLE.iloc[rows], y.iloc[rows], weights, "X", "y", "w", of_pieces)


def estimator_of(name: str, refit: bool, **params: Any) -> Any:
    estimator = type(CASES[name][0])(**CASES[name][0].get_params(deep=False))
    own = COMMON | {"categorical_features": ["town"]}
    if estimator.n_estimators != PolyleafRegressor().n_estimators:
        own |= {"n_estimators": estimator.n_estimators}
    return estimator.set_params(**own | {"refit": refit} | params)


def plain_file(folder: Path, name: str, refit: bool, **params: Any) -> bytes:
    _, y, weight = CASES[name]
    plain = estimator_of(name, refit, **params).fit(TABLE, y, sample_weight=weight)
    plain.save_model(folder / "plain")
    return (folder / "plain").read_bytes()


def assert_same_file(
    folder: Path, name: str, course: str, cuts: list[int], owner: Any, n_shards: int
) -> None:
    few, refit = COURSES[course]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(held_out, "AUTO_FEW_ROWS", few)
        expected = plain_file(folder, name, refit)

        def fitted(exchange: Any) -> Any:
            own = [k for k in range(len(cuts) + 1) if owner[k] == exchange.rank]
            given = rows_of(name, cuts, own, Collectives(exchange))
            return fit_shard(estimator_of(name, refit), given, [], 1)

        for rank, model in enumerate(run_local(n_shards, fitted)):
            assert file_of(folder / f"rank {rank}", model) == expected
            assert list(model.fitted.evals_result) == ["held_out"]


@pytest.mark.parametrize("course", COURSES)
@pytest.mark.parametrize("name", CASES)
def test_shards_give_the_file_of_a_plain_fit(name: str, course: str, tmp_path: Path) -> None:
    assert_same_file(tmp_path, name, course, [40, 41, 90, 90], [1, 0, 2, 1, 0], 3)


@settings(max_examples=12, deadline=None)
@given(
    name=st.sampled_from(list(CASES)),
    course=st.sampled_from(list(COURSES)),
    cuts=st.lists(st.integers(0, N), min_size=2, max_size=6),
    n_shards=st.integers(1, 4),
    seed=st.integers(0, 99),
)
def test_any_cut_gives_the_file_of_a_plain_fit(
    tmp_path_factory: Any, name: str, course: str, cuts: list[int], n_shards: int, seed: int
) -> None:
    """Also where shards have no rows, or none of any weight."""
    cuts = sorted(cuts)
    owner = np.random.default_rng(seed).integers(0, n_shards, len(cuts) + 1)
    assert_same_file(tmp_path_factory.mktemp("files"), name, course, cuts, owner, n_shards)


@pytest.mark.parametrize("larger", [True, False])
def test_shards_choose_the_leaves_of_a_plain_fit(tmp_path: Path, larger: bool) -> None:
    """Also where a shard fails within the trial, or after it."""
    random = np.random.default_rng(3)
    X = random.normal(size=(N, 16))
    y = X[:, :6].sum(axis=1) + random.normal(size=N)
    if not larger:  # rows in copies
        X, y = np.repeat(X[::4], 4, axis=0) + 0.001 * X, np.repeat(random.normal(size=N // 4), 4)
    make = {"learning_rate": 0.3, "n_estimators": 6, "early_stopping_rounds": 6, "max_depth": 4, "n_jobs": 1}
    plain = PolyleafRegressor(**make).fit(X, y)
    assert plain.chosen_params_["min_samples_leaf"] == (20 if larger else 3)
    plain.save_model(tmp_path / "plain")

    def trained(exchange: Any, limit: int) -> Any:
        rows, peers, progress = np.arange(exchange.rank, N, 2), Collectives(exchange), Progress()
        of_pieces = Pieces(peers, (exchange.rank,), (len(rows),))
        given = EvalInput("training", X[rows], y[rows], None, "X", "y", "w", of_pieces)
        shard = prepare_shard(Asked(PolyleafRegressor(**make)), given, [], 1)
        with contextlib.suppress(ExchangeError):
            train_shard(shard, Collectives(Limited(exchange, limit)), progress)
        known.add(progress.larger_leaves)
        return train_shard(shard, peers, progress)

    known: set[bool | None] = set()
    for limit in (0, 200, 2000, 100_000):
        for model in run_local(2, lambda exchange, limit=limit: trained(exchange, limit)):
            assert file_of(tmp_path / "again", model) == (tmp_path / "plain").read_bytes()
    assert known == {None, larger}


def halves(name: str, exchange: Any, peers: Collectives) -> EvalInput:
    return rows_of(name, [40, 41, 90, 90, 120], [[0, 2, 4], [1, 3, 5]][exchange.rank], peers)


@pytest.mark.parametrize(("course", "step"), [("in turn", 120), ("refit", 31), ("no refit", 23)])
def test_a_failure_at_any_moment_changes_nothing(
    course: str, step: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Neither while held-out rows are watched, nor while all rows are trained on."""
    few, refit = COURSES[course]
    monkeypatch.setattr(held_out, "AUTO_FEW_ROWS", few)
    params = {"n_estimators": 6, "early_stopping_rounds": 2}
    expected = plain_file(tmp_path, "weights", refit, **params)
    extents = set()

    def trained(exchange: Any, limit: int) -> Any:
        peers, progress = Collectives(exchange), Progress()
        given = halves("weights", exchange, peers)
        shard = prepare_shard(Asked(estimator_of("weights", refit, **params)), given, [], 1)
        with contextlib.suppress(ExchangeError):
            train_shard(shard, Collectives(Limited(exchange, limit)), progress)
        if exchange.rank == 0:
            extents.add(progress.extent)
        return train_shard(shard, peers, progress)

    for limit in range(0, 14 * step, step):
        for model in run_local(2, lambda exchange, limit=limit: trained(exchange, limit)):
            assert file_of(tmp_path / "again", model) == expected
    assert {extent[0] for extent in extents} == ({0, 1} if refit else {0})
    assert len(extents) > 3


@pytest.mark.parametrize("name", ["cells", "balanced", "mixed"])
@pytest.mark.parametrize("stage", [0, 1], ids=["watched", "all rows"])
@pytest.mark.parametrize("course", ["in turn", "refit"])
def test_what_was_lost_is_read_by_what_is_known(
    name: str, stage: int, course: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One shard is lost, a new one comes, and another one gives a piece to it."""
    few, refit = COURSES[course]
    monkeypatch.setattr(held_out, "AUTO_FEW_ROWS", few)
    params = {"n_estimators": 5, "early_stopping_rounds": 5}  # none end early
    expected = plain_file(tmp_path, name, refit, **params)
    cuts, watches = [40, 41, 90, 90, 120], []

    class Lost(Exception):
        pass

    def first(exchange: Any) -> Any:
        peers, progress = Collectives(exchange), Progress()
        given = rows_of(name, cuts, [[0, 3], [1, 4], [2, 5]][exchange.rank], peers)

        def lose(state: Any) -> None:
            if progress.extent >= (stage, 1):
                raise Lost

        shard = prepare_shard(Asked(estimator_of(name, refit, **params)), given, [], 1)
        early, *_ = shard.callbacks
        with contextlib.suppress(Lost, ExchangeError):
            train_shard(replace(shard, callbacks=[early, lose]), peers, progress)
        assert progress.extent[0] == stage
        return shard, progress

    kept = run_local(3, first)
    original = held_out.HeldOut.__init__

    def noting(self: Any, *args: Any, **named: Any) -> None:
        watches.append(self)
        original(self, *args, **named)

    monkeypatch.setattr(held_out.HeldOut, "__init__", noting)
    wanted = [[0, 3, 1], [4, 5], [2]]

    def second(exchange: Any) -> Any:
        peers, own = Collectives(exchange), wanted[exchange.rank]
        shard, progress = (None, Progress()) if exchange.rank == 1 else kept[exchange.rank]
        lost = own if shard is None else [k for k in own if k not in shard.pieces[0]]
        facts = ShardFacts.read(kept[0][0].facts.written())
        asked = Asked(estimator_of(name, refit, **params))
        now = prepare_shard(asked, rows_of(name, cuts, lost, peers), [], 1, facts)
        if shard is not None:
            now = shard.of_pieces([own]).followed_by(now)
        return train_shard(now, peers, progress)

    for rank, model in enumerate(run_local(3, second)):
        assert file_of(tmp_path / f"rank {rank}", model) == expected
    assert bool(watches) == (stage == 0)  # what they asked for is known


class Ended(Exception):
    """Raised by a callback."""


class EndAfter:
    """Ends the training of a stage after so many rounds; both stages begin with the first."""

    def __init__(self, stage: int, rounds: int) -> None:
        self.stage, self.rounds = stage, rounds

    def before_training(self, state: Any) -> None:
        self.stage -= 1

    def after_round(self, state: Any) -> None:
        if self.stage < 0 and state.n_done == self.rounds:
            raise Ended


@pytest.mark.parametrize(("stage", "refit"), [(0, True), (1, True), (0, False)])
def test_checkpoints_are_those_of_a_plain_fit(
    stage: int, refit: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of a run that ended in either training; it goes on in shards as it would in one place."""
    monkeypatch.setattr(held_out, "AUTO_FEW_ROWS", 0)
    params = {"n_estimators": 6, "early_stopping_rounds": 6}
    _, y, weight = CASES["weights"]

    def interrupted(path: str) -> list[Any]:
        return [Checkpoint(tmp_path / path, every=1), EndAfter(stage, 2)]

    with pytest.raises(Ended):
        estimator_of("weights", refit, **params, callbacks=interrupted("plain one")).fit(
            TABLE, y, sample_weight=weight
        )

    def trained(exchange: Any, callbacks: Any, resume: Path | None = None) -> Any:
        peers = Collectives(exchange)
        estimator = estimator_of("weights", refit, **params, callbacks=callbacks)
        asked = Asked(estimator, start=estimator._start(None, resume))
        given = halves("weights", exchange, peers)
        return train_shard(prepare_shard(asked, given, [], 1), peers, Progress())

    callbacks = interrupted("one")
    with pytest.raises(Ended):
        run_local(2, lambda exchange: trained(exchange, callbacks))
    assert (tmp_path / "one").read_bytes() == (tmp_path / "plain one").read_bytes()
    plain = estimator_of("weights", refit, **params)
    plain.fit(TABLE, y, sample_weight=weight, resume=tmp_path / "one").save_model(tmp_path / "plain")
    for model in run_local(2, lambda exchange: trained(exchange, None, tmp_path / "plain one")):
        assert file_of(tmp_path / "resumed", model) == (tmp_path / "plain").read_bytes()
    params |= {"early_stopping_rounds": None}
    with pytest.raises(ValueError, match="held out rows to stop by, and this one does not"):
        run_local(2, lambda exchange: trained(exchange, None, tmp_path / "one"))
    assert load_model(tmp_path / "one").n_estimators_ == 2


def test_callbacks_see_both_trainings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(held_out, "AUTO_FEW_ROWS", 0)
    monkeypatch.setattr(automatic, "AUTO_ROUNDS", 60)  # each round makes a forest of all

    class Seen:
        def __init__(self) -> None:
            self.calls: list[Any] = []

        def before_training(self, state: Any) -> None:
            self.calls.append(("begins", state.n_rounds, list(state.evals_result)))

        def after_round(self, state: Any) -> None:
            self.calls.append((state.round, state.learning_rate, state.forest().n_rounds))

        def after_training(self, state: Any) -> None:
            self.calls.append(("ends", state.n_done, state.best_iteration))

    def callbacks(seen: Seen) -> list[Any]:
        return [EarlyStopping(3), LearningRateSchedule(lambda number: 0.5 / (number + 1)), seen]

    plain, sharded = Seen(), Seen()
    expected = plain_file(tmp_path, "targets", True, callbacks=callbacks(plain))
    given = callbacks(sharded)

    def fitted(exchange: Any) -> Any:
        rows = halves("targets", exchange, Collectives(exchange))
        return fit_shard(estimator_of("targets", True, callbacks=given), rows, [], 1)

    for model in run_local(2, fitted):
        assert file_of(tmp_path / "file", model) == expected
    assert sharded.calls == plain.calls
    assert [call[0] for call in plain.calls].count("begins") == 2


def fit_alike(y: Any, **params: Any) -> Any:
    """Fit rows that are all the same but for y, in two shards."""
    X = np.ones((8, 2))

    def fitted(exchange: Any) -> Any:
        rows = slice(4 * exchange.rank, 4 * exchange.rank + 4)
        pieces = Pieces(Collectives(exchange), (exchange.rank,), (4,))
        given = EvalInput("training", X[rows], y[rows], None, "X", "y", "w", pieces)
        return fit_shard(PolyleafRegressor(n_jobs=1, **params), given, [], 1)

    return X, run_local(2, fitted)


def test_rows_that_cannot_be_held_out_are_not(tmp_path: Path) -> None:
    y = np.ones(8)
    with pytest.raises(ValueError, match="no rows can be held out to stop early by: X and y have too few"):
        fit_alike(y, early_stopping_rounds=3)
    with pytest.warns(UserWarning, match="no rows can be held out") as shown:
        X, models = fit_alike(y, n_estimators="auto")
    assert len(shown) == 1
    with pytest.warns(UserWarning, match="no rows can be held out") as by_plain:
        plain = PolyleafRegressor(n_estimators="auto", n_jobs=1).fit(X, y)
    assert str(shown[0].message) == str(by_plain[0].message)
    plain.save_model(tmp_path / "plain")
    for model in models:
        assert file_of(tmp_path / "file", model) == (tmp_path / "plain").read_bytes()


def test_metrics_that_need_too_many_rows_in_one_place_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("polyleaf.peers.gather.MOST_GATHERED_BYTES", MOST_GATHERED_BYTES >> 22)

    def fitted(exchange: Any) -> Any:
        rows = halves("classes in one place", exchange, Collectives(exchange))
        return fit_shard(estimator_of("classes in one place", True), rows, [], 1)

    with pytest.raises(ValueError, match="'auc' on 'held_out'"):
        run_local(2, fitted)


def test_trees_that_have_seen_all_rows_are_not_added_to() -> None:
    model = PolyleafRegressor(n_estimators=2, n_jobs=1).fit(TABLE[["a"]], Y)
    model.set_params(warm_start=True, n_estimators="auto")

    def fitted(exchange: Any) -> Any:
        pieces = Pieces(Collectives(exchange), (0,), (N,))
        given = EvalInput("training", TABLE[["a"]], Y, None, "X", "y", "w", pieces)
        return fit_shard(model, given, [], 1)

    with pytest.raises(ValueError, match="the trees of warm_start have seen all"):
        run_local(1, fitted)
