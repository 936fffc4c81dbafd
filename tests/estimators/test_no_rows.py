"""A table without rows is predicted: by nothing, in the shape and dtype that other tables have."""

import numpy as np
import pandas as pd
import pytest
import scipy.sparse

from polyleaf import ConformalIntervals, PolyleafClassifier, PolyleafMixed, PolyleafRegressor

RNG = np.random.default_rng(1)
X = RNG.normal(size=(80, 4))
NAMES = ["a", "b", "c", "d"]
TARGETS = {
    "one": X[:, 0],
    "column": X[:, :1],
    "many": X[:, :3],
    "classes": np.array(["low", "mid", "top"])[np.digitize(X[:, 0], [-0.4, 0.4])],
    "two classes": X[:, 0] > 0,
    "labels": (X[:, :3] > 0).astype(int),
    "sparse labels": scipy.sparse.csr_array((X[:, :3] > 0).astype(int)),
}
SPARSE = {"objective": "clipped_squared_error", "sparse_leaves": 2}


def model_of(kind, **params):
    params |= {"n_estimators": 3, **(SPARSE if kind == "sparse labels" else {})}
    return (PolyleafRegressor if kind in ("one", "column", "many") else PolyleafClassifier)(**params)


def as_arrays(result):
    results = list(result) if not hasattr(result, "shape") else [result]
    return [one.toarray() if scipy.sparse.issparse(one) else np.asarray(one) for one in results]


@pytest.mark.parametrize("container", [np.asarray, scipy.sparse.csr_array, scipy.sparse.coo_array, "frame"])
@pytest.mark.parametrize("kind", TARGETS)
def test_no_rows_predict_no_rows(kind, container):
    def table(rows):
        return pd.DataFrame(rows, columns=NAMES) if container == "frame" else container(rows)

    model = model_of(kind).fit(table(X), TARGETS[kind])
    ways = [
        "predict",
        "apply",
        "staged_predict",
        "predict_proba",
        "decision_function",
        "staged_predict_proba",
    ]
    for name in ways:
        if not hasattr(model, name):
            continue
        way = getattr(model, name)
        some, none = as_arrays(way(table(X[:5]))), as_arrays(way(table(X[:0])))
        assert len(none) == len(some)
        for few, nothing in zip(some, none, strict=True):
            assert nothing.shape == (0, *few.shape[1:])
            assert nothing.dtype == few.dtype
    if isinstance(model, PolyleafClassifier):
        assert model.predict(table(X[:0]), top_k=1).shape == (0, 1)


@pytest.mark.parametrize("library", ["pandas", "polars", "pyarrow"])
def test_frames_without_rows_have_the_columns_of_others(library):
    frames = pytest.importorskip(library)
    columns = {name: X[:, j] for j, name in enumerate(NAMES)} | {"word": np.where(X[:, 0] > 0, "up", "down")}
    make = frames.table if library == "pyarrow" else frames.DataFrame
    frame = make(columns)
    nothing = frame.slice(0, 0) if library != "pandas" else frame.iloc[:0]
    model = PolyleafRegressor(n_estimators=3, categorical_features=["word"]).fit(frame, X[:, :2])
    assert model.predict(nothing).shape == (0, 2)
    predicted = model.predict(nothing, as_frame=True)
    assert predicted.shape == (0, 2)
    assert list(getattr(predicted, "column_names", predicted.columns)) == ["target_0", "target_1"]


def test_a_frame_that_never_had_rows_is_read():
    model = PolyleafRegressor(n_estimators=3).fit(pd.DataFrame(X, columns=NAMES), X[:, 0])
    assert model.predict(pd.DataFrame(columns=NAMES)).shape == (0,)
    with pytest.raises(ValueError, match="yet now missing:\n- d"):
        model.predict(pd.DataFrame(columns=NAMES[:3]))


def test_quantiles_and_mixed_targets_without_rows():
    model = PolyleafRegressor(n_estimators=3, objective="quantile", quantile_levels=[0.1, 0.9]).fit(
        X, X[:, 0]
    )
    assert model.predict(X[:0]).shape == (0, 2)
    y = pd.DataFrame({"size": X[:, 0], "kind": TARGETS["classes"]})
    mixed = PolyleafMixed({"size": "regression", "kind": "multiclass"}, n_estimators=3).fit(X, y)
    assert mixed.predict(X[:0]).shape == (0, 2)
    assert mixed.predict_proba(X[:0])["kind"].shape == (0, 3)


def test_training_and_evaluation_need_rows():
    with pytest.raises(ValueError, match=r"Found array with 0 sample\(s\)"):
        PolyleafRegressor().fit(X[:0], X[:0, 0])
    with pytest.raises(ValueError, match=r"X of eval_set\[0\].*0 sample\(s\)"):
        PolyleafRegressor().fit(X, X[:, 0], eval_set=(X[:0], X[:0, 0]))


@pytest.mark.parametrize("kind", TARGETS)
def test_scores_of_no_rows_are_refused_in_words(kind):
    model = model_of(kind).fit(X, TARGETS[kind])
    with pytest.raises(ValueError, match="y has no rows, nor has its X"):
        model.score(X[:0], TARGETS[kind][:0])
    with pytest.raises(ValueError, match=r"y has 80 row\(s\), but its X has 0"):
        model.score(X[:0], TARGETS[kind])


def test_intervals_and_mixed_scores_of_no_rows_are_refused_in_words():
    intervals = ConformalIntervals(PolyleafRegressor(n_estimators=3).fit(X, X[:, 0]))
    with pytest.raises(ValueError, match="y has no rows, nor has its X"):
        intervals.calibrate(X[:0], X[:0, 0])
    y = pd.DataFrame({"price": X[:, 0], "grade": TARGETS["classes"]})
    mixed = PolyleafMixed({"price": "regression", "grade": "multiclass"}, n_estimators=3).fit(X, y)
    with pytest.raises(ValueError, match="of y has no rows, nor has its X"):
        mixed.score(X[:0], y[:0])
