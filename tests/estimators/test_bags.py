"""Bagged models: the mean of members that were trained on parts of the rows, in one model and one file."""

from __future__ import annotations

from concurrent.futures import wait
from pathlib import Path
from time import sleep
from typing import Any

import numpy as np
import pytest
import scipy.sparse

from polyleaf import PolyleafClassifier, PolyleafMixed, PolyleafRegressor, load_model
from polyleaf.callbacks import EarlyStopping, LearningRateSchedule
from polyleaf.estimators import bagging, held_out
from polyleaf.estimators.held_out import HeldOut, runs_at_once
from polyleaf.estimators.problem import read_problem, training_rows
from polyleaf.model.bags import members
from polyleaf.training import side_by_side
from polyleaf.training.loop import Run
from polyleaf.training.replay import Replay

pytestmark = pytest.mark.cpu_only("members are trained as single models are")

RNG = np.random.default_rng(3)
X = RNG.normal(size=(600, 4))
Y = np.column_stack([X[:, 0] * X[:, 1], np.sin(2 * X[:, 2])]) + 0.4 * RNG.normal(size=(600, 2))
NEW = RNG.normal(size=(400, 4))
TRUTH = np.column_stack([NEW[:, 0] * NEW[:, 1], np.sin(2 * NEW[:, 2])])
CLASSES = (X[:, 0] > 0).astype(int) + (X[:, 1] > 0)
SMALL = {"max_depth": 3, "min_samples_leaf": 5, "learning_rate": 0.2}


def regressor(**params: Any) -> PolyleafRegressor:
    return PolyleafRegressor(**{**SMALL, "n_bags": 3, **params})


@pytest.fixture
def alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each member is stopped by the rows that it has not seen, as where rows are many."""
    monkeypatch.setattr(bagging, "AUTO_FEW_ROWS", 600)


def parts_of(model: Any, y: Any) -> list[Any]:
    problem = read_problem(model, model.get_params(), training_rows(X, y, None))
    return HeldOut(problem, None, 1 / model.n_bags, in_turn=True)._tests


@pytest.mark.parametrize("n_bags", [2, 3])
def test_the_mean_is_that_of_models_of_the_parts(n_bags: int) -> None:
    """With the cut points of all rows, which are found once: here one for each value."""
    model = regressor(n_bags=n_bags, n_estimators=8, max_bins=None, refit=False).fit(X, Y)
    tests = parts_of(model, Y)
    assert sorted(np.concatenate(tests)) == list(range(600))
    singles = []
    for test in tests:
        rest = np.setdiff1d(np.arange(600), test)
        single = PolyleafRegressor(**SMALL, n_estimators=8, max_bins=None).fit(X[rest], Y[rest])
        singles.append(single)
    # Rows at their place: thresholds lie between neighbours, which are others in a part.
    np.testing.assert_allclose(
        model._forest.base_score, np.mean([one._forest.base_score for one in singles], axis=0), rtol=1e-12
    )
    for (forest, base), single in zip(members(model._forest, model._bags), singles, strict=True):
        assert np.array_equal(base, single._forest.base_score)
        assert np.array_equal(forest.feature, single._forest.feature)
        assert np.array_equal(forest.count, single._forest.count)
        np.testing.assert_allclose(forest.values * n_bags, single._forest.values, rtol=1e-6)


def same_members(one: Any, other: Any) -> None:
    for name, array in one._forest.to_arrays().items():
        np.testing.assert_array_equal(other._forest.to_arrays()[name], array, err_msg=name)


@pytest.mark.parametrize("n_jobs", [1, 3])
@pytest.mark.parametrize("y", [Y, CLASSES], ids=["targets", "classes"])
def test_refitted_members_keep_their_splits_and_know_all_rows(y: Any, n_jobs: int) -> None:
    """What they are stopped by is that of the parts."""
    make = PolyleafRegressor if y is Y else PolyleafClassifier
    params = {**SMALL, "n_bags": 3, "n_jobs": n_jobs, "early_stopping_rounds": 5}
    part, model = make(**params, refit=False).fit(X, y), make(**params).fit(X, y)
    assert model.evals_result_ == part.evals_result_
    assert [bag.n_rounds for bag in model._bags] == [bag.n_rounds for bag in part._bags]
    for name in ("feature", "threshold", "left", "gain"):
        np.testing.assert_array_equal(getattr(model._forest, name), getattr(part._forest, name))
    roots = model._forest.node_begin[:-1]
    assert (model._forest.count[roots] == 600).all()
    assert (part._forest.count[roots] < 600).all()
    assert len({bag.base_score for bag in model._bags}) == 1


def test_refitted_members_predict_rows_better_that_they_did_not_see() -> None:
    exact = np.column_stack([X[:, 0] * X[:, 1], np.sin(2 * X[:, 2])])

    def loss(refit: bool) -> float:
        model = regressor(n_bags=5, n_estimators=60, refit=refit).fit(X, exact)
        return float(((model.predict(NEW) - TRUTH) ** 2).mean())

    assert loss(refit=True) < loss(refit=False)


def test_rates_of_a_callback_are_those_of_the_members() -> None:
    scheduled = regressor(n_estimators=3, callbacks=[LearningRateSchedule([0.5] * 3)]).fit(X, Y)
    same_members(scheduled, regressor(n_estimators=3, learning_rate=0.5).fit(X, Y))


@pytest.mark.parametrize(
    ("make", "y"),
    [
        (lambda refit: regressor(n_estimators=4, monotone_constraints=[1, 0, 0, 0], refit=refit), Y),
        (
            lambda refit: PolyleafClassifier(
                **SMALL,
                n_bags=3,
                n_estimators=4,
                objective="clipped_squared_error",
                sparse_leaves=1,
                refit=refit,
            ),
            scipy.sparse.csr_array((Y > 0.5).astype(int)),
        ),
        (
            lambda refit: PolyleafClassifier(
                **SMALL, n_bags=3, n_estimators=4, label_space="hashed", refit=refit
            ),
            (Y > 0.5).astype(int),
        ),
    ],
    ids=["monotone", "sparse labels", "hashed labels"],
)
def test_members_whose_leaves_cannot_be_filled_anew_stay(make: Any, y: Any) -> None:
    same_members(make(True).fit(X, y), make(False).fit(X, y))


@pytest.mark.parametrize("together", [True, False])
def test_ctrl_c_while_leaves_are_filled_keeps_the_member(
    together: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not together:
        monkeypatch.setattr(bagging, "AUTO_FEW_ROWS", 600)
    steps, step = [0], Replay.step

    def interrupted(self: Replay, learning_rate: float) -> None:
        steps[0] += 1
        if steps[0] == 7:  # in the second member
            raise KeyboardInterrupt
        step(self, learning_rate)

    monkeypatch.setattr(Replay, "step", interrupted)
    model = regressor(n_estimators=5, n_jobs=1, early_stopping_rounds=50)
    with pytest.raises(KeyboardInterrupt):
        model.fit(X, Y)
    assert [bag.n_rounds for bag in model._bags] == [5, 5, 5] if together else [5, 5]
    roots = model._forest.node_begin[:-1]
    assert set(model._forest.count[roots[:5]]) == {600}
    assert 600 not in model._forest.count[roots[5:]]


def half_as_many_again(curve: Any) -> int:
    """Return the rounds of a member: half as many again as are best, as far as it was trained."""
    return int(min(len(curve), round(1.5 * (np.argmin(curve) + 1))))


def test_members_of_few_rows_stop_together() -> None:
    """By the mean of their curves, as the folds of a single model do."""
    model = regressor(n_estimators="auto", early_stopping_rounds=8).fit(X, Y)
    assert list(model.evals_result_) == ["held_out_0", "held_out_1", "held_out_2"]
    curves = [of["rrmse"] for of in model.evals_result_.values()]
    n_rounds = half_as_many_again(np.mean(curves, axis=0))
    assert [bag.n_rounds for bag in model._bags] == [n_rounds] * 3
    assert model.n_estimators_ == 3 * n_rounds == model.best_iteration_ + 1
    assert {len(curve) for curve in curves} == {int(np.argmin(np.mean(curves, axis=0))) + 1 + 8}
    folds = PolyleafRegressor(**SMALL, early_stopping_rounds=8, validation_fraction=1 / 3).fit(X, Y)
    np.testing.assert_allclose(folds.evals_result_["held_out"]["rrmse"], np.mean(curves, axis=0), rtol=1e-12)
    watched = regressor(n_estimators=2000, callbacks=[EarlyStopping(8), lambda state: None]).fit(X, Y)
    same_members(watched, model)


@pytest.mark.usefixtures("alone")
def test_members_of_many_rows_stop_by_what_they_have_not_seen() -> None:
    model = regressor(n_estimators="auto", early_stopping_rounds=8).fit(X, Y)
    assert list(model.evals_result_) == ["held_out_0", "held_out_1", "held_out_2"]
    n_rounds = [half_as_many_again(of["rrmse"]) for of in model.evals_result_.values()]
    assert [bag.n_rounds for bag in model._bags] == n_rounds
    assert len(set(n_rounds)) > 1
    assert model.n_estimators_ == sum(n_rounds) == model.best_iteration_ + 1
    watched = regressor(n_estimators=2000, callbacks=[EarlyStopping(8)]).fit(X, Y)
    same_members(watched, model)


def test_a_number_of_rounds_is_obeyed() -> None:
    """Half as many again are not added to it, nor is a callback a reason to."""
    for callbacks in (None, [lambda state: None]):
        model = regressor(n_estimators=7, callbacks=callbacks).fit(X, Y)
        assert [bag.n_rounds for bag in model._bags] == [7, 7, 7]


@pytest.mark.parametrize("n_rows", [1999, 2000])
def test_members_of_few_rows_are_those_below_two_thousand(n_rows: int) -> None:
    rng = np.random.default_rng(1)
    few, target = rng.normal(size=(n_rows, 3)), rng.normal(size=(n_rows, 2))
    model = regressor(early_stopping_rounds=3).fit(few, few[:, :2] ** 2 + target)
    curves = [len(of["rrmse"]) for of in model.evals_result_.values()]
    assert (len(set(curves)) == 1) == (n_rows < 2000)


def test_a_mean_is_better_than_a_member() -> None:
    def loss(model: Any) -> float:
        return float(((model.predict(NEW) - TRUTH) ** 2).mean())

    # As a member is trained: stopped by rows that it does not see.
    members = [
        loss(PolyleafRegressor(**SMALL | {"random_state": seed}, n_estimators="auto", refit=False).fit(X, Y))
        for seed in range(5)
    ]
    assert loss(regressor(n_bags=5, n_estimators="auto").fit(X, Y)) < np.mean(members)


@pytest.mark.parametrize(
    ("make", "y", "shape"),
    [
        (regressor, Y, (400, 2)),
        (regressor, Y[:, 0], (400,)),
        (lambda: PolyleafClassifier(**SMALL, n_bags=3, n_estimators=5), CLASSES, (400, 3)),
        (lambda: PolyleafClassifier(**SMALL, n_bags=3, n_estimators=5), CLASSES > 0, (400,)),
        (lambda: PolyleafClassifier(**SMALL, n_bags=3, n_estimators=5), (Y > 0).astype(int), (400, 2)),
        (lambda: regressor(objective="poisson", n_estimators=5), np.abs(Y), (400, 2)),
        (lambda: regressor(sparse_leaves=1, n_estimators=5), Y, (400, 2)),
        (lambda: regressor(multi_strategy="one_output_per_tree", n_estimators=5), Y, (400, 2)),
        (lambda: regressor(n_estimators=5), Y * [1e-100, 1e100], (400, 2)),
    ],
)
def test_spread_file_and_explanation(make: Any, y: Any, shape: tuple[int, ...], tmp_path: Path) -> None:
    model = make().fit(X, y)
    spread = model.predict_spread(NEW)
    assert spread.shape == shape
    assert (spread >= 0).all()
    assert spread.max() > 0
    model.save_model(tmp_path / "model")
    loaded = load_model(tmp_path / "model")
    assert np.array_equal(loaded.predict(NEW), model.predict(NEW))
    assert np.array_equal(loaded.predict_spread(NEW), spread)
    raw = model._forest.predict_raw(NEW[:5])
    values = model.shap_values(NEW[:5]).reshape(5, 4, -1).sum(axis=1) + model.expected_value_
    np.testing.assert_allclose(values, raw, rtol=1e-6, atol=1e-6 * np.abs(raw).max())


def test_spread_is_the_standard_deviation_of_the_members() -> None:
    model = PolyleafClassifier(**SMALL, n_bags=3, n_estimators=5).fit(X, CLASSES)
    found = []
    for forest, base in members(model._forest, model._bags):
        raw = base + 3 * (forest.predict_raw(NEW) - model._forest.base_score)
        odds = np.exp(raw - raw.max(axis=1, keepdims=True))
        found.append(odds / odds.sum(axis=1, keepdims=True))
    np.testing.assert_allclose(model.predict_spread(NEW), np.std(found, axis=0), atol=1e-12)


def test_mixed_targets() -> None:
    model = PolyleafMixed({"a": "regression", "b": "multiclass"}, **SMALL, n_bags=2, n_estimators=4)
    model.fit(X, {"a": Y[:, 0], "b": CLASSES})
    assert model.predict_spread(NEW).shape == (400, 4)


def test_no_order_of_rows_matters() -> None:
    order = RNG.permutation(600)
    one, other = regressor(n_estimators=5).fit(X, Y), regressor(n_estimators=5).fit(X[order], Y[order])
    assert np.array_equal(one.predict(NEW), other.predict(NEW))


def test_another_fit_is_of_one_model() -> None:
    model = regressor(n_estimators=5).fit(X, Y)
    single = model.set_params(n_bags=1).fit(X, Y)
    assert single[:2].n_estimators_ == 2
    with pytest.raises(ValueError, match="single one"):
        single.predict_spread(NEW)


@pytest.mark.parametrize("together", [True, False])
def test_ctrl_c_keeps_what_there_is(together: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[int] = []
    if not together:
        monkeypatch.setattr(bagging, "AUTO_FEW_ROWS", 600)

    def interrupt(state: Any) -> None:
        calls.append(state.round)
        if len(calls) == 7:
            raise KeyboardInterrupt

    model = regressor(n_estimators=9 if together else 5, callbacks=[interrupt])
    with pytest.raises(KeyboardInterrupt):
        model.fit(X, Y)
    assert [bag.n_rounds for bag in model._bags] == [7, 7, 7] if together else [5, 2]
    assert model.predict_spread(NEW).shape == (400, 2)


@pytest.mark.parametrize("at", [1, 2, 5, 6])
def test_ctrl_c_within_a_round_keeps_the_rounds_that_all_have_done(
    at: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    n_steps, step = 0, Run.step

    def interrupted(self: Run, learning_rate: float) -> None:
        nonlocal n_steps
        n_steps += 1
        if n_steps == at:
            raise KeyboardInterrupt
        step(self, learning_rate)

    monkeypatch.setattr(Run, "step", interrupted)
    model = regressor(n_estimators=9, early_stopping_rounds=5, n_jobs=1)
    with pytest.raises(KeyboardInterrupt):
        model.fit(X, Y)
    n_rounds = (at - 1) // 3
    assert model.n_estimators_ == 3 * n_rounds
    assert {bag.n_rounds for bag in model._bags} <= {n_rounds}
    assert {len(of["rrmse"]) for of in model.evals_result_.values()} == {n_rounds}


@pytest.mark.parametrize("begun", [1, 2, 3])
def test_ctrl_c_before_a_replay_keeps_the_members_that_are_done(
    monkeypatch: pytest.MonkeyPatch, begun: int
) -> None:
    n_begun, begin = 0, bagging.Replay.__init__

    def interrupted(*args: Any, **kwargs: Any) -> None:
        nonlocal n_begun
        n_begun += 1
        if n_begun == begun:
            raise KeyboardInterrupt
        begin(*args, **kwargs)

    monkeypatch.setattr(bagging.Replay, "__init__", interrupted)
    model = regressor(n_estimators=3, n_bags=3, n_jobs=1)  # one by one, whatever cores there are
    with pytest.raises(KeyboardInterrupt):
        model.fit(X, Y)
    assert model.n_estimators_ == 3 * begun
    assert np.isfinite(model.predict(NEW)).all()


@pytest.mark.parametrize("number", [0, 1])
def test_ctrl_c_before_a_member_keeps_those_that_are_done(
    monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    run = bagging.HeldOut.run

    def interrupted(self: Any, at: int, *args: Any, **kwargs: Any) -> Any:
        if at == number:
            raise KeyboardInterrupt
        return run(self, at, *args, **kwargs)

    monkeypatch.setattr(bagging.HeldOut, "run", interrupted)
    model = regressor(n_estimators=3, n_bags=3, n_jobs=1)  # one by one, whatever cores there are
    with pytest.raises(KeyboardInterrupt):
        model.fit(X, Y)
    assert hasattr(model, "n_estimators_") == (number > 0)


def test_groups_and_rows_that_are_too_few() -> None:
    group = np.arange(600) % 4
    model = regressor(n_estimators=3, n_bags=4).fit(X, Y, groups=group)
    assert len(model._bags) == 4
    with pytest.raises(ValueError, match=r"n_bags=3 needs .*, but groups has 2 different group\(s\)\.$"):
        regressor(n_estimators=3).fit(X, Y, groups=group % 2)
    with pytest.raises(ValueError, match=r"n_bags=121 needs .*, but X and y have 120 different row\(s\)\.$"):
        regressor(n_estimators=3, n_bags=121).fit(
            np.repeat(X[:120], 2, axis=0), np.repeat(Y[:120], 2, axis=0)
        )
    with pytest.raises(
        ValueError, match=r"n_bags=10 needs .*, but X and y have 12 different .*, too few of each class"
    ):
        PolyleafClassifier(n_estimators=3, n_bags=10).fit(X[:12], np.arange(12) % 6)
    with pytest.raises(ValueError, match="n_bags must be int >= 1"):
        regressor(n_bags=0).fit(X, Y)
    with pytest.raises(ValueError, match=r"n_bags=2000000000 needs .*, but X and y have 600 different"):
        regressor(n_bags=2 * 10**9).fit(X, Y)
    sparse = regressor(n_estimators=3).fit(scipy.sparse.csr_array(X), Y)
    assert np.array_equal(sparse.predict(NEW), regressor(n_estimators=3).fit(X, Y).predict(NEW))


@pytest.mark.parametrize("n_bags", [3, 12])
def test_best_scores_are_those_of_the_members(n_bags: int, tmp_path: Path) -> None:
    """After the last of their rounds; a notebook shows them, and a file keeps them."""
    model = regressor(n_bags=n_bags, n_estimators=40, early_stopping_rounds=5, eval_metric="rmse").fit(X, Y)
    last = zip(model.evals_result_.items(), model._bags, strict=True)
    best = {name: {"rmse": curves["rmse"][bag.n_rounds - 1]} for (name, curves), bag in last}
    assert model.best_score_ == best
    assert len(best) == n_bags
    assert "held_out_0" in model._repr_html_()
    model.save_model(tmp_path / "m.polyleaf")
    assert load_model(tmp_path / "m.polyleaf").best_score_ == best


def test_what_is_not_known_of_bags_is_said() -> None:
    with pytest.raises(ValueError, match="n_bags above 1"):
        regressor(n_estimators=3).fit(X, Y).importance("gain", per_output=True)


def test_rows_that_are_there_often() -> None:
    """As in tables of yes and no: sixteen different rows, one of them two fifths of all."""
    few = (RNG.random((600, 4)) < 0.2).astype(float)
    for seed in range(8):
        assert len(regressor(n_bags=5, n_estimators=2, random_state=seed).fit(few, few[:, 0])._bags) == 5


def trained_at_once(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Return a list that gets how many members each later fit trains at the same time."""
    seen: list[int] = []

    def noted(*args: Any) -> int:
        seen.append(runs_at_once(*args))
        return seen[-1]

    monkeypatch.setattr(bagging, "runs_at_once", noted)
    monkeypatch.setattr(held_out, "_LEAST_NUMBERS_AT_ONCE", 1)
    return seen


@pytest.mark.parametrize("y", [Y, CLASSES], ids=["targets", "classes"])
@pytest.mark.parametrize("n_jobs", [2, 3, 8])
def test_members_at_the_same_time_are_those_one_by_one(
    y: Any, n_jobs: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    make = PolyleafRegressor if y is Y else PolyleafClassifier
    seen = trained_at_once(monkeypatch)
    single = make(**SMALL, n_bags=3, n_jobs=1).fit(X, y)
    several = make(**SMALL, n_bags=3, n_jobs=n_jobs).fit(X, y)
    assert seen == [1, min(3, n_jobs)]
    assert several.evals_result_ == single.evals_result_
    for name, array in single._forest.to_arrays().items():
        np.testing.assert_array_equal(several._forest.to_arrays()[name], array)


@pytest.mark.parametrize(
    "params",
    [
        {"callbacks": [lambda state: None]},
        {"objective": lambda y, raw: (raw - y, np.ones_like(raw))},
        {"eval_metric": lambda y, p: float(((y - p) ** 2).mean())},
        {"eval_metric": ["rmse", lambda y, p: float(((y - p) ** 2).mean())]},
        {"verbose": 1},
    ],
    ids=["callback", "objective", "metric", "metrics", "bar"],
)
def test_what_a_user_wrote_is_called_in_one_thread(
    params: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    seen = trained_at_once(monkeypatch)
    model = regressor(n_estimators=4, n_jobs=3, **params).fit(X, Y)
    assert seen == [1]
    assert len(model._bags) == 3


def test_large_tables_of_members_are_not_held_at_the_same_time(monkeypatch: pytest.MonkeyPatch) -> None:
    seen = trained_at_once(monkeypatch)
    model = regressor()
    problem = read_problem(model, model.get_params(), training_rows(X, Y, None))
    of_member = held_out._bytes_of_run(problem)
    assert of_member > 600 * (2 * 4 + 32 * 2)
    for room, expected in ((of_member * 2 - 1, 1), (of_member * 2, 2), (of_member * 3, 3), (1, 1)):
        monkeypatch.setattr(held_out, "_MOST_BYTES_AT_ONCE", room)
        regressor(n_estimators=2, n_jobs=4).fit(X, Y)
        assert seen.pop() == expected


def test_members_that_memory_has_no_room_for_stop_by_themselves(monkeypatch: pytest.MonkeyPatch) -> None:
    model = regressor()
    problem = read_problem(model, model.get_params(), training_rows(X, Y, None))
    for room, together in ((3, True), (2.9, False)):
        monkeypatch.setattr(held_out, "_MOST_BYTES_TOGETHER", held_out._bytes_of_run(problem) * room)
        found = regressor(early_stopping_rounds=8).fit(X, Y)
        assert (len({bag.n_rounds for bag in found._bags}) == 1) == together


def test_a_callback_that_knows_the_best_round_is_obeyed() -> None:
    def ninth(state: Any) -> None:
        state.best_iteration = 9

    model = regressor(n_estimators=40, callbacks=[ninth]).fit(X, Y)
    assert [bag.n_rounds for bag in model._bags] == [10, 10, 10]


@pytest.mark.parametrize("n_more", [-1, 0])
def test_members_with_next_to_nothing_to_do_are_trained_one_by_one(
    n_more: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen = trained_at_once(monkeypatch)
    monkeypatch.setattr(held_out, "_LEAST_NUMBERS_AT_ONCE", 600 * (4 + 2) - n_more)
    regressor(n_estimators=2, n_jobs=2).fit(X, Y)
    assert seen == [2 if n_more == 0 else 1]


@pytest.mark.usefixtures("alone")
def test_ctrl_c_keeps_what_there_is_of_members_at_the_same_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """The main thread gets the interrupt; the others end after their rounds."""
    n_waits = 0
    monkeypatch.setattr(held_out, "_LEAST_NUMBERS_AT_ONCE", 1)

    def interrupted(*args: Any, **kwargs: Any) -> Any:
        nonlocal n_waits
        n_waits += 1
        if n_waits == 2:
            raise KeyboardInterrupt
        return wait(*args, **{**kwargs, "timeout": 1.0})

    monkeypatch.setattr(side_by_side, "wait", interrupted)
    model = regressor(n_estimators=1_000_000, n_jobs=2, n_bags=5)
    with pytest.raises(KeyboardInterrupt):
        model.fit(X, Y)
    assert 1 <= len(model.evals_result_) <= 2  # the members that had begun
    assert 0 < model.n_estimators_ < 1_000_000
    assert np.isfinite(model.predict(X)).all()


def test_an_error_of_one_member_ends_the_others() -> None:
    def failing(number: int, halt: side_by_side.Halt) -> Any:
        if number == 1:
            raise MemoryError("no room")
        state: Any = None
        while not halt.after_round(state):
            sleep(0.01)
        assert halt.before_round(state)

    with pytest.raises(MemoryError, match="no room"):
        side_by_side.side_by_side(failing, 4, 2)
