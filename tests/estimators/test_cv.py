"""cv() is the estimator fitted fold by fold, but for the cut points, which are found once."""

import inspect
import sys

import numpy as np
import pandas as pd
import pytest
import scipy.sparse
from sklearn.exceptions import DataConversionWarning
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import GroupKFold, KFold, LeaveOneGroupOut, ShuffleSplit, StratifiedKFold

from polyleaf import CVResult, PolyleafClassifier, PolyleafMixed, PolyleafRegressor, cv
from polyleaf.callbacks import Callback, Checkpoint, EarlyStopping, LearningRateSchedule, TimeLimit
from polyleaf.metrics import make_metric
from polyleaf.params.settings import seed_of
from training_cases import CASES, CLASSES, TARGETS, WEIGHT, assert_same_model
from training_cases import X as MEASURED

# Few distinct values, all of them in every fold: the cut points of a fold are those of the whole table.
X = np.round(np.nan_to_num(MEASURED)).clip(-1, 1)
X[MEASURED > 1.9] = np.nan
FOLDS = 3
ROUNDS = 4


def fold_by_fold(case, splits, rounds=ROUNDS, weight=None, **params):
    """Return the estimators fitted on each fold, measured on its test rows."""
    models = []
    for train, test in splits:
        w_train, w_test = (None, None) if weight is None else (weight[train], weight[test])
        model = case.make(n_estimators=rounds, **params)
        sets = {"eval_set": {"validation": (X[test], case.y[test])}}
        if weight is not None:
            sets["eval_sample_weight"] = {"validation": w_test}
        models.append(model.fit(X[train], case.y[train], w_train, **sets))
    return models


@pytest.mark.parametrize("name", CASES)
def test_folds_are_fits(name):
    """The same trees and scores, to the last bit."""
    case = CASES[name]
    splits = list(KFold(FOLDS, shuffle=True, random_state=0).split(X))
    result = cv(
        case.make(n_estimators=ROUNDS), X, case.y, cv=splits, sample_weight=case.weight, return_models=True
    )
    models = fold_by_fold(case, splits, weight=case.weight)
    assert isinstance(result, CVResult)
    assert result.n_rounds == ROUNDS
    (metric,) = result.mean
    for i, (one, other) in enumerate(zip(result.models, models, strict=True)):
        one.best_iteration_ = other.best_iteration_  # of all folds, and of one
        assert_same_model(one, other)
        np.testing.assert_array_equal(result.folds[metric][i], other.evals_result_["validation"][metric])
    values = result.folds[metric]
    np.testing.assert_allclose(result.mean[metric], values.sum(axis=0) / FOLDS, rtol=1e-14)
    deviation = np.sqrt(((values - result.mean[metric]) ** 2).sum(axis=0) / FOLDS)
    np.testing.assert_allclose(result.std[metric], deviation, rtol=1e-9, atol=1e-300)


@pytest.mark.parametrize("n_jobs", [1, 2, 4])
def test_threads_change_no_bit(n_jobs):
    case = CASES["weights"]
    run = lambda jobs: cv(case.make(n_estimators=3, n_jobs=jobs), X, case.y, sample_weight=WEIGHT)  # noqa: E731
    np.testing.assert_array_equal(run(n_jobs).folds["rmse"], run(1).folds["rmse"])


def test_wide_and_sparse_columns():
    """Columns of two-byte codes, and such as have one value in most rows."""
    rng = np.random.default_rng(3)
    n = 3000
    table = np.column_stack(
        [
            rng.permutation(np.repeat(np.arange(1000), 3)),  # more than 256 bins
            np.where(rng.random(n) < 0.9, 0, rng.integers(0, 5, n)),
            rng.integers(0, 3, n),
            np.where(rng.random(n) < 0.9, 0, np.repeat(np.arange(1000), 3)),
        ]
    ).astype(float)
    y = np.sin(table[:, 0] / 50) + table[:, 1] + 0.1 * rng.normal(size=n)
    # Each value that occurs thrice has a row in either part: the cut points are those of the whole table.
    part = np.argsort(np.argsort(table[:, 0], kind="stable")) % 3 == 0
    part &= table[:, 3] == 0
    splits = [(np.flatnonzero(~part), np.flatnonzero(part))]
    model = PolyleafRegressor(n_estimators=3, max_bins=None, min_samples_leaf=3)
    result = cv(model, table, y, cv=splits, return_models=True)
    train, test = splits[0]
    alone = model.fit(table[train], y[train], eval_set={"validation": (table[test], y[test])})
    assert_same_model(result.models[0], alone)


@pytest.mark.parametrize("least", [3, 60])
def test_rows_are_drawn_by_all_columns_of_a_sparse_table(least):
    """Also by those that cannot be split, which a fit leaves out of its trees."""
    rng = np.random.default_rng(0)
    table = (rng.random((400, 30)) < np.linspace(0.01, 0.4, 30)).astype(float)
    y = table @ rng.normal(size=30) + 0.1 * rng.normal(size=400)
    splits = list(KFold(FOLDS, shuffle=True, random_state=0).split(table))
    model = PolyleafRegressor(n_estimators=3, subsample=0.5, min_samples_leaf=least, n_jobs=1)
    of_sparse = cv(model, scipy.sparse.csr_array(table), y, cv=splits)
    np.testing.assert_array_equal(of_sparse.folds["rmse"], cv(model, table, y, cv=splits).folds["rmse"])


@pytest.mark.parametrize("shuffle", [True, False])
def test_numbers_are_stratified_for_classes(shuffle):
    drawn = {"shuffle": True, "random_state": seed_of(7)} if shuffle else {}
    splits = {
        "regression": KFold(FOLDS, **drawn),
        "classes": StratifiedKFold(FOLDS, **drawn),
        "two classes": StratifiedKFold(FOLDS, **drawn),
        "labels": KFold(FOLDS, **drawn),
    }
    for name, splitter in splits.items():
        case = CASES[name]
        estimator = case.make(n_estimators=2, random_state=7)
        by_number = cv(estimator, X, case.y, cv=FOLDS, shuffle=shuffle)
        by_splitter = cv(estimator, X, case.y, cv=splitter)
        (metric,) = by_number.folds
        np.testing.assert_array_equal(by_number.folds[metric], by_splitter.folds[metric])
        assert len(by_number.folds[metric]) == FOLDS
    parameters = inspect.signature(cv).parameters
    assert (parameters["cv"].default, parameters["shuffle"].default) == (5, True)


@pytest.mark.parametrize("shuffle", [True, False])
@pytest.mark.parametrize("as_frame", [True, False])
def test_labels_may_be_missing_where_folds_are_a_number(shuffle, as_frame):
    labels = CASES["labels"].y.astype(float)
    labels[::9, 0] = np.nan
    if as_frame:
        labels = pd.DataFrame(labels)
        labels.columns = [f"label {j}" for j in labels]
    drawn = {"shuffle": True, "random_state": seed_of(7)} if shuffle else {}
    estimator = PolyleafClassifier(n_estimators=2, random_state=7)
    by_number = cv(estimator, X, labels, cv=FOLDS, shuffle=shuffle)
    by_splitter = cv(estimator, X, labels, cv=KFold(FOLDS, **drawn))
    (metric,) = by_number.folds
    np.testing.assert_array_equal(by_number.folds[metric], by_splitter.folds[metric])
    assert np.isfinite(by_number.folds[metric]).all()


def test_a_sorted_table_is_shuffled():
    """Consecutive folds of sorted targets leave a range of them out of each fold's training."""
    x = np.linspace(0, 1, 120)[:, np.newaxis]
    estimator = PolyleafRegressor(n_estimators=30, min_samples_leaf=2)
    shuffled, consecutive = (
        cv(estimator, x, x[:, 0], shuffle=shuffle).mean["rmse"][-1] for shuffle in (True, False)
    )
    assert shuffled < consecutive / 2
    other = estimator.set_params(random_state=1)
    assert cv(other, x, x[:, 0]).mean["rmse"][-1] != shuffled
    with pytest.raises(TypeError, match="shuffle must be bool; got 'yes'"):
        cv(estimator, x, x[:, 0], shuffle="yes")


def test_a_number_of_folds_keeps_groups_together():
    groups = np.arange(len(X)) // 5
    estimator = CASES["regression"].make(n_estimators=2)
    found = cv(estimator, X, TARGETS, cv=FOLDS, groups=groups, shuffle=False)
    expected = cv(estimator, X, TARGETS, cv=GroupKFold(FOLDS), groups=groups)
    np.testing.assert_array_equal(found.folds["rmse"], expected.folds["rmse"])


def test_groups_and_other_splitters():
    groups = np.arange(len(X)) % 4
    estimator = CASES["regression"].make(n_estimators=2)
    shuffled = ShuffleSplit(2, random_state=0)
    for splitter, n, of in ((GroupKFold(4), 4, groups), (LeaveOneGroupOut(), 4, groups), (shuffled, 2, None)):
        result = cv(estimator, X, TARGETS, cv=splitter, groups=of)
        listed = cv(estimator, X, TARGETS, cv=splitter.split(X, TARGETS, of))
        np.testing.assert_array_equal(result.folds["rmse"], listed.folds["rmse"])
        assert len(result.folds["rmse"]) == n


def test_masks_and_negative_rows():
    mask = np.arange(len(X)) < 100
    estimator = CASES["regression"].make(n_estimators=2)
    expected = cv(estimator, X, TARGETS, cv=[(np.flatnonzero(mask), np.flatnonzero(~mask))])
    negative = np.flatnonzero(~mask) - len(X)
    for pair in ((mask, ~mask), [mask, negative], (list(range(100)), negative.tolist())):
        found = cv(estimator, X, TARGETS, cv=[pair])
        np.testing.assert_array_equal(found.folds["rmse"], expected.folds["rmse"])


def test_rows_of_no_weight_are_not_there():
    """Rows keep their numbers, whatever was dropped before them."""
    case = CASES["regression"]
    splits = list(KFold(FOLDS, shuffle=True, random_state=0).split(X))
    assert (WEIGHT == 0).any()
    found = cv(case.make(n_estimators=2), X, case.y, cv=splits, sample_weight=WEIGHT)
    models = fold_by_fold(case, splits, 2, WEIGHT)
    for i, model in enumerate(models):
        np.testing.assert_array_equal(found.folds["rmse"][i], model.evals_result_["validation"]["rmse"])
    weightless = np.flatnonzero(WEIGHT == 0)
    with pytest.raises(ValueError, match=r"fold 1 has no test rows \(rows of weight 0 do not count\)"):
        cv(case.make(), X, case.y, cv=[splits[0], (splits[0][0], weightless)], sample_weight=WEIGHT)


def test_test_targets_play_no_part_in_training():
    """Only the scores change with them: base score, trees and scales come from the training rows."""
    train, test = np.arange(100), np.arange(100, len(X))
    other = TARGETS.copy()
    other[test] = 1000 - 7 * other[test]
    run = lambda y: cv(  # noqa: E731
        CASES["regression"].make(n_estimators=3), X, y, cv=[(train, test)], return_models=True
    )
    one, two = run(TARGETS), run(other)
    np.testing.assert_array_equal(one.models[0].predict(X), two.models[0].predict(X))
    assert (one.mean["rmse"] != two.mean["rmse"]).all()


def test_cut_points_are_those_of_the_whole_table():
    """What is promised in the documentation: the values of a test row's features have a say in the cuts."""
    table = np.arange(10.0)[:, np.newaxis]
    y = (table[:, 0] > 4.5).astype(float)
    train = np.array([0, 1, 2, 3, 4, 8, 9])
    params = {"n_estimators": 1, "max_bins": None, "min_samples_leaf": 1}
    result = cv(PolyleafRegressor(**params), table, y, cv=[(train, [5, 6, 7])], return_models=True)
    assert result.models[0]._forest.threshold[0] == 4.5
    assert PolyleafRegressor(**params).fit(table[train], y[train])._forest.threshold[0] == 6.0


def test_metrics_and_best_round():
    estimator = CASES["classes"].make(n_estimators=12, learning_rate=1.0)
    result = cv(estimator, X, CLASSES, cv=FOLDS, metrics=["cross_entropy", "accuracy"])
    assert list(result.mean) == ["cross_entropy", "accuracy"]
    assert result.best_round == np.argmax(result.mean["accuracy"])
    lowest = cv(estimator, X, CLASSES, cv=FOLDS, metrics=["accuracy", "cross_entropy"])
    assert lowest.best_round == np.argmin(result.mean["cross_entropy"])
    by_parameter = cv(estimator.set_params(eval_metric="accuracy"), X, CLASSES, cv=FOLDS)
    np.testing.assert_array_equal(by_parameter.mean["accuracy"], result.mean["accuracy"])
    assert estimator.eval_metric == "accuracy"
    assert not hasattr(estimator, "n_estimators_")


@pytest.mark.parametrize("as_callback", [True, False])
def test_early_stopping_on_the_mean(as_callback):
    """No fold stops by itself: all of them end when the mean has not improved."""
    noise = np.random.default_rng(1).normal(size=len(X))
    params = {"min_samples_leaf": 2, "learning_rate": 0.2}
    whole = cv(PolyleafRegressor(n_estimators=60, **params), X, noise, cv=KFold(FOLDS))
    stopping = {"callbacks": [EarlyStopping(5)]} if as_callback else {"early_stopping_rounds": 5}
    stopped = cv(
        PolyleafRegressor(n_estimators=60, **params, **stopping),
        X,
        noise,
        cv=KFold(FOLDS),
        return_models=True,
    )
    best = stopped.best_round
    assert best == np.argmin(stopped.mean["rmse"])
    assert stopped.n_rounds == best + 6 < 60
    np.testing.assert_array_equal(stopped.folds["rmse"], whole.folds["rmse"][:, : stopped.n_rounds])
    own_best = {int(np.argmin(values)) for values in whole.folds["rmse"]}
    assert own_best != {best}
    for model in stopped.models:
        assert model.best_iteration_ == best
        assert model.n_estimators_ == stopped.n_rounds


def test_callbacks():
    seen = []

    class Look(Callback):
        def after_round(self, state):
            seen.append(dict(state.latest()))
            with pytest.raises(RuntimeError, match="no single forest"):
                state.forest()

        def after_training(self, state):
            seen.append(state.n_done)

    rates = LearningRateSchedule([0.5, 0.1, 0.2])
    result = cv(
        CASES["regression"].make(n_estimators=3, callbacks=[rates, Look()]),
        X,
        TARGETS,
        cv=FOLDS,
        shuffle=False,
    )
    assert seen[:-1] == [{"validation rmse": value} for value in result.mean["rmse"]]
    assert seen[-1] == 3
    splits = list(KFold(FOLDS).split(X))
    models = fold_by_fold(CASES["regression"], splits, 3, callbacks=[rates])
    expected = [model.evals_result_["validation"]["rmse"] for model in models]
    np.testing.assert_array_equal(result.folds["rmse"], expected)
    limited = cv(CASES["regression"].make(callbacks=[TimeLimit(1e-9)]), X, TARGETS, cv=FOLDS)
    assert limited.n_rounds == 1


def test_an_error_in_a_callback_comes_through():
    def fail(state):
        raise KeyError("oh")

    ended = []

    class Last(Callback):
        def after_training(self, state):
            ended.append(state.n_done)

    with pytest.raises(KeyError, match="oh"):
        cv(CASES["regression"].make(callbacks=[fail, Last()]), X, TARGETS)
    assert ended == [1]


@pytest.mark.parametrize("when", ["before_training", "before_round", "after_round", "after_training"])
@pytest.mark.parametrize("kind", [KeyError, KeyboardInterrupt])
def test_whatever_ends_it_all_callbacks_clean_up(when, kind):
    """An interrupt, too, comes through: folds that are not done are of no use."""
    ended = []

    class Around(Callback):
        def after_training(self, state):
            ended.append(state.n_done)

    class Fails(Callback):
        pass

    def fail(self, state):
        raise kind("oh")

    setattr(Fails, when, fail)
    with pytest.raises(kind, match="oh") as caught:
        cv(CASES["regression"].make(n_estimators=2, callbacks=[Around(), Fails(), Around()]), X, TARGETS)
    assert caught.value.__cause__ is None
    done = {"before_training": 0, "before_round": 0, "after_round": 1, "after_training": 2}[when]
    assert ended == ([done] if when == "before_training" else [done, done])


def test_errors_of_a_fold_come_after_the_clean_up():
    ended = []

    class Last(Callback):
        def after_training(self, state):
            ended.append(state.n_done)

    counts = np.where(np.arange(len(X)) < 40, 0.0, 3.0)
    model = PolyleafRegressor(objective="poisson", callbacks=[Last()])
    with pytest.raises(ValueError, match="train rows of fold 0"):
        cv(model, X, counts, cv=[(np.arange(40), np.arange(40, 60))])
    assert ended == [0]


def test_to_frame():
    pd = pytest.importorskip("pandas")
    result = cv(CASES["regression"].make(n_estimators=3), X, TARGETS, metrics=["rmse", "mae"])
    frame = result.to_frame()
    assert isinstance(frame, pd.DataFrame)
    assert list(frame.columns) == ["rmse mean", "rmse std", "mae mean", "mae std"]
    assert frame.index.name == "round"
    np.testing.assert_array_equal(frame["mae std"], result.std["mae"])


def test_to_frame_says_that_it_needs_pandas(monkeypatch):
    result = cv(CASES["regression"].make(n_estimators=1), X, TARGETS, cv=2)
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(ImportError, match=r"to_frame\(\) needs pandas, which is not installed"):
        result.to_frame()


@pytest.mark.parametrize("rounds", [1, 3, 10, 45])
def test_it_prints_as_a_table(rounds, capsys):
    mean = {"rmse": np.linspace(2, 1, rounds) ** 2, "within 1": np.linspace(0.25, 0.5, rounds)}
    best = rounds // 2
    result = CVResult(
        mean,
        {name: 0 * values for name, values in mean.items()},
        {name: np.tile(values, (4, 1)) for name, values in mean.items()},
        best,
    )
    print(result)
    first, head, *rows = capsys.readouterr().out.splitlines()
    assert first == f"4 folds, {rounds} rounds, the best (*) is round {best}"
    assert head.split("  ")[0] == "round"
    assert head.endswith("rmse mean  rmse std  within 1 mean  within 1 std")
    assert {len(row) for row in rows} == {len(head)}
    numbers = [int(row.split()[0]) for row in rows]
    assert numbers[0] == 0
    assert numbers[-1] == rounds - 1
    assert len(numbers) in ((rounds,) if rounds <= 10 else (10, 11))
    (marked,) = [row for row in rows if "*" in row]
    assert marked.split()[:3] == [str(best), "*", f"{mean['rmse'][best]:.6g}"]


def test_a_result_of_no_rounds_prints():
    result = CVResult({"rmse": np.empty(0)}, {"rmse": np.empty(0)}, {"rmse": np.empty((2, 0))}, -1)
    assert repr(result).startswith("2 folds, 0 rounds\nround  rmse mean")


def test_metrics_come_from_the_training_rows_of_a_fold():
    """Propensities of "psp@k" do: rows that a model has not seen do not say how frequent labels are."""
    case = CASES["labels"]
    splits = list(KFold(2).split(X))
    result = cv(case.make(n_estimators=2), X, case.y, cv=splits, metrics="psp@2")
    models = fold_by_fold(case, splits, 2, eval_metric="psp@2")
    expected = [model.evals_result_["validation"]["psp@2"] for model in models]
    np.testing.assert_array_equal(result.folds["psp@2"], expected)


def test_the_best_round_follows_the_direction():
    made = CASES["two classes"].make(n_estimators=12)
    scores = {
        "auc": "auc",
        "roc_auc_score": roc_auc_score,
        "upside": make_metric(lambda y, p: np.mean(y * p), greater_is_better=True, name="upside"),
    }
    for name, metric in scores.items():
        result = cv(made, X, CASES["two classes"].y, cv=FOLDS, metrics=metric)
        assert result.best_round == np.argmax(result.mean[name])


def test_frames_keep_their_names():
    pd = pytest.importorskip("pandas")
    frame, y = pd.DataFrame(X, columns=list("abcdef")), pd.Series(CLASSES)
    result = cv(CASES["classes"].make(n_estimators=2), frame, y, cv=FOLDS, return_models=True)
    assert list(result.models[0].feature_names_in_) == list("abcdef")
    plain = cv(CASES["classes"].make(n_estimators=2), X, CLASSES, cv=FOLDS)
    np.testing.assert_array_equal(result.folds["cross_entropy"], plain.folds["cross_entropy"])


def test_a_column_of_labels_warns_the_caller():
    with pytest.warns(DataConversionWarning, match="column-vector y") as caught:
        result = cv(CASES["classes"].make(n_estimators=2), X, CLASSES[:, np.newaxis], cv=FOLDS)
    assert [one.filename for one in caught] == [__file__]
    plain = cv(CASES["classes"].make(n_estimators=2), X, CLASSES, cv=FOLDS)
    np.testing.assert_array_equal(result.folds["cross_entropy"], plain.folds["cross_entropy"])


def test_verbose(capsys):
    cv(CASES["regression"].make(n_estimators=2, verbose=1), X, TARGETS, cv=FOLDS)
    err = capsys.readouterr().err
    assert "2/2" in err
    assert "validation rmse=" in err


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"cv": 1}, "cv must be at least 2 folds; got 1"),
        ({"cv": True}, "cv must be at least 2 folds"),
        ({"cv": "five"}, "cv must be a number of folds, a splitter of scikit-learn"),
        ({"cv": 2.5}, "cv must be a number of folds"),
        ({"cv": []}, "cv has no folds"),
        ({"cv": [(np.arange(5), [200])]}, "cv: the test rows of fold 0 contain 200, but X has 160 rows"),
        ({"cv": [(np.arange(5), [0.5])]}, "cv: the test rows of fold 0 have dtype float64"),
        ({"cv": [(np.arange(5), [True])]}, "cv: the test rows of fold 0 are a mask of 1 values"),
        ({"cv": [(np.arange(5), [[1]])]}, "cv: the test rows of fold 0 have shape"),
        ({"cv": [(np.arange(5), [])]}, "cv: fold 0 has no test rows"),
        ({"cv": [(1, 2, 3)]}, "cv: fold 0 must be a pair"),
        ({"metrics": "accuracy"}, "^metrics must be"),
        ({"sample_weight": -WEIGHT}, "sample_weight must be finite and >= 0"),
    ],
)
def test_bad_arguments(arguments, words):
    with pytest.raises((TypeError, ValueError), match=words):
        cv(CASES["regression"].make(), X, TARGETS, **arguments)


def test_checkpoint_is_refused(tmp_path):
    with pytest.raises(ValueError, match=r"Checkpoint does not go with cv\(\)"):
        cv(PolyleafRegressor(callbacks=[Checkpoint(tmp_path / "file")]), X, TARGETS)


def test_another_estimator_is_refused():
    from sklearn.linear_model import Ridge

    with pytest.raises(
        TypeError, match="estimator must be a PolyleafRegressor or PolyleafClassifier; got Ridge"
    ):
        cv(Ridge(), X, TARGETS)


def test_classes_are_balanced_in_each_fold_and_not_in_its_test_rows():
    """As `fit` does on the fold's rows."""
    rng = np.random.default_rng(0)
    X = rng.integers(0, 5, size=(300, 3)).astype(float)
    y = (X[:, 0] + rng.normal(size=300) > 4).astype(int)
    train, test = np.arange(200), np.arange(200, 300)
    model = PolyleafClassifier(n_estimators=8, class_weight="balanced", max_bins=None, min_samples_leaf=5)
    result = cv(model, X, y, cv=[(train, test)])
    alone = model.fit(X[train], y[train], eval_set=(X[test], y[test]))
    expected = alone.evals_result_["validation_0"]["binary_cross_entropy"]
    np.testing.assert_allclose(result.mean["binary_cross_entropy"], expected, rtol=1e-12)


def test_a_fold_without_observations_of_a_target_is_refused():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(60, 2)), rng.normal(size=(60, 2))
    y[:40, 1] = np.nan
    with pytest.raises(ValueError, match=r"column 1 of y of the train rows of fold 0 has no observation"):
        cv(PolyleafRegressor(n_estimators=2), X, y, cv=[(np.arange(40), np.arange(40, 60))])
    counts = np.where(np.arange(60) < 40, 0.0, 3.0)
    with pytest.raises(ValueError, match="train rows of fold 0"):
        cv(PolyleafRegressor(objective="poisson"), X, counts, cv=[(np.arange(40), np.arange(40, 60))])


def test_mixed_targets_can_be_a_dict():
    X = np.arange(90.0)[:, None]
    y = {"size": X[:, 0], "kind": np.where(X[:, 0] < 45, "small", "large")}
    result = cv(PolyleafMixed({"size": "regression", "kind": "binary"}, n_estimators=3), X, y, cv=3)
    assert result.mean["loss"].shape == (3,)
