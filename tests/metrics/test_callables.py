"""A metric of the user's own is optimised in the direction that it says, or that is known of it."""

import functools
import pickle

import numpy as np
import pytest
from sklearn import metrics as reference
from sklearn.metrics import get_scorer, make_scorer

from polyleaf import PolyleafClassifier, PolyleafRegressor
from polyleaf.callbacks import Callback
from polyleaf.metrics import KnownTargets, make_metric, make_metrics, ndcg_at_k, top1_accuracy

RNG = np.random.default_rng(11)
N = 150
X = RNG.normal(size=(N, 4))
NUMBERS = X @ RNG.normal(size=(4, 2)) + 0.3 * RNG.normal(size=(N, 2))
CLASSES = np.array(["low", "middle", "top"])[np.digitize(X[:, 0] + 0.5 * RNG.normal(size=N), [-0.5, 0.5])]
SIDES = np.where(X[:, 1] + 0.5 * RNG.normal(size=N) > 0, "yes", "no")
LABELS = (X + 0.5 * RNG.normal(size=X.shape) > 0).astype(int)
WEIGHT = RNG.random(50) + 0.1
AVERAGE_PRECISION = make_scorer(
    reference.average_precision_score, response_method=("decision_function", "predict_proba"), pos_label="yes"
)


def one(metric, kind="regression", classes=None):
    (made,) = make_metrics(metric, default="rmse", kind=kind, known=KnownTargets(classes=classes))
    return made


def fitted(y, metric, weight=None, **params):
    make = PolyleafRegressor if np.asarray(y).dtype.kind == "f" else PolyleafClassifier
    model = make(n_estimators=15, max_depth=3, eval_metric=metric, sketch=None, **params)
    return model.fit(X[50:], y[50:], eval_set=(X[:50], y[:50]), eval_sample_weight=weight)


def closeness(y, prediction):
    return -np.abs(y - prediction).mean()


class Closeness:
    greater_is_better = True

    def __call__(self, y, prediction):
        return closeness(y, prediction)


def test_a_function_is_minimised_unless_it_says_otherwise():
    assert not one(closeness).greater_is_better
    made = one(make_metric(closeness, greater_is_better=True))
    assert (made.name, made.greater_is_better) == ("closeness", True)
    made = one(make_metric(closeness, name="close"))
    assert (made.name, made.greater_is_better) == ("close", False)
    assert one(Closeness()).greater_is_better
    assert one(functools.partial(Closeness())).greater_is_better
    assert one(make_metric(reference.r2_score)).greater_is_better is False  # said is said


def test_weights_reach_what_make_metric_made():
    def weighted(y, prediction, sample_weight=None):
        return -1.0 if sample_weight is None else sample_weight.sum()

    made = one(make_metric(weighted, greater_is_better=True))
    assert made.takes_weight
    assert made.function(np.zeros((2, 1)), np.zeros((2, 1)), np.array([1.0, 2.0])) == 3
    assert not one(make_metric(closeness)).takes_weight


def test_early_stopping_and_callbacks_follow_the_direction():
    """The same numbers, up and down."""
    seen = []

    class Look(Callback):
        def before_training(self, state):
            seen.append(dict(state.greater_is_better))

    up = make_metric(closeness, greater_is_better=True, name="close")
    rising = fitted(NUMBERS, up, early_stopping_rounds=3, learning_rate=0.8, callbacks=[Look()])
    falling = fitted(NUMBERS, "mae", early_stopping_rounds=3, learning_rate=0.8)
    values = rising.evals_result_["validation_0"]["close"]
    assert rising.best_iteration_ == falling.best_iteration_ == int(np.argmax(values)) > 0
    assert rising.best_score_ == {"validation_0": {"close": max(values)}}
    assert seen == [{"close": True}]
    wrong = fitted(NUMBERS, closeness, early_stopping_rounds=3, learning_rate=0.8)
    assert wrong.best_iteration_ < rising.best_iteration_


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"function": 3}, "function must be callable; got 3"),
        (
            {"function": closeness, "greater_is_better": "yes"},
            "greater_is_better must be True or False; got 'yes'",
        ),
        ({"function": closeness, "name": 5}, "name must be a str; got 5"),
        ({"function": make_scorer(reference.r2_score)}, "says itself which way is up"),
    ],
)
def test_make_metric_refuses(arguments, message):
    with pytest.raises(TypeError, match=message):
        make_metric(**arguments)


def test_a_direction_is_true_or_false():
    def odd(y, prediction):
        return 0.0

    odd.greater_is_better = "up"
    with pytest.raises(
        TypeError, match="eval_metric 'odd': greater_is_better must be True or False; got 'up'"
    ):
        one(odd)


def test_it_can_be_pickled():
    made = pickle.loads(pickle.dumps(make_metric(closeness, greater_is_better=True, name="close")))
    assert (made.name, made.greater_is_better, made(1.0, 3.0)) == ("close", True, -2)


# --- scikit-learn's ----------------------------------------------------------------------------------------


def test_scores_of_scikit_learn_are_maximised():
    for name in dir(reference):
        function = getattr(reference, name)
        if not callable(function) or isinstance(function, type):
            continue
        if name.endswith("_score") and name != "davies_bouldin_score":
            assert one(function).greater_is_better, name
        elif name.endswith(("_loss", "_error", "_deviance")):
            assert not one(function).greater_is_better, name
    assert one(reference.matthews_corrcoef, "binary").greater_is_better
    assert one(functools.partial(reference.fbeta_score, beta=2), "binary").greater_is_better
    for function in (top1_accuracy, functools.partial(ndcg_at_k, k=2)):
        assert one(function, "multilabel").greater_is_better

    def r2_score(y, prediction):  # a namesake says nothing
        return 0.0

    assert not one(r2_score).greater_is_better


@pytest.mark.parametrize("weight", [None, WEIGHT])
@pytest.mark.parametrize(
    ("y", "function", "own"),
    [
        (NUMBERS, reference.r2_score, "r2"),
        (NUMBERS, make_scorer(reference.r2_score), "r2"),
        (NUMBERS[:, 0], get_scorer("neg_mean_absolute_error"), "mae"),
        (SIDES, reference.accuracy_score, "accuracy"),
        (SIDES, get_scorer("accuracy"), "accuracy"),
        (SIDES, get_scorer("roc_auc"), "auc"),
        (SIDES, get_scorer("neg_log_loss"), "log_loss"),
        (SIDES, AVERAGE_PRECISION, "average_precision"),
        (SIDES, get_scorer("f1_macro"), "f1_macro"),
        (CLASSES, reference.accuracy_score, "accuracy"),
        (CLASSES, functools.partial(reference.f1_score, average="macro"), "f1_macro"),
        (CLASSES, get_scorer("roc_auc_ovr"), "auc"),
        (CLASSES, get_scorer("f1_micro"), "f1_micro"),
        (CLASSES, get_scorer("neg_log_loss"), "log_loss"),
        (LABELS, reference.roc_auc_score, "auc"),
        (LABELS, reference.accuracy_score, "accuracy"),
        (LABELS, get_scorer("f1_macro"), "f1_macro"),
        (LABELS, get_scorer("roc_auc"), "auc"),
    ],
)
def test_scores_and_scorers_agree_with_our_own(y, function, own, weight):
    model = fitted(y, [function, own], weight, early_stopping_rounds=15)
    of_scorer, of_own = model.evals_result_["validation_0"].values()
    name = next(iter(model.evals_result_["validation_0"]))
    sign = -1 if name.startswith("neg_") else 1
    np.testing.assert_allclose(of_scorer, np.multiply(sign, of_own), rtol=1e-9)
    stopped = fitted(y, function, weight, early_stopping_rounds=15)
    assert stopped.best_iteration_ == int(np.argmax(stopped.evals_result_["validation_0"][name]))


def test_a_scorer_sees_the_class_labels():
    """pos_label is one of them."""
    positive = make_scorer(reference.f1_score, pos_label="yes")
    model = fitted(SIDES, positive)
    expected = reference.f1_score(SIDES[:50], model.predict(X[:50]), pos_label="yes")
    assert model.evals_result_["validation_0"]["f1_score"][-1] == pytest.approx(expected)
    for label in ("no", "yes"):
        scorer = make_scorer(
            reference.brier_score_loss,
            greater_is_better=False,
            response_method="predict_proba",
            pos_label=label,
        )
        model = fitted(SIDES, scorer)
        last = model.evals_result_["validation_0"]["neg_brier_score_loss"][-1]
        assert last == pytest.approx(scorer(model, X[:50], SIDES[:50]))


@pytest.mark.parametrize(
    ("y", "options"),
    [
        (CLASSES, {"average": "macro", "labels": ["low", "top"]}),
        (SIDES, {"pos_label": "yes"}),
        (SIDES, {"pos_label": "no"}),
        (SIDES, {"average": "macro"}),
        (SIDES == "yes", {}),
        (np.where(SIDES == "yes", 2, 1), {"pos_label": 1}),
    ],
)
@pytest.mark.parametrize("named", [False, True])
def test_a_partial_function_sees_the_class_labels(y, options, named):
    """`labels` and `pos_label` are some of them."""
    function = functools.partial(reference.f1_score, **options)
    model = fitted(y, make_metric(function, greater_is_better=True, name="f1") if named else function)
    (values,) = model.evals_result_["validation_0"].values()
    assert values[-1] == pytest.approx(reference.f1_score(y[:50], model.predict(X[:50]), **options))
    assert values[-1] > 0.5


@pytest.mark.parametrize("y", [SIDES, np.where(SIDES == "yes", 2, 1)])
@pytest.mark.parametrize("objective", [None, "cross_entropy"])
def test_the_second_of_two_classes_is_positive_unless_another_is_named(y, objective):
    for function in (reference.f1_score, functools.partial(reference.fbeta_score, beta=1)):
        model = fitted(y, function, objective=objective)
        (values,) = model.evals_result_["validation_0"].values()
        second = np.unique(y)[1]
        expected = reference.f1_score(y[:50] == second, model.predict(X[:50]) == second)
        assert values[-1] == pytest.approx(expected)


def test_a_scorer_of_decisions_is_refused_by_name():
    scorer = make_scorer(reference.hinge_loss, greater_is_better=False, response_method="decision_function")
    with pytest.raises(
        ValueError, match=r"make_scorer\(hinge_loss.*not what decision_function returns.*predict_proba"
    ):
        fitted(SIDES, scorer)


def test_what_needs_the_estimator_is_refused_by_name():
    several = reference.check_scoring(PolyleafClassifier(), ["accuracy", "f1_macro"])
    with pytest.raises(
        TypeError, match="_MultimetricScorer of scikit-learn, which needs the fitted estimator"
    ):
        fitted(CLASSES, several)
