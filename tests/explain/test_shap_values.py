"""What `shap_values` promises: sums, shapes, the same bits for any number of threads, errors before work."""

from __future__ import annotations

import pickle
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
import pytest
import scipy.sparse

from polyleaf import (
    BinnedTable,
    PolyleafClassifier,
    PolyleafMixed,
    PolyleafRegressor,
    load_model,
)
from polyleaf.explain import shap

Values = npt.NDArray[np.float64]
SMALL: dict[str, Any] = {"n_estimators": 8, "max_depth": 5, "random_state": 0}


def table(n: int = 300, seed: int = 0) -> tuple[Values, Values]:
    """Six features, of which the last is never of use, and three targets."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 6))
    X[:, 5] = 1.0
    X[rng.random(X.shape) < 0.05] = np.nan
    X[:, 5] = 1.0
    Z = np.nan_to_num(X)
    return X, np.column_stack([Z[:, 0] * Z[:, 1], Z[:, 2] + Z[:, 0], np.sin(Z[:, 3]) + Z[:, 4]])


@pytest.fixture(scope="module")
def fitted() -> tuple[Any, Values]:
    X, Y = table()
    return PolyleafRegressor(**SMALL).fit(X, Y), X


def raw_scores(model: Any, X: Any) -> Values:
    raw: Values = model._coding.in_order_of_y(model._raw(X, None))
    return raw


def check_sums(model: Any, X: Any) -> None:
    raw = raw_scores(model, X)
    values = model.shap_values(X)
    total = values.reshape(len(raw), model.n_features_in_, -1).sum(axis=1) + model.expected_value_
    assert model.expected_value_.shape == (model.n_outputs_,)
    np.testing.assert_allclose(total, raw, rtol=1e-6, atol=1e-9 * np.abs(raw).max())


KINDS: dict[str, dict[str, Any]] = {
    "joint": {},
    "one output per tree": {"multi_strategy": "one_output_per_tree"},
    "sparse leaves": {"sparse_leaves": 1},
    "unrestricted": {"sparse_leaves": 2, "sparse_mode": "unrestricted"},
    "quantiles": {"objective": "quantile", "quantile_levels": [0.1, 0.5, 0.9]},
    "sketch": {"sketch": "random_projection", "sketch_size": 2},
    "rows": {"subsample": 0.6},
    "rows by gradient": {"subsample": 0.6, "sampling_method": "gradient_based"},
    "no tree splits": {"min_samples_leaf": 1000},
}


@pytest.mark.parametrize("options", KINDS.values(), ids=KINDS)
def test_sums_of_targets(options: dict[str, Any]) -> None:
    X, Y = table()
    check_sums(PolyleafRegressor(**SMALL, **options).fit(X, Y), X)


@pytest.mark.parametrize("kind", ["classes", "two classes", "labels", "sparse labels", "log link"])
def test_sums_of_other_problems(kind: str) -> None:
    X, Y = table()
    classes = np.digitize(Y[:, 0], [-0.3, 0.3])
    labels = (Y > 0).astype(int)
    if kind == "log link":
        check_sums(PolyleafRegressor(**SMALL, objective="poisson").fit(X, np.exp(Y[:, 0].clip(-2, 2))), X)
        return
    if kind == "sparse labels":
        model = PolyleafClassifier(**SMALL, objective="clipped_squared_error", sparse_leaves=2)
        check_sums(model.fit(X, scipy.sparse.csr_array(labels)), X)
        return
    y = {"classes": classes, "two classes": classes > 1, "labels": labels}[kind]
    check_sums(PolyleafClassifier(**SMALL).fit(X, y), X)


def mixed() -> tuple[Any, pd.DataFrame]:
    X, Y = table()
    frame = pd.DataFrame(X, columns=list("abcdef"))
    frame["g"] = pd.Categorical(np.where(Y[:, 0] > 0, "u", np.where(Y[:, 1] > 0, "v", "w")))
    y = pd.DataFrame({"number": Y[:, 1], "grade": np.where(Y[:, 0] > 0.3, "x", "y"), "more": Y[:, 2]})
    targets = {"grade": {"kind": "multiclass"}, "n": {"kind": "regression", "columns": ["number", "more"]}}
    return PolyleafMixed(targets, **SMALL, categorical_features=["g"]).fit(frame, y), frame


def test_mixed_targets_are_in_the_order_of_y() -> None:
    model, frame = mixed()
    check_sums(model, frame)
    names = model._coding.columns_of_outputs()
    assert (names[0], names[-1]) == ("number", "more")
    one = model.shap_values(frame, outputs=["more", "number"])
    np.testing.assert_array_equal(one, model.shap_values(frame)[:, :, [len(names) - 1, 0]])
    np.testing.assert_array_equal(model.predict(frame)["more"], raw_scores(model, frame)[:, -1])


def test_up_to_the_best_round() -> None:
    X, Y = table()
    model = PolyleafRegressor(**{**SMALL, "n_estimators": 40}, learning_rate=0.9, early_stopping_rounds=3)
    model.fit(X[:200], Y[:200], eval_set=(X[200:], Y[200:]))
    assert model.best_iteration_ + 1 < model.n_estimators_
    check_sums(model, X)


def test_a_loaded_model_explains_the_same(fitted: tuple[Any, Values], tmp_path: Path) -> None:
    model, X = fitted
    model.save_model(tmp_path / "m")
    for same in (load_model(tmp_path / "m"), pickle.loads(pickle.dumps(model))):
        np.testing.assert_array_equal(same.shap_values(X), model.shap_values(X))
        np.testing.assert_array_equal(same.expected_value_, model.expected_value_)


# --- properties ------------------------------------------------------------------------------------------


def test_a_feature_that_no_split_asks_for_has_exactly_zero(fitted: tuple[Any, Values]) -> None:
    model, X = fitted
    assert (model.shap_values(X)[:, 5] == 0).all()
    assert (model.shap_values(X)[:, :5] != 0).any(axis=(0, 2)).all()


def test_features_that_do_the_same_share_alike() -> None:
    """Trees that ask for two features in either order, rows and targets the same for both."""
    grid = np.repeat(np.array([[a, b] for a in (0.0, 1.0) for b in (0.0, 1.0)]), 50, axis=0)
    model = PolyleafRegressor(n_estimators=1, max_depth=2, min_samples_leaf=1, reg_lambda=0.0)
    model.fit(grid, grid.prod(axis=1))
    row = model.shap_values(np.array([[1.0, 1.0], [0.0, 0.0]]))
    np.testing.assert_allclose(row[:, 0], row[:, 1], rtol=1e-12)
    assert (row[0] > 0).all()
    assert (row[1] < 0).all()


@pytest.mark.parametrize("options", [{}, {"sparse_leaves": 1}], ids=["dense", "sparse leaves"])
def test_features_that_change_places_change_values(options: dict[str, Any]) -> None:
    """No feature has a place of its own: trees that ask for 4 instead of 0, of rows with these exchanged."""
    X, Y = table()
    forest = PolyleafRegressor(**SMALL, **options).fit(X, Y)._forest
    order = np.array([4, 1, 2, 3, 0, 5])
    other = replace(forest, feature=order[forest.feature].astype(forest.feature.dtype))
    outputs, number = np.arange(3), np.dtype(np.float64)
    found = shap.ForestShap(forest, 8, outputs).values(X, number, 1)
    exchanged = shap.ForestShap(other, 8, outputs).values(np.ascontiguousarray(X[:, order]), number, 1)
    np.testing.assert_allclose(exchanged[:, order], found, rtol=0, atol=1e-13)
    assert np.abs(found[:, 0] - found[:, 4]).max() > 0.1
    # So where a row has the same value in both, the two forests together do not tell them apart.
    X[:, 0] = X[:, 4]
    both = sum(shap.ForestShap(one, 8, outputs).values(X, number, 1) for one in (forest, other))
    np.testing.assert_allclose(both[:, 0], both[:, 4], rtol=0, atol=1e-13)


def test_values_of_rounds_add_up(fitted: tuple[Any, Values]) -> None:
    """What a round adds to the values is what it adds to the scores, and nothing where it does not look."""
    model, X = fitted
    outputs = np.arange(3)
    found = [shap.ForestShap(model._forest, n, outputs).values(X, np.dtype(np.float64), 1) for n in range(9)]
    assert (found[0] == 0).all()
    for number in range(1, 9):
        forest = model._forest
        begin, end = forest.node_begin[number - 1], forest.node_begin[number]
        inner = forest.left[begin:end] >= 0
        untouched = np.setdiff1d(np.arange(6), forest.feature[begin:end][inner])
        np.testing.assert_array_equal(found[number][:, untouched], found[number - 1][:, untouched])
        raw = forest.predict_raw(X, number) - forest.predict_raw(X, number - 1)
        added = (found[number] - found[number - 1]).sum(axis=1)
        np.testing.assert_allclose(added - added.mean(axis=0), raw - raw.mean(axis=0), atol=1e-12)


@pytest.mark.parametrize("options", [{}, {"sparse_leaves": 1}], ids=["dense", "sparse leaves"])
def test_any_number_of_threads_gives_the_same_bits(options: dict[str, Any]) -> None:
    X, Y = table(1000)
    model = PolyleafRegressor(**SMALL, **options).fit(X, Y)
    found = {}
    for threads in (1, 2, 3):
        model.set_params(n_jobs=threads)
        found[threads] = (
            model.shap_values(X),
            model.shap_values(X, reduce="mean_abs"),
            model.shap_values(X, interactions=True),
        )
    for threads in (2, 3):
        for one, other in zip(found[1], found[threads], strict=True):
            np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize("isa", ["baseline", "avx2", "avx512"])
def test_any_instruction_set_gives_the_same_bits(fitted: tuple[Any, Values], isa: str) -> None:
    from polyleaf import _core

    model, X = fitted
    expected, in_use = model.shap_values(X), _core.kernels()
    if not _core.select_kernels(isa):
        pytest.skip(f"this machine has no {isa}")
    try:
        np.testing.assert_array_equal(model.shap_values(X), expected)
    finally:
        _core.select_kernels(in_use)


def test_a_row_does_not_depend_on_the_others(fitted: tuple[Any, Values]) -> None:
    model, X = fitted
    whole = model.shap_values(X)
    for row in (0, 9, 299):
        np.testing.assert_array_equal(model.shap_values(X[row : row + 1])[0], whole[row])
    np.testing.assert_array_equal(model.shap_values(X[3:20]), whole[3:20])


# --- what X may be ---------------------------------------------------------------------------------------


def test_every_kind_of_table_gives_the_same(fitted: tuple[Any, Values], tmp_path: Path) -> None:
    X, Y = table()
    columns = [f"x{j}" for j in range(6)]
    frame = pd.DataFrame(X, columns=columns)
    model = PolyleafRegressor(**SMALL).fit(frame, Y)
    expected = fitted[0].shap_values(X)
    frame.to_parquet(tmp_path / "rows.parquet")
    np.testing.assert_array_equal(model.shap_values(frame), expected)
    np.testing.assert_array_equal(model.shap_values(str(tmp_path / "rows.parquet")), expected)
    np.testing.assert_array_equal(fitted[0].shap_values(np.asfortranarray(X)), expected)
    np.testing.assert_array_equal(fitted[0].shap_values(scipy.sparse.csr_array(X)), expected)
    binned = BinnedTable.make(X)
    of_bins = PolyleafRegressor(**SMALL).fit(binned, Y)
    np.testing.assert_array_equal(of_bins.shap_values(binned), expected)
    for given, of in ((scipy.sparse.csc_array(X), fitted[0]), (binned, of_bins), (frame, model)):
        np.testing.assert_allclose(
            of.shap_values(given, reduce="mean_abs"), np.abs(expected).mean(axis=0), rtol=1e-12
        )


def test_binned_categories() -> None:
    rng = np.random.default_rng(0)
    X = np.column_stack([rng.integers(0, 50, 400), rng.normal(size=400)]).astype(float)
    X[::17, 0] = np.nan
    y = np.column_stack([np.nan_to_num(X[:, 0]) % 4 == 1, X[:, 1]]).astype(float)
    binned = BinnedTable.make(X, categorical_features=[0])
    model = PolyleafRegressor(**SMALL, categorical_features=[0]).fit(binned, y)
    np.testing.assert_array_equal(model.shap_values(binned), model.shap_values(X))
    check_sums(model, X)
    unseen = np.array([[77.0, 0.0], [np.nan, 0.0]])  # goes where missing values go
    np.testing.assert_array_equal(*model.shap_values(unseen))


def test_no_rows(fitted: tuple[Any, Values]) -> None:
    model, X = fitted
    assert model.shap_values(X[:0]).shape == (0, 6, 3)
    assert model.shap_values(scipy.sparse.csr_array(X[:0])).shape == (0, 6, 3)
    with pytest.raises(ValueError, match="X has none"):
        model.shap_values(X[:0], reduce="mean_abs")


# --- options ---------------------------------------------------------------------------------------------


def test_chosen_outputs(fitted: tuple[Any, Values]) -> None:
    model, X = fitted
    whole = model.shap_values(X)
    np.testing.assert_array_equal(model.shap_values(X, outputs=[2, 0]), whole[:, :, [2, 0]])
    np.testing.assert_array_equal(model.shap_values(X, outputs=("target_1",)), whole[:, :, [1]])
    np.testing.assert_array_equal(model.shap_values(X, outputs=np.int64(1)), whole[:, :, [1]])
    trees = PolyleafRegressor(**SMALL, multi_strategy="one_output_per_tree").fit(X, table()[1])
    np.testing.assert_array_equal(trees.shap_values(X, outputs=[2, 1]), trees.shap_values(X)[:, :, [2, 1]])
    few = PolyleafRegressor(**SMALL, sparse_leaves=1).fit(X, table()[1])
    np.testing.assert_array_equal(few.shap_values(X, outputs=[2, 1]), few.shap_values(X)[:, :, [2, 1]])


def test_one_output_has_two_dimensions() -> None:
    X, Y = table()
    model = PolyleafRegressor(**SMALL).fit(X, Y[:, 0])
    assert model.shap_values(X).shape == (300, 6)
    assert model.shap_values(X, reduce="mean_abs").shape == (6,)
    assert model.expected_value_.shape == (1,)


def test_float32(fitted: tuple[Any, Values]) -> None:
    model, X = fitted
    whole = model.shap_values(X)
    found = model.shap_values(X, dtype=np.float32)
    assert found.dtype == np.float32
    np.testing.assert_array_equal(found, whole.astype(np.float32))
    mean = model.shap_values(X, reduce="mean_abs", outputs=[2, 0])
    np.testing.assert_allclose(mean, np.abs(whole[:, :, [2, 0]]).mean(axis=0), rtol=1e-12)
    assert model.shap_values(X, reduce="mean_abs", dtype="float32").dtype == np.float32


def test_interactions(fitted: tuple[Any, Values]) -> None:
    model, X = fitted
    plain = model.shap_values(X)
    pairs = model.shap_values(X, interactions=True)
    assert pairs.shape == (300, 6, 6, 3)
    np.testing.assert_array_equal(pairs, pairs.transpose(0, 2, 1, 3))
    np.testing.assert_allclose(pairs.sum(axis=2), plain, rtol=0, atol=1e-12)
    assert (pairs[:, 5] == 0).all()
    chosen = model.shap_values(X, outputs=[2, 0], interactions=True)
    np.testing.assert_array_equal(chosen, pairs[..., [2, 0]])
    mean = model.shap_values(X, interactions=True, reduce="mean_abs")
    np.testing.assert_allclose(mean, np.abs(pairs).mean(axis=0), rtol=1e-12)
    model_of_one = PolyleafRegressor(**SMALL).fit(X, table()[1][:, 0])
    assert model_of_one.shap_values(X[:2], interactions=True, dtype="float32").shape == (2, 6, 6)


@pytest.mark.parametrize(
    ("options", "error", "words"),
    [
        ({"outputs": [0, 3]}, ValueError, "no output 3; the model has 3"),
        ({"outputs": [-1]}, ValueError, "no output -1"),
        ({"outputs": ["speed"]}, ValueError, "no output 'speed'; there are 'target_0', 'target_1'"),
        ({"outputs": [1.5]}, TypeError, "1.5"),
        ({"outputs": [True]}, TypeError, "True"),
        ({"outputs": []}, ValueError, "empty"),
        ({"outputs": [1, "target_1"]}, ValueError, "twice for 'target_1'"),
        ({"dtype": "int32"}, ValueError, "dtype must be"),
        ({"dtype": None}, ValueError, "dtype must be"),
        ({"dtype": "no dtype"}, ValueError, "dtype must be"),
        ({"reduce": "mean"}, ValueError, "reduce must be"),
        ({"interactions": 2}, TypeError, "interactions must be"),
    ],
)
def test_bad_options(fitted: tuple[Any, Values], options: Any, error: Any, words: str) -> None:
    model, X = fitted
    with pytest.raises(error, match=words):
        model.shap_values(X, **options)


def test_rows_of_another_width(fitted: tuple[Any, Values]) -> None:
    model, X = fitted
    with pytest.raises(ValueError, match=r"5 features.* 6 features"):
        model.shap_values(X[:, :5])


def test_more_memory_than_there_is(fitted: tuple[Any, Values], monkeypatch: pytest.MonkeyPatch) -> None:
    model, X = fitted
    monkeypatch.setattr(shap, "available", lambda: 40_000)
    with pytest.raises(
        MemoryError, match=r"300 rows x 6 features x 3 outputs of float64: 42.2 KiB"
    ) as refused:
        model.shap_values(X)
    assert "39.1 KiB are available" in str(refused.value)


def test_before_fit() -> None:
    model = PolyleafRegressor()
    with pytest.raises(AttributeError, match="not fitted"):
        model.shap_values(np.zeros((1, 1)))
    assert not hasattr(model, "expected_value_")


def test_some_of_the_rounds(fitted: tuple[Any, Values]) -> None:
    model, X = fitted
    check_sums(model[:3], X)
    parts = model[:3].shap_values(X) + model[3:].shap_values(X)
    np.testing.assert_allclose(parts, model.shap_values(X), rtol=0, atol=1e-12)
