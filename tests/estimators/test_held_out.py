"""Rounds by rows that are held out of the training rows, and a model of all rows in the end."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse
from sklearn.base import clone
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from polyleaf import BinnedTable, PolyleafClassifier, PolyleafMixed, PolyleafRegressor, cv, load_model
from polyleaf.callbacks import Checkpoint, EarlyStopping, LearningRateSchedule, TimeLimit
from polyleaf.params.table import AUTO_FEW_ROWS, AUTO_FIXED_ROUNDS, AUTO_PATIENCE

pytestmark = pytest.mark.cpu_only("the rows are chosen on the host; the GPU's own suite fits with them")

RNG = np.random.default_rng(7)
FEW, MANY = 300, AUTO_FEW_ROWS  # on both sides of the number of rows from which a row is held out once


def table(n_rows: int) -> tuple[Any, Any]:
    X = RNG.normal(size=(n_rows, 4)).round(3)
    Y = np.column_stack([X[:, 0] * X[:, 1], np.sin(2 * X[:, 2])]) + 0.3 * RNG.normal(size=(n_rows, 2))
    return X, Y


X, Y = table(MANY)
SMALL = {"learning_rate": 0.3, "max_depth": 3}


def auto(**params: Any) -> PolyleafRegressor:
    return PolyleafRegressor(**{"n_estimators": "auto", **SMALL, **params})


def saved(model: Any, path: Path) -> bytes:
    model.save_model(path)
    return path.read_bytes()


@pytest.mark.parametrize("n_rows", [FEW, MANY])
def test_no_unit_of_a_target_counts(n_rows: int) -> None:
    """A target in thousandths is the same target: the rounds are the same, and so are the trees."""
    units = np.array([1.0, 1024.0, 1.0, 1.0])[: Y.shape[1]]
    model, other = auto().fit(X[:n_rows], Y[:n_rows]), auto().fit(X[:n_rows], Y[:n_rows] * units)
    assert other.n_estimators_ == model.n_estimators_
    np.testing.assert_allclose(other.predict(X), model.predict(X) * units, rtol=1e-9, atol=1e-9)
    rmse, relative = (np.array(other.evals_result_["held_out"][name]) for name in ("rmse", "rrmse"))
    np.testing.assert_allclose(relative, model.evals_result_["held_out"]["rrmse"], rtol=1e-9)
    assert not np.allclose(rmse, model.evals_result_["held_out"]["rmse"], rtol=0.1)


def test_units_count_where_they_are_asked_for() -> None:
    for params in ({"eval_metric": "rmse"}, {"scale_targets": False}):
        assert list(auto(**params).fit(X, Y).evals_result_["held_out"]) == ["rmse"]
    assert list(auto().fit(X, Y[:, 0]).evals_result_["held_out"]) == ["rmse"]
    watched = auto().fit(X, Y, eval_set=(X[:50], Y[:50]))
    assert list(watched.evals_result_["validation_0"]) == ["rmse"]


@pytest.mark.parametrize("n_rows", [FEW, MANY])
def test_all_rows_are_trained_on_for_the_rounds_that_held_out_rows_ask_for(n_rows: int) -> None:
    model = auto().fit(X[:n_rows], Y[:n_rows])
    assert list(model.evals_result_["held_out"]) == ["rmse", "rrmse"]
    curve = model.evals_result_["held_out"]["rrmse"]
    assert model.n_estimators_ == model.best_iteration_ + 1 == int(np.argmin(curve)) + 1
    assert len(curve) == model.n_estimators_ + AUTO_PATIENCE
    assert model.best_score_["held_out"]["rrmse"] == min(curve)
    plain = PolyleafRegressor(n_estimators=model.n_estimators_, **SMALL | model.chosen_params_)
    assert np.array_equal(plain.fit(X[:n_rows], Y[:n_rows]).predict(X), model.predict(X))


@pytest.mark.parametrize("n_rows", [FEW, MANY])
def test_no_order_of_rows_matters(n_rows: int, tmp_path: Path) -> None:
    order = RNG.permutation(n_rows)
    one = auto().fit(X[:n_rows], Y[:n_rows])
    other = auto().fit(X[:n_rows][order], Y[:n_rows][order])
    assert saved(one, tmp_path / "a") == saved(other, tmp_path / "b")
    assert one.evals_result_ == other.evals_result_


@pytest.mark.parametrize("n_rows", [FEW // 2, MANY])
def test_a_row_of_weight_two_is_the_row_twice(n_rows: int) -> None:
    x, y, weight = X[:n_rows], Y[:n_rows], 1.0 + (np.arange(n_rows) % 3 == 0)
    twice = np.repeat(np.arange(n_rows), weight.astype(int))
    one = auto(min_samples_leaf=1, min_child_weight=20).fit(x, y, sample_weight=weight)
    # As many rows, since their number is looked at.
    other = auto(min_samples_leaf=1, min_child_weight=20).fit(x[twice], y[twice])
    if n_rows < AUTO_FEW_ROWS <= len(twice):
        pytest.skip("the two are on both sides of the number of rows")
    np.testing.assert_allclose(
        one.evals_result_["held_out"]["rmse"], other.evals_result_["held_out"]["rmse"], rtol=1e-9
    )
    assert one.n_estimators_ == other.n_estimators_


def test_equal_rows_are_on_one_side() -> None:
    """Else rows with noise for a target would be learned by heart, without end."""
    x, y = X[:FEW], RNG.normal(size=(FEW, 1))
    copies = np.repeat(np.arange(FEW), 8)  # more than AUTO_FEW_ROWS
    model = auto(min_samples_leaf=1).fit(x[copies], y[copies])
    assert model.n_estimators_ < 30


def test_groups_are_on_one_side() -> None:
    """Features that tell a group apart are of no use for other groups."""
    group = np.repeat(np.arange(60), 40)
    x = np.column_stack([group + 0.01 * RNG.normal(size=len(group)), RNG.normal(size=len(group))])
    y = RNG.normal(size=60)[group] + 0.1 * RNG.normal(size=len(group))
    apart = auto(min_samples_leaf=1).fit(x, y)
    together = auto(min_samples_leaf=1).fit(x, y, groups=[f"group {one}" for one in group])
    assert together.n_estimators_ < 10 < apart.n_estimators_
    weight = np.r_[0.0, np.ones(len(group) - 1)]
    assert auto().fit(x, y, sample_weight=weight, groups=group).n_estimators_ > 0


@pytest.mark.parametrize("n_rows", [FEW, MANY])
def test_classes_are_held_out_in_their_shares(n_rows: int) -> None:
    """A class of few rows is on both sides, one of a single row is trained on always."""
    labels = (X[:n_rows, 0] + 0.5 * RNG.normal(size=n_rows) > 0).astype(int)
    labels[:6], labels[6] = 2, 3
    model = PolyleafClassifier(n_estimators="auto", **SMALL).fit(X[:n_rows], labels)
    assert list(model.classes_) == [0, 1, 2, 3]
    assert max(model.evals_result_["held_out"]["cross_entropy"]) < 2


@pytest.mark.parametrize("n_rare", [2, 4])
def test_rare_classes_count_when_to_stop(n_rare: int) -> None:
    """Where features say nothing, held-out rows of the class cost more than none of them would."""
    x = RNG.normal(size=(FEW, 4))
    model = PolyleafClassifier(n_estimators="auto", **SMALL).fit(x, np.arange(FEW) < n_rare)
    assert min(model.evals_result_["held_out"]["binary_cross_entropy"]) > n_rare / FEW
    assert model.n_estimators_ < 100


def test_a_number_is_obeyed() -> None:
    assert PolyleafRegressor(n_estimators=37).fit(X, Y).n_estimators_ == 37
    capped = PolyleafRegressor(n_estimators=7, early_stopping_rounds=50).fit(X, Y)
    assert capped.n_estimators_ <= 7
    assert len(capped.evals_result_["held_out"]["rmse"]) == 7


def test_evaluation_sets_are_taken_in_the_place_of_training_rows() -> None:
    new_x, new_y = table(200)
    given = auto().fit(X, Y, eval_set=(new_x, new_y))
    assert list(given.evals_result_) == ["validation_0"]
    assert given.n_estimators_ == given.best_iteration_ + 1 + AUTO_PATIENCE
    named = auto().fit(X, Y, eval_X=new_x, eval_y=new_y)
    assert named.evals_result_ == given.evals_result_
    several = auto(early_stopping_rounds=3).fit(X, Y, eval_X=(new_x, X), eval_y=(new_y, Y))
    assert list(several.evals_result_) == ["validation_0", "validation_1"]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"eval_y": Y}, "without eval_X"),
        ({"eval_X": (X, X), "eval_y": Y}, "tuple of 2 tables"),
        ({"groups": np.zeros(3)}, r"shape \(3,\)"),
        ({"groups": [None, *range(MANY - 1)]}, "missing value in row 0"),
        ({"groups": np.zeros(MANY)}, "no rows can be held out"),
    ],
)
def test_what_is_wrong_is_named(arguments: dict[str, Any], words: str) -> None:
    with pytest.raises(ValueError, match=words):
        auto(early_stopping_rounds=3).fit(X, Y, **arguments)


@pytest.mark.parametrize("fraction", [0.0, 0.6, -1.0, np.nan])
def test_fractions_that_are_none(fraction: float) -> None:
    with pytest.raises(ValueError, match="validation_fraction"):
        auto(validation_fraction=fraction).fit(X, Y)


def test_fractions() -> None:
    """A smaller one leaves more rows, whatever their number."""
    for n_rows in (FEW, MANY):
        curves = [
            auto(validation_fraction=fraction, refit=False, early_stopping_rounds=5)
            .fit(X[:n_rows], Y[:n_rows])
            .evals_result_["held_out"]["rmse"]
            for fraction in (0.1, 0.5)
        ]
        assert curves[0][0] != curves[1][0]


@pytest.mark.parametrize("n_rows", [FEW, MANY])
def test_without_a_refit_the_model_is_of_the_other_rows(n_rows: int) -> None:
    model = auto(refit=False).fit(X[:n_rows], Y[:n_rows])
    assert model.n_estimators_ == model.best_iteration_ + 1 + AUTO_PATIENCE
    assert 0.7 * n_rows < model.to_frame()["count"].max() < 0.9 * n_rows


def test_rows_that_cannot_be_held_out() -> None:
    same = np.zeros((9, 2))
    with pytest.warns(UserWarning, match="no rows can be held out"):
        model = auto().fit(same, np.ones(9))
    assert model.n_estimators_ == AUTO_FIXED_ROUNDS
    with pytest.raises(ValueError, match="too few different rows"):
        auto(early_stopping_rounds=5).fit(same, np.ones(9))
    with pytest.raises(ValueError, match="groups has too few different groups"):
        auto(early_stopping_rounds=5).fit(X[:FEW], Y[:FEW], groups=np.zeros(FEW))
    with pytest.raises(ValueError, match=r"too few different rows for validation_fraction=1e-05"):
        auto(early_stopping_rounds=5, validation_fraction=1e-5).fit(X[:FEW], Y[:FEW])
    with pytest.raises(ValueError, match="too few different rows of each class"):
        PolyleafClassifier(early_stopping_rounds=5).fit(X[:8], np.arange(8))
    # Fractions of which memory could not hold the parts.
    for fraction in (1e-12, 5e-324):
        with pytest.raises(ValueError, match="too few different rows for validation_fraction"):
            auto(early_stopping_rounds=5, validation_fraction=fraction).fit(X[:FEW], Y[:FEW])
    # A target that is known once.
    y = Y[:FEW].copy()
    y[1:, 1] = np.nan
    with pytest.warns(UserWarning, match="not held out"):
        auto().fit(X[:FEW], y)


@pytest.mark.parametrize("n_rows", [FEW, MANY])
def test_tables_of_all_kinds(n_rows: int, tmp_path: Path) -> None:
    pd = pytest.importorskip("pandas")
    x, y = X[:n_rows].astype(np.float32), Y[:n_rows]
    plain = auto().fit(x, y)
    binned = BinnedTable.make(x, y)
    for model in (
        auto().fit(scipy.sparse.csr_array(x), y),
        auto().fit(pd.DataFrame(x).to_numpy(), y),
        auto().fit(binned),
        auto().fit([(x[:100], y[:100]), (x[100:], y[100:])]),
    ):
        assert model.n_estimators_ == plain.n_estimators_
        assert np.array_equal(model.predict(x), plain.predict(x))


def test_kinds_of_targets() -> None:
    labels = (Y > 0).astype(int)
    several = PolyleafClassifier(n_estimators="auto", **SMALL).fit(X[:FEW], labels[:FEW])
    assert several.n_estimators_ == several.best_iteration_ + 1
    mixed = PolyleafMixed({"a": "regression", "b": "binary"}, n_estimators="auto", **SMALL)
    mixed.fit(X[:FEW], {"a": Y[:FEW, 0], "b": labels[:FEW, 1]})
    assert list(mixed.evals_result_) == ["held_out"]
    sparse = PolyleafClassifier(
        n_estimators="auto", objective="clipped_squared_error", sparse_leaves=2, **SMALL
    ).fit(X[:FEW], scipy.sparse.csr_array(labels[:FEW]))
    assert sparse.n_estimators_ > 0
    quantiles = auto(objective="quantile", quantile_levels=[0.1, 0.9]).fit(X[:FEW], Y[:FEW, 0])
    assert quantiles.n_estimators_ > 0
    alone = auto(multi_strategy="one_output_per_tree").fit(X[:FEW], Y[:FEW])
    assert alone.n_estimators_ > 0


def test_callbacks_of_both_runs() -> None:
    seen: list[tuple[int, int]] = []
    rate = LearningRateSchedule(lambda number: 0.5 if number < 2 else 0.3)
    model = auto(callbacks=[rate, lambda state: seen.append((state.round, state.n_rounds))]).fit(X, Y)
    plain = PolyleafRegressor(n_estimators=model.n_estimators_, callbacks=[rate], **SMALL).fit(X, Y)
    assert np.array_equal(plain.predict(X), model.predict(X))
    assert len(seen) == 2 * model.n_estimators_ + AUTO_PATIENCE
    watched = auto(callbacks=[EarlyStopping(4)]).fit(X, Y)
    assert len(watched.evals_result_["held_out"]["rmse"]) == watched.n_estimators_ + 4
    assert auto(callbacks=[TimeLimit(1e-9)]).fit(X, Y).n_estimators_ == 1


@pytest.mark.parametrize("n_rows", [FEW, MANY])
def test_ctrl_c_keeps_the_rounds_done(n_rows: int) -> None:
    def interrupt(state: Any) -> None:
        if state.round == 4:
            raise KeyboardInterrupt

    model = auto(callbacks=[interrupt])
    with pytest.raises(KeyboardInterrupt):
        model.fit(X[:n_rows], Y[:n_rows])
    assert model.n_estimators_ == 5


@pytest.mark.parametrize("stop_after", [3, 200])
def test_a_run_goes_on_where_it_ended(stop_after: int, tmp_path: Path) -> None:
    """While rows are held out (3), and when all are trained on (200: there are fewer rounds before)."""
    path, calls = tmp_path / "run", []

    def interrupt(state: Any) -> None:
        calls.append(state.round)
        if len(calls) == stop_after:
            raise KeyboardInterrupt

    whole = auto().fit(X, Y)
    rounds = whole.n_estimators_
    stop_after = min(stop_after, rounds + AUTO_PATIENCE + rounds // 2)
    with pytest.raises(KeyboardInterrupt):
        auto(callbacks=[interrupt, Checkpoint(path, every=1)]).fit(X, Y)
    again = auto().fit(X, Y, resume=path)
    assert np.array_equal(again.predict(X), whole.predict(X))
    assert again.evals_result_ == whole.evals_result_
    with pytest.raises(ValueError, match="held out rows"):
        PolyleafRegressor(n_estimators=900, **SMALL).fit(X, Y, resume=path)


def test_cross_validation_stops_by_its_folds() -> None:
    result = cv(auto(), X[:FEW], Y[:FEW], cv=3)
    assert result.n_rounds == result.best_round + 1 + AUTO_PATIENCE


def test_in_a_pipeline_and_a_clone(tmp_path: Path) -> None:
    pipe = make_pipeline(StandardScaler(), auto(early_stopping_rounds=5)).fit(X, Y)
    assert pipe[-1].n_estimators_ < 300
    copy = clone(pipe[-1])
    assert copy.n_estimators == "auto"
    pipe[-1].save_model(tmp_path / "m")
    assert load_model(tmp_path / "m").get_params()["n_estimators"] == "auto"


def test_most_rows_equal() -> None:
    """They are held out as others are, since none of them is a copy of a few."""
    x, y = np.concatenate([np.zeros((2 * MANY, 4)), X]), np.concatenate([np.zeros((2 * MANY, 2)), Y])
    model = auto(refit=False, early_stopping_rounds=5).fit(x, y)
    held_out = len(x) - int(model.to_frame()["count"].max())
    assert 0.19 * len(x) < held_out < 0.21 * len(x)


def test_a_class_of_one_row_says_nothing_of_the_others() -> None:
    """Rows of the other class alone would ask for ever more rounds."""
    labels = np.r_[1, np.zeros(FEW - 1)]
    with pytest.warns(UserWarning, match="different rows of each class"):
        model = PolyleafClassifier(n_estimators="auto", **SMALL).fit(X[:FEW], labels)
    assert model.n_estimators_ == AUTO_FIXED_ROUNDS
    with pytest.raises(ValueError, match="no rows can be held out"):
        PolyleafClassifier(early_stopping_rounds=5, **SMALL).fit(X[:FEW], labels)


def test_groups_that_are_the_classes() -> None:
    labels = np.arange(FEW) % 2
    with pytest.raises(ValueError, match="has one class"):
        PolyleafClassifier(n_bags=2, n_estimators=3, **SMALL).fit(X[:FEW], labels, groups=labels)
