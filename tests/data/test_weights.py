"""Weights of rows and cells, classes and outputs; targets that were not observed."""

import numpy as np
import pandas as pd
import pytest
from sklearn.metrics import accuracy_score, mean_pinball_loss, r2_score
from sklearn.model_selection import GridSearchCV
from sklearn.utils.class_weight import compute_class_weight

from polyleaf import PolyleafClassifier, PolyleafMixed, PolyleafRegressor, load_model
from polyleaf.data.weights import Weights, rows_with_weight
from polyleaf.metrics import make_metrics

ARRAYS = ("feature", "threshold", "left", "missing_left", "gain", "cover", "count", "values", "base_score")
STRATEGIES = ["multi_output_tree", "one_output_per_tree"]


def targets(n=400, d=3, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 5))
    return X, np.c_[X[:, 0] + X[:, 1] ** 2, 3 * X[:, 2], X[:, 0] * X[:, 3]][:, :d] + 0.1 * rng.normal(
        size=(n, d)
    )


def labels(n=400, seed=0):
    X, y = targets(n, seed=seed)
    return X, (y > 0).astype(int)


def assert_same_forest(one, other):
    for name in ARRAYS:
        np.testing.assert_array_equal(getattr(one._forest, name), getattr(other._forest, name), err_msg=name)


def model(kind, **settings):
    estimator = PolyleafRegressor if kind == "regression" else PolyleafClassifier
    return estimator(**{"n_estimators": 8, "min_samples_leaf": 5, "random_state": 0, **settings})


def holes(shape, seed=1, share=0.3):
    return np.random.default_rng(seed).random(shape) < share


# --- rows and cells ----------------------------------------------------------------------------------------


def test_rows_without_weight_do_not_count():
    np.testing.assert_array_equal(rows_with_weight(np.array([2.0, 0.0, 1.0])), [True, False, True])
    cells = np.array([[2.0, 0.0], [0.0, 0.0], [1.0, 1.0]])
    np.testing.assert_array_equal(rows_with_weight(cells), [True, False, True])
    assert rows_with_weight(None) is None
    assert rows_with_weight(np.ones((2, 2))) is None


def test_equal_weights_of_one_are_no_weights():
    """So that they give the same bits."""
    assert Weights.of(np.ones(3)).are_ones
    assert Weights.of(np.ones((3, 2))).are_ones
    assert Weights.of(None).whole() is None
    assert not Weights.of(np.array([1.0, 2.0])).are_ones


def test_cell_weights_are_taken_apart_and_put_together():
    cells = np.array([[1.0, 3.0], [2.0, 0.0], [1.0, 1.0]])
    weights = Weights.of(cells)
    np.testing.assert_array_equal(weights.row, [2, 1, 1])
    np.testing.assert_allclose(weights.whole(), cells)


@pytest.mark.parametrize("strategy", STRATEGIES)
@pytest.mark.parametrize("kind", ["regression", "multilabel"])
def test_equal_columns_of_weights_are_weights_of_rows(kind, strategy):
    X, y = targets() if kind == "regression" else labels()
    weight = np.random.default_rng(3).uniform(0.2, 3, size=len(X))
    one = model(kind, multi_strategy=strategy).fit(X, y, weight)
    assert_same_forest(
        one, model(kind, multi_strategy=strategy).fit(X, y, np.repeat(weight[:, None], 3, axis=1))
    )


def test_cell_weights_move_the_leaves_of_their_output_only():
    """Without splits, each output predicts its own weighted mean."""
    X, y = targets(50)
    weight = np.random.default_rng(4).uniform(0.1, 2, size=y.shape)
    fitted = model("regression", n_estimators=1, min_samples_leaf=50).fit(X, y, weight)
    np.testing.assert_allclose(fitted.predict(X)[0], np.average(y, axis=0, weights=weight), rtol=1e-6)


def test_leaf_values_are_newton_steps_with_cell_weights():
    X, y = labels(300)
    weight = np.random.default_rng(5).uniform(0, 2, size=y.shape)
    fitted = model("multilabel", n_estimators=1, base_score=0.0, learning_rate=1.0).fit(X, y, weight)
    leaves = fitted.apply(X)[:, 0]
    raw = fitted.decision_function(X)
    assert len(np.unique(leaves)) > 3
    for leaf in np.unique(leaves):
        rows = leaves == leaf
        gradient = (weight[rows] * (0.5 - y[rows])).sum(axis=0)
        hessian = (weight[rows] * 0.25).sum(axis=0)
        np.testing.assert_allclose(raw[rows][0], -gradient / (hessian + 1), rtol=1e-5)


# --- missing targets ---------------------------------------------------------------------------------------

OPTIONS = [
    {},
    {"multi_strategy": "one_output_per_tree"},
    {"subsample": 0.7},
    {"subsample": 0.7, "sampling_method": "gradient_based"},
    {"colsample_bynode": 0.6},
    {"sketch": "random_projection", "sketch_size": 2},
    {"sketch": "top_outputs", "sketch_size": 2},
    {"sparse_leaves": 2},
    {"sparse_leaves": 2, "sparse_mode": "unrestricted"},
    {"max_bins": None},
    {"output_weight": [1.0, 2.0, 0.5]},
    {"objective": lambda y, raw: (raw - y, np.ones(raw.shape))},
]


@pytest.mark.parametrize("options", OPTIONS, ids=lambda options: "-".join(map(str, options)) or "plain")
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("kind", ["regression", "multilabel"])
def test_a_missing_target_is_a_cell_of_weight_0(kind, weighted, options):
    X, y = targets() if kind == "regression" else labels()
    missing = holes(y.shape)
    row_weight = np.random.default_rng(2).uniform(0.5, 2, size=len(X)) if weighted else np.ones(len(X))
    by_weight = np.where(missing, 0.0, row_weight[:, None])
    with_nan = np.where(missing, np.nan, y)
    one = model(kind, **options).fit(X, with_nan, row_weight if weighted else None)
    assert one._forest.n_trees > 0
    assert (one._forest.left >= 0).any()
    assert_same_forest(one, model(kind, **options).fit(X, y, by_weight))


@pytest.mark.parametrize("kind", ["regression", "multilabel"])
def test_what_a_missing_target_would_have_been_does_not_matter(kind):
    X, y = targets() if kind == "regression" else labels()
    weight = np.where(holes(y.shape), 0.0, 1.0)
    other = np.where(weight > 0, y, 1e8 if kind == "regression" else 1 - y)
    assert_same_forest(model(kind).fit(X, y, weight), model(kind).fit(X, other, weight))


def test_rows_without_any_target_do_not_count():
    X, y = targets()
    gone = holes(len(X))
    with_nan = np.where(gone[:, None], np.nan, y)
    assert_same_forest(model("regression").fit(X, with_nan), model("regression").fit(X[~gone], y[~gone]))
    assert_same_forest(
        model("regression").fit(X, with_nan[:, 0]), model("regression").fit(X[~gone], y[~gone, 0])
    )


def test_threads_change_nothing_with_missing_targets():
    X, y = targets(3_000)
    y = np.where(holes(y.shape), np.nan, y)
    forests = [model("regression", n_jobs=n).fit(X, y) for n in (1, 2, 4)]
    assert_same_forest(forests[0], forests[1])
    assert_same_forest(forests[0], forests[2])


def test_missing_targets_beat_dropping_their_rows():
    """What the other targets of a row say is not thrown away."""
    X, y = targets(1_500)
    test = slice(1_000, None)
    with_nan = np.where(holes(y.shape, share=0.4), np.nan, y)[:1_000]
    whole = ~np.isnan(with_nan).any(axis=1)
    settings = {"n_estimators": 100}
    all_rows = model("regression", **settings).fit(X[:1_000], with_nan)
    some_rows = model("regression", **settings).fit(X[:1_000][whole], with_nan[whole])
    error = [np.mean((one.predict(X[test]) - y[test]) ** 2) for one in (all_rows, some_rows)]
    assert error[0] < 0.8 * error[1]


def test_metrics_skip_what_was_not_observed():
    X, y = targets()
    with_nan = np.where(holes(y.shape), np.nan, y)
    metrics = ["rmse", "mse", "mae", "r2"]
    fitted = model("regression", eval_metric=metrics).fit(X, y, eval_set=(X, with_nan))
    error = (fitted.predict(X) - with_nan)[~np.isnan(with_nan)]
    result = {name: values[-1] for name, values in fitted.evals_result_["validation_0"].items()}
    assert result["mse"] == pytest.approx(np.mean(error**2))
    assert result["rmse"] == pytest.approx(np.sqrt(np.mean(error**2)))
    assert result["mae"] == pytest.approx(np.mean(np.abs(error)))
    explained = 1 - np.nanmean((fitted.predict(X) - with_nan) ** 2, axis=0) / np.nanvar(with_nan, axis=0)
    assert result["r2"] == pytest.approx(explained.mean())


def test_metrics_of_labels_skip_what_was_not_observed():
    y = np.array([[1.0, 0.0, 1.0], [0.0, 1.0, 0.0]])
    weight = np.array([[1.0, 1.0, 0.0], [2.0, 0.0, 2.0]])
    p = np.array([[0.8, 0.4, 0.1], [0.6, 0.9, 0.2]])
    values = {
        metric.name: metric.function(y, p, weight)
        for metric in make_metrics(
            ["binary_cross_entropy", "accuracy", "error", "top1_accuracy", "precision@2"],
            default="",
            kind="multilabel",
        )
    }
    losses = -np.log([0.8, 0.6, 0.4, 0.8])
    assert values["binary_cross_entropy"] == pytest.approx(np.average(losses, weights=[1, 1, 2, 2]))
    assert values["accuracy"] == pytest.approx(1 / 3)  # the first row, of half the weight
    assert values["error"] == pytest.approx(2 / 3)
    assert values["top1_accuracy"] == pytest.approx(1 / 3)
    assert values["precision@2"] == pytest.approx(0.5 / 3)


def test_a_callable_metric_gets_the_weights_or_is_refused():
    X, y = targets()
    with_nan = np.where(holes(y.shape), np.nan, y)

    def blind(y, prediction):
        return 0.0

    def seeing(y, prediction, sample_weight=None):
        assert sample_weight.shape == y.shape
        return float(np.average((y - prediction) ** 2, weights=sample_weight))

    with pytest.raises(ValueError, match="'blind' takes no sample_weight"):
        model("regression", eval_metric=blind).fit(X, y, eval_set=(X, with_nan))
    fitted = model("regression", eval_metric=["mse", seeing]).fit(X, y, eval_set=(X, with_nan))
    result = fitted.evals_result_["validation_0"]
    np.testing.assert_allclose(result["seeing"], result["mse"])


@pytest.mark.parametrize("params", [{}, {"n_bags": 2}, {"n_estimators": 3, "early_stopping_rounds": 2}])
def test_a_callable_metric_is_refused_also_where_rows_are_held_out(params):
    """It would see 0 in the place of a target that is missing, and no weights; no callback is called yet."""
    X, y = targets()
    with_nan = np.where(holes(y.shape), np.nan, y)
    made = model("regression", eval_metric=["mae", lambda y, prediction: 0.0])
    made.set_params(n_estimators="auto", callbacks=[lambda state: pytest.fail("a round was done")])
    made.set_params(**params)
    for given in ((X, with_nan), (X, y, np.arange(1.0, len(X) + 1))):
        with pytest.raises(ValueError, match=r"^y has weights or missing .* takes no sample_weight"):
            made.fit(*given)
    mixed = PolyleafMixed({"a": "regression", "b": "regression"}, eval_metric={"a": lambda y, p: 0.0})
    with pytest.raises(ValueError, match="y has weights or missing"):
        mixed.fit(X, {"a": with_nan[:, 0], "b": y[:, 1]})


def test_early_stopping_with_missing_targets():
    X, y = targets(600)
    with_nan = np.where(holes(y.shape), np.nan, y)
    fitted = model("regression", n_estimators=300, early_stopping_rounds=5).fit(
        X[:400], with_nan[:400], eval_set=(X[400:], with_nan[400:])
    )
    assert 0 < fitted.best_iteration_ < 299


def test_a_model_of_missing_targets_is_saved(tmp_path):
    X, y = targets()
    fitted = model("regression", output_weight=[1, 2, 3]).fit(X, np.where(holes(y.shape), np.nan, y))
    fitted.save_model(tmp_path / "model")
    np.testing.assert_array_equal(load_model(tmp_path / "model").predict(X), fitted.predict(X))


# --- classes -----------------------------------------------------------------------------------------------


def three_classes(seed=0):
    X, y = targets(seed=seed)
    return X, np.array(["a", "b", "c"])[(y[:, 0] > 0.5).astype(int) + (y[:, 0] > 2)]


def test_balanced_classes_are_row_weights():
    X, y = three_classes()
    factor = dict(
        zip("abc", compute_class_weight("balanced", classes=np.array(list("abc")), y=y), strict=True)
    )
    weight = np.array([factor[label] for label in y])
    one = model("multiclass", class_weight="balanced").fit(X, y)
    assert_same_forest(one, model("multiclass").fit(X, y, weight))
    assert_same_forest(one, model("multiclass", class_weight=factor).fit(X, y))


def test_integer_class_weights_are_repeated_rows():
    X, y = three_classes()
    repeats = np.where(y == "b", 3, 1)
    settings = {"min_samples_leaf": 1, "max_leaves": 8}
    one = model("multiclass", class_weight={"b": 3}, **settings).fit(X, y)
    other = model("multiclass", **settings).fit(np.repeat(X, repeats, axis=0), np.repeat(y, repeats))
    np.testing.assert_allclose(one.predict_proba(X), other.predict_proba(X), rtol=1e-5)


@pytest.mark.parametrize("weighted", [False, True])
def test_two_classes_and_labels_have_the_same_weights(weighted):
    X, y = labels()
    weight = np.random.default_rng(0).uniform(0.5, 2, len(X)) if weighted else None
    one = model("binary", class_weight={0: 1.0, 1: 4.0}).fit(X, y[:, 0], weight)
    factor = np.where(y[:, 0] == 1, 4.0, 1.0)
    assert_same_forest(one, model("binary").fit(X, y[:, 0], factor if weight is None else weight * factor))
    cells = np.where(y == 1, 4.0, 1.0)
    joint = model("multilabel", class_weight={1: 4.0}).fit(X, y, weight)
    expected = cells if weight is None else weight[:, None] * cells
    assert_same_forest(joint, model("multilabel").fit(X, y, expected))
    each = model("multilabel", class_weight=[{1: 4.0}] * 3).fit(X, y, weight)
    assert_same_forest(joint, each)


def test_balanced_labels_have_the_same_weight_on_both_sides():
    X, y = labels()
    y[:, 1] = 0  # a label that never occurs
    y[:5, 1] = 1
    factor = [compute_class_weight("balanced", classes=np.array([0, 1]), y=column) for column in y.T]
    cells = np.column_stack([factor[j][y[:, j]] for j in range(3)])
    assert_same_forest(
        model("multilabel", class_weight="balanced").fit(X, y), model("multilabel").fit(X, y, cells)
    )


def test_balanced_labels_with_missing_ones():
    X, y = labels()
    with_nan = np.where(holes(y.shape), np.nan, y)
    fitted = model("multilabel", class_weight="balanced").fit(X, with_nan)
    assert_same_forest(
        fitted, model("multilabel", class_weight="balanced").fit(X, y, (~np.isnan(with_nan)).astype(float))
    )
    # Base scores of balanced labels are even odds.
    np.testing.assert_allclose(fitted._forest.base_score, 0.0, atol=1e-6)


# --- outputs -----------------------------------------------------------------------------------------------


def test_an_output_of_share_0_has_no_say_in_the_structure():
    X, y = targets()
    fitted = model("regression", output_weight=[1, 0, 0], sketch=None, learning_rate=0.1).fit(X, y)
    alone = model("regression", learning_rate=0.1).fit(X, y[:, 0])
    for name in ("feature", "threshold", "left"):
        np.testing.assert_array_equal(getattr(fitted._forest, name), getattr(alone._forest, name))
    np.testing.assert_allclose(fitted.predict(X)[:, 0], alone.predict(X), rtol=1e-6)
    # The others still learn what the leaves know.
    assert np.mean((fitted.predict(X)[:, 2] - y[:, 2]) ** 2) < 0.95 * y[:, 2].var()


def test_equal_shares_change_nothing_and_large_ones_pull():
    X, y = targets(1_000)
    assert_same_forest(model("regression").fit(X, y), model("regression", output_weight=[7, 7, 7]).fit(X, y))
    errors = []
    for share in (1, 30):
        fitted = model("regression", n_estimators=20, output_weight=[share, 1, 1]).fit(X, y)
        errors.append(np.mean((fitted.predict(X) - y) ** 2, axis=0))
    assert errors[1][0] < 0.95 * errors[0][0]
    assert errors[1][1] > errors[0][1]


# --- bad input ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("kind", "weight", "words"),
    [
        ("regression", np.ones((400, 2)), r"shape \(400, 2\); it must hold one weight per row"),
        ("regression", np.ones((400, 3, 1)), "shape"),
        ("regression", np.full((400, 3), -1.0), "must be finite and >= 0"),
        ("regression", np.full((400, 3), np.nan), "must be finite and >= 0"),
        ("regression", np.zeros((400, 3)), "is zero in all rows"),
        ("regression", np.ones((400, 3)) * [1, 0, 1], "column 1 of y has no observation"),
        ("multiclass", np.ones((400, 3)), r"shape \(400, 3\)"),
    ],
)
def test_bad_cell_weights_are_refused(kind, weight, words):
    X, y = targets() if kind == "regression" else three_classes()
    with pytest.raises(ValueError, match=words):
        model(kind).fit(X, y, weight)


def test_targets_without_observation_are_refused():
    X, y = targets()
    with pytest.raises(ValueError, match="y holds no observation"):
        model("regression").fit(X, y * np.nan)
    with pytest.raises(ValueError, match="y holds no observation"):
        model("regression").fit(X, y[:, 0] * np.nan)
    with pytest.raises(ValueError, match="column 2 of y has no observation"):
        model("regression").fit(X, y * [1, 1, np.nan])
    with pytest.raises(ValueError, match=r"y of eval_set\[0\] holds no observation"):
        model("regression").fit(X, y, eval_set=(X, y * np.nan))


@pytest.mark.parametrize(
    ("value", "error", "words"),
    [
        ("even", ValueError, "class_weight must be"),
        (3, TypeError, "class_weight must be"),
        ({"a": 0}, ValueError, "weight of 'a' must be a finite number > 0"),
        ({"a": np.inf}, ValueError, "weight of 'a'"),
        ({"z": 1.0}, ValueError, "class 'z', which y does not hold"),
        ([{"a": 1.0}], ValueError, "class_weight must be a dict"),
    ],
)
def test_bad_class_weights_are_refused(value, error, words):
    with pytest.raises(error, match=words):
        model("multiclass", class_weight=value).fit(*three_classes())


def test_class_weights_need_one_dict_per_label():
    with pytest.raises(ValueError, match="2 entries, but y has 3 labels"):
        model("multilabel", class_weight=[{1: 2.0}] * 2).fit(*labels())


@pytest.mark.parametrize(
    ("value", "words"),
    [
        ([1, 2], "output_weight has 2 values, but the model has 3"),
        ([1, -1, 1], ">= 0"),
        ([0, 0, 0], "not all of them 0"),
        ([1, np.nan, 1], "output_weight"),
        ("abc", "output_weight"),
        (2.0, "output_weight"),
    ],
)
def test_bad_output_weights_are_refused(value, words):
    with pytest.raises((TypeError, ValueError), match=words):
        model("regression", output_weight=value).fit(*targets())


def test_output_weight_needs_a_score_with_shares():
    X, y = three_classes()
    with pytest.raises(ValueError, match="hessian='exact'"):
        model("multiclass", output_weight=[1, 2, 3], hessian="exact").fit(X, y)


# --- scores ------------------------------------------------------------------------------------------------


def test_scores_leave_out_what_was_not_observed():
    X, y = targets()
    fitted = model("regression").fit(X, y)
    assert fitted.score(X, y) == pytest.approx(r2_score(y, fitted.predict(X)))
    weight = np.random.default_rng(0).uniform(0.5, 2, len(X))
    assert fitted.score(X, y, weight) == pytest.approx(r2_score(y, fitted.predict(X), sample_weight=weight))
    missing = holes(y.shape)
    each = [r2_score(y[~gap, j], fitted.predict(X)[~gap, j]) for j, gap in enumerate(missing.T)]
    with_nan = np.where(missing, np.nan, y)
    assert fitted.score(X, with_nan) == pytest.approx(np.mean(each))
    assert fitted.score(X, y, (~missing).astype(float)) == pytest.approx(np.mean(each))
    search = GridSearchCV(model("regression"), {"max_depth": [1, 3]}, cv=3).fit(X, with_nan)
    assert search.best_params_ == {"max_depth": 3}
    assert np.isfinite(search.best_score_)


def test_accuracy_leaves_out_labels_that_were_not_observed():
    X, y = labels()
    fitted = model("multilabel").fit(X, y)
    assert fitted.score(X, y) == pytest.approx((fitted.predict(X) == y).all(axis=1).mean())
    missing = holes(y.shape)
    right = ((fitted.predict(X) == y) | missing).all(axis=1)
    weight = (~missing).mean(axis=1)
    assert fitted.score(X, np.where(missing, np.nan, y)) == pytest.approx(np.average(right, weights=weight))


@pytest.mark.parametrize("weighted", [False, True])
def test_the_score_of_quantiles_is_that_of_each_level(weighted):
    """As scikit-learn's D2 of the pinball loss, where its constant is the best one; holes do not count."""
    X, y = targets()
    levels = [0.25, 0.5, 0.75]
    fitted = model("regression", objective="quantile", quantile_levels=levels).fit(X, y)
    weight = np.random.default_rng(1).integers(1, 4, len(y)) if weighted else np.ones(len(y), int)
    missing = holes(y.shape)
    prediction = fitted.predict(X)
    expected = []
    for j in range(y.shape[1]):
        there = ~missing[:, j]
        rows = np.repeat(np.flatnonzero(there), weight[there])
        for place, level in enumerate(levels):
            values, guess = y[rows, j], prediction[rows, 3 * j + place]
            constants = [
                mean_pinball_loss(values, np.full(len(rows), c), alpha=level) for c in np.unique(values)
            ]
            expected.append(1 - mean_pinball_loss(values, guess, alpha=level) / min(constants))
    score = fitted.score(X, np.where(missing, np.nan, y), weight if weighted else None)
    assert score == pytest.approx(np.mean(expected), rel=1e-12)


def test_the_score_of_a_quantile_that_is_right():
    """1 for a target that does not vary and is predicted; 0 where it is missed."""
    X, y = targets()
    constant = np.full(len(y), 3.0)
    fitted = model("regression", objective="quantile", quantile_levels=0.3).fit(X, constant)
    assert fitted.score(X, constant) == 1.0
    assert fitted.score(X, constant + 1) == 0.0


# --- sizes -------------------------------------------------------------------------------------------------


def test_weights_out_of_range_are_refused_before_any_work():
    X, y = targets()
    cells = np.ones(y.shape)
    cells[:, 0] = 1e50
    with pytest.raises(ValueError, match="the weights of row 0 differ too much"):
        model("regression").fit(X, y, cells)
    X, y = three_classes()
    with pytest.raises(ValueError, match="class_weight times sample_weight is too large"):
        model("multiclass", class_weight={"a": 1e200}).fit(X, y, np.full(len(X), 1e120))


def test_targets_without_observation_are_refused_by_name():
    X, y = targets()
    frame = pd.DataFrame(y * [1, np.nan, 1], columns=["u", "v", "w"])
    with pytest.raises(ValueError, match="column 'v' of y has no observation"):
        model("regression").fit(X, frame)


@pytest.mark.parametrize("sketch", ["top_outputs", "random_sampling"])
def test_sketches_count_weights_as_repeated_rows(sketch):
    X, y = targets()
    weight = np.random.default_rng(0).integers(1, 4, len(X))
    settings = {"sketch": sketch, "sketch_size": 1, "min_samples_leaf": 1, "max_leaves": 8}
    one = model("regression", **settings).fit(X, y, weight)
    repeated = model("regression", **settings).fit(np.repeat(X, weight, axis=0), np.repeat(y, weight, axis=0))
    np.testing.assert_allclose(one.predict(X), repeated.predict(X), rtol=1e-5, atol=1e-6)


def test_an_output_of_share_0_does_not_go_with_sparse_leaves():
    X, y = targets()
    with pytest.raises(ValueError, match="output_weight with a 0 does not go with sparse_leaves=1"):
        model("regression", output_weight=[0, 1, 1], sparse_leaves=1).fit(X, y)


def test_rows_next_to_one_of_enormous_weight_keep_their_leaf():
    """A leaf of one row of weight 1e6 says what that row does, though another row weighs 1e100."""
    X, y, weight = np.ones((17, 1)), np.zeros(17), np.ones(17)
    X[13], weight[13] = 0.0, 1e6
    y[16], weight[16] = 1.0, 1e100
    model = PolyleafRegressor(n_estimators=1, learning_rate=1.0, min_samples_leaf=1, reg_lambda=1.0)
    predicted = model.fit(X, y, weight).predict(X)
    np.testing.assert_allclose(predicted, np.where(X[:, 0] == 0, 0.0, 1.0), atol=1e-5)


# --- cells by label ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("names", [(0, 1, 2), (7, 5, 6), ("a", 1, 2.5)])
def test_cell_weights_are_matched_by_labels_of_any_type(names):
    X, Y = targets()
    cells = np.random.default_rng(3).uniform(0.1, 2, size=Y.shape)
    expected = model("regression").fit(X, Y, cells)
    y = pd.DataFrame(dict(zip(names, Y.T, strict=True)))
    turned = {names[j]: cells[:, j] for j in (2, 0, 1)}
    for weight in (turned, pd.DataFrame(turned), cells, pd.DataFrame(cells)):
        found = model("regression").fit(X, y, weight)
        assert_same_forest(found, expected)
        assert found.score(X, y, weight) == expected.score(X, Y, cells)


def test_numbers_of_columns_are_understood_beside_any_y():
    X, Y = targets()
    cells = np.random.default_rng(3).uniform(0.1, 2, size=Y.shape)
    expected = model("regression").fit(X, Y, cells)
    turned = {j: cells[:, j] for j in (2, 0, 1)}
    for weight in (turned, pd.DataFrame(turned), pd.DataFrame(cells)):
        assert_same_forest(model("regression").fit(X, Y, weight), expected)
    named = pd.DataFrame(Y, columns=list("abc"))
    assert_same_forest(model("regression").fit(X, named, pd.DataFrame(cells)), expected)
    with pytest.raises(ValueError, match="it has 2, 0, 1, which y does not have, and it lacks 'a', 'b', 'c'"):
        model("regression").fit(X, named, pd.DataFrame(turned))


def test_labels_that_y_does_not_have_are_refused():
    X, Y = targets()
    weight = pd.DataFrame(np.ones_like(Y), columns=list("abc"))
    with pytest.raises(
        ValueError, match="sample_weight has the columns 'a', 'b', 'c', but those of y have no"
    ):
        model("regression").fit(X, Y, weight)
    with pytest.raises(ValueError, match="it has 'a', 'b', 'c', which y does not have, and it lacks 0, 1, 2"):
        model("regression").fit(X, pd.DataFrame(Y), weight)
    with pytest.raises(ValueError, match=r"shape \(400, 2\); it must hold one weight per row"):
        model("regression").fit(X, Y, weight[["a", "b"]])


@pytest.mark.parametrize("n_classes", [2, 3])
def test_the_score_of_classes_takes_the_weights_of_fit(n_classes):
    X, y = three_classes()
    y = np.unique(y, return_inverse=True)[1] % n_classes
    weight = np.random.default_rng(3).uniform(size=len(y))
    fitted = model("multiclass").fit(X, y, pd.DataFrame({"w": weight}))
    expected = accuracy_score(y, fitted.predict(X), sample_weight=weight)
    for given in (weight, weight[:, np.newaxis], pd.DataFrame({"w": weight}), {"w": weight}):
        assert fitted.score(X, pd.DataFrame({"y": y}), given) == expected
        assert fitted.score(X, y.tolist(), given) == expected
    unseen = np.where(np.arange(len(y)) < 50, 9, y)  # wrong wherever it is
    assert fitted.score(X, unseen) == accuracy_score(unseen, fitted.predict(X))
    with pytest.raises(ValueError, match="sample_weight must be finite and >= 0"):
        fitted.score(X, y, -weight)
