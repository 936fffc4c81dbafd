"""Options of mixed models that speak of groups, outputs and columns by name."""

from functools import partial

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.metrics import f1_score, get_scorer, make_scorer

from mixed_table import TARGETS, N, mixed, table
from polyleaf import PolyleafClassifier, PolyleafMixed, PolyleafRegressor, cv, load_model
from polyleaf.callbacks import EarlyStopping
from polyleaf.metrics import label_propensities, psp_at_k
from same_forest import assert_same_bits

PLAIN = {"n_estimators": 20, "n_jobs": 1, "random_state": 1}
TWO = {"grade": "multiclass", "height": "regression"}


def columns_of(name, y):
    if name != "tags":
        return y[name]
    return np.column_stack([y[column] for column in TARGETS["tags"]["columns"]])


# --- class_weight ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "wanted"),
    [
        ("grade", "balanced"),
        ("grade", {"a": 3.0, "c": 0.5}),
        ("passed", "balanced"),
        ("passed", {True: 4.0}),
        ("tags", "balanced"),
        ("tags", {1: 2.0}),
        ("tags", [{0: 1.0, 1: 3.0}, {1: 2.0}, {1: 9.0}]),
    ],
)
@pytest.mark.parametrize("weighted", [False, True])
def test_class_weight_of_a_group_is_that_of_the_classifier(name, wanted, weighted):
    X, y = table()
    weight = np.random.default_rng(0).uniform(0.2, 2, size=N) if weighted else None
    model = mixed({name: TARGETS[name]}, class_weight={name: wanted}).fit(X, y, sample_weight=weight)
    peer = PolyleafClassifier(**PLAIN, class_weight=wanted).fit(X, columns_of(name, y), sample_weight=weight)
    assert_same_bits(model, peer)
    if wanted == "balanced":
        assert_same_bits(mixed({name: TARGETS[name]}, class_weight=wanted).fit(X, y, weight), model)


def test_class_weight_concerns_its_own_group_alone():
    """It is the weights of cells that it stands for, in any order of columns, and beside missing classes."""
    X, y = table()
    grade = y["grade"].astype(object)
    grade[::5] = None
    frame = pd.DataFrame({"height": y["height"], "grade": grade, "passed": y["passed"]})
    targets = {"passed": "binary", **TWO}
    model = mixed(targets, class_weight={"grade": {"b": 5.0}, "passed": None}).fit(X, frame)
    cells = pd.DataFrame({"grade": np.where(grade == "b", 5.0, 1.0), "height": 1.0, "passed": 1.0})
    assert_same_bits(model, mixed(targets).fit(X, frame, sample_weight=cells))
    balanced = mixed(targets, class_weight="balanced").fit(X, frame)
    of_classes = balanced._coding.in_order_of_y(balanced._forest.base_score)[1:7]
    np.testing.assert_allclose(of_classes, [np.log(0.2)] * 5 + [0.0], atol=1e-6)
    folds = cv(mixed(targets, class_weight="balanced", n_estimators=2), X, frame, cv=2, return_models=True)
    for fitted in folds.models:
        assert fitted._coding.in_order_of_y(fitted._forest.base_score)[6] == pytest.approx(0, abs=1e-6)


@pytest.mark.parametrize(
    ("wanted", "error", "words"),
    [
        ("balance", ValueError, 'class_weight must be "balanced"'),
        ([{"a": 1.0}], TypeError, "class_weight must be"),
        ({"grade": 3.0}, TypeError, r"class_weight\['grade'\] must be"),
        ({"grade": {"a": -1.0}}, ValueError, r"class_weight\['grade'\]: the weight of 'a'"),
        ({"grade": {"z": 1.0}}, ValueError, r"class_weight\['grade'\] has the class 'z'"),
        ({"grade": [{"a": 1.0}]}, ValueError, "a list is for several labels"),
        (
            {"grad": "balanced"},
            ValueError,
            "class_weight has 'grad', but the groups of classes and .*'grade'",
        ),
        ({"height": "balanced"}, ValueError, "class_weight has 'height'"),
    ],
)
def test_class_weights_that_do_not_fit_are_named(wanted, error, words):
    X, y = table()
    with pytest.raises(error, match=words):
        mixed(TWO, class_weight=wanted).fit(X, y)


def test_class_weight_needs_classes():
    X, y = table()
    with pytest.raises(ValueError, match="neither classes nor labels to weigh"):
        mixed({"height": "regression"}, class_weight="balanced").fit(X, y)


# --- eval_metric -------------------------------------------------------------------------------------------


def test_metrics_by_group():
    X, y = table()
    Xe, ye = table(seed=1)

    def mine(y, prediction, sample_weight=None):
        return float(np.abs(y - prediction).max())

    wanted = {"grade": ["accuracy", "precision@2"], "height": mine, "passed": None, "noise": "mae"}
    model = mixed(eval_metric=wanted).fit(X, y, eval_set=(Xe, ye))
    history = model.evals_result_["validation_0"]
    assert list(history) == [
        "grade/accuracy",
        "grade/precision@2",
        "passed/binary_cross_entropy",
        "height/mine",
        "visits/poisson",
        "tags/binary_cross_entropy",
        "price/quantile",
        "noise/mae",
        "loss",
    ]
    found = model.predict(Xe)
    assert history["grade/accuracy"][-1] == pytest.approx((found["grade"] == ye["grade"]).mean())
    assert history["height/mine"][-1] == pytest.approx(np.abs(found["height"] - ye["height"]).max())
    # What is watched does not change.
    usual = mixed().fit(X, y, eval_set=(Xe, ye)).evals_result_["validation_0"]
    assert history["loss"] == usual["loss"]


@pytest.mark.parametrize(
    ("name", "wanted"),
    [
        ("grade", ["psp@1", "psp@2"]),
        ("grade", make_scorer(f1_score, average="macro", labels=["a", "c"])),
        ("grade", partial(f1_score, average="macro", labels=["a", "c"])),
        ("passed", make_scorer(f1_score, pos_label=True)),
        ("passed", get_scorer("roc_auc")),
        ("tags", ["psp@2", "auc_per_target"]),
        ("height", ["rmse_per_target", "mae"]),
    ],
)
def test_metrics_of_a_group_are_those_of_the_plain_estimator(name, wanted):
    """Also those that have to know class labels, names, or the training rows."""
    X, y = table()
    Xe, ye = table(seed=1)
    make = PolyleafRegressor if name == "height" else PolyleafClassifier
    of_y = {one: columns_of(name, part) for one, part in (("y", y), ("ye", ye))}
    if name in ("tags", "height"):
        columns = TARGETS["tags"]["columns"] if name == "tags" else ["height"]
        of_y = {one: pd.DataFrame(part, columns=columns) for one, part in of_y.items()}
    plain = make(**PLAIN, eval_metric=wanted).fit(X, of_y["y"], eval_set=(Xe, of_y["ye"]))
    model = mixed({name: TARGETS[name]}, eval_metric={name: wanted}).fit(X, y, eval_set=(Xe, ye))
    history = model.evals_result_["validation_0"]
    del history["loss"]
    expected = plain.evals_result_["validation_0"]
    assert list(history) == [f"{name}/{metric}" for metric in expected]
    for values, of_plain in zip(history.values(), expected.values(), strict=True):
        np.testing.assert_allclose(values, of_plain, rtol=1e-12)


def test_metrics_of_each_target_of_a_group():
    X, y = table()
    frame = pd.DataFrame({"a": y["height"], "b": X[:, 0], "o": y["grade"]})
    targets = {"m": {"kind": "regression", "columns": ["b", "a"]}, "o": "multiclass"}
    model = mixed(targets, eval_metric={"m": "rmse_per_target"}).fit(X, frame, eval_set=(X, frame))
    history = model.evals_result_["validation_0"]
    assert list(history) == ["m/b/rmse", "m/a/rmse", "m/rmse", "o/cross_entropy", "loss"]
    found = model.predict(X)
    for column in ("a", "b"):
        expected = np.sqrt(np.mean((found[column] - frame[column]) ** 2))
        assert history[f"m/{column}/rmse"][-1] == pytest.approx(expected)


def test_rows_without_a_class_do_not_count_in_propensities():
    """They are as rows that are not there, as for the plain estimator."""
    X, y = table()
    grade = y["grade"].astype(object)
    grade[: N // 2] = None
    frame = pd.DataFrame({"grade": grade, "height": y["height"]})
    Xe, ye = table(seed=1)
    model = mixed(TWO, eval_metric={"grade": "psp@1"}).fit(X, frame, eval_set=(Xe, ye))
    of_classes = {label: j for j, label in enumerate(model.classes_["grade"])}
    one_hot = lambda labels: np.eye(len(of_classes))[[of_classes[label] for label in labels]]  # noqa: E731
    chance = model.predict_proba(Xe)["grade"]
    expected = psp_at_k(one_hot(ye["grade"]), chance, 1, label_propensities(one_hot(y["grade"][N // 2 :])))
    assert model.evals_result_["validation_0"]["grade/psp@1"][-1] == pytest.approx(expected)


def test_stopping_on_the_metric_of_a_group():
    X, y = table()
    Xe, ye = table(seed=1)
    stop = EarlyStopping(3, metric="grade/accuracy")
    model = mixed(
        TWO, eval_metric={"grade": "accuracy"}, n_estimators=200, learning_rate=0.5, callbacks=[stop]
    ).fit(X, y, eval_set=(Xe, ye))
    history = model.evals_result_["validation_0"]["grade/accuracy"]
    assert model.n_estimators_ < 200
    assert model.best_iteration_ == np.argmax(history)
    result = cv(mixed(TWO, n_estimators=3), X, y, cv=2, metrics={"height": "r2"})
    assert list(result.mean) == ["grade/cross_entropy", "height/r2", "loss"]


@pytest.mark.parametrize(
    ("wanted", "error", "words"),
    [
        ("accuracy", TypeError, "eval_metric must be dict"),
        ({"grade": "acc"}, ValueError, r"eval_metric\['grade'\] must be"),
        ({"grade": []}, ValueError, r"eval_metric\['grade'\] must be"),
        ({"grad": "accuracy"}, ValueError, "eval_metric has 'grad', but the groups of targets are grade"),
        ({"grade": "rmse"}, ValueError, "group 'grade': eval_metric 'rmse' is not defined for a multiclass"),
        ({"grade": "precision@9"}, ValueError, "group 'grade': .*precision@9"),
        ({"height": "accuracy"}, ValueError, "group 'height': .* not defined for a regression"),
        ({"height": "poisson"}, ValueError, "group 'height': .* needs positive predictions"),
        ({"height": ["r2", "r2"]}, ValueError, "group 'height': eval_metric has 'r2' more than once"),
        ({"height": lambda y, p: 0.0}, ValueError, "takes no sample_weight"),
    ],
)
def test_metrics_that_do_not_fit_are_named(wanted, error, words):
    X, y = table()
    with pytest.raises(error, match=words):
        mixed(TWO, eval_metric=wanted).fit(X, y, eval_set=(X, y), eval_sample_weight=np.arange(N))


def test_a_metric_of_one_prediction_does_not_go_with_several_quantiles():
    X, y = table()
    with pytest.raises(
        ValueError, match=r"group 'price': eval_metric 'rmse' does not go with quantile_levels"
    ):
        mixed(eval_metric={"price": "rmse"}).fit(X, y)


# --- monotone constraints ----------------------------------------------------------------------------------


def steps_against(model, X, feature, column, sign):
    """Steps of a grid that go the wrong way, from some places."""
    grid = np.linspace(-3, 3, 61)
    places = np.repeat(X[:40], len(grid), axis=0)
    places[:, feature] = np.tile(grid, 40)
    output = model._coding.in_order_of_y(model._raw(places, None))[
        :, model._coding.columns_of_outputs().index(column)
    ]
    return int((sign * np.diff(output.reshape(40, -1), axis=1) < 0).sum())


def test_signs_for_outputs_by_name():
    """Those named keep the order; classes and quantiles beside them are free."""
    X, y = table()
    signs = {0: {"height": 1, "n1": 1, "t2": 1}, 1: {"passed": 1, "visits": -1}}
    free = mixed().fit(X, y)
    bound = mixed(monotone_constraints=signs).fit(X, y)
    for feature, of_outputs in signs.items():
        for output, sign in of_outputs.items():
            assert steps_against(free, X, feature, output, sign) > 0
            assert steps_against(bound, X, feature, output, sign) == 0
    assert steps_against(bound, X, 0, "grade=e", 1) > 0
    found = bound.predict(X)
    assert (found["price_q0.1"] < y["price"]).mean() == pytest.approx(0.9, abs=0.05)
    assert (found["price_q0.9"] > y["price"]).mean() == pytest.approx(0.9, abs=0.05)


def test_signs_as_a_table_are_in_the_order_of_y(tmp_path):
    X, y = table()
    X = pd.DataFrame(X, columns=list("uvwxyz"))
    y = pd.DataFrame(y)
    named = mixed(TWO, monotone_constraints={"u": {"height": 1}, "v": 0}).fit(X, y)
    matrix = np.zeros((6, 6), dtype=int)
    matrix[0, 5] = 1
    assert_same_bits(mixed(TWO, monotone_constraints=matrix).fit(X, y[["grade", "height"]]), named)
    turned = np.roll(matrix, 1, axis=1)
    assert_same_bits(mixed(TWO, monotone_constraints=turned).fit(X, y[["height", "grade"]]), named)
    rows = {"u": [0, 0, 0, 0, 0, 1]}
    assert_same_bits(mixed(TWO, monotone_constraints=rows).fit(X, y), named)
    named.save_model(tmp_path / "model")
    assert load_model(tmp_path / "model").get_params() == named.get_params()
    # One sign for all outputs of a model without classes.
    several = {"height": "regression", "t1": "binary"}
    model = mixed(several, monotone_constraints=[1, 0, 0, 1, 0, 0]).fit(X.to_numpy(), y)
    assert steps_against(model, X.to_numpy(), 0, "height", 1) == 0
    assert steps_against(model, X.to_numpy(), 3, "t1", 1) == 0


def test_signs_by_name_in_other_estimators():
    X, y = table()
    Y = pd.DataFrame({"a": y["height"], "b": y["n1"]})
    expected = PolyleafRegressor(**PLAIN, monotone_constraints={0: [1, 0]}).fit(X, Y)
    found = PolyleafRegressor(**PLAIN, monotone_constraints={0: {"a": 1}}).fit(X, Y)
    assert_same_bits(found, expected)
    unnamed = PolyleafRegressor(**PLAIN, monotone_constraints={0: {"target_0": 1}}).fit(X, Y.to_numpy())
    assert_same_bits(unnamed, expected)


@pytest.mark.parametrize(
    ("signs", "error", "words"),
    [
        ([1, 0, 0, 0, 0, 0], ValueError, "the softmax of the classes of 'grade': .*name the outputs"),
        ({0: {"grade=a": 1}}, ValueError, "the softmax of the classes of 'grade'"),
        ({0: {"price": 1}}, ValueError, "the quantiles of 'price'"),
        ({0: {"heigt": 1}}, ValueError, r"monotone_constraints\[0\] has the output 'heigt', but .*'grade=a'"),
        ({0: {"height": 2}}, ValueError, r"monotone_constraints\[0\]\['height'\]\[0\] is 2"),
        ({0: {3: 1}}, TypeError, "an output in monotone_constraints"),
        (np.ones((6, 2)), ValueError, r"has shape \(6, 2\)"),
    ],
)
def test_signs_that_do_not_fit_are_named(signs, error, words):
    X, y = table()
    targets = {**TWO, "price": "absolute_error"}
    with pytest.raises(error, match=words):
        mixed(targets, monotone_constraints=signs).fit(X, y)


# --- importance --------------------------------------------------------------------------------------------


def test_importance_by_names():
    X, y = table()
    names = list("uvwxyz")
    model = mixed().fit(pd.DataFrame(X, columns=names), pd.DataFrame(y))
    frame = model.get_importance(per_output=True, as_frame=True)
    assert frame.index.tolist() == names
    classes = [f"grade={one}" for one in "abcde"]
    quantiles = ["price_q0.1", "price_q0.5", "price_q0.9"]
    expected = [*classes, "passed", "height", "visits", "t1", "t2", "t3", *quantiles, "n1", "n2"]
    assert frame.columns.tolist() == expected
    np.testing.assert_array_equal(frame.to_numpy(), model.get_importance(per_output=True))
    assert frame["t1"].idxmax() == "x"
    assert frame["visits"].idxmax() == "w"
    plain = model.get_importance("split", as_frame=True)
    assert plain.columns.tolist() == ["split"]
    np.testing.assert_array_equal(plain["split"], model.get_importance("split"))
    turned = mixed().fit(X, pd.DataFrame(y)[list(y)[::-1]]).get_importance(per_output=True, as_frame=True)
    pd.testing.assert_frame_equal(turned[expected], frame.reset_index(drop=True))
    with pytest.raises(TypeError, match="as_frame must be bool"):
        model.get_importance(as_frame="yes")


def test_importance_of_other_estimators_has_names():
    X, y = table()
    of_classes = PolyleafClassifier(**PLAIN).fit(X, y["grade"]).get_importance(per_output=True, as_frame=True)
    assert of_classes.columns.tolist() == list("abcde")
    assert of_classes.index.tolist() == list(range(6))
    binary = PolyleafClassifier(**PLAIN).fit(X, y["passed"]).get_importance(per_output=True, as_frame=True)
    assert binary.columns.tolist() == ["True"]
    Y = pd.DataFrame({"a": y["height"], "b": y["n1"]})
    assert PolyleafRegressor(**PLAIN).fit(X, Y).get_importance(
        per_output=True, as_frame=True
    ).columns.tolist() == ["a", "b"]


# --- parameters --------------------------------------------------------------------------------------------


def test_parameters_follow_the_conventions(tmp_path):
    X, y = table()
    params = {
        "class_weight": {"grade": {"a": 2.0}},
        "eval_metric": {"grade": ["accuracy"]},
        "monotone_constraints": {0: {"height": 1}},
    }
    model = PolyleafMixed(TWO, n_estimators=3).set_params(**params)
    assert {name: clone(model).get_params()[name] for name in params} == params
    model.fit(X, y).save_model(tmp_path / "model")
    loaded = load_model(tmp_path / "model")
    assert loaded.get_params() == model.get_params()
    assert_same_bits(clone(loaded).fit(X, y), model)
