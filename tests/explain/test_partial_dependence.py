"""Partial dependence is the mean of predictions with a feature set to a value, and ICE those of each row."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
import pytest
import scipy.sparse
from sklearn.inspection import partial_dependence

from polyleaf import BinnedTable, PartialDependence, PolyleafClassifier, PolyleafMixed, PolyleafRegressor
from polyleaf.explain import partial_dependence as module
from polyleaf.explain import replaced_values
from polyleaf.model.forest import Forest
from polyleaf.params.combinations import Refused

Values = npt.NDArray[np.float64]
SMALL: dict[str, Any] = {"n_estimators": 6, "max_depth": 4, "random_state": 0, "min_samples_leaf": 5}
CLOSE: dict[str, float] = {"rtol": 1e-10, "atol": 1e-11}


def table(n: int = 200, gaps: bool = True) -> tuple[Values, Values]:
    """Five features, of which the last is of no use, and three targets; the features hang together."""
    rng = np.random.default_rng(7)
    X = rng.normal(size=(n, 5))
    X[:, 1] += X[:, 0]
    Z = X.copy()
    if gaps:
        X[rng.random(X.shape) < 0.06] = np.nan
    X[:, 4] = rng.integers(0, 3, n)
    return X, np.column_stack([Z[:, 0] * Z[:, 1], Z[:, 2] + Z[:, 0], np.sin(Z[:, 3]) + Z[:, 1]])


def by_hand(predict: Any, X: Values, features: tuple[int, ...], grids: tuple[Any, ...]) -> Values:
    """Predictions of shape (outputs, rows, *values): a copy of the table for each point."""
    points = []
    for point in product(*grids):
        other = X.copy()
        for feature, value in zip(features, point, strict=True):
            other[:, feature] = value
        points.append(np.asarray(predict(other), dtype=np.float64).reshape(len(X), -1))
    found = np.stack(points, axis=-1)  # rows, outputs, points
    return np.moveaxis(found, 0, 1).reshape(found.shape[1], len(X), *map(len, grids))


def raw_scores(model: Any) -> Any:
    return lambda X: model._coding.in_order_of_y(model._raw(X, None))


def check(
    model: Any, X: Values, predict: Any, features: tuple[int, ...] = (0,), paths: bool = True, **options: Any
) -> None:
    """All methods that there are, against predictions by hand."""
    found = model.partial_dependence(X, features, kind="both", grid_resolution=9, **options)
    expected = by_hand(predict, X, features, found.grid_values)
    np.testing.assert_allclose(found.individual, expected, **CLOSE)
    np.testing.assert_allclose(found.average, expected.mean(axis=1), **CLOSE)
    for method in ("auto", "paths") if paths else ("auto",):
        other = model.partial_dependence(X, features, grid_resolution=9, method=method, **options)
        assert other.individual is None
        np.testing.assert_allclose(other.average, found.average, **CLOSE)


@pytest.mark.parametrize("features", [[0], ["x4"], [1, 2], (2, 4)])
def test_the_numbers_of_scikit_learn(features: Any) -> None:
    X, Y = table(gaps=False)
    model = PolyleafRegressor(**SMALL).fit(X, Y)
    numbers = [int(str(one)[-1]) for one in features]
    theirs = partial_dependence(model, X, numbers, kind="both", method="brute", grid_resolution=20)
    ours = model.partial_dependence(X, features, kind="both", grid_resolution=20)
    for our, their in zip(ours.grid_values, theirs["grid_values"], strict=True):
        np.testing.assert_array_equal(our, their)
    np.testing.assert_allclose(ours.individual, theirs["individual"], **CLOSE)
    np.testing.assert_allclose(ours.average, theirs["average"], **CLOSE)
    quick = model.partial_dependence(X, features, grid_resolution=20, method="paths")
    assert (ours.method, quick.method) == ("brute", "paths")
    np.testing.assert_allclose(quick.average, theirs["average"], **CLOSE)


KINDS: dict[str, dict[str, Any]] = {
    "joint": {},
    "one output per tree": {"multi_strategy": "one_output_per_tree"},
    "sparse leaves": {"sparse_leaves": 1},
    "unrestricted": {"sparse_leaves": 2, "sparse_mode": "unrestricted"},
    "one quantile": {"objective": "quantile", "quantile_levels": 0.3},
    "rows": {"subsample": 0.6},
    "no tree splits": {"min_samples_leaf": 1000},
}


@pytest.mark.parametrize("features", [(0,), (1, 0)])
@pytest.mark.parametrize("options", KINDS.values(), ids=KINDS)
def test_targets(options: dict[str, Any], features: tuple[int, ...]) -> None:
    X, Y = table()
    model = PolyleafRegressor(**SMALL | options).fit(X, Y)
    check(model, X, model.predict, features)


@pytest.mark.parametrize(
    "kind", ["classes", "two classes", "labels", "sparse labels", "log link", "quantiles"]
)
def test_predictions_and_raw_scores(kind: str) -> None:
    """Where there is a link, the mean of predictions needs brute force, and that of raw scores does not."""
    X, Y = table()
    y: Any = np.digitize(Y[:, 0], [-0.3, 0.3])
    model: Any = PolyleafClassifier(**SMALL)
    if kind == "two classes":
        y = y > 1
    elif kind == "labels":
        y = (Y > 0).astype(int)
    elif kind == "sparse labels":
        model.set_params(objective="clipped_squared_error", sparse_leaves=2)
        y = scipy.sparse.csr_array((Y > 0).astype(int))
    elif kind == "log link":
        model, y = PolyleafRegressor(**SMALL, objective="poisson"), np.exp(Y[:, :2].clip(-2, 2))
    elif kind == "quantiles":
        model = PolyleafRegressor(**SMALL, objective="quantile", quantile_levels=[0.1, 0.5, 0.9])
        y = Y[:, :2]
    model.fit(X, y)

    def predict(X: Values) -> Any:
        if isinstance(model, PolyleafRegressor):
            return model.predict(X)
        return model.predict_proba(X)[:, -model.n_outputs_ :]

    check(model, X, predict, (1,), paths=False)
    assert model.partial_dependence(X, [0, 2]).method == "brute"
    check(model, X, raw_scores(model), (0, 2), response="raw")
    assert model.partial_dependence(X, [0, 2], response="raw").method == "paths"


def frame_of(X: Values, Y: Values) -> pd.DataFrame:
    frame = pd.DataFrame(X, columns=list("abcde"))
    heating = np.where(Y[:, 0] > 0, "pump", np.where(Y[:, 1] > 0, "gas", "oil")).astype(object)
    heating[::11] = None
    frame["heating"] = heating
    return frame


def test_mixed_targets_are_in_the_order_of_y() -> None:
    X, Y = table()
    frame = frame_of(X, Y)
    y = pd.DataFrame({"number": Y[:, 1], "grade": np.where(Y[:, 0] > 0.3, "x", "y"), "more": Y[:, 2]})
    targets = {"grade": {"kind": "multiclass"}, "n": {"kind": "regression", "columns": ["number", "more"]}}
    model = PolyleafMixed(targets, **SMALL, categorical_features=["heating"]).fit(frame, y)
    found = model.partial_dependence(frame, "b", grid_resolution=5)
    assert found.outputs == ("number", "grade=x", "grade=y", "more")
    for point, value in enumerate(found.grid_values[0]):
        other = frame.assign(b=value)
        assert found.average is not None
        np.testing.assert_allclose(found.average[-1, point], model.predict(other)["more"].mean(), **CLOSE)
        share = model.predict_proba(other)["grade"].mean(axis=0)
        np.testing.assert_allclose(found.average[1:-1, point], share, **CLOSE)


def test_categories_have_their_names_and_a_missing_value_is_a_point() -> None:
    X, Y = table()
    frame = frame_of(X, Y)
    model = PolyleafRegressor(**SMALL, categorical_features="auto").fit(frame, Y)
    found = model.partial_dependence(frame, ["heating", "a"], kind="both", grid_resolution=4)
    assert found.grid_values[0].tolist() == ["gas", "oil", "pump", None]
    assert np.isnan(found.grid_values[1]).tolist() == [False] * 4 + [True]
    assert found.individual is not None
    for (i, name), (j, value) in product(*map(enumerate, found.grid_values)):
        other = frame.assign(heating=pd.Series([name] * len(frame), dtype=object), a=value)
        np.testing.assert_allclose(found.individual[:, :, i, j], model.predict(other).T, **CLOSE)
    quick = model.partial_dependence(frame, ["heating", "a"], grid_resolution=4, method="paths")
    np.testing.assert_allclose(quick.average, found.average, **CLOSE)
    without_gaps = frame[frame["a"].notna()]
    assert len(model.partial_dependence(without_gaps, "a", grid_resolution=4).grid_values[0]) == 4


def test_values_of_ones_own() -> None:
    X, Y = table()
    frame = frame_of(X, Y)
    model = PolyleafRegressor(**SMALL, categorical_features="auto").fit(frame, Y)
    custom = {"heating": ["pump", None, "gas"], 0: [3.0, -1.0, np.nan, 3.0]}
    found = model.partial_dependence(frame, ("a", "heating"), custom_values=custom)
    assert found.grid_values[1].tolist() == ["pump", None, "gas"]
    np.testing.assert_array_equal(found.grid_values[0], [3.0, -1.0, np.nan, 3.0])
    whole = model.partial_dependence(frame, ["heating"], custom_values={"heating": ["gas", "pump"]})
    every = model.partial_dependence(frame, ["heating"])
    assert whole.average is not None
    assert every.average is not None
    np.testing.assert_array_equal(whole.average, every.average[:, [0, 2]])


@pytest.mark.parametrize("features", [(0,), (0, 4)])
def test_tables_of_all_kinds(features: tuple[int, ...]) -> None:
    X, Y = table(gaps=False)
    X = np.round(2 * X)
    model = PolyleafRegressor(**SMALL).fit(X, Y)
    expected = model.partial_dependence(X, features, kind="both")
    sparse = scipy.sparse.csr_array(X)
    for other in (sparse, sparse.tocsc(), X.astype(int), X.astype("f4"), [X[:90], X[90:]]):
        found = model.partial_dependence(other, features, kind="both")
        np.testing.assert_array_equal(found.individual, expected.individual)
        quick = model.partial_dependence(other, features, method="paths")
        np.testing.assert_allclose(quick.average, expected.average, **CLOSE)


def test_blocks_of_rows_give_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    X, Y = table()
    weight = np.linspace(0, 2, len(X))
    model = PolyleafRegressor(**SMALL).fit(X, Y)
    options = ({"kind": "both"}, {"method": "paths"})
    whole = [model.partial_dependence(X, [0, 1], sample_weight=weight, **one) for one in options]
    monkeypatch.setattr(replaced_values, "BLOCK_CELLS", 31 * 5)
    for table_of in (X, scipy.sparse.csr_array(X)):
        parts = [model.partial_dependence(table_of, [0, 1], sample_weight=weight, **one) for one in options]
        for one, other in zip(whole, parts, strict=True):
            np.testing.assert_allclose(other.average, one.average, **CLOSE)
        np.testing.assert_array_equal(parts[0].individual, whole[0].individual)


@pytest.mark.parametrize("method", ["brute", "paths"])
def test_a_row_of_weight_2_counts_twice(method: str) -> None:
    X, Y = table()
    model = PolyleafRegressor(**SMALL).fit(X, Y)
    weight = np.where(np.arange(len(X)) < 50, 2.0, 1.0)
    custom = {0: [-1.0, 0.0, 1.0]}
    twice = model.partial_dependence(np.vstack([X, X[:50]]), 0, method=method, custom_values=custom)
    found = model.partial_dependence(X, 0, method=method, custom_values=custom, sample_weight=weight)
    np.testing.assert_allclose(found.average, twice.average, **CLOSE)
    plain = model.partial_dependence(X, 0, method=method, custom_values=custom)
    assert np.abs(found.average - plain.average).max() > 1e-3


def test_outputs_of_choice_and_some_rounds() -> None:
    X, Y = table()
    model = PolyleafRegressor(**SMALL).fit(X, pd.DataFrame(Y, columns=["u", "v", "w"]))
    for method in ("brute", "paths", "recursion"):
        every = model.partial_dependence(X, 0, method=method)
        chosen = model.partial_dependence(X, 0, outputs=["w", 0], method=method)
        assert chosen.outputs == ("w", "u")
        assert every.average is not None
        np.testing.assert_allclose(chosen.average, every.average[[2, 0]], **CLOSE)
    check(model[:2], X, lambda rows: model.predict(rows, n_rounds=2))
    base = np.repeat(model._forest.base_score[:, np.newaxis], 101, axis=1)
    for method in ("auto", "paths"):
        np.testing.assert_allclose(model[:0].partial_dependence(X, 0, method=method).average, base, **CLOSE)


def test_few_points_are_faster_by_brute_force() -> None:
    X, Y = table()
    model = PolyleafRegressor(**SMALL | {"n_estimators": 30}).fit(X, Y)
    assert model.partial_dependence(X, 0, grid_resolution=10).method == "brute"
    assert model.partial_dependence(X, 0, grid_resolution=50).method == "paths"
    assert model[:1].partial_dependence(X, 0, grid_resolution=50).method == "brute"  # few thresholds


def test_a_feature_of_no_use_is_flat() -> None:
    X, Y = table()
    X[:, 3] = 1.0
    model = PolyleafRegressor(**SMALL).fit(X, Y)
    X[:, 3] = np.arange(len(X))
    for kind in ("average", "individual"):
        found = model.partial_dependence(X, 3, kind=kind)
        values = found.average if kind == "average" else found.individual
        np.testing.assert_array_equal(values, np.repeat(values[..., :1], 100, axis=-1))


def test_a_column_of_one_value_but_for_a_few_has_its_whole_range() -> None:
    X, Y = table(gaps=False)
    X[:-8, 0] = 0.0
    grid = PolyleafRegressor(**SMALL).fit(X, Y).partial_dependence(X, 0, grid_resolution=4).grid_values[0]
    assert (grid[0], grid[-1]) == (X[:, 0].min(), X[:, 0].max())


# --- recursion -------------------------------------------------------------------------------------------


def recursion_by_hand(forest: Forest, tree: int, features: tuple[int, ...], point: Any) -> Values:
    """What a tree predicts where these features are known, and others go by cover."""
    root = int(forest.node_begin[tree])

    def below(node: int) -> Values:
        left = root + int(forest.left[node])
        if left < root:
            begin, width = forest.value_begin[node], forest.tree_width[tree]
            return forest.values[begin : begin + width].astype(np.float64) * forest.unit
        feature = int(forest.feature[node])
        if feature in features:
            value = point[features.index(feature)]
            goes_left = forest.missing_left[node] if np.isnan(value) else value <= forest.threshold[node]
            return below(left if goes_left else left + 1)
        covers = forest.cover[left], forest.cover[left + 1]
        return (covers[0] * below(left) + covers[1] * below(left + 1)) / sum(covers)

    return below(root)


@pytest.mark.parametrize("features", [(0,), (1, 0)])
def test_recursion_by_hand(features: tuple[int, ...]) -> None:
    X, Y = table()
    model = PolyleafRegressor(**SMALL).fit(X, Y, sample_weight=np.linspace(0.5, 2, len(X)))
    found = model.partial_dependence(X, features, method="recursion", grid_resolution=6)
    assert found.method == "recursion"
    forest = model._forest
    for place in np.ndindex(*map(len, found.grid_values)):
        point = [grid[i] for grid, i in zip(found.grid_values, place, strict=True)]
        trees = [recursion_by_hand(forest, tree, features, point) for tree in range(forest.n_trees)]
        expected = forest.base_score + np.sum(trees, axis=0)
        assert found.average is not None
        np.testing.assert_allclose(found.average[:, *place], expected, **CLOSE)
    # With features that hang together, it is another number than the mean over the rows.
    brute = model.partial_dependence(X, features, method="brute", grid_resolution=6)
    assert np.abs(found.average - brute.average).max() > 1e-3


@pytest.mark.parametrize("features", [(0,), (2, 1)])
def test_recursion_is_exact_where_features_are_independent(features: tuple[int, ...]) -> None:
    """Every combination of values once: what a split sends left is the same share everywhere."""
    X = np.array([*product(range(4), repeat=3)], dtype=np.float64)
    y = X[:, 0] * X[:, 1] + np.abs(X[:, 2] - 2) * X[:, 0]
    model = PolyleafRegressor(**SMALL | {"min_samples_leaf": 1}).fit(X, np.column_stack([y, X[:, 1] - y]))
    brute, recursion = (model.partial_dependence(X, features, method=one) for one in ("brute", "recursion"))
    np.testing.assert_allclose(recursion.average, brute.average, **CLOSE)
    assert np.ptp(brute.average) > 1


def test_recursion_is_exact_for_trees_of_one_split() -> None:
    X, Y = table()
    model = PolyleafRegressor(**SMALL | {"max_depth": 1, "n_estimators": 30}).fit(X, Y)
    brute, recursion = (model.partial_dependence(X, 0, method=one) for one in ("brute", "recursion"))
    np.testing.assert_allclose(recursion.average, brute.average, **CLOSE)


# --- what comes back -------------------------------------------------------------------------------------


def test_frames_have_names() -> None:
    pytest.importorskip("polars")
    X, Y = table(gaps=False)
    frame = pd.DataFrame(X, columns=["output", "b", "c", "d", "e"])
    model = PolyleafRegressor(**SMALL).fit(frame, pd.DataFrame(Y[:, :2], columns=["u", "v"]))
    found = model.partial_dependence(frame[:3], ["output", "e"], kind="both")
    average = found.to_frame()
    assert list(average) == ["output", "output_value", "e", "average"]
    assert len(average) == found.average.size
    row = average.iloc[-1]
    assert (row["output"], row["average"]) == ("v", found.average[-1, -1, -1])
    assert row["e"] == found.grid_values[1][-1]
    single = found.to_frame(kind="individual", library="polars")
    assert single.columns == ["output", "row", "output_value", "e", "individual"]
    assert single["row"].max() == 2
    assert single["individual"][-1] == found.individual[-1, -1, -1, -1]
    assert repr(found).startswith("PartialDependence(output, e: 3 values x ")
    with pytest.raises(ValueError, match="there is no individual"):
        model.partial_dependence(frame, "b").to_frame(kind="individual")


def test_frames_of_categories() -> None:
    pytest.importorskip("polars")
    X, Y = table()
    frame = frame_of(X, Y)
    frame["size"] = pd.Categorical(np.digitize(Y[:, 1], [-1, 1]) * 10)
    model = PolyleafRegressor(**SMALL, categorical_features="auto").fit(frame, Y)
    found = model.partial_dependence(frame, ["heating", "size"]).to_frame(library="polars")
    assert found["heating"].unique(maintain_order=True).to_list() == ["gas", "oil", "pump", None]
    assert found["size"].unique(maintain_order=True).to_list() == [0, 10, 20]


def test_names_in_another_order() -> None:
    X, Y = table()
    frame = pd.DataFrame(X, columns=list("abcde"))
    model = PolyleafRegressor(**SMALL).fit(frame, Y)
    with pytest.raises(ValueError, match="order"):
        model.partial_dependence(frame[list("edcba")], "a")
    expected = model.partial_dependence(frame, "a")
    model.set_params(columns_by_name=True)
    found = model.partial_dependence(frame[list("edcba")], "a")
    np.testing.assert_array_equal(found.average, expected.average)


@pytest.fixture(scope="module")
def fitted() -> tuple[Any, pd.DataFrame]:
    X, Y = table()
    frame = frame_of(X, Y)
    return PolyleafRegressor(**SMALL, categorical_features="auto").fit(frame, Y), frame


@pytest.mark.parametrize(
    ("features", "options", "error", "message"),
    [
        ("area", {}, ValueError, "features: there is no feature 'area'; there are 'a', 'b'"),
        (6, {}, ValueError, "there is no feature 6; the model has 6, counted from 0"),
        (-1, {}, ValueError, "there is no feature -1"),
        (["a", 0], {}, ValueError, "asks twice for 'a'"),
        (["a", "b", "c"], {}, ValueError, "one feature or two; got 3"),
        ([], {}, ValueError, "one feature or two; got 0"),
        (1.5, {}, TypeError, "numbers or names of features; got 1.5"),
        (None, {}, TypeError, "one or two numbers or names"),
        (True, {}, TypeError, "got True"),
        ("a", {"outputs": "target_3"}, ValueError, "no output 'target_3'"),
        ("a", {"outputs": [0, 0]}, ValueError, "asks twice"),
        ("a", {"kind": "mean"}, ValueError, "kind must be"),
        ("a", {"response": "log"}, ValueError, "response must be"),
        ("a", {"method": "fast"}, ValueError, "method must be"),
        ("a", {"grid_resolution": 1}, ValueError, "grid_resolution"),
        ("a", {"percentiles": (0.9, 0.1)}, ValueError, "percentiles must ascend"),
        ("a", {"percentiles": (5, 95)}, ValueError, "percentiles must be"),
        ("a", {"percentiles": 0.5}, TypeError, "two numbers"),
        ("a", {"custom_values": [1, 2]}, TypeError, "custom_values must be a dict"),
        ("a", {"custom_values": {"a": []}}, ValueError, "at least one value"),
        ("a", {"custom_values": {"a": [[1.0]]}}, ValueError, "at least one value"),
        ("a", {"custom_values": {"a": [1.0, np.inf]}}, ValueError, "got infinity"),
        ("a", {"custom_values": {"a": ["x"]}}, ValueError, "custom_values of 'a'"),
        ("a", {"custom_values": {"b": [1.0]}}, ValueError, "'b', which features does not ask for"),
        ("a", {"custom_values": {"z": [1.0]}}, ValueError, "custom_values: there is no feature 'z'"),
        ("heating", {"custom_values": {"heating": ["wood"]}}, ValueError, "'wood' is no category of fit"),
        ("heating", {"custom_values": {"heating": [3]}}, ValueError, "holds numbers"),
        ("a", {"sample_weight": [1.0]}, ValueError, "one weight per row"),
        ("a", {"sample_weight": np.zeros(200)}, ValueError, "zero in all rows"),
        ("a", {"method": "paths", "kind": "both"}, Refused, 'method="paths" does not go with kind="ind'),
        ("a", {"method": "recursion", "sample_weight": np.ones(200)}, Refused, "sample_weight"),
        ("a", {"kind": "individual", "sample_weight": np.ones(200)}, Refused, "no mean to weigh"),
    ],
)
def test_bad_input(
    fitted: tuple[Any, pd.DataFrame], features: Any, options: dict[str, Any], error: Any, message: str
) -> None:
    model, frame = fitted
    with pytest.raises(error, match=message):
        model.partial_dependence(frame, features, **options)


def test_bad_tables(fitted: tuple[Any, pd.DataFrame]) -> None:
    model, frame = fitted
    with pytest.raises(ValueError, match="feature"):
        model.partial_dependence(frame[["a", "b"]], "a")
    with pytest.raises(ValueError, match="no row"):
        model.partial_dependence(frame[:0], "a")
    X, Y = table()
    with pytest.raises(TypeError, match="a BinnedTable has the codes of bins alone"):
        PolyleafRegressor(**SMALL).fit(X, Y).partial_dependence(BinnedTable.make(X, Y), 0)


def test_too_large_a_result_is_refused_with_its_numbers(
    fitted: tuple[Any, pd.DataFrame], monkeypatch: pytest.MonkeyPatch
) -> None:
    model, frame = fitted
    monkeypatch.setattr(module, "available", lambda: 1 << 26)
    assert isinstance(model.partial_dependence(frame, ["a", "b"]), PartialDependence)
    with pytest.raises(MemoryError, match="3 outputs x 200 rows x 101 values x 101 values") as caught:
        model.partial_dependence(frame, ["a", "b"], kind="both")
    assert "78.7 MiB" in str(caught.value)
    assert "64.0 MiB are available" in str(caught.value)
