"""Mixed models with targets that were not observed, labels of one column, scores, and tables in and out."""

import numpy as np
import pandas as pd
import pytest
from sklearn.model_selection import GridSearchCV

from mixed_table import COLUMNS, TARGETS, N, mixed, table
from polyleaf import PolyleafClassifier, PolyleafMixed, PolyleafRegressor, cv, load_model
from same_forest import assert_same_bits

# --- missing classes and labels ----------------------------------------------------------------------------

SOME = {"grade": "multiclass", "passed": "binary", "height": "regression", "tags": TARGETS["tags"]}
NAMES = ["grade", "passed", "height", "t1", "t2", "t3"]


def gaps(seed=5):
    return np.random.default_rng(seed).random((N, len(NAMES))) < 0.2


def with_gaps(y, library):
    """The table of y with 20 % of its cells missing, as the library has them."""
    cells = {}
    for j, name in enumerate(NAMES):
        column = y[name].astype(object)
        column[gaps()[:, j]] = np.nan if library == "nan" else None
        cells[name] = column if library in ("none", "nan") else column.tolist()
    if library in ("none", "nan"):
        return cells
    if library == "list":
        return cells
    module = pytest.importorskip(library.partition("-")[0])
    if library == "pandas-nullable":
        return module.DataFrame(cells).convert_dtypes()
    return module.table(cells) if library == "pyarrow" else module.DataFrame(cells)


@pytest.mark.parametrize("library", ["none", "nan", "list", "pandas", "pandas-nullable", "polars", "pyarrow"])
def test_a_missing_target_is_a_cell_of_weight_0(library):
    X, y = table()
    weight = np.where(gaps(), 0.0, 1.0)
    expected = mixed(SOME).fit(X, {name: y[name] for name in NAMES}, sample_weight=weight)
    found = mixed(SOME).fit(X, with_gaps(y, library))
    assert_same_bits(found, expected)
    assert found.classes_["grade"].tolist() == list("abcde")
    assert found.classes_["passed"].tolist() == [False, True]
    assert found.classes_["passed"].dtype == bool
    prediction = found.predict(X)
    for name, values in expected.predict(X).items():
        np.testing.assert_array_equal(np.asarray(prediction[name]), values)
    whole = {name: y[name] for name in NAMES}
    assert found.score(X, with_gaps(y, library)) == expected.score(X, whole, weight)


def test_integers_with_gaps_stay_integers_where_the_library_has_them():
    X, _ = table()
    codes = np.arange(N) % 3
    for library in ("polars", "pyarrow"):
        module = pytest.importorskip(library)
        cells = {"c": [None if i % 7 == 0 else int(code) for i, code in enumerate(codes)]}
        y = module.table(cells) if library == "pyarrow" else module.DataFrame(cells)
        model = mixed({"c": "multiclass"}, n_estimators=2).fit(X, y)
        assert model.classes_["c"].dtype == np.int64
    y = pd.DataFrame({"c": np.where(np.arange(N) % 7 == 0, np.nan, codes)})
    assert mixed({"c": "multiclass"}, n_estimators=2).fit(X, y).classes_["c"].tolist() == [0.0, 1.0, 2.0]
    assert (
        mixed({"c": "multiclass"}, n_estimators=2).fit(X, y.astype("Int64")).classes_["c"].dtype == np.int64
    )


def test_a_row_teaches_the_targets_it_has():
    """Rows without a class do not change what is learnt of it, and are not lost for the number."""
    X, y = table()
    known = np.arange(N) % 2 == 0
    grade = y["grade"].astype(object)
    grade[~known] = None
    only = mixed({"grade": "multiclass"}).fit(X, {"grade": grade})
    fewer = mixed({"grade": "multiclass"}).fit(X[known], {"grade": y["grade"][known]})
    assert_same_bits(only, fewer)
    both = mixed({"grade": "multiclass", "height": "regression"}, n_estimators=60)
    both.fit(X, {"grade": grade, "height": y["height"]})
    Xe, ye = table(seed=1)
    found = both.predict(Xe)
    assert (found["grade"] == ye["grade"]).mean() > 0.5
    assert np.var(found["height"] - ye["height"]) < 0.2 * np.var(ye["height"])


def test_evaluation_sets_with_gaps():
    X, y = table()
    Xe, ye = table(seed=1)
    model = mixed(SOME).fit(
        X, y, eval_set=(Xe, {name: ye[name] for name in NAMES}), eval_sample_weight=np.where(gaps(), 0.0, 1.0)
    )
    found = mixed(SOME).fit(X, y, eval_set=(Xe, with_gaps(ye, "none")))
    assert found.evals_result_ == model.evals_result_
    # Unseen labels do not matter in cells without weight; a column without any label is left out.
    odd = ye["grade"].copy()
    odd[0] = "z"
    weight = np.ones((N, len(NAMES)))
    weight[0, 0] = 0.0
    mixed(SOME).fit(
        X, y, eval_set=(Xe, {**{k: ye[k] for k in NAMES}, "grade": odd}), eval_sample_weight=weight
    )
    nothing = {**ye, "grade": np.full(N, np.nan)}
    history = mixed(SOME).fit(X, y, eval_set=(Xe, nothing)).evals_result_["validation_0"]
    assert np.isnan(history["grade/cross_entropy"]).all()
    assert np.isfinite(history["loss"]).all()


def test_missing_targets_that_cannot_be_are_named():
    X, y = table()
    with pytest.raises(ValueError, match="column 'grade' of y has no observation"):
        mixed(SOME).fit(X, y | {"grade": np.full(N, None)})
    with pytest.raises(ValueError, match="y holds no observation"):
        mixed({"grade": "multiclass"}).fit(X, {"grade": [None] * N})
    with pytest.raises(ValueError, match="target 'grade' holds one class only, 'a'"):
        mixed(SOME).fit(X, y | {"grade": np.where(y["grade"] == "a", "a", None)})
    odd = y["t1"].astype(float)
    odd[0], odd[7] = np.nan, 0.5
    with pytest.raises(ValueError, match=r"holds 0\.5 in row 7; float class labels"):
        mixed({"t1": "binary"}).fit(X, {"t1": odd})
    with pytest.raises(ValueError, match="mixes labels of type"):
        mixed(SOME).fit(X, y | {"grade": ["a", 1, None] * (N // 3)})
    with pytest.raises(ValueError, match="masked"):
        mixed(SOME).fit(X, y | {"t1": np.ma.masked_array(y["t1"], y["t1"] == 1)})
    with pytest.raises(ValueError, match="y holds no observation"):
        mixed({"grade": "multiclass"}).fit(X, y).score(X, {"grade": [None] * N})


def test_folds_with_gaps():
    X, y = table()
    result = cv(mixed(SOME, n_estimators=3), X, with_gaps(y, "none"), cv=3)
    assert np.isfinite(result.mean["loss"]).all()


# --- labels of one column ----------------------------------------------------------------------------------


def test_one_column_may_be_labels(tmp_path):
    X, y = table()
    one = mixed({"t1": "multilabel", "height": "regression"}).fit(X, y)
    two = mixed({"t1": "binary", "height": "regression"}).fit(X, y)
    assert_same_bits(one, two)
    assert one.predict(X)["t1"].dtype == np.int64
    probability = one.predict_proba(X)["t1"]
    assert probability.shape == (N, 1)
    np.testing.assert_array_equal(probability[:, 0], two.predict_proba(X)["t1"][:, 1])
    one.save_model(tmp_path / "model")
    np.testing.assert_array_equal(load_model(tmp_path / "model").predict_proba(X)["t1"], probability)
    with pytest.raises(ValueError, match="has 1 column, so it must be a matrix of 0 and 1"):
        mixed({"visits": "multilabel"}).fit(X, y)
    # Unlike two classes, labels need not differ, and may be missing.
    constant = mixed({"a": {"kind": "multilabel", "columns": ["t1"]}}, n_estimators=2)
    constant.fit(X, {"t1": np.where(np.arange(N) % 2, 1.0, np.nan)})
    assert (constant.predict(X)["t1"] == 1).all()


# --- score -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("targets", "plain"),
    [
        ({"grade": "multiclass"}, PolyleafClassifier()),
        ({"passed": "binary"}, PolyleafClassifier()),
        ({"tags": TARGETS["tags"]}, PolyleafClassifier()),
        ({"both": {"kind": "regression", "columns": ["height", "n1"]}}, PolyleafRegressor()),
        ({"visits": "poisson"}, PolyleafRegressor(objective="poisson")),
        ({"price": "quantile"}, PolyleafRegressor(objective="quantile")),
    ],
)
def test_the_score_of_a_group_is_that_of_the_plain_estimator(targets, plain):
    X, y = table()
    Xe, ye = table(seed=1)
    weight = np.random.default_rng(0).uniform(0.2, 2, size=N)
    ((name, spec),) = targets.items()
    columns = spec.get("columns", [name]) if isinstance(spec, dict) else [name]

    def values(of):
        return of[columns[0]] if len(columns) == 1 else np.column_stack([of[column] for column in columns])

    plain.set_params(n_estimators=20, n_jobs=1, random_state=1).fit(X, values(y))
    model = mixed(targets).fit(X, y)
    assert model.score(Xe, ye) == pytest.approx(plain.score(Xe, values(ye)), rel=1e-12)
    assert model.score(Xe, ye, weight) == pytest.approx(plain.score(Xe, values(ye), weight), rel=1e-12)


def test_the_score_is_the_mean_over_groups():
    X, y = table()
    parts = []
    whole = mixed().fit(X, y)
    for name in TARGETS:
        others = {key: y[key] for key in y}
        for other in TARGETS:
            if other != name:
                spec = TARGETS[other]
                for column in spec.get("columns", [other]) if isinstance(spec, dict) else [other]:
                    others[column] = np.full(N, np.nan)
        parts.append(whole.score(X, others))
    assert whole.score(X, y) == pytest.approx(np.mean(parts), rel=1e-12)
    # The gain over constant quantiles: 0 for these, 1 for a perfect model.
    assert 0 < parts[list(TARGETS).index("price")] < 1
    whole.set_params(targets={"grade": "multiclass"})  # matters to another fit only
    assert whole.score(X, y) == pytest.approx(np.mean(parts), rel=1e-12)


def test_a_search_over_parameters_needs_no_scoring():
    X, y = table()
    search = GridSearchCV(mixed(SOME, n_estimators=5), {"max_depth": [1, 4]}, cv=2)
    search.fit(X, pd.DataFrame(y))
    assert search.best_params_ == {"max_depth": 4}


# --- tables in and out -------------------------------------------------------------------------------------


def test_staged_predictions_end_with_those_of_predict():
    X, y = table()
    model = mixed(n_estimators=4).fit(X, pd.DataFrame(y))
    stages = list(model.staged_predict(X))
    assert len(stages) == 4
    pd.testing.assert_frame_equal(stages[-1], model.predict(X))
    pd.testing.assert_frame_equal(stages[1], model.predict(X, n_rounds=2))
    assert len(list(model.staged_predict(X, n_rounds=2))) == 2


@pytest.mark.parametrize("library", ["pandas", "polars", "pyarrow"])
@pytest.mark.parametrize("of_y", ["dict", "pandas"])
def test_predictions_are_a_frame_of_the_kind_of_X(library, of_y):
    module = pytest.importorskip(library)
    X, y = table()
    columns = {name: X[:, j].copy() for j, name in enumerate("uvwxyz")}
    frame = module.table(columns) if library == "pyarrow" else module.DataFrame(columns)
    if library == "pandas":
        frame.index = np.arange(N) + 7
    model = mixed().fit(frame, y if of_y == "dict" else pd.DataFrame(y))
    expected = mixed().fit(X, y).predict(X)
    for found in (model.predict(frame), next(model.staged_predict(frame, n_rounds=1))):
        assert type(found) is type(frame)
        assert list(found.column_names if library == "pyarrow" else found.columns) == COLUMNS
    for name in COLUMNS:
        np.testing.assert_array_equal(np.asarray(model.predict(frame)[name]), expected[name])
    if library == "pandas":
        assert model.predict(frame).index.tolist() == frame.index.tolist()
    with pytest.warns(UserWarning, match="feature names"):
        plain = model.predict(X)
    assert isinstance(plain, dict if of_y == "dict" else pd.DataFrame)


def test_names_of_targets():
    X, y = table()
    model = mixed({"tags": TARGETS["tags"], "grade": "multiclass"}).fit(X, y)
    assert model.target_names_.tolist() == ["grade", "t1", "t2", "t3"]
    assert list(model.predict(X)) == ["grade", "t1", "t2", "t3"]
    assert PolyleafMixed({"t1": "binary"}, n_estimators=2).fit(X, y).target_names_.tolist() == ["t1"]
