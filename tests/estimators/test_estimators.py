"""The estimators as people use them: shapes, attributes, scikit-learn's tools, and what bad input gets."""

import copy
import functools
import pickle
import subprocess
import sys
import warnings

import joblib
import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone, is_classifier, is_regressor
from sklearn.datasets import load_iris, make_friedman1
from sklearn.exceptions import DataConversionWarning, NotFittedError
from sklearn.metrics import accuracy_score, log_loss, mean_squared_error, r2_score
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import polyleaf
from polyleaf import PolyleafClassifier, PolyleafRegressor
from polyleaf.model.importance import importance

RNG = np.random.default_rng(0)
N = 120
X = RNG.normal(size=(N, 5))
Y1 = X[:, 0] + np.sin(3 * X[:, 1])
Y3 = np.column_stack([Y1, X[:, 2] ** 2, 100 * X[:, 3]])
CODES = (X[:, 0] > 0).astype(int) + (X[:, 1] > 0.5)
LABELS = (X[:, :4] > 0.3).astype(int)

Regressor = functools.partial(PolyleafRegressor, n_estimators=15, min_samples_leaf=2, n_jobs=1)
Classifier = functools.partial(PolyleafClassifier, n_estimators=15, min_samples_leaf=2, n_jobs=1)


# --- shapes and types --------------------------------------------------------------------------------------


def test_public_names():
    estimators = {"PolyleafClassifier", "PolyleafMixed", "PolyleafRegressor"}
    others = {
        "BinnedTable",
        "CVResult",
        "ConformalIntervals",
        "Leaf",
        "PartialDependence",
        "SplitCondition",
        "Trial",
        "Trials",
        "TuneResult",
        "__version__",
        "cv",
        "import_model",
        "load_binned",
        "load_model",
        "tune",
    }
    assert set(polyleaf.__all__) == estimators | others
    assert polyleaf.__version__.count(".") >= 2


@pytest.mark.parametrize(("y", "shape"), [(Y1, (N,)), (Y1[:, np.newaxis], (N, 1)), (Y3, (N, 3))])
def test_regression_has_the_dimension_of_y(y, shape):
    model = Regressor().fit(X, y)
    assert model.predict(X).shape == shape
    assert model.predict(X).dtype == np.float64
    assert model.n_outputs_ == (1 if len(shape) == 1 else shape[1])
    assert model.score(X, y) == pytest.approx(r2_score(y, model.predict(X)))
    assert model.score(X, y) > 0.5


def test_column_of_y_gives_the_same_model():
    np.testing.assert_array_equal(
        Regressor().fit(X, Y1).predict(X), Regressor().fit(X, Y1[:, None]).predict(X)[:, 0]
    )


def test_multiclass():
    model = Classifier().fit(X, CODES)
    p = model.predict_proba(X)
    assert p.shape == (N, 3)
    np.testing.assert_allclose(p.sum(axis=1), 1)
    np.testing.assert_array_equal(model.classes_, [0, 1, 2])
    np.testing.assert_array_equal(model.predict(X), p.argmax(axis=1))
    assert model.decision_function(X).shape == (N, 3)
    assert model.n_outputs_ == 3
    assert model.score(X, CODES) == accuracy_score(CODES, model.predict(X))
    assert model.score(X, CODES) > 0.9


@pytest.mark.parametrize(
    ("objective", "n_outputs"), [(None, 1), ("binary_cross_entropy", 1), ("cross_entropy", 2)]
)
def test_two_classes(objective, n_outputs):
    y = np.array(["no", "yes"])[CODES.clip(0, 1)]
    model = Classifier(objective=objective).fit(X, y)
    p = model.predict_proba(X)
    score = model.decision_function(X)
    assert model.n_outputs_ == n_outputs
    assert p.shape == (N, 2)
    assert score.shape == (N,)
    np.testing.assert_allclose(p.sum(axis=1), 1)
    np.testing.assert_array_equal(model.predict(X), np.where(score > 0, "yes", "no"))
    np.testing.assert_allclose(p[:, 1], 1 / (1 + np.exp(-score)))
    assert model.score(X, y) > 0.9


@pytest.mark.parametrize("dtype", [int, bool, float, np.uint8, object])
def test_multilabel(dtype):
    model = Classifier().fit(X, LABELS.astype(dtype))
    prediction, p = model.predict(X), model.predict_proba(X)
    assert prediction.shape == p.shape == model.decision_function(X).shape == (N, 4)
    assert prediction.dtype == np.int64
    np.testing.assert_array_equal(prediction, p > 0.5)
    np.testing.assert_array_equal(model.classes_, np.arange(4))
    assert (prediction == LABELS).mean() > 0.9


def test_labels_without_variation_are_legal():
    y = np.column_stack([np.zeros(N), np.ones(N), LABELS[:, 0]])
    model = Classifier().fit(X, y)
    np.testing.assert_array_equal(model.predict(X)[:, :2], y[:, :2])
    assert np.isfinite(model.decision_function(X)).all()


@pytest.mark.parametrize(
    "labels",
    [
        np.array(["a", "bb", "c"]),
        np.array(["a", "bb", "c"], dtype=object),
        np.array([-5, 0, 2**40]),
        np.array([1, 2, 3], dtype=np.uint8),
        np.array([0.0, 1.0, -7.0]),
        np.array([True, False, True]),
    ],
)
@pytest.mark.parametrize("container", [np.asarray, list, pd.Series])
def test_kinds_of_labels(labels, container):
    """Predictions are labels of the kind that was given."""
    y = labels[CODES]
    model = Classifier().fit(X, container(y))
    np.testing.assert_array_equal(model.classes_, np.unique(y))
    assert (model.predict(X) == y).mean() > 0.9
    assert set(model.predict(X)) <= set(labels)


def test_column_of_labels_warns_once():
    with pytest.warns(DataConversionWarning, match="column-vector y") as caught:
        model = Classifier().fit(X, CODES[:, np.newaxis], eval_set=(X, CODES[:, np.newaxis]))
    assert len(caught) == 1
    assert caught[0].filename == __file__
    assert model.predict(X).shape == (N,)


def test_data_frames_and_names():
    frame = pd.DataFrame(X, columns=list("abcde"))
    model = Regressor().fit(frame, pd.DataFrame(Y3))
    assert list(model.feature_names_in_) == list("abcde")
    np.testing.assert_array_equal(model.predict(frame), Regressor().fit(X, Y3).predict(X))
    with pytest.raises(ValueError, match="feature names"):
        model.predict(frame[list("edcba")])
    model.fit(X, Y3)
    assert not hasattr(model, "feature_names_in_")


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.int32, np.uint8, bool, object, ">f8"])
def test_dtypes_and_layouts_give_the_same_model(dtype):
    table = np.round(np.abs(X) * 3).astype(bool if dtype is bool else float)
    expected = Regressor().fit(table, Y1).predict(table)
    for converted in (
        table.astype(dtype),
        np.asfortranarray(table.astype(dtype)),
        table.astype(dtype)[:, ::-1][:, ::-1],
    ):
        np.testing.assert_array_equal(Regressor().fit(converted, Y1).predict(converted), expected)


def test_input_is_left_alone():
    table, targets, weight = X.copy(), Y3.copy(), np.ones(N)
    for array in (table, targets, weight):
        array.flags.writeable = False
    Regressor().fit(table, targets, weight, eval_set=(table, targets)).predict(table)
    np.testing.assert_array_equal(table, X)


# --- attributes --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("importance_type", ["gain", "cover", "split"])
def test_importances(importance_type):
    y = 10 * X[:, 3]
    model = Regressor(importance_type=importance_type).fit(X, y)
    assert model.feature_importances_.shape == (5,)
    assert model.feature_importances_.sum() == pytest.approx(1)
    assert model.feature_importances_.argmax() == 3


def test_importances_without_splits_are_zero():
    model = Regressor(min_samples_leaf=N).fit(X, Y1)
    np.testing.assert_array_equal(model.feature_importances_, np.zeros(5))
    np.testing.assert_allclose(model.predict(X), Y1.mean())


def test_importance_type_may_change_after_fit():
    model = Regressor().fit(X, Y1)
    gain = model.feature_importances_
    assert not np.array_equal(model.set_params(importance_type="split").feature_importances_, gain)
    with pytest.raises(ValueError, match="importance_type"):
        model.set_params(importance_type="weight").feature_importances_  # noqa: B018


def test_attributes_without_evaluation():
    model = Regressor().fit(X, Y1)
    assert model.evals_result_ == {}
    assert model.best_iteration_ == 14
    assert model.n_estimators_ == 15
    assert model.n_features_in_ == 5


def test_tags():
    for model in (PolyleafRegressor(), PolyleafClassifier()):
        tags = model.__sklearn_tags__()
        assert tags.input_tags.allow_nan
        assert tags.input_tags.sparse
        assert tags.target_tags.multi_output
    assert PolyleafClassifier().__sklearn_tags__().classifier_tags.multi_label
    assert is_regressor(PolyleafRegressor())
    assert is_classifier(PolyleafClassifier())


# --- stages and leaves -------------------------------------------------------------------------------------


@pytest.mark.parametrize("strategy", ["multi_output_tree", "one_output_per_tree"])
def test_stages_end_in_the_prediction(strategy):
    model = Regressor(multi_strategy=strategy).fit(X, Y3)
    stages = list(model.staged_predict(X))
    assert len(stages) == 15
    np.testing.assert_array_equal(stages[-1], model.predict(X))
    for rounds in (1, 7, 15):
        np.testing.assert_array_equal(stages[rounds - 1], model.predict(X, n_rounds=rounds))
    assert len(list(model.staged_predict(X, n_rounds=4))) == 4


def test_stages_of_a_classifier():
    model = Classifier().fit(X, np.array(["a", "b", "c"])[CODES])
    np.testing.assert_array_equal(list(model.staged_predict(X))[-1], model.predict(X))
    stages = list(model.staged_predict_proba(X))
    np.testing.assert_array_equal(stages[-1], model.predict_proba(X))
    np.testing.assert_array_equal(stages[2], model.predict_proba(X, n_rounds=3))
    losses = [log_loss(CODES, p) for p in stages]
    assert losses == sorted(losses, reverse=True)


def test_stages_check_their_input_at_once():
    with pytest.raises(NotFittedError):
        Regressor().staged_predict(X)
    with pytest.raises(ValueError, match="X has 2 features"):
        Regressor().fit(X, Y1).staged_predict(X[:, :2])


@pytest.mark.parametrize(("strategy", "trees"), [("multi_output_tree", 15), ("one_output_per_tree", 45)])
def test_apply(strategy, trees):
    """Rows in the same leaves get the same prediction."""
    model = Regressor(multi_strategy=strategy, max_depth=2).fit(X, Y3)
    leaves = model.apply(X)
    assert leaves.shape == (N, trees)
    assert leaves.dtype == np.int32
    assert model.apply(X, n_rounds=2).shape == (N, 2 * trees // 15)
    prediction = model.predict(X)
    for i, j in ((a, b) for a in range(40) for b in range(a)):
        if (leaves[i] == leaves[j]).all():
            np.testing.assert_array_equal(prediction[i], prediction[j])


@pytest.mark.parametrize("n_rounds", [0, -1, 16])
def test_rounds_out_of_range(n_rounds):
    model = Regressor().fit(X, Y1)
    for method in (model.predict, model.staged_predict, model.apply):
        with pytest.raises(ValueError, match=rf"n_rounds must be int in \[1, 15\]; got {n_rounds}"):
            method(X, n_rounds=n_rounds)


def test_rounds_of_another_type():
    with pytest.raises(TypeError, match="n_rounds"):
        Regressor().fit(X, Y1).predict(X, n_rounds=2.0)


# --- evaluation and early stopping -------------------------------------------------------------------------


def test_history_has_every_metric_of_every_set():
    model = Regressor(eval_metric=["mae", "rmse"]).fit(X, Y3, eval_set=[(X, Y3), (X[:50], Y3[:50])])
    assert list(model.evals_result_) == ["validation_0", "validation_1"]
    assert list(model.evals_result_["validation_1"]) == ["mae", "rmse"]
    history = model.evals_result_["validation_1"]["rmse"]
    assert len(history) == 15
    for value, stage in zip(history, model.staged_predict(X[:50]), strict=True):
        assert value == pytest.approx(np.sqrt(mean_squared_error(Y3[:50], stage)))


@pytest.mark.parametrize(
    ("y", "metric"),
    [(CODES, "cross_entropy"), (CODES.clip(0, 1), "binary_cross_entropy"), (LABELS, "binary_cross_entropy")],
)
def test_default_metric_is_the_loss(y, metric):
    model = Classifier().fit(X, y, eval_set=(X, y))
    history = model.evals_result_["validation_0"][metric]
    assert history == sorted(history, reverse=True)
    last = (
        log_loss(y.ravel(), model.predict_proba(X).ravel())
        if y.ndim == 2
        else log_loss(y, model.predict_proba(X))
    )
    assert history[-1] == pytest.approx(last)


def test_weights_of_the_evaluation_set_count():
    weight = RNG.random(N)
    model = Regressor(eval_metric="mse").fit(X, Y1, eval_set=(X, Y1), eval_sample_weight=weight)
    expected = mean_squared_error(Y1, model.predict(X), sample_weight=weight)
    assert model.evals_result_["validation_0"]["mse"][-1] == pytest.approx(expected)


def test_early_stopping_keeps_the_best_round():
    X_train, y_train = make_friedman1(300, noise=5.0, random_state=0)
    X_test, y_test = make_friedman1(300, noise=5.0, random_state=1)
    model = PolyleafRegressor(
        n_estimators=500, learning_rate=0.3, early_stopping_rounds=7, min_samples_leaf=2
    )
    model.fit(X_train, y_train, eval_set=(X_test, y_test))
    history = model.evals_result_["validation_0"]["rmse"]
    assert model.best_iteration_ == int(np.argmin(history))
    assert model.n_estimators_ == len(history) == model.best_iteration_ + 1 + 7
    prediction = model.predict(X_test)
    np.testing.assert_array_equal(prediction, model.predict(X_test, n_rounds=model.best_iteration_ + 1))
    assert np.sqrt(mean_squared_error(y_test, prediction)) == pytest.approx(min(history))
    assert model.predict(X_test, n_rounds=model.n_estimators_).shape == (300,)
    assert model.apply(X_test).shape[1] == model.best_iteration_ + 1


def test_early_stopping_watches_the_last_metric_of_the_last_set():
    values = iter(range(100))
    model = Regressor(early_stopping_rounds=3, eval_metric=["rmse", lambda y, p: next(values)])
    model.fit(X, Y1, eval_set=(X, Y1))
    assert model.best_iteration_ == 0
    assert model.n_estimators_ == 4


def test_early_stopping_with_a_metric_to_maximise():
    model = Classifier(early_stopping_rounds=5, eval_metric="accuracy", n_estimators=200)
    model.fit(X, CODES, eval_set=(X, CODES))
    history = model.evals_result_["validation_0"]["accuracy"]
    assert model.best_iteration_ == int(np.argmax(history))


def test_verbose_shows_progress_on_standard_error(capfd):
    Regressor(verbose=5).fit(X, Y1)
    out, err = capfd.readouterr()
    assert out == ""
    assert "15/15" in err
    assert "rmse=" in err
    Regressor().fit(X, Y1)
    assert capfd.readouterr() == ("", "")


def test_rows_of_weight_zero_count_nowhere():
    """Not for the classes, nor for the cut points, the counts, or the evaluation's known labels."""
    weight = RNG.integers(1, 4, N).astype(float)
    weight[CODES == 2] = 0
    table = X.copy()
    table[CODES == 2] = 1e6
    kept = weight > 0
    dropped = Classifier().fit(X[kept], CODES[kept], weight[kept])
    weighted = Classifier().fit(table, CODES, weight)
    np.testing.assert_array_equal(weighted.classes_, [0, 1])
    np.testing.assert_array_equal(weighted.predict_proba(X), dropped.predict_proba(X))
    weighted.fit(table, CODES, weight, eval_set=(X, CODES), eval_sample_weight=weight)


def test_weights_of_one_are_no_weights():
    plain = Regressor().fit(X, Y3).predict(X)
    np.testing.assert_array_equal(Regressor().fit(X, Y3, sample_weight=np.ones(N)).predict(X), plain)
    np.testing.assert_array_equal(Regressor().fit(X, Y3, sample_weight=[1] * N).predict(X), plain)


def test_rows_of_weight_one_and_zero():
    weight = RNG.integers(0, 2, N)
    kept = weight > 0
    expected = Regressor().fit(X[kept], Y1[kept]).predict(X)
    np.testing.assert_array_equal(Regressor().fit(X, Y1, weight).predict(X), expected)


# --- custom objectives and base scores ---------------------------------------------------------------------


def squared(y, raw):
    return raw - y, np.ones_like(raw)


def softmax_gradient(y, raw):
    p = np.exp(raw - raw.max(axis=1, keepdims=True))
    p /= p.sum(axis=1, keepdims=True)
    return p - np.eye(raw.shape[1])[y], p * (1 - p)


def test_custom_objective_equals_the_built_in_one():
    common = {"min_samples_leaf": 20, "sketch": None}
    built_in = Regressor(bounded_influence=False, **common).fit(X, Y3).predict(X)
    np.testing.assert_allclose(
        Regressor(objective=squared, **common).fit(X, Y3).predict(X), built_in, rtol=1e-3, atol=1e-3
    )
    built_in = Classifier(**common).fit(X, CODES).predict_proba(X)
    custom = Classifier(objective=softmax_gradient, **common).fit(X, CODES, eval_set=(X, CODES))
    np.testing.assert_allclose(custom.predict_proba(X), built_in, rtol=1e-3, atol=1e-3)
    assert list(custom.evals_result_["validation_0"]) == ["cross_entropy"]


@pytest.mark.parametrize(
    ("objective", "words"),
    [
        (lambda y, raw: raw, "objective"),
        (lambda y, raw: (raw[:-1], raw), "objective"),
        (lambda y, raw: (raw, raw * np.nan), "objective"),
        (lambda y, raw: ("a", "b"), "objective"),
    ],
)
def test_custom_objective_that_returns_nonsense(objective, words):
    with pytest.raises((ValueError, TypeError), match=words):
        Regressor(objective=objective).fit(X, Y3)


def test_base_score():
    flat = {"min_samples_leaf": N, "n_estimators": 1, "learning_rate": 1e-300}
    np.testing.assert_allclose(Regressor(**flat, base_score=5).fit(X, Y3).predict(X), np.full((N, 3), 5.0))
    np.testing.assert_allclose(Regressor(**flat, base_score=[1, 2, 3]).fit(X, Y3).predict(X)[0], [1, 2, 3])
    np.testing.assert_allclose(
        Classifier(**flat, base_score=0).fit(X, CODES).predict_proba(X)[0], [1 / 3] * 3
    )
    with pytest.raises(ValueError, match="base_score has 2 values, but the model has 3 output"):
        Regressor(base_score=[1, 2]).fit(X, Y3)


# --- scikit-learn's tools ----------------------------------------------------------------------------------


def test_pipeline_search_and_cross_validation():
    iris_X, iris_y = load_iris(return_X_y=True)
    pipeline = make_pipeline(StandardScaler(), Classifier())
    search = GridSearchCV(pipeline, {"polyleafclassifier__max_depth": [1, 4]}, cv=3).fit(iris_X, iris_y)
    assert search.best_score_ > 0.9
    assert cross_val_score(Regressor(), X, Y3, cv=3).shape == (3,)
    assert cross_val_score(Classifier(), X, LABELS, cv=3).min() > 0.2
    assert cross_val_score(Classifier(), iris_X, iris_y, scoring="roc_auc_ovr", cv=3).min() > 0.9


def test_parallel_cross_validation_gives_the_same_scores():
    model = Classifier(n_jobs=None)
    np.testing.assert_array_equal(
        cross_val_score(model, X, CODES, cv=2, n_jobs=2), cross_val_score(model, X, CODES, cv=2)
    )


COPIES = {
    "pickle": lambda model, path: pickle.loads(pickle.dumps(model)),
    "deepcopy": lambda model, path: copy.deepcopy(model),
    "joblib": lambda model, path: (joblib.dump(model, path), joblib.load(path))[1],
}


@pytest.mark.parametrize("how", COPIES)
@pytest.mark.parametrize(
    ("make", "y"), [(Regressor, Y1), (Regressor, Y3), (Classifier, CODES), (Classifier, LABELS)]
)
def test_copies_predict_the_same_bits(how, make, y, tmp_path):
    model = make().fit(X, y)
    expected = model.predict(X)
    twin = COPIES[how](model, tmp_path / "model")
    model.fit(X[:60], y[:60])  # a copy does not share what another fit replaces
    np.testing.assert_array_equal(twin.predict(X), expected)
    assert not hasattr(clone(twin), "n_features_in_")
    assert clone(twin).get_params() == twin.get_params()


def test_fits_and_seeds():
    """One seed gives one model; another seed samples other rows."""
    make = functools.partial(Regressor, subsample=0.5, colsample_bytree=0.6)
    first = make(random_state=1).fit(X, Y1).predict(X)
    np.testing.assert_array_equal(make(random_state=1).fit(X, Y1).predict(X), first)
    assert not np.array_equal(make(random_state=2).fit(X, Y1).predict(X), first)


@pytest.mark.parametrize("n_jobs", [None, 1, 2, 3, -1, -100, 10_000])
def test_threads_do_not_change_a_bit(n_jobs):
    model = Classifier(n_jobs=n_jobs, subsample=0.7, random_state=0).fit(X, CODES)
    expected = Classifier(n_jobs=1, subsample=0.7, random_state=0).fit(X, CODES).predict_proba(X)
    np.testing.assert_array_equal(model.predict_proba(X), expected)


# --- Ctrl-C ------------------------------------------------------------------------------------------------


def interrupt_after(rounds):
    calls = iter(range(rounds))

    def metric(y, prediction):
        if next(calls, None) is None:
            raise KeyboardInterrupt
        return 1.0

    return metric


def test_interrupt_leaves_the_rounds_done():
    model = Regressor(eval_metric=interrupt_after(4))
    with pytest.raises(KeyboardInterrupt):
        model.fit(X, Y3, eval_set=(X, Y3))
    assert model.n_estimators_ == 4
    assert model.best_iteration_ == 3
    assert len(model.evals_result_["validation_0"]["metric"]) == 4
    np.testing.assert_array_equal(model.predict(X), Regressor(n_estimators=4).fit(X, Y3).predict(X))


def test_interrupt_in_the_first_round_leaves_the_base_score(tmp_path):
    model = Regressor(eval_metric=interrupt_after(0))
    with pytest.raises(KeyboardInterrupt):
        model.fit(X, Y3, eval_set=(X, Y3))
    assert model.n_estimators_ == 0
    np.testing.assert_allclose(model.predict(X), np.tile(Y3.mean(axis=0), (N, 1)))
    assert model.apply(X).shape == (N, 0)
    assert list(model.staged_predict(X)) == []
    model.set_params(eval_metric=None).save_model(tmp_path / "model")
    np.testing.assert_array_equal(polyleaf.load_model(tmp_path / "model").predict(X), model.predict(X))


@pytest.mark.other_threads("ThreadSanitizer holds signals back")
def test_signal_ends_fit_within_a_moment():
    """A real SIGINT, while the core is at work, in a process of its own."""
    code = """
import os, signal, threading, time
import numpy as np
from polyleaf import PolyleafRegressor

X = np.random.default_rng(0).normal(size=(20_000, 20))
model = PolyleafRegressor(n_estimators=10**6)
threading.Timer(0.7, os.kill, (os.getpid(), signal.SIGINT)).start()
try:
    model.fit(X, X[:, :5] ** 2)
except KeyboardInterrupt:
    assert 0 < model.n_estimators_ < 10**6
    assert model.predict(X).shape == (20_000, 5)
    print("interrupted")
"""
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert run.stdout == "interrupted\n", run.stderr


# --- bad input ---------------------------------------------------------------------------------------------


def with_cell(value):
    table = X.copy()
    table[3, 2] = value
    return table


def with_target(value):
    targets = Y1.copy()
    targets[7] = value
    return targets


WEIGHT = np.ones(N)

BAD_FITS = [
    # (X, y, keywords of fit, words in the error)
    (X[:, 0], Y1, {}, "X: Expected 2D"),
    (X[:, :, None], Y1, {}, "X: .*dim 3"),
    (X[:, :0], Y1, {}, "X: .*0 feature"),
    (None, Y1, {}, "X|None"),
    ("table", Y1, {}, "X: "),
    (with_cell(np.inf), Y1, {}, "X contains infinity.*row 3, column 2"),
    (X.astype(complex), Y1, {}, "X: Complex data not supported"),
    (X.astype(str), Y1, {}, "X has dtype"),
    (pd.DataFrame({"a": [1.0] * N, "city": ["Rome"] * N}), Y1, {}, "X: column 'city' holds no numbers"),
    (X, Y1[:-1], {}, rf"y has {N - 1} row\(s\), but its X has {N}"),
    (X, None, {}, "target y is None"),
    (X, Y1[:0], {}, "y has 0 row"),
    (X, Y3[:, :, None], {}, "y has 3 dimensions"),
    (X, Y3[:, :0], {}, "y has no columns"),
    (X, 5.0, {}, "y has 0 dimensions"),
    (X, Y1, {"sample_weight": WEIGHT[:-1]}, "sample_weight has shape"),
    (X, Y1, {"sample_weight": -WEIGHT}, "sample_weight must be finite and >= 0; got -1.0 in row 0"),
    (X, Y1, {"sample_weight": WEIGHT * np.nan}, "sample_weight must be finite"),
    (X, Y1, {"sample_weight": WEIGHT * np.inf}, "sample_weight must be finite"),
    (X, Y1, {"sample_weight": WEIGHT * 0}, "sample_weight is zero"),
    (X, Y1, {"eval_set": X}, "eval_set must be a tuple"),
    (X, Y1, {"eval_set": [X]}, r"eval_set\[0\] must be a tuple"),
    (X, Y1, {"eval_set": (X[:, :2], Y1)}, r"X of eval_set\[0\]: X has 2 features"),
    (X, Y1, {"eval_set": (with_cell(np.inf), Y1)}, r"X of eval_set\[0\] contains infinity"),
    (X[:0], Y1[:0], {}, "X: .*0 sample"),
    (X, Y1, {"eval_set": [(X, Y1), (X[:0], Y1[:0])]}, r"X of eval_set\[1\]: .*0 sample"),
    (X, Y1, {"eval_set": [(X, Y1), (X, Y1[:-1])]}, r"y of eval_set\[1\] has .* row"),
    (X, Y1, {"eval_set": (X, Y1), "eval_sample_weight": -WEIGHT}, "eval_sample_weight must be finite"),
    (
        X,
        Y1,
        {"eval_set": [(X, Y1)], "eval_sample_weight": [WEIGHT * 0]},
        r"eval_sample_weight\[0\] is zero",
    ),
    (X, Y1, {"eval_sample_weight": WEIGHT}, "eval_sample_weight was given without eval_set"),
]


@pytest.mark.parametrize(("table", "y", "keywords", "words"), BAD_FITS)
@pytest.mark.parametrize("make", [Regressor, Classifier])
def test_bad_input_of_fit(make, table, y, keywords, words):
    """Both estimators say what is wrong, and with which argument."""

    def labels(target):
        return (
            np.round(np.abs(target)).clip(0, 1)
            if make is Classifier and isinstance(target, np.ndarray)
            else target
        )

    if "eval_set" in keywords and isinstance(keywords["eval_set"], tuple):
        keywords = {**keywords, "eval_set": (keywords["eval_set"][0], labels(keywords["eval_set"][1]))}
    elif "eval_set" in keywords and isinstance(keywords["eval_set"], list):
        sets = [(one[0], labels(one[1])) if isinstance(one, tuple) else one for one in keywords["eval_set"]]
        keywords = {**keywords, "eval_set": sets}
    with pytest.raises((ValueError, TypeError, FileNotFoundError), match=words):
        make().fit(table, labels(y), **keywords)


@pytest.mark.parametrize(
    ("y", "words"),
    [
        (with_target(-np.inf), "y contains infinity.* in row 7"),
        (["a"] * N, "y holds no numbers but text"),
        (np.array(["a"] * N, dtype=object), "y holds no numbers but text"),
        (Y1 + 1j, "Complex data not supported: y"),
    ],
)
def test_bad_regression_targets(y, words):
    with pytest.raises(ValueError, match=words):
        Regressor().fit(X, y)


@pytest.mark.parametrize(
    ("y", "keywords", "words"),
    [
        (Y1, {}, "Unknown label type: continuous. y holds"),
        (np.ones(N), {}, "y holds one class only, .*1.0"),
        (CODES, {"sample_weight": (CODES == 1).astype(float)}, "y holds one class only, .*1"),
        (np.where(CODES == 1, np.nan, CODES), {}, "y contains NaN"),
        (np.array(["a", None], dtype=object)[CODES.clip(0, 1)], {}, "y has a missing class label, None"),
        (np.array(["a", 1], dtype=object)[CODES.clip(0, 1)], {}, "y mixes labels"),
        (LABELS * 2, {}, "y has 4 columns, .* 0 and 1"),
        (Y3, {}, "y has 3 columns, .* 0 and 1"),
        (LABELS.astype(str), {}, "y has 4 columns of dtype"),
        (CODES, {"eval_set": (X, CODES + 1)}, r"y of eval_set\[0\] holds labels .* not seen in training: 3"),
        (LABELS, {"eval_set": (X, LABELS[:, :2])}, r"y of eval_set\[0\] has 2 column\(s\), but y had 4"),
        (LABELS, {"eval_set": (X, CODES.clip(0, 1))}, r"y of eval_set\[0\] has 1 column\(s\), but y had 4"),
        (CODES, {"eval_set": (X, LABELS)}, r"y of eval_set\[0\] has shape"),
    ],
)
def test_bad_labels(y, keywords, words):
    with pytest.raises(ValueError, match=words):
        Classifier().fit(X, y, **keywords)


@pytest.mark.parametrize(
    ("make", "params", "y", "words"),
    [
        (Regressor, {"objective": "cross_entropy"}, Y1, "objective must be .*squared_error"),
        (Classifier, {"objective": "hinge"}, CODES, "objective must be .*cross_entropy"),
        (Classifier, {"objective": "binary_cross_entropy"}, CODES, "objective=.*multiclass"),
        (Classifier, {"objective": "cross_entropy"}, LABELS, "objective=.*multilabel"),
        (Classifier, {"eval_metric": "binary_cross_entropy"}, CODES, "eval_metric .*multiclass"),
        (
            Regressor,
            {"validation_fraction": 1},
            Y1,
            r"validation_fraction must be a finite float in \(0, 0.5\]",
        ),
        (Regressor, {"n_estimators": 0}, Y1, "n_estimators must be int >= 1; got 0"),
        (Regressor, {"max_depth": None}, Y1, "max_depth and max_leaves"),
    ],
)
def test_bad_parameters(make, params, y, words):
    with pytest.raises(ValueError, match=words):
        make(**params).fit(X, y)


def test_parameters_are_checked_before_the_data():
    with pytest.raises(ValueError, match="max_bins"):
        Regressor(max_bins=1).fit("nonsense", None)


def test_unknown_arguments():
    with pytest.raises(TypeError, match="eval_metric"):
        Regressor().fit(X, Y1, eval_metric="rmse")
    with pytest.raises(TypeError, match="n_trees"):
        PolyleafClassifier(n_trees=3)


@pytest.mark.parametrize(
    "method", ["predict", "predict_proba", "decision_function", "apply", "staged_predict_proba"]
)
@pytest.mark.parametrize(
    ("table", "words"),
    [
        (np.zeros((3, 6)), "X has 6 features, but PolyleafClassifier is expecting 5"),
        (np.zeros((3, 4)), "X has 4 features"),
        (np.zeros(5), "X: Expected 2D"),
        (with_cell(-np.inf), "X contains infinity"),
        (X.astype(str), "X has dtype"),
    ],
)
def test_bad_input_of_predict(method, table, words):
    model = Classifier(n_estimators=2).fit(X, CODES)
    with pytest.raises(ValueError, match=words):
        getattr(model, method)(table)


@pytest.mark.parametrize("method", ["predict", "apply", "staged_predict"])
def test_predicting_before_fitting(method):
    with pytest.raises(NotFittedError):
        getattr(Regressor(), method)(X)
    with pytest.raises(NotFittedError):
        Regressor().feature_importances_  # noqa: B018


@pytest.mark.parametrize("spoil", ["X", "y", "weight", "evaluation"])
def test_fit_that_fails_leaves_the_model_as_it_was(spoil):
    frame = pd.DataFrame(X, columns=list("abcde"))
    model = Regressor().fit(frame, Y1)
    expected = model.predict(frame)
    bad = {
        "X": lambda: model.fit(with_cell(np.inf)[:, 1:3], Y1),
        "y": lambda: model.fit(X[:, :2], with_target(np.inf)),
        "weight": lambda: model.fit(X[:, :2], Y1, -WEIGHT),
        "evaluation": lambda: model.fit(X[:, :2], Y1, eval_set=(X, Y1)),
    }
    with pytest.raises(ValueError):
        bad[spoil]()
    np.testing.assert_array_equal(model.predict(frame), expected)
    assert model.n_features_in_ == 5


def test_threads_set_after_fit_are_checked():
    model = Regressor().fit(X, Y1).set_params(n_jobs=0)
    with pytest.raises(ValueError, match="n_jobs"):
        model.predict(X)


def test_clean_fit_warns_about_nothing():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for make, y in ((Regressor, Y3), (Classifier, CODES), (Classifier, LABELS)):
            make().fit(X, y, eval_set=(X, y)).predict(X)


def test_callables_cannot_write_to_the_users_targets():
    def destroys(y, raw):
        y[:] = 0
        return raw, raw

    targets = np.ascontiguousarray(Y3, dtype=np.float64).copy()
    kept = targets.copy()
    with pytest.raises(ValueError, match="read-only"):
        Regressor(objective=destroys).fit(X, targets)
    with pytest.raises(ValueError, match="read-only"):
        Regressor(eval_metric=lambda y, p: destroys(y, p)[0].sum()).fit(X, targets, eval_set=(X, targets))
    np.testing.assert_array_equal(targets, kept)


def test_an_objectives_own_arithmetic_error_comes_through():
    with pytest.raises(ZeroDivisionError):
        Regressor(objective=lambda y, raw: 1 / 0).fit(X, Y3)


def test_a_constant_target_does_not_hinder_the_others():
    """Whatever its base score: no split can tell its rows apart."""
    targets = np.column_stack([Y3[:, 0], np.full(len(X), 1000.0)])
    model = Regressor(base_score=0.0, n_estimators=30, min_samples_leaf=5).fit(X, targets)
    assert (model._forest.left >= 0).sum() > 30


def test_a_callable_metric_gets_the_weights_it_has_an_argument_for():
    weight = np.linspace(0.1, 5, len(X))
    settings = {"n_estimators": 3, "eval_metric": [mean_squared_error, "mse"]}
    model = Regressor(**settings).fit(X, Y3, eval_set=(X, Y3), eval_sample_weight=weight)
    history = model.evals_result_["validation_0"]
    np.testing.assert_allclose(history["mean_squared_error"], history["mse"])
    with pytest.raises(ValueError, match="takes no sample_weight"):
        Regressor(eval_metric=lambda y, p: 0.0).fit(X, Y3, eval_set=(X, Y3), eval_sample_weight=weight)


def test_importances_end_with_the_best_round():
    model = Regressor(n_estimators=60, early_stopping_rounds=3, learning_rate=1.0, min_samples_leaf=5)
    model.fit(X[::2], Y3[::2], eval_set=(X[1::2], Y3[1::2]))
    assert model.best_iteration_ < model.n_estimators_ - 1
    expected = importance(model._forest, "gain", model.best_iteration_ + 1)
    np.testing.assert_allclose(model.feature_importances_, expected / expected.sum())


def test_dates_in_a_frame_are_named():
    frame = pd.DataFrame({"a": np.arange(40.0), "when": pd.date_range("2020-01-01", periods=40)})
    with pytest.raises((TypeError, ValueError), match="when"):
        Regressor().fit(frame, np.arange(40.0))


def test_top_k_of_two_classes():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 2))
    y = np.where(X[:, 0] > 0, "yes", "no")
    model = PolyleafClassifier(n_estimators=5).fit(X, y)
    best = model.predict(X, top_k=1)
    np.testing.assert_array_equal(model.classes_[best[:, 0]], model.predict(X))
    np.testing.assert_array_equal(model.predict(X, top_k=2)[:, 1], 1 - best[:, 0])
    with pytest.raises(ValueError, match="sparse=True does not go with top_k"):
        model.predict(X, top_k=1, sparse=True)


def test_top_k_as_labels():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(120, 4))
    names = np.array(["high", "low", "middle"])
    y = names[np.digitize(X[:, 0], [-0.4, 0.4])]
    model = PolyleafClassifier(n_estimators=5).fit(X, y)
    best = model.predict(X, top_k=2, as_labels=True)
    np.testing.assert_array_equal(best, model.classes_[model.predict(X, top_k=2)])
    np.testing.assert_array_equal(best[:, 0], model.predict(X))
    two = PolyleafClassifier(n_estimators=5).fit(X, y == "low")
    np.testing.assert_array_equal(two.predict(X, top_k=1, as_labels=True)[:, 0], two.predict(X))
    pd = pytest.importorskip("pandas")
    labels = pd.DataFrame((X > 0).astype(int), columns=["a", "b", "c", "d"])
    named = PolyleafClassifier(n_estimators=5).fit(X, labels)
    best = named.predict(X, top_k=3)
    np.testing.assert_array_equal(named.predict(X, top_k=3, as_labels=True), np.array(list("abcd"))[best])
    frame = named.predict(X, top_k=3, as_labels=True, as_frame=True)
    assert list(frame.columns) == ["top_1", "top_2", "top_3"]
    assert frame["top_1"].isin(["a", "b", "c", "d"]).all()
    nameless = PolyleafClassifier(n_estimators=5).fit(X, labels.to_numpy())
    np.testing.assert_array_equal(nameless.predict(X, top_k=3, as_labels=True), best)
    with pytest.raises(ValueError, match="as_labels=True needs top_k"):
        model.predict(X, as_labels=True)
    with pytest.raises(TypeError, match="as_labels must be bool"):
        model.predict(X, top_k=2, as_labels="yes")


def test_equal_scores_of_top_k_go_to_the_lower_column():
    X = np.zeros((40, 1))
    y = np.tile(np.eye(8, dtype=int), (5, 1))
    model = PolyleafClassifier(n_estimators=1, sketch=None).fit(X, y)
    np.testing.assert_array_equal(model.predict(X, top_k=3), np.tile([0, 1, 2], (40, 1)))


def test_best_score_is_that_of_the_best_round():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(90, 3))
    y = X[:, 0] + rng.normal(size=90)
    model = PolyleafRegressor(n_estimators=60, learning_rate=0.5, early_stopping_rounds=3, min_samples_leaf=2)
    model.fit(X[30:], y[30:], eval_set={"a": (X[30:], y[30:]), "b": (X[:30], y[:30])})
    history = model.evals_result_
    assert model.best_iteration_ < model.n_estimators_ - 1
    assert model.best_score_["b"] == {"rmse": min(history["b"]["rmse"])}
    assert model.best_score_["a"] == {"rmse": history["a"]["rmse"][model.best_iteration_]}
    assert PolyleafRegressor(n_estimators=2).fit(X, y).best_score_ == {}
