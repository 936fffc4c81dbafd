"""Models of LightGBM: every row falls into the leaves it has there, and scores are those of float32."""

from __future__ import annotations

import doctest
import io
import sys
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from foreign_models import assert_same_leaves, contributions, raw_scores, table

from polyleaf import PolyleafClassifier, PolyleafRegressor, import_model, load_model

lgb = pytest.importorskip("lightgbm", reason="its models are imported")
pytestmark = pytest.mark.other_threads("LightGBM is compiled code with threads")

OPTIONS = {"num_leaves": 10, "verbose": -1, "num_threads": 1, "min_data_in_leaf": 5}
CATEGORICAL = {"min_data_per_group": 1, "cat_smooth": 1.0, "objective": "regression"}
REGRESSIONS = {
    "regression": "squared_error",
    "regression_l1": "absolute_error",
    "huber": "huber",
    "quantile": "quantile",
    "poisson": "poisson",
    "gamma": "gamma",
    "tweedie": "tweedie",
    "fair": "custom",
    "mape": "custom",
}


def trained(y: Any, X: Any, n_rounds: int = 6, **options: Any) -> Any:
    data = {name: options.pop(name) for name in ("group", "categorical_feature") if name in options}
    return lgb.train(OPTIONS | options, lgb.Dataset(X, y, **data), n_rounds)


def rounding(booster: Any) -> float:
    """What leaves rounded to float32 may make of a sum: half a unit of the last place of each."""
    trees = booster.dump_model()["tree_info"]
    leaves = [booster.get_leaf_output(k, j) for k, one in enumerate(trees) for j in range(one["num_leaves"])]
    return float(len(trees) * np.abs(leaves).max() * 2.0**-24) + 1e-12


def assert_same(booster: Any, X: Any) -> Any:
    """Leaves, raw scores and contributions are the same; return the model."""
    model = import_model(booster.model_to_string().encode())
    assert_same_leaves(booster.predict(X, pred_leaf=True), model.apply(X))
    raw = booster.predict(X, raw_score=True).reshape(len(X), -1)
    np.testing.assert_allclose(raw_scores(model, X), raw, rtol=0, atol=rounding(booster))
    values, expected = contributions(model, X)
    theirs = booster.predict(X, pred_contrib=True).reshape(*values.shape[:2], -1)
    np.testing.assert_allclose(values, theirs[:, :, :-1], rtol=0, atol=10 * rounding(booster))
    np.testing.assert_allclose(expected, theirs[0, :, -1], rtol=0, atol=10 * rounding(booster))
    return model


@pytest.mark.parametrize("objective", REGRESSIONS)
def test_regression(objective: str) -> None:
    X, Y = table(300)
    booster = trained(np.exp(Y[:, 0] / 4), X, objective=objective)
    model = assert_same(booster, X)
    assert isinstance(model, PolyleafRegressor)
    assert model._loss_name == REGRESSIONS[objective]
    np.testing.assert_allclose(model.predict(X), booster.predict(X), rtol=1e-6, atol=1e-7)
    if objective == "quantile":
        assert model.get_params()["quantile_levels"] == [0.9]  # LightGBM's alpha


@pytest.mark.parametrize("objective", ["lambdarank", "rank_xendcg"])
def test_ranks_are_raw_scores(objective: str) -> None:
    X, Y = table(300)
    booster = trained(Y[:, 0] > 0, X, objective=objective, group=[100, 200])
    np.testing.assert_allclose(assert_same(booster, X).predict(X), booster.predict(X), atol=1e-6)


def test_a_function_as_objective_predicts_raw_scores() -> None:
    X, Y = table(300)

    def squared(raw: Any, data: Any) -> tuple[Any, Any]:
        return raw - data.get_label(), np.ones(len(raw))

    booster = trained(Y[:, 0], X, objective=squared)
    np.testing.assert_allclose(assert_same(booster, X).predict(X), booster.predict(X), atol=1e-6)


@pytest.mark.parametrize("objective", ["binary", "cross_entropy"])
def test_two_classes(objective: str) -> None:
    X, Y = table(300)
    booster = trained((Y[:, 0] > 0).astype(int), X, objective=objective)
    model = assert_same(booster, X)
    assert isinstance(model, PolyleafClassifier)
    np.testing.assert_allclose(model.predict_proba(X)[:, 1], booster.predict(X), atol=1e-7)


def test_the_factor_of_the_logistic_function_is_in_the_leaves() -> None:
    X, Y = table(300)
    booster = trained((Y[:, 0] > 0).astype(int), X, objective="binary", sigmoid=1.7)
    model = import_model(booster)
    np.testing.assert_allclose(model.predict_proba(X)[:, 1], booster.predict(X), atol=1e-7)
    raw = 1.7 * booster.predict(X, raw_score=True)
    np.testing.assert_allclose(raw_scores(model, X)[:, 0], raw, atol=1e-6)


def test_classes() -> None:
    X, Y = table(300)
    booster = trained((Y[:, 0] > 0) + 1 * (Y[:, 1] > 0), X, objective="multiclass", num_class=3)
    model = assert_same(booster, X)
    np.testing.assert_allclose(model.predict_proba(X), booster.predict(X), atol=1e-7)
    assert (model.n_estimators_, model._forest.trees_per_round) == (6, 3)
    stages = [booster.predict(X, num_iteration=k + 1) for k in range(6)]
    np.testing.assert_allclose(list(model.staged_predict_proba(X)), stages, atol=1e-7)


def test_importance_is_what_lightgbm_says() -> None:
    X, Y = table(300)
    booster = trained(Y[:, 0], X, objective="regression")
    model = import_model(booster)
    np.testing.assert_array_equal(model.get_importance("split"), booster.feature_importance("split"))
    # The text has six digits of each gain.
    np.testing.assert_allclose(model.get_importance("gain"), booster.feature_importance("gain"), rtol=1e-5)


@pytest.mark.parametrize("options", [{}, {"use_missing": False}], ids=["with gaps", "gaps as zeros"])
def test_missing_values(options: dict[str, Any]) -> None:
    """Where training saw none, NaN counts as 0 in LightGBM; and so it does here."""
    X, Y = table(300)
    for rows in (X, np.nan_to_num(X)):
        booster = trained(Y[:, 0], rows, objective="regression", **options)
        assert_same(booster, X)
        assert_same(booster, np.zeros_like(X))
        assert_same(booster, np.full_like(X, np.nan))


def test_a_split_that_tells_missing_values_from_all_others() -> None:
    """Its threshold is infinite."""
    X, _ = table(300)
    booster = trained(np.isnan(X[:, 0]), X, objective="regression")
    assert "threshold=inf" in booster.model_to_string()
    assert_same(booster, X)
    assert_same(booster, np.full_like(X, np.finfo(float).max))


def test_zeros_as_missing_values_are_refused_unless_they_go_with_their_neighbours() -> None:
    X, Y = table(300)
    X = np.where(np.random.default_rng(1).random(X.shape) < 0.5, 0.0, X)
    booster = trained(Y[:, 0], X, objective="regression", zero_as_missing=True)
    with pytest.raises(ValueError, match="sends zeros elsewhere than the numbers around them"):
        import_model(booster)
    # Amounts: zeros are the least, and here they stay with the small ones.
    X = np.abs(X)
    booster = trained(X[:, 0], X, 1, objective="regression", zero_as_missing=True, num_leaves=3)
    assert_same(booster, X)
    assert_same(booster, np.where(X == 0, 1e-36, X))
    assert_same(booster, np.where(X == 0, np.nan, X))


def test_thresholds_are_compared_as_they_are() -> None:
    X, Y = table(300)
    booster = trained(Y[:, 0], X, objective="regression")
    forest = import_model(booster)._forest
    used = forest.threshold[forest.left >= 0]
    near = np.concatenate([used, np.nextafter(used, np.inf), np.nextafter(used, -np.inf)])
    rows = np.random.default_rng(0).choice(near, (500, X.shape[1]))
    assert_same(booster, rows)


def test_a_large_mean_costs_no_digits() -> None:
    """LightGBM has it in the leaves of the first tree, where float32 would leave one digit of the rest."""
    X, Y = table(300)
    booster = trained(Y[:, 0] + 1e7, X, objective="regression")
    model = import_model(booster)
    np.testing.assert_allclose(model.predict(X), booster.predict(X), rtol=0, atol=1e-6)
    assert abs(float(model._forest.base_score[0]) - 1e7) < 10


@pytest.mark.parametrize("scale", [1e-35, 1e35])
def test_targets_of_extreme_size(scale: float) -> None:
    X, Y = table(300)
    booster = trained(Y[:, 0], X, objective="regression", boost_from_average=False)
    lines = booster.model_to_string().split("\n")
    for number, line in enumerate(lines):
        if line.startswith("leaf_value="):
            values = [repr(float(one) * scale) for one in line.partition("=")[2].split()]
            lines[number] = "leaf_value=" + " ".join(values)
    model = import_model("\n".join(lines).encode())
    np.testing.assert_allclose(model.predict(X) / scale, booster.predict(X), rtol=0, atol=rounding(booster))


def test_trees_of_one_leaf() -> None:
    X, Y = table(300)
    booster = trained(Y[:, 0], X, objective="regression", min_data_in_leaf=290)
    assert np.array_equal(import_model(booster).predict(X), booster.predict(X))


@pytest.mark.parametrize("n_rounds", [1, 5])
def test_random_forests_are_means(n_rounds: int, tmp_path: Path) -> None:
    X, Y = table(300)
    sampled = {"boosting": "rf", "bagging_freq": 1, "bagging_fraction": 0.5}
    for options, y in (
        ({"objective": "regression"}, Y[:, 0] + 100),
        ({"objective": "binary"}, Y[:, 0] > 0),
        ({"objective": "multiclass", "num_class": 3}, (Y[:, 0] > 0) + 1 * (Y[:, 1] > 0)),
    ):
        booster = trained(y, X, n_rounds, **sampled, **options)
        model = import_model(booster)
        predict = model.predict if options["objective"] == "regression" else model.predict_proba
        ours, theirs = predict(X), booster.predict(X)
        np.testing.assert_allclose(ours[:, 1] if theirs.ndim < ours.ndim else ours, theirs, rtol=1e-6)
        model.save_model(tmp_path / "model")
        assert np.array_equal(load_model(tmp_path / "model").predict(X), model.predict(X))
        if n_rounds > 1:
            trees = [booster.predict(X, start_iteration=k, num_iteration=1) for k in range(n_rounds)]
            np.testing.assert_allclose(model.predict_spread(X), np.std(trees, axis=0), atol=1e-6)
            with pytest.raises(ValueError, match="several bags does not go with some of the rounds"):
                model[:1]


def test_early_stopping_is_taken_over() -> None:
    X, Y = table(400)
    data = lgb.Dataset(X[:250], Y[:250, 0])
    booster = lgb.train(
        OPTIONS | {"learning_rate": 0.5},
        data,
        200,
        valid_sets=[lgb.Dataset(X[250:], Y[250:, 0], reference=data)],
        callbacks=[lgb.early_stopping(5, verbose=False)],
        keep_training_booster=True,  # and with it the rounds after the best one
    )
    model = import_model(booster)
    assert model.best_iteration_ + 1 == booster.best_iteration == model.n_estimators_ - 5
    np.testing.assert_allclose(model.predict(X), booster.predict(X), atol=1e-6)


def test_labels_of_classes() -> None:
    X, Y = table(400)
    y = np.array(["no", "perhaps", "yes"])[(Y[:, 0] > 0) + 1 * (Y[:, 1] > 0)]
    theirs = lgb.LGBMClassifier(n_estimators=200, num_leaves=5, learning_rate=0.3, n_jobs=1, verbose=-1)
    stop = lgb.early_stopping(5, verbose=False)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # eval_set has another name since LightGBM 4.7
        theirs.fit(X[:250], y[:250], eval_set=[(X[250:], y[250:])], callbacks=[stop])
    model = import_model(theirs)
    assert model.best_iteration_ + 1 == theirs.best_iteration_ == model.n_estimators_ < 200
    assert model.classes_.tolist() == ["no", "perhaps", "yes"]
    np.testing.assert_allclose(model.predict_proba(X), theirs.predict_proba(X), atol=1e-7)
    assert np.array_equal(model.predict(X), theirs.predict(X))
    renamed = import_model(theirs, classes=["c", "b", "a"])
    np.testing.assert_allclose(renamed.predict_proba(X), model.predict_proba(X)[:, ::-1], rtol=1e-12)


def frame(n_rows: int) -> tuple[Any, Any]:
    """A data frame of words, numbers as categories and numbers, and a target."""
    pd = pytest.importorskip("pandas")
    rng = np.random.default_rng(5)
    codes, numbers, plain = (
        rng.integers(0, 10, n_rows),
        rng.choice([50, 3, 9], n_rows),
        rng.normal(size=n_rows),
    )
    words = np.array(list("nomadsleif"), dtype=object)[codes]
    words[rng.random(n_rows) < 0.1] = None
    X = pd.DataFrame({"word": words, "number": numbers, "plain": plain})
    return X.astype({"word": "category", "number": "category"}), codes % 3 + numbers / 10 + plain


@pytest.mark.parametrize("one_hot", [1, 100], ids=["sets", "one against all"])
def test_categories_of_a_frame(one_hot: int) -> None:
    X, y = frame(400)
    booster = trained(y, X, max_cat_to_onehot=one_hot, **CATEGORICAL)
    model = assert_same(booster, X)
    assert model.feature_names_in_.tolist() == ["word", "number", "plain"]
    turned = X.assign(word=X["word"].cat.reorder_categories(list("smonldifea")))
    assert np.array_equal(model.predict(turned), model.predict(X))
    other = X.assign(word=X["word"].cat.rename_categories({"s": "unseen"}))
    np.testing.assert_allclose(model.predict(other), booster.predict(other), atol=1e-6)


def test_categories_of_an_array_are_numbers() -> None:
    """Of any size, and in any number of bits that a set needs."""
    rng = np.random.default_rng(5)
    codes = rng.choice([0, 7, 31, 32, 64, 1000, 70_000], 400)
    X = np.column_stack([codes, rng.normal(size=400)]).astype(float)
    booster = trained(codes % 3 + X[:, 1], X, categorical_feature=[0], **CATEGORICAL)
    assert_same(booster, X)
    X[:6, 0] = [np.nan, -1, 5, 33, 70_001, 1e9]
    assert_same(booster, X)


def test_which_columns_have_the_values_must_be_told() -> None:
    pd = pytest.importorskip("pandas")
    X, y = frame(400)
    X["number"] = pd.Categorical(X["number"], ordered=True)
    booster = trained(y, X, **CATEGORICAL)
    with pytest.raises(ValueError, match="values of 2 columns, but 1 features are categorical"):
        import_model(booster)


def test_names_of_features_are_taken_over_unless_lightgbm_made_them_up() -> None:
    X, Y = table(300)
    assert not hasattr(import_model(trained(Y[:, 0], X, objective="regression")), "feature_names_in_")


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"objective": "multiclassova", "num_class": 3}, "objective is 'multiclassova"),
        ({"objective": "cross_entropy_lambda"}, "objective is 'cross_entropy_lambda"),
        ({"objective": "regression", "reg_sqrt": True}, "objective is 'regression sqrt'"),
        ({"objective": "regression", "linear_tree": True}, "linear_tree"),
    ],
)
def test_what_cannot_be_the_same_is_refused(options: dict[str, Any], words: str) -> None:
    X, Y = table(300)
    booster = trained((Y[:, 0] > 0) * 1, X, **options)
    with pytest.raises(ValueError, match=words):
        import_model(booster)


def test_a_classifier_of_an_objective_of_its_own_predicts_raw_scores() -> None:
    X, Y = table(300)

    def logistic(y: Any, raw: Any) -> tuple[Any, Any]:
        p = 1 / (1 + np.exp(-raw))
        return p - y, p * (1 - p)

    theirs = lgb.LGBMClassifier(objective=logistic, n_estimators=4, n_jobs=1, verbose=-1).fit(X, Y[:, 0] > 0)
    np.testing.assert_allclose(import_model(theirs).predict(X), theirs.predict(X, raw_score=True), atol=1e-6)


def test_models_of_folds_are_no_model() -> None:
    X, Y = table(300)
    data = lgb.Dataset(X, Y[:, 0])
    folds = lgb.cv(
        OPTIONS | {"objective": "regression"}, data, 2, nfold=2, stratified=False, return_cvbooster=True
    )
    with pytest.raises(TypeError, match="of type CVBooster"):
        import_model(folds["cvbooster"])


def test_the_example_of_the_docstring() -> None:
    result = doctest.testmod(sys.modules["polyleaf.importing.import_model"])
    assert result.attempted > 0
    assert result.failed == 0


def test_what_a_model_can_be_given_as(tmp_path: Path) -> None:
    X, Y = table(300)
    theirs = lgb.LGBMRegressor(n_estimators=4, n_jobs=1, verbose=-1).fit(X, Y[:, 0])
    theirs.booster_.save_model(tmp_path / "model.txt")
    text = (tmp_path / "model.txt").read_text()
    expected = import_model(theirs.booster_).predict(X)
    np.testing.assert_allclose(expected, theirs.predict(X), atol=1e-6)
    windows = text.replace("\n", "\r\n").encode()

    class Slow(io.BytesIO):
        """Gives little at a time, as a socket or a pipe may."""

        def read(self, size: int | None = -1, /) -> bytes:
            return super().read(min(size or 0, 100))

    files = (io.StringIO(text), io.BytesIO(text.encode()), Slow(text.encode()))
    for one in (theirs, tmp_path / "model.txt", *files, windows):
        assert np.array_equal(import_model(one).predict(X), expected)


def test_an_imported_model_is_a_model() -> None:
    """What estimators can do, it can do, too."""
    X, Y = table(300)
    model = import_model(trained(Y[:, 0], X, objective="regression"))
    assert np.array_equal(model[:3].predict(X), list(model.staged_predict(X))[2])
    assert len(model.to_frame()) == len(model._forest.left)
    assert model.get_leaf(0, int(model.apply(X)[0, 0])).count > 0
    assert model.partial_dependence(X, [0]).average.shape[-1] > 0
    assert "PolyleafRegressor" in repr(model)
