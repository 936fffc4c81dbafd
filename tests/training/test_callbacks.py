"""Callbacks are called when they should be, see what they should see, and can do what they may."""

import copy
import pickle

import numpy as np
import pytest
from sklearn.base import clone

from polyleaf import PolyleafClassifier, PolyleafRegressor
from polyleaf.callbacks import (
    Callback,
    Checkpoint,
    EarlyStopping,
    EvaluationLog,
    LearningRateSchedule,
    ProgressBar,
    TimeLimit,
)
from training_cases import CASES, CLASSES, TARGETS, X, assert_same_model

NOISE = np.random.default_rng(0).normal(size=len(X))
TRAIN, TEST = slice(0, 100), slice(100, None)


def regressor(**params):
    return CASES["regression"].make(**({"n_estimators": 5} | params))


class Diary(Callback):
    """Writes down what it is called with."""

    def __init__(self):
        self.pages = []

    def _write(self, what, state):
        self.pages.append((what, state.round, state.n_done))

    def before_training(self, state):
        self._write("begin", state)

    def before_round(self, state):
        self._write("before", state)

    def after_round(self, state):
        self._write("after", state)

    def after_training(self, state):
        self._write("end", state)


def test_order_of_calls():
    diary = Diary()
    regressor(n_estimators=2, callbacks=[diary]).fit(X, TARGETS)
    assert diary.pages == [
        ("begin", 0, 0),
        ("before", 0, 0),
        ("after", 0, 1),
        ("before", 1, 1),
        ("after", 1, 2),
        ("end", 1, 2),
    ]


def test_rounds_are_numbered_on_from_an_init_model():
    diary = Diary()
    regressor(n_estimators=1, callbacks=[diary]).fit(X, TARGETS, init_model=regressor().fit(X, TARGETS))
    assert diary.pages == [("begin", 5, 5), ("before", 5, 5), ("after", 5, 6), ("end", 5, 6)]


def test_an_object_needs_only_the_methods_it_uses():
    class Last:
        def after_training(self, state):
            self.done = state.n_done

    last = Last()
    regressor(callbacks=(last,)).fit(X, TARGETS)
    assert last.done == 5


def test_a_function_is_called_after_each_round():
    """What it returns ends the training if it is true; nothing else does."""
    seen = []

    def look(state):
        seen.append(state.round)
        return np.bool_(state.round == 2)

    model = regressor(callbacks=[look]).fit(X, TARGETS)
    assert seen == [0, 1, 2]
    assert model.n_estimators_ == 3
    assert model.best_iteration_ == 2


def test_before_round_can_end_the_training():
    class Enough(Callback):
        def before_round(self, state):
            return state.round == 2

    assert_same_model(
        regressor(callbacks=[Enough()]).fit(X, TARGETS), regressor(n_estimators=2).fit(X, TARGETS)
    )


def test_all_are_called_when_one_ends_the_training():
    diary = Diary()
    regressor(callbacks=[lambda state: True, diary]).fit(X, TARGETS)
    assert [what for what, *_ in diary.pages] == ["begin", "before", "after", "end"]


def test_what_the_state_tells():
    seen = []

    def look(state):
        forest = state.forest()
        seen.append((forest.n_rounds, forest.predict_raw(X), copy.deepcopy(state.evals_result)))
        assert state.n_rounds == 5
        assert state.learning_rate == 0.3
        assert state.elapsed > 0
        assert dict(state.greater_is_better) == {"r2": True, "rmse": False}
        assert list(state.latest()) == ["new r2", "new rmse"]

    model = regressor(eval_metric=["r2", "rmse"], callbacks=[look])
    model.fit(X, TARGETS, eval_set={"new": (X, TARGETS)})
    for number, (n_rounds, raw, history) in enumerate(seen):
        assert n_rounds == number + 1
        np.testing.assert_array_equal(raw, model.predict(X, n_rounds=n_rounds))
        assert history["new"]["rmse"] == model.evals_result_["new"]["rmse"][:n_rounds]
    assert len(seen) == 5


# --- errors ------------------------------------------------------------------------------------------------


class Failure(Exception):
    pass


@pytest.mark.parametrize("error", [Failure, KeyboardInterrupt, SystemExit])
@pytest.mark.parametrize(("method", "done"), [("before_round", 3), ("after_round", 4), ("after_training", 5)])
def test_an_error_comes_through_and_the_rounds_are_kept(error, method, done):
    class Bad:
        pass

    def fail(state):
        if method == "after_training" or state.round == 3:
            raise error("oh")

    bad, diary = Bad(), Diary()
    setattr(bad, method, fail)
    model = regressor(callbacks=[bad, diary])
    with pytest.raises(error, match="oh"):
        model.fit(X, TARGETS, eval_set=(X, TARGETS))
    assert_same_model(model, regressor(n_estimators=done).fit(X, TARGETS, eval_set=(X, TARGETS)))
    assert diary.pages[-1][0] == "end"  # the others could clean up


def test_the_first_error_counts():
    class Bad:
        def after_round(self, state):
            raise Failure("first")

        def after_training(self, state):
            raise Failure("second")

    with pytest.raises(Failure, match="first"):
        regressor(callbacks=[Bad()]).fit(X, TARGETS)


def test_an_error_before_the_training_leaves_the_estimator_as_it_was():
    class Bad:
        def before_training(self, state):
            raise Failure from cause

    cause = KeyError("why")
    diary = Diary()
    model = regressor(callbacks=[diary, Bad(), Diary()])
    with pytest.raises(Failure) as caught:
        model.fit(X, TARGETS)
    assert caught.value.__cause__ is cause
    assert not hasattr(model, "n_estimators_")
    assert [what for what, *_ in diary.pages] == ["begin", "end"]
    assert model.callbacks[2].pages == []


def test_other_errors_still_leave_the_estimator_as_it_was():
    """Only a callback's error keeps the rounds; the callbacks may clean up all the same."""

    def objective(y, raw):
        if len(diary.pages) > 4:
            raise Failure
        return raw - y, np.ones_like(raw)

    diary = Diary()
    model = regressor(objective=objective, callbacks=[diary])
    with pytest.raises(Failure):
        model.fit(X, TARGETS)
    assert not hasattr(model, "n_estimators_")
    assert diary.pages[-1][0] == "end"


@pytest.mark.parametrize(
    ("callbacks", "words"),
    [
        (EarlyStopping(3), "callbacks must be sequence of callbacks or None; got <"),
        ("bar", "callbacks must be sequence"),
        ([3], r"callbacks\[0\] must be callable, or an object with one of the methods before_training"),
        ([ProgressBar(), None], r"callbacks\[1\] must be callable"),
        ([ProgressBar], r"callbacks\[0\] is the class ProgressBar; it must be an object of it"),
    ],
)
@pytest.mark.parametrize("estimator", [PolyleafRegressor, PolyleafClassifier])
def test_what_is_no_callback_is_named_before_any_work(estimator, callbacks, words):
    with pytest.raises(TypeError, match=words):
        estimator(callbacks=callbacks).fit(None, None)


def test_a_method_must_be_one():
    class Odd:
        after_round = 3

    with pytest.raises(TypeError, match=r"callbacks\[0\]\.after_round must be a method; got 3"):
        PolyleafRegressor(callbacks=[Odd()]).fit(None, None)


def test_estimators_with_callbacks_can_be_cloned_and_pickled():
    model = regressor(callbacks=[EarlyStopping(2), TimeLimit(100), ProgressBar(), EvaluationLog(2)])
    model = clone(model).fit(X, TARGETS, eval_set=(X, TARGETS))
    again = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(again.predict(X), model.predict(X))


# --- those that are there ----------------------------------------------------------------------------------


@pytest.mark.parametrize("rounds", [1, 3, 1000])
@pytest.mark.parametrize("metric", ["rmse", "r2"])
def test_early_stopping_is_the_parameter(rounds, metric):
    params = {"n_estimators": 40, "eval_metric": metric, "min_samples_leaf": 2}
    sets = {"eval_set": (X[TEST], NOISE[TEST])}
    by_parameter = PolyleafRegressor(early_stopping_rounds=rounds, **params)
    by_callback = PolyleafRegressor(callbacks=[EarlyStopping(rounds)], **params)
    by_parameter.fit(X[TRAIN], NOISE[TRAIN], **sets)
    by_callback.fit(X[TRAIN], NOISE[TRAIN], **sets)
    assert_same_model(by_parameter, by_callback)
    values = np.array(by_parameter.evals_result_["validation_0"][metric])
    best = int(np.argmax(values) if metric == "r2" else np.argmin(values))
    assert by_parameter.best_iteration_ == best
    assert by_parameter.n_estimators_ == min(40, best + rounds + 1)


@pytest.mark.parametrize("data", ["train", "new"])
@pytest.mark.parametrize("metric", ["mae", "r2"])
def test_what_early_stopping_watches(data, metric):
    """The set and the metric can be chosen; without a choice it is the last of both."""
    sets = {"train": (X[TRAIN], NOISE[TRAIN]), "new": (X[TEST], NOISE[TEST])}
    model = regressor(
        n_estimators=60,
        min_samples_leaf=2,
        eval_metric=["mae", "r2"],
        callbacks=[EarlyStopping(4, metric=metric, data=data)],
    ).fit(X[TRAIN], NOISE[TRAIN], eval_set=sets)
    values = np.array(model.evals_result_[data][metric]) * (-1 if metric == "r2" else 1)
    assert model.best_iteration_ == np.argmin(values)
    assert model.n_estimators_ == min(60, model.best_iteration_ + 5)
    assert (model.n_estimators_ == 60) == (data == "train")


def test_min_delta():
    """Small improvements do not count: the best round is the last large one."""
    falling = iter([1.0, 0.5, 0.45, 0.41, 0.3, 0.29, 0.28, 0.27])
    metric = lambda y, prediction: next(falling)  # noqa: E731
    model = regressor(n_estimators=8, eval_metric=metric, callbacks=[EarlyStopping(3, min_delta=0.1)])
    model.fit(X, TARGETS, eval_set=(X, TARGETS))
    assert model.best_iteration_ == 4
    assert model.n_estimators_ == 8


def test_nan_is_no_improvement():
    values = iter([np.nan, 2.0, np.nan, 1.0, np.nan, np.nan, np.nan])
    model = regressor(n_estimators=10, eval_metric=lambda y, p: next(values), callbacks=[EarlyStopping(2)])
    model.fit(X, TARGETS, eval_set=(X, TARGETS))
    assert model.best_iteration_ == 3
    assert model.n_estimators_ == 6


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: EarlyStopping(0), "rounds must be int >= 1; got 0"),
        (lambda: EarlyStopping(2.5), "rounds must be int"),
        (lambda: EarlyStopping(3, min_delta=-1), "min_delta must be"),
        (lambda: TimeLimit(0), "seconds must be"),
        (lambda: TimeLimit("1 h"), "seconds must be"),
        (lambda: EvaluationLog(0), "period must be"),
        (lambda: Checkpoint("file", every=0), "every must be"),
        (lambda: Checkpoint(3), "path must be str or os.PathLike; got 3"),
        (lambda: LearningRateSchedule(0.1), "schedule must be callable or a sequence of float; got 0.1"),
    ],
)
def test_bad_arguments_of_a_callback(make, words):
    with pytest.raises((TypeError, ValueError), match=words):
        make()


@pytest.mark.parametrize(
    ("callback", "words"),
    [
        (EarlyStopping(3, metric="mae"), "metric='mae' is not among 'rmse'"),
        (EarlyStopping(3, data="new"), "data='new' is not among 'validation_0'"),
        (LearningRateSchedule([0.1, 0.2]), "has 2 learning rates, but there are 5 rounds"),
        (
            LearningRateSchedule([0.1, 0.2, 0.0, 1, 1]),
            "the learning rate of round 2 must be a finite float > 0",
        ),
        (Checkpoint("/no/such/folder/file"), "there is no folder"),
    ],
)
def test_callbacks_that_do_not_fit_are_refused_before_any_work(callback, words):
    model = regressor(callbacks=[callback])
    with pytest.raises((ValueError, OSError), match=words):
        model.fit(X, TARGETS, eval_set=(X, TARGETS))
    assert not hasattr(model, "n_estimators_")


def test_early_stopping_without_an_evaluation_set_holds_out_rows():
    model = regressor(callbacks=[EarlyStopping(3)]).fit(X, TARGETS)
    assert list(model.evals_result_) == ["held_out"]


def test_only_one_early_stopping():
    with pytest.raises(ValueError, match="early_stopping_rounds=3 and an EarlyStopping in callbacks"):
        regressor(callbacks=[EarlyStopping(3)], early_stopping_rounds=3).fit(
            X, TARGETS, eval_set=(X, TARGETS)
        )
    with pytest.raises(ValueError, match="more than one EarlyStopping"):
        regressor(callbacks=[EarlyStopping(3), EarlyStopping(4)]).fit(X, TARGETS, eval_set=(X, TARGETS))


@pytest.mark.parametrize(
    "name", ["regression", "classes", "sparse labels", "one output a tree", "exact leaves"]
)
def test_a_constant_schedule_is_the_learning_rate(name):
    case = CASES[name]
    plain = case.make(n_estimators=4, learning_rate=0.17).fit(X, case.y, case.weight)
    for schedule in (lambda number: 0.17, [0.17] * 4, np.full(9, 0.17)):
        scheduled = case.make(n_estimators=4, learning_rate=0.5, callbacks=[LearningRateSchedule(schedule)])
        assert_same_model(scheduled.fit(X, case.y, case.weight), plain)


@pytest.mark.parametrize("name", ["regression", "sparse labels"])
def test_each_round_has_its_rate(name):
    """A tree's leaf values are in proportion to its round's rate."""
    case = CASES[name]
    values = {
        rate: case.make(n_estimators=1, callbacks=[LearningRateSchedule([rate])])
        .fit(X, case.y, case.weight)
        ._forest.values
        for rate in (1.0, 0.25)
    }
    np.testing.assert_array_equal(values[0.25], values[1.0] / 4)
    rates = [0.5, 0.25, 1.0]
    model = case.make(n_estimators=3, callbacks=[LearningRateSchedule(rates)]).fit(X, case.y, case.weight)
    for done in range(3):
        alone = case.make(n_estimators=1, learning_rate=rates[done])
        begin = case.make(n_estimators=done, callbacks=[LearningRateSchedule(rates)]) if done else None
        fitted = None if begin is None else begin.fit(X, case.y, case.weight)
        alone.fit(X, case.y, case.weight, init_model=fitted)
        assert model._forest.values[: len(alone._forest.values)].tobytes() == alone._forest.values.tobytes()


def test_the_rate_of_a_round_does_not_stay():
    class Once(Callback):
        def before_round(self, state):
            assert state.learning_rate == 0.3
            if state.round == 0:
                state.learning_rate = 0.9

    model = regressor(callbacks=[Once()]).fit(X, TARGETS)
    expected = regressor(callbacks=[LearningRateSchedule([0.9, 0.3, 0.3, 0.3, 0.3])]).fit(X, TARGETS)
    assert_same_model(model, expected)


@pytest.mark.parametrize("rate", [0, -1, np.nan, "fast", None])
def test_a_bad_rate_is_an_error(rate):
    model = regressor(callbacks=[LearningRateSchedule(lambda number: 0.1 if number < 2 else rate)])
    with pytest.raises((TypeError, ValueError), match="the learning rate of round 2 must be"):
        model.fit(X, TARGETS)
    assert model.n_estimators_ == 2


@pytest.mark.parametrize(("seconds", "rounds"), [(0.5, 1), (3, 3), (3.5, 4), (1000, 5)])
def test_time_limit(monkeypatch, seconds, rounds):
    """It ends the training after the round in which the time is up; by this clock a round takes a second."""
    now = [100.0]
    monkeypatch.setattr("polyleaf.training.state.time.monotonic", lambda: now[0])

    def tick(state):
        now[0] += 1

    assert regressor(callbacks=[tick, TimeLimit(seconds)]).fit(X, TARGETS).n_estimators_ == rounds


# --- several evaluation sets -------------------------------------------------------------------------------


def test_named_sets_are_the_same_as_unnamed_ones():
    sets = [(X[TEST], TARGETS[TEST]), (X, TARGETS)]
    weight = np.arange(60.0) + 1
    listed = regressor().fit(X, TARGETS, eval_set=sets, eval_sample_weight=[weight, None])
    named = regressor().fit(
        X, TARGETS, eval_set=dict(zip("ba", sets, strict=True)), eval_sample_weight={"b": weight}
    )
    assert list(named.evals_result_) == ["b", "a"]
    assert list(named.evals_result_.values()) == list(listed.evals_result_.values())


def test_errors_name_the_set():
    with pytest.raises(ValueError, match=r"X of eval_set\['new'\]"):
        regressor().fit(X, TARGETS, eval_set={"new": (X[:, :2], TARGETS)})
    with pytest.raises(ValueError, match=r"y of eval_set\['new'\] holds labels that were not seen"):
        PolyleafClassifier().fit(X, CLASSES, eval_set={"new": (X[:1], ["class z"])})
    with pytest.raises(ValueError, match=r"eval_sample_weight\['new'\] must be finite"):
        regressor().fit(
            X, TARGETS, eval_set={"new": (X, TARGETS)}, eval_sample_weight={"new": np.full(len(X), np.nan)}
        )


def test_an_empty_dict_is_no_evaluation_set():
    assert regressor().fit(X, TARGETS, eval_set={}).evals_result_ == {}
